"""Movie reviews with ratings, as weighted word counts."""

import hashlib
import lzma
import tarfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.preprocessing import normalize
from sklearn.utils import Bunch

from clustruct._arguments import as_choice, as_count
from clustruct.datasets._bunches import downloader
from clustruct.datasets._files import DataFile, PathLike, locate

CRITICS = ("Dennis+Schwartz", "James+Berardinelli", "Scott+Renshaw", "Steve+Rhodes")
WEIGHTINGS = ("tfidf-l2", "tfidf", "frequency", "text")
SOURCE = 'the "scale dataset v1.0" at https://www.cs.cornell.edu/people/pabo/movie-review-data'

DESCRIPTION = """\
Movie reviews with ratings
==========================
5006 newspaper reviews by four critics, reduced to their subjective sentences, with ratings between
0 and 1 that were derived from the critics' stars. The texts have no capitals and no explicit
ratings; tokens are separated by spaces.

Source: B. Pang and L. Lee, "Seeing stars: exploiting class relationships for sentiment
categorization with respect to rating scales", ACL 2005; the scale dataset v1.0 at
https://www.cs.cornell.edu/people/pabo/movie-review-data. The texts belong to their critics.

Vocabulary: English stop words and words in fewer than `min_df` reviews are left out; of the others
those `n_features` stay whose TF-IDF, in rows of norm 1, is largest on average.
"""


@downloader
def fetch_movie_reviews(
    *,
    weighting: str = "tfidf-l2",
    n_features: int | None = 5623,
    min_df: int = 10,
    data_home: PathLike | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Load Pang and Lee's movie reviews, with the vocabulary of the paper's section 6.2.

    5006 newspaper reviews by four critics, with ratings between 0 and 1.

    Parameters
    ----------
    weighting : {"tfidf-l2", "tfidf", "frequency", "text"}, default="tfidf-l2"
        How word counts are weighted: TF-IDF with rows of norm 1, TF-IDF, or the share of a word
        among the review's words in the vocabulary. "text" returns the texts.
    n_features : int or None, default=5623
        Size of the vocabulary; None for all words in at least `min_df` reviews.
    min_df : int, default=10
        Smallest number of reviews that a word occurs in.

    Returns
    -------
    Bunch, or tuple of (data, target)
        ``data``, a CSR array with a row for each review, or a list of texts; ``target``, the
        ratings; ``critic``, who wrote each review; ``feature_names``, the words, in alphabetical
        order (none for texts); and ``DESCR``.

    Notes
    -----
    The paper says only that stop words, rare words and words with a small mean TF-IDF were
    removed, and that 5623 were left; ``DESCR`` says how that is done here.

    Examples
    --------
    >>> import clustruct as cs
    >>> reviews = cs.datasets.fetch_movie_reviews()  # doctest: +SKIP
    >>> reviews.data.shape  # doctest: +SKIP
    (5006, 5623)
    >>> reviews.feature_names[:3].tolist()  # doctest: +SKIP
    ['00', '000', '007']
    """
    weighting = as_choice(weighting, "weighting", WEIGHTINGS)
    n_words = None if n_features is None else as_count(n_features, "n_features")
    min_df = as_count(min_df, "min_df")
    path = locate(REPACKED, ORIGINAL, data_home=data_home, download_if_missing=download_if_missing)
    texts, ratings, critic = _read_reviews(path)
    data: Any = texts
    words = np.array([], dtype=object)
    if weighting != "text":
        counts, words = _count_words(texts, n_words, min_df)
        if weighting == "frequency":
            data = normalize(counts, norm="l1")
        else:
            tfidf = TfidfTransformer(norm="l2" if weighting == "tfidf-l2" else None)
            data = sparse.csr_array(tfidf.fit_transform(counts))
    if return_X_y:
        return data, ratings
    return Bunch(data=data, target=ratings, critic=critic, feature_names=words, DESCR=DESCRIPTION)


def _digest_of_members(path: Path) -> str:
    """SHA-256 of the texts and ratings in an archive, whatever its compression."""
    sha256 = hashlib.sha256()
    try:
        with tarfile.open(path) as archive:
            for critic in CRITICS:
                for kind in ("subj", "rating"):
                    sha256.update(_member(archive, kind, critic))
    except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, KeyError, OSError):
        return "unknown: this is no archive of the reviews"
    return sha256.hexdigest()


# The authors' archive, and a smaller one with the same content.
ORIGINAL = DataFile(
    name="scale_data.tar.gz",
    sha256="78c25320b3aaa2fc99b86e9a3cba4f2496ca5e69c6d46a73b2c2adbd5c239e97",
    source=SOURCE,
    url="https://www.cs.cornell.edu/people/pabo/movie-review-data/scale_data.tar.gz",
    digest=_digest_of_members,
)
REPACKED = DataFile(
    name="scaledata.tar.xz",
    sha256="7b8137af6162e8275fd21ab2368f920a8a51d248de86bef55628466924471ca2",
    source=SOURCE,
)


def _member(archive: tarfile.TarFile, kind: str, critic: str) -> bytes:
    """The content of a critic's file."""
    stream = archive.extractfile(f"scaledata/{critic}/{kind}.{critic}")
    return b"" if stream is None else stream.read()


def _read_reviews(path: Path) -> tuple[list[str], NDArray[np.float64], NDArray[np.object_]]:
    """The text, rating and critic of each review."""
    texts, ratings, critics = list[str](), list[float](), list[str]()
    with tarfile.open(path) as archive:
        for critic in CRITICS:
            lines = _member(archive, "subj", critic).decode("ascii").removesuffix("\n").split("\n")
            texts += lines
            ratings += [float(rating) for rating in _member(archive, "rating", critic).split()]
            critics += [critic.replace("+", " ")] * len(lines)
    return texts, np.array(ratings), np.array(critics, dtype=object)


def _count_words(
    texts: list[str], n_words: int | None, min_df: int
) -> tuple[sparse.csr_array, NDArray[np.object_]]:
    """Word counts of the reviews, and the vocabulary."""
    vectorizer = CountVectorizer(stop_words="english", min_df=min_df, dtype=np.float64)
    counts = sparse.csr_array(vectorizer.fit_transform(texts))
    counts.sort_indices()
    words = vectorizer.get_feature_names_out()
    if n_words is None:
        return counts, words
    if n_words > words.size:
        raise ValueError(
            f"n_features={n_words} is more than the {words.size} words that are in min_df={min_df} "
            "reviews or more. Give a smaller n_features or min_df, or None for all words."
        )
    mean = np.asarray(TfidfTransformer().fit_transform(counts).mean(axis=0)).ravel()
    kept = np.sort(np.argsort(-mean, kind="stable")[:n_words])
    return counts[:, kept], words[kept]
