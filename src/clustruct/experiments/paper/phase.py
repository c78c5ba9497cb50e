"""How many samples recovery needs: maps over (n, d) and, for sparse weights, over (n, k)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

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
from clustruct.experiments.output.pictures import phase_picture
from clustruct.experiments.output.tables import Table

Q, NOISE, ALPHA = 4, 0.5, 1e-5
RECOVERED = 0.02
METHODS = {"pg": "PG", "auto": "auto (ours)"}
DIMENSIONS, SAMPLES = (20, 40, 60, 80, 100, 120), (10, 20, 40, 60, 80, 100, 120, 140, 160)
SPARSE_DIMENSION = 100
NONZEROS, SPARSE_SAMPLES = (5, 10, 20, 30, 40, 50), (10, 20, 30, 40, 60, 80, 100, 120)
CLUSTERED = tuple({"d": d, "k": d, "n": n} for d in DIMENSIONS for n in SAMPLES)
SPARSE = tuple({"d": SPARSE_DIMENSION, "k": k, "n": n} for k in NONZEROS for n in SPARSE_SAMPLES)
# Name, cells, vertical axis, title, and the number of samples that the paper predicts.
MAPS: tuple[tuple[str, Sequence[Cell], str, str, str, Callable[[float], float]], ...] = (
    ("phase-clustered", CLUSTERED, "d", "clustered weights", "n = d", lambda d: d),
    (
        "phase-sparse",
        SPARSE,
        "k",
        f"sparse clustered weights, d = {SPARSE_DIMENSION}",
        "n = k log d",
        lambda k: k * np.log(SPARSE_DIMENSION),
    ),
)


def measure(cell: Cell, seed: np.random.SeedSequence) -> dict[str, Any]:
    """Relative errors on one problem."""
    draw, starts = (int(s) for s in seed.generate_state(2) >> 1)
    n, d, k = (int(cell[name]) for name in ("n", "d", "k"))
    nonzero = None if k == d else k
    problem = make_clustered_features(n, d, Q, noise=NOISE, n_nonzero=nonzero, random_state=draw)
    scale = float(np.linalg.norm(problem.coef))
    errors = {}
    for solver in METHODS:
        how: dict[str, Any] = {"solver": solver, "n_nonzero": nonzero, "random_state": starts}
        model = FeatureClusterRegressor(Q, alpha=ALPHA, fit_intercept=False, **how)
        model.fit(problem.X, problem.y)
        errors[solver] = round(float(np.linalg.norm(model.coef_ - problem.coef)) / scale, 6)
    return {"errors": errors}


def present(rows: Sequence[Row]) -> Presentation:
    """Two maps, each for projected gradient and for ``auto``."""
    pictures, tables, remarks = [], [], []
    for name, cells, vertical, title, law, line in MAPS:
        known = [cell for cell in cells if any(row.cell == cell for row in rows)]
        if not known:
            continue
        shares = {method: _shares(rows, known, method) for method in METHODS}
        maps = {printed: shares[method] for method, printed in METHODS.items()}
        pictures.append(phase_picture(name, maps, vertical, title, law, line))
        needs = {method: _needs(found) for method, found in shares.items()}
        levels = list(needs["pg"])
        body = [[METHODS[m], *(str(n or "-") for n in needs[m].values())] for m in METHODS]
        body.append(["predicted", *(f"{line(v):.0f}" for v in levels)])
        heading = f"Samples from which half of the problems are recovered, {title}"
        tables.append(Table(heading, [f"{vertical} =", *map(str, levels)], body))
        remarks.append(_remark(needs, title))
    return Presentation(tables=tables, pictures=pictures, remarks=remarks)


def _shares(
    rows: Sequence[Row], cells: Sequence[Cell], method: str
) -> Mapping[tuple[int, int], float]:
    """Share of the problems recovered, by samples and by features or nonzero weights."""
    return {
        (int(cell["n"]), int(cell["k"])): float(
            np.mean(np.array(values_in(rows, cell, "errors", method)) < RECOVERED)
        )
        for cell in cells
    }


def _needs(shares: Mapping[tuple[int, int], float]) -> dict[int, int | None]:
    """The number of samples from which at least half of the problems are recovered, by level."""
    found: dict[int, int | None] = {}
    for level in sorted({k for _, k in shares}):
        mine = sorted((n, share) for (n, k), share in shares.items() if k == level)
        fails = [n for n, share in mine if share < 0.5]
        found[level] = next((n for n, _ in mine if not fails or n > max(fails)), None)
    return found


def _remark(needs: Mapping[str, Mapping[int, int | None]], title: str) -> str:
    pairs = zip(needs["auto"].values(), needs["pg"].values(), strict=True)
    ratios = [ours / theirs for ours, theirs in pairs if ours is not None and theirs is not None]
    if not ratios:
        return f"{title}: no size at which both methods recover half of the problems."
    return (
        f"{title}: where both recover half of the problems, `auto` needs "
        f"{np.mean(ratios):.2g} times the samples of PG on average."
    )


PHASE = Experiment(
    name="phase",
    title="Phase: how many samples recovery needs",
    about=f"Weights with {Q} values between -15 and 15, noise {NOISE:g}; recovered: relative error "
    f"below {RECOVERED:.0%}. Section 4.2 predicts n ~ d for clustered weights, section 5.2 "
    "n ~ k log d for sparse ones, both up to a constant, which is 1 in the lines drawn.",
    measurement=Measurement(
        "phase",
        measure,
        {"problem": [Q, NOISE, ALPHA]},
        # Problems with few samples are searched longer.
        cost=lambda cell: 1.5 if int(cell["n"]) < int(cell["k"]) else 0.4,
    ),
    cells=(*CLUSTERED, *SPARSE),
    repetitions=5,
    present=present,
    quick_cells=tuple({"d": d, "k": d, "n": n} for d in DIMENSIONS[1::2] for n in SAMPLES[1::3]),
)
