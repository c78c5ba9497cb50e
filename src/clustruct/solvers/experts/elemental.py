"""Elemental starts: experts from as few samples as they have weights, for few weights.

Thousands of starts take a tenth of a second compiled, see `kernels.fits.elemental`. They find
assignments that no likelihood leads to, such as those of samples with more noise than there is
between the experts.
"""

from dataclasses import dataclass

import numpy as np

from clustruct._interrupts import asked
from clustruct._progress import counting
from clustruct._typing import Floats, Labels
from clustruct.kernels.fits import elemental
from clustruct.objectives.samples.objective import Panel, SampleObjective
from clustruct.solvers.experts.alternating import SHARP
from clustruct.solvers.experts.problem import SampleProblem


@dataclass(frozen=True)
class ElementalSettings:
    """When elemental starts are tried, and when they end."""

    # Starts at a time; the rules below apply after each batch. `n_init` is a number of batches.
    batch: int = 64
    # They end when the best objective was reached so often. Of 72 problems of much noise, 20 was
    # right in 99 % of the searches, 10 in 96 %, 5 in 89 %.
    again: int = 20
    # Or after so many starts, or so many units of work: n Q p^2 a start, about 25 ns each.
    most: int = 2048
    work: int = 6_000_000
    # Rounds over the samples, of assignments and of moves.
    rounds: int = 50
    # Two objectives are the same up to this.
    same: float = 1e-9


SETTINGS = ElementalSettings()


def has_few_weights(problem: SampleProblem) -> bool:
    """Whether at least one batch of elemental starts can be afforded."""
    objective = problem.objective
    suitable = objective.quadratic and objective.design.on_host
    return suitable and SETTINGS.batch * _work(objective, problem.n_clusters) <= SETTINGS.work


def from_elements(
    problem: SampleProblem, settings: ElementalSettings = SETTINGS
) -> tuple[Panel, str]:
    """The best experts from elemental starts, and a remark."""
    objective, n_experts = problem.objective, problem.n_clusters
    features, targets, shares, ridges, places = _distinct(objective)
    affordable = settings.work // (settings.batch * _work(objective, n_experts))
    n_batches = min(settings.most // settings.batch, affordable)
    if problem.n_starts is not None:
        n_batches = min(n_batches, problem.n_starts)
    values = np.empty(0)
    best, kept = np.inf, np.zeros(shares.size, dtype=np.intp)
    most = n_batches * settings.batch
    with counting("elemental starts", most, at_most=True, measure="objective") as count:
        for number in range(n_batches):
            shape = (settings.batch, n_experts, features.shape[1])
            uniforms = problem.rng(number).random(shape)
            found, labels = elemental.search(
                features, targets, shares, ridges, n_experts, uniforms, settings.rounds
            )
            values = np.append(values, found)
            if found.min() < best:
                best, kept = found.min(), labels[found.argmin()]
            count.tick(float(best), done=values.size)
            times = int(np.count_nonzero(values <= best + settings.same * abs(best)))
            if times >= settings.again or asked():
                break
    panel = objective.fit_groups(kept[places], SHARP)
    return panel, f"from the best of {values.size} elemental starts, found {times} times"


def _work(objective: SampleObjective, n_experts: int) -> int:
    """Units of work of a start."""
    n, d = objective.design.shape
    return int(n * n_experts * (d + 1) ** 2)


def _distinct(objective: SampleObjective) -> tuple[Floats, Floats, Floats, Floats, Labels]:
    """The samples as the kernel takes them, and the place of each sample among them.

    Samples that are alike are one of their common weight, in an order by value, so that neither
    repetition nor order matters. Columns are standard, with ridges to match.

    Returns features (m, p), targets (m, K), shares (m,), ridges (p,) and places (n,).
    """
    columns, shares = objective.standard, objective.response.shares
    targets = columns.targets - columns.flat * (shares @ columns.targets)
    weighed = shares > 0.0
    joined = np.hstack([columns.features, targets])[weighed]
    rows, found = np.unique(joined, axis=0, return_inverse=True)
    places = np.zeros(shares.size, dtype=np.intp)
    places[weighed] = found.reshape(-1)
    totals = np.bincount(places[weighed], shares[weighed]).astype(np.float64)
    width = columns.ridges.size
    features, targets = (np.ascontiguousarray(part) for part in np.hsplit(rows, [width]))
    return features, targets, totals, columns.ridges, places
