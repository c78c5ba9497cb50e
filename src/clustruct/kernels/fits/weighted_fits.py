# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Least squares with few weights, for several weightings of the same samples.

Sample ``i`` has the features ``x_i`` (a constant may be among them), the targets ``y_i`` and the
weight ``w_iq`` for expert ``q``, which minimises

    sum_i w_iq (|y_i - V_q'x_i|^2 + tr(V_q'R V_q)) / 2,

``R`` being the diagonal matrix of the ridges. The products of a sample's features are formed once
for all experts, and those of four samples are added together.
"""

import cython
import numpy as np

if cython.compiled:
    from cython.cimports.libc.math import exp
else:
    from math import exp

# Samples whose products are added together.
TOGETHER = cython.declare(cython.Py_ssize_t, 4)
# Agreement below 1e-4: the squared residual beyond which ``exp(-r^2 / 2)`` is left out.
FARTHEST = cython.declare(cython.double, 18.42)
# Pivots are raised to this part of their diagonal entry.
GRAIN = cython.declare(cython.double, 1e-14)


def fit_experts(
    features: cython.const[cython.double][:, ::1],
    targets: cython.const[cython.double][:, ::1],
    ridges: cython.const[cython.double][::1],
    weights: cython.const[cython.double][:, ::1],
):
    """Fit every expert to its weighted samples.

    Parameters
    ----------
    features : ndarray of float64, shape (n, p)
    targets : ndarray of float64, shape (n, K)
    ridges : ndarray of float64, shape (p,)
        Diagonal of ``R``.
    weights : ndarray of float64, shape (Q, n)
        Not negative.

    Returns
    -------
    experts : ndarray of float64, shape (Q, p, K)
    least : float
        The least pivot, as a part of its diagonal entry: zero for features that depend on others.
    """
    n, p, n_experts = features.shape[0], features.shape[1], weights.shape[0]
    experts_array = np.zeros((n_experts, p, targets.shape[1]))
    experts: cython.double[:, :, ::1] = experts_array
    sums: _Sums = _Sums(features, targets, n_experts)
    least: cython.double = 1.0
    total: cython.double
    with cython.nogil:
        for i in range(n):
            sums._enter(i)
            for q in range(n_experts):
                sums.heights[sums.filled, q] = weights[q, i]
            sums.filled += 1
            if sums.filled == TOGETHER:
                sums._add()
        sums._add()
        for q in range(n_experts):
            total = 0.0
            for i in range(n):
                total += weights[q, i]
            for a in range(p):
                sums.ridges[a] = total * ridges[a]
            least = min(least, sums._solve(q, experts[q]))
    return experts_array, least


def costs_of(
    features: cython.const[cython.double][:, ::1],
    targets: cython.const[cython.double][:, ::1],
    ridges: cython.const[cython.double][::1],
    experts: cython.const[cython.double][:, :, ::1],
):
    """Costs of all samples with all experts.

    Parameters
    ----------
    features, targets, ridges
        The problem, as for `fit_experts`.
    experts : ndarray of float64, shape (Q, p, K)

    Returns
    -------
    costs : ndarray of float64, shape (Q, n)
        ``(|y_i - V_q'x_i|^2 + tr(V_q'R V_q)) / 2``.
    """
    costs_array = np.empty((experts.shape[0], features.shape[0]))
    costs: cython.double[:, ::1] = costs_array
    penalty: cython.double
    rest: cython.double
    with cython.nogil:
        for q in range(experts.shape[0]):
            penalty = 0.0
            for a in range(experts.shape[1]):
                for k in range(experts.shape[2]):
                    penalty += 0.5 * ridges[a] * experts[q, a, k] * experts[q, a, k]
            for i in range(features.shape[0]):
                costs[q, i] = penalty
                for k in range(experts.shape[2]):
                    rest = targets[i, k]
                    for a in range(experts.shape[1]):
                        rest -= features[i, a] * experts[q, a, k]
                    costs[q, i] += 0.5 * rest * rest
    return costs_array


@cython.cclass
class _Sums:
    """Weighted sums of products, ``sum w x x'`` and ``sum w x y'``, for each expert."""

    features: cython.const[cython.double][:, ::1]
    targets: cython.const[cython.double][:, ::1]
    # Products of the samples that wait to be added, their weights for each expert, their number.
    products: cython.double[:, ::1]
    heights: cython.double[:, ::1]
    filled: cython.Py_ssize_t
    # The sums of each expert: the lower triangle by rows, each followed by the products with y.
    sums: cython.double[:, ::1]
    # Added to the diagonal; the factor ``L D L'``, and a solution on the way.
    ridges: cython.double[::1]
    factor: cython.double[:, ::1]
    halfway: cython.double[::1]

    def __init__(self, features, targets, n_experts):
        p, n_outputs = features.shape[1], targets.shape[1]
        width = p * (p + 1) // 2 + p * n_outputs
        self.features = features
        self.targets = targets
        self.products = np.zeros((TOGETHER, width))
        self.heights = np.zeros((TOGETHER, n_experts))
        self.sums = np.zeros((n_experts, width))
        self.filled = 0
        self.ridges = np.zeros(p)
        self.factor = np.zeros((p, p))
        self.halfway = np.zeros(p)

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _square(self, i: cython.Py_ssize_t, expert: cython.double[:, ::1]) -> cython.double:
        """``|y_i - V'x_i|^2``."""
        square: cython.double = 0.0
        rest: cython.double
        for k in range(self.targets.shape[1]):
            rest = self.targets[i, k]
            for a in range(self.features.shape[1]):
                rest -= self.features[i, a] * expert[a, k]
            square += rest * rest
        return square

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _enter(self, i: cython.Py_ssize_t) -> cython.void:
        """Form the products of a sample."""
        place: cython.Py_ssize_t = 0
        t: cython.Py_ssize_t = self.filled
        for a in range(self.features.shape[1]):
            x = self.features[i, a]
            for b in range(a + 1):
                self.products[t, place + b] = x * self.features[i, b]
            place += a + 1
            for k in range(self.targets.shape[1]):
                self.products[t, place + k] = x * self.targets[i, k]
            place += self.targets.shape[1]

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _add(self) -> cython.void:
        """Add the samples that wait to the sums of all experts."""
        for t in range(self.filled, TOGETHER):
            self.heights[t, :] = 0.0
        for q in range(self.sums.shape[0]):
            a = self.heights[0, q]
            b = self.heights[1, q]
            c = self.heights[2, q]
            d = self.heights[3, q]
            n_weighed: cython.Py_ssize_t = 0
            for t in range(TOGETHER):
                if self.heights[t, q] != 0.0:
                    n_weighed += 1
            if n_weighed < 2:  # most weights of a hard assignment are zero
                self._add_one(q)
                continue
            for j in range(self.sums.shape[1]):
                self.sums[q, j] += (
                    a * self.products[0, j]
                    + b * self.products[1, j]
                    + c * self.products[2, j]
                    + d * self.products[3, j]
                )
        self.filled = 0

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _add_one(self, q: cython.Py_ssize_t) -> cython.void:
        """Add the only sample with a weight for an expert, if there is one."""
        for t in range(TOGETHER):
            weight = self.heights[t, q]
            if weight != 0.0:
                for j in range(self.sums.shape[1]):
                    self.sums[q, j] += weight * self.products[t, j]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _level(self, ridge: cython.double) -> cython.void:
        """Set the ridges to a part of the mean diagonal entry of the first expert."""
        place: cython.Py_ssize_t = 0
        trace: cython.double = 0.0
        for a in range(self.ridges.shape[0]):
            trace += self.sums[0, place + a]
            place += a + 1 + self.targets.shape[1]
        for a in range(self.ridges.shape[0]):
            self.ridges[a] = ridge * trace / self.ridges.shape[0]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _solve(self, q: cython.Py_ssize_t, expert: cython.double[:, ::1]) -> cython.double:
        """Solve for an expert, empty its sums, and return the least pivot over its diagonal."""
        least: cython.double = 1.0
        total: cython.double
        pivot: cython.double
        p: cython.Py_ssize_t = self.ridges.shape[0]
        n_outputs: cython.Py_ssize_t = self.targets.shape[1]
        place: cython.Py_ssize_t = 0
        for a in range(p):
            diagonal = self.sums[q, place + a] + self.ridges[a]
            pivot = diagonal
            for b in range(a):
                total = self.sums[q, place + b]
                for c in range(b):
                    total -= self.factor[a, c] * self.factor[b, c] * self.factor[c, c]
                total /= self.factor[b, b]
                self.factor[a, b] = total
                pivot -= total * total * self.factor[b, b]
            # A column of zeros gets the weight zero.
            self.factor[a, a] = max(pivot, GRAIN * diagonal) if diagonal > 0.0 else 1.0
            least = min(least, pivot / diagonal) if diagonal > 0.0 else 0.0
            place += a + 1 + n_outputs
        for k in range(n_outputs):
            place = 0
            for a in range(p):
                total = self.sums[q, place + a + 1 + k]
                for b in range(a):
                    total -= self.factor[a, b] * self.halfway[b]
                self.halfway[a] = total
                place += a + 1 + n_outputs
            for c in range(p):
                a = p - 1 - c
                total = self.halfway[a] / self.factor[a, a]
                for b in range(a + 1, p):
                    total -= self.factor[b, a] * expert[b, k]
                expert[a, k] = total
        self.sums[q, :] = 0.0
        return least


@cython.cclass
class Follower:
    """One expert for the samples that agree with it, by reweighted least squares.

    A step fits the expert with the weights ``s_i exp(-r_i^2 / 2 scale^2)``, ``r_i`` being the
    length of a sample's residuals times its factor.

    Parameters
    ----------
    features : ndarray of float64, shape (n, p)
    targets : ndarray of float64, shape (n, K)
    factors : ndarray of float64, shape (n,)
    ridge : float
        As a part of the mean diagonal entry of the normal matrix.
    """

    factors: cython.const[cython.double][::1]
    ridge: cython.double
    sums: _Sums
    before: cython.double[:, ::1]

    def __init__(self, features, targets, factors, ridge):
        self.factors = factors
        self.ridge = ridge
        self.sums = _Sums(features, targets, 1)
        self.before = np.zeros((features.shape[1], targets.shape[1]))

    def follow(
        self,
        shares: cython.const[cython.double][::1],
        expert: cython.double[:, ::1],
        scale: cython.double,
        tol: cython.double,
    ):
        """Take one step.

        Parameters
        ----------
        shares : ndarray of float64, shape (n,)
            The weights ``s_i``.
        expert : ndarray of float64, shape (p, K)
            Changed in place.
        scale : float
        tol : float
            Relative change of the weights below which they are settled.

        Returns
        -------
        mass : float
            Sum of the weights of the step.
        squares : float
            The same of the weighted ``r_i^2``, before the step.
        settled : bool
            Whether the expert has changed by less than `tol`.
        """
        sums: _Sums = self.sums
        mass: cython.double = 0.0
        squares: cython.double = 0.0
        change: cython.double = 0.0
        largest: cython.double = 0.0
        with cython.nogil:
            for i in range(self.factors.shape[0]):
                square = self.factors[i] * self.factors[i] * sums._square(i, expert)
                apart = square / (scale * scale)
                if apart > FARTHEST:
                    continue
                weight = shares[i] * exp(-0.5 * apart)
                mass += weight
                squares += weight * square
                sums._enter(i)
                sums.heights[sums.filled, 0] = weight
                sums.filled += 1
                if sums.filled == TOGETHER:
                    sums._add()
            sums._add()
            self.before[:, :] = expert
            sums._level(self.ridge)
            sums._solve(0, expert)
            for a in range(expert.shape[0]):
                for k in range(expert.shape[1]):
                    change = max(change, abs(expert[a, k] - self.before[a, k]))
                    largest = max(largest, abs(expert[a, k]))
        return mass, squares, change <= tol * largest
