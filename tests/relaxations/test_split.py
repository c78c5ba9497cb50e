"""The bound by a split matrix: below every grouping of its part, and sharp where it can be."""

import numpy as np
import pytest
from scipy import optimize

from clustruct.grouping.constraints import BlockClustered, Clustered
from clustruct.relaxations.parts import reduce_problem, whole
from clustruct.relaxations.split import Split, least_mixture
from tests import brute_force as bf
from tests.solvers.proofs import draw, quadratic_of, start_of


def bounded(objective, constraint, part_of=lambda part: part):
    """The split of a part, after tangents and new weights."""
    limits = constraint.limits(objective.shape[0])
    reduced = reduce_problem(objective, limits)
    start = start_of(objective, constraint).point.W[:, 0]
    split = Split(reduced, part_of(whole(reduced, limits, start)))
    for _ in range(3):
        split.ascend(np.inf, 1e-3)
        split.reweigh()
    split.ascend(np.inf, 1e-3)
    return split


@pytest.mark.parametrize("seed", range(60))
def test_the_bound_is_below_every_grouping_and_choices_are_below_theirs(seed):
    made = draw(seed, singular=False)
    objective, constraint = made.objective, made.constraint
    values = {labels: made.value(labels) for labels in made.groupings}
    split = bounded(objective, constraint)
    slack = 1e-9 * objective.constant
    assert split.bound.value <= min(values.values()) + slack
    assert split.found >= min(values.values()) - slack
    features = reduce_problem(objective, constraint.limits(objective.shape[0])).features
    for each in split.choices():
        members = features[list(split.part.members[each.block])]
        for count in range(1, each.at_most.size):
            counts = {labels: len({labels[i] for i in members}) for labels in values}
            few = [values[labels] for labels in values if counts[labels] <= count]
            many = [values[labels] for labels in values if counts[labels] >= count]
            assert each.at_most[count] <= min(few, default=np.inf) + slack
            assert each.at_least[count] <= min(many, default=np.inf) + slack
        anchor = members[0]
        for place, bounds in zip(each.rows, each.joined, strict=True):
            row = members[place]
            joined = [v for labels, v in values.items() if labels[row] == labels[anchor]]
            apart = [v for labels, v in values.items() if labels[row] != labels[anchor]]
            assert bounds[0] <= min(joined, default=np.inf) + slack
            assert bounds[1] <= min(apart, default=np.inf) + slack


@pytest.mark.parametrize("seed", range(20))
def test_decisions_divide_a_part(seed):
    made = draw(seed, singular=False)
    limits = made.constraint.limits(made.objective.shape[0])
    reduced = reduce_problem(made.objective, limits)
    part = whole(reduced, limits, np.zeros(made.objective.shape[0]))
    for block, rows in enumerate(part.members):
        if len(rows) > 2:
            together, apart = part.together(block, rows[1], rows[0]), part.apart(block, rows[1])
            assert together.labels[rows[1]] == rows[0]
            assert rows[1] not in together.members[block]
            assert apart.members[block][:2] == rows[:2]
            assert apart.n_anchors[block] == apart.least[block] == 2
            first, second = reduced.features[list(rows[:2])]
            for child, same in ((together, True), (apart, False)):
                split = bounded(made.objective, made.constraint, lambda _, child=child: child)
                values = [
                    made.value(labels)
                    for labels in made.groupings
                    if (labels[first] == labels[second]) == same
                ]
                slack = 1e-9 * made.objective.constant
                assert split.bound.value <= min(values, default=np.inf) + slack


@pytest.mark.parametrize("intercept", [True, False])
def test_a_single_factor_without_ridge_is_exact(intercept):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 12, 200)
    X, y = np.eye(12)[codes], rng.standard_normal(12)[codes] + rng.standard_normal(200)
    shares = rng.uniform(0.1, 1.0, 200)
    objective = quadratic_of(X, y, 0.0, shares / shares.sum(), intercept)
    split = bounded(objective, Clustered(3))
    assert split.bound.value == pytest.approx(split.found, rel=1e-10)


def test_features_alone_cost_nothing():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((40, 5)), rng.standard_normal(40)
    objective = quadratic_of(X, y, 1e-2)
    split = bounded(objective, BlockClustered(np.array([-1, 0, -1, 1, -1]), 2))
    assert split.bound.value == pytest.approx(objective.minimum(0.0).value, rel=1e-10)


@pytest.mark.parametrize("seed", range(10))
def test_least_mixture(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    root, heights = rng.standard_normal((max(1, n - 2), n)), rng.standard_normal(n)
    matrix = root.T @ root
    shares = least_mixture(matrix, heights, np.zeros(n))

    def value(s):
        return heights @ s + 0.5 * s @ matrix @ s

    assert shares.min() >= 0.0
    assert shares.sum() == pytest.approx(1.0)
    other = optimize.minimize(
        value,
        np.full(n, 1.0 / n),
        jac=lambda s: heights + matrix @ s,
        bounds=[(0.0, 1.0)] * n,
        constraints={"type": "eq", "fun": lambda s: s.sum() - 1.0},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert value(shares) <= other.fun + 1e-9


def test_brute_force_agrees_with_the_objective():
    made = draw(3)
    labels = made.groupings[-1]
    point = made.objective.refit(np.array(labels), max(labels) + 1, 0.0)
    assert point.value == pytest.approx(made.value(labels), rel=1e-9)
    assert bf.indicator(labels).shape[0] == made.objective.shape[0]
