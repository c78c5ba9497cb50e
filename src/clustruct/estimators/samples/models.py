"""Several linear experts, each sample predicted by its best one."""

from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from clustruct._docs import documented
from clustruct._typing import Floats
from clustruct.arrays import beside, blend, cast, indicator, namespace
from clustruct.design import Design, LocalDesign, Rows
from clustruct.estimators import descriptions as tables
from clustruct.estimators import intake
from clustruct.estimators.common import Constraints, NumberLosses, fields_are_parameters
from clustruct.estimators.offsets import beside_offset
from clustruct.estimators.samples.base import SampleCluster
from clustruct.losses import CLASS_LOSSES, Loss, loss_of, without_offset
from clustruct.objectives.linear import Response


@documented((tables.ALL, tables.SAMPLES), (tables.FITTED, tables.OF_SAMPLES), (tables.ARGUMENTS,))
@fields_are_parameters
class SampleClusterRegressor(RegressorMixin, NumberLosses, SampleCluster):
    """Several linear regressions, each sample predicted by the one that fits it best.

    Minimises, over experts and the assignment of samples to them,

    ``(1/S) sum_i s_i (loss(y_i, v_q(i)' x_i + b_q(i)) + alpha/2 ||v_q(i)||^2)``.

    Which expert is the right one is known from ``y`` alone: for a new sample there are several
    predictions, of which one is good, or their weighted mean. Where ``x`` tells which expert is
    right, a `gate` can learn it.

    See Also
    --------
    SampleClusterClassifier : The same for classes.
    SampleClusterRegressorCV : Chooses the number of experts.

    Notes
    -----
    ``"am"`` alternates between experts and assignment, and comes after all others. ``"em"`` fits a
    mixture of regressions, cooled down from a high temperature; for squared loss also with a prior
    that takes weight from features that matter to no expert (option ``relevance``: "auto", True or
    False), if there is strong evidence for it; with ``refine=False`` the experts are those of the
    mixture, without ``"am"`` after it. With ``noise="own"`` every expert of the mixture has noise
    of its own and samples may follow none, which is the model for outliers; its experts are left as
    they are, too. ``"rc"`` is regression clustering with K-harmonic means. ``"pg"`` is projected
    gradient (options ``refit``, ``longest``, ``shortest``, ``shrink``). ``"cg"`` is conditional
    gradient on a convex relaxation, for squared loss (option ``step``). ``"auto"`` is ``"em"``, and
    ``"am"``: for squared loss and few weights from elemental starts (experts through as few samples
    as they have weights, then moves of single samples), otherwise where there are many samples. For
    squared loss it also finds out whether experts have unequal noise or samples follow none: with
    strong evidence the experts are those of ``noise="own"``, with some evidence `status_` says so.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_experts(500, 4, 2, random_state=0)
    >>> model = cs.SampleClusterRegressor(2, random_state=0).fit(problem.X, problem.y)
    >>> model.predict_experts(problem.X).shape
    (500, 2)
    >>> bool(model.best_loss(problem.X, problem.y) < 0.01)
    True
    """

    score = SampleCluster.score  # on the host, wherever X is

    def predict(self, X: ArrayLike, offset: ArrayLike | None = None) -> Floats:
        """The experts' predictions, weighted by their shares of the samples, or by the gate.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions.
        """
        check_is_fitted(self)
        width = None if self._single else self._W.shape[2]
        return intake.apply_model(self, self._predictions, X, width, beside=beside_offset(offset))

    def _predictions(self, design: LocalDesign, *offset: Floats) -> Rows:
        """Weighted predictions for placed samples."""
        predicted = loss_of(self).predictions(self._scores(design, *offset))
        blended = blend(self._expert_weights(design, predicted), predicted)
        return blended[:, 0] if self._single else blended

    def predict_experts(self, X: ArrayLike, offset: ArrayLike | None = None) -> Floats:
        """Every expert's prediction.

        Returns
        -------
        ndarray of shape (n_samples, n_experts) or (n_samples, n_experts, n_outputs)
            Predictions, in the order of `experts_`.
        """
        check_is_fitted(self)
        n_experts, _, n_outputs = self._W.shape
        width = n_experts if self._single else (n_experts, n_outputs)
        return intake.apply_model(
            self, self._all_predictions, X, width, beside=beside_offset(offset)
        )

    def _all_predictions(self, design: Design, *offset: Floats) -> Rows:
        """Every expert's predictions for placed samples."""
        predicted = loss_of(self).predictions(self._scores(design, *offset))
        return predicted[:, :, 0] if self._single else predicted

    def _respond(self, samples: intake.Samples) -> Response:
        self._single = len(samples.targets.shape) == 1
        loss = loss_of(self)
        response = intake.number_response(samples, loss, fit_intercept=self.fit_intercept)
        self._loss_of_fit = without_offset(response.loss)
        return response

    def _target(self, targets: NDArray[Any]) -> tuple[Any, Loss, int]:
        target = np.asarray(targets, dtype=np.float64)
        target = target.reshape(target.shape[0], -1)
        loss = getattr(self, "_loss_of_fit", loss_of(self))  # which older model files lack
        loss.check_targets(target)
        return target, loss, target.shape[1]

    def _blended_loss(self, response: Response, scores: Floats, weights: Floats) -> Floats:
        """Loss of the weighted predictions."""
        return response.loss.mixed_value(response.target, weights, scores)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.regressor_tags.poor_score = True  # one prediction for what has several
        return tags


@documented(
    (tables.ALL, tables.SAMPLES, tables.CLASSES),
    (tables.OF_CLASSES, tables.FITTED, tables.OF_SAMPLES),
    (tables.ARGUMENTS, tables.CLASS_ARGUMENTS),
)
@fields_are_parameters
class SampleClusterClassifier(ClassifierMixin, SampleCluster):
    """Several linear classifiers, each sample predicted by the one that fits it best.

    Predicts several classes for a sample, of which one is good. There must be more classes than
    experts: otherwise all classes could be predicted, and any fit is perfect.

    See Also
    --------
    SampleClusterRegressor : The same for numbers; its notes describe the solvers.
    SampleClusterClassifierCV : Chooses the number of experts.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_experts(
    ...     200, 3, 2, n_outputs=4, noise=0.1, classification=True, random_state=0
    ... )
    >>> model = cs.SampleClusterClassifier(2, n_init=1, random_state=0)
    >>> model.fit(problem.X, problem.y).predict_experts(problem.X).shape
    (200, 2)
    >>> bool(model.best_error(problem.X, problem.y) < 0.2)
    True
    """

    n_clusters: int = 2
    _: KW_ONLY
    loss: str | Loss = "logistic"
    class_weight: Mapping[Any, float] | str | None = None

    score = SampleCluster.score
    _constraints: ClassVar[Constraints] = {
        "loss": [StrOptions(set(CLASS_LOSSES)), Loss],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def _labels_of_all(self, design: Design, targets: Rows, offset: Rows | None) -> Rows:
        """The expert of each sample; classes of samples without weight may be unknown."""
        known = np.isin(targets, self.classes_)
        labels = np.zeros(targets.size, dtype=np.intp)
        some, (mine,) = design.only(known, targets)
        own = None if offset is None else offset[known]
        labels[known] = self._best_experts(some, mine, own)
        return labels

    def predict(self, X: ArrayLike, offset: ArrayLike | None = None) -> NDArray[Any]:
        """The class with the most probability (score) over all experts, or by the gate.

        Returns
        -------
        ndarray of shape (n_samples,)
            Classes.
        """
        check_is_fitted(self)
        dtype = self.classes_.dtype
        return intake.apply_model(self, self._choose, X, None, dtype, beside_offset(offset))

    def _choose(self, design: LocalDesign, *offset: Floats) -> Rows:
        """Classes for placed samples."""
        weighted = self._weighted(design, *offset)
        return intake.named(self.classes_, namespace(weighted).argmax(weighted, axis=1))

    @available_if(lambda self: loss_of(self).gives_probabilities)
    def predict_proba(self, X: ArrayLike, offset: ArrayLike | None = None) -> Floats:
        """The experts' probabilities, weighted; with the logistic loss only.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        check_is_fitted(self)
        return intake.apply_model(
            self, self._weighted, X, self.classes_.size, beside=beside_offset(offset)
        )

    def predict_experts(self, X: ArrayLike, offset: ArrayLike | None = None) -> NDArray[Any]:
        """One class of each expert, without repetition.

        The expert with the most samples gives its first choice, the next one its first choice
        among the classes that are left, and so on.

        Returns
        -------
        ndarray of shape (n_samples, n_experts)
            Classes, in the order of `experts_`.
        """
        check_is_fitted(self)
        return intake.apply_model(
            self,
            lambda design, *rows: intake.named(self.classes_, self._first_choices(design, *rows)),
            X,
            self._W.shape[0],
            self.classes_.dtype,
            beside_offset(offset),
        )

    def _first_choices(self, design: Design, *offset: Floats) -> Rows:
        """Codes of the experts' choices for placed samples, without repetition."""
        shares = self._class_shares(self._scores(design, *offset))
        xp = namespace(shares)
        choices: list[Any] = []
        for q in range(shares.shape[1]):
            mine = shares[:, q, :]
            for taken in choices:
                mine = xp.where(indicator(taken, mine.shape[1]), -xp.inf, mine)
            choices.append(xp.argmax(mine, axis=1))
        return xp.stack(choices, axis=1)

    def best_error(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> float:
        """Share of the samples whose class no expert predicts.

        Returns
        -------
        float
            To be compared with the error of a single classifier's first choices.
        """
        missed = self._of_samples(self._missed, X, y, offset)
        return intake.mean_over_samples(missed, sample_weight)

    def _missed(self, design: Design, classes: NDArray[Any], *offset: Floats) -> Rows:
        """One for the samples whose class is among no expert's choices, zero for the others."""
        choices = self._first_choices(design, *offset)
        xp = namespace(choices)
        codes = np.searchsorted(self.classes_, classes).clip(max=self.classes_.size - 1)
        codes = np.where(self.classes_[codes] == classes, codes, -1)
        missed = xp.all(choices != beside(codes, choices)[:, None], axis=1)
        return cast(missed, xp.float64)

    def _weighted(self, design: LocalDesign, *offset: Floats | None) -> Rows:
        """Probabilities or scores of the classes, weighted over the experts."""
        shares = self._class_shares(self._scores(design, *offset))
        return blend(self._expert_weights(design, shares), shares)

    def _class_shares(self, scores: Rows) -> Rows:
        """Probabilities, or scores if the loss has none, of all classes, ``n x Q x classes``."""
        xp, loss = namespace(scores), loss_of(self).with_classes(self.classes_.size)
        if loss.gives_probabilities:
            flat = loss.probabilities(xp.reshape(scores, (-1, scores.shape[2])))
            return xp.reshape(flat, (*scores.shape[:2], -1))
        if scores.shape[2] == 1:
            return xp.stack([-scores[:, :, 0], scores[:, :, 0]], axis=2)
        return scores

    def _respond(self, samples: intake.Samples) -> Response:
        self.classes_, response = intake.class_response(
            samples, loss_of(self), self.class_weight, fit_intercept=self.fit_intercept
        )
        if self.n_clusters >= self.classes_.size:
            raise ValueError(
                f"n_clusters={self.n_clusters} must be less than the number of classes, "
                f"{self.classes_.size}: as many experts could predict every class. "
                "Give fewer experts."
            )
        return response

    def _target(self, targets: NDArray[Any]) -> tuple[Any, Loss, int]:
        if not np.isin(targets, self.classes_).all():
            unknown = np.setdiff1d(targets, self.classes_).tolist()[0]
            raise ValueError(
                f"y holds the class {unknown!r}, which was not in `fit`. Leave such samples out."
            )
        codes = np.searchsorted(self.classes_, targets)
        n_classes = self.classes_.size
        loss = loss_of(self).with_classes(n_classes)
        return loss.class_targets(codes, n_classes), loss, loss.n_outputs(n_classes)

    def _blended_loss(self, response: Response, scores: Floats, weights: Floats) -> Floats:
        """Negative log-probability, or loss of the weighted scores."""
        if not response.loss.gives_probabilities:
            return response.loss.value(response.target, blend(weights, scores))
        losses = [response.loss.value(response.target, mine) for mine in scores.transpose(1, 0, 2)]
        return -np.log((weights * np.exp(-np.stack(losses, axis=1))).sum(axis=1))
