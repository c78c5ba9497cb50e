"""Losses of rows with several classifiers, by their definition."""

import numpy as np
from scipy.special import logsumexp

from clustruct.kernels.fits.class_losses import class_losses


def test_against_the_definition():
    for seed, (n, d, n_classes, n_experts) in enumerate([(5, 1, 2, 1), (7, 4, 3, 2), (6, 3, 5, 3)]):
        rng = np.random.default_rng(seed)
        rows, codes = rng.standard_normal((n, d)), rng.integers(n_classes, size=n)
        weights = 3.0 * rng.standard_normal((n_experts, n_classes, d))
        intercepts = rng.standard_normal((n_experts, n_classes))
        intercepts[0] += 700.0  # scores whose powers are too large
        losses = np.empty((n, n_experts), order="F")
        class_losses(rows, codes.astype(np.intp), weights, intercepts, losses)
        scores = np.einsum("id,qkd->iqk", rows, weights) + intercepts
        own = scores[np.arange(n), :, codes]
        np.testing.assert_allclose(losses, logsumexp(scores, axis=2) - own, atol=1e-12)
