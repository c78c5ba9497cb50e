"""Tasks as draws from a population: evidence of their rows with the weights integrated out.

A task of group ``q`` has weights ``w ~ N(c_q, diag(s_q))``, and its rows the negative
log-likelihood ``1/2 w'P w - b'w + a``: exact for the squared loss, the second-order model at the
most likely weights for others (Laplace). With ``S = diag(s)`` and ``M = (S^-1 + P)^-1``, the
posterior of the weights is ``N(c + M (b - P c), M)``, and the evidence of the rows is

    log p(rows | c) = level + g'c - 1/2 c'H c,    H = P - P M P,    g = b - P M b,
    level = 1/2 b'M b - a - 1/2 log det(I + S^1/2 P S^1/2).

``M`` is computed as ``S^1/2 (I + S^1/2 P S^1/2)^-1 S^1/2``, so that a spread may be zero.
"""

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from clustruct._typing import Floats
from clustruct.losses import Noise
from clustruct.objectives.tasks.data import TaskData, times


@dataclass(frozen=True)
class EvidenceSettings:
    """Numbers that steer the search for the most likely weights."""

    # Halvings of a step that makes the weights of a task less likely.
    halvings: int = 10
    # Relative increase that is rounding.
    rounding: float = 1e-9
    # Steps for tasks that are placed in known groups, and the move at which they end.
    steps: int = 50
    settled: float = 1e-8
    # Rounds between the shape and the scales of spreads.
    rounds: int = 3


SETTINGS = EvidenceSettings()


@dataclass(frozen=True, eq=False)
class Quadratics:
    """Negative log-likelihoods of tasks, one for all groups (``g = 1``) or one for each.

    Shapes: P (g, K, width, width), b (g, K, width), a (g, K).
    """

    P: Floats
    b: Floats
    a: Floats

    def scaled(self, factor: float) -> "Quadratics":
        """The same times a number."""
        return Quadratics(factor * self.P, factor * self.b, factor * self.a)

    def values(self, W: Floats) -> Floats:
        """At weights of each group and task, (Q, K, width)."""
        return np.einsum("qti,qti->qt", 0.5 * times(self.P, W) - self.b, W) + self.a

    def integrated(self, spread: Floats) -> "Integrated":
        """Weights integrated out, for spreads (1, width) of all groups or (Q, width) of each."""
        roots = np.sqrt(spread)[:, None]
        A = roots[..., :, None] * self.P * roots[..., None, :]
        each = np.arange(spread.shape[1])
        A[..., each, each] += 1.0
        pivots = np.diagonal(np.linalg.cholesky(A), axis1=-2, axis2=-1)
        M = roots[..., :, None] * np.linalg.inv(A) * roots[..., None, :]
        PM = self.P @ M
        H = self.P - PM @ self.P
        H = 0.5 * (H + np.swapaxes(H, -1, -2))
        Mb = times(M, self.b)
        level = 0.5 * np.einsum("gti,gti->gt", self.b, Mb) - self.a - np.log(pivots).sum(axis=-1)
        return Integrated(self, M, PM, H, self.b - times(self.P, Mb), level)


@dataclass(frozen=True, eq=False)
class Integrated:
    """Evidence of the rows of each task as a function of its centroid, see above.

    Shapes: M, PM, H (g, K, width, width), g (g, K, width), level (g, K).
    """

    rows: Quadratics
    M: Floats
    PM: Floats
    H: Floats
    g: Floats
    level: Floats

    def densities(self, centers: Floats, doubts: Floats) -> Floats:
        """Mean of ``log p(rows | c_q)`` over centroids ``c_q ~ N(centers, doubts)``, (Q, K)."""
        flat = self.H.reshape(*self.H.shape[:2], -1)
        moments = doubts + centers[:, :, None] * centers[:, None, :]
        bent = (flat @ moments.reshape(centers.shape[0], -1, 1))[..., 0]
        return self.level + (self.g @ centers[:, :, None])[..., 0] - 0.5 * bent

    def slopes(self, centers: Floats) -> Floats:
        """Derivatives of the evidence by the centroids, (Q, K, width)."""
        return self.g - times(self.H, centers[:, None])

    def weights(self, centers: Floats) -> Floats:
        """Most likely weights of each task in each group, (Q, K, width)."""
        residual = self.rows.b - times(self.rows.P, centers[:, None])
        return centers[:, None] + times(self.M, residual)


class TaskLikelihood:
    """Losses of tasks as negative log-likelihoods ``n_t loss / T + n_t log Z(T)``.

    data: the parts of the tasks in the mean loss.
    noise: tells the scale ``T`` and ``Z``.
    total: weight of all rows.

    Coordinates are in units of the curvature of the mean loss, so that nothing depends on the
    units of columns.
    """

    def __init__(self, data: TaskData, noise: Noise, total: float, begin: Floats) -> None:
        self.data = data
        self.noise = noise
        self.total = total
        models = data.models(begin)
        bends = np.einsum("tii->i", models.G)
        scale = float(bends.max(initial=0.0))
        self.units = np.sqrt(np.where(bends > 1e-12 * scale, bends, scale or 1.0))
        self.begin = begin * self.units
        # What the loss of all rows is without weights: the size of everything.
        self.size = max(2.0 * float(data.losses(np.zeros_like(begin)).sum()), np.finfo(float).tiny)

    @property
    def quadratic(self) -> bool:
        """Whether one model holds everywhere."""
        return self.data.quadratic

    def expand(self, W: Floats) -> Quadratics:
        """Models of the mean losses at weights of each group, (Q, K, width)."""
        every = [self._model(mine) for mine in (W[:1] if self.quadratic else W)]
        return Quadratics(*(np.stack(parts) for parts in zip(*every, strict=True)))

    def losses(self, W: Floats) -> Floats:
        """Parts in the mean loss, (Q, K), at weights (Q, K, width)."""
        return self.data.losses_together(W / self.units)

    def moved(
        self, rows: Integrated, groups: "Population", W: Floats, scale: float
    ) -> tuple[Floats, Floats]:
        """More likely weights of each task in each group than W (Q, K, width), and their prices.

        A step goes only as far as it makes the weights of a task more likely.
        """
        best, trial = self.prices(groups, W, scale), rows.weights(groups.centers)
        for _ in range(SETTINGS.halvings):
            prices = self.prices(groups, trial, scale)
            worse = ~(prices <= best + SETTINGS.rounding * np.abs(best))
            if not worse.any():
                return trial, prices
            trial = np.where(worse[..., None], 0.5 * (trial + W), trial)
        return W, best

    def prices(self, groups: "Population", W: Floats, scale: float) -> Floats:
        """Negative log-probability of rows and weights, up to a constant, (Q, K)."""
        away = np.square(W - groups.centers[:, None]) / groups.spread[:, None]
        return self.total / scale * self.losses(W) + 0.5 * away.sum(axis=2)

    def _model(self, W: Floats) -> tuple[Floats, Floats, Floats]:
        models = self.data.models(W / self.units)
        G, h = models.G / (self.units[:, None] * self.units), models.h / self.units
        if self.quadratic:
            return G, h, models.values
        return G, h, models.values - np.einsum("ti,ti->t", 0.5 * times(G, W) - h, W)


def of_inputs(means: Floats, counts: Floats) -> Quadratics:
    """Mean inputs of tasks, in units of the deviation of a row, as evidence of groups.

    The mean of ``n`` rows is the task's own mean plus noise of variance ``1/n``.

    Shapes: means (K, d), counts (K,).
    """
    P = counts[:, None, None] * np.eye(means.shape[1])
    b = counts[:, None] * means
    a = 0.5 * counts * np.square(means).sum(axis=1)
    a = a - 0.5 * means.shape[1] * np.log(counts / (2.0 * np.pi))
    return Quadratics(P[None], b[None], a[None])


class Form(Enum):
    """What the spreads of groups have in common.

    SAME: everything.
    SCALED: their shape, ``s_qj = k_q s_j``; a wide group is one of tasks that are like no others.
    OWN: nothing.
    """

    SAME = 0
    SCALED = 1
    OWN = 2

    def numbers(self, count: int, width: int) -> int:
        """How many more numbers so many groups have than one."""
        return (count - 1) * (0, 1, width)[self.value]


@dataclass(frozen=True, eq=False)
class Population:
    """What is known of the groups in one block of coordinates.

    Shapes: centers (Q, width), doubts (Q, width, width).
    spread (1, width) or (Q, width): variances of the tasks about their centroid.
    between (width,): variances of the centroids about their mean.
    mean (width,): variances of that mean, times ``Q``.
    free (width,): where the mean has a fixed variance, so large that it is free.
    limits: least and largest variance.
    form: of the spreads.
    alike: as many tasks as speak for equal spreads of all coordinates but the free ones, see
        `unlikeness`.
    cost: divergence of the centroids' posterior from their prior.
    """

    centers: Floats
    doubts: Floats
    spread: Floats
    between: Floats
    mean: Floats
    free: Floats
    limits: tuple[float, float]
    form: Form = Form.SAME
    alike: float = 0.0
    cost: float = 0.0

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return self.centers.shape[0]

    def updated(self, rows: Integrated, shares: Floats) -> "Population":
        """The posterior of the centroids for responsibilities (Q, K), and then their prior.

        The prior of the ``Q`` centroids in a coordinate has the precision
        ``(I - J/Q) / between + J/Q / mean``, with the matrix ``J`` of ones; it keeps its form, so
        that both variances have closed forms.
        """
        count, width = self.centers.shape
        H = np.einsum("qt,qtij->qij", shares, np.broadcast_to(rows.H, (count, *rows.H.shape[1:])))
        g = np.einsum("qt,qti->qi", shares, np.broadcast_to(rows.g, (count, *rows.g.shape[1:])))
        J = np.full((count, count), 1.0 / count)
        prior = (np.eye(count) - J)[..., None] / self.between + J[..., None] / self.mean
        precision = np.zeros((count, width, count, width))
        each, every = np.arange(width), np.arange(count)
        precision[:, each, :, each] = np.moveaxis(prior, -1, 0)
        precision[every, :, every, :] += H
        flat = precision.reshape(count * width, count * width)
        pivots = np.diagonal(np.linalg.cholesky(flat))
        covariance: Floats = np.linalg.inv(flat).astype(np.float64, copy=False)
        centers = (covariance @ g.reshape(-1)).reshape(count, width)
        covariance = covariance.reshape(precision.shape)
        moments = covariance[:, each, :, each] + np.einsum("qi,pi->iqp", centers, centers)
        means = moments.sum(axis=(1, 2)) / count
        apart = np.maximum(np.einsum("iqq->i", moments) - means, 0.0)
        between, mean = self._priors(apart, means)
        logs = (
            (count - 1) * np.log(between)
            + np.log(mean)
            + 2.0 * np.log(pivots).reshape(count, width).sum(axis=0)
        )
        cost = 0.5 * float((logs + apart / between + means / mean - count).sum())
        return replace(
            self,
            centers=centers,
            doubts=covariance[every, :, every, :],
            between=between,
            mean=mean,
            cost=cost,
        )

    def price(self) -> float:
        """Negative log-density of the centroids, up to a constant."""
        means = np.square(self.centers.sum(axis=0)) / self.n_groups
        apart = np.square(self.centers).sum(axis=0) - means
        return 0.5 * float((apart / self.between + means / self.mean).sum())

    def _priors(self, apart: Floats, means: Floats) -> tuple[Floats, Floats]:
        """The most likely variances of the centroids: one between, and one for the mean."""
        count, width = self.centers.shape
        between = self.between
        if count > 1 and width:
            between = np.full(width, np.clip(apart.mean() / (count - 1), *self.limits))
        drawn = self.free == 0.0
        mean = self.mean
        if drawn.any():
            most = np.clip(means[drawn].mean(), *self.limits)
            mean = np.where(drawn, most, count * self.free)
        return between, mean

    @property
    def unlikeness(self) -> float:
        """Negative log-density of the spreads: inverse gamma about their harmonic mean.

        ``alike / 2 (log(s / mean) + mean / s - 1)``, zero where all are equal.
        """
        drawn = self.spread[:, self.free == 0.0]
        drawn = drawn[:1] if self.form is Form.SCALED else drawn
        ratio = _harmonic(drawn)[:, None] / drawn
        return 0.5 * self.alike * float((ratio - np.log(ratio) - 1.0).sum())

    def next_spread(self, rows: Integrated, shares: Floats, fast: bool) -> Floats:
        """Spreads that are more likely for these responsibilities.

        With the slopes ``u = g - H c`` the step of expectation and maximisation is
        ``s + s^2 (E u^2 - H_jj)``, averaged over tasks; the fast one, ``s E u^2 / H_jj``, has the
        same fixed point, and may overshoot.
        """
        squares = np.square(rows.slopes(self.centers))
        squares += np.einsum("qtij,qtij->qti", rows.H @ self.doubts[:, None], rows.H)
        bends = np.einsum("gtii->gti", rows.H)
        up = np.einsum("qt,qti->qi", shares, squares)
        down = np.einsum("qt,qti->qi", shares, np.broadcast_to(bends, squares.shape))
        s = self.spread
        if fast:
            return self._formed(np.square(s) * up, s * down)
        sizes = np.broadcast_to(shares.sum(axis=1)[:, None], up.shape)
        return self._formed(sizes * s + np.square(s) * (up - down), sizes)

    def _formed(self, sums: Floats, weights: Floats) -> Floats:
        """Spreads of the form, by sums (Q, width) of squares and their weights.

        Minimises ``weights log s + sums / s``, with `alike` tasks of typical spread: for each
        group, for all of them, or for shape and scales in turn.
        """
        if not self.free.size:
            return self.spread
        prior = np.where(self.free == 0.0, self.alike, 0.0)
        s, scales = self.spread, np.ones((self.n_groups, 1))
        if self.form is Form.SCALED:
            s, scales = s[:1], s.sum(axis=1, keepdims=True) / s[0].sum()
        typical = _harmonic(s[:, self.free == 0.0])[:, None]
        for _ in range(SETTINGS.rounds if self.form is Form.SCALED else 1):
            up, down = sums / scales, weights
            if self.form is not Form.OWN:
                up, down = (a.sum(axis=0, keepdims=True) for a in (up, down))
            up, down = up + prior * typical, down + prior
            s = np.where(down > 0.0, up / np.where(down > 0.0, down, 1.0), s)
            s = np.maximum(s, self.limits[0])
            if self.form is Form.SCALED:
                typical = _harmonic(s[:, self.free == 0.0])[:, None]
                up, down = (a.sum(axis=1, keepdims=True) for a in (sums / s, weights))
                some = (up > 0.0) & (down > 0.0)  # a group without tasks keeps its scale
                scales = np.where(some, up / np.where(some, down, 1.0), scales)
        return np.clip(s * scales if self.form is Form.SCALED else s, *self.limits)


def _harmonic(values: Floats) -> Floats:
    """Harmonic means of the last axis, 1 if it is empty."""
    return 1.0 / (1.0 / values).mean(axis=-1) if values.shape[-1] else np.ones(values.shape[:-1])


def place_tasks(
    likelihood: TaskLikelihood, scale: float, V: Floats, spread: Floats, proportions: Floats
) -> tuple[Floats, Floats]:
    """Tasks in known groups: probabilities of these (K, Q), and means of the weights (K, width).

    Shapes: V (Q, width), spread (Q, width), proportions (Q,).
    """
    units, width = likelihood.units, V.shape[1]
    least = SETTINGS.rounding * likelihood.size
    groups = Population(
        V * units,
        np.zeros((V.shape[0], width, width)),
        np.maximum(spread * np.square(units), least),
        between=np.ones(width),
        mean=np.ones(width),
        free=np.ones(width),
        limits=(least, np.inf),
    )
    W = np.broadcast_to(groups.centers[:, None], (V.shape[0], likelihood.data.n_tasks, width))
    for _ in range(SETTINGS.steps):
        rows = likelihood.expand(W).scaled(likelihood.total / scale).integrated(groups.spread)
        before, (W, _) = W, likelihood.moved(rows, groups, W, scale)
        if likelihood.quadratic or np.abs(W - before).max() <= SETTINGS.settled * np.abs(W).max():
            break
    chances = np.log(proportions)[:, None] + rows.densities(groups.centers, groups.doubts)
    chances = np.exp(chances - chances.max(axis=0))
    chances /= chances.sum(axis=0)
    return chances.T, np.einsum("qt,qti->ti", chances, W) / units
