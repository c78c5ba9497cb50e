"""Levels of categories in groups: error, groups and time against ClusterLearn; planted steps.

ClusterLearn (arXiv 2603.25854) is called as in its own experiments, if ``CLUSTRUCT_PEERS`` names a
folder with its ``BCD_solver.so``. Times are of the processor, one thread. Bike sharing is read from
``CLUSTRUCT_DATA``.
"""

import ctypes
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import norm
from sklearn.linear_model import Ridge
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.preprocessing import OneHotEncoder
from threadpoolctl import threadpool_limits

from clustruct import Factor, FeatureClusterRegressor, FeatureClusterRegressorCV
from clustruct.grouping.factors import Cyclic, Monotone, Nominal, Ordinal
from paired import differences
from report import Options, Table, Target

# Set-ups of ClusterLearn: its Table 1 (bike sharing) and Figure 2.
BIKE, N_BIKE, BIKE_SPLITS = "bike.csv.xz", 100, 12
BIKE_FACTORS = ["season", "yr", "mnth", "hr", "holiday", "weekday", "workingday", "weathersit"]
BIKE_NUMBERS = ["temp", "atemp", "hum", "windspeed"]
SIZES, SEEDS, N_FACTORS, N_LEVELS = (100, 200, 400, 1000), 20, 20, 20
PENALTIES = {"bike": np.logspace(2, -5, 20), "figure": np.logspace(1, -5, 15)}
# The fits that are compared on validation rows, as ClusterLearn is: prices, the ridge by itself.
N_PRICES = 24
# The generator of PDMR (Nowakowski and others, 2023): 100 factors x 24 levels, correlation 0.5;
# values of the levels in order, and how many factors have them; and the times that it published.
PDMR_ROWS, PDMR_FACTORS, PDMR_LEVELS, SNR, PDMR_SEEDS = 500, 100, 24, 3.0, 4
PDMR = {
    "High 1": [((8, 8, 8), (0, 2, 4), 3), ((10, 4, 10), (0, 2, 4), 3)],
    "High 3": [((8, 8, 8), (0, 2, 4), 3), ((16, 8), (0, 5), 3)],
    "High 4": [((5, 5, 4, 5, 5), (0, 1, 2, 3, 4), 5)],
    "High 5": [((16, 8), (0, 5), 25)],
    "High 7": [((4, 12, 8), (0, 2, 4), 10)],
    "High 8": [((6, 6, 6, 6), (0, 2, 4, 6), 5)],
}
PUBLISHED = "as published, a fit took PDMR 11 to 13 s and SCOPE 300 to 1255 s, on other machines"
# Planted steps: a factor of each kind, one that has no effect, and noise.
STEPS = {
    "ordinal": (0.0, 1.0, -0.5, 0.5),
    "increasing": (0.0, 0.5, 1.0, 2.0),
    "cyclic": (0.0, 1.0, 0.0, -1.0),
}
STEP_SEEDS, STEP_ROWS = 50, 1500
KINDS = {"nominal": Nominal(), "ordinal": Ordinal(), "increasing": Monotone(), "cyclic": Cyclic()}
N_EXACT, EXACT_LEVELS = 1000, range(2, 7)
# Two factors of so many levels with effects of their own, or of four groups; rows for each level.
OWN_TRUTHS = ("own effects", "4 groups")
OWN_LEVELS, OWN_ROWS, OWN_SEEDS = 200, (5, 20, 100), 6
PEER = "ClusterLearn"
# Ours by cross-validation on the training rows alone, and with the validation rows of the peer.
CV, CHOSEN = "clustruct, 5 folds", "clustruct, validation rows"
RIDGE = "one-hot ridge"

Record = dict[str, Any]


class Part(NamedTuple):
    """Rows: codes of the factors, numeric columns, targets."""

    codes: np.ndarray
    numbers: np.ndarray
    y: np.ndarray

    def frame(self, n_levels: list[int]) -> pd.DataFrame:
        """What our models take; all levels are known."""
        columns = {
            f"f{j}": pd.Categorical.from_codes(self.codes[:, j], range(n))
            for j, n in enumerate(n_levels)
        }
        return pd.DataFrame(columns).assign(**{f"x{k}": c for k, c in enumerate(self.numbers.T)})


class Problem(NamedTuple):
    """Rows to fit, to choose by and to test on."""

    train: Part
    validation: Part
    test: Part
    n_levels: list[int]

    def r2(self, predicted: np.ndarray) -> float:
        """Share of the squares about the training mean that is explained on the test rows."""
        y = self.test.y
        return float(1 - np.sum((y - predicted) ** 2) / np.sum((y - self.train.y.mean()) ** 2))


# ---- ClusterLearn


def _library() -> Any:
    """Its compiled solver, or None."""
    path = Path(os.environ.get("CLUSTRUCT_PEERS", ".")) / "BCD_solver.so"
    return ctypes.CDLL(str(path.resolve())) if path.exists() else None


def _peer(library: Any, problem: Problem, penalties: np.ndarray) -> tuple[np.ndarray, int, float]:
    """Predictions, number of levels and processor time of ClusterLearn on a grid of penalties."""
    held: list[np.ndarray] = []  # arrays must outlive the call

    def pointer(values: Any, kind: Any) -> Any:
        held.append(np.ascontiguousarray(values, dtype=kind))
        return held[-1].ctypes.data_as(ctypes.POINTER(kind))

    train, validation = problem.train, problem.validation
    n_numbers = train.numbers.shape[1]
    levels = [*problem.n_levels, *([n_numbers] if n_numbers else [])]
    whole, real = ctypes.c_int, ctypes.c_double

    def rows(part: Part) -> list[Any]:
        numbers = [pointer(part.numbers, real)] if n_numbers else []
        return [pointer(part.codes, whole), *numbers, pointer(part.y, real)]

    arguments = [whole(train.y.size), whole(len(problem.n_levels))]
    arguments += [whole(n_numbers)] if n_numbers else []
    arguments += [*rows(train), whole(validation.y.size), *rows(validation)]
    for grid in (penalties, penalties, [0.01]):
        arguments += [pointer(grid, real), whole(len(grid))]
    beta = np.zeros(sum(levels) + 1)
    arguments += [pointer(levels, whole), pointer(np.zeros(sum(levels) + 1), real)]
    arguments.append(beta.ctypes.data_as(ctypes.POINTER(real)))
    solve = library.BCD_continuous_solve if n_numbers else library.BCD_solve
    start = time.process_time()
    solve(*arguments)
    seconds = time.process_time() - start
    ends = np.cumsum([0, *problem.n_levels])
    effects = [beta[a:b] for a, b in pairwise(ends)]
    found = beta[-1] + problem.test.numbers @ beta[ends[-1] : -1]
    found = found + sum(effect[problem.test.codes[:, j]] for j, effect in enumerate(effects))
    return found, sum(np.unique(effect).size for effect in effects), seconds


# ---- Ours


def _n_values(model: Any) -> int:
    """Distinct values, added up over the factors."""
    blocks = model.factors_.blocks
    labels = model.labels_[: blocks.size]
    return sum(np.unique(labels[blocks == j]).size for j in np.unique(blocks[blocks >= 0]))


def _searched(problem: Problem) -> tuple[np.ndarray, int, float]:
    """By cross-validation on the training rows; the validation rows are not used."""
    X, new = problem.train.frame(problem.n_levels), problem.test.frame(problem.n_levels)
    start = time.process_time()
    model = FeatureClusterRegressorCV(random_state=0).fit(X, problem.train.y)
    seconds = time.process_time() - start
    return model.predict(new), _n_values(model), seconds


def _chosen(problem: Problem) -> tuple[np.ndarray, int, float]:
    """By the validation rows, fitted to the training rows; the ridge is that of empirical Bayes."""
    parts = [part.frame(problem.n_levels) for part in problem[:3]]
    start = time.process_time()
    spread = 0.5 * float(problem.train.y.var())
    best, least = None, np.inf
    for price in np.geomspace(spread, 1e-3 * spread, N_PRICES):
        model = FeatureClusterRegressor(price=price, alpha="auto").fit(parts[0], problem.train.y)
        error = float(np.mean((model.predict(parts[1]) - problem.validation.y) ** 2))
        if error < least:
            best, least = model, error
    seconds = time.process_time() - start
    return best.predict(parts[2]), _n_values(best), seconds


def _compare(problem: Problem, penalties: np.ndarray, library: Any) -> Record:
    """All three on one problem."""
    calls: dict[str, Callable[[], tuple[np.ndarray, int, float]]] = {
        CV: lambda: _searched(problem),
        CHOSEN: lambda: _chosen(problem),
    }
    if library is not None:
        calls[PEER] = lambda: _peer(library, problem, penalties)
    record: Record = {"r2": {}, "levels": {}, "seconds": {}}
    for name, call in calls.items():
        predicted, n_values, seconds = call()
        record["r2"][name] = round(problem.r2(predicted), 6)
        record["levels"][name], record["seconds"][name] = int(n_values), round(seconds, 4)
    return record


# ---- The problems


def bike(seed: int) -> Problem:
    """100 rows to fit and 100 to choose by; the others test, where all levels are in the first."""
    path = Path(os.environ.get("CLUSTRUCT_DATA", ".")) / BIKE
    if not path.exists():
        raise SystemExit(f"CLUSTRUCT_DATA has to name a folder with {BIKE}.")
    table = pd.read_csv(path)
    order = np.random.default_rng(seed).permutation(len(table))
    first = table.iloc[order[:N_BIKE]]
    known = np.ones(len(table), dtype=bool)
    codes = np.empty((len(table), len(BIKE_FACTORS)), dtype=np.int32)
    for j, name in enumerate(BIKE_FACTORS):
        column = pd.Categorical(table[name], categories=np.sort(first[name].unique()))
        codes[:, j] = column.codes
        known &= column.codes >= 0
    parts = [rows[known[rows]] for rows in np.split(order, [N_BIKE, 2 * N_BIKE])]
    numbers, y = table[BIKE_NUMBERS].to_numpy(float), table["cnt"].to_numpy(float)
    n_levels = (codes[parts[0]].max(axis=0) + 1).tolist()
    return Problem(*(Part(codes[rows], numbers[rows], y[rows]) for rows in parts), n_levels)


def figure(n: int, seed: int) -> Problem:
    """Figure 2: three factors with levels of -2, 0 and 2, correlation 0.2, noise 1.5."""
    rng = np.random.default_rng([n, seed])
    common = np.sqrt(0.2) * rng.standard_normal((3 * n, 1))
    normal = common + np.sqrt(0.8) * rng.standard_normal((3 * n, N_FACTORS))
    codes = np.minimum((norm.cdf(normal) * N_LEVELS).astype(np.int32), N_LEVELS - 1)
    codes = np.column_stack([rng.permutation(N_LEVELS)[column] for column in codes.T])
    effects = np.repeat([-2.0, 0.0, 2.0], (4, N_LEVELS - 8, 4))
    y = effects[codes[:, :3]].sum(axis=1) + 1.5 * rng.standard_normal(3 * n)
    numbers = np.empty((3 * n, 0))
    parts = (slice(n), slice(n, 2 * n), slice(2 * n, None))
    return Problem(*(Part(codes[p], numbers[p], y[p]) for p in parts), [N_LEVELS] * N_FACTORS)


def _pdmr(name: str, seed: int) -> Record:
    """Error of the expected values on new rows, in parts of the noise, groups and time."""
    rng = np.random.default_rng([seed, list(PDMR).index(name)])
    a = 2 * np.sin(np.pi / 6 * 0.5)
    effects = np.zeros((PDMR_FACTORS, PDMR_LEVELS))
    filled = 0
    for sizes, values, count in PDMR[name]:
        effects[filled : filled + count] = np.repeat(values, sizes)
        filled += count

    def rows(n: int) -> tuple[pd.DataFrame, np.ndarray]:
        shared = np.sqrt(a) * rng.standard_normal((n, 1))
        normal = shared + np.sqrt(1 - a) * rng.standard_normal((n, PDMR_FACTORS))
        codes = np.minimum((PDMR_LEVELS * norm.cdf(normal)).astype(int), PDMR_LEVELS - 1)
        part = Part(codes, np.empty((n, 0)), np.empty(n))
        mean = effects[np.arange(PDMR_FACTORS), codes].sum(axis=1)
        return part.frame([PDMR_LEVELS] * PDMR_FACTORS), mean

    X, mean = rows(PDMR_ROWS)
    new, expected = rows(4 * PDMR_ROWS)
    sigma = mean.std() / SNR
    y = mean + sigma * rng.standard_normal(mean.size)
    start = time.process_time()
    model = FeatureClusterRegressorCV(random_state=0).fit(X, y)
    seconds = time.process_time() - start
    error = np.sqrt(np.mean((model.predict(new) - expected) ** 2))
    freedom = _n_values(model) - PDMR_FACTORS + 1
    truth = 1 + sum((len(values) - 1) * count for _, values, count in PDMR[name])
    return {
        "problem": "pdmr", "setting": name, "seed": seed, "rmse": float(error / sigma),
        "mean only": float(expected.std() / sigma), "dimension": int(freedom), "truth": truth,
        "seconds": round(seconds, 3),
    }  # fmt: skip


def _own(truth: str, n_rows: int, seed: int) -> Record:
    """Error of the expected values, in parts of their variance, against a one-hot ridge."""
    rng = np.random.default_rng(seed)
    n, shape = OWN_LEVELS * n_rows, (2, OWN_LEVELS)
    own = truth == "own effects"
    effects = rng.normal(0, 1, shape) if own else rng.choice([-1.5, -0.5, 0.5, 1.5], shape)
    codes = rng.integers(0, OWN_LEVELS, (n + 20_000, 2))
    mean = effects[[0, 1], codes].sum(axis=1)
    y = mean[:n] + 2 * rng.standard_normal(n)
    X = pd.DataFrame({name: codes[:, j].astype(str) for j, name in enumerate("ab")})
    encoder = OneHotEncoder(handle_unknown="ignore").fit(X[:n])
    folds = KFold(5, shuffle=True, random_state=0)
    ridge = GridSearchCV(
        Ridge(solver="sparse_cg"), {"alpha": np.geomspace(0.3, 300, 10)}, cv=folds
    ).fit(encoder.transform(X[:n]), y)
    model = FeatureClusterRegressorCV(random_state=0).fit(X[:n], y)
    found = {CV: model.predict(X[n:]), RIDGE: ridge.predict(encoder.transform(X[n:]))}
    errors = {
        name: float(np.mean((predicted - mean[n:]) ** 2) / mean[n:].var())
        for name, predicted in found.items()
    }
    about = {"problem": "own", "truth": truth, "rows": n_rows, "seed": seed}
    return {**about, "error": errors, "groups": int(model.n_clusters_)}


def _steps(kind: str, seed: int) -> Record:
    """Whether the groups of a factor are those that were planted, by folds and by eBIC."""
    rng = np.random.default_rng([seed, list(STEPS).index(kind)])
    cuts = np.sort(rng.choice(np.arange(3, 22, 3), 3, replace=False))
    truth = np.searchsorted(cuts, np.arange(24), side="right")
    values = np.array(STEPS[kind])
    if kind == "cyclic":  # the last steps go on at the first level
        truth = np.roll(truth, 2)
    codes = rng.integers(24, size=(STEP_ROWS, 2))
    y = values[truth][codes[:, 0]] + 0.5 * rng.standard_normal(STEP_ROWS)
    X = pd.DataFrame(codes, columns=["steps", "nothing"])
    found = {}
    for name, options in (("folds", {}), ("ebic", {"criterion": "ebic"})):
        factors = {"steps": Factor(kind), "nothing": Factor("ordinal")}
        model = FeatureClusterRegressorCV(factors=factors, random_state=0, **options).fit(X, y)
        blocks = model.factors_.blocks
        labels = [model.labels_[: blocks.size][blocks == j] for j in range(2)]
        alike = adjusted_rand_score(truth, labels[0]) == 1.0
        found[name] = bool(alike and np.unique(labels[1]).size == 1)
    return {"problem": "steps", "kind": kind, "seed": seed, "exact": found}


# ---- Exactness of the groups of one factor


def _partitions(n: int) -> Iterator[np.ndarray]:
    """All ways to group n levels: labels whose values appear in order."""
    for labels in product(*(range(k + 1) for k in range(n))):
        if all(label <= max(labels[:k], default=-1) + 1 for k, label in enumerate(labels)):
            yield np.array(labels)


def _allowed(kind: str, labels: np.ndarray) -> bool:
    """Whether the groups are segments, if the kind asks for that."""
    count = np.unique(labels).size
    if kind == "cyclic":
        return bool(count == 1 or (labels != np.roll(labels, 1)).sum() == count)
    return kind == "nominal" or bool((np.diff(labels) != 0).sum() == count - 1)


def _least(kind: str, x: np.ndarray, w: np.ndarray, price: float) -> float:
    """The least cost over all groups; increasing means must not fall."""
    best = np.inf
    for labels in _partitions(x.size):
        if not _allowed(kind, labels):
            continue
        mass = np.bincount(labels, w)
        means = np.bincount(labels, w * x) / mass
        if kind == "increasing" and (np.diff(means) < 0).any():
            continue
        best = min(best, 0.5 * w @ (x - means[labels]) ** 2 + price * (mass.size - 1))
    return float(best)


def _exact(kind: str, n_cases: int) -> Record:
    """How often the cost is the least one."""
    rng = np.random.default_rng(list(KINDS).index(kind))
    hits = 0
    for _ in range(n_cases):
        n = int(rng.choice(EXACT_LEVELS))
        x, w = rng.standard_normal(n), rng.uniform(0.1, 2.0, n)
        price = float(10 ** rng.uniform(-3, 0.5))
        found = KINDS[kind].group(x, w, price=price)
        cost = found.cost + price * (found.centers.shape[0] - 1)
        hits += bool(abs(cost - _least(kind, x, w, price)) <= 1e-9 * (1 + cost))
    return {"problem": "exact", "kind": kind, "cases": n_cases, "hits": hits}


# ---- The section


def measure(options: Options) -> list[Record]:
    """All problems, one thread."""
    library, records = _library(), []
    few = 2 if options.quick else None
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # levels of few rows
        for seed in range(BIKE_SPLITS)[:few]:
            found = _compare(bike(seed), PENALTIES["bike"], library)
            records.append({"problem": "bike", "n": N_BIKE, "seed": seed, **found})
        print("factors: bike", file=sys.stderr)
        for n in SIZES[:few]:
            for seed in range(SEEDS)[:few]:
                found = _compare(figure(n, seed), PENALTIES["figure"], library)
                records.append({"problem": "figure", "n": n, "seed": seed, **found})
            print(f"factors: figure, n = {n}", file=sys.stderr)
        records += [_pdmr(name, seed) for name in PDMR for seed in range(PDMR_SEEDS)[:few]]
        print("factors: pdmr", file=sys.stderr)
        for truth, n_rows in product(OWN_TRUTHS, OWN_ROWS):
            records += [_own(truth, n_rows, seed) for seed in range(OWN_SEEDS)[:few]]
        print("factors: own effects", file=sys.stderr)
        records += [_steps(kind, seed) for kind in STEPS for seed in range(STEP_SEEDS)[:few]]
        print("factors: steps", file=sys.stderr)
        records += [_exact(kind, 100 if options.quick else N_EXACT) for kind in KINDS]
    return records


def _compared(records: list[Record]) -> Iterator[tuple[str, list[Record]]]:
    """Records of each problem that the peer was run on as well."""
    mine = [r for r in records if r["problem"] in ("bike", "figure")]
    for problem, n in dict.fromkeys((r["problem"], r["n"]) for r in mine):
        yield f"{problem}, n = {n}", [r for r in mine if (r["problem"], r["n"]) == (problem, n)]


def _values(records: list[Record], field: str, name: str) -> np.ndarray:
    return np.array([r[field][name] for r in records if name in r[field]], dtype=float)


def table(records: list[Record]) -> Table:
    """A row for each method on each problem."""
    rows = []
    for problem, mine in _compared(records):
        theirs = _values(mine, "r2", PEER)
        for name in (CV, CHOSEN, PEER):
            r2 = _values(mine, "r2", name)
            if not r2.size:
                continue
            apart = "" if name == PEER or not theirs.size else differences(r2, theirs)
            levels, seconds = (_values(mine, field, name).mean() for field in ("levels", "seconds"))
            rows.append(
                [problem, name, f"R2 {r2.mean():.3f}", apart, f"{levels:.1f}", f"{seconds:.2f}"]
            )
    for setting in PDMR:
        mine = [r for r in records if r.get("setting") == setting]
        if mine:
            error, bare, freedom, seconds = (
                np.mean([r[field] for r in mine])
                for field in ("rmse", "mean only", "dimension", "seconds")
            )
            text = f"RMSE {error:.2f} sigma"
            apart = f"mean only {bare:.2f}; true dimension {mine[0]['truth']}"
            row = [f"PDMR, {setting}", CV, text, apart, f"{freedom:.1f}", f"{seconds:.2f}"]
            rows.append(row)
    for truth, n_rows in product(OWN_TRUTHS, OWN_ROWS):
        mine = [r for r in records if r.get("truth") == truth and r["rows"] == n_rows]
        if mine:
            ours, theirs = (_values(mine, "error", name) for name in (CV, RIDGE))
            apart = f"ridge {theirs.mean():.3f}; {differences(ours, theirs)}"
            groups = np.mean([r["groups"] for r in mine])
            text = f"error {ours.mean():.3f}"
            rows.append([f"{truth}, {n_rows} rows each", CV, text, apart, f"{groups:.1f}", ""])
    for kind in STEPS:
        mine = [r["exact"] for r in records if r["problem"] == "steps" and r["kind"] == kind]
        for way in ("folds", "ebic"):
            hits = sum(r[way] for r in mine)
            rows.append(["steps", f"{kind}, by {way}", f"{hits} of {len(mine)} exact", "", "", ""])
    for record in (r for r in records if r["problem"] == "exact"):
        text = f"{record['hits']} of {record['cases']}"
        rows.append(["best groups", record["kind"], text, "against all groups", "", ""])
    header = ["problem", "method", "found", "beside (R2: - ClusterLearn's)", "levels", "seconds"]
    notes = [f"PDMR: {PUBLISHED}."]
    if not any(PEER in r.get("r2", {}) for r in records):
        notes.append("ClusterLearn is not in the folder that CLUSTRUCT_PEERS names.")
    return Table(header, rows, notes)


def targets(records: list[Record]) -> list[Target]:
    """As good as ClusterLearn on its own problems; exact groups."""
    found = []
    for problem, mine in _compared(records):
        theirs = _values(mine, "r2", PEER)
        for name in (CV, CHOSEN) if theirs.size else ():
            apart = float((_values(mine, "r2", name) - theirs).mean())
            promise = f"{problem}: R2 of {name} - {PEER}'s"
            detail = differences(_values(mine, "r2", name), theirs)
            found.append(Target(promise, apart, 0.0, at_least=True, detail=detail))
    exact = [r for r in records if r["problem"] == "exact"]
    share = sum(r["hits"] for r in exact) / max(1, sum(r["cases"] for r in exact))
    steps = [r["exact"]["ebic"] for r in records if r["problem"] == "steps"]
    return [
        *found,
        Target("PDMR: seconds of a search", max(
            (r["seconds"] for r in records if r["problem"] == "pdmr"), default=None), 11.0),
        Target("best groups of a factor found", share, 1.0, at_least=True),
        Target("planted steps found by eBIC", float(np.mean(steps)), 0.9, at_least=True),
    ]  # fmt: skip
