"""Refits of a fitted model with other weights of its samples, without a copy of ``X``."""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from clustruct._typing import Floats
from clustruct.arrays import to_host
from clustruct.estimators.features.folds import Counts, PlacedSamples
from clustruct.estimators.features.grid import Method, choose_constraint
from clustruct.estimators.features.search import search_method
from clustruct.estimators.intake import validate
from clustruct.estimators.offsets import attach_offset
from clustruct.solvers.driver import Solution
from clustruct.solvers.features import SHARP, FeatureOutcome


class Rows(NamedTuple):
    """Samples as users pass them."""

    X: Any
    y: ArrayLike
    sample_weight: ArrayLike | None = None
    offset: ArrayLike | None = None


def refitted(model: Any, rows: Rows, parts: Sequence[Counts]) -> Iterator[Solution]:
    """Fit a model, for each part, to its samples: `counts` says how often it has each.

    Fits start from the model's weights and from those without groups, and the better one counts:
    from the model's alone, groups would seem to be firmer than they are.
    """
    model = copy(model)
    design, targets = validate(model, rows.X, rows.y, reset=False)
    samples = PlacedSamples(
        design, targets, rows.sample_weight, attach_offset(design, rows.offset)
    )
    constraint = model.constraint or choose_constraint(
        design.shape[1], model._count(), model.n_nonzero, model._blocks(), design.cluster
    )
    start = to_host(model._weights)
    for objective in samples.objectives(model, parts):
        objective = model._with_ridge(objective, constraint)
        method = search_method("auto", model._method(objective.shape), objective, SHARP)
        yield _best(method, objective, constraint, start).solution


def _best(method: Method, objective: Any, constraint: Any, start: Floats) -> FeatureOutcome:
    """The better of two fits, from a start and from weights without groups."""
    cold = replace(method, start=None).fit(objective, constraint)
    if method.solver not in ("pg", "cgpg"):  # others have no use for a start
        return cold
    warm = replace(method, start=start).fit(objective, constraint, cold.problem.minimum)
    return min(cold, warm, key=lambda outcome: outcome.solution.point.value)
