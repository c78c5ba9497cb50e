"""What models of clustered features, samples and tasks have in common."""

import inspect
import warnings
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from functools import wraps
from numbers import Integral, Real
from typing import Any, ClassVar, Self, TypeVar, cast, dataclass_transform

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions, validate_parameter_constraints

from clustruct._docs import documented
from clustruct._finite import without_warnings
from clustruct._interrupts import Watch, is_kept, keeping
from clustruct._progress import shown
from clustruct.design import load
from clustruct.estimators.descriptions import ARGUMENTS
from clustruct.estimators.search.rules import RULES
from clustruct.losses import NUMBER_LOSSES, Loss, kind_of, loss_of
from clustruct.results import Certificate, Iteration, StabilityResult, Status
from clustruct.solvers.driver import Budget, Callback

Model = TypeVar("Model", bound=type)
Fit = TypeVar("Fit", bound=Callable[..., Any])
Constraints = Mapping[str, list[Any]]
SEARCH_CONSTRAINTS: Constraints = {
    "n_clusters": ["array-like", Interval(Integral, 1, None, closed="left")],
    "cv": ["cv_object"],
    "scoring": [str, callable, None],
    "rule": [StrOptions(set(RULES))],
}
# A score has lost as many digits as its columns lie ranges from zero. Second derivatives lose twice
# as many, unless the sums that a fit works with are about the means.
FARTHEST, FARTHEST_CENTRED = 4e6, 1e10


@dataclass_transform()
def fields_are_parameters(kind: Model) -> Model:
    """Make a dataclass whose signature has the model's own parameters before the common ones."""
    dataclass(repr=False, eq=False)(kind)
    constructor: Any = vars(kind)["__init__"]
    signature = inspect.signature(constructor)
    common = vars(ClusterModel)["__annotations__"]
    first, *others = signature.parameters.values()  # sorting keeps the order of equals
    ordered = sorted(others, key=lambda p: (p.kind, p.name in common))
    constructor.__signature__ = signature.replace(parameters=[first, *ordered])
    return kind


def long_work(fit: Fit) -> Fit:
    """Make a fit tell its progress if it is verbose, and end by Ctrl-C with the best so far."""

    @wraps(fit)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        inside = is_kept()
        with keeping() as watch, shown(self.verbose):
            fitted = without_warnings(fit)(self, *args, **kwargs)
            if watch.came and not inside:  # the outermost fit tells
                _tell_of_interrupt(self, watch)
        return fitted

    return cast("Fit", wrapped)


def _tell_of_interrupt(model: Any, watch: Watch) -> None:
    """Say in the status of a fitted model, and by a warning, that Ctrl-C ended its fit."""
    status = model.status_
    model.status_ = replace(
        status,
        interrupted=True,
        converged=status.converged and not watch.cut,
        message=f"{status.message.removesuffix('.')}. Interrupted by Ctrl-C.",
    )
    if watch.pending:  # otherwise a search has told of it
        told = "holds the best so far" if watch.cut else "was nearly done, and is complete"
        warnings.warn(
            f"Ctrl-C ended the fit of {type(model).__name__}, which {told}; status_.interrupted is "
            "True. What comes after the fit goes on now: a second Ctrl-C ends it.",
            ConvergenceWarning,
            stacklevel=4,
        )


class ScoredPredictions:
    """Models whose predictions belong to samples, one for each; those of tasks differ."""

    @documented((ARGUMENTS,))
    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> float:
        """Coefficient of determination, or share of right predictions, of `predict`.

        Returns
        -------
        float
            At most 1.
        """
        model: Any = self
        metric = accuracy_score if is_classifier(self) else r2_score
        predicted = load(model.predict(X, offset=offset))
        return float(metric(load(y), predicted, sample_weight=load(sample_weight)))


@dataclass(repr=False, eq=False)
class ClusterModel(BaseEstimator):
    """Parameters of all models that start several times; the fields make the constructor."""

    n_clusters: int = 3
    _: KW_ONLY
    fit_intercept: bool = True
    solver: str = "auto"
    n_init: str | int = "auto"
    max_iter: int = 500
    tol: float = 1e-6
    solver_options: Mapping[str, Any] | None = None
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = None
    verbose: int | bool = 0
    callback: Callback | None = None

    has_offset_ = False  # of model files from before there were offsets
    stability_: ClassVar[StabilityResult | None] = None  # what `clustruct.stability` has found
    _centres: ClassVar[bool] = False  # whether all losses are fitted about the means of columns
    _constraints: ClassVar[Constraints] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "fit_intercept": ["boolean"],
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "solver_options": [Mapping, None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "callback": [callable, None],
    }

    @property
    def _parameter_constraints(self) -> Constraints:
        """Constraints of all parameters, as scikit-learn checks them; a class has its own ones."""
        each = (vars(kind).get("_constraints", {}) for kind in reversed(type(self).__mro__))
        known = {name: values for mine in each for name, values in mine.items()}
        return {name: known[name] for name in self._get_param_names()}

    def _farthest(self) -> float:
        """How many times its range a column of ``X`` may lie from zero in a fit."""
        centred = self._centres or bool(getattr(loss_of(self), "quadratic", False))
        return FARTHEST_CENTRED if centred and self.fit_intercept else FARTHEST

    def _seed(self) -> int:
        """A seed drawn from the random state."""
        return int(check_random_state(self.random_state).randint(2**31))

    def _solving(self, known_options: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
        """What the solver of a problem is told by the parameters."""
        watch = watcher(int(self.verbose) > 1, self.callback)
        return {
            "budget": Budget(self.max_iter, self.tol, watch),
            "n_starts": None if self.n_init == "auto" else self.n_init,
            "seed": self._seed(),
            "options": check_options(self.solver, self.solver_options, known_options),
        }

    def _as_chosen(self) -> Self:
        """A copy of a fitted model; that of a search has the parameters that it has chosen."""
        return copy(self)

    def _n_jobs(self) -> int | None:
        """Starts that run in parallel; one after the other where a callback watches them."""
        return self.n_jobs if self.callback is None else 1

    def _set_outcome(self, outcome: Any) -> None:
        """Set the attributes that tell how a fit ended, and print them if asked to."""
        self.__dict__.pop("stability_", None)  # it was about other groups
        self.certificate_, self.status_ = outcome.certificate, outcome.status
        self.n_iter_, self.trace_ = outcome.status.n_iter, outcome.trace
        conclude(self.verbose, self.status_, self.certificate_)

    def _firmness(self, label: int) -> float | None:
        """How firm a group is, if that is known."""
        return None if self.stability_ is None else self.stability_.firmness_of(label)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@dataclass(repr=False, eq=False)
class NumberLosses:
    """The loss of a regressor, and the parameters of losses that are chosen by name."""

    _: KW_ONLY
    loss: str | Loss = "squared"
    huber_delta: float = 1.35
    tweedie_power: float = 1.5
    quantile_level: float = 0.5
    quantile_smoothing: float = 0.05

    _constraints: ClassVar[Constraints] = {
        "loss": [StrOptions(set(NUMBER_LOSSES)), Loss],
        "huber_delta": [Interval(Real, 0, None, closed="neither")],
        "tweedie_power": [Interval(Real, 1, 2, closed="neither")],
        "quantile_level": [Interval(Real, 0, 1, closed="neither")],
        "quantile_smoothing": [Interval(Real, 0, None, closed="neither")],
    }

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()  # type: ignore[misc]
        if tags.target_tags is not None:
            tags.target_tags.positive_only = kind_of(self.loss).positive
        return tags


# ---- Options of solvers, and what is printed while they run.

# Values that the options of solvers may have, whichever solver has them.
OPTION_VALUES: Mapping[str, list[Any]] = {
    "longest": [Interval(Real, 0, None, closed="neither")],
    "margin": [Interval(Real, None, None, closed="neither")],
    "max_nodes": [Interval(Integral, 1, None, closed="left")],
    "n_annealed": [Interval(Integral, 0, None, closed="left")],
    "n_repeats": [Interval(Integral, 0, None, closed="left")],
    "n_sweeps": [Interval(Integral, 0, None, closed="left")],
    "n_turns": [Interval(Integral, 0, None, closed="left")],
    "refine": ["boolean"],
    "refit": ["boolean"],
    "noise": [StrOptions({"common", "own"})],
    "relevance": ["boolean", StrOptions({"auto"})],
    "shortest": [Interval(Real, 0, 1, closed="neither")],
    "shrink": [Interval(Real, 0, 1, closed="neither")],
    "step": [StrOptions({"classic", "line_search"})],
    "time_limit": [Interval(Real, 0, None, closed="neither"), None],
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
