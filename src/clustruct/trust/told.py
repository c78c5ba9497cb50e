"""What samples tell of groups that were found on others: a test of one contrast.

Groups, and the direction in which two of them differ, are known before these samples are looked at.
They are then inputs of a plain linear model, fitted without penalty, with ``x_i`` the inputs and a
one, ``s_i`` the share of sample ``i``, ``g_i`` and ``h_i`` the first and second derivative of its
loss, ``J = sum_i s_i h_i x_i x_i'``, and a contrast ``c`` of the values. Its variance is

    V = sum_i (c' J^-1 x_i s_i g_i)^2 / (1 - l_i),    l_i = s_i h_i x_i' J^-1 x_i,

the sandwich with leverages ``l_i`` (HC2): right for large samples whatever the noise of each is,
and without bias for small ones of equal noise. Targets of one row are added up before they are
squared. ``c'theta / sqrt(V)`` is compared with Student's t, with the degrees of freedom that match
the mean and the variance of ``V`` under equal noise (Satterthwaite; Bell and McCaffrey, 2002;
Imbens and Kolesar, 2016). A few rows that decide the difference then count as few.

For two groups ``a`` and ``b`` of tasks with centroids ``v_a`` and ``v_b`` the model has the inputs
of all tasks and one more,

    score = x_i' theta + delta e_i x_i'(v_a - v_b),    e_i = 1/2 in group a and -1/2 in group b.

If one ``theta`` is the best for the rows of ``a`` and for those of ``b``, then ``x_i g_i`` has the
mean zero in both, and so has ``g_i e_i x_i'(v_a - v_b)``: the best ``delta`` is zero, whatever the
direction. The rows of a group are pooled for that, so that no task needs enough of its own.
"""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, stdtr
from sklearn.base import clone, is_classifier

from clustruct._interrupts import in_part
from clustruct._typing import Counts, Floats, Labels
from clustruct.arrays import to_host
from clustruct.design import LocalDesign, load
from clustruct.estimators.features.models import FeatureClusterClassifier, FeatureClusterRegressor
from clustruct.estimators.search.engine import SearchFace
from clustruct.estimators.tasks import layouts
from clustruct.losses import loss_of
from clustruct.objectives.linear import Response
from clustruct.objectives.tasks.data import TaskTargets
from clustruct.trust.given import influences_of, response_of
from clustruct.trust.refits import Fitted

# Parameters of a model without groups, for inputs that are sums over groups.
UNGROUPED = {
    "n_clusters": None,
    "n_nonzero": None,
    "price": None,
    "blocks": None,
    "constraint": None,
    "categorical_features": None,
    "factors": None,
    "alpha": 0.0,
    "prove": False,
    "init": "auto",
    "verbose": 0,
}
# Eigenvalues below this share of the largest one are rounding, with columns of equal length; a
# contrast is told if no more than this share of it is outside of what the rows span.
RANK_TOL, OUTSIDE = 1e-10, 1e-6
# A leverage this near to one is one: the row has a parameter of its own, and says nothing of noise.
FULL = 1e-9

UNKNOWN = (np.nan, np.nan, np.nan)


@dataclass(frozen=True, eq=False)
class Told:
    """A linear model of some samples, fitted without penalty.

    inputs (n, p): the last column is for the intercept.
    values (p, K).
    units (n,): samples with the same number are not independent; None if all are.
    """

    inputs: Floats
    response: Response
    values: Floats
    units: Labels | None = None

    def test(self, contrast: Floats) -> tuple[float, float, float]:
        """A contrast (p,) of the values, its standard error, and the p-value of its being zero.

        For several outputs the largest one is shown, and the test is of all. NaN where the samples
        do not tell.
        """
        difference = contrast @ self.values
        if difference.size > 1:
            return self._wald(difference, contrast)
        error, freedom = self._error(contrast)
        if not error > 0.0:
            return UNKNOWN
        return float(difference[0]), error, float(2.0 * stdtr(freedom, -abs(difference[0]) / error))

    def _error(self, contrast: Floats) -> tuple[float, float]:
        """Standard error of a contrast, and its degrees of freedom; NaN if it is not told."""
        loss, target, shares = self.response.loss, self.response.target, self.response.shares
        scores = self.inputs @ self.values
        slopes = shares * loss.gradient(target, scores)[:, 0]
        bends = shares * loss.hessian_product(target, scores, np.ones_like(scores))[:, 0]
        J = self.inputs.T @ (bends[:, None] * self.inputs)
        length = np.sqrt(np.diag(J))
        length[length == 0.0] = 1.0
        values, vectors = np.linalg.eigh(J / np.outer(length, length))
        kept = values > RANK_TOL * values[-1]
        roots = vectors[:, kept] / np.sqrt(values[kept])  # J^-1 = roots roots', for scaled columns
        sought = contrast / length
        along = vectors[:, kept].T @ sought
        told = sought @ sought - along @ along <= OUTSIDE * (sought @ sought)
        U = np.sqrt(bends)[:, None] * (self.inputs / length) @ roots  # orthonormal columns
        pulls = (self.inputs / length) @ roots @ (roots.T @ sought)
        room = 1.0 - np.square(U).sum(axis=1)
        full = room <= FULL
        own = bends * np.square(pulls)
        if not (told and own.sum() > 0.0 and own[full].sum() <= FULL * own.sum()):
            return np.nan, np.nan
        swell = np.where(full, 0.0, 1.0 / np.sqrt(np.where(full, 1.0, room)))
        variance = np.square(self._added(pulls * slopes * swell)).sum()
        # With W = diag(w), V = e' M W C'C W M e for noise e of variance one, C the sums over units
        # and M = I - U U': the trace of C W M W C', and that of its square.
        w = pulls * np.sqrt(bends) * swell
        whole, mixed = self._added(w**2), self._added(w[:, None] * U)
        trace = whole.sum() - np.square(mixed).sum()
        square = whole @ (whole - 2.0 * np.square(mixed).sum(axis=1))
        square += np.square(mixed.T @ mixed).sum()
        return float(np.sqrt(variance)), float(trace**2 / square)

    def _added(self, rows: Floats) -> Floats:
        """Sums over the samples of each unit."""
        if self.units is None:
            return rows
        sums = np.zeros((int(self.units.max()) + 1, *rows.shape[1:]))
        np.add.at(sums, self.units, rows)
        return sums

    def _wald(self, difference: Floats, contrast: Floats) -> tuple[float, float, float]:
        """The same for several outputs, by a chi-squared test."""
        shape = len(self.inputs), contrast.size, difference.size
        ridge = np.zeros(contrast.size)
        influences = influences_of(self.inputs, self.response, self.inputs @ self.values, ridge)
        moved = np.einsum("npk,p->nk", influences.reshape(shape), contrast)
        covariance = moved.T @ moved
        errors = np.sqrt(np.diag(covariance))
        k = int(np.argmax(np.abs(difference)))
        statistic = float(difference @ np.linalg.pinv(covariance, hermitian=True) @ difference)
        rank = int(np.linalg.matrix_rank(covariance, hermitian=True))
        return float(difference[k]), float(errors[k]), float(chdtrc(rank, statistic))


def told_of_features(estimator: Any, fitted: Fitted, telling: Counts) -> Told:
    """The values of the groups of a model of features, as other samples tell them."""
    inputs = np.asarray(load(estimator.transform(fitted.X)), dtype=np.float64)
    searched = isinstance(estimator, SearchFace)
    model: Any = cast(Any, estimator)._as_plain() if searched else clone(estimator)
    asked = model.get_params(deep=False)
    model.set_params(**{name: value for name, value in UNGROUPED.items() if name in asked})
    weights, offset = fitted.weighed(telling), fitted.given.get("offset")
    return _told(model, inputs, fitted.y, weights, offset)


def _told(model: Any, inputs: Floats, y: Any, weights: Any, offset: Any, units: Any = None) -> Told:
    """Fit a model without groups, and take what a test needs."""
    with in_part():  # of no use unless it is complete
        model.fit(inputs, y, weights, offset)
    rows, response = response_of(model, inputs, y, weights, offset)
    return Told(rows, response, np.vstack([model._weights, model._offset]), units)


@dataclass(frozen=True, eq=False)
class TaskRows:
    """Targets of tasks with their inputs, in any layout of `fit`."""

    design: LocalDesign
    targets: TaskTargets
    names: NDArray[Any]

    @classmethod
    def of(cls, fitted: Fitted) -> "TaskRows":
        """All that a model was fitted to."""
        given = {name: load(value) for name, value in fitted.given.items()}
        about = load(fitted.y), given.get("tasks"), fitted.sample_weight, given.get("offset")
        reading = layouts.read(clone(fitted.estimator), load(fitted.X), *about)
        design = cast(LocalDesign, reading.entries.design)
        return cls(design, cast(TaskTargets, reading.entries.targets), reading.names)

    def told(self, found: Any, a: int, b: int, telling: Counts) -> tuple[float, float, float]:
        """Test whether two groups of a model that was fitted to other rows differ.

        The difference is that of the scores, as their root mean square over the rows, positive if
        it has the direction of the centroids.
        """
        codes = layouts.known_codes(self.names, found.tasks_)
        groups = np.where(codes < 0, -1, found.labels_[codes])[self.targets.tasks]
        mine = ((groups == a) | (groups == b)) & (telling[self.targets.rows] > 0)
        targets, first = self.targets.take(np.flatnonzero(mine)), groups[mine] == a
        if first.all() or not first.any() or np.unique(targets.y).size < 2:
            return UNKNOWN
        inputs = np.asarray(
            self.design.rows(targets.rows).row_products(np.ones((targets.rows.size, 1))),
            dtype=np.float64,
        )
        v = to_host(found.centroids_)
        along = inputs @ (v[a] - v[b])
        along += float(found.centroid_intercepts_[a] - found.centroid_intercepts_[b])
        size = np.sqrt(np.average(np.square(along), weights=targets.weights))
        if not size > 0.0:
            return UNKNOWN
        inputs = np.column_stack([inputs, np.where(first, 0.5, -0.5) * along / size])
        kind = FeatureClusterClassifier if is_classifier(found) else FeatureClusterRegressor
        model = kind(None, alpha=0.0, loss=loss_of(found), fit_intercept=found.fit_intercept)
        units = np.unique(targets.rows, return_inverse=True)[1].reshape(-1)
        shared = units if units.max() + 1 < units.size else None
        told = _told(model, inputs, targets.y, targets.weights, targets.offset, shared)
        contrast = np.zeros(inputs.shape[1] + 1)
        contrast[-2] = 1.0
        return told.test(contrast)
