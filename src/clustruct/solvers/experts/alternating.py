"""Alternating minimisation over experts and assignment, section 3.1 of the paper.

Every sample is assigned to the expert with the least cost, then every expert is fitted to its
samples. Neither can raise the objective (eq:cl-smp). An expert that loses all its samples is given
those with the largest costs: splitting a group cannot raise the objective either.
"""

from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np

from clustruct._typing import Floats, Labels
from clustruct.arrays import namespace, totals_by_code
from clustruct.design import Design, Rows
from clustruct.objectives.linear import Point
from clustruct.objectives.samples.objective import Panel, SampleObjective
from clustruct.solvers.driver import Grouped, Solution, gain_of, require

# Precision of the experts that are returned.
SHARP = 1e-10
ROUNDING = 1e-12
# Bisections of a cost, to the last bits.
HALVINGS = 64


@dataclass(eq=False)
class AlternatingMinimisation:
    """The solver: assign, refit, and so on.

    Shapes: intercept (Q, K).
    W (Q, d, K): weights of the experts to start from.
    n_clusters: how many experts there may be.
    tol: precision of the experts' fits on the way; the solution's is `SHARP`.
    """

    name = "am"

    objective: SampleObjective
    W: Floats
    intercept: Floats
    n_clusters: int
    _: KW_ONLY
    tol: float = 1e-6

    def __post_init__(self) -> None:
        require(self.name, self.objective, ("refit", "panel"))
        self.objective = self.objective.private()

    def start(self) -> Grouped:
        """The first experts, refitted to their samples if that is better."""
        begin = self.objective.panel(self.W, self.intercept)
        refitted = self._refit(begin, begin.labels)
        panel = refitted if refitted.value < begin.value else begin
        return Grouped(panel, panel.labels, step=0.0)

    def advance(self, state: Grouped) -> Grouped:
        """Assign and refit; done when no sample changes its expert."""
        panel = _panel_of(state.point)
        idle = self.n_clusters - np.count_nonzero(panel.demand)
        if idle == 0 and self._is_settled(panel):
            return Grouped(panel, panel.labels, step=0.0, gain=0.0, done=True)
        trial = self._refit(panel, panel.choices)
        gain = gain_of(panel.value, trial.value)
        if gain <= ROUNDING:
            return Grouped(panel, panel.labels, step=0.0, gain=0.0, done=True)
        return Grouped(trial, trial.labels, gain=gain)

    def solution(self, state: Grouped) -> Solution:
        """The experts at full precision, and the best one for each sample."""
        panel = _panel_of(state.point)
        sharp = self.objective.fit_groups(panel.labels, SHARP, panel.W)
        panel = sharp if sharp.value < panel.value else panel
        if not self._is_settled(panel):
            panel = self.objective.panel(panel.W, panel.intercept)
        return Solution(panel, panel.labels)

    def _is_settled(self, panel: Panel) -> bool:
        """Whether every sample is assigned to its best expert."""
        rows = (panel.choices, panel.labels)
        agree = self.objective.design.fold(
            lambda a, b: namespace(a).all(a == b), *rows, combine=min
        )
        return bool(agree)

    def _refit(self, panel: Panel, labels: Rows) -> Panel:
        """The best experts for an assignment, after idle experts have been given samples."""
        objective = self.objective
        shares = objective.response.shares
        if objective.design.on_host:
            labels = reseed(labels, panel.least, shares, self.n_clusters)
        else:
            rows = (labels, panel.least, shares)
            labels = reseed_elsewhere(objective.design, *rows, self.n_clusters)
        idle = self.n_clusters - panel.W.shape[0]
        start = np.concatenate([panel.W, np.zeros((idle, *panel.W.shape[1:]))])
        return self.objective.fit_groups(labels, self.tol, start)


def reseed(labels: Labels, least: Floats, shares: Floats, n_clusters: int) -> Labels:
    """Give idle experts the samples with the largest costs, unless all costs are zero.

    Each takes samples that together weigh a quarter of an even share.

    least (n,): cost of each sample.
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


def reseed_elsewhere(
    design: Design, labels: Rows, least: Rows, shares: Rows, n_clusters: int
) -> Rows:
    """The same without sorting, for rows not on the host; equal costs are treated alike."""
    weights = design.fold(partial(totals_by_code, n_codes=n_clusters), labels, shares)
    idle = np.flatnonzero(weights <= 0.0)
    largest = float(design.fold(lambda c: namespace(c).max(c), least, combine=max))
    if idle.size == 0 or largest <= 0.0:
        return labels
    quotas = 0.25 / n_clusters * np.arange(1, idle.size + 1)
    # Samples that cost at least `low` weigh at least their quota, those from `high` on less.
    low, high = np.zeros(idle.size), np.full(idle.size, np.nextafter(largest, np.inf))
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        enough = design.fold(partial(_weights_from, middle), least, shares) >= quotas
        low, high = np.where(enough, middle, low), np.where(enough, high, middle)
    return design.map(partial(_relabel, idle, low), labels, least)


def _weights_from(costs: Floats, least: Rows, shares: Rows) -> Any:
    """Weight of the rows that cost at least so much, for each of some costs."""
    xp = namespace(shares)
    return xp.stack([xp.sum(xp.where(least >= float(cost), shares, 0.0)) for cost in costs])


def _relabel(idle: Labels, costs: Floats, labels: Rows, least: Rows) -> Rows:
    """Give the costliest rows to the first idle expert, the next ones to the second, and so on."""
    for q, cost in zip(idle[::-1], costs[::-1], strict=True):
        labels = namespace(labels).where(least >= float(cost), int(q), labels)
    return labels


def _panel_of(point: Point) -> Panel:
    assert isinstance(point, Panel)
    return point
