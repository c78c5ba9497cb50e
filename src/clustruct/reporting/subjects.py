"""What is grouped, features, samples or tasks: how the report speaks of a model of each kind."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier

from clustruct.inspection import factors_of, final_estimator, kind_of, n_weights
from clustruct.results.tables import plural


class Words(NamedTuple):
    """How a model is judged: what it is, and sentences about a rival, which is put in for {}."""

    plain: str  # such as "5 numbers for 30 features"
    better: str
    tie: str
    worse: str


@dataclass(frozen=True)
class Subject:
    """A fitted model in words."""

    n_groups: int  # groups in use, or experts
    title: str  # of the report on {n} samples
    summary: str  # what was fitted to {n} samples
    name: str  # what the model is called beside its rivals
    rival: str  # what a linear model without groups, such as {}, is called
    scale_matters: str  # why columns should be on one scale
    words: Callable[[int | None], Words]  # the copy that was judged may have other groups
    thing: str = "group"
    one: str = ""  # what a single group or expert is


def subject_of(model: Any) -> Subject:
    """What a fitted model groups."""
    speak = {"features": _features, "samples": _samples, "tasks": _tasks}
    return speak[kind_of(model)](final_estimator(model))


def _features(estimator: Any) -> Subject:
    d, count = n_weights(estimator), int(estimator.n_clusters_)
    labels = np.asarray(estimator.labels_)
    n_groups = int(np.unique(labels[labels >= 0]).size)
    factors = factors_of(estimator)
    things, feature = f"{d:,} features", "feature"
    if factors is not None:
        p, feature = len(factors.numeric), "level"
        things = f"{plural(d - p, 'level')} of {plural(len(factors.factors), 'factor')}"
        things += f" and {plural(p, 'number')}" if p else ""
    summary = f"{things} were reduced to {plural(count, 'shared weight')}"
    name = f"Grouped {feature}s: {plural(count, 'weight')}"
    if count == d > 1:
        summary = f"{things}, every one with its own weight"
        name = f"This model: every {feature} has its own weight"

    def words(judged: int | None) -> Words:
        outputs = 1 if np.ndim(estimator.coef_) == 1 else np.shape(estimator.coef_)[0]
        numbers = _span(count * outputs, None if judged is None else judged * outputs, "number")
        if count == int((labels >= 0).sum()) and d > 1 and judged in (None, count):
            own = f"every {feature} has its own weight"
            if d > count:
                own = f"{plural(count, feature)} have their own weights, {d - count:,} have none"
            return _judged(f"No groups: {own}", "; ")
        instead = f"{numbers} instead of {d * outputs:,}"
        return Words(
            f"{numbers} for {plural(d * outputs, 'weight')}",
            f"Better than {{}}, with {instead}",
            f"As good as {{}}, with {instead}",
            f"Worse than {{}}: {numbers} cannot replace {d * outputs:,} here",
        )

    return Subject(
        n_groups,
        f"{things} in {plural(n_groups, 'group')}",
        f"{summary}, fitted to {{n:,}} samples.",
        name,
        f"{{}}, a weight for every {feature}",
        "Features can share a weight sensibly only where they are on one scale",
        words,
    )


def _samples(estimator: Any) -> Subject:
    features = plural(int(estimator.n_features_in_), "feature")
    count = len(estimator.experts_)
    experts = plural(count, "expert")
    name = f"Experts, {'weighed by the gate' if hasattr(estimator, 'gate_') else 'averaged'}"
    summary = (
        f"{experts}, each a linear model of {features}, share {{n:,}} samples: every sample "
        "belongs to the one that suits it best."
    )
    if count == 1:
        name, summary = "One expert", f"One linear model of {features} for all {{n:,}} samples."

    def words(judged: int | None) -> Words:
        if count == 1 and judged in (None, 1):
            kind = "logistic" if is_classifier(estimator) else "linear"
            return _judged(f"One expert is enough: one {kind} model for all rows", ", ")
        return _judged(_span(count, judged, "expert"), " predict ", tie="as well as")

    return Subject(
        count,
        f"{experts} for {{n:,}} samples",
        summary,
        name,
        "one {} for all samples",
        "The penalty and the gate weigh columns by their scale",
        words,
        "expert",
        "One expert: a single linear model for all samples.",
    )


def _tasks(estimator: Any) -> Subject:
    count, tasks = int(np.unique(estimator.labels_).size), plural(len(estimator.tasks_), "task")
    groups = plural(count, "group")

    def words(judged: int | None) -> Words:
        text = f"{tasks} in {_span(count, judged, 'group')}"
        if count == 1 and judged in (None, 1):
            text = f"No groups: {tasks} about one common centre"
        return Words(
            text,
            f"{text} are predicted better than by {{}}",
            f"{text} are predicted as well as by {{}}",
            f"{text} are predicted worse than by {{}}, which is best",
        )

    return Subject(
        count,
        f"{len(estimator.tasks_):,} tasks in {groups}",
        f"{len(estimator.tasks_):,} tasks fall into {groups} with similar predictors.",
        "Grouped tasks" if count > 1 else "This model: tasks about one common centre",
        "one {} for all tasks",
        "The penalty weighs columns by their scale",
        words,
        one="One group: every task has its own weights, near one common centre.",
    )


def _span(count: int, judged: int | None, thing: str) -> str:
    """A number of things; a range where the copy that was judged has another number of them."""
    low, high = sorted((count, count if judged is None else judged))
    return plural(high, thing) if low == high else f"{low:,} to {plural(high, thing)}"


def _judged(text: str, comma: str, tie: str = "as good as") -> Words:
    """Words for a model that is told of first, and compared then."""
    return Words(text, *(f"{text}{comma}{how} {{}}" for how in ("better than", tie, "worse than")))
