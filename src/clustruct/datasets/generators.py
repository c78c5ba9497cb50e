"""Random problems with a known solution.

The truth is drawn before the samples, so that problems of different size share it if their
`random_state` is the same.
"""

import math

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.random import sample_without_replacement

from clustruct._arguments import as_count, as_flag, as_number, as_numbers
from clustruct._docs import documented
from clustruct._typing import Floats, Labels
from clustruct.datasets.planted import ClusteredFeatures, ClusteredTasks, Experts

_generator = documented(
    [
        """
noise : float
    Standard deviation of the normal noise. In classification, the scale of the logistic noise on
    the scores (Gumbel noise with several outputs).
classification : bool
    Whether the targets are classes: with one output, 1 where the noisy score is positive and 0
    elsewhere; with several, the number of the largest score.
random_state : int, RandomState instance or None
    Seed, for the same problem at every call.
n_samples : int
    Number of samples.
n_features : int
    Number of features.
n_outputs : int
    Number of targets of a sample.
"""
    ]
)


@_generator
def make_clustered_features(
    n_samples: int = 100,
    n_features: int = 100,
    n_clusters: int = 5,
    *,
    n_outputs: int = 1,
    n_nonzero: int | None = None,
    noise: float = 0.5,
    low: float = -15.0,
    high: float = 15.0,
    correlation: float = 0.0,
    density: float = 1.0,
    intercept: ArrayLike = 0.0,
    classification: bool = False,
    random_state: int | RandomState | None = None,
) -> ClusteredFeatures:
    """Draw a linear model whose features share few weights, and samples of it.

    The groups' weights are uniform between `low` and `high`, each feature falls into a group at
    random, the design is normal, and the targets are ``X @ coef + intercept`` plus noise. The
    defaults are the problem of section 6.1.2 of the paper, at 100 samples.

    Parameters
    ----------
    n_clusters : int, default=5
        Number of groups of features with nonzero weight. None of them is empty.
    n_outputs : int, default=1
        Number of targets of a sample. With several, the features of a group share a row of
        weights.
    n_nonzero : int, default=None
        Number of features with nonzero weight; None for all.
    low, high : float, default=-15, 15
        Limits of the weights.
    correlation : float, default=0
        Correlation of neighbouring columns of the design, in (-1, 1). That of columns ``i`` and
        ``j`` is ``correlation ** abs(i - j)``.
    density : float, default=1
        Below 1, the design is a sparse matrix whose entries are 1 with this probability.
    intercept : float or array-like of shape (n_outputs,), default=0
        Intercept, added to ``X @ coef``.

    Returns
    -------
    ClusteredFeatures
        Design and targets, with the true weights and groups.

    Notes
    -----
    In classification, ``noise=1`` makes logistic regression the true model, with `coef` and
    `intercept` as its parameters; ``noise=0`` makes the classes separable. With the default range
    of weights they nearly are: ``low=-1, high=1, noise=1`` gives a harder problem.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_features(50, 8, 2, noise=0.0, random_state=0)
    >>> problem.labels.tolist()
    [1, 0, 0, 1, 0, 0, 0, 0]
    >>> bool(abs(problem.X @ problem.coef - problem.y).max() < 1e-12)
    True
    """
    n_samples = as_count(n_samples, "n_samples")
    n_features = as_count(n_features, "n_features")
    n_outputs = as_count(n_outputs, "n_outputs")
    n_weighted = n_features if n_nonzero is None else as_count(n_nonzero, "n_nonzero")
    if n_weighted > n_features:
        raise ValueError(
            f"n_nonzero={n_weighted} is more than n_features={n_features}. "
            "Give a smaller number, or None for all features."
        )
    among = "n_features" if n_nonzero is None else "n_nonzero"
    n_clusters = _as_clusters(n_clusters, n_weighted, among)
    low, high = as_number(low, "low"), as_number(high, "high")
    if low >= high:
        raise ValueError(f"low={low} must be less than high={high}. Give a range of weights.")
    correlation = as_number(correlation, "correlation", "between -1 and 1", lambda v: abs(v) < 1)
    density = as_number(density, "density", "above 0 and at most 1", lambda v: 0 < v <= 1)
    if density < 1 and correlation != 0:
        raise ValueError(
            f"correlation={correlation} needs a dense design, and density={density} asks for a "
            "sparse one. Leave one of them at its default."
        )
    noise = _as_noise(noise)
    classification = as_flag(classification, "classification")
    outputs = () if n_outputs == 1 else (n_outputs,)
    shift = as_numbers(intercept, "intercept", outputs)
    rng = check_random_state(random_state)

    labels = np.full(n_features, -1, dtype=np.intp)  # that of features with zero weight
    weighted = np.sort(rng.permutation(n_features)[:n_weighted])
    labels[weighted] = _draw_labels(n_weighted, n_clusters, rng)
    centers = rng.uniform(low, high, size=(n_clusters, *outputs))
    centers = centers[np.argsort(centers.reshape(n_clusters, -1)[:, 0])]  # by the first output
    coef = np.zeros((n_features, *outputs))
    coef[weighted] = centers[labels[weighted]]
    if density < 1:
        design = _draw_zeros_and_ones(n_samples, n_features, density, rng)
    else:
        design = _draw_correlated(n_samples, n_features, correlation, rng)
    targets = _draw_targets(design @ coef + shift, noise, classification, rng)
    added = shift if outputs else float(shift)
    return ClusteredFeatures(design, targets, coef, added, labels, centers, noise)


@_generator
def make_experts(
    n_samples: int = 1000,
    n_informative: int = 10,
    n_clusters: int = 3,
    *,
    noise_share: float = 0.0,
    n_outputs: int = 1,
    noise: float = 0.1,
    feature_noise: float = 1.0,
    separation: float = 0.0,
    intercepts: ArrayLike = 0.0,
    classification: bool = False,
    random_state: int | RandomState | None = None,
) -> Experts:
    """Draw several linear models, the experts, and samples that each follow one of them.

    Weights and features are standard normal, each sample gets an expert at random, and its target
    is the expert's prediction plus noise. As in section 6.1.1 of the paper, features of pure noise
    can be added.

    Parameters
    ----------
    n_informative : int, default=10
        Number of informative features.
    n_clusters : int, default=3
        Number of experts. Each of them has at least one sample.
    noise_share : float, default=0
        Share of all features that are pure noise, in [0, 1), rounded to whole features.
    feature_noise : float, default=1
        Standard deviation of the features of pure noise.
    separation : float, default=0
        Distance by which the samples of an expert are moved from the origin, in a random direction
        of the informative features. At 0 the features carry no information about the expert; at 3
        or more a gate can learn it.
    intercepts : float or array-like of shape (n_clusters,) or (n_clusters, n_outputs), default=0
        Intercepts of the experts.

    Returns
    -------
    Experts
        Design and targets, with the true experts and the expert of each sample.

    Notes
    -----
    The paper names 8 informative features in its text and 10 at its Table 1. With 10, least squares
    on the true groups of 1000 samples has the errors that the table gives.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_experts(200, noise_share=0.75, noise=0.0, random_state=0)
    >>> problem.X.shape
    (200, 40)
    >>> predictions = problem.X @ problem.experts.T
    >>> bool(abs(predictions[range(200), problem.labels] - problem.y).max() < 1e-12)
    True
    """
    n_samples = as_count(n_samples, "n_samples")
    n_informative = as_count(n_informative, "n_informative")
    n_outputs = as_count(n_outputs, "n_outputs")
    n_clusters = _as_clusters(n_clusters, n_samples, "n_samples")
    share = as_number(noise_share, "noise_share", "at least 0 and below 1", lambda v: 0 <= v < 1)
    noise = _as_noise(noise)
    feature_noise = _as_noise(feature_noise, "feature_noise")
    separation = _as_noise(separation, "separation")
    classification = as_flag(classification, "classification")
    outputs = () if n_outputs == 1 else (n_outputs,)
    shifts = as_numbers(intercepts, "intercepts", (n_clusters, *outputs))
    rng = check_random_state(random_state)

    n_features = n_informative + round(n_informative * share / (1 - share))
    informative = np.arange(n_features) < n_informative
    experts = np.zeros((n_clusters, n_features, *outputs))
    experts[:, informative] = rng.standard_normal((n_clusters, n_informative, *outputs))
    places = rng.standard_normal((n_clusters, n_informative))
    places *= separation / np.linalg.norm(places, axis=1, keepdims=True)
    labels = _draw_labels(n_samples, n_clusters, rng)
    design = rng.standard_normal((n_samples, n_features))
    design[:, informative] += places[labels]
    design[:, ~informative] *= feature_noise
    scores = np.empty((n_samples, *outputs))
    for label, (weights, shift) in enumerate(zip(experts, shifts, strict=True)):
        mine = labels == label
        scores[mine] = design[mine] @ weights + shift
    targets = _draw_targets(scores, noise, classification, rng)
    return Experts(design, targets, experts, shifts, labels, informative, noise)


@_generator
def make_clustered_tasks(
    n_samples: int = 20,
    n_features: int = 10,
    n_tasks: int = 30,
    n_clusters: int = 3,
    *,
    between: float = 1.0,
    within: float = 0.1,
    noise: float = 0.5,
    shared: bool = True,
    missing: float = 0.0,
    intercept: ArrayLike = 0.0,
    classification: bool = False,
    random_state: int | RandomState | None = None,
) -> ClusteredTasks:
    """Draw many linear models whose weight vectors fall into groups, and few samples of each.

    Centroids are normal with standard deviation `between`. The weights of a task are the centroid
    of its group plus normal noise with standard deviation `within`. Features are standard normal.

    Parameters
    ----------
    n_samples : int, default=20
        Number of samples of each task.
    n_tasks : int, default=30
        Number of tasks.
    n_clusters : int, default=3
        Number of groups of tasks. None of them is empty.
    between : float, default=1
        Standard deviation of the centroids.
    within : float, default=0.1
        Standard deviation of the weights around their centroid.
    shared : bool, default=True
        Whether all tasks have the same samples. If not, each has its own.
    missing : float, default=0
        Probability that a target is missing, in [0, 1). Each task keeps at least one.
    intercept : float or array-like of shape (n_tasks,), default=0
        Intercepts of the tasks.

    Returns
    -------
    ClusteredTasks
        Design and targets, with the weights, centroids and groups of the tasks. Its methods
        ``columns()`` and ``rows()`` return the two layouts of the same targets.

    Notes
    -----
    The model is that of Jacob, Bach and Vert ("Clustered multi-task learning", 2008), whose
    experiment has ``between=30``, ``within=4``, ``noise=150**0.5``, and centres that do not share
    features.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_tasks(n_samples=4, n_tasks=6, random_state=0)
    >>> X, Y = problem.columns()
    >>> X.shape, Y.shape
    ((4, 10), (4, 6))
    """
    n_samples = as_count(n_samples, "n_samples")
    n_features = as_count(n_features, "n_features")
    n_tasks = as_count(n_tasks, "n_tasks")
    n_clusters = _as_clusters(n_clusters, n_tasks, "n_tasks")
    between = _as_noise(between, "between")
    within = _as_noise(within, "within")
    noise = _as_noise(noise)
    shared = as_flag(shared, "shared")
    missing = as_number(missing, "missing", "at least 0 and below 1", lambda v: 0 <= v < 1)
    classification = as_flag(classification, "classification")
    shifts = as_numbers(intercept, "intercept", (n_tasks,))
    rng = check_random_state(random_state)

    labels = _draw_labels(n_tasks, n_clusters, rng)
    centers = between * rng.standard_normal((n_clusters, n_features))
    coef = centers[labels] + within * rng.standard_normal((n_tasks, n_features))
    tasks = np.repeat(np.arange(n_tasks), n_samples)
    samples = np.tile(np.arange(n_samples), n_tasks) if shared else np.arange(tasks.size)
    design = rng.standard_normal((samples.max() + 1, n_features))
    kept = rng.random_sample(tasks.size) >= missing
    (bare,) = np.nonzero(np.bincount(tasks, weights=kept) == 0)
    kept[np.searchsorted(tasks, bare)] = True  # the first target of each task without one
    samples, tasks = samples[kept], tasks[kept]
    scores = np.einsum("ij,ij->i", design[samples], coef[tasks]) + shifts[tasks]
    targets = _draw_targets(scores, noise, classification, rng)
    return ClusteredTasks(design, targets, samples, tasks, coef, shifts, labels, centers, noise)


def _as_clusters(value: object, n_items: int, items: str) -> int:
    """A number of groups of at most ``n_items``; ``items`` is the name of that argument."""
    n_clusters = as_count(value, "n_clusters")
    if n_clusters > n_items:
        raise ValueError(
            f"n_clusters={n_clusters} is more than {items}={n_items}, so that some groups would be "
            f"empty. Give fewer clusters or a larger {items}."
        )
    return n_clusters


def _as_noise(value: object, name: str = "noise") -> float:
    """A standard deviation or a distance."""
    return as_number(value, name, "at least 0", lambda v: v >= 0)


def _draw_labels(n_items: int, n_clusters: int, rng: RandomState) -> Labels:
    """A uniform label for each item; where that leaves a group empty, one item goes to each."""
    labels = rng.randint(n_clusters, size=n_items).astype(np.intp)
    if np.unique(labels).size < n_clusters:
        labels[rng.permutation(n_items)[:n_clusters]] = np.arange(n_clusters)
    return labels


def _draw_correlated(
    n_samples: int, n_features: int, correlation: float, rng: RandomState
) -> Floats:
    """Standard normal columns, each correlated with the one before."""
    design = rng.standard_normal((n_samples, n_features))
    if correlation != 0:
        own = math.sqrt(1 - correlation**2)
        for column in range(1, n_features):
            design[:, column] *= own
            design[:, column] += correlation * design[:, column - 1]
    return design


def _draw_zeros_and_ones(
    n_samples: int, n_features: int, density: float, rng: RandomState
) -> sparse.csr_array:
    """Ones at random places, in time and memory proportional to their number."""
    n_ones = rng.binomial(n_samples * n_features, density)
    cells = sample_without_replacement(n_samples * n_features, n_ones, random_state=rng)
    rows, columns = np.divmod(np.sort(cells), n_features)
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n_samples))])
    # Much of scikit-learn wants 32-bit indices, and SciPy keeps the type it is given.
    index = np.int32 if max(n_ones, n_features) <= np.iinfo(np.int32).max else np.int64
    parts = (np.ones(n_ones), columns.astype(index), starts.astype(index))
    return sparse.csr_array(parts, shape=(n_samples, n_features))


def _draw_targets(
    scores: Floats, noise: float, classification: bool, rng: RandomState
) -> Floats | Labels:
    """Noisy scores, or the classes they imply."""
    if not classification:
        return np.asarray(scores + noise * rng.standard_normal(scores.shape))
    if scores.ndim == 1:
        return (scores + noise * rng.logistic(size=scores.shape) > 0).astype(np.intp)
    return np.asarray(np.argmax(scores + noise * rng.gumbel(size=scores.shape), axis=1))
