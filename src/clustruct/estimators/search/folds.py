"""Folds of samples."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import KFold, PredefinedSplit, StratifiedKFold, check_cv
from sklearn.utils.multiclass import check_classification_targets

from clustruct._typing import Indices

F = TypeVar("F")

DEFAULT_FOLDS = 5


@dataclass(frozen=True, eq=False)
class Folds(Generic[F]):
    """The folds of a search, and how many samples they hold out for each that they fit."""

    each: list[F]
    ratio: float


def make_folds(
    cv: int | Iterable[Any] | Any,
    y: NDArray[Any],
    make: Callable[[int, Indices, Indices], F],
    *,
    kept: Indices,
    splitter: Callable[[int], Any],
    groups: ArrayLike | None = None,
) -> Folds[F]:
    """The folds, of samples of positive weight: those `kept`, to which the targets `y` belong.

    Index pairs, and `PredefinedSplit`, count all samples; other splitters see those of positive
    weight. `make` makes a fold of its number and of indices, into the samples of positive weight,
    of those to fit on and of those to score on; `splitter` makes a splitter of a number of folds.
    """
    cv = DEFAULT_FOLDS if cv is None else cv
    n = y.shape[0]
    if isinstance(cv, Integral):
        if not 2 <= int(cv) <= n:
            raise ValueError(
                f"cv={cv} folds cannot be made of n_samples={n} (of positive weight). "
                "Give cv an integer from 2 to the number of samples, or more samples."
            )
        cv = splitter(int(cv))
    given = isinstance(cv, PredefinedSplit) or not hasattr(cv, "split")
    mine = None if groups is None else np.asarray(groups)[kept]
    pairs: Iterable[Any] = _split(check_cv(cv), y, mine)
    if given:
        pairs = _renumbered(pairs, kept)
    folds, sizes = [], []
    for number, (train, test) in enumerate(pairs):
        sizes.append((len(train), len(test)))
        folds.append(make(number, np.asarray(train), np.asarray(test)))
    n_empty = sum(not all(size) for size in sizes)
    if n_empty or not folds:
        raise ValueError(
            f"cv={cv!r:.80} gives {len(folds)} folds, of which {n_empty} lack samples (of "
            "positive weight) to fit or to score on. Give other folds."
        )
    return Folds(folds, float(np.mean([test / train for train, test in sizes])))


def check_classes_of_fold(classes: NDArray[Any] | None, targets: NDArray[Any], number: int) -> None:
    """Refuse a fold that lacks a class to fit on; None where there are no classes."""
    missing = np.setdiff1d([] if classes is None else classes, targets)
    if missing.size:
        raise ValueError(
            f"Fold {number} of cv has no sample of class {missing.tolist()[0]!r} to fit on. "
            "Give a smaller cv, stratified folds, or more samples of that class."
        )


def _split(splitter: Any, y: NDArray[Any], groups: NDArray[Any] | None) -> list[Any]:
    """Pairs of indices of the folds; an error of the splitter is told with the remedy."""
    if isinstance(splitter, StratifiedKFold):
        classes, counts = np.unique(y, return_counts=True)
        if (most := int(counts.max())) < splitter.n_splits:
            raise ValueError(
                f"cv={splitter.n_splits} folds need as many samples (of positive weight) of some "
                f"class, but y has at most {most} of any of its {classes.size} classes. Give cv at "
                f"most {max(2, most)}, or more samples."
            )
    try:
        return list(splitter.split(np.zeros((y.shape[0], 1)), y, groups))
    except ValueError as error:
        raise ValueError(
            f"cv={splitter!r:.80} cannot divide {y.shape[0]} samples (of positive weight): "
            f"{error} Give fewer folds, other groups, or more samples."
        ) from error


def in_order_or_shuffled(
    y: NDArray[Any], classifier: bool, random_state: int | np.random.RandomState | None
) -> Callable[[int], KFold | StratifiedKFold]:
    """Folds in the order of the samples, shuffled by a `random_state`; stratified for classes."""
    if classifier:
        check_classification_targets(y)
    kind = StratifiedKFold if classifier and y.ndim == 1 else KFold
    return lambda count: kind(count, shuffle=random_state is not None, random_state=random_state)


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
