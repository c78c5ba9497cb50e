# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Block coordinate descent over factors: one factor is grouped anew, the others are held.

With the other factors held, a factor enters the weighted sum of squares

    1/2 sum_i s_i (e_i - theta[c_i])^2 + 1/2 alpha ||theta||^2 + price (groups - 1)

only through its level sums ``S_l = sum_{c_i = l} s_i e_i`` and ``N_l = sum_{c_i = l} s_i``: up to a
constant it is ``1/2 sum_l (N_l + alpha) (S_l / (N_l + alpha) - theta_l)^2``, so that the best
groups and values are those of a weighted one-dimensional problem, which `segments` solves exactly.
The intercept is refitted with the factor left out, and joins the shift of the residuals.

Residuals are held in one of two ways. **By rows**, as ``u_i = s_i e_i``: a factor takes two passes
over them, one to add up and one to shift. **By columns**, as the sums ``g = X' u`` themselves, for
the columns of all levels and numeric columns: if values change by ``t``, then ``g`` changes by
``-G t`` with the Gram matrix ``G = X' diag(s) X``, whatever the number of rows. The block of a
factor with itself is diagonal. In both ways only what changes is shifted.
"""

import cython
import numpy as np

from clustruct.kernels.factors.segments import Segmenter

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
    # The column of its first level, where residuals are held by columns.
    first = cython.declare(cython.Py_ssize_t, visibility="public")
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
    steps: cython.double[::1]

    def __init__(self, codes, n_levels, n_shared, kind, exposures, min_weight, first=0):
        empty = {
            "u1": np.empty(0, np.uint8),
            "u2": np.empty(0, np.uint16),
            "i4": np.empty(0, np.intc),
        }
        empty[codes.dtype.str[1:]] = codes
        self.narrow, self.middle, self.wide = empty["u1"], empty["u2"], empty["i4"]
        self.width = codes.itemsize
        self.n_levels = n_levels
        self.first = first
        self.n_shared = n_shared
        self.kind = kind
        self.min_weight = min_weight
        self.n_groups = 1 + n_levels - n_shared
        self.segmenter = Segmenter(n_shared)
        names = ("weights", "values", "sums", "heavy", "goals", "centers", "steps")
        self.arrays = dict(zip(names, np.zeros((len(names), n_levels)), strict=True))
        self.arrays["labels"], self.arrays["found"] = np.zeros((2, n_levels), dtype=np.intp)
        self.arrays["labels"][n_shared:] = np.arange(1, 1 + n_levels - n_shared)
        self.arrays["exposures"] = exposures
        self.exposures = exposures
        self.weights, self.values = self.arrays["weights"], self.arrays["values"]
        self.sums, self.heavy = self.arrays["sums"], self.arrays["heavy"]
        self.goals, self.centers = self.arrays["goals"], self.arrays["centers"]
        self.steps = self.arrays["steps"]
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

    def tabulate(
        self,
        other,
        shares: cython.const[cython.double][::1],
        table: cython.double[:, ::1],
    ):
        """Add the shares of the rows to the cells of their groups in this and another factor.

        Without another factor, the table has one column.
        """
        if other is None:
            with cython.nogil:
                for i in range(shares.shape[0]):
                    table[self.labels[self._code(i)], 0] += shares[i]
            return
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
    def _take(self, n_groups: cython.Py_ssize_t) -> cython.bint:
        """Take the groups found over, with the steps of values; whether any label has changed."""
        moved: cython.bint = n_groups != self.n_groups
        self.n_groups = n_groups
        for level in range(self.n_levels):
            moved = moved or self.labels[level] != self.found[level]
            self.labels[level] = self.found[level]
            value = self.centers[self.found[level]]
            self.steps[level] = value - self.values[level]
            self.values[level] = value
        return moved

    @cython.cfunc
    def _group(self, most: cython.Py_ssize_t, price: cython.double):
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
        return self._take(n_groups)


@cython.cclass
class RowResiduals:
    """Residuals by rows: ``u`` and the shares ``s`` of the rows."""

    rows: cython.double[::1]
    shares: cython.const[cython.double][::1]

    def hold(self, rows, shares):
        """Take over residuals times shares, which will be changed in place, and shares."""
        self.rows, self.shares = rows, shares

    @cython.cfunc
    def _read(self, factor: CodedFactor):
        """Write the level sums of a factor to its ``sums``."""
        with cython.nogil:
            factor._add_up(self.rows, factor.sums)

    @cython.cfunc
    def _shift(self, factor: CodedFactor, mean: cython.double):
        """Shift the residuals of all rows by the mean and the step of their level."""
        moves: cython.bint = mean != 0.0
        for level in range(factor.n_levels):
            moves = moves or factor.steps[level] != 0.0
            factor.sums[level] = mean + factor.steps[level]
        if moves:
            with cython.nogil:
                factor._shift(self.rows, self.shares, factor.sums)

    def level_sums(self, factor):
        """Sums of the residuals of each level, overwritten by the next call."""
        self._read(factor)
        return factor.array("sums")

    def aim(self, factor, alpha: cython.double, total: cython.double):
        """Values and weights of the levels for the problem of a factor alone."""
        self._read(factor)
        mine: CodedFactor = factor
        mine._aim(alpha, total)
        return factor.array("goals"), factor.array("heavy")

    def shift(self, factor, steps, mean: cython.double):
        """Shift the residuals as values do that change by steps, and the intercept by the mean."""
        factor.array("steps")[:] = steps
        self._shift(factor, mean)


@cython.cclass
class ColumnResiduals(RowResiduals):
    """Residuals by columns: their sums ``g``, the Gram matrix and the sums of the shares."""

    sums: cython.double[::1]
    gram: cython.const[cython.double][:, ::1]
    masses: cython.const[cython.double][::1]

    def hold(self, sums, gram, masses):
        """Take over sums of the residuals, which will be changed in place, and of the shares."""
        self.sums, self.gram, self.masses = sums, gram, masses

    @cython.cfunc
    def _read(self, factor: CodedFactor):
        """Write the level sums of a factor to its ``sums``."""
        for level in range(factor.n_levels):
            factor.sums[level] = self.sums[factor.first + level]

    @cython.cfunc
    def _shift(self, factor: CodedFactor, mean: cython.double):
        """Shift the sums of all columns by the mean and the steps of the levels of a factor."""
        first: cython.Py_ssize_t = factor.first
        last: cython.Py_ssize_t = first + factor.n_levels
        size: cython.Py_ssize_t = self.sums.shape[0]
        sums = self.sums
        with cython.nogil:
            if mean != 0.0:
                for k in range(size):
                    sums[k] -= mean * self.masses[k]
            for row in range(first, last):
                step = factor.steps[row - first]
                if step != 0.0:
                    line = self.gram[row]
                    for k in range(first):
                        sums[k] -= step * line[k]
                    sums[row] -= step * line[row]
                    for k in range(last, size):
                        sums[k] -= step * line[k]


def group_gram(
    gram: cython.const[cython.double][:, ::1],
    places: cython.const[cython.Py_ssize_t][::1],
    sums: cython.double[:, ::1],
):
    """Add the part of a Gram matrix above its diagonal to the cells of the places of its columns.

    The last place is for columns that are left out.
    """
    out: cython.Py_ssize_t = sums.shape[0] - 1
    with cython.nogil:
        for i in range(gram.shape[0]):
            if places[i] != out:
                line, into = gram[i], sums[places[i]]
                for j in range(i + 1, gram.shape[0]):
                    into[places[j]] += line[j]


def sweep(
    factors: list,
    residuals: RowResiduals,
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
    residuals : RowResiduals or ColumnResiduals
        The residuals, which change with the values.
    alphas : ndarray of float64
        The ridge on the levels of each factor.
    limits : ndarray of intp
        Largest number of groups of each factor.
    price : float
        What each group after the first of a factor costs.
    total : float
        The sum of all shares, infinite if there is no intercept.

    Returns
    -------
    moved : bool
        Whether any level has changed its group.
    intercept : float
        What is to be added to the intercept.
    """
    moved: cython.bint = False
    intercept: cython.double = 0.0
    for j in range(len(factors)):
        factor: CodedFactor = factors[j]
        residuals._read(factor)
        mean: cython.double = factor._aim(alphas[j], total)
        moved |= factor._group(limits[j], price)
        residuals._shift(factor, mean)
        intercept += mean
    return moved, intercept
