"""The problems that the generators return: the data, and the truth planted in it."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from clustruct._docs import documented_fields
from clustruct._typing import Floats, Labels

Noise = Annotated[float, "Standard deviation of the noise; its scale if `y` holds classes."]


@documented_fields
@dataclass(frozen=True, eq=False)
class ClusteredFeatures:
    """What `make_clustered_features` draws: a model whose features share weights, and samples.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_features(20, 6, 2, random_state=0)
    >>> bool((problem.coef == problem.centers[problem.labels]).all())
    True
    """

    X: Annotated[Floats | sparse.csr_array, "The design, of shape (n_samples, n_features)."]
    y: Annotated[Floats | Labels, "The targets; classes are integers from 0."]
    coef: Annotated[Floats, "Weights, a row for each feature: ``centers[labels]``, 0 for label -1."]
    intercept: Annotated[float | Floats, "Added to ``X @ coef``."]
    labels: Annotated[Labels, "Group of each feature, -1 for the zero group."]
    centers: Annotated[Floats, "Weight of each group, ascending (in the first output)."]
    noise: Noise


@documented_fields
@dataclass(frozen=True, eq=False)
class Experts:
    """What `make_experts` draws: several linear models, and samples that each follow one.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_experts(100, noise_share=0.5, random_state=0)
    >>> problem.experts.shape, int(problem.informative.sum())
    ((3, 20), 10)
    """

    X: Annotated[Floats, "The design; informative features come before features of pure noise."]
    y: Annotated[Floats | Labels, "The targets; classes are integers from 0."]
    experts: Annotated[Floats, "Weights, of shape (n_clusters, n_features[, n_outputs])."]
    intercepts: Annotated[Floats, "Intercept of each expert."]
    labels: Annotated[Labels, "Expert of each sample."]
    informative: Annotated[NDArray[np.bool_], "Whether each feature matters."]
    noise: Noise


@documented_fields
@dataclass(frozen=True, eq=False)
class ClusteredTasks:
    """What `make_clustered_tasks` draws: linear models whose weights fall into groups.

    Each target belongs to one task and one row of `X`. The methods return the two layouts that
    estimators for tasks accept.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_tasks(5, 3, 4, 2, missing=0.3, random_state=0)
    >>> X, Y = problem.columns()
    >>> X.shape, Y.shape
    ((5, 3), (5, 4))
    >>> X, y, tasks = problem.rows()
    >>> X.shape[0] == y.size == tasks.size < 20
    True
    """

    X: Annotated[Floats, "The design, of shape (n_rows, n_features)."]
    y: Annotated[Floats | Labels, "The targets, of shape (n_targets,); classes are 0 and 1."]
    samples: Annotated[Labels, "Row of `X` of each target."]
    tasks: Annotated[Labels, "Task of each target."]
    coef: Annotated[Floats, "Weights of each task, of shape (n_tasks, n_features)."]
    intercept: Annotated[Floats, "Intercept of each task."]
    labels: Annotated[Labels, "Group of each task."]
    centers: Annotated[Floats, "Centroid of each group, of shape (n_clusters, n_features)."]
    noise: Noise

    def columns(self) -> tuple[Floats, Floats]:
        """The design, and a column of targets for each task, NaN where there is none."""
        targets = np.full((self.X.shape[0], self.coef.shape[0]), np.nan)
        targets[self.samples, self.tasks] = self.y
        return self.X, targets

    def rows(self) -> tuple[Floats, Floats | Labels, Labels]:
        """A row of the design, a target and the number of a task for each target."""
        return self.X[self.samples], self.y, self.tasks
