"""The report as a file: what it says, what it leaves out, and what it does not let through."""

import html
import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import clustruct as cs
from clustruct.figures.numbers import shown
from tests.reporting.conftest import ENDING, EVIL, embedded


def visible(text):
    """The report without tags, scripts and styles."""
    text = re.sub(r"<(script|style).*?</\1>", "", text, flags=re.S)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", text))


# ---- What it says.


def test_says_what_was_fitted_and_proved(read, features):
    model, X, y = features
    text = visible(read(model, X, y, model_file="words.clustruct"))
    assert f"40 features were reduced to {model.n_clusters_} shared weights" in text
    assert model.certificate_.in_words.split(":")[0] in text
    assert model.status_.message.split(":")[0] in text
    assert "Choice of the number of groups" in text
    assert "cs.load(&#39;words.clustruct&#39;)" in text
    for weight in model.cluster_values_:
        assert shown(weight, 4) in text


def test_all_members_are_there(read, features):
    model, X, y = features
    found = embedded(read(model, X, y))
    assert {row[0] for row in found["rows"]} == set(X.columns)
    groups = dict(zip(X.columns, model.labels_, strict=True))
    assert all(groups[name] == group for name, group, _ in found["rows"])


def test_hostile_names_are_escaped_everywhere(read, features):
    model, X, y = features
    text = read(model, X, y, title=EVIL)
    assert EVIL not in text
    assert ENDING not in text
    assert "<img" not in text
    assert text.count("<script") == text.count("</script>") == 2


def test_asks_nothing_of_the_network(read, features):
    text = read(*features)
    assert not re.search(r"""(src|href)\s*=\s*["'](?!#|data:)""", text)
    assert not re.search(r"@import|url\(|http://|https://", text)
    assert "default-src 'none'" in text


def test_samples_show_who_belongs_where(read, samples):
    model, X, y = samples
    text = read(model, X, y)
    found = embedded(text)
    assert found["columns"][:3] == ["sample", "target", "expert"]
    for sample, target, expert, *predictions in found["rows"][:20]:
        assert target == pytest.approx(y[sample], rel=1e-4)
        assert expert == model.labels_[sample]
        assert predictions == pytest.approx(model.predict_experts(X[[sample]])[0], rel=1e-4)
    assert "Experts, best of 3 predictions" in text


def test_classes(read):
    problem = cs.datasets.make_clustered_features(
        300, 8, 2, low=-2, high=2, classification=True, random_state=1
    )
    model = cs.FeatureClusterClassifier(2).fit(problem.X, problem.y)
    text = visible(read(model, problem.X, problem.y))
    assert "Logistic regression, a weight for every feature" in text
    assert "Accuracy" in text
    assert "Log loss" in text


def test_classes_of_experts(read):
    problem = cs.datasets.make_experts(
        160, 3, 2, n_outputs=4, noise=0.2, classification=True, random_state=0
    )
    names = np.array(["a", "b", "c", EVIL])[problem.y]
    model = cs.SampleClusterClassifier(2, n_init=1, random_state=0).fit(problem.X, names)
    text = read(model, problem.X, names)
    assert EVIL not in text
    assert "Experts, best of 2 predictions" in text


def test_several_outputs(read, features):
    _, X, y = features
    Y = np.stack([y, -y], axis=1)
    model = cs.FeatureClusterRegressor(3).fit(X, Y)
    assert len(embedded(read(model, X, Y))["rows"]) == 40


TEXTS = [f"{word} film number{i % 7}" for i in range(60) for word in ("good", "bad")]


def test_a_pipeline_from_text(read):
    y = np.array([1.0, 0.0] * 60)
    model = make_pipeline(TfidfVectorizer(), cs.FeatureClusterRegressor(3)).fit(TEXTS, y)
    text = read(model, TEXTS, y)
    names = {row[0] for row in embedded(text)["rows"]}
    assert {"good", "bad", "film"} <= names
    assert "TfidfVectorizer" in text
    assert "model[-1].clusters()" in text


@pytest.fixture(scope="module")
def schools():
    """Tasks with rows of their own, one of them with a hostile name."""
    X, y, tasks = cs.datasets.make_clustered_tasks(n_tasks=10, random_state=0).rows()
    return X, y, np.array([EVIL, *(f"school {k}" for k in range(1, 10))])[tasks]


def test_tasks_with_rows_of_their_own(read, schools):
    X, y, tasks = schools
    model = cs.TaskClusterRegressor(2, random_state=0).fit(X, y, tasks=tasks)
    text = read(model, X, y, tasks=tasks)
    assert EVIL not in text
    assert "Map of tasks" in text
    seen = visible(text)
    for rival in ("One ridge regression for all tasks", "A ridge regression for each task"):
        assert rival in seen
    assert "model.predict(X, tasks=ids)" in seen
    groups = dict(embedded(text)["rows"])
    assert groups == dict(zip(model.tasks_, model.labels_, strict=True))


def test_tasks_in_columns(read):
    X, Y = cs.datasets.make_clustered_tasks(n_tasks=10, random_state=0).columns()
    Y = np.where(np.random.default_rng(0).random(Y.shape) < 0.2, np.nan, Y)
    model = cs.TaskClusterRegressorCV(
        (1, 2), alpha_within=(1.0,), alpha_between=0.1, cv=2, random_state=0
    )
    text = visible(read(model.fit(X, Y), X, Y, test_size=0.5))
    assert "A ridge regression for each task" in text
    assert "Choice of the number of groups" in text


def test_tasks_behind_other_steps(read, schools):
    X, y, tasks = schools
    model = make_pipeline(StandardScaler(), cs.TaskClusterClassifier(2, random_state=0))
    model.fit(X, y > 0, taskclusterclassifier__tasks=tasks)
    text = visible(read(model, X, y > 0, tasks=tasks))
    assert "A logistic regression for each task" in text


def test_classes_as_tasks(read, rng):
    X = rng.standard_normal((120, 4))
    y = np.array(["a", "b", "c"])[X[:, :3].argmax(axis=1)]
    model = cs.TaskClusterClassifier(2, random_state=0).fit(X, y)
    text = visible(read(model, X, y))
    assert "3 tasks in" in text
    assert "Accuracy" in text


# ---- How well it does.


def test_blocks_are_of_the_columns_that_the_model_was_fitted_to(read, rng):
    """A category that no sample has but the held-out ones would leave a column out."""
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame({"a": rng.normal(size=40), "b": list("0123456789") + ["x", "y"] * 15})
    y = X["a"] + (X["b"] == "x") + rng.normal(0, 0.1, 40)
    steps = ColumnTransformer(
        [("a", "passthrough", ["a"]), ("b", OneHotEncoder(handle_unknown="ignore"), ["b"])]
    )
    estimator = cs.FeatureClusterRegressor(3, blocks=["a", *(["b"] * 12)])
    model = make_pipeline(steps, estimator).fit(X, y)
    assert "Grouped features" in read(model, X, y)


def test_too_few_samples_are_not_compared(read):
    problem = cs.datasets.make_clustered_features(12, 4, 2, random_state=0)
    model = cs.FeatureClusterRegressor(2).fit(problem.X, problem.y)
    assert "Nothing was held out" in visible(read(model, problem.X, problem.y))


# ---- What to mind.


def test_warns_of_scales_that_differ(read):
    problem = cs.datasets.make_clustered_features(100, 6, 2, random_state=0)
    scaled = problem.X * np.array([1, 1, 1, 1, 1000, 1000])
    model = cs.FeatureClusterRegressor(2).fit(scaled, problem.y)
    assert "StandardScaler" in visible(read(model, scaled, problem.y))
    plain = cs.FeatureClusterRegressor(2).fit(problem.X, problem.y)
    assert "StandardScaler" not in visible(read(plain, problem.X, problem.y))


def test_warns_where_more_groups_may_do_better(read, features):
    _, X, y = features
    model = cs.FeatureClusterRegressorCV((1, 2), alphas=(1e-3,), cv=3).fit(X, y)
    text = visible(read(model, X, y))
    assert "The largest number of groups that was tried, 2, was chosen" in text
    assert "does better on held-out samples" in text


def test_says_when_nothing_needs_to_be_said(read, features):
    assert 'id="warnings"' not in read(*features, test_size=0.4)


def test_warns_of_a_fit_that_was_stopped(read, features):
    _, X, y = features
    model = cs.FeatureClusterRegressor(3, callback=lambda step: True, solver="pg", init="zeros")
    text = visible(read(model.fit(X, y), X, y))
    assert "stopped before it had converged" in text


# ---- Large data.


def test_many_features_are_cut_and_it_says_so(read, rng):
    n, d = 400, 100_000
    indices = rng.integers(0, d, n * 20)
    X = sparse.csr_matrix((np.ones(n * 20), indices, np.arange(n + 1) * 20), shape=(n, d))
    y = X @ rng.choice([-1.0, 0.0, 2.0], d) + 0.1 * rng.standard_normal(n)
    model = cs.FeatureClusterRegressor(5, solver="greedy").fit(X, y)
    text = read(model, X, y, feature_names=[f"a rather long name {j}" for j in range(d)])
    assert len(text) < 1_000_000
    assert "5,000 of 100,000 features are listed" in text
    groups = {row[1] for row in embedded(text)["rows"]}
    assert groups == set(range(model.n_clusters_))


def test_many_samples_are_drawn_and_it_says_so(read, rng):
    problem = cs.datasets.make_clustered_features(60_000, 4, 2, random_state=0)
    model = cs.FeatureClusterRegressor(2).fit(problem.X, problem.y)
    text = visible(read(model, problem.X, problem.y))
    assert "rows were drawn at random from 60,000" in text
    assert "fitted anew to 15,000 rows" in text


# ---- What is refused, and nothing half done.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"X_test": [[1.0]]}, "X_test and y_test go together"),
        ({"test_size": 1.0}, "test_size must be at least 0 and less than 1"),
        ({"feature_names": ["a"]}, "1 names, but the model has 40 features"),
        ({"tasks": [1]}, "tasks has shape"),
    ],
)
def test_bad_options_are_refused_and_nothing_is_written(features, tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        cs.report(*features, tmp_path / "report.html", **options)
    assert list(tmp_path.iterdir()) == []


def test_answers_have_to_match(features, tmp_path):
    model, X, y = features
    with pytest.raises(ValueError, match=r"y has shape \(10,\), but X has 160 samples"):
        cs.report(model, X, y[:10], tmp_path / "report.html")


def test_samples_have_to_be_those_of_the_model(features, tmp_path):
    model, X, y = features
    with pytest.raises(ValueError, match="feature names should match"):
        cs.report(model, X.iloc[:, :5], y, tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []


def test_classes_have_to_be_those_of_the_model(features, tmp_path):
    _, X, y = features
    model = cs.FeatureClusterClassifier(2).fit(X, np.where(y > 0, "up", "down"))
    with pytest.raises(ValueError, match=r"y holds False, but the classes .* 'down', 'up'"):
        cs.report(model, X, y > 0, tmp_path / "report.html")


@pytest.mark.parametrize("model", [Ridge(), cs.FeatureClusterRegressor()])
def test_models_of_other_kinds_and_unfitted_ones_are_refused(model, tmp_path):
    with pytest.raises((ValueError, NotFittedError), match="fit"):
        cs.report(model, [[1.0]], [1.0], tmp_path / "report.html")


def test_a_missing_folder_is_named(features, tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        cs.report(*features, tmp_path / "nowhere" / "report.html", test_size=0)


def test_an_old_report_stays_if_the_new_one_fails(features, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(ValueError):
        cs.report(*features, path, feature_names=["a"])
    assert path.read_text() == "old"


def test_the_same_bits_again(read, features):
    assert read(*features) == read(*features)


def test_without_jinja_the_remedy_is_named(run_python):
    done = run_python(
        "import sys; sys.modules['jinja2'] = None\n"
        "import clustruct as cs\n"
        "p = cs.datasets.make_clustered_features(30, 4, 2, random_state=0)\n"
        "m = cs.FeatureClusterRegressor(2).fit(p.X, p.y)\n"
        "try:\n    cs.report(m, p.X, p.y, 'report.html')\n"
        "except ImportError as error:\n    print(error)\n"
    )
    assert "pip install 'clustruct[report]'" in done.stdout, done.stderr


def test_the_lines_to_copy_run(read, tmp_path, monkeypatch):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("matplotlib").use("Agg")
    problem = cs.datasets.make_experts(100, 3, 2, random_state=0)
    table = pandas.DataFrame(problem.X, columns=list("abc"))
    model = make_pipeline(StandardScaler(), cs.SampleClusterRegressor(2, n_init=1, random_state=0))
    model.fit(table, problem.y)
    monkeypatch.chdir(tmp_path)
    table.to_csv("new.csv", index=False)
    cs.save(model, "m.clustruct")
    page = read(model, table, problem.y, model_file="m.clustruct", test_size=0.0)
    code = html.unescape(re.search(r'<pre id="code">(.*?)</pre>', page, flags=re.DOTALL)[1])
    exec(code, {"y": problem.y})
    assert "predict_experts(prepared)" in code


def test_a_single_point_is_no_picture(read, tasks):
    model, X, y = tasks
    text = read(model, X, y)
    steps = len(model.trace_) - sum(step.number == 0 for step in model.trace_)
    assert ("Convergence</h2>" in text) == (steps > 0)
