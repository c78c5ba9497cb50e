"""K-means of many rows on a GPU: the matrices of a language model, other shapes, and the CPU.

Not a section of run.py, as it needs a GPU that most machines have not:

    python benchmarks/gpu_rows.py --out gpu_rows.json

The matrices have the shapes of Llama 2 7B and random entries, each with a weight of its own. They
are made one at a time, which is not timed; a call is, from the tensor to all its results.
"""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from clustruct.grouping.device_rows import cluster_rows
from clustruct.kernels.kmeans.kmeans1d import cluster_values

WIDTH, INNER, VOCABULARY, N_LAYERS = 4096, 11008, 32000, 32
# Rows and entries of each, and how many of that shape there are.
MATRICES = (
    (WIDTH, WIDTH, 4 * N_LAYERS),
    (INNER, WIDTH, 2 * N_LAYERS),
    (WIDTH, INNER, N_LAYERS),
    (VOCABULARY, WIDTH, 2),
)
N_CLUSTERS = 16
LIMIT = 20.0  # seconds for the whole model

Record = dict[str, Any]


def main() -> None:
    """Measure, print, write."""
    options = _parser().parse_args()
    records = []
    for record in _measure(options):
        print("  ".join(f"{name} {_short(value)}" for name, value in record.items()), flush=True)
        records.append(record)
    slowest = max(record["seconds"] for record in records if record["what"] == "model")
    verdict = "PASS" if slowest <= LIMIT else "FAIL"
    print(f"{verdict}  all matrices of the model <= {LIMIT} s: {slowest:.1f}")
    if options.out:
        device = torch.cuda.get_device_name()
        options.out.write_text(json.dumps({"device": device, "records": records}, indent=1))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cpu-rows", type=int, default=64, help="rows that the CPU solves as well")
    parser.add_argument("--out", type=Path)
    return parser


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _measure(options: argparse.Namespace) -> Iterator[Record]:
    torch.manual_seed(0)
    start = time.perf_counter()
    cluster_rows(*_matrix(100, 100, torch.float32), 2)
    yield {"what": "first call", "seconds": time.perf_counter() - start}
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        yield _model(dtype)
    for n in (WIDTH, INNER):
        for n_clusters in (16, 256):
            yield _against_cpu(n, n_clusters, options.cpu_rows)
    for n_clusters in (2, 4, 8, 16, 64, 256):
        yield _shape(8192, WIDTH, n_clusters)
    for rows, n in ((500_000, 64), (250_000, 128), (32768, 1024), (4096, 14336), (1024, 65536)):
        yield _shape(rows, n, N_CLUSTERS)
    yield _shape(132, 1_000_000, N_CLUSTERS)


def _matrix(rows: int, n: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Entries and their weights."""
    x = torch.randn(rows, n, device="cuda").mul_(0.02).to(dtype)
    return x, torch.rand(rows, n, device="cuda")


def _seconds(x: torch.Tensor, weights: torch.Tensor, n_clusters: int) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    cluster_rows(x, weights, n_clusters)
    torch.cuda.synchronize()
    return time.perf_counter() - start


def _model(dtype: torch.dtype) -> Record:
    """All matrices once."""
    seconds, entries, most = 0.0, 0, 0
    for rows, n, count in MATRICES:
        for _ in range(count):
            x, weights = _matrix(rows, n, dtype)
            held = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()
            seconds += _seconds(x, weights, N_CLUSTERS)
            most = max(most, torch.cuda.max_memory_allocated() - held - x.numel())
            entries += x.numel()
    return {
        "what": "model",
        "dtype": str(dtype).removeprefix("torch."),
        "clusters": N_CLUSTERS,
        "entries": entries,
        "seconds": seconds,
        "entries_per_second": entries / seconds,
        "mb_beside_labels": most / 1e6,
    }


def _shape(rows: int, n: int, n_clusters: int) -> Record:
    """Rows of other lengths and numbers of clusters: the best of three calls."""
    x, weights = _matrix(rows, n, torch.float32)
    seconds = min(_seconds(x, weights, n_clusters) for _ in range(3))
    sort = min(_sort_seconds(x) for _ in range(3))
    return {
        "what": "shape",
        "rows": rows,
        "n": n,
        "clusters": n_clusters,
        "seconds": seconds,
        "entries_per_second": rows * n / seconds,
        "torch_sort_seconds": sort,
    }


def _sort_seconds(x: torch.Tensor) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    torch.sort(x, dim=1)
    torch.cuda.synchronize()
    return time.perf_counter() - start


def _against_cpu(n: int, n_clusters: int, rows: int) -> Record:
    """Whether the CPU finds the same groups, and what a row costs on one core of it."""
    x, weights = _matrix(8192, n, torch.float32)
    seconds = min(_seconds(x, weights, n_clusters) for _ in range(3))
    labels, _, _, _, inertia = (
        array[:rows].cpu().numpy() for array in cluster_rows(x, weights, n_clusters)
    )
    values = x[:rows].double().cpu().numpy()
    own = weights[:rows].double().cpu().numpy()
    start = time.perf_counter()
    found = [cluster_values(*row, n_clusters) for row in zip(values, own, strict=True)]
    cpu_seconds = time.perf_counter() - start
    least = np.array([row[3] for row in found])
    return {
        "what": "against the CPU",
        "n": n,
        "clusters": n_clusters,
        "microseconds": 1e6 * seconds / 8192,
        "cpu_microseconds": 1e6 * cpu_seconds / rows,
        "ratio": (cpu_seconds / rows) / (seconds / 8192),
        "same_rows": int(sum((a == b[0]).all() for a, b in zip(labels, found, strict=True))),
        "rows": rows,
        "most_excess": float(np.max(inertia / least - 1.0)),
    }


if __name__ == "__main__":
    main()
