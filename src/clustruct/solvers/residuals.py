"""Residuals of the quadratic model of factors: by rows, or by columns with a Gram matrix.

The model of a loss around scores has the residuals ``u_i = s_i e_i`` and the weights ``s_i`` of
Newton's method. A descent needs no more of it than sums over the levels. Rows can be added up for
each of them; or the sums are held for all columns, with the Gram matrix to shift them.
"""

from collections.abc import Sequence

import numpy as np

from clustruct._typing import Floats
from clustruct.design import FactorDesign
from clustruct.kernels.factors.sweeps import CodedFactor, ColumnResiduals, RowResiduals, group_gram

# A Gram matrix has at most so many columns (32 MB).
MOST_COLUMNS = 2000
# A product of its row and a step takes about this part of the time of adding up a row.
CHEAPER = 0.5


class ByRows(RowResiduals):  # type: ignore[misc]
    """Residuals by rows: a sweep takes two passes of additions over them."""

    def __init__(self, design: FactorDesign, factors: Sequence[CodedFactor]) -> None:
        self._design, self._factors = design, factors

    def expand(self, rows: Floats, weights: Floats) -> None:
        """Take over residuals and weights of the rows."""
        self._rows, self._weights = rows, weights
        self.hold(rows, weights)
        for factor in self._factors:
            factor.weigh(weights)

    def share(self, other: "ByRows") -> None:
        """There is nothing to share."""

    def normal_equations(
        self, active: Sequence[int], parts: Sequence[slice]
    ) -> tuple[Floats, Floats, Floats, float]:
        """Second derivatives and residuals by the values of groups, and then of numeric columns.

        active: the factors, whose values have the first of the `parts`; the last is of the numeric
        columns. Then the weights of all values, and the sum of the residuals.
        """
        size, X, own = parts[-1].stop, self._design.numeric, parts[-1]
        normal, slope, mass = np.zeros((size, size)), np.zeros(size), np.zeros(size)
        weighed = self._weights[:, None] * X
        normal[own, own], slope[own] = X.T @ weighed, X.T @ self._rows
        mass[own] = weighed.sum(axis=0)
        for i, j in enumerate(active):
            factor, mine = self._factors[j], parts[i]
            labels, n_groups = factor.array("labels"), factor.n_groups
            slope[mine] = np.bincount(labels, self.level_sums(factor), minlength=n_groups)
            mass[mine] = np.bincount(labels, factor.array("weights"), minlength=n_groups)
            normal[mine, mine] = np.diag(mass[mine])
            for column in range(own.start, own.stop):
                cross = np.zeros((n_groups, 1))
                factor.tabulate(None, np.ascontiguousarray(weighed[:, column - own.start]), cross)
                normal[mine, column] = normal[column, mine] = cross[:, 0]
            for k in range(i + 1, len(active)):
                other = self._factors[active[k]]
                table = np.zeros((n_groups, other.n_groups))
                factor.tabulate(other, self._weights, table)
                normal[mine, parts[k]], normal[parts[k], mine] = table, table.T
        return normal, slope, mass, float(self._rows.sum())

    def move_numeric(self, step: Floats, shift: float) -> None:
        """Shift the residuals as the weights of numeric columns and the intercept do."""
        self._rows -= self._weights * (self._design.numeric @ step + shift)

    def gained(self, step: Floats, shift: float) -> float:
        """How far the model has fallen, for all steps since it was expanded.

        For ``t``, the change of the scores, it is ``t' u + 1/2 t' diag(s) t`` at the end of it.
        """
        moved = self._design.scores(step[:, None])[:, 0] + shift
        return float(moved @ (self._rows + 0.5 * self._weights * moved))


class ByColumns(ColumnResiduals):  # type: ignore[misc]
    """Residuals by columns: a sweep costs as much as the square of their number."""

    def __init__(self, design: FactorDesign, factors: Sequence[CodedFactor]) -> None:
        self._design, self._factors = design, factors
        # Weights with their Gram matrix: the first ones, to which paths return, and the last ones.
        self._known: list[tuple[Floats, Floats]] = []

    def expand(self, rows: Floats, weights: Floats) -> None:
        """Take over residuals and weights of the rows; of known weights the matrix is at hand."""
        design = self._design
        self._sums = np.ascontiguousarray(design.adjoint(rows[:, None])[:, 0])
        self._start = self._sums.copy()
        if not any(known is weights for known, _ in self._known):
            gram = design.gram(weights, np.zeros(design.shape[1]))
            self._known = [*self._known[:1], (weights, gram)]
        self._gram = next(gram for known, gram in self._known if known is weights)
        # Every row has one of the levels of the first factor.
        self._masses = self._gram[:, : self._design.n_levels[0]].sum(axis=1)
        self.hold(self._sums, self._gram, self._masses)
        for factor in self._factors:
            mine = factor.array("weights")
            mine[:] = self._masses[factor.first : factor.first + mine.size]

    def share(self, other: "ByColumns") -> None:
        """Take over the Gram matrix of the first weights of the same rows."""
        self._known = other._known[:1]

    def normal_equations(
        self, active: Sequence[int], parts: Sequence[slice]
    ) -> tuple[Floats, Floats, Floats, float]:
        """As of rows, by adding up columns."""
        size, offsets = parts[-1].stop, self._design.offsets
        places = np.full(self._sums.size, size, dtype=np.intp)
        for j, mine in zip(active, parts, strict=False):
            places[offsets[j] : offsets[j + 1]] = mine.start + self._factors[j].array("labels")
        places[offsets[-1] :] = np.arange(parts[-1].start, size)
        half = np.zeros((size + 1, size + 1))
        group_gram(self._gram, places, half)

        def added_up(columns: Floats) -> Floats:
            sums: Floats = np.bincount(places, columns, minlength=size + 1)[:size].astype(float)
            return sums

        slope, mass = added_up(self._sums), added_up(self._masses)
        normal = half[:size, :size] + half[:size, :size].T
        normal[np.diag_indices(size)] += added_up(self._gram.diagonal())
        return normal, slope, mass, self._left(self._sums)

    def move_numeric(self, step: Floats, shift: float) -> None:
        """Shift the sums as the weights of numeric columns and the intercept do."""
        first = self._design.offsets[-1]
        self._sums -= step @ self._gram[first:] + shift * self._masses

    def gained(self, step: Floats, shift: float) -> float:
        """How far the model has fallen: the step times the mean of its slopes at both ends."""
        ends = self._start + self._sums
        return 0.5 * (float(step @ ends) + shift * self._left(ends))

    def _left(self, sums: Floats) -> float:
        """The sum of the residuals of all rows."""
        return float(sums[: self._design.n_levels[0]].sum())


def residuals_of(design: FactorDesign, factors: Sequence[CodedFactor]) -> ByRows | ByColumns:
    """Residuals by columns where sweeps then take less time, by rows elsewhere."""
    n, d = design.shape
    n_products = d**2 - sum(size**2 for size in design.n_levels)
    pays = d <= MOST_COLUMNS and CHEAPER * n_products <= 2 * n * len(factors)
    return ByColumns(design, factors) if pays else ByRows(design, factors)
