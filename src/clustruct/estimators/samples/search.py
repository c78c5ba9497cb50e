"""The search for the number of experts.

``"bic"`` and ``"icl"`` take the likelihood view: a mixture of regressions, with a price on its
parameters; each expert has noise of its own, and some samples may follow none. ``"bic+icl"`` asks
both, see `joint_values`. ``"cv"`` takes the paper's: the loss of the best prediction for samples
out of the fold. More experts are better even where there is nothing to find, so that this loss is
compared with what as many predictions achieve without experts: for numbers, the best offsets for
normal noise; for classes, the first choices of a single classifier.
"""

import warnings
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import KW_ONLY, replace
from functools import cache, partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.stats import norm
from sklearn.base import _fit_context, clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import StrOptions

from clustruct._docs import documented
from clustruct._progress import counting
from clustruct._typing import Floats, Indices
from clustruct.estimators.common import (
    SEARCH_CONSTRAINTS,
    Constraints,
    conclude,
    fields_are_parameters,
    long_work,
)
from clustruct.estimators.descriptions import ARGUMENTS
from clustruct.estimators.intake import Samples, check_weights, validate, weigh
from clustruct.estimators.offsets import attach_offset
from clustruct.estimators.samples.base import SampleCluster
from clustruct.estimators.search.engine import Scored, Use, check_counts, run_jobs, run_search
from clustruct.estimators.search.folds import (
    check_classes_of_fold,
    in_order_or_shuffled,
    make_folds,
)
from clustruct.estimators.search.rules import Rule
from clustruct.estimators.search.scoring import Scoring, model_scorer, name_of
from clustruct.kernels.kmeans import kmeans1d
from clustruct.losses import loss_of
from clustruct.objectives.samples.streamed import sample_objective
from clustruct.results import CountSelection
from clustruct.results.paired import standard_errors
from clustruct.solvers.experts import problem
from clustruct.solvers.experts.counting import count_criteria, joint_values

QUANTILES = 20_001
# Criteria of fits to all samples; the first two are measured, the last one is made of them.
INFORMATION = ("bic", "icl", "bic+icl")
# A difference of criteria that is not worth more than a bare mention (Kass and Raftery, 1995).
BARE_MENTION = 2.0


@documented((), (), (ARGUMENTS,))
@fields_are_parameters
class CountSearch(SampleCluster):
    """The search, for a model that could be fitted without it."""

    n_clusters: int | Sequence[int] = (1, 2, 3, 4, 5, 6, 7, 8)  # type: ignore[assignment]
    _: KW_ONLY
    criterion: str = "bic+icl"
    cv: Any = 5
    scoring: Scoring | None = None
    rule: str = "fewest"

    _plain: ClassVar[Any]
    _constraints: ClassVar[Constraints] = {
        **SEARCH_CONSTRAINTS,
        "criterion": [StrOptions({*INFORMATION, "cv"})],
    }

    @_fit_context(prefer_skip_nested_validation=False)
    @long_work
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> Any:
        """Fit experts, as many as the criterion chooses."""
        if self.criterion != "cv" and (self.rule == "one_se" or self.scoring is not None):
            raise ValueError(
                f"criterion={self.criterion!r} does not go with rule={self.rule!r} and "
                f"scoring={self.scoring!r:.80}: it has no standard error, and scores fits by "
                "itself. Choose criterion='cv', or rule='fewest' and scoring=None."
            )
        if self.criterion != "cv" and not loss_of(self).has_likelihood:
            raise ValueError(
                f"criterion={self.criterion!r} needs a likelihood, which loss={self.loss!r} does "
                "not have. Choose criterion='cv', or another loss."
            )
        seed = self._seed()
        design, targets = validate(self, X, y)
        given = attach_offset(design, offset)
        offset = given if design.on_host else offset
        sample, fitted = (X, y, sample_weight, offset), dict[int, Any]()
        if design.on_host:
            weights = np.ones(design.shape[0])
            if sample_weight is not None:
                weights = check_weights(design, sample_weight)[0]
            if self.criterion == "cv":
                use = self._by_folds(sample, weights, seed)
            else:
                use = self._by_criterion(sample, weights, seed, fitted)
            rule = Rule(self.rule, slack=BARE_MENTION)
            found = run_search(use, rule, self.max_iter)
        else:  # choose the number on samples drawn by weight
            drawn = draw_samples(weigh(design, targets, sample_weight, given), seed)
            few = clone(self).set_params(gate=None, random_state=seed, verbose=0, callback=None)
            found = few.fit(*drawn).selection_
        model = fitted.get(found.best)
        if model is None or self._has_gate():
            model = self._model(found.best, seed, gate=True).fit(*sample)
        for name, value in vars(model).items():  # take over what was fitted
            if name.endswith("_") or name.startswith("_"):
                setattr(self, name, value)
        if found.choices:
            told = f"{self.status_.message.removesuffix('.')}. {found.in_words}."
            self.status_ = replace(self.status_, message=told)
        if design.on_host:
            conclude(self.verbose, self.status_, self.certificate_)
        self.selection_ = found
        return self

    # Derived from `selection_`, which model files hold.

    @property
    def cv_results_(self) -> dict[str, Any]:
        """The scores of every number of experts, as scikit-learn's searches have them."""
        return self.selection_.as_cv_results()

    @property
    def best_index_(self) -> int:
        """Index of the number of experts that was chosen into the columns of `cv_results_`."""
        return self.selection_.best_index

    @property
    def best_params_(self) -> dict[str, int]:
        """The number of experts that was chosen."""
        return {"n_clusters": self.selection_.best}

    @property
    def best_score_(self) -> float:
        """The score of that number."""
        return 0.0 - float(self.selection_.values[self.best_index_])

    def _as_chosen(self) -> Self:
        """A copy with the number of experts that was chosen."""
        model = copy(self)
        model.n_clusters = self.selection_.best
        return model

    def _model(self, n_clusters: int, seed: int, *, gate: bool = False, **other: Any) -> Any:
        """The plain model with that many experts, and other parameters as given."""
        parameters = self.get_params(deep=False)
        settings = {name: parameters[name] for name in self._plain._get_param_names()}
        settings |= {"n_clusters": n_clusters, "random_state": seed, **other}
        settings["verbose"] = int(self.verbose) > 1
        if not gate:
            settings["gate"] = None
        elif hasattr(self.gate, "fit"):
            settings["gate"] = clone(self.gate)
        return self._plain(**settings)

    def _by_folds(self, sample: Any, weights: Floats, seed: int) -> Use[CountSelection]:
        """Score every number of experts on every fold."""
        X, y, _, offset = sample
        matrix: Any = X.tocsr() if sparse.issparse(X) else np.asarray(X)
        targets = np.asarray(y)
        kept = np.flatnonzero(weights > 0)
        classes = np.unique(targets[kept]) if is_classifier(self) else None

        def make(number: int, train: Indices, test: Indices) -> tuple[Indices, Indices]:
            check_classes_of_fold(classes, targets[kept[train]], number)
            return kept[train], kept[test]

        folds = make_folds(
            self.cv,
            targets[kept],
            make,
            kept=kept,
            splitter=in_order_or_shuffled(targets, is_classifier(self), None),
        )
        counts = self._counts([targets[rest] for rest, _ in folds.each])
        compared, scoring = self._compared, self.scoring
        # Predictions depend on the gate; the loss of the best expert does not.
        template = self._model(1, seed, gate=scoring is not None, callback=None, n_jobs=1)

        def score(number: int) -> Scored:
            """Scores, and losses of the best experts, of every number of them on a fold."""
            parts = matrix, targets, weights, offset
            rest, held = (
                [None if part is None else part[rows] for part in parts]
                for rows in folds.each[number]
            )
            fit = cache(lambda q: _fitted(clone(template).set_params(n_clusters=q), *rest))
            found = []
            with counting("fits", len(counts)) as count:
                for model in map(fit, counts):
                    if scoring is None:
                        mine = -compared(model, partial(fit, 1), *held)
                    else:
                        mine = model_scorer(scoring, *held[2:])(model, *held[:2])
                    found.append((mine, model.best_loss(*held)))
                    count.tick()
            unconverged = sum(not fit(count).status_.converged for count in counts)
            return Scored((..., number), np.array(found), unconverged)

        jobs = [partial(score, number) for number in range(len(folds.each))]
        name = "" if self.scoring is None else name_of(self.scoring)
        shape = len(counts), 2, len(jobs)
        table = partial(table_of, counts, "cv", name)
        scored, n_fits = run_jobs(jobs, self.n_jobs), len(counts) * len(jobs)
        first = (slice(None), 0)
        return Use("folds", len(jobs), n_fits, shape, name or "None", scored, table, first)

    def _by_criterion(
        self, sample: Any, weights: Floats, seed: int, fitted: dict[int, Any]
    ) -> Use[CountSelection]:
        """Fit every number of experts to all samples, score and keep the fitted models."""
        counts = self._counts([np.asarray(sample[1])[weights > 0]])
        in_order = self.callback is not None or int(self.verbose) > 1  # steps in an order
        n_jobs = 1 if in_order or len(counts) == 1 else self.n_jobs
        inner = self.n_jobs if n_jobs == 1 else 1
        models = [self._model(count, seed, n_jobs=inner) for count in counts]
        jobs = [partial(_priced, model, weights, *sample) for model in models]

        def scored() -> Iterator[Scored]:
            for model, prices, loss in run_jobs(jobs, n_jobs):
                fitted[model.n_clusters] = model
                place = (counts.index(model.n_clusters), slice(None), 0)
                stopped = self.callback is None and not model.status_.converged
                yield Scored(place, (-prices["bic"], -prices["icl"], loss), int(stopped))

        n_fits, shape = len(counts), (len(counts), 3, 1)
        table = partial(table_by_criterion, counts, self.criterion)
        first = (slice(None), int(self.criterion == "icl"))
        return Use("fits", n_fits, n_fits, shape, f"neg_{self.criterion}", scored(), table, first)

    def _counts(self, parts: list[NDArray[Any]]) -> list[int]:
        """The numbers to try that can be fitted to the samples of all these targets."""
        if is_classifier(self):
            most = max(1, min(np.unique(part).size for part in parts) - 1)
        else:
            most = min(len(part) for part in parts)
        possible = sorted({q for q in check_counts(self.n_clusters, "experts") if q <= most})
        if not possible:
            raise ValueError(
                f"n_clusters={self.n_clusters!r} holds no number that is possible for these "
                f"samples: at most {most} experts can be fitted. Give smaller numbers."
            )
        return possible


def table_by_criterion(
    counts: list[int], criterion: str, found: Floats, rule: Rule
) -> CountSelection:
    """The table of one information criterion, with the numbers that all of them would choose.

    BIC, ICL and losses have the shape (n_counts, 3, 1), the criteria with a minus; those of numbers
    that were not reached are NaN.
    """
    bic, icl, losses = (found[:, place, 0] for place in range(3))
    joint, there = np.full(bic.shape, np.nan), ~np.isnan(bic)
    joint[there] = -joint_values(
        np.array(counts, dtype=np.float64)[there], -bic[there], -icl[there]
    )
    tables = {
        name: table_of(counts, name, "", np.stack([scores, losses], axis=1)[:, :, None], rule)
        for name, scores in zip(INFORMATION, (bic, icl, joint), strict=True)
    }
    choices = {name: table.best for name, table in tables.items()}
    return replace(tables[criterion], choices=choices)


def table_of(
    counts: list[int], criterion: str, scoring: str, found: Floats, rule: Rule
) -> CountSelection:
    """The criterion, smaller is better, and the number that is chosen.

    Scores and losses have the shape (n_counts, 2, n_folds).
    """
    scores, losses = found[:, 0], found[:, 1].mean(axis=1)
    within_error = criterion == "cv" and rule.name == "fewest"
    folds, numbers = 0.0 - scores, np.array(counts, dtype=np.intp)
    chosen = (Rule("one_se") if within_error else rule).choose(scores, np.array(counts))
    values, errors = folds.mean(axis=1), standard_errors(folds)
    return CountSelection(
        criterion, numbers, values, errors, losses, counts[chosen], folds, rule.name, scoring
    )


def _fitted(model: Any, *sample: Any) -> Any:
    """Fit a model; those that did not converge are counted, and warned of once for all."""
    with warnings.catch_warnings():
        if model.callback is None:  # otherwise it may end the fit, which is no failure
            warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*sample)


def _priced(model: Any, weights: Floats, X: Any, y: Any, sample_weight: Any, offset: Any) -> Any:
    """A fitted model, its information criteria, and the loss of its best experts."""
    model = _fitted(model, X, y, sample_weight, offset)
    design, targets = validate(model, X, y, reset=False)
    given = attach_offset(design, offset)
    design, (targets, weights, *own) = design.only(
        weights > 0, targets, weights, *(() if given is None else (given,))
    )
    objective = model._objective_of(design, targets, *own)
    loss = float(np.average(objective.least_losses(model._W, model._b), weights=weights))
    objective = objective.subset(np.arange(weights.size), weights)
    response = objective.response
    objective = sample_objective(objective.design, response, objective.alpha)
    nothing = np.zeros((1, *objective.shape)), np.zeros((1, response.n_outputs))
    constant = float(response.shares @ objective.costs(*nothing)[:, 0])
    noise = response.loss.noise(response.n_outputs, constant)
    prices = count_criteria(objective, noise, model._W, model._b, float(weights.sum()))
    return model, prices, loss


def offset_loss(count: int) -> float:
    """Mean squared distance of a standard normal number to the nearest of its best offsets."""
    grid = norm.ppf((np.arange(QUANTILES) + 0.5) / QUANTILES)
    return float(kmeans1d.cluster_values(grid, None, count)[3]) / QUANTILES


def draw_samples(samples: Samples, seed: int) -> tuple[Any, NDArray[Any], Floats, Floats | None]:
    """Some samples on the host, drawn by weight: matrix, targets, how often each was drawn, offset.

    All of them, with their own weights, where they are few.
    """
    design, shares = samples.design, samples.design.place(samples.shares)
    if few := design.shape[0] <= problem.SETTINGS.subset:
        index = np.arange(design.shape[0])
    else:
        index, counts = problem.draw_rows(design, shares, seed)
    others = () if samples.offset is None else (samples.offset,)
    matrix, (own, targets, *offset) = design.fetch(index, shares, samples.targets, *others)
    weights = own * samples.total if few else counts
    return matrix, targets, weights, *(offset or [None])
