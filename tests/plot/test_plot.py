"""Plots draw what is there, on the axes given, and leave the rest of matplotlib alone."""

from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import clustruct as cs
from clustruct.inspection import apart

FEATURES = cs.datasets.make_clustered_features(100, 12, 3, noise=0.3, random_state=0)
MODEL = cs.FeatureClusterRegressor(3).fit(FEATURES.X, FEATURES.y)
SPARSE = cs.FeatureClusterRegressor(2, n_nonzero=6).fit(FEATURES.X, FEATURES.y)
SEARCH = cs.FeatureClusterRegressorCV((2, 3), alphas=(1e-2,), cv=2).fit(FEATURES.X, FEATURES.y)
PATH = cs.feature_cluster_path(
    FEATURES.X, FEATURES.y, n_clusters=(1, 2, 3), alphas=(1e-1, 1e-2), n_nonzero=(None, 6)
)
SAMPLES = cs.datasets.make_experts(150, 3, 2, random_state=0)
EXPERTS = cs.SampleClusterRegressor(2, random_state=0).fit(SAMPLES.X, SAMPLES.y)
COUNTS = cs.SampleClusterRegressorCV((1, 2), random_state=0).fit(SAMPLES.X, SAMPLES.y)
CHOICES = cs.datasets.make_experts(
    120, 3, 2, n_outputs=4, noise=0.3, classification=True, random_state=0
)
CLASSIFIER = cs.SampleClusterClassifier(2, n_init=1, random_state=0).fit(CHOICES.X, CHOICES.y)
MULTI = cs.FeatureClusterRegressor(3).fit(
    FEATURES.X, np.stack([FEATURES.y, FEATURES.X[:, 0]], axis=1)
)
TREES = np.array(["oak", "ash", "elm"])[FEATURES.X[:, :3].argmax(axis=1)]
KINDS = cs.FeatureClusterClassifier(3).fit(FEATURES.X, TREES)
SCHOOLS = cs.datasets.make_clustered_tasks(n_tasks=12, n_clusters=2, random_state=0).columns()
TASKS = cs.TaskClusterRegressorCV(
    (1, 2), alpha_within=(1.0,), alpha_between=0.1, cv=2, random_state=0
)
TASKS.fit(*SCHOOLS)

DRAWINGS = {
    "weights": lambda ax: cs.plot.weights(MODEL, ax=ax),
    "weights, sparse": lambda ax: cs.plot.weights(SPARSE, ax=ax),
    "weights, reference": lambda ax: cs.plot.weights(MODEL, reference=FEATURES.coef, ax=ax),
    "weights, several outputs": lambda ax: cs.plot.weights(MULTI, ax=ax),
    "clusters": lambda ax: cs.plot.clusters(SPARSE, ax=ax),
    "clusters, several outputs": lambda ax: cs.plot.clusters(MULTI, ax=ax),
    "clusters, samples": lambda ax: cs.plot.clusters(EXPERTS, ax=ax),
    "clusters, classes": lambda ax: cs.plot.clusters(CLASSIFIER, ax=ax),
    "clusters, tasks": lambda ax: cs.plot.clusters(TASKS, ax=ax),
    "path, objective": lambda ax: cs.plot.path(PATH, ax=ax),
    "path, weights": lambda ax: cs.plot.path(PATH, quantity="weights", ax=ax),
    "path, search": lambda ax: cs.plot.path(SEARCH.cv_results_, ax=ax),
    "path, model": lambda ax: cs.plot.path(SEARCH, ax=ax),
    "path, counts": lambda ax: cs.plot.path(COUNTS, ax=ax),
    "experts": lambda ax: cs.plot.experts(EXPERTS, SAMPLES.X, SAMPLES.y, ax=ax),
    "experts, weights": lambda ax: cs.plot.experts(EXPERTS, ax=ax),
    "experts, classes": lambda ax: cs.plot.experts(CLASSIFIER, CHOICES.X, CHOICES.y, ax=ax),
    "weights, classes": lambda ax: cs.plot.weights(KINDS, ax=ax),
    "clusters, weights of classes": lambda ax: cs.plot.clusters(KINDS, ax=ax),
    "tasks, weights": lambda ax: cs.plot.tasks(TASKS, SCHOOLS[0], kind="weights", ax=ax),
    "tasks": lambda ax: cs.plot.tasks(TASKS, ax=ax),
    "tasks, unnamed": lambda ax: cs.plot.tasks(TASKS, max_names=3, ax=ax),
    "path, tasks": lambda ax: cs.plot.path(TASKS, ax=ax),
    "convergence, tasks": lambda ax: cs.plot.convergence(TASKS, ax=ax),
    "convergence": lambda ax: cs.plot.convergence(MODEL, ax=ax),
    "convergence, samples": lambda ax: cs.plot.convergence(EXPERTS, ax=ax),
}


@pytest.fixture(params=DRAWINGS)
def draw(request):
    return DRAWINGS[request.param]


def test_draws_on_the_axes_given_and_nothing_else_changes(draw):
    ax = Figure().subplots()
    before = dict(mpl.rcParams)
    display = draw(ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.get_figure()
    assert ax.has_data()
    assert ax.get_title("left")
    assert pyplot.get_fignums() == []
    assert dict(mpl.rcParams) == before
    display.figure_.canvas.draw()  # texts are laid out only now


def test_makes_a_figure_where_no_axes_are_given(draw):
    display = draw(None)
    assert pyplot.gcf() is display.figure_


def test_a_display_can_be_drawn_again():
    first = cs.plot.weights(MODEL, ax=Figure().subplots())
    old, other = first.ax_, Figure().subplots()
    assert first.plot(other).ax_ is other
    assert old is not other


def drawn(ax):
    """Where the dots of scatter plots are."""
    scattered = [dots.get_offsets() for dots in ax.collections if isinstance(dots, PathCollection)]
    return np.concatenate(scattered)


def test_every_feature_is_a_dot_at_its_weight():
    ax = cs.plot.weights(MODEL, ax=Figure().subplots()).ax_
    np.testing.assert_allclose(np.sort(drawn(ax)[:, 0]), np.sort(MODEL.coef_))
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == [f"x{j}" for j in np.lexsort((MODEL.coef_, MODEL.coef_))]


def test_many_features_are_thinned_and_it_says_so():
    many = SimpleNamespace(
        cluster_values_=np.array([-1.0, 2.0]),
        cluster_sizes_=np.array([60_000, 40_000]),
        labels_=np.arange(100_000) % 5 // 3,
        n_features_in_=100_000,
        loss="squared",
    )
    ax = cs.plot.weights(many, max_features=500, ax=Figure().subplots()).ax_
    assert len(drawn(ax)) == 500
    assert set(drawn(ax)[:, 0]) == {-1.0, 2.0}
    assert "500 of 100,000 features drawn" in [text.get_text() for text in ax.texts]
    assert len(cs.plot.clusters(many, ax=Figure().subplots()).ax_.patches) == 2


def test_many_samples_are_thinned_and_it_says_so():
    display = cs.plot.experts(EXPERTS, SAMPLES.X, SAMPLES.y, max_samples=50, ax=Figure().subplots())
    assert len(drawn(display.ax_)) == 50
    assert "50 of 150 samples drawn" in [text.get_text() for text in display.ax_.texts]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_samples_lie_about_the_line_of_their_expert(form):
    X = form(SAMPLES.X)
    model = cs.SampleClusterRegressor(2, random_state=0).fit(X, SAMPLES.y)
    found = cs.plot.experts(model, X, SAMPLES.y, feature=1, ax=Figure().subplots()).result
    line = found.slopes[found.labels] * found.x + found.intercepts[found.labels]
    residual = SAMPLES.y - model.predict_experts(X)[np.arange(150), model.labels_]
    np.testing.assert_allclose(found.y - line, residual, atol=1e-9)
    np.testing.assert_array_equal(found.labels, model.labels_)


def test_the_curve_of_a_search_is_that_of_its_scores():
    curve = cs.plot.path(SEARCH, ax=Figure().subplots()).result
    np.testing.assert_allclose(curve.values, -SEARCH.cv_results_.mean_scores[:, 0, 0])
    assert curve.counts == ("2", "3")
    assert curve.counts[curve.chosen] == str(SEARCH.best_params_["n_clusters"])
    again = cs.plot.PathDisplay.from_estimator(SEARCH, ax=Figure().subplots()).result
    np.testing.assert_array_equal(again.values, curve.values)


def test_one_standard_error_is_shown_where_it_was_taken():
    model = cs.FeatureClusterRegressorCV(
        (2, 3), alphas=(1.0, 1e-1, 1e-2), cv=3, rule="one_se", random_state=0
    ).fit(FEATURES.X, FEATURES.y)
    curve = cs.plot.path(model, ax=Figure().subplots()).result
    assert curve.values[curve.chosen] == pytest.approx(-model.best_score_)


def test_names_come_through_a_pipeline_and_a_search():
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(FEATURES.X, columns=[f"name {j}$" for j in range(12)])
    pipe = make_pipeline(StandardScaler(), cs.FeatureClusterRegressor(3))
    search = GridSearchCV(pipe, {"featureclusterregressor__n_clusters": [2, 3]}, cv=2)
    search.fit(X, FEATURES.y)
    for model in (search, search.best_estimator_):
        display = cs.plot.weights(model, ax=Figure().subplots())
        assert set(display.levels.names) == set(X.columns)
        display.figure_.canvas.draw()  # a dollar sign is not taken for mathematics


def test_a_map_of_tasks_keeps_what_the_plane_can():
    found = cs.plot.tasks(TASKS, ax=Figure().subplots()).result
    assert found.points.shape == (12, 2)
    full = TASKS.coef_ - TASKS.coef_.mean(axis=0)
    kept = np.square(found.points).sum(axis=0) / np.square(full).sum()
    np.testing.assert_allclose(kept, found.shares)
    middles = np.array([found.points[TASKS.labels_ == q].mean(axis=0) for q in range(2)])
    assert np.linalg.norm(middles - found.centroids, axis=1).max() < 0.2 * np.ptp(found.points)


def test_classes_have_their_names():
    ax = cs.plot.weights(KINDS, ax=Figure().subplots()).ax_
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["ash", "elm", "oak"]
    assert ax.get_xlabel() == "weight: log odds of each class per unit"
    np.testing.assert_allclose(np.reshape(drawn(ax)[:, 0], (3, 3)).T, KINDS.cluster_values_)
    ax = cs.plot.clusters(KINDS, ax=Figure().subplots()).ax_
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["ash", "elm", "oak"]
    lengths = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(np.reshape(lengths, (3, 3)).T, KINDS.cluster_values_)
    ax = cs.plot.experts(CLASSIFIER, ax=Figure().subplots()).ax_
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert set(names) == {f"x{j}, {k}" for j in range(3) for k in range(4)}


def test_axes_say_what_a_weight_adds_to_and_for_what():
    sick = np.where(FEATURES.y > 0, "sick", "healthy")
    plain = cs.FeatureClusterClassifier(2).fit(FEATURES.X, sick)
    scaled = make_pipeline(StandardScaler(), cs.FeatureClusterClassifier(2)).fit(FEATURES.X, sick)
    for draw in (cs.plot.weights, cs.plot.clusters):
        axis = draw(plain, ax=Figure().subplots()).ax_.get_xlabel()
        assert axis == "weight: log odds of sick per unit"
        axis = draw(scaled, ax=Figure().subplots()).ax_.get_xlabel()
        assert axis == "weight: log odds of sick per unit after scaling"


def test_weights_of_task_groups_are_their_centroids():
    X = SCHOOLS[0]
    display = cs.plot.tasks(TASKS, X, kind="weights", ax=Figure().subplots())
    assert display.ax_.get_xlabel() == "weight: prediction per standard deviation"
    spread = np.ptp(drawn(display.ax_)[:, 0].reshape(2, -1), axis=0)
    assert (np.diff(spread) <= 1e-12).all()
    wanted = np.sort(np.ptp(TASKS.centroids_ * X.std(axis=0), axis=0))[::-1]
    np.testing.assert_allclose(spread, wanted[: spread.size])


def test_one_group_is_not_called_groups():
    one = cs.FeatureClusterRegressor(1).fit(FEATURES.X, FEATURES.y)
    assert cs.plot.clusters(one, ax=Figure().subplots()).bars.title == "12 features in 1 group"


def test_names_that_would_touch_are_left_out():
    points = np.array([[0.0, 0.0], [0.01, 0.0], [0.0, 0.5], [1.0, 1.0]])
    assert apart(points).tolist() == [0, 2, 3]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: cs.plot.weights(EXPERTS), ValueError, "groups samples"),
        (lambda: cs.plot.weights(Ridge()), ValueError, "got Ridge"),
        (lambda: cs.plot.weights(cs.FeatureClusterRegressor()), NotFittedError, "fit"),
        (lambda: cs.plot.weights(MODEL, feature_names=["a"]), ValueError, "1 names.*12 features"),
        (lambda: cs.plot.weights(MODEL, reference=[1.0]), ValueError, "1 weights.*12"),
        (lambda: cs.plot.path(MODEL), ValueError, "no search and no path"),
        (lambda: cs.plot.path(PATH, quantity="x"), ValueError, "quantity must be one of"),
        (lambda: cs.plot.experts(MODEL), ValueError, "groups features"),
        (lambda: cs.plot.tasks(TASKS, kind="x"), ValueError, "kind must be one of"),
        (lambda: cs.plot.experts(EXPERTS, kind="lines"), ValueError, "Give X and y"),
        (
            lambda: cs.plot.experts(CLASSIFIER, CHOICES.X, CHOICES.y, kind="lines"),
            ValueError,
            "one output only",
        ),
        (
            lambda: cs.plot.experts(EXPERTS, SAMPLES.X, SAMPLES.y, feature="q"),
            ValueError,
            "no feature 'q'",
        ),
        (
            lambda: cs.plot.experts(EXPERTS, SAMPLES.X, SAMPLES.y, feature=7),
            ValueError,
            "out of range",
        ),
    ],
)
def test_what_cannot_be_drawn_is_explained(call, error, message):
    with pytest.raises(error, match=message):
        call()
    assert pyplot.get_fignums() == []


def test_without_matplotlib_the_remedy_is_named(run_python):
    done = run_python(
        "import sys; sys.modules['matplotlib'] = None\n"
        "import clustruct as cs\n"
        "p = cs.datasets.make_clustered_features(30, 4, 2, random_state=0)\n"
        "m = cs.FeatureClusterRegressor(2).fit(p.X, p.y)\n"
        "try:\n    cs.plot.weights(m)\n"
        "except ImportError as error:\n    print(error)\n"
    )
    assert "pip install 'clustruct[plot]'" in done.stdout, done.stderr
