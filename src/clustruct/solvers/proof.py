"""Branch and bound over all groupings: a proof that none is better than a given one.

A node is a `Part` of the groupings. Its lower bound comes from `clustruct.relaxations.split`; where
it reaches the objective of the best point known, the part holds nothing better. Otherwise a decision
divides it:

- a free row joins one of the anchors of its block (the two are merged, and the problem shrinks), or
  is apart from all of them and becomes an anchor itself. Each grouping of the part is in exactly
  one of these, whatever row is taken;
- or a block has at most, or at least, so many groups.

The tangent of a node bounds all these decisions at the cost of a dynamic program each. A decision
whose bound reaches the target is impossible. A row with one possible decision is decided at once,
without a branch, and the node is bounded again with the smaller problem. The decision taken at a
branch is that whose second best answer costs most: it is nearly settled, and merging rows tightens
the bound for those that are not.

Nodes are taken in the order of their bounds, so that the least bound of the open nodes, which is
that of all groupings, rises with each.
"""

import heapq
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import NamedTuple

import numpy as np

from clustruct._typing import Floats, Labels
from clustruct.grouping.constraints import FeatureConstraint, Limits
from clustruct.objectives.linear import Point
from clustruct.objectives.quadratic import QuadraticObjective
from clustruct.relaxations.split import (
    Choices,
    Part,
    Split,
    reduce_problem,
    whole,
)
from clustruct.solvers.driver import Solution
from clustruct.solvers.search.partition_problem import PartitionProblem


@dataclass(frozen=True)
class ProofSettings:
    """When a node is closed, and how much is spent on its bound."""

    # Relative differences below which two objectives are equal: rounding of both. The second is
    # relative to the objective of zero weights.
    equal: float = 1e-9
    rounding: float = 1e-13
    # How near the bound of a node comes to what its weights allow; see `Split.ascend`.
    close: float = 0.1
    # How often the first node chooses its weights, and how often the others do.
    n_first_weighings: int = 8
    n_weighings: int = 1


SETTINGS = ProofSettings()


class ProofStep(NamedTuple):
    """The state of a proof after a node."""

    n_nodes: int
    n_open: int
    objective: float
    bound: float
    seconds: float


@dataclass(frozen=True, eq=False)
class ProofResult:
    """What a proof came to.

    solution: the best grouping known: the given one, or a better one.
    bound: a lower bound of the objective of all groupings.
    n_nodes: nodes that were bounded.
    closed: whether no open node is left.
    improved: whether the solution is better than the given one.
    """

    solution: Solution
    bound: float
    n_nodes: int
    closed: bool
    improved: bool


def prove(
    objective: QuadraticObjective,
    constraint: FeatureConstraint,
    solution: Solution,
    *,
    max_nodes: int,
    time_limit: float | None = None,
    callback: Callable[[ProofStep], bool | None] | None = None,
) -> ProofResult:
    """Prove that no grouping is better than a solution, or find one that is.

    objective: of one output.
    constraint: with `limits`.
    time_limit: seconds; None for no limit.
    callback: called after each node; returns True to stop.
    """
    search = _Search(objective, constraint.limits(objective.shape[0]), solution)
    begin, n_nodes = time.perf_counter(), 0
    stopped = False
    while search.is_open and n_nodes < max_nodes and not stopped:
        search.advance()
        n_nodes += 1
        seconds = time.perf_counter() - begin
        step = ProofStep(n_nodes, search.n_open, search.value, search.bound, seconds)
        stopped = bool(callback(step)) if callback is not None else False
        stopped = stopped or (time_limit is not None and seconds > time_limit)
    return ProofResult(search.solution, search.bound, n_nodes, not search.is_open, search.improved)


class _Search:
    """The open nodes and the best grouping so far."""

    def __init__(self, objective: QuadraticObjective, limits: Limits, solution: Solution) -> None:
        self._objective, self._limits = objective, limits
        self._reduced = reduce_problem(objective, limits)
        self._numbers = count()
        self.solution = solution
        self.improved = False
        part = whole(self._reduced, limits, solution.point.W[:, 0])
        self._nodes: list[tuple[float, int, Part]] = [(-np.inf, next(self._numbers), part)]
        self._n_weighings = SETTINGS.n_first_weighings
        self._least_leaf = (
            np.inf
        )  # of single groupings whose objective is the target's but for rounding

    @property
    def value(self) -> float:
        """The least objective known."""
        return self.solution.point.value

    @property
    def target(self) -> float:
        """The bound at which a node is closed."""
        return self.value - SETTINGS.equal * self.value - SETTINGS.rounding * self._objective.scale

    @property
    def is_open(self) -> bool:
        """Whether a node may hold a better grouping."""
        return bool(self._nodes) and self._nodes[0][0] < self.target

    @property
    def n_open(self) -> int:
        """Number of nodes that may hold a better grouping, up to those closed by a better value."""
        return len(self._nodes)

    @property
    def bound(self) -> float:
        """A lower bound for all groupings."""
        least = self._nodes[0][0] if self._nodes else np.inf
        return max(min(self.target, least, self._least_leaf), self._objective.least)

    def advance(self) -> None:
        """Bound the node with the least bound, and close or divide it."""
        least, _, part = heapq.heappop(self._nodes)
        while True:
            split = self._bounded(part)
            least = max(least, split.bound.value)
            if least >= self.target:
                return
            if split.is_leaf:
                self._least_leaf = min(self._least_leaf, least)
                return
            choices, before = split.choices(), split.continued()
            decided = settle(before, choices, self.target)
            if decided is None:
                return
            if decided is before:
                break
            part = decided
        for bound, child in branches(before, choices, self.target):
            heapq.heappush(self._nodes, (max(least, bound), next(self._numbers), child))

    def _bounded(self, part: Part) -> Split:
        """The bound of a node, with weights that suit it."""
        split = Split(self._reduced, part)
        split.ascend(self.target, SETTINGS.close)
        self._offer(split)
        weighings, self._n_weighings = self._n_weighings, SETTINGS.n_weighings
        for _ in range(weighings):
            if split.bound.value >= self.target or split.is_leaf or split.is_singular:
                break
            split.reweigh()
            split.ascend(self.target, SETTINGS.close)
            self._offer(split)
        return split

    def _offer(self, split: Split) -> None:
        """Take the best grouping of a node if it is better than all before."""
        if split.found >= self.target:
            return
        labels = self._labels(split.groups)
        point = self._objective.refit(labels, int(labels.max()) + 1, 0.0)
        if point.value < self.target:
            self.solution, self.improved = Solution(point, labels), True

    def _labels(self, groups: Labels) -> Labels:
        """Groups of all features; those outside of the reduced problem are alone."""
        d = self._objective.shape[0]
        everywhere = d + np.arange(d)
        everywhere[self._reduced.features] = groups
        labels: Labels = np.unique(everywhere, return_inverse=True)[1].reshape(-1).astype(np.intp)
        return labels


def settle(part: Part, choices: list[Choices], target: float) -> Part | None:
    """Decide what has one possible answer; None if something has none."""
    for each in choices:
        b = each.block
        counts = np.arange(each.at_most.size)
        least = max(part.least[b], int(counts[each.at_most < target].min(initial=counts.size)))
        most = min(part.most[b], int(counts[each.at_least < target].max(initial=0)))
        possible = each.joined < target
        if least > most or not possible.any(axis=1).all():
            return None
        if (least, most) != (part.least[b], part.most[b]):
            part = part.counted(b, least, most)
            if most == 1:
                continue
        anchors = part.members[b][: part.n_anchors[b]]
        rows = [part.members[b][place] for place in each.rows]
        new = None
        for row in np.flatnonzero(possible.sum(axis=1) == 1):
            answer = int(possible[row].argmax())
            if answer < len(anchors):
                part = part.together(b, rows[row], anchors[answer])
            elif new is None:  # two rows apart from all anchors need not be apart from each other
                new = rows[row]
        if new is not None:
            part = part.apart(b, new)
    return part


def branches(part: Part, choices: list[Choices], target: float) -> Iterator[tuple[float, Part]]:
    """The parts that the most telling decision leaves, with their bounds."""
    best, decision = -np.inf, None
    for each in choices:
        ordered = np.sort(np.minimum(each.joined, target), axis=1)
        if ordered.shape[0] and ordered[:, 1].max() > best:
            best = float(ordered[:, 1].max())
            decision = (each, int(ordered[:, 1].argmax()), None)
        for most in range(part.least[each.block], part.most[each.block]):
            second = min(max(each.at_most[most], each.at_least[most + 1]), target)
            if second > best:
                best, decision = second, (each, None, most)
    if decision is None:  # without a tangent all rows are alike
        yield from _plain_branches(part)
        return
    each, row, most = decision
    b = each.block
    if row is None:
        yield float(each.at_most[most]), part.counted(b, part.least[b], most)
        yield float(each.at_least[most + 1]), part.counted(b, most + 1, part.most[b])
        return
    for answer, bound in enumerate(each.joined[row]):
        if bound < target:
            yield float(bound), _decided(part, b, int(each.rows[row]), answer)


def _plain_branches(part: Part) -> Iterator[tuple[float, Part]]:
    """The parts for the first free row of the largest block that has one."""
    blocks = [b for b, rows in enumerate(part.members) if len(rows) > part.n_anchors[b]]
    b = max(blocks, key=lambda block: len(part.members[block]))
    for answer in range(part.n_anchors[b] + 1):
        child = _decided(part, b, part.n_anchors[b], answer)
        if child.n_anchors[b] <= child.most[b] and sum(child.least) <= child.total:
            yield -np.inf, child


def _decided(part: Part, block: int, place: int, answer: int) -> Part:
    """The part in which a row of a block joins the anchor of that number, or becomes the next."""
    row = part.members[block][place]
    if answer == part.n_anchors[block]:
        return part.apart(block, row)
    return part.together(block, row, part.members[block][answer])
