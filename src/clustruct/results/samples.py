"""What a gate is worth, and how many experts there are."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustruct._html import table
from clustruct.results.scores import score_columns

__all__ = ["CountSelection", "GateScore"]


@dataclass(frozen=True)
class GateScore:
    """What a gate is worth, on samples that it had not seen.

    Attributes
    ----------
    gated : float
        Mean loss of the answer weighted by the gate.
    constant : float
        Mean loss of the answer with the same weights for all samples.
    best : float
        Mean loss of the best expert of each sample, which no gate can beat by much.
    sharpness : float
        How far the gate is trusted: 0 not at all, 1 at its word.

    See Also
    --------
    SampleClusterRegressor : Its attribute ``gate_score_`` is one.

    Examples
    --------
    >>> import clustruct as cs
    >>> cs.GateScore(gated=0.2, constant=1.0, best=0.1, sharpness=1.1).helps
    True
    """

    gated: float
    constant: float
    best: float
    sharpness: float

    @property
    def helps(self) -> bool:
        """Whether the gated answer is better than the constant one, by a hundredth at least."""
        return self.gated < 0.99 * self.constant

    def _repr_html_(self) -> str:
        row = (self.constant, self.gated, self.best, self.sharpness)
        title = f"The gate {'helps' if self.helps else 'does not help'}"
        return table(title, ("loss without it", "with it", "best expert", "sharpness"), [row])


@dataclass(frozen=True, eq=False)
class CountSelection:
    """How the number of experts was chosen; ready to be plotted.

    Attributes
    ----------
    criterion : str
        ``"bic"``, ``"icl"`` or ``"cv"``.
    n_clusters : ndarray of int
        The numbers that were tried.
    values : ndarray of float
        The criterion for each of them; smaller is better.
    standard_errors : ndarray of float
        Over the folds, zero without folds.
    losses : ndarray of float
        Mean loss of the best expert of each sample, out of the fold for ``"cv"``.
    best : int
        The number that was chosen.
    fold_values : ndarray of shape (n_counts, n_folds), default=None
        The criterion on each fold, one column without folds; None in model files that were written
        before it was kept.

    See Also
    --------
    SampleClusterRegressorCV : Its attribute ``selection_`` is one.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_experts(300, 3, 2, random_state=0)
    >>> model = cs.SampleClusterRegressorCV((1, 2, 3), random_state=0).fit(problem.X, problem.y)
    >>> model.selection_.n_clusters.tolist(), model.selection_.best
    ([1, 2, 3], 2)
    """

    criterion: str
    n_clusters: NDArray[np.intp]
    values: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    losses: NDArray[np.float64]
    best: int
    fold_values: NDArray[np.float64] | None = None

    @property
    def best_index(self) -> int:
        """Index of the number that was chosen."""
        return int(np.flatnonzero(self.n_clusters == self.best)[0])

    def as_cv_results(self) -> dict[str, Any]:
        """The columns of scikit-learn's ``cv_results_``, the negative criterion as the score.

        Returns
        -------
        dict
            ``pandas.DataFrame(selection.as_cv_results())`` makes a data frame of it.
        """
        points = [{"n_clusters": int(count)} for count in self.n_clusters]
        if self.fold_values is not None:
            return score_columns(points, 0.0 - self.fold_values)
        unknown = np.where(self.standard_errors > 0.0, np.nan, 0.0)
        return score_columns(points, 0.0 - self.values[:, None], unknown)

    def _repr_html_(self) -> str:
        rows = [
            (
                int(count),
                float(value),
                float(error),
                float(loss),
                "yes" if count == self.best else "",
            )
            for count, value, error, loss in zip(
                self.n_clusters, self.values, self.standard_errors, self.losses, strict=True
            )
        ]
        header = ("experts", self.criterion, "standard error", "loss of the best", "chosen")
        return table(f"{self.best} experts chosen by {self.criterion}", header, rows)
