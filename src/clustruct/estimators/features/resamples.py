"""Refits of a fitted model with other weights of its samples, without a copy of ``X``."""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clustruct._typing import Counts, Floats, Labels
from clustruct.arrays import to_host
from clustruct.design import Design, load
from clustruct.estimators.features.folds import PlacedSamples
from clustruct.estimators.features.grid import block_codes, choose_objective
from clustruct.estimators.features.search import search_method
from clustruct.estimators.intake import validate, weigh
from clustruct.estimators.offsets import attach_offset
from clustruct.estimators.search.engine import run_jobs
from clustruct.grouping.constraints import (
    BlockClustered,
    Clustered,
    FeatureConstraint,
    SparseClustered,
)
from clustruct.results.stability import ABSENT
from clustruct.solvers.driver import (
    Attempt,
    Solution,
    drive,
    may_refit,
    require_member,
    status_of,
)
from clustruct.solvers.features import SHARP, FeatureOutcome, FeatureProblem, relaxed
from clustruct.solvers.given import GivenGroups

# A short search over partitions after the descent, up to so many features. On noisy planted
# problems it ended where the full search does in 39 of 40 resamples, in a tenth of its time.
SHORT_STARTS, SHORT = 16, {"n_turns": 1, "n_annealed": 2, "n_sweeps": 30, "n_repeats": 1}
MOST_SEARCHED = 2000
# Refits whose passes over X are made together, where X is not in memory.
TOGETHER = 16


def refitted(
    model: Any,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    parts: Sequence[Counts],
    offset: ArrayLike | None = None,
) -> Iterator[Solution]:
    """Fit a model, for each part, to its samples: it tells how often it has each of them.

    Fits start from the model's weights and from those without groups, and the better one counts:
    from the model's alone, groups would seem to be firmer than they are. A search keeps what it has
    chosen. Levels without samples in a part have the label `ABSENT`.
    """
    model = model._as_chosen()
    design, targets = validate(model, X, y, reset=False)
    own = attach_offset(design, offset)
    if sample_weight is not None and design.on_host:  # where samples without weight are left out
        sample_weight, kept = _with_weight(sample_weight)
        design, (targets,) = design.only(kept, targets)
        own, parts = None if own is None else own[kept], [counts[kept] for counts in parts]
    samples = PlacedSamples(design, targets, sample_weight, own)
    objectives = samples.objectives(model, parts)
    together = TOGETHER if design.streamed else 1
    for first in range(0, len(parts), together):
        some = list(islice(objectives, together))
        jobs = [partial(_solution, model, design, objective) for objective in some]
        found = run_jobs(jobs, 1, some[0].side_by_side)
        for solution, counts in zip(found, parts[first : first + together], strict=True):
            yield _without_absent(model, design, solution, counts)


def _with_weight(sample_weight: ArrayLike) -> tuple[Floats, NDArray[np.bool_]]:
    """Weights without zeros, and where they are in all weights."""
    weights = np.asarray(load(sample_weight), dtype=np.float64)
    kept = weights > 0.0
    return weights[kept], kept


def _without_absent(model: Any, design: Design, solution: Solution, counts: Counts) -> Solution:
    """The solution with the label `ABSENT` for levels that a part lacks."""
    if not design.has_levels:
        return solution
    missing = design.adjoint(counts.astype(np.float64)[:, None])[:, 0] == 0.0
    missing &= model.factors_.blocks >= 0
    return replace(solution, labels=np.where(missing, ABSENT, solution.labels))


def regrouped(
    model: Any,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    labels: Labels,
    offset: ArrayLike | None = None,
) -> Any:
    """A copy of a fitted model with given groups, -1 for features without weight.

    Their values are the best ones with the ridge of the fit. Groups of a factor with an order of
    values are joined where these would break it. Its certificate is about all groupings with as
    many groups, in each block or factor if there are any.
    """
    found, chosen = copy(model), model._as_chosen()
    design, targets = validate(found, X, y, reset=False)
    samples = weigh(design, targets, sample_weight, attach_offset(design, offset))
    objective = choose_objective(samples.design, found._respond(samples), 0.0)
    outcome = _given(chosen, design, objective, labels)
    while (broken := _out_of_order(found, outcome.solution.point.W)) is not None:
        first, second = labels[list(broken)]
        labels = np.where(labels == second, first, labels)
        outcome = _given(chosen, design, objective, labels)
    found._set_outcome(outcome)
    found._follow(design)
    return found


def _given(model: Any, design: Design, objective: Any, labels: Labels) -> FeatureOutcome:
    """The best values of given groups."""
    used = np.unique(labels[labels >= 0])
    labels = np.where(labels < 0, -1, np.searchsorted(used, labels))
    objective = model._with_ridge(objective, model._constrained(design))
    if model._relaxed != 1.0:
        objective = objective.with_alpha(model._relaxed * objective.alpha)
    method = model._method(objective.shape).quietly(GivenGroups.name)
    constraint = _as_many(model, labels, max(1, used.size))
    problem = FeatureProblem(
        objective, constraint, method.budget, None, None, np.random.default_rng(method.seed)
    )
    kept = Attempt(
        GivenGroups.name, (drive(GivenGroups(objective, labels, used.size), method.budget),)
    )
    if model.constraint is not None:
        require_member(objective, model.constraint, kept.solution.point)
    return FeatureOutcome(kept.solution, kept.trace, status_of([kept], kept), problem, -np.inf)


def _as_many(model: Any, labels: Labels, n_groups: int) -> FeatureConstraint:
    """The set of all groupings with as many groups as these, in each block if there are any."""
    if (labels < 0).any():
        return SparseClustered(n_groups, max(1, int((labels >= 0).sum())))
    codes = blocks_of(model)
    if codes is None:
        return Clustered(n_groups)
    counts = [np.unique(labels[codes == b]).size for b in range(int(codes.max()) + 1)]
    return BlockClustered(codes, np.array(counts, dtype=np.intp))


def blocks_of(model: Any) -> Labels | None:
    """Number of the block or factor in which a feature may share its weight.

    It is -1 for features left alone. None stands for no blocks.
    """
    if model.factors_ is not None:
        return model.factors_.grouped
    return None if model.blocks is None else block_codes(len(model.labels_), model.blocks)[1]


def _out_of_order(model: Any, W: Floats) -> tuple[int, int] | None:
    """Two neighbouring levels whose values break the order of their factor; None if none do."""
    if model.factors_ is None:
        return None
    signs = {"increasing": 1.0, "decreasing": -1.0}
    for factor, rows in zip(model.factors_.factors, model.factors_.members, strict=True):
        steps = signs.get(factor.kind, 0.0) * np.diff(W[rows, 0])
        if (steps < 0.0).any():
            worst = int(steps.argmin())
            return int(rows[worst]), int(rows[worst + 1])
    return None


def labels_of(model: Any, design: Design, targets: Floats, weights: Floats) -> Labels:
    """The groups that a fitted model of numbers would have with other samples."""
    response = model._respond(weigh(design, targets, weights))
    return _solution(model, design, choose_objective(design, response, 0.0)).labels


def _solution(model: Any, design: Design, objective: Any) -> Solution:
    """The better of two fits, from a model's weights and from those without groups.

    A short search goes on from there: descents alone end too early where groups are close.
    """
    constraint = model._constrained(design)
    objective = model._with_ridge(objective, constraint)
    method = search_method("auto", model._method(objective.shape), objective, SHARP)
    found = [replace(method, start=None).fit(objective, constraint)]
    if method.solver == "pg":  # others have no use for a start
        start, minimum = to_host(model._weights), found[0].problem.minimum
        found.append(replace(method, start=start).fit(objective, constraint, minimum))
        if objective.shape[0] <= MOST_SEARCHED and _may_move(constraint):
            start = min((each.solution.point for each in found), key=lambda point: point.value).W
            short = replace(
                method, solver="soft", n_starts=SHORT_STARTS, options=SHORT, start=start
            )
            found.append(short.fit(objective, constraint, minimum))
    best = min(found, key=lambda outcome: outcome.solution.point.value)
    return relaxed(best, model._relaxed).solution


def _may_move(constraint: Any) -> bool:
    """Whether single features may be moved between groups, which get other values then."""
    return hasattr(constraint, "places") and may_refit(constraint)
