"""Has a change made anything slower? The working tree against another revision, in turn.

    python benchmarks/revisions.py origin/main

The files of the revision are written to build/timing and compiled. Each round measures both, in
processes of their own and in changing order, so that a slow moment of the machine hits both alike.
A case counts as slower only if the median ratio and the median difference both exceed their limits:
ratios of short calls are noise, and so are differences of long ones. Then the exit status is 1.
"""

import argparse
import io
import json
import os
import shutil
import statistics
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
FOLDER = PROJECT / "build" / "timing"
COMPILED = ("src/clustruct/kernels", "setup.py")
CALLS = 5  # of each case in a round; the least counts
BUDGET = 2.0  # seconds of a case in a round, after which it is not called again


def cases() -> dict[str, Callable[[], object]]:
    """What is measured, by public names that the other revision has, too."""
    import numpy as np

    import clustruct as cs

    rng = np.random.default_rng(0)
    numbers, weights = rng.standard_normal(300_000), rng.standard_normal(200_000)
    features = cs.datasets.make_clustered_features(150, 100, 5, random_state=0)
    classes = cs.datasets.make_clustered_features(
        400, 30, 4, correlation=0.3, classification=True, random_state=0
    )
    experts = cs.datasets.make_experts(1000, 10, 3, random_state=0)
    X, Y = cs.datasets.make_clustered_tasks(40, 10, 40, 3, random_state=0).columns()
    few = cs.datasets.make_clustered_features(100, 12, 3, random_state=0)
    return {
        "kmeans_1d": lambda: cs.kmeans_1d(numbers, 15),
        "project_clustered": lambda: cs.project_clustered(weights, 5, n_nonzero=20_000),
        "features": lambda: cs.FeatureClusterRegressor(5, alpha=1e-3, random_state=0).fit(
            features.X, features.y
        ),
        "classes": lambda: cs.FeatureClusterClassifier(4, alpha=1e-2, random_state=0).fit(
            classes.X, classes.y
        ),
        "experts": lambda: cs.SampleClusterRegressor(3, random_state=0).fit(experts.X, experts.y),
        "tasks": lambda: cs.TaskClusterRegressor(3, random_state=0).fit(X, Y),
        "search": lambda: cs.FeatureClusterRegressorCV(cv=3, random_state=0).fit(few.X, few.y),
    }


def measure() -> dict[str, float | None]:
    """Processor seconds of each case, the least of a few calls; None if it is not possible."""
    import warnings

    warnings.simplefilter("ignore")
    found: dict[str, float | None] = {}
    for name, call in cases().items():
        try:
            call()
            times: list[float] = []
            while len(times) < CALLS and sum(times) < BUDGET:
                start = time.process_time()
                call()
                times.append(time.process_time() - start)
            found[name] = min(times)
        except (AttributeError, TypeError, ValueError):  # names that the revision does not have
            found[name] = None
    return found


def measured_in(root: Path) -> dict[str, float | None]:
    """Those figures for the package below a folder, in a process of its own and in one thread."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    done = subprocess.run(
        [sys.executable, str(Path(__file__).resolve()), "--measure"],
        env={**os.environ, **threads, "PYTHONPATH": str(root / "src")},
        cwd=root,
        check=True,
        text=True,
        stdout=subprocess.PIPE,
    )
    return json.loads(done.stdout)


def git(*words: str) -> bytes:
    done = subprocess.run(["git", *words], cwd=PROJECT, capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"git {' '.join(words)}: {done.stderr.decode().strip()}")
    return done.stdout


def unpack(revision: str) -> Path:
    """The files of a revision, with compiled kernels."""
    root = FOLDER / "base"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(git("archive", revision))) as archive:
        archive.extractall(root, filter="data")
    if not git("diff", "--name-only", revision, "--", *COMPILED):
        for path in (PROJECT / COMPILED[0]).glob("*.[sp][oy]*"):
            if path.suffix in (".so", ".pyd"):
                shutil.copy2(path, root / COMPILED[0])
    else:
        print(f"Compiling the kernels of {revision}", flush=True)
        command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
        subprocess.run(command, cwd=root, check=True, stdout=subprocess.DEVNULL)
    return root


def compare(base: Path, rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Pairs of seconds, of base and of head, for each case that both revisions have."""
    pairs: dict[str, list[tuple[float, float]]] = {}
    for turn in range(rounds):
        order = (base, PROJECT) if turn % 2 == 0 else (PROJECT, base)
        found = {root: measured_in(root) for root in order}
        for name in found[PROJECT]:
            before, after = found[base].get(name), found[PROJECT][name]
            if before is not None and after is not None:
                pairs.setdefault(name, []).append((before, after))
        print(f"round {turn + 1} of {rounds}", file=sys.stderr, flush=True)
    return pairs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("revision", nargs="?", default="origin/main", help="the base")
    parser.add_argument("--rounds", type=int, default=7, help="default: %(default)s")
    parser.add_argument("--ratio", type=float, default=1.3, help="default: %(default)s")
    parser.add_argument("--milliseconds", type=float, default=3.0, help="default: %(default)s")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure()))
        return
    pairs = compare(unpack(options.revision), options.rounds)
    slower = []
    print(f"{'case':18} {'base ms':>9} {'head ms':>9} {'ratio':>6}  (medians of {options.rounds})")
    for name, times in pairs.items():
        ratio = statistics.median(after / before for before, after in times)
        more = 1e3 * statistics.median(after - before for before, after in times)
        flagged = ratio > options.ratio and more > options.milliseconds
        slower += [name] if flagged else []
        before, after = (1e3 * statistics.median(column) for column in zip(*times, strict=True))
        mark = "  slower" if flagged else ""
        print(f"{name:18} {before:9.1f} {after:9.1f} {ratio:6.2f}{mark}")
    if slower:
        limits = f"{options.ratio:g} times and {options.milliseconds:g} ms"
        sys.exit(f"Slower than {options.revision} by more than {limits}: {', '.join(slower)}.")


if __name__ == "__main__":
    main()
