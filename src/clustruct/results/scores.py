"""Scores of a search in the form of scikit-learn's ``cv_results_``."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.stats import rankdata

from clustruct._typing import Floats
from clustruct.results.paired import standard_errors
from clustruct.results.tables import scores_table


def score_columns(
    points: Sequence[dict[str, Any]], folds: Floats, deviations: Floats | None = None
) -> dict[str, Any]:
    """Parameters and scores of a search as columns, as ``GridSearchCV.cv_results_`` has them.

    Points are the parameters that were tried, all with the same names; scores of the folds, of
    shape (n_points, n_folds), are larger for the better. Deviations over the folds are computed
    unless they are given.
    """
    means = folds.mean(axis=1)
    return {
        **{f"param_{name}": _column([point[name] for point in points]) for name in points[0]},
        "params": list(points),
        **{f"split{f}_test_score": folds[:, f].copy() for f in range(folds.shape[1])},
        "mean_test_score": means,
        "std_test_score": folds.std(axis=1) if deviations is None else deviations,
        "rank_test_score": rankdata(-means, method="min").astype(np.int32),
    }


def _column(values: list[Any]) -> np.ma.MaskedArray[Any, Any]:
    """Values as a masked array with nothing masked, which is what scikit-learn has."""
    numbers = all(isinstance(value, int | float | np.number) for value in values)
    column = np.array(values, dtype=None if numbers else object)
    return np.ma.array(column, mask=np.zeros(len(values), dtype=bool))


@dataclass(frozen=True)
class Price:
    """A price for each group, in place of a number of groups."""

    value: float

    def __str__(self) -> str:
        return f"price {self.value:.3g}"


def total(count: Any) -> float:
    """A number of groups, in all blocks together; infinity for None, no limit.

    For a price its inverse, which grows with the number of groups as well.
    """
    if isinstance(count, Price):
        return 1.0 / count.value
    if isinstance(count, Mapping):
        return float(sum(count.values()))
    return np.inf if count is None else float(count)


class ScoreTable(dict[str, Any]):
    """Scores of a search: attributes of its own, and the columns of scikit-learn's ``cv_results_``.

    It is a dictionary, and not only a mapping, because ``pandas.DataFrame`` takes no other.
    """

    axes: ClassVar[tuple[str, ...]]  # attributes that the axes of the scores but the last stand for
    fold_scores: Floats
    scoring: str
    best_index: tuple[int, ...]

    def __post_init__(self) -> None:
        self.fill()

    @abstractmethod
    def points(self) -> list[dict[str, Any]]:
        """The column ``params``: every point of the grid, in the order of its last axis first."""

    def fill(self) -> None:
        """Derive the columns from the attributes."""
        self.update(score_columns(self.points(), self.point_scores))

    @property
    def point_scores(self) -> Floats:
        """Scores of shape (n_points, n_folds), in the order of `points`."""
        return self.fold_scores.reshape(-1, self.fold_scores.shape[-1])

    @property
    def flat_index(self) -> int:
        """Index of the point chosen into each column."""
        return int(np.ravel_multi_index(self.best_index, self.fold_scores.shape[:-1]))

    @property
    def mean_scores(self) -> Floats:
        """Mean over the folds."""
        return np.asarray(self.fold_scores.mean(axis=-1))

    @property
    def std_scores(self) -> Floats:
        """Standard deviation over the folds."""
        return np.asarray(self.fold_scores.std(axis=-1))

    @property
    def standard_errors(self) -> Floats:
        """Standard error of the mean, zero where there is one fold only."""
        return standard_errors(self.fold_scores)

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary for each point of the grid.

        Returns
        -------
        list of dict
            ``pandas.DataFrame(result.rows())`` makes a data frame of it.
        """
        means, deviations, errors = self.mean_scores, self.std_scores, self.standard_errors
        return [
            {
                **point,
                "mean_score": float(means[place]),
                "std_score": float(deviations[place]),
                "standard_error": float(errors[place]),
                **{f"fold{f}_score": float(s) for f, s in enumerate(self.fold_scores[place])},
                "chosen": place == self.best_index,
            }
            for place, point in zip(np.ndindex(means.shape), self.points(), strict=True)
        ]

    def _repr_html_(self) -> str:
        return scores_table(self.scoring, self.rows())

    # Columns are arrays, whose equality is no truth value: tables are equal to themselves only.

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    __hash__ = object.__hash__  # type: ignore[assignment]
