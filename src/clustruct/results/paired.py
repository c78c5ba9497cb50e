"""Scores on the same folds, compared by their paired differences."""

import numpy as np

from clustruct._typing import Floats


def fewest(
    scores: Floats,
    sizes: Floats,
    n_errors: float,
    ratio: float | None = None,
    share: float | None = None,
) -> int:
    """Index of the smallest size whose score is not clearly worse than the best.

    Each size is represented by its point of best mean score, so that no point is kept only because
    its scores vary much. A size is clearly worse if its mean is behind the best by more than
    `n_errors` standard errors of the difference on the folds, or by more than `share` of the best.

    Scores, of shape (n_points, n_folds), are larger for the better; of equal points the first
    counts. Sizes are the numbers of groups of the points; `ratio` is that of `corrected_errors`.
    """
    means = scores.mean(axis=1)
    order = np.lexsort((-means, sizes))
    points = order[np.unique(sizes[order], return_index=True)[1]]
    best = points[means[points].argmax()]
    behind = scores[best] - scores[points]
    most = n_errors * corrected_errors(behind, ratio)
    if share is not None:
        most = np.minimum(most, share * abs(means[best]))
    return int(points[np.flatnonzero(~(behind.mean(axis=1) > most))[0]])


def corrected_errors(differences: Floats, ratio: float | None = None) -> Floats:
    """Standard errors of means over folds, which share most of the samples that they fit.

    The variance over ``K`` folds is multiplied by ``1/K + n_test/n_train`` instead of ``1/K``
    (Nadeau and Bengio, "Inference for the generalization error", 2003).

    `ratio` is ``n_test/n_train``; None is ``1/(K - 1)``, that of ``K`` folds which hold out every
    sample once. Folds are the last axis; the errors of a single fold are zero.
    """
    n_folds = differences.shape[-1]
    if n_folds == 1:
        return np.zeros(differences.shape[:-1])
    ratio = 1.0 / (n_folds - 1) if ratio is None else ratio
    errors: Floats = differences.std(axis=-1, ddof=1) * np.sqrt(1.0 / n_folds + ratio)
    return errors


def standard_errors(scores: Floats) -> Floats:
    """Standard errors of means over the last axis, zero where there is one fold only."""
    errors: Floats = scores.std(axis=-1) / np.sqrt(max(1, scores.shape[-1] - 1))
    return errors
