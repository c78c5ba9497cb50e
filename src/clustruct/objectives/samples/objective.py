"""Clustered samples (eq:cl-smp, eq:cl-smp-class): every group of samples has a predictor.

    minimise sum_i s_i (loss(y_i, V_q(i)' x_i + b_q(i)) + alpha/2 ||V_q(i)||^2),    sum_i s_i = 1,

over the experts ``V_q`` and ``b_q`` and the assignment ``q(i)`` of samples to them. ``W`` has a row
for each sample and is never stored: labels and experts determine it. For given labels every expert
is a problem of its own, mean loss plus ridge on its samples; for given experts every sample is
assigned to the one with the least cost, loss plus ridge.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import itemgetter
from typing import Any

import numpy as np

from clustruct._finite import require_finite
from clustruct._typing import Floats, Labels
from clustruct.arrays import beside, count_true, device_of, look_up, namespace, totals_by_code
from clustruct.design import Design, Rows, as_design
from clustruct.losses import Loss
from clustruct.objectives.linear import Point, Response
from clustruct.objectives.quadratic import (
    GRAM_ALWAYS,
    gram_pays,
    moments_of_weightings,
    objective_of,
    quadratic_objective,
)
from clustruct.objectives.samples.standard import StandardColumns
from clustruct.objectives.streamed import linear_objective
from clustruct.results import Projection

# Samples with less than this share of an expert's largest weight do not change it.
NEGLIGIBLE = 1e-12
# Samples without weight are left out only if fewer than this share remains: it takes a copy.
WORTH_TAKING = 0.7
# Experts are fitted by compiled code up to this many columns, with more of them BLAS is quicker;
# and up to this many entries of X, which is copied.
COMPILED_COLUMNS, COMPILED_ENTRIES = 32, 2_000_000
# How far below the others the score of a class lies that an expert has never seen.
IMPOSSIBLE = 20.0


@dataclass(frozen=True, eq=False)
class Panel(Point):
    """Experts, and the assignment of samples to them.

    Shapes: intercept (Q, K), labels (n,).
    W (Q, d, K): weights of the experts.
    slope (n, K): derivative of the loss by the scores of each sample's own expert, weighted; None
        where it is not needed.
    choices (n,): the expert with the least loss plus ridge for each sample.
    least (n,): loss plus ridge with that expert.
    demand (Q,): weight of the samples that choose each expert.
    """

    labels: Rows
    choices: Rows
    least: Rows
    demand: Floats


class SampleObjective:
    """Mean loss plus ridge of samples that are assigned to experts."""

    def __init__(self, design: Design, response: Response, alpha: float) -> None:
        # Only designs on the host have the methods that form rows of ``W``.
        self.design: Any = design
        self.response = response
        self.alpha = alpha
        self.quadratic = response.loss.quadratic
        self.shape = (design.shape[1], response.n_outputs)

    def private(self) -> "SampleObjective":
        """The objective of one run of a solver, where what it fits helps with the next fit."""
        return self

    def subset(self, index: Labels, weights: Floats | None = None) -> "SampleObjective":
        """The same objective on some of the samples, brought to the host.

        index: ascending.
        weights: in place of their own.
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

        Shapes: start (d, K).
        weights (n,): not negative, not all zero.

        Returns weights (d, K) and intercept (K,).
        """
        design, response, target = self.design, self.response, self.response.target
        least = NEGLIGIBLE * float(design.fold(_largest, weights, combine=max))
        heavy = design.map(lambda w: w > least, weights)
        if int(design.fold(count_true, heavy)) < WORTH_TAKING * design.shape[0]:
            design, (target, weights) = design.only(heavy, target, weights)
        total = float(design.fold(lambda w: namespace(w).sum(w), weights))
        shares = design.map(lambda w: w / total, weights)
        mine = replace(response, target=target, shares=shares)
        if getattr(response.loss, "coded", False) and response.fit_intercept:
            return self._fit_classes(design, mine, tol, start)
        penalties = np.full(self.shape[0], self.alpha)
        if self.quadratic and gram_pays(*design.shape):
            best = quadratic_objective(design, mine, penalties).minimum(tol)
        else:
            best = linear_objective(design, mine, penalties).minimum(tol, start)
        return best.W, best.intercept

    def _fit_classes(
        self, design: Design, response: Response, tol: float, start: Floats | None
    ) -> tuple[Floats, Floats]:
        """Weights and intercepts of the classes that the samples have.

        The intercept of a class without samples would go to minus infinity and take most of the
        time of a fit: such classes are left out and made all but impossible instead.
        """
        by_class = partial(totals_by_code, n_codes=self.shape[1])
        loss = response.loss
        totals = design.fold(
            lambda y, s: by_class(loss.codes(y), s), response.target, response.shares
        )
        present, absent = np.flatnonzero(totals > 0.0), np.flatnonzero(totals <= 0.0)
        codes = np.maximum(np.cumsum(totals > 0.0) - 1, 0)
        target = design.map(partial(loss.recoded, codes=codes, present=present), response.target)
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

        Shapes: weights (n,), start (Q, d, K).

        Returns weights (Q, d, K) and intercepts (Q, K).
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
        """Whether the moments of all experts are computed in one pass over ``X``."""
        design = self.design
        at_hand = design.on_host and not design.is_sparse
        return self.quadratic and at_hand and design.shape[1] <= GRAM_ALWAYS

    @property
    def _fits_compiled(self) -> bool:
        """Whether there are few enough columns, and entries of ``X``, for compiled fits."""
        n, d = self.design.shape
        return self._fits_together and d < COMPILED_COLUMNS and n * d <= COMPILED_ENTRIES

    def _fit_together(self, weigh: Callable[[slice], Floats], tol: float) -> tuple[Floats, Floats]:
        """The best expert for each weighting, by its moments; see `moments_of_weightings`."""
        experts = self.standard.fit(weigh(slice(None))) if self._fits_compiled else None
        if experts is not None:
            return self.standard.original(experts)
        response = self.response
        target = np.asarray(response.target, dtype=np.float64)
        penalties = np.full(self.shape[0], self.alpha)
        centred = response.fit_intercept
        moments = moments_of_weightings(self.design, target, weigh, centred=centred)
        return stacked([objective_of(mine, penalties).minimum(tol) for mine in moments])

    def fit_and_cost(
        self, weights: Floats, tol: float, start: Floats | None = None
    ) -> tuple[Floats, Floats, Floats]:
        """The best expert for each of several weightings, and the costs of all samples with them.

        Shapes: weights (n, Q), start (Q, d, K).

        Returns weights (Q, d, K), intercepts (Q, K) and costs (n, Q).
        """
        experts = self.standard.fit(weights.T) if self._fits_compiled else None
        if experts is not None:
            return *self.standard.original(experts), self.standard.costs(experts)
        W, intercept = self.fit_experts(weights.T, tol, start)
        return W, intercept, self.costs(W, intercept)

    @cached_property
    def standard(self) -> StandardColumns:
        """Dense standard columns, a copy of ``X``; for samples on the host."""
        return StandardColumns(self.design, self.response, self.alpha)

    def fit_groups(self, labels: Rows, tol: float, start: Floats | None = None) -> Panel:
        """The best experts for an assignment; those without samples are left out.

        start (Q, d, K): weights to start from.
        """
        return self.judged(*self.experts_of(labels, tol, start))

    def experts_of(
        self, labels: Rows, tol: float, start: Floats | None = None
    ) -> tuple[Floats, Floats, Rows]:
        """The same as weights (Q, d, K), intercepts (Q, K) and labels without gaps."""
        used, labels = self._in_use(labels)
        begin = None if start is None else start[used]
        return *self._fit_labelled(labels, used.size, tol, begin), labels

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
        """Labels in use by samples with weight, and the labels renumbered."""
        most = int(self.design.fold(_largest, labels, combine=max)) + 1
        by_label = partial(totals_by_code, n_codes=most)
        return self._renumber(labels, self.design.fold(by_label, labels, self.response.shares))

    def _renumber(self, labels: Rows, totals: Floats) -> tuple[Labels, Rows]:
        """Labels with positive weight, and the labels renumbered."""
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
        # Column by column, as they are read later.
        costs = np.empty((self.response.shares.size, W.shape[0]), order="F")
        scores = self.scores(W, intercept)
        for q in range(W.shape[0]):
            losses = self.response.loss.value(self.response.target, scores[:, q])
            costs[:, q] = losses + self._ridge(W[q])
        return costs

    def least_losses(self, W: Floats, intercept: Floats) -> Rows:
        """The least loss of every sample, without ridge; not for streamed samples."""
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
            # Only samples without weight choose these experts: assign them again.
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
        """A panel of all experts, idle ones too; by default every sample has its best expert."""
        ridges = [self._ridge(w) for w in W]
        # Slopes are needed for the lower bound, without intercepts, and by projected gradient.
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
        """Run `judge` on all samples."""
        rows = (self.response.target, self.response.shares, *labels)
        kept, (value, demand) = self.design.sweep_keeping(judging, *rows)
        return kept, value, demand

    def _ridge(self, W: Floats) -> float:
        """The ridge penalty of an expert, part of the cost of each of its samples."""
        ridge = 0.5 * self.alpha * float(np.vdot(W, W))
        require_finite(ridge, "the ridge penalty of an expert")
        return ridge

    # ---- Rows of ``W``, as they are projected: root of the share times (weights, intercept)

    @property
    def roots(self) -> Floats:
        """Scale of each sample's row: with it plain distances are weighted ones."""
        return np.sqrt(self.response.shares)

    def rows(self, point: Point) -> Floats:
        """The row of each sample: its expert's weights and intercept, scaled."""
        assert isinstance(point, Panel)
        experts = self._stack(point.W.transpose(0, 2, 1), point.intercept)
        return self.roots[:, None] * experts[point.labels]

    def keep(self, nearest: Projection, near: Point | None = None) -> Panel:
        """The panel of projected rows as they are, without a refit."""
        return self.panel(*self._unstack(nearest.centers), nearest.labels)

    def gradient(self, point: Point) -> Floats:
        """Gradient by the rows.

        In ``W~`` with rows ``sqrt(s_i) w_i`` the objective is
        ``sum_i s_i loss(y_i, x_i' w~_i / sqrt(s_i)) + alpha/2 ||W~||^2``, the intercept being the
        weight of a column of ones, without ridge.
        """
        assert isinstance(point, Panel)
        roots = self.roots[:, None]
        ridge = self.alpha * point.W.transpose(0, 2, 1)
        gradient = self._stack_rows(point.slope / roots)
        gradient += roots * self._stack(ridge, np.zeros_like(point.intercept))[point.labels]
        return gradient

    def bend(self, point: Point, direction: Floats) -> float:
        """Curvature along a direction of the rows, ``g' H g``."""
        assert isinstance(point, Panel)
        n, n_outputs = point.slope.shape
        x = self._stack_rows(np.ones((n, 1)))
        d = self.shape[0]
        weights = direction[:, : d * n_outputs].reshape(n, n_outputs, d)
        along = np.einsum("ikd,id->ik", weights, x[:, :d])
        if self.response.fit_intercept:
            along += direction[:, d * n_outputs :]
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
        """``[b_i1 x_i, ..., b_iK x_i]``, followed by ``b_i`` if there is an intercept."""
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
    """Best experts, costs and slopes of some samples; their mean cost, and weight by expert.

    One expert at a time: the scores of all together would take as much memory as ``X``.

    Shapes: W (Q, d, K), intercept (Q, K).
    ridges: what the ridge adds to the cost of each expert.
    sloped: whether slopes are wanted.
    labels (n,): the expert of each sample that cost and slope are of; by default the one it
        chooses.

    Returns ``(choices, least, slope), (value, demand)``.
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


def stacked(experts: Sequence[Point]) -> tuple[Floats, Floats]:
    """Weights ``Q x d x K`` and intercepts ``Q x K`` of single experts."""
    return np.stack([point.W for point in experts]), np.stack([b.intercept for b in experts])


def without_negligible(weights: Floats) -> Floats:
    """Weights ``Q x n`` with zeros for samples that do not change an expert."""
    return np.where(weights > NEGLIGIBLE * weights.max(axis=1, keepdims=True), weights, 0.0)


def _zero_codes(like: Rows) -> Rows:
    """A zero label for each row."""
    if isinstance(like, np.ndarray):
        return np.zeros(like.shape, dtype=np.intp)
    xp = namespace(like)
    return xp.zeros(like.shape, dtype=xp.int64, device=device_of(like))


def _where_label(q: int, labels: Rows, shares: Rows) -> Rows:
    """Shares of the rows with a label, zero elsewhere."""
    return namespace(shares).where(labels == q, shares, 0.0)


def _largest(values: Rows) -> Any:
    return namespace(values).max(values)
