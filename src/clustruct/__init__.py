"""Linear models whose features, samples or tasks share weights in groups.

The public names are listed in one table below and loaded when first used, so that
``import clustruct`` itself costs next to nothing.
"""

from importlib import import_module

TYPE_CHECKING = False  # type checkers take it for True; importing it would triple the cost
if TYPE_CHECKING:
    from clustruct import datasets, plot
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
    from clustruct.grouping.projections import kmeans_1d, project_clustered
    from clustruct.persistence.model_files import load, save
    from clustruct.reporting.build import report
    from clustruct.results import (
        Certificate,
        Clustering1D,
        CountSelection,
        ExpertGroup,
        ExpertGroups,
        FeatureGroup,
        FeatureGroups,
        FeaturePath,
        GateScore,
        Iteration,
        Projection,
        SearchResult,
        Status,
        TaskGroup,
        TaskGroups,
        TaskSelection,
    )

__version__ = "0.1.0.dev0"

# Public name -> the module that defines it; for a public module, the package it is in.
_HOMES = {
    "FeatureClusterRegressor": "clustruct.estimators.features.models",
    "FeatureClusterClassifier": "clustruct.estimators.features.models",
    "FeatureClusterRegressorCV": "clustruct.estimators.features.search_models",
    "FeatureClusterClassifierCV": "clustruct.estimators.features.search_models",
    "feature_cluster_path": "clustruct.estimators.features.path",
    "column_blocks": "clustruct.estimators.features.blocks",
    "SampleClusterRegressor": "clustruct.estimators.samples.models",
    "SampleClusterClassifier": "clustruct.estimators.samples.models",
    "SampleClusterRegressorCV": "clustruct.estimators.samples.search_models",
    "SampleClusterClassifierCV": "clustruct.estimators.samples.search_models",
    "TaskClusterRegressor": "clustruct.estimators.tasks.models",
    "TaskClusterClassifier": "clustruct.estimators.tasks.models",
    "TaskClusterRegressorCV": "clustruct.estimators.tasks.search_models",
    "TaskClusterClassifierCV": "clustruct.estimators.tasks.search_models",
    "task_scorer": "clustruct.estimators.tasks.scoring",
    "kmeans_1d": "clustruct.grouping.projections",
    "project_clustered": "clustruct.grouping.projections",
    "Clustering1D": "clustruct.results",
    "Projection": "clustruct.results",
    "FeatureGroup": "clustruct.results",
    "FeatureGroups": "clustruct.results",
    "FeaturePath": "clustruct.results",
    "SearchResult": "clustruct.results",
    "GateScore": "clustruct.results",
    "CountSelection": "clustruct.results",
    "ExpertGroup": "clustruct.results",
    "ExpertGroups": "clustruct.results",
    "Certificate": "clustruct.results",
    "Iteration": "clustruct.results",
    "Status": "clustruct.results",
    "TaskGroup": "clustruct.results",
    "TaskGroups": "clustruct.results",
    "TaskSelection": "clustruct.results",
    "save": "clustruct.persistence.model_files",
    "load": "clustruct.persistence.model_files",
    "datasets": "clustruct",
    "plot": "clustruct",
    "report": "clustruct.reporting.build",
}

__all__ = [
    "FeatureClusterRegressor",
    "FeatureClusterClassifier",
    "FeatureClusterRegressorCV",
    "FeatureClusterClassifierCV",
    "feature_cluster_path",
    "column_blocks",
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
    "project_clustered",
    "Clustering1D",
    "Projection",
    "FeatureGroup",
    "FeatureGroups",
    "FeaturePath",
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
