"""What the factors of a fitted model have to tell: their kinds, groups and relativities."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from clustruct.cli.messages import listed
from clustruct.cli.preparing.factors import Direction
from clustruct.results.relativities import Relativities, Relativity, shown_level
from clustruct.results.tables import plural

Cells = tuple[tuple[str, ...], list[list[str]]]

NOMINAL, NUMERIC = "nominal", "numeric"
SUMS = ("exposure", "observed")
SHOWN_LEVELS, SHOWN_GROUPS = 4, 8  # of a group, and of a factor
LISTED = 1000  # levels or features of a group that are named in JSON


def factor_values(estimator: Any, directions: Mapping[str, Direction]) -> list[dict[str, Any]]:
    """The factors of a fitted model as plain values; none if it has no factors."""
    if getattr(estimator, "factors_", None) is None:
        return []
    values = grouped(estimator.relativities())
    for factor in values:
        if (way := directions.get(factor["factor"])) is not None:
            factor["direction"] = way._asdict()
    return values


def grouped(table: Relativities) -> list[dict[str, Any]]:
    """The factors of a tariff, each with its groups of levels in the order of their effects."""
    values = []
    levels = (row for row in table if row.kind != NUMERIC)
    for name, mine in groupby(levels, key=lambda row: row.factor):
        rows = list(mine)
        places: dict[int | None, list[int]] = {}
        for place, row in enumerate(rows):
            places.setdefault(row.group, []).append(place)
        groups = [_group(rows, members, table.multiplies) for members in places.values()]
        groups.sort(key=lambda group: group["effect"])
        kind = rows[0].kind
        values.append({"factor": name, "kind": kind, "levels": len(rows), "groups": groups})
    return values


def _group(rows: Sequence[Relativity], members: list[int], multiplies: bool) -> dict[str, Any]:
    """A group of levels: its effect, and what its levels have in training together."""
    first, names = rows[members[0]], [shown_level(row.level) for row in rows]
    sums = {
        name: None if getattr(first, name) is None else sum(getattr(rows[q], name) for q in members)
        for name in SUMS
    }
    return {
        "group": first.group,
        "effect": first.effect,
        "relativity": first.relativity,
        "multiplies": multiplies,
        **sums,
        "size": len(members),
        "levels": [names[place] for place in members[:LISTED]],
        "shown": _shown(members, names, first.kind),
    }


def _shown(members: Sequence[int], names: Sequence[str], kind: str) -> str:
    """The levels of a group in a line: neighbours in an order as "3 to 7"."""
    if kind == NOMINAL:
        return listed([names[place] for place in members], most=SHOWN_LEVELS)
    runs = [
        [place for _, place in run]
        for _, run in groupby(enumerate(members), lambda pair: pair[1] - pair[0])
    ]
    spans = [
        names[run[0]] if len(run) == 1 else _span(names[run[0]], names[run[-1]], names)
        for run in runs
    ]
    return listed(spans, most=SHOWN_LEVELS)


def _span(first: str, last: str, names: Sequence[str]) -> str:
    """Neighbours in words; bins, of which the first has no beginning, as one bin."""
    if not names[0].startswith("< "):
        return f"{first} to {last}"
    begin = first.partition(" to ")[0]
    end = last.rpartition(" to ")[2]
    if begin.startswith("< "):
        return "all" if end.startswith(">= ") else f"< {end}"
    return f">= {begin}" if end.startswith(">= ") else f"{begin} to {end}"


def factor_table(values: Sequence[dict[str, Any]]) -> Cells:
    """A row for each factor with several groups."""
    multiplies = any(group["multiplies"] for factor in values for group in factor["groups"])
    rows = []
    for factor in values:
        groups = factor["groups"]
        if len(groups) < 2:
            continue
        shown = [f"{_value(group)}: {group['shown']}" for group in groups[:SHOWN_GROUPS]]
        rest = len(groups) - SHOWN_GROUPS
        shown += [f"... {rest} more"] if rest > 0 else []
        rows.append(
            [
                factor["factor"],
                factor["kind"],
                str(factor["levels"]),
                str(len(groups)),
                f"{_value(groups[0])} to {_value(groups[-1])}",
                "; ".join(shown),
            ]
        )
    what = "relativities" if multiplies else "effects"
    return ("factor", "kind", "levels", "groups", what, "of each group"), rows


def tariff_table(values: Sequence[dict[str, Any]]) -> Cells:
    """A row for each group of each factor that has several."""
    rows = [
        [
            "" if place else factor["factor"],
            _value(group),
            *("" if group[name] is None else f"{group[name]:,.6g}" for name in SUMS),
            str(group["size"]),
            group["shown"],
        ]
        for factor in values
        if len(factor["groups"]) > 1
        for place, group in enumerate(factor["groups"])
    ]
    return ("factor", "relativity", *SUMS, "levels", "which"), rows


def _value(group: dict[str, Any]) -> str:
    return f"{group['relativity']:.3g}" if group["multiplies"] else f"{group['relativity']:+.3g}"


def factor_sentences(values: Sequence[dict[str, Any]]) -> list[str]:
    """What stands below the table of factors."""
    told = []
    if out := [factor["factor"] for factor in values if len(factor["groups"]) < 2]:
        told.append(f"Left out, as all levels have the same effect: {listed(out, most=20)}.")
    for factor in values:
        if (way := factor.get("direction")) is not None:
            told.append(
                f"{factor['factor']} was found to be {way['kind']}: objective "
                f"{way['objective']:.6g}, and {way['otherwise']:.6g} the other way."
            )
    return told


def factors_in_words(estimator: Any) -> str:
    """How many factors, levels, groups and numbers a model has."""
    factors = estimator.factors_
    n_levels = sum(len(factor.levels) for factor in factors.factors)
    n_groups = np.unique(np.asarray(estimator.labels_)[factors.blocks >= 0]).size
    text = plural(len(factors.factors), "factor")
    text += f" with {plural(n_levels, 'level')} in {plural(int(n_groups), 'group')}"
    count = len(factors.numeric)
    return text + (f", and {plural(count, 'number')}" if count else "")


def numbers_in_words(estimator: Any) -> str:
    """The weights of numeric columns, on the scale of the fit; empty if there are none."""
    rows = [row for row in estimator.relativities() if row.kind == NUMERIC]
    shown = [f"{row.factor} {row.effect:+.3g}" for row in rows]
    return f"Numbers, scaled, with their weights: {listed(shown, most=20)}." if rows else ""
