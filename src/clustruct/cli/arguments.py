"""The parser of the command line: commands, their options and their examples.

It loads nothing that is heavy, so that help and complaints about usage are quick. The `name` of a
command is its module in `clustruct.cli.commands`, which is loaded when it runs, and its `action` is
the function there.
"""

import argparse
from pathlib import Path
from typing import Any

from clustruct import __version__
from clustruct.cli.messages import printable
from clustruct.cli.options import (
    clusters,
    non_negative,
    nonzero,
    output,
    positive,
    price,
    resamples,
    share,
    size,
    strength,
    whole,
)
from clustruct.cli.reading.streams import FORMATS


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are printed as all else, also about names of hostile files."""

    def _print_message(self, message: str, file: Any = None) -> None:
        super()._print_message(printable(message), file)


COLUMNS: dict[str, Any] = {"nargs": "+", "action": "extend", "default": [], "metavar": "COL"}
METAVARS = {
    "date-format": "COL=FORMAT",
    "ordinal": "COL[=A,B,C]",
    "monotone": "COL[=increasing]",
    "cyclic": "COL[=A,B,C]",
    "bins": "COL=10",
}
# Parameters of losses, as the losses themselves know them; they are not loaded for the help.
LOSS_PARAMETERS = {
    "huber-delta": "residual at which the Huber loss turns linear (default: 1.35)",
    "tweedie-power": "power of the mean that the variance is proportional to (default: 1.5)",
    "quantile-level": "the quantile that is predicted (default: 0.5)",
    "quantile-smoothing": "width of the smoothing, in interquartile ranges (default: 0.05)",
}


def parser() -> Parser:
    """The parser of the whole command line."""
    top = Parser(
        prog="clustruct",
        description="Linear models whose features, samples or tasks share weights in groups.",
    )
    top.add_argument("--version", action="version", version=f"clustruct {__version__}")
    top.set_defaults(json=False, debug=False)
    _add_common(
        top,
        "clustruct demo",
        "clustruct fit flats.csv --target rent --out flats.clustruct --report flats.html",
        "clustruct predict flats.clustruct new.csv --out rents.csv",
    )
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add in (_demo, _fit, _predict, _tariff, _report, _data, _reproduce):
        add(commands)
    return top


def _command(commands: Any, name: str, purpose: str, *examples: str) -> Parser:
    """A parser for the function `run` of the module of that name in `clustruct.cli.commands`."""
    description = f"{purpose[0].upper()}{purpose[1:]}."
    parser: Parser = commands.add_parser(name, help=purpose, description=description)
    parser.set_defaults(name=name, action="run")
    _add_common(parser, *examples)
    return parser


def _add_common(parser: Parser, *examples: str) -> None:
    """Options that may stand before or after the name of the command, and examples below them."""
    title = "example" if len(examples) == 1 else "examples"
    parser.epilog = "\n  ".join((f"{title}:", *examples))
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    unset = argparse.SUPPRESS  # or the command's default would undo what stands before its name
    parser.add_argument("--json", action="store_true", default=unset, help="print JSON")
    parser.add_argument(
        "--debug", action="store_true", default=unset, help="show the traceback of an error"
    )


def _add_model(parser: Parser) -> None:
    parser.add_argument("model", metavar="MODEL", help="model file that `clustruct fit` wrote")


def _add_table(parser: Parser) -> None:
    """The table to read, and how."""
    parser.add_argument(
        "data",
        metavar="DATA",
        help="CSV, TSV, Parquet, Arrow, JSON (lines, or an array of records) or libsvm (.svm) "
        "file, compressed or not; a folder of Parquet files; a NumPy matrix (.npy); - for standard "
        "input",
    )
    parser.add_argument("--format", choices=FORMATS, help="format, where the name does not tell")
    parser.add_argument(
        "--encoding", default="utf-8", metavar="NAME", help="of text files (default: %(default)s)"
    )
    parser.add_argument(
        "--out-of-core",
        choices=("auto", "yes", "no"),
        default="auto",
        help="read the table, of any format but libsvm, piece by piece (default: auto, where it "
        "does not fit into memory)",
    )
    parser.add_argument(
        "--max-size",
        type=size,
        metavar="SIZE",
        help="most bytes that a compressed, Parquet or Arrow file may unpack to, such as 500M or "
        "20G (default: 4G, or 100 times the file if that is more)",
    )


def _add_files(parser: Any, **files: str) -> None:
    """Files to write, each with what it is."""
    for name, what in files.items():
        parser.add_argument(f"--{name}", type=output, metavar="FILE", help=what)


def _add_folder(parser: Parser, folder: str, what: str) -> None:
    """The folder that `--out` names."""
    help = f"{what} (default: %(default)s)"
    parser.add_argument("--out", type=Path, default=Path(folder), metavar="DIR", help=help)


# ---- Commands


def _demo(commands: Any) -> None:
    parser = _command(
        commands,
        "demo",
        "fit features, samples and tasks to real and generated tables, and write reports",
        "clustruct demo --out demonstration",
    )
    _add_folder(parser, "clustruct-demo", "folder for tables, models and reports")


def _fit(commands: Any) -> None:
    parser = _command(
        commands,
        "fit",
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
    _add_table(parser)
    parser.add_argument(
        "--target",
        metavar="COL",
        help="column to predict (libsvm has its own); for a .npy matrix also the number of a "
        "column, or another .npy file",
    )
    _add_uses(parser)
    _add_columns(parser)
    _add_search(parser)
    _add_files(parser, out="model file to write", report="HTML report to write")


def _add_uses(parser: Parser) -> None:
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


def _add_columns(parser: Parser) -> None:
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
        columns.add_argument(f"--{name}", **{**COLUMNS, "metavar": metavar}, help=what)
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


def _add_search(parser: Parser) -> None:
    search = parser.add_argument_group("the model")
    search.add_argument(
        "--stability",
        type=resamples,
        metavar="N",
        help="refit to N halves of the rows, and tell whether the groups come again: as long as N "
        "fits, choosing included; 100 for a verdict",
    )
    search.add_argument(
        "--bootstrap",
        action="store_true",
        help="with --stability: draw as many rows as there are with replacement instead of halves, "
        "which gives intervals for values of groups and for relativities",
    )
    search.add_argument(
        "--keep-choice",
        action="store_true",
        help="with --stability: refit with the number of groups and the strengths that were "
        "chosen; much quicker, but says nothing about these",
    )
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


def _predict(commands: Any) -> None:
    parser = _command(
        commands,
        "predict",
        "predict with a saved model, one line for each row of a table",
        "clustruct predict flats.clustruct new.csv --out rents.csv",
        "clustruct predict flats.clustruct new.csv --keep address | head",
        "clustruct predict trips.clustruct trips/ --out fares.parquet",
    )
    _add_model(parser)
    _add_table(parser)
    formats = "CSV, TSV, Parquet, Arrow or JSON lines file to write"
    _add_files(parser, out=f"{formats} (default: CSV to standard output)")
    what = "columns of the table to write before the predictions"
    parser.add_argument("--keep", **COLUMNS, help=what)


def _tariff(commands: Any) -> None:
    parser = _command(
        commands,
        "tariff",
        "print the relativities of a saved model of factors, or write them as CSV, SQL or Python",
        "clustruct tariff policies.clustruct",
        "clustruct tariff policies.clustruct --reference fuel=gasoline --csv tariff.csv",
        "clustruct tariff policies.clustruct --sql rates.sql --table policies",
    )
    _add_model(parser)
    parser.add_argument(
        "--reference",
        **{**COLUMNS, "metavar": "COL=LEVEL"},
        help="levels whose relativity is 1, or 0 where effects are added (default: of each factor "
        "the level with the most exposure)",
    )
    _add_files(
        parser,
        csv="CSV file to write, a line for each level",
        sql="file to write a query of predictions to",
    )
    parser.add_argument(
        "--table", default="policies", metavar="NAME", help="of the query (default: %(default)s)"
    )
    _add_files(parser, python="module to write a function predict to")


def _report(commands: Any) -> None:
    parser = _command(
        commands,
        "report",
        "write an HTML report about a saved model and a table with targets",
        "clustruct report flats.clustruct flats.csv --out flats.html",
    )
    _add_model(parser)
    _add_table(parser)
    _add_files(parser, out="HTML file to write (default: %(default)s)")
    parser.set_defaults(out=Path("report.html"))


def _data(commands: Any) -> None:
    parser = _command(
        commands,
        "data",
        "list, fetch and show data sets to try things on",
        "clustruct data list",
        "clustruct data fetch reviews",
        "clustruct data show breast-cancer --out tumours.csv",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for name, what, example in (
        ("list", "list data sets, and where they are", "list"),
        ("fetch", "download the file of a data set", "fetch reviews"),
        (
            "show",
            "show the first rows, or write the table to a file",
            "show diabetes --out diabetes.csv",
        ),
    ):
        action = actions.add_parser(name, help=what)
        action.set_defaults(action=f"run_{name}")
        if name == "show":
            rows = "to show (default: %(default)s)"
            action.add_argument("--rows", type=whole, default=5, help=rows)
            _add_files(action, out="file to write all rows to")
        if name != "list":
            action.add_argument("dataset", metavar="NAME", help="as `clustruct data list` has it")
        _add_common(action, f"clustruct data {example}")


def _reproduce(commands: Any) -> None:
    parser = _command(
        commands,
        "reproduce",
        "run the experiments of the paper, and set its figures and ours side by side",
        "clustruct reproduce --quick",
        "clustruct reproduce table2 table3 --repetitions 10 --out results",
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="EXPERIMENT",
        help="table1, table2, table3, table4, table5, convergence, phase or all (default: all)",
    )
    what = "repetitions of each cell (default: as many as in the paper)"
    parser.add_argument("--repetitions", type=positive, metavar="N", help=what)
    what = "few repetitions and cells: a few minutes in all"
    parser.add_argument("--quick", action="store_true", help=what)
    what = "processes (default: one for each core)"
    parser.add_argument("--jobs", type=positive, metavar="N", help=what)
    _add_folder(
        parser,
        "clustruct-reproduction",
        "folder for results, tables, pictures and index.html; a run that was interrupted goes on "
        "with what is there",
    )
