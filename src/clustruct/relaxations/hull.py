"""The interface of a convex relaxation for conditional gradient, and its lower bound."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from clustruct._typing import Floats, Labels

__all__ = [
    "SETTINGS",
    "Hull",
    "Mixing",
    "PlainEnergy",
    "Relaxation",
    "RelaxationSettings",
    "dual_bound",
    "solve_columns",
]


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


class Mixing(Protocol):
    """``M``, a convex combination of the projectors of groupings."""

    def apply(self, P: Floats) -> Floats:
        """``M P``."""


class Hull(Protocol):
    """A mixture together with a way to solve for ``B``."""

    @property
    def mixture(self) -> Mixing:
        """``M``."""

    def solve(self) -> Floats:
        """``B = (E + A(M) / alpha)^-1 t``, with ``A(M)`` linear in ``M``: ``R M R'`` or so."""

    def toward(self, labels: Labels, n_groups: int) -> "Callable[[float], Hull]":
        """The hulls with one more grouping, as a function of its share."""


class Relaxation(Protocol):
    """``psi(M) = 1/2 <t, B> + rest``, convex, with negative gradient ``P P' / (2 alpha)``.

    target (r, K): ``t``.
    rest: what no weights can change.
    """

    target: Floats
    rest: float
    alpha: float

    def adjoint(self, B: Floats) -> Floats:
        """``P``, whose rows are grouped by the oracle."""

    def energy(self, B: Floats) -> float:
        """``<B, E B>``, which does not depend on the groups; mostly ``E`` is the identity."""

    def hull(self, labels: Labels, n_groups: int) -> Hull:
        """The projector of one grouping."""


class PlainEnergy:
    """The energy of a relaxation with ``E = I``."""

    def energy(self, B: Floats) -> float:
        """``||B||^2``."""
        return float(np.vdot(B, B))


def solve_columns(apply: Callable[[Floats], Floats], target: Floats) -> Floats:
    """Solve a positive definite system for each column of the target by conjugate gradients."""
    n = target.shape[0]
    operator = LinearOperator((n, n), matvec=apply, dtype=np.float64)
    tol, most = SETTINGS.solve_tol, SETTINGS.solve_steps
    return np.stack([cg(operator, t, rtol=tol, maxiter=most)[0] for t in target.T], axis=1)


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
