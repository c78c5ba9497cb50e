"""Tables with text that are read piece by piece: the models and answers of tables in memory."""

import json
import tempfile

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline

import clustruct as cs
from clustruct.cli.preparing.words import fit_words
from clustruct.cli.reading.scratch import Scratch
from clustruct.cli.reading.stored import ColumnarTable, find_table

pytest.importorskip("dask")
pytest.importorskip("pyarrow")
pytestmark = pytest.mark.usefixtures("uncaged")

N = 1100
WAYS = ("no", "yes")


@pytest.fixture(scope="module")
def reviews():
    """Texts with words common and rare, numbers and categories; values missing in all of them."""
    rng = np.random.default_rng(0)
    words = np.array([f"w{j}" for j in range(200)] + ["Été", "C'est", "naïve", "GOOD", "bad"])
    chances = 1.0 / np.arange(5, 5 + words.size)
    drawn = [
        rng.choice(words, size, p=chances / chances.sum()) for size in rng.integers(6, 20, size=N)
    ]
    frame = pd.DataFrame({"review": [" ".join(row) + f" only{i}" for i, row in enumerate(drawn)]})
    frame["title"] = [" ".join(row[:4]) + " Title" * (i % 2) for i, row in enumerate(drawn)]
    frame["age"] = rng.normal(40, 10, N)
    frame["shop"] = rng.choice(["north", "south", "centre"], N)
    frame["code"] = rng.integers(0, 40, N)
    weights = dict(zip(words, rng.choice([-1.0, 0.0, 2.0], words.size), strict=True))
    frame["stars"] = [sum(weights[word] for word in row) / 4 for row in drawn]
    frame["stars"] += 0.02 * frame["age"] + (frame["shop"] == "north") + rng.normal(0, 0.2, N)
    frame["liked"] = np.where(frame["stars"] > frame["stars"].median(), "yes", "no")
    frame.loc[::50, ["review", "title"]] = None
    frame.loc[200:420, "review"] = None  # so that some batches have no text at all
    frame.loc[5::90, "age"] = np.nan
    frame.loc[7::70, "shop"] = None
    frame["code"] = frame["code"].astype("Int64").where(frame.index % 60 != 1)
    frame.loc[[3, 500], "stars"] = np.nan
    return frame


@pytest.fixture
def file(reviews, tmp_path):
    path = tmp_path / "reviews.parquet"
    reviews.to_parquet(path)  # in one row group, which is larger than a piece
    return path


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr("clustruct.cli.preparing.opening.PIECE_BYTES", 10_000)


@pytest.fixture
def fitted_both_ways(clustruct, tmp_path):
    """A function that fits in memory and out of core, and gives answers and models of both."""

    def fit(data, *options):
        found = []
        for way in WAYS:
            out = tmp_path / f"{way}.clustruct"
            args = ("fit", data, *options, "--out-of-core", way, "--out", out, "--json")
            status, text, err = clustruct(*args)
            assert status == 0, err
            found.append((json.loads(text), cs.load(out)))
        return found

    return fit


QUICK = ("--alpha", "0.01", "--nonzero", "all")
ONLY = ("--target", "stars", "--columns", "review", "--text", "review")
MIXED = ("--target", "stars", "--drop", "liked", "code", "--text", "review", "title")
CASES = {
    "one text": (*ONLY, "--clusters", "5", *QUICK),
    "mixed": (*MIXED, "--clusters", "8", *QUICK),
    "search": (*ONLY, "--clusters", "4,6", "--alpha", "0.01"),
    "classes": ("--target", "liked", "--columns", "review", "age", "--clusters", "5", *QUICK),
    "nonzero": (*MIXED, "--clusters", "4", "--nonzero", "30", "--alpha", "0.01"),
    "numbers": ("--target", "stars", "--columns", "code", "age", "--text", "code", *QUICK),
    "recognised": ("--target", "stars", "--columns", "age", "shop", "title", *QUICK),
}


@pytest.mark.parametrize("name", CASES)
def test_model_is_that_of_the_table_in_memory(name, fitted_both_ways, file, monkeypatch):
    monkeypatch.setattr(
        "clustruct.cli.preparing.preparation.MOST_WORDS", 90
    )  # words compete for a place
    options = CASES[name] if "--clusters" in CASES[name] else (*CASES[name], "--clusters", "6")
    (here, whole), (there, pieces) = fitted_both_ways(file, *options)
    assert there["out_of_core"]
    assert not here["out_of_core"]
    for key in ("rows", "target", "columns", "remarks"):
        assert there[key] == here[key]
    _assert_same_words(pieces[0], whole[0])
    np.testing.assert_allclose(pieces[-1].coef_, whole[-1].coef_, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(pieces[-1].intercept_, whole[-1].intercept_, rtol=1e-8)
    mine, theirs = (list(found["held_out"]["scores"][-1].values()) for found in (there, here))
    assert mine[2:] == pytest.approx(theirs[2:], rel=1e-6)


def _assert_same_words(mine, theirs):
    """The words that were learnt, and their weights, are the same to the last bit."""
    assert list(mine.get_feature_names_out()) == list(theirs.get_feature_names_out())
    assert mine.sparse_output_
    found = 0
    for (name, one, columns), other in zip(mine.transformers_, theirs.transformers_, strict=True):
        assert (name, columns) == (other[0], other[2])
        if isinstance(one.estimator, Pipeline) and isinstance(one.estimator[-1], TfidfVectorizer):
            vectorizer, known = one.estimator[-1], other[1][-1]
            assert vectorizer.vocabulary_ == known.vocabulary_
            assert np.array_equal(vectorizer.idf_, known.idf_)
            found += 1
    assert found


@pytest.mark.parametrize("use", [("--samples", "--clusters", "2"), ("--tasks", "shop")])
def test_samples_and_tasks_are_those_of_memory(use, fitted_both_ways, file, reviews, monkeypatch):
    monkeypatch.setattr("clustruct.cli.preparing.preparation.MOST_WORDS", 8)
    monkeypatch.setattr("clustruct.cli.reading.scratch.free_bytes", lambda: 0.0)
    reviews.assign(shop=reviews["shop"].fillna("none")).to_parquet(file)
    columns = ("--target", "stars", "--columns", "title", "age", "--text", "title")
    (_, whole), (_, pieces) = fitted_both_ways(file, *columns, *use)
    name = "experts_" if "--samples" in use else "coef_"
    mine, theirs = getattr(pieces[-1], name), getattr(whole[-1], name)
    np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-8)


def test_text_is_never_in_memory_as_a_whole(clustruct, file, tmp_path, monkeypatch):
    read, heights = ColumnarTable.column, []

    def column(table, name):
        assert name not in ("review", "title")
        return read(table, name)

    def watched(table, columns, n_bytes, batches=ColumnarTable.batches):
        for frame in batches(table, columns, n_bytes):
            if "review" in columns:
                heights.append(len(frame))
            yield frame

    monkeypatch.setattr(ColumnarTable, "column", column)
    monkeypatch.setattr(ColumnarTable, "batches", watched)
    out = tmp_path / "model.clustruct"
    fit = ("fit", file, *MIXED, "--clusters", "8", *QUICK, "--out", out, "--out-of-core", "yes")
    status, _, err = clustruct(*fit)
    assert status == 0, err
    status, _, err = clustruct("predict", out, file, "--out-of-core", "yes")
    assert status == 0, err
    assert max(heights) < N / 2  # most of all where texts are missing


def test_pieces_are_on_disk_where_memory_is_short(
    clustruct, file, fitted_both_ways, tmp_path, monkeypatch
):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr("clustruct.cli.reading.scratch.free_bytes", lambda: 0.0)
    options = CASES["mixed"]
    (_, whole), (_, pieces) = fitted_both_ways(file, *options)
    np.testing.assert_allclose(pieces[-1].coef_, whole[-1].coef_, rtol=1e-8, atol=1e-8)
    assert list(folder.iterdir()) == []
    status, _, err = clustruct("fit", file, *options, "--out-of-core", "yes")
    assert status == 0
    assert f"the words of {file} take " in err
    assert str(folder) in err

    def interrupted(*args, **kwargs):
        assert list(folder.iterdir())
        raise KeyboardInterrupt

    monkeypatch.setattr("clustruct.cli.preparing.training._fit", interrupted)
    assert clustruct("fit", file, *options, "--out-of-core", "yes")[0] == 130
    assert list(folder.iterdir()) == []


def test_a_full_disk_is_told(complaint_of, file, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("clustruct.cli.reading.scratch.free_bytes", lambda: 0.0)
    monkeypatch.setattr("clustruct.cli.reading.scratch.save_npz", full)
    complaint = complaint_of("fit", file, *CASES["one text"], "--out-of-core", "yes")
    assert "no room is left in" in complaint
    assert "TMPDIR" in complaint


def test_the_scratch_is_filled_in_memory_first(monkeypatch):
    matrix = csr_array(np.random.default_rng(0).poisson(0.3, (50, 20)).astype(float))
    size = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
    monkeypatch.setattr("clustruct.cli.reading.scratch.free_bytes", lambda: 4.0 * size)
    with Scratch() as scratch:
        pieces = [scratch.put(matrix) for _ in range(5)]
        assert scratch.bytes_on_disk == 3 * size
        with scratch.writing() as folder:
            assert len(list(folder.iterdir())) == 3
        for piece in pieces:
            assert abs(piece.compute() - matrix).max() == 0.0
    assert not folder.exists()


@pytest.fixture
def model(clustruct, file, tmp_path):
    out = tmp_path / "reviews.clustruct"
    status, _, err = clustruct("fit", file, *MIXED, "--clusters", "8", *QUICK, "--out", out)
    assert status == 0, err
    return out


def test_predictions_are_those_of_the_table_in_memory(clustruct, model, file, tmp_path):
    answers = []
    for way in WAYS:
        out = tmp_path / f"{way}.parquet"
        status, _, err = clustruct("predict", model, file, "--out", out, "--out-of-core", way)
        assert status == 0, err
        answers.append(pd.read_parquet(out))
    assert len(answers[0]) == N
    pd.testing.assert_frame_equal(*answers, rtol=1e-12)


def test_report_is_that_of_the_table_in_memory(
    clustruct, complaint_of, model, file, reviews, tmp_path, monkeypatch
):
    pytest.importorskip("jinja2")
    pages = []
    for way in WAYS:
        page = tmp_path / f"{way}.html"
        status, _, err = clustruct("report", model, file, "--out", page, "--out-of-core", way)
        assert status == 0, err
        assert "1,100 rows, 2 left out because the target is missing" in err
        pages.append(page.read_text(encoding="utf-8"))
    assert pages[0] == pages[1]
    assert "drawn at random" not in pages[0]
    reviews.dropna(subset="stars").to_parquet(file)
    monkeypatch.setattr("clustruct.reporting.comparing.samples.MOST_ROWS", 300)
    status, _, err = clustruct("report", model, file, "--out", page, "--out-of-core", "yes")
    assert status == 0, err
    assert "(300 of 1,098 rows, drawn at random)" in page.read_text(encoding="utf-8")
    reviews.assign(stars=None).to_parquet(file)
    here, there = _complaints(complaint_of, "report", model, file, "--out", page)
    assert here == there
    assert "the target has no values" in here


def test_numbers_taken_for_words_are_written_as_in_memory(clustruct, file, reviews, tmp_path):
    """One missing number makes fractions of all: the words are "7.0", not "7", in every piece."""
    out = tmp_path / "model.clustruct"
    args = ("--target", "stars", "--columns", "code", "--text", "code", "--clusters", "3", *QUICK)
    assert clustruct("fit", file, *args, "--out", out, "--out-of-core", "yes")[0] == 0
    answers = []
    for way in WAYS:
        path = tmp_path / f"{way}.csv"
        status, _, err = clustruct("predict", out, file, "--out", path, "--out-of-core", way)
        assert status == 0, err
        answers.append(pd.read_csv(path)["prediction"])
    np.testing.assert_allclose(*answers, rtol=1e-12)


def test_long_texts_do_not_fit_into_memory(clustruct, tmp_path, monkeypatch):
    frame = pd.DataFrame(
        {"text": [f"{i % 3} {i % 7} word{i % 5} and " + "x" * 5000 for i in range(200)]}
    )
    frame["y"] = np.arange(200) % 5 + 0.5
    path = tmp_path / "long.parquet"
    frame.to_parquet(path, use_dictionary=False)
    table = find_table(str(path), None)
    assert 2e6 < table.bytes_in_memory() < 2.1e6  # as text and as objects
    monkeypatch.setattr("clustruct.cli.preparing.opening.free_bytes", lambda: 2e6)
    args = ("fit", path, "--target", "y", "--regression", "--clusters", "2", *QUICK)
    status, _, err = clustruct(*args)
    assert status == 0, err
    assert "is read out of core, piece by piece: work on it takes about" in err


def _complaints(complaint_of, *args):
    return [complaint_of(*args, "--out-of-core", way) for way in WAYS]


def test_mistakes_are_told_as_in_memory(complaint_of, file, reviews, model):
    text = ("--target", "stars", "--columns", "review", "title")
    here, there = _complaints(complaint_of, "fit", file, *text, "--missing", "refuse")
    assert here == there
    assert "'stars': no value in 2 rows (4, 501)" in here
    reviews.dropna(subset="stars").reset_index(drop=True).to_parquet(file)
    here, there = _complaints(complaint_of, "fit", file, *text, "--missing", "refuse")
    assert here == there
    assert "'review': no value in 237 rows" in here
    mostly = [str(i) if i % 10 else "none at all" for i in range(N)]
    reviews.assign(review=mostly).to_parquet(file)
    here, there = _complaints(complaint_of, "fit", file, *text)
    assert here == there
    assert "'review': 109 of its values are not numbers, such as 'none at all' in row 1." in here
    reviews.assign(review=[f"a text of unique {i}" for i in range(N)]).to_parquet(file)
    here, there = _complaints(complaint_of, "fit", file, *text)
    assert here == there
    assert "'review': no words are left when rare ones and those in half of the rows" in here
    reviews.assign(review=reviews["age"]).drop(columns="title").to_parquet(file)
    here, there = _complaints(complaint_of, "predict", model, file)
    assert here == there
    assert "has no column 'title'" in here


def test_texts_that_are_lists_are_told(complaint_of, file, reviews):
    reviews.assign(review=[["a", "b"]] * N).to_parquet(file)
    here, there = _complaints(complaint_of, "fit", file, "--target", "stars")
    assert here == there
    assert "its values are lists or objects" in here


# ---- Words, counted in batches


def _texts(n, n_words, seed):
    rng = np.random.default_rng(seed)
    words = np.array([f"word{j}" for j in range(n_words)])
    places = np.minimum(rng.zipf(1.3, (n, 12)) - 1, n_words - 1)
    return [" ".join(words[row]) for row in places]


def _batches(texts, size=7):
    return lambda: (texts[first : first + size] for first in range(0, len(texts), size))


@pytest.mark.parametrize("most", [None, 1, 10, 40])
@pytest.mark.parametrize("seed", range(4))
def test_words_are_those_that_scikit_learn_finds(most, seed):
    texts = ["", *_texts(150, 300, seed), "", "The"]
    vectorizer = TfidfVectorizer(min_df=2, max_df=0.5, max_features=most, sublinear_tf=True)
    found = fit_words(vectorizer, _batches(texts), "texts")
    known = TfidfVectorizer(**vectorizer.get_params()).fit(texts)
    assert found.vocabulary_ == known.vocabulary_
    assert np.array_equal(found.idf_, known.idf_)
    assert abs(found.transform(texts) - known.transform(texts)).max() == 0.0


def test_many_words_are_counted_in_little_memory(monkeypatch):
    """Rare words are forgotten, and counted anew; what is common was never rare for long."""
    monkeypatch.setattr("clustruct.cli.preparing.words.MOST_COUNTED", 120)
    texts = [f"{text} rare{i} rarer{i}" for i, text in enumerate(_texts(600, 60, 0))]
    vectorizer = TfidfVectorizer(min_df=2, max_df=0.5, max_features=12, sublinear_tf=True)
    found = fit_words(vectorizer, _batches(texts), "texts")
    known = TfidfVectorizer(**vectorizer.get_params()).fit(texts)
    assert found.vocabulary_ == known.vocabulary_
    assert np.array_equal(found.idf_, known.idf_)


def test_words_that_may_have_been_missed_are_told(monkeypatch):
    monkeypatch.setattr("clustruct.cli.preparing.words.MOST_COUNTED", 50)
    texts = _texts(300, 400, 0)
    vectorizer = TfidfVectorizer(min_df=2, max_df=0.5)
    with pytest.warns(UserWarning, match="texts: there are more than 50 distinct words"):
        found = fit_words(vectorizer, _batches(texts), "texts")
    known = TfidfVectorizer(**vectorizer.get_params()).fit(texts)
    assert set(found.vocabulary_) < set(known.vocabulary_)
    for word, place in found.vocabulary_.items():  # what was found was counted without fault
        assert found.idf_[place] == known.idf_[known.vocabulary_[word]]
