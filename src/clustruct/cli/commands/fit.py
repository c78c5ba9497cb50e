"""``clustruct fit``: a model from a table."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clustruct import __version__
from clustruct.cli.console import Console
from clustruct.cli.messages import BadUsage, as_json
from clustruct.cli.options import (
    add_command,
    add_out_of_core,
    add_table_options,
    clusters,
    nonzero,
    output,
    share,
    strength,
    whole,
)

if TYPE_CHECKING:
    from clustruct.cli.preparing.problems import Problem, Wanted
    from clustruct.cli.preparing.training import Trained
    from clustruct.cli.reading.scratch import Scratch

__all__ = ["add"]

MOST_COLUMNS = 40  # shown, of those that are read


def add(commands: Any) -> None:
    """Tell the parser of the command."""
    from clustruct.cli.reading.streams import FORMATS

    parser = add_command(
        commands,
        "fit",
        run,
        "fit a model to a table, and show its groups and how well it predicts",
        "clustruct fit flats.csv --target rent --out flats.clustruct",
        "clustruct fit reviews.jsonl --target stars --text review --clusters 2:15 --report r.html",
        "clustruct fit trials.csv --target tuned --samples --clusters 2",
        "clustruct fit words.svm --nonzero 100 --json",
        "zcat big.csv.gz | clustruct fit - --format csv --target y",
        "clustruct fit trips/ --target fare --out-of-core yes",
        "clustruct fit X.npy --target y.npy",
    )
    add_table_options(parser, FORMATS)
    add_out_of_core(parser)
    parser.add_argument(
        "--target",
        metavar="COL",
        help="column to predict (libsvm has its own); for a .npy matrix also the number of a "
        "column, or another .npy file",
    )
    _add_uses(parser)
    _add_columns(parser)
    _add_search(parser)
    parser.add_argument("--out", type=output, metavar="FILE", help="model file to write")
    parser.add_argument("--report", type=output, metavar="FILE", help="HTML report to write")


def _add_uses(parser: argparse.ArgumentParser) -> None:
    uses = parser.add_argument_group("what is grouped").add_mutually_exclusive_group()
    uses.add_argument(
        "--features",
        dest="use",
        action="store_const",
        const="features",
        default="features",
        help="features that share weights (the default)",
    )
    uses.add_argument(
        "--samples",
        dest="use",
        action="store_const",
        const="samples",
        help="rows that share an expert: several linear models, each row predicted by its best",
    )
    uses.add_argument(
        "--tasks", metavar="COL", help="tasks that share a model; the column says which task"
    )
    kinds = parser.add_argument_group("what is predicted").add_mutually_exclusive_group()
    for kind in ("regression", "classification"):
        kinds.add_argument(
            f"--{kind}",
            dest="kind",
            action="store_const",
            const=kind,
            help=f"take it for {kind}, whatever the target looks like",
        )


def _add_columns(parser: argparse.ArgumentParser) -> None:
    columns = parser.add_argument_group("columns")
    several: dict[str, Any] = {"nargs": "+", "action": "extend", "default": [], "metavar": "COL"}
    columns.add_argument("--columns", **several, help="use these only")
    columns.add_argument("--drop", **several, help="leave these out")
    columns.add_argument("--text", **several, help="these are text: TF-IDF of their words")
    columns.add_argument("--category", **several, help="these are categories")
    columns.add_argument("--number", **several, help="these are numbers")
    columns.add_argument("--date", **several, help="these are dates")
    columns.add_argument(
        "--date-format",
        **{**several, "metavar": "COL=FORMAT"},
        help="how the dates of a column are written, such as 'sold=%%d/%%m/%%Y'",
    )
    columns.add_argument(
        "--decimal-comma", **several, help="these are numbers such as 1.234,5 or 3,50"
    )
    columns.add_argument("--weights", metavar="COL", help="weights of the rows")
    columns.add_argument(
        "--missing",
        choices=("impute", "refuse"),
        default="impute",
        help="fill missing numbers with the median of the column, or stop (default: %(default)s)",
    )
    columns.add_argument(
        "--scale",
        choices=("standard", "robust", "maxabs", "none"),
        help="how numbers are scaled, so that weights can be shared (default: standard, mean 0 and "
        "deviation 1; for libsvm maxabs, largest 1)",
    )


def _add_search(parser: argparse.ArgumentParser) -> None:
    search = parser.add_argument_group("the model")
    search.add_argument(
        "--clusters",
        type=clusters,
        metavar="auto|5|2:15",
        help="number of groups, or those to choose from (default: auto)",
    )
    search.add_argument(
        "--best",
        action="store_true",
        help="choose the best mean score over the folds, instead of the fewest groups that are not "
        "clearly worse",
    )
    search.add_argument(
        "--nonzero",
        type=nonzero,
        metavar="auto|all|K",
        help="most features with a weight that is not zero (default: auto)",
    )
    search.add_argument(
        "--alpha", type=strength, metavar="auto|A", help="strength of the ridge (default: auto)"
    )
    search.add_argument(
        "--loss",
        metavar="NAME",
        help="squared or huber for numbers, logistic or squared for classes",
    )
    search.add_argument(
        "--seed", type=whole, default=0, help="of all that is random (default: %(default)s)"
    )
    search.add_argument(
        "--test-size",
        type=share,
        default=0.2,
        metavar="SHARE",
        help="rows held out to measure how well the model predicts (default: %(default)s; 0: none)",
    )


def run(args: argparse.Namespace, console: Console) -> None:
    """Read, fit, save, print."""
    with console.progress("reading"):
        from clustruct.cli.commands.report import check_report
        from clustruct.cli.reading.scratch import Scratch

        wanted = _wanted(args)
        if args.report is not None:
            check_report()
    with Scratch() as scratch:
        with console.progress("reading"):
            problem = _read(args, wanted, scratch, console)
        _fit(args, problem, scratch, console)


def _fit(
    args: argparse.Namespace, problem: "Problem", scratch: "Scratch", console: Console
) -> None:
    """From a table to what is printed."""
    from clustruct.cli.models import Settings

    _check_loss(args.loss, problem.target.kind)
    scale = _scale(args, problem)
    if not args.json:
        _print_problem(problem, scale, args.missing, console)
    for remark in problem.remarks:
        console.note(f"clustruct: {remark}")
    use = "tasks" if args.tasks else args.use
    settings = Settings(
        use, args.clusters, args.nonzero, args.alpha, args.loss, args.seed, args.best
    )
    options = {"scale": scale, "missing": args.missing, "test_size": args.test_size}
    # The mathematics is loaded when the data are good.
    from clustruct.cli.preparing.training import train

    trained = train(problem, settings, console, scratch, **options)
    _write(args, problem, trained, console)
    if args.json:
        console.say(as_json(_values(args, problem, trained)))
    else:
        _print_trained(args, trained, console)


def _read(
    args: argparse.Namespace, wanted: "Wanted", scratch: "Scratch", console: Console
) -> "Problem":
    """The table, in memory or not."""
    from clustruct.cli.preparing.large import check_dask
    from clustruct.cli.preparing.opening import open_data
    from clustruct.cli.preparing.problems import read_sparse_problem, understand, written_as_text
    from clustruct.cli.reading.streams import Source

    texts = written_as_text(wanted)
    with open_data(args, texts, scratch, console, wanted.target, check_dask) as data:
        if isinstance(data, Source):
            return read_sparse_problem(data, wanted)
        if wanted.target is None:
            raise BadUsage("--target is needed: the name of the column to predict.")
        wanted = replace(wanted, target=data.column_for(wanted.target))
        return understand(data.load(), data.name, data.format_name, wanted)


def _wanted(args: argparse.Namespace) -> "Wanted":
    from clustruct.cli.preparing.problems import Wanted

    kinds: dict[str, str] = {}
    for kind in ("text", "category", "number", "date"):
        for name in getattr(args, kind):
            _claim(kinds, name, kind, kind)
    styles = _styles(args, kinds)
    return Wanted(
        target=args.target,
        kind=args.kind,
        only=args.columns,
        drop=args.drop,
        kinds=kinds,
        styles=styles,
        weights=args.weights,
        tasks=args.tasks,
        missing=args.missing,
        encoding=args.encoding,
    )


def _styles(args: argparse.Namespace, kinds: dict[str, str]) -> dict[str, str]:
    """How columns are written, which says what kinds they are of, too."""
    from clustruct.cli.preparing.styles import check_date_form

    styles = {}
    for text in args.date_format:
        name, equals, form = text.rpartition("=")
        if not equals or not name:
            raise BadUsage(f"--date-format {text!r} names no column. Give COL=FORMAT.")
        styles[name] = check_date_form(form, f"--date-format {text!r}")
        _claim(kinds, name, "date", "date-format")
    for name in args.decimal_comma:
        styles[name] = ","
        _claim(kinds, name, "number", "decimal-comma")
    return styles


def _claim(kinds: dict[str, str], name: str, kind: str, option: str) -> None:
    """Note the kind that an option gives a column; options must not contradict each other."""
    if kinds.setdefault(name, kind) != kind:
        raise BadUsage(f"--{option} {name} and --{kinds[name]} {name} cannot both be meant.")


def _check_loss(loss: str | None, kind: str) -> None:
    from clustruct.losses import CLASS_LOSSES, NUMBER_LOSSES

    known = NUMBER_LOSSES if kind == "regression" else CLASS_LOSSES
    if loss is not None and loss not in known:
        raise BadUsage(f"--loss {loss} is not for {kind}. Give {' or '.join(known)}.")


def _write(
    args: argparse.Namespace, problem: "Problem", trained: "Trained", console: Console
) -> None:
    """The files that were asked for."""
    if args.out is not None:
        from clustruct.persistence.model_files import save

        notes = {
            "target": problem.target.name,
            "kind": problem.target.kind,
            "columns": {column.name: column.kind for column in problem.used},
            "missing": args.missing,
            "tasks": args.tasks,
            "base": problem.base,
            "styles": _all_styles(problem),
        }
        save(trained.model, args.out, notes=notes)
    if args.report is not None:
        from clustruct.reporting.build import write_page

        with console.progress("writing the report"):
            write_page(
                trained.model,
                trained.data,
                trained.comparison,
                args.report,
                title=_title(problem, trained),
                model_file=args.out,
                feature_names=trained.feature_names,
            )


def _all_styles(problem: "Problem") -> dict[str, str]:
    """How columns and target are written, where that is in no plain way."""
    styles = {column.name: column.style for column in problem.used}
    styles[problem.target.name] = problem.target.style
    return {name: style for name, style in styles.items() if style}


def _title(problem: "Problem", trained: "Trained") -> str:
    """Of the report; it says so if that shows some rows only."""
    title = f"{problem.target.name} from {problem.source}"
    shown = trained.data.n + (0 if trained.comparison is None else trained.comparison.n_test)
    if not problem.is_large or shown == problem.n_rows:
        return title
    return f"{title} ({shown:,} of {problem.n_rows:,} rows, drawn at random)"


def _scale(args: argparse.Namespace, problem: "Problem") -> str:
    """How numbers are scaled."""
    return args.scale or ("standard" if problem.base is None else "maxabs")


def _values(args: argparse.Namespace, problem: "Problem", trained: "Trained") -> dict[str, Any]:
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
            "name": problem.target.name,
            "kind": problem.target.kind,
            "reason": problem.target.reason,
            "question": problem.target.question,
        },
        "columns": [
            {
                "name": column.name,
                "kind": column.kind,
                "missing": column.n_missing,
                "distinct": column.n_distinct,
                "reason": column.reason,
                "style": column.style,
                "prepared": how(column, _scale(args, problem), args.missing),
            }
            for column in problem.columns
        ],
        "remarks": problem.remarks,
        "model": model_values(trained),
        "held_out": score_values(trained),
        "out": _name(args.out),
        "report": _name(args.report),
    }


def _name(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _print_problem(problem: "Problem", scale: str, missing: str, console: Console) -> None:
    """What was read, and how it was understood."""
    from clustruct.cli.preparing.preparation import SCALES, how

    target = problem.target
    rows = [f"{problem.n_read} rows"]
    rows += [f"{count} left out because {reason}" for reason, count in problem.left_out.items()]
    console.say(f"Read {problem.source} ({problem.format_name}): {', '.join(rows)}.")
    console.say(f"Target: {target.name}, {target.reason}: {target.kind}.")
    if problem.base is not None:
        console.say(f"{problem.X.shape[1]} columns, each scaled: {SCALES[scale][1]}.")
        console.say()
        return
    table = [
        (
            column.name,
            column.kind,
            str(column.n_missing),
            column.example,
            how(column, scale, missing),
        )
        for column in problem.columns[:MOST_COLUMNS]
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
