"""Inputs of tasks as evidence of their groups, those of unlabelled rows included."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clustruct._finite import require_finite
from clustruct._typing import Floats
from clustruct.design import load
from clustruct.estimators import intake
from clustruct.estimators.tasks.entries import Entries, Summed
from clustruct.estimators.tasks.layouts import Ids, as_ids, known_codes
from clustruct.objectives.tasks.data import TaskTargets
from clustruct.objectives.tasks.evidence import Quadratics, of_inputs
from clustruct.objectives.tasks.pieces import TaskSums

# Rows without labels: their inputs, and the id of the task of each.
Unlabelled = tuple[ArrayLike, Ids]
# Part of the variance of a column that is added to that within tasks: a column that is constant in
# every task would tell all of them apart.
RIDGE = 1e-3


def read_unlabelled(
    model: Any, unlabelled: Unlabelled | None, names: NDArray[Any]
) -> TaskSums | None:
    """Sums over rows without labels, by task."""
    if unlabelled is None:
        return None
    if len(unlabelled) != 2:
        raise ValueError(
            f"unlabelled={unlabelled!r:.60} must be a pair: inputs of shape (n_rows, n_features), "
            "and the id of the task of each row."
        )
    if not model.use_inputs:
        raise ValueError(
            "unlabelled rows were given, but use_inputs=False. Rows without labels tell of the "
            "inputs only: give use_inputs=True, or leave them out."
        )
    X, tasks = unlabelled
    design = intake.place_matrix(model, load(X))
    ids = as_ids(tasks, design.shape[0])
    codes = known_codes(ids, names)
    if (unknown := np.flatnonzero(codes < 0)).size:
        raise ValueError(
            f"unlabelled holds rows of the task {ids.tolist()[unknown[0]]!r}, which has no "
            "labelled row. Leave such rows out."
        )
    count = ids.size
    targets = TaskTargets(np.arange(count), codes, np.zeros(count), np.ones(count), count)
    return Entries(design, targets, names.size).summed().sums


def input_evidence(entries: Entries | Summed, more: TaskSums | None) -> Quadratics:
    """Mean inputs of the tasks that have a labelled row, in units of the deviation in a task."""
    sums = entries.sums if isinstance(entries, Summed) else entries.summed().sums
    present = sums.stack.tasks
    if more is not None:
        sums = sums.joined(more)
    sums = sums.centred()
    kept = np.isin(sums.stack.tasks, present)
    G = sums.stack.G[kept]
    counts: Floats = G[:, -1, -1]
    means = G[:, -1, :-1] / counts[:, None]
    scatter = G[:, :-1, :-1].sum(axis=0)
    total = np.diagonal(scatter) / counts.sum()
    within = scatter - np.einsum("t,ti,tj->ij", counts, means, means)
    within = within / max(float(counts.sum()) - counts.size, 1.0)
    varied = total > 0.0
    scale = np.sqrt(total[varied])
    within = within[np.ix_(varied, varied)] / np.outer(scale, scale)
    require_finite(within, "the covariance of the columns within tasks")
    # Of columns that vary by rounding alone the matrix need not be positive.
    values, vectors = np.linalg.eigh(within)
    axes = vectors / np.sqrt(np.maximum(values, 0.0) + RIDGE)
    return of_inputs((means[:, varied] / scale) @ axes, counts)
