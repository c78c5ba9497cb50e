"""What fitted models have to show: the numbers behind plots and reports, drawn by others.

Everything here takes a fitted estimator of the package, a pipeline that ends in one, or a search
that found one, and returns plain arrays in the order in which people read them.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.exceptions import NotFittedError
from sklearn.utils import _safe_indexing, check_array
from sklearn.utils.sparsefuncs import mean_variance_axis

from clustruct._typing import Floats, Labels
from clustruct.losses import loss_of
from clustruct.results import Certificate, CountSelection, SearchResult, TaskSelection
from clustruct.results.paired import standard_errors
from clustruct.results.searched import Edge, edges

# An attribute that only fitted models of a kind have.
KINDS = {"cluster_values_": "features", "experts_": "samples", "tasks_": "tasks"}
# Solvers that descend on a likelihood or on harmonic means, not on the objective.
OTHER_UNITS = frozenset({"em", "em, own noise", "em, relevance prior", "rc"})


def final_estimator(model: Any) -> Any:
    """The estimator of this package inside a pipeline or a search of scikit-learn."""
    if hasattr(model, "best_estimator_"):
        return final_estimator(model.best_estimator_)
    if hasattr(model, "steps"):
        return final_estimator(model.steps[-1][1])
    return model


def steps_before(model: Any) -> Any:
    """What a pipeline does before the estimator, or None."""
    if hasattr(model, "best_estimator_"):
        return steps_before(model.best_estimator_)
    if hasattr(model, "steps") and len(model.steps) > 1:
        return model[:-1]
    return None


def with_final_estimator(model: Any, estimator: Any) -> Any:
    """The same pipeline with another estimator at its end; of a search, the one it has found."""
    if hasattr(model, "best_estimator_"):
        return with_final_estimator(model.best_estimator_, estimator)
    if hasattr(model, "steps"):
        *before, (name, last) = model.steps
        pipeline = copy(model)
        pipeline.steps = [*before, (name, with_final_estimator(last, estimator))]
        return pipeline
    return estimator


def kind_of(model: Any) -> str:
    """What a fitted model groups: "features", "samples" or "tasks"."""
    estimator = final_estimator(model)
    for attribute, kind in KINDS.items():
        if hasattr(estimator, attribute):
            return kind
    name = type(estimator).__name__
    if name.startswith(("FeatureCluster", "SampleCluster", "TaskCluster")):
        raise NotFittedError(f"This {name} is not fitted yet. Call its method `fit` first.")
    raise ValueError(
        f"model must be a fitted estimator of clustruct or a pipeline that ends in one, got {name}."
    )


def require_kind(model: Any, *kinds: str) -> Any:
    """The estimator of a model, if it groups one of these; else an error that says what it does."""
    kind = kind_of(model)
    if kind not in kinds:
        name = type(final_estimator(model)).__name__
        raise ValueError(
            f"This shows models of {' or '.join(kinds)}, and {name} "
            f"groups {kind}. Choose another plot, such as clustruct.plot.clusters."
        )
    return final_estimator(model)


def feature_names(model: Any, given: Sequence[str] | None = None) -> NDArray[np.object_]:
    """Names of the features that the estimator sees: those given, or as far as the model knows."""
    estimator, before = final_estimator(model), steps_before(model)
    n_features = n_weights(estimator)
    names: Any = given
    if given is not None and len(given) != n_features:
        raise ValueError(
            f"feature_names holds {len(given)} names, but the model has {n_features} features. "
            "Give one name for each."
        )
    if names is None and before is not None:
        try:
            names = before.get_feature_names_out()
        except (AttributeError, ValueError, NotFittedError):
            names = None
    if factors_of(estimator) is not None and given is None:
        names = factors_of(estimator).weight_names
    if names is None or len(names) != n_features:
        names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        names = [f"x{j}" for j in range(n_features)]
    return np.array([str(name) for name in names], dtype=object)


def factors_of(model: Any) -> Any:
    """The factors that a model was fitted to, or None for a matrix of numbers."""
    return getattr(final_estimator(model), "factors_", None)


def n_weights(model: Any) -> int:
    """Number of features, where levels of factors count as features."""
    estimator, factors = final_estimator(model), factors_of(model)
    return int(estimator.n_features_in_ if factors is None else factors.n_weights)


@dataclass(frozen=True)
class Outputs:
    """What the scores of a model stand for.

    The names are those of classes, or of numbered outputs; one that is empty for a single number.
    Two classes have one output, that of the second; `other` is the first. The kind is "number",
    the prediction, "odds", the logarithm of the odds of the class, or "score", which grows with it;
    `number` says what the score of a number is, in words.
    """

    names: tuple[str, ...]
    kind: str
    other: str = ""
    number: str = "prediction"

    @property
    def quantity(self) -> str:
        """What a weight adds to, in words."""
        what = {"number": self.number, "odds": "log odds", "score": "score"}[self.kind]
        if len(self.names) > 1:
            return f"{what} of each {'output' if self.kind == 'number' else 'class'}"
        return f"{what} of {self.names[0]}" if self.names[0] else what


def outputs_of(model: Any) -> Outputs:
    """What the scores of a fitted model stand for, with the names of its classes."""
    estimator = final_estimator(model)
    classes = getattr(estimator, "classes_", None)
    kind, is_tasks = "number", kind_of(model) == "tasks"
    if classes is None:
        count = 1 if is_tasks else weights_of(model).shape[1]
        names = tuple(f"output {k}" for k in range(count)) if count > 1 else ("",)
        return Outputs(names, kind, number=loss_of(estimator).number_scale)
    kind = loss_of(estimator).class_scale
    names = tuple(str(name) for name in classes)
    if len(names) == 2:
        return Outputs(names[1:], kind, names[0])
    return Outputs(("its own class",) if is_tasks else names, kind)


def weights_of(model: Any) -> Floats:
    """Weights of every expert or centroid for every output: Q x K x d; for features Q is 1."""
    estimator, kind = final_estimator(model), kind_of(model)
    if kind == "features":
        return levels_of(model).weights.T[None]
    weights = estimator.experts_ if kind == "samples" else estimator.centroids_
    shape = (len(weights), -1, int(estimator.n_features_in_))
    return np.asarray(weights, dtype=np.float64).reshape(shape)


def prepared(model: Any, X: Any, rows: Labels | None = None) -> Any:
    """Samples, or some of their rows, as the estimator sees them after the steps before it."""
    before = steps_before(model)
    sample = X if rows is None else _safe_indexing(X, rows)
    return sample if before is None else before.transform(sample)


def moments(matrix: Any) -> tuple[Floats, Floats]:
    """Means and standard deviations of the columns of a matrix."""
    values = check_array(matrix, accept_sparse="csc", dtype=np.float64)
    if issparse(values):
        means, variances = mean_variance_axis(values, axis=0)
        return means, np.sqrt(variances)
    return values.mean(axis=0), values.std(axis=0)


def thinned(order: Labels, most: int) -> Labels:
    """At most so many entries of an order, evenly, its first and last among them."""
    if order.size <= most:
        return order
    return order[np.round(np.linspace(0, order.size - 1, most)).astype(np.intp)]


def apart(points: Floats, width: float = 0.16, height: float = 0.035) -> Labels:
    """Points whose names can be written without touching, in parts of the room that they take."""
    room = np.ptp(points, axis=0)
    places = points / np.where(room > 0.0, room, 1.0)
    kept: list[int] = []
    for i, place in enumerate(places):
        distance = np.abs(places[kept] - place)
        if not ((distance[:, 0] < width) & (distance[:, 1] < height)).any():
            kept.append(i)
    return np.array(kept, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Levels:
    """Weights of d features for K outputs, and the Q levels that they share."""

    names: NDArray[np.object_]
    weights: Floats  # d x K
    labels: Labels  # -1 for the zero group
    values: Floats  # Q x K
    sizes: Labels

    @property
    def n_zero(self) -> int:
        """Features without weight."""
        return int((self.labels < 0).sum())

    def members(self, label: int) -> Labels:
        """Features of a group."""
        return np.flatnonzero(self.labels == label)


def levels_of(model: Any, names: Sequence[str] | None = None) -> Levels:
    """Levels of a model of features."""
    estimator = require_kind(model, "features")
    labels = np.asarray(estimator.labels_)
    values = np.asarray(estimator.cluster_values_, dtype=np.float64)
    values = values.reshape(len(estimator.cluster_sizes_), -1)
    weights = np.where(labels[:, None] >= 0, values[labels], 0.0)
    return Levels(
        feature_names(model, names), weights, labels, values, np.asarray(estimator.cluster_sizes_)
    )


@dataclass(frozen=True, eq=False)
class Curve:
    """How good a model is for every number of groups."""

    counts: tuple[str, ...]  # as text, since a number of groups may be a mapping of blocks
    values: Floats  # for each count the best over all else that was searched
    deviations: Floats  # standard errors of the values
    chosen: int  # index of the number that was taken
    name: str  # what the values are
    larger_is_better: bool


def curve_of(found: Any) -> Curve | None:
    """The curve of a search, of a model that has made one, or None for one that has not."""
    if not isinstance(found, SearchResult | TaskSelection | CountSelection):
        found = search_of(found)
    if found is None:
        return None
    counts = tuple(_count_text(count) for count in found.n_clusters)
    name = found.scoring.removeprefix("neg_").replace("_", " ")
    if getattr(found, "criterion", "cv") != "cv":
        name = found.criterion.upper()
    is_gain = bool(found.scoring) and not found.scoring.startswith("neg_")
    about = name or "loss of the best expert, compared", is_gain
    if isinstance(found, CountSelection):
        values = -found.values if is_gain else found.values
        return Curve(counts, values, found.standard_errors, found.best_index, *about)
    n_counts, n_folds = len(counts), found.fold_scores.shape[-1]
    scores = found.fold_scores.reshape(n_counts, -1, n_folds)
    means = scores.mean(axis=-1)
    best = means.argmax(axis=1)
    # At the number that was taken, what was taken: the one-standard-error rule may pass the best.
    q, *others = found.best_index
    best[q] = np.ravel_multi_index(others, found.fold_scores.shape[1:-1])
    place = np.arange(n_counts), best
    values = means[place] if is_gain else -means[place]
    return Curve(counts, values, standard_errors(scores)[place], q, *about)


def search_of(model: Any) -> SearchResult | TaskSelection | CountSelection | None:
    """The search that a model has made, or None for one that has not."""
    estimator = final_estimator(model)
    for attribute in ("cv_results_", "selection_"):
        result = getattr(estimator, attribute, None)
        if isinstance(result, SearchResult | TaskSelection | CountSelection):
            return result
    return None


def most_groups(estimator: Any) -> float:
    """How many groups a fitted estimator could have."""
    if hasattr(estimator, "tasks_"):
        return len(estimator.tasks_)
    if hasattr(estimator, "experts_"):
        return len(estimator.classes_) - 1 if hasattr(estimator, "classes_") else np.inf
    return n_weights(estimator)


def grid_ends(model: Any, search: Any = None) -> list[Edge]:
    """Choices at the end of what was tried, where there may be better ones beyond it.

    The search is the one that the model has made, unless another is given.
    """
    found = search_of(model) if search is None else search
    return [] if found is None else edges(found, most_groups(final_estimator(model)))


def _count_text(count: Any) -> str:
    if count is None:
        return "no groups"
    if not isinstance(count, Mapping):
        return str(count)
    return ", ".join(f"{block}: {number}" for block, number in dict(count).items())


@dataclass(frozen=True, eq=False)
class Stage:
    """One solver: its name, the objective after each iteration, the seconds since it began."""

    solver: str
    objectives: Floats
    seconds: Floats


@dataclass(frozen=True, eq=False)
class Convergence:
    """How a fit came about: solvers in their order, and what is proved of the end."""

    stages: tuple[Stage, ...]
    other_units: tuple[Stage, ...]  # those that descend on something else, such as a likelihood
    certificate: Certificate | None
    message: str  # all of it in words

    @property
    def bound(self) -> float | None:
        """What is proved, if it is about what was descended on.

        It is not where the values of the groups were fitted anew with a smaller ridge.
        """
        if self.certificate is None or self.certificate.proves_little:
            return None
        last, objective = float(self.stages[-1].objectives[-1]), self.certificate.objective
        same = last <= objective + 1e-6 * abs(objective)
        return self.certificate.lower_bound if same else None


def convergence_of(model: Any) -> Convergence:
    """The steps of a fit, solver by solver."""
    kind_of(model)  # complains of what is no fitted model
    estimator = final_estimator(model)
    runs: list[list[Any]] = []
    for iteration in estimator.trace_:
        if not runs or iteration.number == 0 or iteration.solver != runs[-1][-1].solver:
            runs.append([])
        runs[-1].append(iteration)
    stages = []
    for run in runs:
        found = [(iteration.objective, iteration.seconds) for iteration in run]
        stages.append(Stage(run[0].solver, *np.array(found, dtype=np.float64).T))
    shared = [stage for stage in stages if stage.solver not in OTHER_UNITS]
    others = [stage for stage in stages if stage.solver in OTHER_UNITS]
    if not shared:
        shared, others = others, []
    certificate = getattr(estimator, "certificate_", None)
    return Convergence(tuple(shared), tuple(others), certificate, estimator.status_.message)


@dataclass(frozen=True, eq=False)
class ExpertLines:
    """Lines of experts along one feature, and the samples about them."""

    feature: str
    x: Floats  # values of the feature
    y: Floats  # targets less what the sample's expert makes of the other features
    labels: Labels  # expert of each sample
    slopes: Floats
    intercepts: Floats
    n_samples: int  # before some were drawn
    partial: bool  # whether there are other features


def expert_lines(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    feature: int | str | None = None,
    names: Sequence[str] | None = None,
    most: int = 2000,
) -> ExpertLines:
    """Lines of a regression by experts, along the feature in which they differ most.

    Samples are drawn evenly where there are more than ``most`` of them.
    """
    estimator = require_kind(model, "samples")
    experts = np.asarray(estimator.experts_)
    linear = loss_of(estimator).has_identity_link
    if experts.ndim != 2 or hasattr(estimator, "classes_") or not linear:
        raise ValueError(
            "Lines can be drawn for regressions with one output only, and no link. "
            'Choose kind="weights" instead.'
        )
    known = feature_names(model, names)
    target = np.asarray(y, dtype=np.float64).reshape(-1)
    rows = thinned(np.arange(target.size), most)
    sample, shown = prepared(model, X, rows), target[rows]
    matrix = check_array(sample, accept_sparse="csc")
    j = _feature_index(feature, known, experts, matrix)
    labels = estimator.assign(sample, shown)
    predicted = estimator.predict_experts(sample)[np.arange(rows.size), labels]
    x = np.asarray(matrix[:, [j]].toarray() if issparse(matrix) else matrix[:, j]).reshape(-1)
    intercepts = np.asarray(estimator.intercepts_, dtype=np.float64)
    return ExpertLines(
        feature=str(known[j]),
        x=x,
        y=shown - predicted + intercepts[labels] + x * experts[labels, j],
        labels=labels,
        slopes=experts[:, j],
        intercepts=intercepts,
        n_samples=target.size,
        partial=experts.shape[1] > 1,
    )


def _feature_index(
    feature: int | str | None, names: NDArray[np.object_], experts: Floats, X: Any
) -> int:
    """The feature asked for, or the one whose contributions differ most between experts."""
    if feature is None:
        return int(np.argmax(moments(X)[1] * experts.std(axis=0)))
    if isinstance(feature, str):
        if feature not in names:
            raise ValueError(
                f"There is no feature {feature!r}. Known are: {', '.join(names[:10])}."
            )
        return int(np.flatnonzero(names == feature)[0])
    if not -len(names) <= feature < len(names):
        raise ValueError(f"feature={feature} is out of range: there are {len(names)} features.")
    return int(feature) % len(names)


@dataclass(frozen=True, eq=False)
class TaskMap:
    """Tasks in the plane in which their predictors differ most."""

    names: NDArray[np.object_]
    points: Floats  # a row for each task
    labels: Labels
    centroids: Floats  # a row for each group
    shares: tuple[float, float]  # the part of the variance of the predictors along each axis


def task_map(model: Any) -> TaskMap:
    """Principal components of the predictors of tasks."""
    estimator = require_kind(model, "tasks")
    tasks = np.array([str(task) for task in estimator.tasks_], dtype=object)
    predictors = np.asarray(estimator.coef_, dtype=np.float64).reshape(tasks.size, -1)
    centroids = np.asarray(estimator.centroids_, dtype=np.float64)
    centroids = centroids.reshape(-1, predictors.shape[1])
    middle = predictors.mean(axis=0)
    _, lengths, axes = np.linalg.svd(predictors - middle, full_matrices=False)
    plane = np.vstack([axes, np.zeros((2, predictors.shape[1]))])[:2]
    shares = lengths**2 / (float((lengths**2).sum()) or 1.0)
    first, second = np.append(shares, [0.0, 0.0])[:2].tolist()
    return TaskMap(
        tasks,
        (predictors - middle) @ plane.T,
        np.asarray(estimator.labels_),
        (centroids - middle) @ plane.T,
        (first, second),
    )
