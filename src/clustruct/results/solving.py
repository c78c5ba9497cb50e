"""How a fit went, and how far from the best it can be."""

from dataclasses import dataclass

from clustruct._html import table

__all__ = ["Certificate", "Iteration", "Status"]

WIDE = 0.2  # a relative gap beyond which a bound says little about a fit


@dataclass(frozen=True)
class Certificate:
    """How far a fit can be from the best possible one.

    Attributes
    ----------
    objective : float
        Objective of the fit.
    lower_bound : float
        No weights that obey the constraint have a smaller objective.
    gap : float
        ``objective - lower_bound``.
    relative_gap : float
        ``gap / objective``, or 0 where both are zero.
    source : str
        Where the bound came from: ``"unconstrained"`` (the problem without groups),
        ``"residual"`` (duality at the fit) or ``"conditional gradient"`` (the convex relaxation).

    Examples
    --------
    >>> import clustruct as cs
    >>> certificate = cs.Certificate.of(2.0, 1.9, "residual")
    >>> round(certificate.relative_gap, 3)
    0.05
    """

    objective: float
    lower_bound: float
    gap: float
    relative_gap: float
    source: str

    @classmethod
    def of(cls, objective: float, lower_bound: float, source: str) -> "Certificate":
        """The certificate for a bound; rounding may not lift the bound above the objective."""
        lower_bound = min(lower_bound, objective)
        gap = objective - lower_bound
        relative = gap / objective if objective > 0.0 else 0.0
        return cls(objective, lower_bound, gap, relative, source)

    @property
    def in_words(self) -> str:
        """What it proves, as a sentence."""
        percent = 100.0 * self.relative_gap
        if self.relative_gap <= 1e-9:
            return "The best possible: no choice of groups has a smaller objective."
        if not self.lower_bound > 0.0:
            return "Nothing is proved about how much better another choice of groups could be."
        if percent > 99.0:
            return (
                "Next to nothing is proved about how much better another choice of groups could "
                "be: the bound is below a hundredth of the objective."
            )
        if self.is_wide:
            return (
                "Not proved to be near the best possible: no choice of groups can lower the "
                f"objective by more than {percent:.0f} %, which leaves room. Either better groups "
                "exist, or the bound is loose."
            )
        amount = f"{percent:.2g} %" if percent < 10.0 else f"{percent:.0f} %"
        return (
            f"Within {amount} of the best possible: "
            "no choice of groups can lower the objective by more than that."
        )

    @property
    def is_wide(self) -> bool:
        """Whether the gap is too wide, above a fifth, to tell a good fit from a bad one."""
        return self.relative_gap > WIDE

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
