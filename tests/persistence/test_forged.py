"""Model files whose sums are right and whose parts do not fit together: refused at loading."""

import json
import zipfile

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import clustruct as cs
from clustruct.persistence.trial import try_out
from tests.persistence.models import (
    CLASSES,
    EXPERTS,
    FEATURES,
    FRAME,
    NAMED,
    SIGNS,
    TASKS,
    written,
)
from tests.persistence.test_refused import altered, npy


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A small model of every kind, by name, each in a file."""
    one = {"n_init": 1, "random_state": 0}
    features = cs.FeatureClusterRegressor(2).fit(FEATURES.X, FEATURES.y)
    features.stability_ = cs.stability(
        features, FEATURES.X, FEATURES.y, n_resamples=4, random_state=0
    )
    models = {
        "features": features,
        "classes": cs.FeatureClusterClassifier(2).fit(FEATURES.X, SIGNS),
        "factors": cs.FeatureClusterRegressor(6).fit(FRAME, FEATURES.y),
        "experts": cs.SampleClusterRegressor(2, gate=True, **one).fit(EXPERTS.X, EXPERTS.y),
        "expert classes": cs.SampleClusterClassifier(2, **one).fit(CLASSES.X, CLASSES.y),
        "counts": cs.SampleClusterRegressorCV((1, 2), **one).fit(EXPERTS.X, EXPERTS.y),
        "tasks": cs.TaskClusterRegressor(2, random_state=0).fit(*TASKS.columns()),
        "pipeline": make_pipeline(StandardScaler(), cs.FeatureClusterRegressor(2)).fit(
            FEATURES.X, FEATURES.y
        ),
    }
    folder = tmp_path_factory.mktemp("forged")
    for name, model in models.items():
        cs.save(model, folder / name)
    return folder


def forge(files, tmp_path, name, change):
    """The file of a model whose state was changed, with all sums right."""
    path = tmp_path / "model.clustruct"
    path.write_bytes((files / name).read_bytes())
    altered(path, change)
    return path


def array(values):
    """A change that puts an array into an attribute."""

    def change(state, members, name):
        members["arrays/99.npy"] = npy(np.asarray(values))
        state[name] = {"array": "arrays/99.npy"}

    return change


def plain(value):
    def change(state, members, name):
        state[name] = value

    return change


def gone(state, members, name):
    del state[name]


CHANGES = [
    ("features", "_offset", gone),
    ("features", "_offset", plain(0.5)),
    ("features", "_offset", array(np.zeros(2))),
    ("features", "_offset", array(["a"])),
    ("features", "_weights", array(np.zeros((8, 2)))),
    ("features", "_weights", array(np.zeros(8))),
    ("features", "coef_", array(np.zeros(7))),
    ("features", "cluster_sizes_", array(np.zeros(3, int))),
    ("features", "cluster_values_", plain({"set": []})),
    ("features", "n_clusters_", plain(10**12)),
    ("features", "n_clusters_", plain(True)),
    ("features", "n_features_in_", plain(7)),
    ("features", "feature_names_in_", plain({"objects": [[8], [*"abcdefg", []]]})),
    ("features", "_single", gone),
    ("features", "_single", plain(0)),
    ("features", "loss", plain({"tuple": []})),
    ("features", "loss", plain("cubic")),
    ("features", "alpha", plain(-1.0)),
    ("features", "stability_", plain("firm")),
    ("features", "objective_", plain("low")),
    ("classes", "classes_", plain(3.5)),
    ("classes", "classes_", array(["up"])),
    ("classes", "classes_", array(["up", "up"])),
    ("classes", "classes_", array(["a", "b", "c"])),
    ("factors", "labels_", array(np.zeros(4, int))),
    ("factors", "n_features_in_", plain(3)),
    ("experts", "labels_", array(np.full(80, 10**9))),
    ("experts", "labels_", array(np.full(80, -1))),
    ("experts", "labels_", array(np.zeros(80))),
    ("experts", "experts_", gone),
    ("experts", "_weights", array(np.zeros(3))),
    ("experts", "_W", array(np.zeros((2, 4, 1)))),
    ("experts", "_b", plain(False)),
    ("experts", "_gate", plain({"type": "int"})),
    ("experts", "n_clusters_", plain(2**62)),
    ("expert classes", "_W", array(np.zeros((2, 3, 3)))),
    ("expert classes", "classes_", array(np.arange(3))),
    ("tasks", "labels_", array(np.full(6, 2))),
    ("tasks", "cluster_sizes_", array(np.zeros(1, int))),
    ("tasks", "cluster_sizes_", plain({"set": []})),
    ("tasks", "centroids_", array(np.zeros((0, 4)))),
    ("tasks", "tasks_", array(np.arange(5))),
    ("tasks", "_layout", plain("diagonal")),
    ("tasks", "_frame", plain(1)),
]


@pytest.mark.parametrize(
    ("name", "attribute", "change"),
    CHANGES,
    ids=[f"{name}-{attribute}-{place}" for place, (name, attribute, _) in enumerate(CHANGES)],
)
def test_attributes_that_do_not_fit(files, tmp_path, name, attribute, change):
    """These loaded, and ended on use as KeyError, IndexError, MemoryError or worse."""

    def alter(state, members):
        change(state, members, attribute)

    path = forge(files, tmp_path, name, alter)
    with pytest.raises(ValueError, match=r"cannot be loaded: .* in it (is|has|are|does)") as caught:
        cs.load(path)
    assert "save the model again" in str(caught.value)


def nested(*names):
    """The state of an object inside of the state of a model."""

    def find(state):
        for name in names:
            state = state[name]
            while isinstance(state, dict) and set(state) <= {"object", "tuple"}:
                ((kind, content),) = state.items()
                state = content[1] if kind == "object" else content
        return state

    return find


INSIDE = [
    ("features", nested("stability_"), "group_firmness", array(np.zeros(1))),
    ("features", nested("stability_"), "groups", plain({"dict": []})),
    ("features", nested("certificate_"), "gap", plain("none")),
    ("features", nested("status_"), "solver", plain(3)),
    ("experts", nested("_gate"), "log_shares", array(np.array(0.5))),
    ("experts", nested("_gate"), "classifier", plain(16)),
    ("experts", nested("_gate", "classifier"), "classes_", array([0, 7])),
    ("experts", nested("_gate", "classifier"), "coef_", array(np.zeros((1, 2)))),
    ("factors", nested("factors_", "factors", 0), "shares", array(["a"] * 5)),
    ("factors", nested("factors_", "factors", 0), "place", plain(9)),
    ("factors", nested("factors_", "factors", 0), "levels", plain({"tuple": [[], 1, 2, 3, 4]})),
    ("counts", nested("selection_"), "values", array(["a", "b"])),
    ("counts", nested("selection_"), "n_clusters", array(np.zeros((2, 1), int))),
    ("counts", nested("selection_"), "best", plain(7)),
    ("tasks", nested("_frame"), "means", plain([0.0])),
    ("pipeline", nested("steps", 0, 1), "scale_", plain([1, 2])),
    ("pipeline", nested("steps", 0, 1), "mean_", array(np.zeros(2))),
    ("pipeline", nested(), "steps", plain([7])),
    ("pipeline", nested(), "steps", plain([])),
    ("pipeline", nested(), "steps", plain([{"tuple": ["scaler", 7]}])),
    ("pipeline", nested("steps", 0, 1), "scale_", gone),
]


@pytest.mark.parametrize(
    ("name", "find", "attribute", "change"),
    INSIDE,
    ids=[f"{name}-{attribute}-{place}" for place, (name, _, attribute, _) in enumerate(INSIDE)],
)
def test_parts_that_do_not_fit(files, tmp_path, name, find, attribute, change):
    path = forge(files, tmp_path, name, lambda state, m: change(find(state), m, attribute))
    with pytest.raises(ValueError, match="cannot be loaded"):
        cs.load(path)


@pytest.mark.filterwarnings("ignore:.*was written with scikit-learn")
def test_every_attribute_that_predictions_need_is_required(files, tmp_path):
    """A file without one of its attributes is refused, or predicts what it did."""
    for name, X in (
        ("features", FEATURES.X),
        ("experts", EXPERTS.X),
        ("tasks", TASKS.columns()[0]),
    ):
        expected = cs.load(files / name).predict(X)
        with zipfile.ZipFile(files / name) as source:
            state = json.loads(source.read("model.json"))["model"]["object"][1]
        for attribute in state:
            path = forge(files, tmp_path, name, lambda s, m, a=attribute: s.pop(a))
            try:
                model = cs.load(path)
            except ValueError:
                continue
            np.testing.assert_array_equal(model.predict(X), expected)
            model.clusters()


def test_gates_of_all_classifiers_come_back(tmp_path):
    """The checks know the classes of a pipeline, too."""
    gate = make_pipeline(StandardScaler(), LogisticRegression())
    model = cs.SampleClusterRegressor(2, gate=gate, n_init=1, random_state=0)
    cs.save(model.fit(EXPERTS.X, EXPERTS.y), tmp_path / "m")
    np.testing.assert_array_equal(
        cs.load(tmp_path / "m").predict(EXPERTS.X), model.predict(EXPERTS.X)
    )


def encoded():
    """A pipeline with columns, encoders of categories and words."""
    columns = ColumnTransformer(
        [
            ("kinds", OneHotEncoder(drop="first", sparse_output=False), ["country", "age"]),
            ("rare", OneHotEncoder(min_frequency=20, handle_unknown="ignore"), ["country"]),
            ("words", TfidfVectorizer(), "words"),
        ],
        remainder="passthrough",
        n_jobs=1,
    )
    frame = FRAME.assign(country=FRAME["country"].fillna("none"), words="one two three")
    return make_pipeline(columns, cs.FeatureClusterRegressor(2)).fit(frame, FEATURES.y), frame


def test_columns_and_encoders_come_back(tmp_path):
    model, frame = encoded()
    cs.save(model, tmp_path / "m")
    np.testing.assert_array_equal(cs.load(tmp_path / "m").predict(frame), model.predict(frame))


def test_files_start_no_processes(tmp_path):
    model, _ = encoded()
    model.steps[0][1].n_jobs = 64
    cs.save(model, tmp_path / "m")
    assert cs.load(tmp_path / "m").steps[0][1].n_jobs is None


def encoder(place):
    """The encoder at a place, which compiled code trusts with its numbers of columns."""
    return lambda columns: columns.transformers_[place][1]


def whole(columns):
    return columns


FORGED_COLUMNS = {
    "fewer columns": (encoder(0), "_n_features_outs", [1, 1]),
    "no list of columns": (encoder(0), "_n_features_outs", "ab"),
    "descending": (encoder(0), "categories_", [np.array(list("abcde")), np.arange(3)[::-1]]),
    "left out beyond the last": (encoder(0), "_drop_idx_after_grouping", np.array([9, 0], object)),
    "left out of no columns": (encoder(0), "_drop_idx_after_grouping", ()),
    "rare beyond the last": (encoder(1), "_default_to_infrequent_mappings", [np.full(5, 7)]),
    "no type of numbers": (encoder(0), "dtype", "float64"),
    "one column less": (encoder(0), "categories_", [np.array(list("abcde"))]),
    "no arrays": (encoder(0), "categories_", [list("abcde"), [0, 1, 2]]),
    "twice": (encoder(0), "categories_", [np.array([*"abcda"], object), np.arange(3)]),
    "descending floats": (encoder(0), "categories_", [np.array(list("abcde")), -np.arange(3.0)]),
    "other words": (encoder(2), "_tfidf", 0),
    "words without frequencies": (encoder(2), "_tfidf", TfidfTransformer()),
    "no n-grams": (encoder(2), "ngram_range", (1, "x")),
    "no pattern": (encoder(2), "token_pattern", "("),
    "other names": (whole, "_transformer_to_input_indices", {"x": [0]}),
    "columns beyond the last": (
        whole,
        "_transformer_to_input_indices",
        {"kinds": [0, 99], "rare": [0], "words": [4], "remainder": [1, 2]},
    ),
    "more columns than fitted to": (
        whole,
        "_transformer_to_input_indices",
        {"kinds": [0, 1], "rare": [0, 1], "words": [4], "remainder": [2, 3]},
    ),
    "columns that are not listed": (whole, "_columns", "abc"),
}


@pytest.mark.parametrize("name", FORGED_COLUMNS)
def test_columns_that_do_not_fit(tmp_path, monkeypatch, name):
    """Saving refuses what loading would refuse, so that it is written without the check."""
    find, attribute, value = FORGED_COLUMNS[name]
    model, _ = encoded()
    setattr(find(model.steps[0][1]), attribute, value)
    with monkeypatch.context() as patch:
        patch.setattr("clustruct.persistence.classes.check_foreign", lambda made: None)
        cs.save(model, tmp_path / "m")
    with pytest.raises(ValueError, match="is impossible"):
        cs.load(tmp_path / "m")


def test_transformers_that_extend_those_of_scikit_learn(tmp_path, monkeypatch):
    """They were not checked, and scipy wrote beyond an array."""
    model, _ = written()
    model[0].named_transformers_["two"]._n_features_outs = [5]
    with monkeypatch.context() as patch:
        patch.setattr("clustruct.persistence.classes.check_foreign", lambda made: None)
        cs.save(model, tmp_path / "m")
    with pytest.raises(ValueError, match="LevelEncoder in it is impossible"):
        cs.load(tmp_path / "m")


@pytest.mark.parametrize(
    ("part", "attribute", "value"),
    [
        ("dates", "form", 3),
        ("kind", "form", ["%d"]),
        ("text", "n_features_in_", "one"),
        ("prices", "decimal", "x"),
    ],
)
def test_transformers_that_fail_in_their_code(tmp_path, monkeypatch, part, attribute, value):
    """No table lists what they need: they are tried."""
    model, _ = written()
    setattr(model[0].named_transformers_[part][0], attribute, value)
    with monkeypatch.context() as patch:
        patch.setattr("clustruct.persistence.classes.check_foreign", lambda made: None)
        cs.save(model, tmp_path / "m")
    with pytest.raises(ValueError, match="is impossible"):
        cs.load(tmp_path / "m")


def test_trials_leave_a_model_as_it_is():
    """Vectorizers from another process note where their stop words are when they are used."""
    words = CountVectorizer(stop_words=["the"]).fit(["the good", "the bad"])
    words._stop_words_id = 0
    try_out(words)
    assert words._stop_words_id == 0
    words.transform(["good"])
    assert words._stop_words_id != 0


def test_trials_use_what_a_transformer_was_fitted_to():
    scaler = StandardScaler().fit(NAMED)
    try_out(scaler)
    scaler.mean_ = None
    with pytest.raises((AttributeError, TypeError)):
        try_out(scaler)


def test_trials_take_no_time():
    """Neither by a pattern that is slow on the words of the file nor by tables of any width."""
    slow = TfidfVectorizer(token_pattern="(a+)+!")
    slow.vocabulary_, slow.fixed_vocabulary_ = {40 * "a": 0}, False
    slow._tfidf = TfidfTransformer().fit(np.ones((1, 1)))
    try_out(slow)
    wide = StandardScaler(with_mean=False, with_std=False).fit(NAMED)
    wide.n_features_in_ = 10**12
    try_out(wide)
