"""Folds of tasks: rows to fit and to score on, wherever they live."""

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from clustruct._typing import Floats, Indices
from clustruct.arrays import beside, namespace, to_host
from clustruct.design import PickingDesign
from clustruct.estimators.offsets import shifted
from clustruct.estimators.search.folds import Folds, make_folds
from clustruct.estimators.tasks.entries import Entries, Summed, check_size, fits
from clustruct.estimators.tasks.layouts import Reading
from clustruct.estimators.tasks.scoring import PooledScore
from clustruct.losses import Loss
from clustruct.objectives.tasks.data import TaskTargets, members_of

# What a fold does with each row, in a byte: a sum of these.
FITTED, SCORED = 1, 2
EVERY = 4  # sums
Uses = NDArray[np.uint8]
# Targets to fit on, and to score on.
Split = tuple[Entries | Summed, Entries | Summed]

# Bytes of predictions that are gathered at a time, for scores that want all of them.
GATHERED_BYTES = 1 << 28


def folds_of(reading: Reading, cv: Any, random_state: Any) -> Folds[Uses]:
    """The folds; an integer asks for shuffled ones that are alike in tasks and classes."""
    strata = _strata(reading)
    kept = np.flatnonzero(strata >= 0)

    def uses(number: int, train: Indices, test: Indices) -> Uses:
        mine = np.zeros(strata.size, dtype=np.uint8)
        mine[kept[train]] = FITTED
        mine[kept[test]] += SCORED
        return mine

    return make_folds(
        cv, strata[kept], uses, kept=kept, splitter=lambda count: Alike(count, random_state)
    )


@dataclass(frozen=True)
class Alike:
    """A splitter of shuffled rows into folds with about the same share of every stratum."""

    n_folds: int
    random_state: Any

    def split(self, X: Any, strata: Indices, groups: Any) -> Iterator[tuple[Indices, Indices]]:
        """Yield the rows to fit and to score on."""
        shuffled = check_random_state(self.random_state).permutation(strata.size)
        order = shuffled[np.argsort(strata[shuffled], kind="stable")]
        numbers = np.empty(strata.size, dtype=np.intp)
        numbers[order] = np.arange(strata.size) % self.n_folds
        for fold in range(self.n_folds):
            yield np.flatnonzero(numbers != fold), np.flatnonzero(numbers == fold)

    def get_n_splits(self) -> int:
        """Number of folds."""
        return self.n_folds


def _strata(reading: Reading) -> Indices:
    """A number for each row: the same for the same task and class, -1 without a target."""
    layout, design, targets = reading.layout, reading.entries.design, reading.entries.targets
    signs = bool(
        design.fold(lambda a: bool((np.abs(a.y) == 1.0).all()), targets, combine=operator.and_)
    )

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


def split(
    entries: Entries, folds: Sequence[Uses], loss: Loss, score: PooledScore | None
) -> tuple[Entries | Summed, list[Split]]:
    """All targets, and those of each fold.

    Where a pass over ``X`` is dear and the loss is squared, sums over the rows of all folds are
    taken in one pass, and those of a fold are put together from them; without a `score`, the loss
    is what is scored.
    """

    def used(uses: Uses, what: int) -> Entries:
        return entries.at(np.flatnonzero(uses & what))

    if not (loss.quadratic and entries.adds_up):
        return entries, [(used(uses, FITTED), used(uses, SCORED)) for uses in folds]
    whole, splits = _summed_splits(entries, folds)
    if score is None:
        return whole, splits
    rests = (rest for rest, _ in splits)
    return whole, [(rest, used(uses, SCORED)) for rest, uses in zip(rests, folds, strict=True)]


def _summed_splits(entries: Entries, folds: Sequence[Uses]) -> tuple[Summed, list[Split]]:
    """The same by sums: in one pass, or in one for each fold where folds overlap."""
    n, d = entries.design.shape
    check_size(entries.n_tasks, d)
    patterns, uses = _patterns(folds, n)
    if len(folds) > 1 and not fits(uses.shape[1] * entries.n_tasks, d):
        each = [_summed_splits(entries, [fold]) for fold in folds]
        return each[0][0], [mine for _, splits in each for mine in splits]
    count = entries.n_tasks

    def numbered(a: TaskTargets, mine: Indices) -> TaskTargets:
        return replace(a, tasks=mine[a.rows] * count + a.tasks)

    cells = entries.map(numbered, entries.design.attach(patterns)).summed().sums
    pattern, task = np.divmod(cells.stack.tasks, count)

    def summed(wanted: NDArray[np.bool_]) -> Summed:
        return Summed(cells.added_up(wanted[pattern], task), count)

    whole = summed(np.ones(uses.shape[1], dtype=bool))
    return whole, [(summed(mine & FITTED > 0), summed(mine & SCORED > 0)) for mine in uses]


def _patterns(folds: Sequence[Uses], n: int) -> tuple[Indices, Indices]:
    """Numbers of rows, equal for those that all folds use alike; and what folds use them for."""
    numbers, uses = np.zeros(n, dtype=np.intp), np.zeros((0, 1), dtype=np.intp)
    for use in folds:
        pairs = EVERY * numbers + use
        found = np.flatnonzero(np.bincount(pairs))
        uses = np.vstack([uses[:, found // EVERY], found % EVERY])
        places = np.zeros(int(found[-1]) + 1, dtype=np.intp)
        places[found] = np.arange(found.size)
        numbers = places[pairs]
    return numbers, uses


def score_fits(
    held: Entries | Summed, coefs: Floats, intercepts: Floats, loss: Loss, score: PooledScore | None
) -> Floats:
    """Scores of ``m`` fits on held-out targets, larger is better: negative mean losses by default.

    Coefficients have the shape (m, K, d), intercepts (m, K).
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
            own = None if targets.offset is None else targets.offset[mine]
            yield mine, shifted(z + beside(intercepts[:, t], z), own)


def _own_scores(
    held: Entries, coefs: Floats, intercepts: Floats, loss: Loss, score: PooledScore
) -> Floats:
    """The same by a function of all targets: predictions are gathered for a few fits at a time."""
    count = int(held.design.fold(lambda a: a.rows.size, held.targets))
    height = max(1, GATHERED_BYTES // (8 * max(1, count)))
    found: list[float] = []

    def stacked(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(np.concatenate(pair) for pair in zip(a, b, strict=True))

    for first in range(0, coefs.shape[0], height):
        some = slice(first, first + height)

        def gathered(
            design: PickingDesign, targets: TaskTargets, some: slice = some
        ) -> tuple[Floats, Floats, Indices, Floats]:
            predicted = np.empty((targets.rows.size, coefs[some].shape[0]))
            for mine, z in _predictions(design, targets, coefs[some], intercepts[some]):
                predicted[mine] = to_host(loss.predictions(z))
            return targets.y, predicted, targets.tasks, targets.weights

        y, predicted, tasks, weights = held.design.sweep(gathered, held.targets, combine=stacked)
        found.extend(score(y, column, tasks, weights) for column in predicted.T)
    return np.array(found)
