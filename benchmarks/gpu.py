"""Fits on a GPU by the array API: passes, steps of projected gradient, whole fits against the CPU.

Not a section of run.py, as it needs a GPU that most machines have not:

    SCIPY_ARRAY_API=1 python benchmarks/gpu.py --out gpu.json

`--device cpu --rows 20000 --width 500 --sparse 20000 --expert-rows 20000` tries the script itself
out. Experts, a section of their own, need no torch to be tried out: `benchmarks/gpu_experts.py`.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
import torch

import clustruct as cs
import gpu_experts
from clustruct.design import place
from clustruct.grouping.constraints import Clustered
from clustruct.grouping.device_kmeans import cluster_on_device
from clustruct.kernels.kmeans.kmeans1d import cluster_values
from clustruct.losses import SquaredLoss
from clustruct.objectives.features.objective import FeatureObjective
from clustruct.objectives.linear import Response
from gpu_experts import report as _report

N_CLUSTERS = 15
N_NONZERO = 100
ALPHA = 1e-3
STEP_LIMIT = 25.0  # milliseconds for a step of projected gradient at 2,000,000 x 5,000, float32
BLOCK = 1 << 16

Record = dict[str, Any]


def main() -> None:
    """Measure, print, write."""
    options = _parser().parse_args()
    sklearn.set_config(array_api_dispatch=True)
    records: list[Record] = []
    for dtype, rows in (("float32", options.rows), ("float64", options.rows // 2)):
        X, y = _problem(rows, options.width, dtype, options.device)
        records.append(_report(_passes(X, y, dtype)))
        records.append(_report(_fit(X, y, dtype, "squared")))
        records.append(_report(_fit(X, y > 0, dtype, "logistic")))
        few = min(rows, options.cpu_rows)
        for loss, answers in (("squared", y[:few]), ("logistic", y[:few] > 0)):
            records.append(_report(_against_cpu(X[:few], answers, dtype, loss)))
        del X, y
    records += gpu_experts.measure(
        torch, options.expert_rows, 100, device=options.device, cpu_rows=options.cpu_rows
    )
    records += [_report(record) for record in _projections(options)]
    records += [_report(record) for record in _sparse(options)]
    (step,) = (
        r["step_ms"]
        for r in records
        if r["what"] == "passes" and r["dtype"] == "float32" and "nonzeros" not in r
    )
    verdict = "PASS" if step <= STEP_LIMIT else "FAIL"
    print(f"{verdict}  a step of projected gradient <= {STEP_LIMIT} ms: {step:.1f}")
    if options.out:
        options.out.write_text(
            json.dumps({"device": _name(options.device), "records": records}, indent=1)
        )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--cpu-rows", type=int, default=200_000, help="rows of fits on both")
    parser.add_argument("--width", type=int, default=5000)
    parser.add_argument("--expert-rows", type=int, default=10_000_000, help="rows of 100 columns")
    parser.add_argument("--sparse", type=int, default=1_000_000, help="rows, columns of sparse X")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path)
    return parser


def _name(device: str) -> str:
    return torch.cuda.get_device_name() if device == "cuda" else device


def _problem(rows: int, width: int, dtype: str, device: str) -> tuple[Any, Any]:
    """Samples made where they stay, and answers of grouped weights with noise."""
    kind = getattr(torch, dtype)
    torch.manual_seed(0)
    X = torch.empty((rows, width), dtype=kind, device=device)
    for first in range(0, rows, BLOCK):
        X[first : first + BLOCK].normal_()
    values = np.linspace(-2.0, 2.0, N_CLUSTERS)
    w = torch.asarray(np.resize(values, width), dtype=kind, device=device)
    scores = X @ w
    return X, scores + scores.std() * 0.3 * torch.randn(rows, dtype=kind, device=device)


def _clock(call: Callable[[], object], repeats: int = 10) -> float:
    """Milliseconds of a call, the least of some, the first one apart."""
    call()
    times = []
    for _ in range(repeats):
        _wait()
        start = time.perf_counter()
        call()
        _wait()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _projections(options: argparse.Namespace) -> Iterator[Record]:
    """Numbers grouped on the host and on the device, where they have to go and come back from."""
    for size in (10_000, 100_000, 1_000_000, 10_000_000):
        if size > 10 * options.sparse:
            break
        values = np.random.default_rng(0).standard_normal(size)
        there = torch.asarray(values, device=options.device)
        here = cluster_values(values, None, N_CLUSTERS)
        moved = cluster_on_device(there, N_CLUSTERS)
        yield {
            "what": "projection",
            "width": size,
            "host_ms": _clock(lambda values=values: cluster_values(values, None, N_CLUSTERS), 5),
            "device_ms": _clock(
                lambda values=values: cluster_on_device(
                    torch.asarray(values, device=options.device), N_CLUSTERS
                )
            ),
            "sort_ms": _clock(lambda there=there: torch.sort(there)),
            "same": bool((here[0] == moved[0]).all()),
        }


def _sparse(options: argparse.Namespace) -> Iterator[Record]:
    """A sparse matrix that is as wide as it is tall, with 100 nonzeros a row."""
    n = options.sparse
    torch.manual_seed(0)
    place = {"device": options.device}
    columns = torch.randint(0, n, (n, N_NONZERO), dtype=torch.int32, **place).sort(dim=1).values
    X = torch.sparse_csr_tensor(
        torch.arange(0, n * N_NONZERO + 1, N_NONZERO, dtype=torch.int32, **place),
        columns.reshape(-1),
        torch.randn(n * N_NONZERO, dtype=torch.float32, **place),
        size=(n, n),
    )
    del columns
    w = torch.asarray(np.resize(np.linspace(-2.0, 2.0, N_CLUSTERS), n), dtype=X.dtype, **place)
    scores = X @ w
    y = scores + scores.std() * 0.3 * torch.randn(n, dtype=X.dtype, **place)
    for record in (_passes(X, y, "float32"), _fit(X, y, "float32", "squared")):
        yield {**record, "nonzeros": n * N_NONZERO}


def _passes(X: Any, y: Any, dtype: str) -> Record:
    """One product each way, and what a step of projected gradient is made of."""
    design = place(X, lambda matrix, **checks: matrix)
    n, d = design.shape
    shares = torch.full((n,), 1.0 / n, dtype=torch.float64, device=X.device)
    response = Response(y.double()[:, None], SquaredLoss(), 1, shares, True)
    objective = FeatureObjective(design, response, ALPHA)
    constraint = Clustered(N_CLUSTERS, design.cluster)
    rng = np.random.default_rng(0)
    point = objective.at(rng.standard_normal((d, 1)) * 0.1)
    gradient = objective.gradient(point)
    direction = torch.asarray(gradient[:, 0], dtype=X.dtype, device=X.device)

    def step() -> None:
        """A gradient, its projection, and the value there: the paper's iteration."""
        slope = objective.gradient(point)
        objective.keep(constraint.project(point.W - 0.1 * slope), near=point)

    nearest = constraint.project(point.W - 0.1 * gradient)
    return {
        "what": "passes",
        "dtype": dtype,
        "rows": n,
        "width": d,
        "scores_ms": _clock(lambda: design.scores(gradient)),
        "adjoint_ms": _clock(lambda: design.adjoint(point.slope)),
        "project_ms": _clock(lambda: constraint.project(point.W)),
        "step_ms": _clock(step),
        "ray_ms": _clock(lambda: objective.bend(point, objective.gradient(point))),
        "refit_ms": _clock(lambda: objective.refit(nearest.labels, N_CLUSTERS, 1e-10)),
        "raw_scores_ms": _clock(lambda: X @ direction),
    }


def _model(loss: str) -> Any:
    kind = cs.FeatureClusterRegressor if loss == "squared" else cs.FeatureClusterClassifier
    return kind(N_CLUSTERS, alpha=ALPHA, solver="pg")


def _timed_fit(X: Any, y: Any, loss: str) -> tuple[Any, float]:
    _wait()
    start = time.perf_counter()
    model = _model(loss).fit(X, y)
    _wait()
    return model, time.perf_counter() - start


def _fit(X: Any, y: Any, dtype: str, loss: str) -> Record:
    """A whole fit where X is."""
    model, seconds = _timed_fit(X, y, loss)
    return {
        "what": "fit",
        "dtype": dtype,
        "loss": loss,
        "rows": X.shape[0],
        "width": X.shape[1],
        "seconds": seconds,
        "steps": model.n_iter_,
        "step_seconds": seconds / max(1, model.n_iter_),
    }


def _against_cpu(X: Any, y: Any, dtype: str, loss: str) -> Record:
    """The same fit on the device and on the host's NumPy, and how well they agree."""
    there, device_seconds = _timed_fit(X, y, loss)
    host_X, host_y = X.cpu().numpy(), y.cpu().numpy()
    here, host_seconds = _timed_fit(host_X, host_y, loss)
    apart = np.abs(there.coef_.cpu().numpy() - here.coef_).max() / np.abs(here.coef_).max()
    return {
        "what": "against the CPU",
        "dtype": dtype,
        "loss": loss,
        "rows": X.shape[0],
        "width": X.shape[1],
        "seconds": device_seconds,
        "cpu_seconds": host_seconds,
        "ratio": host_seconds / device_seconds,
        "apart": float(apart),
        "same_groups": bool((there.labels_ == here.labels_).all()),
    }


if __name__ == "__main__":
    main()
