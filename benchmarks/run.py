"""Measure speed and memory of clustruct, and compare with other packages.

Prints tables and whether the targets are met, and writes the figures as JSON, with a picture.
See README.md in this folder.
"""

import argparse
import json
import os
from pathlib import Path
from typing import Any

import choosing
import classes
import costs
import experts
import factors
import growth
import growth_picture
import imports
import kmeans
import matrices
import memory
import picture
import planted_experts
import recovery
import reviews
import scale
import sparse_projection
import speed_table
import tariffs
import tasks
import terrains
import threads
import trust
from report import Options, Target, environment

SECTIONS: dict[str, Any] = {
    "kmeans": kmeans,
    "matrices": matrices,
    "sparse": sparse_projection,
    "memory": memory,
    "threads": threads,
    "import": imports,
    "recovery": recovery,
    "growth": growth,
    "choosing": choosing,
    "classes": classes,
    "reviews": reviews,
    "experts": experts,
    "planted": planted_experts,
    "scale": scale,
    "costs": costs,
    "tasks": tasks,
    "terrains": terrains,
    "tariffs": tariffs,
    "factors": factors,
    "trust": trust,
}
# Sections whose records tell how time grows with size.
GROWING = {"growth": "Features", "experts": "Samples", "tasks": "Tasks"}
RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """Run the sections asked for, report on each, then on all targets."""
    options = _parser().parse_args()
    if options.size is not None and options.only != ["kmeans"]:
        raise SystemExit("--size is for the section kmeans: give --only kmeans, and no other.")
    if options.update_page and options.quick:
        raise SystemExit("The documentation quotes full runs only: leave out --quick.")
    out = options.out or (RESULTS / "quick" if options.quick else RESULTS)
    out.mkdir(parents=True, exist_ok=True)
    if not options.show:
        _require_compiled_kernels()
    targets: list[Target] = []
    for name in options.only or SECTIONS:
        path = out / f"{name}.json"
        if not options.show:
            facts = environment()
            kept = [] if options.size is None else _read(path)["records"]
            kept = [record for record in kept if record["n"] != options.size]
            wanted = Options(options.quick, options.repeats, options.size)
            records = SECTIONS[name].measure(wanted)
            if kept:
                records = sorted(records + kept, key=lambda record: record["n"])
            _write({"section": name, "environment": facts, "records": records}, path)
        results = _read(path)
        print(f"\n== {name}: {SECTIONS[name].__doc__.splitlines()[0]}\n")
        print(SECTIONS[name].table(results["records"]))
        targets += SECTIONS[name].targets(results["records"])
        if name == "kmeans":
            picture.draw(results["records"], out / "kmeans.png")
        if name in GROWING and not options.show:  # what is shown stays as it was measured
            title = f"{GROWING[name]}: time of a fit"
            growth_picture.draw(results["records"], title, out / f"{name}-growth.svg")
    print("\n== Targets\n", *targets, sep="\n")
    print(f"\nFigures and pictures: {os.path.relpath(out)}")
    if options.update_page:
        results = _read(out / "kmeans.json")
        speed_table.update(results["records"], results["environment"])
        print("docs/benchmarks.md quotes the figures for kmeans.")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--quick", action="store_true", help="smaller arrays only; results go to results/quick")
    add("--only", action="append", choices=SECTIONS, metavar="SECTION", help=", ".join(SECTIONS))
    sizes = ", ".join(map(str, kmeans.SIZES))
    add("--size", type=int, choices=kmeans.SIZES, metavar="N",
        help=f"measure arrays of this size only ({sizes}), the other figures stay; needs "
        "--only kmeans")  # fmt: skip
    add("--repeats", type=int, default=Options.repeats, help="timed calls; short ones get more")
    add("--out", type=Path, help="folder for the results, by default benchmarks/results")
    add("--show", action="store_true", help="measure nothing, report on the results in the folder")
    add(
        "--update-page", action="store_true", help="put the table of kmeans into docs/benchmarks.md"
    )
    return parser


def _require_compiled_kernels() -> None:
    from clustruct.kernels import COMPILED

    if not COMPILED:
        raise SystemExit("The kernels are not compiled, so there is nothing to measure: make bench")


def _write(results: dict[str, Any], path: Path) -> None:
    """Write JSON, a line for each record, so that changes read well."""
    head = json.dumps({**results, "records": []}, indent=1).removesuffix("[]\n}")
    records = ",\n  ".join(json.dumps(record) for record in results["records"])
    path.write_text(f"{head}[\n  {records}\n ]\n}}\n", encoding="utf-8")


def _read(path: Path) -> dict[str, Any]:
    try:
        results: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SystemExit(f"{path.name} is not in {os.path.relpath(path.parent)}") from None
    return results


if __name__ == "__main__":
    main()
