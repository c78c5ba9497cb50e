"""Fitting: hold rows out, prepare columns, choose and fit the model, see how well it does."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, RobustScaler, StandardScaler

from clustruct._console import Console
from clustruct.cli.messages import BadUsage
from clustruct.cli.models import Settings, choose_model
from clustruct.cli.preparation import blocks_of, fit_columns
from clustruct.cli.problems import Problem
from clustruct.cli.progress import fit_with_progress
from clustruct.reporting.comparison import Comparison, Data, compare

__all__ = ["Trained", "train"]

Indices = NDArray[np.intp]

FEWEST_ROWS = 10
# The same as for tables, without moving zeros, which are not stored.
SPARSE_SCALERS: dict[str, Any] = {
    "standard": lambda: StandardScaler(with_mean=False),
    "robust": lambda: RobustScaler(with_centering=False),
    "maxabs": MaxAbsScaler,
    "none": None,
}


@dataclass(frozen=True, eq=False)
class Trained:
    """A fitted model, and how well it does.

    Attributes
    ----------
    model : Pipeline
        Takes the table as it is.
    matrix : array, DataFrame or sparse matrix
        What the last step was fitted to.
    feature_names : list of str
        Of its columns.
    data : Data
        Rows fitted to.
    comparison : Comparison or None
        Scores on the rows held out.
    in_blocks : bool
        Whether weights are shared in blocks of columns only.
    """

    model: Pipeline
    matrix: Any
    feature_names: list[str]
    data: Data
    comparison: Comparison | None
    in_blocks: bool

    @property
    def estimator(self) -> Any:
        """The model without the steps before it."""
        return self.model[-1]


def train(
    problem: Problem,
    settings: Settings,
    console: Console,
    *,
    scale: str,
    missing: str,
    test_size: float,
) -> Trained:
    """Fit the model that settings stand for.

    Parameters
    ----------
    problem : Problem
    settings : Settings
    console : Console
        For progress.
    scale, missing : str
        How columns are prepared.
    test_size : float
        Share of the rows to hold out.

    Returns
    -------
    Trained
    """
    fitted, held = _split(problem, test_size, settings.seed)
    X, y = problem.rows(fitted), problem.target.values[fitted]
    tasks = None if problem.tasks is None else problem.tasks[fitted]
    steps, names, blocks = _prepare(problem, X, scale, missing)
    matrix = X if steps is None else steps.transform(X)
    n_tasks = None if tasks is None else np.unique(tasks).size
    estimator = choose_model(settings, problem.target.kind, matrix.shape, y, blocks, n_tasks)
    routed: dict[str, Any] = {} if tasks is None else {"tasks": tasks}
    if problem.weights is not None:
        routed["sample_weight"] = problem.weights[fitted]
    text = f"fitting {matrix.shape[0]} rows of {matrix.shape[1]} features"
    fit_with_progress(console, text, estimator, lambda: estimator.fit(matrix, y, **routed))
    before = [] if steps is None else [("columns", steps)]
    model = Pipeline([*before, ("model", estimator)])
    data = Data(X, y, tasks)
    with console.progress("comparing with plain models"):
        comparison = _compare(model, data, problem, held, settings.seed)
    in_blocks = getattr(estimator, "blocks", None) is not None
    return Trained(model, matrix, names, data, comparison, in_blocks)


def _compare(
    model: Any, data: Data, problem: Problem, held: Indices, seed: int
) -> Comparison | None:
    """Scores on the rows held out, if there are any."""
    if not held.size:
        return None
    tasks = None if problem.tasks is None else problem.tasks[held]
    held_out = Data(problem.rows(held), problem.target.values[held], tasks)
    return compare(model, data, held_out, test_size=0.0, seed=seed)


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


def _prepare(
    problem: Problem, X: Any, scale: str, missing: str
) -> tuple[Any, list[str], NDArray[Any] | None]:
    """What stands before the model, the names of the features it makes, and their blocks."""
    if problem.base is None:
        steps = fit_columns(X, problem.used, scale, missing, problem.source)
        return steps, [str(name) for name in steps.get_feature_names_out()], blocks_of(steps)
    names = [f"x{column + problem.base}" for column in range(X.shape[1])]
    make = SPARSE_SCALERS[scale]
    return None if make is None else make().fit(X), names, None
