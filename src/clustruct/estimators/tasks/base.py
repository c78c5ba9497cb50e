"""What regression and classification of clustered tasks share."""

from collections.abc import Callable
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context, is_regressor
from sklearn.metrics import r2_score
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from clustruct._docs import documented
from clustruct._finite import require_finite
from clustruct._typing import Floats
from clustruct.arrays import beside, like, take, to_host
from clustruct.design import Beside, Design, PickingDesign, Rows, as_design, load
from clustruct.estimators import intake
from clustruct.estimators.common import (
    ClusterModel,
    Constraints,
    fields_are_parameters,
    long_work,
)
from clustruct.estimators.descriptions import ARGUMENTS, TASK_ARGUMENTS
from clustruct.estimators.offsets import (
    attach_offset,
    beside_offset,
    offset_columns,
    shifted,
)
from clustruct.estimators.tasks import layouts
from clustruct.estimators.tasks.entries import Entries, Prepared, Summed
from clustruct.estimators.tasks.inputs import Unlabelled, input_evidence, read_unlabelled
from clustruct.estimators.tasks.layouts import Ids, Reading, Weights
from clustruct.losses import loss_of
from clustruct.objectives.tasks.blocks import Strengths
from clustruct.objectives.tasks.data import OwnRows, TaskTargets, members_of
from clustruct.objectives.tasks.evidence import TaskLikelihood, place_tasks
from clustruct.objectives.tasks.objective import TaskObjective, TaskPoint
from clustruct.objectives.tasks.pieces import TaskSums
from clustruct.results import TaskGroup, TaskGroups
from clustruct.solvers.driver import Outcome
from clustruct.solvers.tasks.alternation import point_of
from clustruct.solvers.tasks.mixture import MixturePoint
from clustruct.solvers.tasks.recipes import (
    MIXTURE,
    OPTIONS,
    Sources,
    TaskProblem,
    solve,
)

# Default prices, in units of the curvature of the loss times the median variance of the columns.
WITHIN, BETWEEN = 3.0, 0.1
# The intercept of a task is as far from the others' as this many of its rows can tell.
INTERCEPT_ROWS = 2.0
# A price so small that it changes nothing, and keeps every intercept finite.
FAINT = 1e-8
# A mixture factors a matrix of this width for every task and group in each of its steps.
MIXTURE_WIDTH = 200
PRICE = [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")]


@dataclass(frozen=True)
class Prices:
    """Numbers for all strengths, as in the parameters ``alpha``, ``alpha_mean`` and so on."""

    alpha: float
    mean: float
    between: float
    within: float
    intercept: float
    learned: bool = False  # by evidence: the numbers are only a start
    inputs: bool = False  # whether inputs tell groups apart, too
    margin: float | None = None  # growth of the evidence that one more group takes

    @property
    def told(self) -> tuple[float, float, float, float]:
        """Strengths as results tell them: NaN where they are learnt."""
        if self.learned:
            return self.alpha, np.nan, np.nan, np.nan
        return self.alpha, self.mean, self.between, self.within

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


@documented((), (), (ARGUMENTS, TASK_ARGUMENTS))
@fields_are_parameters
class TaskCluster(ClusterModel):
    """What regression and classification share."""

    _: KW_ONLY
    alpha: float = 0.0
    alpha_mean: float | str = "auto"
    alpha_between: float | str = "auto"
    alpha_within: float | str = "auto"
    alpha_intercept: float | str = "auto"
    use_inputs: bool = False
    huber_delta: float = 1.35

    _centres: ClassVar[bool] = True
    _constraints: ClassVar[Constraints] = {
        "alpha_mean": PRICE,
        "alpha_between": PRICE,
        "alpha_within": [StrOptions({"auto"}), Interval(Real, 0, None, closed="both")],
        "alpha_intercept": PRICE,
        "use_inputs": ["boolean"],
        "huber_delta": [Interval(Real, 0, None, closed="neither")],
        "solver": [StrOptions(set(OPTIONS))],
    }

    # ---- Fit

    @_fit_context(prefer_skip_nested_validation=False)
    @long_work
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        tasks: Ids | None = None,
        sample_weight: Weights = None,
        offset: ArrayLike | None = None,
        unlabelled: Unlabelled | None = None,
    ) -> Any:
        """Fit the tasks."""
        reading = layouts.read(self, X, y, tasks, sample_weight, offset)
        prepared = self._prepare(reading.entries)
        prices = self._prices_of(prepared)
        more = read_unlabelled(self, unlabelled, reading.names)
        return self._fit_prepared(reading, prepared, prices, self.n_clusters, more)

    def _prices_of(self, prepared: Prepared) -> Prices:
        """Strengths for some rows, in their units if they are "auto"."""
        prices = self._prices(price_scale(prepared), prepared)
        if self.solver == MIXTURE:
            self._require_mixture(prepared)
            return replace(prices, learned=True, inputs=self.use_inputs)
        if self.use_inputs:
            raise ValueError(
                f"use_inputs=True needs solver='em', got solver={self.solver!r}: the penalty says "
                "nothing of the inputs."
            )
        return prices

    def _fit_prepared(
        self,
        reading: Reading,
        prepared: Prepared,
        prices: Prices,
        n_clusters: int,
        more: TaskSums | None = None,
    ) -> Any:
        """Solve at given prices and set the attributes."""
        problem = self._priced(prepared, reading.entries, prices, n_clusters, more)
        solver = MIXTURE if prices.learned else self.solver
        return self._set_fit(reading, prepared, prices, solve(problem, solver))

    def _priced(
        self,
        prepared: Prepared,
        entries: Entries | Summed,
        prices: Prices,
        n_clusters: int,
        more: TaskSums | None,
    ) -> TaskProblem:
        """The problem at given prices."""
        strengths = prices.strengths(prepared.data.width, self.fit_intercept)
        problem = self._problem(TaskObjective(prepared.data, strengths), n_clusters)
        if not prices.learned:
            return problem
        if prices.margin is not None:
            problem = replace(problem, options={"margin": prices.margin})
        return replace(problem, sources=sources_of(prepared, entries, prices, more))

    def _set_fit(
        self, reading: Reading, prepared: Prepared, prices: Prices, outcome: Outcome
    ) -> Any:
        """Set the attributes."""
        point = _by_size(point_of(outcome.solution.point))
        if isinstance(point, MixturePoint):
            prices = self._set_mixture(prepared, point, prices)
        self.tasks_, self._layout = reading.names, reading.layout
        move = reading.entries.design.weights  # to where X is, in its precision
        self.coef_, self.intercept_ = map(move, prepared.columns(point.W))
        self.centroids_, self.centroid_intercepts_ = map(move, prepared.columns(point.V))
        coef, intercept = prepared.columns(point.mean[None])
        self.mean_coef_, self.mean_intercept_ = move(coef[0]), float(intercept[0])
        self.labels_ = point.labels
        self.cluster_sizes_ = np.bincount(point.labels).astype(np.intp)
        self.n_clusters_ = point.V.shape[0]
        self.objective_ = point.value
        self.alpha_mean_, self.alpha_between_ = prices.mean, prices.between
        self.alpha_within_, self.alpha_intercept_ = prices.within, prices.intercept
        self._prices_of_fit, self._frame = prices, prepared.frame
        self._loss_of_fit = prepared.loss
        self.has_offset_ = reading.entries.has_offset
        self._set_outcome(outcome)
        return self

    def _set_mixture(self, prepared: Prepared, point: MixturePoint, prices: Prices) -> Prices:
        """Set what was learnt of the groups; returns strengths that would draw as much.

        A penalty ``alpha / (2 K)`` on the square of a weight is a prior of variance
        ``K T / (alpha n)`` for noise of scale ``T``.
        """
        d = prepared.frame.means.size
        spreads = np.sqrt(point.spread)
        self.responsibilities_, self.proportions_ = point.memberships, point.proportions
        self.spreads_ = spreads[:, :d]
        self.spread_intercepts_ = spreads[:, d] if self.fit_intercept else np.zeros(len(spreads))
        self.noise_, self.evidence_ = point.scale, point.evidence
        unit = prepared.frame.n_tasks * point.scale / prepared.frame.total
        between, mean = unit / np.median(point.prior[:, :d], axis=1)
        within = unit / np.median(point.proportions @ point.spread[:, :d])
        intercept = unit / (point.proportions @ point.spread)[-1] if self.fit_intercept else 0.0
        numbers = float(mean), float(between), float(within), float(intercept)
        require_finite(np.array(numbers), "a strength", "evidence of tasks")
        return Prices(0.0, *numbers, learned=True, inputs=prices.inputs, margin=prices.margin)

    def _require_mixture(self, prepared: Prepared) -> None:
        """Complain of what a mixture over tasks cannot do."""
        given = [
            name
            for name in ("alpha_mean", "alpha_between", "alpha_within", "alpha_intercept")
            if getattr(self, name) != "auto"
        ]
        given += ["alpha"] * bool(np.any(self.alpha))
        if given:
            raise ValueError(
                f"{given[0]}={getattr(self, given[0])!r} was given, but solver='em' learns all "
                "strengths by evidence. Leave it out, or choose solver='auto'."
            )
        if (complaint := mixture_complaint(prepared)) is not None:
            raise ValueError(complaint)

    def _prepare(self, entries: Entries | Summed) -> Prepared:
        return entries.prepared(loss_of(self), self.fit_intercept)

    def _problem(self, objective: TaskObjective, n_clusters: int) -> TaskProblem:
        n_clusters = min(int(n_clusters), objective.shape[0])
        problem = TaskProblem(
            objective, n_clusters, n_jobs=self._n_jobs(), **self._solving(OPTIONS)
        )
        # What works on pieces does so side by side already.
        return replace(problem, n_jobs=1) if objective.data.streamed else problem

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
        return Prices(float(self.alpha), mean, between, within, self._intercept_price(prepared))

    def _intercept_price(self, prepared: Prepared) -> float:
        """What a departure of a task's intercept costs."""
        if self.alpha_intercept != "auto":
            return float(self.alpha_intercept)
        return min(1.0, INTERCEPT_ROWS / (prepared.frame.total / prepared.frame.n_tasks))

    # ---- Predictions

    def _width(self, tasks: Ids | None) -> int | None:
        """Scores of a sample, None for one."""
        check_is_fitted(self)
        return None if tasks is not None or self._layout == "single" else int(self.tasks_.size)

    def _apply_to_scores(
        self,
        X: ArrayLike,
        tasks: Ids | None,
        offset: Any,
        finish: Callable[[Rows], Any],
        width: int | None,
        dtype: Any = np.float64,
    ) -> Any:
        """A function of the scores of each sample's task, or of all tasks, lazily for Dask.

        `width` and `dtype` say what it returns.
        """
        own = beside_offset(offset)
        if tasks is None:

            def of_all_tasks(design: Design, *offset: Floats) -> Any:
                return finish(self._all_scores(design, *offset))

            return intake.apply_model(self, of_all_tasks, X, width, dtype, own)
        if self._layout in ("single", "classes"):
            raise ValueError(
                "tasks was given, but `fit` was called without tasks. Leave tasks out, or fit with "
                "tasks."
            )

        def of_own_task(design: PickingDesign, ids: NDArray[Any], *offset: Floats) -> Any:
            scores = self._own_scores(design, layouts.as_ids(ids, design.shape[0]))
            return finish(shifted(scores[:, None], *offset)[:, 0] if offset else scores)

        rows = Beside(tasks, "tasks", layouts.as_ids), *own
        return intake.apply_model(self, of_own_task, X, width, dtype, rows)

    def _all_scores(self, design: Design, offset: Floats | None = None) -> Rows:
        """Scores of all tasks, ``n x K``, or of the only one."""
        scores = design.scores(to_host(self.coef_).T)
        scores = shifted(scores + beside(to_host(self.intercept_), scores), offset)
        return scores[:, 0] if self._layout == "single" else scores

    def _own_scores(self, design: PickingDesign, ids: NDArray[Any]) -> Rows:
        """Scores of each sample's task."""
        # Code -1 finds the mean predictor.
        coef = np.vstack([to_host(self.coef_), to_host(self.mean_coef_)])
        intercept = np.append(to_host(self.intercept_), self.mean_intercept_)
        used, codes = np.unique(layouts.known_codes(ids, self.tasks_), return_inverse=True)
        if not used.size:
            return design.scores(coef[:1].T)[:, 0]
        members = members_of(codes.reshape(-1), used.size)
        rows = OwnRows(lambda t: design.rows(members[t]), [mine.size for mine in members])
        scores = rows.scores(coef[used], intercept[used])
        return take(scores, np.argsort(np.concatenate(members)))

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        tasks: Ids | None = None,
        sample_weight: Weights = None,
        offset: ArrayLike | None = None,
    ) -> float:
        """Share of the variance of all targets that is explained, or of right predictions.

        Returns
        -------
        float
            At most 1.
        """
        numbers = is_regressor(self)
        predicted = to_host(self.predict(X, tasks, offset))
        targets = np.asarray(to_host(y), dtype=np.float64 if numbers else None)
        targets = targets.reshape(-1) if predicted.ndim == 1 else targets
        if targets.shape != predicted.shape:
            raise ValueError(
                f"y has shape {targets.shape}, but there are predictions of shape "
                f"{predicted.shape}. Give tasks, one id for each sample, or a column for each task."
            )
        weights = _check_sample_weight(sample_weight, predicted, dtype=np.float64)
        weights = np.broadcast_to(weights.reshape(-1, *[1] * (targets.ndim - 1)), targets.shape)
        known = ~intake.is_missing(targets)
        targets, predicted, weights = targets[known], predicted[known], weights[known]
        if numbers:
            return float(r2_score(targets, predicted, sample_weight=weights))
        return float(np.average(targets == predicted, weights=weights))

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
                firmness=self._firmness(q),
            )
            for q in range(self.n_clusters_)
        )

    # ---- New tasks

    def adapt(
        self,
        X: ArrayLike,
        y: ArrayLike,
        tasks: Ids,
        sample_weight: Weights = None,
        offset: ArrayLike | None = None,
    ) -> Any:
        """A model that also knows new tasks, of which there are few samples.

        Each joins the group with which it costs least, and gets the best weights near the group's
        centroid. The other tasks and the centroids stay as they are.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Their targets.
        tasks : array-like of shape (n_samples,)
            Ids of the new tasks, none of which was in `fit`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, on the scale of those in `fit`.
        offset : array-like of shape (n_samples,), default=None
            Numbers that are added to the scores, as in `fit`.

        Returns
        -------
        estimator
            A copy of this one with more tasks.
        """
        check_is_fitted(self)
        design = intake.place_matrix(self, load(X))
        targets = design.attach(y, "y", partial(intake.check_targets, self, multi_output=False))
        ids = layouts.as_ids(tasks, design.shape[0])
        names = layouts.sorted_names(ids)
        if known := [name for name in names.tolist() if name in set(self.tasks_.tolist())]:
            raise ValueError(
                f"tasks holds {known[0]!r}, which is known from `fit`. Give new tasks only, or fit "
                "again with all samples."
            )
        weights = np.ones(ids.size)
        if sample_weight is not None:
            weights, _ = intake.check_weights(design, sample_weight)
        every, codes = np.arange(ids.size), layouts.known_codes(ids, names)
        own = attach_offset(design, offset)
        own = None if own is None else offset_columns(own, 1)[:, 0]
        given = TaskTargets(every, codes, self._targets(targets), weights, ids.size, own)
        return self._joined(design, given.take(np.flatnonzero(weights)), names)

    def _joined(self, design: Any, targets: TaskTargets, names: NDArray[Any]) -> Any:
        """A copy with more tasks, of samples on the host."""
        # Centroids and the centre are among the rows, so that coordinates along rows hold them.
        dense = design.row_products(np.ones((design.shape[0], 1)))
        centroids, levels = to_host(self.centroids_), to_host(self.centroid_intercepts_)
        rows = np.vstack([dense, centroids, self._frame.means])
        height, has_offset = rows.shape[0], targets.offset is not None
        entries = Entries(as_design(rows), replace(targets, height=height), names.size, has_offset)
        layouts.require_tasks(entries, names)
        loss = getattr(self, "_loss_of_fit", loss_of(self))  # which older model files lack
        prepared = entries.prepared_in(self._frame, loss, self.fit_intercept)
        strengths = self._prices_of_fit.strengths(prepared.data.width, self.fit_intercept)
        share = names.size / self._frame.n_tasks
        objective = TaskObjective(prepared.data, strengths.scaled(share))
        V = prepared.rows(centroids, levels)
        model = copy(self)
        if self._prices_of_fit.learned:
            spread = np.square(self.spreads_)
            if self.fit_intercept:
                spread = np.column_stack([spread, np.square(self.spread_intercepts_)])
            begin = np.tile(self.proportions_ @ V, (names.size, 1))
            likelihood = TaskLikelihood(prepared.data, loss.noise(1, 1.0), self._frame.total, begin)
            chances, W = place_tasks(likelihood, self.noise_, V, spread, self.proportions_)
            labels = chances.argmax(axis=1)
            model.responsibilities_ = np.vstack([self.responsibilities_, chances])
        else:
            center = to_host(self.mean_coef_)[None]
            mean = prepared.rows(center, np.array([self.mean_intercept_]))[0]
            labels, W = objective.place(V, mean)
        coef, intercept = prepared.columns(W)
        model.coef_ = like(np.vstack([to_host(self.coef_), coef]), self.coef_)
        model.intercept_ = like(np.append(to_host(self.intercept_), intercept), self.intercept_)
        model.labels_ = np.append(self.labels_, labels)
        model.cluster_sizes_ = np.bincount(model.labels_, minlength=self.n_clusters_)
        more = np.empty(self.tasks_.size + names.size, dtype=object)
        more[:] = [*self.tasks_.tolist(), *names.tolist()]
        model.tasks_ = more
        return model

    def __sklearn_is_fitted__(self) -> bool:
        """Whether a fit went through: one that fails leaves the number of features behind."""
        return hasattr(self, "coef_")


def price_scale(prepared: Prepared) -> float:
    """Curvature of the loss times the median variance of the columns: the unit of strengths."""
    spread = prepared.frame.variances[prepared.frame.variances > 0.0]
    return prepared.curvature * (float(np.median(spread)) if spread.size else 1.0)


def _by_size(point: TaskPoint) -> TaskPoint:
    """The same groups, the largest first; equal ones in the order of their centroids."""
    sizes = np.bincount(point.labels, minlength=point.V.shape[0])
    return point.in_order(np.lexsort((*point.V.T[::-1], -sizes)))


def mixture_complaint(prepared: Prepared) -> str | None:
    """Why a mixture cannot be fitted to these tasks; None if it can be."""
    data = prepared.data
    if prepared.rotation is not None or data.width > MIXTURE_WIDTH:
        return (
            f"solver='em' works with up to {MIXTURE_WIDTH} features, and with no more features "
            f"than rows; there are {prepared.frame.means.size}. Reduce them first, for example "
            "with sklearn.decomposition.PCA, or choose solver='auto'."
        )
    if data.streamed:
        return (
            "solver='em' with this loss reads the rows many times, and they are not in memory. "
            "Choose loss='squared', which needs one pass, solver='auto', or load a sample of rows."
        )
    return None


def sources_of(
    prepared: Prepared, entries: Entries | Summed, prices: Prices, more: TaskSums | None
) -> Sources:
    """What a mixture takes for evidence."""
    data = prepared.data
    mean_loss = float(data.losses(np.zeros((data.n_tasks, data.width))).sum())
    inputs = (input_evidence(entries, more),) if prices.inputs else ()
    return Sources(prepared.loss.noise(1, mean_loss), prepared.frame.total, inputs)
