"""How experts, or groups of tasks, differ; and which samples a gate sends to whom."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from clustruct._typing import Floats
from clustruct.inspection import (
    Answers,
    answers_of,
    feature_names,
    kind_of,
    moments,
    prepared,
    require_kind,
    thinned,
)

__all__ = ["Contrasts", "GateView", "contrasts_of", "gate_view"]


MOST_ROWS = 2000


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Linear models side by side.

    Attributes
    ----------
    thing : str
        What each of them is: "expert" or "group".
    labels : tuple of int
        Their numbers.
    names : ndarray of str, shape (d,)
        Names of the features.
    answers : Answers
        What their scores stand for.
    weights : ndarray of shape (Q, K, d)
        What one standard deviation of each feature adds to each score; without samples, one unit
        of the feature.
    middles : ndarray of shape (Q, K)
        The scores of the average sample: the intercepts, where columns have mean zero.
    """

    thing: str
    labels: tuple[int, ...]
    names: NDArray[np.object_]
    answers: Answers
    weights: Floats
    middles: Floats

    def against_others(self, place: int) -> tuple[Floats, Floats]:
        """Weights, ``K x d``, and score of the average sample, averaged over all others."""
        others = np.arange(len(self.labels)) != place
        return self.weights[others].mean(axis=0), self.middles[others].mean(axis=0)

    def widest(self, most: int) -> list[tuple[int, int]]:
        """Outputs and features in which they differ, by how much, the widest first."""
        spread = np.ptp(self.weights, axis=0)
        order = np.argsort(-spread, axis=None, kind="stable")[:most]
        pairs = zip(*np.unravel_index(order, spread.shape), strict=True)
        return [(int(k), int(j)) for k, j in pairs if spread[k, j] > 0.0]


def contrasts_of(
    model: Any, X: Any = None, names: Sequence[str] | None = None, most: int = MOST_ROWS
) -> Contrasts:
    """The experts, or the centroids of groups of tasks, of a fitted model.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted model of samples or tasks.
    X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features), default=None
        Samples, for the means and the spread of the features; 0 and 1 if None.
    names : sequence of str, default=None
        Names of the features; those that the model knows if None.
    most : int, default=2000
        Look at no more than so many samples.

    Returns
    -------
    Contrasts

    Examples
    --------
    >>> import clustruct as cs
    >>> from clustruct.explanation.contrasts import contrasts_of
    >>> problem = cs.datasets.make_experts(200, 3, 2, random_state=0)
    >>> model = cs.SampleClusterRegressor(2, random_state=0).fit(problem.X, problem.y)
    >>> contrasts_of(model, problem.X).weights.shape
    (2, 1, 3)
    """
    estimator = require_kind(model, "samples", "tasks")
    n_features = int(estimator.n_features_in_)
    means, deviations = np.zeros(n_features), np.ones(n_features)
    if X is not None:
        means, deviations = _moments(model, X, most)
    answers = answers_of(model)
    if kind_of(model) == "samples":
        weights, intercepts, thing = estimator.experts_, estimator.intercepts_, "expert"
    else:
        weights, intercepts = estimator.centroids_, estimator.centroid_intercepts_
        thing = "group"
    count = len(weights)
    plain = np.asarray(weights, dtype=np.float64).reshape(count, -1, means.size)
    middles = np.asarray(intercepts, dtype=np.float64).reshape(count, -1) + plain @ means
    return Contrasts(
        thing,
        tuple(range(count)),
        feature_names(model, names),
        answers,
        plain * deviations,
        middles,
    )


@dataclass(frozen=True, eq=False)
class GateView:
    """Which samples a gate sends to which expert.

    Attributes
    ----------
    names : ndarray of str, shape (d,)
        Names of the features.
    shares : ndarray of shape (Q,)
        The part of the samples for which each expert has the largest weight.
    pulls : ndarray of shape (Q, d)
        For a linear gate, what one standard deviation of a feature adds to the log odds of an
        expert against the mean of the others; for other gates, how far the mean of the samples
        that it is sent lies from the mean of all, in standard deviations.
    linear : bool
        Which of the two it is.
    """

    names: NDArray[np.object_]
    shares: Floats
    pulls: Floats
    linear: bool


def gate_view(
    model: Any, X: Any, names: Sequence[str] | None = None, most: int = MOST_ROWS
) -> GateView | None:
    """What the gate of a fitted model looks at, or None where there is no gate.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted model of samples.
    X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        Samples.
    names : sequence of str, default=None
        Names of the features; those that the model knows if None.
    most : int, default=2000
        Look at no more than so many samples.

    Returns
    -------
    GateView or None
    """
    estimator = require_kind(model, "samples")
    gate = getattr(estimator, "gate_", None)
    if gate is None:
        return None
    rows = thinned(np.arange(_n_rows(X)), most)
    matrix = check_array(prepared(model, X, rows), accept_sparse="csr", dtype=np.float64)
    means, deviations = moments(matrix)
    weights = estimator._gate.weights(matrix)
    sent = weights.argmax(axis=1)
    shares = np.bincount(sent, minlength=weights.shape[1]) / rows.size
    linear = hasattr(gate, "coef_")
    if linear:
        pulls = _linear_pulls(gate, weights.shape[1]) * deviations
        pulls *= estimator.gate_score_.sharpness
    else:
        scale = np.where(deviations > 0.0, deviations, 1.0)
        pulls = np.zeros((weights.shape[1], means.size))
        for q in np.unique(sent):
            pulls[q] = (moments(matrix[sent == q])[0] - means) / scale
    return GateView(feature_names(model, names), shares, pulls, linear)


def _linear_pulls(gate: Any, n_experts: int) -> Floats:
    """Coefficients of each expert less the mean of the others'; two classes have one row."""
    coef = np.asarray(gate.coef_, dtype=np.float64)
    if len(coef) == 1:
        coef = np.concatenate([-coef / 2.0, coef / 2.0])
    pulls = np.zeros((n_experts, coef.shape[1]))
    pulls[gate.classes_] = (coef - coef.mean(axis=0)) * len(coef) / (len(coef) - 1)
    return pulls


def _moments(model: Any, X: Any, most: int) -> tuple[Floats, Floats]:
    return moments(prepared(model, X, thinned(np.arange(_n_rows(X)), most)))


def _n_rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)
