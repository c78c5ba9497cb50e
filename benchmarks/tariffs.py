"""Motor tariffs (beMTPL97, claim frequency): deviance, distinct effects and time against peers.

Every method sees the same rows and, where it is tuned by folds, the same folds. Times are of the
processor, one thread. The file is read from ``CLUSTRUCT_DATA``.
"""

import os
import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import mean_poisson_deviance
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, TargetEncoder
from threadpoolctl import threadpool_limits

from clustruct import FeatureClusterRegressorCV
from paired import differences
from report import Options, Table, Target
from timing import Failure, isolated

FILE = "beMTPL97.csv.xz"
NOMINAL = ["coverage", "sex", "fuel", "use", "fleet", "postcode"]
ORDINAL = ["ageph", "bm", "power", "agec"]
N_SPLITS, N_FOLDS = 5, 5
RIDGES = np.geomspace(1e-2, 1e-5, 10)
LEAVES, N_TUNING_FOLDS = (4, 8, 16), 2
N_BANDS = 5
OURS, FEWEST, RIDGE = "clustruct", "clustruct, fewest groups", "one-hot ridge"
# insurance-glm-tools fits a dense matrix of all levels: one split, and so many processor seconds.
PEER, PEER_LIMIT = "insurance-glm-tools", 120

Record = dict[str, Any]


class Rows(NamedTuple):
    """Policies: factors, number of claims, exposure."""

    X: pd.DataFrame
    y: np.ndarray
    exposure: np.ndarray

    def take(self, rows: Any) -> "Rows":
        """Some of them."""
        return Rows(self.X.iloc[rows], self.y[rows], self.exposure[rows])

    @property
    def rates(self) -> np.ndarray:
        """Claims for a year of exposure."""
        return self.y / self.exposure


class Fitted(NamedTuple):
    """Expected claims of policies, number of distinct effects, and what was chosen."""

    predict: Callable[[Rows], np.ndarray]
    effects: int | None
    chosen: Any = None


def load() -> Rows:
    """The policies; postcodes and flags as text, so that they are categories."""
    folder = os.environ.get("CLUSTRUCT_DATA")
    if folder is None or not (Path(folder) / FILE).exists():
        raise SystemExit(f"CLUSTRUCT_DATA has to name a folder with {FILE}.")
    table = pd.read_csv(Path(folder) / FILE)
    X = table[NOMINAL + ORDINAL].astype(dict.fromkeys(NOMINAL, str))
    return Rows(X, table["nclaims"].to_numpy(float), table["expo"].to_numpy(float))


# ---- The methods


def _ours(train: Rows, folds: Any, rule: str = "best") -> Fitted:
    model = FeatureClusterRegressorCV(
        loss="poisson",
        factors=dict.fromkeys(ORDINAL, "ordinal"),
        cv=folds,
        rule=rule,
        random_state=0,
    )
    model.fit(train.X, train.y, offset=np.log(train.exposure))
    # A factor with one group is out.
    groups = {
        factor.name: int(np.unique(model.labels_[model.factors_.blocks == j]).size)
        for j, factor in enumerate(model.factors_.factors)
    }
    effects = sum(count for count in groups.values() if count > 1)
    return Fitted(
        lambda rows: model.predict(rows.X, offset=np.log(rows.exposure)),
        effects,
        {"groups": groups, "price": model.best_params_["price"], "strength": model.alpha_},
    )


def _mean(train: Rows, folds: Any) -> Fitted:
    rate = train.y.sum() / train.exposure.sum()
    return Fitted(lambda rows: rate * rows.exposure, 0)


def _ridge(train: Rows, folds: Any) -> Fitted:
    """All levels of all factors; L-BFGS is the fastest solver here, from each alpha to the next."""
    encoder = OneHotEncoder(handle_unknown="ignore").fit(train.X)
    matrix = encoder.transform(train.X)
    scores = np.empty((RIDGES.size, len(folds)))
    for f, (mine, held) in enumerate(folds):
        model = PoissonRegressor(max_iter=1000, warm_start=True)
        X, rows, rest, test = matrix[mine], train.take(mine), matrix[held], train.take(held)
        for a, alpha in enumerate(RIDGES):
            model.set_params(alpha=alpha).fit(X, rows.rates, sample_weight=rows.exposure)
            scores[a, f] = _deviance(test, model.predict(rest) * test.exposure)
    alpha = RIDGES[scores.mean(axis=1).argmin()]
    model = PoissonRegressor(alpha=alpha, max_iter=1000, tol=1e-6)
    model.fit(matrix, train.rates, sample_weight=train.exposure)
    return Fitted(
        lambda rows: model.predict(encoder.transform(rows.X)) * rows.exposure,
        matrix.shape[1],
        {"alpha": float(alpha)},
    )


def _boosting(train: Rows, folds: Any) -> Fitted:
    """Trees of three sizes, early stopping; postcodes have too many levels and are target-coded."""
    few = [name for name in NOMINAL if name != "postcode"]
    shuffled = KFold(N_FOLDS, shuffle=True, random_state=0)

    def fit(rows: Rows, leaves: int) -> Any:
        columns = make_column_transformer(
            (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), few),
            (TargetEncoder(target_type="continuous", cv=shuffled), ["postcode"]),
            ("passthrough", ORDINAL),
        )
        trees = HistGradientBoostingRegressor(
            loss="poisson",
            learning_rate=0.1,
            max_leaf_nodes=leaves,
            max_iter=500,
            early_stopping=True,
            min_samples_leaf=100,
            categorical_features=list(range(len(few))),
            random_state=0,
        )
        model = make_pipeline(columns, trees)
        weights = {"histgradientboostingregressor__sample_weight": rows.exposure}
        return model.fit(rows.X, rows.rates, **weights)

    scores = [
        np.mean([
            _deviance(train.take(held), fit(train.take(mine), leaves).predict(train.take(held).X)
                      * train.exposure[held])
            for mine, held in folds[:N_TUNING_FOLDS]
        ])
        for leaves in LEAVES
    ]  # fmt: skip
    leaves = LEAVES[int(np.argmin(scores))]
    model = fit(train, leaves)
    chosen = {"leaves": leaves, "trees": model[-1].n_iter_}
    return Fitted(lambda rows: model.predict(rows.X) * rows.exposure, None, chosen)


def _bands(train: Rows, folds: Any) -> Fitted:
    """Five bands of equal size for each number, and of postcodes by their claims; a plain GLM."""
    rate = train.y.sum() / train.exposure.sum()
    claims, exposure = (
        pd.Series(values).groupby(train.X["postcode"].to_numpy()).sum()
        for values in (train.y, train.exposure)
    )
    rates = (claims / exposure).to_dict()

    def numbers(rows: Rows) -> pd.DataFrame:
        X = rows.X[ORDINAL].astype(float)
        return X.assign(postcode=rows.X["postcode"].map(rates).fillna(rate).astype(float))

    shares = np.arange(1, N_BANDS) / N_BANDS
    edges = {name: np.unique(column.quantile(shares)) for name, column in numbers(train).items()}
    few = [name for name in NOMINAL if name != "postcode"]

    def banded(rows: Rows) -> pd.DataFrame:
        X = numbers(rows)
        bands = {name: np.searchsorted(cuts, X[name]) for name, cuts in edges.items()}
        return rows.X[few].assign(**bands)

    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    model = PoissonRegressor(alpha=1e-9, solver="newton-cholesky", max_iter=100)
    pipeline = make_pipeline(encoder, model)
    pipeline.fit(banded(train), train.rates, poissonregressor__sample_weight=train.exposure)
    return Fitted(
        lambda rows: pipeline.predict(banded(rows)) * rows.exposure, int(model.coef_.size)
    )


def _peer(train: Rows, test: Rows, folder: str) -> Record:
    """insurance-glm-tools in a process of its own, with a limit of processor time."""
    resource.setrlimit(resource.RLIMIT_CPU, (PEER_LIMIT, PEER_LIMIT))
    sys.path.append(folder)
    from insurance_glm_tools.cluster import FactorClusterer
    from insurance_glm_tools.cluster.backends import build_refit_matrix

    start = time.process_time()
    names = ORDINAL + NOMINAL
    peer = FactorClusterer(family="poisson").fit(train.X, train.y, train.exposure, names)
    glm = peer.refit_glm(train.X, train.y, train.exposure)
    seconds = time.process_time() - start
    X, _ = build_refit_matrix(test.X, peer._factor_group_maps, names)
    mu = np.asarray(glm.predict(X, exposure=test.exposure))
    groups = [peer.level_map(name).n_groups for name in names]
    effects = sum(count for count in groups if count > 1)
    return {"deviance": _deviance(test, mu), "effects": effects, "seconds": seconds}


METHODS: dict[str, Callable[[Rows, Any], Fitted]] = {
    "mean only": _mean,
    OURS: _ours,
    FEWEST: partial(_ours, rule="fewest"),
    RIDGE: _ridge,
    "boosted trees": _boosting,
    "quintile bands": _bands,
}


# ---- The measurements


def _deviance(rows: Rows, mu: np.ndarray) -> float:
    """Mean Poisson deviance of a policy."""
    return float(mean_poisson_deviance(rows.y, mu))


def measure(options: Options) -> list[Record]:
    """All methods on random splits, a fifth of the policies to test on."""
    policies = load()
    records: list[Record] = []
    with threadpool_limits(1):
        for seed in range(1 if options.quick else N_SPLITS):
            order = np.random.default_rng(seed).permutation(policies.y.size)
            test, train = (policies.take(np.sort(p)) for p in np.split(order, [order.size // 5]))
            folds = list(KFold(N_FOLDS, shuffle=True, random_state=seed).split(train.X))
            for name, method in METHODS.items():
                start = time.process_time()
                fitted = method(train, folds)
                seconds = time.process_time() - start
                deviance = _deviance(test, fitted.predict(test))
                found = {"deviance": deviance, "effects": fitted.effects, "seconds": seconds}
                records.append({"split": seed, "method": name, **found, "chosen": fitted.chosen})
                print(f"tariffs: {seed}, {name}: {deviance:.6f}, {seconds:.1f} s", file=sys.stderr)
            if seed == 0:
                records.append({"split": seed, "method": PEER, **_by_peer(train, test)})
    return records


def _by_peer(train: Rows, test: Rows) -> Record:
    folder = os.environ.get("CLUSTRUCT_PEERS")
    if folder is None or not (Path(folder) / "insurance_glm_tools").exists():
        return {"left out": "not in the folder that CLUSTRUCT_PEERS names"}
    try:
        found: Record = isolated(_peer, train, test, folder, fresh=False)
    except Failure as error:
        over = "SIGKILL" in str(error) or "SIGXCPU" in str(error)
        why = f"not finished after {PEER_LIMIT} s of processor time" if over else str(error)
        return {"left out": why}
    return found


def _of(records: list[Record], method: str, field: str) -> np.ndarray:
    found = [r[field] for r in records if r["method"] == method and r.get(field) is not None]
    return np.array(found, dtype=float)


def table(records: list[Record]) -> Table:
    """Means over the splits, and differences to ridge on the same splits."""
    rows, notes = [], []
    for name in (*METHODS, PEER):
        left_out = [r["left out"] for r in records if r["method"] == name and "left out" in r]
        notes += [f"{name}: {why}" for why in left_out]
        deviances = _of(records, name, "deviance")
        if not deviances.size:
            continue
        effects, seconds = _of(records, name, "effects"), _of(records, name, "seconds")
        theirs = _of(records, RIDGE, "deviance")[: deviances.size]
        rows.append([
            name,
            f"{deviances.mean():.5f}",
            "" if name == RIDGE else differences(1e4 * deviances, 1e4 * theirs),
            f"{effects.mean():.0f}" if effects.size else "trees",
            f"{seconds.mean():.1f}",
        ])  # fmt: skip
    header = ["method", "deviance", "1e4 x (deviance - ridge's)", "effects", "seconds"]
    return Table(header, rows, notes)


def targets(records: list[Record]) -> list[Target]:
    """As good as the tuned ridge, with few effects, in less time than its search."""
    ours, theirs = (_of(records, name, "deviance") for name in (OURS, RIDGE))
    seconds = [_of(records, name, "seconds").sum() for name in (OURS, RIDGE)]
    return [
        Target("tariff: mean deviance / ridge's", float(ours.mean() / theirs.mean()), 1.0,
               detail=f"1e4 x difference {differences(1e4 * ours, 1e4 * theirs)}"),
        *(
            Target(f"tariff: distinct effects of {name}", float(effects.max()), 40)
            for name in (OURS, FEWEST)
            if (effects := _of(records, name, "effects")).size
        ),
        Target("tariff: time of the search / ridge's", float(seconds[0] / seconds[1]), 1.0),
    ]  # fmt: skip
