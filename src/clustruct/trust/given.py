"""Standard errors of the values of groups, given the groups: the influence of each sample.

With ``theta`` the values and intercepts of a fit, ``g_i`` the derivative of the loss of sample
``i`` by its scores, ``H_i`` the second derivative, ``x_i`` its inputs (sums over groups, and one)
and ``s_i`` its share, the fit solves ``sum_i s_i x_i g_i' + D theta = 0`` with the ridge ``D``, so
that the sample moves it by

    I_i = -J^-1 (s_i x_i g_i'),    J = sum_i s_i x_i x_i' H_i + D.

The sum of ``I_i I_i'`` is the covariance (the sandwich, right whatever the noise), and
``sum_i I_i^3 / (6 (sum_i I_i^2)^(3/2))`` the acceleration of BCa intervals (Efron, 1987).
"""

from copy import copy
from typing import Any, NamedTuple, cast

import numpy as np

from clustruct._typing import Floats
from clustruct.arrays import to_host
from clustruct.design import LocalDesign, as_design, load
from clustruct.estimators import intake
from clustruct.estimators.offsets import attach_offset
from clustruct.objectives.linear import Response


class Sureness(NamedTuple):
    """Of each parameter, all of the same shape."""

    estimates: Floats
    std_errors: Floats
    accelerations: Floats


def of_features(estimator: Any, X: Any, y: Any, weights: Any, offset: Any) -> Sureness:
    """Of the values of groups of features, and in the last row of the intercepts."""
    inputs = np.asarray(load(estimator.transform(X)), dtype=np.float64)
    first = np.array([np.flatnonzero(estimator.labels_ == q)[0] for q in range(inputs.shape[1])])
    values = np.vstack([to_host(estimator._weights)[first], estimator._offset])
    alpha = getattr(estimator, "alpha_", estimator.alpha)
    alpha = 0.0 if isinstance(alpha, str) else float(alpha) * getattr(estimator, "relax_", 1.0)
    ridge = np.append(alpha * estimator.cluster_sizes_, 0.0)
    influences = _of_rows(estimator, inputs, y, weights, offset, values, ridge)
    found = _sureness(values, influences)
    if (estimator.labels_ < 0).any():  # the group without weight comes first, and is zero
        none = np.zeros((1, values.shape[1]))
        found = Sureness(*(np.vstack([none, each]) for each in found))
    return found


def of_samples(estimator: Any, X: Any, y: Any, weights: Any, offset: Any) -> Sureness:
    """Of the weights and intercepts of experts, a row for each expert."""
    design = cast(LocalDesign, intake.place_matrix(estimator, load(X)))
    labels, targets = np.asarray(load(estimator.labels_)), np.asarray(load(y))
    found = []
    for q in range(estimator.n_clusters_):
        mine = np.flatnonzero(labels == q)
        part = design.rows(mine)
        inputs = part.row_products(np.ones((mine.size, 1)))
        values = np.vstack([estimator._W[q], estimator._b[q]])
        ridge = np.append(np.full(inputs.shape[1], float(estimator.alpha)), 0.0)
        shares, shift = (
            None if each is None else np.asarray(load(each))[mine] for each in (weights, offset)
        )
        influences = _of_rows(estimator, inputs, targets[mine], shares, shift, values, ridge)
        found.append([each.reshape(-1) for each in _sureness(values, influences)])
    return Sureness(*map(np.stack, zip(*found, strict=True)))


def of_tasks(estimator: Any) -> Sureness:
    """Of the centroids and their intercepts: only the values are known.

    Weights of tasks are drawn to their centroid, so that their spread says little of its error.
    """
    centroids = np.column_stack(
        [to_host(estimator.centroids_), to_host(estimator.centroid_intercepts_)]
    )
    return Sureness(centroids, np.full(centroids.shape, np.nan), np.zeros(centroids.shape))


def _of_rows(
    estimator: Any, inputs: Floats, y: Any, weights: Any, offset: Any, values: Floats, ridge: Floats
) -> Floats:
    """Influences of samples on values and intercepts that are linear in some inputs."""
    inputs, response = response_of(estimator, inputs, y, weights, offset)
    return influences_of(inputs, response, inputs @ values, ridge)


def response_of(
    estimator: Any, inputs: Floats, y: Any, weights: Any, offset: Any
) -> tuple[Floats, Response]:
    """Inputs of the samples of positive weight, with a column for the intercept; and the rest."""
    design = as_design(inputs)
    targets = design.attach(y, "y", lambda y, n: np.asarray(load(y)))
    samples = intake.weigh(design, targets, weights, attach_offset(design, offset))
    ones = np.full(samples.design.shape[0], float(estimator.fit_intercept))
    inputs = np.column_stack([cast(LocalDesign, samples.design).matrix(), ones])
    return inputs, copy(estimator)._respond(samples)


def influences_of(inputs: Floats, response: Response, scores: Floats, ridge: Floats) -> Floats:
    """How much each sample moves each parameter of a linear model, ``n x (p K)``.

    Shapes: inputs (n, p), scores (n, K), ridge (p,). They are scaled so that the sum of their
    squares is a variance without bias: ``n`` over ``n - p``.
    """
    (n, p), n_outputs = inputs.shape, scores.shape[1]
    loss, target, shares = response.loss, response.target, response.shares
    slopes = loss.gradient(target, scores)
    pulls = (shares[:, None, None] * inputs[:, :, None] * slopes[:, None, :]).reshape(n, -1)
    J = np.zeros((p, n_outputs, p, n_outputs))
    for k in range(n_outputs):
        unit = np.zeros_like(scores)
        unit[:, k] = 1.0
        bends = loss.hessian_product(target, scores, unit)
        for other in range(n_outputs):
            J[:, other, :, k] = inputs.T @ ((shares * bends[:, other])[:, None] * inputs)
        J[:, k, :, k] += np.diag(ridge)
    scale = np.sqrt(n / (n - p)) if n > p else np.nan
    return -scale * pulls @ np.linalg.pinv(J.reshape(p * n_outputs, -1), hermitian=True)


def _sureness(values: Floats, influences: Floats) -> Sureness:
    """Standard errors and accelerations by the influences of independent units."""
    squares, cubes = np.square(influences).sum(axis=0), (influences**3).sum(axis=0)
    bends = np.divide(cubes, 6.0 * squares**1.5, out=np.zeros_like(cubes), where=squares > 0.0)
    return Sureness(values, np.sqrt(squares).reshape(values.shape), bends.reshape(values.shape))
