"""The picture of the figures for ``kmeans_1d``."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import data
import kmeans
from peers import PEERS

# Safe for the colour-blind; settings of one package share a colour.
COLOURS = {
    kmeans.OURS: "#D55E00",
    kmeans.SORT: "#000000",
    "ckwrap": "#0072B2",
    "ckmeans-1d-dp": "#009E73",
    "kmeans1d": "#CC79A7",
    "jenkspy": "#E69F00",
}
SIZE_COLOURS = ("#9ECAE1", "#4292C6", "#08306B")

Record = dict[str, Any]


def draw(records: list[Record], path: Path) -> None:
    """Times by size above, ratios by shape below, a column for each Q."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 8.5), layout="constrained", facecolor="white")
    axes = figure.subplots(2, len(kmeans.N_CLUSTERS), sharex="row", sharey="row")
    for column, q in enumerate(kmeans.N_CLUSTERS):
        cases = [record for record in records if record["n_clusters"] == q]
        _draw_times(axes[0, column], cases)
        _draw_ratios(axes[1, column], cases)
        axes[0, column].set_title(f"Q = {q} groups", fontsize=12, fontweight="bold")
    axes[0, 0].set_ylabel("milliseconds a call")
    for axis in axes[:, -1]:
        axis.legend(loc="upper left", bbox_to_anchor=(1.02, 1), frameon=False)
    figure.suptitle(
        "Exact k-means of n numbers: medians over seven shapes of data (bands: all shapes)",
        x=0.01,
        ha="left",
        fontsize=14,
        fontweight="bold",
    )
    figure.savefig(path, dpi=110)


def _draw_times(axes: Any, cases: list[Record]) -> None:
    """Time against n for each package."""
    for name in (kmeans.OURS, kmeans.SORT, *PEERS):
        package = name.partition(",")[0]
        by_size = _by_size(cases, name)
        if not by_size:
            continue
        sizes = list(by_size)
        middle = [sorted(times)[len(times) // 2] for times in by_size.values()]
        axes.plot(
            sizes,
            middle,
            color=COLOURS[package],
            linestyle=":" if name == kmeans.SORT else "--" if "," in name else "-",
            linewidth=3 if name == kmeans.OURS else 1.6,
            marker="o",
            markersize=6 if name == kmeans.OURS else 4,
            label="numpy.argsort" if name == kmeans.SORT else name,
            zorder=3 if name == kmeans.OURS else 2,
        )
        if name in (kmeans.OURS, "ckwrap", "kmeans1d"):
            low, high = map(min, by_size.values()), map(max, by_size.values())
            axes.fill_between(
                sizes, list(low), list(high), color=COLOURS[package], alpha=0.15, linewidth=0
            )
    axes.set(xscale="log", yscale="log", xlabel="n")
    _tidy(axes)


def _by_size(cases: Iterable[Record], name: str) -> dict[int, list[float]]:
    """Milliseconds of a candidate for all shapes, by n."""
    by_size: dict[int, list[float]] = {}
    for record in cases:
        if "seconds" in record["candidates"][name]:
            times = by_size.setdefault(record["n"], [])
            times.append(1e3 * record["candidates"][name]["seconds"])
    return by_size


def _draw_ratios(axes: Any, cases: list[Record]) -> None:
    """The fastest peer's time over ours for each shape."""
    shapes = list(data.SHAPES)
    for n, colour in zip(kmeans.SIZES, SIZE_COLOURS, strict=True):
        ratios = {r["data"]: kmeans.ratio(r) for r in cases if r["n"] == n}
        known = {shape: ratio for shape, ratio in ratios.items() if ratio is not None}
        axes.scatter(
            list(known.values()),
            [shapes.index(shape) for shape in known],
            color=colour,
            s=60,
            edgecolor="white",
            linewidth=0.8,
            label=f"n = {n:,}",
            zorder=3,
        )
    axes.axvline(1, color="0.4", linewidth=1)
    axes.set_yticks(range(len(shapes)), shapes)
    axes.set_ylim(len(shapes) - 0.5, -0.5)
    axes.set(xscale="log", xlabel="fastest right peer's time / ours")
    axes.xaxis.set_major_formatter("{x:g} x")
    _tidy(axes)


def _tidy(axes: Any) -> None:
    axes.grid(color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
