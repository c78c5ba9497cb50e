"""Refits of a fitted model to resamples of its samples, by weights: ``X`` is not copied."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier

from clustruct._interrupts import asked
from clustruct._threads import one_thread
from clustruct._typing import Counts, Floats, Labels
from clustruct.arrays import to_host
from clustruct.design import load
from clustruct.estimators.features import resamples as features
from clustruct.estimators.intake import place_matrix
from clustruct.estimators.samples import resamples as samples
from clustruct.estimators.search.engine import in_processes
from clustruct.estimators.tasks import resamples as tasks
from clustruct.inspection import (
    final_estimator,
    kind_of,
    search_of,
    steps_before,
    with_final_estimator,
)
from clustruct.results.stability import ABSENT
from clustruct.trust.given import Sureness, of_features, of_samples, of_tasks

# Shares of the resamples for each process: with more, their preparation takes longer; with fewer,
# Ctrl-C keeps less.
SHARES = 8


class Refit(NamedTuple):
    """The groups of a refit.

    labels (m,): the group of each feature, sample or task.
    weights: of each feature (m, K); for experts and groups of tasks, of each of these (Q, P).
    intercepts: (1, K); for experts and groups of tasks (Q, K).
    """

    labels: Labels
    weights: Floats
    intercepts: Floats

    @property
    def rows(self) -> Floats:
        """Weights and intercepts of each group, for experts and groups of tasks."""
        return np.column_stack([self.weights, self.intercepts])


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted model with the samples that it was fitted to, as its last step sees them.

    anew: whether a search chooses anew on each resample, or keeps what it has chosen.
    """

    model: Any
    estimator: Any
    kind: str
    X: Any
    y: Any
    sample_weight: NDArray[Any] | None
    given: dict[str, Any]
    anew: bool = True

    @classmethod
    def of(
        cls,
        model: Any,
        X: Any,
        y: ArrayLike,
        tasks: ArrayLike | None,
        sample_weight: ArrayLike | None,
        offset: ArrayLike | None,
        anew: bool = True,
    ) -> "Fitted":
        """The steps of a pipeline before the model stay as they were fitted."""
        kind, estimator, before = kind_of(model), final_estimator(model), steps_before(model)
        given = {"tasks": tasks, "offset": offset}
        if kind != "tasks" and tasks is not None:
            raise ValueError(
                f"tasks was given, but {type(estimator).__name__} groups {kind}. Leave it out."
            )
        if kind == "tasks" and tasks is None and estimator._layout == "rows":
            raise ValueError("tasks is missing: the model was fitted with it. Give it here, too.")
        if estimator.has_offset_ and offset is None:
            raise ValueError("offset is missing: the model was fitted with one. Give it here, too.")
        weights = None if sample_weight is None else np.asarray(load(sample_weight), np.float64)
        return cls(
            model,
            estimator,
            kind,
            X if before is None else before.transform(X),
            y,
            weights,
            {name: value for name, value in given.items() if value is not None},
            anew,
        )

    @property
    def strata(self) -> Labels:
        """Numbers of classes, tasks or both: resamples have all of them."""
        y = np.asarray(load(self.y))
        codes = np.zeros(y.shape[0], dtype=np.intp)
        columns = [self.given["tasks"]] if "tasks" in self.given else []
        if is_classifier(self.estimator) and y.ndim == 1:
            columns.append(y)
        for column in columns:
            mine = np.unique(np.asarray(load(column)), return_inverse=True)[1].reshape(-1)
            codes = np.unique(codes * (mine.max() + 1) + mine, return_inverse=True)[1].reshape(-1)
        return codes

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Which samples have weight."""
        n = np.asarray(load(self.y)).shape[0]
        return np.ones(n, dtype=bool) if self.sample_weight is None else self.sample_weight > 0.0

    @property
    def sureness(self) -> Sureness:
        """How sure the values of the groups are, given the groups."""
        if self.kind == "tasks":
            return of_tasks(self.estimator)
        of = of_features if self.kind == "features" else of_samples
        offset = self.given.get("offset")
        return of(self.estimator, self.X, self.y, self.sample_weight, offset)

    @property
    def blocks(self) -> Labels | None:
        """Number of the block or factor that each feature shares weights in; None without."""
        return features.blocks_of(self.estimator) if self.kind == "features" else None

    @property
    def groups(self) -> Refit:
        """Those of the model itself."""
        return _groups_of(self.estimator, self.kind)

    def refits(self, parts: Sequence[Counts], n_jobs: int | None) -> Iterator[Refit]:
        """The groups of a refit to each resample, in their order."""
        n_workers = min(effective_n_jobs(n_jobs), len(parts))
        if n_workers == 1 or not place_matrix(self.estimator, self.X).on_host:
            yield from self._in_turn(parts)
            return
        n_shares = min(len(parts), SHARES * n_workers)
        bounds = np.linspace(0, len(parts), n_shares + 1).astype(int)
        shares = [parts[first:last] for first, last in pairwise(bounds)]
        for found in in_processes([partial(_all_of, self, mine) for mine in shares], n_workers):
            yield from found

    def _in_turn(self, parts: Sequence[Counts]) -> Iterator[Refit]:
        rows = self.X, self.y, self.sample_weight, parts
        with one_thread():  # the same bits for any number of jobs
            if self.anew and search_of(self.estimator) is not None:
                for counts in parts:
                    asked()
                    yield self._aligned(self.fitted_to(counts))
            elif self.kind == "features":
                for solution in features.refitted(self.estimator, *rows, **self.given):
                    point = solution.point
                    yield Refit(solution.labels, point.W, point.intercept[None])
            else:
                for model in ROOMS[self.kind].refitted(self.estimator, *rows, **self.given):
                    yield _groups_of(model, self.kind)

    def regrouped(self, labels: Labels) -> Any:
        """The model with given groups and their best values."""
        rows = self.X, self.y, self.sample_weight, labels
        with one_thread():
            found = ROOMS[self.kind].regrouped(self.estimator, *rows, **self.given)
        return with_final_estimator(self.model, found)

    def fitted_to(self, counts: Counts) -> Any:
        """An unfitted copy of the model, fitted to a resample."""
        model = clone(self.estimator).set_params(verbose=0, callback=None)
        return model.fit(self.X, self.y, sample_weight=self.weighed(counts), **self.given)

    def weighed(self, counts: Counts) -> Floats:
        """Weights of the samples in a resample."""
        weights = counts.astype(np.float64)
        return weights if self.sample_weight is None else weights * self.sample_weight

    def _aligned(self, model: Any) -> Refit:
        """The groups of a refit, its levels in the order of this model's.

        Weights of levels that it lacks have no meaning.
        """
        found = _groups_of(model, self.kind)
        if self.kind != "features" or self.estimator.factors_ is None:
            return found
        here = {name: k for k, name in enumerate(model.factors_.weight_names)}
        at = np.array([here.get(name, -1) for name in self.estimator.factors_.weight_names])
        labels = np.where(at < 0, ABSENT, found.labels[at])
        return Refit(labels, found.weights[at], found.intercepts)


# Where refits of each kind of model are made.
ROOMS: dict[str, Any] = {"features": features, "samples": samples, "tasks": tasks}


def _all_of(fitted: Fitted, parts: Sequence[Counts]) -> list[Refit]:
    """The refits of some resamples, for another process."""
    return list(fitted._in_turn(parts))


def _groups_of(estimator: Any, kind: str) -> Refit:
    """Labels and values of a fitted model."""
    labels = np.asarray(load(estimator.labels_))
    if kind == "features":
        return Refit(labels, to_host(estimator._weights), np.atleast_2d(estimator._offset))
    if kind == "samples":
        return Refit(labels, estimator._W.reshape(estimator.n_clusters_, -1), estimator._b)
    centroids, intercepts = to_host(estimator.centroids_), to_host(estimator.centroid_intercepts_)
    return Refit(labels, centroids, intercepts[:, None])
