"""Pictures of fitted models, by matplotlib.

Each function takes a fitted model and axes, draws, and returns a display object with ``ax_`` and
``figure_``, as those of scikit-learn do. Without axes a new figure of pyplot is made; nothing else
of matplotlib's global state is touched.
"""

from clustruct.plot._displays import (
    ClustersDisplay,
    ConvergenceDisplay,
    ExpertsDisplay,
    PathDisplay,
    StabilityDisplay,
    TasksDisplay,
    WeightsDisplay,
    clusters,
    convergence,
    experts,
    path,
    stability,
    tasks,
    weights,
)

__all__ = [
    "weights",
    "clusters",
    "path",
    "experts",
    "tasks",
    "convergence",
    "stability",
    "WeightsDisplay",
    "ClustersDisplay",
    "PathDisplay",
    "ExpertsDisplay",
    "TasksDisplay",
    "ConvergenceDisplay",
    "StabilityDisplay",
]
