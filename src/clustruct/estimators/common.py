"""What models of clustered samples and of clustered tasks have in common."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from clustruct.estimators.options import check_options, conclude, watcher
from clustruct.estimators.search.rules import RULES
from clustruct.solvers.driver import Budget, Callback, Outcome

Constraints = Mapping[str, list[Any]]
SEARCH_CONSTRAINTS: Constraints = {
    "n_clusters": ["array-like", Interval(Integral, 1, None, closed="left")],
    "cv": ["cv_object"],
    "scoring": [str, callable, None],
    "rule": [StrOptions(set(RULES))],
}


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

    _quiet = 0  # the level of `verbose` up to which iterations are not printed
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
        return {name: values for mine in each for name, values in mine.items()}

    def _seed(self) -> int:
        """A seed drawn from the random state."""
        return int(check_random_state(self.random_state).randint(2**31))

    def _solving(self, known_options: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
        """What the solver of a problem is told by the parameters."""
        watch = watcher(int(self.verbose) > self._quiet, self.callback)
        return {
            "budget": Budget(self.max_iter, self.tol, watch),
            "n_starts": None if self.n_init == "auto" else self.n_init,
            "seed": self._seed(),
            "n_jobs": self.n_jobs if self.callback is None else 1,  # iterations in an order
            "options": check_options(self.solver, self.solver_options, known_options),
        }

    def _set_outcome(self, outcome: Outcome) -> None:
        """Set the attributes that tell how a fit ended, and print them if asked to."""
        self.certificate_, self.status_ = outcome.certificate, outcome.status
        self.n_iter_, self.trace_ = outcome.status.n_iter, outcome.trace
        conclude(self.verbose, self.status_, self.certificate_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
