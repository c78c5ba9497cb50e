"""Moves of single features, against all partitions and a refit that knows no formula for moves."""

import itertools

import numpy as np
import pytest

from clustruct.kernels.fits.reassign import anneal, descend
from tests.kernels.reference import cases

SWEEPS = 100


def quadratic(rng, d, n_outputs=1, n_samples=20, alpha=1e-3):
    """A normal matrix and moments of a random regression."""
    x = rng.standard_normal((n_samples, d))
    y = rng.standard_normal((n_samples, n_outputs)) + x @ rng.standard_normal((d, n_outputs))
    return x.T @ x / n_samples + alpha * np.eye(d), x.T @ y / n_samples


def explained(normal, moment, labels, n_groups):
    """``tr(B'N^-1 B) / 2``, with a pseudo-inverse of N scaled to a diagonal of ones."""
    members = np.equal.outer(labels, np.arange(n_groups)).astype(float)
    matrix, totals = members.T @ normal @ members, members.T @ moment
    size = np.sqrt(np.abs(np.diag(matrix)))
    # Columns that cancel leave nothing but rounding.
    scale = np.where(size > 1e-7 * np.sqrt(members.T @ np.diag(normal)), size, np.inf)
    matrix, totals = matrix / np.outer(scale, scale), totals / scale[:, None]
    return 0.5 * np.sum(totals * (np.linalg.pinv(matrix, rcond=1e-10, hermitian=True) @ totals))


def anywhere(d, n_groups):
    """Ranges that permit every group."""
    return np.zeros(d, dtype=np.intp), np.full(d, n_groups, dtype=np.intp)


def neighbours(labels, first, last, n_nonzero):
    """All permitted partitions that differ from one in the group of one feature."""
    for j, label in enumerate(labels):
        choices = list(range(first[j], last[j])) + ([-1] if n_nonzero >= 0 else [])
        for group in choices:
            other = labels.copy()
            other[j] = group
            if group != label and (n_nonzero < 0 or np.sum(other >= 0) <= n_nonzero):
                yield other


def exchanges(labels, first, last):
    """All partitions where a feature outside the zero group and one inside it changed places."""
    for out, new in itertools.product(np.flatnonzero(labels >= 0), np.flatnonzero(labels < 0)):
        for group in range(first[new], last[new]):
            other = labels.copy()
            other[out], other[new] = -1, group
            yield other


def random_problem(seed):
    """Normal matrix, moments, ranges, limit, number of groups and one start, of all kinds."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 9))
    normal, moment = quadratic(rng, d, int(rng.integers(1, 4)), alpha=10.0 ** rng.uniform(-6, 0))
    first, last = anywhere(d, n_groups := int(rng.integers(1, 5)))
    if d > 2 and rng.random() < 0.4:
        # Two blocks, the second with two groups of its own.
        cut = int(rng.integers(1, d - 1))
        first[cut:], last[cut:] = n_groups, n_groups + 2
        n_groups += 2
    n_nonzero = int(rng.integers(0, d + 1)) if rng.random() < 0.5 else -1
    labels = first + rng.integers(0, last - first)
    if n_nonzero >= 0:
        labels[rng.permutation(d)[n_nonzero:]] = -1
    return normal, moment, first, last, n_groups, n_nonzero, labels


@pytest.mark.parametrize("seed", cases(300))
def test_no_permitted_move_explains_more(seed):
    normal, moment, first, last, n_groups, n_nonzero, start = random_problem(seed)
    labels = start[None].copy()
    (value,) = descend(normal, moment, first, last, n_groups, n_nonzero, labels, SWEEPS)
    (labels,) = labels
    assert value == pytest.approx(explained(normal, moment, labels, n_groups), rel=1e-9)
    assert value >= explained(normal, moment, start, n_groups) * (1 - 1e-9)
    assert np.all((labels == -1) | ((first <= labels) & (labels < last)))
    if n_nonzero < 0:
        assert np.all(labels >= 0)
    else:
        assert np.sum(labels >= 0) <= n_nonzero
    others = [*neighbours(labels, first, last, n_nonzero)]
    if np.sum(labels >= 0) == n_nonzero:
        others += exchanges(labels, first, last)
    for other in others:
        assert explained(normal, moment, other, n_groups) <= value * (1 + 1e-9) + 1e-12


def everyone_else(d):
    """All others as partners of each feature."""
    return np.array([[i for i in range(d) if i != j] for j in range(d)], dtype=np.intp)


def pairs_moved(labels, first, last, n_nonzero):
    """All permitted partitions in which two features changed groups and none became empty."""
    zero = [-1] if n_nonzero >= 0 else []
    groups = set(labels[labels >= 0])
    for j, i in itertools.combinations(range(labels.size), 2):
        for q in [*range(first[j], last[j]), *zero]:
            for r in [*range(first[i], last[i]), *zero]:
                other = labels.copy()
                other[j], other[i] = q, r
                kept = groups <= set(other)
                if kept and (n_nonzero < 0 or np.sum(other >= 0) <= n_nonzero):
                    yield other


@pytest.mark.parametrize("seed", cases(60))
def test_no_permitted_move_of_two_features_explains_more(seed):
    normal, moment, first, last, n_groups, n_nonzero, start = random_problem(seed)
    # Correlated columns, so that there is something to gain.
    mix = np.tril(np.full_like(normal, 0.9))
    normal, moment = mix @ normal @ mix.T, mix @ moment
    labels = start[None].copy()
    problem = normal, moment, first, last, n_groups, n_nonzero
    (value,) = descend(*problem, labels, SWEEPS, everyone_else(len(start)))
    (labels,) = labels
    assert value == pytest.approx(explained(normal, moment, labels, n_groups), rel=1e-9)
    assert np.all((labels == -1) | ((first <= labels) & (labels < last)))
    for other in pairs_moved(labels, first, last, n_nonzero):
        assert explained(normal, moment, other, n_groups) <= value * (1 + 1e-8) + 1e-12


def drawn(options, temperature, uniform):
    """The option that a number chooses, by the objectives of the options."""
    names, costs = list(options), np.array(list(options.values()))
    chances = np.exp(-(costs - costs.min()) / temperature)
    place = np.searchsorted(np.cumsum(chances), uniform * chances.sum(), side="right")
    return names[min(int(place), len(names) - 1)]


@pytest.mark.parametrize("seed", cases(20))
def test_annealed_pairs_are_drawn_by_the_objective_itself(seed):
    rng = np.random.default_rng(seed)
    d, n_groups, n_sweeps = 6, 3, 5
    normal, moment = quadratic(rng, d, n_outputs=1 + seed % 2)
    start = np.arange(d) % n_groups
    temperatures = np.geomspace(1.0, 0.1, n_sweeps)
    alone, paired = rng.random((2, n_sweeps, d))
    partners = everyone_else(d)[:, :3].copy()
    partners[0, 1] = -1
    labels = start.copy()
    problem = normal, moment, *anywhere(d, n_groups), n_groups, -1
    anneal(*problem, labels, temperatures, alone, partners, paired)

    expected = start.copy()

    def cost(centers, changes):
        moved = expected.copy()
        moved[list(changes)] = list(changes.values())
        w = centers[moved]
        full = set(moved) == set(range(n_groups))
        return 0.5 * np.sum(w * (normal @ w)) - np.sum(moment * w) if full else np.inf

    for sweep, temperature in enumerate(temperatures):
        members = np.equal.outer(expected, np.arange(n_groups)).astype(float)
        centers = np.linalg.solve(members.T @ normal @ members, members.T @ moment)
        for j in range(d):
            options = {q: cost(centers, {j: q}) for q in range(n_groups)}
            if np.isfinite(list(options.values())).all():  # the last of a group stays
                expected[j] = drawn(options, temperature, alone[sweep, j])
        for j in range(d if sweep % 3 == 0 else 0):
            place, uniform = divmod(3 * paired[sweep // 3, j], 1.0)
            i = partners[j, int(place)]
            if i >= 0:
                choices = itertools.product(range(n_groups), repeat=2)
                options = {(q, r): cost(centers, {j: q, i: r}) for q, r in choices}
                expected[j], expected[i] = drawn(options, temperature, uniform)
    assert labels.tolist() == expected.tolist()


@pytest.mark.parametrize("seed", cases(20))
@pytest.mark.parametrize("n_nonzero", [-1, 4])
def test_best_of_many_starts_is_the_best_of_all_partitions(seed, n_nonzero):
    rng = np.random.default_rng(seed)
    d, n_groups = 7, 3
    normal, moment = quadratic(rng, d, n_outputs=1 + seed % 2)
    choices = range(0 if n_nonzero < 0 else -1, n_groups)
    partitions = np.array(list(itertools.product(choices, repeat=d)))
    if n_nonzero >= 0:
        partitions = partitions[np.sum(partitions >= 0, axis=1) <= n_nonzero]
    # One for each way to name the groups is enough.
    partitions = partitions[partitions.argmax(axis=1) >= 0]
    best = max(explained(normal, moment, labels, n_groups) for labels in partitions[::2])
    starts = partitions[rng.integers(len(partitions), size=40)]
    values = descend(normal, moment, *anywhere(d, n_groups), n_groups, n_nonzero, starts, SWEEPS)
    assert values.max() >= best * (1 - 1e-9)


@pytest.mark.parametrize("seed", cases(20))
def test_long_descents_keep_their_digits(seed):
    rng = np.random.default_rng(seed)
    d, n_groups = 60, 6
    normal, moment = quadratic(rng, d, n_outputs=2, n_samples=40, alpha=1e-6)
    labels = rng.integers(0, n_groups, (2, d))
    before = [explained(normal, moment, row, n_groups) for row in labels]
    values = descend(normal, moment, *anywhere(d, n_groups), n_groups, -1, labels, SWEEPS)
    for row, value, start in zip(labels, values, before, strict=True):
        assert value == pytest.approx(explained(normal, moment, row, n_groups), rel=1e-9)
        assert value > start


def degenerate(name):
    """Normal matrices without an inverse, and groups that add up to nothing."""
    rng = np.random.default_rng(7)
    x = rng.standard_normal((12, 6))
    if name == "zero columns":
        x[:, [1, 4]] = 0.0
    elif name == "all zero":
        x[:] = 0.0
    elif name == "copies":
        x[:, 3:] = x[:, :3]
    elif name == "opposites":
        x[:, 3:] = -x[:, :3]
    elif name == "scales":
        x *= 10.0 ** np.array([-6, -4, -2, 0, 2, 4])
    elif name == "few samples":
        x = x[:2]
    y = rng.standard_normal((len(x), 1))
    return x.T @ x / len(x), x.T @ y / len(x)


@pytest.mark.parametrize("n_nonzero", [-1, 3])
@pytest.mark.parametrize(
    "name", ["zero columns", "all zero", "copies", "opposites", "scales", "few samples"]
)
def test_singular_matrices_without_ridge(name, n_nonzero):
    normal, moment = degenerate(name)
    d, n_groups = 6, 3
    starts = np.array(list(itertools.product(range(n_groups), repeat=d)))[::31].copy()
    starts[:, 3:] = starts[:, 3:] if n_nonzero < 0 else -1
    before = [explained(normal, moment, row, n_groups) for row in starts]
    values = descend(normal, moment, *anywhere(d, n_groups), n_groups, n_nonzero, starts, SWEEPS)
    assert np.isfinite(values).all()
    scale = 1e-6 * max(values.max(), 1e-300)
    for row, value, start in zip(starts, values, before, strict=True):
        assert value == pytest.approx(explained(normal, moment, row, n_groups), abs=scale)
        assert value >= start - scale


def test_empty_groups_are_filled():
    normal, moment = quadratic(np.random.default_rng(3), 5)
    labels = np.zeros((1, 5), dtype=np.intp)
    descend(normal, moment, *anywhere(5, 3), 3, -1, labels, SWEEPS)
    assert set(labels[0]) == {0, 1, 2}


def test_more_groups_than_features():
    normal, moment = quadratic(np.random.default_rng(3), 3)
    labels = np.zeros((1, 3), dtype=np.intp)
    (value,) = descend(normal, moment, *anywhere(3, 6), 6, -1, labels, SWEEPS)
    assert value == pytest.approx(0.5 * np.sum(moment * np.linalg.solve(normal, moment)))
    assert len(set(labels[0])) == 3


def test_one_feature():
    normal, moment = np.array([[2.0]]), np.array([[3.0]])
    labels = np.array([[0], [-1]])
    values = descend(normal, moment, *anywhere(1, 1), 1, 1, labels, SWEEPS)
    assert values.tolist() == [2.25, 2.25]
    assert labels.tolist() == [[0], [0]]


@pytest.mark.parametrize("seed", cases(60))
def test_annealing_keeps_to_what_is_permitted(seed):
    normal, moment, first, last, n_groups, n_nonzero, labels = random_problem(seed)
    used = set(labels[labels >= 0])
    rng = np.random.default_rng(seed)
    temperatures = np.geomspace(1.0, 1e-3, 20)
    uniforms = rng.random((20, len(labels)))
    anneal(normal, moment, first, last, n_groups, n_nonzero, labels, temperatures, uniforms)
    assert np.all((labels == -1) | ((first <= labels) & (labels < last)))
    assert n_nonzero >= 0 or used <= set(labels)
    assert n_nonzero < 0 or np.sum(labels >= 0) <= n_nonzero


def test_draws_follow_the_chances():
    # The best weights of the groups are 0.55 and -1; where the first feature goes with a chance
    # that the change of its own part of the objective says.
    normal, moment = np.eye(3), np.array([[0.1], [1.0], [-1.0]])
    temperature = 0.7
    values = 0.5 * np.array([0.55, -1.0]) ** 2 - 0.1 * np.array([0.55, -1.0])
    chance = 1.0 / (1.0 + np.exp((values[0] - values[1]) / temperature))
    drawn = []
    for uniform in (chance - 1e-9, chance + 1e-9):
        labels = np.array([0, 0, 1])
        uniforms = np.array([[uniform, 0.0, 0.0]])
        anneal(normal, moment, *anywhere(3, 2), 2, -1, labels, np.array([temperature]), uniforms)
        drawn.append(int(labels[0]))
    assert drawn == [0, 1]


def test_a_cold_sweep_goes_downhill():
    rng = np.random.default_rng(0)
    normal, moment = quadratic(rng, 30, n_samples=50)
    labels = rng.integers(0, 4, 30)
    before = explained(normal, moment, labels, 4)
    uniforms = rng.random((30, 30))
    anneal(normal, moment, *anywhere(30, 4), 4, -1, labels, np.full(30, 1e-9), uniforms)
    assert explained(normal, moment, labels, 4) > before


@pytest.mark.parametrize("angle", [1e-3, 3e-4, 1e-4])
def test_dependent_groups_explain_all_there_is(angle):
    """Two nearly parallel groups and a third in their plane: no pivot but the last is rounding."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        parallel, third = rng.standard_normal((2, 2))
        across = np.array([-parallel[1], parallel[0]])
        factor = np.stack([parallel, 1.7 * parallel + angle * across, third], axis=1)
        normal = np.ascontiguousarray(factor.T @ factor)
        target = rng.standard_normal(2)
        moment = np.ascontiguousarray((factor.T @ target)[:, None])
        labels = np.arange(3, dtype=np.intp)[None]
        (found,) = descend(normal, moment, *anywhere(3, 3), 3, -1, labels, 0)
        np.testing.assert_allclose(found, 0.5 * target @ target, rtol=1e-5)
