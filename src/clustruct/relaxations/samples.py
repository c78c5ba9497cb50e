"""The relaxation for clustered samples (sec:cvx_relax_other), in a form that scales.

With ``t_i = sqrt(s_i) y_i`` and the rows ``sqrt(s_i) w_i`` as variable, the best value of squared
loss for the groups ``Z`` depends on the projector ``N = D Z (Z' D^2 Z)^-1 Z' D`` alone, where ``D``
holds the roots ``sqrt(s_i)``:

    psi(N) = 1/2 <t, B>,    B = (I + (X X' o N) / alpha)^-1 t.

It is convex, and its negative gradient is ``P P' / (2 alpha)`` with the rows
``p_i = [b_i1 x_i, ..., b_iK x_i]``: the oracle is (weighted) k-means of these rows, no matrix
square root is needed, and the sum of the ``Q`` largest eigenvalues of ``P'P`` bounds what any
grouping can hold. ``N`` is a convex combination of groupings; ``X X' o N`` is applied by adding up
``x_j b_j`` over each group, and formed only for few samples.

An intercept is one more column of ``X``, a constant one. It would have no ridge, and then the
relaxation is empty: averaged over all groupings, it allows no ``B`` but zero. So the intercepts'
distances from that of the pooled fit get the ridge of the weights here. That is good enough for a
search, but gives no lower bound.
"""

from functools import cached_property, partial
from itertools import combinations

import numpy as np
from scipy import sparse

from clustruct._typing import Floats, Labels
from clustruct.arrays import namespace
from clustruct.design import Rows
from clustruct.objectives.samples.objective import Panel, SampleObjective
from clustruct.relaxations.hull import Hull, Relaxation


class SampleFactor(Relaxation):
    """``X`` and ``t``, with the rows ``[b_i1 x_i, ...]`` as ``P``.

    objective: with squared loss and positive alpha.
    """

    def __init__(self, objective: SampleObjective) -> None:
        response = objective.response
        self.alpha = objective.alpha
        self.roots = np.sqrt(response.shares)
        self._design = objective.design
        self._with_intercept = response.fit_intercept
        self._means = np.zeros(objective.shape[0])
        means = np.zeros(objective.shape[1])
        if response.fit_intercept:
            self._means = self._design.adjoint(response.shares[:, None])[:, 0]
            means = response.shares @ response.target
        self.target = self.roots[:, None] * (response.target - means)

    @cached_property
    def kernel(self) -> Floats:
        """``X X'``, ``n x n``, with centred rows and a constant column if there is an intercept."""
        rows = self.adjoint(np.ones((self.target.shape[0], 1)))
        return rows @ rows.T

    def adjoint(self, B: Floats) -> Floats:
        """``P``: each row of ``X`` times each of its numbers."""
        P = self._design.row_products(B)
        if not self._with_intercept:
            return P
        P -= (B[:, :, None] * self._means).reshape(P.shape)
        return np.hstack([P, B])

    def hadamard(self, A: sparse.csr_matrix, b: Floats) -> Floats:
        """``(X X' o A A') b``: sums over the groups, then products with their samples."""
        spread = A.multiply(b[:, None]).toarray()
        sums = self._design.adjoint(spread)
        image: Floats = self._design.scores(sums)
        if self._with_intercept:
            totals = spread.sum(axis=0)
            sums = sums - np.outer(self._means, totals)
            image = self._design.scores(sums) - self._means @ sums + totals
        return np.asarray(A.multiply(image).sum(axis=1)).reshape(-1)

    def apply(self, hull: Hull, b: Floats) -> Floats:
        """``(I + (X X' o N) / alpha) b``."""
        image = b.reshape(-1).copy()
        for A, share in zip(hull.groupings, hull.shares, strict=True):
            image += share / self.alpha * self.hadamard(A, b.reshape(-1))
        return image

    def grouping(self, labels: Labels, n_groups: int) -> sparse.csr_matrix:
        """``A = D Z (Z' D^2 Z)^-1/2``, with orthonormal columns, one a group."""
        totals = np.bincount(labels, np.square(self.roots), minlength=n_groups)
        entries = self.roots / np.sqrt(totals[labels])
        pointers = np.arange(labels.size + 1)
        return sparse.csr_matrix((entries, labels, pointers), shape=(labels.size, n_groups))

    def project(self, grouping: sparse.csr_matrix, P: Floats) -> Floats:
        """``A A' P``."""
        return grouping @ (grouping.T @ P)

    def matrix(self, labels: Labels, n_groups: int) -> Floats:
        """``(X X' o A A') / alpha``."""
        A = self.grouping(labels, n_groups)
        matrix: Floats = self.kernel * (A @ A.T).toarray()
        matrix /= self.alpha
        return matrix


def slope_gram(objective: SampleObjective, panel: Panel) -> Floats:
    """``P'P`` of the rows ``[b_i1 x_i, ..., b_iK x_i]`` with ``b`` the scaled slopes of a panel.

    They are not formed: a pair of outputs ``k, l`` takes a Gram matrix weighted by
    ``(b_k + b_l)^2``, as weights must not be negative, less those of ``k`` and of ``l``.

    panel: with slopes.
    """
    d, n_outputs = objective.shape
    shares, about = objective.response.shares, np.zeros(d)
    gram = np.empty((n_outputs, d, n_outputs, d))

    def weighted(k: int, j: int) -> Floats:
        weights = objective.design.map(partial(_squares, k, j), panel.slope, shares)
        return np.asarray(objective.design.gram(weights, about))

    for k in range(n_outputs):
        gram[k, :, k] = weighted(k, k)
    for k, j in combinations(range(n_outputs), 2):
        gram[k, :, j] = 0.5 * (weighted(k, j) - gram[k, :, k] - gram[j, :, j])
        gram[j, :, k] = gram[k, :, j].T
    return gram.reshape(n_outputs * d, -1)


def _squares(k: int, j: int, slope: Rows, shares: Rows) -> Rows:
    """``(b_k + b_j)^2`` of each row, or ``b_k^2``; zero for rows without weight."""
    xp = namespace(slope)
    both = slope[:, k] if k == j else slope[:, k] + slope[:, j]
    return both**2 / xp.where(shares > 0.0, shares, 1.0)
