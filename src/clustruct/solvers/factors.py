"""Block coordinate descent for factors: the levels of one are grouped anew, the others are held.

The problem is that of clustered features with a column for each level, in which levels share
weights inside their factor only:

    minimise (1/S) sum_i s_i loss(y_i, z_i) + 1/2 sum_j alpha_j ||theta_j||^2 + price (groups - F)

with scores ``z_i = b + sum_j theta_j[c_ij] + x_i' beta`` over ``F`` factors. Sweeps over the
factors (`kernels.factors.sweeps`) choose groups on a quadratic model of the loss, whose weights
and residuals are those of Newton's method (`clustruct.solvers.residuals`); for given groups all
values, the weights of numeric columns and the intercept are then fitted together. Both lower the
same model.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from clustruct._typing import Floats, Labels
from clustruct.grouping.constraints import FactorClustered, cheapest_shares
from clustruct.kernels.factors.segments import KINDS, Segmenter
from clustruct.kernels.factors.sweeps import CodedFactor, sweep
from clustruct.losses import best_intercept
from clustruct.objectives.features.factors import FactorObjective
from clustruct.objectives.linear import Point
from clustruct.solvers.driver import Budget, Run, Solution, State, drive, gain_of
from clustruct.solvers.residuals import residuals_of

# Values, labels and number of groups of each factor; numeric weights, intercept, scores, mean loss.
Snapshot = tuple[list[tuple[Floats, Labels, int]], Floats, float, Floats, float | None]


@dataclass(frozen=True)
class SweepSettings:
    """Limits of the descent."""

    # Sweeps in a row before values are fitted together, and rounds of both.
    n_sweeps: int = 4
    n_rounds: int = 30
    # Rows have at least this share of the curvature of the loss. A step that raises the objective
    # is repeated with a larger share; at one, a bounded loss lies below its quadratic model.
    curvatures: tuple[float, ...] = (1e-6, 1e-3, 1e-2, 0.1, 0.3, 1.0, 4.0, 16.0, 64.0)
    # Shares that add less than this to all weights make no difference.
    stiffer: float = 1.1
    # Weights serve for scores that differ by no more than this.
    next_to: float = 1e-6
    # A step that fails is not tried with more curvature if it promised less than this part of the
    # tolerance.
    worthless: float = 0.1
    # Added to the diagonal of the joint fit, as a share of its mean: effects of two factors may be
    # confounded.
    grain: float = 1e-11
    # A loss that bends no more than this has no minimum.
    no_curvature: float = 1e-25
    # Iterations of empirical Bayes, and the relative change of a variance that ends them.
    n_strengths: int = 50
    strengths_tol: float = 1e-2
    # Where targets do not vary, nor does anything else: this stands for nothing.
    least_variance: float = 1e-200
    # No ridge is larger than this many times the curvature of all rows.
    strongest: float = 1e3
    # The ridge on numeric columns beside these, as a share of their variances: next to none.
    numeric_ridge: float = 1e-6
    # Prices that are tried for a number of groups in all, and how often it is shared out anew.
    n_prices: int = 24
    n_shares: int = 4


SETTINGS = SweepSettings()


class FactorModel:
    """Factors with their groups, numeric weights and intercept, and a quadratic model around them.

    It begins with all factors out.

    alphas (F,): ridge on the levels of each factor.
    like: a model of the same samples, whose first weights serve this one as well.
    """

    def __init__(
        self,
        objective: FactorObjective,
        constraint: FactorClustered,
        like: "FactorModel | None" = None,
    ) -> None:
        design, response = objective.data, objective.response
        self.design, self.response = design, response
        self.shares = np.ascontiguousarray(response.shares)
        self.factors = [
            CodedFactor(codes, n, rows.size, KINDS[kind], exposure, constraint.min_weight, first)
            for codes, n, kind, (rows, exposure), first in zip(
                design.codes,
                design.n_levels,
                constraint.kinds,
                constraint.levels(),
                design.offsets.tolist()[:-1],
                strict=True,
            )
        ]
        self.n_alone = sum(design.n_levels) - sum(f.n_shared for f in self.factors)
        self._monotone = not constraint.refits
        self.penalties = objective.penalties
        self.alphas = objective.penalties[design.offsets[:-1]]
        self.residuals = residuals_of(design, self.factors)
        self.numeric = np.zeros(design.numeric.shape[1])
        self.intercept = 0.0
        self.scores = np.zeros(design.shape[0])
        self._loss: float | None = None
        self.weights: Floats = self.shares
        # Whether the intercept is the best for the weights.
        self.centred = response.fit_intercept
        if response.fit_intercept:
            rows = (response.target, self.scores[:, None], self.shares)
            self.intercept = float(best_intercept(response.loss, *rows, np.zeros(1))[0])
            self.scores += self.intercept
        # Where weights were computed, and how stiff they are.
        self._weighed = self.scores, -1
        if like is None:
            self._weigh(0)
            self._first = self.weights
        else:
            self.weights = self._first = like._first
            self._weighed = self.scores, 0
            self.residuals.share(like.residuals)
        self._take_residuals()

    # ---- The quadratic model

    def expand(self, stiffness: int = 0) -> None:
        """Expand the loss at the scores: Newton's weights and residuals of all rows."""
        self._weigh(stiffness)
        self._take_residuals()

    def _take_residuals(self) -> None:
        """Residuals of all rows, for weights that are known."""
        loss, target, scores = self.response.loss, self.response.target, self.scores[:, None]
        self.rows = -self.shares * loss.gradient(target, scores)[:, 0]
        self.total = float(self.weights.sum()) if self.response.fit_intercept else np.inf
        self.residuals.expand(self.rows, self.weights)

    def _weigh(self, stiffness: int) -> None:
        """Newton's weights of all rows, unless scores are next to those of the weights known."""
        loss, scores = self.response.loss, self.scores[:, None]
        there, last = self._weighed
        if loss.quadratic or (
            last == stiffness and float(np.abs(self.scores - there).max()) <= SETTINGS.next_to
        ):
            return
        self._weighed = self.scores, stiffness
        bend = loss.hessian_product(self.response.target, scores, np.ones_like(scores))[:, 0]
        least = SETTINGS.curvatures[stiffness] * loss.curvature
        self.weights = self.shares * np.maximum(bend, least)

    def stiffer(self, stiffness: int) -> int:
        """The next stiffness that makes a difference to the weights, or the last one."""
        enough = SETTINGS.stiffer * float(self.weights.sum())
        for after in range(stiffness + 1, len(SETTINGS.curvatures)):
            self._weigh(after)
            if float(self.weights.sum()) >= enough:
                break
        return after

    def descend(self, price: float, limits: Labels) -> None:
        """Sweep and fit values on the quadratic model until no level changes its group."""
        about = self.alphas, limits, price, self.total
        for _ in range(SETTINGS.n_rounds):
            for _ in range(SETTINGS.n_sweeps):
                moved, shift = sweep(self.factors, self.residuals, *about)
                self.intercept += shift
                if not moved:
                    break
            self._fit_values()
            if not moved:
                break
        self._loss, self._swept, self.centred = None, self.intercept, False
        self.scores = self.design.scores(self.W())[:, 0] + self.intercept
        closed = getattr(self.response.loss, "closed_intercept", None)  # losses may lack it
        if self.response.fit_intercept and closed is not None:
            shift = closed(self.response.target, self.scores[:, None], self.shares)
            self.centred = shift is not None
            if self.centred:
                self.intercept += float(shift[0])
                self.scores += float(shift[0])

    def _fit_values(self) -> None:
        """Fit the values of all groups, the numeric weights and the intercept together."""
        # With an intercept, a single group has the value zero.
        least = 2 if self.response.fit_intercept else 1
        active = [j for j, factor in enumerate(self.factors) if factor.n_groups >= least]
        sizes = [self.factors[j].n_groups for j in active]
        ends = np.cumsum([0, *sizes, self.numeric.size])
        if not ends[-1]:
            return
        parts = [slice(*pair) for pair in pairwise(ends.tolist())]
        normal, slope, mass, left = self.residuals.normal_equations(active, parts)
        held = np.concatenate([*(self._group_values(j) for j in active), self.numeric])
        ridge = np.concatenate(
            [
                *(self.alphas[j] * np.bincount(self.factors[j].array("labels")) for j in active),
                self.penalties[self.design.offsets[-1] :],
            ]
        )
        if self.response.fit_intercept:
            normal -= np.outer(mass, mass) / self.total
            slope = slope - mass * (left / self.total)
        diagonal = np.diag_indices_from(normal)
        normal[diagonal] += ridge
        grain = SETTINGS.grain * float(normal[diagonal].mean())
        normal[diagonal] += grain if grain > 0.0 else 1.0
        move = cho_solve(cho_factor(normal, lower=True), slope - ridge * held)
        if self._monotone and self._breaks_order(active, parts, held + move):
            return
        shift = 0.0
        if self.response.fit_intercept:
            shift = (left - float(mass @ move)) / self.total
        self._apply(active, parts, move, shift)

    def _apply(
        self, active: Sequence[int], parts: Sequence[slice], move: Floats, shift: float
    ) -> None:
        """Move the values and the intercept, and the residuals with them."""
        self.intercept += shift
        for j, mine in zip(active, parts, strict=False):
            factor = self.factors[j]
            step = move[mine][factor.array("labels")]
            factor.array("values")[:] += step
            self.residuals.shift(factor, step, 0.0)
        step = move[parts[-1]]
        self.numeric = self.numeric + step
        self.residuals.move_numeric(step, shift)

    def _group_values(self, j: int) -> Floats:
        """The values of the groups of a factor."""
        factor = self.factors[j]
        values = np.empty(factor.n_groups)
        values[factor.array("labels")] = factor.array("values")
        return values

    def _breaks_order(self, active: Sequence[int], parts: Sequence[slice], values: Floats) -> bool:
        """Whether values of a monotone factor would be out of order."""
        signs = {KINDS["rising"]: 1.0, KINDS["falling"]: -1.0}
        for j, mine in zip(active, parts, strict=False):
            factor = self.factors[j]
            alone = self.design.n_levels[j] - factor.n_shared
            ordered = values[mine][: factor.n_groups - alone]
            if (signs.get(factor.kind, 0.0) * np.diff(ordered) < 0.0).any():
                return True
        return False

    # ---- The problem itself

    def W(self) -> Floats:
        """The weights of all levels and numeric columns, ``d x 1``."""
        return np.concatenate([*(f.array("values") for f in self.factors), self.numeric])[:, None]

    def groups(self) -> Labels:
        """Number of groups of each factor."""
        return np.array([factor.n_groups for factor in self.factors], dtype=np.intp)

    def shared_groups(self) -> Labels:
        """The same without levels that have a group each."""
        alone = [n - f.n_shared for n, f in zip(self.design.n_levels, self.factors, strict=True)]
        return self.groups() - np.array(alone, dtype=np.intp)

    def value(self, price: float) -> float:
        """The objective, with the price of groups after the first of each factor."""
        if self._loss is None:
            losses = self.response.loss.value(self.response.target, self.scores[:, None])
            self._loss = float(self.shares @ losses)
        return self._loss + self.penalty(price)

    def penalty(self, price: float) -> float:
        """The ridge and the price of the groups."""
        ridge = 0.5 * float(self.penalties @ np.square(self.W()[:, 0]))
        return ridge + price * (int(self.groups().sum()) - len(self.factors) - self.n_alone)

    def gained(self, W: Floats, intercept: float) -> float:
        """How far the loss has fallen by the quadratic model, which was expanded there."""
        return self.residuals.gained((self.W() - W)[:, 0], self._swept - intercept)

    def labels(self) -> Labels:
        """The group of every level and numeric column, numbered throughout."""
        ends = np.cumsum([0, *self.groups()])
        mine = [f.array("labels") + first for f, first in zip(self.factors, ends, strict=False)]
        return np.concatenate([*mine, ends[-1] + np.arange(self.numeric.size)])

    def snapshot(self) -> Snapshot:
        """What `restore` takes."""
        groups = [
            (f.array("values").copy(), f.array("labels").copy(), f.n_groups) for f in self.factors
        ]
        return groups, self.numeric, self.intercept, self.scores, self._loss

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to an earlier state; the quadratic model has to be expanded anew."""
        groups, self.numeric, self.intercept, self.scores, self._loss = snapshot
        for factor, (values, labels, n_groups) in zip(self.factors, groups, strict=True):
            factor.array("values")[:], factor.array("labels")[:] = values, labels
            factor.n_groups = n_groups

    def costs(self, most: int) -> list[Floats]:
        """Cost of each factor with 1, 2, ..., `most` groups while the others are held."""
        found = []
        for factor, alpha in zip(self.factors, self.alphas, strict=True):
            aim = self.residuals.aim(factor, alpha, self.total)
            goals, heavy = (each[: factor.n_shared] for each in aim)
            about = (factor.array("exposures"), min(most, goals.size), factor.min_weight)
            found.append(Segmenter(goals.size).costs(factor.kind, goals, heavy, *about))
        return found


class FactorDescent:
    """Block coordinate descent as a solver: an iteration is a Newton step on all factors.

    price: of each group after the first of a factor.
    limits (F,): largest number of groups of each factor.
    tol: relative decrease that is not worth a step.
    """

    name = "bcd"

    def __init__(
        self,
        objective: FactorObjective,
        model: FactorModel,
        price: float,
        limits: Labels,
        tol: float,
    ) -> None:
        self._objective = objective
        self._model = model
        self._price = price
        self._limits = limits
        self._tol = tol
        self._stiffness = 0

    def start(self) -> State:
        """Where the model is, or where a step brings it if it has too many groups of a factor."""
        if (self._model.shared_groups() <= self._limits).all():
            return State(objective=self._model.value(self._price))
        return self.advance(State(objective=np.inf))

    def advance(self, state: State) -> State:
        """One step, with more curvature while the objective would rise."""
        model = self._model
        if self._objective.quadratic:  # the model is the problem, and its descent ends
            model.descend(self._price, self._limits)
            return State(objective=min(model.value(self._price), state.objective), done=True)
        before, place = model.snapshot(), (model.W(), model.intercept)
        penalty = model.penalty(self._price)
        while True:
            model.descend(self._price, self._limits)
            value = model.value(self._price)
            if value <= state.objective:
                break
            promised = model.gained(*place) + penalty - model.penalty(self._price)
            model.restore(before)
            # Models with more curvature promise even less.
            small = promised <= SETTINGS.worthless * self._tol * abs(state.objective)
            if small or self._stiffness + 1 == len(SETTINGS.curvatures):
                model.expand(self._stiffness)
                return State(objective=state.objective, gain=0.0, done=True)
            self._stiffness = model.stiffer(self._stiffness)
            model.expand(self._stiffness)
        gain = gain_of(state.objective, value) if np.isfinite(state.objective) else np.inf
        # If counts are all zero, the loss would fall for ever.
        gone = self._objective.response.loss.curvature <= SETTINGS.no_curvature
        self._stiffness = max(self._stiffness - 1, 0)
        model.expand(self._stiffness)
        return State(objective=value, gain=gain, done=gone)

    def solution(self, state: State) -> Solution:
        """The weights and groups of the model."""
        model = self._model
        W, intercept = model.W(), np.array([model.intercept])
        if model.centred and not self._objective.quadratic:  # all is known there
            value = model.value(self._price) - model.penalty(self._price)
            value += self._objective.ridge(W)
            return Solution(Point(W, value, intercept, -model.rows[:, None]), model.labels())
        scores = (model.scores - model.intercept)[:, None]
        return Solution(self._objective.at_scores(W, scores, intercept), model.labels())


# ---- Fits at a price, with a number of groups for each factor, or in all


def fit_factors(
    objective: FactorObjective,
    constraint: FactorClustered,
    budget: Budget,
    model: FactorModel | None = None,
) -> Run[Any]:
    """Fit a model of factors, from where the model of a larger price has ended.

    Without such a model the fit begins with all factors out, and comes down by halving prices.
    """
    quiet = replace(budget, monitor=lambda iteration: None, quiet=True)
    cold = model is None
    model = FactorModel(objective, constraint) if model is None else model
    most = np.array([factor.n_shared for factor in model.factors], dtype=np.intp)

    def descend(price: float, limits: Labels, budget: Budget) -> Run[Any]:
        return drive(FactorDescent(objective, model, price, limits, budget.tol), budget)

    if constraint.price > 0.0:
        for price in _halvings(model, constraint.price) if cold else ():
            descend(price, most, quiet)
        return descend(constraint.price, most, budget)
    counts = constraint.n_clusters
    if isinstance(counts, int):
        limits = _shares(model, counts, descend, quiet)
    else:
        limits = np.minimum(most, most if counts is None else counts)
        for price in _halvings(model, 0.0):
            descend(price, limits, quiet)
    return descend(0.0, limits, budget)


def largest_price(model: FactorModel) -> float:
    """The price above which no factor comes in, from where all are out."""
    found = 0.0
    for factor, alpha in zip(model.factors, model.alphas, strict=True):
        goals, heavy = model.residuals.aim(factor, alpha, model.total)
        mean = float(heavy @ goals) / float(heavy.sum())
        found = max(found, 0.5 * float(heavy @ np.square(goals - mean)))
    return found


def _is_exact(model: FactorModel) -> bool:
    """Whether one sweep finds the best groups for the mean of the targets, wherever it begins.

    A sweep takes the effect of a factor out and solves what is left exactly: with one factor, no
    numbers and squared loss that is always the same problem.
    """
    return len(model.factors) == 1 and not model.numeric.size and model.response.loss.quadratic


def _halvings(model: FactorModel, last: float) -> Floats:
    """Prices from the largest one down to `last`, each half of the one before.

    There are none where the descents at these prices would not change where the last one ends.
    """
    if _is_exact(model):
        return np.empty(0)
    first = largest_price(model)
    prices: Floats = first * 0.5 ** np.arange(1.0, SETTINGS.n_prices)
    return prices[prices > last]


def _shares(model: FactorModel, total: int, descend: Any, quiet: Budget) -> Labels:
    """Number of groups of each factor, for so many in all.

    The price falls until there are more groups than that; the rest is shared out by what the
    factors would gain while the others are held.
    """
    most = np.array([factor.n_shared for factor in model.factors], dtype=np.intp)
    kept = model.snapshot()
    for price in _halvings(model, 0.0):
        descend(price, most, quiet)
        if model.shared_groups().sum() > total:
            break
        kept = model.snapshot()
    model.restore(kept)
    model.expand()
    least, best = np.inf, most
    for _ in range(SETTINGS.n_shares):
        shares = cheapest_shares(model.costs(1 + total - len(model.factors)), total)
        if _is_exact(model):
            return shares
        value = descend(0.0, shares, quiet).state.objective
        if not value < least:
            break
        least, best = value, shares
    return best


# ---- The ridge of each factor


def with_strengths(
    objective: FactorObjective, constraint: FactorClustered, model: FactorModel | None = None
) -> FactorObjective:
    """The objective with a ridge for each factor, by empirical Bayes.

    Residuals of a `model` that is given change.

    Effects of the levels of factor ``j`` are normal with variance ``tau_j^2``, and the noise has
    the variance ``nu`` for a share of one, so that ``alpha_j = nu / tau_j^2``. Mean-field
    iterations: while the other factors are held, levels have the posterior variance
    ``nu / (N_l + alpha_j)``; ``tau_j^2`` is the mean of squared effects and variances, and ``nu``
    that of squared residuals and of what is not known of the scores, unless the loss is a
    likelihood without scale: then it is one over the number of samples. A factor without effects
    gets a ridge that keeps it out.
    """
    model = FactorModel(objective, constraint) if model is None else model
    n_samples, weights, total = objective.data.shape[0], model.weights, model.total
    # The weighted sum of squared residuals.
    squares = float(np.sum(np.square(model.rows) / np.where(weights > 0.0, weights, 1.0)))
    spread = squares / n_samples
    unit = objective.response.loss.noise(1, 1.0).n_parameters == 0
    noise = 1.0 / n_samples if unit else 0.5 * spread
    effects = [np.zeros(n) for n in objective.data.n_levels]
    noise = max(noise, SETTINGS.least_variance)
    tau = np.full(len(effects), spread * n_samples / float(weights.sum()) / len(effects))
    tau = np.maximum(tau, SETTINGS.least_variance)
    for _ in range(SETTINGS.n_strengths):
        before, unknown = tau.copy(), 0.0
        for j, factor in enumerate(model.factors):
            mass, alpha = factor.array("weights"), noise / tau[j]
            sums = model.residuals.level_sums(factor).copy()
            whole = sums + mass * effects[j]
            mean = float(whole.sum()) / total
            variances = noise / (mass + alpha)
            found = (whole - mass * mean) / (mass + alpha)
            step = found - effects[j]
            squares -= float((mean + step) @ (2.0 * sums - mass * (mean + step)))
            model.residuals.shift(factor, step, mean)
            effects[j] = found
            tau[j] = max(float(np.mean(np.square(found) + variances)), SETTINGS.least_variance)
            unknown += float(mass @ variances)
        if not unit:
            noise = max((squares + unknown) / n_samples, SETTINGS.least_variance)
        if np.abs(np.log(tau / before)).max() < SETTINGS.strengths_tol:
            break
    ridges = np.minimum(noise / tau, SETTINGS.strongest * float(weights.sum()))
    numeric = SETTINGS.numeric_ridge * objective.data.moments(objective.response.shares)[1]
    relative = np.concatenate(
        [np.repeat(ridges, objective.data.n_levels), numeric[objective.data.offsets[-1] :]]
    )
    return FactorObjective(objective.data, objective.response, 1.0, relative)
