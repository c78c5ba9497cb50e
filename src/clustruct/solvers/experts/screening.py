"""Starts that are sought on a few columns, or a few directions, of many.

With many features every expert can be fitted to the samples that it happens to have, and no sample
wants to leave. On the few columns that matter it cannot. Three things tell of them before any
expert is known:

- the pooled fit: columns that matter on average have weights beyond their standard error;
- its losses: they are largest where the experts differ most, so that with ``T_i`` growing with the
  loss of sample ``i`` and ``z_i`` its whitened features, ``sum_i s_i (T_i - mean T) z_i z_i'`` has
  the directions in which the experts differ as its leading eigenvectors;
- experts that were found on some columns: refitted on all, their weights say which columns come
  next.

The first and the last go by columns, the second one does not ask for axes.
"""

from dataclasses import replace

import numpy as np
from scipy import linalg

from clustruct._typing import Floats, Labels
from clustruct.design import as_design
from clustruct.losses import Noise, SquaredLoss
from clustruct.objectives.samples.objective import Panel, SampleObjective
from clustruct.solvers.driver import Budget, drive
from clustruct.solvers.experts.alternating import AlternatingMinimisation
from clustruct.solvers.experts.mixture import MixtureEM
from clustruct.solvers.starts import draw_experts

__all__ = ["Screening", "views"]


# Ridge on standard columns: for fits on all of them, and for fits on few.
RIDGE, LITTLE_RIDGE = 3e-2, 1e-4
# Random starts on the first few columns, and on the next ones besides the groups at hand.
FIRST_STARTS, NEXT_STARTS = 5, 2
# How often columns are chosen anew.
ROUNDS = 6
N_COLUMNS = (16, 32, 8)
SMALL = Budget(100, 1e-4, lambda iteration: None, quiet=True)
# Of a mixture in few directions, which is but the start of one with all features.
MIXED = Budget(50, 1e-5, lambda iteration: None, quiet=True)


def views(n_features: int, n_clusters: int) -> list[tuple[str, int]]:
    """What is looked at, start by start: so many columns, or so many directions.

    Parameters
    ----------
    n_features : int
    n_clusters : int

    Returns
    -------
    list of tuple
        Empty where there are too few features to leave any out.
    """
    columns = [("columns", m) for m in N_COLUMNS if 3 * m <= 2 * n_features]
    directions = [("directions", m * n_clusters) for m in (2, 1) if 3 * m * n_clusters < n_features]
    longest = max(len(columns), len(directions))
    turns = [kind[i : i + 1] for i in range(longest) for kind in (columns, directions)]
    return [view for turn in turns for view in turn]


class Screening:
    """Groups of samples that were found on a few columns or directions.

    Parameters
    ----------
    objective : SampleObjective
        With numbers as targets; its design is made dense. The search is by squared loss.
    total : float
        Weight of all samples together.
    """

    def __init__(self, objective: SampleObjective, total: float) -> None:
        self._objective = objective
        response = replace(objective.response, loss=SquaredLoss())
        shares = response.shares
        means, variances = objective.design.moments(shares)
        if not response.fit_intercept:
            means = np.zeros_like(means)
        deviations = np.sqrt(np.where(variances > 0.0, variances, 1.0))
        dense = objective.design.row_products(np.ones((shares.size, 1)))
        self._Z = (dense - means) / deviations
        self._all = SampleObjective(as_design(self._Z), response, RIDGE)
        pooled = self._all.panel(*self._all.fit_experts([shares], 1e-8))
        scores = self._all.scores(pooled.W, pooled.intercept)[:, 0]
        self._residual = response.target - scores
        gram = self._Z.T @ (shares[:, None] * self._Z)
        gram[np.diag_indices_from(gram)] += RIDGE
        factor = linalg.cholesky(gram, lower=True)
        self._directions = self._contrasts(factor)
        self._first_scores = self._standing_out(pooled.W[0], factor, total)

    def _contrasts(self, factor: Floats) -> Floats:
        """Directions in which the losses of the pooled fit grow, the leading one first."""
        losses = np.square(self._residual).sum(axis=1)
        shares = self._all.response.shares
        # Bounded, so that a few samples with large losses do not decide.
        doubt = losses / (losses + max(float(shares @ losses), np.finfo(float).tiny))
        weights = shares * (doubt - shares @ doubt)
        white = linalg.solve_triangular(factor, self._Z.T, lower=True)
        _, vectors = np.linalg.eigh((white * weights) @ white.T)
        vectors = vectors[:, ::-1]
        largest = np.abs(vectors).argmax(axis=0)
        vectors = vectors * np.sign(vectors[largest, np.arange(largest.size)])
        return linalg.solve_triangular(factor, vectors, lower=True, trans=1)

    def _standing_out(self, W: Floats, factor: Floats, total: float) -> Floats:
        """How far each column stands out: by its pooled weight, and in the leading directions."""
        inverse = linalg.solve_triangular(factor, np.eye(factor.shape[0]), lower=True)
        variances = np.square(inverse).sum(axis=0) / total
        noise = float(self._all.response.shares @ np.square(self._residual).sum(axis=1))
        squares = np.square(W).sum(axis=1)
        tested = squares / np.maximum(variances * noise, np.finfo(float).tiny)
        leading = np.square(self._directions[:, :2]).sum(axis=1)
        return tested + leading / leading.mean()

    def experts(
        self, kind: str, size: int, n_clusters: int, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Experts with all features for the groups that were found on few, see `groups`."""
        groups = self.groups(kind, size, n_clusters, rng)
        panel = self._objective.fit_groups(groups, 1e-6)
        return panel.W, panel.intercept

    def mixed_experts(
        self, size: int, n_clusters: int, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Experts with all features for the groups of a mixture in the leading directions.

        A mixture finds groups that alternating minimisation misses, where there are samples enough
        for the directions to be known well.

        Parameters
        ----------
        size : int
            How many directions.
        n_clusters : int
        rng : numpy.random.Generator

        Returns
        -------
        tuple of ndarray
            Weights (Q, d, K) and intercepts (Q, K).
        """
        seen = self._Z @ self._directions[:, :size]
        objective, pooled, noise = self._restricted(seen, self._residual)
        begin = draw_experts(objective, pooled, noise, n_clusters, rng)
        found = drive(MixtureEM(objective, noise, *begin), MIXED)
        panel = self._objective.fit_groups(found.solution.labels, 1e-6)
        return panel.W, panel.intercept

    def groups(self, kind: str, size: int, n_clusters: int, rng: np.random.Generator) -> Labels:
        """Samples in groups, by experts on a few columns or directions.

        Parameters
        ----------
        kind : {"columns", "directions"}
        size : int
            How many.
        n_clusters : int
        rng : numpy.random.Generator

        Returns
        -------
        ndarray of intp, shape (n,)
        """
        if kind == "directions":
            seen = self._Z @ self._directions[:, :size]
            return self._search(seen, self._residual, n_clusters, None, rng).labels
        scores, labels, tried = self._first_scores, None, set()
        for _ in range(ROUNDS):
            chosen = np.sort(np.argsort(-scores, kind="stable")[:size])
            if chosen.tobytes() in tried:
                break
            tried.add(chosen.tobytes())
            target = np.asarray(self._all.response.target, dtype=np.float64)
            labels = self._search(self._Z[:, chosen], target, n_clusters, labels, rng).labels
            everywhere = self._all.fit_groups(labels, 1e-6)
            totals = np.bincount(everywhere.labels, self._all.response.shares)
            scores = np.einsum("q,qdk->d", totals, np.square(everywhere.W))
        assert labels is not None
        return labels

    def _restricted(self, seen: Floats, target: Floats) -> tuple[SampleObjective, Panel, Noise]:
        """The problem with the columns given in place of all, its pooled fit and its noise."""
        response = replace(self._all.response, target=target)
        objective = SampleObjective(as_design(seen), response, LITTLE_RIDGE)
        pooled = objective.panel(*objective.fit_experts([response.shares], 1e-8))
        return objective, pooled, response.loss.noise(response.n_outputs, pooled.value)

    def _search(
        self,
        seen: Floats,
        target: Floats,
        n_clusters: int,
        labels: Labels | None,
        rng: np.random.Generator,
    ) -> Panel:
        """The best experts of a few starts, one of them the groups at hand."""
        objective, pooled, noise = self._restricted(seen, target)
        n_drawn = FIRST_STARTS if labels is None else NEXT_STARTS
        begins = [draw_experts(objective, pooled, noise, n_clusters, rng) for _ in range(n_drawn)]
        if labels is not None:
            at_hand = objective.fit_groups(labels, 1e-6)
            begins.append((at_hand.W, at_hand.intercept))
        found = [
            drive(AlternatingMinimisation(objective, W, b, n_clusters), SMALL) for W, b in begins
        ]
        best = min(found, key=lambda run: run.state.objective).solution.point
        assert isinstance(best, Panel)
        return best
