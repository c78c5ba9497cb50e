"""One way in for all estimators: validate what users pass, place it, weigh its rows.

The same functions serve fits and predictions, on the host, on a device and in pieces: where ``X``
lives is known to `clustruct.design` alone.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_regressor
from sklearn.utils import check_array, compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_y, validate_data

from clustruct._finite import refuse_offset, require_squares
from clustruct._typing import Floats
from clustruct.arrays import beside, namespace, to_host
from clustruct.design import Beside, Design, Rows, apply, average, load, place
from clustruct.estimators.offsets import attach_offset, with_offsets
from clustruct.losses import Loss
from clustruct.objectives.linear import Response

# Times that each class is shown to scikit-learn, which takes values that all differ for numbers.
SHOWN = 3
# How many times its range a column of single precision may lie from zero: three digits are left.
FARTHEST_SINGLE = 1e4
# Targets up to this size leave room for predictions and weights in single precision.
LARGEST_SINGLE = 1e18
# The same for targets of losses that are fitted step by step.
FARTHEST_TARGETS = 1e10
# Weights below this share of the largest count as zero, and sums of weights have lost digits if
# all are below the other number.
VANISHING, LIGHTEST = 1e-307, 1e-305


class Samples(NamedTuple):
    """Samples to fit; the shares are their weights, divided by their sum, `total`."""

    design: Design
    targets: Rows
    shares: Rows
    total: float
    offset: Rows | None = None  # (n,) or (n, K), added to the scores


def take_samples(model: Any, X: Any, y: Any, sample_weight: Any, offset: Any) -> Samples:
    """Validate, place and weigh the samples of a fit."""
    design, targets = validate(model, X, y)
    return weigh(design, targets, sample_weight, attach_offset(design, offset))


# ---- Validate and place


def validate(model: Any, X: Any, y: Any, *, reset: bool = True) -> tuple[Design, Rows]:
    """Validate samples and targets; the model gets to know the features, or knows them."""
    require_targets(model, y)
    design = place_matrix(model, X, reset=reset)
    targets = design.attach(y, "y", partial(check_targets, model))
    require_finite_targets(design, targets)
    return design, targets


def place_matrix(model: Any, X: Any, *, reset: bool = False) -> Design:
    """Validate a matrix and return its design; one to fit must not be far off for its spread."""
    design = place(X, _validator(model, reset))
    if reset:
        single = design.single and not design.streamed  # pieces only may be
        farthest = FARTHEST_SINGLE if single else model._farthest()
        for column, least, largest in design.far_columns(farthest):
            refuse_offset(column, least, largest)
    return design


def _validator(model: Any, reset: bool) -> Callable[..., Any]:
    """How a matrix is validated for a model: by its own method, or else by scikit-learn."""
    return partial(getattr(model, "_validate_matrix", partial(validate_data, model)), reset=reset)


def apply_model(
    model: Any,
    function: Callable[..., Any],
    X: Any,
    width: int | tuple[int, ...] | None = None,
    dtype: Any = np.float64,
    beside: Sequence[Beside] = (),
) -> Any:
    """Apply a row-wise function of a fitted model to samples, lazily for Dask.

    See `clustruct.design.apply`; `width` is the number of columns that the function returns, or its
    axes after the first, None for a vector.
    """
    axes = () if width is None else (width,) if isinstance(width, int) else width
    return apply(function, X, _validator(model, reset=False), axes, dtype, beside)


def beside_targets(model: Any, y: Any) -> Beside:
    """Targets as something that belongs to rows."""
    require_targets(model, y)
    return Beside(y, "y", partial(check_targets, model))


def require_targets(model: Any, y: Any) -> None:
    """Complain of targets that were not passed."""
    if y is None:
        raise ValueError(
            f"This {type(model).__name__} estimator requires y to be passed, but the target y is "
            "None."
        )


def check_targets(model: Any, y: Any, n_samples: int, *, multi_output: bool = True) -> NDArray[Any]:
    """Bring targets to the host and validate them: numbers, in columns or not, or classes."""
    numeric = is_regressor(model)
    y = as_numbers(load(y)) if numeric else load(y)
    if getattr(y, "shape", (-1,))[:1] == (0,) or (isinstance(y, list | tuple) and not y):
        require_as_many(np.empty(0), n_samples)
    targets: NDArray[Any] = _check_y(
        y, multi_output=numeric and multi_output, y_numeric=numeric, estimator=model
    )
    require_as_many(targets, n_samples)
    if numeric:
        require_squares(targets)
    return targets


def as_numbers(y: Any) -> Any:
    """Targets of a regression; text that holds numbers becomes numbers."""
    values = np.asarray(y) if isinstance(y, list | tuple) else y
    if getattr(getattr(values, "dtype", None), "kind", "") not in ("U", "S", "O", "T"):
        return y
    try:
        return np.asarray(values, dtype=object).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"y holds something that is no number ({error}), and a regression needs numbers. "
            "Convert it, or use a classifier."
        ) from error


def require_as_many(targets: NDArray[Any], n_samples: int) -> None:
    """Complain of targets that are more or fewer than the samples."""
    if targets.shape[0] != n_samples:
        raise ValueError(
            f"y has {targets.shape[0]} targets, but X has {n_samples} samples. Give one for each."
        )


def require_finite_targets(design: Design, targets: Rows, *, allow_missing: bool = False) -> None:
    """Complain of targets that are missing or infinite, wherever they are."""

    def bad(y: NDArray[Any]) -> int:
        missing = is_missing(y)
        infinite = np.isinf(y) if y.dtype.kind == "f" else np.zeros_like(missing)
        return int(np.count_nonzero(infinite if allow_missing else missing | infinite))

    if count := design.fold(bad, targets):
        kind = "infinity" if allow_missing else "NaN or infinity"
        raise ValueError(
            f"Input y contains {kind}, {count} times. Replace them, or leave them out."
        )
    if design.single and not design.streamed:  # pieces only may be
        _require_single(design, targets)


def _require_single(design: Design, targets: Rows) -> None:
    """Complain of numbers that predictions in the precision of ``X`` would not hold."""

    def size(y: NDArray[Any]) -> float:
        numbers = np.abs(y) if y.dtype.kind == "f" else np.zeros(0)
        return float(np.fmax.reduce(numbers, axis=None, initial=0.0))

    if (largest := design.fold(size, targets, combine=max)) > LARGEST_SINGLE:
        raise ValueError(
            f"y holds numbers too large for the single precision of X: the largest is "
            f"{largest:.3g}. Convert X to double precision, or divide y by a number of that size."
        )


def is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Where values are NaN or None."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype != object:
        return np.zeros(values.shape, dtype=bool)
    flags = [value is None or value != value for value in values.reshape(-1).tolist()]
    return np.array(flags, dtype=bool).reshape(values.shape)


def check_groups(n_samples: int, groups: ArrayLike | None) -> NDArray[Any] | None:
    """Ids of rows that folds keep together."""
    if groups is None:
        return None
    ids = np.asarray(groups)
    if ids.shape != (n_samples,):
        raise ValueError(
            f"groups has shape {ids.shape}, but X has {n_samples} samples. Give one id for each."
        )
    return ids


def names_of_features(estimator: Any) -> NDArray[Any]:
    """Names of the columns that an estimator was fitted to, or ``x0``, ``x1``, ..."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        names = np.array([f"x{j}" for j in range(estimator.n_features_in_)], dtype=object)
    return np.asarray(names)


def with_features_of(source: Any, model: Any) -> Any:
    """Tell a model which features it was fitted with."""
    model.n_features_in_ = source.n_features_in_
    if hasattr(source, "feature_names_in_"):
        model.feature_names_in_ = source.feature_names_in_
    return model


# ---- Weigh


def weigh(design: Design, targets: Rows, sample_weight: Any, offset: Rows | None = None) -> Samples:
    """Turn weights into shares of their total."""
    n = design.shape[0]
    if sample_weight is None:
        even = design.map(lambda y: np.full(y.shape[0], 1.0 / n), targets)
        return Samples(design, targets, even, float(n), offset)
    weights, total = check_weights(design, sample_weight)
    if not design.on_host:  # rows without weight stay: without them, X would have to be copied
        return Samples(design, targets, design.map(lambda w: w / total, weights), total, offset)
    weights = weights / weights.max()  # so that the sum does not overflow
    if not (kept := weights > 0.0).all():
        offset = None if offset is None else offset[kept]
        design, (targets, weights) = design.only(kept, targets, weights)
    return Samples(design, targets, weights / weights.sum(), total, offset)


def check_weights(design: Design, sample_weight: Any) -> tuple[Rows, float]:
    """Validated weights of the rows, and their sum."""
    given = design.attach(sample_weight, "sample_weight", _weights_on_host)
    weights = design.map(lambda w: np.asarray(w, dtype=np.float64), given)
    total, least, largest = design.fold(
        lambda w: (float(w.sum()), float(w.min()), float(w.max())),
        weights,
        combine=lambda a, b: (a[0] + b[0], min(a[1], b[1]), max(a[2], b[2])),
    )
    _require_weights(least, largest, total)
    if least < largest * VANISHING:  # as they are when all are divided by the largest
        weights = design.map(lambda w: np.where(w < largest * VANISHING, 0.0, w), weights)
    return weights, total


def _weights_on_host(sample_weight: Any, n_samples: int) -> Floats:
    """Weights of rows on the host, validated."""
    given = load(sample_weight)
    if isinstance(given, Real):
        given = np.full(n_samples, given)
    weights: Floats = check_array(
        given,
        ensure_2d=False,
        dtype=np.float64,
        order="C",
        input_name="sample_weight",
        ensure_min_samples=0,
    )
    if weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}, but X has {n_samples} samples. Give one "
            "weight for each."
        )
    _require_weights(weights.min(), weights.max(), weights.sum())
    return weights


def _require_weights(least: float, largest: float, total: float) -> None:
    """Complain of weights that are negative, not finite, all zero, or out of range."""
    if not (least >= 0.0 and largest < np.inf):
        raise ValueError(
            "sample_weight holds negative or non-finite numbers. Give weights of at least 0."
        )
    if largest == 0.0:
        raise ValueError("sample_weight is zero throughout. Give at least one positive weight.")
    if total == np.inf or largest < LIGHTEST:
        raise ValueError(
            f"sample_weight holds numbers too {'large' if largest > 1.0 else 'small'} to be added "
            f"up in double precision: the largest is {largest:.3g}. Divide all weights by it."
        )


def mean_over_samples(values: Rows, sample_weight: Any) -> float:
    """Weighted mean of a number for each sample, such as `apply_model` returns."""
    given = Beside(sample_weight, "sample_weight", _weights_on_host)
    return average(values, None if sample_weight is None else given)


def number_response(samples: Samples, loss: Loss, *, fit_intercept: bool) -> Response:
    """Numbers to be predicted, one column an output, with their loss and weights."""
    design, shape = samples.design, samples.targets.shape
    target = design.map(
        lambda y: y.astype(np.float64, copy=False).reshape(y.shape[0], -1), samples.targets
    )
    loss.check_targets(target, design.fold)
    around = target
    if samples.offset is not None and loss.has_identity_link:
        around = design.map(lambda y, o: y - o.reshape(y.shape[0], -1), target, samples.offset)
    if loss.has_identity_link and not loss.quadratic:
        _require_near(design, around)
    loss = loss.with_targets(around, samples.shares, design.fold)
    n_outputs = 1 if len(shape) == 1 else shape[1]
    target, loss = with_offsets(design, target, loss, n_outputs, samples.offset)
    place = design.place
    return Response(place(target), loss, n_outputs, place(samples.shares), fit_intercept)


def _require_near(design: Design, targets: Rows) -> None:
    """Complain of targets that a loss without sums of squares cannot tell apart."""
    least, largest = design.fold(
        lambda y: (float(y.min()), float(y.max())),
        targets,
        combine=lambda a, b: (min(a[0], b[0]), max(a[1], b[1])),
    )
    size, apart = max(abs(least), abs(largest)), largest - least
    if size > FARTHEST_TARGETS * (apart if apart > 0.0 else 1.0):
        raise ValueError(
            f"y lies far from zero for its spread: it has values from {least!r} to {largest!r}, "
            "and double precision leaves too few digits to tell them apart. Subtract the mean of "
            "y first."
        )


def class_response(
    samples: Samples,
    loss: Loss,
    class_weight: Mapping[Any, float] | str | None,
    *,
    fit_intercept: bool,
) -> tuple[NDArray[Any], Response]:
    """Classes with samples of positive weight, sorted, and target, loss and weights."""
    design, shares = samples.design, samples.shares
    classes = design.fold(
        lambda y, s: np.unique(y[s > 0.0]), samples.targets, shares, combine=np.union1d
    )
    check_classes(classes)
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
    target, loss = with_offsets(design, target, loss, n_outputs, samples.offset)
    return classes, Response(place(target), loss, n_outputs, place(shares), fit_intercept)


def check_classes(classes: NDArray[Any], *, any_type: bool = False) -> None:
    """Complain of a single class, or of classes that are numbers of a continuous scale."""
    if not any_type:
        check_classification_targets(np.tile(classes, SHOWN))
    if classes.size < 2:
        raise ValueError(
            f"y holds one class only, {classes.tolist()[0]!r}; a classifier needs samples (of "
            "positive weight) of at least two classes."
        )


def class_weights(
    class_weight: Mapping[Any, float] | str, classes: NDArray[Any], totals: NDArray[Any]
) -> Floats:
    """Weight of each class; some class that is present has a positive one."""
    if class_weight == "balanced":
        return 1.0 / totals
    weights: Floats = compute_sample_weight(class_weight, classes)
    if not (np.isfinite(weights).all() and weights.min() >= 0.0 and weights.any()):
        raise ValueError(
            f"class_weight={class_weight!r:.80} gives weights that are negative, not finite or all "
            "zero. Give each class a weight of at least 0, and some class more."
        )
    return weights


def named(classes: NDArray[Any], codes: Rows) -> Any:
    """The classes of codes; numbers are beside them, other names on the host."""
    if isinstance(codes, np.ndarray) or classes.dtype.kind not in "biuf":
        return classes[to_host(codes).astype(np.intp, copy=False)]
    xp = namespace(codes)
    flat = xp.reshape(xp.astype(codes, xp.int64, copy=False), (-1,))
    return xp.reshape(xp.take(beside(classes, codes), flat), codes.shape)


def _codes(classes: NDArray[Any], targets: NDArray[Any]) -> NDArray[np.intp]:
    """Numbers of the classes; that of a class without weight does not matter."""
    return np.minimum(np.searchsorted(classes, targets), classes.size - 1)
