"""Clustered samples: rows of ``W`` stand for samples, groups of them share a predictor.

    minimise sum_i s_i (loss(y_i, V_q(i)' x_i + b_q(i)) + alpha/2 ||V_q(i)||^2),    sum_i s_i = 1,

over the experts ``V_q`` and ``b_q`` and the assignment ``q(i)`` of samples to them. ``W`` has a row
for each sample and is never stored: labels and experts say the same. For given labels every expert
is a problem of its own, mean loss plus ridge on its samples; for given experts every sample takes
the one with the least cost, loss plus ridge.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clustruct.design import LocalDesign
from clustruct.losses import MultinomialLoss
from clustruct.objectives.linear import LinearObjective, Response
from clustruct.objectives.point import Point
from clustruct.objectives.quadratic import quadratic_objective
from clustruct.objectives.ray import Ray
from clustruct.results import Projection

__all__ = ["Panel", "SampleObjective"]

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]

# With at most this many columns, the squared loss of an expert is solved by its Gram matrix.
GRAM_ALWAYS, GRAM_IF_TALL = 300, 2000
# Samples with less than this share of an expert's largest weight do not change it.
NEGLIGIBLE = 1e-12
# Where few samples are left out, leaving them out costs more than it saves.
WORTH_TAKING = 0.7
# How much less likely, on the scale of the scores, a class is that an expert has never seen.
IMPOSSIBLE = 20.0


@dataclass(frozen=True, eq=False)
class Panel(Point):
    """Experts, and which of them answers each sample.

    Attributes
    ----------
    W : ndarray of shape (Q, d, K)
        Weights of the experts.
    value : float
    intercept : ndarray of shape (Q, K)
    slope : ndarray of shape (n, K)
        Derivative of the loss by the scores of each sample's own expert, weighted.
    labels : ndarray of intp, shape (n,)
    choices : ndarray of intp, shape (n,)
        The expert with the least loss plus ridge for each sample.
    least : ndarray of shape (n,)
        Loss plus ridge with that expert.
    """

    labels: Labels
    choices: Labels
    least: Floats


class SampleObjective:
    """Mean loss plus ridge of samples that each have an expert.

    Parameters
    ----------
    design : Design
    response : Response
    alpha : float
    """

    def __init__(self, design: LocalDesign, response: Response, alpha: float) -> None:
        self.design = design
        self.response = response
        self.alpha = alpha
        self.quadratic = response.loss.quadratic
        self.shape = (design.shape[1], response.n_outputs)

    def subset(self, index: Labels, weights: Floats | None = None) -> "SampleObjective":
        """The same objective on some of the samples, with their own weights or others."""
        response = self.response
        weights = response.shares[index] if weights is None else weights
        fewer = Response(
            response.target[index],
            response.loss,
            response.n_outputs,
            weights / weights.sum(),
            response.fit_intercept,
        )
        return SampleObjective(self.design.rows(index), fewer, self.alpha)

    # ---- Experts for samples

    def fit_expert(
        self, weights: Floats, tol: float, start: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Weights and intercept of the best single expert for weighted samples.

        Parameters
        ----------
        weights : ndarray of shape (n,)
            Not negative, not all zero.
        tol : float
        start : ndarray of shape (d, K), default=None

        Returns
        -------
        tuple of ndarray
            Shapes (d, K) and (K,).
        """
        kept = np.flatnonzero(weights > NEGLIGIBLE * weights.max())
        design, response = self.design, self.response
        target = response.target
        if kept.size < WORTH_TAKING * weights.size:
            design, target, weights = design.rows(kept), target[kept], weights[kept]
        mine = Response(
            target,
            response.loss,
            response.n_outputs,
            weights / weights.sum(),
            response.fit_intercept,
        )
        if isinstance(response.loss, MultinomialLoss) and response.fit_intercept:
            return self._fit_classes(design, mine, tol, start)
        penalties = np.full(self.shape[0], self.alpha)
        n, d = design.shape
        if self.quadratic and (d <= GRAM_ALWAYS or (d <= GRAM_IF_TALL and d <= n)):
            best = quadratic_objective(design, mine, penalties).minimum(tol)
        else:
            best = LinearObjective(design, mine, penalties).minimum(tol, start)
        return best.W, best.intercept

    def _fit_classes(
        self, design: LocalDesign, response: Response, tol: float, start: Floats | None
    ) -> tuple[Floats, Floats]:
        """Weights and intercepts of the classes that the samples have.

        The intercept of a class without samples would go to minus infinity, and takes all of the
        time that is spent on a fit: such classes are left out and made all but impossible instead.
        """
        present, codes = np.unique(response.target, return_inverse=True)
        fewer = replace(response, target=codes.reshape(-1), n_outputs=present.size)
        W, intercept = np.zeros(self.shape), np.zeros(self.shape[1])
        if present.size > 1:
            begin = None if start is None else start[:, present]
            penalties = np.full(self.shape[0], self.alpha)
            best = LinearObjective(design, fewer, penalties).minimum(tol, begin)
            W[:, present], intercept[present] = best.W, best.intercept
        absent = np.setdiff1d(np.arange(self.shape[1]), present)
        intercept[absent] = intercept[present].min() - IMPOSSIBLE
        return W, intercept

    def fit_experts(
        self, weights: Iterable[Floats], tol: float, start: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """The best expert for each of several weightings of the samples.

        Parameters
        ----------
        weights : iterable of ndarray of shape (n,)
        tol : float
        start : ndarray of shape (Q, d, K), default=None

        Returns
        -------
        tuple of ndarray
            Shapes (Q, d, K) and (Q, K).
        """
        fitted = [
            self.fit_expert(mine, tol, None if start is None else start[q])
            for q, mine in enumerate(weights)
        ]
        return np.stack([W for W, _ in fitted]), np.stack([b for _, b in fitted])

    def fit_groups(self, labels: Labels, tol: float, start: Floats | None = None) -> Panel:
        """The best experts for an assignment; those without samples are left out.

        Parameters
        ----------
        labels : ndarray of intp, shape (n,)
        tol : float
        start : ndarray of shape (Q, d, K), default=None
            Weights to start from.

        Returns
        -------
        Panel
        """
        used, labels = _in_use(labels)
        weights = (np.where(labels == q, self.response.shares, 0.0) for q in range(used.size))
        W, intercept = self.fit_experts(weights, tol, None if start is None else start[used])
        return self.panel(W, intercept, labels)

    def refit(
        self, labels: Labels, n_groups: int, tol: float, start: Floats | None = None
    ) -> Panel:
        """The best experts for an assignment, from rows such as a projection's centres."""
        begin = None if start is None or self.quadratic else self._unstack(start)[0]
        return self.fit_groups(labels, tol, begin)

    # ---- Samples for experts

    def scores(self, W: Floats, intercept: Floats) -> Floats:
        """Scores of every sample with every expert, ``n x Q x K``."""
        stacked = W.transpose(1, 0, 2).reshape(self.shape[0], -1)
        scores = self.design.scores(stacked).reshape(-1, *intercept.shape)
        scores += intercept
        return scores

    def costs(self, W: Floats, intercept: Floats) -> Floats:
        """Loss plus ridge of every sample with every expert, ``n x Q``."""
        costs = np.empty((self.response.shares.size, W.shape[0]))
        for q in range(W.shape[0]):
            costs[:, q] = self._cost(W[q], self.design.scores(W[q]) + intercept[q])
        return costs

    def panel(self, W: Floats, intercept: Floats, labels: Labels | None = None) -> Panel:
        """Experts with an assignment, by default the best one; idle experts are left out."""
        if labels is None:
            labels = self.costs(W, intercept).argmin(axis=1)
        used, labels = _in_use(labels)
        W, intercept = W[used], intercept[used]
        # One expert at a time: the scores of all together would be as large as the costs.
        costs = np.empty((labels.size, used.size))
        own = np.empty((labels.size, self.shape[1]))
        for q in range(used.size):
            scores = self.design.scores(W[q]) + intercept[q]
            costs[:, q] = self._cost(W[q], scores)
            np.copyto(own, scores, where=(labels == q)[:, None])
        response = self.response
        slope = response.shares[:, None] * response.loss.gradient(response.target, own)
        everyone = np.arange(labels.size)
        value = float(response.shares @ costs[everyone, labels])
        choices = costs.argmin(axis=1)
        return Panel(W, value, intercept, slope, labels, choices, costs[everyone, choices])

    def _cost(self, W: Floats, scores: Floats) -> Floats:
        """Loss plus ridge of every sample with one expert."""
        ridge = 0.5 * self.alpha * float(np.vdot(W, W))
        return self.response.loss.value(self.response.target, scores) + ridge

    # ---- Rows of ``W``, as they are projected: root of the share times (weights, intercept)

    @property
    def roots(self) -> Floats:
        """The number that scales the row of each sample, so that plain distances are weighted."""
        return np.sqrt(self.response.shares)

    def rows(self, panel: Panel) -> Floats:
        """The row of each sample: its expert's weights and intercept, scaled."""
        experts = self._stack(panel.W.transpose(0, 2, 1), panel.intercept)
        return self.roots[:, None] * experts[panel.labels]

    def keep(self, nearest: Projection, near: Point | None = None) -> Panel:
        """Value at projected rows as they are."""
        return self.panel(*self._unstack(nearest.centers), nearest.labels)

    def ray(self, point: Point) -> Ray:
        """The rows along the negative gradient.

        In ``W~`` with rows ``sqrt(s_i) w_i`` the objective is
        ``sum_i s_i loss(y_i, x_i' w~_i / sqrt(s_i)) + alpha/2 ||W~||^2``, the intercept being the
        weight of a column of ones, without ridge.
        """
        assert isinstance(point, Panel)
        roots = self.roots[:, None]
        ridge = self.alpha * point.W.transpose(0, 2, 1)
        gradient = self._stack_rows(point.slope / roots)
        gradient += roots * self._stack(ridge, np.zeros_like(point.intercept))[point.labels]
        unit = float(np.vdot(gradient, gradient)) / self._bend(point, gradient)
        here = self.rows(point)
        return Ray(unit, lambda step: here - step * gradient)

    def _bend(self, point: Panel, gradient: Floats) -> float:
        """``g' H g``."""
        n, n_outputs = point.slope.shape
        x = self._stack_rows(np.ones((n, 1)))
        d = self.shape[0]
        weights = gradient[:, : d * n_outputs].reshape(n, n_outputs, d)
        along = np.einsum("ikd,id->ik", weights, x[:, :d])
        if self.response.fit_intercept:
            along += gradient[:, d * n_outputs :]
        along /= self.roots[:, None]
        everyone = np.arange(n)
        scores = self.scores(point.W, point.intercept)[everyone, point.labels]
        response = self.response
        bent = response.loss.hessian_product(response.target, scores, along)
        ridge = self.alpha * float(np.vdot(weights, weights))
        return max(
            float(response.shares @ (along * bent).sum(axis=1)) + ridge, np.finfo(float).tiny
        )

    def _stack_rows(self, B: Floats) -> Floats:
        """``[b_i1 x_i, ..., b_iK x_i]``, then ``b_i`` where there is an intercept."""
        products = self.design.row_products(B)
        return np.hstack([products, B]) if self.response.fit_intercept else products

    def _stack(self, weights: Floats, intercept: Floats) -> Floats:
        """One row an expert, from weights ``Q x K x d`` and intercepts ``Q x K``."""
        flat = weights.reshape(weights.shape[0], -1)
        return np.hstack([flat, intercept]) if self.response.fit_intercept else flat

    def _unstack(self, rows: Floats) -> tuple[Floats, Floats]:
        """Weights ``Q x d x K`` and intercepts ``Q x K`` from one row an expert."""
        d, n_outputs = self.shape
        weights = rows[:, : d * n_outputs].reshape(-1, n_outputs, d).transpose(0, 2, 1)
        if self.response.fit_intercept:
            return weights, rows[:, d * n_outputs :]
        return weights, np.zeros((rows.shape[0], n_outputs))


def _in_use(labels: Labels) -> tuple[Labels, Labels]:
    """Labels that occur, and the labels numbered by them; without sorting, which takes memory."""
    occurs = np.bincount(labels) > 0
    used = np.flatnonzero(occurs)
    if used.size == occurs.size:
        return used, labels
    return used, (np.cumsum(occurs) - 1)[labels]
