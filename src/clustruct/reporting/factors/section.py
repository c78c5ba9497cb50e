"""The section on rating factors: a picture, held-out means and a table for each of them."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from clustruct._typing import Floats
from clustruct.figures.factors import FactorLevelsView, LevelSeries, factor_figure
from clustruct.figures.numbers import cut, shown
from clustruct.inspection import final_estimator, outputs_of, prepared
from clustruct.reporting.comparing.comparison import Comparison
from clustruct.reporting.comparing.samples import Data
from clustruct.reporting.factors.levels import (
    DASH,
    Band,
    FactorRows,
    factor_rows,
    judged_factors,
    level_name,
)
from clustruct.reporting.pictures import Picture
from clustruct.reporting.tables import MOST_MEMBERS, Members, short_name, table_number
from clustruct.reporting.wording import name_list
from clustruct.results import Relativities
from clustruct.results.relativities import PER_UNIT
from clustruct.results.tables import plural

MOST_TABLED = 60  # levels with a row each in the table of their factor; of more, groups have one
LONG = 12  # rows of a table that is folded away
MOST_NAMES = 12  # levels that a row of a group lists
STANDARD_ERRORS = 2.0
LONGEST_NAME = 20  # beside a picture


@dataclass(eq=False)
class FactorPart:
    """A factor on the page."""

    name: str
    summary: str
    pictures: list[Picture]
    columns: list[str]
    rows: list[list[str]]

    @property
    def is_long(self) -> bool:
        """Whether its table is folded away."""
        return len(self.rows) > LONG


@dataclass(eq=False)
class FactorSection:
    """What the page says of rating factors."""

    notes: list[str]
    parts: list[FactorPart] = field(default_factory=list)
    numbers: list[list[str]] = field(default_factory=list)  # column, per unit, how much
    number_columns: list[str] = field(default_factory=list)


def describe_factors(
    model: Any, data: Data, found: Comparison | None
) -> tuple[FactorSection, Members]:
    """The section on the factors of a model with one output, and the table of all levels."""
    estimator = final_estimator(model)
    table = estimator.relativities()
    if any(row.exposure is None for row in table):  # a model of an older file does not know
        given = {"offset": data.offset, "sample_weight": data.weights}
        table = estimator.relativities(prepared(model, data.X), data.y, **given)
    factors, judged = factor_rows(model, table), judged_factors(found)
    words = _Words(model, table, data)
    section = FactorSection(words.notes(factors, found if judged else None))
    for each in sorted(factors, key=_spread, reverse=True):
        if len(each.groups) > 1:
            section.parts.append(_part(each, judged.get(each.name), words))
    section.number_columns = ["column", words.relativity, "effect"]
    section.numbers = [
        [short_name(row.factor), f"{shown(row.relativity, 4)} {PER_UNIT}", shown(row.effect, 4)]
        for row in table
        if row.kind == "numeric"
    ]
    return section, _members(table, words)


def _spread(factor: FactorRows) -> float:
    """Standard deviation of the effects over the exposure: how much the factor matters."""
    effects = np.array([row.effect for row in factor.levels])
    weights = np.array([row.exposure or 0.0 for row in factor.levels])
    weights = weights if weights.sum() > 0.0 else np.ones_like(weights)
    middle = np.average(effects, weights=weights)
    return float(np.sqrt(np.average(np.square(effects - middle), weights=weights)))


class _Words:
    """What relativities, exposure and targets are called."""

    def __init__(self, model: Any, table: Relativities, data: Data) -> None:
        self._table = table
        self.relativity = "relativity" if table.multiplies else "difference"
        rates = data.offset is not None and table.multiplies and table.scale == "prediction"
        outputs = outputs_of(model)
        self.mean = "mean of the target"
        if rates:
            self.mean = "target for each unit of exposure"
        elif outputs.names[0]:
            self.mean = f"share of {cut(outputs.names[0], 30)}"
        self.exposure = "exposure" if rates or data.weights is not None else "rows"
        self.observed = (
            "sum of targets" if not outputs.names[0] else f"rows with {outputs.names[0]}"
        )
        self._what = "odds" if table.scale == "odds" else table.scale

    @property
    def one(self) -> float:
        """The relativity of reference levels."""
        return 1.0 if self._table.multiplies else 0.0

    def axis(self, factor: FactorRows) -> str:
        """The name of an axis of relativities."""
        level = self._table.references.get(factor.name)
        return f"{self.relativity}, reference {cut(level_name(level), 24)}"

    def notes(self, factors: list[FactorRows], found: Comparison | None) -> list[str]:
        """How to read the section, and what is not in it."""
        verb = "multiplies" if self._table.multiplies else "is added to"
        the_base = f"the {self._what} {'are' if self._what == 'odds' else 'is'}"
        texts = [
            f"A {self.relativity} {verb} the {self._what} of the level with the most "
            f"{self.exposure}, the reference of its factor. At all reference levels"
            f"{self._zero()} {the_base} {shown(self._table.base, 4)}. "
            "Factors that matter most come first."
        ]
        out = [each.name for each in factors if len(each.groups) < 2]
        if out:
            names = name_list([cut(name, 40) for name in out], most=30)
            texts.append(f"Left out, since all of their levels have the same effect: {names}.")
        if found is not None:
            copy = ""
            if found.refitted:
                copy = ", fitted and grouped by the copy of the model that has not seen them"
            texts.append(
                f"Observed and fitted means are those of held-out rows{copy}; bars are two "
                "standard errors."
            )
        return texts

    def _zero(self) -> str:
        """What else is at zero there."""
        numeric = any(row.kind == "numeric" for row in self._table)
        return ", and with all numbers at 0," if numeric else ""


# ---- A factor.


def _part(factor: FactorRows, judged: FactorRows | None, words: _Words) -> FactorPart:
    bands = factor.bands()
    name = cut(factor.name, 60)
    kind = "" if factor.kind == "nominal" else f"{factor.kind}, "
    count = len(factor.levels)
    summary = f"{kind}{plural(count, 'level')} in {plural(len(factor.groups), 'group')}"
    values = np.array([band.relativity for band in bands])
    shares = np.array([band.exposure for band in bands]) / (factor.exposure or 1.0)
    view = FactorLevelsView(
        f"{name}: {words.relativity} of each level",
        shares=shares,
        series=(LevelSeries(words.relativity, values),),
        value_name=words.axis(factor),
        reference=words.one,
        **_frame(factor, bands),
    )
    remark = "" if len(bands) == count else _banded(factor, bands)
    pictures = [
        Picture.of(factor_figure(view), remark, f"{words.relativity.capitalize()} of levels")
    ]
    held = None if judged is None else _held_out_view(judged, words)
    if judged is not None and held is not None:
        mine = judged.held_out_bands()
        remark = "" if len(mine) == len(judged.levels) else _pooled(judged)
        pictures.append(Picture.of(factor_figure(held), remark, "Observed and fitted, held out"))
    return FactorPart(name, summary, pictures, *_table(factor, words))


def _frame(factor: FactorRows, bands: list[Band]) -> dict[str, Any]:
    """What views of a factor have in common."""
    return {
        "names": [cut(band.name, LONGEST_NAME) for band in bands],
        "ordered": factor.ordered,
        "in_order": np.array([band.levels[0].level is not None for band in bands]),
    }


def _pooled(factor: FactorRows) -> str:
    """Why there are fewer means than levels."""
    if factor.ordered:
        return "Neighbouring levels with few rows are taken together."
    return "Groups are those that were found without these rows."


def _banded(factor: FactorRows, bands: list[Band]) -> str:
    """How levels are drawn that are too many to be drawn one by one."""
    shared = any(len({row.group for row in band.levels}) > 1 for band in bands)
    what = "groups of similar effect" if shared else "a group"
    every = "step" if factor.ordered else "row"
    return f"{len(factor.levels):,} levels: each {every} is {what}, with its number of levels."


def _held_out_view(factor: FactorRows, words: _Words) -> FactorLevelsView | None:
    """Observed and fitted means of held-out rows."""
    held, bands = factor.held_out, factor.held_out_bands()
    if held is None or not held.exposure.sum() > 0.0:
        return None

    def sums(values: Floats) -> Floats:
        return np.array([values[band.places].sum() for band in bands])

    exposure = sums(held.exposure)
    with np.errstate(divide="ignore", invalid="ignore"):
        observed, fitted = sums(held.observed) / exposure, sums(held.fitted) / exposure
        errors = STANDARD_ERRORS * np.sqrt(sums(held.variance)) / exposure
    series = (
        LevelSeries("fitted", fitted),
        LevelSeries("observed", observed, line=False, tone="chosen", errors=errors),
    )
    return FactorLevelsView(
        f"{cut(factor.name, 60)}: observed and fitted means of held-out rows",
        shares=exposure / exposure.sum(),
        series=series,
        value_name=words.mean,
        **_frame(factor, bands),
    )


def _table(factor: FactorRows, words: _Words) -> tuple[list[str], list[list[str]]]:
    """A row for each level; of many levels, a row for each group with some of their names."""
    columns = ["level", "group", words.exposure, words.observed, words.relativity]
    if len(factor.levels) <= MOST_TABLED:
        parts = [[row] for row in factor.levels]
    else:
        columns[:2] = ["levels", "group"]
        parts = [[factor.levels[q] for q in places] for places in factor.groups_in_order()]
    rows = []
    for part in parts:
        names = [short_name(level_name(row.level)) for row in part[:MOST_NAMES]]
        more = f" and {len(part) - MOST_NAMES:,} more" if len(part) > MOST_NAMES else ""
        count = f"{len(part):,}: " if len(part) > 1 else ""
        if factor.ordered and len(part) > 1:
            names, more = [f"{names[0]} {DASH} {short_name(level_name(part[-1].level))}"], ""
        sums = (
            shown(float(sum(getattr(row, name) or 0.0 for row in part)), 4)
            for name in ("exposure", "observed")
        )
        group = "" if part[0].group is None else str(part[0].group)
        value = shown(part[0].relativity, 4)
        rows.append([f"{count}{', '.join(names)}{more}", group, *sums, value])
    return columns, rows


def _members(table: Relativities, words: _Words) -> Members:
    """All levels, for a table with a search."""
    columns = ["level", "group", "factor", words.exposure, words.observed, words.relativity]
    columns.append("effect")
    rows = [
        [
            short_name(level_name(row.level)),
            row.group,
            short_name(row.factor),
            *(table_number(v) for v in (row.exposure, row.observed, row.relativity, row.effect)),
        ]
        for row in table[:MOST_MEMBERS]
    ]
    return Members("levels", columns, [False, True, False, *[True] * 4], rows, len(table))
