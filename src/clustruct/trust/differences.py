"""Do two groups differ: tests that account for groups found on the same data."""

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import pdist, squareform
from sklearn.utils import check_array, check_random_state

from clustruct._typing import Counts, Floats, Labels
from clustruct.arrays import to_host
from clustruct.design import FactorDesign
from clustruct.estimators.features.resamples import labels_of
from clustruct.estimators.intake import validate, weigh
from clustruct.estimators.search.engine import SearchFace
from clustruct.estimators.tasks import layouts
from clustruct.grouping.projections import kmeans_1d
from clustruct.inspection import feature_names
from clustruct.losses import loss_of
from clustruct.results.differences import GroupDifference, GroupDifferences, holm
from clustruct.results.tables import some_of
from clustruct.trust.parts import SUBSAMPLE, draw_parts
from clustruct.trust.refits import Fitted
from clustruct.trust.selective import selective_p_value
from clustruct.trust.told import TaskRows, told_of_features

METHODS = ("auto", "selective", "split")


class Pair(NamedTuple):
    """A test before p-values of all pairs are adjusted."""

    labels: tuple[int, int]
    names: tuple[str, str]
    difference: float
    std_error: float
    p_value: float


def compare_groups_1d(
    x: ArrayLike,
    n_clusters: int,
    std_error: ArrayLike,
    *,
    pairs: str = "neighbours",
    names: Sequence[str] | None = None,
) -> GroupDifferences:
    """Put numbers in groups by exact k-means, and test whether the groups differ.

    The numbers are estimates with independent normal errors, such as means of levels. k-means
    weights them by their precision. It makes groups of any numbers, also of those whose truth is
    the same, and a plain test then finds them different: here p-values are conditional on the
    groups having been found, and uniform if the truth of two groups is the same.

    Parameters
    ----------
    x : array-like of shape (n,)
        The numbers.
    n_clusters : int
        Number of groups, which is not chosen by these numbers.
    std_error : float or array-like of shape (n,)
        Their standard errors.
    pairs : {"neighbours", "all"}, default="neighbours"
        Which groups are compared.
    names : sequence of str, default=None
        Names of the numbers, for the table.

    Returns
    -------
    GroupDifferences
        One test for each pair, the groups in the order of their values.

    See Also
    --------
    compare_groups : The same for the groups of a model.

    References
    ----------
    Y. T. Chen and D. M. Witten (2023), "Selective inference for k-means clustering", Journal of
    Machine Learning Research 24, for Lloyd's algorithm.

    Examples
    --------
    >>> import clustruct as cs
    >>> for test in cs.compare_groups_1d([0.0, 0.1, 1.0, 1.1, 1.2, 5.0], 3, std_error=0.3):
    ...     print(test.labels, round(test.difference, 2), f"{test.p_value:.2g}")
    (0, 1) -1.05 0.00035
    (1, 2) -3.9 4.9e-29
    """
    values = check_array(x, ensure_2d=False, dtype=np.float64, input_name="x")
    errors = np.broadcast_to(np.asarray(std_error, dtype=np.float64), values.shape)
    if values.ndim != 1:
        raise ValueError(f"x has shape {values.shape}. Give a vector of numbers.")
    if not (np.isfinite(errors).all() and errors.min() > 0.0):
        raise ValueError("std_error must hold positive, finite numbers. Leave the others out.")
    if names is not None and len(names) != values.size:
        raise ValueError(f"names holds {len(names)} names, but x {values.size} numbers.")
    precision = (errors.min() / errors) ** 2

    def rule(z: Floats) -> Labels:
        return kmeans_1d(z, n_clusters, sample_weight=precision).labels

    members = list(map(str, range(values.size))) if names is None else list(map(str, names))
    return _table(_selective(values, errors, rule, members, pairs), "selective")


def compare_groups(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    tasks: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    method: str = "auto",
    pairs: str = "neighbours",
    random_state: int | np.random.RandomState | None = None,
) -> GroupDifferences:
    """Test whether groups of features, levels of a factor or tasks have different weights.

    Groups are made so that their weights differ, and a plain test of that proves nothing. Two ways
    account for it:

    ``"selective"``
        For a model of one factor and nothing else, with squared loss. The means of the levels are
        normal, and p-values are conditional on the model finding the two groups: see
        `compare_groups_1d`. All samples serve for both.
    ``"split"``
        For all models of features and tasks. An unfitted copy of the model, a search included,
        finds groups on one half of the samples (of each task); the other half tells whether their
        values differ, with standard errors that hold if the noise is not the same everywhere. The
        groups are those of the first half. Two groups of tasks are compared along the difference of
        their centroids; what is shown is the difference of their scores (root mean square), which
        is positive if the halves agree. Where the second half has too few samples to tell, the
        p-value is NaN.

    There is no such test for groups of samples: a sample is given to an expert by its own target,
    so that experts differ on any samples. `SampleClusterRegressorCV` tells whether several experts
    predict better than one.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted model of features or tasks, or a pipeline or search that ends in one.
    X : array-like of shape (n_samples, n_features)
        The samples that it was fitted to.
    y : array-like
        Their targets.
    tasks : array-like of shape (n_samples,), default=None
        The task of each sample, as in `fit`.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples, as in `fit`.
    offset : array-like of shape (n_samples,), default=None
        Numbers that are added to the scores, as in `fit`.
    method : {"auto", "selective", "split"}, default="auto"
        ``"auto"`` is ``"selective"`` where that can be had.
    pairs : {"neighbours", "all"}, default="neighbours"
        Which groups are compared, inside of each factor. Neighbours among groups of tasks are those
        that the shortest tree between the centroids joins.
    random_state : int, RandomState instance or None, default=None
        Seed of the halves.

    Returns
    -------
    GroupDifferences
        One test for each pair of groups.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_features(200, 12, 3, random_state=0)
    >>> model = cs.FeatureClusterRegressor(3).fit(problem.X, problem.y)
    >>> tests = cs.compare_groups(model, problem.X, problem.y, random_state=0)
    >>> [test.p_value < 0.01 for test in tests]
    [True, True]
    """
    if method not in METHODS:
        raise ValueError(f"method={method!r} is not known. Choose one of {', '.join(METHODS)}.")
    fitted = Fitted.of(model, X, y, tasks, sample_weight, offset)
    if fitted.kind == "samples":
        raise ValueError(
            f"compare_groups is for groups of features or tasks, and "
            f"{type(fitted.estimator).__name__} groups samples by their own targets, so that its "
            "experts differ on any samples. Use SampleClusterRegressorCV or "
            "SampleClusterClassifierCV with 1 among n_clusters: they tell whether several experts "
            "predict better than one."
        )
    complaint = _not_selective(fitted)
    if method == "selective" and complaint is not None:
        raise ValueError(f"method='selective' {complaint} Choose method='split'.")
    if method == "split" or complaint is not None:
        seed = int(check_random_state(random_state).randint(2**31))
        return _table(_split(fitted, pairs, seed), "split")
    return _table(_selective_levels(fitted, pairs), "selective")


def _table(tests: Iterator[Pair], method: str) -> GroupDifferences:
    """The tests with p-values adjusted for all of them."""
    found = list(tests)
    adjusted = holm(np.array([test.p_value for test in found]))
    return GroupDifferences(
        [GroupDifference(*test, float(p)) for test, p in zip(found, adjusted, strict=True)], method
    )


def _pairs(labels: Sequence[int], which: str) -> Iterator[tuple[int, int]]:
    """The groups to compare, given in the order of their values."""
    if which not in ("neighbours", "all"):
        raise ValueError(f"pairs={which!r} is not known. Choose 'neighbours' or 'all'.")
    return pairwise(labels) if which == "neighbours" else combinations(labels, 2)


# ---- Selective inference


def _selective(
    x: Floats,
    std_error: Floats,
    rule: Callable[[Floats], Labels],
    names: Sequence[str],
    which: str,
) -> Iterator[Pair]:
    """Tests of the groups of numbers that a rule finds."""
    labels = rule(x)
    groups = np.unique(labels)
    means = [np.average(x[labels == q], weights=std_error[labels == q] ** -2) for q in groups]
    for a, b in _pairs(groups[np.argsort(means)].tolist(), which):
        first, second = labels == a, labels == b
        contrast, p = selective_p_value(x, std_error, first, second, rule)
        members = some_of(np.array(names)[first]), some_of(np.array(names)[second])
        yield Pair((a, b), members, contrast.difference, contrast.std_error, p)


def _not_selective(fitted: Fitted) -> str | None:
    """Why selective inference cannot be had for a model; None if it can."""
    model = fitted.estimator
    if fitted.kind == "tasks":
        return "is for models of features."
    if isinstance(model, SearchFace):
        return "needs a number of groups or a price that was not chosen on the same samples."
    factors = model.factors_
    if factors is None or len(factors.factors) != 1 or (factors.blocks < 0).any():
        return "is for models of one factor and no other column."
    if not loss_of(model).quadratic or model._weights.shape[1] > 1 or "offset" in fitted.given:
        return "needs squared loss, one output and no offset."
    return None


def _selective_levels(fitted: Fitted, which: str) -> Iterator[Pair]:
    """Tests of the groups of levels, whose means are all that a fit needs."""
    model = copy(fitted.estimator)
    design, targets = validate(model, fitted.X, fitted.y, reset=False)
    samples = weigh(design, targets, fitted.sample_weight)
    shares, y = samples.shares, np.asarray(samples.targets, dtype=np.float64)
    levels = samples.design
    sums = levels.adjoint(np.column_stack([shares, shares * y, shares**2]))
    means = sums[:, 1] / sums[:, 0]
    away = y - levels.scores(means[:, None])[:, 0]
    # Of errors that are the same for all samples, with as many left as there are means.
    left = 1.0 - float((sums[:, 2] / sums[:, 0]).sum())
    variance = float(shares @ away**2) / left
    errors = np.sqrt(variance * sums[:, 2]) / sums[:, 0]
    one_each = FactorDesign([np.arange(means.size)], [means.size], np.empty((means.size, 0)))

    def rule(z: Floats) -> Labels:
        return labels_of(model, one_each, z, sums[:, 0])

    yield from _selective(means, errors, rule, model.factors_.factors[0].levels, which)


# ---- Sample splitting


def _split(fitted: Fitted, which: str, seed: int) -> Iterator[Pair]:
    """Tests on one half of the samples, of the groups that are found on the other one."""
    by_tasks = fitted.kind == "tasks"
    finding, telling = draw_parts(
        SUBSAMPLE, 2, _task_codes(fitted) if by_tasks else fitted.strata, fitted.kept, seed
    )
    telling = telling * (finding == 0)  # the only sample of a class or task is in both
    found = fitted.fitted_to(finding)
    yield from (_split_tasks if by_tasks else _split_features)(fitted, found, telling, which)


def _split_features(fitted: Fitted, found: Any, telling: Counts, which: str) -> Iterator[Pair]:
    """Tests of groups of features, or of levels."""
    told = told_of_features(found, fitted, telling)
    # A pipeline names its columns; a half of the samples may lack levels of a factor.
    names = feature_names(fitted.model if found.factors_ is None else found)
    blocks = np.zeros(found.labels_.size) if found.factors_ is None else found.factors_.blocks
    for block in np.unique(blocks):
        mine = np.unique(found.labels_[(blocks == block) & (found.labels_ >= 0)])
        if block < 0:
            continue
        for a, b in _pairs(mine.tolist(), which):  # labels are in the order of the values
            members = some_of(names[found.labels_ == a]), some_of(names[found.labels_ == b])
            contrast = np.zeros(len(told.values))
            contrast[[a, b]] = 1.0, -1.0
            yield Pair((a, b), members, *told.test(contrast))


def _split_tasks(fitted: Fitted, found: Any, telling: Counts, which: str) -> Iterator[Pair]:
    """Tests of groups of tasks, along the difference of their centroids."""
    rows, names = TaskRows.of(fitted), found.tasks_.astype(str)
    for a, b in _pairs_of_centroids(found, rows, which):
        members = some_of(names[found.labels_ == a]), some_of(names[found.labels_ == b])
        yield Pair((a, b), members, *rows.told(found, a, b, telling))


def _pairs_of_centroids(found: Any, rows: TaskRows, which: str) -> list[tuple[int, int]]:
    """The groups of tasks to compare: all, or those next to each other in the shortest tree.

    On a line that tree joins neighbours. Distances are those of the scores of the rows.
    """
    pairs = list(_pairs(range(found.n_clusters_), which))
    if which == "all" or len(pairs) < 2:
        return pairs
    scores = rows.design.scores(to_host(found.centroids_).T) + to_host(found.centroid_intercepts_)
    apart = np.maximum(pdist(scores.T), np.finfo(np.float64).tiny)  # no edge has length zero
    tree = np.transpose(minimum_spanning_tree(squareform(apart)).nonzero()).tolist()
    return sorted((min(a, b), max(a, b)) for a, b in tree)


def _task_codes(fitted: Fitted) -> Labels:
    """The number of each sample's task.

    Classes are not halved: with as many of each in both, one half would tell of the other.
    """
    if "tasks" not in fitted.given:
        return np.zeros(fitted.kept.size, dtype=np.intp)
    ids = layouts.as_ids(fitted.given["tasks"], fitted.kept.size)
    return layouts.known_codes(ids, layouts.sorted_names(ids))
