"""Reports on frames with factors: the section, its figures and tables, and rivals of the frame."""

import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
from sklearn.preprocessing import OneHotEncoder

import clustruct as cs
from clustruct.explanation.origins import origins_of
from clustruct.figures.factors import FactorLevelsView, LevelSeries, factor_figure, lift_figure
from clustruct.figures.svg import render
from clustruct.reporting.comparing import rivals
from clustruct.reporting.comparing.comparison import compare, hold_out
from clustruct.reporting.comparing.encoding import as_codes, as_matrix
from clustruct.reporting.comparing.samples import Data
from clustruct.reporting.factors.levels import (
    MOST_ROWS,
    MOST_STEPS,
    FactorRows,
    factor_rows,
    judged_factors,
)
from clustruct.reporting.factors.section import describe_factors
from clustruct.results import Relativity
from tests.reporting.conftest import ENDING, EVIL, embedded
from tests.reporting.conftest import N_POLICIES as N

pandas = pytest.importorskip("pandas")


@pytest.fixture(autouse=True)
def without_boosting(monkeypatch):
    """Boosting takes longest; the tests that want it ask for it."""
    monkeypatch.setattr(rivals, "MOST_BOOSTED", 0)


@pytest.fixture(scope="module")
def parts(tariff):
    """The comparison with held-out rows of the tariff."""
    model, X, y, offset = tariff
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rivals, "MOST_BOOSTED", 0)
        data = Data(X, y, offset=offset)
        return data, compare(model, *hold_out(model, data, 0.25, 0), seed=0, refit=True)


# ---- What rivals see of a frame.


def test_the_matrix_is_that_of_an_encoder_and_unknown_levels_have_none(tariff):
    model, X, _, _ = tariff
    names = ["<b>fuel</b>", "postcode", "noise"]
    columns = np.flatnonzero([o.column in names for o in origins_of(model)])
    matrix = as_matrix(model, X)
    plain = OneHotEncoder().fit(X[names]).transform(X[names])
    assert matrix.shape[1] == model.factors_.n_weights
    np.testing.assert_array_equal(matrix[:, columns].toarray(), plain.toarray())
    np.testing.assert_allclose(matrix[:, [-1]].toarray()[:, 0], X["km"])
    new = X[:2].assign(noise=["a", "never seen"])
    mine = np.flatnonzero([o.column == "noise" for o in origins_of(model)])
    np.testing.assert_array_equal(as_matrix(model, new)[:, mine].toarray(), [[1, 0], [0, 0]])
    # The scores of the model are those of the matrix.
    scores = matrix @ model.coef_ + model.intercept_
    np.testing.assert_allclose(np.exp(scores), model.predict(X, np.zeros(N)), rtol=1e-9)


def test_trees_get_codes_in_the_order_of_the_levels(tariff):
    model, X, _, _ = tariff
    new = X[:3].assign(noise=["a", "b", "never seen"], age=[20.0, np.nan, 40.0])
    found = as_codes(model, X, new)
    place = {each.name: f for f, each in enumerate(model.factors_.factors)}
    assert found.train.shape == (N, 7)
    assert found.categorical == [place[n] for n in ("<b>fuel</b>", "postcode", "noise", "same")]
    np.testing.assert_array_equal(found.test[:, place["noise"]], [0, 1, np.nan])
    np.testing.assert_array_equal(np.isnan(found.test[:, place["age"]]), [0, 1, 0])
    assert found.test[0, place["age"]] < found.test[2, place["age"]]
    np.testing.assert_array_equal(found.test[:, -1], X["km"][:3])


def test_many_levels_are_numbers_for_trees():
    X = pandas.DataFrame({"code": [f"{q:03d}" for q in range(300)], "few": ["a", "b"] * 150})
    model = cs.FeatureClusterRegressor(4).fit(X, np.arange(300.0))
    assert as_codes(model, X, X).categorical == [1]


def test_rivals_of_frames_are_fitted_and_boosting_is_among_them(tariff, monkeypatch):
    monkeypatch.setattr(rivals, "MOST_BOOSTED", 10**7)
    monkeypatch.setattr(rivals, "MOST_TUNED", 0)
    model, X, y, offset = tariff
    train, test = (Data(X[p], y[p], offset=offset[p]) for p in (slice(450), slice(450, N)))
    found = compare(model, train, test, seed=0)
    assert [one.role for one in found.entries] == ["constant", "linear", "boosting", "ours"]
    for one in found.entries[1:]:
        assert one.scores["Gini"] > 0.25
        assert one.loss < 0.9 * found.constant.loss


def test_units_of_numbers_do_not_matter_to_the_ridge(tariff):
    _, X, y, offset = tariff
    coarse = X.assign(km=1e4 * X["km"])
    losses = []
    for frame in (X, coarse):
        same = cs.FeatureClusterRegressor(20, loss="poisson", factors={"age": "ordinal"})
        train, test = (Data(frame[p], y[p], offset=offset[p]) for p in (slice(450), slice(450, N)))
        same.fit(train.X, train.y, offset=train.offset)
        losses.append(compare(same, train, test, seed=0).rival.loss)
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


# ---- Sums over held-out rows.


def test_held_out_means_are_those_of_the_model_that_was_judged(tariff, parts):
    _, found = parts
    held = found.held_out
    assert found.refitted
    rows = judged_factors(found)["noise"]
    for q, row in enumerate(rows.levels):
        mine = np.asarray(held.X["noise"] == row.level)
        predicted = found.judged.predict(held.X[mine], held.offset[mine])
        assert rows.held_out.exposure[q] == pytest.approx(np.exp(held.offset[mine]).sum())
        assert rows.held_out.observed[q] == pytest.approx(held.y[mine].sum())
        assert rows.held_out.fitted[q] == pytest.approx(predicted.sum())
    # The groups of levels are those of the copy, which has not seen the targets.
    table = {(row.factor, row.level): row.group for row in found.judged.relativities()}
    assert all(row.group == table[row.factor, row.level] for row in rows.levels)


def test_given_rows_have_the_sums_of_the_table(tariff, rng):
    model, X, y, offset = tariff
    weights = rng.integers(1, 4, 150) * 1.0
    test = Data(X[450:], y[450:], weights=weights, offset=offset[450:])
    found = compare(model, Data(X[:450], y[:450], offset=offset[:450]), test, seed=0)
    table = model.relativities(test.X, test.y, offset=test.offset, sample_weight=weights)
    for factor in judged_factors(found).values():
        mine = [row for row in table if row.factor == factor.name][: len(factor.levels)]
        for name in ("exposure", "observed", "fitted"):
            expected = [getattr(row, name) for row in mine]
            np.testing.assert_allclose(getattr(factor.held_out, name), expected, atol=1e-12)


def test_errors_of_observed_means_have_the_right_size():
    """Two levels with Poisson claims: the standard errors are those over many draws."""
    rng = np.random.default_rng(3)
    X = pandas.DataFrame({"level": np.repeat(["a", "b"], [100, 300])})
    mean = np.repeat([0.5, 1.5], [100, 300])
    model = cs.FeatureClusterRegressor(2, loss="poisson").fit(X, mean)
    found = compare(model, Data(X, mean), Data(X, mean), seed=0, n_fitted=1000)
    sums = []
    for _ in range(200):
        data = Data(X, rng.poisson(mean) * 1.0)
        other = replace(found, truth=data.y, held_out=data)
        held = judged_factors(other)["level"].held_out
        sums.append([held.observed, held.variance])
    observed, variance = np.array(sums).transpose(1, 0, 2)
    np.testing.assert_allclose(variance.mean(axis=0), [50.0, 450.0], rtol=0.05)
    np.testing.assert_allclose(observed.var(axis=0), variance.mean(axis=0), rtol=0.3)


# ---- Bands.


def rows_of(groups, kind, exposure=None, missing=False):
    """A factor whose levels have these groups, with effects that rise with the group."""
    exposure = np.ones(len(groups)) if exposure is None else exposure
    names = [*range(len(groups) - missing), *([None] if missing else [])]
    levels = [
        Relativity("f", name, kind, int(q), float(e), 1.0, 0.1 * q, float(np.exp(0.1 * q)))
        for name, q, e in zip(names, groups, exposure, strict=True)
    ]
    return FactorRows("f", kind, levels, None)


def test_few_levels_are_drawn_one_by_one_sorted_by_effect_or_in_their_order():
    groups = [2, 0, 1, 0]
    assert [band.name for band in rows_of(groups, "nominal").bands()] == ["1", "3", "2", "0"]
    assert [band.name for band in rows_of(groups, "ordinal").bands()] == ["0", "1", "2", "3"]


def test_many_levels_are_drawn_by_group_and_say_how_many(rng):
    groups = rng.integers(0, 5, 583)
    bands = rows_of(groups, "nominal", rng.random(583)).bands()
    sizes = np.bincount(groups)
    assert [b.name for b in bands] == [f"group {q}: {sizes[q]} levels" for q in range(5)]
    assert [b.relativity for b in bands] == pytest.approx(np.exp(0.1 * np.arange(5)))
    assert sum(b.exposure for b in bands) == pytest.approx(rows_of(groups, "nominal").exposure, 0.6)
    assert sorted(np.concatenate([b.places for b in bands])) == list(range(583))


def test_many_groups_share_bands(rng):
    bands = rows_of(np.arange(400), "nominal").bands()
    assert len(bands) == MOST_ROWS
    assert bands[0].name == "groups 0-13: 14 levels"
    steps = rows_of(np.repeat(np.arange(40), 10), "ordinal", missing=True).bands()
    assert len(steps) == 41 < MOST_STEPS
    assert (steps[0].name, steps[-1].name) == ("0\N{EN DASH}9 (10)", "missing")


def test_rare_neighbours_share_a_held_out_mean(tariff, parts):
    held = judged_factors(parts[1])["age"]
    bands = held.held_out_bands()
    total = held.held_out.exposure.sum()
    assert len(bands) < len(held.levels)
    assert bands[-1].name == "missing"
    for band in bands[:-1]:
        assert held.held_out.exposure[band.places].sum() >= 0.02 * total
    assert np.concatenate([b.places for b in bands]).tolist() == list(range(len(held.levels)))


# ---- The section and the page.


def test_the_section_says_what_matters_and_what_is_left_out(tariff, parts):
    model, *_ = tariff
    section, members = describe_factors(model, *parts)
    table = model.relativities()
    groups = {f.name: len(f.groups) for f in factor_rows(model, table)}
    inside = [part.name for part in section.parts]
    assert set(inside) == {name for name, count in groups.items() if count > 1}
    assert inside[0] == "<b>fuel</b>"
    assert {"<b>fuel</b>", "age", "postcode"} <= set(inside)
    assert groups["same"] == 1
    left_out = next(text for text in section.notes if text.startswith("Left out"))
    assert "same" in left_out
    assert "fuel" not in left_out
    assert f"the prediction is {table.base:.3f}"[:-1] in section.notes[0]
    assert section.numbers[0][0] == "km"
    assert members.total == len(table)
    by_name = {part.name: part for part in section.parts}
    assert all(len(part.pictures) == 2 for part in section.parts)
    fuel = by_name["<b>fuel</b>"]
    assert len(fuel.rows) == 6
    assert not fuel.is_long
    assert fuel.rows[0][0] == "(empty)"
    n_codes = parts[0].X["postcode"].nunique()
    assert by_name["postcode"].summary.startswith(f"{n_codes} levels in")
    assert "and " in " ".join(row[0] for row in by_name["postcode"].rows)
    assert by_name["age"].summary.startswith("decreasing, 43 levels in")


def test_the_page_is_safe_and_complete(read, tariff):
    model, X, y, offset = tariff
    text = read(model, X, y, offset=offset, test_size=0.3)
    for hostile in (EVIL, ENDING, "<b>fuel</b>"):
        assert hostile not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert 'id="factors"' in text
    assert text.index('id="how-well"') < text.index('id="factors"') < text.index('id="groups"')
    assert "Observed and fitted, held out" in text
    assert "Lift: held-out rows" in text
    assert '<th class="num">Gini</th>' in text
    assert "Poisson regression, a weight for every level" in text
    assert "model.relativities()" in unescape(text)
    data = embedded(text)
    assert data["columns"][:3] == ["level", "group", "factor"]
    assert len(data["rows"]) == len(model.relativities())
    assert not re.search(r"\bnan\b", text)
    assert len(text) < 400_000


def test_without_held_out_rows_nothing_is_observed(read, tariff):
    model, X, y, offset = tariff
    text = read(model, X, y, offset=offset, test_size=0)
    assert "Relativity of levels" in text
    assert "Observed and fitted" not in text


@pytest.mark.parametrize("weighted", [False, True])
def test_odds_of_classes(read, weighted, rng):
    X = pandas.DataFrame({"colour": rng.choice(["red", "blue", "grey"], 400)})
    y = np.where((X["colour"] == "red") ^ (rng.random(400) < 0.2), "yes", "no")
    weights = rng.integers(1, 4, 400) * 1.0 if weighted else None
    model = cs.FeatureClusterClassifier(2, loss="logistic").fit(X, y, sample_weight=weights)
    text = read(model, X, y, sample_weight=weights)
    assert "A relativity multiplies the odds of the level with the most" in text
    assert "share of yes" in text
    total = sum(row.exposure for row in model.relativities())
    assert total == pytest.approx(400.0 if weights is None else weights.sum())
    assert (">exposure</th>" in text) == weighted


def test_all_factors_out_several_outputs_and_quantiles(read, rng):
    X = pandas.DataFrame({"colour": rng.choice(["red", "blue"], 80), "one": "same"})
    y = rng.standard_normal(80)
    flat = cs.FeatureClusterRegressor(price=1e6).fit(X, y)
    text = read(flat, X, y)
    assert "same effect: colour and one." in text
    assert "Relativity of levels" not in text
    several = cs.FeatureClusterRegressor(3).fit(X, np.column_stack([y, -y]))
    text = read(several, X, np.column_stack([y, -y]))
    assert 'id="factors"' not in text
    assert 'id="groups"' in text
    middle = cs.FeatureClusterRegressor(3, loss="quantile").fit(X, y + (X["colour"] == "red"))
    text = read(middle, X, y + (X["colour"] == "red"))
    assert "Difference of levels" in text
    assert "Observed and fitted" not in text  # a mean is no quantile


def test_weights_are_checked(tariff, tmp_path):
    model, X, y, offset = tariff
    for weights in (np.ones(3), -np.ones(N)):
        with pytest.raises(ValueError, match=r"sample_weight has shape .* Give one number"):
            cs.report(model, X, y, tmp_path / "r.html", offset=offset, sample_weight=weights)


# ---- Figures.


@pytest.mark.parametrize("ordered", [True, False])
def test_figures_draw_in_both_renderers(ordered):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    from clustruct.figures.mpl import draw

    values = np.array([1.0, 1.4, np.nan, 0.8])
    series = (
        LevelSeries("fitted", values),
        LevelSeries("observed", values + 0.1, line=False, errors=np.array([0.1, 9.0, 0.1, np.nan])),
    )
    view = FactorLevelsView(
        "A & B",
        ["a", "b", EVIL, "missing"],
        np.array([0.5, 0.3, 0.0, 0.2]),
        ordered,
        np.array([True, True, True, False]),
        series,
        "relativity",
        1.0,
    )
    figure = factor_figure(view)
    text = render(figure)
    assert EVIL not in text
    assert "nan" not in text.replace(EVIL, "")
    axes = Figure().subplots()
    draw(axes, figure)
    limits = figure.y.limits if ordered else figure.x.limits
    for mark in figure.marks:
        reach = np.asarray(mark.extent[1 if ordered else 0], dtype=float)
        assert (reach >= limits[0] - 1e-9).all()
        assert (reach <= limits[1] + 1e-9).all()
    assert axes.get_legend() is not None
    # A flat factor has a picture, too.
    render(factor_figure(replace(view, series=(LevelSeries("r", np.ones(4)),))))


def test_lift_is_drawn():
    text = render(lift_figure(np.linspace(0.1, 0.3, 10), np.linspace(0.1, 0.2, 10), "mean"))
    assert text.count("<circle") == 22
    assert "part 10: observed 0.3" in text
