"""Ratings of movie reviews from their words: the measurement of Table 4 of the paper.

All methods see the same splits and folds. They choose their parameters on the folds: the ridge from
ten strengths, the number of groups from six, the number of nonzero weights from three. Slow fits
try only the strengths next to the best one of the fast fits.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from clustruct._typing import Floats
from clustruct.datasets.reviews import fetch_movie_reviews
from clustruct.estimators.features.models import FeatureClusterRegressor
from clustruct.estimators.features.search_models import FeatureClusterRegressorCV
from clustruct.experiments.experiment import Cell, Measurement
from clustruct.experiments.paper import baselines

__all__ = ["CELLS", "REVIEWS", "check_reviews", "load_reviews", "scaled_alphas"]

CELLS: Mapping[str, Cell] = {
    "TF-IDF": {"weighting": "tfidf"},
    "l2 TF-IDF": {"weighting": "tfidf-l2"},
}
N_WORDS = 5623
N_CLUSTERS = (5, 7, 9, 11, 13, 15)
NONZERO_SHARES = (5, 3, 2)  # d/5, d/3, d/2
ALPHAS = np.geomspace(1e-2, 1e-5, 10)  # times the mean squared length of a review
LASSO_RATIOS = np.geomspace(0.1, 0.003, 7)
OSCAR_RATIOS = np.geomspace(0.1, 0.01, 5)
OSCAR_SLOPES = (3.0, 300.0)
OSCAR_SETTINGS: dict[str, Any] = {"solver": "hybrid", "tol": 1e-2, "max_iter": 100}
CG_STEPS, CG_FOLD_STEPS = 10, 2
N_FOLDS = 5
SPLITS = 6001  # root of the seeds of the splits, which are the same for every weighting


SETTINGS = {
    "n_clusters": N_CLUSTERS,
    "nonzero": NONZERO_SHARES,
    "alphas": ALPHAS.tolist(),
    "lasso": LASSO_RATIOS.tolist(),
    "oscar": [baselines.oscar_version(), OSCAR_RATIOS.tolist(), OSCAR_SLOPES, OSCAR_SETTINGS],
    "cg": [CG_STEPS, CG_FOLD_STEPS],
}


@lru_cache(maxsize=2)
def load_reviews(weighting: str, n_features: int | None = N_WORDS) -> Any:
    """The reviews, cached for the process."""
    return fetch_movie_reviews(weighting=weighting, n_features=n_features)


def check_reviews() -> None:
    """Raise OSError if the reviews cannot be found."""
    fetch_movie_reviews(weighting="text")


def scaled_alphas(X: Any) -> Floats:
    """The grid of ridge strengths, times the mean squared length of a review."""
    return ALPHAS * float(X.multiply(X).sum()) / X.shape[0]


def measure(cell: Cell, seed: np.random.SeedSequence) -> dict[str, Any]:
    """100 times the mean squared error of all methods on one split."""
    words = None if cell.get("words") == "all" else N_WORDS
    reviews = load_reviews(str(cell["weighting"]), words)
    X, y = reviews.data, reviews.target
    rng = np.random.default_rng([SPLITS, seed.spawn_key[-1]])
    order = rng.permutation(y.size)
    test, train = order[: y.size // 5], order[y.size // 5 :]
    folding = int(rng.integers(2**31))
    models, chosen = _fits(X[train], y[train], folding)
    errors = {
        name: round(100 * float(np.square(model.predict(X[test]) - y[test]).mean()), 6)
        for name, model in models.items()
    }
    return {"errors": errors, "chosen": chosen}


def _fits(X: Any, y: Floats, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The models of all methods, and the parameters they chose."""
    folds = list(KFold(N_FOLDS, shuffle=True, random_state=seed).split(X))
    alphas = scaled_alphas(X)
    counts = [X.shape[1] // share for share in NONZERO_SHARES]
    models: dict[str, Any] = {}
    chosen: dict[str, Any] = {}
    tuned = {
        "ls": baselines.ridge(X, y, folds, alphas, intercept=True),
        "lasso": baselines.lasso(X, y, folds, LASSO_RATIOS),
    }
    if baselines.oscar_version() is not None:
        tuned["oscar"] = baselines.oscar(
            X, y, folds, OSCAR_RATIOS, OSCAR_SLOPES, intercept=True, **OSCAR_SETTINGS
        )
    for name, fit in tuned.items():
        models[name], chosen[name] = fit.model, {**fit.chosen, "at edge": fit.at_edge}

    def search(name: str, n_clusters: Any, strengths: Floats, **extra: Any) -> Any:
        model = FeatureClusterRegressorCV(
            n_clusters, alphas=strengths.tolist(), cv=folds, random_state=seed, **extra
        ).fit(X, y)
        at_edge = bool(model.alpha_ in (alphas[0], alphas[-1]))
        models[name], chosen[name] = model, {**model.best_params_, "at edge": at_edge}
        return model

    plain = {"relax": 1.0}
    search("lsk", N_CLUSTERS, alphas, solver="greedy", solver_options={"refit": False}, **plain)
    pg = search("pg", N_CLUSTERS, alphas, solver="pg", search_solver="greedy", **plain)
    place = int(np.argmin(np.abs(np.log(alphas / pg.alpha_))))
    near = alphas[max(place - 1, 0) : place + 2]  # the best strength and those next to it
    q = pg.best_params_["n_clusters"]
    search("pgs", q, near, n_nonzero=counts, solver="pg", search_solver="greedy", **plain)
    search("iht", None, alphas, n_nonzero=counts, solver="pg", search_solver="greedy", **plain)
    search("auto", N_CLUSTERS, alphas)
    classic: dict[str, Any] = {"solver": "cg", "solver_options": {"step": "classic"}}
    quick = search("cg", q, near, max_iter=CG_FOLD_STEPS, **classic, **plain)
    cg = FeatureClusterRegressor(q, alpha=quick.alpha_, max_iter=CG_STEPS, **classic).fit(X, y)
    models["cg"] = cg
    for name, source, limit in (
        ("cgpg", "pg", None),
        ("cgpgs", "pgs", chosen["pgs"]["n_nonzero"]),
    ):
        how = {"alpha": chosen[source]["alpha"], "n_nonzero": limit, "init": cg.coef_}
        models[name] = FeatureClusterRegressor(q, solver="pg", **how).fit(X, y)
        chosen[name] = chosen[source]
    return models, chosen


REVIEWS = Measurement("reviews", measure, SETTINGS, check_reviews, lambda cell: 30.0)
