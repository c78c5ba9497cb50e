"""What regression and classification by several experts share."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from clustruct._typing import Floats, Labels
from clustruct.arrays import beside, count_true, look_up, namespace, to_host, totals_by_code
from clustruct.design import Design, LocalDesign, Rows, load
from clustruct.estimators.intake import (
    Samples,
    apply_model,
    beside_targets,
    mean_over_samples,
    names_of_features,
    validate,
    weigh,
)
from clustruct.estimators.options import check_options, conclude, watcher
from clustruct.estimators.samples.gate import Gate, fit_gate
from clustruct.losses import Loss
from clustruct.objectives.linear import Response
from clustruct.objectives.samples.objective import Panel, SampleObjective
from clustruct.objectives.samples.streamed import sample_objective
from clustruct.results import ExpertGroup, ExpertGroups, GateScore
from clustruct.solvers.driver import Budget
from clustruct.solvers.experts.problem import SampleProblem
from clustruct.solvers.experts.recipes import OPTIONS, RECIPES, panel_of, solve

__all__ = ["HostScore", "SampleCluster"]


class HostScore:
    """Scores by scikit-learn's metrics, on the host."""

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Coefficient of determination, or share of right predictions, of `predict`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        float
            At most 1.
        """
        model: Any = self
        metric = accuracy_score if is_classifier(model) else r2_score
        predicted = load(model.predict(X))
        return float(metric(load(y), predicted, sample_weight=load(sample_weight)))


class SampleCluster(BaseEstimator, ABC):
    """What regression and classification share."""

    experts_: Any
    intercepts_: Any
    labels_: Any

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "gate": ["boolean", HasMethods(["fit", "predict_proba"]), None],
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

    @abstractmethod
    def _respond(self, samples: Samples) -> Response:
        """Target, loss and weights of samples to fit."""

    @abstractmethod
    def _target(self, targets: NDArray[Any]) -> tuple[Any, Loss, int]:
        """Targets as a loss takes them, the loss, and the number of outputs."""

    @abstractmethod
    def _set_experts(self, place: Callable[[Floats], Any]) -> None:
        """Weights and intercepts as users get them, brought where they are by a function."""

    @abstractmethod
    def _blended_loss(self, response: Response, scores: Floats, weights: Floats) -> Floats:
        """Loss of the predictions, weighted over the experts."""

    def _fit_samples(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Solve where the samples are and set the attributes."""
        design, targets = validate(self, X, y)
        if self._has_gate() and not (design.on_host or design.streamed):
            raise ValueError(
                f"gate={self.gate!r} is a classifier of the host, and would need a copy of X there "
                "to predict. Leave the gate out, or pass NumPy arrays."
            )
        samples = weigh(design, targets, sample_weight)
        problem, panel = self._solve(samples.design, self._respond(samples), samples.total)
        if self._has_gate():
            self._set_gate(problem, panel)
        self.labels_ = design.hand_out(
            self._labels_of_all(design, targets) if design.on_host else panel.labels
        )

    def _labels_of_all(self, design: Design, targets: Rows) -> Rows:
        """The expert of each sample, also of those without weight, which had no part in the fit."""
        return self._best_experts(design, targets)

    def _solve(
        self, design: Design, response: Response, total: float
    ) -> tuple[SampleProblem, Panel]:
        """Solve and set all attributes but labels and gate; the experts in their final order."""
        n_weighed = int(design.fold(lambda s: count_true(s > 0.0), response.shares))
        if self.n_clusters > n_weighed:
            raise ValueError(
                f"n_clusters={self.n_clusters} is more than n_samples={n_weighed} (of positive "
                "weight). Give fewer experts, or more samples."
            )
        if self.solver == "cg" and not (response.loss.quadratic and self.alpha > 0):
            raise ValueError(
                "solver='cg' works with squared loss and a positive alpha only. "
                "Choose solver='auto', or loss='squared' and alpha > 0."
            )
        relevance = (self.solver_options or {}).get("relevance")
        if relevance is True and not response.loss.quadratic:
            raise ValueError(
                "solver_options={'relevance': True} works with squared loss only. "
                "Leave it out, or choose loss='squared'."
            )
        problem = SampleProblem(
            objective=sample_objective(design, response, float(self.alpha)),
            n_clusters=int(self.n_clusters),
            budget=Budget(self.max_iter, self.tol, watcher(self.verbose, self.callback)),
            n_starts=None if self.n_init == "auto" else self.n_init,
            seed=int(check_random_state(self.random_state).randint(2**31)),
            total=total,
            n_jobs=self.n_jobs if self.callback is None else 1,  # steps in an order
            options=check_options(self.solver, self.solver_options, OPTIONS),
        )
        outcome = solve(problem, self.solver)
        panel, self._weights = _by_weight(panel_of(outcome.solution), problem.objective)
        self._W, self._b = panel.W, panel.intercept
        self._gate: Gate | None = None
        self._set_experts(design.weights)
        self.weights_ = design.weights(self._weights)
        self.n_clusters_ = panel.W.shape[0]
        self.objective_ = panel.value
        self.certificate_ = outcome.certificate
        self.status_ = outcome.status
        self.n_iter_ = outcome.status.n_iter
        self.trace_ = outcome.trace
        conclude(self.verbose, self.status_, self.certificate_)
        return problem, panel

    def _has_gate(self) -> bool:
        return self.gate is not None and self.gate is not False

    def _set_gate(self, problem: SampleProblem, panel: Panel) -> None:
        """Fit the gate on the host, and see what it is worth on samples that it has not seen."""
        if not problem.objective.design.on_host:
            problem = problem.at_hand()
            panel = problem.objective.judged(self._W, self._b)
        objective = problem.objective
        self._gate, weights = fit_gate(
            self.gate, objective, panel, self._weights, problem.total, problem.seed
        )
        self.gate_ = self._gate.classifier
        response = objective.response
        scores = objective.scores(self._W, self._b)
        constant = np.tile(self._weights, (scores.shape[0], 1))

        def loss(mine: Floats) -> float:
            return float(response.shares @ self._blended_loss(response, scores, mine))

        ridge = 0.5 * self.alpha * np.square(self._W).sum(axis=(1, 2))
        best = panel.least - ridge[panel.choices]
        self.gate_score_ = GateScore(
            gated=loss(weights),
            constant=loss(constant),
            best=float(response.shares @ best),
            sharpness=self._gate.sharpness,
        )

    def _expert_weights(self, design: LocalDesign, scores: Rows) -> Rows:
        """Weights of the experts for each sample, ``n x Q``, beside its scores."""
        if self._gate is not None:
            return self._gate.weights(design.matrix())
        return namespace(scores).broadcast_to(beside(self._weights, scores), scores.shape[:2])

    def _scores(self, design: Design) -> Rows:
        """Scores of every expert, ``n x Q x K``."""
        n_experts, d, n_outputs = self._W.shape
        scores = design.scores(self._W.transpose(1, 0, 2).reshape(d, -1))
        shape = (design.shape[0], n_experts, n_outputs)
        return namespace(scores).reshape(scores, shape) + beside(self._b, scores)

    def _objective_on(self, X: ArrayLike, y: ArrayLike) -> SampleObjective:
        """The objective of other samples, of equal weight."""
        check_is_fitted(self)
        return self._objective_of(*validate(self, X, y, reset=False))

    def _objective_of(self, design: Design, y: NDArray[Any]) -> SampleObjective:
        """The same for what has been validated."""
        target, loss, n_outputs = self._target(y)
        shares = np.full(design.shape[0], 1.0 / design.shape[0])
        response = Response(
            design.place(target), loss, n_outputs, design.place(shares), self.fit_intercept
        )
        return SampleObjective(design, response, float(self.alpha))

    def _best_experts(self, design: Design, y: NDArray[Any]) -> Rows:
        """The expert with the least loss plus ridge for each sample."""
        return self._objective_of(design, y).judged(self._W, self._b).choices

    def _best_losses(self, design: Design, y: NDArray[Any]) -> Rows:
        """The least loss of each sample."""
        return self._objective_of(design, y).least_losses(self._W, self._b)

    def _of_samples(self, function: Any, X: Any, y: Any, dtype: Any = np.float64) -> Rows:
        """A number for each sample and its target, lazily for Dask."""
        check_is_fitted(self)
        return apply_model(self, function, X, None, dtype, beside_targets(self, y))

    def assign(self, X: ArrayLike, y: ArrayLike) -> Labels:
        """The expert of each sample: the one whose loss plus ridge is least, as in `fit`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their targets.

        Returns
        -------
        ndarray of shape (n_samples,)
            Numbers of the experts; for Dask collections, to be computed when asked for.
        """
        labels: Labels = self._of_samples(self._best_experts, X, y, np.intp)
        return labels

    def best_loss(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Mean loss of the best expert of each sample, the paper's equation in section 6.1.1.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        float
            Half the mean squared residual, for the squared loss.
        """
        return mean_over_samples(self._of_samples(self._best_losses, X, y), sample_weight)

    def clusters(self) -> ExpertGroups:
        """The experts as a table: share, size, intercept and weights of each.

        Returns
        -------
        ExpertGroups
            A list of `ExpertGroup`, that with the most samples first.
            ``pandas.DataFrame(model.clusters())`` makes a data frame of it.
        """
        check_is_fitted(self)
        names = tuple(str(name) for name in names_of_features(self))
        coefs, intercepts = to_host(self.experts_), to_host(self.intercepts_)
        sizes = np.bincount(load(self.labels_), minlength=self.n_clusters_)
        experts = (
            ExpertGroup(
                label=q,
                share=float(self._weights[q]),
                size=int(sizes[q]),
                intercept=intercepts[q].copy() if intercepts.ndim > 1 else float(intercepts[q]),
                coef=coefs[q].copy(),
                features=names,
            )
            for q in range(self.n_clusters_)
        )
        return ExpertGroups(experts, map(str, getattr(self, "classes_", ())))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _by_weight(panel: Panel, objective: SampleObjective) -> tuple[Panel, Floats]:
    """The same experts, those with the most samples first, and their shares of the weight.

    Equal ones are in the order of their weights.
    """
    design, n_experts = objective.design, panel.W.shape[0]
    by_label = partial(totals_by_code, n_codes=n_experts)
    totals = design.fold(by_label, panel.labels, objective.response.shares)
    flat = panel.W.reshape(n_experts, -1)
    order = np.lexsort((*flat.T[::-1], -totals))
    renumber = partial(look_up, np.argsort(order))
    ordered = replace(
        panel,
        W=panel.W[order],
        intercept=panel.intercept[order],
        labels=design.map(renumber, panel.labels),
        choices=design.map(renumber, panel.choices),
        demand=panel.demand[order],
    )
    return ordered, np.asarray(totals[order], dtype=np.float64)
