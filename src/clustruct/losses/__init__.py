"""Losses, one file a family, and the table of those that estimators know by name."""

from typing import Any

from sklearn.base import is_classifier

from clustruct.losses.base import Loss, Measure, Target
from clustruct.losses.huber import HuberLoss
from clustruct.losses.intercept import best_intercept, least_mean, mean_hessian
from clustruct.losses.logistic import LogisticLoss, MultinomialLoss
from clustruct.losses.noise import Noise
from clustruct.losses.squared import SquaredLoss

__all__ = [
    "CLASS_LOSSES",
    "LOSSES",
    "NUMBER_LOSSES",
    "HuberLoss",
    "LogisticLoss",
    "Loss",
    "Measure",
    "MultinomialLoss",
    "Noise",
    "SquaredLoss",
    "Target",
    "best_intercept",
    "for_numbers",
    "least_mean",
    "loss_of",
    "mean_hessian",
]

LOSSES: dict[str, type[Loss]] = {kind.name: kind for kind in (LogisticLoss, SquaredLoss, HuberLoss)}
# Names that estimators take; classifiers offer those that have no parameter.
NUMBER_LOSSES = tuple(name for name, kind in LOSSES.items() if kind.takes_numbers)
CLASS_LOSSES = tuple(
    name for name, kind in LOSSES.items() if kind.takes_classes and not kind.parameters
)


def loss_of(model: Any) -> Loss:
    """The loss of an estimator: its ``loss``, or the one of that name with its parameters."""
    if not isinstance(model.loss, Loss):
        kind = LOSSES[model.loss]
        return kind(*(getattr(model, f"{kind.name}_{name}") for name in kind.parameters))
    loss, classes = model.loss, is_classifier(model)
    if not (loss.takes_classes if classes else loss.takes_numbers):
        raise ValueError(
            f"loss={loss!r} is not for {'classes' if classes else 'numbers'}, which "
            f"{type(model).__name__} predicts. Choose another loss."
        )
    return loss


def for_numbers(loss: "str | Loss") -> bool:
    """Whether a loss, or the one of that name, is for regression."""
    kind = LOSSES.get(loss, Loss) if isinstance(loss, str) else loss
    return kind.takes_numbers
