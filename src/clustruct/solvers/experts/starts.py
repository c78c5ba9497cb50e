"""Starts for the search for experts: random ones, and groups found on a few columns or directions.

With many features every expert can be fitted to the samples that it happens to have, and no sample
changes its expert. On the few columns that matter it cannot. Three things identify these columns
before any expert is known:

- the pooled fit: columns that matter on average have weights beyond their standard error;
- its losses: they are largest where the experts differ most, so that with ``T_i`` growing with the
  loss of sample ``i`` and ``z_i`` its whitened features, ``sum_i s_i (T_i - mean T) z_i z_i'`` has
  the directions in which the experts differ as its leading eigenvectors;
- experts that were found on some columns: refitted on all, their weights say which columns come
  next.

The first and the last choose columns, the second one any directions. Where one expert has most of
the samples, experts are found one after the other instead, see `sequential`.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import linalg

from clustruct._finite import SMALLEST
from clustruct._typing import Floats, Labels
from clustruct.design import as_design
from clustruct.losses import Noise, SquaredLoss
from clustruct.objectives.samples.objective import Panel, SampleObjective
from clustruct.solvers.driver import Budget, drive
from clustruct.solvers.experts.alternating import AlternatingMinimisation
from clustruct.solvers.experts.mixture import MixtureEM
from clustruct.solvers.experts.sequential import groups_in_turn


@dataclass(frozen=True)
class ScreeningSettings:
    """Constants of the search for groups on a few columns."""

    # Ridge on standard columns: for fits on all of them, and for fits on few.
    ridge: float = 3e-2
    little_ridge: float = 1e-4
    # Random starts on the first few columns, and on later ones besides the groups already found.
    first_starts: int = 5
    next_starts: int = 2
    # How often columns are chosen anew, and how many of them, by turns.
    rounds: int = 6
    n_columns: tuple[int, ...] = (16, 32, 8)
    # Samples for each weight with which experts are found one after the other.
    samples_in_turn: float = 4.5


SETTINGS = ScreeningSettings()
# Budget of a start on few columns.
SMALL = Budget(100, 1e-4, lambda iteration: None, quiet=True)
# Budget of a mixture in few directions, which is only the start of one with all features.
MIXED = Budget(50, 1e-5, lambda iteration: None, quiet=True)


def draw_experts(
    objective: SampleObjective,
    pooled: Panel,
    noise: Noise,
    n_experts: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Random experts whose scores differ from the pooled ones about as much as the targets do.

    They depend on the samples through their moments alone, so that a repeated sample and a sample
    with weight two lead to the same start.

    pooled: one expert for all samples.

    Returns weights (Q, d, K) and intercepts (Q, K).
    """
    d, n_outputs = objective.shape
    means, variances = objective.design.moments(objective.response.shares)
    squares = variances if objective.response.fit_intercept else variances + means**2
    spread = noise.spread(pooled.value)
    # Weights that make a difference on smaller columns could not be squared.
    seen = squares > SMALLEST**2
    scales = np.divide(spread, np.sqrt(d * squares), where=seen, out=np.zeros(d))
    away = scales[:, None] * rng.standard_normal((n_experts, d, n_outputs))
    shift = np.zeros((n_experts, n_outputs))
    if objective.response.fit_intercept:
        # Moved at the centre of the samples, not at the origin.
        shift = 0.5 * spread * rng.standard_normal(shift.shape)
        shift -= np.einsum("d,qdk->qk", means, away)
    return pooled.W + away, pooled.intercept + shift


def views(n_features: int, n_clusters: int, total: float) -> list[tuple[str, int]]:
    """What to search on, start by start: columns or directions, and their number.

    If there are enough samples, whose weight is `total`, experts are also found "in turn" on all
    columns; so many of them with tilted weights. Empty if there are too few features to leave any
    out.
    """
    columns = [("columns", m) for m in SETTINGS.n_columns if 3 * m <= 2 * n_features]
    directions = [("directions", m * n_clusters) for m in (2, 1) if 3 * m * n_clusters < n_features]
    longest = max(len(columns), len(directions))
    turns = [kind[i : i + 1] for i in range(longest) for kind in (columns, directions)]
    few = [view for turn in turns for view in turn]
    enough = total >= SETTINGS.samples_in_turn * n_clusters * (n_features + 1)
    return [("in turn", 0), ("in turn", 1), *few] if few and enough else few


class Screening:
    """The search for groups of samples on a few columns or directions.

    objective: with numbers as targets; its design is made dense. The search is by squared loss.
    total: weight of all samples together.
    """

    def __init__(self, objective: SampleObjective, total: float) -> None:
        self._objective = objective
        self._total = total
        given = objective.response
        none = np.zeros((given.shares.size, given.n_outputs))
        target = given.loss.residuals(given.target, none)
        response = replace(given, loss=SquaredLoss(), target=target)
        self._Z = objective.standard.features[:, : objective.shape[0]]
        self._all = SampleObjective(as_design(self._Z), response, SETTINGS.ridge)

    @cached_property
    def _pooled(self) -> Panel:
        """One expert for all samples."""
        return self._all.panel(*self._all.fit_experts([self._all.response.shares], 1e-8))

    @cached_property
    def _residual(self) -> Floats:
        """What the pooled expert leaves of the target."""
        pooled = self._pooled
        scores = self._all.scores(pooled.W, pooled.intercept)[:, 0]
        return np.asarray(self._all.response.target - scores)

    @cached_property
    def _factor(self) -> Floats:
        """Lower Cholesky factor of the normal matrix."""
        gram = self._Z.T @ (self._all.response.shares[:, None] * self._Z)
        gram[np.diag_indices_from(gram)] += SETTINGS.ridge
        return np.asarray(linalg.cholesky(gram, lower=True))

    @cached_property
    def _directions(self) -> Floats:
        """Directions in which the losses of the pooled fit grow most, the leading one first."""
        losses = np.square(self._residual).sum(axis=1)
        shares = self._all.response.shares
        # Bounded, so that a few samples with large losses do not dominate.
        doubt = losses / (losses + max(float(shares @ losses), np.finfo(float).tiny))
        weights = shares * (doubt - shares @ doubt)
        white = linalg.solve_triangular(self._factor, self._Z.T, lower=True)
        _, vectors = np.linalg.eigh((white * weights) @ white.T)
        vectors = vectors[:, ::-1]
        largest = np.abs(vectors).argmax(axis=0)
        vectors = vectors * np.sign(vectors[largest, np.arange(largest.size)])
        return np.asarray(linalg.solve_triangular(self._factor, vectors, lower=True, trans=1))

    @cached_property
    def _first_scores(self) -> Floats:
        """Score of each column: its pooled weight over its error plus its part in directions."""
        unit = np.eye(self._factor.shape[0])
        inverse = linalg.solve_triangular(self._factor, unit, lower=True)
        variances = np.square(inverse).sum(axis=0) / self._total
        noise = float(self._all.response.shares @ np.square(self._residual).sum(axis=1))
        squares = np.square(self._pooled.W[0]).sum(axis=1)
        tested = squares / np.maximum(variances * noise, np.finfo(float).tiny)
        leading = np.square(self._directions[:, :2]).sum(axis=1)
        return tested + leading / leading.mean()

    def experts(
        self, kind: str, size: int, n_clusters: int, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Experts with all features for the groups found on few of them, see `groups`."""
        groups = self.groups(kind, size, n_clusters, rng)
        return self._objective.experts_of(groups, 1e-6)[:2]

    def mixed_experts(
        self, size: int, n_clusters: int, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Experts with all features for the groups of a mixture in the leading directions.

        With enough samples to estimate the directions well, a mixture finds groups that
        alternating minimisation misses.

        Returns weights (Q, d, K) and intercepts (Q, K).
        """
        seen = self._Z @ self._directions[:, :size]
        objective, pooled, noise = self._restricted(seen, self._residual)
        begin = draw_experts(objective, pooled, noise, n_clusters, rng)
        found = drive(MixtureEM(objective, noise, *begin), MIXED)
        return self._objective.experts_of(found.solution.labels, 1e-6)[:2]

    def groups(self, kind: str, size: int, n_clusters: int, rng: np.random.Generator) -> Labels:
        """Samples in groups, by experts on a few columns or directions, or one after the other."""
        if kind == "in turn":
            return self._in_turn(n_clusters, rng if size else None)
        if kind == "directions":
            seen = self._Z @ self._directions[:, :size]
            return self._search(seen, self._residual, n_clusters, None, rng).labels
        scores, labels, tried = self._first_scores, None, set()
        for _ in range(SETTINGS.rounds):
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

    def _in_turn(self, n_clusters: int, rng: np.random.Generator | None) -> Labels:
        """Samples in groups, the largest first."""
        features, response = self._objective.standard.features, self._all.response
        target = np.ascontiguousarray(response.target, dtype=np.float64)
        return groups_in_turn(features, target, response.shares, self._total, n_clusters, rng)

    def _restricted(self, seen: Floats, target: Floats) -> tuple[SampleObjective, Panel, Noise]:
        """The problem on the given columns alone, its pooled fit and its noise."""
        response = replace(self._all.response, target=target)
        objective = SampleObjective(as_design(seen), response, SETTINGS.little_ridge)
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
        """The best experts of a few starts, one of them the groups already found."""
        objective, pooled, noise = self._restricted(seen, target)
        n_drawn = SETTINGS.first_starts if labels is None else SETTINGS.next_starts
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
