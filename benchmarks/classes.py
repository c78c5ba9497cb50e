"""Classification: processor time and log loss against what people would use instead.

Searches are compared with `LogisticRegressionCV` on the same folds and as many strengths; on binary
tables also with logistic regression whose weights are grouped by k-means and refitted, on the same
grid and folds; single fits with `LogisticRegression`. A third of each table is held out, in several
random splits. All run in one thread, one after the other, and the clock counts processor time of
this process alone. Losses are compared row by row: a difference has the standard error of the
paired differences on the held-out rows of a split, averaged over the splits, which share rows.
"""

import importlib.util
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from clustruct import (
    FeatureClusterClassifier,
    FeatureClusterClassifierCV,
    SampleClusterClassifier,
    TaskClusterClassifier,
    kmeans_1d,
)
from clustruct.datasets import fetch_movie_reviews, make_clustered_features
from report import Options, Table, Target

N_FOLDS, N_STRENGTHS = 5, 10
N_CLUSTERS = range(2, 16)
GIVEN_CLUSTERS, GIVEN_ALPHA = 5, 1e-3
N_EXPERTS, N_TASK_GROUPS = 2, 2
# Times as long as the peer that a search, a fit and a search on a binary table may take.
MOST, MOST_OF_RIVAL = 3.0, 1.5
# Standard errors by which a held-out loss has to be above the rival's to be worse.
CLEAR = 2.0
# Splits of a table, and of one that takes long.
N_SPLITS, N_SLOW_SPLITS = 5, 2
SEARCH, RIVAL_SEARCH, FIT, EXPERTS, TASKS = "search", "rival", "fit", "experts", "tasks"

Record = dict[str, Any]
Rows = Any


def _wine() -> tuple[Rows, Rows]:
    return load_wine(return_X_y=True)


def _cancer() -> tuple[Rows, Rows]:
    return load_breast_cancer(return_X_y=True)


def _digits() -> tuple[Rows, Rows]:
    X, y = load_digits(return_X_y=True)
    return X[:, X.std(axis=0) > 0.0], y


def _penguins() -> tuple[Rows, Rows] | None:
    """Measures, sex and island of Palmer penguins; None without the package that holds them."""
    if importlib.util.find_spec("palmerpenguins") is None:
        return None
    from palmerpenguins import load_penguins

    table = load_penguins().dropna()
    numbers = table.select_dtypes("number").drop(columns="year").to_numpy(dtype=float)
    codes = [
        table[name].to_numpy()[:, None] == np.unique(table[name]) for name in ("sex", "island")
    ]
    return np.hstack([numbers, *codes]).astype(float), np.unique(
        table["species"], return_inverse=True
    )[1]


def _digit_pair(first: int, second: int) -> tuple[Rows, Rows]:
    X, y = _digits()
    mine = (y == first) | (y == second)
    X = X[mine]
    return X[:, X.std(axis=0) > 0.0], (y[mine] == second).astype(int)


def _planted(n: int, d: int, n_groups: int) -> tuple[Rows, Rows]:
    problem = make_clustered_features(
        n, d, n_groups, low=-0.5, high=0.5, classification=True, random_state=0
    )
    return problem.X, problem.y


def _reviews() -> tuple[Rows, Rows]:
    """Movie reviews, good or bad: about 5000 rows and as many words."""
    X, y = fetch_movie_reviews(return_X_y=True)
    return X, (y > np.median(y)).astype(int)


def _thirds_of_reviews() -> tuple[Rows, Rows]:
    """The same in three classes of about the same size."""
    X, y = fetch_movie_reviews(return_X_y=True)
    return X, np.digitize(y, np.quantile(y, (1 / 3, 2 / 3)))


TABLES: dict[str, Callable[[], tuple[Rows, Rows] | None]] = {
    "wine": _wine,
    "penguins": _penguins,
    "breast cancer": _cancer,
    "digits": _digits,
    "planted 68,000 x 25": partial(_planted, 68_000, 25, 5),
    "digits 3, 8": partial(_digit_pair, 3, 8),
    "digits 4, 9": partial(_digit_pair, 4, 9),
    "planted 600 x 60": partial(_planted, 600, 60, 4),
    "reviews": _reviews,
    "reviews, thirds": _thirds_of_reviews,
}
# Tables of the searches that logistic regression is the peer of, and of those with a rival.
PEERED = (
    "wine",
    "penguins",
    "breast cancer",
    "digits",
    "planted 68,000 x 25",
    "reviews",
    "reviews, thirds",
)
RIVALLED = ("breast cancer", "digits 3, 8", "digits 4, 9", "planted 600 x 60", "reviews")
FITTED = (*PEERED, "digits 3, 8")
SPLIT_IN_TWO = ("wine", "penguins", "digits")
SLOW = ("digits", "planted 68,000 x 25", "reviews", "reviews, thirds")


def measure(options: Options) -> list[Record]:
    """All comparisons; the largest tables are left out of a quick run."""
    comparisons = (
        (SEARCH, PEERED, _searches),
        (RIVAL_SEARCH, RIVALLED, _rivals),
        (FIT, FITTED, _fits),
        (EXPERTS, SPLIT_IN_TWO, _experts),
        (TASKS, SPLIT_IN_TWO, _tasks),
    )
    records = []
    with threadpool_limits(1):
        for kind, names, callers in comparisons:
            for name in names:
                if options.quick and name in SLOW:
                    continue
                found = TABLES[name]()
                if found is not None:
                    slow = name in SLOW or kind in (EXPERTS, TASKS)
                    splits = N_SLOW_SPLITS if slow else N_SPLITS
                    records.append(_compare(kind, name, found, callers, splits))
    return records


def _compare(
    kind: str,
    name: str,
    found: tuple[Rows, Rows],
    callers: Callable[..., dict[str, Callable[[], Any]]],
    n_splits: int,
) -> Record:
    """Processor time and held-out log loss of each model, the clocks taken in turn."""
    seconds: dict[str, list[float]] = {"ours": [], "peer": []}
    losses: dict[str, list[float]] = {"ours": [], "peer": []}
    errors = []
    for split in range(n_splits):
        X, new, y, truth = train_test_split(
            *found, test_size=1 / 3, stratify=found[1], random_state=split
        )
        if isinstance(X, np.ndarray):  # words have comparable sizes
            scaler = StandardScaler().fit(X)
            X, new = scaler.transform(X), scaler.transform(new)
        by_row = {}
        for who, call in callers(X, y).items():
            begin = time.process_time()
            model = call()
            seconds[who].append(time.process_time() - begin)
            by_row[who] = _losses(model.predict_proba(new), truth)
            losses[who].append(float(by_row[who].mean()))
        apart = by_row["ours"] - by_row["peer"]
        errors.append(float(apart.std(ddof=1) / np.sqrt(apart.size)))
    record = {
        "kind": kind,
        "table": name,
        "shape": [*X.shape, int(np.unique(y).size)],
        "seconds": {who: float(np.median(times)) for who, times in seconds.items()},
        "log loss": {who: float(np.mean(mine)) for who, mine in losses.items()},
        "splits": {"seconds": seconds, "log loss": losses, "standard error": errors},
        "standard error": float(np.sqrt(np.mean(np.square(errors)))),
    }
    print(_row(record), flush=True)
    return record


def _losses(chances: Any, truth: Any) -> Any:
    """Log loss of each row; classes are numbered from zero."""
    return -np.log(np.maximum(chances[np.arange(truth.size), truth], 1e-15))


# ---- The models of each comparison: ours first, then the peer.


def _searches(X: Rows, y: Rows) -> dict[str, Callable[[], Any]]:
    folds = list(StratifiedKFold(N_FOLDS, shuffle=True, random_state=0).split(X, y))
    ours = FeatureClusterClassifierCV(cv=folds, random_state=0)
    # Ten strengths from 1e-4 to 1e4 are the default of scikit-learn.
    peer = LogisticRegressionCV(
        Cs=N_STRENGTHS, cv=folds, scoring="neg_log_loss", max_iter=1000, l1_ratios=(0.0,),
        use_legacy_attributes=False,
    )  # fmt: skip
    return {"ours": partial(ours.fit, X, y), "peer": partial(peer.fit, X, y)}


def _fits(X: Rows, y: Rows) -> dict[str, Callable[[], Any]]:
    ours = FeatureClusterClassifier(GIVEN_CLUSTERS, alpha=GIVEN_ALPHA, random_state=0)
    peer = LogisticRegression(C=1 / (GIVEN_ALPHA * y.size), max_iter=1000)
    return {"ours": partial(ours.fit, X, y), "peer": partial(peer.fit, X, y)}


def _experts(X: Rows, y: Rows) -> dict[str, Callable[[], Any]]:
    ours = SampleClusterClassifier(N_EXPERTS, alpha=1e-2, random_state=0)
    peer = LogisticRegression(C=1 / (1e-2 * y.size), max_iter=1000)
    return {"ours": partial(ours.fit, X, y), "peer": partial(_per_part, peer, X, y)}


def _per_part(peer: Any, X: Rows, y: Rows) -> Any:
    """A logistic regression for each of as many random parts as there are experts."""
    parts = np.random.default_rng(0).integers(N_EXPERTS, size=y.size)
    for part in range(N_EXPERTS):
        peer.fit(X[parts == part], y[parts == part])
    return peer


def _tasks(X: Rows, y: Rows) -> dict[str, Callable[[], Any]]:
    # The tasks are the classes, each against the rest.
    ours = TaskClusterClassifier(N_TASK_GROUPS, random_state=0)
    peer = LogisticRegression(max_iter=1000)
    return {"ours": partial(ours.fit, X, y), "peer": partial(peer.fit, X, y)}


class GroupedLogistic:
    """The rival: logistic regression, exact k-means of its weights, a refit of the groups."""

    def __init__(self, cv: Any, alphas: Any) -> None:
        self.cv, self.alphas = cv, alphas

    def fit(self, X: Rows, y: Rows) -> "GroupedLogistic":
        """Score all numbers of groups and strengths on the folds, then fit the best to all."""
        counts = [q for q in N_CLUSTERS if q < X.shape[1]]
        scores = np.zeros((self.alphas.size, len(counts)))
        for train, test in self.cv:
            for a, alpha in enumerate(self.alphas):
                coef = self._logistic(X[train], y[train], alpha).coef_[0]
                for q, count in enumerate(counts):
                    Z, model = self._grouped(coef, count, X[train], y[train], alpha)
                    scores[a, q] += log_loss(y[test], model.predict_proba(X[test] @ Z))
        a, q = np.unravel_index(scores.argmin(), scores.shape)
        coef = self._logistic(X, y, self.alphas[a]).coef_[0]
        self._Z, self._model = self._grouped(coef, counts[q], X, y, self.alphas[a])
        return self

    def _logistic(self, X: Rows, y: Rows, alpha: float) -> LogisticRegression:
        return LogisticRegression(C=1 / (alpha * y.size), max_iter=1000).fit(X, y)

    def _grouped(
        self, coef: Any, count: int, X: Rows, y: Rows, alpha: float
    ) -> tuple[Any, LogisticRegression]:
        """Group sums, scaled so that the ridge is that of the weights, and the model on them."""
        Z = np.eye(count)[kmeans_1d(coef, count).labels]
        Z = Z / np.sqrt(np.maximum(Z.sum(axis=0), 1.0))
        return Z, self._logistic(X @ Z, y, alpha)

    def predict_proba(self, X: Rows) -> Any:
        """Probabilities of both classes."""
        return self._model.predict_proba(X @ self._Z)


def _rivals(X: Rows, y: Rows) -> dict[str, Callable[[], Any]]:
    folds = list(StratifiedKFold(N_FOLDS, shuffle=True, random_state=0).split(X, y))
    alphas = np.geomspace(1.0, 1e-4, N_STRENGTHS)
    ours = FeatureClusterClassifierCV(N_CLUSTERS, alphas=alphas, cv=folds, random_state=0)
    rival = GroupedLogistic(folds, alphas)
    return {"ours": partial(ours.fit, X, y), "peer": partial(rival.fit, X, y)}


# ---- The report.


def _row(record: Record) -> list[str]:
    seconds, losses = record["seconds"], record["log loss"]
    n, d, n_classes = record["shape"]
    apart = losses["ours"] - losses["peer"]
    return [
        record["kind"],
        record["table"],
        f"{n} x {d}, {n_classes}",
        f"{seconds['ours']:.3g}",
        f"{seconds['peer']:.3g}",
        f"{seconds['ours'] / seconds['peer']:.2f}",
        f"{losses['ours']:.4f}",
        f"{losses['peer']:.4f}",
        f"{apart:+.4f} +- {record['standard error']:.4f}",
    ]


def table(records: list[Record]) -> Table:
    """A row for each comparison."""
    header = [
        "",
        "table",
        "shape, classes",
        "s",
        "peer s",
        "ratio",
        "log loss",
        "peer's",
        "difference",
    ]
    return Table(header, [_row(record) for record in records])


def targets(records: list[Record]) -> list[Target]:
    """At most some times as long as the peer, and no clearly worse than the rival."""
    found = []
    for record in records:
        seconds, losses = record["seconds"], record["log loss"]
        rival = record["kind"] == RIVAL_SEARCH
        name = f"{record['kind']}, {record['table']}"
        limit = MOST_OF_RIVAL if rival else MOST
        found.append(Target(f"{name}: time / peer's", seconds["ours"] / seconds["peer"], limit))
        if rival:
            behind = (losses["ours"] - losses["peer"]) / max(record["standard error"], 1e-12)
            found.append(Target(f"{name}: standard errors behind the rival", behind, CLEAR))
    return found
