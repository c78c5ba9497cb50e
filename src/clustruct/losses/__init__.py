"""Losses, one file a family, and the table of those that estimators know by name."""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from sklearn.base import is_classifier

from clustruct.losses.base import Contrasts, Loss, Measure, Target
from clustruct.losses.huber import HuberLoss
from clustruct.losses.intercept import best_intercept, least_mean, mean_hessian
from clustruct.losses.log_link import GammaLoss, PoissonLoss, TweedieLoss
from clustruct.losses.logistic import LogisticLoss, MultinomialLoss
from clustruct.losses.noise import Noise
from clustruct.losses.offset import join_offset, with_offset, without_offset
from clustruct.losses.quantile import QuantileLoss
from clustruct.losses.squared import SquaredLoss

__all__ = [
    "CLASS_LOSSES",
    "LOSSES",
    "NUMBER_LOSSES",
    "Contrasts",
    "GammaLoss",
    "HuberLoss",
    "LogisticLoss",
    "Loss",
    "Measure",
    "MultinomialLoss",
    "Noise",
    "PoissonLoss",
    "QuantileLoss",
    "SquaredLoss",
    "Target",
    "TweedieLoss",
    "best_intercept",
    "for_numbers",
    "join_offset",
    "kind_of",
    "least_mean",
    "loss_of",
    "mean_hessian",
    "with_offset",
    "without_offset",
]

# A family is a file of this room: all that it defines is known by name, but for losses on codes,
# which other losses turn into when there are many classes.
_FAMILIES = [import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__)]
LOSSES: dict[str, type[Loss]] = {
    kind.name: kind
    for family in _FAMILIES
    for kind in (getattr(family, name) for name in family.__all__)
    if isinstance(kind, type) and issubclass(kind, Loss) and kind is not Loss and not kind.coded
}
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


def kind_of(loss: "str | Loss") -> "type[Loss] | Loss":
    """A loss, or the class of the one of that name: what is said of all of its kind."""
    return LOSSES.get(loss, Loss) if isinstance(loss, str) else loss


def for_numbers(loss: "str | Loss") -> bool:
    """Whether a loss, or the one of that name, is for regression."""
    return kind_of(loss).takes_numbers
