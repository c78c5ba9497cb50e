"""The command ``clustruct reproduce``: run experiments, write what they show, and tell."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clustruct.experiments.environment import environment
from clustruct.experiments.experiment import Experiment
from clustruct.experiments.output.files import Section, make_sections, write_sections
from clustruct.experiments.output.page import render_page
from clustruct.experiments.runner import Outcome, Plan, Progress, run_experiments
from clustruct.experiments.store import locked, write_whole

__all__ = ["Reproduction", "reproduce"]


@dataclass(frozen=True)
class Reproduction:
    """What a run of some experiments came to.

    Attributes
    ----------
    outcome : Outcome
    sections : list of Section
    page : Path or None
        The page over all of them.
    complaints : list of str
        What could not be done, with the remedy.
    """

    outcome: Outcome
    sections: list[Section]
    page: Path | None
    complaints: list[str]

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        return {
            "done": self.outcome.done,
            "total": self.outcome.total,
            "computed": self.outcome.computed,
            "processor_seconds": round(self.outcome.seconds, 1),
            "wall_seconds": round(self.outcome.wall, 1),
            "page": None if self.page is None else str(self.page),
            "complaints": self.complaints,
            "experiments": {
                section.experiment.name: {
                    "repetitions": len(section.rows),
                    **section.counts,
                    "remarks": list(section.presentation.remarks),
                }
                for section in self.sections
            },
        }


def reproduce(
    experiments: Sequence[Experiment],
    plan: Plan,
    watch: Callable[[Progress], None] = lambda progress: None,
) -> Reproduction:
    """Run what is not yet done, and write tables, pictures and the page of all that is.

    Parameters
    ----------
    experiments : sequence of Experiment
    plan : Plan
    watch : callable
        Told of every repetition that is done.

    Returns
    -------
    Reproduction
        After Ctrl-C, of what was done until then.
    """
    with locked(plan.out):
        outcome = run_experiments(experiments, plan, watch)
        _log(outcome, plan)
        named = {experiment.name: experiment for experiment in experiments}
        sections, complaint = make_sections(named, outcome.rows)
        write_sections(sections, plan.out)
        complaints = [f"{name} was left out: {why}" for name, why in outcome.missing.items()]
        complaints += [*outcome.failures, *([complaint] if complaint else [])]
        page: Path | None = plan.out / "index.html"
        try:
            write_whole(plan.out / "index.html", render_page(sections, outcome.missing))
        except ImportError as error:
            complaints.append(str(error))
            page = None
    return Reproduction(outcome, sections, page, complaints + _without_oscar(experiments))


def _without_oscar(experiments: Sequence[Experiment]) -> list[str]:
    """A remark where the tables lack the column of OSCAR."""
    from clustruct.experiments.paper.baselines import oscar_version

    concerned = [e.name for e in experiments if "oscar" in e.measurement.settings()]
    if not concerned or oscar_version() is not None:
        return []
    return [
        f"OSCAR was left out of {', '.join(concerned)}: it is fitted by the package sortedl1, "
        "which `pip install clustruct[experiments]` installs. Run again to fill it in."
    ]


def _log(outcome: Outcome, plan: Plan) -> None:
    """A line about this run, for readers who ask how long it took and where."""
    if not outcome.computed:
        return
    line = {
        "computed": outcome.computed,
        "done": outcome.done,
        "total": outcome.total,
        "jobs": plan.n_jobs,
        "processor seconds": round(outcome.seconds, 1),
        "wall seconds": round(outcome.wall, 1),
        **environment(),
    }
    with (plan.out / "runs.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
