"""``clustruct data``: tables to try things on."""

import argparse
import json

from clustruct.cli.commands.catalogue import CATALOGUE, find_entry
from clustruct.cli.console import Console
from clustruct.cli.messages import as_json
from clustruct.cli.writing import write_table
from clustruct.datasets._files import locate


def run_list(args: argparse.Namespace, console: Console) -> None:
    """Say which there are, and where they are."""
    names = ("name", "target", "what", "where")
    rows = [[getattr(entry, name) for name in names] for entry in CATALOGUE]
    if args.json:
        console.say(as_json([dict(zip(names, row, strict=True)) for row in rows]))
        return
    console.table(names, rows)
    console.say("`clustruct data show NAME --out FILE.csv` writes one of them as a table.")


def run_fetch(args: argparse.Namespace, console: Console) -> None:
    """Download the file of one, if it has any."""
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


def run_show(args: argparse.Namespace, console: Console) -> None:
    """Show the first rows, or write all of them."""
    entry = find_entry(args.dataset)
    with console.progress("loading"):
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
