"""Folds of tasks: rows to fit and to score on, wherever they live."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state

from clustruct._typing import Floats, Indices
from clustruct.arrays import beside, namespace, to_host
from clustruct.design import PickingDesign
from clustruct.estimators.tasks.entries import Entries, Summed, check_size, fits
from clustruct.estimators.tasks.layouts import Reading
from clustruct.losses import Loss
from clustruct.objectives.tasks.rows import TaskTargets, members_of

__all__ = ["Folds", "Score", "Split", "make_folds", "score_fits", "split"]

Fold = tuple[Indices, Indices]
Folds = Sequence[Fold]
Score = Callable[[Floats, Floats, Indices], float]

DEFAULT_FOLDS = 5
# Bytes of predictions that are gathered at a time, for scores that want all of them.
GATHERED_BYTES = 1 << 28
# What a fold does with a row.
LEFT_OUT, FITTED, SCORED = range(3)


def make_folds(cv: Any, reading: Reading, random_state: Any) -> Folds:
    """Rows to fit and to score on; an integer asks for folds alike in tasks and classes.

    Parameters
    ----------
    cv : int, splitter or iterable
    reading : Reading
    random_state : int, RandomState or None
        Shuffles the rows; None is a seed of its own, as rows often come sorted.

    Returns
    -------
    sequence of tuple of ndarray
    """
    all_strata = _strata(reading)
    cv = DEFAULT_FOLDS if cv is None else cv
    if not isinstance(cv, Integral):
        pairs = check_cv(cv).split(np.zeros((all_strata.size, 1)), np.maximum(all_strata, 0))
        return [(np.asarray(rest), np.asarray(held)) for rest, held in pairs]
    rows = np.flatnonzero(all_strata >= 0)
    if not 2 <= int(cv) <= rows.size:
        raise ValueError(
            f"cv={cv} folds cannot be made of n_samples={rows.size} (of positive weight). "
            "Give cv an integer from 2 to the number of samples, or more samples."
        )
    shuffled = check_random_state(0 if random_state is None else random_state).permutation(
        rows.size
    )
    order = shuffled[np.argsort(all_strata[rows[shuffled]], kind="stable")]
    numbers = np.full(all_strata.size, -1, dtype=np.int32)
    numbers[rows[order]] = np.arange(rows.size) % int(cv)
    return NumberedFolds(numbers, int(cv))


@dataclass(frozen=True, eq=False)
class NumberedFolds(Sequence[Fold]):
    """Each row is scored on in one fold; all of their rows together would take much memory.

    Attributes
    ----------
    numbers : ndarray of shape (n,)
        The fold of each row, -1 for none.
    n_folds : int
    """

    numbers: NDArray[np.int32]
    n_folds: int

    def __len__(self) -> int:
        return self.n_folds

    def __getitem__(self, fold: Any) -> Any:
        if not 0 <= fold < self.n_folds:
            raise IndexError(fold)
        rest = (self.numbers >= 0) & (self.numbers != fold)
        return np.flatnonzero(rest), np.flatnonzero(self.numbers == fold)


def _strata(reading: Reading) -> Indices:
    """A number for each row: the same for the same task and class, -1 without an answer."""
    layout, design, targets = reading.layout, reading.entries.design, reading.entries.targets
    signs = bool(design.fold(lambda a: bool((np.abs(a.y) == 1.0).all()), targets, combine=_both))

    def strata(a: TaskTargets) -> Indices:
        found = np.full(a.height, -1, dtype=np.intp)
        if layout == "classes":
            positive = a.y > 0.0
            found[a.rows[positive]] = a.tasks[positive]
        elif layout == "columns":
            found[a.rows] = 0
        else:
            found[a.rows] = 2 * a.tasks + (signs & (a.y > 0.0))
        return found

    return design.fold(strata, targets, combine=lambda a, b: np.concatenate([a, b]))


def _both(one: bool, other: bool) -> bool:
    return one and other


# ---- What is fitted and scored on each fold.


class Split(NamedTuple):
    """Targets to fit on, and to score on."""

    rest: Entries | Summed
    held: Entries | Summed


def split(
    entries: Entries, folds: Folds, loss: Loss, score: Score | None
) -> tuple[Entries | Summed, list[Split]]:
    """All targets, and those of each fold.

    Where a pass over ``X`` is dear and the loss is squared, sums over the rows of all folds are
    taken in one pass, and those of a fold are put together from them.

    Parameters
    ----------
    entries : Entries
    folds : sequence of tuple of ndarray
    loss : Loss
    score : callable or None
        None where the loss is what is scored.

    Returns
    -------
    whole : Entries or Summed
    splits : list of Split
    """
    if not (loss.quadratic and entries.adds_up):
        return entries, [Split(entries.at(rest), entries.at(held)) for rest, held in folds]
    whole, splits = _summed_splits(entries, folds)
    if score is None:
        return whole, splits
    return whole, [
        Split(mine.rest, entries.at(held)) for mine, (_, held) in zip(splits, folds, strict=True)
    ]


def _summed_splits(entries: Entries, folds: Folds) -> tuple[Summed, list[Split]]:
    """The same by sums: in one pass, or in one for each fold where folds overlap."""
    n, d = entries.design.shape
    check_size(entries.n_tasks, d)
    patterns, uses = _patterns(folds, n)
    if len(folds) > 1 and not fits(uses.shape[1] * entries.n_tasks, d):
        each = [_summed_splits(entries, [fold]) for fold in folds]
        return each[0][0], [mine for _, splits in each for mine in splits]
    count = entries.n_tasks

    def numbered(a: TaskTargets, mine: Indices) -> TaskTargets:
        return TaskTargets(a.rows, mine[a.rows] * count + a.tasks, a.y, a.weights, a.height)

    cells = entries.map(numbered, entries.design.attach(patterns)).summed().sums
    pattern, task = np.divmod(cells.stack.tasks, count)

    def summed(wanted: NDArray[np.bool_]) -> Summed:
        return Summed(cells.added_up(wanted[pattern], task), count)

    splits = [Split(summed(use == FITTED), summed(use == SCORED)) for use in uses]
    return summed(np.ones(uses.shape[1], dtype=bool)), splits


def _patterns(folds: Folds, n: int) -> tuple[Indices, Indices]:
    """Numbers of rows, equal for those that all folds use alike; and what folds use them for."""
    numbers, uses = np.zeros(n, dtype=np.intp), np.zeros((0, 1), dtype=np.intp)
    for rest, held in folds:
        use = np.full(n, LEFT_OUT)
        use[rest] = FITTED
        use[held] = SCORED
        pairs = 3 * numbers + use
        found = np.flatnonzero(np.bincount(pairs))
        uses = np.vstack([uses[:, found // 3], found % 3])
        places = np.zeros(int(found[-1]) + 1, dtype=np.intp)
        places[found] = np.arange(found.size)
        numbers = places[pairs]
    return numbers, uses


# ---- Scores


def score_fits(
    held: Entries | Summed, coefs: Floats, intercepts: Floats, loss: Loss, score: Score | None
) -> Floats:
    """Scores of several fits on held-out targets, larger is better.

    Parameters
    ----------
    held : Entries or Summed
    coefs : ndarray of shape (m, K, d)
    intercepts : ndarray of shape (m, K)
    loss : Loss
    score : callable or None
        None for the negative mean loss.

    Returns
    -------
    ndarray of shape (m,)
    """
    if isinstance(held, Summed):
        return -held.mean_losses(coefs, intercepts)
    if score is not None:
        return _own_scores(held, coefs, intercepts, loss, score)

    def losses(design: PickingDesign, targets: TaskTargets) -> tuple[Floats, Floats]:
        sums = np.zeros(coefs.shape[0])
        for mine, z in _predictions(design, targets, coefs, intercepts):
            xp = namespace(z)
            y, w = (beside(values[mine], z) for values in (targets.y, targets.weights))
            y = xp.broadcast_to(y[:, None], z.shape)
            values = loss.value(xp.reshape(y, (-1, 1)), xp.reshape(z, (-1, 1)))
            sums += to_host(w @ xp.reshape(values, z.shape))
        return sums, targets.weights.sum()

    sums, weight = held.design.sweep(losses, held.targets)
    return -sums / weight


def _predictions(
    design: PickingDesign, targets: TaskTargets, coefs: Floats, intercepts: Floats
) -> Any:
    """Targets of each task, and what each fit predicts for them, a column a fit."""
    for t, mine in enumerate(members_of(targets.tasks, coefs.shape[1])):
        if mine.size:
            z = design.rows(targets.rows[mine]).scores(coefs[:, t].T)
            yield mine, z + beside(intercepts[:, t], z)


def _own_scores(
    held: Entries, coefs: Floats, intercepts: Floats, loss: Loss, score: Score
) -> Floats:
    """The same by a function of all targets: predictions are gathered for a few fits at a time."""
    count = int(held.design.fold(lambda a: a.rows.size, held.targets))
    height = max(1, GATHERED_BYTES // (8 * max(1, count)))
    found: list[float] = []
    for first in range(0, coefs.shape[0], height):
        some = slice(first, first + height)

        def gathered(
            design: PickingDesign, targets: TaskTargets, some: slice = some
        ) -> tuple[Floats, Floats, Indices]:
            predicted = np.empty((targets.rows.size, coefs[some].shape[0]))
            for mine, z in _predictions(design, targets, coefs[some], intercepts[some]):
                predicted[mine] = to_host(loss.predictions(z))
            return targets.y, predicted, targets.tasks

        y, predicted, tasks = held.design.sweep(gathered, held.targets, combine=_stacked)
        found.extend(float(score(y, column, tasks)) for column in predicted.T)
    return np.array(found)


def _stacked(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(np.concatenate(pair) for pair in zip(a, b, strict=True))
