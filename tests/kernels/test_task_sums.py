"""Scores and sums of tasks, against products with the rows of each."""

import numpy as np
import pytest

from clustruct.kernels.fits.task_sums import task_scores, task_sums


@pytest.mark.parametrize("shared", [False, True])
def test_against_products_of_each_task(shared):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        width, n_tasks = int(rng.integers(1, 7)), int(rng.integers(1, 6))
        # Sizes about the number of rows that are taken together, and no rows at all.
        sizes = np.full(n_tasks, seed) if shared else rng.integers(0, 10, n_tasks)
        bounds = np.cumsum([0, *sizes], dtype=np.intp)
        firsts = np.zeros(n_tasks, dtype=np.intp) if shared else bounds[:-1].copy()
        rows = rng.standard_normal((seed if shared else bounds[-1], width))
        weights = rng.standard_normal((n_tasks, width))
        bends, slopes = rng.standard_normal((2, bounds[-1]))
        scores = np.empty(bounds[-1])
        grams = np.full((n_tasks, width, width), np.nan)
        crossed = np.full((n_tasks, width), np.nan)
        given = (rows, firsts, bounds, weights, bends, slopes)
        for array in given:
            array.flags.writeable = False
        task_scores(rows, firsts, bounds, weights, scores)
        task_sums(rows, firsts, bounds, bends, slopes, grams, crossed)
        for t in range(n_tasks):
            own = slice(bounds[t], bounds[t + 1])
            mine = rows[firsts[t] : firsts[t] + sizes[t]]
            np.testing.assert_allclose(scores[own], mine @ weights[t], atol=1e-14)
            gram = mine.T @ (bends[own, None] * mine)
            np.testing.assert_allclose(grams[t], gram, atol=1e-13)
            np.testing.assert_allclose(crossed[t], mine.T @ slopes[own], atol=1e-14)
