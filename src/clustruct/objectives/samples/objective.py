"""Clustered samples: rows of ``W`` stand for samples, groups of them share a predictor.

    minimise sum_i s_i (loss(y_i, V_q(i)' x_i + b_q(i)) + alpha/2 ||V_q(i)||^2),    sum_i s_i = 1,

over the experts ``V_q`` and ``b_q`` and the assignment ``q(i)`` of samples to them. ``W`` has a row
for each sample and is never stored: labels and experts say the same. For given labels every expert
is a problem of its own, mean loss plus ridge on its samples; for given experts every sample takes
the one with the least cost, loss plus ridge.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from clustruct._finite import require_finite
from clustruct._typing import Floats, Labels
from clustruct.arrays import (
    beside,
    count_true,
    device_of,
    look_up,
    namespace,
    totals_by_code,
)
from clustruct.design import Design, Rows, as_design
from clustruct.losses import Loss
from clustruct.objectives.linear import Response
from clustruct.objectives.moments import moments_of_weightings
from clustruct.objectives.point import Point
from clustruct.objectives.quadratic import objective_of, quadratic_objective
from clustruct.objectives.ray import Ray
from clustruct.objectives.readings import linear_objective
from clustruct.results import Projection

__all__ = ["Panel", "SampleObjective", "judge", "without_negligible"]


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
    slope : rows of shape (n, K)
        Derivative of the loss by the scores of each sample's own expert, weighted; None where it
        is not needed.
    labels : rows of integers, shape (n,)
    choices : rows of integers, shape (n,)
        The expert with the least loss plus ridge for each sample.
    least : rows of shape (n,)
        Loss plus ridge with that expert.
    demand : ndarray of shape (Q,)
        Weight of the samples that choose each expert.
    """

    labels: Rows
    choices: Rows
    least: Rows
    demand: Floats


class SampleObjective:
    """Mean loss plus ridge of samples that each have an expert.

    Parameters
    ----------
    design : Design
    response : Response
    alpha : float
    """

    def __init__(self, design: Design, response: Response, alpha: float) -> None:
        # Rows of ``W`` are asked of designs of the host alone: what needs them says so.
        self.design: Any = design
        self.response = response
        self.alpha = alpha
        self.quadratic = response.loss.quadratic
        self.shape = (design.shape[1], response.n_outputs)

    def subset(self, index: Labels, weights: Floats | None = None) -> "SampleObjective":
        """The same objective on some of the samples, brought to the host.

        Parameters
        ----------
        index : ndarray of intp
            Ascending.
        weights : ndarray, default=None
            In place of their own.

        Returns
        -------
        SampleObjective
        """
        response = self.response
        X, (target, own) = self.design.fetch(index, response.target, response.shares)
        weights = own if weights is None else weights
        fewer = replace(response, target=target, shares=weights / weights.sum())
        return SampleObjective(as_design(X), fewer, self.alpha)

    # ---- Experts for samples

    def fit_expert(
        self, weights: Rows, tol: float, start: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Weights and intercept of the best single expert for weighted samples.

        Parameters
        ----------
        weights : rows of shape (n,)
            Not negative, not all zero.
        tol : float
        start : ndarray of shape (d, K), default=None

        Returns
        -------
        tuple of ndarray
            Shapes (d, K) and (K,).
        """
        design, response, target = self.design, self.response, self.response.target
        least = NEGLIGIBLE * float(design.fold(_largest, weights, combine=max))
        heavy = design.map(lambda w: w > least, weights)
        if int(design.fold(count_true, heavy)) < WORTH_TAKING * design.shape[0]:
            design, (target, weights) = design.only(heavy, target, weights)
        total = float(design.fold(_total, weights))
        shares = design.map(lambda w: w / total, weights)
        mine = replace(response, target=target, shares=shares)
        if getattr(response.loss, "coded", False) and response.fit_intercept:
            return self._fit_classes(design, mine, tol, start)
        penalties = np.full(self.shape[0], self.alpha)
        n, d = design.shape
        if self.quadratic and (d <= GRAM_ALWAYS or (d <= GRAM_IF_TALL and d <= n)):
            best = quadratic_objective(design, mine, penalties).minimum(tol)
        else:
            best = linear_objective(design, mine, penalties).minimum(tol, start)
        return best.W, best.intercept

    def _fit_classes(
        self, design: Design, response: Response, tol: float, start: Floats | None
    ) -> tuple[Floats, Floats]:
        """Weights and intercepts of the classes that the samples have.

        The intercept of a class without samples would go to minus infinity, and takes all of the
        time that is spent on a fit: such classes are left out and made all but impossible instead.
        """
        by_class = partial(totals_by_code, n_codes=self.shape[1])
        totals = design.fold(by_class, response.target, response.shares)
        present, absent = np.flatnonzero(totals > 0.0), np.flatnonzero(totals <= 0.0)
        codes = np.maximum(np.cumsum(totals > 0.0) - 1, 0)
        target = design.map(partial(look_up, codes), response.target)
        fewer = replace(response, target=target, n_outputs=present.size)
        W, intercept = np.zeros(self.shape), np.zeros(self.shape[1])
        if present.size > 1:
            begin = None if start is None else start[:, present]
            penalties = np.full(self.shape[0], self.alpha)
            best = linear_objective(design, fewer, penalties).minimum(tol, begin)
            W[:, present], intercept[present] = best.W, best.intercept
        intercept[absent] = intercept[present].min() - IMPOSSIBLE
        return W, intercept

    def fit_experts(
        self, weights: Iterable[Rows], tol: float, start: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """The best expert for each of several weightings of the samples.

        Parameters
        ----------
        weights : iterable of rows of shape (n,)
        tol : float
        start : ndarray of shape (Q, d, K), default=None

        Returns
        -------
        tuple of ndarray
            Shapes (Q, d, K) and (Q, K).
        """
        if self._fits_together:
            each = without_negligible(np.stack(list(weights)))
            return self._fit_together(lambda rows: each[:, rows], tol)
        fitted = [
            self.fit_expert(mine, tol, None if start is None else start[q])
            for q, mine in enumerate(weights)
        ]
        return np.stack([W for W, _ in fitted]), np.stack([b for _, b in fitted])

    @property
    def _fits_together(self) -> bool:
        """Whether the moments of all experts are made of one reading of ``X``."""
        design = self.design
        at_hand = design.on_host and not design.is_sparse
        return self.quadratic and at_hand and design.shape[1] <= GRAM_ALWAYS

    def _fit_together(self, weigh: Callable[[slice], Floats], tol: float) -> tuple[Floats, Floats]:
        """The best expert for each weighting, by their moments; see `moments_of_weightings`."""
        response = self.response
        target = np.asarray(response.target, dtype=np.float64)
        penalties = np.full(self.shape[0], self.alpha)
        best = [
            objective_of(mine, penalties).minimum(tol)
            for mine in moments_of_weightings(
                self.design, target, weigh, centred=response.fit_intercept
            )
        ]
        return np.stack([point.W for point in best]), np.stack([point.intercept for point in best])

    def fit_groups(self, labels: Rows, tol: float, start: Floats | None = None) -> Panel:
        """The best experts for an assignment; those without samples are left out.

        Parameters
        ----------
        labels : rows of integers, shape (n,)
        tol : float
        start : ndarray of shape (Q, d, K), default=None
            Weights to start from.

        Returns
        -------
        Panel
        """
        used, labels = self._in_use(labels)
        begin = None if start is None else start[used]
        W, intercept = self._fit_labelled(labels, used.size, tol, begin)
        return self.judged(W, intercept, labels)

    def _fit_labelled(
        self, labels: Rows, n_experts: int, tol: float, start: Floats | None
    ) -> tuple[Floats, Floats]:
        """The best experts for an assignment in which all have samples."""
        if self._fits_together:
            shares, experts = self.response.shares, np.arange(n_experts)[:, None]
            return self._fit_together(
                lambda rows: np.where(labels[rows] == experts, shares[rows], 0.0), tol
            )
        weights = (
            self.design.map(partial(_where_label, q), labels, self.response.shares)
            for q in range(n_experts)
        )
        return self.fit_experts(weights, tol, start)

    def _in_use(self, labels: Rows) -> tuple[Labels, Rows]:
        """Labels that samples of some weight have, and the labels numbered by them."""
        most = int(self.design.fold(_largest, labels, combine=max)) + 1
        by_label = partial(totals_by_code, n_codes=most)
        return self._renumber(labels, self.design.fold(by_label, labels, self.response.shares))

    def _renumber(self, labels: Rows, totals: Floats) -> tuple[Labels, Rows]:
        """Labels with some weight, and the labels numbered by them."""
        used = np.flatnonzero(totals > 0.0)
        if used.size == totals.size:
            return used, labels
        numbers = np.maximum(np.cumsum(totals > 0.0) - 1, 0)
        return used, self.design.map(partial(look_up, numbers), labels)

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
        # An expert after the other, as they are asked for.
        costs = np.empty((self.response.shares.size, W.shape[0]), order="F")
        scores = self.scores(W, intercept)
        for q in range(W.shape[0]):
            costs[:, q] = self._cost(W[q], scores[:, q])
        return costs

    def least_losses(self, W: Floats, intercept: Floats) -> Rows:
        """The least loss of every sample, without ridge; not for samples in pieces."""
        target, loss = self.response.target, self.response.loss
        xp = namespace(self.response.shares)
        losses = [
            loss.value(target, self.design.scores(w) + beside(b, self.response.shares))
            for w, b in zip(W, intercept, strict=True)
        ]
        return xp.min(xp.stack(losses), axis=0)

    def panel(self, W: Floats, intercept: Floats, labels: Rows | None = None) -> Panel:
        """Experts with an assignment, by default the best one; idle experts are left out."""
        if labels is not None:
            used, labels = self._in_use(labels)
            return self.judged(W[used], intercept[used], labels)
        panel = self.judged(W, intercept, None)
        used = np.flatnonzero(panel.demand > 0.0)
        if used.size == W.shape[0]:
            return panel
        idle = panel.demand <= 0.0
        if int(self.design.fold(lambda c: count_true(look_up(idle, c)), panel.choices)):
            # Samples without weight may choose what nobody else does, and have to choose again.
            return self.judged(W[used], intercept[used], None)
        _, labels = self._renumber(panel.choices, panel.demand)
        return replace(
            panel,
            W=W[used],
            intercept=intercept[used],
            labels=labels,
            choices=labels,
            demand=panel.demand[used],
        )

    def judged(self, W: Floats, intercept: Floats, labels: Rows | None = None) -> Panel:
        """A panel of all experts, idle ones too; without labels, samples have their choices."""
        ridges = [self._ridge(w) for w in W]
        # Without an intercept there is a lower bound, which needs slopes; projected gradient does.
        sloped = self.design.on_host or not self.response.fit_intercept
        judging = partial(judge, self.response.loss, W, intercept, ridges, sloped)
        given = () if labels is None else (labels,)
        kept, value, demand = self._sweep(judging, W.shape[0], *given)
        choices, least, slope = (self.design.map(itemgetter(i), kept) for i in range(3))
        labels = choices if labels is None else labels
        return Panel(W, float(value), intercept, slope, labels, choices, least, demand)

    def _sweep(
        self, judging: Callable[..., Any], n_experts: int, *labels: Rows
    ) -> tuple[Rows, float, Floats]:
        """What `judge` says of all samples."""
        rows = (self.response.target, self.response.shares, *labels)
        kept, (value, demand) = self.design.sweep_keeping(judging, *rows)
        return kept, value, demand

    def _cost(self, W: Floats, scores: Floats) -> Floats:
        """Loss plus ridge of every sample with one expert."""
        return self.response.loss.value(self.response.target, scores) + self._ridge(W)

    def _ridge(self, W: Floats) -> float:
        """What the ridge adds to the cost of a sample with one expert."""
        ridge = 0.5 * self.alpha * float(np.vdot(W, W))
        require_finite(ridge, "the ridge penalty of an expert")
        return ridge

    # ---- Rows of ``W``, as they are projected: root of the share times (weights, intercept)

    @property
    def roots(self) -> Floats:
        """The number that scales the row of each sample, so that plain distances are weighted."""
        return np.sqrt(self.response.shares)

    def rows(self, point: Point) -> Floats:
        """The row of each sample: its expert's weights and intercept, scaled."""
        assert isinstance(point, Panel)
        experts = self._stack(point.W.transpose(0, 2, 1), point.intercept)
        return self.roots[:, None] * experts[point.labels]

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


def judge(
    loss: Loss,
    W: Floats,
    intercept: Floats,
    ridges: Sequence[float],
    sloped: bool,
    X: Design,
    target: Rows,
    shares: Rows,
    labels: Rows | None = None,
) -> tuple[tuple[Rows, Rows, Rows | None], tuple[Any, Any]]:
    """Choices, their costs and slopes of some samples; their mean cost, and who is chosen.

    One expert at a time: the scores of all together would take as much memory as ``X``.

    Parameters
    ----------
    loss : Loss
    W : ndarray of shape (Q, d, K)
    intercept : ndarray of shape (Q, K)
    ridges : sequence of float
        What the ridge adds to the cost of each expert.
    sloped : bool
        Whether slopes are wanted.
    X : Design
    target, shares : rows
    labels : rows of integers, shape (n,), default=None
        The expert of each sample that cost and slope are of; by default the one it chooses.

    Returns
    -------
    tuple
        ``(choices, least, slope), (value, demand)``.
    """
    xp = namespace(shares)
    for q in range(W.shape[0]):
        scores = X.scores(W[q]) + beside(intercept[q], shares)
        cost = loss.value(target, scores) + ridges[q]
        if q == 0:
            choices = _zero_codes(shares)
            least, own_cost, own_scores = cost, cost, scores
            continue
        better = cost < least
        choices, least = xp.where(better, q, choices), xp.where(better, cost, least)
        mine = better if labels is None else labels == q
        if sloped:
            own_scores = xp.where(mine[:, None], scores, own_scores)
        own_cost = least if labels is None else xp.where(mine, cost, own_cost)
    slope = shares[:, None] * loss.gradient(target, own_scores) if sloped else None
    demand = totals_by_code(choices, shares, W.shape[0])
    return (choices, least, slope), (shares @ own_cost, demand)


def without_negligible(weights: Floats) -> Floats:
    """Weights ``Q x n`` with zeros for samples that do not change an expert."""
    return np.where(weights > NEGLIGIBLE * weights.max(axis=1, keepdims=True), weights, 0.0)


def _zero_codes(like: Rows) -> Rows:
    """A code of zero for each row."""
    if isinstance(like, np.ndarray):
        return np.zeros(like.shape, dtype=np.intp)
    xp = namespace(like)
    return xp.zeros(like.shape, dtype=xp.int64, device=device_of(like))


def _where_label(q: int, labels: Rows, shares: Rows) -> Rows:
    """Shares of the rows with a label, zero elsewhere."""
    return namespace(shares).where(labels == q, shares, 0.0)


def _largest(values: Rows) -> Any:
    return namespace(values).max(values)


def _total(values: Rows) -> Any:
    return namespace(values).sum(values)
