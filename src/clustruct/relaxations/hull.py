"""A convex relaxation as conditional gradient sees it, and its lower bound."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, cg

from clustruct._typing import Floats, Labels


@dataclass(frozen=True)
class RelaxationSettings:
    """How the systems of a relaxation are solved."""

    # Up to this many rows the matrix of the system is formed and factorised.
    dense_rows: int = 1500
    # Relative residual of conjugate gradients: lower bounds hold for any residual.
    solve_tol: float = 1e-8
    solve_steps: int = 500
    # Systems of tasks are conditioned worse, even when preconditioned.
    task_steps: int = 1000


SETTINGS = RelaxationSettings()


class Relaxation(ABC):
    """``psi(M) = 1/2 <t, B> + rest``, convex, with negative gradient ``P P' / (2 alpha)``.

    target (r, K): ``t``.
    rest: what no weights can change.
    """

    target: Floats
    rest: float = 0.0
    alpha: float
    max_steps: int = SETTINGS.solve_steps

    @abstractmethod
    def adjoint(self, B: Floats) -> Floats:
        """``P``, whose rows are grouped by the oracle."""

    @abstractmethod
    def apply(self, hull: "Hull", b: Floats) -> Floats:
        """``(E + A(M) / alpha) b``, with ``A(M)`` linear in ``M``: ``R M R'`` or so."""

    def energy(self, B: Floats) -> float:
        """``<B, E B>``, which does not depend on the groups; mostly ``E`` is the identity."""
        return float(np.vdot(B, B))

    def grouping(self, labels: Labels, n_groups: int) -> Any:
        """A grouping as `project` takes it."""
        return labels.astype(np.min_scalar_type(-max(n_groups, 1))), n_groups

    def project(self, grouping: Any, P: Floats) -> Floats:
        """``N P`` with the projector ``N`` of a grouping: rows replaced by their group's mean."""
        labels, n_groups = grouping
        kept = labels >= 0
        sizes = np.maximum(np.bincount(labels[kept], minlength=n_groups), 1)
        # Label -1 is the last index: one more group, with mean zero.
        means = np.zeros((n_groups + 1, P.shape[1]))
        for k, column in enumerate(P.T):
            sums = np.bincount(labels[kept], column[kept], minlength=n_groups)
            means[:n_groups, k] = sums / sizes
        return means[labels]

    def matrix(self, labels: Labels, n_groups: int) -> Floats | None:
        """``A(N) / alpha`` of a grouping; None where it is applied but not formed."""
        return None

    def preconditioner(self, hull: "Hull") -> Any:
        """What conjugate gradients are preconditioned by, if anything."""
        return None

    def hull(self, labels: Labels, n_groups: int) -> "Hull":
        """The projector of one grouping."""
        formed = self.target.shape[0] <= SETTINGS.dense_rows
        matrix = self.matrix(labels, n_groups) if formed else None
        return Hull(self, (self.grouping(labels, n_groups),), np.ones(1), matrix)


@dataclass(frozen=True, eq=False)
class Hull:
    """``M``, a convex combination of the projectors of groupings, and a way to solve for ``B``.

    matrix (r, r): ``A(M) / alpha`` for few rows, None for many.
    """

    factor: Relaxation
    groupings: tuple[Any, ...]
    shares: Floats
    matrix: Floats | None

    def project(self, P: Floats) -> Floats:
        """``M P``."""
        image = np.zeros_like(P)
        for grouping, share in zip(self.groupings, self.shares, strict=True):
            image += share * self.factor.project(grouping, P)
        return image

    def toward(self, labels: Labels, n_groups: int) -> "Callable[[float], Hull]":
        """The hulls with one more grouping, as a function of its share."""
        groupings = (*self.groupings, self.factor.grouping(labels, n_groups))
        added = None if self.matrix is None else self.factor.matrix(labels, n_groups)

        def mixed(share: float) -> Hull:
            matrix = self.matrix
            if matrix is not None and added is not None:
                matrix = (1.0 - share) * matrix + share * added
            shares = np.append((1.0 - share) * self.shares, share)
            return Hull(self.factor, groupings, shares, matrix)

        return mixed

    def solve(self) -> Floats:
        """``B = (E + A(M) / alpha)^-1 t``, by Cholesky factorisation or conjugate gradients."""
        target = self.factor.target
        if self.matrix is None:
            return self._solve_columns(target)
        system = self.matrix + np.eye(self.matrix.shape[0])
        try:
            return linalg.cho_solve(linalg.cho_factor(system), target)
        except linalg.LinAlgError:  # columns so large that the ones are lost in rounding
            values, vectors = linalg.eigh(system)
            return vectors @ (vectors.T @ target / np.maximum(values, 1.0)[:, None])

    def _solve_columns(self, target: Floats) -> Floats:
        """Conjugate gradients for each column; bounds hold for any residual."""
        shape, factor = (target.shape[0],) * 2, self.factor
        operator = LinearOperator(shape, matvec=lambda b: factor.apply(self, b), dtype=np.float64)
        inverse = factor.preconditioner(self)
        if inverse is not None:
            inverse = LinearOperator(shape, matvec=inverse, dtype=np.float64)
        options = {"rtol": SETTINGS.solve_tol, "maxiter": factor.max_steps, "M": inverse}
        return np.stack([cg(operator, t, **options)[0] for t in target.T], axis=1)


def dual_bound(factor: Relaxation, B: Floats, explained: float) -> float:
    """A lower bound of ``f`` on a union of subspaces, from any ``B``.

    For every feasible ``W`` and every number ``tau``

        f(W) - rest >= tau <t, B> - tau^2 / 2 (<B, E B> + h / alpha),

    where ``h``, the argument `explained`, is the most that a subspace holds of ``||P||^2``; the
    best ``tau`` is known.
    """
    spread = factor.energy(B) + explained / factor.alpha
    along = float(np.vdot(factor.target, B))
    return factor.rest + (0.5 * along * (along / spread) if spread > 0.0 else 0.0)
