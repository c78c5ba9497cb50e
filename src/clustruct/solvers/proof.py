"""Branch and bound over all groupings: a proof that none is better than a given one.

A node is a `Part` of the groupings. Its lower bound comes from `clustruct.relaxations.split`; where
it reaches the objective of the best point known, the part holds nothing better. Otherwise a
decision divides it:

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
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count

import numpy as np

from clustruct._typing import Labels
from clustruct.grouping.constraints import Limits
from clustruct.kernels.fits.reassign import descend
from clustruct.objectives.quadratic import QuadraticObjective
from clustruct.relaxations.parts import Part, reduce_problem, whole
from clustruct.relaxations.split import Choices, Split
from clustruct.results import Iteration
from clustruct.solvers.driver import Budget, Callback, Run, Solution, State, drive
from clustruct.solvers.search.partition_problem import MAX_SWEEPS


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
    # New weights that gain less than this share of what is missing are the last ones.
    least_gain: float = 0.05


SETTINGS = ProofSettings()


@dataclass(frozen=True, eq=False, kw_only=True)
class ProofState(State):
    """A proof after some nodes; `gain` and `step` are the relative gap.

    solution: the best grouping known.
    bound: a lower bound of the objective of all groupings.
    n_open: nodes that are left.
    """

    solution: Solution
    bound: float
    n_open: int


def prove(
    objective: QuadraticObjective,
    limits: Limits,
    solution: Solution,
    *,
    max_nodes: int,
    time_limit: float | None = None,
    callback: Callback | None = None,
) -> Run[ProofState]:
    """Prove that no grouping is better than a solution, or find one that is.

    The run has converged if no grouping is left to look at.

    objective: of one output.
    time_limit: seconds; None for no limit.
    callback: called after each node; returns True to stop.
    """
    begin = time.perf_counter()

    def monitor(iteration: Iteration) -> bool:
        stopped = callback is not None and bool(callback(iteration))
        late = time_limit is not None and time.perf_counter() - begin > time_limit
        return stopped or late

    proof = Proof(objective, limits, solution)
    return drive(proof, Budget(max_nodes, 0.0, monitor, quiet=True))


class Proof:
    """The open nodes and the best grouping so far, as a solver whose steps are nodes."""

    name = "proof"
    steps = "nodes"

    def __init__(self, objective: QuadraticObjective, limits: Limits, solution: Solution) -> None:
        self._objective, self._blocks = objective, limits.blocks
        self._normal = np.ascontiguousarray(objective.gram + np.diag(objective.penalties))
        self._moment = np.ascontiguousarray(objective.moment)
        self._seen: set[bytes] = set()  # groupings that have been offered
        self._reduced = reduce_problem(objective, limits)
        # Features of blocks that are not in the reduced problem, and for each block a feature that
        # they may join.
        self._spare = limits.blocks >= 0
        self._spare[self._reduced.features] = False
        order = np.argsort(self._spare, kind="stable")
        self._first = [order[limits.blocks[order] == b][0] for b in range(limits.most.size)]
        self._numbers = count()  # equal bounds are taken in the order of their nodes
        self._best = solution
        part = whole(self._reduced, limits, solution.point.W[:, 0])
        self._nodes: list[tuple[float, int, Part]] = [(-np.inf, next(self._numbers), part)]
        self._n_weighings = SETTINGS.n_first_weighings

    def start(self) -> ProofState:
        """Nothing is proved yet."""
        return self._state()

    def advance(self, state: ProofState) -> ProofState:
        """Bound the node with the least bound, and close or divide it."""
        self._examine(*heapq.heappop(self._nodes))
        return self._state()

    def solution(self, state: ProofState) -> Solution:
        """The best grouping known."""
        return state.solution

    def remark(self, state: ProofState) -> str:
        """The gap that is left."""
        return f"gap of {100 * state.step:.2g} % left"

    def _state(self) -> ProofState:
        """The state after the nodes so far."""
        value = self._best.point.value
        least = self._nodes[0][0] if self._nodes else np.inf
        done = least >= self.target
        # Closed up to rounding is closed.
        bound = value if done else max(least, self._objective.least)
        gap = (value - bound) / value if value > 0.0 else 0.0
        return ProofState(
            objective=value,
            step=gap,
            gain=gap if gap > 0.0 else np.inf,
            done=done,
            solution=self._best,
            bound=bound,
            n_open=len(self._nodes),
        )

    @property
    def target(self) -> float:
        """The bound at which a node is closed."""
        value = self._best.point.value
        return value - SETTINGS.equal * value - SETTINGS.rounding * self._objective.scale

    def _examine(self, least: float, number: int, part: Part) -> None:
        """Bound a node, decide what can be decided, and divide the rest."""
        while not part.is_empty:
            split = self._bounded(part)
            least = max(least, split.bound.value)
            if least >= self.target or split.is_leaf:  # a leaf has been offered
                return
            choices, before = split.choices(), split.continued()
            decided = settle(before, choices, self.target)
            if decided is None:
                return
            if decided is before:
                for bound, child in branches(before, choices, self.target):
                    heapq.heappush(self._nodes, (max(least, bound), next(self._numbers), child))
                return
            part = decided

    def _bounded(self, part: Part) -> Split:
        """The bound of a node, with weights that suit it."""
        split = Split(self._reduced, part)
        split.ascend(self.target, SETTINGS.close)
        self._offer(split)
        weighings, self._n_weighings = self._n_weighings, SETTINGS.n_weighings
        for _ in range(weighings):
            if split.bound.value >= self.target or split.is_leaf or split.is_singular:
                break
            before = split.bound.value
            split.reweigh()
            split.ascend(self.target, SETTINGS.close)
            self._offer(split)
            if split.bound.value - before < SETTINGS.least_gain * (self.target - before):
                break
        return split

    def _offer(self, split: Split) -> None:
        """Improve the best grouping of a node by single moves, and take it if it is the best."""
        labels = self._labels(split.groups)
        key = labels.tobytes()
        if not np.isfinite(split.found) or key in self._seen:
            return
        self._seen.add(key)
        n_groups = int(labels.max()) + 1
        first, last = self._ranges(labels, n_groups)
        moved = labels[None, :].copy()
        descend(self._normal, self._moment, first, last, n_groups, -1, moved, MAX_SWEEPS)
        for offered in (labels, moved[0]):
            point = self._objective.refit(offered, n_groups, 0.0)
            if point.value < self.target:
                self._best = Solution(point, offered)

    def _labels(self, groups: Labels) -> Labels:
        """Groups of all features, those of a block side by side.

        Features outside of blocks are alone; those that cost nothing join another of their block.
        """
        features = self._reduced.features
        everywhere = np.arange(self._objective.shape[0])
        for block in range(int(self._blocks.max(initial=-1)) + 1):
            everywhere[self._blocks == block] = self._first[block]
        everywhere[features] = features[groups]
        # The feature that stands for the first one of the block need not be that one.
        everywhere = np.where(self._spare, everywhere[everywhere], everywhere)
        found = np.unique(np.stack([self._blocks, everywhere]), axis=1, return_inverse=True)
        return found[1].reshape(-1).astype(np.intp)

    def _ranges(self, labels: Labels, n_groups: int) -> tuple[Labels, Labels]:
        """The first group where each feature may be, and the one after the last."""
        first, last = labels.copy(), labels + 1
        block_of = np.empty(n_groups, dtype=np.intp)
        block_of[labels] = self._blocks
        inside = self._blocks >= 0
        first[inside] = np.searchsorted(block_of, self._blocks[inside])
        last[inside] = np.searchsorted(block_of, self._blocks[inside], side="right")
        return first, last


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
    best, divide = -np.inf, partial(_without_tangent, part)
    for each in choices:
        second = np.sort(np.minimum(each.joined, target), axis=1)[:, 1]
        if second.size and second.max() > best:
            best = float(second.max())
            divide = partial(_by_row, part, each, int(second.argmax()), target)
        for most in range(part.least[each.block], part.most[each.block]):
            dearer = min(max(each.at_most[most], each.at_least[most + 1]), target)
            if dearer > best:
                best = dearer
                divide = partial(_by_count, part, each, most)
    return divide()


def _by_row(part: Part, each: Choices, row: int, target: float) -> Iterator[tuple[float, Part]]:
    """The parts for the possible decisions about a row."""
    for answer, bound in enumerate(each.joined[row].tolist()):
        if bound < target:
            yield bound, _decided(part, each.block, int(each.rows[row]), answer)


def _by_count(part: Part, each: Choices, most: int) -> Iterator[tuple[float, Part]]:
    """The parts with at most so many groups in a block, and with more."""
    b = each.block
    yield float(each.at_most[most]), part.counted(b, part.least[b], most)
    yield float(each.at_least[most + 1]), part.counted(b, most + 1, part.most[b])


def _without_tangent(part: Part) -> Iterator[tuple[float, Part]]:
    """The parts for the first free row of the largest block that has one."""
    blocks = [b for b, rows in enumerate(part.members) if len(rows) > part.n_anchors[b]]
    b = max(blocks, key=lambda block: len(part.members[block]))
    for answer in range(part.n_anchors[b] + 1):
        yield -np.inf, _decided(part, b, part.n_anchors[b], answer)


def _decided(part: Part, block: int, place: int, answer: int) -> Part:
    """The part in which a row of a block joins the anchor of that number, or becomes the next."""
    row = part.members[block][place]
    if answer == part.n_anchors[block]:
        return part.apart(block, row)
    return part.together(block, row, part.members[block][answer])
