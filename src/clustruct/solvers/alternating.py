"""Alternating minimisation over experts and assignment, section 3.1 of the paper.

Every sample goes to the expert with the least cost, then every expert gets the best weights for its
samples. Neither can raise the objective. An expert that loses all its samples is given those that
are answered worst: splitting a group cannot raise the objective either.
"""

import numpy as np
from numpy.typing import NDArray

from clustruct.objectives.point import Point
from clustruct.objectives.samples import Panel, SampleObjective
from clustruct.solvers.driver import Answer
from clustruct.solvers.greedy import Grouped
from clustruct.solvers.protocols import require

__all__ = ["AlternatingMinimisation"]

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]

# Precision of the experts that are returned.
SHARP = 1e-10
ROUNDING = 1e-12


class AlternatingMinimisation:
    """Assign, refit, and so on.

    Parameters
    ----------
    objective : SampleObjective
    W : ndarray of shape (Q, d, K)
        Weights of the experts to start from.
    intercept : ndarray of shape (Q, K)
    n_clusters : int
        How many experts there may be.
    tol : float
        Precision of the experts' fits on the way; the answer's is `SHARP`.
    """

    name = "am"

    def __init__(
        self,
        objective: SampleObjective,
        W: Floats,
        intercept: Floats,
        n_clusters: int,
        *,
        tol: float = 1e-6,
    ) -> None:
        require(self.name, objective, ("refit", "panel"))
        self._objective = objective
        self._begin = W, intercept
        self._n_clusters = n_clusters
        self._tol = tol

    def start(self) -> Grouped:
        """The experts at their best for the samples that they begin with."""
        begin = self._objective.panel(*self._begin)
        refitted = self._refit(begin, begin.labels)
        panel = refitted if refitted.value < begin.value else begin
        return Grouped(panel, panel.labels, 0.0, np.inf, done=False)

    def advance(self, state: Grouped) -> Grouped:
        """Assign and refit; done where no sample wants to change."""
        panel = _panel_of(state.point)
        labels = panel.choices
        idle = self._n_clusters - np.count_nonzero(np.bincount(labels))
        if idle == 0 and np.array_equal(labels, state.labels):
            return Grouped(panel, state.labels, 0.0, 0.0, done=True)
        trial = self._refit(panel, labels)
        gain = (panel.value - trial.value) / max(abs(panel.value), np.finfo(float).tiny)
        if gain <= ROUNDING:
            return Grouped(panel, state.labels, 0.0, 0.0, done=True)
        return Grouped(trial, trial.labels, 1.0, gain, done=False)

    def answer(self, state: Grouped) -> Answer:
        """The experts, and the best one for each sample."""
        panel = _panel_of(state.point)
        sharp = self._objective.fit_groups(panel.labels, SHARP, panel.W)
        panel = sharp if sharp.value < panel.value else panel
        if not np.array_equal(panel.choices, panel.labels):
            panel = self._objective.panel(panel.W, panel.intercept)
        return Answer(panel, panel.labels)

    def _refit(self, panel: Panel, labels: Labels) -> Panel:
        """The best experts for an assignment, with samples for those that have none."""
        labels = reseed(labels, panel.least, self._objective.response.shares, self._n_clusters)
        idle = self._n_clusters - panel.W.shape[0]
        start = np.concatenate([panel.W, np.zeros((idle, *panel.W.shape[1:]))])
        return self._objective.fit_groups(labels, self._tol, start)


def reseed(labels: Labels, least: Floats, shares: Floats, n_clusters: int) -> Labels:
    """Give idle experts the samples that are answered worst, if any are answered badly.

    Each takes samples that weigh a quarter of an even share together.

    Parameters
    ----------
    labels : ndarray of intp, shape (n,)
    least : ndarray of shape (n,)
        Cost of each sample.
    shares : ndarray of shape (n,)
    n_clusters : int

    Returns
    -------
    ndarray of intp, shape (n,)
    """
    idle = np.flatnonzero(np.bincount(labels, minlength=n_clusters) == 0)
    if idle.size == 0 or not least.any():
        return labels
    labels = labels.copy()
    worst_first = np.argsort(-least, kind="stable")
    totals = np.cumsum(shares[worst_first])
    quota = 0.25 / n_clusters
    ends = np.searchsorted(totals, quota * np.arange(1, idle.size + 1)) + 1
    for q, first, end in zip(idle, [0, *ends], ends, strict=False):
        labels[worst_first[first:end]] = q
    return labels


def _panel_of(point: Point) -> Panel:
    assert isinstance(point, Panel)
    return point
