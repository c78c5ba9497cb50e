"""Groups as tables in plain text, and as data frames."""

import numpy as np
import pandas as pd
import pytest

import clustruct as cs

FEATURES = cs.datasets.make_clustered_features(80, 6, 2, random_state=0)
NAMED = pd.DataFrame(FEATURES.X, columns=[f"column {j}" for j in range(6)])
SIGNS = np.where(FEATURES.y > 0.0, "malignant", "benign")
THIRDS = np.array(["low", "middle", "high"])[
    np.digitize(FEATURES.y, np.quantile(FEATURES.y, [1 / 3, 2 / 3]))
]
EXPERTS = cs.datasets.make_experts(120, 3, 2, random_state=0)
CLASSES = cs.datasets.make_experts(120, 3, 2, n_outputs=4, classification=True, random_state=0)


def lines_of(groups):
    """Title, header and rows of a table, which is aligned below its header."""
    assert str(groups) == repr(groups)
    title, empty, header, rule, *rows = repr(groups).splitlines()
    assert not empty
    assert set(rule) == {"-"}
    last = header.rindex("  ") + 2
    assert all(row[last - 2 : last] == "  " and row[last] != " " for row in rows)
    assert max(map(len, (header, *rows))) == len(rule) <= 100
    return title, header, rows


def test_groups_of_features_are_a_table():
    model = cs.FeatureClusterRegressor(2).fit(NAMED, FEATURES.y)
    title, header, rows = lines_of(model.clusters())
    assert title == "6 features in 2 groups"
    assert header.split() == ["group", "weight", "size", "features"]
    for q, row in enumerate(rows):
        assert row.split()[:3] == [
            str(q),
            f"{model.cluster_values_[q]:.4g}",
            str(model.cluster_sizes_[q]),
        ]
        assert all((f"column {j}" in row) == (model.labels_[j] == q) for j in range(6))


def test_two_classes_say_what_positive_weights_favour():
    model = cs.FeatureClusterClassifier(2).fit(NAMED, SIGNS)
    title, _, _ = lines_of(model.clusters())
    assert title.endswith("positive weights speak for malignant, negative ones for benign")
    group = model.clusters()[-1]  # the largest weight: raising these columns raises the odds
    raised = NAMED.copy()
    raised[list(group.features)] += 1.0
    odds = [model.predict_proba(X)[:, model.classes_ == "malignant"] for X in (NAMED, raised)]
    assert ((odds[1] > odds[0]) == (group.weight > 0.0)).all()


def test_several_classes_have_a_column_of_weights_each():
    model = cs.FeatureClusterClassifier(2).fit(NAMED, THIRDS)
    _, header, rows = lines_of(model.clusters())
    assert header.split()[1:4] == ["high", "low", "middle"]
    assert rows[0].split()[1:4] == [f"{value:.4g}" for value in model.cluster_values_[0]]
    assert "<th" in model.clusters()._repr_html_()
    assert "middle" in model.clusters()._repr_html_()


def test_many_classes_show_the_largest_weights():
    weight = np.zeros(12)
    weight[[3, 7]] = -2.0, 1.0
    groups = cs.FeatureGroups(
        [cs.FeatureGroup(0, weight, 1, ("x0",))], [f"class{k}" for k in range(12)]
    )
    assert "class3 -2, class7 +1" in repr(groups)


def test_long_lists_and_long_tables_are_cut():
    names = tuple(f"x{j}" for j in range(1000))
    group = cs.FeatureGroup(0, 1.0, 1000, names)
    assert "and 980 more" in repr(cs.FeatureGroups([group]))
    text = repr(cs.FeatureGroups([group] * 200))
    assert "170 more" in text
    assert text.count("and 980 more") == 30


def test_one_group_is_singular_and_none_is_a_table():
    assert repr(cs.FeatureGroups([cs.FeatureGroup(0, 1.0, 1, ("x",))])).startswith(
        "1 feature in 1 group\n"
    )
    assert repr(cs.FeatureGroups()).startswith("0 features in 0 groups\n")


def test_groups_of_tasks_are_a_table():
    problem = cs.datasets.make_clustered_tasks(n_tasks=8, n_clusters=2, random_state=0)
    model = cs.TaskClusterRegressor(2).fit(*problem.columns())
    title, _, rows = lines_of(model.clusters())
    assert title == "8 tasks in 2 groups"
    assert [int(row.split()[1]) for row in rows] == model.cluster_sizes_.tolist()


def test_experts_are_a_table():
    frame = pd.DataFrame(EXPERTS.X, columns=["age", "height", "weight"])
    model = cs.SampleClusterRegressor(2, random_state=0).fit(frame, EXPERTS.y)
    groups = model.clusters()
    assert isinstance(groups, cs.ExpertGroups)
    np.testing.assert_array_equal([g.coef for g in groups], model.experts_)
    np.testing.assert_array_equal([g.intercept for g in groups], model.intercepts_)
    np.testing.assert_array_equal([g.share for g in groups], model.weights_)
    assert [g.size for g in groups] == np.bincount(model.labels_).tolist()
    title, header, rows = lines_of(groups)
    assert title == "2 experts of 120 samples"
    assert header.split()[:4] == ["expert", "share", "size", "intercept"]
    strongest = np.abs(model.experts_[0]).argmax()
    assert rows[0].split("  ")[-1].split()[0] == frame.columns[strongest]


@pytest.mark.parametrize(
    "model", [cs.SampleClusterClassifier(2, random_state=0), cs.SampleClusterClassifierCV((1, 2))]
)
def test_experts_name_the_classes(model):
    names = np.array(["ant", "bee", "cat", "dog"])[CLASSES.y.astype(int)]
    model.set_params(n_init=1, random_state=0).fit(CLASSES.X, names)
    text = " ".join(repr(model.clusters()).split())
    assert sum(f"{name}: intercept" in text for name in ("ant", "bee", "cat", "dog")) >= 3
    assert "and 1 more" in text


def test_experts_with_several_numbers_are_a_table():
    Y = np.column_stack([EXPERTS.y, -EXPERTS.y])
    model = cs.SampleClusterRegressor(2, n_init=1, random_state=0).fit(EXPERTS.X, Y)
    assert "output 1: intercept" in " ".join(repr(model.clusters()).split())


def test_data_frames_have_the_fields_as_columns():
    experts = cs.SampleClusterRegressor(2, random_state=0).fit(EXPERTS.X, EXPERTS.y)
    frame = pd.DataFrame(experts.clusters())
    shown = ["label", "share", "size", "intercept", "coef", "features", "firmness"]
    assert list(frame) == shown
    frame = pd.DataFrame(cs.FeatureClusterClassifier(2).fit(NAMED, SIGNS).clusters())
    assert list(frame) == ["label", "weight", "size", "features", "firmness", "interval"]
    assert frame["weight"].dtype == np.float64
