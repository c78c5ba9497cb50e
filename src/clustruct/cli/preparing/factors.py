"""Columns that are factors: which ones, of what kind, and which way monotone ones go.

A factor is a column whose levels share weights among themselves. Models of features with one output
take them, as integer codes, from tables in memory.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from clustruct.cli.messages import BadUsage, listed
from clustruct.cli.models import Settings, plain_model
from clustruct.cli.preparing.columns import ORDERED, Column
from clustruct.cli.preparing.targets import Target
from clustruct.cli.reading.tables import pandas
from clustruct.estimators.columns.factors import Factor

MONOTONE = "monotone"  # increasing or decreasing, as the fit finds out
DIRECTIONS = ("increasing", "decreasing")
# Levels of an order that are told apart without a word; an order of more should be cut into bins.
MANY_LEVELS = 500
# Rows that the direction of a monotone factor is found from: more do not change a sign.
MOST_ROWS = 50_000
# A ridge that is small beside the loss and bounds the values of levels with few rows.
SMALL_RIDGE = 1e-3


@dataclass(frozen=True)
class FactorOptions:
    """Options of the command line about factors.

    kinds: kind of factor of columns that are named by an option, "monotone" among them.
    """

    kinds: Mapping[str, str] = field(default_factory=dict)
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # all, in their order
    bins: Mapping[str, int | tuple[float, ...]] = field(default_factory=dict)
    min_weight: float = 0.0
    # An option that only factors can serve, such as "--ordinal age"; categories can do without
    needed_by: str = ""
    # An option that does without factors, such as "--samples", with the reason
    excluded_by: str = ""

    @property
    def asked(self) -> bool:
        """Whether some option speaks of factors."""
        return bool(self.kinds or self.needed_by)

    @property
    def options(self) -> dict[str, str]:
        """The option that makes each column an ordered factor."""
        found = {name: f"--{_option(kind)}" for name, kind in self.kinds.items()}
        cut = {name: "--bins" for name in self.bins if found[name] == "--ordinal"}
        return {name: option for name, option in {**found, **cut}.items() if option != "--nominal"}

    @property
    def looks(self) -> dict[str, str]:
        """What columns are to be recognised as: values of an order, or levels as they are."""
        ordered = [name for name, kind in self.kinds.items() if kind != "nominal"]
        return {name: "category" if name in self.levels else ORDERED for name in ordered}

    def factor(self, name: str) -> Factor:
        """What is asked for of a column; monotone ones are ordinal until the fit."""
        kind = self.kinds.get(name, "nominal")
        return Factor(
            "ordinal" if kind == MONOTONE else kind,
            bins=self.bins.get(name),
            levels=self.levels.get(name),
            min_weight=self.min_weight,
        )


def factor_options(
    named: Mapping[str, Sequence[str]], *, min_weight: float | None, price: bool, excluded_by: str
) -> FactorOptions:
    """What the options say; `named` holds what --category, --ordinal, ... --bins name."""
    kinds = dict.fromkeys(named["category"], "nominal")
    levels: dict[str, tuple[str, ...]] = {}
    for option in ("ordinal", "cyclic"):
        for text in named[option]:
            name, given = _parts(text)
            _claim(kinds, name, option, option)
            if given:
                levels[name] = tuple(level.strip() for level in given.split(","))
    for text in named["monotone"]:
        name, given = _parts(text)
        if given and given not in DIRECTIONS:
            raise BadUsage(
                f"--monotone {text!r}: {given!r} is no direction. Give {name}=increasing, "
                f"{name}=decreasing, or {name} alone to have it found."
            )
        _claim(kinds, name, given or MONOTONE, MONOTONE)
    bins = dict(map(_bins, named["bins"]))
    for name in bins:
        before = kinds.get(name, "nominal")
        _claim(kinds, name, "ordinal" if before == "nominal" else before, "bins")
    for name in levels.keys() & bins.keys():
        raise BadUsage(f"--bins {name} and levels of {name} cannot both be meant. Give one.")
    needed = [f"--{option} {named[option][0]}" for option in named if named[option]]
    needed = [text for text in needed if not text.startswith("--category")]
    needed += [] if min_weight is None else [f"--min-weight {min_weight:g}"]
    needed += ["--price"] if price else []
    return FactorOptions(
        kinds, levels, bins, min_weight or 0.0, next(iter(needed), ""), excluded_by
    )


def _parts(text: str) -> tuple[str, str]:
    """A column, and what is said of it after a sign of equality."""
    name, equals, given = text.rpartition("=")
    return (name, given) if equals and name else (text, "")


def _bins(text: str) -> tuple[str, int | tuple[float, ...]]:
    """A column and its number of bins, or the edges of these."""
    name, given = _parts(text)
    try:
        numbers = [float(part) for part in given.split(",")]
    except ValueError:
        numbers = []
    whole = len(numbers) == 1 and numbers[0] >= 1 and numbers[0].is_integer()
    ascend = len(numbers) > 1 and np.isfinite(numbers).all() and bool((np.diff(numbers) > 0).all())
    if not (whole or ascend):
        raise BadUsage(
            f"--bins {text!r} cuts no column. Give COL=10 for ten bins of about equal weight, or "
            "COL=25,40,65 for ascending edges."
        )
    return name, int(numbers[0]) if whole else tuple(numbers)


def _claim(kinds: dict[str, str], name: str, kind: str, option: str) -> None:
    """Note the kind of a factor; of ordinal and monotone the latter says more."""
    before = kinds.setdefault(name, kind)
    if before == "ordinal" and kind in (MONOTONE, *DIRECTIONS):
        kinds[name] = kind
    elif before != kind:
        named = "category" if before == "nominal" else _option(before)
        raise BadUsage(
            f"--{named} {name} and --{option} {name} cannot both be meant: any levels of a "
            "category are fused, of the others neighbours in one order. Name it once."
        )


def _option(kind: str) -> str:
    return MONOTONE if kind in DIRECTIONS else kind


# ---- Which columns are factors


def with_factors(
    columns: Sequence[Column], frame: Any, options: FactorOptions, target: Target, source: str
) -> tuple[list[Column], str]:
    """The columns, and a remark on what --category would do, where no option speaks of factors.

    If options ask for it, categories and columns that are named are factors. Raises where an option
    needs factors and another option, the table or the target forbids them.
    """
    columns = list(columns)
    if obstacle := _obstacle(columns, frame, options, target, source):
        if options.needed_by:
            raise BadUsage(f"{options.needed_by} takes columns as factors. {obstacle}")
        return columns, ""
    if not options.asked:
        names = [c.name for c in columns if c.kind == "category" and c.n_distinct > 2]
        fuses = "fuse their levels" if len(names) > 1 else "fuses its levels"
        told = f"--category {' '.join(names[:3])} {fuses} among themselves."
        return columns, told if names else ""
    found = [
        _as_factor(c, frame, options, source)
        if c.used and (c.kind == "category" or c.name in options.kinds)
        else c
        for c in columns
    ]
    named = not options.kinds.keys().isdisjoint(c.name for c in columns)
    if options.needed_by and not named and not any(c.factor for c in found):
        raise BadUsage(
            f"{options.needed_by} goes with factors, and no column of {source} is one. Name some "
            "by --category, --ordinal, --monotone, --cyclic or --bins, or leave it out."
        )
    return found, ""


def _obstacle(
    columns: Sequence[Column], frame: Any, options: FactorOptions, target: Target, source: str
) -> str:
    """Why there can be no factors, and what to do; empty if there can."""
    if options.excluded_by:
        return f"{options.excluded_by} Leave one of the two out."
    if not isinstance(frame, pandas().DataFrame):
        return (
            f"They are read into memory, and {source} is read out of core. Give --out-of-core no, "
            "or leave the option out."
        )
    if texts := [c.name for c in columns if c.kind == "text"]:
        return (
            f"The column {texts[0]!r} is text, whose words are no levels. Leave it out (--drop "
            f"{texts[0]!r}), or take it for a category (--category {texts[0]!r})."
        )
    if target.is_classes and (count := np.unique(target.values).size) > 2:
        return (
            f"They need one output, and the target {target.name!r} has {count} classes. Leave the "
            "option out, or give --regression if they are numbers."
        )
    return ""


def _as_factor(column: Column, frame: Any, options: FactorOptions, source: str) -> Column:
    """A column as a factor, with a remark on what the user should know of its levels."""
    name, factor = column.name, options.factor(column.name)
    where = f"{source}, column {name!r}"
    if factor.bins is not None and column.kind != "number":
        raise ValueError(
            f"{where}: --bins cuts numbers, and it is a {column.kind}, such as "
            f"{column.example!r:.40}. Name it in --ordinal or --category instead."
        )
    dtype = frame[name].dtype
    if factor.kind != "nominal" and factor.levels is None and getattr(dtype, "ordered", False):
        factor = replace(factor, levels=tuple(map(str, dtype.categories)))
    values = {} if factor.levels is None else frame[name].dropna().map(str)
    if unknown := sorted(set(values) - set(factor.levels or ())):
        raise ValueError(
            f"{where}: {listed(unknown, most=3)} is not among its levels as given, "
            f"{listed(factor.levels or (), most=5)}. Name all of them, in their order."
        )
    direction = options.kinds.get(name, "nominal")
    column = replace(column, factor=factor, finds_direction=direction == MONOTONE)
    return replace(column, remark=_remark(column, frame, direction) or column.remark)


def _remark(column: Column, frame: Any, kind: str) -> str:
    """What the levels leave open."""
    factor = column.factor
    assert factor is not None
    if factor.kind == "nominal" or factor.bins is not None:
        return ""
    if column.kind == "category" and factor.levels is None and column.n_distinct > 2:
        levels = sorted(frame[column.name].dropna().map(str).unique())
        option = "cyclic" if kind == "cyclic" else "ordinal"
        return (
            f"its levels are text and sorted as such: {listed(levels, most=5)}. "
            f"--{option} {column.name}=LEVEL,LEVEL,... gives another order."
        )
    if column.n_distinct > MANY_LEVELS:
        return (
            f"{column.n_distinct:,} levels in an order; --bins {column.name}=20 cuts it into "
            "twenty."
        )
    return ""


# ---- The direction of monotone factors


class Direction(NamedTuple):
    """Which way a monotone factor goes, and the objectives of the fits that told."""

    kind: str  # "increasing" or "decreasing"
    objective: float
    otherwise: float


def find_directions(
    matrix: Any,
    y: Any,
    routed: Mapping[str, Any],
    factors: Mapping[str, Factor],
    sought: Sequence[str],
    settings: Settings,
    kind: str,
) -> dict[str, Direction]:
    """The direction of each of the factors `sought`: the one with the lower objective.

    Levels have values of their own here, so that the two problems of a factor are convex and differ
    in its direction alone. The other factors take part, without a direction where it is sought.
    """
    if not sought:
        return {}
    if len(y) > MOST_ROWS:
        rows = np.random.default_rng(settings.seed).permutation(len(y))[:MOST_ROWS]
        matrix, y = matrix.iloc[rows], y[rows]
        routed = {name: values[rows] for name, values in routed.items()}
    found = {}
    for name in sought:
        values = []
        for direction in DIRECTIONS:
            asked = {**factors, name: replace(factors[name], kind=direction)}
            asked = {key: replace(factor, min_weight=0.0) for key, factor in asked.items()}
            model = plain_model(settings, kind, asked, matrix.size, SMALL_RIDGE)
            values.append(float(model.fit(matrix, y, **routed).objective_))
        best = int(values[1] < values[0])
        found[name] = Direction(DIRECTIONS[best], values[best], values[1 - best])
    return found
