"""The movie reviews and their vocabulary. Tests are skipped where the file is nowhere."""

import io
import re
import tarfile

import numpy as np
import pytest
from scipy import sparse

import clustruct as cs
from clustruct.datasets import _files, reviews

CRITICS = {
    "Dennis Schwartz": 1027,
    "James Berardinelli": 1307,
    "Scott Renshaw": 902,
    "Steve Rhodes": 1770,
}


def test_reviews(fetch):
    text = fetch("fetch_movie_reviews", weighting="text")
    assert len(text.data) == 5006
    assert all(type(document) is str and document.strip() for document in text.data)
    names, counts = np.unique(text.critic, return_counts=True)
    assert dict(zip(names, counts, strict=True)) == CRITICS
    assert text.target.mean() == pytest.approx(0.5814, abs=5e-5)
    assert text.target.var() == pytest.approx(0.03302, abs=5e-6)
    assert (text.target.min(), text.target.max()) == (0.0, 1.0)
    assert text.feature_names.size == 0
    assert "Source:" in text.DESCR


def test_vocabulary_of_the_paper(fetch):
    bunch = fetch("fetch_movie_reviews")
    assert isinstance(bunch.data, sparse.csr_array)
    assert bunch.data.shape == (5006, 5623)
    assert bunch.data.dtype == np.float64
    assert bunch.feature_names.size == 5623
    words = bunch.feature_names.tolist()
    assert words == sorted(words)
    # Words that the paper shows are there, stop words are not.
    assert {"bad", "awful", "worst", "boring", "perfect", "hilarious", "great"} <= set(words)
    assert not {"the", "and", "of"} & set(words)
    assert np.diff(bunch.data.tocsc().indptr).min() >= 10


def test_weightings_share_words_and_ratings(fetch):
    bunches = {
        weighting: fetch("fetch_movie_reviews", weighting=weighting)
        for weighting in ("tfidf-l2", "tfidf", "frequency")
    }
    unit, plain, share = (bunch.data for bunch in bunches.values())
    for bunch in bunches.values():
        np.testing.assert_array_equal(bunch.feature_names, bunches["tfidf"].feature_names)
        assert isinstance(bunch.data, sparse.csr_array)
        np.testing.assert_array_equal(bunch.data.indices, unit.indices)
    norms = np.sqrt(plain.multiply(plain).sum(axis=1))
    np.testing.assert_allclose((plain.multiply(1 / norms[:, None]) - unit).data, 0, atol=1e-12)
    np.testing.assert_allclose(share.sum(axis=1), 1.0)


def test_all_words(fetch):
    bunch = fetch("fetch_movie_reviews", n_features=None, weighting="frequency")
    assert bunch.data.shape == (5006, 9477)
    some = fetch("fetch_movie_reviews", n_features=100, min_df=50)
    assert some.data.shape == (5006, 100)
    assert set(some.feature_names) < set(bunch.feature_names)


def test_return_x_y(fetch):
    X, y = fetch("fetch_movie_reviews", return_X_y=True)
    assert X.shape[0] == y.shape[0] == 5006


def test_too_many_words(fetch):
    with pytest.raises(ValueError, match=r"n_features=9478 is more than the 9477 .*min_df=10"):
        fetch("fetch_movie_reviews", n_features=9478)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weighting": "counts"}, "weighting must be one of 'tfidf-l2', .*got 'counts'"),
        ({"n_features": 0}, "n_features must be at least 1, got 0"),
        ({"min_df": 0.1}, "min_df must be an integer, got 0.1"),
    ],
)
def test_bad_arguments(options, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        cs.datasets.fetch_movie_reviews(data_home=tmp_path, **options)


def archive_of(members):
    """A .tar.gz with the given files, as bytes."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return target.getvalue()


def serve(monkeypatch, content):
    """Solution all downloads with the same content; the list of addresses asked for."""
    asked = []

    def urlopen(url, timeout):
        asked.append(url)
        return io.BytesIO(content)

    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    return asked


def test_download_of_the_authors_archive(fetch, monkeypatch, tmp_path):
    expected = fetch("fetch_movie_reviews", weighting="text")
    path = _files.locate(
        reviews.REPACKED, reviews.ORIGINAL, data_home=None, download_if_missing=False
    )
    with tarfile.open(path) as archive:
        members = {
            member.name: archive.extractfile(member).read()
            for member in archive.getmembers()
            if member.isfile()
        }
    asked = serve(monkeypatch, archive_of(members))
    for _ in range(2):  # the second time from the file
        bunch = cs.datasets.fetch_movie_reviews(weighting="text", data_home=tmp_path)
        assert bunch.data == expected.data
        np.testing.assert_array_equal(bunch.target, expected.target)
    assert asked == [reviews.ORIGINAL.url]
    assert [path.name for path in tmp_path.iterdir()] == ["scale_data.tar.gz"]

    members["scaledata/Steve+Rhodes/rating.Steve+Rhodes"] += b"0.5\n"
    (tmp_path / "scale_data.tar.gz").write_bytes(archive_of(members))
    with pytest.raises(OSError, match=f"must be {reviews.ORIGINAL.sha256}, and is [0-9a-f]{{64}}"):
        cs.datasets.fetch_movie_reviews(data_home=tmp_path)


@pytest.mark.parametrize(
    "content",
    [b"<html>not found</html>", b"", archive_of({"a": b"b"}), archive_of({"a": b"b"})[:20]],
    ids=["page", "empty", "other archive", "broken archive"],
)
def test_download_of_something_else(monkeypatch, tmp_path, content):
    serve(monkeypatch, content)
    with pytest.raises(OSError, match="SHA-256") as caught:
        cs.datasets.fetch_movie_reviews(data_home=tmp_path)
    assert re.search(r"downloaded from http.*of scale_data\.tar\.gz must be", str(caught.value))
    assert "Try again" in str(caught.value)
    assert list(tmp_path.iterdir()) == []
