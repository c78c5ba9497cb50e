"""How likely experts are, with a price on their parameters."""

import numpy as np

from clustruct._typing import Floats
from clustruct.losses import Noise
from clustruct.objectives.samples.objective import Panel, SampleObjective
from clustruct.solvers.experts.mixture import log_likelihood, settle

__all__ = ["bic", "n_parameters", "n_weights"]


def bic(objective: SampleObjective, noise: Noise, panel: Panel, total: float) -> float:
    """Bayesian information criterion of the mixture that the experts make; smaller is better.

    Parameters
    ----------
    objective : SampleObjective
    noise : Noise
    panel : Panel
    total : float
        Weight of all samples together.

    Returns
    -------
    float
    """
    shares = objective.response.shares
    ridge = 0.5 * objective.alpha * np.square(panel.W).sum(axis=(1, 2))
    losses = objective.costs(panel.W, panel.intercept) - ridge
    proportions, scale, _ = settle(losses, noise, shares)
    likelihood = log_likelihood(losses, proportions, scale, shares) - noise.log_partition(scale)
    price = n_parameters(panel, noise, objective.response.fit_intercept)
    return -2.0 * total * likelihood + price * float(np.log(max(total, 1.0)))


def n_parameters(panel: Panel, noise: Noise, fit_intercept: bool) -> int:
    """Weights that are not zero, intercepts, proportions and noise."""
    weights = n_weights(panel.W, panel.intercept, fit_intercept)
    return weights + panel.W.shape[0] - 1 + noise.n_parameters


def n_weights(W: Floats, intercept: Floats, fit_intercept: bool) -> int:
    """Weights that are not zero, and intercepts."""
    return int(np.count_nonzero(W)) + (intercept.size if fit_intercept else 0)
