"""Results of searches and paths: scores in the form of scikit-learn's ``cv_results_``."""

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from clustruct._docs import documented_fields
from clustruct._typing import Floats, Labels
from clustruct.results.paired import standard_errors
from clustruct.results.solving import relative_gaps
from clustruct.results.tables import plural, scores_table, table, table_of


def score_columns(
    points: Sequence[dict[str, Any]], folds: Floats, deviations: Floats | None = None
) -> dict[str, Any]:
    """Parameters and scores of a search as columns, as ``GridSearchCV.cv_results_`` has them.

    Points are the parameters that were tried, all with the same names; scores of the folds, of
    shape (n_points, n_folds), are larger for the better, and NaN for points that were not reached
    before Ctrl-C, which come last. Deviations over the folds are computed unless they are given.
    """
    means = folds.mean(axis=1)
    ranked = np.where(np.isnan(means), np.inf, -means)
    return {
        **{f"param_{name}": _column([point[name] for point in points]) for name in points[0]},
        "params": list(points),
        **{f"split{f}_test_score": folds[:, f].copy() for f in range(folds.shape[1])},
        "mean_test_score": means,
        "std_test_score": folds.std(axis=1) if deviations is None else deviations,
        "rank_test_score": rankdata(ranked, method="min").astype(np.int32),
    }


def _column(values: list[Any]) -> np.ma.MaskedArray[Any, Any]:
    """Values as a masked array with nothing masked, which is what scikit-learn has."""
    numbers = all(isinstance(value, int | float | np.number) for value in values)
    column: Any = np.array(values) if numbers else np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        column[place] = value  # one entry, even if it is a sequence
    return np.ma.array(column, mask=np.zeros(len(values), dtype=bool))


@dataclass(frozen=True)
class Price:
    """A price for each group, in place of a number of groups."""

    value: float

    def __str__(self) -> str:
        return f"price {self.value:.3g}"


def total(count: Any) -> float:
    """A number of groups, in all blocks together; infinity for None, no limit.

    For a price its inverse, which grows with the number of groups as well.
    """
    if isinstance(count, Price):
        return 1.0 / count.value
    if isinstance(count, Mapping):
        return float(sum(count.values()))
    return np.inf if count is None else float(count)


class ScoreTable(dict[str, Any]):
    """Scores of a search: attributes of its own, and the columns of scikit-learn's ``cv_results_``.

    It is a dictionary, and not only a mapping, because ``pandas.DataFrame`` takes no other.
    """

    axes: ClassVar[tuple[str, ...]]  # attributes that the axes of the scores but the last stand for
    fold_scores: Floats
    scoring: str
    best_index: tuple[int, ...]

    def __post_init__(self) -> None:
        self.fill()

    @abstractmethod
    def points(self) -> list[dict[str, Any]]:
        """The column ``params``: every point of the grid, in the order of its last axis first."""

    def fill(self) -> None:
        """Derive the columns from the attributes."""
        self.update(score_columns(self.points(), self.point_scores))

    @property
    def point_scores(self) -> Floats:
        """Scores of shape (n_points, n_folds), in the order of `points`."""
        return self.fold_scores.reshape(-1, self.fold_scores.shape[-1])

    @property
    def flat_index(self) -> int:
        """Index of the point chosen into each column."""
        return int(np.ravel_multi_index(self.best_index, self.fold_scores.shape[:-1]))

    @property
    def mean_scores(self) -> Floats:
        """Mean over the folds."""
        return np.asarray(self.fold_scores.mean(axis=-1))

    @property
    def std_scores(self) -> Floats:
        """Standard deviation over the folds."""
        return np.asarray(self.fold_scores.std(axis=-1))

    @property
    def standard_errors(self) -> Floats:
        """Standard error of the mean, zero where there is one fold only."""
        return standard_errors(self.fold_scores)

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary for each point of the grid.

        Returns
        -------
        list of dict
            ``pandas.DataFrame(result.rows())`` makes a data frame of it.
        """
        means, deviations, errors = self.mean_scores, self.std_scores, self.standard_errors
        return [
            {
                **point,
                "mean_score": float(means[place]),
                "std_score": float(deviations[place]),
                "standard_error": float(errors[place]),
                **{f"fold{f}_score": float(s) for f, s in enumerate(self.fold_scores[place])},
                "chosen": place == self.best_index,
            }
            for place, point in zip(np.ndindex(means.shape), self.points(), strict=True)
        ]

    def _repr_html_(self) -> str:
        return scores_table(self.scoring, self.rows())

    # Columns are arrays, whose equality is no truth value: tables are equal to themselves only.

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    __hash__ = object.__hash__  # type: ignore[assignment]


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


@documented_fields
@dataclass(frozen=True, eq=False)
class TaskSelection(ScoreTable):
    """Scores of a `TaskClusterRegressorCV`, for numbers of groups and strengths of the penalty.

    It is also a dictionary with the columns of scikit-learn's ``cv_results_``, one entry for each
    point of the grid: ``param_n_clusters``, ``param_alpha``, ``param_alpha_within`` and so on,
    ``params``, ``split0_test_score`` and so on, ``mean_test_score``, ``std_test_score`` and
    ``rank_test_score``. ``pandas.DataFrame(result)`` makes a data frame of it.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_tasks(random_state=0)
    >>> model = cs.TaskClusterRegressorCV(
    ...     (1, 3), alpha_within=(0.1, 1.0), alpha_between=0.01, random_state=0
    ... )
    >>> found = model.fit(*problem.columns()).cv_results_
    >>> found.fold_scores.shape, len(found.rows())
    ((2, 2, 5), 4)
    >>> found["mean_test_score"].shape, found["params"][model.best_index_] == model.best_params_
    ((4,), True)
    """

    axes: ClassVar[tuple[str, ...]] = ("n_clusters", "strengths")

    n_clusters: Annotated[tuple[int, ...], "Numbers of groups that were tried."]
    strengths: Annotated[
        tuple[tuple[float, float, float, float], ...],
        "Those tried: ``alpha``, ``alpha_mean``, ``alpha_between``, ``alpha_within``.",
    ]
    fold_scores: Annotated[Floats, "Score at each point on each held-out fold; larger is better."]
    scoring: Annotated[str, "Name of the score."]
    rule: Annotated[str, '``"best"``, ``"fewest"`` or ``"one_se"``.']
    best_index: Annotated[
        tuple[int, int], "The point chosen: indices into ``n_clusters`` and ``strengths``."
    ]
    mixtures: Annotated[
        tuple[tuple[bool, float | None] | None, ...],
        "For each of the strengths that a mixture learnt (they are NaN), whether it used the "
        "inputs, and its ``margin``; None for the others, and empty if there was no mixture.",
    ] = ()

    @property
    def by_evidence(self) -> bool:
        """Whether a mixture was chosen, which has its groups by evidence."""
        return bool(self.mixtures) and self.mixtures[self.best_index[1]] is not None

    def points(self) -> list[dict[str, Any]]:  # noqa: D102
        names = ("alpha", "alpha_mean", "alpha_between", "alpha_within")
        solvers = [_solver(mixture) for mixture in self.mixtures] or [{}] * len(self.strengths)
        return [
            {"n_clusters": count, **dict(zip(names, map(_or_auto, s), strict=True)), **solver}
            for count in self.n_clusters
            for s, solver in zip(self.strengths, solvers, strict=True)
        ]


def _or_auto(strength: float) -> float | str:
    """A strength as a parameter: "auto" where it was learnt."""
    return "auto" if math.isnan(strength) else strength


def _solver(mixture: tuple[bool, float | None] | None) -> dict[str, Any]:
    """The parameters that say whether a point is a mixture, and which one."""
    if mixture is None:
        return {"solver": "auto", "use_inputs": False, "solver_options": None}
    inputs, margin = mixture
    return {"solver": "em", "use_inputs": inputs, "solver_options": {"margin": margin}}


@documented_fields
@dataclass(frozen=True, eq=False)
class CountSelection:
    """How a `SampleClusterRegressorCV` chose the number of experts; ready to be plotted.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_experts(300, 3, 2, random_state=0)
    >>> model = cs.SampleClusterRegressorCV((1, 2, 3), random_state=0).fit(problem.X, problem.y)
    >>> model.selection_.n_clusters.tolist(), model.selection_.best
    ([1, 2, 3], 2)
    """

    criterion: Annotated[str, '``"bic+icl"``, ``"bic"``, ``"icl"`` or ``"cv"``.']
    n_clusters: Annotated[Labels, "The numbers that were tried."]
    values: Annotated[Floats, "The criterion for each of them; smaller is better."]
    standard_errors: Annotated[Floats, "Over the folds, zero without folds."]
    losses: Annotated[Floats, "Mean loss of each sample's best expert, out of the fold for cv."]
    best: Annotated[int, "The number that was chosen."]
    # Model files that were written before it was kept have None.
    fold_values: Annotated[Floats | None, "The criterion on each fold, a column a fold."] = None
    rule: Annotated[str, '``"fewest"``, ``"best"`` or ``"one_se"``.'] = "fewest"
    scoring: Annotated[str, "Name of the score, empty for the criterion itself."] = ""
    choices: Annotated[
        dict[str, int] | None,
        "The number that each information criterion would choose, not for cv.",
    ] = None

    @property
    def best_index(self) -> int:
        """Index of the number that was chosen."""
        return int(np.flatnonzero(self.n_clusters == self.best)[0])

    @property
    def in_words(self) -> str:
        """The number that was chosen, and what the other criteria would choose."""
        chosen = f"{plural(self.best, 'expert')} chosen by {self.criterion}"
        others = [
            f"{name} would choose {n}"
            for name, n in (self.choices or {}).items()
            if name != self.criterion
        ]
        return f"{chosen} ({', '.join(others)})" if others else chosen

    flat_index = best_index  # as other searches call it, whose grids have several axes

    @property
    def point_scores(self) -> Floats:
        """One score of each number, larger is better, of shape (n_counts, 1)."""
        return -np.asarray(self.values)[:, None]

    def points(self) -> list[dict[str, Any]]:
        """The numbers that were tried: the column ``params``."""
        return [{"n_clusters": int(count)} for count in self.n_clusters]

    def as_cv_results(self) -> dict[str, Any]:
        """The columns of scikit-learn's ``cv_results_``, the negative criterion as the score."""
        if self.fold_values is not None:
            return score_columns(self.points(), 0.0 - self.fold_values)
        unknown = np.where(self.standard_errors > 0.0, np.nan, 0.0)
        return score_columns(self.points(), 0.0 - self.values[:, None], unknown)

    def _repr_html_(self) -> str:
        columns = (self.n_clusters, self.values, self.standard_errors, self.losses)
        rows = [
            (*numbers, "yes" if numbers[0] == self.best else "")
            for numbers in zip(*(column.tolist() for column in columns), strict=True)
        ]
        header = ("experts", self.criterion, "standard error", "loss of the best", "chosen")
        return table(self.in_words, header, rows)
