"""Folds of samples: how they are made, and what there is to do on each of them."""

from collections.abc import Callable, Iterable, Sequence
from numbers import Integral
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import KFold, PredefinedSplit, StratifiedKFold, check_cv

from clustruct._typing import Indices
from clustruct.estimators.features.plan import Plan
from clustruct.estimators.search.fold_scores import Ledger
from clustruct.objectives.features.objective import FeatureObjective
from clustruct.objectives.quadratic import QuadraticObjective

__all__ = ["Divided", "FoldWork", "check_classes", "make_folds"]

F = TypeVar("F")

DEFAULT_FOLDS = 5


class FoldWork(Protocol):
    """What there is to do on a fold."""

    @property
    def number(self) -> int:
        """Of the fold."""
        ...

    @property
    def travels(self) -> bool:
        """Whether another process may do it."""
        ...

    def objective(self, plan: Plan) -> QuadraticObjective | FeatureObjective:
        """The problem to solve on a fold, with some alpha."""
        ...

    def ledger(self, plan: Plan) -> Ledger:
        """What scores the answers."""
        ...


class Divided(Protocol):
    """Samples in folds, wherever they live."""

    @property
    def objective(self) -> QuadraticObjective | FeatureObjective:
        """Of all samples, with some alpha."""
        ...

    def works(self, plan: Plan) -> Sequence[FoldWork]:
        """What there is to do on each fold."""
        ...


def make_folds(
    cv: int | Iterable[Any] | Any,
    y: NDArray[Any],
    groups: ArrayLike | None,
    kept: Indices,
    make: Callable[[int, Indices, Indices], F],
    *,
    classifier: bool,
    random_state: int | np.random.RandomState | None,
) -> list[F]:
    """The folds, of samples of positive weight.

    Parameters
    ----------
    cv : int, splitter or iterable
        An integer is a number of folds, shuffled where there is a `random_state`. Index pairs, and
        `PredefinedSplit`, count all samples.
    y : ndarray
        Answers of samples of positive weight.
    groups : array-like of shape (n_samples,) or None
        Handed to the splitter.
    kept : ndarray of int
        Which of all samples these are.
    make : callable
        Makes a fold of its number and of the indices, into the samples of positive weight, of those
        to fit on and of those to score on.
    classifier : bool
        Whether folds are to be stratified.
    random_state : int, RandomState or None

    Returns
    -------
    list
        What `make` returned.
    """
    cv = DEFAULT_FOLDS if cv is None else cv
    n = y.shape[0]
    if isinstance(cv, Integral) and not 2 <= int(cv) <= n:
        raise ValueError(
            f"cv={cv} folds cannot be made of n_samples={n} (of positive weight). "
            "Give cv an integer from 2 to the number of samples, or more samples."
        )
    if isinstance(cv, Integral) and random_state is not None:
        kind = StratifiedKFold if classifier and y.ndim == 1 else KFold
        cv = kind(int(cv), shuffle=True, random_state=random_state)
    given = isinstance(cv, PredefinedSplit) or not (
        isinstance(cv, Integral) or hasattr(cv, "split")
    )
    splitter = check_cv(cv, y, classifier=classifier)
    mine = None if groups is None else np.asarray(groups)[kept]
    pairs = splitter.split(np.zeros((n, 1)), y, mine)
    if given:
        pairs = _renumbered(pairs, kept)
    folds, n_empty = [], 0
    for number, (train, test) in enumerate(pairs):
        n_empty += not (len(train) and len(test))
        folds.append(make(number, np.asarray(train), np.asarray(test)))
    if n_empty or not folds:
        raise ValueError(
            f"cv={cv!r:.80} gives {len(folds)} folds, of which {n_empty} lack samples (of "
            "positive weight) to fit or to score on. Give other folds."
        )
    return folds


def _renumbered(
    pairs: Iterable[tuple[Indices, Indices]], kept: Indices
) -> list[tuple[Indices, Indices]]:
    """Indices into all samples, turned into indices into those kept."""
    pairs = [(np.asarray(a, dtype=np.intp), np.asarray(b, dtype=np.intp)) for a, b in pairs]
    top = max((int(part.max(initial=-1)) for pair in pairs for part in pair), default=-1)
    places = np.full(max(top + 1, int(kept.max(initial=-1)) + 1), -1, dtype=np.intp)
    places[kept] = np.arange(kept.size)

    def renumber(part: Indices) -> Indices:
        found = places[part]
        return found[found >= 0]

    return [(renumber(a), renumber(b)) for a, b in pairs]


def check_classes(classes: NDArray[Any] | None, found: NDArray[Any], number: int) -> None:
    """Complain of a fold that lacks a class to fit on."""
    if classes is None:
        return
    missing = np.setdiff1d(classes, found)
    if missing.size:
        raise ValueError(
            f"Fold {number} of cv has no sample of class {missing.tolist()[0]!r} to fit on. "
            "Give a smaller cv, stratified folds, or more samples of that class."
        )
