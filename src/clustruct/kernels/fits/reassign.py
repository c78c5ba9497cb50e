# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Groups of features improved one feature at a time: downhill, or at a temperature.

Weights ``W = Z V`` (``Z`` says which of ``Q`` groups each of ``d`` features is in, ``V`` holds the
weights of the groups for ``K`` outputs) minimise ``tr(W'A W) / 2 - tr(C'W)``. With ``N = Z'A Z``
and ``B = Z'C`` the best ``V`` is ``N^-1 B``, and the minimum is minus the **explained** part
``tr(B'N^-1 B) / 2``, which the kernels here make as large as they can by changing ``Z``.

**The gain of a move.** Take feature ``j`` from group ``p`` to ``q``. With ``u = e_q - e_p``,
``a = A_jj`` and ``h = Z'A e_j``,

    N' = N + u h' + h u' + a u u',    B' = B + u c_j' .

While ``V`` is held, the weights of ``j`` change by ``s = V'u``. With the residual
``r = c_j - V'h`` that gains ``r's - a s's / 2`` and leaves the groups with the gradient
``h s' + u (a s - r)'``; refitting gains half its squared norm in ``N'^-1``. Woodbury's formula,
with ``uu = u'N^-1 u``, ``uh = u'N^-1 h``, ``hh = h'N^-1 h``, gives

    D = det N' / det N = (1 + uh)^2 + uu (a - hh),
    u'N'^-1 u = uu / D,
    u'N'^-1 h = (uh (1 + uh) - uu hh) / D,
    h'N'^-1 h = (hh + a (uu hh - uh^2)) / D.

No term is a small difference of large ones that the gain does not share, so small gains keep their
digits. ``N^-1 h`` is computed once for a feature, hence ``O(Q^2 + Q K)`` for all its moves, and an
accepted move costs ``O(d + Q^2)``.

**The zero group** has weights zero. It is the index after the last group, with a row of zeros in
``N^-1`` and in ``V``: the formulas need no case for it. Callers write it as the label -1.

**Singular matrices.** Each group has a grain of ridge: a pivot of ``N`` below ``GRAIN`` times the
diagonal entries that went into it is raised to that. So an empty group, columns that cancel and
copies of one column in two groups need no case of their own either.

Descent, annealing and pairs stand in one module, because they share the state of a partition and
calls between modules are several times slower.
"""

import cython
import numpy as np

if not cython.compiled:
    from math import exp

# Rounding, magnified by its inverse, and the grain itself are the errors it leaves.
GRAIN = cython.declare(cython.double, 1e-9)
# A gain below this share of the explained part may be rounding.
LEAST_GAIN = cython.declare(cython.double, 1e-12)
# The inverse is updated while ``D`` is within this factor of 1, and computed afresh beyond it.
TRUSTED = cython.declare(cython.double, 1e3)
# The logarithm of a chance that need not be computed.
NEVER = cython.declare(cython.double, -40.0)
# Pairs are drawn in every so many sweeps: a draw of a pair takes as long as five of one feature.
PAIRED = cython.declare(cython.Py_ssize_t, 3)
# Partners of features that move alone.
NOBODY = np.empty((0, 0), dtype=np.intp)


def descend(
    normal: cython.double[:, ::1],
    moment: cython.double[:, ::1],
    first: cython.Py_ssize_t[::1],
    last: cython.Py_ssize_t[::1],
    n_groups: cython.Py_ssize_t,
    n_nonzero: cython.Py_ssize_t,
    labels: cython.Py_ssize_t[:, ::1],
    max_sweeps: cython.Py_ssize_t,
    partners=None,
):
    """Move single features, from many starts, until no move explains more; then pairs.

    Parameters
    ----------
    normal : ndarray of float64, shape (d, d)
        The matrix ``A``, symmetric and positive semidefinite.
    moment : ndarray of float64, shape (d, K)
        The matrix ``C``, whose columns lie in the range of ``A``.
    first, last : ndarray of intp, shape (d,)
        Feature ``j`` may be in the groups ``first[j] <= q < last[j]``.
    n_groups : int
        Number of groups, ``Q``.
    n_nonzero : int
        How many features may be outside the zero group; -1 if there is no such group.
    labels : ndarray of intp, shape (m, d)
        The starts, -1 for the zero group; changed in place.
    max_sweeps : int
        Most rounds over all features, for each start.
    partners : ndarray of intp, shape (d, m), optional
        For each feature those with which it moves together where single moves explain no more, -1
        for none; never itself.

    Returns
    -------
    explained : ndarray of float64, shape (m,)
        ``tr(B'N^-1 B) / 2`` of the labels left in each row; never less than before.
    """
    explained_array = np.empty(labels.shape[0])
    explained: cython.double[::1] = explained_array
    partition: _Partition = _Partition(normal, moment, first, last, n_groups, n_nonzero)
    mates: cython.Py_ssize_t[:, ::1] = NOBODY if partners is None else partners
    with cython.nogil:
        for row in range(labels.shape[0]):
            partition._read(labels[row])
            explained[row] = partition.explained
            partition._descend(max_sweeps, mates)
            # The running sums have drifted: what counts is the figure from the labels.
            partition._gather()
            if partition.explained > explained[row]:
                explained[row] = partition.explained
                partition._write(labels[row])
    return explained_array


def anneal(
    normal: cython.double[:, ::1],
    moment: cython.double[:, ::1],
    first: cython.Py_ssize_t[::1],
    last: cython.Py_ssize_t[::1],
    n_groups: cython.Py_ssize_t,
    n_nonzero: cython.Py_ssize_t,
    labels: cython.Py_ssize_t[::1],
    temperatures: cython.double[::1],
    uniforms: cython.double[:, ::1],
    partners=None,
    pair_uniforms=None,
):
    """Draw the group of every feature once at each temperature, in turn; at some also of pairs.

    ``V`` is held in each such sweep, and refitted before it. Groups that would change the
    objective by ``e`` are drawn with a chance proportional to ``exp(-e / temperature)``. Where
    columns are correlated, the move of a feature costs much that the opposite move of a partner
    gives back: pairs still move where single features are frozen.

    Parameters
    ----------
    normal, moment, first, last, n_groups, n_nonzero
        The problem, as for `descend`.
    labels : ndarray of intp, shape (d,)
        The start, -1 for the zero group; changed in place.
    temperatures : ndarray of float64, shape (t,)
        Positive, in the units of the objective.
    uniforms : ndarray of float64, shape (t, d)
        Random numbers from [0, 1), one for each draw of a feature.
    partners : ndarray of intp, shape (d, m), optional
        For each feature those of which one is drawn together with it, -1 for none; never itself.
    pair_uniforms : ndarray of float64, shape (t, d) or less
        Random numbers from [0, 1), one for each pair, a row for every third temperature; needed if
        there are partners.
    """
    partition: _Partition = _Partition(normal, moment, first, last, n_groups, n_nonzero)
    mates: cython.Py_ssize_t[:, ::1] = NOBODY if partners is None else partners
    chances: cython.double[:, ::1] = uniforms if pair_uniforms is None else pair_uniforms
    with cython.nogil:
        partition._read(labels)
        for sweep in range(temperatures.shape[0]):
            partition._refit()
            partition._refresh_residuals()
            for j in range(labels.shape[0]):
                partition._draw(j, temperatures[sweep], uniforms[sweep, j])
            if mates.shape[1] == 0 or sweep % PAIRED != 0:
                continue
            for j in range(labels.shape[0]):
                # The whole part of the scaled number chooses the partner, the rest is uniform.
                uniform = mates.shape[1] * chances[sweep // PAIRED, j]
                m = cython.cast(cython.Py_ssize_t, uniform)
                if mates[j, m] >= 0:
                    partition._draw_pair(j, mates[j, m], temperatures[sweep], uniform - m)
        partition._write(labels)


@cython.cclass
class _Partition:
    """Labels of the features, and the matrices from which moves are scored."""

    # The problem. ``zero`` is the index of the zero group.
    normal: cython.double[:, ::1]
    moment: cython.double[:, ::1]
    first: cython.Py_ssize_t[::1]
    last: cython.Py_ssize_t[::1]
    zero: cython.Py_ssize_t
    n_nonzero: cython.Py_ssize_t
    grain: cython.double
    # Labels, sizes of groups, ``reach = Z'A``, ``totals = B``, ``inverse = N^-1``, ``centers = V``.
    labels: cython.Py_ssize_t[::1]
    sizes: cython.Py_ssize_t[::1]
    reach: cython.double[:, ::1]
    totals: cython.double[:, ::1]
    inverse: cython.double[:, ::1]
    centers: cython.double[:, ::1]
    explained: cython.double
    # The feature looked at: ``h``, ``pull = N^-1 h``, ``hh`` and ``rr = r'r``.
    h: cython.double[::1]
    pull: cython.double[::1]
    hh: cython.double
    rr: cython.double
    # Residuals ``(C - A W)'``: up to date for the feature looked at, and for all in draws.
    residuals: cython.double[:, ::1]
    # Work space: of a feature's groups, and of those of a pair.
    spare: cython.double[::1]
    pending: cython.Py_ssize_t[::1]
    joint: cython.double[:, ::1]

    def __init__(self, normal, moment, first, last, n_groups, n_nonzero):
        d, n_outputs = moment.shape[0], moment.shape[1]
        self.normal = normal
        self.moment = moment
        self.first = first
        self.last = last
        self.zero = n_groups
        self.n_nonzero = n_nonzero
        diagonal = np.diagonal(np.asarray(normal))
        self.grain = GRAIN * np.min(diagonal[diagonal > 0], initial=1.0)
        self.labels = np.empty(d, dtype=np.intp)
        self.sizes = np.empty(n_groups + 1, dtype=np.intp)
        self.reach = np.empty((n_groups + 1, d))
        self.totals = np.empty((n_groups + 1, n_outputs))
        self.inverse = np.empty((n_groups + 1, n_groups + 1))
        self.centers = np.zeros((n_groups + 1, n_outputs))
        self.h = np.empty(n_groups)
        self.pull = np.zeros(n_groups + 1)
        self.spare = np.empty(n_groups + 1)
        self.pending = np.empty(n_groups, dtype=np.intp)
        self.joint = np.empty((n_groups + 1, n_groups + 1))
        self.residuals = np.empty((n_outputs, d))

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _read(self, labels: cython.Py_ssize_t[::1]) -> cython.void:
        """Take labels over from a caller."""
        for i in range(labels.shape[0]):
            self.labels[i] = labels[i] if labels[i] >= 0 else self.zero
        self._gather()

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _write(self, labels: cython.Py_ssize_t[::1]) -> cython.void:
        """Hand the labels over to a caller."""
        for i in range(labels.shape[0]):
            labels[i] = self.labels[i] if self.labels[i] != self.zero else -1

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _gather(self) -> cython.void:
        """Compute everything from the labels."""
        self.sizes[:] = 0
        self.reach[:, :] = 0.0
        self.totals[:, :] = 0.0
        for j in range(self.labels.shape[0]):
            self.sizes[self.labels[j]] += 1
            for k in range(self.moment.shape[1]):
                self.totals[self.labels[j], k] += self.moment[j, k]
            for i in range(self.labels.shape[0]):
                self.reach[self.labels[j], i] += self.normal[j, i]
        self._refit()
        self._evaluate()

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _evaluate(self) -> cython.void:
        """Compute the explained part as ``tr(C'W) - tr(W'A W) / 2``.

        That is what the weights do explain, and if the centres are a little off it is off by the
        square of that.
        """
        self._refresh_residuals()
        self.explained = 0.0
        for i in range(self.labels.shape[0]):
            for k in range(self.moment.shape[1]):
                self.explained += (
                    0.5
                    * self.centers[self.labels[i], k]
                    * (self.moment[i, k] + self.residuals[k, i])
                )

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _refit(self) -> cython.void:
        """Compute ``N``, its inverse, the centres and the explained part from ``Z'A``."""
        self.inverse[:, :] = 0.0
        self.spare[:] = self.grain
        for i in range(self.labels.shape[0]):
            self.spare[self.labels[i]] += GRAIN * self.normal[i, i]
            for q in range(self.zero):
                self.inverse[q, self.labels[i]] += self.reach[q, i]
        for q in range(self.zero):
            self.inverse[q, self.zero] = 0.0
        self._invert()
        self._recentre()

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _invert(self) -> cython.void:
        """Gauss and Jordan's inversion in place; no pivot goes below its bound in ``spare``.

        The next pivot is the largest of the rest for its bound: where groups are dependent, small
        ones are then rounding and nothing else, and the bound replaces them.
        """
        p: cython.Py_ssize_t
        for p in range(self.zero):
            self.pending[p] = p
        for step in range(self.zero):
            for i in range(step + 1, self.zero):
                p, q = self.pending[step], self.pending[i]
                if self.inverse[q, q] * self.spare[p] > self.inverse[p, p] * self.spare[q]:
                    self.pending[step], self.pending[i] = q, p
            p = self.pending[step]
            factor = 1.0 / max(self.inverse[p, p], self.spare[p])
            self.inverse[p, p] = 1.0
            for q in range(self.zero):
                self.inverse[p, q] *= factor
            for i in range(self.zero):
                if i != p:
                    factor = self.inverse[i, p]
                    self.inverse[i, p] = 0.0
                    for q in range(self.zero):
                        self.inverse[i, q] -= factor * self.inverse[p, q]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _recentre(self) -> cython.void:
        """Compute the centres ``V = N^-1 B`` and the explained part ``tr(B'V) / 2``."""
        center: cython.double
        self.explained = 0.0
        for p in range(self.zero):
            for k in range(self.moment.shape[1]):
                center = 0.0
                for q in range(self.zero):
                    center += self.inverse[p, q] * self.totals[q, k]
                self.centers[p, k] = center
                self.explained += 0.5 * center * self.totals[p, k]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _descend(
        self,
        max_sweeps: cython.Py_ssize_t,
        mates: cython.Py_ssize_t[:, ::1],
    ) -> cython.void:
        """Sweep over the features while that explains more, and over pairs where it does not."""
        for _ in range(max_sweeps):
            moved = False
            before = self.explained
            for j in range(self.labels.shape[0]):
                moved |= self._improve(j, LEAST_GAIN * before)
            if not moved:
                for j in range(self.labels.shape[0]):
                    moved |= self._exchange(j, LEAST_GAIN * before)
            if not moved:
                for j in range(self.labels.shape[0]):
                    for m in range(mates.shape[1]):
                        if mates[j, m] >= 0:
                            moved |= self._improve_pair(j, mates[j, m], LEAST_GAIN * before)
            self._refit()
            # Gains that are not there any more after a refit were rounding.
            if not moved or self.explained <= before:
                break

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _improve(self, j: cython.Py_ssize_t, least: cython.double) -> cython.bint:
        """Move a feature where it gains most, if that is more than ``least``."""
        p: cython.Py_ssize_t = self.labels[j]
        best: cython.Py_ssize_t = p
        if self._is_bound(p):
            return False
        self._look_at(j)
        for c in range(self.first[j], self._end(j)):
            q = self._choice(j, c)
            if q != p:
                gain = self._gain(j, p, q)
                if gain > least:
                    least = gain
                    best = q
        if best == p:
            return False
        self._move(j, p, best)
        return True

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _is_bound(self, p: cython.Py_ssize_t) -> cython.bint:
        """Whether no feature may leave a group: it is the last one, or all others are in use."""
        if p == self.zero:
            return self.labels.shape[0] - self.sizes[p] >= self.n_nonzero
        return self.sizes[p] == 1

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _end(self, j: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The end of the choices of a feature, which start at ``first[j]``."""
        return self.last[j] + (1 if self.n_nonzero >= 0 else 0)

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _choice(self, j: cython.Py_ssize_t, c: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The group of a choice: those of its range, then the zero group if there is one."""
        return c if c < self.last[j] else self.zero

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _exchange(self, j: cython.Py_ssize_t, least: cython.double) -> cython.bint:
        """Let a feature outside the full zero group change places with the best one inside it."""
        p: cython.Py_ssize_t = self.labels[j]
        best: cython.Py_ssize_t = j
        target: cython.Py_ssize_t = p
        if p == self.zero or self.labels.shape[0] - self.sizes[self.zero] != self.n_nonzero:
            return False
        loss = self.explained
        self._look_at(j)
        self._move(j, p, self.zero)
        loss -= self.explained
        for i in range(self.labels.shape[0]):
            if self.labels[i] != self.zero or i == j:
                continue
            self._look_at(i)
            for q in range(self.first[i], self.last[i]):
                gain = self._gain(i, self.zero, q) - loss
                if gain > least:
                    least = gain
                    best = i
                    target = q
        self._look_at(best)
        self._move(best, self.zero, target)
        return best != j

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _improve_pair(
        self, j: cython.Py_ssize_t, i: cython.Py_ssize_t, least: cython.double
    ) -> cython.bint:
        """Move two features where they gain most together, if that is more than ``least``.

        The gain is that of the first move, which is made, and that of the second after it.
        """
        p: cython.Py_ssize_t = self.labels[j]
        o: cython.Py_ssize_t = self.labels[i]
        best: cython.Py_ssize_t = p
        target: cython.Py_ssize_t = o
        before: cython.double = self.explained
        filled: cython.bint
        for c in range(self.first[j], self._end(j)):
            q = self._choice(j, c)
            if q == p:
                continue
            self._look_at(j)
            self._move(j, p, q)
            change = self.explained - before
            self._look_at(i)
            for b in range(self.first[i], self._end(i)):
                r = self._choice(i, b)
                # The first feature is in ``q`` already; what it left must not stay empty.
                filled = p == self.zero or r == p or self.sizes[p] > 0
                if r != o and filled and self._may_pair(q, q, o, r):
                    gain = change + self._gain(i, o, r)
                    if gain > least:
                        least = gain
                        best = q
                        target = r
            self._look_at(j)
            self._move(j, q, p)
        if best == p:
            return False
        self._look_at(j)
        self._move(j, p, best)
        self._look_at(i)
        self._move(i, o, target)
        return True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _look_at(self, j: cython.Py_ssize_t) -> cython.void:
        """Compute what all moves of a feature share."""
        total: cython.double
        for q in range(self.zero):
            self.h[q] = self.reach[q, j]
        self.hh = 0.0
        for p in range(self.zero):
            total = 0.0
            for q in range(self.zero):
                total += self.inverse[p, q] * self.h[q]
            self.pull[p] = total
            self.hh += total * self.h[p]
        self.rr = 0.0
        for k in range(self.moment.shape[1]):
            total = self.moment[j, k]
            for q in range(self.zero):
                total -= self.h[q] * self.centers[q, k]
            self.residuals[k, j] = total
            self.rr += total * total

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _gain(
        self, j: cython.Py_ssize_t, p: cython.Py_ssize_t, q: cython.Py_ssize_t
    ) -> cython.double:
        """How much more is explained when the feature looked at moves from ``p`` to ``q``."""
        a: cython.double = self.normal[j, j]
        hh: cython.double = self.hh
        uu: cython.double = self._separation(p, q)
        uh: cython.double = self.pull[q] - self.pull[p]
        ss: cython.double = 0.0
        rs: cython.double = 0.0
        for k in range(self.moment.shape[1]):
            change = self.centers[q, k] - self.centers[p, k]
            ss += change * change
            rs += change * self.residuals[k, j]
        norm = (
            ss * (hh + a * (uu * hh - uh * uh))
            + 2.0 * (a * ss - rs) * (uh * (1.0 + uh) - uu * hh)
            + (a * (a * ss - 2.0 * rs) + self.rr) * uu
        )
        return rs - 0.5 * a * ss + 0.5 * norm / self._ratio(j, uu, uh)

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _separation(self, p: cython.Py_ssize_t, q: cython.Py_ssize_t) -> cython.double:
        """``uu = u'N^-1 u`` for a move from ``p`` to ``q``."""
        return self.inverse[q, q] + self.inverse[p, p] - 2.0 * self.inverse[p, q]

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _ratio(self, j: cython.Py_ssize_t, uu: cython.double, uh: cython.double) -> cython.double:
        """``D = det N' / det N``; rounding must not make it negative."""
        return max((1.0 + uh) * (1.0 + uh) + uu * (self.normal[j, j] - self.hh), GRAIN)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _move(
        self, j: cython.Py_ssize_t, p: cython.Py_ssize_t, q: cython.Py_ssize_t
    ) -> cython.void:
        """Move the feature looked at from ``p`` to ``q``, and refit."""
        uu: cython.double = self._separation(p, q)
        uh: cython.double = self.pull[q] - self.pull[p]
        ratio: cython.double = self._ratio(j, uu, uh)
        self._relabel(j, p, q)
        if 1.0 < ratio * TRUSTED and ratio < TRUSTED:
            self._update_inverse(j, p, q, uu, uh, 1.0 / ratio)
            self._recentre()
        else:
            self._refit()

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _relabel(
        self, j: cython.Py_ssize_t, p: cython.Py_ssize_t, q: cython.Py_ssize_t
    ) -> cython.void:
        """Move a feature from ``p`` to ``q`` in all but the inverse and the centres."""
        self.labels[j] = q
        self.sizes[p] -= 1
        self.sizes[q] += 1
        for k in range(self.moment.shape[1]):
            self.totals[p, k] -= self.moment[j, k]
            self.totals[q, k] += self.moment[j, k]
        for i in range(self.labels.shape[0]):
            self.reach[p, i] -= self.normal[j, i]
            self.reach[q, i] += self.normal[j, i]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _update_inverse(
        self,
        j: cython.Py_ssize_t,
        p: cython.Py_ssize_t,
        q: cython.Py_ssize_t,
        uu: cython.double,
        uh: cython.double,
        factor: cython.double,
    ) -> cython.void:
        """Woodbury's formula: ``x = N^-1 u`` and ``y = N^-1 h`` give the inverse after a move.

        ``N'^-1 = N^-1 + (uu y y' - (1 + uh) (x y' + y x') - (a - hh) x x') / D``.
        """
        gap: cython.double = self.normal[j, j] - self.hh
        for i in range(self.zero):
            self.spare[i] = self.inverse[i, q] - self.inverse[i, p]
        for i in range(self.zero):
            along_x = -factor * ((1.0 + uh) * self.pull[i] + gap * self.spare[i])
            along_y = factor * (uu * self.pull[i] - (1.0 + uh) * self.spare[i])
            for k in range(self.zero):
                self.inverse[i, k] += along_x * self.spare[k] + along_y * self.pull[k]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _refresh_residuals(self) -> cython.void:
        """Compute ``C - A W`` from ``Z'A`` and the centres."""
        for k in range(self.moment.shape[1]):
            for i in range(self.labels.shape[0]):
                self.residuals[k, i] = self.moment[i, k]
            for q in range(self.zero):
                for i in range(self.labels.shape[0]):
                    self.residuals[k, i] -= self.reach[q, i] * self.centers[q, k]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _draw(
        self, j: cython.Py_ssize_t, temperature: cython.double, uniform: cython.double
    ) -> cython.void:
        """Draw the group of a feature while the centres are held."""
        p: cython.Py_ssize_t = self.labels[j]
        if self._is_bound(p):
            return
        self._shift(j, self._pick(j, p, temperature, uniform))

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _shift(self, j: cython.Py_ssize_t, q: cython.Py_ssize_t) -> cython.void:
        """Move a feature to a group while the centres are held."""
        p: cython.Py_ssize_t = self.labels[j]
        if q == p:
            return
        self._relabel(j, p, q)
        for k in range(self.moment.shape[1]):
            change = self.centers[q, k] - self.centers[p, k]
            for i in range(self.labels.shape[0]):
                self.residuals[k, i] -= change * self.normal[j, i]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _draw_pair(
        self,
        j: cython.Py_ssize_t,
        i: cython.Py_ssize_t,
        temperature: cython.double,
        uniform: cython.double,
    ) -> cython.void:
        """Draw the groups of two features together while the centres are held.

        With the changes of their weights ``s`` and ``t`` they gain what each gains alone, less
        ``A_ji s't``.
        """
        p: cython.Py_ssize_t = self.labels[j]
        o: cython.Py_ssize_t = self.labels[i]
        top: cython.double = 0.0
        total: cython.double = 0.0
        for c in range(self.first[i], self._end(i)):
            self.spare[self._choice(i, c)] = self._held_gain(i, o, self._choice(i, c))
        for c in range(self.first[j], self._end(j)):
            q = self._choice(j, c)
            alone = self._held_gain(j, p, q)
            for b in range(self.first[i], self._end(i)):
                r = self._choice(i, b)
                if self._may_pair(p, q, o, r):
                    self.joint[q, r] = alone + self.spare[r] - self._overlap(j, p, q, i, o, r)
                    top = max(top, self.joint[q, r])
                else:
                    self.joint[q, r] = -1.0 / GRAIN
        for c in range(self.first[j], self._end(j)):
            q = self._choice(j, c)
            for b in range(self.first[i], self._end(i)):
                r = self._choice(i, b)
                alone = (self.joint[q, r] - top) / temperature
                self.joint[q, r] = exp(alone) if alone > NEVER else 0.0
                total += self.joint[q, r]
        uniform *= total
        for c in range(self.first[j], self._end(j)):
            q = self._choice(j, c)
            for b in range(self.first[i], self._end(i)):
                r = self._choice(i, b)
                uniform -= self.joint[q, r]
                if uniform < 0.0:
                    self._shift(j, q)
                    self._shift(i, r)
                    return

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _overlap(
        self,
        j: cython.Py_ssize_t,
        p: cython.Py_ssize_t,
        q: cython.Py_ssize_t,
        i: cython.Py_ssize_t,
        o: cython.Py_ssize_t,
        r: cython.Py_ssize_t,
    ) -> cython.double:
        """``A_ji s't`` for moves of ``j`` from ``p`` to ``q`` and of ``i`` from ``o`` to ``r``."""
        product: cython.double = 0.0
        for k in range(self.moment.shape[1]):
            change = self.centers[q, k] - self.centers[p, k]
            product += change * (self.centers[r, k] - self.centers[o, k])
        return self.normal[j, i] * product

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _may_pair(
        self,
        p: cython.Py_ssize_t,
        q: cython.Py_ssize_t,
        o: cython.Py_ssize_t,
        r: cython.Py_ssize_t,
    ) -> cython.bint:
        """Whether moves from ``p`` to ``q`` and from ``o`` to ``r`` empty no group.

        Nor may more features be outside the zero group than permitted.
        """
        if self.n_nonzero >= 0:
            if self.labels.shape[0] - self._size_after(self.zero, p, q, o, r) > self.n_nonzero:
                return False
        if p != self.zero and self._size_after(p, p, q, o, r) < 1:
            return False
        return o == self.zero or self._size_after(o, p, q, o, r) >= 1

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _size_after(
        self,
        group: cython.Py_ssize_t,
        p: cython.Py_ssize_t,
        q: cython.Py_ssize_t,
        o: cython.Py_ssize_t,
        r: cython.Py_ssize_t,
    ) -> cython.Py_ssize_t:
        """The size of a group after moves from ``p`` to ``q`` and from ``o`` to ``r``."""
        size: cython.Py_ssize_t = self.sizes[group]
        if p == group:
            size -= 1
        if o == group:
            size -= 1
        if q == group:
            size += 1
        if r == group:
            size += 1
        return size

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _pick(
        self,
        j: cython.Py_ssize_t,
        p: cython.Py_ssize_t,
        temperature: cython.double,
        uniform: cython.double,
    ) -> cython.Py_ssize_t:
        """Draw a group for a feature by its gains, from those where it may be."""
        top: cython.double = 0.0
        total: cython.double = 0.0
        for c in range(self.first[j], self._end(j)):
            q = self._choice(j, c)
            self.spare[q] = self._held_gain(j, p, q)
            top = max(top, self.spare[q])
        for c in range(self.first[j], self._end(j)):
            q = self._choice(j, c)
            self.spare[q] = (self.spare[q] - top) / temperature
            self.spare[q] = exp(self.spare[q]) if self.spare[q] > NEVER else 0.0
            total += self.spare[q]
        uniform *= total
        for c in range(self.first[j], self._end(j)):
            q = self._choice(j, c)
            uniform -= self.spare[q]
            if uniform < 0.0:
                return q
        return p

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _held_gain(
        self, j: cython.Py_ssize_t, p: cython.Py_ssize_t, q: cython.Py_ssize_t
    ) -> cython.double:
        """Gain of moving a feature from ``p`` to ``q`` while the centres are held."""
        gain: cython.double = 0.0
        for k in range(self.moment.shape[1]):
            change = self.centers[q, k] - self.centers[p, k]
            gain += change * (self.residuals[k, j] - 0.5 * self.normal[j, j] * change)
        return gain
