"""Pictures of fitted models, by matplotlib.

Each function takes a fitted model and axes, draws, and returns a display object with ``ax_`` and
``figure_``, as those of scikit-learn do. Without axes a new figure of pyplot is made; nothing else
of matplotlib's global state is touched.
"""

from clustruct.plot._features import ClustersDisplay, WeightsDisplay, clusters, weights
from clustruct.plot._fits import ConvergenceDisplay, PathDisplay, convergence, path
from clustruct.plot._models import ExpertsDisplay, TasksDisplay, experts, tasks

__all__ = [
    "weights",
    "clusters",
    "path",
    "experts",
    "tasks",
    "convergence",
    "WeightsDisplay",
    "ClustersDisplay",
    "PathDisplay",
    "ExpertsDisplay",
    "TasksDisplay",
    "ConvergenceDisplay",
]
