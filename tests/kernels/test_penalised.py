"""The search for a price finds the best partition, whatever the guesses are."""

import numpy as np
import pytest

from clustruct.kernels import COMPILED
from clustruct.kernels.cuts import penalised
from clustruct.kernels.numbers.groups import partition_cost
from clustruct.kernels.numbers.intervals import running_moments
from tests.kernels import reference
from tests.kernels.reference import SHAPES, cases

MILD = [name for name in SHAPES if name not in ("tight", "tighter", "offset clusters")]
N = 80 if COMPILED else 25


def sorted_values(shape, n, seed):
    values = SHAPES[shape](np.random.default_rng(seed), n)
    return np.unique(values / np.abs(values).max())


def cost_of(values, inner, weights=None):
    edges = np.concatenate([[0], inner, [len(values)]])
    groups = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
    return float(reference.exact_cost_of_labels(values, weights, groups))


@pytest.fixture(params=[0, 1, penalised.N_GUESSES])
def n_guesses(request, monkeypatch):
    monkeypatch.setattr(penalised, "N_GUESSES", request.param)


@pytest.mark.usefixtures("n_guesses")
@pytest.mark.parametrize("shape", MILD)
def test_partition_is_best_and_its_price_says_so(shape):
    for seed in cases(5):
        values = sorted_values(shape, N, seed)
        n = len(values)
        least = np.append(reference.dynamic_program(values, None, n), 0.0)
        for n_groups in sorted(
            {1, 2, 3, 7, n // 3, n // 2, n - 2, n - 1, n} & set(range(1, n + 1))
        ):
            inner, price = penalised.best_partition(
                values, np.empty(0), float(values[n // 2]), n_groups
            )
            assert inner.shape == (n_groups - 1,)
            assert (np.diff(np.concatenate([[0], inner, [n]])) > 0).all()
            assert cost_of(values, inner) == pytest.approx(least[n_groups - 1], rel=1e-12, abs=0)
            # No number of groups is better at this price.
            totals = least[:n] + price * np.arange(1, n + 1)
            assert totals[n_groups - 1] <= totals.min() * (1 + 1e-12)


@pytest.mark.usefixtures("n_guesses")
def test_equal_gaps_need_a_splice():
    # The least cost of a grid is straight between its divisors: no price gives the others.
    for n in (12, 23, 24) if COMPILED else (12,):
        values = np.arange(n) / n
        least = reference.dynamic_program(values, None, n)
        for n_groups in range(1, n + 1):
            inner, _ = penalised.best_partition(values, np.empty(0), 0.0, n_groups)
            assert inner.shape == (n_groups - 1,)
            assert cost_of(values, inner) == pytest.approx(least[n_groups - 1], rel=1e-12, abs=0)


@pytest.mark.usefixtures("n_guesses")
@pytest.mark.parametrize("nearness", [1e-3, 1e-5, 1e-7, 1e-9])
def test_a_light_value_between_heavy_ones_joins_the_nearer(nearness):
    # What it costs is far below the price of a group, where rounding could hide it.
    heavy = np.arange(10) / 10
    for place in range(1, 10):
        for sign in (-1, 1):
            middle = (heavy[place - 1] + heavy[place]) / 2
            values = np.insert(heavy, place, middle + sign * 0.05 * nearness)
            weights = np.insert(np.ones(10), place, 1e-12)
            least = reference.dynamic_program(values, weights, 10)[-1]
            inner, _ = penalised.best_partition(values, weights, 0.0, 10)
            assert cost_of(values, inner, weights) == pytest.approx(least, rel=1e-12, abs=0)


def test_splice_has_the_right_number_of_groups():
    rng = np.random.default_rng(0)
    for _ in cases(200):
        n = int(rng.integers(3, 30))
        few, many = (
            np.sort(rng.choice(np.arange(1, n), number, replace=False))
            for number in np.sort(rng.choice(n, 2, replace=False))
        )
        for n_groups in range(len(few) + 1, len(many) + 2):
            inner = penalised.splice(few, many, n, n_groups)
            edges = np.concatenate([[0], inner, [n]])
            assert len(edges) == n_groups + 1
            assert (np.diff(edges) > 0).all()
            assert set(inner) <= set(few) | set(many)


def test_splice_costs_no_more_than_the_monge_inequality_allows():
    # What is left of the two partitions is one as well, so the splice costs at most the two of
    # them without the least cost of that number of groups. On a straight piece: the line.
    values = np.unique(np.random.default_rng(0).integers(0, 40, 60)) / 40
    n = len(values)
    least = reference.dynamic_program(values, None, n)
    cuts = [penalised.best_partition(values, np.empty(0), 0.0, q)[0] for q in range(1, n + 1)]
    for few in range(1, n - 1):
        for many in range(few + 2, n):
            for q in range(few + 1, many):
                cost = cost_of(values, penalised.splice(cuts[few - 1], cuts[many - 1], n, q))
                rest = least[few + many - q - 1]
                assert cost <= (least[few - 1] + least[many - 1] - rest) * (1 + 1e-12)


@pytest.mark.parametrize("shape", ["normal", "uniform", "t2"])
@pytest.mark.parametrize("n_groups", [4, 16, 40])
def test_guess_is_near_the_price(shape, n_groups):
    n = 2000 if COMPILED else 400
    values = sorted_values(shape, n, 0)
    table = running_moments(values, np.empty(0), 0.0, 1)
    guess, _ = penalised.guess_price(values, table[:, 0], table[:, 2], 0.0, n_groups)
    _, price = penalised.best_partition(values, np.empty(0), 0.0, n_groups)
    assert price / 4 < guess < price * 4


@pytest.mark.parametrize("n_sampled", [32, 64])
def test_price_of_a_sample_leads_to_the_same_partition(n_sampled, monkeypatch):
    for seed in cases(20):
        values = sorted_values("normal", 300, seed)
        for n_groups in (2, n_sampled // 8):
            plain, _ = penalised.best_partition(values, np.empty(0), 0.0, n_groups)
            with monkeypatch.context() as patch:
                patch.setattr(penalised, "MOST_SAMPLED", n_sampled)
                coarse, _ = penalised.best_partition(values, np.empty(0), 0.0, n_groups)
            table = running_moments(values, np.empty(0), 0.0, 1)
            costs = [partition_cost(table, inner) for inner in (plain, coarse)]
            assert costs[0] == pytest.approx(costs[1], rel=1e-12, abs=0)
