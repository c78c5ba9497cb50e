"""The frozen dataclasses that functions and estimators return."""

from clustruct.results.differences import GroupDifference, GroupDifferences
from clustruct.results.features import FeatureGroup, FeatureGroups, FeaturePath, SearchResult
from clustruct.results.intervals import GroupInterval, GroupIntervals
from clustruct.results.projections import Clustering1D, Projection, Segmentation1D
from clustruct.results.relativities import Relativities, Relativity
from clustruct.results.samples import CountSelection, ExpertGroup, ExpertGroups, GateScore
from clustruct.results.solving import Certificate, Iteration, Status
from clustruct.results.stability import StabilityResult
from clustruct.results.tasks import TaskGroup, TaskGroups, TaskSelection

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
    "GroupDifference",
    "GroupDifferences",
    "GroupInterval",
    "GroupIntervals",
    "Iteration",
    "Projection",
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
