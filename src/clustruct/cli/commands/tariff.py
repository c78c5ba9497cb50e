"""``clustruct tariff``: the factors of a saved model as a table, CSV, SQL or Python."""

import argparse
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from clustruct._atomic import replacing
from clustruct._typing import Floats
from clustruct.cli.application import Saved, load_model
from clustruct.cli.console import Console
from clustruct.cli.factor_tables import factor_sentences, grouped, tariff_table
from clustruct.cli.messages import BadUsage, as_json, did_you_mean, in_one_line
from clustruct.cli.reading.tables import pandas
from clustruct.estimators.columns.transformers import MissingFlag
from clustruct.estimators.features.formulas import before_scaling
from clustruct.results.relativities import shown_level


def run(args: argparse.Namespace, console: Console) -> None:
    """Load, write, print."""
    with console.progress("reading"):
        saved = load_model(args.model)
        units = _units_of(saved)
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


def _write(args: argparse.Namespace, saved: Saved, units: "Units", table: Any) -> None:
    """The files that were asked for."""
    if args.csv is not None:
        table.to_csv(args.csv)
    model, column = before_scaling(saved.model[-1], units.slope, units.shift), saved.offset
    beside = {}
    if column is not None:
        beside = {"exposure" if column.is_exposure else "offset": column.name}
    texts: dict[Any, str] = {}
    if args.sql is not None:
        texts[args.sql] = _fill_remark(saved, "--") + model.to_sql(args.table, **beside)
    if args.python is not None:
        texts[args.python] = _fill_remark(saved, "#") + model.to_python()
    for path, text in texts.items():
        with replacing(path) as unfinished:
            unfinished.write_text(text.rstrip("\n") + "\n", encoding="utf-8")


# ---- The units of the table


class Units(NamedTuple):
    """How the numbers of a table become those that a model was fitted to: ``z = slope x + shift``.

    Where a number is not missing; ``z`` is 0 at the centre of its scale.
    """

    names: list[str]
    slope: Floats
    shift: Floats

    @property
    def centres(self) -> dict[str, float]:
        """The number that is 0 on the scale of the model, by column."""
        return dict(zip(self.names, (-self.shift / self.slope).tolist(), strict=True))


def _units_of(saved: Saved) -> Units:
    """The scales of the numbers of a saved model of factors."""
    factors = getattr(saved.model[-1], "factors_", None)
    if factors is None:
        raise ValueError(
            f"{saved.path} is no model of factors, and has no tariff. Fit one by `clustruct fit` "
            "with --category, --ordinal, --monotone, --cyclic or --bins."
        )
    _require_numbers(saved)
    shift, there = (
        saved.model[0]
        .transform(
            pandas().DataFrame(
                {n: [at if kind == "number" else np.nan] for n, kind in saved.columns.items()}
            )
        )
        .iloc[0, list(factors.numeric)]
        .to_numpy(dtype=np.float64)
        for at in (0.0, 1.0)
    )
    return Units([factors.names[place] for place in factors.numeric], there - shift, shift)


def _require_numbers(saved: Saved) -> None:
    """Complain of columns that a formula cannot take as they are in the table."""
    own = {factor.name for factor in saved.model[-1].factors_.factors}
    for title, step, names in saved.model[0].transformers_:
        dates = [name for name in names if saved.columns.get(name) == "date" and title not in own]
        last = step[-1] if hasattr(step, "steps") else step
        if dates or isinstance(last, MissingFlag):
            why = "is a date" if dates else "has missing values with a weight of their own"
            name = (dates or names)[0]
            raise ValueError(
                f"{saved.path}: the column {name!r} {why}, which no formula of a tariff takes. Fit "
                f"the model with --ordinal {name!r}, --bins {name}=10 or --drop {name!r}."
            )


def _fill_remark(saved: Saved, mark: str) -> str:
    """Lines at the top of a formula on numbers that were missing in the fit; mostly none."""
    found: list[str] = []
    for _, step, names in saved.model[0].transformers_:
        filler = getattr(step, "named_steps", {}).get("simpleimputer")
        if filler is not None:
            filled = zip(map(in_one_line, names), filler.statistics_, strict=True)
            found += [f"{name} {value:.6g}" for name, value in filled]
    if not found:
        return ""
    return f"{mark} Fill missing numbers before, as the fit did: {', '.join(found)}.\n"
