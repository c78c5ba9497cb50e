"""Losses as a user may write them, each with no more than it needs."""

import numpy as np
from scipy.special import expit
from sklearn.linear_model import PoissonRegressor

from clustruct.losses.base import Loss
from clustruct.losses.noise import UnitNoise


class Poisson(Loss):
    """Half the Poisson deviance of counts, with the logarithm as link."""

    nonnegative = True
    targets = "numbers of at least 0"
    takes_classes = False
    has_likelihood = True
    scoring = "neg_mean_poisson_deviance"

    def value(self, target, scores):
        logs = np.log(np.where(target > 0.0, target, 1.0))
        return (np.exp(scores) - target + target * (logs - scores)).sum(axis=1)

    def gradient(self, target, scores):
        return np.exp(scores) - target

    def hessian_product(self, target, scores, direction):
        return np.exp(scores) * direction

    def conjugate(self, target, slope):
        """``(g + y) log(g + y) - g - y log y``, for slopes of at least ``-y``."""
        rate = np.maximum(slope + target, 0.0)
        logs = [np.log(np.where(x > 0.0, x, 1.0)) for x in (rate, target)]
        return (rate * logs[0] - slope - target * logs[1]).sum(axis=1)

    def valid(self, target):
        return (target >= 0.0).all(axis=1)

    def predictions(self, scores):
        return np.exp(scores)

    def link(self, predictions):
        return np.log(predictions)

    def noise(self, n_outputs, mean_loss):
        return UnitNoise(n_outputs, mean_loss)

    def to_regressor(self, coef, intercept, fit_intercept):
        model = PoissonRegressor(fit_intercept=fit_intercept)
        model.coef_, model.intercept_, model._base_loss = coef, intercept, model._get_loss()
        return model


class Geometric(Loss):
    """Half the deviance of geometric counts, whose variance is ``mu + mu^2``, with a log link."""

    nonnegative = True
    targets = "numbers of at least 0"
    takes_classes = False

    def value(self, target, scores):
        """``(1 + y) log((1 + mu) / (1 + y)) - y log(mu / y)``."""
        logs = np.log(np.where(target > 0.0, target, 1.0))
        wide = np.logaddexp(0.0, scores) - np.log1p(target)
        return ((1.0 + target) * wide - target * (scores - logs)).sum(axis=1)

    def gradient(self, target, scores):
        return (1.0 + target) * expit(scores) - target

    def hessian_product(self, target, scores, direction):
        return (1.0 + target) * expit(scores) * expit(-scores) * direction

    def valid(self, target):
        return (target >= 0.0).all(axis=1)

    def predictions(self, scores):
        return np.exp(scores)

    def link(self, predictions):
        return np.log(predictions)


class Bare(Loss):
    """``log cosh(y - z)`` with no more than its value and derivatives."""

    def value(self, target, scores):
        size = np.abs(scores - target)
        return (size + np.log1p(np.exp(-2.0 * size)) - np.log(2.0)).sum(axis=1)

    def gradient(self, target, scores):
        return np.tanh(scores - target)

    def hessian_product(self, target, scores, direction):
        return direction * (1.0 - np.tanh(scores - target) ** 2)
