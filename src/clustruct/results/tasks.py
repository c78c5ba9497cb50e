"""Groups of tasks, and the choice of their number."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from clustruct._docs import documented_fields
from clustruct._typing import Floats
from clustruct.results.scores import ScoreTable
from clustruct.results.tables import GroupTable, plural, some_of


@documented_fields
@dataclass(frozen=True, eq=False)
class TaskGroup:
    """A group of tasks, one of those that ``clusters`` of `TaskClusterRegressor` lists.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_tasks(n_tasks=8, n_clusters=2, random_state=0)
    >>> model = cs.TaskClusterRegressor(2, random_state=0).fit(*problem.columns())
    >>> sum(group.size for group in model.clusters())
    8
    """

    label: Annotated[int, "Number of the group."]
    size: Annotated[int, "Number of tasks."]
    tasks: Annotated[tuple[Any, ...], "Ids of the tasks."]
    coef: Annotated[Floats, "Weights of the centroid."]
    intercept: Annotated[float, "Intercept of the centroid."]

    def _repr_html_(self) -> str:
        return TaskGroups([self])._repr_html_()


class TaskGroups(GroupTable[TaskGroup]):
    """The groups of tasks of a `TaskClusterRegressor`: a list that is shown as a table.

    Parameters
    ----------
    iterable : iterable of TaskGroup, default=()
        The groups.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_tasks(n_tasks=8, n_clusters=2, random_state=0)
    >>> groups = cs.TaskClusterRegressor(2, random_state=0).fit(*problem.columns()).clusters()
    >>> print(groups)
    8 tasks in 2 groups
    <BLANKLINE>
    group  size  tasks
    -----------------------------
        0     6  1, 2, 4, 5, 6, 7
        1     2  0, 3
    """

    def _table(self) -> tuple[str, Sequence[str], list[Sequence[object]]]:
        rows: list[Sequence[object]] = [
            (group.label, group.size, some_of(map(str, group.tasks))) for group in self
        ]
        size = plural(sum(group.size for group in self), "task")
        return f"{size} in {plural(len(self), 'group')}", ("group", "size", "tasks"), rows


@documented_fields
@dataclass(frozen=True, eq=False)
class TaskSelection(ScoreTable):
    """Scores of a `TaskClusterRegressorCV`, for numbers of groups and strengths of the penalty.

    It is also a dictionary with the columns of scikit-learn's ``cv_results_``, one entry for each
    point of the grid: ``param_n_clusters``, ``param_alpha``, ``param_alpha_within`` and so on,
    ``params``, ``split0_test_score`` and so on, ``mean_test_score``, ``std_test_score`` and
    ``rank_test_score``. ``pandas.DataFrame(result)`` makes a data frame of it.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_tasks(random_state=0)
    >>> model = cs.TaskClusterRegressorCV(
    ...     (1, 3), alpha_within=(0.1, 1.0), alpha_between=0.01, random_state=0
    ... )
    >>> found = model.fit(*problem.columns()).cv_results_
    >>> found.fold_scores.shape, len(found.rows())
    ((2, 2, 5), 4)
    >>> found["mean_test_score"].shape, found["params"][model.best_index_] == model.best_params_
    ((4,), True)
    """

    axes: ClassVar[tuple[str, ...]] = ("n_clusters", "strengths")

    n_clusters: Annotated[tuple[int, ...], "Numbers of groups that were tried."]
    strengths: Annotated[
        tuple[tuple[float, float, float, float], ...],
        "Those tried: ``alpha``, ``alpha_mean``, ``alpha_between``, ``alpha_within``.",
    ]
    fold_scores: Annotated[Floats, "Score at each point on each held-out fold; larger is better."]
    scoring: Annotated[str, "Name of the score."]
    rule: Annotated[str, '``"best"``, ``"fewest"`` or ``"one_se"``.']
    best_index: Annotated[
        tuple[int, int], "The point chosen: indices into ``n_clusters`` and ``strengths``."
    ]
    mixtures: Annotated[
        tuple[tuple[bool, float | None] | None, ...],
        "For each of the strengths that a mixture learnt (they are NaN), whether it used the "
        "inputs, and its ``margin``; None for the others, and empty if there was no mixture.",
    ] = ()

    @property
    def by_evidence(self) -> bool:
        """Whether a mixture was chosen, which has its groups by evidence."""
        return bool(self.mixtures) and self.mixtures[self.best_index[1]] is not None

    def points(self) -> list[dict[str, Any]]:  # noqa: D102
        names = ("alpha", "alpha_mean", "alpha_between", "alpha_within")
        solvers = [_solver(mixture) for mixture in self.mixtures] or [{}] * len(self.strengths)
        return [
            {"n_clusters": count, **dict(zip(names, map(_or_auto, s), strict=True)), **solver}
            for count in self.n_clusters
            for s, solver in zip(self.strengths, solvers, strict=True)
        ]


def _or_auto(strength: float) -> float | str:
    """A strength as a parameter: "auto" where it was learnt."""
    return "auto" if math.isnan(strength) else strength


def _solver(mixture: tuple[bool, float | None] | None) -> dict[str, Any]:
    """The parameters that say whether a point is a mixture, and which one."""
    if mixture is None:
        return {"solver": "auto", "use_inputs": False, "solver_options": None}
    inputs, margin = mixture
    return {"solver": "em", "use_inputs": inputs, "solver_options": {"margin": margin}}
