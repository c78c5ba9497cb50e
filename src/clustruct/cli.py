"""The command line: parse, call, print.

Every command prints a table for people or, with ``--json``, one JSON object for programs. It exits
with 0, with 1 on bad data, with 2 on bad usage, and shows a traceback only with ``--debug``.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clustruct import __version__
from clustruct._console import Console

if TYPE_CHECKING:
    from clustruct.demo import Demo, Model
    from clustruct.experiments.reproduce import Reproduction

BAD_DATA = 1
INTERRUPTED = 130
PIPE_CLOSED = 141  # what shells report for a program that a closed pipe has ended

Command = Callable[[argparse.Namespace, Console], None]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; those of the process if None.

    Returns
    -------
    int
        The exit status. Bad usage raises ``SystemExit(2)`` instead, as argparse does.
    """
    args = _parser().parse_args(argv)
    console = Console()
    command: Command = args.command
    try:
        command(args, console)
        console.flush()
    except BrokenPipeError:
        console.abandon()
        return PIPE_CLOSED
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if args.debug:
            raise
        _complain(error)
        return BAD_DATA
    return 0


def _complain(error: Exception) -> None:
    """Say what is wrong; an error that no user can have caused is named and asks for a report."""
    if isinstance(error, (ValueError, OSError, ImportError)):
        print(f"clustruct: error: {error}", file=sys.stderr)
    else:
        name = type(error).__name__
        print(f"clustruct: unexpected {name}: {error} (--debug shows where)", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="clustruct",
        description="Linear models whose features, samples or tasks share weights in groups.",
        epilog="example:\n  clustruct demo --out pictures",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"clustruct {__version__}")
    parser.set_defaults(json=False, debug=False)
    _add_common(parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    demo = _add_command(
        commands,
        "demo",
        _demo,
        "show the exact projections at work on data that come with scikit-learn",
        "clustruct demo --out pictures",
    )
    demo.add_argument(
        "--out",
        type=Path,
        default=Path("clustruct-demo"),
        metavar="DIR",
        help="folder for the picture (default: %(default)s)",
    )
    _add_reproduce(commands)
    return parser


def _add_reproduce(commands: Any) -> None:
    parser = _add_command(
        commands,
        "reproduce",
        _reproduce,
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
        type=_positive,
        metavar="N",
        help="repetitions of each cell (default: as many as in the paper)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="few repetitions and cells: a few minutes in all"
    )
    parser.add_argument(
        "--jobs", type=_positive, metavar="N", help="processes (default: one for each core)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("clustruct-reproduction"),
        metavar="DIR",
        help="folder for results, tables, pictures and index.html; a run that was interrupted "
        "goes on with what is there (default: %(default)s)",
    )


def _positive(text: str) -> int:
    """An integer of at least 1, for argparse."""
    number = int(text)
    if number < 1:
        raise ValueError
    return number


_positive.__name__ = "number of at least 1"  # what argparse calls it in its message


def _add_command(
    commands: Any, name: str, command: Command, purpose: str, example: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=purpose,
        description=f"{purpose[0].upper()}{purpose[1:]}.",
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command=command)
    _add_common(parser)
    return parser


def _add_common(parser: argparse.ArgumentParser) -> None:
    """Options that may stand before or after the name of the command."""
    unset = argparse.SUPPRESS  # or the command's default would undo what stands before its name
    parser.add_argument("--json", action="store_true", default=unset, help="print JSON")
    parser.add_argument(
        "--debug", action="store_true", default=unset, help="show the traceback of an error"
    )


def _demo(args: argparse.Namespace, console: Console) -> None:
    with console.progress("fitting a ridge regression and projecting its weights"):
        from clustruct.demo import draw, run_demo

        demo = run_demo()
    try:
        with console.progress("drawing"):
            picture = str(draw(demo, args.out))
    except ImportError:
        picture = None
    if args.json:
        console.say(json.dumps({"version": __version__, **demo.to_dict(), "picture": picture}))
        return
    _print_demo(demo, console)
    if picture is None:
        console.say("No picture: matplotlib is not installed; `pip install matplotlib` gives one.")
    else:
        console.say(f"Picture: {picture}")


def _reproduce(args: argparse.Namespace, console: Console) -> None:
    from clustruct.experiments.progress import shown_progress
    from clustruct.experiments.reproduce import chosen_experiments, reproduce
    from clustruct.experiments.runner import Plan

    plan = Plan(args.out, args.repetitions, args.quick, args.jobs)
    experiments = chosen_experiments(args.names)
    with shown_progress() as watch:
        found = reproduce(experiments, plan, watch)
    if args.json:
        console.say(json.dumps({"version": __version__, **found.to_dict()}))
    else:
        _print_reproduction(found, console)
    for complaint in found.complaints:
        print(f"clustruct: {complaint}", file=sys.stderr)
    if found.outcome.interrupted:
        done, total = found.outcome.done, found.outcome.total
        print(
            f"clustruct: interrupted; {done} of {total} repetitions are kept in {args.out}. "
            "The same command goes on from there.",
            file=sys.stderr,
        )
        raise KeyboardInterrupt
    if found.complaints:
        raise ValueError("not everything could be done, see above; the rest is complete.")


def _print_reproduction(found: "Reproduction", console: Console) -> None:
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


def _print_demo(demo: "Demo", console: Console) -> None:
    console.say(f"Data: {demo.data}.")
    console.say(f"w: the weights that ridge regression gives {len(demo.features)} features.")
    console.say()
    for model in demo.projected:
        _print_groups(model, demo, console)
    console.table(
        ("lost", "R2", "accuracy", "weights"),
        [
            (f"{model.lost:.2%}", f"{model.r2:.3f}", f"{model.accuracy:.1%}", model.call)
            for model in (demo.full, *demo.projected)
        ],
        "What that costs: squared distance to w relative to |w|^2, and scores on held-out tumours",
    )
    console.table(
        ("groups", "lost at least", ""),
        [
            (str(q), f"{lost:.2%}", "█" * round(60 * lost))
            for q, lost in enumerate(demo.lost_by_n_clusters, start=1)
        ],
        "How many groups? kmeans_1d(w, Q).inertia relative to |w|^2",
    )


def _print_groups(model: "Model", demo: "Demo", console: Console) -> None:
    console.table(
        ("group", "weight", "size", "features"),
        [
            (
                "zero" if group.label < 0 else str(group.label),
                f"{group.weight:+.4f}" if group.label >= 0 else "0",
                str(len(group.features)),
                ", ".join(group.features),
            )
            for group in model.groups
        ],
        f"{model.call}: the nearest weights with that structure",
    )
    weight = dict(zip(demo.features, demo.full.weights, strict=True))
    console.number_line(
        [
            (
                "zero" if group.label < 0 else f"group {group.label}",
                [weight[name] for name in group.features],
                group.weight,
            )
            for group in model.groups
        ]
    )
    console.say()
