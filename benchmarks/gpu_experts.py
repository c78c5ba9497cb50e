"""Experts on a GPU by the array API: whole fits, a step of them, and the same on the CPU.

A section of gpu.py. By itself it runs with any library of arrays, to be tried out without a GPU:

    SCIPY_ARRAY_API=1 python benchmarks/gpu_experts.py --library array_api_strict --rows 20000

No column is without effect here, so that the search for starts, which is the host's, does without
the relevance prior. Above 40,000 rows of 100 columns device and memory begin with the same samples;
with fewer, memory searches on all.
"""

import argparse
import time
from importlib import import_module
from typing import Any

import numpy as np
import sklearn

import clustruct as cs
from clustruct.arrays import to_host
from clustruct.design import place
from clustruct.losses import SquaredLoss
from clustruct.objectives.linear import Response
from clustruct.objectives.samples.objective import SampleObjective

N_EXPERTS = 8
ALPHA = 1e-3
NOISE = 0.3
BLOCK = 1 << 18

Record = dict[str, Any]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", default="torch")
    parser.add_argument("--device", help="of the library; by default its own")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--width", type=int, default=100)
    parser.add_argument("--cpu-rows", type=int, default=200_000, help="rows of fits on both")
    options = parser.parse_args()
    sklearn.set_config(array_api_dispatch=True)
    library = import_module(options.library)
    measure(library, options.rows, options.width, device=options.device, cpu_rows=options.cpu_rows)


def measure(library: Any, rows: int, width: int, *, device: Any, cpu_rows: int) -> list[Record]:
    """A fit of many rows where they are, its steps, and a fit of fewer rows on both."""
    dtype = "float32"
    X, y, planted = _problem(library, rows, width, dtype, device)
    common = {"dtype": dtype, "rows": rows, "width": width, "experts": N_EXPERTS}
    model, seconds = _fit(library, X, y)
    found = to_host(model.experts_).astype(np.float64)
    fit = {
        "what": "experts",
        **common,
        "seconds": seconds,
        "steps": model.n_iter_,
        "objective": model.objective_,
        "worst_expert": _worst(found, planted),
    }
    records = [report(fit), report({"what": "experts, one step", **common, **_step(library, X, y)})]
    few = min(rows, cpu_rows)
    there, device_seconds = _fit(library, X[:few, :], y[:few])
    here, host_seconds = _fit(library, to_host(X[:few, :]), to_host(y[:few]))
    apart = np.abs(to_host(there.experts_) - here.experts_).max() / np.abs(here.experts_).max()
    records.append(
        report(
            {
                "what": "experts against the CPU",
                **common,
                "rows": few,
                "seconds": device_seconds,
                "cpu_seconds": host_seconds,
                "ratio": host_seconds / device_seconds,
                "apart": float(apart),
                "other_experts": int((to_host(there.labels_) != here.labels_).sum()),
            }
        )
    )
    return records


def report(record: Record) -> Record:
    """Print a line, and hand it on."""
    print(
        "  ".join(
            f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in record.items()
        ),
        flush=True,
    )
    return record


def _problem(library: Any, rows: int, width: int, dtype: str, device: Any) -> tuple[Any, Any, Any]:
    """Samples, each answered by one of the experts with noise, brought there block by block."""
    rng = np.random.default_rng(0)
    experts = rng.standard_normal((N_EXPERTS, width))
    place = {} if device is None else {"device": device}
    X = library.empty((rows, width), dtype=getattr(library, dtype), **place)
    y = np.empty(rows, dtype=dtype)
    for first in range(0, rows, BLOCK):
        last = min(first + BLOCK, rows)
        block = rng.standard_normal((last - first, width), dtype=np.float32)
        labels = rng.integers(0, N_EXPERTS, last - first)
        scores = np.take_along_axis(block @ experts.T, labels[:, None], axis=1)[:, 0]
        y[first:last] = scores + NOISE * rng.standard_normal(last - first)
        X[first:last, :] = library.asarray(block.astype(dtype), **place)
    return X, library.asarray(y, **place), experts


def _fit(library: Any, X: Any, y: Any) -> tuple[Any, float]:
    """A fitted model, and its seconds."""
    _wait(library)
    start = time.perf_counter()
    model = cs.SampleClusterRegressor(
        N_EXPERTS, alpha=ALPHA, solver="em", solver_options={"relevance": False}, random_state=0
    ).fit(X, y)
    _wait(library)
    return model, time.perf_counter() - start


def _step(library: Any, X: Any, y: Any) -> Record:
    """Milliseconds of the two halves of a step of alternating minimisation, the least of three."""
    design = place(X, lambda matrix, **checks: matrix)
    n, d = design.shape
    shares = design.place(np.full(n, 1.0 / n))
    target = design.map(lambda answers: answers[:, None], design.place(to_host(y).astype(float)))
    response = Response(target, SquaredLoss(), 1, shares, True)
    objective = SampleObjective(design, response, ALPHA)
    W = np.random.default_rng(1).standard_normal((N_EXPERTS, d, 1))
    panel = objective.panel(W, np.zeros((N_EXPERTS, 1)))
    times = {"assign_ms": [], "assign_and_refit_ms": []}
    for _ in range(3):
        _clock(library, times["assign_ms"], lambda: objective.judged(W, np.zeros((N_EXPERTS, 1))))
        _clock(
            library, times["assign_and_refit_ms"], lambda: objective.fit_groups(panel.labels, 1e-6)
        )
    return {name: min(each) for name, each in times.items()}


def _clock(library: Any, times: list[float], call: Any) -> None:
    _wait(library)
    start = time.perf_counter()
    call()
    _wait(library)
    times.append(1e3 * (time.perf_counter() - start))


def _wait(library: Any) -> None:
    """For a GPU to have done what it was asked."""
    cuda = getattr(library, "cuda", None)
    if cuda is not None and cuda.is_available():
        cuda.synchronize()


def _worst(found: Any, planted: Any) -> float:
    """How far the planted expert that was found worst is from the nearest one found, relatively."""
    apart = np.linalg.norm(planted[:, None] - found, axis=2).min(axis=1)
    return float((apart / np.linalg.norm(planted, axis=1)).max())


if __name__ == "__main__":
    main()
