"""Clustered samples with classes as targets, dense rows on the host and few weights: compiled.

Mixtures and alternating minimisation fit the same experts again and again, to weightings of the
samples that change little. So every run keeps a compiled problem for each expert, with the factor
of its second derivative. A mixture takes a Newton step or a few for each weighting: they lower the
mean loss of the expert, and that is all that expectation and maximisation need to go down
(generalised EM; Dempster, Laird and Rubin, 1977).
"""

from collections.abc import Iterable
from copy import copy
from dataclasses import replace

import numpy as np

from clustruct._typing import Floats, Labels
from clustruct.arrays import totals_by_code
from clustruct.design import Design, Rows
from clustruct.kernels import COMPILED
from clustruct.kernels.fits.class_losses import class_losses
from clustruct.objectives.few_weights import MAX_STEPS, MOST_WEIGHTS, NONE, FewWeights
from clustruct.objectives.linear import Response
from clustruct.objectives.samples.objective import (
    IMPOSSIBLE,
    Panel,
    SampleObjective,
    without_negligible,
)

# Newton steps of an expert for one weighting of the samples, in mixtures: one where
# responsibilities have settled, up to this many where they change much. With a single step
# throughout, planted mixtures of four experts ended in worse places.
STEPS = 3
# Least share of a class from which a first intercept is taken.
LEAST_SHARE = 1e-9


class ClassObjective(SampleObjective):
    """The same problem, with the compiled problems of the experts and what a run knows of them.

    rows (n, d): ``X``, as kernels want it.
    """

    def __init__(self, design: Design, response: Response, alpha: float, rows: Floats) -> None:
        super().__init__(design, response, alpha)
        self._rows = rows
        self._penalties = np.full(rows.shape[1], alpha)
        self._members = np.eye(response.n_outputs)[response.class_codes]
        # Of one run: classes and compiled problem of each expert, and intercepts of the last ones.
        self._kept: dict[int, tuple[bytes, FewWeights]] | None = None
        self._last: dict[bytes, Floats] = {}

    def private(self) -> "ClassObjective":
        """The objective of one run, which remembers what it has fitted."""
        mine = copy(self)
        mine._kept, mine._last = {}, {}
        return mine

    def subset(self, index: Labels, weights: Floats | None = None) -> SampleObjective:
        """The same objective on some of the samples."""
        fewer = super().subset(index, weights)
        return class_objective(fewer.design, fewer.response, fewer.alpha) or fewer

    def fit_experts(
        self, weights: Iterable[Rows], tol: float, start: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """The best expert for each of several weightings of the samples."""
        return self._fit(np.stack(list(weights)), tol, start, MAX_STEPS)

    def fit_and_cost(
        self, weights: Floats, tol: float, start: Floats | None = None
    ) -> tuple[Floats, Floats, Floats]:
        """Better experts for several weightings, and the costs of all samples with them."""
        costs = np.empty(weights.shape, order="F")
        W, intercept = self._fit(weights.T, tol, start, STEPS, costs)
        self._remember(W, intercept)
        return W, intercept, costs

    def costs(self, W: Floats, intercept: Floats) -> Floats:
        """Loss plus ridge of every sample with every expert, ``n x Q``."""
        costs = np.empty((self._rows.shape[0], W.shape[0]), order="F")
        by_class = np.ascontiguousarray(W.transpose(0, 2, 1))
        codes, intercept = self.response.class_codes, np.ascontiguousarray(intercept)
        class_losses(self._rows, codes, by_class, intercept, costs)
        costs += [self._ridge(w) for w in W]
        self._remember(W, intercept)
        return costs

    def _remember(self, W: Floats, intercept: Floats) -> None:
        """Keep the intercepts of experts from which a run is likely to go on."""
        if self._kept is not None:
            self._last = {w.tobytes(): b for w, b in zip(W, intercept, strict=True)}

    def judged(self, W: Floats, intercept: Floats, labels: Rows | None = None) -> Panel:
        """A panel of all experts, by their costs."""
        costs, shares = self.costs(W, intercept), self.response.shares
        choices = costs.argmin(axis=1)
        least = costs[np.arange(choices.size), choices]
        own = least if labels is None else costs[np.arange(choices.size), labels]
        labels = choices if labels is None else labels
        demand = totals_by_code(choices, shares, W.shape[0])
        slope = self._slopes(W, intercept, labels)
        return Panel(W, float(shares @ own), intercept, slope, labels, choices, least, demand)

    def _slopes(self, W: Floats, intercept: Floats, labels: Rows) -> Floats:
        """Derivative of the loss by the scores of each sample's own expert, weighted."""
        scores = self.scores(W, intercept)[np.arange(labels.size), labels]
        response = self.response
        return response.shares[:, None] * response.loss.gradient(response.target, scores)

    def _fit(
        self,
        weights: Floats,
        tol: float,
        start: Floats | None,
        max_steps: int,
        costs: Floats | None = None,
    ) -> tuple[Floats, Floats]:
        """Experts (Q, d, K) for weights (Q, n), and their intercepts.

        costs: filled with those of all samples, n x Q, if it is given.
        """
        weights = without_negligible(np.ascontiguousarray(weights))
        weights /= weights.sum(axis=1, keepdims=True)
        totals = weights @ self._members
        fitted, last = [], self._last
        for q, shares in enumerate(weights):
            begin = None if start is None else start[q]
            known = None if begin is None else last.get(begin.tobytes())
            losses = NONE if costs is None or not totals[q].all() else costs[:, q]
            problem, present = self._problem(q, totals[q])
            found = None
            if problem is not None:
                shift = _logs(totals[q]) if known is None else known
                found = self._improved(
                    problem, present, shares, (begin, shift), tol, max_steps, losses
                )
            W, intercept = self.fit_expert(shares, tol, begin) if found is None else found
            fitted.append((W, intercept))
            if costs is None:
                continue
            if found is None or losses is NONE:  # a class without samples takes all scores
                costs[:, q] = self.costs(W[None], intercept[None])[:, 0]
            else:
                losses += self._ridge(W)
        return np.stack([W for W, _ in fitted]), np.stack([b for _, b in fitted])

    def _improved(
        self,
        problem: FewWeights,
        present: Labels,
        shares: Floats,
        start: tuple[Floats | None, Floats],
        tol: float,
        max_steps: int,
        losses: Floats,
    ) -> tuple[Floats, Floats] | None:
        """An expert for shares of the samples; None if it has not been found to full precision.

        Classes without samples are left out and made all but impossible, see `fit_expert`.
        """
        begin, shift = start
        begin = np.zeros(self.shape) if begin is None else begin
        where = slice(None) if present.size == shift.size else present
        W, intercept, converged = problem.improved(
            shares, self._penalties, begin[:, where], shift[where], tol, max_steps, losses
        )
        if not converged and max_steps == MAX_STEPS:
            return None
        whole_W = np.zeros(self.shape)
        whole_intercept = np.full(self.shape[1], intercept.min() - IMPOSSIBLE)
        whole_W[:, where], whole_intercept[where] = W, intercept
        return whole_W, whole_intercept

    def _problem(self, q: int, totals: Floats) -> tuple[FewWeights | None, Labels]:
        """The compiled problem of an expert and its classes; None if there is only one.

        It is kept from the step before if the classes are the same.
        """
        response, kept = self.response, self._kept
        seen = (totals > 0.0) | (not response.fit_intercept)
        present = np.flatnonzero(seen)
        key = present.tobytes()
        if kept is not None and q in kept and kept[q][0] == key:
            return kept[q][1], present
        if present.size == 1:
            return None, present
        if present.size < totals.size:
            codes = np.maximum(np.cumsum(seen) - 1, 0)
            target = response.loss.recoded(response.target, codes, present)
            response = replace(response, target=target, n_outputs=present.size)
        contrasts = response.contrasts
        assert contrasts is not None
        problem = FewWeights(self._rows, response, contrasts)
        if kept is not None:
            kept[q] = key, problem
        return problem, present


def _logs(totals: Floats) -> Floats:
    """The best intercepts without weights: logarithms of the classes' shares."""
    logs: Floats = np.log(np.maximum(totals, LEAST_SHARE))
    return logs - logs.mean()


def class_objective(design: Design, response: Response, alpha: float) -> ClassObjective | None:
    """The compiled objective, if there are several classes, and few weights for each expert."""
    n_weights = (response.n_outputs - 1) * (design.shape[1] + 1)
    if not (COMPILED and response.loss.coded and alpha > 0.0 and n_weights <= MOST_WEIGHTS):
        return None
    rows = None if response.contrasts is None else design.dense_rows()
    return None if rows is None else ClassObjective(design, response, alpha, rows)
