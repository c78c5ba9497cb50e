"""Compiled and uncompiled kernels return the same bits, the latter also without Cython."""

import json

import pytest

from clustruct.kernels import COMPILED

CODE = """
import json
import numpy as np
from clustruct.kernels import COMPILED
from clustruct.kernels.cuts import penalised
from clustruct.kernels.factors import segments, sweeps
from clustruct.kernels.fits import anchored, elemental, minorant, reassign, weighted_fits
from clustruct.kernels.kmeans import kmeans1d, sparse1d

def bits(*results):
    return [r.tolist() if r.dtype.kind == "i" else [x.hex() for x in r.tolist()]
            for r in map(np.atleast_1d, results)]

rng = np.random.default_rng(0)
shapes = {
    "normal": rng.standard_normal(250),
    "cauchy": rng.standard_cauchy(250),
    "ties": rng.integers(-9, 9, 250) / 4.0,
    "offset": 1e8 + rng.standard_normal(250),
    "tight": rng.choice([-1.0, 0.3, 2.0], 250) + 1e-9 * rng.standard_normal(250),
    "long": rng.standard_normal(2500),
}
found = {"compiled": COMPILED}
for name, values in shapes.items():
    weights = 10.0 ** rng.uniform(-6, 6, len(values))
    weights[::7] = 0.0
    for n_clusters in (1, 2, 3, 12):
        for kind, w in (("plain", None), ("weighted", weights)):
            key = f"{name}, {n_clusters} groups, {kind}"
            found[key] = bits(*kmeans1d.cluster_values(values, w, n_clusters))
    for n_clusters, n_nonzero in ((1, 20), (3, 90), (9, 60)):
        key = f"{name}, {n_clusters} groups, {n_nonzero} nonzero"
        found[key] = bits(*sparse1d.project_sparse(values, n_clusters, n_nonzero))
for name, values in shapes.items():
    values = values[:60]
    weights = rng.random(60) * (rng.random(60) < 0.9)
    price = 0.02 * weights @ (values - values.mean()) ** 2
    labels, centers = np.empty(60, dtype=np.intp), np.zeros(60)
    for kind, code in segments.KINDS.items():
        for most, min_weight in ((60, 0.0), (60, 2.0), (4, 0.0)):
            made = segments.Segmenter(60).group(
                code, values, weights, segments.NONE, most, price, min_weight, labels, centers
            )
            key = f"{name}, {kind}, {most} groups, {min_weight} at least"
            found[key] = bits(made[0], made[1], labels, centers[: made[0]])
x, y = rng.standard_normal((25, 30)), rng.standard_normal((25, 2))
first, last = np.zeros(30, dtype=np.intp), np.full(30, 4)
for n_nonzero in (-1, 12):
    problem = x.T @ x + 0.01 * np.eye(30), x.T @ y, first, last, 4, n_nonzero
    labels = rng.integers(0, 4, (3, 30))
    labels[:, 12:] = labels[:, 12:] if n_nonzero < 0 else -1
    wandering = labels[0].copy()
    found[f"descent, {n_nonzero}"] = bits(reassign.descend(*problem, labels, 50), *labels)
    reassign.anneal(*problem, wandering, np.geomspace(9.0, 0.01, 40), rng.random((40, 30)))
    found[f"annealing, {n_nonzero}"] = bits(wandering)
    partners = (np.arange(30)[:, None] + np.array([1, 2])) % 30
    chances, temperatures = rng.random((2, 9, 30)), np.geomspace(9.0, 0.01, 9)
    reassign.anneal(*problem, wandering, temperatures, chances[0], partners, chances[1])
    paired = wandering[None].copy()
    explained = reassign.descend(*problem, paired, 50, partners)
    found[f"pairs, {n_nonzero}"] = bits(wandering, explained, *paired)
linear, weights = rng.standard_normal(20), rng.uniform(0.1, 2.0, 20)
explained, labels = anchored.best_groups(linear, weights, 2, 5)
found["anchored"] = bits(explained, labels)
tried = anchored.explained_if(linear, weights, 2, 5, np.arange(2, 20, 3))
found["decisions"] = bits(tried.ravel())
vectors = rng.standard_normal((30, 8))
found["minorant"] = bits(minorant.balance(problem[0], vectors, np.ones(30), 5), vectors.ravel())
factors = []
for size, dtype in ((6, np.uint8), (9, np.uint16), (4, np.int32)):
    codes = rng.integers(0, size, 80).astype(dtype)
    first = sum(len(factor.array("values")) for factor in factors)
    factors.append(sweeps.CodedFactor(codes, size, size, 0, np.ones(size), 0.0, first))
shares, rows = np.full(80, 1 / 80), rng.standard_normal(80) / 80
for factor in factors:
    factor.weigh(shares)
columns = rng.random((80, 19))
gram, masses = columns.T @ columns, columns.sum(axis=0)
ways = {"rows": (rows, shares), "columns": (columns.T @ rows, gram, masses)}
for way, kind in (("rows", sweeps.RowResiduals), ("columns", sweeps.ColumnResiduals)):
    residuals = kind()
    residuals.hold(*ways[way])
    for _ in range(3):
        sweeps.sweep(factors, residuals, np.full(3, 1e-3), np.array([6, 9, 4]), 0.01, 1.0)
    values = [factor.array("values") for factor in factors]
    found["sweeps by " + way] = bits(ways[way][0], *values)
grouped = np.zeros((4, 4))
sweeps.group_gram(gram, rng.integers(0, 4, 19), grouped)
found["grouped Gram matrix"] = bits(grouped.ravel())
features, weights = np.hstack([x[:, :2], np.ones((25, 1))]), np.full(25, 0.04)
values, labels = elemental.search(
    features, y, weights, np.array([0.1, 0.1, 0.0]), 3, rng.random((4, 3, 3)), 50
)
found["elemental"] = bits(values, labels.ravel())
ridges = np.array([0.1, 0.1, 0.0])
experts, least = weighted_fits.fit_experts(features, y, ridges, rng.random((2, 25)))
costs = weighted_fits.costs_of(features, y, ridges, experts)
expert, follower = experts[0].copy(), weighted_fits.Follower(features, y, np.ones(25), 0.01)
followed = np.array(follower.follow(weights, expert, 1.0, 1e-3), dtype=float)
found["weighted fits"] = bits(experts.ravel(), costs.ravel(), least, expert.ravel(), followed)
print(json.dumps(found))
"""


# What uncompiled kernels find where the Cython package is not installed.
WITHOUT_CYTHON = "import sys\nsys.modules['cython'] = None\n"


@pytest.mark.skipif(not COMPILED, reason="nothing to compare with")
def test_compiled_and_uncompiled_kernels_return_the_same_bits(run_python):
    done = [run_python(CODE), run_python(WITHOUT_CYTHON + CODE, uncompiled=True)]
    for process in done:
        assert process.returncode == 0, process.stderr
    compiled, uncompiled = (json.loads(process.stdout) for process in done)
    assert compiled.pop("compiled") is True
    assert uncompiled.pop("compiled") is False
    assert len(compiled) == 170
    for key, bits in compiled.items():
        assert uncompiled[key] == bits, key
