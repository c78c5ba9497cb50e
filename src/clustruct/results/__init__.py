"""The frozen dataclasses that functions and estimators return."""

from clustruct.results.differences import GroupDifference, GroupDifferences
from clustruct.results.groups import (
    ExpertGroup,
    ExpertGroups,
    FeatureGroup,
    FeatureGroups,
    GateScore,
    TaskGroup,
    TaskGroups,
)
from clustruct.results.intervals import GroupInterval, GroupIntervals
from clustruct.results.relativities import Relativities, Relativity
from clustruct.results.rows import ClusteringRows, QuantizedMatrix
from clustruct.results.scores import CountSelection, FeaturePath, SearchResult, TaskSelection
from clustruct.results.solving import (
    Certificate,
    Clustering1D,
    Iteration,
    Projection,
    Segmentation1D,
    Status,
)
from clustruct.results.stability import StabilityResult

__all__ = [
    "Certificate",
    "Clustering1D",
    "ClusteringRows",
    "CountSelection",
    "ExpertGroup",
    "ExpertGroups",
    "FeatureGroup",
    "FeatureGroups",
    "FeaturePath",
    "GateScore",
    "GroupDifference",
    "GroupDifferences",
    "GroupInterval",
    "GroupIntervals",
    "Iteration",
    "Projection",
    "QuantizedMatrix",
    "Relativities",
    "Relativity",
    "SearchResult",
    "Segmentation1D",
    "StabilityResult",
    "Status",
    "TaskGroup",
    "TaskGroups",
    "TaskSelection",
]
