"""From scores on a grid to the point that is kept."""

from dataclasses import replace

import numpy as np
from scipy.special import gammaln

from clustruct._typing import Floats
from clustruct.estimators.features.grid import Grid
from clustruct.losses import Loss
from clustruct.results import SearchResult
from clustruct.results.paired import fewest
from clustruct.results.searched import total
from clustruct.solvers.features import FeatureOutcome

__all__ = ["bic", "choice", "partition_price", "select"]

Place = tuple[int, int, int]

# What "clearly worse" is: behind by more standard errors of the paired differences, or by a larger
# part of the score. The second counts where samples are few, and errors are wide.
CLEAR, COSTLY = 1.0, 0.03


def select(
    grid: Grid,
    scores: Floats,
    relax: tuple[float, ...],
    *,
    rule: str,
    criterion: str,
    scoring: str,
    ratio: float | None = None,
) -> SearchResult:
    """The chosen point of a grid, with all the scores.

    Parameters
    ----------
    grid : Grid
    scores : ndarray of shape (n_Q, n_alphas, n_k, n_relax, n_folds)
        Larger is better.
    relax : tuple of float
    rule : {"best", "fewest", "one_se"}
        The best mean score, the fewest groups that are not clearly worse, or the simplest point
        within one standard error of the best.
    criterion : {"cv", "bic", "ebic"}
    scoring : str
    ratio : float, default=None
        Held-out samples of a fold for each that is fitted.

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
    return replace(result, best_index=choice(result, rule, ratio))


def choice(
    result: SearchResult,
    rule: str,
    ratio: float | None = None,
    n_errors: float = CLEAR,
    share: float | None = COSTLY,
) -> Place:
    """The point that a rule chooses; of equal ones the simplest.

    Parameters
    ----------
    result : SearchResult
    rule : {"best", "fewest", "one_se"}
    ratio : float, default=None
        Held-out samples of a fold for each that is fitted.
    n_errors, share : float
        Standard errors of paired differences, and part of the score, that ``"fewest"`` takes for
        clearly worse.

    Returns
    -------
    tuple of int
        Indices into the number of groups, alphas and numbers of nonzero weights.
    """
    means = result.mean_scores
    places = sorted(np.ndindex(*means.shape), key=lambda place: _complexity(result, place))
    if rule == "fewest":
        # With fewer nonzero weights than groups, each has a value of its own.
        scores = np.array([result.fold_scores[place] for place in places])
        sizes = np.array([min(_complexity(result, place)[:2]) for place in places])
        chosen = places[fewest(scores, sizes, n_errors, ratio, share)]
    else:
        best = np.unravel_index(int(means.argmax()), means.shape)
        slack = result.standard_errors[best] if rule == "one_se" else 0.0
        chosen = next(place for place in places if means[place] >= means[best] - slack)
    q, a, k = chosen
    return q, a, k


def _complexity(result: SearchResult, place: tuple[int, ...]) -> tuple[float, float, float]:
    """Fewest groups first, then fewest nonzero weights, then the largest alpha."""
    q, a, k = place
    return total(result.n_clusters[q]), total(result.n_nonzero[k]), -float(result.alphas[a])


def bic(outcome: FeatureOutcome, n_samples: float, loss: Loss, fit_intercept: bool) -> float:
    """Bayesian information criterion of a fit; smaller is better.

    Parameters
    ----------
    outcome : FeatureOutcome
    n_samples : float
        Sum of the weights.
    loss : Loss
        One that has a likelihood.
    fit_intercept : bool

    Returns
    -------
    float
    """
    point, objective = outcome.solution.point, outcome.problem.objective
    ridge = 0.5 * float(objective.penalties @ np.square(point.W).sum(axis=1))
    mean_loss = point.value - ridge
    mean_loss = max(mean_loss, 0.0) if loss.nonnegative else mean_loss
    n_outputs = point.W.shape[1]
    labels = outcome.solution.labels
    n_groups = np.unique(labels[labels >= 0]).size
    freedom = n_outputs * (n_groups + int(fit_intercept))
    fit = loss.minus_two_log_likelihood(mean_loss, n_samples, n_outputs)
    return fit + freedom * float(np.log(n_samples))


def partition_price(outcome: FeatureOutcome) -> float:
    """What the extended BIC adds: twice the logarithm of the number of partitions.

    There are about ``q^d / q!`` ways to put ``d`` features in ``q`` groups; features without weight
    are a group here.
    """
    labels = outcome.solution.labels
    n_groups = np.unique(labels).size
    return max(0.0, 2.0 * float(labels.size * np.log(n_groups) - gammaln(n_groups + 1)))
