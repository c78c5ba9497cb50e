"""The files that a run writes: tables and pictures, all computed from the rows on disk."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from clustruct.experiments.environment import environment, environment_line
from clustruct.experiments.experiment import Experiment, Presentation, Row
from clustruct.experiments.output.tables import (
    comparison_csv,
    comparison_markdown,
    plain_csv,
    plain_markdown,
    raw_csv,
)
from clustruct.experiments.store import write_whole

__all__ = ["Section", "make_sections", "section_markdown", "write_sections"]


@dataclass(frozen=True)
class Section:
    """An experiment with its rows, tables and pictures."""

    experiment: Experiment
    rows: Sequence[Row]
    presentation: Presentation
    pictures: Mapping[str, str]  # SVG by name; empty without matplotlib
    facts: str  # a line about the machine

    @property
    def counts(self) -> dict[str, int]:
        """How many cells agree, are better and are worse."""
        return {
            verdict: sum(c.count(verdict) for c in self.presentation.comparisons)
            for verdict in ("agrees", "better", "worse")
        }


def make_sections(
    experiments: Mapping[str, Experiment],
    rows: Mapping[str, Sequence[Row]],
    facts: str | None = None,
) -> tuple[list[Section], str]:
    """Present the rows, by the name of the experiment, of all experiments that have any.

    `facts` describes the machine, by default this one. Also returns why there are no pictures,
    an empty text if there are.
    """
    line = environment_line(environment()) if facts is None else facts
    sections, complaint = [], ""
    for name, mine in rows.items():
        if not mine:
            continue
        presentation = experiments[name].present(mine)
        pictures = {}
        for picture in presentation.pictures:
            try:
                pictures[picture.name] = picture.svg()
            except ImportError as error:
                complaint = str(error)
        seconds = sum(row.seconds for row in mine)
        note = f"{line}; {len(mine)} repetitions, {seconds:.0f} s of processor time"
        sections.append(Section(experiments[name], mine, presentation, pictures, note))
    return sections, complaint


def write_sections(sections: Sequence[Section], out: Path) -> None:
    """Write the files of each experiment to its folder."""
    for section in sections:
        folder = out / section.experiment.name
        write_whole(folder / "results.csv", raw_csv(section.rows))
        write_whole(folder / "environment.txt", section.facts + "\n")
        for name, svg in section.pictures.items():
            write_whole(folder / f"{name}.svg", svg)
        for number, comparison in enumerate(section.presentation.comparisons):
            write_whole(folder / f"{_numbered('table', number)}.csv", comparison_csv(comparison))
        for number, table in enumerate(section.presentation.tables):
            write_whole(folder / f"{_numbered('detail', number)}.csv", plain_csv(table))
        write_whole(folder / "table.md", section_markdown(section, ""))


def _numbered(name: str, number: int) -> str:
    return name if number == 0 else f"{name}-{number + 1}"


def section_markdown(section: Section, pictures_at: str, explanation: str = "") -> str:
    """A section of a document; `explanation` goes below the tables.

    `pictures_at` is put before the names of the pictures.
    """
    experiment, shown = section.experiment, section.presentation
    parts = [f"## {experiment.title}", experiment.about]
    if shown.remarks:
        parts.append("\n".join(f"- {_escaped(remark)}" for remark in shown.remarks))
    for comparison in shown.comparisons:
        counts = section.counts
        parts.append(comparison_markdown(comparison))
        parts.append(
            f"{counts['agrees']} cells agree, {counts['better']} are better, "
            f"{counts['worse']} are worse."
        )
    if explanation:
        parts.append(explanation.strip())
    for picture in shown.pictures:
        if picture.name in section.pictures:
            parts.append(f"![{picture.caption}]({pictures_at}{picture.name}.svg)")
            parts.append(f"*{_escaped(picture.caption)}*")
    for table in shown.tables:
        parts += [f"**{_escaped(table.title)}**", plain_markdown(table)]
    if experiment.readings:
        parts.append("Readings of the paper:")
        parts.append("\n".join(f"- {_escaped(reading)}" for reading in experiment.readings))
    parts.append(f"<small>{html.escape(section.facts)}</small>")
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _escaped(text: str) -> str:
    """Text with the characters escaped that Markdown would interpret."""
    return text.replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")
