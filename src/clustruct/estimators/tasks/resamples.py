"""Refits of fitted tasks with other weights of their samples, and to given groups of tasks."""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from clustruct._typing import Counts, Floats, Indices, Labels
from clustruct.arrays import to_host
from clustruct.estimators.tasks.entries import Prepared
from clustruct.estimators.tasks.layouts import Ids, Reading, known_codes, read, require_tasks
from clustruct.objectives.tasks.data import TaskTargets
from clustruct.solvers.tasks.recipes import MIXTURE, TaskProblem, solve_again, solve_given


def refitted(
    model: Any,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    parts: Sequence[Counts],
    tasks: Ids | None = None,
    offset: ArrayLike | None = None,
) -> Iterator[Any]:
    """Copies of a model, fitted for each part to its samples: it tells how often it has each.

    Fits start from the model's groups and from others that know nothing of these; a search keeps
    what it has chosen. Weights of classes are those of all samples. Copies have labels,
    centroids and objective, and no certificate.
    """
    model = model._as_chosen()
    reading, places = _read(model, X, y, sample_weight, tasks, offset)
    design = reading.entries.design
    weights = to_host(model.coef_)[places], to_host(model.intercept_)[places]
    labels = np.unique(model.labels_[places], return_inverse=True)[1].reshape(-1)
    for counts in parts:
        part = reading.entries.map(_taken, design.attach(counts))
        require_tasks(part, reading.names)
        prepared = model._prepare(part)
        prices = model._prices_of(prepared)
        problem = model._priced(prepared, part, prices, model.n_clusters, None)
        problem = replace(
            problem, hints=(labels,), near=prepared.rows(*weights), n_jobs=1, budget=problem.quiet
        )
        point = solve_again(problem, MIXTURE if prices.learned else model.solver)
        refit = copy(model)
        refit.objective_, refit.labels_ = point.value, np.empty_like(point.labels)
        refit.labels_[places] = point.labels
        refit.centroids_, refit.centroid_intercepts_ = prepared.columns(point.V)
        yield refit


def regrouped(
    model: Any,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    labels: Labels,
    tasks: Ids | None = None,
    offset: ArrayLike | None = None,
) -> Any:
    """A copy of a fitted model with given groups of its tasks, at the strengths of its fit."""
    found = copy(model)
    reading, places = _read(found, X, y, sample_weight, tasks, offset)
    prepared: Prepared = found._prepare(reading.entries)
    prices = found._prices_of_fit
    used, mine = np.unique(labels[places], return_inverse=True)
    problem: TaskProblem = found._priced(prepared, reading.entries, prices, used.size, None)
    solver = MIXTURE if prices.learned else found.solver
    outcome = solve_given(problem, mine.reshape(-1), solver)
    return found._set_fit(reading, prepared, prices, outcome)


def _read(
    model: Any,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    tasks: Ids | None,
    offset: ArrayLike | None,
) -> tuple[Reading, Indices]:
    """What a fit takes of the samples, and the place of each of its tasks among the model's."""
    reading = read(model, X, y, tasks, sample_weight, offset)
    places = known_codes(reading.names, model.tasks_)
    if np.unique(places).size != model.tasks_.size or (places < 0).any():
        raise ValueError(
            f"The samples are of {reading.names.size} tasks, and the model knows "
            f"{model.tasks_.size}, not all of them the same. Give the samples that it was fitted "
            "to, those of tasks that were adapted included."
        )
    return reading, places


def _taken(targets: TaskTargets, counts: Floats) -> TaskTargets:
    """Targets with their weights times how often a part has their rows."""
    weights = targets.weights * counts[targets.rows]
    return replace(targets, weights=weights).take(np.flatnonzero(weights))
