"""What the factors of a fitted model have to tell: their kinds, groups and relativities."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from clustruct._typing import Floats
from clustruct.cli.messages import listed
from clustruct.cli.preparing.factors import Direction
from clustruct.losses import loss_of
from clustruct.results.tables import plural

Cells = tuple[tuple[str, ...], list[list[str]]]

NOMINAL = "nominal"
SHOWN_LEVELS, SHOWN_GROUPS = 4, 8  # of a group, and of a factor
LISTED = 1000  # levels of a group that are named in JSON


def factor_values(estimator: Any, directions: Mapping[str, Direction]) -> list[dict[str, Any]]:
    """The factors of a fitted model as plain values; groups in the order of their effects.

    Effects are differences to that of the level with the largest weight.
    """
    if getattr(estimator, "factors_", None) is None:
        return []
    factors, multiplies = estimator.factors_, loss_of(estimator).has_log_link
    coef, labels = np.asarray(estimator.coef_).reshape(-1), np.asarray(estimator.labels_)
    values = []
    for number, factor in enumerate(factors.factors):
        mine = np.flatnonzero(factors.blocks == number)
        effects = coef[mine] - coef[mine[np.argmax(factor.shares)]]
        names = [name.removeprefix(f"{factor.name}: ") for name in factor.names]
        groups = [
            _group(label, labels[mine], effects, factor.shares, names, factor.kind, multiplies)
            for label in _in_order(labels[mine], effects)
        ]
        way = directions.get(factor.name)
        values.append(
            {
                "factor": factor.name,
                "kind": factor.kind,
                "levels": len(names),
                "groups": groups,
                **({} if way is None else {"direction": way._asdict()}),
            }
        )
    return values


def _in_order(labels: Any, effects: Floats) -> list[int]:
    """Groups by their effects; levels without a weight are a group, too."""
    found, first = np.unique(labels, return_index=True)
    return [int(found[place]) for place in np.argsort(effects[first], kind="stable")]


def _group(
    label: int,
    labels: Any,
    effects: Floats,
    shares: Floats,
    names: Sequence[str],
    kind: str,
    multiplies: bool,
) -> dict[str, Any]:
    """A group of levels: its effect, its part of the weight, and its levels."""
    members = np.flatnonzero(labels == label)
    effect = float(effects[members[0]])
    return {
        "group": label,
        "effect": effect,
        **({"relativity": float(np.exp(effect))} if multiplies else {}),
        "share": float(shares[members].sum()),
        "size": int(members.size),
        "levels": [names[place] for place in members[:LISTED]],
        "shown": _shown(members, names, kind),
    }


def _shown(members: Any, names: Sequence[str], kind: str) -> str:
    """The levels of a group in a line: neighbours in an order as "3 to 7"."""
    if kind == NOMINAL:
        return listed([names[place] for place in members], most=SHOWN_LEVELS)
    runs = [
        [place for _, place in run]
        for _, run in groupby(enumerate(members.tolist()), lambda pair: pair[1] - pair[0])
    ]
    spans = [
        names[run[0]] if len(run) == 1 else f"{names[run[0]]} to {names[run[-1]]}" for run in runs
    ]
    return listed(spans, most=SHOWN_LEVELS)


def factor_table(values: Sequence[dict[str, Any]]) -> Cells:
    """A row for each factor with several groups."""
    multiplies = any("relativity" in group for factor in values for group in factor["groups"])
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


def _value(group: dict[str, Any]) -> str:
    return f"{group['relativity']:.3g}" if "relativity" in group else f"{group['effect']:+.3g}"


def factor_sentences(values: Sequence[dict[str, Any]], numbers: Mapping[str, float]) -> list[str]:
    """What stands below the table of factors; `numbers` are the weights of numeric columns."""
    told = []
    if out := [factor["factor"] for factor in values if len(factor["groups"]) < 2]:
        told.append(f"Left out, as all levels have the same effect: {listed(out, most=20)}.")
    for factor in values:
        if (way := factor.get("direction")) is not None:
            told.append(
                f"{factor['factor']} was found to be {way['kind']}: objective "
                f"{way['objective']:.6g}, and {way['otherwise']:.6g} the other way."
            )
    if numbers:
        shown = [f"{name} {weight:+.3g}" for name, weight in numbers.items()]
        told.append(f"Numbers, with their weights: {listed(shown, most=20)}.")
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


def numeric_weights(estimator: Any) -> dict[str, float]:
    """The weights of numeric columns, by their names."""
    factors = estimator.factors_
    weights = np.asarray(estimator.coef_).reshape(-1)[factors.blocks < 0]
    names = [factors.names[place] for place in factors.numeric]
    return dict(zip(names, weights.tolist(), strict=True))
