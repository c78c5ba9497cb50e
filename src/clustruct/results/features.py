"""Groups of features, and results of fits on a grid."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from clustruct._docs import documented_fields
from clustruct._typing import Floats, Labels
from clustruct.results.scores import Price, ScoreTable, total
from clustruct.results.solving import relative_gaps
from clustruct.results.tables import (
    ClassTable,
    classes_note,
    largest,
    plural,
    scores_table,
    shown_weight,
    some_of,
    table_of,
)

MOST_CLASSES = 6  # with a column of weights each
MOST_LARGEST = 3  # weights shown if there are more classes


@documented_fields
@dataclass(frozen=True, eq=False)
class FeatureGroup:
    """A group of features.

    See Also
    --------
    FeatureClusterRegressor : Its method ``clusters`` returns a list of them.

    Examples
    --------
    >>> import clustruct as cs
    >>> cs.FeatureGroup(0, -1.5, 2, ("bad", "awful")).size
    2
    """

    label: Annotated[int, "Number of the group, -1 for features with zero weight."]
    weight: Annotated[float | Floats, "The weight of its features; one for each output."]
    size: Annotated[int, "Number of features."]
    features: Annotated[tuple[str, ...], "Names of the features."]

    def _repr_html_(self) -> str:
        return FeatureGroups([self])._repr_html_()


class FeatureGroups(ClassTable[FeatureGroup]):
    """The table of groups: a list of `FeatureGroup` that is shown as a table.

    Parameters
    ----------
    iterable : iterable of FeatureGroup, default=()
        The groups.
    classes : iterable of str, default=()
        Names of the classes: two for one output, otherwise one for each output.

    See Also
    --------
    FeatureClusterRegressor : Its method ``clusters`` returns one.

    Examples
    --------
    >>> import clustruct as cs
    >>> groups = [
    ...     cs.FeatureGroup(0, -1.5, 2, ("bad", "awful")),
    ...     cs.FeatureGroup(1, 2.0, 1, ("good",)),
    ... ]
    >>> print(cs.FeatureGroups(groups, classes=("pan", "praise")))
    3 features in 2 groups; positive weights speak for praise, negative ones for pan
    <BLANKLINE>
    group  weight  size  features
    -------------------------------
        0    -1.5     2  bad, awful
        1       2     1  good
    """

    def _table(self) -> tuple[str, Sequence[str], list[Sequence[object]]]:
        n_outputs = max((np.size(group.weight) for group in self), default=1)
        by_class = n_outputs > 1 and len(self.classes) == n_outputs
        apart = by_class and n_outputs <= MOST_CLASSES
        weights = self.classes if apart else ("largest weights" if by_class else "weight",)

        def shown(group: FeatureGroup) -> Sequence[object]:
            if apart:
                return [float(value) for value in np.atleast_1d(group.weight)]
            if by_class:
                return [largest(np.atleast_1d(group.weight), self.classes, MOST_LARGEST)]
            return [shown_weight(group.weight)]

        rows: list[Sequence[object]] = [
            (
                group.label if group.label >= 0 else "zero",
                *shown(group),
                group.size,
                some_of(group.features),
            )
            for group in self
        ]
        size = plural(sum(group.size for group in self), "feature")
        title = f"{size} in {plural(len(self), 'group')}{classes_note(self.classes, n_outputs)}"
        return title, ("group", *weights, "size", "features"), rows


@documented_fields
@dataclass(frozen=True, eq=False)
class FeaturePath:
    """Fits for every number of groups, alpha and number of nonzero weights.

    The first three axes of every array are ``n_clusters``, ``alphas`` and ``n_nonzero``, in the
    given order.

    See Also
    --------
    feature_cluster_path : The function that returns it.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_features(100, 10, 3, random_state=0)
    >>> path = cs.feature_cluster_path(
    ...     problem.X, problem.y, n_clusters=(1, 2, 3), alphas=(1e-1, 1e-3)
    ... )
    >>> path.coefs.shape, path.objectives.shape
    ((3, 2, 1, 10), (3, 2, 1))
    """

    n_clusters: Annotated[tuple[Any, ...], "Largest numbers of groups."]
    alphas: Annotated[Floats, "Strengths of the ridge."]
    n_nonzero: Annotated[
        tuple[int | None, ...], "Largest numbers of nonzero weights, None for no limit."
    ]
    coefs: Annotated[Floats, "Weights, of shape (n_Q, n_alphas, n_k, [n_outputs,] n_features)."]
    intercepts: Annotated[Floats, "Intercepts, of shape (n_Q, n_alphas, n_k[, n_outputs])."]
    labels: Annotated[
        Labels, "Group of each feature in the order of the values; -1 for zero by ``n_nonzero``."
    ]
    objectives: Annotated[Floats, "Objectives, of shape (n_Q, n_alphas, n_k)."]
    lower_bounds: Annotated[Floats, "Lower bounds on the objective under the constraint."]
    converged: Annotated[NDArray[np.bool_], "Whether the solver converged."]
    factors: Annotated[tuple[str, ...], "Names of the factors, of data frames with any."] = ()
    blocks: Annotated[
        Labels | None, "Number of the factor that groups each weight, -1 for none; None as above."
    ] = None

    def factor_order(self, alpha: int = 0) -> list[tuple[str, Any]]:
        """In which order factors come in as the price falls, or as the number of groups grows.

        Parameters
        ----------
        alpha : int, default=0
            Index into `alphas`.

        Returns
        -------
        list of (str, object)
            Each factor with the largest price, or the least number of groups, at which it has more
            than one group. Factors that never have are left out.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> import clustruct as cs
        >>> rng = np.random.default_rng(0)
        >>> names = ("town", "make", "colour")
        >>> X = pd.DataFrame({name: rng.choice(list("abcd"), 400) for name in names})
        >>> y = 2.0 * (X["make"] > "b") + 0.5 * (X["town"] > "b") + 0.1 * rng.standard_normal(400)
        >>> path = cs.feature_cluster_path(X, y, prices=(0.1, 0.01, 0.001))
        >>> path.factor_order()
        [('make', 0.1), ('town', 0.01)]
        """
        if self.blocks is None:
            raise ValueError(
                "This path has no factors. Give feature_cluster_path a data frame with columns of "
                "categories, or name columns in categorical_features or factors."
            )
        fits = zip(self.n_clusters, self.labels[:, alpha, 0], strict=True)
        return order_of_entry(self.factors, self.blocks, fits)

    @property
    def relative_gaps(self) -> Floats:
        """The relative gap of each fit; see `Certificate`."""
        return relative_gaps(self.objectives, self.lower_bounds)

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary for each fit.

        Returns
        -------
        list of dict
            ``pandas.DataFrame(path.rows())`` makes a data frame of it.
        """
        gaps = self.relative_gaps
        return [
            {
                **_point(self, place),
                "objective": float(self.objectives[place]),
                "lower_bound": float(self.lower_bounds[place]),
                "relative_gap": float(gaps[place]),
                "n_clusters_in_use": int(self.labels[place].max()) + 1,
                "converged": bool(self.converged[place]),
            }
            for place in np.ndindex(self.objectives.shape)
        ]

    def _repr_html_(self) -> str:
        n_fits, n_features = self.objectives.size, self.labels.shape[-1]
        return table_of(f"{n_fits} fits with {n_features} features", self.rows())


@documented_fields
@dataclass(frozen=True, eq=False)
class SearchResult(ScoreTable):
    """Scores of a search for the number of groups, alpha and the number of nonzero weights.

    It is also a dictionary with the columns of scikit-learn's ``cv_results_``, one entry for each
    point of the grid: ``param_n_clusters``, ``param_alpha``, ``param_n_nonzero``, ``param_relax``,
    ``params``, ``split0_test_score`` and so on, ``mean_test_score``, ``std_test_score`` and
    ``rank_test_score``. ``pandas.DataFrame(result)`` makes a data frame of it.

    See Also
    --------
    FeatureClusterRegressorCV : Has one of them as ``cv_results_``.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_features(100, 10, 3, random_state=0)
    >>> model = cs.FeatureClusterRegressorCV((2, 3, 4), alphas=(1e-1, 1e-3), random_state=0)
    >>> found = model.fit(problem.X, problem.y).cv_results_
    >>> found.fold_scores.shape, found.mean_scores.shape, len(found.rows())
    ((3, 2, 1, 5), (3, 2, 1), 6)
    >>> found["mean_test_score"].shape, found["params"][model.best_index_] == model.best_params_
    ((6,), True)
    """

    axes: ClassVar[tuple[str, ...]] = ("n_clusters", "alphas", "n_nonzero")

    n_clusters: Annotated[tuple[Any, ...], "Largest numbers of groups that were tried."]
    alphas: Annotated[Floats, "Strengths of the ridge that were tried."]
    n_nonzero: Annotated[
        tuple[int | None, ...], "Largest numbers of nonzero weights, None for no limit."
    ]
    relax: Annotated[Floats, "The fraction of alpha that was best for the values of the groups."]
    fold_scores: Annotated[
        Floats, "Scores of shape (n_Q, n_alphas, n_k, n_folds); one column of negative BIC."
    ]
    criterion: Annotated[str, 'The criterion: "cv", "bic" or "ebic".']
    scoring: Annotated[str, "Name of the score."]
    rule: Annotated[str, 'The rule: "best", "fewest" or "one_se".']
    best_index: Annotated[
        tuple[int, int, int], "Indices of the point chosen: groups, alpha, nonzero weights."
    ]
    exact: Annotated[
        NDArray[np.bool_] | None,
        "Whether a point was fitted, of shape (n_Q, n_alphas, n_k), or scored by a model of the "
        "loss because it could not be chosen; None if all were fitted.",
    ] = None

    def points(self) -> list[dict[str, Any]]:  # noqa: D102
        return [
            {**_point(self, place), "relax": float(self.relax[place])}
            for place in np.ndindex(self.relax.shape)
        ]

    def _repr_html_(self) -> str:
        return scores_table(f"{self.scoring} ({self.criterion})", self.rows())


def order_of_entry(
    factors: Sequence[str], blocks: Labels, fits: Iterable[tuple[Any, Labels]]
) -> list[tuple[str, Any]]:
    """Factors in the order in which they get several groups, with the price or number of groups.

    fits: price or number of groups of each fit, and the labels of its weights.
    """
    found: dict[str, Any] = {}
    for count, labels in sorted(fits, key=lambda fit: total(fit[0])):
        for number, name in enumerate(factors):
            if name not in found and np.unique(labels[blocks == number]).size > 1:
                found[name] = count.value if isinstance(count, Price) else count
    return list(found.items())


def _point(grid: FeaturePath | SearchResult, place: tuple[int, ...]) -> dict[str, Any]:
    """The parameters at a place of a grid."""
    q, a, k = place
    count = grid.n_clusters[q]
    return {
        **({"price": count.value} if isinstance(count, Price) else {"n_clusters": count}),
        "alpha": float(grid.alphas[a]),
        "n_nonzero": grid.n_nonzero[k],
    }
