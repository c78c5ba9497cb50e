"""The same functions for the arrays of any library."""

import numpy as np
import pytest

from clustruct import arrays
from clustruct.losses import best_intercept, mean_hessian
from tests.losses.test_losses import CASES, draw

LIBRARIES = ("array_api_strict", "torch")


@pytest.fixture(params=LIBRARIES)
def elsewhere(request):
    """A function that moves a NumPy array to another library."""
    library = pytest.importorskip(request.param)
    return lambda x: library.asarray(np.ascontiguousarray(x))


def test_numpy_arrays_stay_where_they_are():
    x = np.arange(3.0)
    assert arrays.namespace(x) is np
    assert arrays.to_host(x) is x
    assert arrays.beside(x, np.ones(2)) is x


def test_numbers_travel_there_and_back(elsewhere):
    x = np.random.default_rng(0).standard_normal((4, 3))
    there = arrays.beside(x, elsewhere(np.ones(2)))
    assert type(there) is type(elsewhere(x))
    np.testing.assert_array_equal(arrays.to_host(there), x)


@pytest.mark.parametrize("name", ["softplus", "expit", "logsumexp", "softmax"])
def test_functions_are_as_exact_as_those_of_scipy(name, elsewhere):
    x = np.array([[-800.0, -700.0], [-30.0, -40.0], [0.0, 1e-9], [1.0, 2.0], [800.0, 30.0]])
    function = getattr(arrays, name)
    ours = arrays.to_host(function(elsewhere(x)))
    # Exponents of a few hundred carry a rounding error as many times as large.
    np.testing.assert_allclose(ours, function(x), rtol=1e-12, atol=0.0)


def test_entropy_of_nothing_is_zero(elsewhere):
    x = np.array([0.0, 0.5, 1.0])
    np.testing.assert_allclose(arrays.to_host(arrays.xlogy(elsewhere(x))), arrays.xlogy(x))


@pytest.mark.parametrize("case", CASES)
def test_losses_agree_with_numpy(case, elsewhere):
    loss, target, scores, _ = draw(case, 50, 3)
    direction = np.random.default_rng(4).standard_normal(scores.shape)
    shares = np.full(50, 1 / 50)
    y, z, v, s = map(elsewhere, (target, scores, direction, shares))
    slope = loss.gradient(target, scores)
    pairs = [
        (loss.value(y, z), loss.value(target, scores)),
        (loss.gradient(y, z), slope),
        (loss.hessian_product(y, z, v), loss.hessian_product(target, scores, direction)),
        (loss.conjugate(y, elsewhere(slope)), loss.conjugate(target, slope)),
        (mean_hessian(loss, y, z, s), mean_hessian(loss, target, scores, shares)),
    ]
    for ours, expected in pairs:
        assert type(ours) is type(z)
        np.testing.assert_allclose(arrays.to_host(ours), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("case", CASES)
def test_intercept_by_folds_of_two_parts_is_that_of_the_whole(case):
    loss, target, scores, _ = draw(case, 60, 5)
    shares = np.random.default_rng(6).dirichlet(np.ones(60))

    def fold(function, *rows):
        first, second = function(*(r[:25] for r in rows)), function(*(r[25:] for r in rows))
        if not isinstance(first, tuple):
            return first + second
        return tuple(a + b for a, b in zip(first, second, strict=True))

    start = np.zeros(scores.shape[1])
    whole = best_intercept(loss, target, scores, shares, start)
    parts = best_intercept(loss, target, scores, shares, start, fold)
    np.testing.assert_allclose(parts, whole, rtol=1e-10, atol=1e-12)
