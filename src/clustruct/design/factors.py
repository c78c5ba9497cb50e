"""Factors as integer codes: a design whose one-hot matrix is never formed."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import combinations_with_replacement, pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clustruct._finite import finite_moments
from clustruct._typing import Floats, Indices, Labels
from clustruct.design.local import DenseDesign, LocalDesign, Rows
from clustruct.kernels.factors.codes import add_by_level, sum_by_level, sum_by_pair

Codes = NDArray[np.integer]
# The types of codes that the kernels know, the smallest first.
CODE_TYPES = (np.uint8, np.uint16, np.int32)
# Rows whose codes are converted at once.
CHUNK_ROWS = 1 << 16
# Small factors are looked up and added up together while they have no more cells than this, nor
# more than this part of the rows.
MOST_CELLS, CELLS_PER_ROW = 512, 1 / 32


class Cells(NamedTuple):
    """Some factors as one, whose levels are their combinations.

    factors: their indices; sizes: one more than the levels of each, for rows without level.
    """

    codes: Codes
    factors: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    def n_cells(self) -> int:
        """Number of combinations."""
        return prod(self.sizes)

    @property
    def members(self) -> Floats:
        """Which cells a level of a factor has, for all levels side by side: ones and zeros."""
        places = np.indices(self.sizes).reshape(len(self.sizes), -1)
        return np.hstack(
            [np.eye(size)[mine] for size, mine in zip(self.sizes, places, strict=True)]
        )

    def of_each(self, sums: Floats) -> Iterator[tuple[int, Floats]]:
        """The factors, with sums over cells added up for the levels of each."""
        table = sums.reshape(*self.sizes, -1)
        for axis, factor in enumerate(self.factors):
            others = tuple(k for k in range(len(self.sizes)) if k != axis)
            yield factor, table.sum(axis=others) if others else table


class FactorDesign(LocalDesign):
    """The levels of each factor as columns, then numeric columns.

    A row has one in the column of its level of each factor, and zero in those of the other levels.
    A code that equals the number of levels stands for none of them: such a row has what is
    `expected` of it, the shares of the levels, and its score is the weighted mean of their weights.

    codes: for each factor the levels of the rows (n,), in the smallest type that holds them.
    n_levels: number of levels of each factor.
    numeric (n, p): the numeric columns.
    expected (n_levels in all,): what a row without level has in the columns of levels; zeros if it
        is None.
    offsets (F + 1,): first column of each factor, and of the numeric columns.
    """

    has_levels = True

    def __init__(
        self,
        codes: Sequence[Codes],
        n_levels: Sequence[int],
        numeric: Floats,
        expected: Floats | None = None,
    ) -> None:
        self.codes = tuple(as_codes(mine, n) for mine, n in zip(codes, n_levels, strict=True))
        self.n_levels = tuple(int(n) for n in n_levels)
        self.offsets: Indices = np.cumsum([0, *self.n_levels], dtype=np.intp)
        self.numeric = numeric
        self.expected = np.zeros(self.offsets[-1]) if expected is None else expected
        self.shape = (numeric.shape[0], int(self.offsets[-1]) + numeric.shape[1])
        self.n_entries = numeric.shape[0] * (len(self.codes) + numeric.shape[1])
        self.dtype = np.dtype(np.float64)
        self.single = False
        self._dense = DenseDesign(numeric)

    def matrix(self) -> Any:
        """The design itself, which models take for samples."""
        return self

    def scores(self, W: Floats) -> Floats:
        """``X W``: the weights of the levels of each row, added up."""
        if W.shape[0] != self.shape[1]:  # codes are looked up without checks
            raise ValueError(f"{W.shape[0]} weights were given for {self.shape[1]} columns.")
        scores = np.ascontiguousarray(self._dense.scores(W[self.offsets[-1] :]))
        tables = []
        for first, last in self._columns():
            weights = np.asarray(W[first:last], dtype=np.float64)
            tables.append(np.concatenate([weights, self.expected[None, first:last] @ weights]))
        for cells in self._cells:
            table = tables[cells.factors[0]]
            for f in cells.factors[1:]:
                table = (table[:, None] + tables[f][None]).reshape(-1, W.shape[1])
            add_by_level(cells.codes, table, scores)
        return scores

    def adjoint(self, R: Floats) -> Floats:
        """``X' R``: the rows of each level, added up."""
        rows = np.ascontiguousarray(R, dtype=np.float64)
        return np.concatenate([self._level_sums(rows), self._dense.adjoint(rows)])

    def moments(self, shares: Floats) -> tuple[Floats, Floats]:
        """Weighted mean and variance of each column."""
        total, means, variances = float(shares.sum()), [], []
        for (first, last), sums in zip(self._columns(), self.tallies(shares[:, None]), strict=True):
            mine, none, expected = sums[:-1, 0], sums[-1, 0], self.expected[first:last]
            mean = mine + none * expected
            # Of rows of the level, of rows without level, and of all others, where it is zero.
            others = np.maximum(total - mine - none, 0.0) * mean**2
            means.append(mean)
            variances.append(mine * (1 - mean) ** 2 + none * (expected - mean) ** 2 + others)
        mean, variance = self._dense.moments(shares)
        return finite_moments(
            np.concatenate([*means, mean]), np.concatenate([*variances, variance])
        )

    def far_columns(self, ratio: float) -> Iterator[tuple[int, float, float]]:
        """Among the numeric columns: levels have zeros."""
        for column, least, largest in self._dense.far_columns(ratio):
            yield int(self.offsets[-1]) + column, least, largest

    def gram(self, shares: Floats, means: Floats) -> Floats:
        """Weighted Gram matrix of the columns less ``means``, from tables of pairs of levels."""
        first = int(self.offsets[-1])
        mine, gram = means[:first], np.empty((self.shape[1], self.shape[1]))
        away = self.numeric - means[first:]
        away *= shares[:, None]
        gram[first:, first:] = self._dense.gram(shares, means[first:])
        gram[:first, first:] = self._level_sums(away) - np.outer(mine, away.sum(axis=0))
        gram[first:, :first] = gram[:first, first:].T
        levels = gram[:first, :first]
        self._count_pairs(shares, levels)
        if mine.any():
            sums = self._level_sums(shares[:, None])[:, 0]
            both = np.outer(sums, mine)
            levels += shares.sum() * np.outer(mine, mine) - both - both.T
        return gram

    def cross(self, R: Floats, means: Floats) -> Floats:
        """``X'R`` of the columns less ``means``."""
        first = self.offsets[-1]
        levels = self._level_sums(np.ascontiguousarray(R, dtype=np.float64))
        levels -= np.outer(means[:first], R.sum(axis=0))
        return np.concatenate([levels, self._dense.cross(R, means[first:])])

    def rows(self, index: Labels) -> "FactorDesign":
        """A copy of some rows."""
        codes = [mine.take(index) for mine in self.codes]
        return FactorDesign(codes, self.n_levels, self.numeric[index], self.expected)

    def fetch(self, index: Labels, *rows: Rows) -> tuple[Any, tuple[Any, ...]]:
        """Some rows as a dense matrix, and what belongs to them."""
        return self.rows(index)._as_dense(), tuple(mine[index] for mine in rows)

    def row_products(self, B: Floats) -> Floats:
        """Each row times each of its numbers, which is as wide as the one-hot matrix."""
        return DenseDesign(self._as_dense()).row_products(B)

    def _as_dense(self) -> Floats:
        """The matrix, for the few that ask for rows as they are."""
        return self.scores(np.eye(self.shape[1]))

    def _columns(self) -> Iterator[tuple[int, int]]:
        """First column of each factor, and the one after its last."""
        return pairwise(self.offsets.tolist())

    def tallies(self, rows: Floats) -> list[Floats]:
        """Sums of rows for each level of each factor, then for rows without level."""
        found: dict[int, Floats] = {}
        for cells in self._cells:
            sums = np.zeros((cells.n_cells, rows.shape[1]))
            sum_by_level(cells.codes, rows, sums)
            found.update(cells.of_each(sums))
        return [found[f] for f in range(len(self.codes))]

    @cached_property
    def _cells(self) -> list[Cells]:
        """The factors, small ones together."""
        most = min(MOST_CELLS, CELLS_PER_ROW * self.shape[0])
        found: list[Cells] = []
        for f in np.argsort(self.n_levels, kind="stable").tolist():
            codes, size = self.codes[f], self.n_levels[f] + 1
            before = found[-1] if found else None
            n_cells = size * before.n_cells if before else 0
            if before is None or n_cells > most:
                found.append(Cells(codes, (f,), (size,)))
                continue
            joined = before.codes.astype(np.min_scalar_type(n_cells)) * size
            joined += codes.astype(joined.dtype, copy=False)
            found[-1] = Cells(
                as_codes(joined, n_cells), (*before.factors, f), (*before.sizes, size)
            )
        return found

    def _level_sums(self, rows: Floats) -> Floats:
        """``X' R`` for the columns of levels."""
        sums = np.empty((self.offsets[-1], rows.shape[1]))
        for (first, last), tally in zip(self._columns(), self.tallies(rows), strict=True):
            sums[first:last] = _shared_out(tally, self.expected[first:last])
        return sums

    def _count_pairs(self, shares: Floats, table: Floats) -> None:
        """Weights of the rows that have both of two levels, for all pairs of levels."""
        weights, columns = np.ascontiguousarray(shares), list(self._columns())

        def write(f: int, g: int, pairs: Floats) -> None:
            (first, last), (start, stop) = columns[f], columns[g]
            half = _shared_out(pairs, self.expected[first:last])
            block = _shared_out(half.T, self.expected[start:stop])
            table[start:stop, first:last], table[first:last, start:stop] = block, block.T

        for one, two in combinations_with_replacement(self._cells, 2):
            if one is two:
                sums = np.zeros((one.n_cells, 1))
                sum_by_level(one.codes, weights[:, None], sums)
                cube = sums.reshape(one.sizes)
                for i, f in enumerate(one.factors):
                    for k, g in enumerate(one.factors[:i]):
                        write(f, g, cube.sum(axis=tuple({*range(cube.ndim)} - {i, k})).T)
                    mine = cube.sum(axis=tuple({*range(cube.ndim)} - {i}))
                    block = table[slice(*columns[f]), slice(*columns[f])]
                    block[:] = 0.0
                    block[np.diag_indices(mine.size - 1)] = mine[:-1]
                    if mine[-1]:
                        expected = self.expected[slice(*columns[f])]
                        block += mine[-1] * np.outer(expected, expected)
                continue
            pairs = np.zeros((one.n_cells, two.n_cells))
            _sum_pairs(one.codes, two.codes, weights, pairs)
            if len(two.factors) > 1:
                pairs = pairs @ two.members
            if len(one.factors) > 1:
                pairs = one.members.T @ pairs
            ends = [np.cumsum([0, *cells.sizes]).tolist() for cells in (one, two)]
            for f, (top, bottom) in zip(one.factors, pairwise(ends[0]), strict=True):
                for g, (left, right) in zip(two.factors, pairwise(ends[1]), strict=True):
                    write(f, g, pairs[top:bottom, left:right])


def as_codes(codes: Codes, n_levels: int) -> Codes:
    """Codes in the smallest type for so many levels, and for none of them."""
    kind = next(kind for kind in CODE_TYPES if n_levels <= np.iinfo(kind).max)
    return np.ascontiguousarray(codes, dtype=kind)


def _shared_out(sums: Floats, expected: Floats) -> Floats:
    """Sums for the levels of a factor, with the last row, of no level, shared out to them."""
    return sums[:-1] + np.outer(expected, sums[-1]) if sums[-1].any() else sums[:-1]


def _sum_pairs(codes: Codes, others: Codes, weights: Floats, table: Floats) -> None:
    """Add weights to the cells of pairs of codes, which need not be of one type."""
    kind = np.promote_types(codes.dtype, others.dtype)
    for first in range(0, weights.size, CHUNK_ROWS):
        rows = slice(first, first + CHUNK_ROWS)
        mine, yours = (part[rows].astype(kind, copy=False) for part in (codes, others))
        sum_by_pair(mine, yours, weights[rows], table)
