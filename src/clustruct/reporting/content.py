"""What the report says: sentences, figures and warnings about a fitted model."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from clustruct import inspection
from clustruct.figures.fits import convergence_figure, curve_figure
from clustruct.figures.maps import experts_figure, tasks_figure
from clustruct.figures.numbers import shown
from clustruct.figures.svg import render
from clustruct.figures.trust import map_figure, wavering_figure
from clustruct.figures.weights import weights_figure
from clustruct.inspection import final_estimator
from clustruct.losses import loss_of
from clustruct.reporting.caveats import caveats
from clustruct.reporting.comparing.comparison import Comparison
from clustruct.reporting.comparing.samples import Data
from clustruct.reporting.differences import Differences, describe_differences
from clustruct.reporting.dispersion import dispersion_of
from clustruct.reporting.factors.section import FactorSection, describe_factors
from clustruct.reporting.pictures import (
    Picture,
    calibration_of,
    confusion_of,
    lift_of,
    losses_removed,
)
from clustruct.reporting.subjects import Subject, subject_of
from clustruct.reporting.tables import (
    MOST_CLASSES,
    Group,
    Members,
    feature_tables,
    sample_tables,
    task_tables,
)
from clustruct.reporting.verdict import Verdict, verdict_on
from clustruct.reporting.wording import Wording
from clustruct.results import StabilityResult
from clustruct.results.tables import plural_word

MOST_DOTS = 600  # features, samples or tasks in a picture
MOST_NAMED_TASKS = 25
FEWEST_STEPS = 5  # fewer make no curve


@dataclass(eq=False)
class Page:
    """All that the template needs; texts are plain, and escaped there."""

    title: str
    kind: str
    lead: str
    verdict: Verdict
    facts: list[tuple[str, str]]
    use: dict[str, Any]  # what the lines to copy depend on
    warnings: list[str]
    differences: Differences | None
    comparison: Comparison | None
    cards: list[tuple[str, str]] = field(default_factory=list)
    loss_chart: str = ""
    confusion: list[list[int]] | None = None
    calibration: str = ""
    lift: str = ""
    factors: FactorSection | None = None
    groups: list[Group] = field(default_factory=list)
    n_groups: int = 0
    groups_name: str = "Groups"
    group_columns: tuple[str, str, str] = ("weight", "size", "features")
    group_note: list[str] = field(default_factory=list)
    class_columns: tuple[str, ...] = ()
    members: Members | None = None
    figures: list[Picture] = field(default_factory=list)
    proof: str = ""
    ending: str = ""
    convergence: Picture | None = None


def describe(
    model: Any,
    data: Data,
    comparison: Comparison | None,
    *,
    feature_names: Sequence[str] | None = None,
    title: str | None = None,
    search: Any = None,
    model_file: Any = None,
) -> Page:
    """Everything the report says of a model."""
    subject, wording = subject_of(model), Wording(model, data.X, data.n, feature_names)
    page = Page(
        title or subject.title.format(n=data.n),
        inspection.kind_of(model),
        subject.summary.format(n=data.n),
        verdict_on(model, comparison),
        _facts(model, data),
        {
            "table": hasattr(model, "feature_names_in_"),
            "before": final_estimator(model) is not model,
            "tasks": data.tasks is not None,
            "offset": data.offset is not None,
            "factors": inspection.factors_of(model) is not None,
            "model_file": None if model_file is None else repr(os.fspath(model_file)),
        },
        caveats(model, data, comparison, wording, search),
        describe_differences(model, data.X, feature_names, wording),
        comparison,
    )
    add = {"features": _add_features, "samples": _add_samples, "tasks": _add_tasks}
    add[page.kind](page, model, data, wording)
    if comparison is not None:
        page.loss_chart = render(losses_removed(comparison))
        page.confusion = confusion_of(comparison)
        calibration = calibration_of(comparison)
        page.calibration = "" if calibration is None else render(calibration)
        lift = lift_of(comparison, data.offset is not None)
        page.lift = "" if lift is None else render(lift)
    _add_choice(page, model, search, f"{subject.thing}s")
    _add_stability(page, final_estimator(model).stability_)
    _add_convergence(page, model)
    return page


# ---- Groups, and the pictures of them.


def _add_features(page: Page, model: Any, data: Data, wording: Wording) -> None:
    levels, outputs = wording.levels, wording.outputs
    assert levels is not None
    page.groups, page.members = feature_tables(levels, wording)
    page.n_groups = len(levels.sizes) + bool(levels.n_zero)
    page.group_columns = (f"weight ({outputs.quantity})", "size", "features")
    page.group_note = wording.note()
    if wording.several and len(outputs.names) <= MOST_CLASSES:
        page.class_columns = outputs.names
    page.groups_name = "Weights" if len(levels.sizes) == levels.labels.size > 1 else "Groups"
    if page.groups_name == "Groups":
        page.cards.append((f"{len(levels.sizes):,}", plural_word(len(levels.sizes), "group")))
    factors = inspection.factors_of(model)
    size, thing = levels.labels.size, "feature"
    if factors is not None:
        size, thing = size - len(factors.numeric), "level"
    page.cards.append((f"{size:,}", plural_word(size, thing)))
    if levels.n_zero:
        page.cards.append((f"{levels.n_zero:,}", "of them without weight"))
    if factors is not None:
        page.group_columns = (*page.group_columns[:2], "levels")
        page.cards.append(
            (f"{len(factors.factors):,}", plural_word(len(factors.factors), "factor"))
        )
        if not wording.several:
            page.factors, page.members = describe_factors(model, data, page.comparison)
            return
    if wording.several:
        figure = weights_figure(levels, wording.axis, outputs=outputs.names)
        thing = "output" if outputs.kind == "number" else "class"
        remark = f"Each row is a group of features, each dot its weight for one {thing}."
        page.figures.append(Picture.of(figure, remark, f"Weights for each {thing}"))
        return
    rivals = () if page.comparison is None else page.comparison.entries
    coefs = [entry.coef for entry in rivals if entry.coef is not None]
    free = next((coef for coef in coefs if coef.shape == levels.labels.shape), None)
    remark = "Each upright line is a group: it stands at its weight and spans its features."
    if free is not None:
        remark += " Dots are the weights that the same features have without groups."
    figure = weights_figure(levels, wording.axis, reference=free, most=MOST_DOTS)
    page.figures.append(Picture.of(figure, remark, "Weights and their levels"))


def _add_samples(page: Page, model: Any, data: Data, wording: Wording) -> None:
    page.groups_name = "Experts"
    page.groups, page.members = sample_tables(model, data, wording)
    page.group_columns = ("share", "samples", f"largest weights ({wording.outputs.quantity})")
    page.group_note = wording.note()
    _count_groups(page, subject_of(model))
    estimator = final_estimator(model)
    one_number = not is_classifier(estimator) and np.ndim(estimator.experts_) == 2
    if page.n_groups < 2 or not one_number or not loss_of(estimator).has_identity_link:
        return  # lines are drawn where targets are on the scale of scores
    names = list(wording.names)
    lines = inspection.expert_lines(model, data.X, data.y - data.shift, names=names, most=MOST_DOTS)
    remark = "Every dot is a sample in the colour of its expert, every line an expert."
    if lines.partial:
        remark += f" Drawn along {lines.feature!r}, in which the experts differ most."
    scaled = wording.unit_of_weights == "standard deviation"
    figure = experts_figure(lines, ", in standard deviations" if scaled else "")
    page.figures.append(Picture.of(figure, remark, "Experts and their samples"))


def _add_tasks(page: Page, model: Any, data: Data, wording: Wording) -> None:
    page.groups, page.members = task_tables(model)
    page.group_columns = ("share", "tasks", "members")
    _count_groups(page, subject_of(model))
    figure = tasks_figure(inspection.task_map(model), MOST_NAMED_TASKS, MOST_DOTS)
    remark = (
        "Tasks that lie close have similar predictors; lines lead to the middle of their group."
    )
    page.figures.append(Picture.of(figure, remark, "Map of tasks"))


def _count_groups(page: Page, subject: Subject) -> None:
    assert page.members is not None
    page.n_groups = len(page.groups)
    if page.n_groups == 1:
        page.group_note.insert(0, subject.one)
    page.cards.append((str(page.n_groups), plural_word(page.n_groups, subject.thing)))
    page.cards.append((f"{page.members.total:,}", page.kind))


# ---- How it was chosen and found.


def _add_choice(page: Page, model: Any, search: Any, things: str) -> None:
    found = inspection.search_of(model) if search is None else search
    curve = inspection.curve_of(found)
    if curve is None or len(curve.counts) < 2:
        return
    spread = ", with one standard error," if curve.deviations.any() else ""
    chosen = curve.counts[curve.chosen]
    if getattr(found, "by_evidence", False):
        chosen = f"{final_estimator(model).n_clusters_}, by evidence"
    elif getattr(found, "rule", "") == "fewest":
        chosen = f"{chosen}, the fewest not clearly worse than the best"
    remark = (
        f"{curve.name[0].upper()}{curve.name[1:]}{spread} for every number of {things}. "
        f"Chosen: {chosen}."
    )
    title = f"Choice of the number of {things}"
    page.figures.append(Picture.of(curve_figure(curve, things), remark, title))


def _add_stability(page: Page, found: StabilityResult | None) -> None:
    """Whether the groups came again, if `clustruct.stability` was run; the lead says so."""
    if found is None or found.groups.size < 2:
        return
    page.lead = f"{page.lead} {found.in_words}"
    page.cards.append((f"{int(found.firm.sum())} of {found.groups.size}", "firm"))
    remark = (
        f"How often members of two groups were in one group, in {found.n_resamples} resamples. "
        "Firm groups stand out on the diagonal, and nowhere else."
    )
    page.figures.append(Picture.of(map_figure(found), remark, "Would the groups come again"))
    if found.wavering().size:
        remark = "Members that were in another group more often than in one of five resamples."
        page.figures.append(Picture.of(wavering_figure(found), remark, "Members that waver"))


def _add_convergence(page: Page, model: Any) -> None:
    """What is proved, and the iterations, if they are enough to make a curve."""
    found = inspection.convergence_of(model)
    page.ending = found.message
    if found.certificate is not None:
        page.proof = found.certificate.in_words
    own, before = _n_steps(found.stages), _n_steps(found.other_units)
    remark = ""
    if own < FEWEST_STEPS <= before:
        solver = found.other_units[0].solver
        found = replace(found, stages=found.other_units, other_units=(), certificate=None)
        remark = f"Iterations of {solver}, on a likelihood of its own."
    elif own < FEWEST_STEPS:
        return
    if _is_relaxed(final_estimator(model)):
        remark += " The weights of the groups were then fitted anew, with less ridge."
    page.convergence = Picture.of(convergence_figure(found), remark.strip())


def _is_relaxed(estimator: Any) -> bool:
    """Whether the weights were refitted, so that their objective is not that of the iterations."""
    return getattr(estimator, "relax_", 1.0) != 1.0


def _n_steps(stages: Sequence[inspection.Stage]) -> int:
    return sum(stage.objectives.size - 1 for stage in stages)


# ---- The model in figures, and how to use it.


def _facts(model: Any, data: Data) -> list[tuple[str, str]]:
    estimator = final_estimator(model)
    facts = [
        ("Model", type(estimator).__name__),
        ("Samples", f"{data.n:,}"),
        ("Features", f"{int(estimator.n_features_in_):,}"),
    ]
    if inspection.factors_of(model) is not None:
        facts.append(("Levels and numbers", f"{inspection.n_weights(model):,}"))
    before = inspection.steps_before(model)
    if before is not None:
        steps = ", ".join(type(step).__name__ for _, step in before.steps)
        facts.append(("Before the model", steps))
    if hasattr(estimator, "best_params_"):
        chosen = ", ".join(f"{name} = {_value(v)}" for name, v in estimator.best_params_.items())
        facts.append(("Parameters in use", chosen))
    for name in ("n_clusters", "alpha", "n_nonzero", "loss", "solver"):
        value = getattr(estimator, name, None)
        if value is not None:
            facts.append((f"Given: {name}", _value(value)))
    facts.append(("Solver", estimator.status_.solver))
    if not _is_relaxed(estimator):  # else it is another one than that of the iterations
        facts.append(("Training objective", shown(float(estimator.objective_), 5)))
    dispersion = dispersion_of(model, data)
    if dispersion is not None:
        facts.append(("Dispersion (Pearson)", shown(dispersion.value)))
    found = inspection.convergence_of(model)
    seconds = sum(float(stage.seconds[-1]) for stage in found.other_units + found.stages)
    facts.append(("Iterations", f"{estimator.n_iter_:,} in {shown(seconds, 2)} s"))
    return facts


def _value(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return shown(float(value))
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
