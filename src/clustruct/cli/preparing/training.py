"""Fitting: hold rows out, prepare columns, choose and fit the model, see how well it does."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from tempfile import gettempdir
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline

from clustruct._interrupts import in_part
from clustruct._typing import Indices
from clustruct.cli.console import Console
from clustruct.cli.messages import BadUsage
from clustruct.cli.models import Settings, choose_model
from clustruct.cli.preparing.columns import Column
from clustruct.cli.preparing.factors import Direction, find_directions
from clustruct.cli.preparing.opening import in_kept_pieces, in_pieces
from clustruct.cli.preparing.preparation import (
    SCALES,
    blocks_of,
    factors_in,
    fit_columns,
    fit_columns_apart,
)
from clustruct.cli.preparing.problems import Problem
from clustruct.cli.reading.scratch import Scratch, size_in_words
from clustruct.cli.reading.tables import sparse_names
from clustruct.reporting.comparing.comparison import Comparison, compare
from clustruct.reporting.comparing.samples import MOST_ROWS, Data
from clustruct.results.stability import DRAWN
from clustruct.trust.stability import stability

FEWEST_ROWS = 10


@dataclass(frozen=True, eq=False)
class Trained:
    """A fitted model, and how well it does."""

    model: Pipeline  # takes the table as it is
    matrix: Any  # what the last step was fitted to
    feature_names: list[str]  # of its columns
    data: Data  # rows fitted to
    comparison: Comparison | None  # scores on the rows held out
    # Which way monotone factors go, where that was found and not given
    directions: Mapping[str, Direction] = field(default_factory=dict)
    cut_short: str = ""  # what Ctrl-C ended early, or left out

    @property
    def estimator(self) -> Any:
        """The model without the steps before it."""
        return self.model[-1]


def train(
    problem: Problem,
    settings: Settings,
    console: Console,
    scratch: Scratch,
    test_size: float,
    resampling: Mapping[str, Any] | None = None,
) -> Trained:
    """Hold rows out, prepare columns, fit the model and compare it with others.

    With `resampling`, arguments of `stability`, see whether its groups come again.

    Ctrl-C ends the step that it comes in, with what that has found; once there is a model, steps
    after the fit are left out. A second one raises KeyboardInterrupt.

    What is made of a large table is kept in `scratch`, for as long as the model is used.
    """
    seed = settings.seed
    fitted, held = _split(problem, test_size, seed)
    with console.progress("preparing columns"):
        ready = (
            _prepare_in_pieces(problem, fitted, seed, scratch)
            if problem.is_large
            else _prepare(problem, fitted)
        )
    if scratch.bytes_on_disk:
        console.note(
            f"clustruct: the words of {problem.source} take {size_in_words(scratch.bytes_on_disk)} "
            f"in {gettempdir()} until the end; the variable TMPDIR names another folder."
        )
    estimator, directions = _fit(problem, settings, console, fitted, ready)
    if problem.is_large and hasattr(ready.shown, "columns"):  # pieces are arrays without names
        estimator.feature_names_in_ = np.asarray(ready.shown.columns, dtype=object)
    cut_short = "the fit ended early" if estimator.status_.interrupted else ""
    if resampling is not None and not cut_short:
        given = _given(problem, fitted)
        text = f"refitting to {resampling['n_resamples']} {DRAWN[resampling['scheme']]}"
        routed = {**given.routed_to_fit(), **resampling, "random_state": seed}
        try:
            with console.progress(text):
                again = stability(estimator, ready.matrix, given.y, **routed)
            cut_short = "there are fewer resamples than asked for" if again.interrupted else ""
        except KeyboardInterrupt:
            cut_short = "there are no resamples"
    before = [] if ready.steps is None else [("columns", ready.steps)]
    model = Pipeline([*before, ("model", estimator)])
    comparison = None
    if held.size:
        try:
            with console.progress("comparing with other models"):
                held_out = _data(problem, _drawn(problem, held, seed))
                matrix = None if ready.factors else ready.shown  # rivals take no levels
                comparison = compare(
                    model, ready.data, held_out, seed=seed, matrix=matrix, n_fitted=fitted.size
                )
        except KeyboardInterrupt:
            if cut_short:
                raise
            cut_short = "the model was not compared with others"
    names = ready.names if not ready.factors else estimator.factors_.weight_names
    return Trained(model, ready.shown, names, ready.data, comparison, directions, cut_short)


def _fit(
    problem: Problem, settings: Settings, console: Console, rows: Indices, ready: "_Ready"
) -> tuple[Any, dict[str, Direction]]:
    """The last step, fitted to what is made of some rows, and the directions that it took."""
    given, kind, shape = _given(problem, rows), problem.target.kind, ready.matrix.shape
    y, routed = given.y, given.routed_to_fit()
    n_tasks = None if given.tasks is None else np.unique(given.tasks).size
    factors = {name: c.factor for name, c in ready.factors.items() if c.factor is not None}
    sought = [name for name, column in ready.factors.items() if column.finds_direction]
    with console.progress("finding directions"), in_part():
        found = find_directions(ready.matrix, y, routed, factors, sought, settings, kind)
    factors |= {name: replace(factors[name], kind=way.kind) for name, way in found.items()}
    estimator = choose_model(settings, kind, shape, y, ready.blocks, n_tasks, factors)
    text = f"fitting {shape[0]} rows of {shape[1]} features"
    with console.progress(text):
        return estimator.fit(ready.matrix, y, **routed), found


def _split(problem: Problem, test_size: float, seed: int) -> tuple[Indices, Indices]:
    """Rows to fit to, and rows to hold out."""
    n, what = problem.n_rows, f"{problem.source} has {problem.n_rows} "
    everyone = np.arange(n)
    if not test_size:
        if n < 2:
            raise ValueError(f"{what}row with a target. Give two at least.")
        return everyone, everyone[:0]
    if n < FEWEST_ROWS:
        raise ValueError(
            f"{what}{'row' if n == 1 else 'rows'} with a target, too few to hold some out. Give "
            f"{FEWEST_ROWS} at least, or --test-size 0 to fit without."
        )
    if n - np.ceil(test_size * n) < 2:
        raise BadUsage(
            f"--test-size {test_size:g} leaves fewer than two of the {n} rows of {problem.source} "
            "to fit to. Give a smaller share."
        )
    strata = problem.target.values if problem.target.is_classes else problem.tasks
    if strata is not None:
        counts = np.unique(strata, return_counts=True)[1]
        if counts.min() < 2 or counts.size > min(test_size, 1.0 - test_size) * n:
            strata = None
    fitted, held = train_test_split(
        everyone, test_size=test_size, random_state=seed, stratify=strata
    )
    return np.sort(fitted), np.sort(held)


class _Ready(NamedTuple):
    """Samples, prepared: what stands before the model, and what the model is fitted to.

    `data` are rows to show and to compare models on, and `shown` is the matrix of these.
    """

    steps: Any
    names: list[str]
    blocks: NDArray[Any] | None
    matrix: Any
    data: Data
    shown: Any
    factors: Mapping[str, Column] = {}  # by their names in the matrix, which is a frame then


def _prepare(problem: Problem, rows: Indices) -> _Ready:
    """A table in memory: all rows are shown."""
    data, how = _data(problem, rows), (problem.scale, problem.wanted.missing)
    if problem.base is None:
        steps = fit_columns(data.X, problem.used, *how, problem.source)
        matrix, factors = steps.transform(data.X), factors_in(steps, problem.used)
        blocks = None if factors else blocks_of(steps)
        return _Ready(steps, _names(steps), blocks, matrix, data, matrix, factors)
    names = sparse_names(problem.base, data.X.shape[1])
    _, scaler, _ = SCALES[problem.scale]
    steps = None if scaler is None else clone(scaler).fit(data.X)
    matrix = data.X if steps is None else steps.transform(data.X)
    return _Ready(steps, names, None, matrix, data, matrix)


def _prepare_in_pieces(problem: Problem, rows: Indices, seed: int, scratch: Scratch) -> _Ready:
    """A table on disk: some rows are shown."""
    how = (problem.scale, problem.wanted.missing)
    steps = fit_columns_apart(problem.X, rows, problem.used, *how)
    names = _names(steps)
    matrix = (
        in_kept_pieces(problem.X, rows, steps, scratch)
        if problem.X.has_text
        else in_pieces(problem.X, rows, steps, len(names))
    )
    data = _data(problem, _drawn(problem, rows, seed))
    return _Ready(steps, names, blocks_of(steps), matrix, data, steps.transform(data.X))


def _names(steps: Any) -> list[str]:
    return [str(name) for name in steps.get_feature_names_out()]


def _drawn(problem: Problem, rows: Indices, seed: int) -> Indices:
    """All rows, or as many of those on disk as models are compared on."""
    if not problem.is_large or rows.size <= MOST_ROWS:
        return rows
    return np.sort(np.random.default_rng(seed).choice(rows, MOST_ROWS, replace=False))


def _data(problem: Problem, rows: Indices) -> Data:
    """Some rows, in memory."""
    return replace(_given(problem, rows), X=problem.rows(rows))


def _given(problem: Problem, rows: Indices) -> Data:
    """What belongs to some rows, without their samples."""
    own = (problem.tasks, problem.weights, problem.offset)
    parts = (None if part is None else part[rows] for part in own)
    return Data(None, problem.target.values[rows], *parts)
