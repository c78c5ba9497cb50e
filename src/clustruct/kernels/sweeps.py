# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Block coordinate descent over factors: one factor is grouped anew, the others are held.

With the other factors held, a factor enters the weighted sum of squares

    1/2 sum_i s_i (e_i - theta[c_i])^2 + 1/2 alpha ||theta||^2 + price (groups - 1)

only through its level sums ``S_l = sum_{c_i = l} s_i e_i`` and ``N_l = sum_{c_i = l} s_i``: up to a
constant it is ``1/2 sum_l (N_l + alpha) (S_l / (N_l + alpha) - theta_l)^2``, so that the best
groups and values are those of a weighted one-dimensional problem, which `segments` solves exactly.
The intercept is refitted with the factor left out, and joins the shift of the residuals.

Rows are held as ``u_i = s_i e_i``. A factor takes two passes over them, one to add up and one to
shift, and the second only if its values change.
"""

import cython
import numpy as np

from clustruct.kernels.segments import Segmenter

INFINITY = cython.declare(cython.double, float("inf"))


@cython.cclass
class CodedFactor:
    """One factor: the level of each row, and the groups of its levels.

    Arrays that callers read by `array`: ``weights`` (``N``), ``values`` (``theta``), ``labels``.
    """

    # The codes, in one of three types; the other two are empty.
    narrow: cython.const[cython.uchar][::1]
    middle: cython.const[cython.ushort][::1]
    wide: cython.const[cython.int][::1]
    width: cython.int
    n_levels: cython.Py_ssize_t
    # The first so many levels may share groups; those after them have a group each.
    n_shared = cython.declare(cython.Py_ssize_t, visibility="public")
    kind = cython.declare(cython.int, visibility="public")
    min_weight = cython.declare(cython.double, visibility="public")
    n_groups = cython.declare(cython.Py_ssize_t, visibility="public")
    spread: cython.double
    segmenter: object
    # Arrays as callers see them, and as the loops do.
    arrays: dict
    exposures: cython.double[::1]
    weights: cython.double[::1]
    values: cython.double[::1]
    labels: cython.Py_ssize_t[::1]
    sums: cython.double[::1]
    heavy: cython.double[::1]
    goals: cython.double[::1]
    centers: cython.double[::1]
    found: cython.Py_ssize_t[::1]
    shifts: cython.double[::1]

    def __init__(self, codes, n_levels, n_shared, kind, exposures, min_weight):
        empty = {
            "u1": np.empty(0, np.uint8),
            "u2": np.empty(0, np.uint16),
            "i4": np.empty(0, np.intc),
        }
        empty[codes.dtype.str[1:]] = codes
        self.narrow, self.middle, self.wide = empty["u1"], empty["u2"], empty["i4"]
        self.width = codes.itemsize
        self.n_levels = n_levels
        self.n_shared = n_shared
        self.kind = kind
        self.min_weight = min_weight
        self.n_groups = 1 + n_levels - n_shared
        self.segmenter = Segmenter(n_shared)
        names = ("weights", "values", "sums", "heavy", "goals", "centers", "shifts")
        self.arrays = dict(zip(names, np.zeros((len(names), n_levels)), strict=True))
        self.arrays["labels"], self.arrays["found"] = np.zeros((2, n_levels), dtype=np.intp)
        self.arrays["labels"][n_shared:] = np.arange(1, 1 + n_levels - n_shared)
        self.arrays["exposures"] = exposures
        self.exposures = exposures
        self.weights, self.values = self.arrays["weights"], self.arrays["values"]
        self.sums, self.heavy = self.arrays["sums"], self.arrays["heavy"]
        self.goals, self.centers = self.arrays["goals"], self.arrays["centers"]
        self.shifts = self.arrays["shifts"]
        self.labels, self.found = self.arrays["labels"], self.arrays["found"]

    def array(self, name):
        """One of the arrays, by its name."""
        return self.arrays[name]

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _code(self, i: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The level of a row."""
        if self.width == 1:
            return self.narrow[i]
        if self.width == 2:
            return self.middle[i]
        return self.wide[i]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _add_up(
        self, rows: cython.const[cython.double][::1], sums: cython.double[::1]
    ) -> cython.void:
        """Add up rows by their level."""
        sums[:] = 0.0
        if self.width == 1:
            for i in range(rows.shape[0]):
                sums[self.narrow[i]] += rows[i]
        elif self.width == 2:
            for i in range(rows.shape[0]):
                sums[self.middle[i]] += rows[i]
        else:
            for i in range(rows.shape[0]):
                sums[self.wide[i]] += rows[i]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _shift(
        self,
        rows: cython.double[::1],
        shares: cython.const[cython.double][::1],
        shifts: cython.const[cython.double][::1],
    ) -> cython.void:
        """Take the shift of its level, times its share, from every row."""
        if self.width == 1:
            for i in range(rows.shape[0]):
                rows[i] -= shares[i] * shifts[self.narrow[i]]
        elif self.width == 2:
            for i in range(rows.shape[0]):
                rows[i] -= shares[i] * shifts[self.middle[i]]
        else:
            for i in range(rows.shape[0]):
                rows[i] -= shares[i] * shifts[self.wide[i]]

    def weigh(self, shares: cython.const[cython.double][::1]):
        """Take over new shares of the rows."""
        with cython.nogil:
            self._add_up(shares, self.weights)

    def group_sums(self, rows: cython.const[cython.double][::1]):
        """Sums of the rows of each group."""
        return np.bincount(self.arrays["labels"], self.level_sums(rows), minlength=self.n_groups)

    def level_sums(self, rows: cython.const[cython.double][::1]):
        """Sums of the rows of each level, overwritten by the next call."""
        with cython.nogil:
            self._add_up(rows, self.sums)
        return self.arrays["sums"]

    def aim(
        self,
        rows: cython.const[cython.double][::1],
        alpha: cython.double,
        total: cython.double,
    ):
        """Values and weights of the levels for the problem of this factor alone."""
        with cython.nogil:
            self._add_up(rows, self.sums)
            self._aim(alpha, total)
        return self.arrays["goals"], self.arrays["heavy"]

    def shift(
        self,
        rows: cython.double[::1],
        shares: cython.const[cython.double][::1],
        shifts: cython.const[cython.double][::1],
    ):
        """Take the shift of its level, times its share, from every row."""
        with cython.nogil:
            self._shift(rows, shares, shifts)

    def tabulate(
        self,
        other,
        shares: cython.const[cython.double][::1],
        table: cython.double[:, ::1],
    ):
        """Add the shares of the rows to the cells of their groups in this and another factor."""
        beside: CodedFactor = other
        with cython.nogil:
            for i in range(shares.shape[0]):
                table[self.labels[self._code(i)], beside.labels[beside._code(i)]] += shares[i]

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _aim(self, alpha: cython.double, total: cython.double) -> cython.double:
        """Write the problem of this factor alone from its sums; return how the intercept moves.

        ``total`` is the sum of all shares, infinite if there is no intercept. The value of one
        group of all levels goes to ``centers[0]``; what more a value for each level would explain,
        to ``spread``.
        """
        mean: cython.double = 0.0
        for level in range(self.n_levels):
            self.sums[level] += self.weights[level] * self.values[level]
            mean += self.sums[level]
        mean /= total
        most: cython.double = 0.0
        all_left: cython.double = 0.0
        all_heavy: cython.double = 0.0
        for level in range(self.n_levels):
            left = self.sums[level] - self.weights[level] * mean
            self.heavy[level] = self.weights[level] + alpha
            self.goals[level] = left / self.heavy[level] if self.heavy[level] > 0.0 else 0.0
            most += left * self.goals[level]
            all_left += left
            all_heavy += self.heavy[level]
        # With an intercept nothing is left for all levels together, but for rounding.
        alone: cython.bint = total == INFINITY and all_heavy > 0.0
        self.centers[0] = all_left / all_heavy if alone else 0.0
        self.spread = 0.5 * (most - all_left * self.centers[0])
        return mean

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _take(self, n_groups: cython.Py_ssize_t, mean: cython.double) -> cython.bint:
        """Take the groups found over, with their shifts; whether any label has changed."""
        moved: cython.bint = n_groups != self.n_groups
        self.n_groups = n_groups
        for level in range(self.n_levels):
            moved = moved or self.labels[level] != self.found[level]
            self.labels[level] = self.found[level]
            value = self.centers[self.found[level]]
            self.shifts[level] = mean + value - self.values[level]
            self.values[level] = value
        return moved

    @cython.cfunc
    def _group(self, most: cython.Py_ssize_t, price: cython.double, mean: cython.double):
        """Group the levels for the problem written; whether any label has changed."""
        n: cython.Py_ssize_t = self.n_shared
        arrays = self.arrays
        n_groups: cython.Py_ssize_t = 1
        # Where not even a value for each level would pay for a second group, there is one.
        if n == self.n_levels and (self.spread <= price or most == 1):
            self.found[:] = 0
        else:
            n_groups = self.segmenter.group(
                self.kind,
                arrays["goals"][:n],
                arrays["heavy"][:n],
                arrays["exposures"],
                most,
                price,
                self.min_weight,
                arrays["found"][:n],
                arrays["centers"][:n],
            )[0]
        for level in range(n, self.n_levels):
            self.found[level] = n_groups
            self.centers[n_groups] = self.goals[level]
            n_groups += 1
        return self._take(n_groups, mean)


def sweep(
    factors: list,
    rows: cython.double[::1],
    shares: cython.const[cython.double][::1],
    alphas: cython.const[cython.double][::1],
    limits: cython.const[cython.Py_ssize_t][::1],
    price: cython.double,
    total: cython.double,
):
    """Group every factor anew, in turn.

    Parameters
    ----------
    factors : list of CodedFactor
        The factors; their groups and values change.
    rows, shares : ndarray of float64, shape (n,)
        Residuals times shares, changed in place, and shares, whose sum is ``total`` (infinite if
        there is no intercept).
    alphas : ndarray of float64
        The ridge on the levels of each factor.
    limits : ndarray of intp
        Largest number of groups of each factor.
    price : float
        What each group after the first of a factor costs.

    Returns
    -------
    moved : bool
        Whether any level has changed its group.
    intercept : float
        What is to be added to the intercept.
    change : float
        The largest change of a value.
    """
    moved: cython.bint = False
    intercept: cython.double = 0.0
    change: cython.double = 0.0
    for j in range(len(factors)):
        factor: CodedFactor = factors[j]
        with cython.nogil:
            factor._add_up(rows, factor.sums)
            mean = factor._aim(alphas[j], total)
        moved |= factor._group(limits[j], price, mean)
        largest: cython.double = 0.0
        for level in range(factor.n_levels):
            largest = max(largest, abs(factor.shifts[level]))
        if largest > 0.0:
            with cython.nogil:
                factor._shift(rows, shares, factor.shifts)
        intercept += mean
        change = max(change, largest)
    return moved, intercept, change
