"""Search for the best groups of features, also with fewer samples than features.

Two ways lead to new partitions, and all that they find is polished by moves of single features with
an exact refit (`PartitionProblem.descend`):

* message passing from random levels, which often lands on the best partition, or near it;
* changes to the best of these partitions, which lead from near it to it: groups are merged and
  split, and partitions are annealed.

They take turns. Among the many local optima of a hard problem the best one stands out by being
found over and over again, from starts that have nothing in common: then the search is over.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple

import numpy as np

from clustruct._threads import one_thread
from clustruct._typing import Floats, Labels
from clustruct.grouping.constraints import Places
from clustruct.objectives.features.objective import FeatureObjective
from clustruct.objectives.linear import Point
from clustruct.objectives.quadratic import QuadraticObjective
from clustruct.solvers.driver import Grouped, Solution, gain_of, require
from clustruct.solvers.projected_gradient import same_groups
from clustruct.solvers.search.message_passing import MessagePassing
from clustruct.solvers.search.partition_problem import PartitionProblem


@dataclass(frozen=True)
class SearchSettings:
    """Constants of the search that no user sets."""

    # Values that differ by less than this share of ||Y||^2 / S count as one partition.
    same: float = 1e-10
    # Annealing starts and ends at these multiples of 2 f / d, where f is the value of the
    # partition: about where it melts, and where it is frozen.
    temperatures: tuple[float, float] = (5.0, 0.3)
    # Number of partitions made of each good one by merging and splitting groups.
    n_regrouped: int = 32
    # Number of partitions annealed between two checks whether the search is over.
    chunk: int = 8


SETTINGS = SearchSettings()


@dataclass(frozen=True)
class Effort:
    """How long to search; the options of ``solver="soft"``.

    n_turns: how often message passing and annealing take turns.
    n_starts: starts of message passing in a turn.
    n_annealed: partitions annealed in a turn: the best of all and the next best of its starts.
    n_sweeps: sweeps over the features while a partition is annealed.
    n_repeats: the search is over when the best partition has been found this often.
    """

    n_turns: int = 4
    n_starts: int = 512
    n_annealed: int = 32
    n_sweeps: int = 600
    n_repeats: int = 10


class Found(NamedTuple):
    """The best partition: its labels (-1 for the zero group) and its value."""

    labels: Labels
    value: float


def search(
    problem: PartitionProblem,
    rng: np.random.Generator,
    *,
    effort: Effort | None = None,
    starts: Labels | None = None,
) -> Found:
    """Find the partition of least value, or one that is hard to improve.

    The same state of the generator gives the same solution, whatever the number of threads.

    starts (m, d): partitions to improve on, such as the solutions of other solvers.
    """
    effort = effort or Effort()
    pool = _Pool(problem, effort)
    # One thread: with more, the order of the sums and so the last digits depend on their number.
    with one_thread():
        if starts is not None:
            pool.add(np.array(starts, dtype=np.intp, order="C"))
        for labels, origin in _candidates(problem, pool, effort, rng):
            pool.add(labels, origin)
    return Found(pool.labels[0], max(float(pool.values[0]), 0.0))


class _Pool:
    """The best partitions of a turn and their values, no two of them the same, best first."""

    def __init__(self, problem: PartitionProblem, effort: Effort) -> None:
        self._problem = problem
        self._size = effort.n_annealed
        self._n_repeats = effort.n_repeats
        self._n_hits = 0
        self._margin = SETTINGS.same * problem.constant
        self.labels: Labels = np.empty((0, problem.n_features), dtype=np.intp)
        self.values: Floats = np.empty(0)

    @property
    def is_settled(self) -> bool:
        """Whether the best partition has been found often enough, or fits exactly."""
        return self._n_hits >= self._n_repeats or bool(self.values[0] <= self._margin)

    def add(self, labels: Labels, origin: Floats | float = np.inf) -> None:
        """Polish partitions and keep the good ones.

        ``origin`` holds the values of the partitions that these were made from: one made from the
        best does not count as finding the best again.
        """
        values = 0.5 * self._problem.constant - self._problem.descend(labels)
        least = values.min()
        if self.values.size and self.values[0] <= least + self._margin:
            least = self.values[0]
        else:
            self._n_hits = 0
        found = (values <= least + self._margin) & (origin > least + self._margin)
        self._n_hits += int(np.count_nonzero(found))
        labels = np.concatenate([self.labels, labels])
        values = np.concatenate([self.values, values])
        order = np.argsort(values, kind="stable")
        distinct = np.diff(values[order], prepend=-np.inf) > self._margin
        order = order[distinct][: self._size]
        self.labels, self.values = labels[order], values[order]

    def forget(self) -> None:
        """Keep the best partition only, so that the next turn starts afresh."""
        self.labels, self.values = self.labels[:1], self.values[:1]


def _candidates(
    problem: PartitionProblem, pool: _Pool, effort: Effort, rng: np.random.Generator
) -> Iterator[tuple[Labels, Floats | float]]:
    """Partitions worth polishing, and the values of those that they were made from."""
    if not (problem.constant > 0 and np.trace(problem.gram) > 0):
        # The targets or the columns are constant: one partition is as good as another.
        yield problem.random_labels(1, rng), np.inf
        return
    passing = MessagePassing(problem)
    for _ in range(effort.n_turns):
        # Cheap, and good enough if there are many samples.
        yield problem.random_labels(passing.batch, rng), np.inf
        for begin in range(0, effort.n_starts, passing.batch):
            yield passing.draw(min(passing.batch, effort.n_starts - begin), rng), np.inf
            if pool.is_settled:
                break
        for row in pool.labels:
            # Many of them may end in one place, which says little: they do not count.
            yield _regrouped(problem, row, rng), -np.inf
        labels, values = pool.labels, pool.values
        for begin in range(0, len(labels), SETTINGS.chunk):
            if pool.is_settled:
                return
            chunk = slice(begin, begin + SETTINGS.chunk)
            yield _annealed(problem, labels[chunk], values[chunk], effort, rng), values[chunk]
        pool.forget()


def _regrouped(problem: PartitionProblem, labels: Labels, rng: np.random.Generator) -> Labels:
    """Partitions in which a group joins the nearest one and another one is split.

    Single moves cannot reach them. The groups are those of two random features; the split follows
    the signs of the residuals along their main direction.
    """
    first, last = problem.ranges
    centers, residuals = problem.centers(labels), problem.residuals(labels)
    regrouped = np.tile(labels, (SETTINGS.n_regrouped, 1))
    features = rng.integers(problem.n_features, size=(SETTINGS.n_regrouped, 2))
    for row, (joining, other) in zip(regrouped, features, strict=True):
        begin, end, group = first[joining], last[joining], labels[joining]
        if group < 0 or end - begin == 1 or not begin <= labels[other] < end:
            continue
        distances = np.square(centers[begin:end] - centers[group]).sum(axis=1)
        distances[group - begin] = np.inf
        row[labels == group] = begin + distances.argmin()
        split = np.flatnonzero(row == row[other])
        direction = np.linalg.svd(residuals[split], full_matrices=False)[2][0]
        row[split[residuals[split] @ direction > 0]] = group
    return regrouped


def _annealed(
    problem: PartitionProblem,
    labels: Labels,
    values: Floats,
    effort: Effort,
    rng: np.random.Generator,
) -> Labels:
    """Partitions after annealing, each at temperatures that suit its value."""
    labels = labels.copy()
    scale = np.geomspace(*SETTINGS.temperatures, effort.n_sweeps) * (2.0 / problem.n_features)
    for row, value in zip(labels, values, strict=True):
        problem.anneal(row, value * scale, rng)
    return labels


@dataclass(eq=False)
class Soft:
    """The solver: a search over partitions, from a feasible start.

    The search needs a quadratic. Other losses are modelled by one at the current point; the groups
    found are refitted with the loss itself and modelled anew, as long as the objective falls.

    places: the groups that the search has to improve, and those that each feature may be in.
    known: the point of these groups with their best values, if it is known.
    tol: precision of the refit.
    """

    name = "soft"

    objective: QuadraticObjective | FeatureObjective
    places: Places
    _: KW_ONLY
    effort: Effort
    rng: np.random.Generator
    known: Point | None = None
    tol: float = 1e-10

    def __post_init__(self) -> None:
        require(self.name, self.objective, ("quadratic_model", "refit"))

    def start(self) -> Grouped:
        """The groups of the start, refitted."""
        labels, point = self.places.labels, self.known
        if point is None:
            point = self.objective.refit(labels, self.places.n_groups, self.tol)
        return Grouped(point, labels, step=0.0)

    def advance(self, state: Grouped) -> Grouped:
        """Search the model at the current point. One search settles the squared loss."""
        labels = search(
            self._model(state.point), self.rng, effort=self.effort, starts=state.labels[None, :]
        ).labels
        point = state.point
        if not same_groups(labels, state.labels):
            point = self.objective.refit(labels, self.places.n_groups, self.tol)
        if not point.value < state.objective:
            return Grouped(state.point, state.labels, step=0.0, gain=0.0, done=True)
        gain = gain_of(state.objective, point.value)
        return Grouped(point, labels, gain=gain, done=self.objective.quadratic)

    def _model(self, point: Point) -> PartitionProblem:
        model, places = self.objective.quadratic_model(point), self.places
        return PartitionProblem(
            gram=model.gram,
            moment=model.moment,
            constant=2.0 * model.constant,
            alpha=float(model.penalties[0]),
            n_clusters=places.n_groups,
            first=places.first,
            last=places.last,
            n_nonzero=places.n_nonzero,
        )

    def solution(self, state: Grouped) -> Solution:
        """The point itself."""
        return Solution(state.point, state.labels)
