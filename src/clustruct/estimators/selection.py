"""From scores on a grid to the point that is kept."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from clustruct.estimators.grid import Count, Grid
from clustruct.results import SearchResult
from clustruct.solvers.features import FeatureOutcome

__all__ = ["bic", "partition_price", "select"]

Floats = NDArray[np.float64]


def select(
    grid: Grid,
    scores: Floats,
    relax: tuple[float, ...],
    *,
    rule: str,
    criterion: str,
    scoring: str,
) -> SearchResult:
    """The chosen point of a grid, with all the scores.

    Parameters
    ----------
    grid : Grid
    scores : ndarray of shape (n_Q, n_alphas, n_k, n_relax, n_folds)
        Larger is better.
    relax : tuple of float
    rule : {"best", "one_se"}
        The best mean score, or the simplest point within one standard error of it.
    criterion : {"cv", "bic", "ebic"}
    scoring : str

    Returns
    -------
    SearchResult

    Raises
    ------
    ValueError
        If a score is not a number.
    """
    if np.isnan(scores).any():
        raise ValueError(
            f"scoring={scoring!r} gave NaN on {int(np.isnan(scores).any(axis=-1).sum())} of "
            f"{scores[..., 0].size} points. Give another scoring, or folds on which it is defined."
        )
    kept = scores.mean(axis=-1).argmax(axis=-1)
    fold_scores = np.take_along_axis(scores, kept[..., None, None], axis=3)[..., 0, :]
    result = SearchResult(
        n_clusters=grid.n_clusters,
        alphas=grid.alphas,
        n_nonzero=grid.n_nonzero,
        relax=np.asarray(relax)[kept],
        fold_scores=fold_scores,
        criterion=criterion,
        scoring=scoring,
        rule=rule,
        best_index=(0, 0, 0),
    )
    return _with_choice(result)


def _with_choice(result: SearchResult) -> SearchResult:
    """The same with the chosen point; of equal ones the simplest."""
    means = result.mean_scores
    best = np.unravel_index(int(means.argmax()), means.shape)
    slack = result.standard_errors[best] if result.rule == "one_se" else 0.0
    candidates = [tuple(map(int, place)) for place in np.argwhere(means >= means[best] - slack)]
    q, a, k = min(candidates, key=lambda place: _complexity(result, place))
    fields = {**vars(result), "best_index": (q, a, k)}
    return SearchResult(**fields)


def _complexity(result: SearchResult, place: tuple[int, ...]) -> tuple[float, float, float]:
    """Fewest groups first, then fewest nonzero weights, then the largest alpha."""
    q, a, k = place
    nonzero = result.n_nonzero[k]
    return (
        _n_groups(result.n_clusters[q]),
        np.inf if nonzero is None else float(nonzero),
        -float(result.alphas[a]),
    )


def _n_groups(count: Count) -> float:
    """Number of groups in all."""
    if isinstance(count, Mapping):
        return float(sum(count.values()))
    return np.inf if count is None else float(count)


def bic(outcome: FeatureOutcome, n_samples: float, likelihood: str, fit_intercept: bool) -> float:
    """Bayesian information criterion of a fit; smaller is better.

    Parameters
    ----------
    outcome : FeatureOutcome
    n_samples : float
        Sum of the weights.
    likelihood : {"gaussian", "logistic"}
        What the loss stands for.
    fit_intercept : bool

    Returns
    -------
    float
    """
    point, objective = outcome.answer.point, outcome.problem.objective
    ridge = 0.5 * float(objective.penalties @ np.square(point.W).sum(axis=1))
    loss = max(point.value - ridge, 0.0)
    n_outputs = point.W.shape[1]
    labels = outcome.answer.labels
    n_groups = np.unique(labels[labels >= 0]).size
    freedom = n_outputs * (n_groups + int(fit_intercept))
    if likelihood == "logistic":
        return 2.0 * n_samples * loss + freedom * np.log(n_samples)
    variance = max(2.0 * loss / n_outputs, np.finfo(np.float64).tiny)
    return n_samples * n_outputs * np.log(variance) + freedom * np.log(n_samples)


def partition_price(outcome: FeatureOutcome) -> float:
    """What the extended BIC adds: twice the logarithm of the number of partitions.

    There are about ``q^d / q!`` ways to put ``d`` features in ``q`` groups; features without weight
    are a group here.
    """
    labels = outcome.answer.labels
    n_groups = np.unique(labels).size
    return max(0.0, 2.0 * float(labels.size * np.log(n_groups) - gammaln(n_groups + 1)))
