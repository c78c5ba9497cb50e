"""Random starts of experts, and a search over them that knows when to stop.

A start draws experts around the pooled fit. It depends on the samples through their moments alone,
so that a repeated sample and a sample with weight two lead to the same start.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from clustruct._finite import SMALLEST
from clustruct._typing import Floats
from clustruct.losses import Noise
from clustruct.objectives.samples.objective import Panel, SampleObjective
from clustruct.solvers.driver import Run

__all__ = ["best_of", "draw_experts", "search"]


def draw_experts(
    objective: SampleObjective,
    pooled: Panel,
    noise: Noise,
    n_experts: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Experts whose scores differ from the pooled ones about as much as the solutions do.

    Parameters
    ----------
    objective : SampleObjective
    pooled : Panel
        One expert for all samples.
    noise : Noise
    n_experts : int
    rng : numpy.random.Generator

    Returns
    -------
    tuple of ndarray
        Weights (Q, d, K) and intercepts (Q, K).
    """
    d, n_outputs = objective.shape
    means, variances = objective.design.moments(objective.response.shares)
    squares = variances if objective.response.fit_intercept else variances + means**2
    spread = noise.spread(pooled.value)
    # Weights that make a difference on smaller columns could not be squared.
    seen = squares > SMALLEST**2
    scales = np.divide(spread, np.sqrt(d * squares), where=seen, out=np.zeros(d))
    away = scales[:, None] * rng.standard_normal((n_experts, d, n_outputs))
    shift = np.zeros((n_experts, n_outputs))
    if objective.response.fit_intercept:
        # Moved at the centre of the samples, not at the origin.
        shift = 0.5 * spread * rng.standard_normal(shift.shape)
        shift -= np.einsum("d,qdk->qk", means, away)
    return pooled.W + away, pooled.intercept + shift


def search(
    solve_from: Callable[[int], Run[Any]],
    n_starts: int | None,
    *,
    least: int,
    most: int,
    slack: Callable[[float], float],
    n_jobs: int | None,
) -> list[Run[Any]]:
    """Solutions from one start after the other, until the best one was reached twice.

    Good solutions are found again, poor ones differ. Starts run in parallel, and those after the
    last one needed are forgotten: the solution does not depend on ``n_jobs``.

    Parameters
    ----------
    solve_from : callable
        Solves from the start of that number.
    n_starts : int or None
        Exactly so many starts, instead of as many as it takes.
    least, most : int
        Limits where ``n_starts`` is None.
    slack : callable
        How far from the best objective another one may be to count as the same.
    n_jobs : int or None

    Returns
    -------
    list of Run
        In the order of their starts.
    """
    count = most if n_starts is None else n_starts
    width = effective_n_jobs(n_jobs)
    found: list[Run[Any]] = []
    for first in range(0, count, width):
        numbers = range(first, min(first + width, count))
        if width == 1:
            batch = [solve_from(number) for number in numbers]
        else:
            batch = Parallel(n_jobs=width, prefer="threads")(
                delayed(solve_from)(i) for i in numbers
            )
        for run in batch:
            found.append(run)
            if run.stopped:
                return found
            if n_starts is None and len(found) >= least and _reached_twice(found, slack):
                return found
    return found


def _reached_twice(found: list[Run[Any]], slack: Callable[[float], float]) -> bool:
    values = sorted(run.state.objective for run in found)
    return len(values) > 1 and values[1] - values[0] <= slack(values[0])


def best_of(found: list[Run[Any]]) -> tuple[Run[Any], str]:
    """The best of several solutions, the first among equals, and what to tell of them."""
    best = min(found, key=lambda run: run.state.objective)
    return best, f"best of {len(found)} start{'s' * (len(found) != 1)}"
