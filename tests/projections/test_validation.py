"""Bad input is refused by a ValueError that names the argument, what it is, and the remedy."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import clustruct as cs

GOOD = [1.0, 2.0, 4.0]

FUNCTIONS = {
    "kmeans_1d": lambda x, n_clusters=2, **options: cs.kmeans_1d(x, n_clusters, **options),
    "project_clustered": lambda x, n_clusters=2, **options: cs.project_clustered(
        x, n_clusters, **options
    ),
}
ARGUMENT = {"kmeans_1d": "x", "project_clustered": "w"}


@pytest.fixture(params=FUNCTIONS)
def name(request):
    return request.param


def refused(parts, function, *args, **kwargs):
    """Call, and check that all parts stand in the message of the ValueError."""
    with pytest.raises(ValueError) as caught:
        function(*args, **kwargs)
    for part in parts:
        assert re.search(part, str(caught.value)), f"no {part!r} in: {caught.value}"


@pytest.mark.parametrize(
    ("values", "parts"),
    [
        ([1.0, np.nan, 2.0], [r"{}\[1\] is nan", "finite", "Remove or impute"]),
        ([1.0, 2.0, np.inf], [r"{}\[2\] is inf", "finite", "Remove or impute"]),
        ([-np.inf, 2.0, np.inf], [r"{}\[0\] is -inf", "finite", "Remove or impute"]),
        ([1.0, None, 2.0], [r"{}\[1\] is nan", "finite", "Remove or impute"]),
        ([], ["{} is empty", r"\(0,\)", "at least one"]),
        (3.0, ["{} must be one-dimensional", r"shape \(\)", "Reshape"]),
        (np.ones((2, 2, 2)), ["{} must be one-dimensional", r"\(2, 2, 2\)", "Reshape"]),
        (["a", "b", "c"], ["{} must hold real numbers", "'a'", "Convert"]),
        (np.array(["1", "2"], dtype=object), ["{} must hold real numbers", "'1'", "Convert"]),
        (pd.Series(["1", "2"]), ["{} must hold real numbers", "1", "Convert"]),
        (np.array([1 + 2j, 3]), ["{} must hold real numbers", "j", "Convert"]),
        (np.array(["2020-01-01"], dtype="M8[D]"), ["{} must hold real numbers", "Convert"]),
        ([[1.0, 2.0], [3.0]], ["{} must hold real numbers", r"\[3.0\]", "Convert"]),
        ([10**400, 1], ["{}", "real numbers|finite"]),
        ({"a": 1.0}, ["{} must hold real numbers", "'a'", "Convert"]),
        (None, ["{}", "real numbers|finite|one-dimensional"]),
        (sparse.csr_matrix(np.eye(2)), ["{} is a sparse matrix", "toarray"]),
        (sparse.coo_array(np.eye(2)), ["{} is a sparse matrix", "toarray"]),
    ],
)
def test_values(name, values, parts):
    refused([part.replace("{}", ARGUMENT[name]) for part in parts], FUNCTIONS[name], values)


def test_kmeans_1d_wants_one_or_two_dimensions():
    for values in (np.ones((3, 1, 2)), np.float64(3.0), [[[1.0, 2.0]]]):
        parts = ["x must be one-dimensional or two-dim", r"shape \([\d, ]*\)", r"x.ravel\(\)"]
        refused(parts, cs.kmeans_1d, values, 2)


@pytest.mark.parametrize("shape", [(0, 2), (2, 0), (0, 0)])
def test_empty_matrix(shape):
    refused(["w is empty", re.escape(str(shape))], cs.project_clustered, np.empty(shape), 2)


def test_place_of_a_bad_entry_of_a_matrix():
    matrix = np.ones((3, 2))
    matrix[2, 1] = np.nan
    refused([r"w\[2, 1\] is nan", "finite"], cs.project_clustered, matrix, 2)


@pytest.mark.parametrize("value", [0, -1, -(10**30), np.int64(0)])
def test_too_few_clusters(name, value):
    refused(["n_clusters must be at least 1", str(int(value))], FUNCTIONS[name], GOOD, value)


@pytest.mark.parametrize(
    "value", [2.0, 2.5, np.float64(2), True, np.True_, "2", [2], np.array([2])]
)
def test_clusters_that_are_no_integer(name, value):
    parts = ["n_clusters must be an integer", re.escape(repr(value)), type(value).__name__]
    refused(parts, FUNCTIONS[name], GOOD, value)


def test_kmeans_1d_needs_a_number_of_clusters():
    refused(["n_clusters must be an integer", "None"], cs.kmeans_1d, GOOD, None)


def test_projection_needs_a_limit():
    refused(["n_clusters=None", "n_nonzero", "integer"], cs.project_clustered, GOOD, None)


@pytest.mark.parametrize("value", [-1, -7])
def test_negative_number_of_nonzero_entries(value):
    parts = ["n_nonzero must be at least 0", str(value)]
    refused(parts, cs.project_clustered, GOOD, 2, n_nonzero=value)


@pytest.mark.parametrize("value", [2.0, True, "2", np.nan])
def test_nonzero_entries_that_are_no_integer(value):
    parts = ["n_nonzero must be an integer", re.escape(repr(value)), type(value).__name__]
    refused(parts, cs.project_clustered, GOOD, 2, n_nonzero=value)


@pytest.mark.parametrize(
    ("weights", "parts"),
    [
        ([1.0, -2.0, 1.0], [r"sample_weight\[1\] is -2", "negative", "zero to leave"]),
        ([0.0, 0.0, 0.0], ["sample_weight is zero throughout", "at least one positive"]),
        ([1.0, 2.0], ["sample_weight has 2 entries", "3", "one weight for each"]),
        ([1.0] * 4, ["sample_weight has 4 entries", "3", "one weight for each"]),
        ([], ["sample_weight is empty", "at least one"]),
        ([[1.0], [1.0], [1.0]], ["sample_weight must be one-dimensional", r"\(3, 1\)"]),
        (1.0, ["sample_weight must be one-dimensional", r"\(\)"]),
        ([1.0, np.nan, 1.0], [r"sample_weight\[1\] is nan", "finite"]),
        ([1.0, np.inf, 1.0], [r"sample_weight\[1\] is inf", "finite"]),
        (["a", "b", "c"], ["sample_weight must hold real numbers", "'a'"]),
        (sparse.csr_matrix(np.ones((1, 3))), ["sample_weight is a sparse matrix", "toarray"]),
    ],
)
def test_weights(name, weights, parts):
    refused(parts, FUNCTIONS[name], GOOD, sample_weight=weights)


@pytest.mark.parametrize("value", [1, np.int8(1), np.uint64(1), 10**30])
def test_any_integer_is_a_count(name, value):
    assert FUNCTIONS[name](GOOD, value).labels.shape == (3,)
    assert cs.project_clustered(GOOD, 2, n_nonzero=value).exact


def test_options_are_named():
    with pytest.raises(TypeError):
        cs.kmeans_1d(GOOD, 2, [1, 1, 1])
    with pytest.raises(TypeError):
        cs.project_clustered(GOOD, 2, 1)
