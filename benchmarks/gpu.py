"""Fits on a GPU by the array API: passes, steps of projected gradient, whole fits against the CPU.

Not a section of run.py, as it needs a GPU that most machines have not:

    SCIPY_ARRAY_API=1 python benchmarks/gpu.py --out gpu.json

`--device cpu --rows 20000 --width 500` tries the script itself out. Experts, a section of their own,
need no torch to be tried out: `benchmarks/gpu_experts.py`.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpu_experts
import numpy as np
import sklearn
import torch

import clustruct as cs
from clustruct.constraints import Clustered
from clustruct.design.device import DeviceDesign
from clustruct.losses import SquaredLoss
from clustruct.objectives.features import FeatureObjective
from clustruct.objectives.linear import Response
from gpu_experts import report as _report

N_CLUSTERS = 15
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
    for dtype in ("float32", "float64"):
        records += gpu_experts.measure(
            torch, options.expert_rows, 100, dtype, device=options.device, cpu_rows=options.cpu_rows
        )
    (step,) = (r["step_ms"] for r in records if r["what"] == "passes" and r["dtype"] == "float32")
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


def _passes(X: Any, y: Any, dtype: str) -> Record:
    """One product each way, and what a step of projected gradient is made of."""
    design = DeviceDesign(X)
    n, d = design.shape
    shares = torch.full((n,), 1.0 / n, dtype=torch.float64, device=X.device)
    response = Response(y.double()[:, None], SquaredLoss(), 1, shares, True)
    objective = FeatureObjective(design, response, ALPHA)
    constraint = Clustered(N_CLUSTERS)
    rng = np.random.default_rng(0)
    point = objective.at(rng.standard_normal((d, 1)) * 0.1)
    gradient = objective.gradient(point)

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
        "ray_ms": _clock(lambda: objective.ray(point)),
        "refit_ms": _clock(lambda: objective.refit(nearest.labels, N_CLUSTERS, 1e-10)),
        "raw_scores_ms": _clock(lambda: X @ X[0]),
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
