"""Tasks as a mixture of populations, by expectation and maximisation of the evidence.

With responsibilities ``r``, posteriors ``q(c)`` of the centroids and shares ``pi`` of the groups,

    F = sum_tq r_tq (E_q(c) log p(rows_t | c_q) + log pi_q - log r_tq) - KL(q(c) || p(c))

is a lower bound of the log-evidence of all rows, in which the weights of the tasks are integrated
out exactly. Responsibilities, centroids and variances are maximised in turn. For the squared loss
no step lowers ``F``. For others the models of the losses are expanded again at the most likely
weights after each step, and where that has settled, ``F`` is Laplace's approximation.
"""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np

from clustruct._typing import Floats, Labels
from clustruct.objectives.tasks.evidence import (
    Form,
    Integrated,
    Population,
    Quadratics,
    TaskLikelihood,
)
from clustruct.objectives.tasks.objective import TaskPoint
from clustruct.solvers.driver import Solution, State


@dataclass(frozen=True)
class MixtureSettings:
    """Numbers that steer expectation and maximisation."""

    # First guesses: parts of the loss without weights that spreads, centroids and noise explain.
    spread: float = 0.1
    between: float = 0.5
    noise: float = 0.7
    # Tasks' worth of prior for spreads that are the same in all coordinates. On planted problems
    # with equal and unequal spreads, 5 had less error than 0, 10, 20 and 40.
    alike: float = 5.0
    # Least and largest variances, as parts of the loss without weights. Where classes are
    # separable, Laplace's approximation has no largest evidence.
    limits: tuple[float, float] = (1e-9, 10.0)
    # The largest one for the squared loss, where variances are never too large.
    unlimited: float = 1e9
    # The mean intercept has a prior this many times wider than all that the targets vary.
    wide: float = 100.0
    # A group keeps at least so many tasks' worth of the shares.
    smallest: float = 1e-3
    # Least noise, as a part of the loss without weights: below it, too many digits would be lost.
    quiet: float = 1e-6
    # Part of the rows that is left to the noise, at least, however many weights they determine.
    left: float = 0.01
    # Halvings of a step of the centroids, for losses other than squared.
    halvings: int = 10
    # An increase of F, in nats, after which no conclusion could change.
    settled: float = 1e-4
    # A relative decrease of F that is rounding.
    rounding: float = 1e-9


SETTINGS = MixtureSettings()


@dataclass(frozen=True, eq=False)
class MixturePoint(TaskPoint):
    """Posterior means of the weights, averaged over groups, and what was learnt of the groups.

    Shapes: proportions (Q,), memberships (K, Q).
    spread (Q, width): variances of the weights within groups.
    scale: that of the noise, ``T``.
    evidence: lower bound of the log-evidence, in nats.
    prior: variances of the centroids about their mean and of the mean, (2, width).
    """

    memberships: Floats
    proportions: Floats
    spread: Floats
    scale: float
    evidence: float
    prior: Floats

    @property
    def mean(self) -> Floats:
        """The mean of the centroids over the population."""
        return self.proportions @ self.V

    def in_order(self, order: Labels) -> "MixturePoint":
        """The same groups in another order."""
        return replace(
            self,
            V=self.V[order],
            labels=np.argsort(order)[self.labels],
            memberships=self.memberships[:, order],
            proportions=self.proportions[order],
            spread=self.spread[order],
        )


@dataclass(frozen=True, eq=False)
class Guess:
    """Variances to start from, and weights (K, width), if they are known."""

    blocks: tuple[Population, ...]
    scale: float
    W: Floats | None = None


@dataclass(frozen=True, eq=False)
class Mixed(State):
    """An iterate. Its objective is ``-F`` for one row.

    blocks: groups in the weights, and in the inputs if these are used.
    integrated: evidence of the rows, for each block.
    models: of the mean losses, expanded at W (Q, K, width).
    shares (Q, K): responsibilities.
    bound: ``F``.
    """

    blocks: tuple[Population, ...]
    integrated: tuple[Integrated, ...]
    models: Quadratics
    W: Floats
    proportions: Floats
    scale: float
    shares: Floats
    bound: float

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return self.shares.shape[0]

    @property
    def form(self) -> Form:
        """What the spreads of the groups have in common."""
        return self.blocks[0].form

    @property
    def guess(self) -> Guess:
        """What it says to a mixture of other groups."""
        return Guess(self.blocks, self.scale, np.einsum("qt,qti->ti", self.shares, self.W))


@dataclass(eq=False)
class TaskMixture:
    """The solver.

    shares (Q, K): responsibilities to start from.
    guess: variances to start from.
    inputs: evidence of the inputs of each task, none or one block.
    known: whether the groups are given, and stay as they are.
    form: what the spreads of the groups have in common.
    """

    name = "em"

    likelihood: TaskLikelihood
    shares: Floats
    guess: Guess | None = None
    inputs: tuple[Quadratics, ...] = ()
    _: KW_ONLY
    known: bool = False
    form: Form = Form.SAME

    def start(self) -> Mixed:
        """The best centroids for the first responsibilities."""
        count, guess = self.shares.shape[0], self.guess or self._first_guess()
        W = self.likelihood.begin if guess.W is None else guess.W
        W = np.broadcast_to(W, (count, *W.shape))
        blocks = tuple(self._sized(block, count) for block in guess.blocks)
        sizes = np.maximum(self.shares.sum(axis=1), SETTINGS.smallest)
        centers = np.einsum("qt,qti->qi", self.shares, W) / sizes[:, None]
        blocks = (replace(blocks[0], centers=centers), *blocks[1:])
        models = self.likelihood.expand(W)
        integrated = self._integrate(models, blocks, guess.scale)
        return self._settled(blocks, integrated, models, W, guess.scale, self.shares)

    def advance(self, state: Mixed) -> Mixed:
        """More likely variances, then responsibilities and centroids for them."""
        for fast in (True, False):
            blocks = tuple(
                replace(block, spread=block.next_spread(mine, state.shares, fast))
                for block, mine in zip(state.blocks, state.integrated, strict=True)
            )
            scale = self._scale(state, fast)
            integrated = self._integrate(state.models, blocks, scale)
            densities = self._densities(blocks, integrated, state.proportions)
            bound = self._bound(blocks, densities, self._respond(densities, state.shares), scale)
            if bound >= state.bound - SETTINGS.rounding * abs(state.bound):
                break
        shares = self._respond(densities, state.shares)
        following = self._settled(blocks, integrated, state.models, state.W, scale, shares)
        gain = state.objective - following.objective
        gain = gain if self.likelihood.quadratic else abs(gain)
        done = gain * self.likelihood.total <= SETTINGS.settled
        return replace(following, gain=gain, done=done)

    def solution(self, state: Mixed) -> Solution:
        """Weights averaged over the groups, in the units of the data."""
        point = self.point(state)
        return Solution(point, point.labels)

    def point(self, state: Mixed) -> MixturePoint:
        """The same, with what was learnt."""
        block, units, data = state.blocks[0], self.likelihood.units, self.likelihood.data
        weights = state.integrated[0].weights(block.centers)
        W = np.einsum("qt,qti->ti", state.shares, weights) / units
        V = block.centers / units
        spread = np.broadcast_to(block.spread, V.shape) / np.square(units)
        prior = np.stack([block.between, block.mean / state.n_groups]) / np.square(units)
        intercept = W[:, -1] if data.fit_intercept else np.zeros(W.shape[0])
        return MixturePoint(
            W,
            state.objective,
            intercept,
            data.models(W).slopes(W),
            V,
            state.shares.argmax(axis=0),
            state.shares.T,
            state.proportions,
            spread,
            state.scale,
            state.bound,
            prior,
        )

    # ---- Parts of a step

    def _first_guess(self) -> Guess:
        """Variances before anything is known."""
        size, width = self.likelihood.size, self.likelihood.units.size
        free = np.zeros(width)
        if self.likelihood.data.fit_intercept:
            free[-1] = SETTINGS.wide * size
        least, most = SETTINGS.limits
        most = SETTINGS.unlimited if self.likelihood.quadratic else most
        found = [_vague(width, size, free, (least * size, most * size))]
        for rows in self.inputs:
            d = rows.b.shape[2]
            limits = least, SETTINGS.unlimited
            found.append(_vague(d, 1.0, np.full(d, SETTINGS.wide), limits))
        return Guess(tuple(found), self.likelihood.noise.scale(0.5 * SETTINGS.noise * size))

    def _sized(self, block: Population, count: int) -> Population:
        """A population of so many groups with the same variances."""
        width, spread = block.centers.shape[1], block.spread
        if self.form is Form.SAME or len(spread) != count:
            spread = spread.mean(axis=0, keepdims=True)
        if self.form is not Form.SAME:
            spread = np.broadcast_to(spread, (count, width))
        return replace(
            block,
            centers=np.zeros((count, width)),
            doubts=np.zeros((count, width, width)),
            spread=spread,
            mean=block.mean * (count / block.n_groups),
            form=self.form,
        )

    def _integrate(
        self, models: Quadratics, blocks: tuple[Population, ...], scale: float
    ) -> tuple[Integrated, ...]:
        """Evidence of the rows as functions of the centroids."""
        rows = (models.scaled(self.likelihood.total / scale), *self.inputs)
        return tuple(
            mine.integrated(block.spread) for mine, block in zip(rows, blocks, strict=True)
        )

    def _settled(
        self,
        blocks: tuple[Population, ...],
        integrated: tuple[Integrated, ...],
        models: Quadratics,
        W: Floats,
        scale: float,
        shares: Floats,
    ) -> Mixed:
        """The best centroids and proportions for responsibilities, and these once more."""
        before = blocks[0]
        blocks = tuple(
            block.updated(mine, shares) for block, mine in zip(blocks, integrated, strict=True)
        )
        if not self.likelihood.quadratic:
            first, W = self._damped(before, blocks[0], integrated[0], W, scale, shares)
            blocks = (first, *blocks[1:])
            models = self.likelihood.expand(W)
            integrated = self._integrate(models, blocks, scale)
        sizes = np.maximum(shares.sum(axis=1), SETTINGS.smallest)
        proportions = sizes / sizes.sum()
        densities = self._densities(blocks, integrated, proportions)
        shares = self._respond(densities, shares)
        bound = self._bound(blocks, densities, shares, scale)
        return Mixed(
            blocks=blocks,
            integrated=integrated,
            models=models,
            W=W,
            proportions=proportions,
            scale=scale,
            shares=shares,
            bound=bound,
            objective=-bound / self.likelihood.total,
        )

    def _damped(
        self,
        before: Population,
        after: Population,
        rows: Integrated,
        W: Floats,
        scale: float,
        shares: Floats,
    ) -> tuple[Population, Floats]:
        """Centroids and weights as far on the way as they become more likely.

        The models of the losses hold near W, and centroids may lie far from there.
        """
        begin = replace(after, centers=before.centers)
        prices = self.likelihood.prices(begin, W, scale)
        best = float(np.vdot(shares, prices)) + begin.price()
        for _ in range(SETTINGS.halvings):
            moved, prices = self.likelihood.moved(rows, after, W, scale)
            total = float(np.vdot(shares, prices)) + after.price()
            if total <= best + SETTINGS.rounding * abs(best):
                return after, moved
            after = replace(after, centers=0.5 * (after.centers + before.centers))
        return begin, W

    def _densities(
        self,
        blocks: tuple[Population, ...],
        integrated: tuple[Integrated, ...],
        proportions: Floats,
    ) -> Floats:
        """Log-probability of each group with the rows of each task, (Q, K)."""
        found = np.log(proportions)[:, None]
        for block, mine in zip(blocks, integrated, strict=True):
            found = found + mine.densities(block.centers, block.doubts)
        return found

    def _respond(self, densities: Floats, shares: Floats) -> Floats:
        """Responsibilities, (Q, K)."""
        if self.known:
            return shares
        weights = np.exp(densities - densities.max(axis=0))
        return weights / weights.sum(axis=0)

    def _bound(
        self, blocks: tuple[Population, ...], densities: Floats, shares: Floats, scale: float
    ) -> float:
        """``F``."""
        some = shares > 0.0
        entropy = -float((shares[some] * np.log(shares[some])).sum()) * (not self.known)
        total = float(np.vdot(shares, densities)) + entropy
        noise = self.likelihood.total * self.likelihood.noise.log_partition(scale)
        return total - noise - sum(block.cost + block.unlikeness for block in blocks)

    def _scale(self, state: Mixed, fast: bool) -> float:
        """The scale of the noise that is most likely for the posterior of the weights.

        With the posterior mean ``w`` and ``D = I - M P``, the mean of the loss is
        ``loss(w) + 1/2 tr P (M + D C D')``. The fast step leaves ``M`` out and divides by the
        number of rows less ``tr P M`` instead, as the residual variance of a regression.
        """
        rows, block = state.integrated[0], state.blocks[0]
        losses = rows.rows.values(rows.weights(block.centers))
        HC = rows.H @ block.doubts[:, None]
        losses = losses + 0.5 * np.einsum("qtii->qt", HC)
        losses -= 0.5 * np.einsum("qtij,qtji->qt", np.broadcast_to(rows.PM, HC.shape), HC)
        traces = np.broadcast_to(np.einsum("gtii->gt", rows.PM), losses.shape)
        loss, used = float(np.vdot(state.shares, losses)), float(np.vdot(state.shares, traces))
        total = self.likelihood.total
        left = max(total - used, SETTINGS.left * total)
        mean = loss / left if fast else (loss + 0.5 * used) / total
        mean = max(mean * state.scale, 0.5 * SETTINGS.quiet * self.likelihood.size)
        return float(self.likelihood.noise.scale(mean))


def _vague(width: int, size: float, free: Floats, limits: tuple[float, float]) -> Population:
    """One group of which nothing is known but the size of its variances."""
    return Population(
        np.zeros((1, width)),
        np.zeros((1, width, width)),
        np.full((1, width), SETTINGS.spread * size),
        np.full(width, SETTINGS.between * size),
        np.where(free > 0.0, free, size),
        free,
        limits,
        alike=SETTINGS.alike,
    )


def hard(labels: Labels, count: int) -> Floats:
    """Responsibilities (Q, K) of given groups."""
    shares: Any = labels == np.arange(count)[:, None]
    return shares.astype(np.float64)
