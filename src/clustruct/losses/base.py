"""What a loss knows about itself. A new loss says what differs from the defaults here."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression, RidgeClassifier
from sklearn.preprocessing import LabelBinarizer

from clustruct._typing import Floats
from clustruct.arrays import beside, blend, cast, look_up, namespace, to_host
from clustruct.losses.intercept import at_once, best_intercept, mean_hessian
from clustruct.losses.noise import Noise

__all__ = ["Contrasts", "Loss", "Measure", "Target"]

Target = NDArray[np.float64] | NDArray[np.intp]
# From targets and scores to the score of each row, larger is better.
Measure = Callable[[Any, Any], Any]

# Score of squared errors, the mean over outputs, as scikit-learn calls it.
SQUARED_ERROR = "neg_mean_squared_error"
# Rows that an error names.
NAMED_ROWS = 5


class Contrasts(NamedTuple):
    """Coordinates ``u`` for what scores tell of classes, one less than there are classes.

    outputs (K, M): orthonormal columns; scores are ``outputs @ u``, as far as they matter.
    differences (M, M): log-odds of all classes but the first against that are ``differences @ u``.
    slopes (M, K): from derivatives by these log-odds to derivatives by the scores.
    """

    outputs: Floats
    differences: Floats
    slopes: Floats


class Loss(ABC):
    """A convex function of the scores of each row, given its target, and all that goes with it.

    Scores are an ``n x K`` array, one column an output, of NumPy or of any library that speaks the
    array API. A loss works on all rows at once; weights and sums are the objective's business. A
    new loss needs `value`, `gradient` and `hessian_product`; with `conjugate`, fits get a
    certificate. All else has a default.
    """

    # As in ``loss="huber"``: by default that of the class, without "Loss" and in small letters.
    name: ClassVar[str]
    # Arguments that estimators hold as ``<name>_<argument>``, such as ``huber_delta``.
    parameters: ClassVar[tuple[str, ...]] = ()
    # No second derivative along a unit direction is larger; a typical one if there is no bound, or
    # if the bound is far from what is typical.
    curvature: float = 1.0
    # Whether it is the squared loss, for which much has a closed form.
    quadratic: bool = False
    # Whether a shift of all outputs changes nothing.
    relative: bool = False
    # Whether no value is below zero. Only then may a bound be lifted to zero.
    nonnegative: bool = False
    # Slopes that `gradient` returns, times up to this, are in the domain of the conjugate.
    stretch: float = 1.0
    # Whether targets are codes of classes, 0 to K - 1, with one output for each.
    coded: bool = False
    # Whether ``loss(y + c, z + c) = loss(y, z)``, so that targets may be centred.
    centred: bool = False
    # Whether it is a sum over outputs of a convex function of the residual, target less score.
    of_residuals: bool = False
    # Whether negative targets are refused, as scikit-learn's tags tell.
    positive: bool = False
    # The targets that `valid` accepts, in words.
    targets: str = "finite numbers"
    # Whether it is for regression; whether it is for classification.
    takes_numbers: bool = True
    takes_classes: bool = True
    # Whether predictions of numbers are means of targets, or about that.
    predicts_means: bool = True
    # Whether `probabilities` are those of the classes.
    gives_probabilities: bool = False
    # Whether ``exp(-loss / T) / Z(T)`` is a density, by `noise`: information criteria need that.
    has_likelihood: bool = False
    # Default score in searches over classes, a name that scikit-learn knows.
    class_scoring: str = "accuracy"
    # What scores of classes are: "score", any numbers, or "odds", logarithms of odds.
    class_scale: str = "score"

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "name" not in vars(cls):
            cls.name = cls.__name__.removesuffix("Loss").lower()

    def __repr__(self) -> str:
        mine = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({mine})"

    # ---- The function

    @abstractmethod
    def value(self, target: Target, scores: Floats) -> Floats:
        """Loss of each row, shape (n,)."""

    @abstractmethod
    def gradient(self, target: Target, scores: Floats) -> Floats:
        """Derivative of each row's loss by its scores, shape (n, K)."""

    @abstractmethod
    def hessian_product(self, target: Target, scores: Floats, direction: Floats) -> Floats:
        """Second derivative of each row's loss, times the row of ``direction``."""

    def conjugate(self, target: Target, slope: Floats) -> Floats:
        """``max_z <slope, z> - loss(z)`` of each row, for slopes that `gradient` can return."""
        raise ValueError(f"{self!r} has no conjugate. Define one for a certificate.")

    @property
    def has_conjugate(self) -> bool:
        """Whether `conjugate` is known; without it there is no certificate."""
        return type(self).conjugate is not Loss.conjugate

    def start_curvature(
        self, target: Any, shares: Floats, fold: Callable[..., Any] = at_once
    ) -> float:
        """Second derivative that strengths are measured by: at the best constant score.

        For one output. Where the loss is of residuals, `curvature` serves as well.
        """
        return self.curvature if self.centred else self._constant_curvature(target, shares, fold, 1)

    def _constant_curvature(
        self, target: Any, shares: Floats, fold: Callable[..., Any], n_outputs: int
    ) -> float:
        """Second derivative of the mean loss at the best constant scores, averaged over outputs."""

        def from_zero(function: Callable[..., Any], y: Any, _: Any, s: Any) -> Any:
            return fold(lambda y, s: function(y, 0.0 * y, s), y, s)

        score = best_intercept(self, target, target, shares, np.zeros(n_outputs), from_zero)
        bend = fold(
            lambda y, s: mean_hessian(self, y, 0.0 * y + beside(score, y), s), target, shares
        )
        return max(float(np.trace(bend)) / n_outputs, np.finfo(np.float64).tiny)

    def with_targets(self, target: Any, shares: Any, fold: Callable[..., Any] = at_once) -> "Loss":
        """The loss with what it takes from the targets of a fit, such as a typical curvature."""
        return self

    def closed_intercept(
        self, target: Any, scores: Any, shares: Any, fold: Callable[..., Any] = at_once
    ) -> Floats | None:
        """The shift of all scores that minimises the mean loss, if it has a closed form."""
        return None

    # ---- Targets and predictions of numbers

    def valid(self, target: Target) -> NDArray[np.bool_]:
        """Whether each row's target, an array of the host, is one that the loss is for."""
        return np.ones(target.shape[0], dtype=bool)  # whoever reads targets wants finite numbers

    def check_targets(self, target: Any, fold: Callable[..., Any] = at_once) -> None:
        """Raise an error that names the rows whose target is not `valid`."""
        if type(self).valid is Loss.valid:
            return
        joined = fold(lambda y: self.valid(to_host(y)), target, combine=lambda *a: np.hstack(a))
        bad = np.flatnonzero(~joined)
        if bad.size:
            rows = ", ".join(map(str, bad[:NAMED_ROWS])) + ", ..." * (bad.size > NAMED_ROWS)
            raise ValueError(
                f"y holds {bad.size} targets that loss={self!r} is not for, in rows {rows} (of "
                f"those with positive weight, from 0). Give {self.targets}, or choose another loss."
            )

    def predictions(self, scores: Floats) -> Floats:
        """The inverse link: what is predicted for a number."""
        return scores

    def link(self, predictions: Floats) -> Floats:
        """The scores of predictions."""
        return predictions

    def variance(self, predictions: Floats) -> Floats | None:
        """Variance of targets with these means, up to a dispersion; None if the loss has none."""
        return None

    def residuals(self, target: Target, scores: Floats) -> Floats:
        """Targets less scores, for losses whose scores are on the scale of the targets."""
        return namespace(scores).reshape(target, (scores.shape[0], -1)) - scores

    def mixed_value(self, target: Target, weights: Floats, scores: Floats) -> Floats:
        """Loss of each row, predicted by the weighted mean of several predictions.

        Shapes: weights (n, Q), scores (n, Q, K).
        """
        return self.value(target, self.link(blend(weights, self.predictions(scores))))

    @property
    def has_identity_link(self) -> bool:
        """Whether predictions are the scores."""
        return type(self).predictions is Loss.predictions

    @property
    def has_log_link(self) -> bool:
        """Whether predictions are ``exp`` of the scores, so that an offset multiplies them."""
        scores = np.array([[0.0], [1.0], [-2.0]])
        return not self.has_identity_link and np.allclose(self.predictions(scores), np.exp(scores))

    def as_rates(self, target: Any, offset: Any) -> tuple[Any, Any] | None:
        """Targets and weights of rows for which scores without the offset are the same model.

        ``loss(y, z + o)`` is the weight times the loss of ``z`` at the new target, up to a term
        without ``z``. For a logarithm as link these are rates, weighted by their exposure
        ``exp(o)``. None where it is not known how.
        """
        if self.has_identity_link:
            return target - offset, np.ones_like(offset)
        exposure = np.exp(offset)
        return (target / exposure, exposure) if self.has_log_link else None

    @property
    def number_scale(self) -> str:
        """What scores of numbers are, in words."""
        return "prediction" if self.has_identity_link else "score"

    # ---- Classes

    def with_classes(self, n_classes: int) -> "Loss":
        """The loss for so many classes."""
        return self

    def n_outputs(self, n_classes: int) -> int:
        """Scores of a sample: one tells two classes apart, more take one each."""
        return 1 if n_classes == 2 else n_classes

    def class_targets(self, codes: NDArray[np.intp], n_classes: int) -> Target:
        """Targets for codes of classes: 1 for the class (the second of two) and -1 for others."""
        codes = codes.reshape(-1)
        if n_classes == 2:
            return np.where(codes == 1, 1.0, -1.0)[:, None]
        return np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)

    def probabilities(self, scores: Floats) -> Floats:
        """Probabilities of all classes, ``n x n_classes``, if `gives_probabilities`."""
        raise ValueError(f"{self!r} gives no probabilities. Choose the logistic loss for them.")

    def codes(self, target: Target) -> Target:
        """Codes of the classes, for losses whose targets are `coded`."""
        return target

    def contrasts(self, n_outputs: int) -> Contrasts | None:
        """How scores make log-probabilities of classes, if the loss is minus that of the own."""
        return None

    def class_codes(self, target: Target) -> NDArray[np.intp]:
        """Codes of the classes of targets on the host, for losses with `contrasts`."""
        raise ValueError(f"{self!r} has no contrasts.")

    def recoded(self, target: Target, codes: NDArray[np.intp], present: NDArray[np.intp]) -> Target:
        """Targets for the `present` ones of the classes, where `codes` numbers all of them anew."""
        return look_up(codes, target)

    def log_probabilities(self, scores: Floats) -> Floats:
        """Logarithms of `probabilities`."""
        return namespace(scores).log(self.probabilities(scores))

    # ---- Scores of models

    def deviance(self, target: Target, scores: Floats) -> Floats:
        """Deviance of each row: twice the loss, unless the loss leaves out what has no scores."""
        return 2.0 * self.value(target, scores)

    @property
    def scoring(self) -> str:
        """Default score in searches over numbers; those that scikit-learn knows have its name."""
        return f"neg_mean_{self.name}_deviance"

    @property
    def loss_scoring(self) -> str:
        """Name of the negative mean loss as a score."""
        return f"neg_{self.name}_loss"

    def measure(self, scoring: str) -> Measure | None:
        """What a score for numbers is the mean of; None if it takes a fitted model to tell."""
        known = {self.scoring: self._minus_deviance, SQUARED_ERROR: self._minus_squares}
        return known.get(scoring)

    def class_measure(self, scoring: str) -> Measure | None:
        """The same for classes."""
        return _hits if scoring == "accuracy" else None

    @property
    def goes_by_squares(self) -> bool:
        """Whether models for numbers are compared by squared errors.

        Otherwise they are by `row_scores`; these have to be at least 0, as parts are told of them.
        """
        return self.scoring == SQUARED_ERROR or not self.nonnegative

    def row_scores(self, target: Any, predictions: Floats) -> Floats:
        """What each row loses by the default score, given predictions (not scores), n x K."""
        measure = self.measure(self.scoring) or self._minus_deviance
        return -measure(target, self.link(predictions))

    def _minus_deviance(self, target: Target, scores: Floats) -> Floats:
        return -self.deviance(target, scores)

    def _minus_squares(self, target: Target, scores: Floats) -> Floats:
        return -namespace(scores).mean((self.predictions(scores) - target) ** 2, axis=1)

    # ---- Likelihood

    def noise(self, n_outputs: int, mean_loss: float) -> Noise:
        """The noise that mixtures take, given the mean loss of a constant prediction.

        By default the loss is half a deviance with one dispersion, as in quasi-likelihood.
        """
        return Noise(n_outputs, mean_loss)

    def minus_two_log_likelihood(self, mean_loss: float, n_samples: float, n_outputs: int) -> float:
        """Of so many samples with that mean loss, at the most likely scale."""
        noise = self.noise(n_outputs, mean_loss)
        scale = noise.scale(mean_loss)
        return 2.0 * n_samples * (mean_loss / scale + noise.log_partition(scale))

    # ---- scikit-learn

    @property
    def constant(self) -> Any:
        """An unfitted model of scikit-learn that predicts the best constant."""
        return DummyRegressor()

    @property
    def constant_name(self) -> str:
        """What the best constant is, in words."""
        return "the mean"

    @property
    def ridge(self) -> Any:
        """An unfitted linear model of scikit-learn with this loss, or None.

        Its `alpha` is a ridge on the mean loss, half the mean deviance.
        """
        return None

    @property
    def boosting(self) -> dict[str, Any] | None:
        """Options of scikit-learn's gradient boosting with the same link; None if there are none.

        Poisson boosting predicts means above 0, whatever their variance.
        """
        if self.has_identity_link:
            return {}
        return {"loss": "poisson"} if self.has_log_link and self.positive else None

    def to_regressor(self, coef: Floats, intercept: Any, fit_intercept: bool) -> Any:
        """A fitted regressor of scikit-learn with the same predictions."""
        if not self.has_identity_link:
            raise ValueError(
                f"No regressor of scikit-learn is known that predicts as loss={self!r} does. "
                "Keep this model, or give the loss a method to_regressor."
            )
        model = LinearRegression(fit_intercept=fit_intercept)
        model.coef_, model.intercept_ = coef, intercept
        return model

    def to_classifier(
        self, coef: Floats, intercept: Any, fit_intercept: bool, classes: NDArray[Any]
    ) -> Any:
        """A fitted classifier of scikit-learn with the same predictions."""
        model = RidgeClassifier(fit_intercept=fit_intercept)
        model._label_binarizer = LabelBinarizer(neg_label=-1).fit(classes)
        if not hasattr(model, "classes_"):  # newer releases take it from there no more
            model.classes_ = classes
        model.coef_, model.intercept_ = coef, intercept
        return model


def _hits(target: Target, scores: Floats) -> Floats:
    """One where the class is right."""
    xp = namespace(scores)
    if scores.shape[1] == 1:
        right = (scores[:, 0] > 0.0) == (target[:, 0] > 0.0)
    else:
        right = xp.argmax(scores, axis=1) == (
            target if target.ndim == 1 else xp.argmax(target, axis=1)
        )
    return cast(right, xp.float64)
