"""Clustered samples for data that is streamed: few passes over ``X``."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustruct._typing import Floats
from clustruct.design import Design, LocalDesign, Rows
from clustruct.objectives.linear import Response
from clustruct.objectives.quadratic import Moments, gram_pays, objective_of
from clustruct.objectives.samples.classes import class_objective
from clustruct.objectives.samples.objective import Panel, SampleObjective, stacked

# Moments of the samples of each expert.
Gathered = tuple[Moments, ...]

# Largest number of entries of all experts' Gram matrices: every block computes them.
MOST_GATHERED = 1 << 24
# Panels kept: alternating minimisation returns to those of one or two steps before.
REMEMBERED = 3


class StreamedSampleObjective(SampleObjective):
    """The same problem, with one pass for each step of alternating minimisation.

    For squared loss the pass that assigns samples to experts also adds up the moments of each
    expert's samples, which is all that the next fit needs.
    """

    _gathered: tuple[tuple[Rows, Gathered], ...] = ()
    _panels: tuple[Panel, ...] = ()
    _fresh: Gathered = ()

    def judged(self, W: Floats, intercept: Floats, labels: Rows | None = None) -> Panel:
        """A panel of all experts; without a pass if it is known."""
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
        moments = self._moments(labels, n_experts)
        return stacked([objective_of(mine.averaged(), penalties).minimum(tol) for mine in moments])

    def _moments(self, labels: Rows, n_experts: int) -> Gathered:
        """Moments of the samples of each expert, by a pass unless they are known."""
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
        small = n_experts * d**2 <= MOST_GATHERED
        return self.quadratic and small and gram_pays(n, d, n_experts)


def _judge_and_gather(
    judging: Callable[..., Any],
    fit_intercept: bool,
    n_experts: int,
    X: LocalDesign,
    target: Floats,
    shares: Floats,
    *labels: Any,
) -> tuple[Any, tuple[float, Floats, Gathered]]:
    """Run `judge` on a block, and compute the moments of each expert's samples."""
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
    """Moments of each expert's samples in a block."""
    moments = Moments.about_mean if fit_intercept else Moments.about_zero

    def of_expert(q: int) -> Moments:
        some, (y, s) = X.only((labels == q) & (shares > 0.0), target, shares)
        return moments(some, y, s)

    return tuple(of_expert(q) for q in range(n_experts))


def _joined(a: Any, b: Any) -> Any:
    """Join the moments of two blocks and add up everything else."""
    if isinstance(a, tuple):
        return tuple(map(_joined, a, b))
    return a.joined(b) if isinstance(a, Moments) else a + b


def sample_objective(design: Design, response: Response, alpha: float) -> SampleObjective:
    """The objective of clustered samples that suits a design."""
    if design.streamed:
        return StreamedSampleObjective(design, response, alpha)
    classes = class_objective(design, response, alpha)
    return SampleObjective(design, response, alpha) if classes is None else classes
