"""From what users pass to what solvers take: matrices, weights, classes, starts."""

from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import compute_sample_weight
from sklearn.utils._param_validation import Interval, StrOptions, validate_parameter_constraints
from sklearn.utils.validation import _check_sample_weight, validate_data

from clustruct._typing import Floats
from clustruct.results import Certificate, Iteration, Status
from clustruct.solvers.driver import Callback

__all__ = [
    "MATRIX_CHECKS",
    "check_groups",
    "check_matrix",
    "check_options",
    "check_start",
    "check_weights",
    "class_weights",
    "conclude",
    "names_of_features",
    "printer",
    "total_weight",
    "watcher",
    "weigh_rows",
    "with_features_of",
]


# How matrices are validated: sparse ones stay sparse, single precision stays single.
MATRIX_CHECKS: Mapping[str, Any] = {
    "accept_sparse": ("csr", "csc"),
    "dtype": (np.float64, np.float32),
}


def weigh_rows(
    X: Any, y: NDArray[Any], sample_weight: ArrayLike | None
) -> tuple[Any, NDArray[Any], Floats]:
    """Rows of positive weight, and their shares of the total, which sum to one."""
    weights = check_weights(X, sample_weight)
    if weights is None:
        return X, y, np.full(X.shape[0], 1.0 / X.shape[0])
    weights = weights / weights.max()  # so that the sum does not overflow
    if not weights.all():
        kept = weights > 0
        X, y, weights = X[kept], y[kept], weights[kept]
    return X, y, weights / weights.sum()


def check_weights(X: Any, sample_weight: ArrayLike | None) -> Floats | None:
    """Weights of the rows, not all of them zero."""
    if sample_weight is None:
        return None
    weights: Floats = _check_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True
    )
    if not weights.any():
        raise ValueError("sample_weight is zero throughout. Give at least one positive weight.")
    return weights


def total_weight(X: Any, sample_weight: ArrayLike | None) -> float:
    """Weight of all rows together, as if one of weight w had been seen w times."""
    weights = check_weights(X, sample_weight)
    return float(X.shape[0] if weights is None else weights.sum())


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


def check_matrix(estimator: Any, X: ArrayLike) -> Any:
    """A matrix to predict from."""
    return validate_data(estimator, X, reset=False, **MATRIX_CHECKS)


def check_start(init: str | ArrayLike, shape: tuple[int, int]) -> Floats | None:
    """Weights to begin with, ``d x K``, or None for those without constraint."""
    if isinstance(init, str):
        return np.zeros(shape) if init == "zeros" else None
    weights = np.asarray(init, dtype=np.float64)
    weights = weights[:, None] if weights.ndim == 1 else weights.T
    if weights.shape != shape:
        raise ValueError(
            f"init has shape {np.shape(init)}, but the weights have {shape[0]} features and "
            f"{shape[1]} outputs. Give it the shape of coef_."
        )
    if not np.isfinite(weights).all():
        raise ValueError("init holds weights that are not finite. Give finite numbers.")
    return weights


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


def with_features_of(source: Any, model: Any) -> Any:
    """Tell a model which features it was fitted with."""
    model.n_features_in_ = source.n_features_in_
    if hasattr(source, "feature_names_in_"):
        model.feature_names_in_ = source.feature_names_in_
    return model


# What the options of solvers may be, whichever solver has them.
OPTION_VALUES: Mapping[str, list[Any]] = {
    "longest": [Interval(Real, 0, None, closed="neither")],
    "n_annealed": [Interval(Integral, 0, None, closed="left")],
    "n_repeats": [Interval(Integral, 0, None, closed="left")],
    "n_sweeps": [Interval(Integral, 0, None, closed="left")],
    "n_turns": [Interval(Integral, 0, None, closed="left")],
    "refine": ["boolean"],
    "refit": ["boolean"],
    "relevance": ["boolean", StrOptions({"auto"})],
    "shortest": [Interval(Real, 0, 1, closed="neither")],
    "shrink": [Interval(Real, 0, 1, closed="neither")],
    "step": [StrOptions({"classic", "line_search"})],
}


def check_options(
    solver: str, options: Mapping[str, Any] | None, known: Mapping[str, tuple[str, ...]]
) -> Mapping[str, Any]:
    """Options that the solver has, with values that they may have."""
    options = {} if options is None else options
    unknown = [name for name in options if name not in known[solver]]
    if unknown:
        raise ValueError(
            f"solver_options has {unknown[0]!r}, which solver={solver!r} does not know. "
            f"Its options are: {', '.join(known[solver]) or 'none'}."
        )
    validate_parameter_constraints(
        {name: OPTION_VALUES[name] for name in options}, dict(options), "solver_options"
    )
    return options


def printer(verbose: int | bool) -> Callable[[Iteration], None]:
    """What to do with each step: print it, or nothing."""
    if not verbose:
        return lambda iteration: None
    return lambda i: print(
        f"{i.solver:>6} {i.number:5d}  objective {i.objective:.8g}  step {i.step:.3g}  "
        f"{i.seconds:.2f} s"
    )


def watcher(verbose: int | bool, callback: Callback | None) -> Callback:
    """What is told of each step: a printer, and the user's callback until it has had enough."""
    tell = printer(verbose)
    enough = False

    def watch(iteration: Iteration) -> bool:
        nonlocal enough
        tell(iteration)
        if callback is not None and not enough:
            enough = bool(callback(iteration))
        return enough

    return watch


def conclude(verbose: int | bool, status: Status, certificate: Certificate) -> None:
    """Print how a fit ended, and what is proved of it."""
    if verbose:
        print(f"{status.message}\n{certificate.in_words}")


def names_of_features(estimator: Any) -> NDArray[Any]:
    """Names of the features that an estimator was fitted to, or ``x0``, ``x1``, ..."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        names = np.array([f"x{j}" for j in range(estimator.n_features_in_)], dtype=object)
    return np.asarray(names)
