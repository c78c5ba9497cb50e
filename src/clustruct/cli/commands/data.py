"""``clustruct data``: tables to try things on."""

import argparse
import json
from typing import Any

from clustruct.cli.console import Console
from clustruct.cli.messages import as_json
from clustruct.cli.options import add_command, add_common, output, whole


def add(commands: Any) -> None:
    """Tell the parser of the command."""
    parser = add_command(
        commands,
        "data",
        _list,
        "list, fetch and show data sets to try things on",
        "clustruct data list",
        "clustruct data fetch reviews",
        "clustruct data show breast-cancer --out tumours.csv",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="list data sets, and where they are")
    listing.set_defaults(command=_list)
    fetching = actions.add_parser("fetch", help="download the file of a data set")
    fetching.set_defaults(command=_fetch)
    showing = actions.add_parser("show", help="show the first rows, or write the table to a file")
    showing.set_defaults(command=_show)
    showing.add_argument("--rows", type=whole, default=5, help="to show (default: %(default)s)")
    showing.add_argument("--out", type=output, metavar="FILE", help="file to write all rows to")
    for action in (fetching, showing):
        action.add_argument("dataset", metavar="NAME", help="as `clustruct data list` has it")
    for action, example in (
        (listing, "clustruct data list"),
        (fetching, "clustruct data fetch reviews"),
        (showing, "clustruct data show diabetes --out diabetes.csv"),
    ):
        add_common(action, example)


def _list(args: argparse.Namespace, console: Console) -> None:
    from clustruct.cli.commands.catalogue import CATALOGUE

    names = ("name", "target", "what", "where")
    rows = [[getattr(entry, name) for name in names] for entry in CATALOGUE]
    if args.json:
        console.say(as_json([dict(zip(names, row, strict=True)) for row in rows]))
        return
    console.table(names, rows)
    console.say("`clustruct data show NAME --out FILE.csv` writes one of them as a table.")


def _fetch(args: argparse.Namespace, console: Console) -> None:
    from clustruct.cli.commands.catalogue import find_entry
    from clustruct.datasets._files import locate

    entry = find_entry(args.dataset)
    path = None
    if entry.files:
        with console.progress(f"fetching {entry.name}"):
            path = str(locate(*entry.files, data_home=None))
    if args.json:
        console.say(as_json({"name": entry.name, "path": path}))
    elif path is None:
        origin = entry.origin if entry.origin.startswith("comes") else f"is {entry.origin}"
        console.say(f"{entry.name} needs no file: it {origin}.")
    else:
        console.say(path)


def _show(args: argparse.Namespace, console: Console) -> None:
    with console.progress("loading"):
        from clustruct.cli.commands.catalogue import find_entry
        from clustruct.cli.writing import write_table

        entry = find_entry(args.dataset)
        frame = entry.load()
    if args.out is not None:
        write_table(frame, args.out)
    if args.json:
        content = {
            "name": entry.name,
            "rows": len(frame),
            "columns": list(frame.columns),
            "target": entry.target,
            "head": json.loads(frame.head(args.rows).to_json(orient="records")),
            "out": args.out,
        }
        console.say(as_json(content))
        return
    console.say(
        f"{entry.name}: {entry.what}, {len(frame)} rows of {frame.shape[1]} columns; "
        f"target {entry.target}."
    )
    rows = []
    for name in frame.columns[:60]:
        first = ", ".join(f"{x!s:.24}" for x in frame[name].head(args.rows))
        rows.append((str(name), f"{frame[name].dtype}", first))
    console.table(("column", "type", "first values"), rows)
    if args.out is not None:
        more = f" {entry.options}" if entry.options else ""
        console.say(
            f"Written to {args.out}. Try: clustruct fit {args.out} --target {entry.target}{more}"
        )
