"""Information criteria for the number of experts.

Experts are found with one scale of noise for all. Their number must not be judged that way: if one
expert fits its samples more closely than another, or some samples follow none, further experts
stand in for the missing noise, and any criterion of the likelihood takes them. So the likelihood
here is that of a mixture in which every expert has noise of its own, and a share of the samples is
spread evenly over the residuals' range (Banfield and Raftery, 1993):

    p(y_i) = sum_q pi_q exp(-loss_iq / T_q) / Z(T_q) + pi_0 / range.

The scale of an expert that has hardly more samples than weights would go to zero, and the
likelihood have no bound. So each is estimated with some samples of the usual scale besides, one
more than an expert has weights (a prior as by Fraley and Raftery, 2007); the usual one is the
geometric mean over the samples, which a few exact experts do not change. Class probabilities have
no scale, and are taken as they are.
"""

from dataclasses import dataclass, replace

import numpy as np

from clustruct._typing import Floats
from clustruct.losses import Noise
from clustruct.objectives.samples.objective import SampleObjective
from clustruct.solvers.driver import Budget, Solution, State, drive
from clustruct.solvers.experts.mixture import n_weights, soften

# Steps of expectation and maximisation at most, and the gain in nats below which they end.
STEPS, GAIN = 200, 1e-7
# Precision of the experts' fits: criteria differ by far more.
PRECISION = 1e-6
FITTED = Budget(STEPS, GAIN, lambda iteration: None, quiet=True)
# Proportions below this are those of experts without samples.
SMALLEST_SHARE = 1e-6


@dataclass(frozen=True, eq=False)
class Mixture:
    """Shares and noise of the experts.

    Shapes: scales (Q,).
    proportions (Q,) or (Q + 1,): of the experts, and of the samples that follow none.
    """

    proportions: Floats
    scales: Floats


class OwnNoise:
    """The likelihood of a mixture in which every expert has noise of its own, for given costs.

    total: weight of all samples together.
    """

    def __init__(self, objective: SampleObjective, noise: Noise, total: float) -> None:
        self._noise = noise
        self._shares = objective.response.shares
        width = objective.shape[0] + int(objective.response.fit_intercept)
        self._extra = (width + 1.0) / max(total, 1.0)
        rest, loss = _single(objective)
        self.single_scale = noise.scale(loss)
        self._even = _even_density(rest) if noise.n_parameters else None

    @property
    def n_noise(self) -> int:
        """Number of parameters for the samples that follow none of the experts."""
        return 0 if self._even is None else 1

    def begin(self, costs: Floats) -> Mixture:
        """Even proportions and one scale."""
        count = costs.shape[1]
        scale = self._noise.scale(float(self._shares @ costs.min(axis=1)))
        parts = count + self.n_noise
        return Mixture(np.full(parts, 1.0 / parts), np.full(count, scale))

    def expect(self, costs: Floats, mixture: Mixture) -> tuple[Floats, float]:
        """Responsibilities of the experts for the samples, and the mean log-likelihood."""
        n, count = costs.shape
        weights = np.empty((n, count + self.n_noise), order="F")
        np.divide(costs, -mixture.scales, out=weights[:, :count])
        partitions = [self._noise.log_partition(scale) for scale in mixture.scales]
        weights[:, :count] += np.log(mixture.proportions[:count]) - partitions
        if self._even is not None:
            weights[:, count] = np.log(mixture.proportions[-1]) + self._even
        return weights, float(self._shares @ soften(weights))

    def maximise(self, costs: Floats, weights: Floats) -> Mixture:
        """The most likely proportions and scales."""
        count = costs.shape[1]
        proportions = np.maximum(self._shares @ weights, SMALLEST_SHARE)
        masses = proportions[:count]
        sums = self._shares @ (weights[:, :count] * costs)
        own = np.array([self._noise.scale(float(mean)) for mean in sums / masses])
        common = np.exp(masses @ np.log(own) / masses.sum())
        scales = (masses * own + self._extra * common) / (masses + self._extra)
        return Mixture(proportions / proportions.sum(), scales)


def _single(objective: SampleObjective) -> tuple[Floats, float]:
    """Residuals and mean loss of a single expert for all samples."""
    response = objective.response
    scores = objective.scores(*objective.fit_experts([response.shares], PRECISION))[:, 0]
    loss = float(response.shares @ response.loss.value(response.target, scores))
    return response.loss.residuals(response.target, scores), loss


def _even_density(rest: Floats) -> float:
    """Logarithm of the even density over the range of some residuals."""
    ranges = np.maximum(np.ptp(rest, axis=0), np.finfo(np.float64).tiny)
    return -float(np.log(ranges).sum())


def count_criteria(
    objective: SampleObjective, noise: Noise, W: Floats, intercept: Floats, total: float
) -> dict[str, float]:
    """Criteria of a number of experts by their names; smaller is better.

    "bic" is the Bayesian information criterion. "icl", the integrated completed likelihood
    (Biernacki, Celeux and Govaert, 2000), adds twice the entropy of the responsibilities: a price
    on samples that several experts could have predicted.

    Shapes: intercept (Q, K).
    W (Q, d, K): experts to start from.
    """
    likelihood = OwnNoise(objective, noise, total)
    W, intercept = _fit_mixture(objective, likelihood, W, intercept)
    ridge = 0.5 * objective.alpha * np.square(W).sum(axis=(1, 2))
    weights, value, scales = _settle(likelihood, objective.costs(W, intercept) - ridge)
    n_experts = W.shape[0]
    each = n_weights(W, intercept, objective.response.fit_intercept) / n_experts
    others = n_experts - 1 + n_experts * noise.n_parameters + likelihood.n_noise
    # The prior of the weights is worth one sample with the noise of a single expert for all. The
    # closer an expert fits its samples, the more information its weights hold, and the more they
    # cost.
    sharper = np.maximum(np.log(likelihood.single_scale / scales), 0.0).sum()
    log_total = float(np.log(max(total, 1.0)))
    price = (n_experts * each + others) * log_total + each * sharper
    bic = -2.0 * total * value + float(price)
    told = _by_prediction(objective, W, intercept, weights[:, :n_experts])
    entropy = total * float(objective.response.shares @ _entropies(told))
    return {"bic": bic, "icl": bic + 2.0 * entropy}


def _by_prediction(
    objective: SampleObjective, W: Floats, intercept: Floats, weights: Floats
) -> Floats:
    """Responsibilities (n, Q), those of experts that predict the same class added up.

    Two experts that predict the same class are both right or both wrong, and it does not count
    against them that no one can tell which of them it was.
    """
    if not objective.response.loss.coded:
        return weights
    classes = objective.scores(W, intercept).argmax(axis=2)
    first = (classes[:, :, None] == classes[:, None, :]).argmax(axis=2)
    told = np.zeros_like(weights)
    np.add.at(told, (np.arange(weights.shape[0])[:, None], first), weights)
    return told


def _entropies(weights: Floats) -> Floats:
    """Entropy of the responsibilities among the experts, for the share that they explain."""
    shares = weights.sum(axis=1, keepdims=True)
    tiny = np.finfo(np.float64).tiny
    parts = weights / np.maximum(shares, tiny)
    return np.asarray(-(weights * np.log(np.maximum(parts, tiny))).sum(axis=1))


def joint_values(counts: Floats, bic: Floats, icl: Floats) -> Floats:
    """Values of "bic+icl", which decide by overlap whether, and by BIC how many experts there are.

    Noise that is skewed, or grows with a feature, is better described by two or three experts than
    by one, and BIC takes them. They overlap, as experts that follow rules of their own do not. But
    among several such rules, some may overlap where others do not, and ICL joins them. So
    more than one expert costs what overlap adds on average of the two criteria, at the number
    where that mean is least.
    """
    several = counts > 1
    if several.all() or not several.any():
        return bic
    price = 0.5 * (bic + icl)[several].min() - bic[several].min()
    return np.where(several, bic + price, bic)


def _fit_mixture(
    objective: SampleObjective, likelihood: OwnNoise, W: Floats, intercept: Floats
) -> tuple[Floats, Floats]:
    """The most likely mixture near given experts; those that lose their samples are left out."""
    found = drive(OwnNoiseEM(objective, likelihood, W, intercept), FITTED).state
    return found.W, found.intercept


@dataclass(frozen=True, eq=False)
class Crowd(State):
    """An iterate: experts, their mixture and their costs. Its objective is the negative likelihood.

    Shapes: W (Q, d, K), intercept (Q, K), costs (n, Q).
    weights (n, Q) or (n, Q + 1): responsibilities.
    """

    W: Floats
    intercept: Floats
    costs: Floats
    weights: Floats


class OwnNoiseEM:
    """Expectation and maximisation where experts have noise of their own, and samples may stray.

    Shapes: intercept (Q, K).
    W (Q, d, K): weights of the experts to start from.
    """

    name = "em, own noise"

    def __init__(
        self, objective: SampleObjective, likelihood: OwnNoise, W: Floats, intercept: Floats
    ) -> None:
        self._objective = objective.private()
        self._likelihood = likelihood
        self._begin = W, intercept

    def start(self) -> Crowd:
        """The given experts, with even proportions and one scale."""
        costs = self._objective.costs(*self._begin)
        return self._crowd(*self._begin, costs, self._likelihood.begin(costs))

    def advance(self, state: Crowd) -> Crowd:
        """One step; done when it does not raise the likelihood."""
        n_experts, W, weights = state.W.shape[0], state.W, state.weights
        mine = self._objective.response.shares[:, None] * weights[:, :n_experts]
        alive = mine.sum(axis=0) > SMALLEST_SHARE
        if not alive.any():  # a handful of samples, which an even density describes as well
            return replace(state, gain=0.0, done=True)
        if not alive.all():
            followed = np.append(alive, np.ones(self._likelihood.n_noise, dtype=bool))
            mine, weights, W = mine[:, alive], weights[:, followed], W[alive]
        W, intercept, costs = self._objective.fit_and_cost(mine, PRECISION, W)
        mixture = self._likelihood.maximise(costs, weights)
        following = self._crowd(W, intercept, costs, mixture)
        gain = state.objective - following.objective
        if gain <= 0.0:  # the prior of the scales has a part in the steps, not in the likelihood
            return replace(state, gain=0.0, done=True)
        return replace(following, gain=gain)

    def solution(self, state: Crowd) -> Solution:
        """The experts, each with the samples for which its cost is least."""
        panel = self._objective.panel(state.W, state.intercept)
        return Solution(panel, panel.labels)

    def _crowd(self, W: Floats, intercept: Floats, costs: Floats, mixture: Mixture) -> Crowd:
        weights, value = self._likelihood.expect(costs, mixture)
        return Crowd(W, intercept, costs, weights, objective=-value)


def _settle(likelihood: OwnNoise, losses: Floats) -> tuple[Floats, float, Floats]:
    """Responsibilities of given experts, the mean log-likelihood, and the scales."""
    mixture, before = likelihood.begin(losses), -np.inf
    for _ in range(STEPS):
        weights, value = likelihood.expect(losses, mixture)
        if value - before < GAIN:
            break
        before = value
        mixture = likelihood.maximise(losses, weights)
    return weights, value, mixture.scales
