"""The command ``clustruct reproduce``: run experiments and write their tables, pictures, page."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clustruct.experiments.environment import environment
from clustruct.experiments.experiment import Experiment
from clustruct.experiments.output.files import Section, make_sections, render_page, write_sections
from clustruct.experiments.runner import Outcome, RunSettings, Watch, run_experiments
from clustruct.experiments.store import locked, write_whole


@dataclass(frozen=True)
class Reproduction:
    """The outcome of a run and the files written."""

    outcome: Outcome
    sections: list[Section]
    page: Path | None  # None without Jinja2
    complaints: list[str]  # what could not be done, with the remedy

    def to_dict(self) -> dict[str, Any]:
        """The JSON of ``clustruct reproduce --json``."""
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
    experiments: Sequence[Experiment], settings: RunSettings, watch: Watch = lambda outcome: None
) -> Reproduction:
    """Run the tasks that have no result yet, and write the files of all results.

    `watch` is called after every repetition. After Ctrl-C, the files cover the results so far.
    """
    with locked(settings.out):
        outcome = run_experiments(experiments, settings, watch)
        if outcome.computed:
            _log(outcome, settings)
        named = {experiment.name: experiment for experiment in experiments}
        sections, complaint = make_sections(named, outcome.rows)
        write_sections(sections, settings.out)
        complaints = [f"{name} was left out: {why}" for name, why in outcome.missing.items()]
        complaints += [*outcome.failures, *([complaint] if complaint else [])]
        page = None
        try:
            text = render_page(sections, outcome.missing)
            page = settings.out / "index.html"
            write_whole(page, text)
        except ImportError as error:
            complaints.append(str(error))
    return Reproduction(outcome, sections, page, complaints + _without_oscar(experiments))


def _without_oscar(experiments: Sequence[Experiment]) -> list[str]:
    """A remark if the package that fits OSCAR is missing and the tables have a column for it."""
    from clustruct.experiments.paper.baselines import oscar_version

    concerned = [e.name for e in experiments if "oscar" in e.measurement.settings]
    if not concerned or oscar_version() is not None:
        return []
    return [
        f"OSCAR was left out of {', '.join(concerned)}: it is fitted by the package sortedl1, "
        "which `pip install clustruct[experiments]` installs. Run again to fill it in."
    ]


def _log(outcome: Outcome, settings: RunSettings) -> None:
    """Append a line about this run: how long it took, and on which machine."""
    line = {
        "computed": outcome.computed,
        "done": outcome.done,
        "total": outcome.total,
        "jobs": settings.n_jobs,
        "processor seconds": round(outcome.seconds, 1),
        "wall seconds": round(outcome.wall, 1),
        **environment(),
    }
    with (settings.out / "runs.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
