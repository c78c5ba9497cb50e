"""Groups of samples found one after the other, the largest first, by robust regression.

Where one expert has most of the samples, the others are outliers to it. Iteratively reweighted
least squares with the weights ``exp(-r^2 / 2 s^2)`` (Welsch) follows the samples that agree on one
expert; ``s`` falls slowly from the scale of the pooled residuals, so that samples are left behind
by large residuals before small ones. The samples that the expert explains are set aside, and the
next one is sought among the rest. That is the order of Mix-IRLS (Zilber and Nadler, 2023), which
holds ``s`` at the median of the residuals and so needs an expert with about half of the samples. No
start is drawn: the first steps lead to one point from wherever they begin. Another expert may come
first when the weights are tilted along a random direction of the features, which leaves a true
expert where it is.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from clustruct._typing import Floats, Labels
from clustruct.kernels.fits import weighted_fits


@dataclass(frozen=True)
class SequentialSettings:
    """Constants of the search for one expert after the other."""

    # Scales, from that of the pooled residuals to this part of it, a step at each. With fewer than
    # `few_samples` for each weight larger steps lose the expert: 10 of 12 problems of 100 features
    # and four experts were solved in 12 steps, 11 in 24, all in 48.
    n_scales: int = 12
    more_scales: int = 48
    few_samples: float = 30.0
    narrowest: float = 0.1
    # Steps at the end, where the scale is `width` deviations of the expert's noise.
    last_steps: int = 30
    width: float = 3.0
    # Relative change of the weights below which steps end.
    tol: float = 1e-3
    # Samples within so many deviations are set aside; the least number of the others, for a weight.
    set_aside: float = 2.5
    least_rest: float = 1.2
    # Samples with less than this part of the largest weight are left out of a step.
    negligible: float = 1e-4
    # Ridge, as a part of the mean diagonal of the normal matrix.
    ridge: float = 1e-8
    # Up to this many weights steps are compiled; with more of them BLAS is quicker.
    compiled: int = 32


SETTINGS = SequentialSettings()
# A pooled fit is exact if its residuals are below this part of the targets.
EXACT = 1e-10
# Sums of weights are equal up to this.
ROUNDING = 1e-9
# Median of the absolute value of a standard normal number.
MEDIAN = 0.6745


def groups_in_turn(
    features: Floats,
    target: Floats,
    shares: Floats,
    total: float,
    n_groups: int,
    rng: np.random.Generator | None,
) -> Labels:
    """Samples in groups, by experts that are found one after the other.

    Shapes: features (n, p), target (n, K), shares (n,).
    total: weight of all samples together.
    rng: draws the direction along which weights are tilted for the first; None for no tilt.
    """
    n, width = features.shape
    rest, residuals = np.arange(n), np.empty((n, n_groups))
    for q in range(n_groups):
        tilt = np.ones(rest.size)
        if rng is not None and q == 0:
            direction = rng.standard_normal(width)
            tilt = 2.0 * expit(2.0 * features @ (direction / np.linalg.norm(direction)))
        expert, deviation = _largest_expert(features[rest], target[rest], shares[rest], total, tilt)
        residuals[:, q] = _lengths(target - features @ expert)
        mine = residuals[rest, q]
        far = mine > SETTINGS.set_aside * deviation
        least = SETTINGS.least_rest * width / total
        if shares[rest][far].sum() < least:
            far = mine >= -_quantile(-mine, shares[rest], least / float(shares[rest].sum()))
        rest = rest[far]
    return residuals.argmin(axis=1)


def _largest_expert(
    features: Floats, target: Floats, shares: Floats, total: float, tilt: Floats
) -> tuple[Floats, float]:
    """Weights of the expert that the most samples agree on, and the deviation of its noise."""
    weights, gram = _fit(features, target, shares)
    # Residuals at fitted samples are too small: r^2 has the mean sigma^2 (1 - leverage).
    leverages = np.einsum("ij,ji->i", features, np.linalg.solve(gram, features.T)) / total
    factors = 1.0 / np.sqrt(1.0 - np.minimum(leverages, 0.99))
    lengths = factors * _lengths(target - features @ weights)
    pooled = scale = _quantile(lengths, shares, 0.5) / MEDIAN
    if pooled <= EXACT * np.abs(target).max():
        return weights, pooled
    n, n_weights = features.shape
    kind = weighted_fits.Follower if n_weights <= SETTINGS.compiled else _Follower
    follower, tilted = kind(features, target, factors, SETTINGS.ridge), shares * tilt
    scarce = n < SETTINGS.few_samples * n_weights
    n_scales = SETTINGS.more_scales if scarce else SETTINGS.n_scales
    for number in range(n_scales):
        scale = pooled * SETTINGS.narrowest ** (number / (n_scales - 1))
        follower.follow(tilted, weights, scale, SETTINGS.tol)
    deviation = scale
    for _ in range(SETTINGS.last_steps):
        mass, squares, settled = follower.follow(shares, weights, scale, SETTINGS.tol)
        if mass <= 0.0:  # no sample is near: the scale is too narrow to tell anything
            break
        seen = squares / (mass * target.shape[1])
        # Normal noise of variance v, seen through weights of scale s, has 1 / (1 / v + 1 / s^2).
        deviation = float(np.sqrt(seen / max(1.0 - seen / scale**2, 0.2)))
        scale = max(min(scale, SETTINGS.width * deviation), 1e-9 * pooled)
        if settled:
            break
    return weights, deviation


class _Follower:
    """What `weighted_fits.Follower` is, by BLAS, for many weights."""

    def __init__(self, features: Floats, target: Floats, factors: Floats, ridge: float) -> None:
        self._features, self._target = features, target
        self._factors, self._ridge = factors, ridge

    def follow(
        self, shares: Floats, expert: Floats, scale: float, tol: float
    ) -> tuple[float, float, bool]:
        """Take one step; the mass, the weighted squares, and whether the expert is settled."""
        squares = np.square(self._factors * _lengths(self._target - self._features @ expert))
        agreeing = shares * np.exp(-0.5 * squares / scale**2)
        before = expert.copy()
        expert[:], _ = _fit(self._features, self._target, agreeing, self._ridge)
        settled = bool(np.abs(expert - before).max() <= tol * np.abs(expert).max())
        return float(agreeing.sum()), float(agreeing @ squares), settled


def _fit(
    features: Floats, target: Floats, shares: Floats, ridge: float = SETTINGS.ridge
) -> tuple[Floats, Floats]:
    """Least squares on weighted samples, and its normal matrix with the ridge."""
    heavy = np.flatnonzero(shares > SETTINGS.negligible * shares.max())
    rows, roots = features.take(heavy, axis=0), np.sqrt(shares[heavy])[:, None]
    rows *= roots
    gram = rows.T @ rows  # of a matrix with itself: half the work
    grain = ridge * np.trace(gram) / gram.shape[0]
    gram.flat[:: gram.shape[0] + 1] += max(grain, float(np.finfo(np.float64).tiny))
    return np.asarray(np.linalg.solve(gram, rows.T @ (roots * target[heavy]))), gram


def _lengths(residuals: Floats) -> Floats:
    """Length of each sample's residuals over the outputs."""
    return np.sqrt(np.square(residuals).sum(axis=1))


def _quantile(values: Floats, shares: Floats, level: float) -> float:
    """The least value up to which there is this part of the weight, whatever is repeated."""
    order = np.argsort(values, kind="stable")
    totals = np.cumsum(shares[order])
    place = np.searchsorted(totals, (level - ROUNDING) * totals[-1])
    return float(values[order[min(int(place), order.size - 1)]])
