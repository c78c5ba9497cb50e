"""``clustruct reproduce``: the experiments of the paper, its figures and ours side by side."""

import argparse
import json

from clustruct import __version__
from clustruct.cli.console import Console
from clustruct.cli.messages import BadUsage, did_you_mean
from clustruct.experiments import catalogue
from clustruct.experiments.reproduce import Reproduction, reproduce
from clustruct.experiments.runner import RunSettings, shown_progress


def run(args: argparse.Namespace, console: Console) -> None:
    """Run what is asked for and not yet there, and say what came of it."""
    known = catalogue.EXPERIMENTS
    every = not args.names or "all" in args.names
    for name in args.names:
        if name not in known and name != "all":
            hint = did_you_mean(name, [*known, "all"])
            raise BadUsage(f"there is no experiment {name!r}. {hint}")
    names = known if every else dict.fromkeys(args.names)
    settings = RunSettings(args.out, args.repetitions, args.quick, args.jobs)
    with shown_progress() as watch:
        found = reproduce([known[name] for name in names], settings, watch)
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


def _print(found: Reproduction, console: Console) -> None:
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
