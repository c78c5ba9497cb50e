"""Least priced costs, block by block: those that all predecessors give."""

import numpy as np
import pytest

from clustruct.kernels import COMPILED
from clustruct.kernels.prices import least_costs
from tests.kernels.test_mesh import DRAWS

pytestmark = pytest.mark.skipif(COMPILED, reason="calls a function without a Python interface")
N = 400  # three of the largest blocks


def running(values, weights):
    """Running moments with the room that the search wants after them."""
    moments = np.zeros((3, len(values) + 8))
    for row, power in zip(moments, range(3), strict=True):
        row[1 : len(values) + 1] = np.cumsum(weights * values**power)
    return moments


def searched(moments, n, price, noise, discount):
    best, leads, costs = np.full((3, n + 8), np.nan)
    previous = np.zeros(n + 8, dtype=np.int32)
    least_costs.least_costs(*moments, n, price, noise, discount, best, previous, leads, costs)
    return best[: n + 1], previous[: n + 1]


def costs_to(moments, t):
    """Cost of one group from each earlier position."""
    w, s, square = (row[t] - row[:t] for row in moments)
    return square - s**2 / w


def least_of_all(moments, n, price, discount):
    best = np.zeros(n + 1)
    for t in range(1, n + 1):
        best[t] = (best[:t] + costs_to(moments, t)).min() + price
        best[t] -= discount[t] if len(discount) else 0.0
    return best


@pytest.mark.parametrize("discounted", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_groups", [2, 30, 200])
@pytest.mark.parametrize("shape", DRAWS)
def test_costs_are_the_least_and_predecessors_attain_them(shape, n_groups, weighted, discounted):
    rng = np.random.default_rng([n_groups, 53])
    values = np.sort(DRAWS[shape](rng, N))
    values -= np.median(values)
    weights = 0.1 + rng.random(N) if weighted else np.ones(N)
    moments = running(values, weights)
    price = float(costs_to(moments, N)[0]) / n_groups**3
    noise = 1e-12 * moments[2, N]
    share = rng.random(N + 1) * (rng.random(N + 1) < 0.5)
    discount = 0.2 * price / n_groups * share if discounted else np.empty(0)
    best, previous = searched(moments, N, price, noise, discount)
    np.testing.assert_allclose(
        best, least_of_all(moments, N, price, discount), rtol=0, atol=2 * n_groups * noise
    )
    for t in range(1, N + 1):
        i = previous[t]
        assert i < t
        found = best[i] + costs_to(moments, t)[i] + price - (discount[t] if discounted else 0.0)
        assert found == pytest.approx(best[t], abs=4 * noise)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 9])
@pytest.mark.parametrize("price", [0.0, 1e-3, 1e3])
def test_short_vectors(n, price):
    moments = running(np.arange(float(n)) ** 2, np.ones(n))
    best, _ = searched(moments, n, price, 0.0, np.empty(0))
    np.testing.assert_allclose(best, least_of_all(moments, n, price, []), rtol=1e-12, atol=1e-12)


def test_noise_above_the_price_is_no_end():
    """Where rounding decides everything, every position is still reached."""
    moments = running(np.sort(np.random.default_rng(3).standard_normal(200)), np.ones(200))
    best, previous = searched(moments, 200, 1e-9, 1.0, np.empty(0))
    assert np.isfinite(best).all()
    assert (previous[1:] < np.arange(1, 201)).all()
