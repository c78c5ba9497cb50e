"""A gate: a classifier that learns from ``x`` which expert is right.

Its labels are those of samples that had no part in the experts' fit, its probabilities those of
samples that it has not seen, and how far it is trusted is fitted to both: the weights of the
experts are ``w_q(x) ~ w_q (g_q(x) / w_q)^sharpness``, with the gate's probabilities ``g`` and the
experts' shares ``w``. Sharpness 0 ignores the gate, 1 takes it at its word.

The folds depend on what the samples are, not on where they stand: samples that are alike are in the
same fold, so that none is held out while its double is not, and a sample with weight two counts as
two samples.
"""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import has_fit_parameter

from clustruct._typing import Floats, Labels
from clustruct.objectives.samples.objective import Panel, SampleObjective
from clustruct.solvers.experts.problem import SampleProblem

N_FOLDS = 5
# Rows that are digested at once.
BLOCK = 4096
MOST_SHARPNESS = 3.0
SMALLEST = 1e-6


@dataclass(frozen=True, eq=False)
class Gate:
    """A fitted classifier and how far to trust it."""

    classifier: Any
    log_shares: Floats
    sharpness: float

    def weights(self, X: Any) -> Floats:
        """Weights of the experts for each sample, ``n x Q``."""
        log_proba = _log_proba(self.classifier, X, self.log_shares)
        return np.exp(_log_weights(log_proba, self.log_shares, self.sharpness))


def fit_gate(
    gate: Any, problem: SampleProblem, panel: Panel, weights_of_experts: Floats
) -> tuple[Gate, Floats]:
    """Fit a gate to experts; return it, and its weights for samples it has not seen, ``n x Q``.

    `gate` is a classifier, or True for multinomial logistic regression; samples are on the host,
    each with the expert that it chooses.
    """
    objective = problem.objective
    template = LogisticRegression(solver="newton-cholesky") if gate is True else gate
    X, shares = objective.design.matrix(), objective.response.shares
    log_shares = np.log(weights_of_experts)
    weights = problem.total * shares
    folds = _folds(X, np.asarray(objective.response.target), problem.seed)
    labels = _held_out_labels(objective, panel, folds)
    unseen = np.tile(log_shares, (shares.size, 1))
    for rest, held in folds:
        classifier = _fit(template, X[rest], labels[rest], weights[rest])
        unseen[held] = _log_proba(classifier, X[held], log_shares)
    everyone = np.arange(shares.size)

    def log_loss(sharpness: float) -> float:
        return -float(shares @ _log_weights(unseen, log_shares, sharpness)[everyone, labels])

    found = minimize_scalar(log_loss, bounds=(0.0, MOST_SHARPNESS), method="bounded")
    sharpness = float(found.x) if found.fun < log_loss(0.0) else 0.0
    fitted = Gate(_fit(template, X, labels, weights), log_shares, sharpness)
    return fitted, np.exp(_log_weights(unseen, log_shares, sharpness))


def _folds(X: Any, target: NDArray[Any], seed: int) -> list[tuple[Labels, Labels]]:
    """Samples to fit on and samples to hold out, by their features and targets alone."""
    blocks = (slice(first, first + BLOCK) for first in range(0, X.shape[0], BLOCK))
    digests = np.concatenate([_digests(X[rows], target[rows], seed) for rows in blocks])
    distinct, numbers = np.unique(digests, return_inverse=True)
    if distinct.size < 2 * N_FOLDS:
        return []
    folds = numbers.reshape(-1) % N_FOLDS
    return [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(N_FOLDS)]


def _digests(X: Any, target: NDArray[Any], seed: int) -> NDArray[np.uint64]:
    """A number for each row, the same for rows that are alike; their order is as good as random."""
    rows = sparse.csr_matrix(X, dtype=np.float64)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    columns = rows.indices.astype(np.int64)
    digests = np.empty(rows.shape[0], dtype=np.uint64)
    for i, (first, last) in enumerate(zip(rows.indptr[:-1], rows.indptr[1:], strict=True)):
        digest = blake2b(str(seed).encode(), digest_size=8)
        for part in (columns[first:last], rows.data[first:last], target[i]):
            digest.update(part.tobytes())
        digests[i] = int.from_bytes(digest.digest(), "little")
    return digests


def _held_out_labels(
    objective: SampleObjective, panel: Panel, folds: list[tuple[Labels, Labels]]
) -> Labels:
    """The best expert of each sample among those refitted without its fold."""
    labels = panel.labels.copy()
    for rest, held in folds:
        present = np.unique(panel.labels[rest])
        fitted = objective.subset(rest).fit_groups(panel.labels[rest], 1e-6, panel.W)
        costs = objective.subset(held).costs(fitted.W, fitted.intercept)
        labels[held] = present[costs.argmin(axis=1)]
    return labels


def _fit(template: Any, X: Any, labels: Labels, weights: Floats) -> Any:
    """A fitted copy, or None where there is only one label to learn."""
    if np.unique(labels).size < 2:
        return None
    weighed = has_fit_parameter(template, "sample_weight")
    return clone(template).fit(X, labels, **({"sample_weight": weights} if weighed else {}))


def _log_proba(classifier: Any, X: Any, log_shares: Floats) -> Floats:
    """Log-probabilities of all experts; those that a gate never saw keep a little."""
    if classifier is None:
        return np.tile(log_shares, (X.shape[0], 1))
    probabilities = np.full((X.shape[0], log_shares.size), SMALLEST)
    probabilities[:, classifier.classes_] = classifier.predict_proba(X)
    return np.log(np.maximum(probabilities, SMALLEST))


def _log_weights(log_proba: Floats, log_shares: Floats, sharpness: float) -> Floats:
    weights: Floats = log_softmax(log_shares + sharpness * (log_proba - log_shares), axis=1)
    return weights
