"""Refits of a fitted model with other weights of its samples, without a copy of ``X``."""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

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
from clustruct.solvers.driver import Solution, may_refit
from clustruct.solvers.features import SHARP, FeatureOutcome

# A short search over partitions after the descent, up to so many features. On noisy planted
# problems it ended where the full search does in 39 of 40 resamples, in a tenth of its time.
SHORT_STARTS, SHORT = 16, {"n_turns": 1, "n_annealed": 2, "n_sweeps": 30, "n_repeats": 1}
MOST_SEARCHED = 2000


def refitted(
    model: Any,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    offset: ArrayLike | None,
    parts: Sequence[Counts],
) -> Iterator[Solution]:
    """Fit a model, for each part, to its samples: it tells how often it has each of them.

    Fits start from the model's weights and from those without groups, and the better one counts:
    from the model's alone, groups would seem to be firmer than they are. Levels without samples in
    a part have the label `ABSENT`.
    """
    model = copy(model)
    design, targets = validate(model, X, y, reset=False)
    samples = PlacedSamples(design, targets, sample_weight, attach_offset(design, offset))
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
    """The better of two fits, from a model's weights and from those without groups.

    A short search goes on from there: descents alone end too early where groups are close.
    """
    constraint = model.constraint or choose_constraint(
        design.shape[1], model._count(), model.n_nonzero, model._blocks(), design.cluster
    )
    objective = model._with_ridge(objective, constraint)
    method = search_method("auto", model._method(objective.shape), objective, SHARP)
    found = [replace(method, start=None).fit(objective, constraint)]
    if method.solver == "pg":  # others have no use for a start
        start, minimum = to_host(model._weights), found[0].problem.minimum
        found.append(replace(method, start=start).fit(objective, constraint, minimum))
        if objective.shape[0] <= MOST_SEARCHED and _may_move(constraint):
            start = _best(found).point.W
            short = replace(
                method, solver="soft", n_starts=SHORT_STARTS, options=SHORT, start=start
            )
            found.append(short.fit(objective, constraint, minimum))
    return _best(found)


def _may_move(constraint: Any) -> bool:
    """Whether single features may be moved between groups, which get other values then."""
    return hasattr(constraint, "places") and may_refit(constraint)


def _best(found: Sequence[FeatureOutcome]) -> Solution:
    """The solution with the least objective."""
    return min((each.solution for each in found), key=lambda solution: solution.point.value)
