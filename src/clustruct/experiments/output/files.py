"""The files that a run writes: tables, pictures and a page, all computed from the rows on disk."""

import base64
import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from clustruct import __version__
from clustruct._extras import load_extra
from clustruct.experiments.environment import environment, environment_line
from clustruct.experiments.experiment import Experiment, Presentation, Row
from clustruct.experiments.output.tables import comparison_table, entries_table, records_table
from clustruct.experiments.store import write_whole


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
        folder, shown = out / section.experiment.name, section.presentation
        records = [
            {**row.cell, "repetition": row.repetition, "seconds": row.seconds, **row.values}
            for row in section.rows
        ]
        write_whole(folder / "results.csv", records_table("Results", records).csv())
        write_whole(folder / "environment.txt", section.facts + "\n")
        for name, svg in section.pictures.items():
            write_whole(folder / f"{name}.svg", svg)
        for kind, tables in (
            ("table", map(entries_table, shown.comparisons)),
            ("detail", shown.tables),
        ):
            for number, table in enumerate(tables):
                name = kind if number == 0 else f"{kind}-{number + 1}"
                write_whole(folder / f"{name}.csv", table.csv())
        write_whole(folder / "table.md", section_markdown(section, ""))


def section_markdown(section: Section, pictures_at: str, explanation: str = "") -> str:
    """A section of a document; `explanation` goes below the tables.

    `pictures_at` is put before the names of the pictures.
    """
    experiment, shown = section.experiment, section.presentation
    parts = [f"## {experiment.title}", experiment.about]
    if shown.remarks:
        parts.append("\n".join(f"- {_escaped(remark)}" for remark in shown.remarks))
    for comparison in shown.comparisons:
        parts.append(comparison_table(comparison).markdown())
        parts.append(
            "{agrees} cells agree, {better} are better, {worse} are worse.".format(**section.counts)
        )
    if explanation:
        parts.append(explanation.strip())
    for picture in shown.pictures:
        if picture.name in section.pictures:
            parts.append(f"![{picture.caption}]({pictures_at}{picture.name}.svg)")
            parts.append(f"*{_escaped(picture.caption)}*")
    for table in shown.tables:
        parts += [f"**{_escaped(table.title)}**", table.markdown()]
    if experiment.readings:
        parts.append("Readings of the paper:")
        parts.append("\n".join(f"- {_escaped(reading)}" for reading in experiment.readings))
    parts.append(f"<small>{html.escape(section.facts)}</small>")
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _escaped(text: str) -> str:
    """Text with the characters escaped that Markdown would interpret."""
    return text.replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")


def render_page(sections: Sequence[Section], missing: Mapping[str, str]) -> str:
    """The HTML page; `missing` gives the reason for each experiment that could not run."""
    jinja2 = load_extra("jinja2", "The page", "experiments")
    source = files("clustruct.experiments") / "templates" / "page.html"
    engine = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    template = engine.from_string(source.read_text(encoding="utf-8"))

    def data_url(svg: str) -> str:
        return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()

    known = {"version": __version__, "data_url": data_url, "prose": _prose}
    text: str = template.render(sections=sections, missing=missing, **known)
    return text


def _prose(text: str) -> Any:
    """Escaped text, with names between backticks set as code."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", str(escape(text))))
