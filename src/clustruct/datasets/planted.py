"""What the generators return: the data, and the truth that was planted in it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from clustruct._typing import Floats, Labels

__all__ = ["ClusteredFeatures", "ClusteredTasks", "Experts"]


@dataclass(frozen=True, eq=False)
class ClusteredFeatures:
    """A linear model whose features share their weights in groups, and samples of it.

    Attributes
    ----------
    X : ndarray or csr_array of float, shape (n_samples, n_features)
        The design.
    y : ndarray, shape (n_samples,) or (n_samples, n_outputs)
        The answers; integers from 0, one a sample, where they are classes.
    coef : ndarray of float, shape (n_features,) or (n_features, n_outputs)
        The weights, a row for each feature: ``centers[labels]``, and zero where the label is -1.
    intercept : float or ndarray of float, shape (n_outputs,)
        What is added to ``X @ coef``.
    labels : ndarray of int, shape (n_features,)
        Group of each feature, -1 for the zero group.
    centers : ndarray of float, shape (n_clusters,) or (n_clusters, n_outputs)
        Weight of each group, ascending (in the first output).
    noise : float
        Standard deviation of the noise; its scale where `y` holds classes.

    See Also
    --------
    make_clustered_features : The function that returns it.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_features(20, 6, 2, random_state=0)
    >>> bool((problem.coef == problem.centers[problem.labels]).all())
    True
    """

    X: Floats | sparse.csr_array
    y: Floats | Labels
    coef: Floats
    intercept: float | Floats
    labels: Labels
    centers: Floats
    noise: float


@dataclass(frozen=True, eq=False)
class Experts:
    """Linear models each of which answers for a part of the samples.

    Attributes
    ----------
    X : ndarray of float, shape (n_samples, n_features)
        The design: first the features that matter, then those that do not.
    y : ndarray, shape (n_samples,) or (n_samples, n_outputs)
        The answer of each sample's expert; integers from 0 where they are classes.
    experts : ndarray of float, shape (n_clusters, n_features) or with a last axis of n_outputs
        Weights of each expert, zero for the features that do not matter.
    intercepts : ndarray of float, shape (n_clusters,) or (n_clusters, n_outputs)
        What each expert adds.
    labels : ndarray of int, shape (n_samples,)
        Expert of each sample.
    informative : ndarray of bool, shape (n_features,)
        Which features matter.
    noise : float
        Standard deviation of the noise; its scale where `y` holds classes.

    See Also
    --------
    make_experts : The function that returns it.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_experts(100, noise_share=0.5, random_state=0)
    >>> problem.experts.shape, int(problem.informative.sum())
    ((3, 20), 10)
    """

    X: Floats
    y: Floats | Labels
    experts: Floats
    intercepts: Floats
    labels: Labels
    informative: NDArray[np.bool_]
    noise: float


@dataclass(frozen=True, eq=False)
class ClusteredTasks:
    """Many linear models whose weight vectors fall into groups, and samples of them.

    Each answer is that of one task to one row of `X`. The methods give the same answers in the two
    layouts that models of many tasks are fitted to.

    Attributes
    ----------
    X : ndarray of float, shape (n_rows, n_features)
        The design.
    y : ndarray, shape (n_answers,)
        The answers; the integers 0 and 1 where they are classes.
    samples : ndarray of int, shape (n_answers,)
        Row of `X` that each answer belongs to.
    tasks : ndarray of int, shape (n_answers,)
        Task that each answer belongs to.
    coef : ndarray of float, shape (n_tasks, n_features)
        Weights of each task.
    intercept : ndarray of float, shape (n_tasks,)
        What each task adds.
    labels : ndarray of int, shape (n_tasks,)
        Group of each task.
    centers : ndarray of float, shape (n_clusters, n_features)
        What the weights of a group scatter around.
    noise : float
        Standard deviation of the noise; its scale where `y` holds classes.

    See Also
    --------
    make_clustered_tasks : The function that returns it.

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

    X: Floats
    y: Floats | Labels
    samples: Labels
    tasks: Labels
    coef: Floats
    intercept: Floats
    labels: Labels
    centers: Floats
    noise: float

    def columns(self) -> tuple[Floats, Floats]:
        """The design, and a column of answers for each task, NaN where there is none."""
        answers = np.full((self.X.shape[0], self.coef.shape[0]), np.nan)
        answers[self.samples, self.tasks] = self.y
        return self.X, answers

    def rows(self) -> tuple[Floats, Floats | Labels, Labels]:
        """A row of the design, an answer and a task's number for each answer."""
        return self.X[self.samples], self.y, self.tasks
