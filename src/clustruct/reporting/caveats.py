"""What a reader of the report has to mind: each caveat with its remedy."""

from typing import Any

import numpy as np

from clustruct.inspection import curve_of, final_estimator
from clustruct.reporting.comparison import Comparison, Data
from clustruct.reporting.data_caveats import of_the_data
from clustruct.reporting.svg import shown
from clustruct.reporting.wording import Wording

__all__ = ["caveats"]

FEW_HELD_OUT = 50


def caveats(
    model: Any, data: Data, found: Comparison | None, wording: Wording, search: Any = None
) -> list[str]:
    """Sentences about what could mislead, the gravest first."""
    return [
        *_of_the_fit(final_estimator(model)),
        *_of_the_choice(model, model if search is None else search),
        *_of_the_comparison(found),
        *of_the_data(model, data, wording),
    ]


def _of_the_fit(estimator: Any) -> list[str]:
    texts = []
    if not estimator.status_.converged:
        texts.append(
            "The solver was stopped before it had converged. Raise max_iter, or scale the columns."
        )
    wanted = getattr(estimator, "n_clusters", None)
    used = getattr(estimator, "n_clusters_", None)
    if isinstance(wanted, int) and used is not None and used < wanted:
        texts.append(
            f"{used} groups are in use, of the {wanted} asked for: more could not improve the fit."
        )
    score = getattr(estimator, "gate_score_", None)
    if score is not None and not score.helps and estimator.n_clusters_ > 1:
        texts.append("The gate does not help: the features do not tell which expert is right.")
    return texts


def _of_the_choice(model: Any, source: Any) -> list[str]:
    return [*_of_the_count(final_estimator(model), source), *_of_the_ridge(source)]


def _of_the_count(estimator: Any, source: Any) -> list[str]:
    """A number of groups at the end of those that were tried, where others are possible."""
    curve = curve_of(source)
    if curve is None or len(curve.counts) < 2:
        return []
    chosen, last = curve.counts[curve.chosen], len(curve.counts) - 1
    things = "experts" if hasattr(estimator, "experts_") else "groups"
    if curve.chosen == last and chosen != str(_most_groups(estimator)):
        return [
            f"The largest number of {things} that was tried, {chosen}, was chosen. "
            "Larger ones may do better: try them."
        ]
    if curve.chosen == 0 and chosen not in ("1", "any"):
        return [
            f"The smallest number of {things} that was tried, {chosen}, was chosen. "
            "Fewer may do: try them."
        ]
    return []


def _most_groups(estimator: Any) -> int:
    """As many groups as there can be."""
    if hasattr(estimator, "tasks_"):
        return len(estimator.tasks_)
    return -1 if hasattr(estimator, "experts_") else int(estimator.n_features_in_)


def _of_the_ridge(source: Any) -> list[str]:
    """A strength of the ridge at the end of those that were tried."""
    found = getattr(final_estimator(source), "cv_results_", source)
    alphas, best = getattr(found, "alphas", None), getattr(found, "best_index", None)
    if alphas is None or best is None or np.size(alphas) < 3:
        return []
    chosen = float(np.asarray(alphas)[best[1]])
    ends = {
        float(np.max(alphas)): ("largest", "Larger"),
        float(np.min(alphas)): ("smallest", "Smaller"),
    }
    if chosen not in ends or chosen == 0.0:
        return []
    which, others = ends[chosen]
    return [
        f"The {which} alpha that was tried, {shown(chosen)}, was chosen. {others} ones may do "
        "better: try them."
    ]


def _of_the_comparison(found: Comparison | None) -> list[str]:
    if found is None:
        return []
    texts = []
    if found.rival is not None and found.against(found.rival).worse:
        texts.append(
            f"“{found.rival.name}” does better on held-out samples. Try more groups, another "
            "alpha, or a search (the estimators whose names end in CV)."
        )
    if found.n_targets < FEW_HELD_OUT:
        texts.append(f"Only {found.n_targets} targets were held out: scores are rough guides.")
    return texts
