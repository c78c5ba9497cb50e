"""Fits on a grid of (n_clusters, alpha, n_nonzero): the engine of single fits, paths and searches.

Alphas are taken from large to small. The weights without constraint, where all solvers begin, are
found once for each alpha, starting from those of the alpha before, and serve every number of groups
and of nonzero weights.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from numbers import Integral, Real
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clustruct._typing import Floats, Labels
from clustruct.design import Design, FactorDesign
from clustruct.estimators.columns.factors import FactorColumns
from clustruct.grouping.constraints import (
    BlockClustered,
    Clustered,
    FactorClustered,
    FeatureConstraint,
    Free,
    SparseClustered,
)
from clustruct.grouping.factors import Cyclic, Monotone, Nominal, Ordinal
from clustruct.grouping.rows import Cluster
from clustruct.kernels.kmeans.kmeans1d import cluster_values
from clustruct.objectives.features.factors import FactorObjective
from clustruct.objectives.features.objective import FeatureObjective
from clustruct.objectives.features.streamed import feature_objective
from clustruct.objectives.linear import Point, Response
from clustruct.objectives.quadratic import (
    QuadraticObjective,
    gram_pays,
    quadratic_objective,
    sums_tell,
)
from clustruct.results.scores import Price
from clustruct.solvers.driver import Budget
from clustruct.solvers.factors import FactorModel, largest_price, with_strengths
from clustruct.solvers.features import FeatureOutcome, FeatureProblem, free_minimum, solve

Objective = QuadraticObjective | FeatureObjective

Count = int | Mapping[Any, int] | Price | None
Place = tuple[int, int, int]
# Where weights may be shared: inside of blocks, or of the factors of a frame.
Blocks = ArrayLike | FactorColumns | None
T = TypeVar("T")

FACTOR_KINDS = {
    "nominal": Nominal(),
    "ordinal": Ordinal(),
    "increasing": Monotone(),
    "decreasing": Monotone(decreasing=True),
    "cyclic": Cyclic(),
}
# The block of features that share no weights.
ALONE = -1
# The grid "auto": half a decade apart, from ten times the mean curvature of the loss down.
N_ALPHAS = 10
# The grid "auto" of prices, and of multiples of the ridge that empirical Bayes gives factors.
N_PRICES, SMALLEST_PRICE = 24, 1e-3
STRENGTHS = (3.0, 1.0, 0.3)
LARGEST, SMALLEST = 1.0, -3.5


@dataclass(frozen=True, eq=False)
class Grid:
    """What a fit is made at: every combination of the three.

    A `constraint` of the user's own replaces those that the numbers make; these are then None.
    strengths: whether alphas are multiples of the ridge that empirical Bayes gives each factor.
    """

    n_clusters: tuple[Count, ...]
    alphas: Floats
    n_nonzero: tuple[int | None, ...]
    constraint: Any = None
    strengths: bool = False

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of entries of each."""
        return len(self.n_clusters), self.alphas.size, len(self.n_nonzero)

    def with_groups_for(self, n_factors: int) -> "Grid":
        """The grid without totals that do not give every factor a group."""
        kept = tuple(c for c in self.n_clusters if not isinstance(c, int) or c >= n_factors)
        if not kept:
            raise ValueError(
                f"n_clusters={self.n_clusters} are all less than the number of factors, "
                f"{n_factors}, and each needs a group. Give larger numbers."
            )
        return replace(self, n_clusters=kept)

    def constraints(
        self, n_features: int, blocks: Blocks, cluster: Cluster = cluster_values
    ) -> dict[tuple[int, int], FeatureConstraint]:
        """The constraint for each number of groups and of nonzero weights."""
        if self.constraint is not None:
            return {(0, 0): self.constraint}
        return {
            (q, k): choose_constraint(
                n_features, self.n_clusters[q], self.n_nonzero[k], blocks, cluster
            )
            for q, k in product(range(len(self.n_clusters)), range(len(self.n_nonzero)))
        }


@dataclass(frozen=True, eq=False)
class Method:
    """How each fit is made: all that is not on the grid.

    Every fit draws its random starts anew from the seed, so that none depends on the others.

    proof: options of a proof after the fit; None for no proof.
    """

    solver: str
    budget: Budget
    start: Floats | None
    n_starts: int | None
    seed: int
    options: Mapping[str, Any]
    proof: Mapping[str, Any] | None = None

    def quietly(self, solver: str) -> "Method":
        """The same by a given solver, without reports of single fits and without proofs."""
        budget = replace(self.budget, monitor=lambda iteration: None, quiet=True)
        options = self.options if solver == self.solver else {}
        return replace(self, solver=solver, budget=budget, options=options, proof=None)

    def within(self, tol: float) -> "Method":
        """The same with a tolerance of at least `tol`."""
        return replace(self, budget=replace(self.budget, tol=max(self.budget.tol, tol)))

    def fit(
        self,
        objective: Objective,
        constraint: FeatureConstraint,
        known_minimum: Point | None = None,
        model: FactorModel | None = None,
    ) -> FeatureOutcome:
        """One fit."""
        problem = FeatureProblem(
            objective=objective,
            constraint=constraint,
            budget=self.budget,
            start=self.start,
            n_starts=self.n_starts,
            rng=np.random.default_rng(self.seed),
            options=self.options,
            known_minimum=known_minimum,
            model=model,
            proof=self.proof,
        )
        return solve(problem, self.solver)


def fit_grid(
    objective: Objective,
    grid: Grid,
    blocks: Blocks,
    method: Method,
    finish: Callable[[FeatureOutcome], T],
) -> Iterator[tuple[Place, T]]:
    """Fit at every place of a grid, and yield the place with what `finish` makes of the fit.

    A place is of indices into the numbers of groups, alphas and numbers of nonzero weights. The
    objective may have any alpha; passes over ``X`` in `finish` may be shared by several fits.
    """
    constraints = grid.constraints(objective.shape[0], blocks, objective.cluster)
    if all(isinstance(count, Price) for count in grid.n_clusters):
        yield from _fit_prices(objective, grid, constraints, method, finish)
        return
    free = [place for place, each in constraints.items() if isinstance(each, Free)]
    alone = [place for place in constraints if place not in free[1:]]
    there, minimum = objective, None
    for a in np.argsort(-grid.alphas, kind="stable"):
        there = there.with_alpha(float(grid.alphas[a]))
        minimum = free_minimum(there, near=minimum)

        def fit(place: tuple[int, int], there: Any = there, known: Point = minimum) -> T:
            return finish(method.fit(there, constraints[place], known))

        works = [partial(fit, place) for place in alone]
        for (q, k), finished in zip(alone, there.side_by_side(works), strict=True):
            # Without constraint there is one solution.
            for also_q, also_k in free if (q, k) in free else [(q, k)]:
                yield (also_q, int(a), also_k), finished


def _fit_prices(
    objective: Objective,
    grid: Grid,
    constraints: Mapping[tuple[int, int], Any],
    method: Method,
    finish: Callable[[FeatureOutcome], T],
) -> Iterator[tuple[Place, T]]:
    """Fit at all prices, from the largest down, each fit beginning where the one before ended."""
    there = require_one_output(objective)
    first = next(iter(constraints.values()))
    start = FactorModel(there, first)
    there = with_strengths(there, first, start) if grid.strengths else there
    prices = np.array([count.value for count in grid.n_clusters if isinstance(count, Price)])
    for a in np.argsort(-grid.alphas, kind="stable"):
        here = there.with_alpha(float(grid.alphas[a]))
        model = FactorModel(here, first, start)
        for q in np.argsort(-prices, kind="stable"):
            outcome = method.fit(here, constraints[int(q), 0], model=model)
            yield (int(q), int(a), 0), finish(outcome)


def require_one_output(objective: Objective) -> FactorObjective:
    """The objective, if groups of its factors may have a price."""
    if isinstance(objective, FactorObjective) and objective.shape[1] == 1:
        return objective
    raise ValueError(
        "A price for each group needs a data frame with columns of categories and one output "
        "(regression, or two classes). Give n_clusters instead."
    )


def itself(outcome: FeatureOutcome) -> FeatureOutcome:
    """An outcome as it is."""
    return outcome


def choose_objective(design: Design, response: Response, alpha: float) -> Objective:
    """By codes for factors; by the Gram matrix where it is small and pays."""
    if design.has_levels:
        return FactorObjective(cast(FactorDesign, design), response, float(alpha))
    n, d = design.shape
    quadratic = response.loss.quadratic and gram_pays(n, d)
    if quadratic and sums_tell(design, response.fit_intercept):
        return quadratic_objective(design, response, np.full(d, float(alpha)))
    return feature_objective(design, response, float(alpha))


def check_grid(
    n_clusters: Count | Sequence[Count],
    alphas: Floats,
    n_nonzero: int | Sequence[int | None] | None,
    constraint: Any = None,
) -> Grid:
    """A grid of what users pass, each a single value or a sequence; of alphas for a constraint."""
    if constraint is not None:
        return Grid((None,), alphas, (None,), constraint)
    remedy = "Give integers of at least 1, or None for no limit."
    counts = check_values(
        "n_clusters", n_clusters, lambda c: isinstance(c, Mapping) or _is_count(c), remedy
    )
    limits = check_values("n_nonzero", n_nonzero, _is_count, remedy)
    return Grid(
        tuple(int(c) if isinstance(c, Integral) else c for c in counts),
        alphas,
        tuple(None if k is None else int(k) for k in limits),
    )


def check_alphas(
    alphas: str | float | Sequence[float] | NDArray[Any], objective: Objective
) -> Floats:
    """The alphas to try; "auto" is a grid on the scale of the loss's curvature."""
    if isinstance(alphas, str):
        if alphas != "auto":
            raise ValueError(f"alphas={alphas!r} is no grid. Give 'auto' or positive numbers.")
        scale = float((objective.curvatures() - objective.penalties).mean())
        return np.logspace(LARGEST, SMALLEST, N_ALPHAS) * (scale if scale > 0.0 else 1.0)

    def fits(value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, Real):
            return False
        return 0.0 <= float(value) < np.inf

    values = check_values("alphas", alphas, fits, "Give finite numbers of at least 0.")
    return np.array(values, dtype=np.float64)


def check_values(
    name: str, given: Any, fits: Callable[[Any], bool], remedy: str
) -> tuple[Any, ...]:
    """A single value, or the entries of a sequence, which all have to fit."""
    entries = tuple(np.asarray(given, dtype=object).reshape(-1).tolist())
    if not entries:
        raise ValueError(f"{name} is empty. Give at least one value.")
    for entry in entries:
        if not fits(entry):
            raise ValueError(f"{name} holds {entry!r}. {remedy}")
    return entries


def _is_count(entry: Any) -> bool:
    """Whether it is a positive integer, or None."""
    whole = isinstance(entry, Integral) and not isinstance(entry, bool)
    return entry is None or (whole and int(entry) >= 1)


def check_prices(
    prices: str | float | Sequence[float], objective: FactorObjective, factors: FactorColumns
) -> tuple[Price, ...]:
    """The prices to try; "auto" begins where no factor comes in, and goes down three decades."""
    if not isinstance(prices, str):
        remedy = "Give finite numbers above 0."
        fits = check_values(
            "prices", prices, lambda p: isinstance(p, Real) and 0.0 < float(p) < np.inf, remedy
        )
        return tuple(Price(float(price)) for price in fits)
    if prices != "auto":
        raise ValueError(f"prices={prices!r} is no grid. Give 'auto' or positive numbers.")
    constraint = _factor_constraint(factors, Price(1.0))
    first = largest_price(FactorModel(objective, cast(FactorClustered, constraint)))
    first = first if first > 0.0 else 1.0
    return tuple(Price(float(p)) for p in np.geomspace(first, SMALLEST_PRICE * first, N_PRICES))


def price_grid(
    prices: str | float | Sequence[float],
    alphas: str | float | Sequence[float],
    objective: FactorObjective,
    factors: FactorColumns,
) -> Grid:
    """A grid of prices; alphas are multiples of the ridges by empirical Bayes unless given."""
    strengths = isinstance(alphas, str) and alphas == "auto"
    values = np.array(STRENGTHS) if strengths else check_alphas(alphas, objective)
    return Grid(check_prices(prices, objective, factors), values, (None,), strengths=strengths)


# ---- Constraints


def choose_constraint(
    n_features: int,
    n_clusters: Count,
    n_nonzero: int | None,
    blocks: Blocks,
    cluster: Cluster = cluster_values,
) -> FeatureConstraint:
    """The set that the weights are kept in; `cluster` is exact k-means, where it is fastest."""
    if isinstance(blocks, FactorColumns) and n_nonzero is None:
        return _factor_constraint(blocks, n_clusters)
    if isinstance(n_clusters, Price):
        raise ValueError(
            f"price={n_clusters.value} needs columns of categories, which X does not have, and no "
            "n_nonzero. Leave price None, and give n_clusters."
        )
    if blocks is not None:
        factors = isinstance(blocks, FactorColumns)
        if n_nonzero is not None:
            raise ValueError(
                f"{'Factors' if factors else 'blocks'} and n_nonzero={n_nonzero} cannot be "
                "combined: no exact projection is known for both. Leave one of them None."
            )
        return _block_constraint(n_features, n_clusters, cast(ArrayLike, blocks))
    if isinstance(n_clusters, Mapping):
        raise ValueError(
            "n_clusters is a mapping, which needs blocks: one id for each feature. "
            "Give blocks, or an integer for n_clusters."
        )
    n_kept = n_features if n_nonzero is None else min(n_nonzero, n_features)
    if n_clusters is None or n_clusters >= n_kept:  # every weight may have a value of its own
        return Free() if n_kept == n_features else SparseClustered(None, n_kept)
    # Zero is no group: even where all weights may be nonzero, some may be zero as well.
    if n_nonzero is None:
        return Clustered(n_clusters, cluster)
    return SparseClustered(n_clusters, n_kept)


def _factor_constraint(columns: FactorColumns, n_clusters: Count) -> FactorClustered | Free:
    """Groups inside factors: as many as asked for in all or for each, or as many as pay."""
    kinds, members = [FACTOR_KINDS[factor.kind] for factor in columns.factors], columns.members
    limited = any(factor.min_weight > 0.0 for factor in columns.factors)
    price, counts = 0.0, None
    if isinstance(n_clusters, Price):
        price = n_clusters.value
    elif n_clusters is not None:
        counts = _counts(columns.factor_names, n_clusters, "factor")
    elif limited or not all(kind.moves for kind in kinds):
        counts = np.array([rows.size for rows in members], dtype=np.intp)
    else:
        return Free()
    return FactorClustered(
        list(zip(kinds, members, strict=True)),
        columns.n_weights,
        counts,
        price=price,
        exposure=columns.exposure if limited else None,
        min_weight=float(limited),
    )


def _block_constraint(
    n_features: int, n_clusters: int | Mapping[Any, int] | None, blocks: ArrayLike
) -> FeatureConstraint:
    """Groups inside blocks, as many as asked for in all or for each."""
    names, codes = block_codes(n_features, blocks)
    if n_clusters is None:
        return Free()
    return BlockClustered(codes, _counts(names, n_clusters))


def block_codes(n_features: int, blocks: ArrayLike) -> tuple[list[Any], Labels]:
    """Names of the blocks in their order, and the number of each feature's, -1 for none."""
    ids = np.asarray(blocks)
    if ids.shape != (n_features,):
        raise ValueError(
            f"blocks has shape {ids.shape}, but X has {n_features} features. "
            "Give one id for each feature, -1 for those to be left alone."
        )
    if any(name is None or name != name for name in ids.tolist()):  # NaN differs from itself
        raise ValueError(
            "blocks holds missing ids (None or NaN). Give every feature an id, -1 for those to be "
            "left alone."
        )
    try:
        names, codes = np.unique(ids, return_inverse=True)
    except TypeError as error:
        raise ValueError(
            "blocks holds ids of several types, which cannot be sorted. Give all ids as integers "
            "or all as strings."
        ) from error
    alone = np.array([name == ALONE or str(name) == str(ALONE) for name in names.tolist()])
    # Blocks in the order of their names, numbered without those left alone.
    numbers = np.where(alone, ALONE, np.cumsum(~alone) - 1)
    return names[~alone].tolist(), numbers[codes.reshape(-1)].astype(np.intp)


def _counts(
    names: list[Any], n_clusters: int | Mapping[Any, int], thing: str = "block"
) -> int | Labels:
    """Groups in all, or for each block or factor in the order of their names."""
    if not isinstance(n_clusters, Mapping):
        if n_clusters < len(names):
            raise ValueError(
                f"n_clusters={n_clusters} is less than the number of {thing}s, {len(names)}, and "
                f"each {thing} needs a group. Give a larger n_clusters, or fewer {thing}s."
            )
        return int(n_clusters)
    missing = [name for name in names if name not in n_clusters]
    unknown = [name for name in n_clusters if name not in names]
    if missing or unknown:
        raise ValueError(
            f"n_clusters must have one entry for each {thing} {names!r:.80}; missing: "
            f"{missing!r:.80}, not a {thing} {unknown!r:.80}. Mend the mapping."
        )
    counts: list[Any] = [n_clusters[name] for name in names]
    wrong = [c for c in counts if not isinstance(c, Integral) or c < 1]
    if wrong:
        raise ValueError(
            f"n_clusters holds {wrong[0]!r}; give each {thing} an integer of at least 1."
        )
    return np.array(counts, dtype=np.intp)
