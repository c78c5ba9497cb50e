"""Factors: columns of categories whose levels share weights, learnt in a fit and kept with it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from numbers import Integral
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from clustruct._docs import documented_fields
from clustruct._typing import Floats, Indices
from clustruct.design import FactorDesign, as_codes
from clustruct.estimators.columns.frames import (
    MISSING,
    Column,
    columns_of,
    distinct_values,
    is_frame,
    numbers_of,
    types_of,
)
from clustruct.results.relativities import shown_level

Codes = NDArray[np.integer]

KINDS = ("nominal", "ordinal", "increasing", "decreasing", "cyclic")
FROM_DTYPE = "from_dtype"
# Columns of these types are factors without being asked for; booleans if there are others.
FACTOR_TYPES = {"category", "ordered category", "text"}
# Quantiles of bins are found to this part of the total weight, so that sums may be rounded.
ROUNDING = 1e-12


@documented_fields
@dataclass(frozen=True)
class Factor:
    """How the levels of a column may share weights.

    Nominal levels fuse as they like; of the other kinds only neighbours fuse, in the order of the
    levels: ordered categories and `levels` as given, text and numbers sorted.

    See Also
    --------
    FeatureClusterRegressor : Takes a mapping from columns to factors.

    Examples
    --------
    >>> import clustruct as cs
    >>> cs.Factor("increasing", bins=(25, 40, 65)).bins
    (25, 40, 65)
    """

    kind: Annotated[
        str,
        'One of "nominal", "ordinal", "increasing" and "decreasing" (ordinal with weights that do '
        'not fall or rise), "cyclic" (the last level is next to the first).',
    ] = "nominal"
    bins: Annotated[
        int | Sequence[float] | None,
        "Cuts a column of numbers into bins, which are levels of an ordinal factor unless the kind "
        "is another ordered one: so many of about equal weight, or at these edges. A bin holds its "
        "lower edge; the first and the last have no end. Bins without rows join the one below.",
    ] = None
    levels: Annotated[Sequence[Any] | None, "All levels, in their order."] = None
    min_weight: Annotated[float, "Least weight (sum of `sample_weight`) of a group."] = 0.0

    def __post_init__(self) -> None:
        """Complain of values that make no factor."""
        if self.kind not in KINDS:
            raise ValueError(f"kind={self.kind!r} is no kind of factor. Choose from {KINDS}.")
        if self.bins is not None and self.levels is not None:
            raise ValueError("bins and levels cannot be combined. Leave one of them None.")
        if isinstance(self.bins, int | np.integer):
            if self.bins < 1:
                raise ValueError(f"bins={self.bins!r} must be at least 1.")
        elif self.bins is not None:
            edges = np.asarray(self.bins, dtype=np.float64)
            if edges.ndim != 1 or not np.isfinite(edges).all() or (np.diff(edges) <= 0).any():
                raise ValueError(
                    f"bins={self.bins!r:.80} must be a number of bins, or finite ascending edges."
                )
        if self.levels is not None and len(set(self.levels)) < len(self.levels):
            raise ValueError(f"levels={self.levels!r:.80} holds a level twice. Give each once.")
        if not 0.0 <= self.min_weight < np.inf:
            raise ValueError(
                f"min_weight={self.min_weight!r} must be a finite number of at least 0."
            )

    @property
    def learnt_kind(self) -> str:
        """The kind of the levels: bins are ordered whatever else."""
        return "ordinal" if self.kind == "nominal" and self.bins is not None else self.kind


@dataclass(frozen=True, eq=False)
class FactorLevels:
    """The levels of a column, as a fit has seen them.

    levels: in their order; None, the last one, if values were missing. Bins are named in words.
    shares (n_levels,): share of each level in the weight of the samples.
    place: number of the column.
    edges: where bins begin, but for the first; None if there are no bins.
    exposure (n_levels,): exposure of each level in training, see `Relativity`; None with several
        outputs and in models of older files.
    observed (n_levels,): weighted sum of the training targets of each level, likewise.
    """

    name: str
    place: int
    kind: str
    levels: tuple[Any, ...]
    shares: Floats
    edges: Floats | None = None
    min_weight: float = 0.0
    exposure: Floats | None = None
    observed: Floats | None = None

    @property
    def names(self) -> list[str]:
        """Names of the levels, such as "postcode: 1000"."""
        return [f"{self.name}: {shown_level(level)}" for level in self.levels]

    def codes(self, column: Column) -> Codes:
        """The level of each row of new data, the number of levels where it is unknown."""
        unknown, known = len(self.levels), {level: q for q, level in enumerate(self.levels)}
        missing = known.pop(None, unknown)
        if self.edges is not None:
            numbers = numbers_of(column, allow_missing=True)
            bins = self.edges.searchsorted(numbers, side="right")
            bins[bins >= len(known)] = unknown  # where all values were missing, no bin is known
            return as_codes(np.where(np.isnan(numbers), missing, bins), unknown)
        found, values = distinct_values(column)
        self._require_same_type(known, values)
        # The code of missing values, -1, finds the last entry.
        places = np.array([*(known.get(value, unknown) for value in values), missing])
        return as_codes(places, unknown)[found]

    def _require_same_type(self, known: Iterable[Any], values: Sequence[Any]) -> None:
        """Complain of numbers where levels are text, or the reverse: none of them is known."""
        mine, theirs = ([isinstance(x, str) for x in each] for each in (known, values))
        if mine and theirs and {*mine}.isdisjoint(theirs):
            kinds = ("text", "other values") if all(mine) else ("other values than text", "text")
            raise ValueError(
                f"Column {self.name!r} of X was {kinds[0]} in fit, such as "
                f"{next(iter(known))!r:.40}, and is {kinds[1]} now, such as {values[0]!r:.40}. "
                "Convert the column to what it was."
            )


@dataclass(frozen=True, eq=False)
class FactorColumns:
    """Which columns of a frame are factors, with their levels, and which are numbers.

    names: of all columns.
    factors: in the order of their columns.
    numeric: numbers of the numeric columns.
    total: weight of all samples together.
    """

    names: tuple[str, ...]
    factors: tuple[FactorLevels, ...]
    numeric: tuple[int, ...]
    total: float = 1.0

    @property
    def n_weights(self) -> int:
        """Number of levels and numeric columns."""
        return sum(len(each.levels) for each in self.factors) + len(self.numeric)

    @property
    def factor_names(self) -> list[str]:
        """Names of the factors."""
        return [each.name for each in self.factors]

    @property
    def weight_names(self) -> list[str]:
        """Names of levels, such as "postcode: 1000", then of numeric columns."""
        levels = [name for each in self.factors for name in each.names]
        return levels + [self.names[place] for place in self.numeric]

    @property
    def slices(self) -> list[slice]:
        """Where the weights of the levels of each factor are, and of the numeric columns."""
        sizes = [*(len(each.levels) for each in self.factors), len(self.numeric)]
        ends = np.cumsum([0, *sizes]).tolist()
        return [slice(*bounds) for bounds in pairwise(ends)]

    @property
    def blocks(self) -> Indices:
        """Number of the factor that each weight belongs to, -1 for numeric columns."""
        sizes = [*(len(each.levels) for each in self.factors), len(self.numeric)]
        return np.repeat([*range(len(self.factors)), -1], sizes)

    @property
    def members(self) -> list[Indices]:
        """Weights that each factor may group: of all levels, without missing ones in an order.

        An ordered factor of which all values are missing has no order: its level is a group.
        """
        blocks = self.blocks
        found = [np.flatnonzero(blocks == f) for f in range(len(self.factors))]
        return [
            rows
            if each.kind == "nominal" or each.levels == (None,)
            else rows[[level is not None for level in each.levels]]
            for each, rows in zip(self.factors, found, strict=True)
        ]

    @property
    def grouped(self) -> Indices:
        """Number of the factor that may group each weight, -1 for weights left alone."""
        found = np.full(self.n_weights, -1, dtype=np.intp)
        for number, rows in enumerate(self.members):
            found[rows] = number
        return found

    @property
    def exposure(self) -> Floats:
        """Weight of each level as a part of what its groups need; one where nothing is needed."""
        parts = [
            self.total * each.shares / each.min_weight
            if each.min_weight > 0.0
            else np.ones(len(each.levels))
            for each in self.factors
        ]
        return np.concatenate([*parts, np.ones(len(self.numeric))])

    def encode(self, X: Any) -> FactorDesign:
        """The design of new data, in which rows of unknown levels have the mean of all levels."""
        columns = columns_of(X, self.names)
        codes = [each.codes(columns[each.place]) for each in self.factors]
        shares = np.concatenate([each.shares for each in self.factors])
        sizes = [len(each.levels) for each in self.factors]
        return FactorDesign(codes, sizes, self._numbers(columns), shares)

    def unknown(self, X: Any) -> dict[str, NDArray[np.bool_]]:
        """For each factor, the rows of new data whose level is unknown."""
        columns = columns_of(X, self.names)
        return {f.name: f.codes(columns[f.place]) == len(f.levels) for f in self.factors}

    def _numbers(self, columns: Sequence[Column]) -> Floats:
        """The numeric columns, side by side."""
        numbers = np.empty((len(columns[0].values), len(self.numeric)))
        for j, place in enumerate(self.numeric):
            numbers[:, j] = numbers_of(columns[place])
        return numbers

    def settled(
        self,
        design: FactorDesign,
        weights: Floats | None,
        total: float,
        asked: Mapping[str, Any] | None,
    ) -> tuple["FactorColumns", FactorDesign]:
        """The levels that weighted samples have, with their shares, and the design of these.

        Levels without weight are left out, and numbers are put into bins.
        """
        shares = np.ones(design.shape[0]) if weights is None else weights
        totals = design.adjoint((shares / shares.sum())[:, None])[:, 0]
        kept = [
            _settled(each, codes, totals[first:], specification(asked, each.name).bins)
            for each, codes, first in zip(
                self.factors, design.codes, design.offsets[:-1], strict=True
            )
        ]
        learnt = replace(self, factors=tuple(each for each, _ in kept), total=total)
        codes = [codes for _, codes in kept]
        sizes = [len(each.levels) for each in learnt.factors]
        return learnt, FactorDesign(codes, sizes, design.numeric)

    def tallied(self, design: FactorDesign, exposure: Floats, observed: Floats) -> "FactorColumns":
        """The factors with sums over the training rows for each level."""
        sums = design.tallies(np.column_stack([exposure, observed]))
        factors = (
            replace(each, exposure=mine[:-1, 0], observed=mine[:-1, 1])
            for each, mine in zip(self.factors, sums, strict=True)
        )
        return replace(self, factors=tuple(factors))


# ---- Which columns are factors


def factors_wanted(X: Any, categorical_features: Any, asked: Mapping[str, Any] | None) -> bool:
    """Whether some column of the samples is a factor, by its type or because it is named."""
    if asked:
        return True
    if categorical_features is None:
        return False
    if isinstance(categorical_features, str):  # the columns of an array have no types
        return is_frame(X) and not FACTOR_TYPES.isdisjoint(types_of(X))
    entries = np.asarray(categorical_features)
    return bool(entries.any()) if entries.dtype.kind == "b" else entries.size > 0


def learn_factors(
    X: Any, names: Sequence[str], categorical_features: Any, asked: Mapping[str, Any] | None
) -> tuple[FactorColumns, FactorDesign]:
    """The factors among the columns of a frame or array, with all their levels, and the design."""
    columns = columns_of(X, names)
    places = _chosen(columns, categorical_features, asked)
    found = [_learn(columns[j], j, asked) for j in places]
    numeric = tuple(j for j in range(len(columns)) if j not in places)
    learnt = FactorColumns(tuple(names), tuple(each for each, _ in found), numeric)
    sizes = [len(each.levels) for each in learnt.factors]
    design = FactorDesign([codes for _, codes in found], sizes, learnt._numbers(columns))
    return learnt, design


def specification(asked: Mapping[str, Any] | None, name: str, default: str = "nominal") -> Factor:
    """What is asked for of a column, or else a factor of the default kind; a string is a kind."""
    given = (asked or {}).get(name, default)
    if isinstance(given, Factor):
        return given
    if not isinstance(given, str):
        raise ValueError(
            f"factors[{name!r}] is {given!r:.80}. Give one of {KINDS}, or a clustruct.Factor."
        )
    return Factor(given)


def _chosen(
    columns: Sequence[Column], categorical_features: Any, asked: Mapping[str, Any] | None
) -> list[int]:
    """Numbers of the columns that are factors."""
    names = [column.name for column in columns]
    if unknown := [name for name in asked or {} if name not in names]:
        raise ValueError(
            f"factors has {unknown[0]!r}, which is no column of X. Its columns are {names!r:.200}."
        )
    places = {names.index(name) for name in asked or {}}
    if categorical_features is None:
        return sorted(places)
    if not isinstance(categorical_features, str):
        return sorted(places | set(_places(names, categorical_features)))
    places |= {j for j, column in enumerate(columns) if column.type in FACTOR_TYPES}
    booleans = {j for j, column in enumerate(columns) if column.type == "boolean"}
    return sorted(places | booleans if places else places)


def _places(names: list[str], given: Any) -> list[int]:
    """Numbers of columns that are given by name or number, or by a mask."""
    entries = np.asarray(given)
    if entries.dtype.kind == "b":
        if entries.shape != (len(names),):
            raise ValueError(
                f"categorical_features is a mask of shape {entries.shape}, but X has {len(names)} "
                "columns. Give one entry for each."
            )
        return np.flatnonzero(entries).tolist()
    places = []
    for entry in np.asarray(given, dtype=object).reshape(-1).tolist():
        whole = isinstance(entry, Integral) and 0 <= int(entry) < len(names)
        if not whole and entry not in names:
            raise ValueError(
                f"categorical_features holds {entry!r}, which is no column of X. Give names or "
                f"numbers of columns; these are {names!r:.200}."
            )
        places.append(int(entry) if whole else names.index(entry))
    return places


# ---- Levels


def _learn(
    column: Column, place: int, asked: Mapping[str, Any] | None
) -> tuple[FactorLevels, Codes]:
    """All levels of a column, in their order, and the level of each row."""
    ordered = column.type == "ordered category"
    given = specification(asked, column.name, "ordinal" if ordered else "nominal")
    if given.bins is not None:
        numbers_of(column, allow_missing=True)
    codes, values = distinct_values(column)
    order = _order(column, values, given.levels)
    levels = [values[q] for q in order]
    ranks = np.empty(len(values) + 1, dtype=np.intp)
    ranks[order] = np.arange(len(order))
    ranks[MISSING] = len(levels)  # the last entry, which the code of missing values finds
    if (codes == MISSING).any():
        levels.append(None)
    learnt = FactorLevels(
        column.name,
        place,
        given.learnt_kind,
        tuple(levels),
        np.empty(0),
        min_weight=float(given.min_weight),
    )
    return learnt, as_codes(ranks, len(levels))[codes]


def _order(column: Column, values: Sequence[Any], given: Sequence[Any] | None) -> Indices:
    """Numbers of the values in the order of the levels."""
    if given is not None:
        ranks = {level: q for q, level in enumerate(given)}
        if unknown := [value for value in values if value not in ranks]:
            raise ValueError(
                f"Column {column.name!r} of X holds {unknown[0]!r}, which is not among the levels "
                f"of its factor, {list(given)!r:.200}. Add it, or replace it in X."
            )
        keys: list[Any] = [ranks[value] for value in values]
    elif column.type.endswith("category"):
        return np.arange(len(values))
    else:
        keys = list(values)
    try:
        order = sorted(range(len(values)), key=keys.__getitem__)
    except TypeError as error:
        raise ValueError(
            f"Column {column.name!r} of X holds values of several types, which cannot be sorted. "
            "Convert them to text, or give its factor the levels in their order."
        ) from error
    return np.array(order, dtype=np.intp)


def _settled(
    factor: FactorLevels, codes: Codes, totals: Floats, bins: int | Sequence[float] | None
) -> tuple[FactorLevels, Codes]:
    """The levels that rows have, or bins of them, with their shares, and the new codes."""
    n_levels = len(factor.levels)
    seen, weights = np.bincount(codes, minlength=n_levels) > 0, totals[:n_levels]
    if bins is None:
        places, edges = np.cumsum(seen) - 1, None
        levels = tuple(factor.levels[q] for q in np.flatnonzero(seen))
    else:
        n_values = n_levels - (None in factor.levels)  # a missing value is the last level
        values = np.array(factor.levels[:n_values], dtype=np.float64)
        edges = _edges(values[seen[:n_values]], weights[:n_values][seen[:n_values]], bins)
        names = _bin_names(edges) if seen[:n_values].any() else ()
        places = np.full(n_levels, len(names))
        places[:n_values] = edges.searchsorted(values, side="right")
        levels = (*names, *(factor.levels[q] for q in range(n_values, n_levels) if seen[q]))
    shares: Floats = np.bincount(places[seen], weights[seen], len(levels)).astype(np.float64)
    if len(levels) < n_levels:
        codes = as_codes(places, len(levels)).take(codes)
    return replace(factor, levels=levels, shares=shares, edges=edges), codes


def _edges(values: Floats, weights: Floats, bins: int | Sequence[float]) -> Floats:
    """Where bins of ascending values begin, so that none of them is empty."""
    if isinstance(bins, int | np.integer):
        totals = weights.cumsum() / weights.sum()
        quantiles = np.arange(1, int(bins)) / int(bins)
        # A bin begins at the first value after those that make up the quantile.
        after = totals.searchsorted(quantiles - ROUNDING) + 1
        return values[np.unique(after[after < values.size])]
    edges = np.asarray(bins, dtype=np.float64)
    found = np.unique(edges.searchsorted(values, side="right"))
    return edges[found[1:] - 1]


def _bin_names(edges: Floats) -> tuple[str, ...]:
    """Bins in words, such as "< 25", "25 to 40" and ">= 40"."""
    shown = [shown_level(edge) for edge in edges]
    if not shown:
        return ("all",)
    inner = [f"{first} to {last}" for first, last in pairwise(shown)]
    return (f"< {shown[0]}", *inner, f">= {shown[-1]}")
