"""Scores of predictions on held-out samples, how they rank rows, and paired tests of two."""

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.metrics import r2_score, roc_auc_score

from clustruct._typing import Floats
from clustruct.losses import Loss
from clustruct.reporting.comparing.samples import Data

# The level of the tests behind "better" and "worse". At 1 % a model that ties with its rival is
# called better or worse in at most one of a hundred reports.
LEVEL = 0.01
USUAL_LEVEL = 0.05
# What is tested is whether the mean losses differ by more than this part: with many rows a test
# for any difference finds such that matter to nobody.
NEGLIGIBLE = 0.01
# Counts and amounts keep most of their deviance however good a model is: there, less than this part
# of what the other model removes is negligible, if that is less.
NEGLIGIBLE_GAIN = 0.05
SMALLEST_CHANCE = 1e-15  # keeps the logarithm of a probability finite
SMALLEST_MEAN = 1e-30  # keeps that of a mean finite
TENTHS = 10
DIGITS = 9  # that tell two predictions apart


# ---- How well predictions rank rows: the ordered Lorenz curve, its Gini coefficient, and lift.
#
# Rows are ordered by their predicted rate ``r = mu / e``, with the exposure ``e`` (1 without an
# offset) and weights ``w``. The curve runs through the shares of exposure and of targets,
#
#     F_k = sum_{i <= k} w_i e_i / sum w e,    L_k = sum_{i <= k} w_i y_i / sum w y.
#
# Rows with the same prediction are one straight piece of the curve, so that their order does not
# matter, and a weight is the same as repetition.


class Lorenz(NamedTuple):
    """Sums over the rows with the lowest predictions, from none of them to all.

    exposure, target, predicted (m + 1,): one entry for each distinct prediction, after a zero.
    """

    exposure: Floats
    target: Floats
    predicted: Floats

    @property
    def gini(self) -> float:
        """``1 - 2 A`` with the area ``A`` below the curve; 0 for a constant, NaN without targets.

        With trapezes ``2 A = sum_k (F_k - F_{k-1}) (L_k + L_{k-1})``.
        """
        if not self.target[-1] > 0.0:
            return float("nan")
        shares, targets = self.exposure / self.exposure[-1], self.target / self.target[-1]
        return float(1.0 - np.diff(shares) @ (targets[1:] + targets[:-1]))

    def lift(self, count: int = TENTHS) -> tuple[Floats, Floats]:
        """Observed and predicted means of equal parts of the exposure, the lowest first.

        Rows with one prediction that belong to two parts are shared out to both.
        """
        ends = np.linspace(0.0, self.exposure[-1], count + 1)
        each = self.exposure[-1] / count
        observed, predicted = (
            np.diff(np.interp(ends, self.exposure, sums)) / each
            for sums in (self.target, self.predicted)
        )
        return observed, predicted


def lorenz(target: Floats, predicted: Floats, exposure: Floats, weights: Floats | None) -> Lorenz:
    """The ordered Lorenz curve of targets by their predictions; arrays of shape (n,)."""
    weights = np.ones_like(exposure) if weights is None else weights
    kept = weights > 0.0
    target, predicted, exposure, weights = (
        values[kept] for values in (target, predicted, exposure, weights)
    )
    # Two predictions that are the same but for rounding, as mu / e may be, are the same.
    part, exponent = np.frexp(predicted / exposure)
    _, place = np.unique(np.ldexp(np.round(part, DIGITS), exponent), return_inverse=True)
    sums = (
        np.concatenate([[0.0], np.cumsum(np.bincount(place, weights * values))])
        for values in (exposure, target, predicted)
    )
    return Lorenz(*sums)


# ---- Scores and tests.


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a model predicts for held-out samples, and how many rows it has seen."""

    name: str
    # "constant", "linear" (a model without groups), "boosting", "ours", or "oracle" (sees the
    # target, so that it is no rival).
    role: str
    predicted: Any
    chances: Any  # of classes; None where there are none
    n_train: int
    coef: Floats | None = None  # of a linear model
    remark: str = ""
    fair: bool = True  # whether it knew all that our model did, so that it may be compared


@dataclass(frozen=True, eq=False)
class Entry(Prediction):
    """A model in the comparison, with its scores."""

    _: KW_ONLY
    # Squared error, the loss's own deviance, log loss, or 0 and 1 where there are no probabilities.
    losses: Floats
    scores: dict[str, float] = field(default_factory=dict)  # in the order of the tables
    weights: Floats | None = None  # of the losses
    n_wrong: int | None = None
    quoted: tuple[str, ...] = ()  # the scores that a sentence quotes
    ranking: Lorenz | None = None  # of rows by their predictions, for a logarithm as link

    @property
    def ours(self) -> bool:
        """Whether it is the model of the report."""
        return self.role == "ours"

    @property
    def loss(self) -> float:
        """Mean loss."""
        return float(np.average(self.losses, weights=self.weights))


@dataclass(frozen=True)
class PairedTest:
    """Whether two models differ on the same held-out targets."""

    gain: float  # by how much the first mean loss is smaller, relative to the second
    p_value: float  # of such a difference if mean losses differed by a negligible part at most
    name: str  # which test
    negligible: float = NEGLIGIBLE  # part of the second mean loss

    @property
    def better(self) -> bool:
        """Whether the first model is clearly better."""
        return self.gain > 0.0 and not self.tie

    @property
    def worse(self) -> bool:
        """Whether the first model is clearly worse."""
        return self.gain < 0.0 and not self.tie

    @property
    def tie(self) -> bool:
        """Whether the difference is not significant, or negligible."""
        return not self.p_value < LEVEL or abs(self.gain) < self.negligible

    @property
    def in_words(self) -> str:
        """The test, its p-value, and the level where many would use another."""
        p = "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.2g}"
        p += f", above our level of {LEVEL:g}" if LEVEL <= self.p_value < USUAL_LEVEL else ""
        beyond = f" for a difference of more than {100 * self.negligible:.2g} %"
        return f"{self.name}{beyond if self.negligible else ''}, {p}"


def paired_test(one: Entry, other: Entry, negligible: float = NEGLIGIBLE) -> PairedTest:
    """Compare the losses of two models, target by target.

    The test is a two-sided t-test of whether the mean difference is larger than a negligible one,
    which heavy tails make conservative; or, for unweighted errors that are 0 or 1, McNemar's exact
    test, where a negligible difference is a tie.
    """
    difference = other.losses - one.losses
    mean = float(np.average(difference, weights=one.weights))
    gain = mean / other.loss if other.loss > 0.0 else -np.sign(one.loss) * 1.0
    if one.weights is None and np.isin(np.concatenate([one.losses, other.losses]), (0, 1)).all():
        fewer, more = int((difference > 0).sum()), int((difference < 0).sum())
        p_value = stats.binomtest(fewer, fewer + more).pvalue if fewer + more else 1.0
        return PairedTest(gain, float(p_value), "McNemar's exact test", negligible)
    shares = np.full(difference.size, 1.0 / difference.size)
    if one.weights is not None:
        shares = one.weights / one.weights.sum()
    n = int(np.count_nonzero(shares))
    error = float(np.sqrt(np.square(shares * (difference - mean)).sum() * n / max(1, n - 1)))
    # Without any spread the predictions are the same, or there is nothing to tell noise from.
    beyond = abs(mean) - negligible * other.loss
    p_value = 2.0 * stats.t.sf(beyond / error, n - 1) if error > 0.0 and n > 1 else 1.0
    return PairedTest(gain, float(min(1.0, p_value)), "paired t-test", negligible)


def score(one: Prediction, data: Data, classes: NDArray[Any] | None, loss: Loss) -> Entry:
    """The losses and scores of predicted numbers, by the loss, or of predicted classes."""
    if classes is not None:
        return _of_classes(one, data, classes)
    return _of_numbers(one, data) if loss.goes_by_squares else _by_deviance(one, data, loss)


def _of_numbers(one: Prediction, data: Data) -> Entry:
    """Squared errors, R² and RMSE of predicted numbers."""
    truth, weights = np.asarray(data.y, dtype=np.float64), data.weights
    predicted = np.asarray(one.predicted, dtype=np.float64).reshape(truth.shape)
    losses = np.square(predicted - truth).reshape(len(truth), -1).mean(axis=1)
    rmse = float(np.sqrt(np.average(losses, weights=weights)))
    scores = {"R²": float(r2_score(truth, predicted, sample_weight=weights)), "RMSE": rmse}
    quoted = ("RMSE",)
    return Entry(**vars(one), losses=losses, scores=scores, weights=weights, quoted=quoted)


def _by_deviance(one: Prediction, data: Data, loss: Loss) -> Entry:
    """The default score of the loss, and how rows are ranked where predictions are means > 0."""
    truth = np.asarray(data.y, dtype=np.float64)
    predicted = np.asarray(one.predicted, dtype=np.float64).reshape(truth.shape)
    if loss.positive:  # the mean of targets that all are zero is no prediction either
        predicted = np.maximum(predicted, SMALLEST_MEAN)
    losses = loss.row_scores(truth.reshape(data.n, -1), predicted.reshape(data.n, -1))
    name = loss.scoring.removeprefix("neg_").removeprefix("mean_").replace("_", " ").capitalize()
    scores = {name: float(np.average(losses, weights=data.weights))}
    ranking = None
    if loss.has_log_link and loss.positive and truth.ndim == 1 and one.role != "oracle":
        exposure = np.ones(data.n) if data.offset is None else np.exp(data.offset.reshape(-1))
        ranking = lorenz(truth, predicted, exposure, data.weights)
        scores["Gini"] = ranking.gini
    found: dict[str, Any] = {"scores": scores, "quoted": (name,), "ranking": ranking}
    return Entry(**vars(one), losses=losses, weights=data.weights, **found)


def _of_classes(one: Prediction, data: Data, classes: NDArray[Any]) -> Entry:
    """Log losses, errors, accuracy and AUC of predicted classes; tasks are in rows."""
    truth, weights, chances = data.y, data.weights, None
    wrong = (np.asarray(one.predicted) != truth).astype(np.float64)
    scores = {"Accuracy": 1.0 - float(np.average(wrong, weights=weights))}
    losses = wrong
    if one.chances is not None:
        chances = np.asarray(one.chances, dtype=np.float64)
        area = _area(truth, chances, classes, data.tasks, weights)
        if area is not None:
            scores["AUC"] = area
        chance = (chances * (truth[:, None] == classes)).sum(axis=1)  # 0 for an unknown class
        losses = -np.log(np.clip(chance, SMALLEST_CHANCE, 1.0))
        scores["Log loss"] = float(np.average(losses, weights=weights))
    found: dict[str, Any] = {**vars(one), "chances": chances, "n_wrong": int(wrong.sum())}
    return Entry(**found, losses=losses, scores=scores, weights=weights)


def _area(
    truth: NDArray[Any],
    chances: Floats,
    classes: NDArray[Any],
    tasks: NDArray[Any] | None,
    weights: Floats | None,
) -> float | None:
    """Area under the ROC curve: of one class against the others, averaged; for tasks over tasks."""
    if tasks is not None:
        each = []
        for mine in (tasks == task for task in np.unique(tasks)):
            some = None if weights is None else weights[mine]
            each.append(_area(truth[mine], chances[mine], classes, None, some))
        known = [area for area in each if area is not None]
        return float(np.mean(known)) if known else None
    areas = []
    for k in [1] if len(classes) == 2 else range(len(classes)):
        positive = truth == classes[k]
        if not 0 < positive.sum() < positive.size:
            return None
        areas.append(roc_auc_score(positive, chances[:, k], sample_weight=weights))
    return float(np.mean(areas))
