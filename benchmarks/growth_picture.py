"""How long fits take as one size grows and the others stay, on logarithmic axes."""

from itertools import groupby
from pathlib import Path
from typing import Any

COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00")

Record = dict[str, Any]


def draw(records: list[Record], title: str, path: Path) -> bool:
    """A line for each series of cases of growing size; False if there is none.

    A series is a run of records of the same `part` or `series`, whose cases differ in one number.
    """
    from matplotlib.figure import Figure

    lines = _lines(records)
    if not lines:
        return False
    figure = Figure(figsize=(6.5, 4.5), layout="constrained", facecolor="white")
    axes = figure.subplots()
    for colour, (name, (sizes, seconds)) in zip(COLOURS, lines.items(), strict=False):
        axes.plot(sizes, seconds, "o-", color=colour, label=f"{name}, from {sizes[0]:,}")
    for sizes, seconds in lines.values():
        proportional = [seconds[0] * size / sizes[0] for size in sizes]
        axes.plot(sizes, proportional, ":", color="0.6", zorder=1)
    axes.plot([], [], ":", color="0.6", label="in proportion to size")
    axes.set(xscale="log", yscale="log", xlabel="size of what grows", ylabel="seconds a fit")
    axes.grid(which="major", color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)
    axes.set_title(title, loc="left", fontweight="bold")
    figure.savefig(path, metadata={"Date": None})
    return True


def _lines(records: list[Record]) -> dict[str, tuple[list[int], list[float]]]:
    """Sizes and times of every series."""
    lines = {}
    timed = [record for record in records if "case" in record]
    for name, run in groupby(timed, key=lambda record: record.get("series", record.get("part"))):
        cases = list(run)
        moving = [
            place for place, sizes in enumerate(zip(*(r["case"] for r in cases), strict=True))
            if len(set(sizes)) == len(cases) > 1
        ]  # fmt: skip
        if moving:
            sizes = [record["case"][moving[0]] for record in cases]
            lines[name.removeprefix("growth, ")] = sizes, [r["seconds"] for r in cases]
    return lines
