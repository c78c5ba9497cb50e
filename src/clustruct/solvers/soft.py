"""Many cheap starts by message passing, each polished by moves of single features.

The search sees the quadratic form of squared loss only; see `soft_search`.
"""

import numpy as np
from numpy.typing import NDArray

from clustruct.constraints import Constraint
from clustruct.objectives.quadratic import QuadraticObjective
from clustruct.solvers.driver import Answer
from clustruct.solvers.greedy import Grouped
from clustruct.solvers.protocols import require
from clustruct.solvers.quadratic import Quadratic
from clustruct.solvers.soft_search import Effort, search

__all__ = ["Soft"]

Floats = NDArray[np.float64]


class Soft:
    """A search over partitions, from a feasible start.

    Parameters
    ----------
    objective : QuadraticObjective
    constraint : Constraint
    start : ndarray of shape (d, K)
        Weights whose groups the search has to better.
    effort : Effort
    rng : numpy.random.Generator
    tol : float
        Precision of the refit.
    """

    name = "soft"

    def __init__(
        self,
        objective: QuadraticObjective,
        constraint: Constraint,
        start: Floats,
        *,
        effort: Effort,
        rng: np.random.Generator,
        tol: float = 1e-10,
    ) -> None:
        require(self.name, objective, ("gram", "moment", "refit"))
        require(self.name, constraint, ("places",))
        places = constraint.places(start)
        if places is None:
            raise ValueError(
                "solver='soft' moves features between groups, and n_clusters=None gives each its "
                "own. Give n_clusters an integer, or choose solver='pg'."
            )
        self._objective = objective
        self._places = places
        self._effort = effort
        self._rng = rng
        self._tol = tol

    def start(self) -> Grouped:
        """The groups of the start."""
        labels = self._places.labels
        point = self._objective.refit(labels, self._places.n_groups, self._tol)
        return Grouped(point, labels, 0.0, np.inf, done=False)

    def advance(self, state: Grouped) -> Grouped:
        """The whole search, which is one step."""
        objective, places = self._objective, self._places
        problem = Quadratic(
            gram=objective.gram,
            moment=objective.moment,
            constant=2.0 * objective.constant,
            alpha=float(objective.penalties[0]),
            # As many as there are directions in which the samples tell something: weights that
            # count as repetitions change neither this nor the search.
            n_samples=float(np.linalg.matrix_rank(objective.gram, hermitian=True)),
            n_clusters=places.n_groups,
            first=places.first,
            last=places.last,
            n_nonzero=places.n_nonzero,
        )
        labels = search(
            problem, self._rng, effort=self._effort, starts=state.labels[None, :]
        ).labels
        point = objective.refit(labels, places.n_groups, self._tol)
        if point.value < state.objective:
            return Grouped(point, labels, 1.0, 0.0, done=True)
        return Grouped(state.point, state.labels, 0.0, 0.0, done=True)

    def answer(self, state: Grouped) -> Answer:
        """The point itself."""
        return Answer(state.point, state.labels)
