"""Starting partitions by vector approximate message passing.

In the quadratic form of least squares, ``tr(W'G W) / 2 - tr(C'W)`` with ``n`` samples and noise
``sigma^2``, the rows of ``W`` have a prior of few point masses: each is one of ``Q`` levels. Two
estimates of ``W`` inform each other in turn:

* the *linear* one uses the data, and of the prior only a Gaussian message of mean ``r2`` and
  precision ``p2``: in the eigenbasis of ``G`` it is a division;
* the *discrete* one uses the levels, and of the data only a message of mean ``r1`` and
  precision ``p1``: the probability of level ``q`` is proportional to
  ``share_q exp(-p1 |r1 - level_q|^2 / 2)``.

Each sends on its estimate with the message it received divided out. Levels, shares and noise are
re-estimated on the way; levels and shares slowly, because the first messages tell little about
them. Whether that leads to the right partition depends on the first levels, so it is run from many
random ones at a time, in single precision: only the labels are used.

With too few samples no start succeeds, however many there are: message passing then fails even with
the true levels and shares.

Partitions that are known already can be **crossed**: the mean of their weights is the first message
``r2``, and their variance its precision. Where they agree the message is right more often than not,
and where they differ it leaves the decision to the data.
"""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from clustruct._typing import Floats, Labels
from clustruct.solvers.search.partition_problem import PartitionProblem

Singles = NDArray[np.float32]


@dataclass(frozen=True)
class MessageSettings:
    """Numbers of starts, priors and bounds of message passing."""

    # As many starts at a time as fit the cache, within these limits: enough to keep Python's share
    # of the time small.
    cache: int = 64_000
    batches: tuple[int, int] = (16, 128)
    max_iterations: int = 150
    # Every so many iterations finished starts are taken out: those whose estimate changed by less
    # than this mean square, where the weights have mean square 1.
    rounds: int = 10
    unchanged: float = 1e-6
    # Damping: share of the new message in the one handed on, drawn for each start between these.
    # Correlated features need small ones: with blocks of correlation 0.8, shares from 0.15 to 0.3
    # found the planted partition of fifteen of twenty problems, those from 0.6 to 0.8 of two.
    # Independent features do not, and large shares are faster.
    new_shares: tuple[float, float] = (0.3, 0.8)
    correlated_shares: tuple[float, float] = (0.15, 0.5)
    # The first levels are held for so many iterations, and then move this share of the way to the
    # new ones in each, drawn for each start between these decades. Of 30 planted problems (columns
    # of an autoregressive process, blocks with and against the groups) 512 starts solved 24 this
    # way, and 16 where new levels replaced the old ones from the first iteration on.
    held: int = 10
    pace_decades: tuple[float, float] = (-1.0, 0.0)
    # Noise over the mean square of the outputs: decades of the first guess, and bounds.
    noise_decades: tuple[float, float] = (-4.5, -2.5)
    noise_bounds: tuple[float, float] = (1e-6, 0.1)
    # Logarithmic spread of the size of the first levels, and the least share of the mean square of
    # the weights that is left for it.
    scale_spread: float = 0.2
    least_rest: float = 0.05
    # Bounds on messages: share of an estimate's precision, mean, variance, share of a level.
    least_precision: float = 1e-5
    largest_mean: float = 100.0
    least_variance: float = 1e-7
    least_share: float = 1e-4


SETTINGS = MessageSettings()


@dataclass
class _Messages:
    """Messages and estimates of ``m`` starts at a time; the starts lie along axis 1."""

    levels: Singles  # (groups, m, outputs)
    shares: Singles  # (groups, m, 1), as logarithms
    noise: Singles  # (1, m, 1)
    new_share: Singles  # (1, m, 1)
    pace: Singles  # (1, m, 1)
    r1: Singles  # (outputs, m, features)
    p1: Singles  # (1, m, 1)
    r2: Singles
    p2: Singles
    mean: Singles  # (outputs, m, features), the discrete estimate
    chances: Singles  # (groups, m, features)

    def take(self, starts: NDArray[np.bool_]) -> "_Messages":
        """Only some of the starts."""
        return _Messages(*(getattr(self, field.name)[:, starts] for field in fields(self)))


class MessagePassing:
    """Message passing on one problem, in units where weights and eigenvalues are about 1.

    problem: the problem, with something to explain and something to explain it with. Its ridge
        penalty is left to the polishing.

    batch: how many starts are best drawn at a time.
    """

    def __init__(self, problem: PartitionProblem) -> None:
        self._n_features, self._n_outputs = problem.moment.shape
        self._n_nonzero = problem.n_nonzero
        self._n_levels = problem.n_clusters + (problem.n_nonzero is not None)
        self.batch = int(
            np.clip(SETTINGS.cache // (self._n_features * self._n_levels), *SETTINGS.batches)
        )
        # With w = scale * omega the objective, over constant / d, is omega'G'omega / 2 - c'omega
        # + d / 2 with mean eigenvalue 1, and |omega|^2 is 1 on average.
        eigenvalue = np.trace(problem.gram) / self._n_features
        scale = np.sqrt(problem.constant) / np.sqrt(np.trace(problem.gram))
        self._scale = scale
        correlated = problem.partners.size > 0
        self._new_shares = SETTINGS.correlated_shares if correlated else SETTINGS.new_shares
        values, vectors = np.linalg.eigh(problem.gram / eigenvalue)
        # As many samples as there are directions in which they tell something: weights that count
        # as repetitions do not change that.
        rounding = self._n_features * np.finfo(np.float64).eps * values.max()
        self._n_samples = np.float32(np.count_nonzero(values > rounding))
        self._values = np.maximum(values, 0).astype(np.float32)
        self._vectors = vectors.astype(np.float32)
        self._set_prior(problem, scale)
        rotated = problem.moment.T @ vectors / (scale * eigenvalue)
        self._moment = rotated.astype(np.float32)[:, None, :]
        self._barred = self._where_barred(*problem.ranges)
        members = (self._barred == 0).sum(axis=2, keepdims=True, dtype=np.float32)
        self._n_permitted = np.maximum(members, np.float32(1.0))

    def draw(self, n_starts: int, rng: np.random.Generator) -> Labels:
        """Labels that message passing finds from random levels, -1 for the zero group."""
        labels = np.empty((n_starts, self._n_features), dtype=np.intp)
        for begin in range(0, n_starts, self.batch):
            part = labels[begin : begin + self.batch]
            self._run(self._start(len(part), rng), part)
        return labels

    def cross(self, weights: Floats, levels: Floats, rng: np.random.Generator) -> Labels:
        """Labels that message passing finds from families of partitions, a row for each.

        weights (m, parents, d, outputs): of the partitions of each family.
        levels (m, n_clusters, outputs): to begin with.
        """
        labels = np.empty((len(weights), self._n_features), dtype=np.intp)
        for begin in range(0, len(weights), self.batch):
            part = slice(begin, begin + self.batch)
            messages = self._start(len(labels[part]), rng)
            self._inherit(messages, weights[part] / self._scale, levels[part] / self._scale)
            self._run(messages, labels[part])
        return labels

    def _set_prior(self, problem: PartitionProblem, scale: float) -> None:
        """Mean and spread of the first levels: even few samples determine the mean weights."""
        first = problem.ranges[0]
        # One group a block, named after its first one.
        group = np.arange(self._n_levels)
        block = np.maximum.accumulate(np.where(np.isin(group, first), group, 0))
        mean = np.zeros((self._n_levels, self._n_outputs))
        if self._n_nonzero is None:
            mean[: problem.n_clusters] = problem.centers(first) / scale
            share = 1.0
        else:
            share = max(1, self._n_nonzero) / self._n_features
        self._center = mean[block]
        self._prior = mean[first].T
        rest = 1.0 - np.square(self._prior).sum(axis=0).mean()
        self._spread = np.sqrt(max(rest, SETTINGS.least_rest) / min(share, 1.0))

    def _where_barred(self, first: Labels, last: Labels) -> Singles:
        """Logarithm of the prior: zero where a feature may have a level, else minus infinity."""
        level = np.arange(self._n_levels)[:, None]
        permitted = (first <= level) & (level < last)
        if self._n_nonzero is not None:
            permitted[-1] = True
        return np.where(permitted, 0.0, -np.inf).astype(np.float32)[:, None, :]

    def _start(self, m: int, rng: np.random.Generator) -> _Messages:
        """Random levels and noise, and messages that hold the mean weights."""
        noise = self._n_features / self._n_outputs * 10.0 ** rng.uniform(*SETTINGS.noise_decades, m)
        spread = self._spread * np.exp(SETTINGS.scale_spread * rng.standard_normal(m))
        levels = self._center[:, None] + spread[:, None] * self._random_levels(m, rng)
        if self._n_nonzero is not None:
            levels[-1] = 0.0
        size = (self._n_outputs, m, self._n_features)
        precision = (self._n_outputs / spread**2).astype(np.float32)[None, :, None]
        return _Messages(
            levels=levels.astype(np.float32),
            shares=np.full((self._n_levels, m, 1), -np.log(self._n_levels), dtype=np.float32),
            noise=noise.astype(np.float32)[None, :, None],
            new_share=rng.uniform(*self._new_shares, (1, m, 1)).astype(np.float32),
            pace=(10.0 ** rng.uniform(*SETTINGS.pace_decades, (1, m, 1))).astype(np.float32),
            r1=np.zeros(size, dtype=np.float32),
            p1=np.zeros_like(precision),
            r2=np.broadcast_to(self._prior[:, None], size).astype(np.float32),
            p2=precision,
            mean=np.zeros(size, dtype=np.float32),
            chances=np.zeros((self._n_levels, m, self._n_features), dtype=np.float32),
        )

    def _inherit(self, messages: _Messages, weights: Floats, levels: Floats) -> None:
        """Begin with levels, and with mean and variance of the weights of each family."""
        messages.levels[: levels.shape[1]] = levels.swapaxes(0, 1)
        messages.r2[:] = np.moveaxis(weights.mean(axis=1), 2, 0)
        variance = weights.var(axis=1, ddof=1).mean(axis=(1, 2))
        messages.p2[:] = 1.0 / np.maximum(variance, SETTINGS.least_variance)[:, None]

    def _random_levels(self, m: int, rng: np.random.Generator) -> Floats:
        """Normal or uniform levels, of mean zero and of size 1 on average, (groups, m, outputs)."""
        shape = (self._n_levels, m, self._n_outputs)
        normal, uniform = rng.standard_normal(shape), rng.uniform(-1.0, 1.0, shape)
        levels = np.where(rng.random(m)[:, None] < 0.5, normal, uniform)
        if self._n_levels > 1:
            levels -= levels.mean(axis=0)
        sizes: Floats = np.sqrt(np.square(levels).sum(axis=2).mean(axis=0))
        return levels / sizes[:, None]

    def _run(self, messages: _Messages, labels: Labels) -> None:
        """Iterate all starts until they have converged, and write their labels."""
        left = np.arange(len(labels))
        for iteration in range(1, SETTINGS.max_iterations + 1):
            before = messages.mean
            self._linear(messages)
            self._discrete(messages)
            if iteration <= SETTINGS.held:
                continue
            self._update_levels(messages)
            if iteration % SETTINGS.rounds == 0:
                change = np.square(messages.mean - before).sum(axis=0).mean(axis=1)
                done = ~(change > SETTINGS.unchanged) | (iteration == SETTINGS.max_iterations)
                labels[left[done]] = self._labels(messages.take(done))
                left, messages = left[~done], messages.take(~done)
            if left.size == 0:
                break

    def _linear(self, messages: _Messages) -> None:
        """Update the linear estimate, its message ``r1``, ``p1``, and the noise.

        In the eigenbasis ``(beta s + p2) x = beta c + p2 r2`` with ``beta = n / noise``.
        """
        beta = self._n_samples / messages.noise
        precision = beta * self._values + messages.p2
        x = self._rotate(messages.r2, self._vectors)
        x *= messages.p2
        x += beta * self._moment
        x /= precision
        np.reciprocal(precision, out=precision)
        residual = (
            self._n_features
            + ((x * self._values - 2.0 * self._moment) * x).sum(axis=(0, 2), keepdims=True)
            + self._n_outputs * (precision @ self._values)[..., None]
        )
        total = 1.0 / precision.mean(axis=2, keepdims=True)
        x = self._rotate(x, self._vectors.T)
        # The first message has nothing to be damped by.
        share = np.where(messages.p1 > 0, messages.new_share, np.float32(1.0))
        rest = _hand_on(x, total, messages.r2, messages.p2)
        _blend(messages.r1, x, share)
        _blend(messages.p1, rest, share)
        noise = np.clip(residual, *(self._n_features * bound for bound in SETTINGS.noise_bounds))
        # Not more than a decade at a time.
        messages.noise = np.clip(
            noise / self._n_outputs, 0.1 * messages.noise, 10.0 * messages.noise
        )

    def _discrete(self, messages: _Messages) -> None:
        """Update the discrete estimate and its message ``r2``, ``p2``."""
        levels, chances = messages.levels, self._chances(messages)
        norms = np.square(levels).sum(axis=2)
        mean = np.stack(
            [np.einsum("qm,qmd->md", levels[:, :, k], chances) for k in range(self._n_outputs)]
        )
        second = np.einsum("qm,qmd->md", norms, chances)
        spread = second - np.square(mean).sum(axis=0)
        variance = spread.mean(axis=1)[None, :, None] / self._n_outputs
        total = 1.0 / np.maximum(variance, SETTINGS.least_variance)
        messages.mean, messages.chances = mean, chances
        message = mean.copy()
        rest = _hand_on(message, total, messages.r1, messages.p1)
        _blend(messages.r2, message, messages.new_share)
        _blend(messages.p2, rest, messages.new_share)

    def _chances(self, messages: _Messages) -> Singles:
        """Posterior probability of each level for each feature, (groups, m, features)."""
        levels = messages.levels
        chances: Singles = -0.5 * np.square(levels).sum(axis=2, keepdims=True)
        for k in range(self._n_outputs):
            chances = chances + levels[:, :, k, None] * messages.r1[k]
        chances *= messages.p1
        chances += messages.shares
        chances += self._barred
        chances -= chances.max(axis=0)
        np.exp(chances, out=chances)
        chances /= chances.sum(axis=0)
        return chances

    def _update_levels(self, messages: _Messages) -> None:
        """Move the levels towards the means of their features, and the shares to their numbers."""
        counts = messages.chances.sum(axis=2, keepdims=True)
        sums = np.stack([np.einsum("qmd,md->qm", messages.chances, r) for r in messages.r1], axis=2)
        levels = np.where(counts > 0.01, sums / np.maximum(counts, 0.01), messages.levels)
        if self._n_nonzero is not None:
            levels[-1] = 0.0
        shares = np.log(np.maximum(counts / self._n_permitted, SETTINGS.least_share))
        _blend(messages.levels, levels, messages.pace)
        _blend(messages.shares, shares, messages.pace)

    def _labels(self, messages: _Messages) -> Labels:
        """The most probable levels, with at most ``n_nonzero`` features outside the zero group."""
        labels: Labels = messages.chances.argmax(axis=0)
        if self._n_nonzero is None:
            return labels
        labels[labels == self._n_levels - 1] = -1
        size = np.square(messages.mean).sum(axis=0)
        size[labels == -1] = -1.0
        order = np.argsort(-size, axis=1, kind="stable")
        np.put_along_axis(labels, order[:, self._n_nonzero :], -1, axis=1)
        return labels

    def _rotate(self, rows: Singles, basis: Singles) -> Singles:
        """All rows of a stack times a matrix, in one product."""
        rotated: Singles = rows.reshape(-1, self._n_features) @ basis
        return rotated.reshape(rows.shape)


def _hand_on(estimate: Singles, total: Singles, told: Singles, known: Singles) -> Singles:
    """Divide the message received out of an estimate, in place; return the precision left."""
    rest: Singles = np.maximum(total - known, SETTINGS.least_precision * total)
    estimate *= total / rest
    estimate -= (known / rest) * told
    np.clip(estimate, -SETTINGS.largest_mean, SETTINGS.largest_mean, out=estimate)
    return rest


def _blend(message: Singles, new: Singles, share: Singles) -> None:
    """Damping: move a message, in place, some of the way towards a new one."""
    message *= 1 - share
    message += share * new
