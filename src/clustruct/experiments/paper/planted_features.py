"""Planted groups of features: the measurement of Tables 2 and 3 of the paper.

Every method sees the same problem and the same five folds, on which it chooses its ridge. The error
is the distance between the true and the fitted weights.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold

from clustruct._typing import Floats
from clustruct.datasets.generators import make_clustered_features
from clustruct.datasets.planted import ClusteredFeatures
from clustruct.estimators.features.models import FeatureClusterRegressor
from clustruct.estimators.features.search_models import FeatureClusterRegressorCV
from clustruct.experiments.comparison import Comparison, Figure
from clustruct.experiments.experiment import (
    Cell,
    Measurement,
    Presentation,
    Row,
    readings_table,
    shares_table,
    values_by_method,
    values_in,
)
from clustruct.experiments.output.pictures import errors_picture
from clustruct.experiments.paper import baselines

__all__ = ["METHODS", "PLANTED", "present_planted"]


METHODS = {
    "oracle": "Oracle",
    "ls": "LS",
    "lsk": "LSK",
    "pg": "PG",
    "cg": "CG",
    "cgpg": "CGPG",
    "oscar": "OSCAR",
    "auto": "auto (ours)",
}
# Not in the paper's tables: its algorithm 3 to the letter, with the ridge that PG has chosen.
PLAIN_PG = "pg to the letter"

Q, D = 5, 100
N_FOLDS = 5
ALPHAS = np.geomspace(10.0, 1e-5, 7)
AUTO_ALPHA = 1e-5  # only to avoid singular systems: the search chooses the rest
OSCAR_RATIOS = np.geomspace(1.0, 1e-6, 10)
OSCAR_SLOPES = (3.0, 30.0, 300.0)
MANY = 1.25  # samples for each feature
# The faster of the package's solvers, each with enough iterations for the errors to settle.
OSCAR_FEW: dict[str, Any] = {"solver": "fista", "tol": 1e-4, "max_iter": 1000}
OSCAR_MANY: dict[str, Any] = {"solver": "hybrid", "tol": 1e-4, "max_iter": 300}
CG_STEPS = 20
RECOVERED = 1.0


SETTINGS = {
    "alphas": ALPHAS.tolist(),
    "oscar": [
        baselines.oscar_version(),
        OSCAR_RATIOS.tolist(),
        OSCAR_SLOPES,
        OSCAR_FEW,
        OSCAR_MANY,
        MANY,
    ],
    "auto": AUTO_ALPHA,
    "cg steps": CG_STEPS,
}


def measure(cell: Cell, seed: np.random.SeedSequence) -> dict[str, Any]:
    """Errors of all methods on one problem."""
    draw, folding, starts = (int(s) for s in seed.generate_state(3) >> 1)
    problem = make_clustered_features(
        int(cell["n"]),
        D,
        Q,
        noise=float(cell["noise"]),
        low=-float(cell.get("spread", 15.0)),
        high=float(cell.get("spread", 15.0)),
        random_state=draw,
    )
    folds = list(KFold(N_FOLDS, shuffle=True, random_state=folding).split(problem.X))
    weights, chosen, edges = _fits(problem, folds, starts)
    errors = {
        name: round(float(np.linalg.norm(w - problem.coef)), 6) for name, w in weights.items()
    }
    return {"errors": errors, "chosen": chosen, "at edge": edges}


def _fits(
    problem: ClusteredFeatures, folds: Sequence[baselines.Fold], seed: int
) -> tuple[dict[str, Floats], dict[str, Any], dict[str, bool]]:
    """Weights of all methods, the strengths chosen, and whether these were ends of a grid."""
    X, y = np.asarray(problem.X), problem.y.astype(np.float64)
    sums = X @ (problem.labels[:, None] == np.arange(Q))
    oracle = LinearRegression(fit_intercept=False).fit(sums, y).coef_[problem.labels]
    ridge = baselines.ridge(X, y, folds, ALPHAS, intercept=False)
    weights = {"oracle": oracle, "ls": ridge.model.coef}
    chosen: dict[str, Any] = {"ls": ridge.chosen["strength"]}
    edges = {"ls": ridge.at_edge}
    for name, extra in _SEARCHES.items():
        model = FeatureClusterRegressorCV(
            Q, alphas=ALPHAS.tolist(), cv=folds, fit_intercept=False, random_state=seed, **extra
        ).fit(X, y)
        weights[name], chosen[name] = model.coef_, model.alpha_
        edges[name] = baselines.edge_matters(-model.cv_results_.mean_scores.ravel())
    # Projected gradient with the ridge chosen for it: from the result of conditional gradient, and
    # from LSK without refits.
    single: dict[str, dict[str, Any]] = {
        "cgpg": {"solver": "pg", "alpha": chosen["pg"], "init": weights["cg"]},
        PLAIN_PG: {"solver": "pg", "alpha": chosen["pg"], "solver_options": {"refit": False}},
        "auto": {"solver": "auto", "alpha": AUTO_ALPHA, "random_state": seed},
    }
    for name, extra in single.items():
        weights[name] = FeatureClusterRegressor(Q, fit_intercept=False, **extra).fit(X, y).coef_
    if baselines.oscar_version() is not None:
        how = OSCAR_MANY if y.size > MANY * D else OSCAR_FEW
        best = baselines.oscar(X, y, folds, OSCAR_RATIOS, OSCAR_SLOPES, intercept=False, **how)
        weights["oscar"], chosen["oscar"] = best.model.coef, best.chosen
        edges["oscar"] = best.at_edge
    return weights, chosen, edges


# LSK keeps the means of the weights, as in the paper.
_SEARCHES: Mapping[str, dict[str, Any]] = {
    "lsk": {"solver": "greedy", "solver_options": {"refit": False}, "relax": 1.0},
    "pg": {"solver": "pg", "relax": 1.0},
    "cg": {
        "solver": "cg",
        "solver_options": {"step": "classic"},
        "max_iter": CG_STEPS,
        "relax": 1.0,
    },
}


PLANTED = Measurement(
    "planted-features",
    measure,
    SETTINGS,
    cost=lambda cell: 4.5 if float(cell["n"]) <= D else 3.0,
)


def present_planted(
    rows: Sequence[Row],
    cells: Mapping[str, Cell],
    paper: Mapping[str, Mapping[str, Figure]],
    title: str,
    factor: float,
    axis: str,
    others: Mapping[str, Cell] | None = None,
) -> Presentation:
    """Present Table 2 or 3; `factor` multiplies the errors as in the paper.

    `axis` varies from column to column; `others` are cells for other readings of the paper.
    """
    values = values_by_method(rows, cells, METHODS, "errors", factor)
    quantity = "‖w* - ŵ‖₂" if factor == 1 else f"{factor:g} x ‖w* - ŵ‖₂"
    comparison = Comparison(title, quantity, METHODS, values, paper)
    tables = [
        shares_table(
            f"Share of the problems recovered (error below {RECOVERED:g}, not multiplied)",
            {**METHODS, PLAIN_PG: "PG to the letter"},
            comparison.columns,
            lambda name, c: [e < RECOVERED for e in values_in(rows, cells[c], "errors", name)],
        ),
        shares_table(
            "Share of the choices at an end of their grid where it matters (0.1 % of the error)",
            {name: METHODS[name] for name in ("ls", "lsk", "pg", "cg", "oscar")},
            comparison.columns,
            lambda name, c: values_in(rows, cells[c], "at edge", name),
        ),
    ]
    if others:
        found = values_by_method(rows, others, METHODS, "errors", factor)
        tables.append(readings_table("Other readings of the set-up", METHODS, found))
    remarks = [f"{clause}." for clause in comparison.gains().values()]
    return Presentation([comparison], tables, [errors_picture(comparison, axis)], remarks)
