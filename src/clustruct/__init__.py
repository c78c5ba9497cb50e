"""Linear models whose features, samples or tasks share weights in groups.

The public names are listed in one table below and loaded when first used, so that
``import clustruct`` itself costs next to nothing.
"""

from importlib import import_module

TYPE_CHECKING = False  # type checkers take it for True; importing it would triple the cost
if TYPE_CHECKING:
    from clustruct import datasets, plot
    from clustruct.estimators.columns.factors import Factor
    from clustruct.estimators.features.blocks import column_blocks
    from clustruct.estimators.features.models import (
        FeatureClusterClassifier,
        FeatureClusterRegressor,
    )
    from clustruct.estimators.features.path import feature_cluster_path
    from clustruct.estimators.features.search_models import (
        FeatureClusterClassifierCV,
        FeatureClusterRegressorCV,
    )
    from clustruct.estimators.samples.models import SampleClusterClassifier, SampleClusterRegressor
    from clustruct.estimators.samples.search_models import (
        SampleClusterClassifierCV,
        SampleClusterRegressorCV,
    )
    from clustruct.estimators.tasks.models import TaskClusterClassifier, TaskClusterRegressor
    from clustruct.estimators.tasks.scoring import task_scorer
    from clustruct.estimators.tasks.search_models import (
        TaskClusterClassifierCV,
        TaskClusterRegressorCV,
    )
    from clustruct.grouping.projections import kmeans_1d, project_clustered, segment_1d
    from clustruct.grouping.quantization import quantize
    from clustruct.persistence.model_files import load, save
    from clustruct.reporting.build import report
    from clustruct.results import (
        Certificate,
        Clustering1D,
        ClusteringRows,
        CountSelection,
        ExpertGroup,
        ExpertGroups,
        FeatureGroup,
        FeatureGroups,
        FeaturePath,
        GateScore,
        GroupDifference,
        GroupDifferences,
        GroupInterval,
        GroupIntervals,
        Iteration,
        Projection,
        QuantizedMatrix,
        Relativities,
        Relativity,
        SearchResult,
        Segmentation1D,
        StabilityResult,
        Status,
        TaskGroup,
        TaskGroups,
        TaskSelection,
    )
    from clustruct.trust.differences import compare_groups, compare_groups_1d
    from clustruct.trust.stability import stability

__version__ = "0.1.0"

# Public name -> the module that defines it; for a public module, the package it is in.
_HOMES = {
    name: f"{__name__}.{module}".rstrip(".")
    for module, names in {
        "": "datasets plot",
        "estimators.columns.factors": "Factor",
        "estimators.features.blocks": "column_blocks",
        "estimators.features.models": "FeatureClusterRegressor FeatureClusterClassifier",
        "estimators.features.path": "feature_cluster_path",
        "estimators.features.search_models": "FeatureClusterRegressorCV FeatureClusterClassifierCV",
        "estimators.samples.models": "SampleClusterRegressor SampleClusterClassifier",
        "estimators.samples.search_models": "SampleClusterRegressorCV SampleClusterClassifierCV",
        "estimators.tasks.models": "TaskClusterRegressor TaskClusterClassifier",
        "estimators.tasks.scoring": "task_scorer",
        "estimators.tasks.search_models": "TaskClusterRegressorCV TaskClusterClassifierCV",
        "grouping.projections": "kmeans_1d project_clustered segment_1d",
        "grouping.quantization": "quantize",
        "persistence.model_files": "save load",
        "reporting.build": "report",
        "results": "Certificate Clustering1D ClusteringRows CountSelection ExpertGroup "
        "ExpertGroups FeatureGroup FeatureGroups FeaturePath GateScore "
        "GroupDifference GroupDifferences GroupInterval GroupIntervals Iteration "
        "Projection QuantizedMatrix Relativities Relativity SearchResult "
        "Segmentation1D StabilityResult Status TaskGroup TaskGroups TaskSelection",
        "trust.differences": "compare_groups compare_groups_1d",
        "trust.stability": "stability",
    }.items()
    for name in names.split()
}

__all__ = [
    "FeatureClusterRegressor",
    "FeatureClusterClassifier",
    "FeatureClusterRegressorCV",
    "FeatureClusterClassifierCV",
    "feature_cluster_path",
    "column_blocks",
    "Factor",
    "SampleClusterRegressor",
    "SampleClusterClassifier",
    "SampleClusterRegressorCV",
    "SampleClusterClassifierCV",
    "TaskClusterRegressor",
    "TaskClusterClassifier",
    "TaskClusterRegressorCV",
    "TaskClusterClassifierCV",
    "task_scorer",
    "kmeans_1d",
    "segment_1d",
    "project_clustered",
    "quantize",
    "Clustering1D",
    "ClusteringRows",
    "Segmentation1D",
    "Projection",
    "QuantizedMatrix",
    "FeatureGroup",
    "FeatureGroups",
    "FeaturePath",
    "Relativity",
    "Relativities",
    "SearchResult",
    "GateScore",
    "CountSelection",
    "ExpertGroup",
    "ExpertGroups",
    "Certificate",
    "Iteration",
    "Status",
    "TaskGroup",
    "TaskGroups",
    "TaskSelection",
    "stability",
    "StabilityResult",
    "GroupInterval",
    "GroupIntervals",
    "compare_groups",
    "compare_groups_1d",
    "GroupDifference",
    "GroupDifferences",
    "save",
    "load",
    "datasets",
    "plot",
    "report",
    "__version__",
]


if not TYPE_CHECKING:  # so that type checkers complain of names that do not exist

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        home = _HOMES[name]
        if home == __name__:
            value = import_module(f"{home}.{name}")
        else:
            value = getattr(import_module(home), name)
        globals()[name] = value  # the next access is a plain one
        return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
