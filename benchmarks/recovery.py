"""Recovery of planted groups of features: the paper's Tables 2 and 3, n < d, and correlation.

Correlated columns are those of an autoregressive process, or fall into blocks with correlation 0.8
inside: blocks that are the planted groups, or blocks that have nothing to do with them. In the last
problem one of 500 features has a weight of its own.

Each problem is drawn by seeds that nothing was tuned on. The error is the distance between the true
weights and those found; below 1 the groups count as recovered. The oracle is least squares with
the true groups. A search has missed something where the true groups have the smaller objective;
elsewhere the error is that of the best groups themselves, which are not always the true ones: some
planted weights are nearly equal. Seconds are of processor time, on one thread. The paper's
figures are means over 50 problems of its own.
"""

import statistics
import sys
import time
import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, Ridge
from threadpoolctl import threadpool_limits

from clustruct import FeatureClusterRegressor
from clustruct.datasets import make_clustered_features
from report import Options, Table, Target

SEEDS = range(9000, 9040)
# Small enough that the ridge does not bias what little noise leaves.
ALPHA = 1e-5
MAX_ITER = 100
SOLVERS = ("greedy", "pg", "cg", "cgpg", "auto")
SAMPLES = (50, 60, 75, 90, 100, 125, 150)
NOISES = (0.05, 0.1, 0.5, 1.0)
CORRELATED = ((75, 0.7), (75, 0.9), (100, 0.7))
BLOCKS = ("with the groups", "against the groups")
N_BLOCKS, IN_BLOCK = 5, 0.8
# Samples, features and groups of the problem with a lone feature.
LONE = (400, 500, 4)

# Tables 2 and 3 of the paper (Table 3 prints 100 times the error), mean and standard deviation.
PAPER = {
    "pg": {
        50: (63.31, 18.24),
        75: (52.72, 16.51),
        100: (5.52, 14.33),
        125: (0.14, 0.09),
        150: (0.09, 0.04),
    },
    "cg": {
        50: (61.81, 17.78),
        75: (52.59, 16.58),
        100: (17.24, 13.87),
        125: (1.20, 1.38),
        150: (1.05, 1.37),
    },
    "cgpg": {
        50: (62.29, 18.15),
        75: (50.15, 17.43),
        100: (0.64, 2.03),
        125: (0.15, 0.19),
        150: (0.17, 0.53),
    },
}
PAPER_NOISE = {
    "pg": {0.05: (0.0087, 0.0027), 0.1: (0.0174, 0.0052), 0.5: (0.0911, 0.04), 1.0: (0.2623, 0.18)},
    "cg": {
        0.05: (0.2391, 0.3651),
        0.1: (1.2231, 1.4577),
        0.5: (1.0545, 1.3679),
        1.0: (1.5598, 1.7769),
    },
    "cgpg": {
        0.05: (0.0152, 0.0313),
        0.1: (1.4083, 7.1032),
        0.5: (0.1734, 0.5331),
        1.0: (0.248, 0.1632),
    },
}

Record = dict[str, Any]


class Planted(NamedTuple):
    """Design, targets, weights and groups."""

    X: np.ndarray
    y: np.ndarray
    coef: np.ndarray
    labels: np.ndarray


def measure(options: Options) -> list[Record]:
    """Every problem with every solver, one thread."""
    seeds = SEEDS[:5] if options.quick else SEEDS
    cases = [("samples", n, 0.5, 0.0) for n in SAMPLES]
    cases += [("noise", 150, noise, 0.0) for noise in NOISES]
    cases += [("correlated", n, 0.5, correlation) for n, correlation in CORRELATED]
    cases += [(f"blocks {how}", 75, 0.5, IN_BLOCK) for how in BLOCKS]
    cases += [("lone feature", LONE[0], 0.5, 0.0)]
    records = []
    with threadpool_limits(1):
        for table_name, n, noise, correlation in cases:
            record: Record = {"table": table_name, "n": n, "noise": noise}
            record["correlation"], record["seeds"] = correlation, list(seeds)
            problems = [_draw(table_name, n, noise, correlation, seed) for seed in seeds]
            runs = [_solve(problem, seed) for problem, seed in zip(problems, seeds, strict=True)]
            record["errors"] = {name: [run[name][0] for run in runs] for name in runs[0]}
            record["seconds"] = {name: [run[name][1] for run in runs] for name in runs[0]}
            record["missed"] = {name: [run[name][2] for run in runs] for name in runs[0]}
            records.append(record)
            print(f"recovery: n = {n}, noise {noise}, correlation {correlation}", file=sys.stderr)
    return records


def _draw(table_name: str, n: int, noise: float, correlation: float, seed: int) -> Planted:
    """A problem of a table."""
    if table_name in ("samples", "noise", "correlated"):
        drawn = make_clustered_features(n, noise=noise, correlation=correlation, random_state=seed)
        return Planted(drawn.X, drawn.y, drawn.coef, drawn.labels)
    rng = np.random.default_rng([seed, n])
    if table_name == "lone feature":
        _, d, n_groups = LONE
        labels = rng.integers(n_groups - 1, size=d)
        labels[rng.integers(d)] = n_groups - 1
        X = rng.standard_normal((n, d))
    else:
        d, n_groups = 100, N_BLOCKS
        labels = rng.permutation(np.r_[:n_groups, rng.integers(n_groups, size=d - n_groups)])
        blocks = labels if table_name.endswith(BLOCKS[0]) else rng.permutation(d) % N_BLOCKS
        shared, own = rng.standard_normal((n, N_BLOCKS)), rng.standard_normal((n, d))
        X = np.sqrt(correlation) * shared[:, blocks] + np.sqrt(1 - correlation) * own
    coef = rng.uniform(-15.0, 15.0, n_groups)[labels]
    return Planted(X, X @ coef + noise * rng.standard_normal(n), coef, labels)


def _solve(problem: Planted, seed: int) -> dict[str, tuple[float, float, bool]]:
    """Error and time of every solver on one problem, and whether it missed a better answer."""
    X, y, truth = problem.X, problem.y, problem.coef
    n, n_groups = len(y), int(problem.labels.max()) + 1
    sums = X @ (problem.labels[:, None] == np.arange(n_groups))
    oracle = LinearRegression(fit_intercept=False).fit(sums, y).coef_[problem.labels]
    ridge = Ridge(alpha=ALPHA * n, fit_intercept=False).fit(X, y).coef_
    least = _least(sums, y, np.bincount(problem.labels))
    found = {
        "oracle": (_distance(oracle, truth), 0.0, False),
        "ridge": (_distance(ridge, truth), 0.0, False),
    }
    for solver in SOLVERS:
        model = FeatureClusterRegressor(
            n_groups,
            alpha=ALPHA,
            fit_intercept=False,
            solver=solver,
            max_iter=MAX_ITER,
            random_state=seed,
        )
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)
        seconds = time.process_time() - begin
        found[solver] = (
            _distance(model.coef_, truth),
            seconds,
            bool(model.objective_ > least * (1 + 1e-9)),
        )
    return found


def _least(sums: np.ndarray, y: np.ndarray, sizes: np.ndarray) -> float:
    """The least objective with the true groups, whose columns are added up in ``sums``."""
    ridge = ALPHA * np.diag(sizes)
    values = np.linalg.solve(sums.T @ sums / y.size + ridge, sums.T @ y / y.size)
    return float(0.5 * np.mean((y - sums @ values) ** 2) + 0.5 * values @ ridge @ values)


def _distance(w: np.ndarray, truth: np.ndarray) -> float:
    return round(float(np.linalg.norm(w - truth)), 6)


def recovered(record: Record, name: str) -> float:
    """Share of the problems solved with an error below 1."""
    return statistics.mean(error < 1 for error in record["errors"][name])


def table(records: list[Record]) -> Table:
    """Mean errors, the share that ``auto`` recovers, and its time."""
    names = list(records[0]["errors"])
    rows = [
        [r["table"], str(r["n"]), f"{r['noise']:g}", f"{r['correlation']:g}"]
        + [str(len(r["errors"]["auto"]))]
        + [f"{statistics.mean(r['errors'][name]):.3f}" for name in names]
        + [f"{recovered(r, 'auto'):.0%}", f"{statistics.mean(r['missed']['auto']):.0%}"]
        + [f"{statistics.median(r['seconds']['auto']):.2f}"]
        for r in records
    ]
    header = ["table", "n", "noise", "corr.", "problems", *names, "auto rec.", "missed", "auto s"]
    return Table(header, rows)


def targets(records: list[Record]) -> list[Target]:
    """The paper's figures for its own solvers; the oracle's for ``auto``."""
    found = []
    for record in records:
        figures = PAPER if record["table"] == "samples" else PAPER_NOISE
        place = record["n"] if record["table"] == "samples" else record["noise"]
        for name, known in figures.items():
            if record["table"] not in ("samples", "noise") or place not in known:
                continue
            mean, deviation = known[place]
            # The paper's problems are not ours: its mean is known to about two standard errors.
            limit = mean + 2 * deviation / 50**0.5
            promise = f"{record['table']} {place:g}: mean error of {name}, paper {mean:g}"
            found.append(Target(promise, statistics.mean(record["errors"][name]), limit))
        found += _auto_targets(record)
    # A problem that no solver settles may take longer.
    for n, limit in ((60, 10.0), (100, 0.5)):
        times = [
            t
            for record in records
            for t in record["seconds"]["auto"]
            if record["table"] == "samples" and record["n"] == n
        ]
        promise = f"auto: seconds a fit, n = {n}, without correlation"
        found.append(Target(promise, max(times, default=None), limit))
    return found


# Shares of the problems that ``auto`` should recover, by table and correlation.
WANTED = {
    ("correlated", 0.7): 0.98,
    ("correlated", 0.9): 0.9,
    ("blocks with the groups", IN_BLOCK): 0.95,
    ("blocks against the groups", IN_BLOCK): 0.95,
    ("lone feature", 0.0): 0.95,
}


def _auto_targets(record: Record) -> list[Target]:
    """What ``auto`` promises for a problem."""
    case = f"{record['table']}, n = {record['n']}, noise {record['noise']:g}"
    share = recovered(record, "auto")
    wanted = WANTED.get((record["table"], record["correlation"]))
    if wanted is not None:
        case = f"{case}, correlation {record['correlation']:g}"
        return [Target(f"{case}: auto recovers", share, wanted, at_least=True)]
    if record["n"] == 75:
        return [Target(f"{case}: auto recovers", share, 0.95, at_least=True)]
    if record["n"] == 60:
        return [Target(f"{case}: auto recovers", share, 0.8, at_least=True)]
    if record["n"] < 90 or record["noise"] != 0.5:
        return []
    ratio = statistics.mean(record["errors"]["auto"]) / statistics.mean(record["errors"]["oracle"])
    return [
        Target(f"{case}: auto recovers", share, 1.0, at_least=True),
        Target(f"{case}: error of auto / oracle", ratio, 1.3),
    ]
