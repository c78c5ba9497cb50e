"""What is saved comes back, to the last bit."""

import dataclasses
import json
import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from sklearn.base import BaseEstimator, clone

import clustruct as cs
from clustruct import results
from clustruct.persistence import classes
from clustruct.persistence.arrays import array_of_bytes, bytes_of_array
from clustruct.persistence.model_files import read_model_file
from clustruct.persistence.values import Decoder, Encoder
from tests.persistence.models import every_model, same

MODELS = list(every_model())
PUBLIC = [getattr(cs, name) for name in cs.__all__ if isinstance(getattr(cs, name), type)]
ESTIMATORS = [kind for kind in PUBLIC if issubclass(kind, BaseEstimator)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.clustruct"


@pytest.mark.parametrize(("model", "X"), MODELS, ids=lambda value: type(value).__name__)
def test_models_come_back_to_the_last_bit(model, X, path):
    cs.save(model, path)
    again = cs.load(path)
    assert same(vars(again), vars(model))
    for method in ("predict", "predict_proba", "transform", "predict_experts"):
        if hasattr(model, method):
            assert same(getattr(again, method)(X), getattr(model, method)(X))
    assert repr(clone(again)) == repr(clone(model))


def test_every_estimator_is_among_them():
    tried = {type(model) for model, _ in MODELS}
    assert set(ESTIMATORS) <= tried


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_estimators_need_not_be_fitted(kind, path):
    cs.save(kind(), path)
    assert same(vars(cs.load(path)), vars(kind()))


def test_results_and_estimators_are_all_on_the_list():
    holders = (getattr(results, name) for name in results.__all__)
    for kind in (*ESTIMATORS, *filter(dataclasses.is_dataclass, holders)):
        assert classes.class_of(classes.name_of(kind)) is kind


def test_a_model_loaded_twice_gives_the_same_file(path, tmp_path):
    cs.save(MODELS[0][0], path)
    again = tmp_path / "again"
    cs.save(cs.load(path), again)
    assert again.read_bytes() == path.read_bytes()


def test_loaded_models_can_be_fitted_again(path):
    model, X = MODELS[0]
    cs.save(model, path)
    again = cs.load(path)
    target = model.predict(X)
    assert same(clone(again).fit(X, target).coef_, clone(model).fit(X, target).coef_)
    again.coef_[0] = 7.0  # arrays are writeable


def test_notes_are_kept(path):
    notes = {"target": "price", "kinds": {"a": "number"}, "rows": (1, 2)}
    cs.save(cs.FeatureClusterRegressor(), path, notes=notes)
    found = read_model_file(path)
    assert found.notes == notes
    assert found.packages["clustruct"] == cs.__version__


def test_other_versions_of_scikit_learn_are_named(path, monkeypatch):
    model = MODELS[-1][0]
    cs.save(model, path)
    monkeypatch.setattr("clustruct.persistence.model_files.version", lambda name: "99.0")
    with pytest.warns(UserWarning, match=r"model\.clustruct was written with scikit-learn 1\."):
        cs.load(path)
    cs.save(model[-1], path)  # our own classes are the format's business
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cs.load(path)


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None))
    | hnp.arrays(hnp.scalar_dtypes().filter(lambda d: d.kind in "biufcmM"), 1).map(lambda a: a[0])
)
ARRAYS = hnp.arrays(
    hnp.boolean_dtypes()
    | hnp.integer_dtypes(endianness="?")
    | hnp.floating_dtypes(endianness="?", sizes=(16, 32, 64))
    | hnp.complex_number_dtypes()
    | hnp.unicode_string_dtypes(max_len=4)
    | hnp.datetime64_dtypes(),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)
KEYS = st.text() | st.integers() | st.booleans() | st.tuples(st.text(), st.integers())
VALUES = st.recursive(
    SCALARS | ARRAYS | st.text().map(np.str_) | st.sets(st.text()) | st.frozensets(st.integers()),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=3)
    ),
    max_leaves=6,
)


def round_trip(value):
    encoder = Encoder()
    encoded = encoder.encode(value, "value")
    text = json.dumps(encoded, allow_nan=False)
    return Decoder(encoder.members).decode(json.loads(text))


@given(VALUES)
def test_values_come_back(value):
    assert same(round_trip(value), value)


@given(ARRAYS)
def test_arrays_come_back_in_either_order(array):
    for given_array in (array, np.asfortranarray(array), array[::-1] if array.ndim else array):
        again = array_of_bytes(bytes_of_array(given_array))
        assert same(again, np.ascontiguousarray(given_array).reshape(given_array.shape))
        if given_array.flags.f_contiguous:  # so that linear algebra takes the same way
            assert again.flags.f_contiguous
        assert again.flags.writeable


@pytest.mark.parametrize(
    "value",
    [
        slice(1, None, 2),
        range(2, 16),
        np.float32,
        float,
        np.dtype("<f4"),
        -0.0,
        math.inf,
        np.array(["a\0", "b", None, 1.5, np.nan], dtype=object),
        np.array([["x"], ["y"]], dtype=object),
        sparse.csr_array(np.eye(3)),
        sparse.csc_matrix(np.eye(3, dtype=np.float32)),
        results.Iteration("pg", 0, np.float64(1.5), 0.0, 0.1),
    ],
    ids=repr,
)
def test_odd_values_come_back(value):
    assert same(round_trip(value), value)


def test_equal_arrays_are_stored_once():
    encoder = Encoder()
    encoder.encode([np.arange(3), np.arange(3), np.arange(3.0)], "value")
    assert len(encoder.members) == 2
    first, second, _ = round_trip([np.arange(3), np.arange(3), np.arange(3.0)])
    first[0] = 7
    assert second[0] == 0


def test_scores_come_back_as_attributes_and_columns():
    for model, _ in MODELS:
        if hasattr(model, "cv_results_"):
            again = round_trip(model)
            assert same(dict(again.cv_results_), dict(model.cv_results_))
            assert again.best_index_ == model.best_index_


def test_files_from_before_a_field_was_added_are_read():
    found = next(model for model, _ in MODELS if isinstance(model, cs.SampleClusterClassifierCV))
    encoder = Encoder()
    encoded = encoder.encode(found.selection_, "value")
    for name in ("fold_values", "rule", "scoring", "choices"):
        del encoded["object"][1][name]
    again = Decoder(encoder.members).decode(encoded)
    assert (again.fold_values, again.rule, again.scoring) == (None, "fewest", "")
    assert again.choices is None
    assert again.best_index == found.best_index_
    columns = again.as_cv_results()
    np.testing.assert_allclose(columns["mean_test_score"], -found.selection_.values)
    assert np.isnan(columns["std_test_score"]).any()  # of folds that the file does not hold


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fold_scores", [1.0, 2.0]),
        ("best_index", {"tuple": [9, 0, 0]}),
        ("n_clusters", {"tuple": [1] * 10}),
        ("alphas", None),
    ],
)
def test_impossible_scores_are_refused(name, value):
    model = next(model for model, _ in MODELS if isinstance(model, cs.FeatureClusterRegressorCV))
    encoder = Encoder()
    encoded = encoder.encode(model.cv_results_, "value")
    encoded["object"][1][name] = value
    with pytest.raises(ValueError, match="a SearchResult in it"):
        Decoder(encoder.members).decode(encoded)
