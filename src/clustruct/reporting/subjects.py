"""What is grouped, features, samples or tasks: how the report speaks of a model of each kind."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import is_classifier

from clustruct.inspection import final_estimator, kind_of
from clustruct.results.tables import plural

__all__ = ["Subject", "Words", "subject_of"]


@dataclass(frozen=True)
class Words:
    """How a model is judged: what it is, and sentences about a rival, which is put in for {}."""

    plain: str  # such as "5 numbers for 30 features"
    better: str
    tie: str
    worse: str


class Subject(ABC):
    """A fitted model in words; each kind of model has a class."""

    thing: ClassVar[str] = "group"
    scale_matters: ClassVar[str]  # why columns should be on one scale
    one: ClassVar[str] = ""  # what a single group or expert is
    plot: ClassVar[str]  # the call that draws it

    def __init__(self, model: Any) -> None:
        self.estimator = final_estimator(model)
        self.n_features = int(self.estimator.n_features_in_)

    @property
    def n_groups(self) -> int:
        """Groups in use, or experts."""
        labels = np.asarray(self.estimator.labels_)
        return int(np.unique(labels[labels >= 0]).size)

    @abstractmethod
    def title(self, n: int) -> str:
        """A title for the report on n samples."""

    @abstractmethod
    def summary(self, n: int) -> str:
        """What was fitted to n samples, in a sentence."""

    @abstractmethod
    def name(self) -> str:
        """What the model is called beside its rivals."""

    @abstractmethod
    def rival(self, plain: str) -> str:
        """What a linear model without groups is called."""

    @abstractmethod
    def words(self, judged: int | None) -> Words:
        """Words for a verdict; the copy that was judged may have another number of groups."""

    @abstractmethod
    def code(self, name: str, samples: str) -> list[str]:
        """Lines that show what the estimator of some name knows."""


class Features(Subject):
    """Features that share weights."""

    scale_matters = "Features can share a weight sensibly only where they are on one scale"
    plot = "weights(model)"

    def title(self, n: int) -> str:
        return f"{self.n_features:,} features in {plural(self.n_groups, 'group')}"

    def summary(self, n: int) -> str:
        d, count = self.n_features, int(self.estimator.n_clusters_)
        if count == d > 1:
            return f"{d:,} features, every one with its own weight, fitted to {n:,} samples."
        shared = plural(count, "shared weight")
        return f"{d:,} features were reduced to {shared}, fitted to {n:,} samples."

    def name(self) -> str:
        count = int(self.estimator.n_clusters_)
        if count == self.n_features > 1:
            return "This model: every feature has its own weight"
        return f"Grouped features: {plural(count, 'weight')}"

    def rival(self, plain: str) -> str:
        return f"{plain.capitalize()}, a weight for every feature"

    def words(self, judged: int | None) -> Words:
        labels = np.asarray(self.estimator.labels_)
        count, d = int(self.estimator.n_clusters_), labels.size
        outputs = 1 if np.ndim(self.estimator.coef_) == 1 else np.shape(self.estimator.coef_)[0]
        numbers = _span(count * outputs, None if judged is None else judged * outputs, "number")
        if count == int((labels >= 0).sum()) and d > 1 and judged in (None, count):
            own = "every feature has its own weight"
            if d > count:
                own = f"{plural(count, 'feature')} have their own weights, {d - count:,} have none"
            return _judged(f"No groups: {own}", "; ")
        instead = f"{numbers} instead of {d * outputs:,}"
        return Words(
            f"{numbers} for {plural(d * outputs, 'weight')}",
            f"Better than {{}}, with {instead}",
            f"As good as {{}}, with {instead}",
            f"Worse than {{}}: {numbers} cannot replace {d * outputs:,} here",
        )

    def code(self, name: str, samples: str) -> list[str]:
        return [
            f"{name}.clusters()          # the groups: weight, size, names",
            f"{name}.cluster_values_     # the shared weights",
            f"{name}.labels_             # the group of every feature",
            f"{name}.certificate_        # how much lower the training objective could be, at most",
        ]


class Samples(Subject):
    """Samples that share a linear model, an expert."""

    thing = "expert"
    scale_matters = "The penalty and the gate weigh columns by their scale"
    one = "One expert: a single linear model for all samples."
    plot = "experts(model, X, y)"

    @property
    def n_groups(self) -> int:
        return len(self.estimator.experts_)

    def title(self, n: int) -> str:
        return f"{plural(self.n_groups, 'expert')} for {n:,} samples"

    def summary(self, n: int) -> str:
        features = plural(self.n_features, "feature")
        if self.n_groups == 1:
            return f"One linear model of {features} for all {n:,} samples."
        return (
            f"{plural(self.n_groups, 'expert')}, each a linear model of {features}, share "
            f"{n:,} samples: every sample belongs to the one that suits it best."
        )

    def name(self) -> str:
        if self.n_groups == 1:
            return "One expert"
        gate = hasattr(self.estimator, "gate_")
        return f"Experts, {'weighed by the gate' if gate else 'averaged'}"

    def rival(self, plain: str) -> str:
        return f"One {plain} for all samples"

    def words(self, judged: int | None) -> Words:
        if self.n_groups == 1 and judged in (None, 1):
            kind = "logistic" if is_classifier(self.estimator) else "linear"
            return _judged(f"One expert is enough: one {kind} model for all rows", ", ")
        experts = _span(self.n_groups, judged, "expert")
        return Words(
            experts,
            f"{experts} predict better than {{}}",
            f"{experts} predict as well as {{}}",
            f"{experts} predict worse than {{}}",
        )

    def code(self, name: str, samples: str) -> list[str]:
        return [
            f"{name}.predict_experts({samples})  # the prediction of every expert",
            f"{name}.assign({samples}, y)        # which expert is nearest to the target y",
            f"{name}.experts_            # their weights",
        ]


class Tasks(Subject):
    """Tasks with similar predictors."""

    scale_matters = "The penalty weighs columns by their scale"
    one = "One group: every task has its own weights, near one common centre."
    plot = "tasks(model)"

    @property
    def _n_tasks(self) -> int:
        return len(self.estimator.tasks_)

    def title(self, n: int) -> str:
        return f"{self._n_tasks:,} tasks in {plural(self.n_groups, 'group')}"

    def summary(self, n: int) -> str:
        groups = plural(self.n_groups, "group")
        return f"{self._n_tasks:,} tasks fall into {groups} with similar predictors."

    def name(self) -> str:
        grouped = self.n_groups > 1
        return "Grouped tasks" if grouped else "This model: tasks about one common centre"

    def rival(self, plain: str) -> str:
        return f"One {plain} for all tasks"

    def words(self, judged: int | None) -> Words:
        tasks = plural(self._n_tasks, "task")
        text = f"{tasks} in {_span(self.n_groups, judged, 'group')}"
        if self.n_groups == 1 and judged in (None, 1):
            text = f"No groups: {tasks} about one common centre"
        return Words(
            text,
            f"{text} are predicted better than by {{}}",
            f"{text} are predicted as well as by {{}}",
            f"{text} are predicted worse than by {{}}, which is best",
        )

    def code(self, name: str, samples: str) -> list[str]:
        return [
            f"{name}.labels_             # the group of every task",
            f"{name}.coef_               # the predictor of every task",
            f"{name}.centroids_          # the middle of every group",
        ]


SUBJECTS: dict[str, type[Subject]] = {"features": Features, "samples": Samples, "tasks": Tasks}


def subject_of(model: Any) -> Subject:
    """What a fitted model groups."""
    return SUBJECTS[kind_of(model)](model)


def _span(count: int, judged: int | None, thing: str) -> str:
    """A number of things; a range where the copy that was judged has another number of them."""
    low, high = sorted((count, count if judged is None else judged))
    return plural(high, thing) if low == high else f"{low:,} to {plural(high, thing)}"


def _judged(text: str, comma: str) -> Words:
    """Words for a model that is told of first, and compared then."""
    ends = (f"{text}{comma}{how} {{}}" for how in ("better than", "as good as", "worse than"))
    return Words(text, *ends)
