"""What regression and classification of clustered tasks share."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from clustruct._typing import Floats
from clustruct.arrays import beside, like, take, to_host
from clustruct.design import Beside, Design, PickingDesign, Rows, as_design, load
from clustruct.estimators.intake import (
    apply_model,
    check_targets,
    check_weights,
    is_missing,
    place_matrix,
)
from clustruct.estimators.options import check_options, conclude, watcher
from clustruct.estimators.tasks.entries import Entries, Prepared, Summed
from clustruct.estimators.tasks.layouts import Reading, as_ids, known_codes, sorted_names
from clustruct.losses import loss_of
from clustruct.objectives.tasks.blocks import Strengths
from clustruct.objectives.tasks.data import OwnRows, TaskTargets, members_of
from clustruct.objectives.tasks.objective import TaskObjective, TaskPoint
from clustruct.results import TaskGroup, TaskGroups
from clustruct.solvers.driver import Budget, Outcome
from clustruct.solvers.tasks.alternation import point_of
from clustruct.solvers.tasks.recipes import OPTIONS, RECIPES, TaskProblem, solve

__all__ = ["Prices", "TaskCluster", "price_scale"]


# Default prices, in units of the curvature of the loss times the median variance of the columns.
WITHIN, BETWEEN = 3.0, 0.1
# The intercept of a task is as far from the others' as this many of its rows can tell.
INTERCEPT_ROWS = 2.0
# A price so small that it changes nothing, and keeps every intercept finite.
FAINT = 1e-8
# What is where ``X`` is.
MOVED = ("coef_", "intercept_", "centroids_", "centroid_intercepts_", "mean_coef_")
PRICE = [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")]


@dataclass(frozen=True)
class Prices:
    """Numbers for all strengths, as in the parameters ``alpha``, ``alpha_mean`` and so on."""

    alpha: float
    mean: float
    between: float
    within: float
    intercept: float

    def strengths(self, width: int, fit_intercept: bool) -> Strengths:
        """The same for each coordinate, the last of which may be the intercept."""

        def each(price: float, last: float) -> Floats:
            prices = np.full(width, price)
            if fit_intercept:
                prices[-1] = last
            return prices

        own = max(self.intercept, FAINT)
        return Strengths(
            each(self.alpha, 0.0),
            each(self.mean, FAINT * min(own, 1.0)),
            each(self.between, own),
            each(self.within, own),
        )


class TaskCluster(BaseEstimator):
    """What regression and classification share."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "alpha_mean": PRICE,
        "alpha_between": PRICE,
        "alpha_within": [StrOptions({"auto"}), Interval(Real, 0, None, closed="both")],
        "alpha_intercept": PRICE,
        "fit_intercept": ["boolean"],
        "solver": [StrOptions(set(RECIPES))],
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "solver_options": [Mapping, None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "callback": [callable, None],
    }

    # ---- Fit

    def _fit_reading(self, reading: Reading) -> None:
        """Solve for validated targets and set the attributes."""
        entries = reading.entries
        check_answered(entries, reading.names)
        prepared = self._prepare(entries)
        prices = self._prices(price_scale(prepared), prepared)
        self._fit_prepared(prepared, prices, self.n_clusters, reading)

    def _fit_prepared(
        self, prepared: Prepared, prices: Prices, n_clusters: int, reading: Reading
    ) -> None:
        """Solve at given prices and set the attributes."""
        strengths = prices.strengths(prepared.data.width, self.fit_intercept)
        objective = TaskObjective(prepared.data, strengths)
        outcome = solve(self._problem(objective, n_clusters), self.solver)
        self.tasks_, self._layout = reading.names, reading.layout
        self._set_outcome(prepared, prices, outcome)
        self._move_weights(reading.entries.design.weights)

    def _prepare(self, entries: Entries | Summed) -> Prepared:
        return entries.prepared(loss_of(self), self.fit_intercept)

    def _problem(self, objective: TaskObjective, n_clusters: int) -> TaskProblem:
        return TaskProblem(
            objective=objective,
            n_clusters=min(int(n_clusters), objective.shape[0]),
            budget=Budget(self.max_iter, self.tol, watcher(self.verbose, self.callback)),
            n_starts=None if self.n_init == "auto" else self.n_init,
            seed=int(check_random_state(self.random_state).randint(2**31)),
            # Steps in an order; and what works on pieces does so side by side already.
            n_jobs=1 if self.callback is not None or objective.data.streamed else self.n_jobs,
            options=check_options(self.solver, self.solver_options, OPTIONS),
        )

    def _prices(self, scale: float, prepared: Prepared) -> Prices:
        """Numbers for the strengths that are "auto"."""
        between = BETWEEN * scale if self.alpha_between == "auto" else float(self.alpha_between)
        mean = between if self.alpha_mean == "auto" else float(self.alpha_mean)
        within = WITHIN * scale if self.alpha_within == "auto" else float(self.alpha_within)
        if mean > between:
            raise ValueError(
                f"alpha_mean={mean:g} is more than alpha_between={between:g}: moving all centroids "
                "would cost more than moving them apart. Give alpha_mean at most alpha_between."
            )
        intercept = self.alpha_intercept
        if intercept == "auto":
            intercept = intercept_price(prepared)
        return Prices(float(self.alpha), mean, between, within, float(intercept))

    def _set_outcome(self, prepared: Prepared, prices: Prices, outcome: Outcome) -> None:
        """All attributes of a fitted model."""
        point = _by_size(point_of(outcome.solution.point))
        self.coef_, self.intercept_ = prepared.columns(point.W)
        self.centroids_, self.centroid_intercepts_ = prepared.columns(point.V)
        coef, intercept = prepared.columns(point.rows.mean(axis=0, keepdims=True))
        self.mean_coef_, self.mean_intercept_ = coef[0], float(intercept[0])
        self.labels_ = point.labels
        self.cluster_sizes_ = np.bincount(point.labels).astype(np.intp)
        self.n_clusters_ = point.V.shape[0]
        self.objective_ = point.value
        self.certificate_ = outcome.certificate
        self.status_ = outcome.status
        self.n_iter_ = outcome.status.n_iter
        self.trace_ = outcome.trace
        self.alpha_mean_, self.alpha_between_ = prices.mean, prices.between
        self.alpha_within_, self.alpha_intercept_ = prices.within, prices.intercept
        self._prices_of_fit = prices
        conclude(self.verbose, outcome.status, outcome.certificate)
        self._frame = prepared.frame

    def _move_weights(self, move: Callable[[Floats], Any]) -> None:
        """Have all weights where ``X`` is, in its precision."""
        for name in MOVED:
            setattr(self, name, move(getattr(self, name)))

    # ---- Predictions

    def _width(self, tasks: ArrayLike | Sequence[Hashable] | None) -> int | None:
        """Scores of a sample, None for one."""
        check_is_fitted(self)
        return None if tasks is not None or self._layout == "single" else int(self.tasks_.size)

    def _apply_to_scores(
        self,
        X: ArrayLike,
        tasks: ArrayLike | Sequence[Hashable] | None,
        finish: Callable[[Rows], Any],
        width: int | None,
        dtype: Any = np.float64,
    ) -> Any:
        """A function of the scores of each sample's task, or of all tasks, lazily for Dask.

        `width` and `dtype` say what it returns.
        """
        if tasks is None:
            return apply_model(
                self, lambda design: finish(self._all_scores(design)), X, width, dtype
            )
        if self._layout in ("single", "classes"):
            raise ValueError(
                "tasks was given, but `fit` was called without tasks. Leave tasks out, or fit with "
                "tasks."
            )

        def of_own_task(design: PickingDesign, ids: NDArray[Any]) -> Any:
            return finish(self._own_scores(design, as_ids(ids, design.shape[0])))

        return apply_model(self, of_own_task, X, width, dtype, Beside(tasks, "tasks", as_ids))

    def _all_scores(self, design: Design) -> Rows:
        """Scores of all tasks, ``n x K``, or of the only one."""
        scores = design.scores(to_host(self.coef_).T)
        scores = scores + beside(to_host(self.intercept_), scores)
        return scores[:, 0] if self._layout == "single" else scores

    def _own_scores(self, design: PickingDesign, ids: NDArray[Any]) -> Rows:
        """Scores of each sample's task."""
        # Code -1 finds the mean predictor.
        coef = np.vstack([to_host(self.coef_), to_host(self.mean_coef_)])
        intercept = np.append(to_host(self.intercept_), self.mean_intercept_)
        used, codes = np.unique(known_codes(ids, self.tasks_), return_inverse=True)
        if not used.size:
            return design.scores(coef[:1].T)[:, 0]
        members = members_of(codes.reshape(-1), used.size)
        rows = OwnRows(lambda t: design.rows(members[t]), [mine.size for mine in members])
        scores = rows.scores(coef[used], intercept[used])
        return take(scores, np.argsort(np.concatenate(members)))

    def _compared(
        self, targets: NDArray[Any], predicted: Any, sample_weight: ArrayLike | None
    ) -> tuple[NDArray[Any], NDArray[Any], Floats]:
        """Targets that there are, what was predicted for them, and weights, each in one row."""
        predicted = to_host(predicted)
        targets = targets.reshape(-1) if predicted.ndim == 1 else targets
        if targets.shape != predicted.shape:
            raise ValueError(
                f"y has shape {targets.shape}, but there are predictions of shape "
                f"{predicted.shape}. Give tasks, one id for each sample, or a column for each task."
            )
        weights = np.ones(predicted.shape[0])
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, predicted, dtype=np.float64)
        weights = np.broadcast_to(weights.reshape(-1, *[1] * (targets.ndim - 1)), targets.shape)
        known = ~is_missing(targets)
        return targets[known], predicted[known], weights[known]

    def clusters(self) -> TaskGroups:
        """The groups as a table: tasks and centroid of each.

        Returns
        -------
        TaskGroups
            A list of `TaskGroup`, the largest first.
        """
        check_is_fitted(self)
        return TaskGroups(
            TaskGroup(
                label=q,
                size=int(self.cluster_sizes_[q]),
                tasks=tuple(self.tasks_[self.labels_ == q].tolist()),
                coef=to_host(self.centroids_)[q].copy(),
                intercept=float(self.centroid_intercepts_[q]),
            )
            for q in range(self.n_clusters_)
        )

    # ---- New tasks

    def adapt(
        self,
        X: ArrayLike,
        y: ArrayLike,
        tasks: ArrayLike | Sequence[Hashable],
        sample_weight: ArrayLike | None = None,
    ) -> Any:
        """A model that also knows new tasks, of which there are few samples.

        Each joins the group with which it costs least, and gets the best weights near the group's
        centroid. The other tasks and the centroids stay as they are.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples of the new tasks, which are loaded wherever they are.
        y : array-like of shape (n_samples,)
            Their targets.
        tasks : array-like of shape (n_samples,)
            Ids of the new tasks, none of which was in `fit`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, on the scale of those in `fit`.

        Returns
        -------
        estimator
            A copy of this one with more tasks.
        """
        check_is_fitted(self)
        design = place_matrix(self, load(X))
        targets = design.attach(y, "y", partial(check_targets, self, multi_output=False))
        ids = as_ids(tasks, design.shape[0])
        names = sorted_names(ids)
        known = [name for name in names.tolist() if name in set(self.tasks_.tolist())]
        if known:
            raise ValueError(
                f"tasks holds {known[0]!r}, which is known from `fit`. Give new tasks only, or fit "
                "again with all samples."
            )
        weights = np.ones(ids.size)
        if sample_weight is not None:
            weights, _ = check_weights(design, sample_weight)
        every, codes = np.arange(ids.size), known_codes(ids, names)
        given = TaskTargets(every, codes, self._targets(targets), weights, ids.size)
        return self._joined(design, given.take(np.flatnonzero(weights)), names)

    def _joined(self, design: Any, targets: TaskTargets, names: NDArray[Any]) -> Any:
        """A copy with more tasks, of samples on the host."""
        # Centroids and the centre are among the rows, so that coordinates along rows hold them.
        dense = design.row_products(np.ones((design.shape[0], 1)))
        centroids, levels = to_host(self.centroids_), to_host(self.centroid_intercepts_)
        rows = np.vstack([dense, centroids, self._frame.means])
        entries = Entries(as_design(rows), replace(targets, height=rows.shape[0]), names.size)
        check_answered(entries, names)
        prepared = entries.prepared_in(self._frame, loss_of(self), self.fit_intercept)
        strengths = self._prices_of_fit.strengths(prepared.data.width, self.fit_intercept)
        share = names.size / self._frame.n_tasks
        objective = TaskObjective(prepared.data, strengths.scaled(share))
        V = prepared.rows(centroids, levels)
        center = to_host(self.mean_coef_)[None]
        mean = prepared.rows(center, np.array([self.mean_intercept_]))[0]
        labels, W = objective.place(V, mean)
        coef, intercept = prepared.columns(W)
        model = copy(self)
        model.coef_ = like(np.vstack([to_host(self.coef_), coef]), self.coef_)
        model.intercept_ = like(np.append(to_host(self.intercept_), intercept), self.intercept_)
        model.labels_ = np.append(self.labels_, labels)
        model.cluster_sizes_ = np.bincount(model.labels_).astype(np.intp)
        more = np.empty(self.tasks_.size + names.size, dtype=object)
        more[:] = [*self.tasks_.tolist(), *names.tolist()]
        model.tasks_ = more
        return model

    def __sklearn_is_fitted__(self) -> bool:
        """Whether a fit went through: one that fails leaves the number of features behind."""
        return hasattr(self, "coef_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def price_scale(prepared: Prepared) -> float:
    """Curvature of the loss times the median variance of the columns: the unit of strengths."""
    spread = prepared.frame.variances[prepared.frame.variances > 0.0]
    return prepared.curvature * (float(np.median(spread)) if spread.size else 1.0)


def intercept_price(prepared: Prepared) -> float:
    """What a departure of a task's intercept costs by default."""
    rows = prepared.frame.total / prepared.frame.n_tasks
    return min(1.0, INTERCEPT_ROWS / rows)


def check_answered(entries: Entries | Summed, names: NDArray[Any]) -> None:
    """Complain of tasks that have no target."""
    missing = np.setdiff1d(np.arange(entries.n_tasks), entries.present())
    if missing.size:
        raise ValueError(
            f"Task {names.tolist()[missing[0]]!r} has no answer (of positive weight), as have "
            f"{missing.size - 1} others. Leave such tasks out: predictions for an unknown task are "
            "those of the mean predictor."
        )


def _by_size(point: TaskPoint) -> TaskPoint:
    """The same groups, the largest first; equal ones in the order of their centroids."""
    sizes = np.bincount(point.labels, minlength=point.V.shape[0])
    order = np.lexsort((*point.V.T[::-1], -sizes))
    ranks = np.argsort(order)
    return TaskPoint(
        point.W, point.value, point.intercept, point.slope, point.V[order], ranks[point.labels]
    )
