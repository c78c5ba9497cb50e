"""TF-IDF of texts that are read in batches: the words that a fit in memory would find."""

import warnings
from collections import Counter
from collections.abc import Callable, Container, Iterable
from statistics import median_high
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer

# Different words that are counted at a time, which takes some 300 MB.
MOST_COUNTED = 2_000_000

Texts = Callable[[], Iterable[Iterable[str]]]


class _Counts(NamedTuple):
    """How often words occur, and in how many texts.

    A word that is not among them occurs at most `lost` times.
    """

    n_texts: int
    often: Counter[str]
    texts: Counter[str]
    lost: int


def fit_words(vectorizer: TfidfVectorizer, texts: Texts, where: str) -> TfidfVectorizer:
    """Fit a vectorizer to texts of which a batch at a time is in memory.

    One pass counts words. Where there are more than can be counted at a time, those that were rare
    until then are forgotten, again and again, and a second pass counts what is left anew. A word
    that was forgotten whenever it came cannot have come more often than the limits say, at which it
    was forgotten, add up to: as long as all words that are taken came more often, they are those of
    a count of all.
    """
    counts = _count(vectorizer, texts())
    if counts.lost:
        counts = _count(vectorizer, texts(), counts.often.keys())._replace(lost=counts.lost)
    words, frequencies, least = _choose(vectorizer, counts)
    if counts.lost >= least:
        warnings.warn(
            f"{where}: there are more than {MOST_COUNTED:,} distinct words, and some that occur "
            f"up to {counts.lost} times may have been missed.",
            stacklevel=2,
        )
    fitted = clone(vectorizer).set_params(vocabulary=words).fit([""])
    smooth: Any = int(vectorizer.smooth_idf)
    fitted.idf_ = np.log((counts.n_texts + smooth) / (frequencies + smooth)) + 1.0
    return fitted


def _count(
    vectorizer: TfidfVectorizer,
    batches: Iterable[Iterable[str]],
    known: Container[str] | None = None,
) -> _Counts:
    """All words or known ones; where they are too many, those that were never rare for long."""
    analyze = vectorizer.build_analyzer()
    often: Counter[str] = Counter()
    texts: Counter[str] = Counter()
    n_texts = lost = 0
    for batch in batches:
        for text in batch:
            words = analyze(text)
            if known is not None:
                words = [word for word in words if word in known]
            often.update(words)
            texts.update(set(words))
            n_texts += 1
            if len(often) > MOST_COUNTED:  # forget the rarer half
                rare = median_high(often.values())
                lost += rare
                for word in [word for word, count in often.items() if count <= rare]:
                    del often[word], texts[word]
    return _Counts(n_texts, often, texts, lost)


def _choose(
    vectorizer: TfidfVectorizer, counts: _Counts
) -> tuple[list[str], NDArray[np.float64], float]:
    """The words to use, the texts that each is in, and how often a word is to occur for it.

    The rule is that of `TfidfVectorizer`, down to the order of words that occur equally often.
    """
    words = sorted(counts.often)
    if not words:
        raise ValueError("empty vocabulary")
    texts = np.array([counts.texts[word] for word in words], dtype=np.float64)
    low, high = (  # a limit may be a share of the texts
        float(limit * counts.n_texts if isinstance(limit, float) else limit)
        for limit in (vectorizer.min_df, vectorizer.max_df)
    )
    places = np.flatnonzero((texts >= low) & (texts <= high))
    least = float(low)
    if vectorizer.max_features is not None and places.size > vectorizer.max_features:
        often = np.array([counts.often[words[place]] for place in places], dtype=np.float64)
        chosen = (-often).argsort()[: vectorizer.max_features]
        least = float(often[chosen].min())
        places = np.sort(places[chosen])
    if not places.size:
        raise ValueError("no terms remain")
    return [words[place] for place in places], texts[places], least
