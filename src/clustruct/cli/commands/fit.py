"""``clustruct fit``: a model from a table."""

import argparse
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from clustruct import __version__
from clustruct.cli.console import Console
from clustruct.cli.messages import BadUsage, as_json
from clustruct.cli.options import (
    add_command,
    add_table_options,
    clusters,
    non_negative,
    nonzero,
    output,
    price,
    share,
    strength,
    whole,
)

if TYPE_CHECKING:
    from clustruct.cli.preparing.factors import FactorOptions
    from clustruct.cli.preparing.problems import Problem, Wanted
    from clustruct.cli.preparing.training import Trained
    from clustruct.cli.reading.scratch import Scratch


FACTOR_OPTIONS = ("category", "ordinal", "monotone", "cyclic", "bins")
METAVARS = {
    "date-format": "COL=FORMAT",
    "ordinal": "COL[=A,B,C]",
    "monotone": "COL[=increasing]",
    "cyclic": "COL[=A,B,C]",
    "bins": "COL=10",
}
MOST_COLUMNS = 40  # shown, of those that are read
# Parameters of losses, as the losses themselves know them; they are not loaded for the help.
LOSS_PARAMETERS = {
    "huber-delta": "residual at which the Huber loss turns linear (default: 1.35)",
    "tweedie-power": "power of the mean that the variance is proportional to (default: 1.5)",
    "quantile-level": "the quantile that is predicted (default: 0.5)",
    "quantile-smoothing": "width of the smoothing, in interquartile ranges (default: 0.05)",
}


def add(commands: Any) -> None:
    """Tell the parser of the command."""
    parser = add_command(
        commands,
        "fit",
        run,
        "fit a model to a table, and show its groups and how well it predicts",
        "clustruct fit flats.csv --target rent --out flats.clustruct",
        "clustruct fit reviews.jsonl --target stars --text review --clusters 2:15 --report r.html",
        "clustruct fit trials.csv --target tuned --samples --clusters 2",
        "clustruct fit policies.csv --target claims --loss poisson",
        "clustruct fit words.svm --nonzero 100 --json",
        "zcat big.csv.gz | clustruct fit - --format csv --target y",
        "clustruct fit trips/ --target fare --out-of-core yes",
        "clustruct fit X.npy --target y.npy",
        "clustruct fit policies.csv --target nclaims --loss poisson --exposure years "
        "--category postcode --ordinal age --monotone bonus",
    )
    add_table_options(parser)
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
    for use, what in (
        ("features", "features that share weights (the default)"),
        (
            "samples",
            "rows that share an expert: several linear models, each row predicted by its best",
        ),
    ):
        uses.add_argument(f"--{use}", dest="use", action="store_const", const=use, help=what)
    uses.add_argument(
        "--tasks", metavar="COL", help="tasks that share a model; the column says which task"
    )
    parser.set_defaults(use="features")
    kinds = parser.add_argument_group("what is predicted").add_mutually_exclusive_group()
    for kind in ("regression", "classification"):
        what = f"take it for {kind}, whatever the target looks like"
        kinds.add_argument(f"--{kind}", dest="kind", action="store_const", const=kind, help=what)


def _add_columns(parser: argparse.ArgumentParser) -> None:
    columns = parser.add_argument_group("columns")
    for name, what in (
        ("columns", "use these only"),
        ("drop", "leave these out"),
        ("text", "these are text: TF-IDF of their words"),
        ("category", "these are categories, whose levels are fused among themselves"),
        (
            "ordinal",
            "their levels have an order, and only neighbours are fused: sorted, or as given",
        ),
        ("monotone", "the same, and effects rise or fall along the order: found out, or as given"),
        ("cyclic", "their levels go round, as the hours of a day: the last is next to the first"),
        ("bins", "numbers to cut into bins, so many or at these edges, which are levels in order"),
        ("number", "these are numbers"),
        ("date", "these are dates"),
        ("date-format", "how the dates of a column are written, such as 'sold=%%d/%%m/%%Y'"),
        ("decimal-comma", "these are numbers such as 1.234,5 or 3,50"),
    ):
        metavar = METAVARS.get(name, "COL")
        columns.add_argument(
            f"--{name}", nargs="+", action="extend", default=[], metavar=metavar, help=what
        )
    columns.add_argument(
        "--min-weight",
        type=non_negative,
        metavar="W",
        help="least weight of a group of levels: rows, or the sum of their --weights (default: 0)",
    )
    columns.add_argument("--weights", metavar="COL", help="weights of the rows")
    offset = columns.add_mutually_exclusive_group()
    offset.add_argument("--offset", metavar="COL", help="numbers to add to the scores of the rows")
    offset.add_argument(
        "--exposure",
        metavar="COL",
        help="exposures of the rows, all above 0, whose logarithms are added to the scores",
    )
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
        "--price",
        type=price,
        metavar="auto|P",
        help="what a further group of levels has to lower the objective by (default: auto, where "
        "there are factors and no --clusters)",
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
        help="squared, huber, poisson (counts), gamma (positive amounts), tweedie (amounts with "
        "zeros) or quantile for numbers; logistic or squared for classes",
    )
    for name, what in LOSS_PARAMETERS.items():
        search.add_argument(f"--{name}", type=non_negative, metavar="NUMBER", help=what)
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
    from clustruct.losses import CLASS_LOSSES, NUMBER_LOSSES

    kind = problem.target.kind
    known = NUMBER_LOSSES if kind == "regression" else CLASS_LOSSES
    if args.loss is not None and args.loss not in known:
        raise BadUsage(f"--loss {args.loss} is not for {kind}. Give {' or '.join(known)}.")
    scale = args.scale or ("standard" if problem.base is None else "maxabs")
    if not args.json:
        _print_problem(problem, scale, args.missing, console)
    for remark in problem.remarks:
        console.note(f"clustruct: {remark}")
    use = "tasks" if args.tasks else args.use
    settings = Settings(
        use,
        args.clusters,
        args.nonzero,
        args.alpha,
        args.loss,
        _loss_parameters(args),
        args.seed,
        args.best,
        args.price,
    )
    # The mathematics is loaded when the data are good.
    from clustruct.cli.preparing.training import train

    trained = train(problem, settings, console, scratch, scale, args.missing, args.test_size)
    _write(args, problem, trained, console)
    if args.json:
        console.say(as_json(_values(args, problem, scale, trained)))
    else:
        _print_trained(args, trained, console)


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
    from clustruct.losses import kind_of

    kind = kind_of(args.loss)
    return "regression" if kind.takes_numbers and not kind.takes_classes else None


def _read(
    args: argparse.Namespace, wanted: "Wanted", scratch: "Scratch", console: Console
) -> "Problem":
    """The table, in memory or not."""
    from clustruct.cli.preparing.columns import written_as_text
    from clustruct.cli.preparing.large import check_dask
    from clustruct.cli.preparing.opening import open_data
    from clustruct.cli.preparing.problems import read_sparse_problem, understand
    from clustruct.cli.reading.streams import Source

    texts = written_as_text(wanted.kinds, wanted.styles, wanted.tasks)
    with open_data(args, texts, scratch, console, wanted.target, check_dask) as data:
        if isinstance(data, Source):
            return read_sparse_problem(data, wanted)
        if wanted.target is None:
            raise BadUsage("--target is needed: the name of the column to predict.")
        wanted = replace(wanted, target=data.column_for(wanted.target))
        return understand(data.load(), data.name, data.format_name, wanted)


def _wanted(args: argparse.Namespace) -> "Wanted":
    from clustruct.cli.preparing.problems import Wanted
    from clustruct.cli.preparing.styles import check_date_form
    from clustruct.cli.preparing.targets import OffsetColumn

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
    named = {name: getattr(args, name) for name in ("target", "weights", "tasks", "drop")}
    offset = args.exposure or args.offset
    return Wanted(
        **named,
        kind=_kind(args),
        only=args.columns,
        kinds=kinds,
        styles=styles,
        missing=args.missing,
        offset=offset and OffsetColumn(offset, bool(args.exposure), styles.get(offset, "")),
        factors=_factor_options(args, kinds),
    )


def _factor_options(args: argparse.Namespace, kinds: Mapping[str, str]) -> "FactorOptions":
    """What the options say about factors."""
    from clustruct.cli.preparing.factors import factor_options

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
    args: argparse.Namespace, problem: "Problem", trained: "Trained", console: Console
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
        if (column := problem.offset_column) is not None:
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


def _values(
    args: argparse.Namespace, problem: "Problem", scale: str, trained: "Trained"
) -> dict[str, Any]:
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
        "offset": None if problem.offset_column is None else asdict(problem.offset_column),
        "columns": [
            {
                "name": c.name,
                "kind": c.kind,
                "missing": c.n_missing,
                "distinct": c.n_distinct,
                "reason": c.reason,
                "style": c.style,
                "prepared": how(c, scale, args.missing),
            }
            for c in problem.columns
        ],
        "remarks": problem.remarks,
        "model": model_values(trained),
        "held_out": score_values(trained),
        "out": args.out,
        "report": args.report,
    }


def _print_problem(problem: "Problem", scale: str, missing: str, console: Console) -> None:
    """What was read, and how it was understood."""
    from clustruct.cli.preparing.preparation import SCALES, how

    target = problem.target
    rows = [f"{problem.n_read} rows"]
    rows += [f"{count} left out because {reason}" for reason, count in problem.left_out.items()]
    console.say(f"Read {problem.source} ({problem.format_name}): {', '.join(rows)}.")
    console.say(f"Target: {target.name}, {target.reason}: {target.kind}.")
    if problem.offset_column is not None:
        console.say(f"Offset: {problem.offset_column.in_words}.")
    if problem.base is not None:
        console.say(f"{problem.X.shape[1]} columns, each scaled: {SCALES[scale][1]}.")
        console.say()
        return
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
