# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Levels of a factor as items of a sequence, and segments of items as groups of levels.

What the items are for each kind of factor is told in ``segments``.
"""

import math

import cython
import numpy as np

NOMINAL = 0
ORDINAL = 1
RISING = 2
FALLING = 3
CYCLIC = 4

INFINITY = float("inf")
# Relative precision of sums: exposures that miss the least one by rounding are enough.
ROUNDING = 1e-12
# An insertion sort ends and another begins after so many moves for each level.
MOST_MOVES = cython.declare(cython.Py_ssize_t, 16)
# Exponents of powers of two that have an inverse.
MOST_EXPONENT = 1000


@cython.cclass
class Levels:
    """Levels, the items that they become, and the groups that segments of items become."""

    def __init__(self, n_levels):
        n = n_levels
        # Levels: values (scaled, centred, negated for FALLING), weights (scaled) and exposures;
        # what values were multiplied by, and the exponent of two that costs were divided by.
        self.n_levels = n
        self.x, self.w, self.e = np.empty((3, n))
        self.factor = 1.0
        self.exponent = 0
        # Items: values, weights and exposures, the item of each level, the cost inside of items.
        self.n_items = 0
        self.value, self.weight, self.exposed = np.empty((3, n))
        self.place = np.empty(n, dtype=np.intp)
        self.inside = 0.0
        # The order of the values, which is nearly that of the last call in iterations.
        self.order = np.arange(n)
        # Segments: the number, and that of each item; sums for each; the group it becomes.
        self.n_groups = 0
        self.segment = np.empty(n, dtype=np.intp)
        self.sums = np.empty((n, 4))
        self.final = np.empty(n, dtype=np.intp)

    @cython.cfunc
    def _read(
        self,
        kind: cython.int,
        values: cython.const[cython.double][::1],
        weights: cython.const[cython.double][::1],
        exposures: cython.const[cython.double][::1],
    ):
        """Take the levels over, scaled by powers of two and centred, and make items of them."""
        largest: cython.double = 0.0
        heaviest: cython.double = 0.0
        n: cython.Py_ssize_t = self.n_levels
        for level in range(n):
            self.w[level] = weights[level] if weights.shape[0] > 0 else 1.0
            self.e[level] = exposures[level] if exposures.shape[0] > 0 else self.w[level]
            largest = max(largest, abs(values[level]))
            heaviest = max(heaviest, self.w[level])
        up: cython.Py_ssize_t = _exponent(largest)
        heavy: cython.Py_ssize_t = _exponent(heaviest)
        self.factor = math.ldexp(1.0, -up)
        lighter: cython.double = math.ldexp(1.0, -heavy)
        self.exponent = 2 * up + heavy
        total: cython.double = 0.0
        moment: cython.double = 0.0
        for level in range(n):
            self.x[level] = values[level] * self.factor
            self.w[level] *= lighter
            total += self.w[level]
            moment += self.w[level] * self.x[level]
        origin: cython.double = moment / total if total > 0.0 else 0.0
        for level in range(n):
            self.x[level] -= origin
            if kind == FALLING:
                self.x[level] = -self.x[level]
        self.inside = 0.0
        if kind == NOMINAL:
            if not self._sort():
                self.order = np.argsort(self.x, kind="stable")
            self._merge_equal()
        elif kind == RISING or kind == FALLING:
            self._pool()
        else:
            self._keep()

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _keep(self) -> cython.void:
        """Every level is an item."""
        self.n_items = self.n_levels
        for level in range(self.n_levels):
            self.value[level] = self.x[level]
            self.weight[level] = self.w[level]
            self.exposed[level] = self.e[level]
            self.place[level] = level

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _sort(self) -> cython.bint:
        """Sort the levels by value, equal ones by number, from the order of the last call.

        Returns False, with an order that is of no use, if that takes too many moves.
        """
        left: cython.Py_ssize_t = MOST_MOVES * self.n_levels
        for i in range(1, self.n_levels):
            level = self.order[i]
            j = i - 1
            while j >= 0 and (
                self.x[self.order[j]] > self.x[level]
                or (self.x[self.order[j]] == self.x[level] and self.order[j] > level)
            ):
                self.order[j + 1] = self.order[j]
                j -= 1
            self.order[j + 1] = level
            left -= i - 1 - j
            if left < 0:
                return False
        return True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _merge_equal(self) -> cython.void:
        """Items are the distinct values, ascending."""
        item: cython.Py_ssize_t = -1
        for i in range(self.n_levels):
            level = self.order[i]
            if item < 0 or self.value[item] < self.x[level]:
                item += 1
                self.value[item] = self.x[level]
                self.weight[item] = 0.0
                self.exposed[item] = 0.0
            self.weight[item] += self.w[level]
            self.exposed[item] += self.e[level]
            self.place[level] = item
        self.n_items = item + 1

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _pool(self) -> cython.void:
        """Items are the blocks of the isotonic regression: pool adjacent violators.

        Levels of weight zero join the block before them, or the first one.
        """
        n: cython.Py_ssize_t = 0
        for level in range(self.n_levels):
            self.value[n] = self.x[level]
            self.weight[n] = self.w[level]
            self.exposed[n] = self.e[level]
            self.final[n] = level  # the first level of the block
            n += 1
            while n > 1 and (
                self.weight[n - 1] == 0.0
                or self.weight[n - 2] == 0.0
                or self.value[n - 2] >= self.value[n - 1]
            ):
                n -= 1
                if self.weight[n - 1] == 0.0:
                    self.value[n - 1] = self.value[n]
                elif self.weight[n] > 0.0:
                    share = self.weight[n] / (self.weight[n - 1] + self.weight[n])
                    self.value[n - 1] += share * (self.value[n] - self.value[n - 1])
                self.weight[n - 1] += self.weight[n]
                self.exposed[n - 1] += self.exposed[n]
        self.n_items = n
        item: cython.Py_ssize_t = 0
        for level in range(self.n_levels):
            if item + 1 < n and self.final[item + 1] == level:
                item += 1
            self.place[level] = item
            away = self.x[level] - self.value[item]
            self.inside += self.w[level] * away * away

    @cython.cfunc
    def _take(self, starts):
        """Use segments of levels that start at given positions, ascending."""
        self.n_groups = len(starts)
        np.asarray(self.segment)[:] = np.searchsorted(starts, np.arange(self.n_levels), "right") - 1

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _write(
        self,
        kind: cython.int,
        limited: cython.bint,
        values: cython.const[cython.double][::1],
        labels: cython.Py_ssize_t[::1],
        centers: cython.double[::1],
    ) -> cython.double:
        """Write labels and centres of the segments found; return the sum of squares, scaled."""
        self._summarise(kind, values, labels, centers)
        self._number(kind, values, centers)
        cost: cython.double = 0.0
        for group in range(self.n_groups):
            self.sums[group, 3] = 0.0
        for level in range(self.n_levels):
            group = self.final[labels[level]]
            if kind == NOMINAL and self.w[level] == 0.0 and not limited:
                group = self._nearest(values[level], centers)
            labels[level] = group
            self.sums[group, 3] += self.e[level]
            # Scaled first: the difference itself may overflow.
            away = values[level] * self.factor - centers[group] * self.factor
            cost += self.w[level] * away * away
        return cost

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _summarise(
        self,
        kind: cython.int,
        values: cython.const[cython.double][::1],
        labels: cython.Py_ssize_t[::1],
        centers: cython.double[::1],
    ) -> cython.void:
        """Write the segment of each level, and weight and mean of each segment.

        On a circle, the segment of the first level is the first. Means are taken about a value of
        the segment, so that equal values have this very mean; distances from it are scaled up where
        they would underflow, and never down.
        """
        lift: cython.double = max(self.factor, 1.0)
        shift: cython.Py_ssize_t = self.segment[0] if kind == CYCLIC else 0
        for group in range(self.n_groups):
            self.sums[group, 0] = 0.0
            self.sums[group, 1] = 0.0
        for level in range(self.n_levels):
            group = self.segment[self.place[level]] - shift
            if group < 0:
                group += self.n_groups
            labels[level] = group
            if self.w[level] > 0.0:
                if self.sums[group, 0] == 0.0:
                    centers[group] = values[level]
                self.sums[group, 0] += self.w[level]
                self.sums[group, 1] += self.w[level] * ((values[level] - centers[group]) * lift)
        for group in range(self.n_groups):
            if self.sums[group, 0] > 0.0:
                share = self.sums[group, 1] / self.sums[group, 0] / lift
                if -INFINITY < share < INFINITY:
                    centers[group] += share
                else:
                    # Values of both signs near the largest double: their differences overflow.
                    centers[group] = 0.0
                    for level in range(self.n_levels):
                        if labels[level] == group:
                            part = self.w[level] / self.sums[group, 0]
                            centers[group] += part * values[level]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _number(
        self,
        kind: cython.int,
        values: cython.const[cython.double][::1],
        centers: cython.double[::1],
    ) -> cython.void:
        """Join segments to the one before if they have no weight, or no value of their own."""
        n: cython.Py_ssize_t = 0
        for group in range(self.n_groups):
            center = centers[group]
            joins: cython.bint = self.sums[group, 0] == 0.0
            if n > 0 and not joins:
                before = centers[n - 1]
                joins = center == before
                # Means that should ascend may be out of order by rounding.
                joins = joins or (center < before and (kind == NOMINAL or kind == RISING))
                joins = joins or (center > before and kind == FALLING)
            if not joins:
                centers[n] = center
                n += 1
            self.final[group] = max(n - 1, 0)
        if n == 0:
            centers[0] = 0.0
            for level in range(self.n_levels):
                centers[0] += values[level] / self.n_levels
            n = 1
        if kind == CYCLIC and n > 1 and centers[n - 1] == centers[0]:
            n -= 1
            for group in range(self.n_groups):
                self.final[group] = self.final[group] % n
        self.n_groups = n

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _nearest(self, value: cython.double, centers: cython.double[::1]) -> cython.Py_ssize_t:
        """The group whose centre is nearest to a value; centres ascend."""
        group: cython.Py_ssize_t = 0
        while group + 1 < self.n_groups and abs(centers[group + 1] - value) < abs(
            centers[group] - value
        ):
            group += 1
        return group

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _enough(self, min_weight: cython.double) -> cython.bint:
        """Whether all groups have the least exposure, or there is only one."""
        if self.n_groups == 1 or min_weight <= 0.0:
            return True
        total: cython.double = 0.0
        for group in range(self.n_groups):
            total += self.sums[group, 3]
        for group in range(self.n_groups):
            if self.sums[group, 3] < min_weight - ROUNDING * total:
                return False
        return True


def _exponent(largest):
    """The exponent of the power of two just above a number; limited, so that it has an inverse."""
    return min(max(math.frexp(largest)[1], -MOST_EXPONENT), MOST_EXPONENT)
