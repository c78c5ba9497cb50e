"""What the report says: sentences, figures and warnings about a fitted model."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from clustruct.inspection import (
    Levels,
    Stage,
    convergence_of,
    curve_of,
    expert_lines,
    final_estimator,
    kind_of,
    levels_of,
    search_of,
    steps_before,
    task_map,
    thinned,
)
from clustruct.reporting.comparing.comparison import Comparison, Data
from clustruct.reporting.drawing import charts
from clustruct.reporting.drawing.tables import (
    MOST_CLASSES,
    Group,
    Members,
    feature_tables,
    sample_tables,
    task_tables,
)
from clustruct.reporting.saying.caveats import caveats
from clustruct.reporting.saying.differences import Differences, describe_differences
from clustruct.reporting.saying.quality import Confusion, calibration_chart, confusion_of
from clustruct.reporting.saying.verdict import verdict_on
from clustruct.reporting.svg import shown
from clustruct.reporting.wording import Wording, name_list, tidy
from clustruct.results.tables import plural, plural_word

__all__ = ["Page", "describe"]

CHARTED_ROWS = 2000
MOST_DRAWN_GROUPS = 12
FEWEST_STEPS = 5  # fewer make no curve


@dataclass(eq=False)
class Page:
    """All that the template needs; texts are plain, and escaped there."""

    title: str
    kind: str
    lead: list[str] = field(default_factory=list)
    cards: list[tuple[str, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    comparison: Comparison | None = None
    verdict: str = ""
    support: list[str] = field(default_factory=list)
    confusion: Confusion | None = None
    calibration: tuple[str, str] = ("", "")
    groups: list[Group] = field(default_factory=list)
    n_groups: int = 0
    groups_name: str = "Groups"
    group_columns: tuple[str, str, str] = ("weight", "size", "features")
    group_note: list[str] = field(default_factory=list)
    class_columns: tuple[str, ...] = ()
    differences: Differences | None = None
    members: Members | None = None
    figures: list[tuple[str, str, str]] = field(default_factory=list)  # title, SVG, remark
    comparison_chart: str = ""
    proof: str = ""
    ending: str = ""
    convergence: tuple[str, str] | None = None  # SVG, remark
    facts: list[tuple[str, str]] = field(default_factory=list)
    code: str = ""


def describe(
    model: Any,
    data: Data,
    comparison: Comparison | None,
    *,
    names: Sequence[str] | None,
    title: str | None,
    search: Any,
    model_file: str | None,
) -> Page:
    """Everything the report says of a model."""
    kind = kind_of(model)
    estimator = final_estimator(model)
    page = Page(title or _default_title(estimator, data, kind), kind)
    wording = Wording(model, data.X, data.n, names)
    _add_groups(page, model, data, names, wording)
    page.differences = describe_differences(model, data.X, names, wording)
    _add_pictures(page, model, data, names, comparison, wording)
    _add_comparison(page, model, comparison)
    _add_choice(page, model, search)
    _add_convergence(page, model)
    page.warnings = caveats(model, data, comparison, wording, search)
    page.lead.insert(0, _summary(estimator, data, kind))
    page.facts = _facts(model, data)
    page.code = _code(model, model_file, data)
    return page


def _default_title(estimator: Any, data: Data, kind: str) -> str:
    groups = np.unique(estimator.labels_[np.asarray(estimator.labels_) >= 0]).size
    if kind == "features":
        return f"{int(estimator.n_features_in_):,} features in {plural(groups, 'group')}"
    if kind == "samples":
        return f"{plural(int(estimator.n_clusters_), 'expert')} for {data.n:,} samples"
    return f"{len(estimator.tasks_):,} tasks in {plural(groups, 'group')}"


def _summary(estimator: Any, data: Data, kind: str) -> str:
    n, d = data.n, int(estimator.n_features_in_)
    count = int(estimator.n_clusters_) if hasattr(estimator, "n_clusters_") else 0
    if kind == "features" and count == d > 1:
        return f"{d:,} features, every one with its own weight, fitted to {n:,} samples."
    if kind == "features":
        return (
            f"{d:,} features were reduced to {plural(count, 'shared weight')}, "
            f"fitted to {n:,} samples."
        )
    if kind == "samples" and count == 1:
        return f"One linear model of {plural(d, 'feature')} for all {n:,} samples."
    if kind == "samples":
        return (
            f"{plural(count, 'expert')}, each a linear model of {plural(d, 'feature')}, share "
            f"{n:,} samples: every sample is answered by the one that suits it best."
        )
    n_tasks = len(estimator.tasks_)
    count = np.unique(estimator.labels_).size
    return f"{n_tasks:,} tasks fall into {plural(count, 'group')} with similar predictors."


# ---- Groups, and the pictures of them.

_ONE = {
    "samples": "One expert: a single linear model for all samples.",
    "tasks": "One group: every task has its own weights, near one common centre.",
}


def _add_groups(
    page: Page, model: Any, data: Data, names: Sequence[str] | None, wording: Wording
) -> None:
    page.group_note = wording.note()
    if page.kind == "features":
        levels = levels_of(model, names)
        page.groups, page.members = feature_tables(levels, wording)
        page.n_groups = len(levels.sizes) + bool(levels.n_zero)
        page.group_columns = (f"weight ({wording.answers.quantity})", "size", "features")
        if wording.several and len(wording.answers.names) <= MOST_CLASSES:
            page.class_columns = wording.answers.names
        page.groups_name = "Weights" if len(levels.sizes) == levels.labels.size > 1 else "Groups"
        if page.groups_name == "Groups":
            page.cards.append((f"{len(levels.sizes):,}", plural_word(len(levels.sizes), "group")))
        page.cards.append((f"{levels.labels.size:,}", plural_word(levels.labels.size, "feature")))
        if levels.n_zero:
            page.cards.append((f"{levels.n_zero:,}", "of them without weight"))
        return
    if page.kind == "samples":
        page.groups_name = "Experts"
        page.groups, page.members = sample_tables(model, data.X, data.y, wording)
        page.group_columns = ("share", "samples", f"largest weights ({wording.answers.quantity})")
    else:
        page.groups, page.members = task_tables(model)
        page.group_columns = ("share", "tasks", "members")
        page.group_note = []
    page.n_groups = len(page.groups)
    thing = "expert" if page.kind == "samples" else "group"
    if page.n_groups == 1:
        page.group_note.insert(0, _ONE[page.kind])
    page.cards.append((str(page.n_groups), plural_word(page.n_groups, thing)))
    page.cards.append((f"{page.members.total:,}", page.kind))


def _add_pictures(
    page: Page,
    model: Any,
    data: Data,
    names: Sequence[str] | None,
    found: Comparison | None,
    wording: Wording,
) -> None:
    if page.kind == "features":
        _add_levels(page, levels_of(model, names), found, wording)
    elif page.kind == "samples":
        _add_expert_lines(page, model, data, names, wording)
    else:
        tasks = task_map(model)
        remark = (
            "Tasks that lie close have similar predictors; lines lead to the middle of their group."
        )
        if tasks.names.size > charts.MOST_DOTS:
            remark += f" {charts.MOST_DOTS} of {tasks.names.size:,} tasks are drawn."
        page.figures.append(("Map of tasks", charts.tasks_chart(tasks), remark))


def _add_levels(page: Page, levels: Levels, found: Comparison | None, wording: Wording) -> None:
    if wording.several:
        _add_class_dots(page, levels, wording)
        return
    remark = (
        "Each stem is a group: where it stands is its weight, "
        "its height how many features share it."
    )
    free = None if found is None else found.free_weights
    if free is not None and free.shape != levels.labels.shape:
        free = None
    if free is not None:
        remark += " Behind them, the weights that the same features have without groups."
    chart = charts.levels_chart(levels, free, wording.axis)
    page.figures.append(("Weights and their levels", chart, remark))


def _add_class_dots(page: Page, levels: Levels, wording: Wording) -> None:
    """The weights of each group for every class."""
    shown_groups = thinned(np.arange(len(levels.sizes)), MOST_DRAWN_GROUPS)
    rows = [
        (
            f"{q}: {name_list(levels.names[levels.members(q)], 3)}",
            [float(weight) for weight in tidy(levels.values)[q]],
        )
        for q in shown_groups.tolist()
    ]
    thing = "output" if wording.answers.kind == "number" else "class"
    chart = charts.dots_chart(rows, thing, wording.axis, names=wording.answers.names)
    remark = f"Each row is a group of features, each dot its weight for one {thing}."
    if shown_groups.size < len(levels.sizes):
        remark += f" {shown_groups.size} of {len(levels.sizes):,} groups are drawn."
    page.figures.append((f"Weights for each {thing}", chart, remark))


def _add_expert_lines(
    page: Page, model: Any, data: Data, names: Sequence[str] | None, wording: Wording
) -> None:
    estimator = final_estimator(model)
    if is_classifier(estimator) or np.ndim(estimator.experts_) != 2 or page.n_groups < 2:
        return
    found = expert_lines(model, data.X, data.y, names=names, most=CHARTED_ROWS)
    remark = "Every dot is a sample in the colour of its expert, every line an expert."
    if found.partial:
        remark += f" Drawn along {found.feature!r}, in which the experts differ most."
    drawn = min(found.x.size, charts.MOST_DOTS)
    if drawn < found.n_samples:
        remark += f" {drawn:,} of {found.n_samples:,} samples are drawn."
    scaled = wording.unit_of_weights == "standard deviation"
    chart = charts.experts_chart(found, ", in standard deviations" if scaled else "")
    page.figures.append(("Experts and their samples", chart, remark))


# ---- How well it does.


def _add_comparison(page: Page, model: Any, found: Comparison | None) -> None:
    verdict = verdict_on(model, found)
    page.verdict, page.support = verdict.headline, list(verdict.support)
    if found is None:
        return
    page.comparison = found
    page.comparison_chart = charts.comparison_chart(found)
    page.confusion = confusion_of(found)
    page.calibration = calibration_chart(found)


# ---- How it was chosen and found.


def _add_choice(page: Page, model: Any, search: Any) -> None:
    curve = curve_of(search) if search is not None else curve_of(model)
    if curve is None or len(curve.counts) < 2:
        return
    spread = ", with one standard error," if curve.deviations.any() else ""
    things = "experts" if page.kind == "samples" else "groups"
    found = search_of(model) if search is None else search
    why = ", the fewest not clearly worse than the best" * (getattr(found, "rule", "") == "fewest")
    remark = (
        f"{curve.name[0].upper()}{curve.name[1:]}{spread} for every number of {things}. "
        f"Chosen: {curve.counts[curve.chosen]}{why}."
    )
    chart = charts.curve_chart(curve, f"number of {things}")
    page.figures.append((f"Choice of the number of {things}", chart, remark))


def _add_convergence(page: Page, model: Any) -> None:
    """What is proved, and the steps, if they are enough to make a curve."""
    found = convergence_of(model)
    page.ending = found.message
    if found.certificate is not None:
        page.proof = found.certificate.in_words
    own, before = _n_steps(found.stages), _n_steps(found.other_units)
    remark = ""
    if own < FEWEST_STEPS <= before:
        solver = found.other_units[0].solver
        found = replace(found, stages=found.other_units, certificate=None)
        remark = f"Steps of {solver}, on a likelihood of its own."
    elif own < FEWEST_STEPS:
        return
    if _is_relaxed(final_estimator(model)):
        remark += " The weights of the groups were fitted anew after these steps, with less ridge."
    page.convergence = (charts.convergence_chart(found), remark.strip())


def _is_relaxed(estimator: Any) -> bool:
    """Whether the objective of the steps is not that of the weights: they were refitted after."""
    return getattr(estimator, "relax_", 1.0) != 1.0


def _n_steps(stages: Sequence[Stage]) -> int:
    return sum(stage.objectives.size - 1 for stage in stages)


# ---- The model in figures, and how to use it.


def _facts(model: Any, data: Data) -> list[tuple[str, str]]:
    estimator = final_estimator(model)
    facts = [
        ("Model", type(estimator).__name__),
        ("Samples", f"{data.n:,}"),
        ("Features", f"{int(estimator.n_features_in_):,}"),
    ]
    before = steps_before(model)
    if before is not None:
        facts.append(
            ("Before the model", ", ".join(type(step).__name__ for _, step in before.steps))
        )
    if hasattr(estimator, "best_params_"):
        chosen = ", ".join(f"{name} = {_value(v)}" for name, v in estimator.best_params_.items())
        facts.append(("Parameters in use", chosen))
    parameters = estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}
    for name in ("n_clusters", "alpha", "n_nonzero", "loss", "solver"):
        value = parameters.get(name)
        if value is not None:
            facts.append((f"Given: {name}", _value(value)))
    facts.append(("Solver whose answer was kept", estimator.status_.solver))
    if not _is_relaxed(estimator):  # else it is another one than that of the steps
        facts.append(("Training objective", shown(float(estimator.objective_), 5)))
    seconds = _seconds(estimator.trace_)
    facts.append(("Its steps", f"{estimator.n_iter_:,} in {shown(seconds, 2)} s"))
    return facts


def _value(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return shown(float(value))
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _seconds(trace: Sequence[Any]) -> float:
    """Of all solvers one after the other; each counts from its own start."""
    ends = [a.seconds for a, b in pairwise(trace) if b.number == 0]
    return float(sum(ends) + (trace[-1].seconds if trace else 0.0))


def _code(model: Any, model_file: str | None, data: Data) -> str:
    estimator = final_estimator(model)
    kind = kind_of(model)
    lines = ["import clustruct as cs"]
    table = [
        "import pandas as pd",
        "",
        'X = pd.read_csv("new.csv")  # a table with the same columns',
    ]
    lines += table if hasattr(model, "feature_names_in_") else ["", "# X: samples, a row for each"]
    if model_file is not None:
        lines.append(f"model = cs.load({str(model_file)!r})")
    else:
        lines.append("# model: the fitted estimator of this report")
    if data.tasks is not None:
        lines.append("# ids: the task of every row")
    tasks = ", tasks=ids" if data.tasks is not None else ""
    lines.append(f"model.predict(X{tasks})")
    name, samples = ("model", "X") if estimator is model else ("model[-1]", "prepared")
    if kind == "samples" and estimator is not model:
        lines.append("prepared = model[:-1].transform(X)")
    lines += {
        "features": [
            f"{name}.clusters()          # the groups: weight, size, names",
            f"{name}.cluster_values_     # the shared weights",
            f"{name}.labels_             # the group of every feature",
            f"{name}.certificate_        # how much lower the training objective could be, at most",
        ],
        "samples": [
            f"{name}.predict_experts({samples})  # the answer of every expert",
            f"{name}.assign({samples}, y)        # who answers best, where answers y are known",
            f"{name}.experts_            # their weights",
        ],
        "tasks": [
            f"{name}.labels_             # the group of every task",
            f"{name}.coef_               # the predictor of every task",
            f"{name}.centroids_          # the middle of every group",
        ],
    }[kind]
    plot = {
        "features": "weights(model)",
        "samples": "experts(model, X, y)",
        "tasks": "tasks(model)",
    }
    lines.append(f"cs.plot.{plot[kind]}")
    return "\n".join(lines)
