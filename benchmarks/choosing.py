"""Rules that choose the number of groups of features: groups found against loss on new samples.

Every problem is searched once, on the grid of ``clustruct fit --nonzero all``. Each rule chooses
from the same scores, and its choice is fitted to all samples. The risk is exact but for the samples
that it is the mean over: squared error or log loss in expectation over the answers. Beside
``fewest`` stands the same rule with standard errors only, of other numbers.
"""

import statistics
import sys
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, log_expit
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.metrics import log_loss, mean_squared_error
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from clustruct.cli.models import Settings, choose_model
from clustruct.estimators.features.search import COSTLY, choose_place
from clustruct.estimators.search.rules import Rule
from report import Options, Table, Target

# The rule, the standard errors of paired differences and the part of the loss that count as clear.
RULES: dict[str, tuple[str, float, float | None]] = {
    "best": ("best", 0.0, None),
    "fewest": ("fewest", 1.0, COSTLY),
    "0.5 errors": ("fewest", 0.5, None),
    "1 error": ("fewest", 1.0, None),
    "2 errors": ("fewest", 2.0, None),
    "one_se": ("one_se", 0.0, None),
}
SPLITS = range(10)
N_NEW = 4000
# Weights and designs: see `draw`. Some of them also for classes, whose fits take longer.
TRUTHS = ("groups", "correlated", "own", "none", "unequal", "near", "heavy", "weak")
SIZES = ((50, 10), (100, 20), (400, 20), (2000, 20))
CASES = {
    "regression": (TRUTHS, SIZES, range(5)),
    "classification": (TRUTHS[:4], SIZES[:3], range(3)),
}
REAL = {
    "diabetes": (load_diabetes, "regression"),
    "breast cancer": (load_breast_cancer, "classification"),
}

Record = dict[str, Any]
Floats = np.ndarray


class Problem(NamedTuple):
    """Samples, and new ones with what is expected of them: means, or probabilities of class 1."""

    X: Floats
    y: Floats
    new: Floats
    expected: Floats
    variance: float


def measure(options: Options) -> list[Record]:
    """Every planted problem and every table, one thread."""
    splits = SPLITS[:2] if options.quick else SPLITS
    records = []
    with threadpool_limits(1):
        for kind, (truths, sizes, seeds) in CASES.items():
            seeds = seeds[:1] if options.quick else seeds
            for truth, (n, d) in product(truths, sizes[:2] if options.quick else sizes):
                runs = [_planted(truth, kind, n, d, seed) for seed in seeds]
                records.append({"problem": truth, "kind": kind, "n": n, "d": d, **_all(runs)})
                print(f"choosing: {truth}, {kind}, n = {n}", file=sys.stderr)
        for name, (load, kind) in REAL.items():
            runs = [_real(load, kind, seed) for seed in splits]
            n, d = runs[0].pop("shape")
            records.append({"problem": name, "kind": kind, "n": n, "d": d, **_all(runs)})
            print(f"choosing: {name}", file=sys.stderr)
    return records


def _all(runs: list[Record]) -> Record:
    """Groups and losses by rule, over seeds."""
    return {
        part: {rule: [run[rule][place] for run in runs] for rule in RULES}
        for place, part in enumerate(("groups", "losses"))
    }


def _planted(truth: str, kind: str, n: int, d: int, seed: int) -> Record:
    problem = draw(truth, kind, n, d, np.random.default_rng([seed, n, d, TRUTHS.index(truth)]))

    def risk(model: Any) -> float:
        if kind == "regression":
            bias = model.predict(problem.new) - problem.expected
            return problem.variance + float(np.mean(bias**2))
        scores = model.decision_function(problem.new)
        p = problem.expected
        return float(-np.mean(p * log_expit(scores) + (1 - p) * log_expit(-scores)))

    return _choices(problem.X, problem.y, kind, risk)


def _real(load: Any, kind: str, seed: int) -> Record:
    X, y = load(return_X_y=True)
    X, new, y, answers = train_test_split(X, y, test_size=0.2, random_state=seed)
    scaler = StandardScaler().fit(X)

    def loss(model: Any) -> float:
        if kind == "regression":
            return float(mean_squared_error(answers, model.predict(scaler.transform(new))))
        found = model.predict_proba(scaler.transform(new))
        return float(log_loss(answers, found, labels=model.classes_))

    return {**_choices(scaler.transform(X), y, kind, loss), "shape": X.shape}


def _choices(X: Floats, y: Floats, kind: str, loss: Any) -> Record:
    """Number of groups and loss of what each rule chooses."""
    model = choose_model(Settings(nonzero=0), kind, X.shape, y, None).fit(X, y)
    found, fitted = model.cv_results_, {}
    result = {}
    for name, (rule, n_errors, share) in RULES.items():
        place = choose_place(found, Rule(rule, n_errors, share))
        if place not in fitted:
            q, a, k = place
            mine = type(model)(
                (found.n_clusters[q],),
                alphas=(found.alphas[a],),
                n_nonzero=found.n_nonzero[k],
                relax=(found.relax[place],),
                cv=2,
                random_state=0,
            ).fit(X, y)
            fitted[place] = (mine.n_clusters_, round(loss(mine), 6))
        result[name] = fitted[place]
    return result


def draw(truth: str, kind: str, n: int, d: int, rng: np.random.Generator) -> Problem:
    """A planted problem; the signal has variance 1 but where it is weak or none."""
    shares = (0.7, 0.2, 0.07, 0.03) if truth == "unequal" else (0.25,) * 4
    values = rng.permutation(np.array([-1.5, -0.5, 0.5, 1.5])) + rng.normal(0.0, 0.1, 4)
    w = values[rng.choice(4, d, p=shares)]
    if truth == "near":
        w = w + rng.normal(0.0, 0.2, d)
    if truth == "own":
        w = rng.standard_normal(d)
    rho = 0.8 if truth == "correlated" else 0.0
    X, new = (_design(rows, d, rho, rng) for rows in (n, N_NEW))
    size = {"none": 0.0, "weak": 0.3}.get(truth, 1.0)
    w = w * size / np.std(new @ w)
    if kind == "classification":
        w = 2.5 * w
        return Problem(X, rng.binomial(1, expit(X @ w)), new, expit(new @ w), 0.0)
    noise = rng.standard_t(3.0, n) / np.sqrt(3.0) if truth == "heavy" else rng.standard_normal(n)
    return Problem(X, X @ w + noise, new, new @ w, 1.0)


def _design(n: int, d: int, rho: float, rng: np.random.Generator) -> Floats:
    """Normal columns, neighbours correlated."""
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1.0 - rho**2) * X[:, j]
    return X


def excess(record: Record, rule: str) -> float:
    """How much more than the best rule's the mean loss is, relatively."""
    losses = record["losses"]
    return statistics.mean(losses[rule]) / statistics.mean(losses["best"]) - 1.0


def table(records: list[Record]) -> Table:
    """Mean number of groups, and mean loss more than by the best mean score."""
    rows = [
        [r["problem"], r["kind"], str(r["n"]), str(r["d"])]
        + [
            f"{statistics.mean(r['groups'][rule]):.1f}"
            + ("" if rule == "best" else f" ({excess(r, rule):+.1%})")
            for rule in RULES
        ]
        for r in records
    ]
    planted = [r for r in records if r["problem"] in TRUTHS]
    rows.append(
        ["all planted", "", "", ""]
        + [
            f"{statistics.mean(statistics.mean(r['groups'][rule]) for r in planted):.1f} "
            f"({statistics.mean(excess(r, rule) for r in planted):+.2%})"
            for rule in RULES
        ]
    )
    return Table(["problem", "target", "n", "d", *RULES], rows)


def targets(records: list[Record]) -> list[Target]:
    """Fewer groups for hardly more loss, on planted problems."""
    planted = [r for r in records if r["problem"] in TRUTHS]
    mean = statistics.mean(excess(r, "fewest") for r in planted)
    groups = {
        rule: statistics.mean(statistics.mean(r["groups"][rule]) for r in planted)
        for rule in ("best", "fewest")
    }
    return [
        Target("planted: mean excess loss of fewest", mean, 0.01),
        Target("planted: groups of fewest / best", groups["fewest"] / groups["best"], 0.67),
    ]
