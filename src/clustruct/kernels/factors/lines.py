# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Programs that cut the items between two positions into segments of least cost.

With a price for each segment, by functional pruning, or by the sweep of k-means where the items
ascend; for given numbers of segments or with a least exposure, layer by layer.
"""

import cython
import numpy as np

if not cython.compiled:
    from math import sqrt

    from clustruct.kernels.factors.levels import INFINITY, ROUNDING, Levels
    from clustruct.kernels.numbers.intervals import moments_at, sweep

# Length of a row of running moments, see ``intervals``.
N_MOMENTS = 6
UNIT = cython.declare(cython.double, 2.0**-53)


@cython.cclass
class Lines(Levels):
    """Programs over intervals of positions, in up to ``n_laps`` laps over the items."""

    def __init__(self, n_levels, n_laps):
        super().__init__(n_levels)
        n = n_levels
        self.n_positions = n_laps * n + 1
        # Running sums: weights, first and second moments, exposures.
        self.mass, self.first, self.second, self.exposure = np.zeros((4, self.n_positions))
        # Last start of a segment that ends at each position and has the least exposure.
        self.reach = np.empty(self.n_positions, dtype=np.intp)
        self.n_rows = 0
        self._allow(1)
        # The line of values in pieces, and the start whose parabola is lowest on each; now and
        # next. No more than two for each start, but for rounding.
        pieces = 4 * self.n_positions + 16
        self.low, self.high = np.empty((2, 2, pieces))
        self.start = np.empty((2, pieces), dtype=np.intp)
        self.vertex, self.bottom = np.empty((2, pieces))
        # For ascending items: positions, running moments in pairs, and the work space of a sweep.
        self.positions = np.arange(n + 1, dtype=np.int64)
        self.zeros, self.moments = np.zeros((1, N_MOMENTS)), np.empty((n + 1, N_MOMENTS))
        self.pair = np.empty((2, n + 1))
        self.previous, self.queue, self.since = np.empty((3, n + 1), dtype=np.int32)

    @cython.cfunc
    def _allow(self, n_rows: cython.Py_ssize_t):
        """Make room for so many rows, unless there is."""
        if self.n_rows < n_rows:
            self.n_rows = n_rows
            # Least cost of each position, a row for a number of segments, and where the last
            # segment starts.
            self.best = np.empty((n_rows, self.n_positions))
            self.source = np.empty((n_rows, self.n_positions), dtype=np.intp)
            # Least cost of each number of segments.
            self.least = np.empty(n_rows)

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
        value: cython.double
        for j in range(first + 1, last + 1):
            least = INFINITY
            choice = first
            begin = first
            if ascending and j > first + 1 and self.best[row, j - 1] < INFINITY:
                begin = self.source[row, j - 1]
            for i in range(begin, self.reach[j] + 1):
                # `_cost`, written out: calls would take most of the time.
                mass = self.mass[j] - self.mass[i]
                moment = self.first[j] - self.first[i]
                value = self.best[base, i] + (self.second[j] - self.second[i])
                value -= moment * (moment / mass) if mass > 0.0 else 0.0
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
