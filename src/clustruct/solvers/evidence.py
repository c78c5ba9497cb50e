"""How likely experts are, with a price on their parameters."""

import numpy as np
from numpy.typing import NDArray

from clustruct.objectives.noise import Noise
from clustruct.objectives.samples import Panel, SampleObjective
from clustruct.solvers.mixture import log_likelihood, settle

__all__ = ["bic", "icl", "n_parameters"]

Floats = NDArray[np.float64]


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
    return _bic(objective, noise, panel, total)[0]


def icl(objective: SampleObjective, noise: Noise, panel: Panel, total: float) -> float:
    """The same with a price on samples that several experts could have answered.

    Twice the entropy of the samples' shares in the experts is added: the integrated completed
    likelihood (Biernacki, Celeux and Govaert, 2000).
    """
    value, weights = _bic(objective, noise, panel, total)
    logs = np.log(np.maximum(weights, np.finfo(np.float64).tiny))
    entropy = -float(objective.response.shares @ (weights * logs).sum(axis=1))
    return value + 2.0 * total * entropy


def n_parameters(panel: Panel, noise: Noise, fit_intercept: bool) -> int:
    """Weights that are not zero, intercepts, proportions and noise."""
    n_experts = panel.W.shape[0]
    intercepts = panel.intercept.size if fit_intercept else 0
    return int(np.count_nonzero(panel.W)) + intercepts + n_experts - 1 + noise.n_parameters


def _bic(
    objective: SampleObjective, noise: Noise, panel: Panel, total: float
) -> tuple[float, Floats]:
    """The criterion, and the samples' shares in the experts."""
    shares = objective.response.shares
    ridge = 0.5 * objective.alpha * np.square(panel.W).sum(axis=(1, 2))
    losses = objective.costs(panel.W, panel.intercept) - ridge
    proportions, scale, weights = settle(losses, noise, shares)
    likelihood = log_likelihood(losses, proportions, scale, shares) - noise.log_partition(scale)
    price = n_parameters(panel, noise, objective.response.fit_intercept)
    return -2.0 * total * likelihood + price * float(np.log(max(total, 1.0))), weights
