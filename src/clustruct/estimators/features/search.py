"""The search for the number of groups and the ridge, for a model that could do without it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.utils._param_validation import Interval, StrOptions

from clustruct._typing import Indices
from clustruct.estimators.features.base import FeatureCluster
from clustruct.estimators.features.cross_validation import cross_validate, search_method
from clustruct.estimators.features.grid import (
    Grid,
    Method,
    check_alphas,
    check_grid,
    fit_grid,
    itself,
    warn_of_unconverged,
)
from clustruct.estimators.features.plan import Plan
from clustruct.estimators.features.selection import bic, partition_price, select
from clustruct.estimators.intake import check_groups, validate
from clustruct.estimators.options import conclude, counter, watcher
from clustruct.estimators.search.fold_local import LocalSamples
from clustruct.estimators.search.fold_placed import PlacedSamples
from clustruct.estimators.search.folds import Divided, make_folds
from clustruct.grouping.constraints import Free
from clustruct.losses import loss_of
from clustruct.objectives.features.objective import FeatureObjective
from clustruct.objectives.quadratic import QuadraticObjective
from clustruct.results import SearchResult
from clustruct.solvers.features import RECIPES, relaxed
from clustruct.solvers.protocols import may_refit

__all__ = ["Search", "constraints_of"]


_SEARCH_CONSTRAINTS: Mapping[str, list[Any]] = {
    "n_clusters": ["array-like", Interval(Integral, 1, None, closed="left"), Mapping, None],
    "alphas": [StrOptions({"auto"}), "array-like", Interval(Real, 0, None, closed="left")],
    "n_nonzero": ["array-like", Interval(Integral, 1, None, closed="left"), None],
    "relax": ["array-like", Interval(Real, 0, 1, closed="right")],
    "cv": ["cv_object"],
    "scoring": [str, callable, None],
    "rule": [StrOptions({"best", "fewest", "one_se"})],
    "criterion": [StrOptions({"cv", "bic", "ebic"})],
    "search_solver": [StrOptions({"auto", *RECIPES})],
    "n_jobs": [Integral, None],
}


def constraints_of(plain: Any) -> dict[str, list[Any]]:
    """What parameters may be, for a model and a search."""
    inherited = dict(plain._parameter_constraints)
    del inherited["alpha"]
    return {**inherited, **_SEARCH_CONSTRAINTS}


class Search(FeatureCluster):
    """The search, for a model that could be fitted without it."""

    _plain: ClassVar[Any]

    def _fit_search(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, groups: ArrayLike | None
    ) -> None:
        """Choose a point of the grid, and fit there."""
        design, targets = validate(self, X, y)
        divisible = LocalSamples if design.on_host else PlacedSamples
        samples = divisible(design, targets, sample_weight)
        folds, ratio = self._make_folds(samples, groups) if self.criterion == "cv" else ([], 0.0)
        divided = samples.divide(folds, self)
        objective = divided.objective
        method = self._method(objective.shape)
        alphas = check_alphas(self.alphas, objective)
        grid = check_grid(self.n_clusters, alphas, self.n_nonzero, self.constraint)
        grid.constraints(objective.shape[0], self.blocks)  # complains before the work begins
        if self.criterion != "cv":
            found = self._search_by_bic(samples.weight, objective, grid, method)
        else:
            found = self._search_by_folds(divided, grid, method, ratio)
        self._refit(objective, found, method)
        self._follow(samples.design)

    def _make_folds(
        self, samples: LocalSamples | PlacedSamples, groups: ArrayLike | None
    ) -> tuple[list[Any], float]:
        """The folds, and how many samples they hold out for each that they fit."""
        ratios = []

        def make(number: int, train: Indices, test: Indices) -> Any:
            ratios.append(len(test) / max(1, len(train)))
            return samples.fold(number, train, test)

        folds = make_folds(
            self.cv,
            samples.y,
            check_groups(samples.n_rows, groups),
            samples.kept,
            make,
            classifier=is_classifier(self),
            random_state=self.random_state,
        )
        return folds, float(np.mean(ratios))

    def _search_by_folds(
        self, divided: Divided, grid: Grid, method: Method, ratio: float
    ) -> SearchResult:
        classes = getattr(self, "classes_", None)
        relax = _check_relax(self.relax)
        if self.constraint is not None and not may_refit(self.constraint):
            relax = (1.0,)  # values of groups have to stay as they are
        scoring = self.scoring
        if scoring is None:
            loss = loss_of(self)
            scoring = loss.class_scoring if is_classifier(self) else loss.scoring
        quiet = method.quietly(method.solver)
        plan = Plan(self._as_plain(), classes, grid, quiet, self.search_solver, relax, scoring)
        scores, unconverged = cross_validate(divided, plan, self.n_jobs, self.verbose)
        warn_of_unconverged(unconverged, scores[..., 0, :].size, self.max_iter)
        name = scoring if isinstance(scoring, str) else getattr(scoring, "__name__", repr(scoring))
        return select(
            grid, scores, relax, rule=self.rule, criterion="cv", scoring=name, ratio=ratio
        )

    def _search_by_bic(
        self,
        n_samples: float,
        objective: QuadraticObjective | FeatureObjective,
        grid: Grid,
        method: Method,
    ) -> SearchResult:
        loss = loss_of(self)
        if self.rule != "best" or not loss.has_likelihood:
            raise ValueError(
                f"criterion={self.criterion!r} does not go with rule={self.rule!r} and "
                f"loss={self.loss!r}: it has no standard error, and needs a likelihood. "
                "Choose criterion='cv', or rule='best' and another loss."
            )
        quick = search_method(self.search_solver, method, objective)
        scores = np.empty((*grid.shape, 1, 1))
        unconverged = 0
        tell = counter(self.verbose, "fit", scores.size)
        for place, outcome in fit_grid(objective, grid, self.blocks, quick, itself):
            price = bic(outcome, n_samples, loss, self.fit_intercept)
            if self.criterion == "ebic":
                price += partition_price(outcome)
            scores[place] = -price
            unconverged += not outcome.status.converged
            tell()
        warn_of_unconverged(unconverged, scores.size, self.max_iter)
        return select(
            grid,
            scores,
            (1.0,),
            rule="best",
            criterion=self.criterion,
            scoring=f"neg_{self.criterion}",
        )

    def _refit(
        self,
        objective: QuadraticObjective | FeatureObjective,
        found: SearchResult,
        method: Method,
    ) -> None:
        """Fit all data at the chosen point, by the full solver."""
        q, a, k = found.best_index
        grid = Grid(
            (found.n_clusters[q],), found.alphas[[a]], (found.n_nonzero[k],), self.constraint
        )
        watch = watcher(int(self.verbose) > 1, self.callback)
        method = replace(method, budget=replace(method.budget, monitor=watch))
        ((_, outcome),) = fit_grid(objective, grid, self.blocks, method, itself)
        free = isinstance(outcome.problem.constraint, Free)  # no groups whose values to relax
        self.relax_ = 1.0 if free else float(found.relax[found.best_index])
        self._set_outcome(relaxed(outcome, self.relax_))
        self.cv_results_ = found
        self.alpha_ = float(found.alphas[a])
        self.best_score_ = float(found.mean_scores[found.best_index])
        self.best_params_ = found.points()[found.flat_index]
        conclude(self.verbose, self.status_, self.certificate_)

    @property
    def best_index_(self) -> int:
        """Index of the point chosen into the columns of `cv_results_`."""
        return self.cv_results_.flat_index

    def _as_plain(self) -> Any:
        """The same model without a search, which stands for a fit on a fold."""
        mine = self.get_params(deep=False)
        shared = {name: mine[name] for name in self._plain._get_param_names() if name in mine}
        return self._plain(**{**shared, "n_clusters": 1, "n_nonzero": None, "callback": None})


def _check_relax(relax: float | Sequence[float] | NDArray[Any]) -> tuple[float, ...]:
    """Fractions of alpha."""
    values = np.asarray(relax, dtype=object).reshape(-1)
    if not values.size:
        raise ValueError("relax is empty. Give at least one number, such as 1.0.")
    for value in values:
        if not isinstance(value, Real) or not 0.0 < float(value) <= 1.0:
            raise ValueError(f"relax holds {value!r}. Give numbers above 0 and up to 1.")
    return tuple(float(value) for value in values)
