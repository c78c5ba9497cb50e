"""Where the features of a model come from: the raw column of each, and what a unit of it changes.

The fitted steps before a model are read one after the other. Scalers, imputers, selections and
encoders of categories keep track of the raw column; a step that mixes columns, or bends them, ends
it. Names of features are never taken apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from sklearn.base import OneToOneFeatureMixin
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.feature_selection import SelectorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.impute import KNNImputer, MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)

from clustruct.estimators.columns.transformers import DateToDays, _ColumnTransform
from clustruct.inspection import factors_of, final_estimator, steps_before
from clustruct.results.relativities import shown_level

DIVIDING = (StandardScaler, RobustScaler, MaxAbsScaler)
IMPUTERS = (SimpleImputer, KNNImputer)


@dataclass(frozen=True)
class Origin:
    """Where a feature comes from.

    The kind says what the feature is of its column: "number", "date" (its days), "level" (whether
    it has one), "missing" (whether it is), "count" (of a word), "text" (a weighted word), or
    "other", something that has no unit.
    """

    column: str  # empty where several columns make the feature
    kind: str = "other"
    slope: float = float("nan")  # what a unit of the column, a day, a level adds to the feature
    level: str = ""
    base: str | None = None  # the level that has no feature, with which the others are compared
    imputed: bool = False  # whether missing values are filled before the model sees them

    def times(self, factor: float) -> "Origin":
        """The same after the feature has been multiplied."""
        return replace(self, slope=self.slope * float(factor))


OTHER = Origin("")
Origins = list[Origin]


def origins_of(model: Any) -> Origins:
    """The origin of every feature of a fitted model, or of a pipeline that ends in one.

    Levels of factors are features, and so are numeric columns.
    """
    factors = factors_of(model)
    if factors is not None:
        return [
            *(
                Origin(each.name, "level", 1.0, shown_level(level))
                for each in factors.factors
                for level in each.levels
            ),
            *(Origin(factors.names[place], "number", 1.0) for place in factors.numeric),
        ]
    n_features = int(final_estimator(model).n_features_in_)
    before = steps_before(model)
    first = final_estimator(model) if before is None else before
    names: Sequence[Any] | None = _of_input(first, "feature_names_in_")
    if names is None:
        width = n_features if before is None else _of_input(before, "n_features_in_")
        names = [""] if width is None else [f"x{j}" for j in range(int(width))]  # or texts
    raw = [Origin(str(name), "number", 1.0) for name in names]
    return raw if before is None else _counted(_after(before, raw), n_features)


def _of_input(step: Any, name: str) -> Any:
    """What a fitted step knows of its input, or None.

    Of a union any part knows it: scikit-learn asks the first one, which may be dropped.
    """
    if isinstance(step, Pipeline):
        return _of_input(step.steps[0][1], name)
    if isinstance(step, FeatureUnion):
        told = (_of_input(part, name) for _, part in step.transformer_list)
        return next((each for each in told if each is not None), None)
    return getattr(step, name, None)


def _counted(found: Origins | None, count: int) -> Origins:
    """Origins, if they are as many as there must be; else features of unknown origin."""
    return found if found is not None and len(found) == count else [OTHER] * count


def _after(step: Any, given: Origins) -> Origins | None:
    """Origins of what a fitted step makes of columns; None if not even their number is known."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return given
    if isinstance(step, str):
        return []  # dropped
    for kinds, follow in FOLLOWED:
        if isinstance(step, kinds):
            return follow(step, given)
    if isinstance(step, OneToOneFeatureMixin):
        return [replace(OTHER, column=origin.column) for origin in given]
    return _unknown(step)


def _unknown(step: Any) -> Origins | None:
    try:
        return [OTHER] * len(step.get_feature_names_out())
    except (AttributeError, ValueError):
        return None


# ---- Steps made of others.


def _after_pipeline(pipeline: Pipeline, given: Origins) -> Origins | None:
    found: Origins | None = given
    for _, step in pipeline.steps:
        if found is None:
            count = getattr(step, "n_features_in_", None)
            if count is None:
                return None
            found = [OTHER] * int(count)
        found = _after(step, found)
    return found


def _after_columns(columns: ColumnTransformer, given: Origins) -> Origins | None:
    n_features = max((place.stop for place in columns.output_indices_.values()), default=0)
    found = [OTHER] * n_features
    for name, step, _ in columns.transformers_:
        place = columns.output_indices_[name]
        if place.stop > place.start:
            mine = [given[j] for j in columns._transformer_to_input_indices[name]]
            found[place] = _counted(_after(step, mine), place.stop - place.start)
    return found


def _after_union(union: FeatureUnion, given: Origins) -> Origins | None:
    parts = [_after(step, given) for _, step in union.transformer_list]
    known = [part for part in parts if part is not None]
    return None if len(known) < len(parts) else list(chain.from_iterable(known))


# ---- Steps that keep the column.


def _divided(scaler: Any, given: Origins) -> Origins:
    scale = getattr(scaler, "scale_", None)
    if scale is None:
        return given
    return [origin.times(1.0 / s) for origin, s in zip(given, scale, strict=True)]


def _imputed(imputer: Any, given: Origins) -> Origins | None:
    kept = [replace(origin, imputed=True) for origin in given]
    statistics = getattr(imputer, "statistics_", None)
    if statistics is not None and not imputer.keep_empty_features:
        known = [value == value for value in statistics]  # NaN differs from itself
        kept = [origin for origin, there in zip(kept, known, strict=True) if there]
    indicator = getattr(imputer, "indicator_", None)
    return kept if indicator is None else kept + _missing(indicator, given)


def _missing(indicator: MissingIndicator, given: Origins) -> Origins:
    return [Origin(given[j].column, "missing", 1.0) for j in indicator.features_]


def _worded(vectorizer: Any, given: Origins) -> Origins | None:
    found = _unknown(vectorizer)
    count = len(found) if found is not None else int(getattr(vectorizer, "n_features", 0))
    column = given[0].column if given else ""
    counted = type(vectorizer) is CountVectorizer and not vectorizer.binary
    return [Origin(column, "count", 1.0) if counted else Origin(column, "text")] * count


def _encoded(encoder: OneHotEncoder, given: Origins) -> Origins:
    found: Origins = []
    for number, (origin, categories) in enumerate(zip(given, encoder.categories_, strict=True)):
        dropped = None if encoder.drop_idx_ is None else encoder.drop_idx_[number]
        levels, base = _levels(categories, _infrequent(encoder, number), dropped)
        if origin.slope != 1.0:  # levels of what is no raw column
            found += [OTHER] * len(levels)
            continue
        found += [Origin(origin.column, "level", 1.0, level, base) for level in levels]
    return found


def _infrequent(encoder: OneHotEncoder, number: int) -> set[int]:
    """Which categories of a column share a feature, because they are rare."""
    rare = getattr(encoder, "infrequent_categories_", None)
    if rare is None or rare[number] is None:
        return set()
    known = [_level(category) for category in encoder.categories_[number]]
    return {known.index(_level(category)) for category in rare[number]}


def _levels(categories: Any, rare: set[int], dropped: int | None) -> tuple[list[str], str | None]:
    """Levels with a feature each, in order, and the one without."""
    every = {p: _level(category) for p, category in enumerate(categories) if p not in rare}
    if rare:
        every[dropped if dropped in rare else min(rare)] = "other"
    base = None if dropped is None else every.pop(dropped)
    return list(every.values()), base


def _level(category: Any) -> str:
    return "missing" if category is None or category != category else str(category)


FOLLOWED: tuple[tuple[Any, Any], ...] = (
    (FrozenEstimator, lambda step, given: _after(step.estimator, given)),
    (Pipeline, _after_pipeline),
    (ColumnTransformer, _after_columns),
    (FeatureUnion, _after_union),
    (DIVIDING, _divided),
    (MinMaxScaler, lambda step, given: list(map(Origin.times, given, step.scale_))),
    (IMPUTERS, _imputed),
    (MissingIndicator, _missing),
    (SelectorMixin, lambda step, given: [given[j] for j in step.get_support(indices=True)]),
    (FunctionTransformer, lambda step, given: given if step.func is None else _unknown(step)),
    (DateToDays, lambda step, given: [replace(origin, kind="date") for origin in given]),
    (_ColumnTransform, lambda step, given: given),  # reads a column, as numbers or as text
    ((CountVectorizer, HashingVectorizer), _worded),
    (OneHotEncoder, _encoded),
)
