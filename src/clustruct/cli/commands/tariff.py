"""``clustruct tariff``: the factors of a saved model as a table, CSV, SQL or Python."""

import argparse
from collections.abc import Sequence
from typing import Any

from clustruct._atomic import replacing
from clustruct.cli.application import Saved, load_model
from clustruct.cli.console import Console
from clustruct.cli.factor_tables import factor_sentences, grouped, tariff_table
from clustruct.cli.formulas import Units, fill_remark, units_of
from clustruct.cli.messages import BadUsage, as_json, did_you_mean
from clustruct.estimators.features.formulas import before_scaling
from clustruct.results.relativities import shown_level


def run(args: argparse.Namespace, console: Console) -> None:
    """Load, write, print."""
    with console.progress("reading"):
        saved = load_model(args.model)
        units = units_of(saved)
        model = before_scaling(saved.model[-1], units.slope)  # of numbers less their centres
    table = model.relativities(reference=_references(model, args.reference))
    _write(args, saved, units, table)
    factors = grouped(table)
    if args.json:
        content = {
            "model": args.model,
            "base": table.base,
            "scale": table.scale,
            "multiplies": table.multiplies,
            "references": table.references,
            "centres": units.centres,
            "relativities": table.rows(),
            **{name: getattr(args, name) for name in ("csv", "sql", "python")},
        }
        console.say(as_json(content))
        return
    console.table(*tariff_table(factors), title=str(table).partition("\n")[0])
    for sentence in factor_sentences(factors):
        console.say(sentence)
    slopes = [row for row in table if row.kind == "numeric"]
    if slopes:
        shown = [f"{r.factor} {r.effect:+.4g} from {units.centres[r.factor]:.4g}" for r in slopes]
        console.say(f"Effect of numbers, for each unit from a centre: {', '.join(shown)}.")
    for what in ("csv", "sql", "python"):
        if (path := getattr(args, what)) is not None:
            console.say(f"Written: {path}")


def _references(model: Any, given: Sequence[str]) -> dict[str, Any]:
    """Reference levels, by factor, as the model knows them."""
    factors, found = {factor.name: factor for factor in model.factors_.factors}, {}
    for text in given:
        name, _, level = text.partition("=")
        while name not in factors and "=" in level:  # a name may hold the sign
            more, _, level = level.partition("=")
            name = f"{name}={more}"
        if name not in factors or not level:
            raise BadUsage(
                f"--reference {text!r} names no factor and level. "
                f"{did_you_mean(name, factors)} Give COL=LEVEL."
            )
        factor = factors[name]
        levels = {shown_level(known): known for known in factor.levels}
        if level in levels:
            found[name] = levels[level]
            continue
        try:
            found[name] = float(level)
        except ValueError:
            found[name] = None
        if found[name] not in factor.levels and (factor.edges is None or found[name] is None):
            raise BadUsage(
                f"--reference {text!r}: {name!r} has no level {level!r}. "
                f"{did_you_mean(level, levels)}"
            )
    return found


def _write(args: argparse.Namespace, saved: Saved, units: Units, table: Any) -> None:
    """The files that were asked for."""
    if args.csv is not None:
        table.to_csv(args.csv)
    model, column = before_scaling(saved.model[-1], units.slope, units.shift), saved.offset
    beside = {}
    if column is not None:
        beside = {"exposure" if column.is_exposure else "offset": column.name}
    texts: dict[Any, str] = {}
    if args.sql is not None:
        texts[args.sql] = fill_remark(saved, "--") + model.to_sql(args.table, **beside)
    if args.python is not None:
        texts[args.python] = fill_remark(saved, "#") + model.to_python()
    for path, text in texts.items():
        with replacing(path) as unfinished:
            unfinished.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
