"""Terrains: what 20 rows of a field of Landmine tell of its terrain, and what that is worth.

The terrains are given away here, in part, to see how much of the way is possible at all. Areas are
means over the fields, on the splits of the section `tasks`. `other rows` has weights of the
terrains from all rows but the 20 of each field, those that are scored: more than can be known. `20
rows` has them from the 20 rows of each field; the likelihood of a field is that of weights which
have not seen it. A field is answered by its true terrain, by the likelier one, or by both in
proportion to their likelihoods. `inputs` has groups of fields with similar inputs, whatever the
labels. `model` has the strengths that are best for the rows that are scored.
"""

import statistics
from itertools import product
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression

from clustruct import TaskClusterClassifier
from clustruct.datasets import fetch_landmine
from clustruct.estimators.tasks.layouts import read
from clustruct.estimators.tasks.search import WITHIN
from clustruct.objectives.tasks.objective import TaskObjective
from clustruct.solvers.driver import drive
from clustruct.solvers.tasks.alternation import TaskAlternation
from report import Options, Table, Target
from tasks import MINE_SPLITS, TERRAIN, mean_area, pooled, split_rows

Record = dict[str, Any]
Floats = np.ndarray
Seen = tuple[Floats, Floats, Floats]

ROWS = 20
RIDGES = (1.0, 3.0, 10.0, 30.0)
# Strengths between groups, in units: those that a search tries, and a smaller one.
BETWEEN = (1.0, 0.1, 0.01, 0.001)
# Strengths, in units, at which one group does best on other splits than these.
TIGHT, APART = 30.0, 1.0
TOL = 1e-8


def measure(options: Options) -> list[Record]:
    """Areas of all ways to answer, over the splits."""
    try:
        mines = fetch_landmine()
    except FileNotFoundError as error:
        return [{"part": "terrains", "missing": str(error)}]
    found: dict[str, dict[str, list[float]]] = {}
    for seed in range(1 if options.quick else MINE_SPLITS):
        train = split_rows(mines.tasks, ROWS, seed)
        seen, held = (
            (mines.data[rows], mines.target[rows].astype(int), mines.tasks[rows])
            for rows in (train, ~train)
        )
        parts = {"other rows": _by_likelihood(held, seen, held, 1.0)}
        for ridge in RIDGES:
            parts[f"20 rows, ridge {ridge:g}"] = _by_likelihood(seen, seen, held, ridge)
        parts["inputs"] = _by_inputs(seen, held)
        parts["model"] = _at_best(seen, held)
        parts["model, from the terrains"] = _from_terrains(seen, held)
        for part, figures in parts.items():
            for name, figure in figures.items():
                found.setdefault(part, {}).setdefault(name, []).append(float(figure))
    return [{"part": part, "figures": figures} for part, figures in found.items()]


def _by_likelihood(source: Seen, seen: Seen, held: Seen, ridge: float) -> dict[str, float]:
    """Fields placed by the likelihood of their 20 rows, with weights of the terrains at hand."""
    both = (0, 1)
    X, y, tasks = held
    models = [_logistic(source, TERRAIN[source[2]] == k, ridge) for k in both]
    likelihoods = np.empty((TERRAIN.size, 2))
    for t, k in product(range(TERRAIN.size), both):
        model = models[k]
        if source is seen and k == TERRAIN[t]:
            model = _logistic(seen, (TERRAIN[seen[2]] == k) & (seen[2] != t), ridge)
        mine = seen[2] == t
        scores = np.where(seen[1][mine] == 1, 1, -1) * model.decision_function(seen[0][mine])
        likelihoods[t, k] = -np.logaddexp(0.0, -scores).sum()
    scores = np.stack([model.decision_function(X) for model in models], axis=1)
    every, likelier = np.arange(tasks.size), likelihoods.argmax(axis=1)
    shares = softmax(likelihoods, axis=1)[tasks]
    return {
        "true terrain": mean_area(y, scores[every, TERRAIN[tasks]], tasks),
        "likelier terrain": mean_area(y, scores[every, likelier[tasks]], tasks),
        "both by likelihood": mean_area(y, (shares * expit(scores)).sum(axis=1), tasks),
        "fields right": (likelier == TERRAIN).sum(),
    }


def _logistic(seen: Seen, kept: Floats, ridge: float) -> LogisticRegression:
    return LogisticRegression(C=1.0 / ridge, max_iter=1000).fit(seen[0][kept], seen[1][kept])


def _by_inputs(seen: Seen, held: Seen) -> dict[str, float]:
    """Two groups by k-means of the fields' mean inputs, in units of the spread within fields."""
    X, _, tasks = seen
    means = np.stack([X[tasks == t].mean(axis=0) for t in range(TERRAIN.size)])
    within = np.cov(X - means[tasks], rowvar=False)
    scaled = means @ np.linalg.cholesky(np.linalg.inv(within))
    labels = KMeans(2, n_init=50, random_state=0).fit(scaled).labels_
    models = [pooled(seen, labels[tasks] == q) for q in (0, 1)]
    scores = np.stack([model.decision_function(held[0]) for model in models], axis=1)
    answers = scores[np.arange(len(scores)), labels[held[2]]]
    return {"area": mean_area(held[1], answers, held[2]), "fields right": _right(labels)}


def _right(labels: Floats) -> int:
    """Fields in the right group, whichever group is which."""
    same = int((labels == TERRAIN).sum())
    return max(same, TERRAIN.size - same)


def _at_best(seen: Seen, held: Seen) -> dict[str, float]:
    """The best of many strengths, by the rows that are scored."""
    X, y, tasks = held
    unit = _unit(seen)
    best = {}
    for count, name in ((1, "one group"), (2, "two groups")):
        areas = []
        for within, between in product(WITHIN, BETWEEN):
            model = TaskClusterClassifier(
                count, alpha_within=unit * within, alpha_between=unit * between, random_state=0
            ).fit(*seen)
            areas.append(mean_area(y, model.decision_function(X, tasks=tasks), tasks))
        best[name] = max(areas)
    return best


def _unit(seen: Seen) -> float:
    """The unit of strengths: what "auto" has a tenth of between groups."""
    return 10.0 * TaskClusterClassifier(1, random_state=0).fit(*seen).alpha_between_


def _from_terrains(seen: Seen, held: Seen) -> dict[str, float]:
    """Alternating minimisation that starts at the terrains."""
    X, y, tasks = held
    unit = _unit(seen)
    model = TaskClusterClassifier(
        2, alpha_within=unit * TIGHT, alpha_between=unit * APART, random_state=0
    )
    prepared = model._prepare(read(model, *seen, None).entries)
    prices = model._prices(unit, prepared)
    objective = TaskObjective(prepared.data, prices.strengths(prepared.data.width, True))
    there = objective.refit(TERRAIN, 2, TOL)
    budget = model._problem(objective, 2).budget
    moved = drive(TaskAlternation(objective, TERRAIN, 2), budget).solution

    def area(W: Floats) -> float:
        coef, intercept = prepared.columns(W)
        return mean_area(y, np.vecdot(X, coef[tasks]) + intercept[tasks], tasks)

    return {
        "at the terrains": area(there.W),
        "objective there": there.value,
        "after": area(moved.point.W),
        "objective after": moved.point.value,
        "fields right": _right(moved.labels),
    }


def table(records: list[Record]) -> Table:
    """Means over the splits, the least and the largest."""
    rows = [
        [r["part"], name, f"{statistics.mean(f):.4g}", f"{min(f):.4g}", f"{max(f):.4g}"]
        for r in records
        for name, f in r.get("figures", {}).items()
    ]
    notes = [f"{r['part']}: {r['missing']}" for r in records if "missing" in r]
    return Table(["part", "figure", "mean", "least", "largest"], rows, notes)


def targets(records: list[Record]) -> list[Target]:
    """None: this says what targets are possible."""
    return []
