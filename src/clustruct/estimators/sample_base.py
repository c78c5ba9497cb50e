"""What regression and classification by several experts share."""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from clustruct.design import as_design
from clustruct.estimators.gate import Gate, fit_gate
from clustruct.estimators.inputs import (
    check_options,
    conclude,
    watcher,
)
from clustruct.objectives.linear import Response
from clustruct.objectives.samples import Panel, SampleObjective
from clustruct.results import GateScore
from clustruct.solvers.driver import Budget
from clustruct.solvers.samples import OPTIONS, RECIPES, SampleProblem, panel_of, solve

__all__ = ["SampleCluster"]

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]


class SampleCluster(BaseEstimator):
    """What regression and classification share."""

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

    def _fit_response(self, X: Any, response: Response, total: float) -> None:
        """Solve for a validated matrix and set the attributes."""
        if self.n_clusters > X.shape[0]:
            raise ValueError(
                f"n_clusters={self.n_clusters} is more than n_samples={X.shape[0]} (of positive "
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
        objective = SampleObjective(as_design(X), response, float(self.alpha))
        seed = int(check_random_state(self.random_state).randint(2**31))
        problem = SampleProblem(
            objective=objective,
            n_clusters=int(self.n_clusters),
            budget=Budget(self.max_iter, self.tol, watcher(self.verbose, self.callback)),
            n_starts=None if self.n_init == "auto" else self.n_init,
            seed=seed,
            total=total,
            n_jobs=self.n_jobs if self.callback is None else 1,  # steps in an order
            options=check_options(self.solver, self.solver_options, OPTIONS),
        )
        outcome = solve(problem, self.solver)
        panel = _by_weight(panel_of(outcome.answer), response.shares)
        self._W, self._b = panel.W, panel.intercept
        self.weights_: Floats = np.bincount(panel.labels, response.shares).astype(np.float64)
        self.n_clusters_ = panel.W.shape[0]
        self.objective_ = panel.value
        self.certificate_ = outcome.certificate
        self.status_ = outcome.status
        self.n_iter_ = outcome.status.n_iter
        self.trace_ = outcome.trace
        conclude(self.verbose, self.status_, self.certificate_)
        self._set_experts()
        self._set_gate(X, objective, panel, total, seed)

    def _set_gate(
        self, X: Any, objective: SampleObjective, panel: Panel, total: float, seed: int
    ) -> None:
        """Fit the gate, and see what it is worth on samples that it has not seen."""
        self._gate: Gate | None = None
        if self.gate is None or self.gate is False:
            return
        self._gate, weights = fit_gate(self.gate, X, objective, panel, total, seed)
        self.gate_ = self._gate.classifier
        response = objective.response
        scores = objective.scores(self._W, self._b)
        constant = np.tile(self.weights_, (scores.shape[0], 1))

        def loss(mine: Floats) -> float:
            return float(response.shares @ self._answer_loss(response, scores, mine))

        ridge = 0.5 * self.alpha * np.square(self._W).sum(axis=(1, 2))
        best = panel.least - ridge[panel.choices]
        self.gate_score_ = GateScore(
            gated=loss(weights),
            constant=loss(constant),
            best=float(response.shares @ best),
            sharpness=self._gate.sharpness,
        )

    def _expert_weights(self, X: Any) -> Floats:
        """Weights of the experts for each sample, ``n x Q``."""
        if self._gate is None:
            return np.tile(self.weights_, (X.shape[0], 1))
        return self._gate.weights(X)

    def _scores(self, X: Any) -> Floats:
        """Scores of every expert, ``n x Q x K``."""
        d, n_outputs = self._W.shape[1:]
        stacked = self._W.transpose(1, 0, 2).reshape(d, -1)
        return as_design(X).scores(stacked).reshape(X.shape[0], -1, n_outputs) + self._b

    def _objective_on(self, X: ArrayLike, y: ArrayLike) -> SampleObjective:
        """The objective of other samples, of equal weight."""
        check_is_fitted(self)
        return self._objective_of(*validate_data(self, X, y, reset=False, **self._checks()))

    def _objective_of(self, X: Any, y: NDArray[Any]) -> SampleObjective:
        """The same for what has been validated."""
        target, loss, n_outputs = self._target(y)
        shares = np.full(X.shape[0], 1.0 / X.shape[0])
        response = Response(target, loss, n_outputs, shares, self.fit_intercept)
        return SampleObjective(as_design(X), response, float(self.alpha))

    def _best_experts(self, X: Any, y: NDArray[Any]) -> Labels:
        """The expert with the least loss plus ridge for each sample."""
        return self._objective_of(X, y).costs(self._W, self._b).argmin(axis=1)

    def assign(self, X: ArrayLike, y: ArrayLike) -> Labels:
        """The expert of each sample: the one whose loss plus ridge is least, as in `fit`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their answers.

        Returns
        -------
        ndarray of shape (n_samples,)
            Numbers of the experts.
        """
        return self._objective_on(X, y).costs(self._W, self._b).argmin(axis=1)

    def best_loss(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Mean loss of the best expert of each sample, the paper's equation in section 6.1.1.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their answers.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        float
            Half the mean squared residual, for the squared loss.
        """
        objective = self._objective_on(X, y)
        scores = objective.scores(self._W, self._b)
        response = objective.response
        losses = [response.loss.value(response.target, mine) for mine in scores.transpose(1, 0, 2)]
        weights = _check_sample_weight(sample_weight, scores, dtype=np.float64)
        return float(np.average(np.min(losses, axis=0), weights=weights))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _by_weight(panel: Panel, shares: Floats) -> Panel:
    """The same experts, those with the most samples first; equal ones in the order of weights."""
    totals = np.bincount(panel.labels, shares, minlength=panel.W.shape[0])
    flat = panel.W.reshape(panel.W.shape[0], -1)
    order = np.lexsort((*flat.T[::-1], -totals))
    ranks = np.argsort(order)
    return Panel(
        panel.W[order],
        panel.value,
        panel.intercept[order],
        panel.slope,
        ranks[panel.labels],
        ranks[panel.choices],
        panel.least,
    )
