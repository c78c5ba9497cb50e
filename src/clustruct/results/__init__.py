"""The frozen dataclasses that functions and estimators return."""

from clustruct.results.groups import (
    ExpertGroup,
    ExpertGroups,
    FeatureGroup,
    FeatureGroups,
    GateScore,
    TaskGroup,
    TaskGroups,
)
from clustruct.results.relativities import Relativities, Relativity
from clustruct.results.scores import CountSelection, FeaturePath, SearchResult, TaskSelection
from clustruct.results.solving import (
    Certificate,
    Clustering1D,
    Iteration,
    Projection,
    Segmentation1D,
    Status,
)

__all__ = [
    "Certificate",
    "Clustering1D",
    "CountSelection",
    "ExpertGroup",
    "ExpertGroups",
    "FeatureGroup",
    "FeatureGroups",
    "FeaturePath",
    "GateScore",
    "Iteration",
    "Projection",
    "Relativities",
    "Relativity",
    "SearchResult",
    "Segmentation1D",
    "Status",
    "TaskGroup",
    "TaskGroups",
    "TaskSelection",
]
