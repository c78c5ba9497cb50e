# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Exact weighted k-means of many short vectors, in one work space and without the GIL.

Sorting, moments, search, summaries and labels of one vector after the other. A vector that this
cannot decide beyond doubt (ties between partitions, numbers near the limits of doubles, weights
that drown each other) is marked, and the caller uses the slower searches of ``kmeans1d`` for it.
"""

import threading

import cython
import numpy as np

from clustruct.kernels.prices.pricing import float_room, integer_room

if not cython.compiled:
    from math import ldexp, nextafter

    from clustruct.kernels.numbers.groups import summarise
    from clustruct.kernels.numbers.intervals import INFINITY, moments_everywhere
    from clustruct.kernels.numbers.partition import label_values
    from clustruct.kernels.numbers.sorting import DIGIT, merge_weights, scale_distinct
    from clustruct.kernels.numbers.sorting import sort_uncompiled as sort_bits
    from clustruct.kernels.prices.pricing import plain_error, priced_partition
    from clustruct.kernels.prices.proof import MOST_NODES

    Label = cython.fused_type(cython.uchar, cython.ushort, cython.Py_ssize_t)

# Distance between the positions whose moments are tabulated in pairs, as in ``kmeans1d``.
BLOCK = cython.declare(cython.Py_ssize_t, 8)
NAN = cython.declare(cython.double, float("nan"))
# Weights below this share of the largest one may be lost in products.
LIGHTEST = cython.declare(cython.double, 2.0**-500)
# The search may not resolve costs where the sum of weights times the squared distance of the
# farthest value is more than so many times the cost of one group.
LOST = cython.declare(cython.double, 2.0**40)
# Pairs of doubles hardly tell groups apart that cost less than this share of that product.
TIGHT = cython.declare(cython.double, 2.0**-60)
# The least exponent, and so one for the largest number, with which scaling loses no digit.
LEAST_EXPONENT = cython.declare(cython.longlong, -900)
# Two groups of so few values are found by comparing all cuts; measured.
HALVED = cython.declare(cython.Py_ssize_t, 2048)


# Longer rows of a matrix are left to ``kmeans1d``, which needs less memory and has its own limits
# for single vectors.
LONGEST = 32768
# Work space that is kept from call to call, one for each thread: vectors and groups up to these.
KEPT_LENGTH = 1 << 18
KEPT_GROUPS = 256
_kept = threading.local()

NONE, NO_WEIGHTS = np.empty((0, 0)), np.empty(0)
NO_BYTES, NO_SHORTS = np.empty((0, 0, 0), dtype=np.uint8), np.empty((0, 0, 0), dtype=np.uint16)
NO_LABELS = np.empty((0, 0, 0), dtype=np.intp)


def work_space(n, most):
    """Work space for ``n`` numbers and ``most`` groups, perhaps that of the last call."""
    if n > KEPT_LENGTH or most > KEPT_GROUPS:
        return Vectors(n, most)
    kept_n, kept_most = getattr(_kept, "n", 0), getattr(_kept, "most", 0)
    if kept_n < n or kept_most < most:
        _kept.n = max(kept_n, min(2 * n, KEPT_LENGTH))
        _kept.most = max(kept_most, min(2 * most, KEPT_GROUPS))
        _kept.vectors = Vectors(_kept.n, _kept.most)
    return _kept.vectors


def cluster_vector(values, weights, n_clusters):
    """``kmeans1d.cluster_values`` of one short vector; None if undecided.

    The inertia is returned as a mantissa and an exponent of two.
    """
    n = values.shape[0]
    most = min(n_clusters, n)
    labels, centers, sizes = np.empty(n, dtype=np.intp), np.empty(most), np.empty(most, np.int64)
    found = work_space(n, most).cluster_one(
        values, values.view(np.int64), NO_WEIGHTS if weights is None else weights, most, labels,
        centers, sizes,
    )  # fmt: skip
    if found is None:
        return None
    n_found, inertia, exponent = found
    return labels, centers[:n_found], sizes[:n_found], inertia, exponent


@cython.cclass
class Vectors:
    """Clusters vectors of up to ``n`` numbers into up to ``most`` groups; holds the work space."""

    # Sorted numbers and their weights, and as much room again. Doubles and their bits share memory.
    ordered: cython.double[::1]
    ordered_bits: cython.longlong[::1]
    loads: cython.double[::1]
    spare: cython.double[::1]
    spare_bits: cython.longlong[::1]
    spare_loads: cython.double[::1]
    counts: cython.longlong[::1]
    # Where the distinct numbers occur first, and running moments: rounded, and in pairs.
    starts: cython.longlong[::1]
    mass: cython.double[::1]
    mass_bits: cython.longlong[::1]
    first: cython.double[::1]
    second: cython.double[::1]
    table: cython.double[:, ::1]
    # For the search and the groups.
    floats: cython.double[::1]
    integers: cython.int[::1]
    rows: cython.double[:, ::1]
    path: cython.longlong[::1]
    means: cython.double[::1]
    costs: cython.double[::1]
    thresholds: cython.double[::1]
    # The vector at hand: how many numbers count, how many of them are distinct, and what was taken
    # off them and their weights.
    n_counted: cython.Py_ssize_t
    n_distinct: cython.Py_ssize_t
    origin: cython.double
    largest_cost: cython.double
    exponent: cython.longlong
    weight_exponent: cython.longlong

    def __init__(self, n, most):
        floats = np.empty(7 * (n + 8))
        bits = floats.view(np.int64)
        parts = [slice(part * (n + 8), (part + 1) * (n + 8)) for part in range(7)]
        self.ordered, self.ordered_bits = floats[parts[0]], bits[parts[0]]
        self.loads, self.spare_loads = floats[parts[1]], floats[parts[2]]
        self.spare, self.spare_bits = floats[parts[3]], bits[parts[3]]
        self.mass, self.mass_bits = floats[parts[4]], bits[parts[4]]
        self.first, self.second = floats[parts[5]], floats[parts[6]]
        self.counts = np.empty(2 << DIGIT, dtype=np.int64)
        self.starts = np.empty(n, dtype=np.int64)
        self.table = np.zeros((n // 8 + 1, 6))
        self.floats = np.empty(float_room(n, most))
        self.integers = np.empty(integer_room(n, most), dtype=np.int32)
        self.rows = np.empty((max(most + 3, 2 * MOST_NODES), 6))
        self.path = np.empty(2 * (most + 1 + MOST_NODES), dtype=np.int64)
        self.means, self.costs, self.thresholds = np.empty((3, most))

    def cluster_one(
        self,
        values: cython.const[cython.double][::1],
        bits: cython.const[cython.longlong][::1],
        weights: cython.const[cython.double][::1],
        number: cython.Py_ssize_t,
        labels: cython.Py_ssize_t[::1],
        centers: cython.double[::1],
        sizes: cython.longlong[::1],
    ):
        """``cluster`` for one vector and one number of groups: fewer arrays to hand over.

        Empty weights stand for weights of one. Returns the number of groups, the sum of squares
        over a power of two, and the exponent of that power; None if undecided.
        """
        n_found: cython.Py_ssize_t = 0
        decided: cython.bint
        with cython.nogil:
            decided = self._prepare(values, bits, weights)
            if decided:
                n_found = min(number, self.n_distinct)
                decided = self._cut(n_found, 0.0, weights.shape[0] > 0)
            if decided:
                _label(values, self.thresholds[: n_found - 1], labels)
                self._write_groups(n_found, 0, number, centers, sizes)
                if self.n_counted < values.shape[0]:
                    self._find_halfway(n_found)
                    _label_uncounted(values, weights, self.thresholds, n_found - 1, labels, sizes)
        if not decided:
            return None
        return n_found, self._total(n_found), 2 * self.exponent + self.weight_exponent

    def cluster(
        self,
        values: cython.const[cython.double][:, ::1],
        bits: cython.const[cython.longlong][:, ::1],
        weights: cython.const[cython.double][:, ::1],
        numbers: cython.const[cython.longlong][::1],
        tiny: cython.uchar[:, :, ::1],
        small: cython.ushort[:, :, ::1],
        labels: cython.Py_ssize_t[:, :, ::1],
        centers: cython.double[:, ::1],
        sizes: cython.longlong[:, ::1],
        found: cython.longlong[:, ::1],
        inertia: cython.double[:, ::1],
        exponents: cython.longlong[::1],
        undecided: cython.uchar[::1],
    ):
        """Cluster each row of ``values``, once for each of ``numbers``.

        Parameters
        ----------
        values, bits : ndarray of float64, shape (R, n), and the same memory as int64
            Finite numbers.
        weights : ndarray of float64, shape (R, n), (1, n) or (0, n)
            Weights of each row, of all rows, or none; not negative, and some above zero.
        numbers : ndarray of int64, shape (K,)
            Numbers of groups.
        tiny, small, labels : ndarray of uint8, uint16 and intp, shape (K, R, n)
            Two of them are empty; the labels are written to the third.
        centers, sizes : ndarray of float64 and int64, shape (R, sum of numbers)
            Written: centres and sizes of the groups for each number, one after the other. Places of
            groups that do not exist get the centre NaN and the size 0.
        found : ndarray of int64, shape (R, K)
            Written: numbers of groups.
        inertia : ndarray of float64, shape (R, K)
            Written: sums of squares over two to the power of ``exponents``.
        exponents : ndarray of int64, shape (R,)
            Written, see ``inertia``.
        undecided : ndarray of uint8, shape (R,)
            Written: 1 for rows that are left to ``kmeans1d``, whose results are void.
        """
        row: cython.Py_ssize_t
        k: cython.Py_ssize_t
        base: cython.Py_ssize_t
        hint: cython.double
        scale: cython.double
        weight: cython.Py_ssize_t
        with cython.nogil:
            for row in range(values.shape[0]):
                weight = min(row, weights.shape[0] - 1)
                undecided[row] = 1
                if weight < 0:
                    if not self._prepare(values[row], bits[row], self.first[:0]):
                        continue
                elif not self._prepare(values[row], bits[row], weights[weight]):
                    continue
                exponents[row] = 2 * self.exponent + self.weight_exponent
                undecided[row] = 0
                base = centers.shape[1]
                hint = 0.0
                for k in range(numbers.shape[0] - 1, -1, -1):
                    base -= numbers[k]
                    found[row, k] = min(numbers[k], self.n_distinct)
                    if not self._cut(found[row, k], hint, weight >= 0):
                        undecided[row] = 1
                        break
                    if k > 0:
                        scale = 1.0 * found[row, k] / numbers[k - 1]
                        hint = self.floats[2] * scale * scale * scale
                    inertia[row, k] = self._total(found[row, k])
                    if tiny.shape[0] > 0:
                        _label(values[row], self.thresholds[: found[row, k] - 1], tiny[k, row])
                    elif small.shape[0] > 0:
                        _label(values[row], self.thresholds[: found[row, k] - 1], small[k, row])
                    else:
                        _label(values[row], self.thresholds[: found[row, k] - 1], labels[k, row])
                    self._write_groups(
                        found[row, k], base, base + numbers[k], centers[row], sizes[row]
                    )
                    if self.n_counted < values.shape[1]:
                        self._find_halfway(found[row, k])
                        if tiny.shape[0] > 0:
                            _label_uncounted(
                                values[row], weights[weight], self.thresholds,
                                found[row, k] - 1, tiny[k, row], sizes[row, base:],
                            )  # fmt: skip
                        elif small.shape[0] > 0:
                            _label_uncounted(
                                values[row], weights[weight], self.thresholds,
                                found[row, k] - 1, small[k, row], sizes[row, base:],
                            )  # fmt: skip
                        else:
                            _label_uncounted(
                                values[row], weights[weight], self.thresholds,
                                found[row, k] - 1, labels[k, row], sizes[row, base:],
                            )  # fmt: skip

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _prepare(
        self,
        values: cython.const[cython.double][::1],
        bits: cython.const[cython.longlong][::1],
        weights: cython.const[cython.double][::1],
    ) -> cython.bint:
        """Sort a vector, merge equal numbers and add up moments; False where that is delicate."""
        n: cython.Py_ssize_t = self._sort(values, bits, weights)
        weighted: cython.bint = weights.shape[0] > 0
        largest: cython.double = max(-self.ordered[0], self.ordered[n - 1])
        self.n_counted = n
        self.exponent = _exponent(largest)
        self.weight_exponent = 0
        if weighted and not self._scale_weights(n):
            return False
        if self.exponent < LEAST_EXPONENT:
            return False
        factor: cython.double = ldexp(1.0, -(self.exponent >> 1))
        factor_too: cython.double = ldexp(1.0, (self.exponent >> 1) - self.exponent)
        m: cython.Py_ssize_t = scale_distinct(self.ordered[:n], factor, factor_too, self.spare)
        self.n_distinct = m
        if m < n:
            merge_weights(
                self.ordered[:n], self.loads[: n if weighted else 0], factor, factor_too,
                self.spare, self.spare_loads, self.starts,
            )  # fmt: skip
        least: cython.double = self.spare[0]
        largest = self.spare[m - 1]
        middle: cython.double = self.spare[m // 2]
        self.origin = 0.0 if abs(middle) <= largest - least else middle
        moments_everywhere(
            self.spare[:m], self._weights(weighted), self.origin, BLOCK, self.table, self.mass,
            self.first, self.second,
        )  # fmt: skip
        # A weight that is lost beside those before it leaves nothing to divide by.
        if weighted and not _rise(self.mass[: m + 1]):
            return False
        reach: cython.double = max(self.origin - least, largest - self.origin)
        cost: cython.double = self.second[m] - self.first[m] * (self.first[m] / self.mass[m])
        self.largest_cost = self.mass[m] * reach * reach
        return m == 1 or self.largest_cost <= LOST * cost

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _weights(self, weighted: cython.bint) -> cython.double[::1]:
        """Weights of the distinct numbers; none where all are one."""
        if self.n_distinct < self.n_counted:
            return self.spare_loads[: self.n_distinct]
        return self.loads[: self.n_distinct if weighted else 0]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _sort(
        self,
        values: cython.const[cython.double][::1],
        bits: cython.const[cython.longlong][::1],
        weights: cython.const[cython.double][::1],
    ) -> cython.Py_ssize_t:
        """Sort the numbers whose weight is above zero; return how many they are."""
        n: cython.Py_ssize_t = values.shape[0]
        count: cython.Py_ssize_t = 0
        i: cython.Py_ssize_t
        for i in range(weights.shape[0]):
            count += weights[i] > 0.0
        if weights.shape[0] == 0 or count == n:
            if _ascend(values):
                self.ordered[:n] = values
                self.loads[: weights.shape[0]] = weights
                return n
            sort_bits(
                bits, weights, self.ordered[:n], self.ordered_bits[:n],
                self.loads[: weights.shape[0]], self.spare_bits, self.spare_loads, self.counts,
            )  # fmt: skip
            return n
        count = 0
        for i in range(n):
            self.mass[count] = values[i]
            self.first[count] = weights[i]
            count += weights[i] > 0.0
        sort_bits(
            self.mass_bits[:count], self.first[:count], self.ordered[:count],
            self.ordered_bits[:count], self.loads[:count], self.spare_bits, self.spare_loads,
            self.counts,
        )  # fmt: skip
        return count

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _scale_weights(self, n: cython.Py_ssize_t) -> cython.bint:
        """Divide the weights by a power of two above the largest; False if some are too small."""
        i: cython.Py_ssize_t
        most: cython.double = self.loads[0]
        least: cython.double = self.loads[0]
        for i in range(n):
            most = max(most, self.loads[i])
            least = min(least, self.loads[i])
        self.weight_exponent = _exponent(most)
        if self.weight_exponent < LEAST_EXPONENT or least < LIGHTEST * most:
            return False
        half: cython.longlong = self.weight_exponent >> 1
        factor: cython.double = ldexp(1.0, -half)
        factor_too: cython.double = ldexp(1.0, half - self.weight_exponent)
        for i in range(n):
            self.loads[i] = self.loads[i] * factor * factor_too
        return True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _cut(
        self, n_groups: cython.Py_ssize_t, hint: cython.double, weighted: cython.bint
    ) -> cython.bint:
        """Find the best groups, their means, costs and thresholds; False if in doubt."""
        m: cython.Py_ssize_t = self.n_distinct
        group: cython.Py_ssize_t
        weights: cython.double[::1] = self._weights(weighted)
        self.floats[2] = hint
        if n_groups == 1 or n_groups == m:
            for group in range(n_groups + 1):
                self.path[group] = group
            self.path[n_groups] = m
        elif n_groups == 2 and m <= HALVED and self._halve(weights):
            pass
        elif not priced_partition(
            self.spare[:m], weights, self.origin, self.table, BLOCK, self.mass, self.first,
            self.second, n_groups, hint, self.floats, self.integers, self.rows, self.path,
        ):  # fmt: skip
            return False
        summarise(
            self.spare[:m], weights, self.origin, self.table, BLOCK, self.path[: n_groups + 1],
            self.rows, self.means, self.costs,
        )  # fmt: skip
        if 1 < n_groups < m and self._total(n_groups) < TIGHT * self.largest_cost:
            return False
        # From here on boundaries count all numbers, not the distinct ones.
        if m < self.n_counted:
            for group in range(1, n_groups):
                self.path[group] = self.starts[self.path[group]]
            self.path[n_groups] = self.n_counted
        for group in range(1, n_groups):
            self.thresholds[group - 1] = self.ordered[self.path[group]]
        for group in range(n_groups):
            # Scaled, the digits of values that are too small beside the largest may have been lost.
            mean = ldexp(self.means[group], self.exponent)
            mean = max(mean, self.ordered[self.path[group]])
            self.means[group] = min(mean, self.ordered[self.path[group + 1] - 1])
        return True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _halve(self, weights: cython.double[::1]) -> cython.bint:
        """Write the boundary of the best two groups, by the cost of each; False if in doubt."""
        m: cython.Py_ssize_t = self.n_distinct
        error: cython.double = plain_error(
            self.spare[:m], weights, self.origin, self.mass, self.first, self.second
        )
        least: cython.double = INFINITY
        second: cython.double = INFINITY
        self.path[0] = 0
        self.path[2] = m
        for i in range(1, m):
            s = self.first[i]
            r = self.first[m] - s
            cost = self.second[m] - s * s / self.mass[i] - r * r / (self.mass[m] - self.mass[i])
            if cost < least:
                second = least
                least = cost
                self.path[1] = i
            elif cost < second:
                second = cost
        return second - least > 4.0 * error

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _total(self, n_groups: cython.Py_ssize_t) -> cython.double:
        """Sum of the costs, rounded once."""
        total: cython.double = 0.0
        rest: cython.double = 0.0
        for group in range(n_groups):
            new = total + self.costs[group]
            part = new - total
            rest += (total - (new - part)) + (self.costs[group] - part)
            total = new
        return total + rest

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _write_groups(
        self,
        n_groups: cython.Py_ssize_t,
        base: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        centers: cython.double[::1],
        sizes: cython.longlong[::1],
    ) -> cython.void:
        """Write centres and sizes; places without a group get NaN and the size 0."""
        group: cython.Py_ssize_t
        for group in range(n_groups):
            centers[base + group] = self.means[group]
            sizes[base + group] = self.path[group + 1] - self.path[group]
        for group in range(base + n_groups, end):
            centers[group] = NAN
            sizes[group] = 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _find_halfway(self, n_groups: cython.Py_ssize_t) -> cython.void:
        """Replace thresholds by midpoints of centres, for numbers of weight zero."""
        group: cython.Py_ssize_t
        for group in range(1, n_groups):
            middle = 0.5 * self.means[group - 1] + 0.5 * self.means[group]
            # Equal numbers share a label, whatever rounding says.
            least = nextafter(self.ordered[self.path[group] - 1], INFINITY)
            self.thresholds[group - 1] = min(max(middle, least), self.thresholds[group - 1])


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _ascend(values: cython.const[cython.double][::1]) -> cython.bint:
    """Whether numbers are sorted."""
    i: cython.Py_ssize_t = 1
    while i < values.shape[0] and values[i - 1] <= values[i]:
        i += 1
    return i >= values.shape[0]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _rise(sums: cython.double[::1]) -> cython.bint:
    """Whether each of some numbers is larger than the one before."""
    n_falls: cython.Py_ssize_t = 0
    for i in range(1, sums.shape[0]):
        n_falls += sums[i] <= sums[i - 1]
    return n_falls == 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _exponent(number: cython.double) -> cython.longlong:
    """The exponent of the power of two just above a number; the least one for tiny numbers."""
    exponent: cython.longlong = LEAST_EXPONENT - 1
    if number >= ldexp(1.0, LEAST_EXPONENT):
        exponent = 0
        while number >= 4294967296.0:
            number *= 2.3283064365386963e-10
            exponent += 32
        while number < 1.0:
            number *= 4294967296.0
            exponent -= 32
        while number >= 1.0:
            number *= 0.5
            exponent += 1
    return exponent


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _label(
    values: cython.const[cython.double][::1], thresholds: cython.double[::1], labels: Label[::1]
) -> cython.void:
    """Labels of all numbers."""
    label_values(values, thresholds, labels)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _label_uncounted(
    values: cython.const[cython.double][::1],
    weights: cython.const[cython.double][::1],
    thresholds: cython.double[::1],
    n_thresholds: cython.Py_ssize_t,
    labels: Label[::1],
    sizes: cython.longlong[::1],
) -> cython.void:
    """Labels of the numbers of weight zero, which are added to the sizes."""
    low: cython.Py_ssize_t
    high: cython.Py_ssize_t
    for i in range(values.shape[0]):
        if weights[i] > 0.0:
            continue
        low = 0
        high = n_thresholds
        while low < high:
            middle = (low + high) // 2
            if thresholds[middle] <= values[i]:
                low = middle + 1
            else:
                high = middle
        labels[i] = low
        sizes[low] += 1
