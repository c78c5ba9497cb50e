"""What regression and classification by several experts share."""

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.validation import check_is_fitted

from clustruct._docs import documented
from clustruct._typing import Floats, Labels
from clustruct.arrays import beside, count_true, look_up, namespace, to_host, totals_by_code
from clustruct.design import Design, LocalDesign, Rows, load
from clustruct.estimators import intake
from clustruct.estimators.common import (
    ClusterModel,
    Constraints,
    ScoredPredictions,
    fields_are_parameters,
    long_work,
)
from clustruct.estimators.descriptions import ARGUMENTS
from clustruct.estimators.offsets import attach_offset, beside_offset, shifted, with_offsets
from clustruct.estimators.samples.gate import Gate, fit_gate
from clustruct.losses import Loss
from clustruct.objectives.linear import Response
from clustruct.objectives.samples.objective import Panel, SampleObjective
from clustruct.objectives.samples.streamed import sample_objective
from clustruct.results import ExpertGroup, ExpertGroups, GateScore
from clustruct.solvers.driver import Outcome
from clustruct.solvers.experts.problem import SampleProblem
from clustruct.solvers.experts.recipes import OPTIONS, RECIPES, panel_of, solve

# Sums of weights up to this can be multiplied with sums of squares.
MOST_SAMPLES = 1e100


@documented((), (), (ARGUMENTS,))
@fields_are_parameters
class SampleCluster(ScoredPredictions, ClusterModel, ABC):
    """What regression and classification share."""

    _: KW_ONLY
    alpha: float = 1e-3
    gate: Any = None

    _single = False  # whether experts have weights for one target, and not for a list of outputs
    _constraints: ClassVar[Constraints] = {
        "gate": ["boolean", HasMethods(["fit", "predict_proba"]), None],
        "solver": [StrOptions(set(RECIPES))],
    }

    @abstractmethod
    def _respond(self, samples: intake.Samples) -> Response:
        """Target, loss and weights of samples to fit."""

    @abstractmethod
    def _target(self, targets: NDArray[Any]) -> tuple[Any, Loss, int]:
        """Targets as a loss takes them, the loss, and the number of outputs."""

    @abstractmethod
    def _blended_loss(self, response: Response, scores: Floats, weights: Floats) -> Floats:
        """Loss of the predictions, weighted over the experts."""

    @_fit_context(prefer_skip_nested_validation=False)
    @long_work
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> Any:
        """Fit the experts, where the samples are."""
        design, targets = intake.validate(self, X, y)
        given = attach_offset(design, offset)
        if self._has_gate() and not (design.on_host or design.streamed):
            raise ValueError(
                f"gate={self.gate!r} is a classifier of the host, and would need a copy of X there "
                "to predict. Leave the gate out, or pass NumPy arrays."
            )
        samples = intake.weigh(design, targets, sample_weight, given)
        problem, panel = self._solve(samples.design, self._respond(samples), samples.total)
        if self._has_gate():
            self._set_gate(problem, panel)
        self.labels_ = design.hand_out(
            self._labels_of_all(design, targets, given) if design.on_host else panel.labels
        )
        self.has_offset_ = offset is not None
        return self

    def _labels_of_all(self, design: Design, targets: Rows, offset: Rows | None) -> Rows:
        """The expert of each sample, also of those without weight, which had no part in the fit."""
        return self._best_experts(design, targets, offset)

    def _solve(
        self, design: Design, response: Response, total: float
    ) -> tuple[SampleProblem, Panel]:
        """Solve and set all attributes but labels and gate; the experts in their final order."""
        problem = self._problem(design, response, total)
        return problem, self._set_experts(problem, solve(problem, self.solver))

    def _problem(self, design: Design, response: Response, total: float) -> SampleProblem:
        """The problem of some samples."""
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
        if total > MOST_SAMPLES:
            raise ValueError(
                f"sample_weight adds up to {total:.3g}, and likelihoods count weights as samples. "
                "Divide all weights by the largest."
            )
        return SampleProblem(
            objective=sample_objective(design, response, float(self.alpha)),
            n_clusters=int(self.n_clusters),
            total=total,
            n_jobs=self._n_jobs(),
            **self._solving(OPTIONS),
        )

    def _set_experts(self, problem: SampleProblem, outcome: Outcome) -> Panel:
        """Set all attributes but labels and gate; returns the experts in their final order."""
        design = problem.objective.design
        panel, self._weights = _by_weight(panel_of(outcome.solution), problem.objective)
        self._W, self._b = panel.W, panel.intercept
        self._gate: Gate | None = None
        experts = self._W[:, :, 0] if self._single else self._W.transpose(0, 2, 1)
        self.experts_ = design.weights(experts)
        self.intercepts_ = design.weights(self._b[:, 0] if self._single else self._b)
        self.weights_ = design.weights(self._weights)
        self.n_clusters_ = panel.W.shape[0]
        self.objective_ = panel.value
        self._set_outcome(outcome)
        return panel

    def _has_gate(self) -> bool:
        return self.gate is not None and self.gate is not False

    def _set_gate(self, problem: SampleProblem, panel: Panel) -> None:
        """Fit the gate on the host, and see what it is worth on samples that it has not seen."""
        if not problem.objective.design.on_host:
            problem = problem.at_hand()
            panel = problem.objective.judged(self._W, self._b)
        objective = problem.objective
        self._gate, weights = fit_gate(self.gate, problem, panel, self._weights)
        self.gate_ = self._gate.classifier
        response = objective.response
        scores = objective.scores(self._W, self._b)
        constant = np.tile(self._weights, (scores.shape[0], 1))

        def loss(mine: Floats) -> float:
            return float(response.shares @ self._blended_loss(response, scores, mine))

        ridge = 0.5 * self.alpha * np.square(self._W).sum(axis=(1, 2))
        best = float(response.shares @ (panel.least - ridge[panel.choices]))
        self.gate_score_ = GateScore(loss(weights), loss(constant), best, self._gate.sharpness)

    def _expert_weights(self, design: LocalDesign, scores: Rows) -> Rows:
        """Weights of the experts for each sample, ``n x Q``, beside its scores."""
        if self._gate is not None:
            return self._gate.weights(design.matrix())
        return namespace(scores).broadcast_to(beside(self._weights, scores), scores.shape[:2])

    def _scores(self, design: Design, offset: Floats | None = None) -> Rows:
        """Scores of every expert, ``n x Q x K``, with the offset of each sample if there is one."""
        n_experts, d, n_outputs = self._W.shape
        scores = design.scores(self._W.transpose(1, 0, 2).reshape(d, -1))
        shape = (design.shape[0], n_experts, n_outputs)
        scores = namespace(scores).reshape(scores, shape) + beside(self._b, scores)
        return shifted(scores, offset)

    def _objective_of(
        self, design: Design, y: NDArray[Any], offset: Rows | None = None
    ) -> SampleObjective:
        """The objective of validated samples of equal weight."""
        target, loss, n_outputs = self._target(y)
        target, loss = with_offsets(design, target, loss, n_outputs, offset)
        shares = np.full(design.shape[0], 1.0 / design.shape[0])
        response = Response(
            design.place(target), loss, n_outputs, design.place(shares), self.fit_intercept
        )
        return SampleObjective(design, response, float(self.alpha))

    def _best_experts(self, design: Design, y: NDArray[Any], offset: Rows | None = None) -> Rows:
        """The expert with the least loss plus ridge for each sample."""
        return self._objective_of(design, y, offset).judged(self._W, self._b).choices

    def _best_losses(self, design: Design, y: NDArray[Any], offset: Rows | None = None) -> Rows:
        """The least loss of each sample."""
        return self._objective_of(design, y, offset).least_losses(self._W, self._b)

    def _of_samples(
        self, function: Any, X: Any, y: Any, offset: Any, dtype: Any = np.float64
    ) -> Any:
        """A number for each sample, its target and its offset, lazily for Dask."""
        check_is_fitted(self)
        rows = intake.beside_targets(self, y), *beside_offset(offset)
        return intake.apply_model(self, function, X, None, dtype, rows)

    def assign(self, X: ArrayLike, y: ArrayLike, offset: ArrayLike | None = None) -> Labels:
        """The expert of each sample: the one whose loss plus ridge is least, as in `fit`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Numbers of the experts, lazily for Dask.
        """
        return self._of_samples(self._best_experts, X, y, offset, np.intp)

    def best_loss(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> float:
        """Mean loss of the best expert of each sample, the paper's equation in section 6.1.1.

        Returns
        -------
        float
            Half the mean squared residual, for the squared loss.
        """
        losses = self._of_samples(self._best_losses, X, y, offset)
        return intake.mean_over_samples(losses, sample_weight)

    def clusters(self) -> ExpertGroups:
        """The experts as a table: share, size, intercept and weights of each.

        Returns
        -------
        ExpertGroups
            A list of `ExpertGroup`, that with the most samples first.
            ``pandas.DataFrame(model.clusters())`` makes a data frame of it.
        """
        check_is_fitted(self)
        names = tuple(str(name) for name in intake.names_of_features(self))
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
                firmness=self._firmness(q),
            )
            for q in range(self.n_clusters_)
        )
        return ExpertGroups(experts, map(str, getattr(self, "classes_", ())))


def _by_weight(panel: Panel, objective: SampleObjective) -> tuple[Panel, Floats]:
    """The same experts, those with the most samples first, and their shares of the weight.

    Equal ones, but for the rounding of sums, are in the order of their weights.
    """
    design, n_experts = objective.design, panel.W.shape[0]
    by_label = partial(totals_by_code, n_codes=n_experts)
    totals = design.fold(by_label, panel.labels, objective.response.shares)
    flat = panel.W.reshape(n_experts, -1)
    order = np.lexsort((*flat.T[::-1], -np.round(totals, 12)))
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
