"""Cost of ``import clustruct`` against ``import numpy``, each in fresh processes."""

import statistics
import subprocess
import sys
from typing import Any

from report import Options, Table, Target, milliseconds

LIMIT = 1.5
LEAST_RUNS = 15
STATEMENTS = {
    "numpy": "import numpy",
    "clustruct": "import clustruct",
    "first use": "from clustruct import kmeans_1d",
}
# The clock runs in the new process, so the start of the interpreter is not in the figures.
CODE = "import time; start = time.perf_counter(); {}; print(time.perf_counter() - start)"

Record = dict[str, Any]


def measure(options: Options) -> list[Record]:
    """Import in turn, after one round that leaves everything compiled and in the file cache."""
    runs: dict[str, list[float]] = {name: [] for name in STATEMENTS}
    for _ in range(1 + max(LEAST_RUNS, options.repeats)):
        for name, statement in STATEMENTS.items():
            command = [sys.executable, "-P", "-c", CODE.format(statement)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            runs[name].append(float(done.stdout))
    return [
        {"name": name, "seconds": statistics.median(times[1:]), "runs": times[1:]}
        for name, times in runs.items()
    ]


def table(records: list[Record]) -> Table:
    """Times in milliseconds, a row for each statement."""
    times = {record["name"]: record["seconds"] for record in records}
    rows = [
        [STATEMENTS[name], milliseconds(times[name]), f"{times[name] / times['numpy']:.3f}"]
        for name in times
    ]
    return Table(["statement", "ms", "of numpy's"], rows)


def targets(records: list[Record]) -> list[Target]:
    """The import costs little more than that of NumPy, and in fact less."""
    times = {record["name"]: record["seconds"] for record in records}
    figure = times["clustruct"] / times["numpy"]
    detail = f"with the first name loaded: {times['first use'] / times['numpy']:.2f}"
    return [Target("import clustruct / import numpy", figure, LIMIT, detail=detail)]
