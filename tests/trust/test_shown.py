"""Where people see how firm groups are: tables, model files, plots, reports, the command line."""

import json

import numpy as np
import pandas as pd
import pytest

import clustruct as cs
from clustruct import cli


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 6))
    return X, X @ np.array([-1.0, -1.0, 0.1, -0.1, 1.0, 1.0]) + rng.standard_normal(120)


@pytest.fixture(scope="module")
def model(samples):
    return cs.FeatureClusterRegressor(2).fit(*samples)


@pytest.fixture(scope="module")
def found(model, samples):
    return cs.stability(model, *samples, n_resamples=16, scheme="bootstrap", random_state=0)


def test_tables_have_columns_for_it(model, samples, found):
    before = cs.FeatureClusterRegressor(2).fit(*samples).clusters()
    assert "firmness" not in str(before)
    groups = model.clusters()
    assert [group.firmness for group in groups] == found.group_firmness.tolist()
    intervals = [each.with_grouping for each in found.intervals()]
    assert [group.interval for group in groups] == intervals[:2]
    assert "90 % interval" in str(groups)
    assert "firmness" in groups._repr_html_()


def test_a_new_fit_forgets_it(samples):
    model = cs.FeatureClusterRegressor(2).fit(*samples)
    cs.stability(model, *samples, n_resamples=2, random_state=0)
    assert model.stability_ is not None
    assert model.fit(*samples).stability_ is None


def test_model_files_carry_the_summary(model, found, tmp_path):
    path = tmp_path / "model.clustruct"
    cs.save(model, path)
    kept = cs.load(path).stability_
    np.testing.assert_array_equal(kept.firmness, found.firmness)
    assert kept.labels is None
    assert kept.in_words == found.in_words
    assert str(kept.intervals()) == str(found.intervals())


@pytest.mark.parametrize("quantity", ["map", "wavering"])
def test_plots(found, quantity):
    for result in (found, found.summary()):
        display = cs.plot.stability(result, quantity=quantity)
        assert display.ax_.get_title("left")


def test_a_map_shows_the_co_membership(found):
    from clustruct.figures.trust import map_figure

    cells = map_figure(found).marks[0]
    order = np.lexsort((-found.firmness, found.model_labels))
    np.testing.assert_allclose(cells.values, found.co_membership()[np.ix_(order, order)])


def test_the_report_begins_with_the_verdict(model, samples, found, tmp_path):
    page = cs.report(model, *samples, tmp_path / "report.html", test_size=0).read_text("utf-8")
    lead = page.index(found.in_words.split(".")[0])
    assert lead < page.index("Would the groups come again")


def test_the_command_line(samples, tmp_path, capsys):
    X, y = samples
    table = tmp_path / "table.csv"
    pd.DataFrame(X, columns=list("abcdef")).assign(y=y).to_csv(table, index=False)
    fit = ["fit", str(table), "--target", "y", "--clusters", "2", "--alpha", "0.01"]
    assert cli.main([*fit, "--test-size", "0", "--stability", "4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["model"]["stability"]
    assert found["n_resamples"] == 4
    assert len(found["firmness"]) == 2
    with pytest.raises(SystemExit):
        cli.main([*fit, "--stability", "1"])
    assert "no number of at least 2" in capsys.readouterr().err


def test_the_command_line_may_keep_what_was_chosen(samples, tmp_path, capsys):
    X, y = samples
    table = tmp_path / "table.csv"
    pd.DataFrame(X, columns=list("abcdef")).assign(y=y).to_csv(table, index=False)
    fit = ["fit", str(table), "--target", "y", "--clusters", "1:4", "--test-size", "0", "--json"]
    assert cli.main([*fit, "--stability", "8", "--keep-choice"]) == 0
    model = json.loads(capsys.readouterr().out)["model"]
    assert set(model["stability"]["n_clusters"]) == {model["chosen"]["n_clusters"]}
    assert cli.main([*fit, "--keep-choice"]) == 2
    assert "--keep-choice goes with --stability" in capsys.readouterr().err
