"""Proposition 4.1: projected gradient with step 1, against the rate of its bound.

The proposition bounds ``||w* - w_t||`` by ``rho^t ||w*|| + ...`` with the largest contraction
factor over all triples of partitions, which are too many to enumerate. Two bounds can be computed.
The factor over the whole space, ``2 ||I - X'X/n||``, is an upper bound of ``rho``. The proof uses
the factors along the path, ``2 ||P_(t+1,*) (I - X'X/n) P_(t,*)||`` for the partitions met on it;
the bound they give must hold at every iteration.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from clustruct._typing import Floats
from clustruct.datasets.generators import make_clustered_features
from clustruct.estimators.features.models import FeatureClusterRegressor
from clustruct.experiments.experiment import (
    Cell,
    Experiment,
    Measurement,
    Presentation,
    Row,
    values_in,
)
from clustruct.experiments.output.pictures import paths_picture
from clustruct.experiments.output.tables import Table
from clustruct.grouping.projections import project_clustered

D, Q, NOISE = 100, 5, 0.5
STEPS = 30
RECOVERED, DIVERGED = 0.02, 1e6  # relative errors
SETTINGS = {"problem": [D, Q, NOISE], "steps": STEPS}
CELLS: Mapping[str, Cell] = {
    f"n = {ratio:g} d": {"n over d": ratio} for ratio in (0.5, 1.0, 2.0, 4.0, 8.0, 32.0, 128.0)
}


def measure(cell: Cell, seed: np.random.SeedSequence) -> dict[str, Any]:
    """Errors along the path, the two bounds, and the error with a line search."""
    n = round(D * float(cell["n over d"]))
    draw = int(seed.generate_state(1)[0] >> 1)
    problem = make_clustered_features(n, D, Q, noise=NOISE, random_state=draw)
    X, y = np.asarray(problem.X), problem.y.astype(np.float64)
    truth = problem.coef
    errors, bounds = step_one(X, y, truth, Q, STEPS)
    how: dict[str, Any] = {"solver": "pg", "init": "zeros", "solver_options": {"refit": False}}
    searched = FeatureClusterRegressor(Q, alpha=0.0, fit_intercept=False, **how).fit(X, y)
    deviation = np.eye(D) - X.T @ X / n
    scale = float(np.linalg.norm(truth))
    return {
        "errors": [_short(error / scale) for error in errors],
        "bounds": [_short(bound / scale) for bound in bounds],
        "rho of the whole space": _short(2 * float(np.linalg.norm(deviation, 2))),
        "line search": _short(float(np.linalg.norm(searched.coef_ - truth)) / scale),
    }


def step_one(
    X: Floats, y: Floats, truth: Floats, n_clusters: int, steps: int
) -> tuple[list[float], list[float]]:
    """Distances to the truth along the path from zero, and the bounds of the proof."""
    n, noise = y.size, y - X @ truth
    w = np.zeros_like(truth)
    error = float(np.linalg.norm(truth))
    errors, bounds = [error], [error]
    here = _basis(truth, w)
    for _ in range(steps):
        w = project_clustered(w - X.T @ (X @ w - y) / n, n_clusters).point
        there = _basis(truth, w)
        # |w* - w_(t+1)| <= 2 |P_(t+1,*) (I - X'X/n) P_(t,*)| |w* - w_t| + 2/n |P_(t+1,*) X' noise|
        contraction = there.T @ here - (X @ there).T @ (X @ here) / n
        drift = 2.0 / n * float(np.linalg.norm(there.T @ (X.T @ noise)))
        bounds.append(2 * float(np.linalg.norm(contraction, 2)) * bounds[-1] + drift)
        errors.append(float(np.linalg.norm(w - truth)))
        here = there
        if errors[-1] > DIVERGED * error:
            break
    return errors, bounds


def _basis(*vectors: Floats) -> Floats:
    """An orthonormal basis of the span of the partitions of some vectors."""
    columns = [(v[:, None] == np.unique(v)).astype(float) for v in vectors]
    left, sizes, _ = np.linalg.svd(np.hstack(columns), full_matrices=False)
    return np.asarray(left[:, sizes > 1e-9 * sizes[0]])


def _short(value: float) -> float:
    """Six digits are enough on disk; JSON has no infinity."""
    return float(f"{min(value, 1e300):.6g}")


def present(rows: Sequence[Row]) -> Presentation:
    """Errors along the path for every number of samples, and whether the bound holds."""
    paths, body, works, proven = {}, [], [], []
    for column, cell in CELLS.items():
        mine = [row.values for row in rows if row.cell == cell]
        if not mine:
            continue
        errors, bounds = (_median_path([v[name] for v in mine]) for name in ("errors", "bounds"))
        paths[column] = (errors, bounds)
        factors = values_in(rows, cell, "rho of the whole space")
        kept = all(
            e <= b * (1 + 1e-6) + 1e-12
            for v in mine
            for e, b in zip(v["errors"], v["bounds"], strict=True)
        )
        solved = np.mean([v["errors"][-1] < RECOVERED for v in mine])
        searched = np.array(values_in(rows, cell, "line search"))
        works += [column] if solved >= 0.9 else []
        proven += [column] if max(factors) < 1 else []
        body.append(
            [
                column,
                f"{np.median(factors):.3g}",
                f"{errors[1] / errors[0]:.3g}",
                "yes" if kept else "NO",
                f"{solved:.0%}",
                f"{np.mean(searched < RECOVERED):.0%}",
            ]
        )
    header = ["samples", "rho, whole space", "error after / before the first step"]
    header += ["below the bound of the proof at all steps"]
    header += ["recovered with step 1", "recovered with line search"]
    table = Table("Projected gradient from zero; recovered: error below 2 %", header, body)
    remarks = [f"Step 1 recovers the truth from {column} on." for column in works[:1]]
    remarks += [
        f"The factor over the whole space is below 1, which proves it, from {column} on."
        for column in proven[:1]
    ]
    pictures = [paths_picture("convergence", paths)]
    return Presentation(tables=[table], pictures=pictures, remarks=remarks)


def _median_path(paths: Sequence[Sequence[float]]) -> list[float]:
    """The median of every iteration; a path that was cut short has diverged."""
    longest = max(map(len, paths))
    padded = [[*path, *[np.inf] * (longest - len(path))] for path in paths]
    return [float(value) for value in np.median(padded, axis=0)]


CONVERGENCE = Experiment(
    name="convergence",
    title="Proposition 4.1: projected gradient with step 1",
    about="Isotropic normal designs with 100 features whose weights take 5 values, noise 0.5: "
    "‖w* - w_t‖ / ‖w*‖ by iteration, and the bound of the proof with the partitions on the path.",
    measurement=Measurement("convergence", measure, SETTINGS, cost=lambda cell: 0.3),
    cells=tuple(CELLS.values()),
    repetitions=20,
    present=present,
    quick_repetitions=5,
    readings=(
        "The proposition bounds the noise term by ‖η‖ times a norm over all partitions; the bound "
        "drawn has the term itself, ‖P X'η‖ for the partition on the path.",
    ),
)
