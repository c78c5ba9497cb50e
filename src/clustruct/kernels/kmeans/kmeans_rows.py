# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""K-means of a few rows of several columns: k-means++ starts, improved one row at a time.

A row ``x`` of weight ``w`` in a group of weight ``A`` and mean ``a`` goes to another group, of
weight ``B`` and mean ``b``, where that lowers the inertia: by

    w A / (A - w) |x - a|^2 - w B / (B + w) |x - b|^2 .

A grouping without such a move (Hartigan and Wong) is also one that Lloyd's algorithm leaves as it
is; the converse does not hold.
"""

import cython
import numpy as np

# A move has to lower the inertia by this part of the distance that it saves, or rounding moves rows
# to and fro.
LEAST_GAIN = cython.declare(cython.double, 1e-12)
MAX_SWEEPS = cython.declare(cython.Py_ssize_t, 100)


def cluster_rows(
    rows: cython.const[cython.double][:, ::1],
    weights: cython.const[cython.double][::1],
    n_groups: cython.Py_ssize_t,
    uniforms: cython.const[cython.double][:, :, ::1],
):
    """Group rows so that the weighted squared distances to the means are small.

    Parameters
    ----------
    rows : ndarray of float64, shape (d, K)
    weights : ndarray of float64, shape (d,)
        Positive.
    n_groups : int
        At most d.
    uniforms : ndarray of float64, shape (n_starts, n_groups, n_trials)
        Random numbers from [0, 1): of so many rows that each centre of a start is drawn from, the
        best is taken.

    Returns
    -------
    labels : ndarray of intp, shape (d,)
        The best grouping of all starts. Groups may be empty where rows are equal.
    """
    best_array = np.zeros(rows.shape[0], dtype=np.intp)
    best: cython.Py_ssize_t[::1] = best_array
    least: cython.double = -1.0
    grouping: _Grouping = _Grouping(rows, weights, n_groups)
    with cython.nogil:
        for start in range(uniforms.shape[0]):
            grouping._draw(uniforms[start])
            inertia = grouping._improve()
            if least < 0.0 or inertia < least:
                least = inertia
                best[:] = grouping.labels
    return best_array


@cython.cclass
class _Grouping:
    """Groups of rows with their weights and means."""

    rows: cython.const[cython.double][:, ::1]
    weights: cython.const[cython.double][::1]
    labels: cython.Py_ssize_t[::1]
    totals: cython.double[::1]
    means: cython.double[:, ::1]
    # Distance of each row from the nearest centre so far; with one that is tried; with the best.
    nearest: cython.double[::1]
    tried: cython.double[::1]
    kept: cython.double[::1]

    def __init__(
        self,
        rows: cython.const[cython.double][:, ::1],
        weights: cython.const[cython.double][::1],
        n_groups: cython.Py_ssize_t,
    ):
        self.rows = rows
        self.weights = weights
        self.labels = np.zeros(rows.shape[0], dtype=np.intp)
        self.totals = np.zeros(n_groups)
        self.means = np.zeros((n_groups, rows.shape[1]))
        self.nearest = np.zeros(rows.shape[0])
        self.tried = np.zeros(rows.shape[0])
        self.kept = np.zeros(rows.shape[0])

    @cython.cfunc
    @cython.exceptval(check=False)
    @cython.nogil
    def _distance(self, i: cython.Py_ssize_t, q: cython.Py_ssize_t) -> cython.double:
        """Squared distance of a row from the mean of a group."""
        total: cython.double = 0.0
        for k in range(self.rows.shape[1]):
            away = self.rows[i, k] - self.means[q, k]
            total += away * away
        return total

    @cython.cfunc
    @cython.exceptval(check=False)
    @cython.nogil
    def _draw(self, uniforms: cython.const[cython.double][:, ::1]) -> cython.void:
        """Greedy k-means++: each centre is the best of some rows, drawn by squared distance."""
        n = self.rows.shape[0]
        for i in range(n):
            self.nearest[i] = 1.0
        for q in range(self.means.shape[0]):
            mass: cython.double = 0.0
            for i in range(n):
                mass += self.weights[i] * self.nearest[i]
            least: cython.double = -1.0
            chosen: cython.Py_ssize_t = 0
            for trial in range(uniforms.shape[1] if q > 0 else 1):
                row = self._row_at(uniforms[q, trial] * mass)
                self.means[q, :] = self.rows[row, :]
                left: cython.double = 0.0
                for i in range(n):
                    distance = self._distance(i, q)
                    if q > 0 and self.nearest[i] < distance:
                        distance = self.nearest[i]
                    self.tried[i] = distance
                    left += self.weights[i] * distance
                if least < 0.0 or left < least:
                    least = left
                    chosen = row
                    self.kept[:] = self.tried
            self.means[q, :] = self.rows[chosen, :]
            self.nearest[:] = self.kept
        for i in range(n):
            best: cython.double = self._distance(i, 0)
            self.labels[i] = 0
            for q in range(1, self.means.shape[0]):
                distance = self._distance(i, q)
                if distance < best:
                    best = distance
                    self.labels[i] = q

    @cython.cfunc
    @cython.exceptval(check=False)
    @cython.nogil
    def _row_at(self, mark: cython.double) -> cython.Py_ssize_t:
        """The row at which weighted distances, added up from the first, pass a mark."""
        total: cython.double = 0.0
        last: cython.Py_ssize_t = 0
        for i in range(self.rows.shape[0]):
            part = self.weights[i] * self.nearest[i]
            if part > 0.0:
                last = i
                total += part
                if total > mark:
                    break
        return last

    @cython.cfunc
    @cython.exceptval(check=False)
    @cython.nogil
    def _improve(self) -> cython.double:
        """Move single rows until none lowers the inertia, which is returned."""
        moved: cython.bint = True
        for _ in range(MAX_SWEEPS):
            self._gather()
            if not moved:
                break
            moved = False
            for i in range(self.rows.shape[0]):
                if self._move(i):
                    moved = True
        inertia: cython.double = 0.0
        for i in range(self.rows.shape[0]):
            inertia += self.weights[i] * self._distance(i, self.labels[i])
        return inertia

    @cython.cfunc
    @cython.exceptval(check=False)
    @cython.nogil
    def _gather(self) -> cython.void:
        """Weights and means of the groups, from the labels."""
        self.totals[:] = 0.0
        self.means[:, :] = 0.0
        for i in range(self.rows.shape[0]):
            q = self.labels[i]
            self.totals[q] += self.weights[i]
            for k in range(self.rows.shape[1]):
                self.means[q, k] += self.weights[i] * self.rows[i, k]
        for q in range(self.means.shape[0]):
            if self.totals[q] > 0.0:
                for k in range(self.rows.shape[1]):
                    self.means[q, k] /= self.totals[q]

    @cython.cfunc
    @cython.exceptval(check=False)
    @cython.nogil
    def _move(self, i: cython.Py_ssize_t) -> cython.bint:
        """Put a row where the inertia is least; whether it has moved."""
        weight = self.weights[i]
        own = self.labels[i]
        left = self.totals[own] - weight
        saved = self._distance(i, own)
        # Alone in its group a row costs nothing.
        if saved <= 0.0 or left <= LEAST_GAIN * weight:
            return False
        saved *= self.totals[own] / left
        least: cython.double = saved * (1.0 - LEAST_GAIN)
        target: cython.Py_ssize_t = own
        for q in range(self.means.shape[0]):
            if q != own:
                cost: cython.double = 0.0
                if self.totals[q] > 0.0:
                    cost = self._distance(i, q) * (self.totals[q] / (self.totals[q] + weight))
                if cost < least:
                    least = cost
                    target = q
        if target == own:
            return False
        for k in range(self.rows.shape[1]):
            x = self.rows[i, k]
            self.means[own, k] -= weight / left * (x - self.means[own, k])
            if self.totals[target] > 0.0:
                part = weight / (self.totals[target] + weight)
                self.means[target, k] += part * (x - self.means[target, k])
            else:
                self.means[target, k] = x
        self.totals[own] = left
        self.totals[target] += weight
        self.labels[i] = target
        return True
