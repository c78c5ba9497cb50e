"""Clustered samples where reading ``X`` is what takes the time."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustruct._typing import Floats
from clustruct.design import Design, LocalDesign, Rows
from clustruct.objectives.linear import Response
from clustruct.objectives.moments import Moments
from clustruct.objectives.quadratic import objective_of
from clustruct.objectives.samples.objective import GRAM_ALWAYS, GRAM_IF_TALL, Panel, SampleObjective

__all__ = ["StreamedSampleObjective", "sample_objective"]

# Of the samples of each expert.
Gathered = tuple[Moments, ...]

# Entries of all experts' Gram matrices up to which every block makes them.
MOST_GATHERED = 1 << 24
# Alternating minimisation comes back to what it had one or two steps ago.
REMEMBERED = 3


class StreamedSampleObjective(SampleObjective):
    """The same problem, with squared loss read once for each step of alternating minimisation.

    The pass that judges samples by experts also adds up all that the next fit of an expert needs:
    the moments of the samples that choose it.
    """

    _gathered: tuple[tuple[Rows, Gathered], ...] = ()
    _panels: tuple[Panel, ...] = ()
    _fresh: Gathered = ()

    def judged(self, W: Floats, intercept: Floats, labels: Rows | None = None) -> Panel:
        """As from memory, without a pass where the panel is known."""
        for known in self._panels:
            same = np.array_equal(W, known.W) and np.array_equal(intercept, known.intercept)
            if same and (known.choices if labels is None else labels) is known.labels:
                return known
        panel = super().judged(W, intercept, labels)
        self._panels = (panel, *self._panels[: REMEMBERED - 1])
        if self._gathers(W.shape[0]):
            self._remember(panel.choices, self._fresh)
        return panel

    def _sweep(
        self, judging: Callable[..., Any], n_experts: int, *labels: Rows
    ) -> tuple[Rows, float, Floats]:
        if not self._gathers(n_experts):
            return super()._sweep(judging, n_experts, *labels)
        rows = (self.response.target, self.response.shares, *labels)
        both = partial(_judge_and_gather, judging, self.response.fit_intercept, n_experts)
        kept, (value, demand, self._fresh) = self.design.sweep_keeping(both, *rows, combine=_joined)
        return kept, value, demand

    def _fit_labelled(
        self, labels: Rows, n_experts: int, tol: float, start: Floats | None
    ) -> tuple[Floats, Floats]:
        if not self._gathers(n_experts):
            return super()._fit_labelled(labels, n_experts, tol, start)
        penalties = np.full(self.shape[0], self.alpha)
        best = [
            objective_of(mine.averaged(), penalties).minimum(tol)
            for mine in self._moments(labels, n_experts)
        ]
        return np.stack([point.W for point in best]), np.stack([point.intercept for point in best])

    def _moments(self, labels: Rows, n_experts: int) -> Gathered:
        """Moments of the samples of each expert, read from ``X`` unless they are known."""
        for rows, known in self._gathered:
            if rows is labels:
                return known
        response = self.response
        gather = partial(_gather, response.fit_intercept, n_experts)
        found: Gathered = self.design.sweep(
            gather, response.target, response.shares, labels, combine=_joined
        )
        self._remember(labels, found)
        return found

    def _remember(self, labels: Rows, moments: Gathered) -> None:
        self._gathered = ((labels, moments), *self._gathered[: REMEMBERED - 1])

    def _gathers(self, n_experts: int) -> bool:
        """Whether experts are fitted by their samples' moments, and those are small enough."""
        n, d = self.design.shape
        by_moments = d <= GRAM_ALWAYS or (d <= GRAM_IF_TALL and d * n_experts <= n)
        return self.quadratic and by_moments and n_experts * d**2 <= MOST_GATHERED


def _judge_and_gather(
    judging: Callable[..., Any],
    fit_intercept: bool,
    n_experts: int,
    X: LocalDesign,
    target: Floats,
    shares: Floats,
    *labels: Any,
) -> tuple[Any, tuple[float, Floats, Gathered]]:
    """What `judge` says of a block, and the moments of the samples that choose each expert."""
    rows, (value, demand) = judging(X, target, shares, *labels)
    return rows, (value, demand, _gather(fit_intercept, n_experts, X, target, shares, rows[0]))


def _gather(
    fit_intercept: bool,
    n_experts: int,
    X: LocalDesign,
    target: Floats,
    shares: Floats,
    labels: NDArray[np.intp],
) -> Gathered:
    """Moments of a block's samples of each expert."""
    moments = Moments.about_mean if fit_intercept else Moments.about_zero

    def of_expert(q: int) -> Moments:
        some, (y, s) = X.only((labels == q) & (shares > 0.0), target, shares)
        return moments(some, y, s)

    return tuple(of_expert(q) for q in range(n_experts))


def _joined(a: Any, b: Any) -> Any:
    """Moments of two blocks, and sums of the rest."""
    if isinstance(a, tuple):
        return tuple(map(_joined, a, b))
    return a.joined(b) if isinstance(a, Moments) else a + b


def sample_objective(design: Design, response: Response, alpha: float) -> SampleObjective:
    """The objective of clustered samples that suits a design."""
    kind = StreamedSampleObjective if design.streamed else SampleObjective
    return kind(design, response, alpha)
