"""The penalty of clustered tasks (sec:multitask), and the best weights for given groups.

For fixed groups, tasks are coupled through the centroids alone, and centroids through their mean.
Eliminating the tasks leaves a system of ``d`` equations for each group, and eliminating the groups
one for the mean; no matrix has tasks times features rows.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustruct._typing import Floats, Labels
from clustruct.objectives.tasks.data import Models, times

# Squared ratio of pivots below which a system is singular: the shortest solution is taken.
SINGULAR = 1e-13


@dataclass(frozen=True, eq=False)
class Strengths:
    """Strengths of the penalty (lambda_m, lambda_b, lambda_w), a number for each coordinate.

    ridge (width,): on the weights themselves.
    mean (width,): on the mean of the centroids, at most as large as `between`.
    between (width,): on the distance of centroids from their mean.
    within (width,): on the distance of tasks from their centroid; infinite where tasks of a group
        share.
    """

    ridge: Floats
    mean: Floats
    between: Floats
    within: Floats

    def scaled(self, factor: float) -> "Strengths":
        """All strengths times a number."""
        parts = (self.ridge, self.mean, self.between, self.within)
        return Strengths(*(factor * part for part in parts))

    @property
    def pull(self) -> Floats:
        """Centroids are drawn to this fraction of their mean.

        ``sum_q s_q between ||v_q - v||^2 + K mean ||v||^2`` with the mean ``v`` of the centroids is
        the least of ``sum_q s_q between ||v_q - m||^2 + K c ||m||^2`` over ``m``, where
        ``c = between mean / (between - mean)``; and there ``m = (1 - mean / between) v``.
        """
        ratio = np.divide(
            self.mean, self.between, where=self.between > 0.0, out=np.ones_like(self.mean)
        )
        return 1.0 - ratio

    def penalties(self, W: Floats, V: Floats, labels: Labels) -> float:
        """The penalty of weights and centroids."""
        rows = V[labels]
        mean = rows.mean(axis=0)
        finite = np.isfinite(self.within)
        away = (W - rows)[:, finite]
        total = (
            np.square(W) @ self.ridge
            + np.square(away) @ self.within[finite]
            + np.square(rows - mean) @ self.between
            + np.square(mean) @ self.mean
        )
        return 0.5 * float(total.sum())


@dataclass(frozen=True, eq=False)
class Profile:
    """Tasks with their best weights for a centroid: ``f_t(v) = 1/2 v'H v - g'v - drop``.

    Shapes: H (K, width, width), g (K, width), drop (K,), h (K, width).
    normal (K, width, width): second derivative of loss and ridge.
    inverse (K, f, f): of ``normal + within``, for the ``f`` coordinates in which tasks may differ.
    free (width,): these coordinates.
    """

    H: Floats
    g: Floats
    drop: Floats
    normal: Floats
    h: Floats
    inverse: Floats
    free: NDArray[np.bool_]

    def weights(self, rows: Floats) -> Floats:
        """The best weights of each task, given its centroid."""
        W = rows.copy()
        residual = self.h - times(self.normal, rows)
        W[:, self.free] += times(self.inverse, residual[:, self.free])
        return W

    def values(self, V: Floats) -> Floats:
        """``f_t(v_q)`` of every task with every centroid, K x Q."""
        image = np.matmul(V, self.H)
        return np.einsum("tqi,qi->tq", 0.5 * image - self.g[:, None], V) - self.drop[:, None]


def eliminate(model: Models, strengths: Strengths) -> Profile:
    """The least of loss, ridge and distance to a centroid ``v``, as a function of ``v``.

    With ``N`` the second derivative of loss and ridge, ``F`` the coordinates in which tasks may
    differ from their centroid and ``S = (N_FF + within)^-1``, the best departure from ``v`` is
    ``S (h - N v)_F``.
    """
    width = model.h.shape[1]
    diagonal = np.arange(width)
    normal = model.G.copy()
    normal[:, diagonal, diagonal] += strengths.ridge
    free = np.isfinite(strengths.within)
    held = ~free
    within = strengths.within[free]
    pushed = normal[:, free][:, :, free]
    own = pushed.copy()
    inner = np.arange(within.size)
    pushed[:, inner, inner] += within
    inverse = inverse_of(pushed)
    # ``N - N S N`` written as ``within S N``, which loses no digits where ``within`` is small.
    H = np.empty_like(normal)
    F, J = np.flatnonzero(free), np.flatnonzero(held)
    across = normal[:, free][:, :, held]
    pulled = within[:, None] * inverse
    H[:, F[:, None], F] = _symmetric(pulled @ own)
    H[:, F[:, None], J] = pulled @ across
    H[:, J[:, None], F] = (pulled @ across).transpose(0, 2, 1)
    lost = across.transpose(0, 2, 1) @ inverse
    H[:, J[:, None], J] = normal[:, held][:, :, held] - lost @ across
    g = np.empty_like(model.h)
    mine = model.h[:, free]
    g[:, free] = times(pulled, mine)
    g[:, held] = model.h[:, held] - times(lost, mine)
    drop = 0.5 * np.einsum("ti,ti->t", mine, times(inverse, mine))
    return Profile(H, g, drop, normal, model.h, inverse, free)


def best_centroids(profile: Profile, strengths: Strengths, labels: Labels, n_groups: int) -> Floats:
    """The best centroids for given groups, none of which is empty.

    Centroids are drawn to ``m``, see `Strengths.pull`: ``T_q v_q = g_q + s_q between m`` with
    ``T_q = H_q + s_q between``. What is left of ``m`` is the system
    ``sum_q s_q between T_q^-1 H_q + K c``.
    """
    sizes = np.bincount(labels, minlength=n_groups).astype(np.float64)
    between, mean = strengths.between, strengths.mean
    H = np.stack([profile.H[labels == q].sum(axis=0) for q in range(n_groups)])
    g = np.stack([profile.g[labels == q].sum(axis=0) for q in range(n_groups)])
    if n_groups == 1:
        return solve(H + np.diag(sizes[0] * mean), g)
    drawn = sizes[:, None] * between
    T = H + drawn[:, :, None] * np.eye(between.size)
    inverse = inverse_of(T)
    alone = times(inverse, g)
    shared = between > mean  # elsewhere centroids are drawn to zero
    if not shared.any():
        return alone
    # The system of the mean, from ``T_q^-1 H_q``.
    system = (drawn[:, :, None] * (inverse @ H)).sum(axis=0)[np.ix_(shared, shared)]
    cost = between[shared] * mean[shared] / (between - mean)[shared]
    system[np.diag_indices_from(system)] += sizes.sum() * cost
    right = (drawn * alone).sum(axis=0)[shared]
    center = np.zeros(between.size)
    center[shared] = solve(_symmetric(system)[None], right[None])[0]
    return alone + times(inverse, drawn * center)


def depths(A: Floats, b: Floats) -> Floats:
    """``1/2 b'A^-1 b`` for a stack of systems: how far ``1/2 v'A v - b'v`` falls below zero."""
    regular = np.einsum("qii->q", A) > 0.0  # a group without tasks has no system
    found = np.zeros(A.shape[0])
    if regular.any():
        solved = solve(A[regular], b[regular])
        found[regular] = 0.5 * np.einsum("qi,qi->q", b[regular], solved)
    return found


def solve(A: Floats, b: Floats) -> Floats:
    """``A x = b`` for a stack of symmetric positive systems; the shortest solution if singular."""
    if _regular(A):
        return np.asarray(np.linalg.solve(A, b[..., None])[..., 0], dtype=np.float64)
    return times(inverse_of(A), b)


def inverse_of(A: Floats) -> Floats:
    """Inverses of a stack of symmetric positive matrices; pseudo-inverses if one is singular."""
    if _regular(A):
        return _symmetric(np.asarray(np.linalg.inv(A), dtype=np.float64))
    pseudo = np.linalg.pinv(A, rcond=SINGULAR, hermitian=True)
    return np.asarray(pseudo, dtype=np.float64)


def _regular(A: Floats) -> bool:
    if A.shape[-1] == 0:
        return True
    try:
        pivots = np.diagonal(np.linalg.cholesky(A), axis1=-2, axis2=-1)
    except np.linalg.LinAlgError:
        return False
    return bool((np.square(pivots.min(axis=-1) / pivots.max(axis=-1)) > SINGULAR).all())


def _symmetric(A: Floats) -> Floats:
    return 0.5 * (A + np.swapaxes(A, -1, -2))
