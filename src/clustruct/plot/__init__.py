"""Pictures of fitted models, by matplotlib.

Each function takes a fitted model and axes, draws, and returns a display object with ``ax_`` and
``figure_``, as those of scikit-learn do. Without axes a new figure of pyplot is made; nothing else
of matplotlib's global state is touched.
"""

from clustruct.plot._clusters import ClustersDisplay, clusters
from clustruct.plot._convergence import ConvergenceDisplay, convergence
from clustruct.plot._experts import ExpertsDisplay, experts
from clustruct.plot._path import PathDisplay, path
from clustruct.plot._tasks import TasksDisplay, tasks
from clustruct.plot._weights import WeightsDisplay, weights

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
