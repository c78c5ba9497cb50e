"""Small problems of every kind, in the forms that the objectives take."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from clustruct.design import as_design
from clustruct.losses import (
    GammaLoss,
    HuberLoss,
    LogisticLoss,
    MultinomialLoss,
    PoissonLoss,
    QuantileLoss,
    SquaredLoss,
    TweedieLoss,
)
from clustruct.objectives.features.objective import FeatureObjective
from clustruct.objectives.linear import Response
from clustruct.objectives.quadratic import quadratic_objective
from tests import brute_force as bf
from tests.losses.targets import suited

# Name: loss, number of outputs, the same loss written independently.
KINDS = {
    "squared": (SquaredLoss(), 1, bf.squared),
    "squared, two outputs": (SquaredLoss(), 2, bf.squared),
    "huber": (HuberLoss(0.5), 1, bf.huber(0.5)),
    "huber, two outputs": (HuberLoss(0.8), 2, bf.huber(0.8)),
    "logistic": (LogisticLoss(), 1, bf.logistic),
    "multinomial": (MultinomialLoss(), 3, bf.multinomial),
    "poisson": (PoissonLoss(), 1, bf.tweedie(1.0)),
    "poisson, two outputs": (PoissonLoss(), 2, bf.tweedie(1.0)),
    "gamma": (GammaLoss(), 1, bf.tweedie(2.0)),
    "tweedie": (TweedieLoss(1.3), 1, bf.tweedie(1.3)),
    "quantile": (QuantileLoss(0.3, width=0.4), 1, bf.quantile(0.3, 0.4)),
}
QUADRATIC = ("squared", "squared, two outputs")


@dataclass
class Problem:
    """Data, and the objects made of it."""

    X: np.ndarray
    target: np.ndarray
    shares: np.ndarray
    alpha: float
    intercept: bool
    n_outputs: int
    response: Response
    reference: object

    @property
    def by_rows(self):
        return FeatureObjective(as_design(self.X), self.response, self.alpha)

    @property
    def by_sparse_rows(self):
        return FeatureObjective(as_design(sparse.csr_matrix(self.X)), self.response, self.alpha)

    @property
    def by_gram(self):
        penalties = np.full(self.X.shape[1], self.alpha)
        return quadratic_objective(as_design(self.X), self.response, penalties)

    @property
    def forms(self):
        forms = [self.by_rows, self.by_sparse_rows]
        return [*forms, self.by_gram] if self.response.loss.quadratic else forms

    def value(self, W, b):
        return bf.objective(
            self.reference, self.X, self.target, W, b, alpha=self.alpha, shares=self.shares
        )

    def least(self, labels):
        """Value, weights and intercept of the best point with these groups."""
        options = {"alpha": self.alpha, "shares": self.shares, "intercept": self.intercept}
        if self.response.loss.quadratic:
            return bf.ridge(self.X, self.target, labels, **options)
        return bf.smooth(
            self.reference, self.X, self.target, labels, n_outputs=self.n_outputs, **options
        )

    def best(self, choices):
        return min(self.least(labels)[0] for labels in choices)


def problem(kind, seed=0, *, n=30, d=6, alpha=1e-2, weighted=True, intercept=True, shift=1.0):
    """Data with two groups of features, noise, and rows of unequal weight."""
    loss, n_outputs, reference = KINDS[kind]
    rng = np.random.default_rng(seed)
    X = shift + rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.8)
    centers = rng.standard_normal((2, n_outputs))
    scores = X @ centers[np.arange(d) % 2] + 0.5 * rng.standard_normal((n, n_outputs))
    if kind == "logistic":
        target = np.where(scores > np.median(scores), 1.0, -1.0)
    elif kind == "multinomial":
        target = (scores - scores.mean(axis=0)).argmax(axis=1)
    elif loss.has_identity_link:
        target = scores + 3.0
    else:
        target = suited(loss, (scores - scores.mean(axis=0)) / scores.std(axis=0))
    shares = rng.dirichlet(np.ones(n)) if weighted else np.full(n, 1.0 / n)
    response = Response(target, loss, n_outputs, shares, intercept)
    return Problem(X, target, shares, alpha, intercept, n_outputs, response, reference)
