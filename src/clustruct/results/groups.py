"""Groups of features, experts and groups of tasks, as tables; and the score of a gate."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from clustruct._docs import documented_fields
from clustruct._typing import Floats
from clustruct.results.tables import (
    ClassTable,
    GroupTable,
    classes_note,
    largest,
    plural,
    shown_weight,
    some_of,
    table,
)

MOST_CLASSES = 6  # with a column of weights each
MOST_LARGEST = 3  # weights shown if there are more classes
MOST_WEIGHTS = 6  # shown of an expert; half as many for each of several outputs
MOST_OUTPUTS = 3


@documented_fields
@dataclass(frozen=True, eq=False)
class FeatureGroup:
    """A group of features.

    See Also
    --------
    FeatureClusterRegressor : Its method ``clusters`` returns a list of them.

    Examples
    --------
    >>> import clustruct as cs
    >>> cs.FeatureGroup(0, -1.5, 2, ("bad", "awful")).size
    2
    """

    label: Annotated[int, "Number of the group, -1 for features with zero weight."]
    weight: Annotated[float | Floats, "The weight of its features; one for each output."]
    size: Annotated[int, "Number of features."]
    features: Annotated[tuple[str, ...], "Names of the features."]
    firmness: Annotated[
        float | None, "Share of resamples in which its members stay, once `stability` was run."
    ] = None
    interval: Annotated[
        tuple[float, float] | None, "Where its weight is, with the grouping found anew."
    ] = None

    def _repr_html_(self) -> str:
        return FeatureGroups([self])._repr_html_()


class FeatureGroups(ClassTable[FeatureGroup]):
    """The table of groups: a list of `FeatureGroup` that is shown as a table.

    Parameters
    ----------
    iterable : iterable of FeatureGroup, default=()
        The groups.
    classes : iterable of str, default=()
        Names of the classes: two for one output, otherwise one for each output.

    See Also
    --------
    FeatureClusterRegressor : Its method ``clusters`` returns one.

    Examples
    --------
    >>> import clustruct as cs
    >>> groups = [
    ...     cs.FeatureGroup(0, -1.5, 2, ("bad", "awful")),
    ...     cs.FeatureGroup(1, 2.0, 1, ("good",)),
    ... ]
    >>> print(cs.FeatureGroups(groups, classes=("pan", "praise")))
    3 features in 2 groups; positive weights speak for praise, negative ones for pan
    <BLANKLINE>
    group  weight  size  features
    -------------------------------
        0    -1.5     2  bad, awful
        1       2     1  good
    """

    def _table(self) -> tuple[str, Sequence[str], list[Sequence[object]]]:
        n_outputs = max((np.size(group.weight) for group in self), default=1)
        by_class = n_outputs > 1 and len(self.classes) == n_outputs
        apart = by_class and n_outputs <= MOST_CLASSES
        weights = self.classes if apart else ("largest weights" if by_class else "weight",)

        def shown(group: FeatureGroup) -> Sequence[object]:
            if apart:
                return [float(value) for value in np.atleast_1d(group.weight)]
            if by_class:
                return [largest(np.atleast_1d(group.weight), self.classes, MOST_LARGEST)]
            return [shown_weight(group.weight)]

        firm = any(group.firmness is not None for group in self)
        sure = any(group.interval is not None for group in self)
        rows: list[Sequence[object]] = [
            (
                group.label if group.label >= 0 else "zero",
                *shown(group),
                *_trusted(group, firm, sure),
                group.size,
                some_of(group.features),
            )
            for group in self
        ]
        size = plural(sum(group.size for group in self), "feature")
        title = f"{size} in {plural(len(self), 'group')}{classes_note(self.classes, n_outputs)}"
        trust = [*["90 % interval"] * sure, *["firmness"] * firm]
        return title, ("group", *weights, *trust, "size", "features"), rows


def _trusted(group: FeatureGroup, firm: bool, sure: bool) -> list[object]:
    """The cells of a group that tell how far it can be trusted, where any group has them."""
    cells: list[object] = []
    if sure:
        cells.append("" if group.interval is None else "{:.4g} to {:.4g}".format(*group.interval))
    if firm:
        cells.append("" if group.firmness is None else group.firmness)
    return cells


@documented_fields
@dataclass(frozen=True, eq=False)
class ExpertGroup:
    """An expert, one of those that ``clusters`` of `SampleClusterRegressor` lists.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_experts(300, 3, 2, random_state=0)
    >>> model = cs.SampleClusterRegressor(2, random_state=0).fit(problem.X, problem.y)
    >>> sum(expert.size for expert in model.clusters())
    300
    """

    label: Annotated[int, "Number of the expert."]
    share: Annotated[float, "Its share of the weight of all samples."]
    size: Annotated[int, "Number of its samples."]
    intercept: Annotated[float | Floats, "Its intercept; one for each output."]
    coef: Annotated[Floats, "Its weights, of shape (n_features,) or (n_outputs, n_features)."]
    features: Annotated[tuple[str, ...], "Names of the features."]
    firmness: Annotated[
        float | None, "Share of resamples in which its members stay, once `stability` was run."
    ] = None

    def _repr_html_(self) -> str:
        return ExpertGroups([self])._repr_html_()


class ExpertGroups(ClassTable[ExpertGroup]):
    """The experts of a `SampleClusterRegressor`: a list that is shown as a table.

    Parameters
    ----------
    iterable : iterable of ExpertGroup, default=()
        The experts.
    classes : iterable of str, default=()
        Names of the classes: two for one output, otherwise one for each output.

    Examples
    --------
    >>> import clustruct as cs, numpy as np
    >>> names = ("age", "height")
    >>> experts = [
    ...     cs.ExpertGroup(0, 0.75, 30, 1.5, np.array([2.0, -1.0]), names),
    ...     cs.ExpertGroup(1, 0.25, 10, -0.5, np.array([0.0, 3.0]), names),
    ... ]
    >>> print(cs.ExpertGroups(experts))
    2 experts of 40 samples
    <BLANKLINE>
    expert  share  size  intercept  largest weights
    -------------------------------------------------
         0   0.75    30        1.5  age +2, height -1
         1   0.25    10       -0.5  height +3
    """

    def _table(self) -> tuple[str, Sequence[str], list[Sequence[object]]]:
        n_outputs = max((np.size(expert.intercept) for expert in self), default=1)
        outputs = [f"output {k}" for k in range(n_outputs)]
        if len(self.classes) == n_outputs:
            outputs = list(self.classes)
        firm = any(expert.firmness is not None for expert in self)
        linear = ["intercept", "largest weights"]
        if n_outputs > 1:
            linear = ["intercepts and largest weights"]
        header = ("expert", "share", *["firmness"] * firm, "size", *linear)
        rows: list[Sequence[object]] = [
            (
                expert.label,
                expert.share,
                *[expert.firmness] * firm,
                expert.size,
                *_linear(expert, outputs),
            )
            for expert in self
        ]
        samples = plural(sum(expert.size for expert in self), "sample")
        title = f"{plural(len(self), 'expert')} of {samples}"
        return title + classes_note(self.classes, n_outputs), header, rows


def _linear(expert: ExpertGroup, outputs: Sequence[str]) -> tuple[object, ...]:
    """Intercept and largest weights of an expert, for one output, or one text for several."""
    coef = expert.coef.reshape(len(outputs), -1)
    intercept = np.atleast_1d(expert.intercept)
    if len(outputs) == 1:
        return float(intercept[0]), largest(coef[0], expert.features, MOST_WEIGHTS)
    order = np.argsort(-np.square(coef).sum(axis=1), kind="stable")[:MOST_OUTPUTS]
    parts = []
    for k in sorted(order):
        weights = largest(coef[k], expert.features, MOST_WEIGHTS // 2)
        ends = [f"{outputs[k]}: intercept {intercept[k]:+.3g}", *([weights] if weights else [])]
        parts.append(", ".join(ends))
    left_out = len(outputs) - order.size
    return ("; ".join([*parts, *([f"and {left_out} more"] if left_out else [])]),)


@documented_fields
@dataclass(frozen=True)
class GateScore:
    """The loss with and without the gate of a `SampleClusterRegressor`, on held-out samples.

    Examples
    --------
    >>> import clustruct as cs
    >>> cs.GateScore(gated=0.2, constant=1.0, best=0.1, sharpness=1.1).helps
    True
    """

    gated: Annotated[float, "Mean loss of the prediction weighted by the gate."]
    constant: Annotated[float, "Mean loss with the same weights of the experts for all samples."]
    best: Annotated[
        float, "Mean loss of the best expert of each sample, which no gate can beat by much."
    ]
    sharpness: Annotated[
        float, "Exponent of the gate's probabilities: 0 ignores them, 1 takes them as they are."
    ]

    @property
    def helps(self) -> bool:
        """Whether the gate lowers the loss by at least a hundredth."""
        return self.gated < 0.99 * self.constant

    def _repr_html_(self) -> str:
        row = (self.constant, self.gated, self.best, self.sharpness)
        title = f"The gate {'helps' if self.helps else 'does not help'}"
        return table(title, ("loss without it", "with it", "best expert", "sharpness"), [row])


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
    firmness: Annotated[
        float | None, "Share of resamples in which its members stay, once `stability` was run."
    ] = None

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
        firm = any(group.firmness is not None for group in self)
        rows: list[Sequence[object]] = [
            (group.label, *[group.firmness] * firm, group.size, some_of(map(str, group.tasks)))
            for group in self
        ]
        size = plural(sum(group.size for group in self), "task")
        header = ("group", *["firmness"] * firm, "size", "tasks")
        return f"{size} in {plural(len(self), 'group')}", header, rows
