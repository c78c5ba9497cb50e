"""Search for the best groups of features, also with fewer samples than features.

Several *routes* lead to new partitions, and all that they find is polished by moves of single
features with an exact refit (`PartitionProblem.descend`):

* random partitions, which are good enough if there are many samples;
* message passing from random levels, which often lands on the best partition, or near it;
* message passing from the mean of a few good partitions, which keeps what they agree on;
* changes to the best partitions, which lead from near the best to it: groups are merged and split,
  single features get a group of their own, and partitions are annealed, correlated features in
  pairs.

They take turns, until the best partition was found over and over again. That alone says little:
starts of one route share a bias and may well agree on a poor optimum. So the best partition also
has to stand out, much nearer than the others to the value without groups, or two routes have to
find it.
"""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field, replace
from math import ceil
from typing import NamedTuple

import numpy as np

from clustruct._finite import require_finite
from clustruct._interrupts import asked
from clustruct._progress import counting
from clustruct._threads import one_thread
from clustruct._typing import Floats, Indices, Labels
from clustruct.grouping.constraints import Places
from clustruct.grouping.rows import group_totals
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
    # Number of partitions made of each good one by merging and splitting groups. In this many of
    # those made of each of the few best ones, a single feature is split off. A search that is
    # settled regroups only these few.
    n_regrouped: int = 32
    n_ejected: int = 8
    n_ejecting: int = 4
    # Partitions of a family that is crossed, and generations in a turn.
    n_parents: int = 3
    n_generations: int = 10
    # The best partition stands out if its distance from the value without groups is below this
    # share of the median distance.
    outstanding: float = 0.5
    # Number of partitions annealed between two checks whether the search is over.
    chunk: int = 8


SETTINGS = SearchSettings()


@dataclass(frozen=True)
class Effort:
    """How long to search; the options of ``solver="soft"``.

    n_turns: how often message passing and annealing take turns; not a limit with a time limit.
    n_starts: starts of message passing in a turn.
    n_annealed: partitions annealed in a turn: the best of all and the next best of its starts.
    n_sweeps: sweeps over the features while a partition is annealed.
    n_repeats: the search is over when the best partition has been found this often, and stands out
        or was found by two routes half as often each.
    n_crossed: families that are crossed in a generation.
    in_pairs: whether correlated features are moved in pairs as well.
    time_limit: seconds after which the search ends, and until which it goes on; None for no limit.
    """

    n_turns: int = 5
    n_starts: int = 512
    n_annealed: int = 32
    n_sweeps: int = 600
    n_repeats: int = 10
    n_crossed: int = 128
    in_pairs: bool = True
    time_limit: float | None = None


# The routes, as the status names them. Partitions by the last one do not count as found again:
# many of them end in one place.
START, RANDOM, PASSING = "the start", "random starts", "message passing"
CROSSING, ANNEALING, REGROUPING = "crossing", "annealing", "merging and splitting"
N_ROUTES = 5


class Found(NamedTuple):
    """The best partition: its labels (-1 for the zero group), its value, and who found it.

    finder: the route that found it first.
    routes: how often each route found it, from partitions that were not the best themselves.
    timed_out: whether the time limit ended the search.
    interrupted: whether Ctrl-C did.
    """

    labels: Labels
    value: float
    finder: str
    routes: Counter[str]
    timed_out: bool
    interrupted: bool = False

    @property
    def in_words(self) -> str:
        """How often the best partition was found, and by which routes."""
        n_found = self.routes.total()
        told = f"found once, by {self.finder}"
        if n_found > 1:
            names = ", ".join(sorted(self.routes))
            told = f"found by {len(self.routes)} of {N_ROUTES} routes, {n_found} times: {names}"
        if self.timed_out or self.interrupted:
            told += f"; stopped by {'time_limit' if self.timed_out else 'Ctrl-C'}"
        return told


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
    begin, limit = time.perf_counter(), effort.time_limit
    timed_out, interrupted, turn = False, False, 0
    pool = _Pool(problem, effort)
    things, most = ("turns", effort.n_turns) if limit is None else ("seconds", ceil(limit))
    # One thread: with more, the order of the sums and so the last digits depend on their number.
    with one_thread(), counting(things, most, at_most=True, measure="value") as count:
        if starts is not None:
            pool.add(np.array(starts, dtype=np.intp, order="C"), np.inf, START)
        for labels, origin, route in _candidates(problem, pool, effort, rng):
            pool.add(labels, origin, route)
            turn += route == RANDOM  # every turn begins with them
            seconds = time.perf_counter() - begin
            done = turn - 1 if limit is None else int(seconds)
            count.tick(float(pool.values[0]), done=done)
            if limit is not None and seconds > limit:
                timed_out = not pool.is_settled
                break
            if asked():
                interrupted = True
                break
    value = max(float(pool.values[0]), 0.0)
    return Found(pool.labels[0], value, pool.finder, pool.routes, timed_out, interrupted)


class _Pool:
    """The best partitions of a turn and their values, no two of them the same, best first."""

    def __init__(self, problem: PartitionProblem, effort: Effort) -> None:
        self._problem = problem
        self._size = effort.n_annealed
        self._n_repeats = effort.n_repeats
        self.finder = START
        self.routes: Counter[str] = Counter()
        self._margin = SETTINGS.same * problem.constant
        self.labels: Labels = np.empty((0, problem.n_features), dtype=np.intp)
        self.values: Floats = np.empty(0)

    @property
    def is_settled(self) -> bool:
        """Whether the best partition has been found often enough, or fits exactly.

        Starts of one route share a bias. So it also has to stand out from the others, or two routes
        must have found it half as often each. Crossing does not count: it begins where other
        routes ended.
        """
        best, often = self.values[0], self._n_repeats
        if best <= self._margin:
            return True
        excess = self.values - self._problem.floor
        stands_out = excess[0] < SETTINGS.outstanding * np.median(excess)
        counts = [n for route, n in self.routes.items() if route != CROSSING]
        agreeing = sum(n >= 0.5 * often for n in counts)
        return bool(sum(counts) >= often and (agreeing > 1 or stands_out))

    def add(self, labels: Labels, origin: Floats | float, route: str) -> None:
        """Polish partitions and keep the good ones.

        ``origin`` holds the values of the partitions that these were made from: one made from the
        best does not count as finding the best again.
        """
        self._keep(labels, self._problem.descend(labels), origin, route)

    def add_pairs(self, n_best: int) -> None:
        """Polish the best partitions by moves of pairs; none of them counts as found again."""
        labels = self.labels[:n_best].copy()
        self._keep(labels, self._problem.descend(labels, in_pairs=True), -np.inf, ANNEALING)

    def _keep(self, labels: Labels, explained: Floats, origin: Floats | float, route: str) -> None:
        """Keep the good ones of polished partitions, and count how often the best was found."""
        values = 0.5 * self._problem.constant - explained
        finite = np.isfinite(values)
        if not finite.any():
            require_finite(values, "the objective", "solver 'soft'")
        values = np.where(finite, values, np.inf)
        least = values.min()
        if self.values.size and self.values[0] <= least + self._margin:
            least = self.values[0]
        else:
            self.routes.clear()
            self.finder = route
        found = (values <= least + self._margin) & (origin > least + self._margin)
        if found.any():
            self.routes[route] += int(np.count_nonzero(found))
        labels = np.concatenate([self.labels, labels[finite]])
        values = np.concatenate([self.values, values[finite]])
        order = np.argsort(values, kind="stable")
        distinct = np.diff(values[order], prepend=-np.inf) > self._margin
        order = order[distinct][: self._size]
        self.labels, self.values = labels[order], values[order]

    def forget(self) -> None:
        """Keep the best partition only, so that the next turn starts afresh."""
        self.labels, self.values = self.labels[:1], self.values[:1]


def _candidates(
    problem: PartitionProblem, pool: _Pool, effort: Effort, rng: np.random.Generator
) -> Iterator[tuple[Labels, Floats | float, str]]:
    """Partitions worth polishing, the values of those that they were made from, and the route."""
    if not (problem.constant > 0 and np.trace(problem.gram) > 0):
        # The targets or the columns are constant: one partition is as good as another.
        yield problem.random_labels(1, rng), np.inf, RANDOM
        return
    passing = MessagePassing(problem)
    turn = 0
    while turn < effort.n_turns or (effort.time_limit is not None and effort.n_turns):
        turn += 1
        # Cheap, and good enough if there are many samples.
        yield problem.random_labels(passing.batch, rng), np.inf, RANDOM
        for begin in range(0, effort.n_starts, passing.batch):
            n_starts = min(passing.batch, effort.n_starts - begin)
            yield passing.draw(n_starts, rng), np.inf, PASSING
            if pool.is_settled:
                break
        for _ in range(SETTINGS.n_generations if effort.n_crossed else 0):
            # What crossing has found often it will find again.
            exhausted = pool.routes[CROSSING] >= turn * effort.n_repeats
            if exhausted or pool.is_settled or len(pool.labels) < SETTINGS.n_parents:
                break
            yield *_crossed(problem, passing, pool, effort.n_crossed, rng), CROSSING
        n_regrouped = SETTINGS.n_ejecting if pool.is_settled else len(pool.labels)
        for rank, row in enumerate(pool.labels[:n_regrouped]):
            # Many of them may end in one place, which says little: they do not count.
            n_ejected = SETTINGS.n_ejected if rank < SETTINGS.n_ejecting else 0
            yield _regrouped(problem, row, n_ejected, rng), -np.inf, REGROUPING
        if effort.in_pairs and problem.partners.size:
            pool.add_pairs(1 if pool.is_settled else len(pool.labels))
        labels, values = pool.labels, pool.values
        for begin in range(0, len(labels), SETTINGS.chunk):
            if pool.is_settled:
                return
            chunk = slice(begin, begin + SETTINGS.chunk)
            annealed = _annealed(problem, labels[chunk], values[chunk], effort, rng)
            yield annealed, values[chunk], ANNEALING
        pool.forget()


def _crossed(
    problem: PartitionProblem,
    passing: MessagePassing,
    pool: _Pool,
    n_families: int,
    rng: np.random.Generator,
) -> tuple[Labels, Floats]:
    """What message passing finds from families of partitions, and the least value in each."""
    parents = rng.integers(len(pool.labels), size=(n_families, SETTINGS.n_parents))
    centers = np.stack([problem.centers(row) for row in pool.labels])
    weights = np.stack(
        [
            np.where(row[:, None] >= 0, values[row], 0.0)
            for row, values in zip(pool.labels, centers, strict=True)
        ]
    )
    labels = passing.cross(weights[parents], centers[parents[:, 0]], rng)
    return labels, pool.values[parents].min(axis=1)


def _regrouped(
    problem: PartitionProblem, labels: Labels, n_ejected: int, rng: np.random.Generator
) -> Labels:
    """Partitions in which a group joins the nearest one and another one is split.

    Single moves cannot reach them. The groups are those of two random features; the split follows
    the signs of the residuals along their main direction. In the first `n_ejected` of them it takes
    a single feature out instead.
    """
    first, last = problem.ranges
    centers, residuals = problem.centers(labels), problem.residuals(labels)
    regrouped = np.tile(labels, (SETTINGS.n_regrouped, 1))
    pairs = rng.integers(problem.n_features, size=(SETTINGS.n_regrouped, 2))
    for number, (joining, other) in enumerate(pairs):
        row = regrouped[number]
        begin, end, group = first[joining], last[joining], labels[joining]
        if group < 0 or end - begin == 1 or not begin <= labels[other] < end:
            continue
        distances = np.square(centers[begin:end] - centers[group]).sum(axis=1)
        distances[group - begin] = np.inf
        row[labels == group] = begin + distances.argmin()
        if number < n_ejected:
            features = np.flatnonzero((first == begin) & (row >= 0))
            row[_loneliest(problem, row, features, rng)] = group
            continue
        split = np.flatnonzero(row == row[other])
        direction = np.linalg.svd(residuals[split], full_matrices=False)[2][0]
        row[split[residuals[split] @ direction > 0]] = group
    return regrouped


def _loneliest(
    problem: PartitionProblem, labels: Labels, features: Indices, rng: np.random.Generator
) -> int:
    """One of the features that gain most by a weight of their own, with the others held.

    With the residual ``r`` and ``a = A_jj`` that is ``r'r / 2a``.
    """
    gains = np.square(problem.residuals(labels)[features]).sum(axis=1)
    gains /= np.maximum(np.diagonal(problem.gram)[features], np.finfo(np.float64).tiny)
    most = np.argsort(-gains, kind="stable")[: SETTINGS.n_ejected]
    return int(rng.choice(features[most]))


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
        problem.anneal(row, value * scale, rng, in_pairs=effort.in_pairs)
    return labels


@dataclass(eq=False)
class Soft:
    """The solver: a search over partitions, from a feasible start.

    The search needs a quadratic. Other losses are modelled by one at the current point; the groups
    found are refitted with the loss itself and modelled anew, as long as the objective falls.

    places: the groups that the search has to improve, and those that each feature may be in.
    known: the point of these groups with their best values, if it is known.
    anchor: a point whose model is searched first, such as that without groups.
    tol: precision of the refit.
    """

    name = "soft"
    steps = ""  # the search counts its turns

    objective: QuadraticObjective | FeatureObjective
    places: Places
    _: KW_ONLY
    effort: Effort
    rng: np.random.Generator
    known: Point | None = None
    anchor: Point | None = None
    tol: float = 1e-10
    found: Found | None = field(default=None, init=False)  # by the last search
    _begin: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        require(self.name, self.objective, ("quadratic_model", "refit"))

    def start(self) -> Grouped:
        """The groups of the start, refitted."""
        self._begin = time.perf_counter()
        labels, point = self.places.labels, self.known
        if self.anchor is not None:
            starts = labels[None, :]
            model = self._model(self.anchor)
            labels = search(model, self.rng, effort=self.effort, starts=starts).labels
            point = None
        if point is None:
            point = self._refit(labels, self.anchor)
        return Grouped(point, labels, step=0.0)

    def advance(self, state: Grouped) -> Grouped:
        """Search the model at the current point. One search settles the squared loss."""
        effort, limit = self.effort, self.effort.time_limit
        if limit is not None:
            effort = replace(effort, time_limit=limit - (time.perf_counter() - self._begin))
        model, starts = self._model(state.point), state.labels[None, :]
        self.found = search(model, self.rng, effort=effort, starts=starts)
        labels, point = self.found.labels, state.point
        if not same_groups(labels, state.labels):
            point = self._refit(labels, state.point)
        if not point.value < state.objective:
            return Grouped(state.point, state.labels, step=0.0, gain=0.0, done=True)
        gain = gain_of(state.objective, point.value)
        return Grouped(point, labels, gain=gain, done=self.objective.quadratic)

    def _refit(self, labels: Labels, near: Point | None) -> Point:
        """The best values of groups, from the means of the weights of a point."""
        n_groups, start = self.places.n_groups, None
        if near is not None:
            sizes = np.maximum(group_totals(np.ones(labels.size), labels, n_groups), 1.0)
            sums = [group_totals(column, labels, n_groups) for column in near.W.T]
            start = np.stack(sums, axis=1) / sizes[:, None]
        return self.objective.refit(labels, n_groups, self.tol, start)

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
