"""Table 5: the words in the groups with the largest weights."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from clustruct import __version__
from clustruct.estimators.features.search_models import FeatureClusterRegressorCV
from clustruct.experiments.experiment import (
    Cell,
    Experiment,
    Measurement,
    PlainTable,
    Presentation,
    Row,
)
from clustruct.experiments.output.pictures import WordGroup, words_picture
from clustruct.experiments.paper.reviews import check_reviews, load_reviews, scaled_alphas

__all__ = ["TABLE5"]

CELLS: Mapping[str, Cell] = {
    "TF-IDF": {"weighting": "tfidf"},
    "l2 TF-IDF": {"weighting": "tfidf-l2"},
}
N_CLUSTERS = 15  # chosen by cross-validation in the paper
MOST_WORDS = 60
# The paper's Table 5: size and some words of the four groups.
PAPER_GROUPS = (
    ("first (negative)", "1", "bad"),
    ("second (negative)", "7", "awful, worst, boring, ridiculous, watchable, suppose, disgusting"),
    ("last (positive)", "4", "perfect, hilarious, fascinating, great"),
    (
        "before last (positive)",
        "40",
        "wonderfully, perfectly, good-spirited, world, intelligent, unexpected, gem, "
        "recommendation, excellent, rare, unique, marvelous, mature, send, delightful, funniest",
    ),
)


def settings() -> dict[str, Any]:
    """All constants that the results depend on."""
    return {"clustruct": __version__, "n_clusters": N_CLUSTERS, "words": MOST_WORDS, "version": 1}


def measure(cell: Cell, seed: np.random.SeedSequence) -> dict[str, Any]:
    """The groups of a fit to all reviews."""
    reviews = load_reviews(str(cell["weighting"]))
    X, words = reviews.data, reviews.feature_names
    model = FeatureClusterRegressorCV(
        N_CLUSTERS,
        alphas=scaled_alphas(X).tolist(),
        random_state=int(seed.generate_state(1)[0] >> 1),
    ).fit(X, reviews.target)
    reviews_with = np.asarray((X > 0).sum(axis=0)).ravel()
    groups = []
    for label, weight in enumerate(model.cluster_values_):
        members = np.flatnonzero(model.labels_ == label)
        order = members[np.argsort(-reviews_with[members], kind="stable")][:MOST_WORDS]
        groups.append(
            {
                "weight": float(weight),
                "size": int(members.size),
                "words": [str(word) for word in words[order]],
                "reviews": [int(count) for count in reviews_with[order]],
            }
        )
    return {"groups": groups, "chosen": {**model.best_params_}}


def present(rows: Sequence[Row]) -> Presentation:
    """The groups as tables and as pictures."""
    tables = [
        PlainTable("The paper's groups", ["group", "size", "some of the words"], PAPER_GROUPS)
    ]
    pictures, remarks = [], []
    for column, cell in CELLS.items():
        for row in rows:
            if row.cell == cell:
                groups = [WordGroup(**group) for group in row.values["groups"]]
                tables.append(_table(groups, column))
                name = f"words-{cell['weighting']}"
                pictures.append(words_picture(name, groups, f"Words that share a weight, {column}"))
                remarks.append(_remark(groups, column))
    return Presentation(tables=tables, pictures=pictures, remarks=remarks)


def _table(groups: Sequence[WordGroup], column: str) -> PlainTable:
    """All groups, from the most negative to the most positive."""
    body = [
        (f"{group.weight:+.4g}", str(group.size), ", ".join(group.words[:15])) for group in groups
    ]
    header = ["weight", "size", "the words that are in most reviews"]
    return PlainTable(f"Our groups, {column}", header, body)


def _remark(groups: Sequence[WordGroup], column: str) -> str:
    """Whether the groups with large weights are the small ones, as the paper observes."""
    weights = np.abs([group.weight for group in groups])
    sizes = np.array([group.size for group in groups])
    outer = sizes[np.argsort(-weights)[:4]]
    share = outer.sum() / sizes.sum()
    return (
        f"{column}: the four groups with the largest weights hold {outer.sum()} of {sizes.sum()} "
        f"words ({share:.1%}), of sizes {', '.join(map(str, outer))}: as in the paper, few words "
        "say much."
    )


TABLE5 = Experiment(
    name="table5",
    title="Table 5: groups of words",
    about="Fifteen weights for 5623 words, fitted to all reviews by `auto`, the ridge chosen by "
    "5-fold cross-validation. Words are listed by the number of reviews they are in.",
    measurement=Measurement("words", measure, settings, check_reviews, lambda cell: 5.0),
    cells=tuple(CELLS.values()),
    repetitions=1,
    present=present,
    quick_cells=(CELLS["TF-IDF"],),
    quick_repetitions=1,
)
