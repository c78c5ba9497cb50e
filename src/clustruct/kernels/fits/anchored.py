# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The best groups of weighted numbers of which some are known to be apart.

Row ``i`` has a weight ``d_i > 0`` and a linear coefficient ``z_i``. Rows that share a value ``w``
lower ``sum d_i w_i^2 / 2 - sum z_i w_i`` by ``(sum z)^2 / (2 sum d)`` at most, at
``w = sum z / sum d``: that is what a group *explains*. Least squares on rows without cross terms is
to choose the groups that explain most: a weighted one-dimensional k-means of ``z_i / d_i``.

The first rows may be *anchors*: no two of them may be in one group. All other rows are free.

**Order.** Given the values of the groups, a free row is in the group whose value is nearest to its
own ``z / d``. So the free rows of a group follow each other in the order of ``z / d``. Anchors are
in no such order: of two that are forced apart, the lighter one gives way. Hence a dynamic program
over ``(groups, set of anchors, free rows)`` so far: the next group holds the next free rows and one
more anchor or none, with the prefix sums of the free rows at hand. That is ``O(K a 2^a m^2)`` for
``K`` groups, ``a`` anchors and ``m`` free rows. Only the first `MOST_APART` anchors are kept apart,
and the others are taken as free rows: what is explained is then an upper bound.
"""

import cython
import numpy as np

NEVER = cython.declare(cython.double, -float("inf"))
# Anchors that are kept apart; each doubles the time.
MOST_APART = 5


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
    order: cython.Py_ssize_t[::1]
    most: cython.Py_ssize_t
    n_given: cython.Py_ssize_t
    n_apart: cython.Py_ssize_t
    # The free rows in order, with their numbers and prefix sums of these; the anchors likewise.
    free: cython.Py_ssize_t[::1]
    totals: cython.double[::1]
    masses: cython.double[::1]
    sums: cython.double[::1]
    weighed: cython.double[::1]
    anchor_totals: cython.double[::1]
    anchor_masses: cython.double[::1]
    n_free: cython.Py_ssize_t
    n_anchors: cython.Py_ssize_t
    # Number of anchors in each set of them.
    sizes: cython.Py_ssize_t[::1]
    # What ``k`` groups with a set of anchors explain of the first ``j`` free rows, and where the
    # last of these groups begins and its anchor: ``i (n_apart + 1) + a + 1``, with 0 for no anchor.
    best: cython.double[:, :, ::1]
    begins: cython.Py_ssize_t[:, :, ::1]

    def __init__(self, linear, weights, n_anchors, most):
        m = linear.shape[0]
        self.linear = linear
        self.weights = weights
        self.most = most
        self.n_given = n_anchors
        self.n_apart = min(n_anchors + 1, MOST_APART)
        ratios = np.asarray(linear) / np.asarray(weights)
        self.order = np.argsort(ratios, kind="stable").astype(np.intp)
        self.free = np.empty(m, dtype=np.intp)
        self.totals = np.empty(m)
        self.masses = np.empty(m)
        self.sums = np.zeros(m + 1)
        self.weighed = np.zeros(m + 1)
        self.anchor_totals = np.empty(self.n_apart)
        self.anchor_masses = np.empty(self.n_apart)
        n_sets = 1 << self.n_apart
        self.sizes = np.array([bin(s).count("1") for s in range(n_sets)], dtype=np.intp)
        self.best = np.empty((most + 1, n_sets, m + 1))
        self.begins = np.zeros((most + 1, n_sets, m + 1), dtype=np.intp)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _read(self, taken: cython.Py_ssize_t, anchor: cython.Py_ssize_t) -> cython.void:
        """Sort the rows in; a free row, unless it is -1, joins an anchor or becomes one."""
        total: cython.double
        mass: cython.double
        self.n_free = 0
        self.n_anchors = min(self.n_given, self.n_apart)
        if taken >= 0 and anchor == self.n_given:
            self.n_anchors = min(self.n_given + 1, self.n_apart)
        for place in range(self.order.shape[0]):
            i = self.order[place]
            total = self.linear[i]
            mass = self.weights[i]
            if i == taken:
                if anchor < self.n_given:
                    continue
                i = self.n_given
            elif i >= self.n_given:
                self._insert(i, total, mass)
                continue
            elif taken >= 0 and i == anchor:
                total += self.linear[taken]
                mass += self.weights[taken]
            if i < self.n_apart:
                self.anchor_totals[i] = total
                self.anchor_masses[i] = mass
            else:
                self._insert(self.order[place], total, mass)
        for j in range(self.n_free):
            self.sums[j + 1] = self.sums[j] + self.totals[j]
            self.weighed[j + 1] = self.weighed[j] + self.masses[j]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _insert(
        self, i: cython.Py_ssize_t, total: cython.double, mass: cython.double
    ) -> cython.void:
        """Insert a free row in the order of its ratio."""
        place: cython.Py_ssize_t = self.n_free
        while place > 0 and self.totals[place - 1] * mass > total * self.masses[place - 1]:
            self.free[place] = self.free[place - 1]
            self.totals[place] = self.totals[place - 1]
            self.masses[place] = self.masses[place - 1]
            place -= 1
        self.free[place] = i
        self.totals[place] = total
        self.masses[place] = mass
        self.n_free += 1

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _fill(self) -> cython.void:
        """Fill the tables, but for states from which not all anchors can find a group."""
        bit: cython.Py_ssize_t
        self.best[:, :, :] = NEVER
        self.best[0, 0, 0] = 0.0
        for k in range(1, self.most + 1):
            for chosen in range(1 << self.n_anchors):
                size = self.sizes[chosen]
                if size > k or self.n_anchors - size > self.most - k:
                    continue
                if size < k:
                    self._extend(k, chosen, chosen, 0, 0.0, 0.0)
                for a in range(self.n_anchors):
                    bit = 1 << a
                    if chosen & bit:
                        self._extend(
                            k,
                            chosen,
                            chosen - bit,
                            a + 1,
                            self.anchor_totals[a],
                            self.anchor_masses[a],
                        )

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _extend(
        self,
        k: cython.Py_ssize_t,
        chosen: cython.Py_ssize_t,
        before: cython.Py_ssize_t,
        number: cython.Py_ssize_t,
        total: cython.double,
        mass: cython.double,
    ) -> cython.void:
        """Add a group, of free rows and of an anchor with the given sums if it has a number."""
        anchored: cython.Py_ssize_t = 1 if number > 0 else 0
        for j in range(1 - anchored, self.n_free + 1):
            for i in range(j + anchored):
                known = self.best[k - 1, before, i]
                if known == NEVER:
                    continue
                z = self.sums[j] - self.sums[i] + total
                value = known + 0.5 * z * z / (self.weighed[j] - self.weighed[i] + mass)
                if value > self.best[k, chosen, j]:
                    self.best[k, chosen, j] = value
                    self.begins[k, chosen, j] = i * (self.n_apart + 1) + number

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _answer(self, k: cython.Py_ssize_t, explained: cython.double[::1]) -> cython.void:
        """Write what ``k`` groups explain of all rows."""
        explained[k] = self.best[k, (1 << self.n_anchors) - 1, self.n_free]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _trace(self, k: cython.Py_ssize_t, labels: cython.Py_ssize_t[::1]) -> cython.void:
        """Write the labels of ``k`` groups."""
        chosen: cython.Py_ssize_t = (1 << self.n_anchors) - 1
        j: cython.Py_ssize_t = self.n_free
        while k > 0:
            begin = self.begins[k, chosen, j] // (self.n_apart + 1)
            number = self.begins[k, chosen, j] - begin * (self.n_apart + 1)
            k -= 1
            if number > 0:
                labels[number - 1] = k
                chosen -= 1 << (number - 1)
            for place in range(begin, j):
                labels[self.free[place]] = k
            j = begin
