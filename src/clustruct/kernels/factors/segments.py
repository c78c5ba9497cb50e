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

import cython
import numpy as np

from clustruct.kernels.factors.rising import RisingSegments
from clustruct.kernels.kmeans.kmeans1d import ldexp

if not cython.compiled:
    from clustruct.kernels.factors.levels import (
        CYCLIC,
        FALLING,
        INFINITY,
        NOMINAL,
        ORDINAL,
        RISING,
        ROUNDING,
    )
    from clustruct.kernels.factors.lines import Lines

KINDS = {
    "nominal": NOMINAL,
    "ordinal": ORDINAL,
    "rising": RISING,
    "falling": FALLING,
    "cyclic": CYCLIC,
}
# Weights of one, or exposures that are the weights.
NONE = np.empty(0)
# Laps of a circle for its bounds, in the last of which the first start hardly matters.
LAPS = cython.declare(cython.Py_ssize_t, 3)
# Bounds of breaks that are below the best cost by so much of the squares, for each item, are off by
# rounding: those breaks are not tried.
UNRESOLVED = cython.declare(cython.double, 4e-16)
# Larger prices, after scaling, make one group as surely.
MOST_PRICE = 1e200


@cython.cclass
class Segmenter(Lines):
    """Groups the levels of one factor; made once for a number of levels, with its work space."""

    # On a circle: bounds of all breaks, and the best break for each number of groups.
    bound: cython.double[::1]
    at: cython.Py_ssize_t[::1]

    def __init__(self, n_levels):
        super().__init__(n_levels, LAPS)
        self.bound = np.empty(n_levels)
        self.at = np.empty(n_levels + 1, dtype=np.intp)

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
        rounding: cython.double = UNRESOLVED * n * self.second[n]
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


def _two_powers(exponent):
    """Two numbers whose product is two to this power, which itself may be out of range."""
    half = exponent // 2
    return ldexp(1.0, half), ldexp(1.0, exponent - half)
