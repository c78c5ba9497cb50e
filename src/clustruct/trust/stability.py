"""Would the groups come again: a model is refitted to resamples of its samples."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from clustruct._arguments import as_count
from clustruct._interrupts import keeping, next_part
from clustruct._progress import counting, shown
from clustruct._typing import Counts, Floats, Labels
from clustruct.estimators.features.relativities import effect_ends
from clustruct.inspection import feature_names, outputs_of
from clustruct.results.intervals import GroupValues
from clustruct.results.stability import ABSENT, StabilityResult
from clustruct.trust.agreement import Agreement, agreement
from clustruct.trust.consensus import consensus, threshold
from clustruct.trust.parts import BOOTSTRAP, SUBSAMPLE, draw_parts
from clustruct.trust.refits import Fitted, Refit

# Resamples that Ctrl-C keeps: firmness is known to 0.1 then.
ENOUGH = 10
# What a search does on each resample.
ANEW, KEPT = "anew", "kept"


def stability(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    tasks: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    n_resamples: int = 100,
    scheme: str = SUBSAMPLE,
    search: str = ANEW,
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = None,
    verbose: int | bool = 0,
) -> StabilityResult:
    """Refit a model to resamples of its samples, and compare the groups.

    Resamples are weights of the samples: ``X`` is neither copied nor moved. Classes and tasks are
    resampled one by one, so that none is lost. A model is refitted from its own weights or groups,
    and by a short search that knows nothing of these; the better fit counts. A search (an estimator
    whose name ends in ``CV``) chooses anew on each resample, unless told otherwise. The steps of a
    pipeline before the model stay as they were fitted.

    The model keeps a summary as `stability_`: its method ``clusters`` shows how firm each group is,
    and model files hold it. A new fit forgets it.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted model, or a pipeline or search of scikit-learn that ends in one.
    X : array-like of shape (n_samples, n_features)
        The samples that it was fitted to.
    y : array-like
        Their targets.
    tasks : array-like of shape (n_samples,), default=None
        The task of each sample, as in `fit`.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples, as in `fit`.
    offset : array-like of shape (n_samples,), default=None
        Numbers that are added to the scores, as in `fit`.
    n_resamples : int, default=100
        Number of resamples.
    scheme : {"subsample", "bootstrap"}, default="subsample"
        Complementary halves of the samples, or as many samples drawn with replacement. Halves are
        the harder test; intervals need the bootstrap.
    search : {"anew", "kept"}, default="anew"
        What a search (an estimator whose name ends in ``CV``) does on each resample: choose anew,
        which tells how sure the number of groups is and takes as long as so many searches, or keep
        the number of groups and the strengths that it has chosen, which takes as long as a plain
        model. Other models have nothing to choose.
    n_jobs : int, default=None
        Number of parallel jobs, as in joblib. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the resamples.
    verbose : int or bool, default=0
        Whether to tell on standard error, now and then, how many resamples are done.

    Returns
    -------
    StabilityResult
        How firm each group is, and each feature, sample or task in it.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_features(200, 12, 3, random_state=0)
    >>> model = cs.FeatureClusterRegressor(3).fit(problem.X, problem.y)
    >>> found = cs.stability(model, problem.X, problem.y, n_resamples=20, random_state=0)
    >>> found.group_firmness.round(2)
    array([1., 1., 1.])
    """
    if scheme not in (SUBSAMPLE, BOOTSTRAP):
        raise ValueError(f"scheme={scheme!r} is not known. Choose 'subsample' or 'bootstrap'.")
    if search not in (ANEW, KEPT):
        raise ValueError(f"search={search!r} is not known. Choose 'anew' or 'kept'.")
    n_resamples = as_count(n_resamples, "n_resamples", 2)
    fitted = Fitted.of(model, X, y, tasks, sample_weight, offset, search == ANEW)
    seed = int(check_random_state(random_state).randint(2**31))
    parts = draw_parts(scheme, n_resamples, fitted.strata, fitted.kept, seed)
    reference = fitted.groups
    refits, interrupted = _refits(fitted, parts, n_jobs, verbose)
    labels = np.stack([refit.labels for refit in refits])
    labels = labels.astype(np.min_scalar_type(-max(3, int(labels.max()) + 1)))
    found = agreement(reference.labels, labels)
    sizes = np.array([np.unique(mine[mine >= 0]).size for mine in labels])
    # The score compares pairs inside and between groups; of one group only resamples can tell.
    one = fitted.blocks is None and np.median(sizes) <= 1.0
    counts = range(0) if one else range(2, int(sizes.max()) + 1)
    agreed = consensus(labels, counts, seed, fitted.blocks)
    groups: Labels = np.unique(reference.labels)
    result = StabilityResult(
        kind=fitted.kind,
        scheme=scheme,
        names=_names(model, fitted),
        groups=groups,
        model_labels=reference.labels,
        firmness=found.firmness,
        group_firmness=np.array(
            [np.nanmean(found.firmness[reference.labels == label]) for label in groups]
        ),
        together=found.together,
        n_clusters=sizes,
        consensus_labels=agreed.labels,
        consensus_scores=agreed.scores,
        threshold=threshold(labels, seed),
        labels=labels,
        effects=_effects(fitted, refits) if scheme == BOOTSTRAP else None,
        values=_values(model, fitted, refits, found) if scheme == BOOTSTRAP else None,
        weights=_weights(fitted, refits) if scheme == BOOTSTRAP else None,
        interrupted=interrupted,
        fitted=fitted,
    )
    fitted.estimator.stability_ = result.summary()
    return result


def _refits(
    fitted: Fitted, parts: Sequence[Counts], n_jobs: int | None, verbose: int | bool
) -> tuple[list[Refit], bool]:
    """The refits to all resamples, or those before Ctrl-C if they are enough, and which it is."""
    refits: list[Refit] = []
    found = fitted.refits(parts, n_jobs)
    with keeping() as watch, shown(verbose), counting("resamples", len(parts)) as count:
        try:
            while (refit := next_part(found)) is not None:
                refits.append(refit)
                if len(refits) >= ENOUGH:
                    watch.hold()
                count.tick()
        except KeyboardInterrupt:
            if len(refits) < ENOUGH or not watch.heed():
                raise
    if watch.came:
        warnings.warn(
            f"Ctrl-C ended the resampling after {len(refits)} of {len(parts)} resamples. The "
            "result is about these.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return refits, len(refits) < len(parts)


def _names(model: Any, fitted: Fitted) -> tuple[str, ...] | None:
    """Names of what is grouped; samples have none."""
    if fitted.kind == "features":
        return tuple(map(str, feature_names(model)))
    return tuple(map(str, fitted.estimator.tasks_)) if fitted.kind == "tasks" else None


def _weights(fitted: Fitted, refits: list[Refit]) -> Floats | None:
    """Weights of the features in each resample."""
    if fitted.kind != "features":
        return None
    return np.stack(
        [np.where(refit.labels[:, None] == ABSENT, np.nan, refit.weights) for refit in refits]
    )


def _effects(fitted: Fitted, refits: list[Refit]) -> dict[str, Floats] | None:
    """Intervals for the effects of levels, for models of factors with one output."""
    weights = _weights(fitted, refits)
    if weights is None or weights.shape[2] > 1 or fitted.estimator.factors_ is None:
        return None
    return effect_ends(fitted.estimator.factors_, weights[:, :, 0])


def _values(model: Any, fitted: Fitted, refits: list[Refit], found: Agreement) -> GroupValues:
    """Values of the groups in each resample, with standard errors given the groups."""
    reference = fitted.groups
    labels = np.unique(reference.labels)
    rows: tuple[int | str, ...] = tuple(labels.tolist())
    if fitted.kind == "features":
        # The mean weight of a group's features, wherever these are in a resample.
        members = [reference.labels == label for label in labels]
        resampled = np.stack(
            [[_mean_of_present(refit, mine) for mine in members] for refit in refits]
        )
        bases = np.stack([refit.intercepts for refit in refits])
        resampled = np.concatenate([resampled, bases], axis=1)
        rows = (*rows, "intercept")
    else:
        resampled = np.stack(
            [_matched(refit, mine) for refit, mine in zip(refits, found.matched, strict=True)]
        )
    return GroupValues(rows, _columns(model, fitted), resampled, *fitted.sureness)


def _mean_of_present(refit: Refit, members: NDArray[np.bool_]) -> Floats:
    """Mean weights of the members that a resample has; NaN if it has none."""
    present = members & (refit.labels != ABSENT)
    if not present.any():
        return np.full(refit.weights.shape[1], np.nan)
    return np.asarray(refit.weights[present].mean(axis=0))


def _matched(refit: Refit, labels: Labels) -> Floats:
    """Weights and intercepts of the groups of a resample, NaN for those that have no match."""
    rows = np.vstack([refit.rows, np.full(refit.rows.shape[1], np.nan)])
    return rows[np.where(labels < 0, -1, labels)]


def _columns(model: Any, fitted: Fitted) -> tuple[str, ...]:
    """What the values of a group are for: outputs, or features and the intercept."""
    outputs = outputs_of(model).names
    if fitted.kind == "features":
        return outputs
    names = tuple(map(str, feature_names(model)))
    if fitted.kind == "tasks" or len(outputs) == 1:
        return (*names, "intercept")
    each = [*names, "intercept"]
    return tuple(f"{name}, {output}" for name in each for output in outputs)
