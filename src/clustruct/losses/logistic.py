"""Logistic losses, for two classes and for more."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from clustruct._typing import Floats
from clustruct.arrays import (
    beside,
    expit,
    indicator,
    log_softmax,
    logsumexp,
    namespace,
    softmax,
    softplus,
    xlogy,
)
from clustruct.losses.base import Contrasts, Loss, Measure, Target
from clustruct.losses.intercept import at_once
from clustruct.losses.noise import UnitNoise

__all__ = ["LogisticLoss", "MultinomialLoss"]

# Least curvature that strengths for tasks are measured by: that of classes of which one is rare.
LEAST_CURVATURE = 1e-3


class _ClassLoss(Loss):
    """Negative log-probabilities of classes."""

    nonnegative = True
    takes_numbers = False
    gives_probabilities = True
    has_likelihood = True
    class_scoring = "neg_log_loss"
    class_scale = "odds"

    def class_scores(self, scores: Floats) -> Floats:
        """One score for each class, to which `softmax` is applied."""
        return scores

    def probabilities(self, scores: Floats) -> Floats:
        """``exp(z_k)``, scaled to sum to one."""
        return softmax(self.class_scores(scores))

    def log_probabilities(self, scores: Floats) -> Floats:
        """Logarithms of `probabilities`."""
        return log_softmax(self.class_scores(scores))

    def class_measure(self, scoring: str) -> Measure | None:
        """Log-probabilities as well."""
        if scoring == self.class_scoring:
            return lambda target, scores: -self.value(target, scores)
        return super().class_measure(scoring)

    @property
    def loss_scoring(self) -> str:
        """As scikit-learn calls it."""
        return self.class_scoring

    def noise(self, n_outputs: int, mean_loss: float) -> UnitNoise:
        """Class probabilities are densities as they are."""
        return UnitNoise(n_outputs, mean_loss)

    def to_classifier(
        self, coef: Floats, intercept: Any, fit_intercept: bool, classes: NDArray[Any]
    ) -> LogisticRegression:
        """Logistic regression."""
        model = LogisticRegression(fit_intercept=fit_intercept)
        model.classes_, model.coef_, model.intercept_ = classes, coef, intercept
        return model


class LogisticLoss(_ClassLoss):
    """``log(1 + exp(-y z))`` for targets -1 and 1, one output."""

    curvature = 0.25

    def value(self, target: Target, scores: Floats) -> Floats:
        """``log(1 + exp(-y z))`` without overflow."""
        return softplus(-target * scores)[:, 0]

    def gradient(self, target: Target, scores: Floats) -> Floats:
        """``-y / (1 + exp(y z))``."""
        return -target * expit(-target * scores)

    def hessian_product(self, target: Target, scores: Floats, direction: Floats) -> Floats:
        """``p (1 - p)`` times the direction."""
        return expit(scores) * expit(-scores) * direction

    def conjugate(self, target: Target, slope: Floats) -> Floats:
        """``t log t + (1 - t) log(1 - t)`` with ``t = -y g``, the mistaken share."""
        xp = namespace(slope)
        share = xp.clip(-target * slope, 0.0, 1.0)
        return (xlogy(share) + (1.0 - share) * xp.log1p(-xp.clip(share, 0.0, 1 - 1e-16)))[:, 0]

    def start_curvature(
        self, target: Target, shares: Floats, fold: Callable[..., Any] = at_once
    ) -> float:
        """``p (1 - p)`` at the share of the second class."""
        positive = float(fold(lambda y, s: s @ (y[:, 0] > 0.0), target, shares))
        return max(positive * (1.0 - positive), LEAST_CURVATURE)

    def with_classes(self, n_classes: int) -> Loss:
        """The multinomial loss for more than two."""
        return self if n_classes == 2 else MultinomialLoss()

    def contrasts(self, n_outputs: int) -> Contrasts | None:
        """The score is that of the second class."""
        if type(self).value is not LogisticLoss.value:
            return None  # a variant of the loss
        one = np.ones((1, 1))
        return Contrasts(one, one, one)

    def class_codes(self, target: Target) -> NDArray[np.intp]:
        """1 for positive targets."""
        return (target[:, 0] > 0.0).astype(np.intp)

    def class_scores(self, scores: Floats) -> Floats:
        """Zero for the first class."""
        xp = namespace(scores)
        return xp.stack([xp.zeros_like(scores[:, 0]), scores[:, 0]], axis=1)


class MultinomialLoss(_ClassLoss):
    """``log sum_k exp(z_k) - z_y`` for targets 0 to K - 1, one output a class."""

    curvature = 0.5
    relative = True
    coded = True

    def value(self, target: Target, scores: Floats) -> Floats:
        """Negative log-probability of each row's class."""
        xp = namespace(scores)
        own = xp.where(indicator(target, scores.shape[1]), scores, 0.0)
        return logsumexp(scores) - xp.sum(own, axis=1)

    def gradient(self, target: Target, scores: Floats) -> Floats:
        """Probabilities less the indicator of the class."""
        xp = namespace(scores)
        slope = softmax(scores)
        slope = xp.where(indicator(target, scores.shape[1]), slope - 1.0, slope)
        # Probabilities are rounded on the scale of one. Where slopes are much smaller, what is left
        # of that would be taken for a gradient along the shift of all classes, which has none.
        return slope - xp.mean(slope, axis=1, keepdims=True)

    def hessian_product(self, target: Target, scores: Floats, direction: Floats) -> Floats:
        """``(diag(p) - p p')`` times the direction."""
        shares = softmax(scores)
        moved = shares * direction
        return moved - shares * namespace(scores).sum(moved, axis=1, keepdims=True)

    def mean_curvature(self, target: Target, scores: Floats, shares: Floats) -> Floats:
        """Second derivative of the mean loss by a shift, ``sum_i s_i (diag(p_i) - p_i p_i')``."""
        xp = namespace(scores)
        chances = softmax(scores)
        mixed = chances.T @ (shares[:, None] * chances)
        mixed = 0.5 * (mixed + mixed.T)
        # Rows sum to zero. With the diagonal taken from that, rare classes keep their digits.
        unit = beside(np.eye(scores.shape[1]), scores)
        mixed = mixed * (1.0 - unit)
        return unit * xp.sum(mixed, axis=0) - mixed

    def conjugate(self, target: Target, slope: Floats) -> Floats:
        """``sum_k p_k log p_k`` with ``p = g + e_y``."""
        xp = namespace(slope)
        shares = xp.where(indicator(target, slope.shape[1]), slope + 1.0, slope)
        return xp.sum(xlogy(xp.clip(shares, 0.0, 1.0)), axis=1)

    def n_outputs(self, n_classes: int) -> int:
        """One for each class."""
        return n_classes

    def contrasts(self, n_outputs: int) -> Contrasts | None:
        """Scores that sum to zero: the ridge is least there, and the loss is the same."""
        if type(self).value is not MultinomialLoss.value:
            return None  # a variant of the loss
        # Helmert's: the first classes against the next one.
        basis = np.tril(np.ones((n_outputs, n_outputs)), -1)[1:]
        basis[np.arange(n_outputs - 1), np.arange(1, n_outputs)] = -np.arange(1.0, n_outputs)
        basis /= np.sqrt(np.square(basis).sum(axis=1, keepdims=True))
        columns = np.ascontiguousarray(basis.T)
        # A difference of scores has the derivative of its class; the first has minus the sum.
        slopes = np.hstack([np.full((n_outputs - 1, 1), -1.0), np.eye(n_outputs - 1)])
        return Contrasts(columns, columns[1:] - columns[0], slopes)

    def class_codes(self, target: Target) -> NDArray[np.intp]:
        """The targets."""
        return np.ascontiguousarray(target, dtype=np.intp)

    def class_targets(self, codes: NDArray[np.intp], n_classes: int) -> Target:
        """The codes."""
        return codes.reshape(-1).astype(np.intp)
