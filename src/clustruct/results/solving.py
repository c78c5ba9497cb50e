"""What solvers and projections find: the course of a fit, a bound of its optimum, and points."""

import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clustruct._docs import documented_fields
from clustruct._finite import require_finite
from clustruct._typing import Floats, Labels
from clustruct.results.tables import shown_weight, table

WIDE = 0.2  # relative gap above which a bound says little about a fit
LITTLE = 0.99  # and above which it says almost nothing
# Objectives and bounds are sums over all rows, computed in different ways, and may lose half of the
# sixteen digits of double precision. Smaller differences are rounding.
ROUNDING = 1e-8


def relative_gaps(objectives: ArrayLike, lower_bounds: ArrayLike) -> Floats:
    """Gaps divided by the absolute objectives: 0 up to rounding, infinite for objective 0."""
    values, bounds = np.asarray(objectives, dtype=float), np.asarray(lower_bounds, dtype=float)
    gaps, sizes = values - bounds, np.abs(values)
    real = gaps > ROUNDING * np.minimum(np.maximum(sizes, np.abs(bounds)), np.finfo(float).max)
    full = np.where(real, np.inf, 0.0)
    with np.errstate(over="ignore"):
        return np.divide(gaps, sizes, where=real & (sizes > 0.0), out=full)


@dataclass(frozen=True)
class Certificate:
    """A bound on how much other groups could lower the training objective.

    It is about the fit to the training samples, not about predictions.

    Attributes
    ----------
    objective : float
        Objective of the fit.
    lower_bound : float
        Lower bound on the objective under the constraint; ``-inf`` if nothing is proved.
    gap : float
        ``objective - lower_bound``; ``inf`` if nothing is proved.
    relative_gap : float
        ``gap / abs(objective)``; 0 if the gap is 0 up to rounding, ``inf`` if nothing is proved
        or the objective is 0.
    source : str
        Origin of the bound: ``"unconstrained"`` (the problem without groups), ``"residual"``
        (duality at the fit), ``"conditional gradient"`` (the convex relaxation), ``"tangent"``
        (the best tangent of squared loss), ``"proof"`` (branch and bound) or ``"least loss"`` (over
        all scores, 0 for most losses).

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
        """Make a certificate from an objective and a lower bound.

        Parameters
        ----------
        objective : float
            Finite.
        lower_bound : float
            ``-inf`` if nothing is proved.
        source : str
            Origin of the bound.
        scale : float, default=0.0
            Magnitude of the numbers that both were computed from, which sets the rounding: a loss
            near 0 of targets around 1 is known up to the rounding of 1.

        Returns
        -------
        Certificate

        Raises
        ------
        ValueError
            If the objective is not finite, or the bound is NaN or above the objective by more than
            rounding, 1e-8 of the largest of the numbers.
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
        """The certificate as a sentence."""
        if self.relative_gap <= ROUNDING:
            return "Proved optimal: no other grouping can lower the training objective."
        if self.proves_little:
            return "It is not proved how much another grouping could lower the training objective."
        most = f"No other grouping can lower the training objective by more than {self._amount}"
        if self.is_wide:
            return f"{most}, which leaves room: better groups may exist, or the bound is loose."
        return f"{most}."

    @property
    def _amount(self) -> str:
        """The gap in percent, or as a number if the objective can be negative."""
        if self.objective <= 0.0 or self.lower_bound < 0.0:
            return f"{self.gap:.2g} (it is {self.objective:.4g})"
        percent = 100.0 * self.relative_gap
        return f"{percent:.2g} %" if percent < 10.0 else f"{percent:.0f} %"

    @property
    def is_wide(self) -> bool:
        """Whether the relative gap, above a fifth, is too wide to judge the fit."""
        return self.relative_gap > WIDE

    @property
    def proves_little(self) -> bool:
        """Whether there is no bound, or one below a hundredth of the objective."""
        return self.lower_bound == -math.inf or (
            self.lower_bound >= 0.0 and self.relative_gap > LITTLE
        )

    def _repr_html_(self) -> str:
        row = (self.objective, self.lower_bound, self.gap, self.relative_gap, self.source)
        header = ("objective", "lower bound", "gap", "relative gap", "source")
        return table(self.in_words, header, [row])


@documented_fields
@dataclass(frozen=True)
class Iteration:
    """One accepted step of a solver.

    Examples
    --------
    >>> import clustruct as cs
    >>> cs.Iteration("pg", 0, 1.5, 0.0, 0.01).objective
    1.5
    """

    solver: Annotated[str, "Name of the solver."]
    number: Annotated[int, "0 for the start."]
    objective: Annotated[float, 'Objective after it; for "cg" that of the convex relaxation.']
    step: Annotated[float, "Step size."]
    seconds: Annotated[float, "Seconds since the solver began."]


@documented_fields
@dataclass(frozen=True)
class Status:
    """How a fit ended.

    Examples
    --------
    >>> import clustruct as cs
    >>> cs.Status("pg", True, 7, (("pg", 0.5),), "pg: converged after 7 steps").converged
    True
    """

    solver: Annotated[str, "Solver of the solution that was kept."]
    converged: Annotated[bool, "Whether it stopped because no further progress was possible."]
    n_iter: Annotated[int, "Number of its iterations."]
    objectives: Annotated[
        tuple[tuple[str, float], ...], "Every solver tried, in order, with its objective."
    ]
    message: Annotated[str, "The same in words."]
    interrupted: Annotated[bool, "Whether Ctrl-C ended it, with the best so far."] = False

    def _repr_html_(self) -> str:
        return table(self.message, ("solver", "objective"), self.objectives)


@documented_fields
@dataclass(frozen=True, eq=False)
class Clustering1D:
    """Groups of numbers, as found by `kmeans_1d`.

    See Also
    --------
    kmeans_1d : The function that returns it.

    Examples
    --------
    >>> import clustruct as cs
    >>> groups = cs.kmeans_1d([1.0, 9.0, 2.0, 8.0], 2)
    >>> groups.centers[groups.labels].tolist()
    [1.5, 8.5, 1.5, 8.5]
    """

    labels: Annotated[Labels, "Group of each number; groups are in the order of their centres."]
    centers: Annotated[Floats, "Weighted mean of each group, ascending."]
    sizes: Annotated[Labels, "How many numbers each group holds; none is empty."]
    inertia: Annotated[float, "Weighted sum of squared distances to the centres."]

    def _repr_html_(self) -> str:
        return _clustering_table(self, "groups")


@documented_fields
@dataclass(frozen=True, eq=False)
class Segmentation1D:
    """Segments of a sequence of numbers, as found by `segment_1d`.

    See Also
    --------
    segment_1d : The function that returns it.

    Examples
    --------
    >>> import clustruct as cs
    >>> steps = cs.segment_1d([1.0, 2.0, 9.0, 8.0], 2)
    >>> steps.centers[steps.labels].tolist()
    [1.5, 1.5, 8.5, 8.5]
    """

    labels: Annotated[Labels, "Segment of each number; segments are numbered along the sequence."]
    centers: Annotated[Floats, "Weighted mean of each segment."]
    sizes: Annotated[Labels, "How many numbers each segment holds; none is empty."]
    inertia: Annotated[float, "Weighted sum of squared distances to the centres."]

    def _repr_html_(self) -> str:
        return _clustering_table(self, "segments")


@documented_fields
@dataclass(frozen=True, eq=False)
class Projection:
    """Nearest point of a set of clustered vectors or matrices, as found by `project_clustered`.

    See Also
    --------
    project_clustered : The function that returns it.

    Examples
    --------
    >>> import clustruct as cs
    >>> nearest = cs.project_clustered([1.0, 0.1, 1.2], 1, n_nonzero=2)
    >>> nearest.point.tolist(), nearest.labels.tolist(), nearest.exact
    ([1.1, 0.0, 1.1], [0, -1, 0], True)
    """

    point: Annotated[NDArray[Any], "The projection, with the shape of the input."]
    labels: Annotated[Labels, "Group of each entry or row, -1 for the zero group."]
    centers: Annotated[
        NDArray[Any], "Value of each group: ``point[i]`` is ``centers[labels[i]]``, or zero."
    ]
    sq_distance: Annotated[float, "Weighted squared distance between the point and the input."]
    exact: Annotated[bool, "Whether the point is proven to be nearest."]

    def _repr_html_(self) -> str:
        proof = "nearest point" if self.exact else "near point"
        title = f"{proof}, squared distance {self.sq_distance:.4g}"
        sizes = np.bincount(self.labels[self.labels >= 0], minlength=len(self.centers))
        rows = _group_rows(self.centers, sizes)
        if (self.labels < 0).any():
            rows.append(("zero", 0.0, int((self.labels < 0).sum())))
        return table(title, ("group", "value", "size"), rows)


def _clustering_table(found: Clustering1D | Segmentation1D, groups: str) -> str:
    """Centre and size of each group, under what they are groups of."""
    title = f"{found.labels.size} numbers in {found.centers.size} {groups}, inertia"
    rows = _group_rows(found.centers, found.sizes)
    return table(f"{title} {found.inertia:.4g}", ("group", "center", "size"), rows)


def _group_rows(values: NDArray[Any], sizes: Labels) -> list[tuple[object, ...]]:
    """Number, value and size of each group."""
    numbered = enumerate(zip(values, sizes, strict=True))
    return [(q, shown_weight(value), int(size)) for q, (value, size) in numbered]
