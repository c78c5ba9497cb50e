"""Write the page of the documentation about the reproduction from the results on disk.

``python docs/reproduction/write_page.py`` reads the raw results in ``results/``, the log of the
runs and the explanations in ``notes/``, and writes the page beside this folder and the pictures
into it.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from drawings import DRAWINGS

from clustruct.experiments.catalogue import EXPERIMENTS
from clustruct.experiments.comparison import LEAST_COUNT
from clustruct.experiments.environment import environment_line
from clustruct.experiments.experiment import Experiment, Row
from clustruct.experiments.output.files import Section, make_sections, section_markdown
from clustruct.experiments.output.tables import Table
from clustruct.experiments.store import Store, write_whole

__all__ = ["write_document"]

INTRODUCTION = """\
# The paper, reproduced

Every table and figure of *Learning with Clustering Structure*, computed by one command:

```
pip install '.[experiments]'               # in a clone
clustruct reproduce all --out results      # or table1 ... table5, convergence, phase
clustruct reproduce all --quick            # a look in a few minutes
```

An interrupted run resumes where it stopped. Every repetition has its own seed, so that neither the
order nor the number of processes changes a bit of the results.

**How to read the tables.** Every method has three lines: the paper's mean and standard deviation,
ours, and a verdict. The verdict is `=` if the means differ by at most two standard errors of their
difference (rounding of the paper's last digit included), otherwise better or worse; smaller is
better. `auto`, which the paper does not have, is compared with the best of the paper's methods in
the column, which is named.
"""


def write_document(folder: Path, known: Mapping[str, Experiment] = EXPERIMENTS) -> Path:
    """Write the page beside `folder`, under its name, and the pictures into it.

    The folder holds ``results/``, ``runs.jsonl`` and ``notes/``.
    """
    log = folder / "runs.jsonl"
    runs = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    machine = environment_line(json.loads(runs[-1])) if runs else ""
    sections, complaint = make_sections(
        known, _rows(folder / "results", known), machine or "machine unknown"
    )
    if complaint:
        raise ImportError(complaint)
    parts = [INTRODUCTION.strip(), _effort(machine, sections), _overview(sections)]
    for section in sections:
        name = section.experiment.name
        for picture, svg in section.pictures.items():
            write_whole(folder / f"{name}-{picture}.svg", svg)
        note = folder / "notes" / f"{name}.md"
        text = note.read_text(encoding="utf-8") if note.exists() else ""
        parts.append(section_markdown(section, f"{folder.name}/{name}-", text).strip())
    parts.append(_drawn(folder))
    page = folder.with_suffix(".md")
    write_whole(page, "\n\n".join(parts) + "\n")
    return page


def _rows(folder: Path, known: Mapping[str, Experiment]) -> dict[str, list[Row]]:
    """The rows of each experiment that have the settings of its latest row."""
    found: dict[str, list[Row]] = {}
    for name, experiment in known.items():
        path = folder / f"{experiment.measurement.name}.jsonl"
        if path.exists():
            rows = list(Store(path).rows.values())
            cells = [*experiment.cells, *experiment.other_cells]
            settings = rows[-1].key.split()[-1] if rows else ""
            mine = [r for r in rows if r.cell in cells and r.key.endswith(settings)]
            found[name] = sorted(mine, key=lambda row: row.repetition)
    return found


def _effort(machine: str, sections: list[Section]) -> str:
    """The number of repetitions and the processor time behind the results."""
    keys = {row.key: row.seconds for s in sections for row in s.rows}
    seconds = sum(keys.values())
    words = (
        f"The figures below come from {len(keys)} repetitions and {seconds / 60:.0f} minutes of "
        f"processor time, about {seconds / 120:.0f} minutes on two free cores."
    )
    full = {
        (task.measurement.name, task.key)
        for section in sections
        for task in section.experiment.tasks(repetitions=None, quick=False)
    }
    if len(keys) < len(full):
        words += (
            f" A full run has {len(full)} repetitions: these results are incomplete. Cells with "
            f"fewer than {LEAST_COUNT} repetitions have no verdict; the same command with the "
            "folder of these results as `--out` computes the rest."
        )
    if machine:
        words += f" Computed on: {machine}."
    return words


def _overview(sections: list[Section]) -> str:
    """A table of the verdicts of all comparisons."""
    rows = [
        [section.experiment.title, *map(str, section.counts.values())]
        for section in sections
        if section.presentation.comparisons
    ]
    return Table("", ["", "agrees", "better", "worse"], rows).markdown().rstrip()


def _drawn(folder: Path) -> str:
    """Write the paper's two drawings, and return their Markdown."""
    parts = ["## The drawings of the paper"]
    for picture in DRAWINGS:
        write_whole(folder / f"{picture.name}.svg", picture.svg())
        parts.append(f"![{picture.caption}]({folder.name}/{picture.name}.svg)")
        parts.append(f"*{picture.caption}*")
    return "\n\n".join(parts)


if __name__ == "__main__":
    print(write_document(Path(__file__).parent))
