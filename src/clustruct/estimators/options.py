"""Options of solvers, and what is printed and told while they run."""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions, validate_parameter_constraints

from clustruct._typing import Floats
from clustruct.results import Certificate, Iteration, Status
from clustruct.solvers.driver import Callback

# Values that the options of solvers may have, whichever solver has them.
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


def watcher(verbose: int | bool, callback: Callback | None) -> Callback:
    """Return a callback that prints iterations and tells the user's until that returns True."""
    enough = False

    def watch(iteration: Iteration) -> bool:
        nonlocal enough
        if verbose:
            print(
                f"{iteration.solver:>6} {iteration.number:5d}  objective "
                f"{iteration.objective:.8g}  step {iteration.step:.3g}  {iteration.seconds:.2f} s"
            )
        if callback is not None and not enough:
            enough = bool(callback(iteration))
        return enough

    return watch


def conclude(verbose: int | bool, status: Status, certificate: Certificate) -> None:
    """Print how a fit ended, and what is proved of it."""
    if verbose:
        print(f"{status.message}\n{certificate.in_words}")


def set_parameters(model: Any, given: Mapping[str, Any]) -> None:
    """Set the parameters of a constructor, its ``locals()``, as attributes of the same names."""
    names = model._get_param_names()
    vars(model).update((name, value) for name, value in given.items() if name in names)
