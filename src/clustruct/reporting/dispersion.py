"""How much targets vary around their predictions, beside what their distribution says."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from clustruct.figures.numbers import shown
from clustruct.inspection import final_estimator, kind_of
from clustruct.losses import loss_of
from clustruct.reporting.comparing.samples import Data, is_missing

# Dispersions of counts outside of this range are worth a sentence.
USUAL = (0.67, 1.5)


@dataclass(frozen=True)
class Dispersion:
    """Pearson's statistic over the degrees of freedom that are left."""

    value: float
    is_known: bool  # whether the distribution says that it is 1

    @property
    def remark(self) -> str | None:
        """What it means, if that is news."""
        if not self.is_known or USUAL[0] <= self.value <= USUAL[1]:
            return None
        return (
            f"The targets vary {shown(self.value)} times as much around their predictions as "
            "Poisson counts do: the predictions are means all the same, but BIC does not know, so "
            "choose the number of groups by cross-validation."
        )


def dispersion_of(model: Any, data: Data) -> Dispersion | None:
    """``sum (y - mu)^2 / V(mu)`` over the samples less the weights of the model.

    None if the loss has no variance, if there are fewer samples than weights, and for mixtures of
    experts, where no single prediction is the mean of a sample.
    """
    estimator = final_estimator(model)
    if not is_regressor(estimator) or kind_of(model) == "samples":
        return None
    loss = loss_of(estimator)
    truth = np.asarray(data.y, dtype=np.float64)
    predicted = np.asarray(model.predict(data.X, **data.routed())).reshape(truth.shape)
    variance = loss.variance(predicted)
    if variance is None:
        return None
    known = ~is_missing(truth)
    weights = np.ones(data.n) if data.weights is None else data.weights / data.weights.mean()
    each = np.broadcast_to(weights.reshape(-1, *[1] * (truth.ndim - 1)), truth.shape)[known]
    squares = np.square(truth - predicted)[known] / variance[known]
    left = float(each.sum()) - _n_weights(estimator)
    if left <= 0.0:
        return None
    fixed = loss.noise(1, 1.0).n_parameters == 0
    return Dispersion(float(each @ squares) / left, fixed)


def _n_weights(estimator: Any) -> int:
    """Distinct weights and intercepts."""
    values = getattr(estimator, "cluster_values_", estimator.coef_)
    return int(np.size(values) + estimator.fit_intercept * np.size(estimator.intercept_))
