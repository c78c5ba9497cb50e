"""Whatever users pass as X becomes a design, and what belongs to its rows is placed beside it."""

from functools import partial

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.linear_model import LinearRegression
from sklearn.utils import check_array

from clustruct.design import Beside, apply, average, computed, load, place

N, D = 30, 4
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D)) * (RNG.random((N, D)) < 0.7)
Y = RNG.standard_normal(N)


def validate(matrix, skip_check_array=False, **checks):
    """Stand in for scikit-learn's `validate_data` of an estimator."""
    return matrix if skip_check_array else check_array(matrix, **checks)


def vector(values, n_rows):
    """Check what belongs to rows: bring it to the host, and count it."""
    rows = np.asarray(load(values))
    assert rows.shape == (n_rows,)
    return rows


def in_dask(values):
    return pytest.importorskip("dask.array").from_array(values, chunks=(7, *values.shape[1:]))


def on_device(values):
    return pytest.importorskip("array_api_strict").asarray(values)


PASSED = {
    "list": np.ndarray.tolist,
    "array": np.asarray,
    "single precision": lambda values: values.astype(np.float32),
    "CSR": lambda values: sparse.csr_matrix(values) if values.ndim == 2 else values,
    "CSC": lambda values: sparse.csc_matrix(values) if values.ndim == 2 else values,
    "Dask": in_dask,
    "device": on_device,
}


@pytest.fixture(params=PASSED)
def passed(request, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with sklearn.config_context(array_api_dispatch=request.param == "device"):
        yield PASSED[request.param]


def test_everything_becomes_a_design_with_rows_beside_it(passed):
    design = place(passed(X), validate)
    rows = design.attach(passed(Y), "y", vector)
    assert design.shape == (N, D)
    np.testing.assert_allclose(design.gather(design.map(lambda y: 2.0 * y, rows)), 2.0 * Y, 1e-6)
    column = design.place(design.map(lambda y: y[:, None], rows))
    np.testing.assert_allclose(design.adjoint(column)[:, 0], X.T @ Y, 1e-5, 1e-6)
    matrix, (some,) = design.by_rows().fetch(np.array([1, 20]), design.place(rows))
    dense = matrix.toarray() if sparse.issparse(matrix) else matrix
    np.testing.assert_allclose(dense, X[[1, 20]], 1e-6)
    np.testing.assert_allclose(some, Y[[1, 20]], 1e-6)


def test_functions_of_rows_are_applied_lazily_for_dask_alone(passed):
    W = RNG.standard_normal((D, 2))
    scores = apply(lambda design: design.scores(W), passed(X), validate, (2,))
    assert hasattr(scores, "dask") == (passed is in_dask)
    np.testing.assert_allclose(load(scores), X @ W, 1e-5, 1e-6)


def test_functions_of_rows_see_what_is_beside_them(passed):
    def shifted(design, y):
        return design.scores(np.ones((D, 1)))[:, 0] + (on_device(y) if passed is on_device else y)

    rows = Beside(passed(Y), "y", vector)
    values = apply(shifted, passed(X), validate, beside=[rows])
    np.testing.assert_allclose(load(values), X.sum(axis=1) + Y, 1e-5, 1e-5)
    weights = RNG.random(N)
    given = Beside(weights, "sample_weight", vector)
    expected = np.average(X.sum(axis=1) + Y, weights=weights)
    np.testing.assert_allclose(average(values, given), expected, 1e-5)
    np.testing.assert_allclose(average(values), (X.sum(axis=1) + Y).mean(), 1e-5)


def test_several_things_may_be_beside_rows(passed):
    def product(design, y, two, more):
        assert two.shape == (design.shape[0], 2)
        return y * two.sum(axis=1) + more

    two = RNG.random((N, 2))
    beside = [
        Beside(passed(Y), "y", vector),
        Beside(in_dask(two) if passed is in_dask else two, "two", lambda x, n: np.asarray(x)),
        Beside(Y, "more", vector),  # on the host, also where X is in pieces
    ]
    values = apply(product, passed(X), validate, beside=beside)
    np.testing.assert_allclose(load(values), Y * two.sum(axis=1) + Y, 1e-5, 1e-5)


def test_frames_of_unknown_length_stay_so_where_all_are_of_one():
    frames, pandas = (pytest.importorskip(name) for name in ("dask.dataframe", "pandas"))
    table = pandas.DataFrame(X, columns=list("abcd")).assign(y=Y, o=2.0 * Y)
    frame = frames.from_pandas(table, npartitions=3)
    beside = [Beside(frame[name], name, vector) for name in ("y", "o")]
    values = apply(lambda design, y, o: y + o, frame[list("abcd")], validate, beside=beside)
    assert np.isnan(values.shape[0])
    np.testing.assert_allclose(values.compute(), 3.0 * Y)
    beside[1] = Beside(2.0 * Y, "o", vector)  # pieces have to be counted to divide it
    values = apply(lambda design, y, o: y + o, frame[list("abcd")], validate, beside=beside)
    np.testing.assert_allclose(values.compute(), 3.0 * Y)


def test_without_a_dtype_results_are_declared_in_that_of_x():
    single = in_dask(X.astype(np.float32))
    sums = apply(lambda design: design.scores(np.ones((D, 1))), single, validate, (1,), None)
    assert sums.dtype == np.float32


def test_rows_of_another_length_are_refused_for_dask():
    design = place(in_dask(X), validate)
    with pytest.raises(ValueError, match=r"y has shape \(29,\), but X has 30 samples"):
        design.attach(Y[:-1], "y", vector)
    with pytest.raises(ValueError, match=r"y has shape \(29,\), but X has 30 samples"):
        design.attach(in_dask(Y[:-1]), "y", vector)


def test_features_are_checked_by_the_estimator():
    frames = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    from sklearn.utils.validation import validate_data

    frame = frames.from_pandas(pandas.DataFrame(X, columns=list("abcd")), npartitions=3)
    model = LinearRegression()
    place(frame, partial(validate_data, model, reset=True))
    assert model.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        apply(
            lambda design: design.scores(np.ones((D, 1))),
            frame.rename(columns={"a": "z"}),
            partial(validate_data, model, reset=False),
            (1,),
        )


def test_loading_brings_to_the_host_and_computing_leaves_devices_alone():
    there = on_device(Y)
    np.testing.assert_array_equal(load(there), Y)
    assert computed(there) is there
    np.testing.assert_array_equal(computed(in_dask(Y)), Y)
    assert load("as it is") == "as it is"
