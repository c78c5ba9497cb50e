"""Tables of measured figures beside other packages, for the documentation.

``python benchmarks/compare.py FOLDER`` writes a Markdown table for each comparison into the folder,
from the stored results. Nothing is measured.
"""

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

RESULTS = Path(__file__).parent / "results"

Record = dict[str, Any]
Row = Sequence[str]


def records(section: str) -> list[Record]:
    """The stored records of a section."""
    stored = json.loads((RESULTS / f"{section}.json").read_text(encoding="utf-8"))
    return list(stored["records"])


def markdown(header: Row, rows: Iterable[Row]) -> str:
    """A table whose first column is text and whose others are figures."""
    marks = ["---"] + ["---:"] * (len(header) - 1)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, marks, *rows)) + "\n"


def grouped(chosen: Iterable[Record], key: Callable[[Record], Any]) -> dict[Any, list[Record]]:
    """Records with the same key, in the order in which keys come."""
    by: dict[Any, list[Record]] = {}
    for record in chosen:
        by.setdefault(key(record), []).append(record)
    return by


def paired(differences: Sequence[float], digits: int) -> str:
    """A mean difference with its standard error."""
    error = stdev(differences) / len(differences) ** 0.5
    return f"{mean(differences):+.{digits}f} ± {error:.{digits}f}".replace("-", "−")


def brief(value: float) -> str:
    """A number with two digits, or all before the point."""
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"


def vectors() -> str:
    """K-means of one vector: every peer over all cases of two sections."""
    cases = [("kmeans", case) for case in records("kmeans")]
    cases += [("matrices", case) for case in records("matrices") if case["rows"] == 1]
    peers = dict.fromkeys(name for _, case in cases for name in case["candidates"])
    rows = []
    for peer in [name for name in peers if name not in ("clustruct", "argsort")]:
        mine = [case["candidates"] for _, case in cases if peer in case["candidates"]]
        done = [case for case in mine if "seconds" in case[peer]]
        ratios = [case[peer]["seconds"] / case["clustruct"]["seconds"] for case in done]
        excess = max(case[peer].get("excess", 0.0) for case in done)
        slow = sum(ratio > 1 for ratio in ratios)
        rows.append(
            [
                f"`{peer}`",
                f"{len(done)} of {len(mine)}",
                brief(median(ratios)),
                f"{brief(min(ratios))} to {brief(max(ratios))}",
                f"{slow} of {len(done)}",
                "optimal" if excess < 1e-9 else f"up to {100 * excess:.0f} % more",
            ]
        )
    return markdown(
        ["", "cases done", "its time / ours, median", "range", "we are faster", "its inertia"], rows
    )


def found() -> str:
    """Planted groups of features: errors of the weights, means over the problems."""
    names = {
        "ridge": "ridge",
        "greedy": "ridge, k-means, refit",
        "auto": "clustruct",
        "oracle": "true groups",
    }
    rows = []
    for record in records("recovery"):
        if record["table"] in ("samples", "correlated") and record["n"] >= 60:
            case = f"{record['n']} samples" + (
                f", correlation {record['correlation']}" if record["correlation"] else ""
            )
            errors = record["errors"]
            rows.append(
                [case, str(len(errors["auto"])), *(f"{mean(errors[n]):.2f}" for n in names)]
            )
    return markdown(["100 features, 5 groups", "problems", *names.values()], rows)


def classes(kind: str) -> Callable[[], str]:
    """Time and held-out log loss of a search or a fit beside the peer's."""

    def table() -> str:
        rows = []
        for record in records("classes"):
            if record["kind"] == kind:
                time, loss = record["seconds"], record["log loss"]
                gain = f"{loss['ours'] - loss['peer']:+.4f} ± {record['standard error']:.4f}"
                rows.append(
                    [
                        record["table"],
                        "{} × {}, {}".format(*record["shape"]),
                        brief(time["ours"]),
                        brief(time["peer"]),
                        f"{loss['ours']:.4f}",
                        f"{loss['peer']:.4f}",
                        gain.replace("-", "−"),
                    ]
                )
        return markdown(
            [
                "",
                "rows × features, classes",
                "s, ours",
                "s, peer",
                "loss, ours",
                "loss, peer",
                "difference",
            ],
            rows,
        )

    return table


def tariffs() -> str:
    """Motor tariffs: deviance, number of effects and time, means over the splits."""
    by = grouped(records("tariffs"), lambda record: record["method"])
    ridge = [record["deviance"] for record in by["one-hot ridge"]]
    rows = []
    for method, mine in by.items():
        if "deviance" not in mine[0]:
            rows.append([method, mine[0]["left out"], "", "", ""])
            continue
        gain = [1e4 * (record["deviance"] - base) for record, base in zip(mine, ridge, strict=True)]
        effects = [record["effects"] for record in mine]
        rows.append(
            [
                method,
                f"{mean(record['deviance'] for record in mine):.5f}",
                "" if method == "one-hot ridge" else paired(gain, 1),
                "trees" if None in effects else f"{mean(effects):.0f}",
                brief(mean(record["seconds"] for record in mine)),
            ]
        )
    return markdown(["", "deviance", "10⁴ × difference to ridge", "effects", "s"], rows)


def clusterlearn() -> str:
    """R² on ClusterLearn's problems, with paired differences."""
    peer = "ClusterLearn"
    ours = ("clustruct, 5 folds", "clustruct, validation rows")
    problems = {"bike": "bike", "figure": "Figure 2"}
    chosen = (record for record in records("factors") if record["problem"] in problems)
    by = grouped(chosen, lambda record: f"{problems[record['problem']]}, n = {record['n']}")
    rows = []
    for case, mine in by.items():
        cells = [case]
        for name in ours:
            gain = [record["r2"][name] - record["r2"][peer] for record in mine]
            cells += [f"{mean(record['r2'][name] for record in mine):.3f}", paired(gain, 3)]
        time = [brief(median(r["seconds"][name] for r in mine)) for name in (ours[0], peer)]
        rows.append([*cells, f"{mean(r['r2'][peer] for r in mine):.3f}", *time])
    return markdown(
        ["", "5 folds", "difference", "validation rows", "difference", peer, "s, ours", "s, its"],
        rows,
    )


def levels() -> str:
    """Many levels of few rows: squared error beside a one-hot ridge."""
    chosen = (record for record in records("factors") if record["problem"] == "own")
    by = grouped(chosen, lambda record: (record["truth"], record["rows"]))
    rows = []
    for (truth, count), mine in by.items():
        pairs = [list(record["error"].values()) for record in mine]
        gain = [ours - ridge for ours, ridge in pairs]
        figures = [f"{mean(column):.3f}" for column in zip(*pairs, strict=True)]
        rows.append([truth, str(count), *figures, paired(gain, 3)])
    return markdown(["levels with", "rows each", "groups", "one-hot ridge", "difference"], rows)


def experts() -> str:
    """Planted mixtures: share solved and time."""
    names = {
        "auto": "`SampleClusterRegressor`, defaults",
        "em, own noise": 'the same, `solver="em"`, `noise="own"`',
        "huber": 'the same, `loss="huber"`',
        "Mix-IRLS": "Mix-IRLS, written after the paper",
        "Mix-IRLS, published": "Mix-IRLS, published Python",
        "EM, 20 starts": "mixture of regressions, EM from 20 starts",
    }
    rows = []
    for record in records("planted"):
        if record["part"] != "clusterwise":
            rows.append([f"**{record['part']}**", "", ""])
            rows += [
                [name, f"{100 * record['recovered'][key]:.0f} %", brief(record["seconds"][key])]
                for key, name in names.items()
                if key in record["recovered"]
            ]
    return markdown(["", "solved", "s"], rows)


def reviews() -> str:
    """Ratings of movie reviews: at most 15 weights beside ridge."""
    mine = records("reviews")
    splits = [record for record in mine if "split" in record]
    calls = {record["call"]: record["seconds"] for record in mine if "call" in record}
    gain = [record["error"]["clustered"] - record["error"]["ridge"] for record in splits]
    rows = []
    for name in ("clustered", "ridge"):
        error = mean(record["error"][name] for record in splits)
        time = [brief(call[name]) for call in calls.values()]
        difference = paired(gain, 3) if name == "clustered" else ""
        weights = "14 or 15" if name == "clustered" else "5623"
        rows.append([name, weights, f"{error:.3f}", difference, *time])
    return markdown(["", "distinct weights", "100 × squared error", "difference", *calls], rows)


TABLES: dict[str, Callable[[], str]] = {
    "vectors": vectors,
    "found": found,
    "searches": classes("search"),
    "fits": classes("fit"),
    "rivals": classes("rival"),
    "tariffs": tariffs,
    "clusterlearn": clusterlearn,
    "levels": levels,
    "experts": experts,
    "reviews": reviews,
}


def write(folder: Path) -> None:
    """Write all tables."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in TABLES.items():
        (folder / f"{name}.md").write_text(table(), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
