"""Relativities of a fitted model: effects of levels, and sums over the rows that have them.

With weights ``w`` of the levels of factor ``f``, shares ``p`` of its levels in the training weight
and effects ``e_fl = w_fl - sum_m p_fm w_fm``, the score of a row of levels ``l_f`` and numbers
``x_j`` is

    z = b + sum_f sum_m p_fm w_fm + sum_f e_f,l_f + sum_j w_j x_j
      = (b + sum_f sum_m p_fm w_fm + sum_f r_f) + sum_f (e_f,l_f - r_f) + sum_j w_j x_j

for any reference effects ``r_f``. The first bracket is the base value, the differences are
relativities; for a log link or for odds the exponentials of these.

Intervals are percentiles over resamples of ``w_fl - w_fr``, with the reference ``r`` of the same
resample: what moves both, such as the intercept, has no part in them.
"""

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from clustruct._typing import Floats
from clustruct.design import FactorDesign
from clustruct.estimators.columns.factors import FactorColumns, FactorLevels
from clustruct.estimators.intake import Samples, place_matrix, validate, weigh
from clustruct.estimators.offsets import attach_offset
from clustruct.losses import loss_of
from clustruct.results import Relativities, Relativity
from clustruct.results.intervals import bootstrap_interval
from clustruct.results.relativities import PER_UNIT, UNKNOWN

MEAN, MOST = "mean", "most"
# Nominal coverage of intervals.
LEVEL = 0.9


class Scale(NamedTuple):
    """What relativities are on: a name, and whether they multiply."""

    name: str
    multiplies: bool

    def back(self, scores: Any) -> Any:
        """Differences of scores on this scale; infinite where they are too large for it."""
        with np.errstate(over="ignore"):  # a base value far from all rows, as that of the year 0
            return np.exp(scores) if self.multiplies else scores


class Sums(NamedTuple):
    """Sums over rows for the levels of a factor, the last entry for rows of unknown levels.

    None where nothing is known.
    """

    exposure: Floats | None = None
    observed: Floats | None = None
    fitted: Floats | None = None

    def row(self, place: int) -> dict[str, float | None]:
        """The sums of a level, and their means."""
        exposure, observed, fitted = (None if mine is None else float(mine[place]) for mine in self)
        return {
            "exposure": exposure,
            "observed": observed,
            "fitted": fitted,
            "observed_mean": _ratio(observed, exposure),
            "fitted_mean": _ratio(fitted, exposure),
        }


def _ratio(part: float | None, whole: float | None) -> float | None:
    """One number over the other, None where there is nothing to divide."""
    return part / whole if part is not None and whole else None


def relativities_of(
    model: Any, X: Any, y: Any, offset: Any, sample_weight: Any, reference: Any
) -> Relativities:
    """The table of a fitted model, with sums over given rows or over the training rows."""
    columns = require_factors(model, "relativities")
    if X is not None:
        sums = _sums_of_rows(model, X, y, offset, sample_weight)
    else:
        given = {"y": y, "offset": offset, "sample_weight": sample_weight}
        if extra := [name for name, value in given.items() if value is not None]:
            raise ValueError(
                f"{extra[0]} was given without X. Give the rows that it belongs to as X, or leave "
                "it None for the training rows."
            )
        sums = [Sums(each.exposure, each.observed) for each in columns.factors]
    references = _check_reference(columns, reference)
    scale, rows, base = scale_of(model), [], float(model._offset[0])
    chosen: dict[str, Any] = {}
    ends = _ends(model, columns, references)
    *levels, numeric = columns.slices
    for factor, mine, at_levels in zip(columns.factors, sums, levels, strict=True):
        weights, labels = model._weights[at_levels, 0], model.labels_[at_levels].tolist()
        mean = float(factor.shares @ weights)
        place = references[factor.name]
        at = float(_importance(factor) @ weights if place is None else weights[place])
        if place is not None:
            chosen[factor.name] = factor.levels[place]
        base += at
        rows += _level_rows(factor, weights - mean, at - mean, labels, mine, scale, ends[at_levels])
    rows += _numeric_rows(columns, model, numeric.start, sums[0], scale, ends)
    return Relativities(
        rows,
        base=float(scale.back(base)),
        multiplies=scale.multiplies,
        scale=scale.name,
        references=chosen,
    )


def require_factors(model: Any, what: str) -> FactorColumns:
    """The factors of a model with one output; a complaint if it has none."""
    columns: FactorColumns | None = model.factors_
    if columns is None:
        raise ValueError(
            f"{what} needs a model of factors, and this one was fitted to numbers alone. Fit a "
            "data frame with columns of categories, or name columns in categorical_features or "
            "factors."
        )
    if model._weights.shape[1] > 1:
        raise ValueError(
            f"{what} needs one output, and this model has {model._weights.shape[1]}. Fit a model "
            "for each output, or for each class against the others."
        )
    return columns


def scale_of(model: Any) -> Scale:
    """The scale of relativities: predictions, odds of the second class, or scores."""
    loss = loss_of(model)
    if is_classifier(model):
        return Scale(loss.class_scale, loss.class_scale == "odds")
    return Scale("prediction", True) if loss.has_log_link else Scale(loss.number_scale, False)


# ---- Sums over rows


def with_training(model: Any, samples: Samples) -> FactorColumns:
    """The factors of a model, with exposure and targets of their levels in the training rows."""
    columns: FactorColumns = model.factors_
    weights = samples.total * samples.shares
    observed = weights * _values(model, samples.targets)
    design = cast(FactorDesign, samples.design)
    return columns.tallied(design, _exposure(model, weights, samples.offset), observed)


def _sums_of_rows(model: Any, X: Any, y: Any, offset: Any, sample_weight: Any) -> list[Sums]:
    """Sums over given rows, for each factor; without targets there is nothing observed."""
    if y is None:
        design = place_matrix(model, X)
        targets = np.ones(design.shape[0])
    else:
        design, targets = validate(model, X, y, reset=False)
    samples = weigh(design, targets, sample_weight, attach_offset(design, offset))
    weights = samples.shares * samples.total
    parts = {"exposure": _exposure(model, weights, samples.offset)}
    if y is not None:
        parts["observed"] = weights * _values(model, samples.targets)
    predicted = _predicted(model, samples.design, samples.offset)
    if predicted is not None:
        parts["fitted"] = weights * predicted
    placed = cast(FactorDesign, samples.design)
    return [
        Sums(**dict(zip(parts, sums.T, strict=True)))
        for sums in placed.tallies(np.column_stack(list(parts.values())))
    ]


def _exposure(model: Any, weights: Floats, offset: Floats | None) -> Floats:
    """Weights of rows, times the exponential of the offset where it multiplies predictions."""
    if offset is None or is_classifier(model) or not loss_of(model).has_log_link:
        return weights
    return weights * np.exp(offset.reshape(-1))


def _values(model: Any, targets: NDArray[Any]) -> Floats:
    """Targets as numbers: for two classes, one for the second."""
    if not is_classifier(model):
        return targets.astype(np.float64, copy=False).reshape(-1)
    if unknown := set(np.unique(targets).tolist()) - set(model.classes_.tolist()):
        raise ValueError(
            f"y holds {unknown.pop()!r}, which is no class of the model. Its classes are "
            f"{model.classes_.tolist()!r}."
        )
    return (targets == model.classes_[1]).astype(np.float64)


def _predicted(model: Any, design: Any, offset: Floats | None) -> Floats | None:
    """Predictions, for two classes the probability of the second; None if it is not known."""
    loss, scores = loss_of(model), model._scores(design, offset)
    if not is_classifier(model):
        predictions: Floats = loss.predictions(scores)[:, 0]
        return predictions
    if not loss.gives_probabilities:
        return None
    probabilities: Floats = loss.with_classes(2).probabilities(scores)[:, 1]
    return probabilities


# ---- References and rows


def _importance(factor: FactorLevels) -> Floats:
    """Share of each level in the training exposure; in the weight for models of older files."""
    known = factor.shares if factor.exposure is None else factor.exposure
    return known / known.sum()


def _check_reference(columns: FactorColumns, reference: Any) -> dict[str, int | None]:
    """The number of the reference level of each factor; None for the mean effect."""
    if isinstance(reference, str) and reference == MEAN:
        return {factor.name: None for factor in columns.factors}
    most: dict[str, int | None] = {
        factor.name: int(_importance(factor).argmax()) for factor in columns.factors
    }
    if reference is None:
        return most
    if not isinstance(reference, Mapping):
        raise ValueError(
            f"reference={reference!r:.80} is no choice of levels. Give a mapping from factors to "
            "levels, 'mean', or None for the levels with the most exposure."
        )
    factors = {factor.name: factor for factor in columns.factors}
    for name, level in reference.items():
        if name not in factors:
            raise ValueError(
                f"reference has {name!r}, which is no factor. Choose from {list(factors)!r:.200}."
            )
        most[name] = _place_of(factors[name], level)
    return most


def _place_of(factor: FactorLevels, level: Any) -> int:
    """Number of a level; numbers are found in bins."""
    if isinstance(level, float) and np.isnan(level):
        level = None
    if level in factor.levels:
        return factor.levels.index(level)
    if factor.edges is not None and isinstance(level, Real):
        return int(factor.edges.searchsorted(float(level), side="right"))
    raise ValueError(
        f"reference[{factor.name!r}] is {level!r:.80}, which is none of its levels. They are "
        f"{list(factor.levels)!r:.200}."
    )


def _level_rows(
    factor: FactorLevels,
    effects: Floats,
    reference: float,
    labels: Sequence[int],
    sums: Sums,
    scale: Scale,
    ends: Floats,
) -> list[Relativity]:
    """One row for each level, and one for unknown ones where there are any."""
    levels: list[Any] = [*factor.levels]
    groups: list[int | None] = [*labels]
    counted = sums.exposure is not None and sums.exposure.size > len(levels)
    if counted and sums.exposure[-1] > 0.0:  # type: ignore[index]
        levels, groups, effects = [*levels, UNKNOWN], [*groups, None], np.append(effects, 0.0)
        ends = np.vstack([ends, [np.nan, np.nan]])
    relative = scale.back(effects - reference)
    return [
        Relativity(
            factor=factor.name,
            level=level,
            kind=factor.kind,
            group=group,
            effect=float(effects[q]),
            relativity=float(relative[q]),
            **sums.row(q),
            **_interval(ends[q], scale),
        )
        for q, (level, group) in enumerate(zip(levels, groups, strict=True))
    ]


def _numeric_rows(
    columns: FactorColumns, model: Any, first: int, sums: Sums, scale: Scale, ends: Floats
) -> list[Relativity]:
    """One row for each numeric column, with the sums over all rows."""
    total = Sums(*(None if mine is None else mine.sum(keepdims=True) for mine in sums)).row(0)
    return [
        Relativity(
            factor=columns.names[place],
            level=PER_UNIT,
            kind="numeric",
            group=int(model.labels_[j]),
            effect=float(model._weights[j, 0]),
            relativity=float(scale.back(model._weights[j, 0])),
            **total,
            **_interval(ends[j], scale),
        )
        for j, place in enumerate(columns.numeric, start=first)
    ]


# ---- Intervals


def effect_ends(columns: FactorColumns, weights: Floats) -> dict[str, Floats]:
    """Ends of intervals for the effects of levels, by the weights (B, d) in each resample.

    They are less the effect of the usual reference, or less the mean, of the same resample. Weights
    of levels that a resample lacks are NaN.
    """
    return {
        name: np.column_stack(
            bootstrap_interval(
                _relative(columns, weights, _check_reference(columns, reference)),
                np.zeros(weights.shape[1]),
                LEVEL,
                None,
            )
        )
        for name, reference in ((MOST, None), (MEAN, MEAN))
    }


def _relative(
    columns: FactorColumns, weights: Floats, references: Mapping[str, int | None]
) -> Floats:
    """Weights (B, d) of levels less that of their reference; those of numbers as they are."""
    relative = np.array(weights)
    for factor, mine in zip(columns.factors, columns.slices, strict=False):
        own, place = weights[:, mine], references[factor.name]
        if place is None:
            importance = np.where(np.isnan(own), 0.0, _importance(factor))
            at = (np.nan_to_num(own) * importance).sum(axis=1) / importance.sum(axis=1)
        else:
            at = own[:, place]
        relative[:, mine] -= at[:, None]
    return relative


def _ends(model: Any, columns: FactorColumns, references: Mapping[str, int | None]) -> Floats:
    """Ends (d, 2) of intervals of the effects less the references; NaN where none are known."""
    known = None if model.stability_ is None else model.stability_.effects
    ends = np.full((columns.n_weights, 2), np.nan)
    if known is None:
        return ends
    *levels, numeric = columns.slices
    ends[numeric] = known[MOST][numeric]
    usual = _check_reference(columns, None)
    for factor, mine in zip(columns.factors, levels, strict=True):
        place = references[factor.name]
        if place in (None, usual[factor.name]):
            ends[mine] = known[MEAN if place is None else MOST][mine]
    return ends


def _interval(ends: Floats, scale: Scale) -> dict[str, float | None]:
    """The ends of an interval on the scale of relativities, None where they are not known."""
    lower, upper = (None if np.isnan(end) else float(scale.back(end)) for end in ends)
    return {"lower": lower, "upper": upper}
