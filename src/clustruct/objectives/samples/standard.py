"""Standard columns: about their means, over their deviations, with a constant for intercepts."""

from typing import Any

import numpy as np

from clustruct._typing import Floats
from clustruct.kernels.fits import weighted_fits
from clustruct.objectives.linear import Response

# Columns depend on others if what is left of one is less than this part of its square.
DEPENDENT = 1e-10


class StandardColumns:
    """Dense standard columns of samples on the host.

    Without intercepts the columns are divided by their deviations only. ``alpha |V|^2`` is a ridge
    of its own for each column, zero for the constant.

    Attributes: features (n, p), targets (n, K), ridges (p,), and ``flat``, the number of constants.
    """

    def __init__(self, design: Any, response: Response, alpha: float) -> None:
        means, variances = design.moments(response.shares)
        self._means = means if response.fit_intercept else np.zeros_like(means)
        self._deviations = np.sqrt(np.where(variances > 0.0, variances, 1.0))
        n, d = design.shape
        self.flat = int(response.fit_intercept)
        self.features: Floats = np.ones((n, d + self.flat))
        dense = design.row_products(np.ones((n, 1)))
        np.divide(dense - self._means, self._deviations, out=self.features[:, :d])
        self.targets: Floats = np.ascontiguousarray(response.target, dtype=np.float64)
        self.ridges: Floats = np.zeros(d + self.flat)
        self.ridges[:d] = alpha / np.square(self._deviations)

    def standard(self, W: Floats, intercept: Floats) -> Floats:
        """Weights of the standard columns (Q, p, K), the constant last."""
        weights: Floats = W * self._deviations[:, None]
        if not self.flat:
            return weights
        shifted = intercept + np.einsum("d,qdk->qk", self._means, W)
        return np.concatenate([weights, shifted[:, None]], axis=1)

    def original(self, experts: Floats) -> tuple[Floats, Floats]:
        """Weights (Q, d, K) and intercepts (Q, K) for weights of the standard columns."""
        d = self._deviations.size
        W = experts[:, :d] / self._deviations[:, None]
        intercept = -np.einsum("d,qdk->qk", self._means, W)
        if self.flat:
            intercept += experts[:, d]
        return W, intercept

    def fit(self, weights: Floats) -> Floats | None:
        """Weights of the standard columns (Q, p, K), the best for each weighting (Q, n).

        Compiled, for few columns; None if columns depend on others for some expert, or if a number
        is not finite.
        """
        experts, least = weighted_fits.fit_experts(
            self.features, self.targets, self.ridges, np.ascontiguousarray(weights)
        )
        return experts if least > DEPENDENT and np.isfinite(experts).all() else None

    def costs(self, experts: Floats) -> Floats:
        """Loss plus ridge of every sample with every expert (n, Q)."""
        costs: Floats = weighted_fits.costs_of(self.features, self.targets, self.ridges, experts)
        return costs.T
