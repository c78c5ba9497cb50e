"""``clustruct fit``: a model from a table."""

import argparse
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from clustruct import __version__
from clustruct.cli.arguments import LOSS_PARAMETERS
from clustruct.cli.console import Console
from clustruct.cli.messages import BadUsage, EndedEarly, as_json
from clustruct.cli.models import Settings
from clustruct.cli.preparing.columns import written_as_text
from clustruct.cli.preparing.factors import FactorOptions, factor_options
from clustruct.cli.preparing.opening import check_dask, open_data
from clustruct.cli.preparing.problems import Problem, Wanted, read_sparse_problem, understand
from clustruct.cli.preparing.styles import check_date_form
from clustruct.cli.preparing.targets import OffsetColumn
from clustruct.cli.reading.scratch import Scratch
from clustruct.cli.reading.streams import Source
from clustruct.losses import CLASS_LOSSES, NUMBER_LOSSES, kind_of

if TYPE_CHECKING:
    from clustruct.cli.preparing.training import Trained

FACTOR_OPTIONS = ("category", "ordinal", "monotone", "cyclic", "bins")
MOST_COLUMNS = 40  # shown, of those that are read


def run(args: argparse.Namespace, console: Console) -> None:
    """Read, fit, save, print."""
    wanted = _wanted(args)
    if args.report is not None:
        from clustruct.cli.commands.report import check_report

        check_report()
    with Scratch() as scratch:
        with console.progress("reading"):
            problem = _read(args, wanted, scratch, console)
        _fit(args, problem, scratch, console)


def _fit(args: argparse.Namespace, problem: Problem, scratch: Scratch, console: Console) -> None:
    """From a table to what is printed."""
    kind = problem.target.kind
    known = NUMBER_LOSSES if kind == "regression" else CLASS_LOSSES
    if args.loss is not None and args.loss not in known:
        raise BadUsage(f"--loss {args.loss} is not for {kind}. Give {' or '.join(known)}.")
    if not args.json:
        _print_problem(problem, console)
    for remark in problem.remarks:
        console.note(f"clustruct: {remark}")
    resampling = _resampling(args)
    use = "tasks" if args.tasks else args.use
    named = ("clusters", "nonzero", "alpha", "loss", "seed", "best", "price")
    given = {name: getattr(args, name) for name in named}
    settings = Settings(use, parameters=_loss_parameters(args), **given)
    # The mathematics is loaded when the data are good.
    from clustruct.cli.preparing.training import train

    trained = train(problem, settings, console, scratch, args.test_size, resampling)
    _write(args, problem, trained, console)
    if args.json:
        console.say(as_json(_values(args, problem, trained)))
    else:
        _print_trained(args, trained, console)
    if trained.cut_short:
        where = "above" if args.out is None else f"in {args.out}"
        raise EndedEarly(f"{trained.cut_short}. The best so far is {where}; no file is incomplete.")


def _resampling(args: argparse.Namespace) -> dict[str, Any] | None:
    """How to see whether the groups come again, by the names that `stability` knows."""
    if args.stability is None:
        for name in ("bootstrap", "keep_choice"):
            if getattr(args, name):
                option = f"--{name.replace('_', '-')}"
                raise BadUsage(f"{option} goes with --stability N only. Give both, or neither.")
        return None
    return {
        "n_resamples": args.stability,
        "scheme": "bootstrap" if args.bootstrap else "subsample",
        "search": "kept" if args.keep_choice else "anew",
    }


def _loss_parameters(args: argparse.Namespace) -> dict[str, float]:
    """Parameters of the loss that were given, by the names that estimators know them by."""
    given = {}
    for name in LOSS_PARAMETERS:
        value = getattr(args, name.replace("-", "_"))
        if value is None:
            continue
        if args.loss != (loss := name.partition("-")[0]):
            raise BadUsage(f"--{name} goes with --loss {loss} only. Give both, or leave it out.")
        given[name.replace("-", "_")] = value
    return given


def _kind(args: argparse.Namespace) -> str | None:
    """What is predicted, if an option says so: a loss may be for numbers alone."""
    if args.kind is not None or args.loss is None:
        return args.kind
    kind = kind_of(args.loss)
    return "regression" if kind.takes_numbers and not kind.takes_classes else None


def _read(args: argparse.Namespace, wanted: Wanted, scratch: Scratch, console: Console) -> Problem:
    """The table, in memory or not."""
    texts = written_as_text(wanted.kinds, wanted.styles, wanted.tasks)
    with open_data(args, texts, scratch, console, wanted.target, check_dask) as data:
        if isinstance(data, Source):
            return read_sparse_problem(data, wanted)
        if wanted.target is None:
            raise BadUsage("--target is needed: the name of the column to predict.")
        wanted = replace(wanted, target=data.column_for(wanted.target))
        return understand(data.load(), data.name, data.format_name, wanted)


def _wanted(args: argparse.Namespace) -> Wanted:
    """What the options say about columns."""
    kinds: dict[str, str] = {}
    for kind in ("text", "category", "number", "date"):
        for name in getattr(args, kind):
            _claim(kinds, name, kind, kind)
    styles = {}  # how columns are written, which says what kinds they are of, too
    for text in args.date_format:
        name, equals, form = text.rpartition("=")
        if not equals or not name:
            raise BadUsage(f"--date-format {text!r} names no column. Give COL=FORMAT.")
        styles[name] = check_date_form(form, f"--date-format {text!r}")
        _claim(kinds, name, "date", "date-format")
    for name in args.decimal_comma:
        styles[name] = ","
        _claim(kinds, name, "number", "decimal-comma")
    same = ("target", "weights", "tasks", "drop", "missing", "scale")
    offset = args.exposure or args.offset
    return Wanted(
        **{name: getattr(args, name) for name in same},
        kind=_kind(args),
        only=args.columns,
        kinds=kinds,
        styles=styles,
        offset=offset and OffsetColumn(offset, bool(args.exposure), styles.get(offset, "")),
        factors=_factor_options(args, kinds),
    )


def _factor_options(args: argparse.Namespace, kinds: Mapping[str, str]) -> FactorOptions:
    """What the options say about factors."""
    others = ("--tasks", args.tasks), ("--samples", args.use == "samples")
    reasons = [f"{option} groups {option[2:]}, and no levels." for option, given in others if given]
    if args.nonzero:
        reasons.append(f"--nonzero {args.nonzero} is for features, and not for levels.")
    found = factor_options(
        {option: getattr(args, option) for option in FACTOR_OPTIONS},
        min_weight=args.min_weight,
        price=args.price is not None,
        excluded_by=next(iter(reasons), ""),
    )
    for name, kind in kinds.items():
        if kind == "text" and name in found.kinds:
            raise BadUsage(
                f"--text {name} and {found.options.get(name, '--category')} {name} cannot both be "
                "meant: words are no levels. Name it once."
            )
    return found


def _claim(kinds: dict[str, str], name: str, kind: str, option: str) -> None:
    """Note the kind that an option gives a column; options must not contradict each other."""
    if kinds.setdefault(name, kind) != kind:
        raise BadUsage(f"--{option} {name} and --{kinds[name]} {name} cannot both be meant.")


def _write(
    args: argparse.Namespace, problem: Problem, trained: "Trained", console: Console
) -> None:
    """The files that were asked for."""
    if args.out is not None:
        from clustruct.persistence.model_files import save

        styles = {column.name: column.style for column in problem.used}
        styles[problem.target.name] = problem.target.style
        notes: dict[str, Any] = {
            "target": problem.target.name,
            "kind": problem.target.kind,
            "columns": {column.name: column.kind for column in problem.used},
            "missing": args.missing,
            "tasks": args.tasks,
            "base": problem.base,
            "styles": {name: style for name, style in styles.items() if style},  # not plain ones
        }
        if (column := problem.wanted.offset) is not None:
            notes["offset"] = asdict(column)
        save(trained.model, args.out, notes=notes)
    if args.report is not None:
        from clustruct.cli.commands.report import title_of
        from clustruct.reporting.build import write_page

        shown = trained.data.n + (0 if trained.comparison is None else trained.comparison.n_test)
        with console.progress("writing the report"):
            write_page(
                trained.model,
                trained.data,
                trained.comparison,
                args.report,
                title=title_of(problem.target.name, problem.source, shown, problem.n_rows),
                model_file=args.out,
                feature_names=trained.feature_names,
            )


def _values(args: argparse.Namespace, problem: Problem, trained: "Trained") -> dict[str, Any]:
    """All that is printed, as plain values."""
    from clustruct.cli.preparing.preparation import how
    from clustruct.cli.summary import model_values, score_values

    return {
        "version": __version__,
        "data": problem.source,
        "rows": problem.n_rows,
        "rows_read": problem.n_read,
        "rows_left_out": [
            {"rows": count, "reason": reason} for reason, count in problem.left_out.items()
        ],
        "out_of_core": problem.is_large,
        "target": {
            name: getattr(problem.target, name) for name in ("name", "kind", "reason", "question")
        },
        "offset": None if problem.wanted.offset is None else asdict(problem.wanted.offset),
        "columns": [
            {
                "name": c.name,
                "kind": c.kind,
                "missing": c.n_missing,
                "distinct": c.n_distinct,
                "reason": c.reason,
                "style": c.style,
                "prepared": how(c, problem.scale, args.missing),
            }
            for c in problem.columns
        ],
        "remarks": problem.remarks,
        "model": model_values(trained),
        "held_out": score_values(trained),
        "interrupted": trained.cut_short or None,
        "out": args.out,
        "report": args.report,
    }


def _print_problem(problem: Problem, console: Console) -> None:
    """What was read, and how it was understood."""
    from clustruct.cli.preparing.preparation import SCALES, how

    target = problem.target
    rows = [f"{problem.n_read} rows"]
    rows += [f"{count} left out because {reason}" for reason, count in problem.left_out.items()]
    console.say(f"Read {problem.source} ({problem.format_name}): {', '.join(rows)}.")
    console.say(f"Target: {target.name}, {target.reason}: {target.kind}.")
    if problem.wanted.offset is not None:
        console.say(f"Offset: {problem.wanted.offset.in_words}.")
    if problem.base is not None:
        console.say(f"{problem.X.shape[1]} columns, each scaled: {SCALES[problem.scale][-1]}.")
        console.say()
        return
    scale, missing = problem.scale, problem.wanted.missing
    table = [
        (c.name, c.kind, str(c.n_missing), c.example, how(c, scale, missing))
        for c in problem.columns[:MOST_COLUMNS]
    ]
    console.table(("column", "kind", "missing", "example", "prepared"), table)
    rest = len(problem.columns) - MOST_COLUMNS
    if rest > 0:
        console.say(f"... and {rest} more columns.")


def _print_trained(args: argparse.Namespace, trained: "Trained", console: Console) -> None:
    """The model, its scores, and where it is."""
    from clustruct.cli.summary import print_model, print_scores

    print_model(trained, console)
    print_scores(trained, console)
    if args.out is not None:
        console.say(f"Model: {args.out}; `clustruct predict {args.out} NEW` predicts with it.")
    else:
        console.say("The model was not saved; --out FILE saves it.")
    if args.report is not None:
        console.say(f"Report: {args.report}")
