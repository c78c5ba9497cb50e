"""The search for the number of groups of features, the ridge and the number of nonzero weights."""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, field, replace
from functools import partial
from math import prod
from numbers import Integral, Real
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln
from sklearn.base import _fit_context, is_classifier
from sklearn.utils._param_validation import Interval, StrOptions

from clustruct._docs import documented
from clustruct._progress import counting
from clustruct._threads import one_thread
from clustruct._typing import Floats, Labels
from clustruct.estimators.columns.factors import FactorColumns
from clustruct.estimators.common import (
    SEARCH_CONSTRAINTS,
    Constraints,
    fields_are_parameters,
    long_work,
)
from clustruct.estimators.descriptions import ARGUMENTS
from clustruct.estimators.features.base import FeatureCluster
from clustruct.estimators.features.folds import FoldWork, LocalSamples, PlacedSamples, Plan
from clustruct.estimators.features.grid import (
    Count,
    Grid,
    Method,
    Objective,
    Place,
    check_alphas,
    check_grid,
    check_values,
    fit_grid,
    itself,
    price_grid,
)
from clustruct.estimators.features.screening import can_screen, screened_scores
from clustruct.estimators.intake import check_groups, validate
from clustruct.estimators.offsets import attach_offset
from clustruct.estimators.search.engine import Scored, SearchFace, Use, run_jobs, run_search
from clustruct.estimators.search.folds import Folds, in_order_or_shuffled, make_folds
from clustruct.estimators.search.rules import Rule
from clustruct.estimators.search.scoring import Scoring, name_of
from clustruct.grouping.constraints import Free
from clustruct.losses import Loss, loss_of
from clustruct.objectives.features.factors import FactorObjective
from clustruct.objectives.features.streamed import feature_objective
from clustruct.objectives.linear import Point
from clustruct.objectives.quadratic import QuadraticObjective
from clustruct.results import SearchResult
from clustruct.results.scores import Price, order_of_entry, total
from clustruct.solvers.driver import Solution, may_refit
from clustruct.solvers.factors import with_strengths
from clustruct.solvers.features import (
    RECIPES,
    SHARP,
    FeatureOutcome,
    relaxed,
    relaxed_solutions,
)

# Projected gradient for fits that are only scored: fewer trials, and an end to small gains.
QUICK_STEPS = {"shrink": 0.5, "shortest": 0.05}
QUICK_TOL = 1e-3
# The same for factors: planted tariffs got the same points as with 1e-6, in 60 % of the time.
FACTOR_TOL = 1e-4
# Precision of the values of their groups: scores have the same four digits or more.
QUICK_REFIT = 1e-5
# The part of the score that is clearly worse, for the rule "fewest": it counts where samples are
# few, and errors are wide.
COSTLY = 0.03


@fields_are_parameters
class Search(SearchFace, FeatureCluster):
    """The search, for a model that could be fitted without it."""

    n_clusters: Count | Sequence[Count] = tuple(range(2, 16))  # type: ignore[assignment]
    _: KW_ONLY
    alpha: float | str = field(default=0.0, init=False)  # searches have several
    price: float | None = field(default=None, init=False)
    prices: str | float | Sequence[float] | None = "auto"
    alphas: str | float | Sequence[float] = "auto"
    n_nonzero: int | Sequence[int | None] | None = None  # type: ignore[assignment]
    relax: float | Sequence[float] = (1.0, 0.5, 0.25, 0.125)
    cv: Any = 5
    scoring: Scoring | None = None
    rule: str = "best"
    criterion: str = "cv"
    search_solver: str = "auto"
    n_jobs: int | None = None

    factor_order_: ClassVar[list[tuple[str, float]] | None] = None  # of prices only
    _plain: ClassVar[Any]
    _constraints: ClassVar[Constraints] = {
        **SEARCH_CONSTRAINTS,
        "n_clusters": ["array-like", Interval(Integral, 1, None, closed="left"), Mapping, None],
        "alphas": [StrOptions({"auto"}), "array-like", Interval(Real, 0, None, closed="left")],
        "prices": [
            StrOptions({"auto"}),
            "array-like",
            Interval(Real, 0, None, closed="neither"),
            None,
        ],
        "n_nonzero": ["array-like", Interval(Integral, 1, None, closed="left"), None],
        "relax": ["array-like", Interval(Real, 0, 1, closed="right")],
        "criterion": [StrOptions({"cv", "bic", "ebic"})],
        "search_solver": [StrOptions({"auto", *RECIPES})],
    }

    @documented((ARGUMENTS,))
    @_fit_context(prefer_skip_nested_validation=True)
    @long_work
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> Any:
        """Choose a point of the grid and fit the model there.

        Returns
        -------
        estimator
            Itself.
        """
        design, targets = validate(self, X, y)
        divisible = LocalSamples if design.on_host else PlacedSamples
        samples = divisible(design, targets, sample_weight, attach_offset(design, offset))
        samples.design = self._settle(samples.design, samples.weights, samples.weight)
        folds: Folds[Any] = Folds([], 0.0)
        if self.criterion == "cv":
            folds = make_folds(
                self.cv,
                samples.y,
                samples.fold,
                kept=samples.kept,
                splitter=in_order_or_shuffled(samples.y, is_classifier(self), self.random_state),
                groups=check_groups(samples.n_rows, groups),
            )
        objective = samples.divide(folds.each, self)
        method = self._method(objective.shape)
        grid = self._grid(objective)
        # They complain before the work begins.
        constraints = grid.constraints(objective.shape[0], self._blocks()).values()
        rule = Rule(self.rule, share=COSTLY, ratio=folds.ratio)
        if self.criterion == "cv":
            refits = all(map(may_refit, constraints))
            plan = self._plan(grid, method, samples.response.loss, refits=refits)
            with one_thread():  # as in the fits, for the same bits everywhere
                works = samples.works(folds.each, plan)
            use = by_folds(works, plan, self.n_jobs, objective, rule)
        else:
            use = self._by_criterion(samples.weight, objective, grid, method)
        found = run_search(use, rule, self.max_iter)
        point = self._refit(objective, found, grid, method).solution.point
        if not objective.resolves(point):
            exact = feature_objective(samples.design, samples.response, 0.0)
            self._refit(exact, found, grid, method)
        self._tally(samples.all)
        self._follow(samples.design)
        self.has_offset_ = offset is not None
        return self

    def _grid(self, objective: Objective) -> Grid:
        """The points to try: numbers of groups, or for factors their prices; alphas; zeros."""
        factors = self.factors_
        if factors is None or self.prices is None or objective.shape[1] > 1:
            alphas = check_alphas(self.alphas, objective)
            grid = check_grid(self.n_clusters, alphas, self.n_nonzero, self.constraint)
            return grid if factors is None else grid.with_groups_for(len(factors.factors))
        return price_grid(self.prices, self.alphas, cast(FactorObjective, objective), factors)

    def _plan(self, grid: Grid, method: Method, fitted: Loss, *, refits: bool) -> Plan:
        """What is done on every fold; groups get other values only where these may be refitted."""
        model, classes = self._as_plain(), getattr(self, "classes_", None)
        fractions = check_values(
            "relax",
            self.relax,
            lambda value: isinstance(value, Real) and 0.0 < float(value) <= 1.0,
            "Give numbers above 0 and up to 1.",
        )
        relax = tuple(float(value) for value in fractions)
        if not refits:
            relax = (1.0,)  # values of groups have to stay as they are
        if isinstance(grid.n_clusters[0], Price):
            relax = (1.0,)  # alphas are tried one by one
        scoring = self.scoring
        if scoring is None:
            loss = loss_of(self)
            scoring = loss.class_scoring if is_classifier(self) else loss.scoring
        quiet = method.quietly(method.solver)
        return Plan(model, classes, fitted, grid, quiet, self.search_solver, relax, scoring, refits)

    def _by_criterion(
        self, n_samples: float, objective: Objective, grid: Grid, method: Method
    ) -> Use[SearchResult]:
        """Fit every point of the grid to all samples and score it by the negative criterion."""
        loss = loss_of(self)
        if self.rule != "best" or not loss.has_likelihood:
            raise ValueError(
                f"criterion={self.criterion!r} does not go with rule={self.rule!r} and "
                f"loss={self.loss!r}: it has no standard error, and needs a likelihood. "
                "Choose criterion='cv', or rule='best' and another loss."
            )
        quick = search_method(self.search_solver, method, objective, SHARP)

        def scored() -> Iterator[Scored]:
            for place, outcome in fit_grid(objective, grid, self._blocks(), quick, itself):
                price = bic(outcome, n_samples, loss, self.fit_intercept)
                if self.criterion == "ebic":
                    price += partition_price(outcome, self.factors_)
                yield Scored(place, -price, int(not outcome.status.converged))

        n_fits, shape, name = prod(grid.shape), (*grid.shape, 1, 1), f"neg_{self.criterion}"
        table = partial(table_of, grid, (1.0,), self.criterion, name)
        return Use("fits", n_fits, n_fits, shape, name, scored(), table)

    def _refit(
        self, objective: Objective, found: SearchResult, grid: Grid, method: Method
    ) -> FeatureOutcome:
        """Fit all data at the chosen point, by the full solver."""
        q, a, k = found.best_index
        counts = found.n_clusters[q : q + 1]
        if isinstance(counts[0], Price):  # from the same prices as on the folds
            counts = tuple(c for c in found.n_clusters if c.value >= counts[0].value)
        grid = replace(
            grid, n_clusters=counts, alphas=found.alphas[[a]], n_nonzero=(found.n_nonzero[k],)
        )
        labels: list[tuple[Any, Labels]] = []
        for (at, _, _), outcome in fit_grid(objective, grid, self._blocks(), method, itself):
            labels.append((grid.n_clusters[at], outcome.solution.labels))
        order = None
        if self.factors_ is not None and isinstance(counts[0], Price):
            order = order_of_entry(self.factors_.factor_names, self.factors_.grouped, labels)
        self.factor_order_ = order  # type: ignore[misc]
        free = isinstance(outcome.problem.constraint, Free)  # no groups whose values to relax
        self.relax_ = 1.0 if free else float(found.relax[found.best_index])
        self._set_outcome(relaxed(outcome, self.relax_))
        self._set_search(found)
        self.alpha_ = float(found.alphas[a])
        return outcome

    def _as_chosen(self) -> Self:
        """A copy with the number of groups, or the price, and of nonzero weights as chosen."""
        model, found = copy(self), self.cv_results_
        q, _, k = found.best_index
        count = found.n_clusters[q]
        priced = isinstance(count, Price)
        model.n_clusters = None if priced else count
        model.price = count.value if priced else None
        model.n_nonzero = found.n_nonzero[k]
        return model

    @property
    def _relaxed(self) -> float:  # type: ignore[override]
        """The fraction of the ridge that was chosen."""
        return self.relax_

    def _with_ridge(self, objective: Any, constraint: Any) -> Any:
        """The objective with the ridge that was chosen."""
        if self.price is not None and isinstance(self.alphas, str):  # multiples of these
            objective = with_strengths(objective, constraint)
        return objective.with_alpha(self.alpha_)

    def _as_plain(self) -> Any:
        """The same model without a search, which stands for a fit on a fold."""
        mine = self.get_params(deep=False)
        shared = {name: mine[name] for name in self._plain._get_param_names() if name in mine}
        plain = self._plain(**{**shared, "n_clusters": 1, "n_nonzero": None, "callback": None})
        learned = {"classes_", "_single", "factors_"} & vars(self).keys()  # of the samples
        vars(plain).update({name: vars(self)[name] for name in learned})
        return plain


# ---- Cross-validation.


def by_folds(
    works: Sequence[FoldWork], plan: Plan, n_jobs: int | None, objective: Objective, rule: Rule
) -> Use[SearchResult]:
    """Score every point of the grid, with every fraction of its alpha, on every fold."""
    shape, name = (*plan.shape, len(works)), name_of(plan.scoring)
    table = partial(table_of, plan.grid, plan.relax, "cv", name)
    if can_screen(works, plan, objective):
        exact = np.zeros(plan.grid.shape, dtype=bool)

        def choose(scores: Floats) -> Place:
            return choose_place(plan.grid, best_fractions(scores)[1], rule)

        scored = screened_scores(works, plan, n_jobs, choose, exact)
        table = partial(table, exact=exact)
    else:
        # Samples that cannot leave this process share passes over X instead.
        travel = all(work.travels for work in works)
        jobs = [partial(score_fold, work, plan) for work in works]
        scored = run_jobs(jobs, n_jobs, None if travel else objective.side_by_side)
    return Use("folds", len(works), prod(plan.grid.shape) * len(works), shape, name, scored, table)


def score_fold(work: FoldWork, plan: Plan) -> Scored:
    """Fit and score the grid on a fold."""
    plan = replace(plan, model=copy(plan.model))  # folds in threads must not share it
    objective = work.objective(plan)
    score, together = work.scorer(plan)
    method = search_method(plan.solver, plan.method, objective, QUICK_REFIT)
    scores, unconverged = np.empty(plan.shape), 0
    waiting: dict[Place, list[Solution]] = {}

    def settle() -> None:
        found = np.array(score([solution for mine in waiting.values() for solution in mine]))
        for place, mine in zip(waiting, found.reshape(len(waiting), -1), strict=True):
            scores[place] = mine
        waiting.clear()

    finish = partial(_fractions, plan.relax)
    fits = fit_grid(objective, plan.grid, plan.model._blocks(), method, finish)
    with counting("fits", prod(plan.grid.shape)) as count:
        for place, (solutions, converged) in fits:
            waiting[place] = [_without_slope(solution) for solution in solutions]
            unconverged += not converged
            if len(waiting) * len(plan.relax) >= together:
                settle()
            count.tick()
        if waiting:
            settle()
    return Scored((..., work.fold.number), scores, unconverged)


def _fractions(factors: Sequence[float], outcome: FeatureOutcome) -> tuple[list[Solution], bool]:
    """The solutions of a fit with fractions of its ridge, and whether it converged."""
    return relaxed_solutions(outcome, factors, QUICK_REFIT), outcome.status.converged


def _without_slope(solution: Solution) -> Solution:
    """A solution without its slope, which is as long as ``X`` and would stay in memory."""
    point = solution.point
    return Solution(Point(point.W, point.value, point.intercept, np.empty(0)), solution.labels)


def search_method(asked: str, method: Method, objective: Objective, precision: float) -> Method:
    """How fits are made that are only scored.

    "auto" is the solver of the final fit, unless that is one which spends much on the last bit of
    the objective: then projected gradient with few trials where they are cheap, and the greedy fit
    where they take a pass over ``X``, with values of the given precision.
    """
    if asked != "auto" or method.solver not in ("auto", "soft"):
        return method.quietly(method.solver if asked == "auto" else asked)
    if isinstance(objective, FactorObjective) and objective.shape[1] == 1:
        return method.quietly("bcd").within(FACTOR_TOL)
    if not isinstance(objective, QuadraticObjective):
        return replace(method.quietly("greedy"), options={"tol": precision})
    return replace(method.quietly("pg").within(QUICK_TOL), options=QUICK_STEPS)


# ---- Information criteria.


def bic(outcome: FeatureOutcome, n_samples: float, loss: Loss, fit_intercept: bool) -> float:
    """Bayesian information criterion of a fit; smaller is better.

    Values of groups and the intercept count as degrees of freedom; the loss has a likelihood.
    """
    point, objective = outcome.solution.point, outcome.problem.objective
    ridge = 0.5 * float(objective.penalties @ np.square(point.W).sum(axis=1))
    mean_loss = point.value - ridge
    mean_loss = max(mean_loss, 0.0) if loss.nonnegative else mean_loss
    n_outputs = point.W.shape[1]
    labels = outcome.solution.labels
    n_groups = np.unique(labels[labels >= 0]).size
    freedom = n_outputs * (n_groups + int(fit_intercept))
    fit = loss.minus_two_log_likelihood(mean_loss, n_samples, n_outputs)
    return fit + freedom * float(np.log(n_samples))


def partition_price(outcome: FeatureOutcome, factors: FactorColumns | None = None) -> float:
    """What the extended BIC adds: twice the logarithm of the number of partitions.

    There are about ``q^d / q!`` ways to put ``d`` features in ``q`` groups; features without weight
    are a group here. The levels of each factor are put in groups by themselves.
    """
    labels, price = outcome.solution.labels, 0.0
    blocks = np.zeros(labels.size, dtype=np.intp) if factors is None else factors.blocks
    for block in range(int(blocks.max()) + 1):
        mine = labels[blocks == block]
        n_groups = np.unique(mine).size
        price += max(0.0, 2.0 * float(mine.size * np.log(n_groups) - gammaln(n_groups + 1)))
    return price


# ---- The choice.


def table_of(
    grid: Grid,
    relax: tuple[float, ...],
    criterion: str,
    scoring: str,
    scores: Floats,
    rule: Rule,
    exact: NDArray[np.bool_] | None = None,
) -> SearchResult:
    """Scores with the best fraction at each point of the grid, and the point that a rule chooses.

    Scores have the shape (n_Q, n_alphas, n_k, n_relax, n_folds).
    """
    kept, fold_scores = best_fractions(scores)
    return SearchResult(
        n_clusters=grid.n_clusters,
        alphas=grid.alphas,
        n_nonzero=grid.n_nonzero,
        relax=np.asarray(relax)[kept],
        fold_scores=fold_scores,
        criterion=criterion,
        scoring=scoring,
        rule=rule.name,
        best_index=choose_place(grid, fold_scores, rule),
        exact=exact,
    )


def best_fractions(scores: Floats) -> tuple[Labels, Floats]:
    """The best fraction of the ridge at each point, and the scores of the folds with it."""
    kept = scores.mean(axis=-1).argmax(axis=-1)
    return kept, np.take_along_axis(scores, kept[..., None, None], axis=3)[..., 0, :]


def choose_place(grid: Grid, fold_scores: Floats, rule: Rule) -> Place:
    """The point that a rule chooses.

    The simplest have the fewest groups, then the fewest nonzero weights, then the largest alpha.
    """

    def complexity(place: tuple[int, ...]) -> tuple[float, float, float]:
        q, a, k = place
        return total(grid.n_clusters[q]), total(grid.n_nonzero[k]), -float(grid.alphas[a])

    places = sorted(np.ndindex(*fold_scores.shape[:-1]), key=complexity)
    scores = np.array([fold_scores[place] for place in places])
    # With fewer nonzero weights than groups, each has a value of its own.
    sizes = np.array([min(complexity(place)[:2]) for place in places])
    q, a, k = places[rule.choose(scores, sizes)]
    return q, a, k
