"""``clustruct reproduce``: the experiments of the paper."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clustruct import __version__
from clustruct._console import Console
from clustruct.cli.messages import as_json
from clustruct.cli.options import add_command, positive

if TYPE_CHECKING:
    from clustruct.experiments.reproduce import Reproduction

__all__ = ["add"]


def add(commands: Any) -> None:
    """Tell the parser of the command."""
    parser = add_command(
        commands,
        "reproduce",
        run,
        "run the experiments of the paper, and set its figures and ours side by side",
        "clustruct reproduce table2 --repetitions 10 --out results",
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="EXPERIMENT",
        help="table1, table2, table3, table4, table5, convergence, phase or all (default: all)",
    )
    parser.add_argument(
        "--repetitions",
        type=positive,
        metavar="N",
        help="repetitions of each cell (default: as many as in the paper)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="few repetitions and cells: a few minutes in all"
    )
    parser.add_argument(
        "--jobs", type=positive, metavar="N", help="processes (default: one for each core)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("clustruct-reproduction"),
        metavar="DIR",
        help="folder for results, tables, pictures and index.html; a run that was interrupted "
        "goes on with what is there (default: %(default)s)",
    )


def run(args: argparse.Namespace, console: Console) -> None:
    """Run the experiments, and tell what they show."""
    from clustruct.experiments.progress import shown_progress
    from clustruct.experiments.reproduce import chosen_experiments, reproduce
    from clustruct.experiments.runner import Plan

    plan = Plan(args.out, args.repetitions, args.quick, args.jobs)
    experiments = chosen_experiments(args.names)
    with shown_progress() as watch:
        found = reproduce(experiments, plan, watch)
    if args.json:
        console.say(as_json({"version": __version__, **found.to_dict()}))
    else:
        _print(found, console)
    for complaint in found.complaints:
        console.note(f"clustruct: {complaint}")
    if found.outcome.interrupted:
        done, total = found.outcome.done, found.outcome.total
        console.note(
            f"clustruct: {done} of {total} repetitions are kept in {args.out}. "
            "The same command goes on from there."
        )
        raise KeyboardInterrupt
    if found.complaints:
        raise ValueError("not everything could be done, see above; the rest is complete.")


def _print(found: "Reproduction", console: Console) -> None:
    console.table(
        ("experiment", "repetitions", "agree", "better", "worse", "what it shows"),
        [
            (
                section.experiment.name,
                str(len(section.rows)),
                *(
                    str(count) if section.presentation.comparisons else ""
                    for count in section.counts.values()
                ),
                " ".join(section.presentation.remarks),
            )
            for section in found.sections
        ],
        "The paper's figures and ours",
    )
    outcome = found.outcome
    console.say(
        f"{outcome.computed} repetitions computed, {outcome.done} of {outcome.total} there; "
        f"{outcome.seconds:.0f} s of processor time, {outcome.wall:.0f} s."
    )
    if found.page is not None:
        console.say(f"Page: {found.page}")
