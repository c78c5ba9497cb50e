"""How a fit went, and how far from the best it can be."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clustruct._finite import require_finite
from clustruct._html import table

__all__ = ["Certificate", "Iteration", "Status", "relative_gaps"]

WIDE = 0.2  # a relative gap beyond which a bound says little about a fit
LITTLE = 0.99  # one beyond which it says next to nothing
# Objectives and bounds are sums over all rows, computed in different ways: half of the sixteen
# digits of double precision are theirs to lose. Differences below that are rounding.
ROUNDING = 1e-8


def relative_gaps(objectives: ArrayLike, lower_bounds: ArrayLike) -> NDArray[np.float64]:
    """Gaps as fractions of the objectives' sizes: 0 up to rounding, infinite where size is 0."""
    values, bounds = np.asarray(objectives, dtype=float), np.asarray(lower_bounds, dtype=float)
    gaps, sizes = values - bounds, np.abs(values)
    real = gaps > ROUNDING * np.minimum(np.maximum(sizes, np.abs(bounds)), np.finfo(float).max)
    full = np.where(real, np.inf, 0.0)
    with np.errstate(over="ignore"):
        return np.divide(gaps, sizes, where=real & (sizes > 0.0), out=full)


@dataclass(frozen=True)
class Certificate:
    """How much lower the training objective could be with other groups, at most.

    It is about the fit to the training samples. It says nothing about predictions.

    Attributes
    ----------
    objective : float
        Objective of the fit.
    lower_bound : float
        No weights that obey the constraint have a smaller objective; ``-inf`` where nothing is
        proved.
    gap : float
        ``objective - lower_bound``, ``inf`` where nothing is proved.
    relative_gap : float
        ``gap / abs(objective)``; 0 where the gap is 0 to rounding, ``inf`` where nothing is proved
        or the objective is 0.
    source : str
        Where the bound came from: ``"unconstrained"`` (the problem without groups),
        ``"residual"`` (duality at the fit), ``"conditional gradient"`` (the convex relaxation) or
        ``"least loss"`` (that of any scores whatever, which is 0 for most losses).

    Examples
    --------
    >>> import clustruct as cs
    >>> certificate = cs.Certificate.of(2.0, 1.9, "residual")
    >>> round(certificate.relative_gap, 3)
    0.05
    >>> certificate.in_words
    'No other grouping can lower the training objective by more than 5 %.'
    """

    objective: float
    lower_bound: float
    gap: float
    relative_gap: float
    source: str

    @classmethod
    def of(
        cls, objective: float, lower_bound: float, source: str, *, scale: float = 0.0
    ) -> "Certificate":
        """The certificate for a bound.

        Parameters
        ----------
        objective : float
            Finite.
        lower_bound : float
            A number, or ``-inf`` where nothing is proved.
        source : str
            Where the bound came from.
        scale : float, default=0.0
            Size of what the two were computed from, where that is larger than they are: a loss
            near 0 that is left of targets around 1 is known to the rounding of 1.

        Returns
        -------
        Certificate

        Raises
        ------
        ValueError
            If the objective is not finite, if the bound is not a number, or if it is above the
            objective by more than rounding, 1e-8 of the largest of the numbers involved.
        """
        objective, lower_bound = float(objective), float(lower_bound)
        require_finite(objective, "the objective")
        if math.isnan(lower_bound):
            require_finite(lower_bound, f"the lower bound ({source})")
        excess = lower_bound - objective
        if excess > ROUNDING * max(abs(objective), min(abs(lower_bound), 1e300), scale):
            raise ValueError(
                f"The lower bound {lower_bound!r} ({source}) is above the objective {objective!r} "
                "by more than rounding: one of them is wrong. If the loss or the constraint is "
                "your own, check its conjugate or its `explained`. Otherwise scale the columns of "
                "X and the targets to numbers around 1."
            )
        lower_bound = min(lower_bound, objective)
        relative = float(relative_gaps(objective, lower_bound))
        return cls(objective, lower_bound, objective - lower_bound, relative, source)

    @property
    def in_words(self) -> str:
        """What it proves, as a sentence."""
        if self.relative_gap <= ROUNDING:
            return "The best possible grouping: no other can lower the training objective."
        if self.proves_little:
            return "It is not proved how much another grouping could lower the training objective."
        most = f"No other grouping can lower the training objective by more than {self._amount}"
        if self.is_wide:
            return f"{most}, which leaves room: better groups may exist, or the bound is loose."
        return f"{most}."

    @property
    def _amount(self) -> str:
        """The gap: in percent, or as it is where the objective has no natural zero."""
        if self.objective <= 0.0 or self.lower_bound < 0.0:
            return f"{self.gap:.2g} (it is {self.objective:.4g})"
        percent = 100.0 * self.relative_gap
        return f"{percent:.2g} %" if percent < 10.0 else f"{percent:.0f} %"

    @property
    def is_wide(self) -> bool:
        """Whether the gap is too wide, above a fifth, to tell a good fit from a bad one."""
        return self.relative_gap > WIDE

    @property
    def proves_little(self) -> bool:
        """Whether it proves next to nothing: no bound, or below a hundredth of the objective."""
        return self.lower_bound == -math.inf or (
            self.lower_bound >= 0.0 and self.relative_gap > LITTLE
        )

    def _repr_html_(self) -> str:
        row = (self.objective, self.lower_bound, self.gap, self.relative_gap, self.source)
        header = ("objective", "lower bound", "gap", "relative gap", "source")
        return table(self.in_words, header, [row])


@dataclass(frozen=True)
class Iteration:
    """One accepted step of a solver.

    Attributes
    ----------
    solver : str
        Which solver took it.
    number : int
        0 for the start.
    objective : float
        Objective after it; for ``"cg"`` that of the convex relaxation.
    step : float
        Step size.
    seconds : float
        Since the solver began.

    Examples
    --------
    >>> import clustruct as cs
    >>> cs.Iteration("pg", 0, 1.5, 0.0, 0.01).objective
    1.5
    """

    solver: str
    number: int
    objective: float
    step: float
    seconds: float


@dataclass(frozen=True)
class Status:
    """How a fit ended.

    Attributes
    ----------
    solver : str
        The solver whose answer was kept.
    converged : bool
        Whether it stopped because there was no more to gain.
    n_iter : int
        Its steps.
    objectives : tuple of (str, float)
        Every solver that was tried, in order, with the objective it reached.
    message : str
        All of this in words.

    Examples
    --------
    >>> import clustruct as cs
    >>> cs.Status("pg", True, 7, (("pg", 0.5),), "pg: converged after 7 steps").converged
    True
    """

    solver: str
    converged: bool
    n_iter: int
    objectives: tuple[tuple[str, float], ...]
    message: str

    def _repr_html_(self) -> str:
        return table(self.message, ("solver", "objective"), self.objectives)
