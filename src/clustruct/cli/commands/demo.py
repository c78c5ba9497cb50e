"""``clustruct demo``: real jobs from end to end, by the commands that anybody would type."""

import argparse
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clustruct import __version__, cli
from clustruct.cli.commands.catalogue import find_entry
from clustruct.cli.commands.report import has_report
from clustruct.cli.console import Console
from clustruct.cli.messages import as_json
from clustruct.datasets._files import locate


@dataclass(frozen=True)
class Job:
    """A table and what to do with it."""

    title: str
    dataset: str  # name in the catalogue
    ending: str  # of the file that the table is written to
    options: str  # of ``clustruct fit``


JOBS = (
    Job(
        "Features: which measurements of a tumour count the same?",
        "breast-cancer",
        "csv",
        "--target diagnosis --clusters 2:8 --nonzero all",
    ),
    Job(
        "Samples: rows that follow three different rules, and nothing says which",
        "made-experts",
        "csv",
        "--target y --samples --clusters 1:5",
    ),
    Job(
        "Tasks: 24 small problems, some of which are alike",
        "made-tasks",
        "csv",
        "--target y --tasks task --clusters 1:5",
    ),
    Job(
        "Words: movie reviews, whose words share a few weights",
        "reviews",
        "jsonl",
        "--target rating --text review --drop critic --clusters 5,10,15 --nonzero all",
    ),
)


def run(args: argparse.Namespace, console: Console) -> None:
    """Do each job whose table is here."""
    args.out.mkdir(parents=True, exist_ok=True)
    done = [_do(job, args, console) for job in JOBS if _is_here(job)]
    reports = [Path(job["report"]).name for job in done if job["report"]]
    if args.json:
        console.say(as_json({"version": __version__, "jobs": done}))
    elif reports:
        console.say(f"Open the reports in {args.out.resolve()}: {', '.join(reports)}")


def _is_here(job: Job) -> bool:
    """Whether the table is embedded, or was downloaded before."""
    try:
        if files := find_entry(job.dataset).files:
            locate(*files, data_home=None, download_if_missing=False)
    except OSError:
        return False
    return True


def _do(job: Job, args: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Write the table, fit the model, say with which commands."""
    table = args.out / f"{job.dataset}.{job.ending}"
    model, page = table.with_suffix(".clustruct"), table.with_suffix(".html")
    commands = [
        ["data", "show", job.dataset, "--out", str(table)],
        ["fit", str(table), *job.options.split(), "--out", str(model)],
    ]
    if has_report():
        commands[1] += ["--report", str(page)]
    lines = [f"clustruct {' '.join(command)}" for command in commands]
    tell = (lambda text: None) if args.json else console.say
    tell(f"=== {job.title}")
    for line, command in zip(lines, commands, strict=True):
        tell(f"$ {line}")
        result = _run(command, args.json or command[0] == "data", console)
    tell("")
    report = str(page) if has_report() else None
    return {
        "title": job.title,
        "commands": lines,
        "model": str(model),
        "report": report,
        "result": result,
    }


def _run(command: list[str], quiet: bool, console: Console) -> Any:
    """Run a command; return its result as plain values where it is not printed."""
    args = cli.parser().parse_args([*command, *(["--json"] if quiet else [])])
    if not quiet:
        cli.run(args, console)
        return None
    result = io.StringIO()
    cli.run(args, Console(out=result))
    return json.loads(result.getvalue())
