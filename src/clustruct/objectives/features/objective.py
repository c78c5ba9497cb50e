"""Clustered features (eq:feat, eq:feat_class): groups of features share their weights."""

from collections.abc import Sequence
from functools import cached_property, partial

import numpy as np

from clustruct._typing import Floats, Labels
from clustruct.arrays import beside, namespace
from clustruct.design import Design, GroupedDesign, Operator, Rows
from clustruct.grouping.rows import group_totals, spread
from clustruct.losses import Loss
from clustruct.objectives.class_curvature import ClassCurvature
from clustruct.objectives.features.class_models import ClassModel, GramModel, SumsModel
from clustruct.objectives.few_weights import FewWeights, class_problem, class_rows
from clustruct.objectives.linear import LinearObjective, Point, Response
from clustruct.objectives.many_rows import ManyRows
from clustruct.objectives.quadratic import QuadraticObjective, quadratic_objective
from clustruct.objectives.streamed import linear_objective

# Group sums up to this many entries are formed; larger ones are applied.
SMALL = 1 << 20


class FeatureObjective(LinearObjective):
    """Mean loss plus ridge, by products with ``X``."""

    def __init__(self, design: Design, response: Response, alpha: float) -> None:
        # A broadcast view takes no memory.
        super().__init__(design, response, np.broadcast_to(np.float64(alpha), design.shape[1]))
        self.alpha = alpha
        self.data = design
        self.cluster = design.cluster
        self.side_by_side = design.side_by_side
        # Group sums and compiled problems of the last groupings, by their labels and how many
        # groups there are: some may be empty.
        self._foreseen: dict[tuple[bytes, int], Rows] = {}
        self._compiled: dict[tuple[bytes, int], FewWeights | ManyRows | None] = {}

    def resolves(self, point: Point) -> bool:
        """Yes: values are sums over samples, and not differences of large terms."""
        return True

    def with_alpha(self, alpha: float) -> "FeatureObjective":
        """The same loss with another alpha; what is known of the columns is kept."""
        other = type(self)(self.data, self.response, alpha)
        other._moments = self._moments
        return other

    def refit(
        self, labels: Labels, n_groups: int, tol: float, start: Floats | None = None
    ) -> Point:
        """The best weights with the given groups: a problem in ``V`` alone.

        labels (d,): -1 for weights that are zero.
        start (n_groups, K): values of the groups to start from.
        """
        return self.refits(labels, n_groups, tol, (1.0,), start)[0]

    def refits(
        self,
        labels: Labels,
        n_groups: int,
        tol: float,
        factors: Sequence[float],
        start: Floats | None = None,
        intercept: Floats | None = None,
    ) -> list[Point]:
        """The same with each of several multiples of the ridge, in one pass over ``X``.

        Shapes: labels (d,), start (n_groups, K), intercept (K,).
        factors: what the ridge is multiplied by.
        intercept: one to start from, if there is a start.
        """
        sizes = group_totals(self.penalties, labels, n_groups)
        ridges = [factor * sizes for factor in factors]
        if not self._forms_sums(n_groups):
            applied = GroupedDesign(self.data, labels, n_groups)
            best = [self._grouped(applied, ridge).minimum(tol, start) for ridge in ridges]
        else:
            sums = self.data.over(self._sums(labels, n_groups))
            if self.quadratic:
                small = quadratic_objective(sums, self.response, sizes)
                starts = [small.with_penalties(ridge).minimum(tol).W for ridge in ridges]
                best = [
                    self._grouped(sums, ridge).at(V)
                    for ridge, V in zip(ridges, starts, strict=True)
                ]
            else:
                few = self._few_weights(labels, sums)
                found = None if few is None else few.minima(ridges, tol, start, intercept)
                best = found or [self._grouped(sums, ridge).minimum(tol, start) for ridge in ridges]
        return [Point(spread(b.W, labels), b.value, b.intercept, b.slope) for b in best]

    def _forms_sums(self, n_groups: int) -> bool:
        """Whether group sums are formed; if not, they are applied as an operator."""
        return self.data.shape[0] * n_groups <= max(SMALL, self.data.n_entries // 4)

    def _sums(self, labels: Labels, n_groups: int) -> Rows:
        """Sums of the columns of each group; those of the last grouping are kept."""
        key = labels.tobytes(), n_groups
        if key not in self._foreseen:
            self._foreseen = {key: self.data.group_sums(labels, n_groups)}
        return self._foreseen[key]

    def _few_weights(self, labels: Labels, sums: Design) -> FewWeights | ManyRows | None:
        """The compiled problem of the groups, kept for the next refit of the same ones."""
        key = labels.tobytes(), sums.shape[1]
        if key not in self._compiled:
            self._compiled = {key: class_problem(sums, self.response)}
        return self._compiled[key]

    def _grouped(self, design: Operator, ridge: Floats) -> LinearObjective:
        """The problem in the values of the groups."""
        return linear_objective(design, self.response, ridge)

    @property
    def models_classes(self) -> bool:
        """Whether there is a model `class_curvature`."""
        return self._class_rows is not None

    @cached_property
    def _class_rows(self) -> ManyRows | None:
        return class_rows(self.design, self.response)

    def class_curvature(self, point: Point) -> ClassCurvature:
        """The model ``A (x) B`` of the second derivative of a loss of classes at a point."""
        assert self._class_rows is not None
        return self._class_rows.curvature(point.W, point.intercept)

    def class_model(self, minimum: Point) -> ClassModel:
        """A model that tells values of groups, at the minimum without constraint."""
        if self.models_classes:
            return GramModel(self.class_curvature(minimum), minimum, self.alpha)
        response = self.response
        scores, sums = self.data.scores(minimum.W), self._sums
        return SumsModel(minimum, self.alpha, scores, response.shares, response.fit_intercept, sums)

    def rough_minimum(self, tol: float, near: Point | None = None) -> Point:
        """The minimum without constraint, with an intercept as rough as the weights."""
        few, found = class_problem(self.design, self.response), None
        if few is not None and near is None:
            found = few.minima([self.penalties], tol)
        elif few is not None and near is not None:
            found = few.minima([self.penalties], tol, near.W, near.intercept)
        return self.minimum(tol, near=near) if found is None else found[0]

    def quadratic_model(self, point: Point) -> QuadraticObjective:
        """The squared loss with the same gradient and value at a point.

        The value is that above the least loss, as a squared loss is not negative. The Gram matrix
        is ``X' diag(h) X`` with the second derivative ``h`` of each row, averaged over the outputs.
        Classes have the model of `class_curvature` instead; with more than two of them, its outputs
        and so the values of groups are others, but the groups are the same.
        """
        if self.models_classes:
            return self._class_model(point)
        response, data = self.response, self.data
        scores = self.shift(data.scores(point.W), point.intercept)
        weights = data.map(
            partial(_curvatures, response.loss), response.target, scores, response.shares
        )
        means = np.zeros(self.shape[0])
        total = float(data.fold(lambda w: namespace(w).sum(w), weights))
        if response.fit_intercept and total > 0.0:
            means = data.adjoint(data.map(lambda w: w[:, None], weights))[:, 0] / total
        return self._model(point, data.gram(weights, means), means, self.loss_gradient(point))

    def _class_model(self, point: Point) -> QuadraticObjective:
        """The model ``A (x) B`` of classes as a squared loss of other outputs.

        With ``A = U diag(a) U'`` and the weights ``W U diag(a)^1/2`` it has one Gram matrix. Their
        ridges are ``alpha / a_m``, for which their harmonic mean stands.
        """
        model, slope = self.class_curvature(point), self.loss_gradient(point)
        a, U = model.by_class
        a, U = a[a > 0.0], U[:, a > 0.0]
        bent = model.gram @ point.W @ model.classes
        constant = point.value - self.ridge(point.W) + float(np.vdot(point.W, 0.5 * bent - slope))
        return QuadraticObjective(
            model.gram,
            (bent - slope) @ U / np.sqrt(a),
            max(0.0, constant),
            penalties=self.penalties / a.mean(),
            x_means=model.means,
            y_means=np.zeros(a.size),
        )

    def _model(
        self, point: Point, gram: Floats, means: Floats, slope: Floats
    ) -> QuadraticObjective:
        """The squared loss with a Gram matrix, means and a gradient at a point."""
        ridge = self.ridge(point.W)
        bent = gram @ point.W
        least = self.least if np.isfinite(self.least) else 0.0
        constant = point.value - least - ridge + float(np.vdot(point.W, 0.5 * bent - slope))
        return QuadraticObjective(
            gram,
            bent - slope,
            max(0.0, constant),
            penalties=self.penalties,
            x_means=means,
            y_means=point.intercept + means @ point.W,
        )


def _curvatures(loss: Loss, target: Rows, scores: Rows, shares: Rows) -> Rows:
    """Share of each row times its second derivative, averaged over the outputs."""
    xp = namespace(scores)
    n_outputs = scores.shape[1]
    units = beside(np.eye(n_outputs), scores)
    total = xp.zeros_like(shares)
    for k in range(n_outputs):
        direction = xp.broadcast_to(units[k, :], scores.shape)
        total = total + loss.hessian_product(target, scores, direction)[:, k]
    return shares * (total / n_outputs)
