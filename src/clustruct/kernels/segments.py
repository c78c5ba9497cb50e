# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Exact groups of the levels of one factor: any levels, segments of an order, or of a circle.

Levels have values ``x``, weights ``w >= 0`` and exposures. Groups and their values ``v`` minimise

    1/2 sum_l w_l (x_l - v_g(l))^2 + price * (groups - 1)

over at most ``most`` groups, each with an exposure of ``min_weight`` or more, or one group of all.
Every kind of factor becomes a sequence of **items** that is cut into segments:

- nominal: the distinct values in their order, since an optimal group is an interval of them;
- ordinal and cyclic: the levels themselves, the latter on a circle;
- rising and falling: the blocks of the isotonic regression.

**Monotone groups need no cut inside an isotonic block.** Let ``v`` be non-decreasing with ``K``
distinct values, and ``B`` a block of the isotonic regression with mean ``m``. Every beginning of
``B`` has a mean of at least ``m``, so the running sums of ``w (x - m)`` over ``B`` are not negative
and end at zero. By Abel's summation ``sum_B w (x - m) v <= 0`` for non-decreasing ``v``, hence

    sum_B w (x - v)^2  =  sum_B w (x - m)^2 - 2 sum_B w (x - m) v + sum_B w (v - m)^2
                      >=  sum_B w (x - m)^2 + min_c sum_B w (c - m)^2  =  min_c sum_B w (x - c)^2

over the values ``c`` that ``v`` takes on ``B`` (``sum_B w (x - m) m`` is zero). The best of these,
given to all of ``B``, costs no more, keeps the order and adds no value. So breaks may be limited to
ends of blocks, for a given number of groups and hence with a price. The means of the blocks ascend,
so their best groups without the order are in order, too. (With ``min_weight`` this fails: a block
that moves may leave too little behind. `RisingSegments` then looks at all segments.)

**Nominal groups with min_weight.** If all weights are equal, and all exposures, groups may be
sorted: for given values and sizes of groups, levels assigned in order cost least. Else an interval
of values need not be best: values 0, 1, 2 with exposures and weights 1, 10, 9 and a least exposure
of 10 allow no cut, but the groups {0, 2} and {1}. Unless the best groups without ``min_weight``
have enough exposure, the best intervals are then returned, as not exact.

**Circles.** A circle with a break at ``s`` is a line, and only few ``s`` have to be tried. Let
``F(j)`` be the least cost of the first ``j`` items of several laps. A partition of the circle with
a break at ``s`` extends a path to ``s`` by one lap, so it costs at least ``F(s + n) - F(s)``. One
program gives this bound for all ``s``, and breaks are tried in the order of their bounds until the
next one exceeds the best cost found. Moreover, a partition without a break inside an arc costs at
least what the arc costs as one segment: breaks need only be looked for inside the shortest arc that
costs more than the best partition found. For given numbers of groups this alone is used.

**Digits.** Values are centred at their mean. Priced groups of ascending items are found by the
sweep of k-means, with twice the working precision; all other sums are plain doubles, and the groups
found cost at most about ``1e-15 n W R^2`` more than the best, with the sum ``W`` of the weights and
the largest distance ``R`` of a value from the mean. The values of groups and their cost are
computed from their levels, not from running sums.
"""

import math

import cython
import numpy as np

from clustruct.kernels.kmeans1d import ldexp
from clustruct.kernels.rising import RisingSegments

if not cython.compiled:
    from math import sqrt

    from clustruct.kernels.intervals import moments_at, sweep

# Kinds of factor, for callers and as C integers.
KINDS = {"nominal": 0, "ordinal": 1, "rising": 2, "falling": 3, "cyclic": 4}
NOMINAL = cython.declare(cython.int, 0)
ORDINAL = cython.declare(cython.int, 1)
RISING = cython.declare(cython.int, 2)
FALLING = cython.declare(cython.int, 3)
CYCLIC = cython.declare(cython.int, 4)

# Length of a row of running moments, see ``intervals``.
N_MOMENTS = 6
# Weights of one, or exposures that are the weights.
NONE = np.empty(0)
INFINITY = cython.declare(cython.double, float("inf"))
# Relative precision of sums: exposures that miss the least one by rounding are enough, and bounds
# that are below the best cost by rounding are not looked at.
ROUNDING = cython.declare(cython.double, 1e-12)
UNIT = cython.declare(cython.double, 2.0**-53)
# Laps of a circle for its bounds, in the last of which the first start hardly matters.
LAPS = cython.declare(cython.Py_ssize_t, 3)
# An insertion sort ends and another begins after so many moves for each level.
MOST_MOVES = cython.declare(cython.Py_ssize_t, 16)
# Larger prices, after scaling, make one group as surely.
MOST_PRICE = 1e200
# Exponents of powers of two that have an inverse.
MOST_EXPONENT = 1000


@cython.cclass
class Segmenter:
    """Groups the levels of one factor; made once for a number of levels, with its work space."""

    # Levels: values (scaled, centred, negated for FALLING), weights (scaled) and exposures.
    n_levels: cython.Py_ssize_t
    x: cython.double[::1]
    w: cython.double[::1]
    e: cython.double[::1]
    # What values were multiplied by, and the exponent of two that costs were divided by.
    factor: cython.double
    exponent: cython.Py_ssize_t
    # Items: values, weights and exposures, the item of each level, the cost inside of items.
    n_items: cython.Py_ssize_t
    value: cython.double[::1]
    weight: cython.double[::1]
    exposed: cython.double[::1]
    place: cython.Py_ssize_t[::1]
    inside: cython.double
    # The order of the values, which is nearly that of the last call in iterations.
    order: cython.Py_ssize_t[::1]
    # Running sums over one lap or two: weights, first and second moments, exposures.
    mass: cython.double[::1]
    first: cython.double[::1]
    second: cython.double[::1]
    exposure: cython.double[::1]
    # Last start of a segment that ends at each position and has the least exposure.
    reach: cython.Py_ssize_t[::1]
    # Least cost of each position, a row for a number of groups, and where the last segment starts.
    n_rows: cython.Py_ssize_t
    best: cython.double[:, ::1]
    source: cython.Py_ssize_t[:, ::1]
    # The line of values in pieces, and the start whose parabola is lowest on each; now and next.
    low: cython.double[:, ::1]
    high: cython.double[:, ::1]
    start: cython.Py_ssize_t[:, ::1]
    vertex: cython.double[::1]
    bottom: cython.double[::1]
    # For ascending values: positions, running moments in pairs, and the work space of a sweep.
    positions: cython.longlong[::1]
    zeros: cython.double[:, ::1]
    moments: cython.double[:, ::1]
    pair: cython.double[:, ::1]
    previous: cython.int[::1]
    queue: cython.int[::1]
    since: cython.int[::1]
    # Least cost of each number of groups. On a circle: its best break, and bounds of all breaks.
    bound: cython.double[::1]
    least: cython.double[::1]
    at: cython.Py_ssize_t[::1]
    # Segments found: the number, and that of each item; sums for each; the group it becomes.
    n_groups: cython.Py_ssize_t
    segment: cython.Py_ssize_t[::1]
    sums: cython.double[:, ::1]
    final: cython.Py_ssize_t[::1]

    def __init__(self, n_levels):
        n = n_levels
        self.n_levels = n
        self.x, self.w, self.e = np.empty((3, n))
        self.value, self.weight, self.exposed = np.empty((3, n))
        self.place = np.empty(n, dtype=np.intp)
        self.order = np.arange(n)
        self.mass, self.first, self.second, self.exposure = np.zeros((4, LAPS * n + 1))
        self.reach = np.empty(LAPS * n + 1, dtype=np.intp)
        self.n_rows = 0
        self._allow(1)
        pieces = 4 * LAPS * n + 16
        self.low, self.high = np.empty((2, 2, pieces))
        self.start = np.empty((2, pieces), dtype=np.intp)
        self.vertex, self.bottom = np.empty((2, pieces))
        self.bound = np.empty(n)
        self.positions = np.arange(n + 1, dtype=np.int64)
        self.zeros, self.moments = np.zeros((1, N_MOMENTS)), np.empty((n + 1, N_MOMENTS))
        self.pair = np.empty((2, n + 1))
        self.previous, self.queue, self.since = np.empty((3, n + 1), dtype=np.int32)
        self.segment = np.empty(n, dtype=np.intp)
        self.sums = np.empty((n, 4))
        self.final = np.empty(n, dtype=np.intp)

    def group(
        self,
        kind: cython.int,
        values: cython.const[cython.double][::1],
        weights: cython.const[cython.double][::1],
        exposures: cython.const[cython.double][::1],
        most: cython.Py_ssize_t,
        price: cython.double,
        min_weight: cython.double,
        labels: cython.Py_ssize_t[::1],
        centers: cython.double[::1],
    ):
        """Write the label of each level and the value of each group.

        Parameters
        ----------
        kind : int
            One of ``KINDS``.
        values : ndarray of float64, shape (n_levels,)
            Finite numbers.
        weights, exposures : ndarray of float64, shape (n_levels,) or (0,)
            Not negative. Empty weights stand for ones, empty exposures for the weights.
        most : int
            Largest number of groups; ``n_levels`` for no limit.
        price : float
            What each group after the first costs; not negative.
        min_weight : float
            Least exposure of a group, unless there is only one.
        labels : ndarray of intp, shape (n_levels,)
            Written. Groups are numbered by their values if nominal, else along the order.
        centers : ndarray of float64, shape (n_levels,)
            Written; as many entries as there are groups.

        Returns
        -------
        n_groups : int
        cost : float
            ``1/2 sum w (x - v)^2``, without the price.
        exact : bool
            Whether the groups are proved to be best.
        """
        self._read(kind, values, weights, exposures)
        scaled: cython.double = min(ldexp(2.0 * price, -self.exponent), MOST_PRICE)
        if most < self.n_items:
            self._allow(most + 1)
        with cython.nogil:
            self._search(kind, most, scaled, 0.0)
            cost = self._write(kind, False, values, labels, centers)
            enough = self._enough(min_weight)
        exact = True
        if not enough:
            if kind == RISING or kind == FALLING:
                unlimited = most >= self.n_levels
                segments = self._rising(1 if unlimited else most, min_weight, scaled, unlimited)
                self._take(segments.starts())
            else:
                self._search(kind, most, scaled, min_weight)
                exact = kind != NOMINAL or bool(np.ptp(self.e) == 0.0 and np.ptp(self.w) == 0.0)
            cost = self._write(kind, True, values, labels, centers)
        return self.n_groups, ldexp(0.5 * cost, self.exponent), exact

    def costs(
        self,
        kind: cython.int,
        values: cython.const[cython.double][::1],
        weights: cython.const[cython.double][::1],
        exposures: cython.const[cython.double][::1],
        most: cython.Py_ssize_t,
        min_weight: cython.double,
    ):
        """``1/2 sum w (x - v)^2`` of the best groups, for at most 1 to ``most`` of them.

        The list is shorter where no more groups than that can help. Arguments as in `group`.
        """
        self._read(kind, values, weights, exposures)
        if (kind == RISING or kind == FALLING) and min_weight > 0.0:
            most = min(most, self.n_levels)
            found = self._rising(most, min_weight, 0.0, False).costs
        else:
            most = min(most, self.n_items)
            self._allow(most + 1)
            with cython.nogil:
                if kind == CYCLIC:
                    self._fill_circle(1, most, min_weight)
                else:
                    self._add_up(1)
                    self._fill_layers(0, self.n_items, most, min_weight, False, kind != ORDINAL)
                    for k in range(1, most + 1):
                        self.least[k] = self.best[k, self.n_items]
            found = np.asarray(self.least)[1 : most + 1] + self.inside
        factor, rest = _two_powers(self.exponent - 1)
        return np.minimum.accumulate(np.maximum(found, 0.0)) * factor * rest

    # ---- Levels and items.

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
    @cython.nogil
    @cython.exceptval(check=False)
    def _add_up(self, laps: cython.Py_ssize_t) -> cython.void:
        """Running sums over the items, once or twice."""
        for lap in range(laps):
            for item in range(self.n_items):
                j = lap * self.n_items + item
                moment = self.weight[item] * self.value[item]
                self.mass[j + 1] = self.mass[j] + self.weight[item]
                self.first[j + 1] = self.first[j] + moment
                self.second[j + 1] = self.second[j] + moment * self.value[item]
                self.exposure[j + 1] = self.exposure[j] + self.exposed[item]

    # ---- Programs over an interval of positions.

    @cython.cfunc
    def _allow(self, n_rows: cython.Py_ssize_t):
        """Make room for so many rows, unless there is."""
        if self.n_rows < n_rows:
            self.n_rows = n_rows
            self.best = np.empty((n_rows, LAPS * self.n_levels + 1))
            self.source = np.empty((n_rows, LAPS * self.n_levels + 1), dtype=np.intp)
            self.least = np.empty(n_rows)
            self.at = np.empty(n_rows, dtype=np.intp)

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _cost(self, i: cython.Py_ssize_t, j: cython.Py_ssize_t) -> cython.double:
        """Sum of squares of the items between two positions about their mean."""
        mass: cython.double = self.mass[j] - self.mass[i]
        first: cython.double = self.first[j] - self.first[i]
        second: cython.double = self.second[j] - self.second[i]
        return second - first * (first / mass) if mass > 0.0 else 0.0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _solve(
        self,
        first: cython.Py_ssize_t,
        last: cython.Py_ssize_t,
        price: cython.double,
        min_weight: cython.double,
        exempt: cython.bint,
        ascending: cython.bint,
    ) -> cython.void:
        """Least priced cost of all positions in row 0, with any number of groups."""
        if ascending and min_weight <= 0.0:
            self._sweep(price)
        elif min_weight > 0.0 or not self._prune(first, last, price):
            self._admit(first, last, min_weight)
            self.best[0, first] = 0.0
            self._fill_layer(0, 0, first, last, price, exempt, ascending)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _fill_layers(
        self,
        first: cython.Py_ssize_t,
        last: cython.Py_ssize_t,
        most: cython.Py_ssize_t,
        min_weight: cython.double,
        exempt: cython.bint,
        ascending: cython.bint,
    ) -> cython.void:
        """Least cost of all positions with exactly 1, 2, ..., ``most`` groups in these rows."""
        self._admit(first, last, min_weight)
        for row in range(most + 1):
            self.best[row, first] = INFINITY
        for j in range(first, last + 1):
            self.best[0, j] = INFINITY
        self.best[0, first] = 0.0
        for row in range(1, most + 1):
            self._fill_layer(row - 1, row, first, last, 0.0, exempt, ascending)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _admit(
        self, first: cython.Py_ssize_t, last: cython.Py_ssize_t, min_weight: cython.double
    ) -> cython.void:
        """Find the last start of a segment with the least exposure, for every end."""
        enough: cython.double = min_weight - ROUNDING * self.exposure[self.n_items]
        start: cython.Py_ssize_t = first - 1
        for j in range(first, last + 1):
            while start + 1 < j and (
                min_weight <= 0.0 or self.exposure[j] - self.exposure[start + 1] >= enough
            ):
                start += 1
            self.reach[j] = start

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _fill_layer(
        self,
        base: cython.Py_ssize_t,
        row: cython.Py_ssize_t,
        first: cython.Py_ssize_t,
        last: cython.Py_ssize_t,
        price: cython.double,
        exempt: cython.bint,
        ascending: cython.bint,
    ) -> cython.void:
        """``best[row, j] = price + min_i best[base, i] + C(i, j)``; the rows may be the same.

        A segment from ``first`` needs no least exposure if it is ``exempt``, or reaches ``last``.
        Starts never move back as ``j`` moves on where the values are ``ascending`` (Monge).
        """
        for j in range(first + 1, last + 1):
            least = INFINITY
            choice = first
            begin = first
            if ascending and j > first + 1 and self.best[row, j - 1] < INFINITY:
                begin = self.source[row, j - 1]
            for i in range(begin, self.reach[j] + 1):
                value = self.best[base, i] + self._cost(i, j)
                if value < least:
                    least = value
                    choice = i
            if self.reach[j] < first and (exempt or j == last):
                least = self.best[base, first] + self._cost(first, j)
            self.best[row, j] = least + price
            self.source[row, j] = choice

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _sweep(self, price: cython.double) -> cython.void:
        """The best starts for ascending items, by the sweep for k-means; see ``intervals``."""
        n: cython.Py_ssize_t = self.n_items
        values: cython.double[::1] = self.value[:n]
        # Blocks longer than the whole: every row continues the one before.
        moments_at(
            values, self.weight[:n], 0.0, self.zeros, n + 1, self.positions[: n + 1], self.moments
        )
        most: cython.double = 0.0
        for j in range(n + 1):
            most = max(most, abs(self.moments[j, 2]))
            self.pair[0, j] = INFINITY
        self.pair[0, 0] = 0.0
        self.pair[1, 0] = 0.0
        far: cython.double = max(-values[0], values[n - 1])
        # As in `fast_cost_error`.
        noise: cython.double = self.moments[n, 4] + far * (2.0 * most + far * self.moments[n, 0])
        noise *= 16.0 * UNIT
        sweep(self.moments, price, noise, 0, n, self.pair, self.previous, self.queue, self.since)
        for j in range(1, n + 1):
            self.source[0, j] = self.previous[j]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _prune(
        self, first: cython.Py_ssize_t, last: cython.Py_ssize_t, price: cython.double
    ) -> cython.bint:
        """The same as one priced layer, by functional pruning (after Maidstone et al. 2017).

        As a function of the value ``v`` of the last segment, a partition whose last segment starts
        at ``i`` costs a parabola. The line is cut into pieces on each of which one start is best.
        A new start begins with a constant and takes over wherever that is less; a start without
        a piece never comes back, since all later items add the same to all parabolas. Returns
        False, with nothing found, if rounding has made too many pieces.
        """
        now: cython.Py_ssize_t = 0
        n: cython.Py_ssize_t = 1
        self.best[0, first] = 0.0
        self.low[0, 0] = -INFINITY
        self.high[0, 0] = INFINITY
        self.start[0, 0] = first
        for j in range(first + 1, last + 1):
            least = INFINITY
            choice = first
            for piece in range(n):
                i = self.start[now, piece]
                mass = self.mass[j] - self.mass[i]
                moment = self.first[j] - self.first[i]
                self.vertex[piece] = moment / mass if mass > 0.0 else 0.0
                self.bottom[piece] = self.best[0, i] + price
                if mass > 0.0:
                    self.bottom[piece] += (
                        self.second[j] - self.second[i] - moment * self.vertex[piece]
                    )
                if self.bottom[piece] < least or (self.bottom[piece] == least and i < choice):
                    least = self.bottom[piece]
                    choice = i
            self.best[0, j] = least
            self.source[0, j] = choice
            n = self._compete(now, n, j, least + price)
            now = 1 - now
            if n == 0:
                return False
        return True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _compete(
        self,
        now: cython.Py_ssize_t,
        n: cython.Py_ssize_t,
        j: cython.Py_ssize_t,
        level: cython.double,
    ) -> cython.Py_ssize_t:
        """Give all of the line where parabolas exceed ``level`` to the start ``j``.

        Returns the number of pieces; 0 if there is no room for them.
        """
        n_next: cython.Py_ssize_t = 0
        for piece in range(n):
            i = self.start[now, piece]
            low = self.low[now, piece]
            high = self.high[now, piece]
            mass = self.mass[j] - self.mass[i]
            room = level - self.bottom[piece]
            left = low
            right = high
            if room < 0.0:
                right = left
            elif mass > 0.0:
                half = sqrt(room / mass)
                left = max(low, self.vertex[piece] - half)
                right = min(high, self.vertex[piece] + half)
            if n_next + 3 > self.low.shape[1]:
                return 0
            if left < right:
                n_next = self._append(1 - now, n_next, low, left, j)
                n_next = self._append(1 - now, n_next, left, right, i)
                n_next = self._append(1 - now, n_next, right, high, j)
            else:
                n_next = self._append(1 - now, n_next, low, high, j)
        return n_next

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _append(
        self,
        side: cython.Py_ssize_t,
        n: cython.Py_ssize_t,
        low: cython.double,
        high: cython.double,
        start: cython.Py_ssize_t,
    ) -> cython.Py_ssize_t:
        """Append a piece, unless it is empty, or extend the last one; return their number."""
        if not low < high:
            return n
        if n > 0 and self.start[side, n - 1] == start:
            self.high[side, n - 1] = high
            return n
        self.low[side, n] = low
        self.high[side, n] = high
        self.start[side, n] = start
        return n + 1

    # ---- Searches.

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _search(
        self,
        kind: cython.int,
        most: cython.Py_ssize_t,
        price: cython.double,
        min_weight: cython.double,
    ) -> cython.void:
        """Find the best segments of the items."""
        n: cython.Py_ssize_t = self.n_items
        limited: cython.bint = most < n
        if kind == CYCLIC:
            if limited:
                # With neither price nor least exposure, more segments never cost more.
                alone: cython.bint = price == 0.0 and min_weight <= 0.0
                self._fill_circle(most if alone else 1, most, min_weight)
                row = self._cheapest(most, price)
                self._fill_layers(self.at[row], self.at[row] + n, row, min_weight, False, False)
                self._trace(self.at[row], self.at[row] + n, row)
            else:
                self._solve_circle(price, min_weight)
            return
        self._add_up(1)
        if limited:
            self._fill_layers(0, n, most, min_weight, False, kind != ORDINAL)
            for row in range(1, most + 1):
                self.least[row] = self.best[row, n]
            self._trace(0, n, self._cheapest(most, price))
        else:
            self._solve(0, n, price, min_weight, False, kind != ORDINAL)
            self._trace(0, n, 0)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _cheapest(self, most: cython.Py_ssize_t, price: cython.double) -> cython.Py_ssize_t:
        """The number of groups with the least priced cost."""
        choice: cython.Py_ssize_t = 1
        for row in range(2, most + 1):
            if self.least[row] + price * row < self.least[choice] + price * choice:
                choice = row
        return choice

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _solve_circle(self, price: cython.double, min_weight: cython.double) -> cython.void:
        """Find the best priced segments of the circle."""
        n: cython.Py_ssize_t = self.n_items
        self._add_up(LAPS)
        self._solve(0, LAPS * n, price, min_weight, True, False)
        for s in range(n):
            j = s + (LAPS - 1) * n
            self.bound[s] = self.best[0, j] - self.best[0, j - n]
        least = INFINITY
        choice: cython.Py_ssize_t = 0
        tried: cython.Py_ssize_t = 0
        rounding: cython.double = ROUNDING * self.second[n]
        while True:
            s = 0
            for i in range(1, n):
                if self.bound[i] < self.bound[s]:
                    s = i
            if self.bound[s] >= least - rounding:
                break
            self._solve(s, s + n, price, min_weight, False, False)
            if least == INFINITY:
                begin, end = self._shortest_arc(self.best[0, s + n] - 2.0 * price)
                for i in range(end, begin + n + 1):
                    self.bound[i % n] = INFINITY
            self.bound[s] = INFINITY
            tried = s
            if self.best[0, s + n] < least:
                least = self.best[0, s + n]
                choice = s
        if tried != choice:
            self._solve(choice, choice + n, price, min_weight, False, False)
        self._trace(choice, choice + n, 0)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _fill_circle(
        self, fewest: cython.Py_ssize_t, most: cython.Py_ssize_t, min_weight: cython.double
    ) -> cython.void:
        """Find the least cost of ``fewest`` to ``most`` segments of the circle, and their breaks.

        Costs of fewer segments are upper bounds.
        """
        n: cython.Py_ssize_t = self.n_items
        self._add_up(2)
        for row in range(1, most + 1):
            self.least[row] = INFINITY
            self.at[row] = 0
        self._try_break(0, most, min_weight)
        if most > 1 and self.best[most, n] < INFINITY:
            # A break of these segments is more likely to be one of the best than the first.
            self._try_break(self.source[most, n], most, min_weight)
        for s in range(n):
            self.bound[s] = INFINITY
        for row in range(max(fewest, 2), most + 1):
            begin, end = self._shortest_arc(self.least[row])
            for s in range(begin + 1, end):
                self.bound[s % n] = 0.0
        for s in range(n):
            if self.bound[s] < INFINITY:
                self._try_break(s, most, min_weight)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _try_break(
        self, s: cython.Py_ssize_t, most: cython.Py_ssize_t, min_weight: cython.double
    ) -> cython.void:
        """Compare the best segments with a break at ``s`` with the best ones known."""
        self._fill_layers(s, s + self.n_items, most, min_weight, False, False)
        for row in range(1, most + 1):
            if self.best[row, s + self.n_items] < self.least[row]:
                self.least[row] = self.best[row, s + self.n_items]
                self.at[row] = s

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _shortest_arc(self, cost: cython.double) -> tuple[cython.Py_ssize_t, cython.Py_ssize_t]:
        """Begin and end of the shortest arc that costs so much as one segment; else of a lap.

        A partition that has no break inside the arc costs at least as much.
        """
        n: cython.Py_ssize_t = self.n_items
        begin: cython.Py_ssize_t = 0
        end: cython.Py_ssize_t = n + 1  # with all n breaks inside
        j: cython.Py_ssize_t = 1
        for i in range(n):
            while j < i + n and not self._cost(i, j) >= cost:
                j += 1
            if self._cost(i, j) >= cost and j - i < end - begin:
                begin = i
                end = j
        return begin, end

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _trace(
        self, first: cython.Py_ssize_t, last: cython.Py_ssize_t, row: cython.Py_ssize_t
    ) -> cython.void:
        """Number the segments on the best way to ``last``, for the items in them."""
        self.n_groups = 0
        layer: cython.Py_ssize_t = row
        position: cython.Py_ssize_t = last
        while position > first:
            position = self.source[layer, position]
            layer = max(layer - 1, 0)
            self.n_groups += 1
        group: cython.Py_ssize_t = self.n_groups
        layer = row
        position = last
        while position > first:
            group -= 1
            before = self.source[layer, position]
            for i in range(before, position):
                self.segment[i % self.n_items] = group
            position = before
            layer = max(layer - 1, 0)

    # ---- Segments as groups of levels.

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
            away = (values[level] - centers[group]) * self.factor
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
        the segment, so that equal values have this very mean.
        """
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
                self.sums[group, 1] += self.w[level] * (values[level] - centers[group])
        for group in range(self.n_groups):
            if self.sums[group, 0] > 0.0:
                centers[group] += self.sums[group, 1] / self.sums[group, 0]

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

    # ---- Monotone segments with a least exposure.

    @cython.cfunc
    def _rising(
        self,
        n_layers: cython.Py_ssize_t,
        min_weight: cython.double,
        price: cython.double,
        unlimited: cython.bint,
    ):
        """Programs over all segments of levels, since cuts may be inside of isotonic blocks."""
        self._keep()
        enough = min_weight - ROUNDING * float(np.sum(self.e))
        levels = np.array(self.x), np.array(self.w), np.array(self.e)
        return RisingSegments(*levels, enough, n_layers, price, unlimited)

    @cython.cfunc
    def _take(self, starts):
        """Use segments of levels that start at given positions, ascending."""
        self.n_groups = len(starts)
        np.asarray(self.segment)[:] = np.searchsorted(starts, np.arange(self.n_levels), "right") - 1


def _exponent(largest):
    """The exponent of the power of two just above a number; limited, so that it has an inverse."""
    return min(max(math.frexp(largest)[1], -MOST_EXPONENT), MOST_EXPONENT)


def _two_powers(exponent):
    """Two numbers whose product is two to this power, which itself may be out of range."""
    half = exponent // 2
    return math.ldexp(1.0, half), math.ldexp(1.0, exponent - half)
