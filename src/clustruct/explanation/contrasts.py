"""How experts, or groups of tasks, differ; and which samples a gate sends to whom."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import _num_samples

from clustruct import inspection
from clustruct._typing import Floats

MOST_ROWS = 2000


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Linear models side by side."""

    thing: str  # what each of them is: "expert" or "group"
    things: str  # "experts" or "groups of tasks"
    names: NDArray[np.object_]  # of the d features
    outputs: inspection.Outputs
    # Q x K x d: what one standard deviation of each feature adds to each score; without samples,
    # one unit of the feature.
    weights: Floats
    middles: Floats  # Q x K: scores of the average sample; the intercepts, where means are zero

    def against_others(self, place: int) -> tuple[Floats, Floats]:
        """Weights, ``K x d``, and score of the average sample, averaged over all others."""
        others = np.arange(len(self.weights)) != place
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

    Some rows of X tell the means and the spread of the features, which are 0 and 1 without them.
    """
    estimator = inspection.require_kind(model, "samples", "tasks")
    n_features = int(estimator.n_features_in_)
    means, deviations = np.zeros(n_features), np.ones(n_features)
    if X is not None:
        rows = inspection.thinned(np.arange(_num_samples(X)), most)
        means, deviations = inspection.moments(inspection.prepared(model, X, rows))
    intercepts, thing, things = (
        (estimator.intercepts_, "expert", "experts")
        if inspection.kind_of(model) == "samples"
        else (estimator.centroid_intercepts_, "group", "groups of tasks")
    )
    weights = inspection.weights_of(model)
    intercepts = np.asarray(intercepts, dtype=np.float64).reshape(len(weights), -1)
    middles = intercepts + weights @ means
    called, outputs = inspection.feature_names(model, names), inspection.outputs_of(model)
    return Contrasts(thing, things, called, outputs, weights * deviations, middles)


@dataclass(frozen=True, eq=False)
class GateView:
    """Which samples a gate sends to which expert."""

    names: NDArray[np.object_]  # of the d features
    shares: Floats  # the part of the samples for which each of Q experts has the largest weight
    # Q x d. For a linear gate, what one standard deviation of a feature adds to the log odds of an
    # expert against the mean of the others; for other gates, how far the mean of the samples that
    # it is sent lies from the mean of all, in standard deviations.
    pulls: Floats
    linear: bool


def gate_view(
    model: Any, X: Any, names: Sequence[str] | None = None, most: int = MOST_ROWS
) -> GateView | None:
    """What the gate of a model of samples looks at, by some rows of X; None without a gate."""
    estimator = inspection.require_kind(model, "samples")
    gate = getattr(estimator, "gate_", None)
    if gate is None:
        return None
    rows = inspection.thinned(np.arange(_num_samples(X)), most)
    matrix = check_array(inspection.prepared(model, X, rows), accept_sparse="csr", dtype=np.float64)
    means, deviations = inspection.moments(matrix)
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
            pulls[q] = (inspection.moments(matrix[sent == q])[0] - means) / scale
    return GateView(inspection.feature_names(model, names), shares, pulls, linear)


def _linear_pulls(gate: Any, n_experts: int) -> Floats:
    """Coefficients of each expert less the mean of the others'; two classes have one row."""
    coef = np.asarray(gate.coef_, dtype=np.float64)
    if len(coef) == 1:
        coef = np.concatenate([-coef / 2.0, coef / 2.0])
    pulls = np.zeros((n_experts, coef.shape[1]))
    pulls[gate.classes_] = (coef - coef.mean(axis=0)) * len(coef) / (len(coef) - 1)
    return pulls
