"""Linear models whose features, samples or tasks share weights in groups.

The public names are listed in one table below and loaded when first used, so that
``import clustruct`` itself costs next to nothing.
"""

from importlib import import_module

TYPE_CHECKING = False  # type checkers take it for True; importing it would triple the cost
if TYPE_CHECKING:
    from clustruct import datasets, plot
    from clustruct.estimators.blocks import column_blocks
    from clustruct.estimators.features import FeatureClusterClassifier, FeatureClusterRegressor
    from clustruct.estimators.path import feature_cluster_path
    from clustruct.estimators.samples import SampleClusterClassifier, SampleClusterRegressor
    from clustruct.estimators.search import (
        FeatureClusterClassifierCV,
        FeatureClusterRegressorCV,
    )
    from clustruct.estimators.search_samples import (
        SampleClusterClassifierCV,
        SampleClusterRegressorCV,
    )
    from clustruct.estimators.search_tasks import (
        TaskClusterClassifierCV,
        TaskClusterRegressorCV,
    )
    from clustruct.estimators.task_scoring import task_scorer
    from clustruct.estimators.tasks import TaskClusterClassifier, TaskClusterRegressor
    from clustruct.persistence.model_files import load, save
    from clustruct.projections import kmeans_1d, project_clustered
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
    "FeatureClusterRegressor": "clustruct.estimators.features",
    "FeatureClusterClassifier": "clustruct.estimators.features",
    "FeatureClusterRegressorCV": "clustruct.estimators.search",
    "FeatureClusterClassifierCV": "clustruct.estimators.search",
    "feature_cluster_path": "clustruct.estimators.path",
    "column_blocks": "clustruct.estimators.blocks",
    "SampleClusterRegressor": "clustruct.estimators.samples",
    "SampleClusterClassifier": "clustruct.estimators.samples",
    "SampleClusterRegressorCV": "clustruct.estimators.search_samples",
    "SampleClusterClassifierCV": "clustruct.estimators.search_samples",
    "TaskClusterRegressor": "clustruct.estimators.tasks",
    "TaskClusterClassifier": "clustruct.estimators.tasks",
    "TaskClusterRegressorCV": "clustruct.estimators.search_tasks",
    "TaskClusterClassifierCV": "clustruct.estimators.search_tasks",
    "task_scorer": "clustruct.estimators.task_scoring",
    "kmeans_1d": "clustruct.projections",
    "project_clustered": "clustruct.projections",
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
