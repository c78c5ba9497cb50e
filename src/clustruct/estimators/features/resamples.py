"""Refits of a fitted model with other weights of its samples, without a copy of ``X``."""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from clustruct._typing import Floats, Labels
from clustruct.arrays import to_host
from clustruct.design import Design
from clustruct.estimators.features.folds import Counts, PlacedSamples
from clustruct.estimators.features.grid import choose_constraint, choose_objective
from clustruct.estimators.features.search import search_method
from clustruct.estimators.intake import validate, weigh
from clustruct.estimators.offsets import attach_offset
from clustruct.results.stability import ABSENT
from clustruct.solvers.driver import Solution
from clustruct.solvers.features import SHARP


class Rows(NamedTuple):
    """Samples as users pass them."""

    X: Any
    y: ArrayLike
    sample_weight: ArrayLike | None = None
    offset: ArrayLike | None = None


def refitted(model: Any, rows: Rows, parts: Sequence[Counts]) -> Iterator[Solution]:
    """Fit a model, for each part, to its samples: it tells how often it has each of them.

    Fits start from the model's weights and from those without groups, and the better one counts:
    from the model's alone, groups would seem to be firmer than they are. Levels without samples in
    a part have the label `ABSENT`.
    """
    model = copy(model)
    design, targets = validate(model, rows.X, rows.y, reset=False)
    samples = PlacedSamples(design, targets, rows.sample_weight, attach_offset(design, rows.offset))
    for objective, counts in zip(samples.objectives(model, parts), parts, strict=True):
        solution = _solution(model, design, objective)
        if design.has_levels:
            missing = (design.adjoint(counts.astype(np.float64)[:, None])[:, 0] == 0.0) & (
                model.factors_.blocks >= 0
            )
            solution = replace(solution, labels=np.where(missing, ABSENT, solution.labels))
        yield solution


def labels_of(model: Any, design: Design, targets: Floats, weights: Floats) -> Labels:
    """The groups that a fitted model of numbers would have with other samples."""
    response = model._respond(weigh(design, targets, weights))
    return _solution(model, design, choose_objective(design, response, 0.0)).labels


def _solution(model: Any, design: Design, objective: Any) -> Solution:
    """The better of two fits, from a model's weights and from those without groups."""
    constraint = model.constraint or choose_constraint(
        design.shape[1], model._count(), model.n_nonzero, model._blocks(), design.cluster
    )
    objective = model._with_ridge(objective, constraint)
    method = search_method("auto", model._method(objective.shape), objective, SHARP)
    outcomes = [replace(method, start=None).fit(objective, constraint)]
    if method.solver in ("pg", "cgpg"):  # others have no use for a start
        start, minimum = to_host(model._weights), outcomes[0].problem.minimum
        outcomes.append(replace(method, start=start).fit(objective, constraint, minimum))
    return min((each.solution for each in outcomes), key=lambda solution: solution.point.value)
