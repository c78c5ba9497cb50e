"""Table 5: the words in the groups with the largest weights."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from clustruct.estimators.features.search_models import FeatureClusterRegressorCV
from clustruct.experiments.experiment import Cell, Experiment, Measurement, Presentation, Row
from clustruct.experiments.output.pictures import WordGroup, words_picture
from clustruct.experiments.output.tables import Table
from clustruct.experiments.paper.table4 import CELLS, check_reviews, load_reviews, scaled_alphas

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
    tables = [Table("The paper's groups", ["group", "size", "some of the words"], PAPER_GROUPS)]
    pictures, remarks = [], []
    header = ["weight", "size", "the words that are in most reviews"]
    for column, cell in CELLS.items():
        for row in rows:
            if row.cell != cell:
                continue
            groups = [WordGroup(**group) for group in row.values["groups"]]
            body = [(f"{g.weight:+.4g}", str(g.size), ", ".join(g.words[:15])) for g in groups]
            tables.append(Table(f"Our groups, {column}", header, body))
            title = f"Words that share a weight, {column}"
            pictures.append(words_picture(f"words-{cell['weighting']}", groups, title))
            remarks.append(_remark(groups, column))
    return Presentation(tables=tables, pictures=pictures, remarks=remarks)


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
    measurement=Measurement(
        "words",
        measure,
        {"n_clusters": N_CLUSTERS, "words": MOST_WORDS},
        check_reviews,
        lambda cell: 5.0,
    ),
    cells=tuple(CELLS.values()),
    repetitions=1,
    present=present,
    quick_cells=(CELLS["TF-IDF"],),
    quick_repetitions=1,
)
