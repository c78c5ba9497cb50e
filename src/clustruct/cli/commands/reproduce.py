"""``clustruct reproduce``: the experiments of the paper, its figures and ours side by side."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clustruct import __version__
from clustruct.cli.console import Console
from clustruct.cli.messages import BadUsage, did_you_mean
from clustruct.cli.options import add_command

if TYPE_CHECKING:
    from clustruct.experiments.reproduce import Reproduction


def add(commands: Any) -> None:
    """Tell the parser of the command."""
    parser = add_command(
        commands,
        "reproduce",
        run,
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
    parser.add_argument(
        "--repetitions",
        type=_count,
        metavar="N",
        help="repetitions of each cell (default: as many as in the paper)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="few repetitions and cells: a few minutes in all"
    )
    parser.add_argument(
        "--jobs", type=_count, metavar="N", help="processes (default: one for each core)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("clustruct-reproduction"),
        metavar="DIR",
        help="folder for results, tables, pictures and index.html; a run that was interrupted "
        "goes on with what is there (default: %(default)s)",
    )


def _count(text: str) -> int:
    """A whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least 1")
    return int(text)


def run(args: argparse.Namespace, console: Console) -> None:
    """Run what is asked for and not yet there, and say what came of it."""
    from clustruct.experiments.catalogue import EXPERIMENTS
    from clustruct.experiments.progress import shown_progress
    from clustruct.experiments.reproduce import reproduce
    from clustruct.experiments.runner import RunSettings

    every = not args.names or "all" in args.names
    for name in args.names:
        if name not in EXPERIMENTS and name != "all":
            hint = did_you_mean(name, [*EXPERIMENTS, "all"])
            raise BadUsage(f"there is no experiment {name!r}. {hint}")
    names = EXPERIMENTS if every else dict.fromkeys(args.names)
    settings = RunSettings(args.out, args.repetitions, args.quick, args.jobs)
    with shown_progress() as watch:
        found = reproduce([EXPERIMENTS[name] for name in names], settings, watch)
    if args.json:
        console.say(json.dumps({"version": __version__, **found.to_dict()}))
    else:
        _print(found, console)
    for complaint in found.complaints:
        console.note(f"clustruct: {complaint}")
    outcome = found.outcome
    if outcome.interrupted:
        console.note(
            f"clustruct: {outcome.done} of {outcome.total} repetitions are kept in {args.out}; the "
            "same command goes on from there"
        )
        raise KeyboardInterrupt
    if found.complaints:
        raise ValueError("not all could be done, for the reasons above; the rest is complete.")


def _print(found: "Reproduction", console: Console) -> None:
    rows = []
    for section in found.sections:
        is_compared = section.presentation.comparisons
        counts = [str(count) if is_compared else "" for count in section.counts.values()]
        shown = " ".join(section.presentation.remarks)
        rows.append((section.experiment.name, str(len(section.rows)), *counts, shown))
    header = ("experiment", "repetitions", "agree", "better", "worse", "what it shows")
    console.table(header, rows, "The paper's figures and ours")
    outcome = found.outcome
    console.say(
        f"{outcome.computed} repetitions computed, {outcome.done} of {outcome.total} there; "
        f"{outcome.seconds:.0f} s of processor time, {outcome.wall:.0f} s."
    )
    if found.page is not None:
        console.say(f"Page: {found.page}")
