"""Experts, the score of a gate, and the choice of the number of experts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from clustruct._docs import documented_fields
from clustruct._html import table
from clustruct._typing import Floats, Labels
from clustruct.results.scores import score_columns
from clustruct.results.tables import ClassTable, classes_note, largest, plural

MOST_WEIGHTS = 6  # shown of an expert; half as many for each of several outputs
MOST_OUTPUTS = 3


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
        header: Sequence[str] = ("expert", "share", "size", "intercept", "largest weights")
        if n_outputs > 1:
            header = ("expert", "share", "size", "intercepts and largest weights")
        rows: list[Sequence[object]] = [
            (expert.label, expert.share, expert.size, *_linear(expert, outputs)) for expert in self
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
class CountSelection:
    """How a `SampleClusterRegressorCV` chose the number of experts; ready to be plotted.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_experts(300, 3, 2, random_state=0)
    >>> model = cs.SampleClusterRegressorCV((1, 2, 3), random_state=0).fit(problem.X, problem.y)
    >>> model.selection_.n_clusters.tolist(), model.selection_.best
    ([1, 2, 3], 2)
    """

    criterion: Annotated[str, '``"bic+icl"``, ``"bic"``, ``"icl"`` or ``"cv"``.']
    n_clusters: Annotated[Labels, "The numbers that were tried."]
    values: Annotated[Floats, "The criterion for each of them; smaller is better."]
    standard_errors: Annotated[Floats, "Over the folds, zero without folds."]
    losses: Annotated[Floats, "Mean loss of each sample's best expert, out of the fold for cv."]
    best: Annotated[int, "The number that was chosen."]
    # Model files that were written before it was kept have None.
    fold_values: Annotated[Floats | None, "The criterion on each fold, a column a fold."] = None
    rule: Annotated[str, '``"fewest"``, ``"best"`` or ``"one_se"``.'] = "fewest"
    scoring: Annotated[str, "Name of the score, empty for the criterion itself."] = ""
    choices: Annotated[
        dict[str, int] | None,
        "The number that each information criterion would choose, not for cv.",
    ] = None

    @property
    def best_index(self) -> int:
        """Index of the number that was chosen."""
        return int(np.flatnonzero(self.n_clusters == self.best)[0])

    @property
    def in_words(self) -> str:
        """The number that was chosen, and what the other criteria would choose."""
        chosen = f"{plural(self.best, 'expert')} chosen by {self.criterion}"
        others = [
            f"{name} would choose {n}"
            for name, n in (self.choices or {}).items()
            if name != self.criterion
        ]
        return f"{chosen} ({', '.join(others)})" if others else chosen

    flat_index = best_index  # as other searches call it, whose grids have several axes

    @property
    def point_scores(self) -> Floats:
        """One score of each number, larger is better, of shape (n_counts, 1)."""
        return -np.asarray(self.values)[:, None]

    def points(self) -> list[dict[str, Any]]:
        """The numbers that were tried: the column ``params``."""
        return [{"n_clusters": int(count)} for count in self.n_clusters]

    def as_cv_results(self) -> dict[str, Any]:
        """The columns of scikit-learn's ``cv_results_``, the negative criterion as the score."""
        if self.fold_values is not None:
            return score_columns(self.points(), 0.0 - self.fold_values)
        unknown = np.where(self.standard_errors > 0.0, np.nan, 0.0)
        return score_columns(self.points(), 0.0 - self.values[:, None], unknown)

    def _repr_html_(self) -> str:
        columns = (self.n_clusters, self.values, self.standard_errors, self.losses)
        rows = [
            (*numbers, "yes" if numbers[0] == self.best else "")
            for numbers in zip(*(column.tolist() for column in columns), strict=True)
        ]
        header = ("experts", self.criterion, "standard error", "loss of the best", "chosen")
        return table(self.in_words, header, rows)
