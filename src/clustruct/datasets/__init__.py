"""Data to try models on: generators that return the planted truth, and loaders of real data.

The ``make_*`` functions draw problems whose solution is known, and return it with the data. The
``fetch_*`` functions read public data sets, which the package does not ship. They look in the
folder named by the environment variable ``CLUSTRUCT_DATA``, then in the user's cache, and then
download the file if there is a public source. Every file is checked against its SHA-256.
"""

from clustruct.datasets.generators import (
    make_clustered_features,
    make_clustered_tasks,
    make_experts,
)
from clustruct.datasets.multitask import fetch_landmine, fetch_school
from clustruct.datasets.planted import ClusteredFeatures, ClusteredTasks, Experts
from clustruct.datasets.reviews import fetch_movie_reviews
from clustruct.datasets.tables import fetch_cheese, fetch_meatspec, fetch_rent, fetch_tone

__all__ = [
    "make_clustered_features",
    "make_experts",
    "make_clustered_tasks",
    "ClusteredFeatures",
    "Experts",
    "ClusteredTasks",
    "fetch_movie_reviews",
    "fetch_school",
    "fetch_landmine",
    "fetch_tone",
    "fetch_cheese",
    "fetch_rent",
    "fetch_meatspec",
]
