"""What a reader of the report has to mind: each caveat with its remedy."""

from typing import Any

import numpy as np
from scipy.sparse import issparse

from clustruct.inspection import curve_of, final_estimator, kind_of, steps_before
from clustruct.reporting.comparison import Comparison, Data

__all__ = ["caveats"]

SOME_ROWS = 2000
UNEQUAL_SCALES = 30.0
FEW_HELD_OUT = 50


def caveats(model: Any, data: Data, found: Comparison | None, search: Any = None) -> list[str]:
    """Sentences about what could mislead, the gravest first."""
    return [
        *_of_the_fit(final_estimator(model), kind_of(model)),
        *_of_the_choice(model if search is None else search),
        *_of_the_comparison(found),
        *_of_the_data(model, data),
    ]


def _of_the_fit(estimator: Any, kind: str) -> list[str]:
    texts = []
    if not estimator.status_.converged:
        texts.append(
            "The solver was stopped before it had converged. Raise max_iter, or scale the columns."
        )
    certificate = getattr(estimator, "certificate_", None)
    if certificate is not None and kind == "features" and certificate.is_wide:
        texts.append(
            "The bound leaves room: better groups may exist. A larger alpha makes it tighter, "
            'solver="soft" searches longer.'
        )
    wanted = getattr(estimator, "n_clusters", None)
    used = getattr(estimator, "n_clusters_", None)
    if isinstance(wanted, int) and used is not None and used < wanted:
        texts.append(
            f"{used} groups are in use, of the {wanted} asked for: more could not improve the fit."
        )
    score = getattr(estimator, "gate_score_", None)
    if score is not None and not score.helps:
        texts.append("The gate does not help: x does not tell which expert answers.")
    return texts


def _of_the_choice(source: Any) -> list[str]:
    curve = curve_of(source)
    if curve is None or len(curve.counts) < 2 or curve.chosen < len(curve.counts) - 1:
        return []
    if curve.counts[-1] == "any":  # no groups: there is nothing beyond
        return []
    return [
        f"The largest number of groups that was tried, {curve.counts[-1]}, was chosen. "
        "Larger ones may do better: try them."
    ]


def _of_the_comparison(found: Comparison | None) -> list[str]:
    if found is None:
        return []
    texts = []
    if found.lead[0] < 0.0 and not found.within_noise:
        texts.append(
            f"“{found.rival.name}” does better on held-out samples. Try more groups, another "
            "alpha, or a search (the estimators whose names end in CV)."
        )
    if found.n_answers < FEW_HELD_OUT:
        texts.append(f"Only {found.n_answers} answers were held out: scores are rough guides.")
    return texts


def _of_the_data(model: Any, data: Data) -> list[str]:
    ratio = _scale_ratio(model, data) if kind_of(model) == "features" else 1.0
    if ratio <= UNEQUAL_SCALES:
        return []
    return [
        f"Scales of the features differ by a factor of {ratio:,.0f}. Features can share a "
        "weight sensibly only where they are on one scale: put a StandardScaler first."
    ]


def _scale_ratio(model: Any, data: Data) -> float:
    """Of the standard deviations of most features, how far the largest is from the smallest."""
    before = steps_before(model)
    rows = data.rows(np.arange(min(data.n, SOME_ROWS)))
    X = rows.X if before is None else before.transform(rows.X)
    if issparse(X):
        return 1.0  # counts and frequencies: their spread says how frequent they are
    variances = np.asarray(X, dtype=np.float64).var(axis=0)
    deviations = np.sqrt(variances[variances > 0.0])
    if deviations.size < 2:
        return 1.0
    low, high = np.percentile(deviations, (5, 95))
    return float(high / low) if low > 0.0 else 1.0
