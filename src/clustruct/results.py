"""What the functions and estimators return: frozen, typed, nothing but values."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustruct._html import table

__all__ = [
    "Certificate",
    "Clustering1D",
    "CountSelection",
    "FeatureGroup",
    "FeatureGroups",
    "FeaturePath",
    "GateScore",
    "Iteration",
    "Projection",
    "SearchResult",
    "Status",
    "TaskGroup",
    "TaskGroups",
    "TaskSelection",
]


MOST_MEMBERS = 20  # names of a group that a table shows


def _shown_weight(weight: float | NDArray[Any]) -> float | str:
    """A weight for a table: one number, or several in a row."""
    if np.ndim(weight) == 0:
        return float(weight)
    return ", ".join(f"{value:.4g}" for value in np.asarray(weight).reshape(-1))


def _group_rows(
    values: NDArray[Any], sizes: NDArray[np.intp]
) -> Iterator[tuple[int | str, float | str, int]]:
    """Number, value and size of each group."""
    for q, (value, size) in enumerate(zip(values, sizes, strict=True)):
        yield q, _shown_weight(value), int(size)


def _some(names: Iterable[str]) -> str:
    """The first names, and how many more there are."""
    every = list(names)
    more = f", and {len(every) - MOST_MEMBERS} more" if len(every) > MOST_MEMBERS else ""
    return ", ".join(every[:MOST_MEMBERS]) + more


@dataclass(frozen=True, eq=False)
class Clustering1D:
    """Groups of numbers, as found by `kmeans_1d`.

    Attributes
    ----------
    labels : ndarray of int, shape (n,)
        Group of each number; groups are numbered in the order of their centres.
    centers : ndarray of float, shape (q,)
        Weighted mean of each group, ascending.
    sizes : ndarray of int, shape (q,)
        How many numbers each group holds; none is empty.
    inertia : float
        Weighted sum of squared distances of the numbers to their centres.

    See Also
    --------
    kmeans_1d : The function that returns it.

    Examples
    --------
    >>> import clustruct as cs
    >>> groups = cs.kmeans_1d([1.0, 9.0, 2.0, 8.0], 2)
    >>> groups.centers[groups.labels].tolist()
    [1.5, 8.5, 1.5, 8.5]
    """

    labels: NDArray[np.intp]
    centers: NDArray[np.float64]
    sizes: NDArray[np.intp]
    inertia: float

    def _repr_html_(self) -> str:
        title = f"{self.labels.size} numbers in {self.centers.size} groups, inertia"
        rows = list(_group_rows(self.centers, self.sizes))
        return table(f"{title} {self.inertia:.4g}", ("group", "center", "size"), rows)


@dataclass(frozen=True, eq=False)
class Projection:
    """Nearest point of a set of clustered vectors or matrices, as found by `project_clustered`.

    Attributes
    ----------
    point : ndarray of float, shape (d,) or (d, p)
        The projection, with the shape of what was projected.
    labels : ndarray of int, shape (d,)
        Group of each entry or row, -1 for the zero group.
    centers : ndarray of float, shape (q,) or (q, p)
        Value of each group; entry ``i`` of the point is ``centers[labels[i]]``, or zero.
    sq_distance : float
        Weighted squared distance between the point and what was projected.
    exact : bool
        Whether the point is proven to be a nearest one.

    See Also
    --------
    project_clustered : The function that returns it.

    Examples
    --------
    >>> import clustruct as cs
    >>> nearest = cs.project_clustered([1.0, 0.1, 1.2], 1, n_nonzero=2)
    >>> nearest.point.tolist(), nearest.labels.tolist(), nearest.exact
    ([1.1, 0.0, 1.1], [0, -1, 0], True)
    """

    point: NDArray[Any]
    labels: NDArray[np.intp]
    centers: NDArray[Any]
    sq_distance: float
    exact: bool

    def _repr_html_(self) -> str:
        proof = "nearest point" if self.exact else "near point"
        title = f"{proof}, squared distance {self.sq_distance:.4g}"
        sizes = np.bincount(self.labels[self.labels >= 0], minlength=len(self.centers))
        rows = list(_group_rows(self.centers, sizes))
        if (self.labels < 0).any():
            rows.append(("zero", 0.0, int((self.labels < 0).sum())))
        return table(title, ("group", "value", "size"), rows)


@dataclass(frozen=True)
class Certificate:
    """How far a fit can be from the best possible one.

    Attributes
    ----------
    objective : float
        Objective of the fit.
    lower_bound : float
        No weights that obey the constraint have a smaller objective.
    gap : float
        ``objective - lower_bound``.
    relative_gap : float
        ``gap / objective``, or 0 where both are zero.
    source : str
        Where the bound came from: ``"unconstrained"`` (the problem without groups),
        ``"residual"`` (duality at the fit) or ``"conditional gradient"`` (the convex relaxation).

    Examples
    --------
    >>> import clustruct as cs
    >>> certificate = cs.Certificate.of(2.0, 1.9, "residual")
    >>> round(certificate.relative_gap, 3)
    0.05
    """

    objective: float
    lower_bound: float
    gap: float
    relative_gap: float
    source: str

    @classmethod
    def of(cls, objective: float, lower_bound: float, source: str) -> "Certificate":
        """The certificate for a bound; rounding may not lift the bound above the objective."""
        lower_bound = min(lower_bound, objective)
        gap = objective - lower_bound
        relative = gap / objective if objective > 0.0 else 0.0
        return cls(objective, lower_bound, gap, relative, source)

    @property
    def in_words(self) -> str:
        """What it proves, as a sentence."""
        percent = 100.0 * self.relative_gap
        if self.relative_gap <= 1e-9:
            return "The best possible: no choice of groups has a smaller objective."
        if not self.lower_bound > 0.0:
            return "Nothing is proved about how much better another choice of groups could be."
        amount = f"{percent:.2g} %" if percent < 10.0 else f"{percent:.0f} %"
        return (
            f"Within {amount} of the best possible: "
            "no choice of groups can lower the objective by more than that."
        )

    def _repr_html_(self) -> str:
        row = (self.objective, self.lower_bound, self.gap, self.relative_gap, self.source)
        header = ("objective", "lower bound", "gap", "relative gap", "source")
        return table(self.in_words, header, [row])


@dataclass(frozen=True)
class Iteration:
    """One accepted step of a solver.

    Attributes
    ----------
    solver : str
        Which solver took it.
    number : int
        0 for the start.
    objective : float
        Objective after it; for ``"cg"`` that of the convex relaxation.
    step : float
        Step size.
    seconds : float
        Since the solver began.

    Examples
    --------
    >>> import clustruct as cs
    >>> cs.Iteration("pg", 0, 1.5, 0.0, 0.01).objective
    1.5
    """

    solver: str
    number: int
    objective: float
    step: float
    seconds: float


@dataclass(frozen=True)
class Status:
    """How a fit ended.

    Attributes
    ----------
    solver : str
        The solver whose answer was kept.
    converged : bool
        Whether it stopped because there was no more to gain.
    n_iter : int
        Its steps.
    objectives : tuple of (str, float)
        Every solver that was tried, in order, with the objective it reached.
    message : str
        All of this in words.

    Examples
    --------
    >>> import clustruct as cs
    >>> cs.Status("pg", True, 7, (("pg", 0.5),), "pg: converged after 7 steps").converged
    True
    """

    solver: str
    converged: bool
    n_iter: int
    objectives: tuple[tuple[str, float], ...]
    message: str

    def _repr_html_(self) -> str:
        return table(self.message, ("solver", "objective"), self.objectives)


@dataclass(frozen=True, eq=False)
class FeatureGroup:
    """One row of the table of groups.

    Attributes
    ----------
    label : int
        Number of the group, -1 for features without weight.
    weight : float or ndarray of shape (n_outputs,)
        The weight that its features share.
    size : int
        How many features it holds.
    features : tuple of str
        Their names.

    See Also
    --------
    FeatureClusterRegressor : Its method ``clusters`` returns a list of them.

    Examples
    --------
    >>> import clustruct as cs
    >>> cs.FeatureGroup(0, -1.5, 2, ("bad", "awful")).size
    2
    """

    label: int
    weight: float | NDArray[np.float64]
    size: int
    features: tuple[str, ...]

    def _repr_html_(self) -> str:
        return FeatureGroups([self])._repr_html_()


class FeatureGroups(list[FeatureGroup]):
    """The table of groups: a list of `FeatureGroup` that notebooks show as a table.

    Parameters
    ----------
    iterable : iterable of FeatureGroup, default=()
        The groups.

    See Also
    --------
    FeatureClusterRegressor : Its method ``clusters`` returns one.

    Examples
    --------
    >>> import clustruct as cs
    >>> groups = cs.FeatureGroups([cs.FeatureGroup(0, -1.5, 2, ("bad", "awful"))])
    >>> "awful" in groups._repr_html_()
    True
    """

    def _repr_html_(self) -> str:
        rows = [
            (
                group.label if group.label >= 0 else "zero",
                _shown_weight(group.weight),
                group.size,
                _some(group.features),
            )
            for group in self
        ]
        title = f"{sum(group.size for group in self)} features in {len(self)} groups"
        return table(title, ("group", "weight", "size", "features"), rows)


@dataclass(frozen=True, eq=False)
class FeaturePath:
    """Fits for every number of groups, alpha and number of nonzero weights.

    The first three axes of every array stand for ``n_clusters``, ``alphas`` and ``n_nonzero``, in
    the order in which they were given.

    Attributes
    ----------
    n_clusters : tuple
        Largest numbers of groups.
    alphas : ndarray of shape (n_alphas,)
        Strengths of the ridge.
    n_nonzero : tuple
        Largest numbers of weights that are not zero, None for no limit.
    coefs : ndarray of shape (n_Q, n_alphas, n_k, [n_outputs,] n_features)
        Weights.
    intercepts : ndarray of shape (n_Q, n_alphas, n_k[, n_outputs])
        Intercepts.
    labels : ndarray of int, shape (n_Q, n_alphas, n_k, n_features)
        Group of each feature, in the order of their values; -1 for weight zero by ``n_nonzero``.
    objectives : ndarray of shape (n_Q, n_alphas, n_k)
        Objectives reached.
    lower_bounds : ndarray of shape (n_Q, n_alphas, n_k)
        No weights that obey the constraint have a smaller objective.
    converged : ndarray of bool, shape (n_Q, n_alphas, n_k)
        Whether the solver stopped because there was no more to gain.

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

    n_clusters: tuple[Any, ...]
    alphas: NDArray[np.float64]
    n_nonzero: tuple[int | None, ...]
    coefs: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    labels: NDArray[np.intp]
    objectives: NDArray[np.float64]
    lower_bounds: NDArray[np.float64]
    converged: NDArray[np.bool_]

    @property
    def relative_gaps(self) -> NDArray[np.float64]:
        """How far each fit can be from the best possible one, as a fraction of its objective."""
        gaps = self.objectives - self.lower_bounds
        return np.divide(gaps, self.objectives, where=gaps > 0.0, out=np.zeros_like(gaps))

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
                **_point(self.n_clusters, self.alphas, self.n_nonzero, place),
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
        return _table_of(f"{n_fits} fits with {n_features} features", self.rows())


@dataclass(frozen=True, eq=False)
class SearchResult:
    """Scores of a search for the number of groups, alpha and the number of nonzero weights.

    Attributes
    ----------
    n_clusters : tuple
        Largest numbers of groups that were tried.
    alphas : ndarray of shape (n_alphas,)
        Strengths of the ridge that were tried.
    n_nonzero : tuple
        Largest numbers of nonzero weights that were tried, None for no limit.
    relax : ndarray of shape (n_Q, n_alphas, n_k)
        The fraction of alpha that was best for the values of the groups, at each point.
    fold_scores : ndarray of shape (n_Q, n_alphas, n_k, n_folds)
        Score on each held-out fold, with that fraction; larger is better. For ``criterion="bic"``
        one column, the negative BIC.
    criterion : str
        ``"cv"``, ``"bic"`` or ``"ebic"``.
    scoring : str
        Name of the score.
    rule : str
        ``"best"`` or ``"one_se"``.
    best_index : tuple of int
        The point chosen: indices into ``n_clusters``, ``alphas`` and ``n_nonzero``.

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
    """

    n_clusters: tuple[Any, ...]
    alphas: NDArray[np.float64]
    n_nonzero: tuple[int | None, ...]
    relax: NDArray[np.float64]
    fold_scores: NDArray[np.float64]
    criterion: str
    scoring: str
    rule: str
    best_index: tuple[int, int, int]

    @property
    def mean_scores(self) -> NDArray[np.float64]:
        """Mean over the folds, of shape (n_Q, n_alphas, n_k)."""
        means: NDArray[np.float64] = self.fold_scores.mean(axis=-1)
        return means

    @property
    def std_scores(self) -> NDArray[np.float64]:
        """Standard deviation over the folds."""
        deviations: NDArray[np.float64] = self.fold_scores.std(axis=-1)
        return deviations

    @property
    def standard_errors(self) -> NDArray[np.float64]:
        """Standard error of the mean, zero where there is one fold only."""
        n_folds = self.fold_scores.shape[-1]
        return self.std_scores / np.sqrt(max(1, n_folds - 1))

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
                **_point(self.n_clusters, self.alphas, self.n_nonzero, place),
                "relax": float(self.relax[place]),
                "mean_score": float(means[place]),
                "std_score": float(deviations[place]),
                "standard_error": float(errors[place]),
                **{f"fold{f}_score": float(s) for f, s in enumerate(self.fold_scores[place])},
                "chosen": place == self.best_index,
            }
            for place in np.ndindex(means.shape)
        ]

    def _repr_html_(self) -> str:
        return _scores_table(f"{self.scoring} ({self.criterion})", self.rows())


def _point(
    n_clusters: tuple[Any, ...],
    alphas: NDArray[np.float64],
    n_nonzero: tuple[int | None, ...],
    place: tuple[int, ...],
) -> dict[str, Any]:
    """The parameters at a place of a grid."""
    q, a, k = place
    return {"n_clusters": n_clusters[q], "alpha": float(alphas[a]), "n_nonzero": n_nonzero[k]}


def _scores_table(title: str, rows: list[dict[str, Any]]) -> str:
    """Points of a search, without single folds, the one that was chosen and the best first."""
    shown = [
        {
            **{name: value for name, value in row.items() if not name.startswith("fold")},
            "chosen": "yes" if row["chosen"] else "",
        }
        for row in sorted(rows, key=lambda row: (not row["chosen"], -row["mean_score"]))
    ]
    return _table_of(f"{title}, the best first", shown)


def _table_of(title: str, rows: list[dict[str, Any]]) -> str:
    """Dictionaries with the same keys as a table."""
    return table(title, [name.replace("_", " ") for name in rows[0]], [[*r.values()] for r in rows])


@dataclass(frozen=True)
class GateScore:
    """What a gate is worth, on samples that it had not seen.

    Attributes
    ----------
    gated : float
        Mean loss of the answer weighted by the gate.
    constant : float
        Mean loss of the answer with the same weights for all samples.
    best : float
        Mean loss of the best expert of each sample, which no gate can beat by much.
    sharpness : float
        How far the gate is trusted: 0 not at all, 1 at its word.

    See Also
    --------
    SampleClusterRegressor : Its attribute ``gate_score_`` is one.

    Examples
    --------
    >>> import clustruct as cs
    >>> cs.GateScore(gated=0.2, constant=1.0, best=0.1, sharpness=1.1).helps
    True
    """

    gated: float
    constant: float
    best: float
    sharpness: float

    @property
    def helps(self) -> bool:
        """Whether the gated answer is better than the constant one."""
        return self.gated < self.constant

    def _repr_html_(self) -> str:
        row = (self.constant, self.gated, self.best, self.sharpness)
        title = f"The gate {'helps' if self.helps else 'does not help'}"
        return table(title, ("loss without it", "with it", "best expert", "sharpness"), [row])


@dataclass(frozen=True, eq=False)
class CountSelection:
    """How the number of experts was chosen; ready to be plotted.

    Attributes
    ----------
    criterion : str
        ``"bic"``, ``"icl"`` or ``"cv"``.
    n_clusters : ndarray of int
        The numbers that were tried.
    values : ndarray of float
        The criterion for each of them; smaller is better.
    standard_errors : ndarray of float
        Over the folds, zero without folds.
    losses : ndarray of float
        Mean loss of the best expert of each sample, out of the fold for ``"cv"``.
    best : int
        The number that was chosen.

    See Also
    --------
    SampleClusterRegressorCV : Its attribute ``selection_`` is one.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_experts(300, 3, 2, random_state=0)
    >>> model = cs.SampleClusterRegressorCV((1, 2, 3), random_state=0).fit(problem.X, problem.y)
    >>> model.selection_.n_clusters.tolist(), model.selection_.best
    ([1, 2, 3], 2)
    """

    criterion: str
    n_clusters: NDArray[np.intp]
    values: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    losses: NDArray[np.float64]
    best: int

    def _repr_html_(self) -> str:
        rows = [
            (
                int(count),
                float(value),
                float(error),
                float(loss),
                "yes" if count == self.best else "",
            )
            for count, value, error, loss in zip(
                self.n_clusters, self.values, self.standard_errors, self.losses, strict=True
            )
        ]
        header = ("experts", self.criterion, "standard error", "loss of the best", "chosen")
        return table(f"{self.best} experts chosen by {self.criterion}", header, rows)


@dataclass(frozen=True, eq=False)
class TaskGroup:
    """One row of the table of groups of tasks.

    Attributes
    ----------
    label : int
        Number of the group.
    size : int
        How many tasks it holds.
    tasks : tuple
        Their ids.
    coef : ndarray of shape (n_features,)
        The centroid: the weights that its tasks are near.
    intercept : float
        The intercept of the centroid.

    See Also
    --------
    TaskClusterRegressor : Its method ``clusters`` returns a list of them.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_tasks(n_tasks=8, n_clusters=2, random_state=0)
    >>> model = cs.TaskClusterRegressor(2).fit(*problem.columns())
    >>> sum(group.size for group in model.clusters())
    8
    """

    label: int
    size: int
    tasks: tuple[Any, ...]
    coef: NDArray[np.float64]
    intercept: float

    def _repr_html_(self) -> str:
        return TaskGroups([self])._repr_html_()


class TaskGroups(list[TaskGroup]):
    """The table of groups of tasks: a list of `TaskGroup` that notebooks show as a table.

    Parameters
    ----------
    iterable : iterable of TaskGroup, default=()
        The groups.

    See Also
    --------
    TaskClusterRegressor : Its method ``clusters`` returns one.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_tasks(n_tasks=8, n_clusters=2, random_state=0)
    >>> groups = cs.TaskClusterRegressor(2).fit(*problem.columns()).clusters()
    >>> groups._repr_html_().count("<tr>")
    3
    """

    def _repr_html_(self) -> str:
        rows = [(group.label, group.size, _some(map(str, group.tasks))) for group in self]
        title = f"{sum(group.size for group in self)} tasks in {len(self)} groups"
        return table(title, ("group", "size", "tasks"), rows)


@dataclass(frozen=True, eq=False)
class TaskSelection:
    """Scores of a search for the number of groups of tasks and the strengths of the penalty.

    Attributes
    ----------
    n_clusters : tuple of int
        Numbers of groups that were tried.
    strengths : tuple of tuple of float
        Strengths that were tried: ``alpha``, ``alpha_mean``, ``alpha_between``, ``alpha_within``.
    fold_scores : ndarray of shape (n_Q, n_strengths, n_folds)
        Score on each held-out fold; larger is better.
    scoring : str
        Name of the score.
    rule : str
        ``"best"`` or ``"fewest"``.
    best_index : tuple of int
        The point chosen: indices into ``n_clusters`` and ``strengths``.

    See Also
    --------
    TaskClusterRegressorCV : Has one of them as ``cv_results_``.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_tasks(random_state=0)
    >>> model = cs.TaskClusterRegressorCV((1, 3), alpha_within=(0.1, 1.0), alpha_between=0.01)
    >>> found = model.fit(*problem.columns()).cv_results_
    >>> found.fold_scores.shape, len(found.rows())
    ((2, 2, 5), 4)
    """

    n_clusters: tuple[int, ...]
    strengths: tuple[tuple[float, float, float, float], ...]
    fold_scores: NDArray[np.float64]
    scoring: str
    rule: str
    best_index: tuple[int, int]

    @property
    def mean_scores(self) -> NDArray[np.float64]:
        """Mean over the folds, of shape (n_Q, n_strengths)."""
        means: NDArray[np.float64] = self.fold_scores.mean(axis=-1)
        return means

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary for each point of the grid.

        Returns
        -------
        list of dict
            ``pandas.DataFrame(result.rows())`` makes a data frame of it.
        """
        names = ("alpha", "alpha_mean", "alpha_between", "alpha_within")
        means = self.mean_scores
        return [
            {
                "n_clusters": self.n_clusters[q],
                **dict(zip(names, self.strengths[s], strict=True)),
                "mean_score": float(means[q, s]),
                **{f"fold{f}_score": float(v) for f, v in enumerate(self.fold_scores[q, s])},
                "chosen": (q, s) == self.best_index,
            }
            for q, s in np.ndindex(means.shape)
        ]

    def _repr_html_(self) -> str:
        return _scores_table(self.scoring, self.rows())
