"""``clustruct report``: an HTML page about a saved model."""

import argparse
from importlib.util import find_spec

from clustruct._extras import missing_extra
from clustruct.cli.application import load_model, read_some
from clustruct.cli.console import Console
from clustruct.cli.messages import as_json
from clustruct.reporting.comparing import samples


def run(args: argparse.Namespace, console: Console) -> None:
    """Load, read, write."""
    check_report()
    with console.progress("reading"):
        saved = load_model(args.model)
        rows = read_some(saved, args, console, samples.MOST_ROWS)
    if rows.y is None:
        raise ValueError(
            f"{rows.source} has no column {saved.target!r}, which the model predicts and the "
            "report compares with. Give a table with the targets."
        )
    with console.progress("writing the report"):
        from clustruct.reporting.build import report

        report(
            saved.model,
            rows.X,
            rows.y,
            args.out,
            tasks=rows.tasks,
            offset=rows.offset,
            title=title_of(saved.target, rows.source, rows.X.shape[0], rows.n_all),
            model_file=args.model,
            feature_names=saved.feature_names,
        )
    if args.json:
        console.say(as_json({"report": str(args.out), "rows": len(rows.y)}))
    else:
        console.say(f"Report: {args.out}")


def title_of(target: str, source: str, n_rows: int, n_all: int) -> str:
    """The title of a report; it says so if some rows only are shown."""
    some = f" ({n_rows:,} of {n_all:,} rows, drawn at random)" if n_rows < n_all else ""
    return f"{target} from {source}{some}"


def has_report() -> bool:
    """Whether what reports are made with is installed."""
    return find_spec("jinja2") is not None


def check_report() -> None:
    """Complain where what reports are made with is not installed."""
    if not has_report():
        raise missing_extra("jinja2", "a report", "report")
