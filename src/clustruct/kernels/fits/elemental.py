# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Experts in least squares, from elemental starts and by moves of single samples.

Each of ``n`` samples, with features ``x_i`` (a constant among them), targets ``y_i`` and weight
``s_i``, is assigned to one of ``Q`` experts ``V_q``, and costs with that

    c_iq = |y_i - V_q'x_i|^2 / 2 + tr(V_q'R V_q) / 2,

``R`` being the diagonal matrix of the ridges. Expert ``q`` minimises its samples' ``sum s_i c_iq``,
a quadratic function with the second derivative ``A_q = sum s_i (x_i x_i' + R)``.

**Elemental starts.** ``p`` samples in general position determine an expert of ``p`` weights. An
expert that begins at the fit of ``p`` samples which belong together is close to its end, and with
few weights a few starts hold such a draw for every expert. Then samples and experts are fitted in
turn.

**The gain of a move.** Taking sample ``i`` into expert ``q`` adds ``s c_iq(V)`` to a function whose
minimum is ``V_q``. With the gradient ``g = R V_q - x_i (y_i - V_q'x_i)'`` of ``c_iq``, and the
second derivative after the move, the minimum changes by exactly

    s c_iq - s^2 tr(g'(A_q + s (x_i x_i' + R))^-1 g) / 2,

and taking it out by the same with ``-s`` for ``s``. No term is a small difference of large ones. A
move that no assignment by the least cost would make may gain: the sample pulls its own expert.
Since ``A_q'`` is at least ``A_q + s x_i x_i'``, the first change is no less than

    s |y_i - V_q'x_i|^2 / (2 + 2 s |x_i|^2 tr A_q^-1),

which rules most moves out without a factorisation.

**Singular matrices.** Pivots are raised to ``GRAIN`` times the diagonal entry, so that experts with
fewer samples than weights, and experts with none, need no case of their own.
"""

import cython
import numpy as np

# Rounding, magnified by its inverse, and the grain itself are the errors it leaves.
GRAIN = cython.declare(cython.double, 1e-9)
# A gain below this share of the objective may be rounding.
LEAST_GAIN = cython.declare(cython.double, 1e-12)


def search(
    features: cython.double[:, ::1],
    targets: cython.double[:, ::1],
    shares: cython.double[::1],
    ridges: cython.double[::1],
    n_experts: cython.Py_ssize_t,
    uniforms: cython.double[:, :, ::1],
    max_rounds: cython.Py_ssize_t,
):
    """Fit experts from elemental starts.

    Parameters
    ----------
    features : ndarray of float64, shape (n, p)
        Rows ``x_i``.
    targets : ndarray of float64, shape (n, K)
        Rows ``y_i``.
    shares : ndarray of float64, shape (n,)
        Weights of the samples, positive.
    ridges : ndarray of float64, shape (p,)
        Diagonal of ``R``.
    n_experts : int
        Number of experts, ``Q``.
    uniforms : ndarray of float64, shape (m, Q, p)
        Random numbers from [0, 1), one for each draw of each start.
    max_rounds : int
        Most rounds over all samples, for each start and kind of step.

    Returns
    -------
    values : ndarray of float64, shape (m,)
        The objective ``sum s_i c_iq(i)`` of each start.
    labels : ndarray of intp, shape (m, n)
        The expert of each sample, for each start.
    """
    values_array = np.empty(uniforms.shape[0])
    labels_array = np.zeros((uniforms.shape[0], features.shape[0]), dtype=np.intp)
    values: cython.double[::1] = values_array
    labels: cython.Py_ssize_t[:, ::1] = labels_array
    panel: _Panel = _Panel(features, targets, shares, ridges, n_experts)
    with cython.nogil:
        for row in range(uniforms.shape[0]):
            panel._draw(uniforms[row])
            panel._alternate(max_rounds)
            panel._descend(max_rounds)
            values[row] = panel.value
            labels[row, :] = panel.labels
    return values_array, labels_array


@cython.cclass
class _Panel:
    """Labels of the samples, the experts, and the matrices from which moves are scored."""

    # The problem.
    features: cython.double[:, ::1]
    targets: cython.double[:, ::1]
    shares: cython.double[::1]
    ridges: cython.double[::1]
    n_experts: cython.Py_ssize_t
    # Squared lengths of the samples' features.
    lengths: cython.double[::1]
    # Labels, samples of each expert, ``normal = A``, ``moment = sum s x y'``, ``experts = V``,
    # ``penalty = tr(V'R V) / 2``, ``reach = tr A^-1``, and the objective.
    labels: cython.Py_ssize_t[::1]
    sizes: cython.Py_ssize_t[::1]
    normal: cython.double[:, :, ::1]
    moment: cython.double[:, :, ::1]
    experts: cython.double[:, :, ::1]
    penalty: cython.double[::1]
    reach: cython.double[::1]
    value: cython.double
    # Samples in the order of the draws.
    order: cython.Py_ssize_t[::1]
    # The labels to go back to if moves were rounding, and work space.
    kept: cython.Py_ssize_t[::1]
    factor: cython.double[:, ::1]
    solved: cython.double[:, ::1]

    def __init__(self, features, targets, shares, ridges, n_experts):
        n, p = features.shape[0], features.shape[1]
        n_outputs = targets.shape[1]
        self.features = features
        self.targets = targets
        self.shares = shares
        self.ridges = ridges
        self.n_experts = n_experts
        self.lengths = np.square(np.asarray(features)).sum(axis=1)
        self.labels = np.zeros(n, dtype=np.intp)
        self.sizes = np.zeros(n_experts, dtype=np.intp)
        self.normal = np.zeros((n_experts, p, p))
        self.moment = np.zeros((n_experts, p, n_outputs))
        self.experts = np.zeros((n_experts, p, n_outputs))
        self.penalty = np.zeros(n_experts)
        self.reach = np.zeros(n_experts)
        self.order = np.arange(n)
        self.kept = np.empty(n, dtype=np.intp)
        self.factor = np.zeros((p, p))
        self.solved = np.zeros((p, max(n_outputs, 1)))

    # ---- Starts.

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _draw(self, uniforms: cython.double[:, ::1]) -> cython.void:
        """Fit every expert to as many samples as it has weights, and assign all samples."""
        n: cython.Py_ssize_t = self.labels.shape[0]
        for i in range(n):
            self.order[i] = i
            self.labels[i] = 0
        for q in range(self.n_experts):
            self._clear(q)
            for j in range(min(n, self.features.shape[1])):
                k = min(j + cython.cast(cython.Py_ssize_t, uniforms[q, j] * (n - j)), n - 1)
                i = self.order[k]
                self.order[k] = self.order[j]
                self.order[j] = i
                self._take(q, i, 1.0)
            self._refit(q)
        self._assign()

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _alternate(self, max_rounds: cython.Py_ssize_t) -> cython.void:
        """Fit the experts to their samples and assign samples to experts until none changes."""
        for _ in range(max_rounds):
            self._gather()
            if not self._assign():
                break

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _assign(self) -> cython.bint:
        """Assign every sample to the expert with the least cost; whether any has changed."""
        changed: cython.bint = False
        for i in range(self.labels.shape[0]):
            best = self.labels[i]
            least = self._cost(i, best)
            for q in range(self.n_experts):
                cost = self._cost(i, q)
                if cost < least:
                    least = cost
                    best = q
            if best != self.labels[i]:
                self.labels[i] = best
                changed = True
        return changed

    # ---- Experts.

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _gather(self) -> cython.void:
        """Compute everything from the labels."""
        for q in range(self.n_experts):
            self._clear(q)
        for i in range(self.labels.shape[0]):
            self._take(self.labels[i], i, 1.0)
        for q in range(self.n_experts):
            self._refit(q)
        self.value = 0.0
        for i in range(self.labels.shape[0]):
            self.value += self.shares[i] * self._cost(i, self.labels[i])

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _clear(self, q: cython.Py_ssize_t) -> cython.void:
        """Take all samples from an expert."""
        self.sizes[q] = 0
        self.normal[q, :, :] = 0.0
        self.moment[q, :, :] = 0.0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _take(self, q: cython.Py_ssize_t, i: cython.Py_ssize_t, sign: cython.double) -> cython.void:
        """Add a sample to the sums of an expert, or subtract it for the sign -1."""
        weight: cython.double = sign * self.shares[i]
        self.sizes[q] += 1 if sign > 0.0 else -1
        for a in range(self.features.shape[1]):
            scaled = weight * self.features[i, a]
            for b in range(a + 1):
                self.normal[q, a, b] += scaled * self.features[i, b]
            self.normal[q, a, a] += weight * self.ridges[a]
            for k in range(self.targets.shape[1]):
                self.moment[q, a, k] += scaled * self.targets[i, k]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _refit(self, q: cython.Py_ssize_t) -> cython.void:
        """Fit an expert to its sums; one without samples stays as it is."""
        p: cython.Py_ssize_t = self.features.shape[1]
        total: cython.double
        if self.sizes[q] == 0:
            self.reach[q] = 1.0 / GRAIN
            return
        for a in range(p):
            for b in range(a + 1):
                self.factor[a, b] = self.normal[q, a, b]
        self._factorise()
        for k in range(self.targets.shape[1]):
            for a in range(p):
                total = self.moment[q, a, k]
                for b in range(a):
                    total -= self.factor[a, b] * self.solved[b, k]
                self.solved[a, k] = total
            for c in range(p):
                a = p - 1 - c
                total = self.solved[a, k] / self.factor[a, a]
                for b in range(a + 1, p):
                    total -= self.factor[b, a] * self.experts[q, b, k]
                self.experts[q, a, k] = total
        self.penalty[q] = 0.0
        for a in range(p):
            for k in range(self.targets.shape[1]):
                self.penalty[q] += 0.5 * self.ridges[a] * self.experts[q, a, k] ** 2
        self.reach[q] = self._trace_of_inverse()

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _factorise(self) -> cython.void:
        """Factorise ``L D L'`` in place; no pivot goes below its grain."""
        pivot: cython.double
        scaled: cython.double
        p: cython.Py_ssize_t = self.factor.shape[0]
        for a in range(p):
            pivot = self.factor[a, a]
            grain = GRAIN * pivot
            for b in range(a):
                scaled = self.factor[a, b]
                for c in range(b):
                    scaled -= self.factor[a, c] * self.factor[b, c] * self.factor[c, c]
                scaled /= self.factor[b, b]
                self.factor[a, b] = scaled
                pivot -= scaled * scaled * self.factor[b, b]
            # A column of zeros has no entry to compare with, and weights of zero.
            self.factor[a, a] = max(pivot, grain) if grain > 0.0 else 1.0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _trace_of_inverse(self) -> cython.double:
        """The trace of the inverse of what was factorised."""
        p: cython.Py_ssize_t = self.factor.shape[0]
        trace: cython.double = 0.0
        total: cython.double
        for j in range(p):
            for a in range(j, p):
                total = 1.0 if a == j else 0.0
                for b in range(j, a):
                    total -= self.factor[a, b] * self.solved[b, 0]
                self.solved[a, 0] = total
                trace += total * total / self.factor[a, a]
        return trace

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _residual(
        self, i: cython.Py_ssize_t, q: cython.Py_ssize_t, k: cython.Py_ssize_t
    ) -> cython.double:
        """``y_i - V_q'x_i`` of one output."""
        rest: cython.double = self.targets[i, k]
        for a in range(self.features.shape[1]):
            rest -= self.features[i, a] * self.experts[q, a, k]
        return rest

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _cost(self, i: cython.Py_ssize_t, q: cython.Py_ssize_t) -> cython.double:
        """The cost ``c_iq``."""
        cost: cython.double = self.penalty[q]
        for k in range(self.targets.shape[1]):
            rest = self._residual(i, q, k)
            cost += 0.5 * rest * rest
        return cost

    # ---- Moves.

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _descend(self, max_rounds: cython.Py_ssize_t) -> cython.void:
        """Go over the samples while moves of single ones gain."""
        for _ in range(max_rounds):
            before = self.value
            self.kept[:] = self.labels
            moved = False
            for i in range(self.labels.shape[0]):
                moved |= self._improve(i, LEAST_GAIN * before)
            if not moved:
                break
            # The running sums have drifted: what counts is the figure from the labels.
            self._gather()
            if self.value >= before:
                self.labels[:] = self.kept
                self._gather()
                break

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _improve(self, i: cython.Py_ssize_t, least: cython.double) -> cython.bint:
        """Move a sample to the expert where it gains most, if that is more than ``least``."""
        p: cython.Py_ssize_t = self.labels[i]
        best: cython.Py_ssize_t = p
        if self.sizes[p] == 1:
            return False  # its expert fits it as well as can be
        relief = -self._change(i, p, -1.0)
        for q in range(self.n_experts):
            if q == p or self._least_change(i, q) >= relief - least:
                continue
            gain = relief - self._change(i, q, 1.0)
            if gain > least:
                least = gain
                best = q
        if best == p:
            return False
        self.labels[i] = best
        self._take(p, i, -1.0)
        self._take(best, i, 1.0)
        self._refit(p)
        self._refit(best)
        return True

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _least_change(self, i: cython.Py_ssize_t, q: cython.Py_ssize_t) -> cython.double:
        """What a sample that joins an expert adds at least."""
        weight: cython.double = self.shares[i]
        loss: cython.double = self._cost(i, q) - self.penalty[q]
        return weight * loss / (1.0 + weight * self.lengths[i] * self.reach[q])

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _change(
        self, i: cython.Py_ssize_t, q: cython.Py_ssize_t, sign: cython.double
    ) -> cython.double:
        """What a sample that joins an expert adds, or with the sign -1 one that leaves it."""
        weight: cython.double = sign * self.shares[i]
        p: cython.Py_ssize_t = self.features.shape[1]
        total: cython.double
        for a in range(p):
            scaled = weight * self.features[i, a]
            for b in range(a + 1):
                self.factor[a, b] = self.normal[q, a, b] + scaled * self.features[i, b]
            self.factor[a, a] += weight * self.ridges[a]
        self._factorise()
        cost: cython.double = self.penalty[q]
        refitted: cython.double = 0.0
        for k in range(self.targets.shape[1]):
            rest = self._residual(i, q, k)
            cost += 0.5 * rest * rest
            for a in range(p):
                total = self.ridges[a] * self.experts[q, a, k] - self.features[i, a] * rest
                for b in range(a):
                    total -= self.factor[a, b] * self.solved[b, k]
                self.solved[a, k] = total
                refitted += total * total / self.factor[a, a]
        return weight * cost - 0.5 * weight * weight * refitted
