"""Answers as losses take them, wherever the samples are."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from clustruct.arrays import beside, namespace, to_host
from clustruct.estimators.intake.arguments import class_weights
from clustruct.estimators.intake.samples import Intake
from clustruct.losses import Loss
from clustruct.objectives.linear import Response

__all__ = ["class_response", "named", "number_response"]


def number_response(samples: Intake, loss: Loss, *, fit_intercept: bool) -> Response:
    """Numbers to be predicted, one column an output.

    Parameters
    ----------
    samples : Intake
    loss : Loss
    fit_intercept : bool

    Returns
    -------
    Response
    """
    design, shape = samples.design, samples.targets.shape
    target = design.map(
        lambda y: y.astype(np.float64, copy=False).reshape(y.shape[0], -1), samples.targets
    )
    loss.check_targets(target, design.fold)
    n_outputs = 1 if len(shape) == 1 else shape[1]
    place = design.place
    return Response(place(target), loss, n_outputs, place(samples.shares), fit_intercept)


def class_response(
    samples: Intake,
    loss: Loss,
    class_weight: Mapping[Any, float] | str | None,
    *,
    fit_intercept: bool,
) -> tuple[NDArray[Any], Response]:
    """Classes, and what the scores are held against.

    Parameters
    ----------
    samples : Intake
    loss : Loss
    class_weight : dict, "balanced" or None
    fit_intercept : bool

    Returns
    -------
    tuple
        Those with samples of positive weight, sorted, and the response.
    """
    design, shares = samples.design, samples.shares
    classes = design.fold(
        lambda y, s: np.unique(y[s > 0.0]), samples.targets, shares, combine=np.union1d
    )
    check_classification_targets(classes)
    if classes.size < 2:
        raise ValueError(
            f"y holds one class only, {classes.tolist()[0]!r}; a classifier needs samples (of "
            "positive weight) of at least two classes."
        )
    codes = design.map(partial(_codes, classes), samples.targets)
    if class_weight is not None:
        # 'balanced' goes by the weight of each class, so that repeated samples count as weights.
        totals = design.fold(partial(np.bincount, minlength=classes.size), codes, shares)
        mine = class_weights(class_weight, classes, totals)
        shares = design.map(lambda c, s: s * mine[c], codes, shares)
        total = design.fold(np.sum, shares)
        shares = design.map(lambda s: s / total, shares)
    loss, place = loss.with_classes(classes.size), design.place
    target = design.map(partial(loss.class_targets, n_classes=classes.size), codes)
    n_outputs = loss.n_outputs(classes.size)
    return classes, Response(place(target), loss, n_outputs, place(shares), fit_intercept)


def named(classes: NDArray[Any], codes: Any) -> Any:
    """The classes of codes; numbers are beside them, other names on the host.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
    codes : array of integers or truth values

    Returns
    -------
    array of the same shape
    """
    if isinstance(codes, np.ndarray) or classes.dtype.kind not in "biuf":
        return classes[to_host(codes).astype(np.intp, copy=False)]
    xp = namespace(codes)
    flat = xp.reshape(xp.astype(codes, xp.int64, copy=False), (-1,))
    return xp.reshape(xp.take(beside(classes, codes), flat), codes.shape)


def _codes(classes: NDArray[Any], targets: NDArray[Any]) -> NDArray[np.intp]:
    """Numbers of the classes; that of a class without weight does not matter."""
    return np.minimum(np.searchsorted(classes, targets), classes.size - 1)
