"""Small problems of clustered tasks."""

import numpy as np

from clustruct.design import as_design
from clustruct.losses import LogisticLoss, SquaredLoss
from clustruct.objectives.tasks.blocks import Strengths
from clustruct.objectives.tasks.data import OwnRows, Part, task_data
from clustruct.objectives.tasks.objective import TaskObjective
from tests.losses.targets import suited


def strengths(d, fit_intercept=True, *, alpha=0.1, mean=0.05, between=0.2, within=0.7):
    def each(price, last):
        return np.append(np.full(d, price), last) if fit_intercept else np.full(d, price)

    return Strengths(each(alpha, 0.0), each(mean, 1e-3), each(between, 0.3), each(within, 0.3))


def make(loss=None, n_tasks=5, d=3, fit_intercept=True, seed=0, sizes=(1, 8), **prices):
    """An objective of tasks with a few rows each, weighted."""
    rng = np.random.default_rng(seed)
    loss = loss or SquaredLoss()
    counts = rng.integers(*sizes, n_tasks)
    designs = [as_design(rng.standard_normal((count, d)) + 0.5) for count in counts]
    target = 2 * rng.standard_normal(counts.sum())
    if isinstance(loss, LogisticLoss):
        target = np.where(target > 0, 1.0, -1.0)
    target = target if loss.has_identity_link else suited(loss, 0.5 * target)
    shares = rng.random(counts.sum())
    means = np.full(d, 0.5) if fit_intercept else np.zeros(d)
    rows = OwnRows.of(designs)
    part = Part(rows, target, shares / shares.sum(), loss, means, fit_intercept)
    return TaskObjective(task_data(part, loss), strengths(d, fit_intercept, **prices))


def partitions(n_tasks, n_groups):
    """All ways to put tasks in at most so many groups."""
    if n_tasks == 0:
        yield []
        return
    for rest in partitions(n_tasks - 1, n_groups):
        for label in range(min(max(rest, default=-1) + 2, n_groups)):
            yield [*rest, label]


def best_value(objective, n_groups):
    """The least objective over all groupings."""
    every = partitions(objective.shape[0], n_groups)
    return min(objective.refit(np.array(labels), n_groups, 1e-12).value for labels in every)
