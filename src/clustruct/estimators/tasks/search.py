"""The search for the number of groups of tasks and the strengths of the penalty.

On each fold the tasks are eliminated once for each ``alpha_within``; what is left for every number
of groups and every ``alpha_between`` is small. Groups found at one point are a start at the next.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from itertools import product
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _fit_context, is_classifier
from sklearn.utils._param_validation import Interval, StrOptions

from clustruct._docs import documented
from clustruct._interrupts import in_part
from clustruct._progress import counting
from clustruct._typing import Floats, Indices
from clustruct.estimators.common import (
    SEARCH_CONSTRAINTS,
    Constraints,
    fields_are_parameters,
    long_work,
)
from clustruct.estimators.descriptions import ARGUMENTS, TASK_ARGUMENTS
from clustruct.estimators.search import engine
from clustruct.estimators.search.engine import Scored, Use
from clustruct.estimators.search.rules import Rule
from clustruct.estimators.search.scoring import Scoring, name_of
from clustruct.estimators.tasks.base import Prices, TaskCluster, mixture_complaint, price_scale
from clustruct.estimators.tasks.entries import Entries, Prepared, Summed
from clustruct.estimators.tasks.folds import Split, folds_of, score_fits, split
from clustruct.estimators.tasks.inputs import Unlabelled, read_unlabelled
from clustruct.estimators.tasks.layouts import Ids, Weights, read
from clustruct.estimators.tasks.scoring import PooledScore, pooled
from clustruct.losses import loss_of
from clustruct.objectives.tasks.objective import TaskObjective, TaskPoint
from clustruct.objectives.tasks.pieces import TaskSums
from clustruct.results import TaskSelection
from clustruct.results.paired import corrected_errors
from clustruct.solvers.tasks.alternation import point_of
from clustruct.solvers.tasks.counting import SETTINGS as COUNTING
from clustruct.solvers.tasks.counting import Counting, Fitted
from clustruct.solvers.tasks.mixture import Mixed
from clustruct.solvers.tasks.recipes import MIXTURE, TaskProblem, attempt, mixture_outcome

# Strengths to try, in units of the curvature of the loss times the median variance of the columns.
# On 14 planted regressions (30 to 100 tasks, 1 to 4 groups, coordinates equal or not) the best of
# them had 0.45 % more loss than the best of forty: 300 to 0.1 within, and 10 to 0.001 between.
WITHIN = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3)
BETWEEN = (0.1, 0.01)
# The same beside a mixture, which learns its own: enough to see whether a penalty would do better.
# 1.8 % more loss on these problems, and 14 % with 0.1.
FEW_WITHIN = (30.0, 3.0, 0.3)
FEW_BETWEEN = (0.01,)
# Standard errors by which more groups must be ahead of fewer. On the same problems the number was
# right in 11 (0 errors), 12 (0.5), 13 (1), 13 (1.5), 11 (2) and 10 (3) of 14; with 2, it was too
# small in three of them, at 8 % more error of the weights. On five more without groups, one got
# some with 1, and none with 2.
SIGNIFICANT = 1.0
# Fits that are only scored: starts at the first point of the grid, starts besides the groups found
# before where ``alpha_within`` has changed, and what is precise enough. Beside a mixture it is one
# start at the first point.
FIRST_STARTS, MORE_STARTS = 3, 1
QUICK_TOL = 1e-4
QUICK_PRECISION = (1e-5, 1e-5)
MIXTURE_TOL = 1e-5
# Mixtures are tried if tasks times the third power of their width are at most this: a few seconds.
MIXTURE_WORK = 1e8
# The same for mixtures with inputs.
INPUT_WORK = 1e6
INPUTS = (False, True)  # whether a mixture uses them
# Standard errors by which a penalty must be ahead of the best mixture.
AHEAD = 1.0

_SEVERAL = [Interval(Real, 0, None, closed="left"), "array-like"]


@documented((), (), (ARGUMENTS, TASK_ARGUMENTS))
@fields_are_parameters
class TaskSearch(engine.SearchFace, TaskCluster):
    """The search, for a model that could be fitted without it."""

    n_clusters: int | Sequence[int] = (1, 2, 3, 4, 5)  # type: ignore[assignment]
    _: KW_ONLY
    alpha: float | Sequence[float] = 0.0  # type: ignore[assignment]
    alpha_mean: float | str | Sequence[float] = "auto"  # type: ignore[assignment]
    alpha_between: float | str | Sequence[float] = "auto"  # type: ignore[assignment]
    alpha_within: float | str | Sequence[float] = "auto"  # type: ignore[assignment]
    use_inputs: bool | str = "auto"  # type: ignore[assignment]
    cv: Any = 5
    scoring: Scoring | None = None
    rule: str = "fewest"
    criterion: str = "cv"

    _constraints: ClassVar[Constraints] = {
        **SEARCH_CONSTRAINTS,
        "alpha": _SEVERAL,
        "alpha_mean": [StrOptions({"auto"}), *_SEVERAL],
        "alpha_between": [StrOptions({"auto"}), *_SEVERAL],
        "alpha_within": [StrOptions({"auto"}), *_SEVERAL, Interval(Real, 0, None, closed="both")],
        "use_inputs": ["boolean", StrOptions({"auto"})],
        "criterion": [StrOptions({"cv", "bic"})],
    }

    @_fit_context(prefer_skip_nested_validation=False)
    @long_work
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        tasks: Ids | None = None,
        sample_weight: Weights = None,
        offset: ArrayLike | None = None,
        unlabelled: Unlabelled | None = None,
    ) -> Any:
        """Fit the tasks, with groups and strengths by cross-validation."""
        if self.criterion != "cv":
            raise ValueError(
                f"criterion={self.criterion!r} is not defined for tasks: weights that are drawn "
                "towards a centroid have no whole number of free parameters. Give criterion='cv'."
            )
        reading = read(self, X, y, tasks, sample_weight, offset)
        folds = folds_of(reading, self.cv, self.random_state)
        loss, score = loss_of(self), None
        if self.scoring is not None:
            score = pooled(self.scoring, loss if is_classifier(self) else None)
        whole, splits = split(reading.entries, folds.each, loss, score)
        prepared = self._prepare(whole)
        more = read_unlabelled(self, unlabelled, reading.names)
        inputs = self._tries_inputs(prepared, reading.layout, given=more is not None)
        grid = self._grid(prepared, inputs)
        tried = engine.check_counts(self.n_clusters, "groups")
        possible = {count for count in tried if count <= whole.n_tasks} or {whole.n_tasks}
        counts = tuple(sorted(possible))
        countings = {
            prices: self._priced(prepared, whole, prices, counts[-1], more).counting
            for prices in grid
            if prices.learned
        }
        with in_part():  # nothing can be chosen yet
            mixtures = {prices: each.best() for prices, each in countings.items()}
            if self.use_inputs == "auto" and more is None:
                mixtures = _by_evidence(countings, mixtures)
        if len(mixtures) < len(countings):
            grid = tuple(prices for prices in grid if not prices.learned or prices in mixtures)
        guesses = {prices: run.state for prices, run in mixtures.items()}
        points = Points(self._unwatched(), counts, grid, score, guesses, more)
        summed = all(isinstance(held, Summed) for _, held in splits)
        at_hand = summed or reading.entries.design.on_host  # what may go to other processes
        name = loss.loss_scoring if self.scoring is None else name_of(self.scoring)
        jobs = [partial(_score_split, f, mine, points) for f, mine in enumerate(splits)]
        scored = engine.run_jobs(jobs, self.n_jobs if at_hand else 1)
        shape = len(points.counts), len(grid), len(splits)
        table = partial(points.table, name)
        use = Use("folds", len(splits), int(np.prod(shape)), shape, name, scored, table)
        rule = Rule(self.rule, SIGNIFICANT, ratio=folds.ratio)
        found = engine.run_search(use, rule, self.max_iter)
        q, s = found.best_index
        if grid[s] in mixtures and mixtures[grid[s]].state.n_groups <= counts[q]:
            self._set_fit(reading, prepared, grid[s], mixture_outcome(mixtures[grid[s]]))
        else:
            self._fit_prepared(reading, prepared, grid[s], counts[q], more)
        self._set_search(found)
        self.alpha_ = grid[s].alpha
        return self

    def _as_chosen(self) -> Self:
        """A copy with the number of groups that was chosen."""
        model, found = copy(self), self.cv_results_
        model.n_clusters = int(found.n_clusters[found.best_index[0]])
        return model

    def _prices_of(self, prepared: Prepared) -> Prices:
        """The strengths that were chosen."""
        return self._prices_of_fit

    def _unwatched(self) -> "TaskSearch":
        """A model for the fits on folds: one seed for all of them, and no callback."""
        model = copy(self)
        model.callback = None
        if not isinstance(self.random_state, Integral):
            model.random_state = self._seed()
        return model

    def _tries_inputs(self, prepared: Prepared, layout: str, *, given: bool) -> bool:
        """Whether mixtures are also tried with the inputs; "auto" does so where that is quick.

        Tasks that share their rows have the same inputs.
        """
        if self.use_inputs != "auto":
            return bool(self.use_inputs)
        data = prepared.data
        return given or (layout == "rows" and data.n_tasks * data.width**3 <= INPUT_WORK)

    def _grid(self, prepared: Prepared, inputs: bool) -> tuple[Prices, ...]:
        """All strengths to try, neighbours next to each other, and mixtures."""
        mixtures = self._mixtures(prepared, inputs)
        if self.solver == MIXTURE:
            return mixtures
        scale, intercept = price_scale(prepared), self._intercept_price(prepared)
        auto = (FEW_WITHIN, FEW_BETWEEN) if mixtures else (WITHIN, BETWEEN)
        within = _several(self.alpha_within, "alpha_within", scale * np.array(auto[0]))
        between = _several(self.alpha_between, "alpha_between", scale * np.array(auto[1]))
        ridges = _several(self.alpha, "alpha", np.zeros(1))
        points = []
        for ridge, tight, apart in product(ridges, within, between):
            for mean in _several(self.alpha_mean, "alpha_mean", np.array([apart])):
                if mean <= apart:
                    points.append(Prices(ridge, mean, apart, tight, intercept))
        if not points:
            raise ValueError(
                f"alpha_mean={self.alpha_mean!r} is more than alpha_between={self.alpha_between!r} "
                "throughout. Give alpha_mean at most alpha_between."
            )
        return (*points, *mixtures)

    def _mixtures(self, prepared: Prepared, inputs: bool) -> tuple[Prices, ...]:
        """Mixtures to try: none where strengths are given, or where they would take long."""
        strengths = (self.alpha_mean, self.alpha_between, self.alpha_within, self.alpha_intercept)
        if self.solver == MIXTURE:
            self._require_mixture(prepared)
        elif (
            self.solver != "auto"
            or np.any(self.alpha)
            or any(not isinstance(price, str) for price in strengths)
            or mixture_complaint(prepared) is not None
            or prepared.data.n_tasks * prepared.data.width**3 > MIXTURE_WORK
        ):
            if self.use_inputs is True:
                raise ValueError(
                    "use_inputs=True needs a mixture, which is not tried with given strengths, "
                    "with solver='am', 'pg' or 'cg', or on data of this size. Leave the strengths "
                    "out, and give solver='em'."
                )
            return ()
        start = replace(self._prices(price_scale(prepared), prepared), learned=True)
        margin = (self.solver_options or {}).get("margin", COUNTING.margin)
        tried = INPUTS if inputs else INPUTS[:1]
        return tuple(replace(start, inputs=use, margin=margin) for use in tried)


def _by_evidence(
    countings: Mapping[Prices, Counting], mixtures: Mapping[Prices, Fitted]
) -> dict[Prices, Fitted]:
    """The mixture with inputs if these and the labels have groups in common, else the other one.

    They have if one mixture of both is more likely than two, of the labels and of the inputs.
    """
    found = {p.inputs: (p, countings[p].evidence(run.state)) for p, run in mixtures.items()}
    if len(found) < len(INPUTS):
        return dict(mixtures)
    (plain, apart), (both, together) = found[False], found[True]
    alone = countings[both].of_inputs()
    apart += alone.evidence(alone.best().state)
    kept = both if together - apart > countings[both].margin else plain
    return {kept: mixtures[kept]}


def _several(value: Any, name: str, auto: Floats) -> list[float]:
    """One or more strengths, from large to small."""
    if isinstance(value, str):
        return [float(number) for number in auto]
    values = np.atleast_1d(np.asarray(value, dtype=np.float64))
    infinite = np.isinf(values) & (name != "alpha_within")
    if values.ndim != 1 or not values.size or not (values >= 0.0).all() or infinite.any():
        raise ValueError(
            f"{name}={value!r:.80} must hold at least one number, none of them negative. Give a "
            "number, a list of numbers, or 'auto'."
        )
    return sorted((float(number) for number in values), reverse=True)


@dataclass(frozen=True, eq=False)
class Points:
    """What is fitted and scored on every fold."""

    model: TaskSearch  # knows loss, intercept and budget
    counts: tuple[int, ...]  # numbers of groups, ascending
    grid: tuple[Prices, ...]  # strengths, from large to small
    score: PooledScore | None  # None for the negative mean loss
    mixtures: Mapping[Prices, Mixed] = field(default_factory=dict)  # fitted to all rows
    more: TaskSums | None = None  # rows without labels

    def table(self, scoring: str, scores: Floats, rule: Rule) -> TaskSelection:
        """All scores, and the point that is chosen; the first points are the simplest."""
        strengths = tuple(prices.told for prices in self.grid)
        learned = tuple((p.inputs, p.margin) if p.learned else None for p in self.grid)
        learned = learned if self.mixtures else ()
        index = self._chosen(scores, rule)
        return TaskSelection(self.counts, strengths, scores, scoring, rule.name, index, learned)

    def _chosen(self, scores: Floats, rule: Rule) -> tuple[int, int]:
        """The point that is chosen: by the rule, unless evidence has the first word.

        With the rule "fewest", the number of groups of a mixture is that of the largest evidence,
        and the best mixture is kept unless the best penalty is clearly ahead.
        """
        sizes = np.repeat(self.counts, len(self.grid))
        learned = np.tile([p.learned for p in self.grid], len(self.counts))
        candidates = scores.reshape(-1, scores.shape[-1])
        if rule.name != "fewest" or not learned.any():
            return divmod(rule.choose(candidates, sizes), len(self.grid))
        ours = [self._enough(s) for s, prices in enumerate(self.grid) if prices.learned]
        best = ours[int(candidates[ours].mean(axis=1).argmax())]
        if not learned.all():
            rest = np.flatnonzero(~learned)
            other = int(rest[rule.choose(candidates[rest], sizes[rest])])
            ahead = candidates[other] - candidates[best]
            if ahead.mean() > AHEAD * corrected_errors(ahead, rule.ratio):
                best = other
        return divmod(best, len(self.grid))

    def _enough(self, s: int) -> int:
        """The candidate of a mixture that allows as many groups as it has; more change nothing."""
        groups = self.mixtures[self.grid[s]].n_groups
        return int(np.searchsorted(self.counts, groups)) * len(self.grid) + s


def _score_split(number: int, split: Split, points: Points) -> Scored:
    """Fit and score all points on a fold; tasks without rows get the mean predictor."""
    entries, held = split
    present: Indices = entries.present()
    prepared = points.model._prepare(entries.only(present))
    shape = len(points.counts), len(points.grid)
    coefs = np.empty((*shape, entries.n_tasks, prepared.frame.means.size))
    intercepts = np.empty((*shape, entries.n_tasks))
    objective: TaskObjective | None = None
    found: dict[int, TaskPoint] = {}
    place = np.full(entries.n_tasks, present.size)  # the mean comes after all tasks
    place[present] = np.arange(present.size)
    unconverged = 0
    with counting("points", len(points.grid)) as told:
        for s, prices in enumerate(points.grid):
            told.tick(done=s)
            if prices.learned:
                for c, rows in enumerate(_mixture_rows(points, prices, prepared, entries, present)):
                    coef, intercept = prepared.columns(rows)
                    coefs[c, s], intercepts[c, s] = coef[place], intercept[place]
                continue
            strengths = prices.strengths(prepared.data.width, prepared.data.fit_intercept)
            changed = s > 0 and prices.within != points.grid[s - 1].within
            objective = (
                TaskObjective(prepared.data, strengths)
                if objective is None
                else objective.with_strengths(strengths)
            )
            first, later = (FIRST_STARTS, MORE_STARTS) if not points.mixtures else (1, 0)
            problem = replace(_quick(points.model._problem(objective, 1)), n_starts=first)
            for c, count in enumerate(points.counts):
                mine = replace(problem, n_clusters=min(count, present.size))
                if count in found:
                    before = found[count]
                    starts = 1 + later * changed
                    mine = replace(mine, hints=(before.labels,), near=before.W, n_starts=starts)
                run = attempt(mine, "am")[0].solutions[-1]
                unconverged += not run.converged
                found[count] = point_of(run.solution.point)
                rows = np.vstack([found[count].W, found[count].mean])
                coef, intercept = prepared.columns(rows)
                coefs[c, s], intercepts[c, s] = coef[place], intercept[place]
    coefs, intercepts = (a.reshape(-1, *a.shape[2:]) for a in (coefs, intercepts))
    scores = score_fits(held, coefs, intercepts, loss_of(points.model), points.score)
    return Scored((..., number), scores.reshape(shape), unconverged)


def _mixture_rows(
    points: Points,
    prices: Prices,
    prepared: Prepared,
    entries: Entries | Summed,
    present: Indices,
) -> Iterator[Floats]:
    """Weights of the tasks and of an unknown one, for each number of groups."""
    whole = points.mixtures[prices]
    # Groups that all rows do not call for are not looked for.
    more = points.more if points.more is None else points.more.only(present)
    problem = points.model._priced(prepared, entries.only(present), prices, whole.n_groups, more)
    guess = replace(whole.guess, W=None)
    budget = replace(_quick(problem).budget, tol=max(problem.budget.tol, MIXTURE_TOL))
    counting = replace(problem, budget=budget, n_jobs=None, guess=guess).counting
    runs = list(counting.runs())
    kept: dict[int, Floats] = {}
    for count in points.counts:
        best = counting.chosen(runs, count)
        groups = best.state.n_groups
        if groups not in kept:
            point = point_of(counting.untied(best).solution.point)
            kept[groups] = np.vstack([point.W, point.mean])
        yield kept[groups]


def _quick(problem: TaskProblem) -> TaskProblem:
    """The same for a fit that is only scored."""
    tol = max(problem.budget.tol, QUICK_TOL)
    budget = replace(problem.budget, tol=tol, monitor=lambda iteration: False, quiet=True)
    settings: dict[str, Any] = {"n_jobs": None, "options": {}, "precision": QUICK_PRECISION}
    return replace(problem, budget=budget, **settings)
