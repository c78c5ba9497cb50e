"""Intervals of relativities: by their definition, where they are shown, and their coverage."""

import json

import numpy as np
import pandas as pd
import pytest

import clustruct as cs
from clustruct import cli


def policies(seed=0, n=200):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "fuel": rng.choice(["petrol", "diesel", "gas", "rare"], n, p=[0.5, 0.3, 0.195, 0.005]),
            "power": rng.uniform(40.0, 120.0, n),
        }
    )
    score = 0.5 * (frame["fuel"] == "gas") + 0.01 * frame["power"]
    return frame.assign(fuel=pd.Categorical(frame["fuel"])), rng.poisson(np.exp(score))


@pytest.fixture(scope="module")
def tariff():
    frame, y = policies()
    model = cs.FeatureClusterRegressor({"fuel": 2}, loss="poisson").fit(frame, y)
    before = model.relativities()
    assert "lower" not in before.rows()[0]
    found = cs.stability(model, frame, y, n_resamples=24, scheme="bootstrap", random_state=0)
    return model, found


def test_ratios_are_taken_inside_of_resamples(tariff):
    model, found = tariff
    weights = dict(zip(model.factors_.weight_names, found.weights[:, :, 0].T, strict=True))
    table = model.relativities()
    assert table.references == {"fuel": "petrol"}
    for row in table:
        mine = weights["power" if row.kind == "numeric" else f"fuel: {row.level}"]
        at = 0.0 if row.kind == "numeric" else weights["fuel: petrol"]
        ends = np.nanquantile(np.exp(mine - at), [0.05, 0.95])
        # Quantiles between two resamples are means of logarithms here.
        np.testing.assert_allclose([row.lower, row.upper], ends, rtol=2e-3)
        assert row.lower <= row.upper
    assert np.isnan(weights["fuel: rare"]).any()  # some resamples lack it
    assert table[0].factor == "fuel"
    reference = next(row for row in table if row.level == "petrol")
    assert (reference.lower, reference.upper) == (1.0, 1.0)


def test_relative_to_the_mean(tariff):
    model, found = tariff
    factor, weights = model.factors_.factors[0], found.weights[:, :4, 0]
    importance = np.where(np.isnan(weights), 0.0, factor.exposure)
    means = np.nansum(weights * importance, axis=1) / importance.sum(axis=1)
    for q, row in enumerate(model.relativities(reference="mean")[:4]):
        ends = np.nanquantile(weights[:, q] - means, [0.05, 0.95])
        np.testing.assert_allclose(np.log([row.lower, row.upper]), ends, atol=1e-12)


def test_other_references_have_none(tariff):
    rows = tariff[0].relativities(reference={"fuel": "gas"})
    assert [row.lower is None for row in rows] == [True] * 4 + [False]


def test_halves_have_none():
    frame, y = policies()
    model = cs.FeatureClusterRegressor({"fuel": 2}, loss="poisson").fit(frame, y)
    cs.stability(model, frame, y, n_resamples=2, random_state=0)
    assert "lower" not in model.relativities().rows()[0]


def test_files_keep_the_ends_only(tariff, tmp_path):
    model, _ = tariff
    cs.save(model, tmp_path / "model.clustruct")
    again = cs.load(tmp_path / "model.clustruct")
    assert again.stability_.weights is None
    assert again.relativities().rows() == model.relativities().rows()
    again.relativities().to_csv(tmp_path / "tariff.csv")
    table = pd.read_csv(tmp_path / "tariff.csv")
    assert table["lower"].tolist() == [row.lower for row in model.relativities()]


def test_unknown_levels_have_none(tariff):
    model, _ = tariff
    frame, _ = policies(1, 20)
    rows = model.relativities(frame.assign(fuel="steam"))
    assert [row.lower is None for row in rows] == [False] * 4 + [True, False]


def test_the_command_line_writes_them_in_the_units_of_the_table(tmp_path, capsys):
    frame, y = policies()
    frame.assign(y=y).to_csv(tmp_path / "table.csv", index=False)
    saved, out = tmp_path / "model.clustruct", tmp_path / "tariff.csv"
    fit = ["fit", str(tmp_path / "table.csv"), "--target", "y", "--loss", "poisson"]
    fit += ["--category", "fuel", "--clusters", "2", "--alpha", "0.001", "--test-size", "0"]
    assert cli.main([*fit, "--stability", "8", "--bootstrap", "--out", str(saved), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["model"]["stability"]["in_words"].count("bootstrap")
    assert cli.main(["tariff", str(saved), "--csv", str(out)]) == 0
    table = pd.read_csv(out).set_index("factor")
    assert (table["lower"] <= table["upper"]).all()
    power = table.loc["power"]
    assert power["lower"] < power["relativity"] < power["upper"] < 1.1  # for each unit
    assert cli.main([*fit, "--bootstrap"]) == 2
    assert "--bootstrap goes with --stability" in capsys.readouterr().err


def coverage(n_problems, n_resamples, gap):
    """Of relativities of eight levels in two groups; nominal 90 %."""
    hits = []
    names, truth = list("abcdefgh"), gap * np.repeat([0.0, 1.0], 4)
    for seed in range(n_problems):
        rng = np.random.default_rng(seed)
        codes = rng.integers(8, size=400)
        frame = pd.DataFrame({"level": pd.Categorical(np.array(names)[codes])})
        y = truth[codes] + rng.standard_normal(400)
        model = cs.FeatureClusterRegressor(2, alpha=0.0).fit(frame, y)
        drawn = {"scheme": "bootstrap", "n_resamples": n_resamples, "random_state": seed}
        cs.stability(model, frame, y, **drawn)
        table = model.relativities()
        (reference,) = table.references.values()
        for row in table:
            if row.level != reference:
                true = truth[names.index(row.level)] - truth[names.index(reference)]
                hits.append(row.lower - 1e-9 <= true <= row.upper + 1e-9)
    return np.mean(hits)


def test_coverage_where_groups_are_apart():
    assert coverage(10, 40, gap=1.0) > 0.75


@pytest.mark.slow
@pytest.mark.parametrize("gap", [1.0, 0.25])
def test_coverage_over_many_problems(gap):
    assert 0.87 <= coverage(150, 200, gap) <= 0.99
