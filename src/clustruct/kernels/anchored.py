# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The best groups of weighted numbers of which some are known to be apart.

Row ``i`` has a weight ``d_i > 0`` and a linear coefficient ``z_i``. Rows that share a value ``w``
lower ``sum d_i w_i^2 / 2 - sum z_i w_i`` by ``(sum z)^2 / (2 sum d)`` at most, at
``w = sum z / sum d``: that is what a group *explains*. Least squares on rows without cross terms is
to choose the groups that explain most: a weighted one-dimensional k-means of ``z_i / d_i``.

The first rows may be *anchors*: no two of them may be in one group. All other rows are free.

**Order.** Take the best groups and their values. If two anchors ``i`` and ``j`` with
``z_i / d_i < z_j / d_j`` had values in the other order, exchanging these values would explain more,
and every free row would still find a group of either value. So the values of the anchors' groups
are in the order of the anchors. A free row is in the group whose value is nearest to its own
``z / d``: the free rows of a group follow each other in that order. Hence a dynamic program over
``(groups, anchors, free rows)`` so far: the next group holds the next free rows and either the next
anchor or none, with the prefix sums of the free rows at hand. That is ``O(K a m^2)`` for ``K``
groups, ``a`` anchors and ``m`` free rows.
"""

import cython
import numpy as np

NEVER = cython.declare(cython.double, -float("inf"))


def best_groups(
    linear: cython.double[::1],
    weights: cython.double[::1],
    n_anchors: cython.Py_ssize_t,
    most: cython.Py_ssize_t,
):
    """The best groups, for every number of them.

    Parameters
    ----------
    linear, weights : ndarray of float64, shape (m,)
        ``z`` and ``d > 0`` of each row; the anchors come first.
    n_anchors : int
        Number of anchors.
    most : int
        Largest number of groups, at least 1 and at least ``n_anchors``.

    Returns
    -------
    explained : ndarray of float64, shape (most + 1,)
        What at most ``k`` groups explain; minus infinity where they are too few.
    labels : ndarray of intp, shape (most + 1, m)
        Their groups, in the order of their values.
    """
    explained_array = np.full(most + 1, NEVER)
    labels_array = np.zeros((most + 1, linear.shape[0]), dtype=np.intp)
    explained: cython.double[::1] = explained_array
    labels: cython.Py_ssize_t[:, ::1] = labels_array
    program: _Program = _Program(linear, weights, n_anchors, most)
    with cython.nogil:
        program._read(-1, -1)
        program._fill()
        for k in range(1, most + 1):
            program._answer(k, explained)
            if k > 1 and explained[k] <= explained[k - 1]:
                explained[k] = explained[k - 1]
                labels[k, :] = labels[k - 1, :]
            elif explained[k] > NEVER:
                program._trace(k, labels[k])
    return explained_array, labels_array


def explained_if(
    linear: cython.double[::1],
    weights: cython.double[::1],
    n_anchors: cython.Py_ssize_t,
    most: cython.Py_ssize_t,
    rows: cython.Py_ssize_t[::1],
):
    """What is explained if one free row joins an anchor, or becomes one.

    Parameters
    ----------
    linear, weights, n_anchors, most
        As for `best_groups`.
    rows : ndarray of intp, shape (r,)
        The free rows to try.

    Returns
    -------
    ndarray of float64, shape (r, n_anchors + 1, most + 1)
        What at most ``k`` groups explain, for each of these rows and each anchor that it joins; the
        last entry is for one more anchor.
    """
    explained_array = np.full((rows.shape[0], n_anchors + 1, most + 1), NEVER)
    explained: cython.double[:, :, ::1] = explained_array
    program: _Program = _Program(linear, weights, n_anchors, most)
    with cython.nogil:
        for row in range(rows.shape[0]):
            for anchor in range(n_anchors + 1):
                program._read(rows[row], anchor)
                program._fill()
                for k in range(1, most + 1):
                    program._answer(k, explained[row, anchor])
                    if explained[row, anchor, k] < explained[row, anchor, k - 1]:
                        explained[row, anchor, k] = explained[row, anchor, k - 1]
    return explained_array


@cython.cclass
class _Program:
    """The rows in the order of their values, and the tables of the dynamic program."""

    linear: cython.double[::1]
    weights: cython.double[::1]
    most: cython.Py_ssize_t
    n_given: cython.Py_ssize_t
    # The free rows in order, with prefix sums of both numbers; the anchors in order, likewise.
    free: cython.Py_ssize_t[::1]
    anchors: cython.Py_ssize_t[::1]
    order: cython.Py_ssize_t[::1]
    sums: cython.double[::1]
    masses: cython.double[::1]
    anchor_sums: cython.double[::1]
    anchor_masses: cython.double[::1]
    n_free: cython.Py_ssize_t
    n_anchors: cython.Py_ssize_t
    # What ``k`` groups with ``a`` anchors explain of the first ``j`` free rows, and where the last
    # of these groups begins: at ``2 i``, or at ``2 i + 1`` if it has an anchor.
    best: cython.double[:, :, ::1]
    begins: cython.Py_ssize_t[:, :, ::1]

    def __init__(self, linear, weights, n_anchors, most):
        m = linear.shape[0]
        self.linear = linear
        self.weights = weights
        self.most = most
        self.n_given = n_anchors
        ratios = np.asarray(linear) / np.asarray(weights)
        self.order = np.argsort(ratios, kind="stable").astype(np.intp)
        self.free = np.empty(m, dtype=np.intp)
        self.anchors = np.empty(n_anchors + 1, dtype=np.intp)
        self.sums = np.zeros(m + 1)
        self.masses = np.zeros(m + 1)
        self.anchor_sums = np.empty(n_anchors + 1)
        self.anchor_masses = np.empty(n_anchors + 1)
        self.best = np.empty((most + 1, n_anchors + 2, m + 1))
        self.begins = np.zeros((most + 1, n_anchors + 2, m + 1), dtype=np.intp)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _read(self, taken: cython.Py_ssize_t, anchor: cython.Py_ssize_t) -> cython.void:
        """Sort the rows in; a free row, unless it is -1, joins an anchor or becomes one."""
        self.n_free = 0
        self.n_anchors = 0
        for place in range(self.order.shape[0]):
            i = self.order[place]
            if i == taken:
                if anchor == self.n_given:
                    self._insert(i, self.linear[i], self.weights[i])
            elif i >= self.n_given:
                j = self.n_free
                self.free[j] = i
                self.sums[j + 1] = self.sums[j] + self.linear[i]
                self.masses[j + 1] = self.masses[j] + self.weights[i]
                self.n_free = j + 1
            elif taken >= 0 and i == anchor:
                self._insert(
                    i, self.linear[i] + self.linear[taken], self.weights[i] + self.weights[taken]
                )
            else:
                self._insert(i, self.linear[i], self.weights[i])

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _insert(
        self, i: cython.Py_ssize_t, total: cython.double, mass: cython.double
    ) -> cython.void:
        """Insert an anchor in the order of its ratio."""
        place: cython.Py_ssize_t = self.n_anchors
        while place > 0 and (
            self.anchor_sums[place - 1] * mass > total * self.anchor_masses[place - 1]
        ):
            self.anchors[place] = self.anchors[place - 1]
            self.anchor_sums[place] = self.anchor_sums[place - 1]
            self.anchor_masses[place] = self.anchor_masses[place - 1]
            place -= 1
        self.anchors[place] = i
        self.anchor_sums[place] = total
        self.anchor_masses[place] = mass
        self.n_anchors += 1

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _fill(self) -> cython.void:
        """Fill the tables, but for states from which not all anchors can find a group."""
        self.best[:, :, :] = NEVER
        self.best[0, 0, 0] = 0.0
        for k in range(1, self.most + 1):
            low = max(0, self.n_anchors - (self.most - k))
            for a in range(low, min(k, self.n_anchors) + 1):
                if a < k:
                    self._extend(k, a, 0, 0.0, 0.0)
                if a > 0:
                    self._extend(k, a, 1, self.anchor_sums[a - 1], self.anchor_masses[a - 1])

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _extend(
        self,
        k: cython.Py_ssize_t,
        a: cython.Py_ssize_t,
        anchored: cython.Py_ssize_t,
        total: cython.double,
        mass: cython.double,
    ) -> cython.void:
        """Add a group, of free rows and of an anchor with the given sums if it has one."""
        for j in range(1 - anchored, self.n_free + 1):
            for i in range(j + anchored):
                before = self.best[k - 1, a - anchored, i]
                if before == NEVER:
                    continue
                z = self.sums[j] - self.sums[i] + total
                value = before + 0.5 * z * z / (self.masses[j] - self.masses[i] + mass)
                if value > self.best[k, a, j]:
                    self.best[k, a, j] = value
                    self.begins[k, a, j] = 2 * i + anchored

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _answer(self, k: cython.Py_ssize_t, explained: cython.double[::1]) -> cython.void:
        """Write what ``k`` groups explain of all rows."""
        explained[k] = NEVER
        if k >= self.n_anchors:
            explained[k] = self.best[k, self.n_anchors, self.n_free]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _trace(self, k: cython.Py_ssize_t, labels: cython.Py_ssize_t[::1]) -> cython.void:
        """Write the labels of ``k`` groups."""
        a: cython.Py_ssize_t = self.n_anchors
        j: cython.Py_ssize_t = self.n_free
        while k > 0:
            begin = self.begins[k, a, j]
            k -= 1
            if begin % 2 == 1:
                a -= 1
                labels[self.anchors[a]] = k
            begin = begin // 2
            for place in range(begin, j):
                labels[self.free[place]] = k
            j = begin
