"""The classes that a model file may name, and the checks of their objects' state.

The list is explicit: our estimators, results and column transformers, and those estimators of
scikit-learn whose fitted state is plain values. A file names our classes without their module, so
that a class may move; one that is renamed keeps its old name here.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, cast

import numpy as np
from sklearn.base import BaseEstimator

from clustruct.estimators.features.base import FeatureCluster
from clustruct.persistence.foreign import check_foreign, is_foreign, settle_state
from clustruct.persistence.shapes import check_fitted, check_record
from clustruct.results.scores import ScoreTable

_OWN = {
    f"clustruct.{name}": f"clustruct.{module}"
    for module, names in {
        "estimators.columns.factors": "Factor FactorColumns FactorLevels",
        "estimators.columns.transformers": (
            "DateToDays FilledText LevelEncoder LevelText MissingFlag WordsOfColumn WrittenDates "
            "WrittenNumbers"
        ),
        "estimators.features.models": "FeatureClusterClassifier FeatureClusterRegressor",
        "estimators.features.search_models": "FeatureClusterClassifierCV FeatureClusterRegressorCV",
        "estimators.samples.gate": "Gate",
        "estimators.samples.models": "SampleClusterClassifier SampleClusterRegressor",
        "estimators.samples.search_models": "SampleClusterClassifierCV SampleClusterRegressorCV",
        "estimators.tasks.base": "Prices",
        "estimators.tasks.entries": "Frame",
        "estimators.tasks.models": "TaskClusterClassifier TaskClusterRegressor",
        "estimators.tasks.search_models": "TaskClusterClassifierCV TaskClusterRegressorCV",
        "losses": (
            "GammaLoss HuberLoss LogisticLoss MultinomialLoss PoissonLoss QuantileLoss "
            "SquaredLoss TweedieLoss"
        ),
        "results.intervals": "GroupValues",
        "results.scores": "Price",
        "results": (
            "Certificate Clustering1D ClusteringRows CountSelection ExpertGroup FeatureGroup "
            "FeaturePath GateScore GroupDifference GroupInterval Iteration Projection "
            "QuantizedMatrix Relativity SearchResult Segmentation1D StabilityResult Status "
            "TaskGroup TaskSelection"
        ),
    }.items()
    for name in names.split()
}
_FOREIGN = {
    f"sklearn.{module}.{name}": f"sklearn.{module}"
    for module, names in {
        "compose": "ColumnTransformer TransformedTargetRegressor",
        "decomposition": "PCA TruncatedSVD",
        "discriminant_analysis": "LinearDiscriminantAnalysis QuadraticDiscriminantAnalysis",
        "dummy": "DummyClassifier DummyRegressor",
        "feature_extraction": "DictVectorizer",
        "feature_extraction.text": (
            "CountVectorizer HashingVectorizer TfidfTransformer TfidfVectorizer"
        ),
        "feature_selection": "VarianceThreshold",
        "frozen": "FrozenEstimator",
        "impute": "MissingIndicator SimpleImputer",
        "linear_model": "LinearRegression LogisticRegression Ridge RidgeClassifier",
        "model_selection": (
            "GroupKFold KFold LeaveOneGroupOut LeaveOneOut PredefinedSplit RepeatedKFold "
            "RepeatedStratifiedKFold ShuffleSplit StratifiedGroupKFold StratifiedKFold "
            "StratifiedShuffleSplit TimeSeriesSplit"
        ),
        "naive_bayes": "BernoulliNB ComplementNB GaussianNB MultinomialNB",
        "pipeline": "FeatureUnion Pipeline",
        "preprocessing": (
            "Binarizer FunctionTransformer LabelBinarizer LabelEncoder MaxAbsScaler MinMaxScaler "
            "Normalizer OneHotEncoder OrdinalEncoder PolynomialFeatures RobustScaler "
            "StandardScaler"
        ),
    }.items()
    for name in names.split()
}
_MODULES = {**_OWN, **_FOREIGN}
# Parameters that estimators have gained, with the value that older files stand for.
_ADDED = {
    "categorical_features": "from_dtype",
    "constraint": None,
    "criterion": "cv",
    "factors": None,
    "price": None,
    "prices": "auto",
    "prove": False,
    "rule": "fewest",
    "scoring": None,
    "tweedie_power": 1.5,
    "use_inputs": False,
    "quantile_level": 0.5,
    "quantile_smoothing": 0.05,
}
# Settings that would have a model write or read files, with the only value that is let in.
_HARMLESS: Mapping[str, Any] = {"memory": None, "input": "content"}


def _is_record(kind: type) -> bool:
    """Whether a class is its fields; those of estimators are their parameters only."""
    return dataclasses.is_dataclass(kind) and not issubclass(kind, BaseEstimator)


def _fields(kind: type) -> tuple[str, ...] | None:
    """The fields of a dataclass or a named tuple; None for other classes, such as estimators.

    Those that are not for files say so (``metadata={"in_files": False}``).
    """
    if _is_record(kind):
        fields = dataclasses.fields(kind)
        return tuple(field.name for field in fields if field.metadata.get("in_files", True))
    names: tuple[str, ...] | None = getattr(kind, "_fields", None)
    return names if issubclass(kind, tuple) else None


def name_of(kind: type) -> str | None:
    """The name of a class in model files; None if they must not hold it."""
    names = (name for name in _MODULES if name.endswith(f".{kind.__name__}"))
    return next((name for name in names if class_of(name) is kind), None)


def class_of(name: str) -> type:
    """The class of that name; ValueError if it is not on the list."""
    if name not in _MODULES:
        raise ValueError(f"it names the class {name!r:.80}, which no model file may hold")
    kind: type = getattr(import_module(_MODULES[name]), name.rpartition(".")[2])
    return kind


def state_of(value: Any) -> dict[str, Any]:
    """The attributes of an object."""
    names = _fields(type(value))
    return dict(vars(value)) if names is None else {name: getattr(value, name) for name in names}


def make(kind: type, state: Mapping[str, Any]) -> Any:
    """An object with that state, made without calling its constructor.

    Fields added to the class since the file was written get their defaults. The columns of a table
    of scores are derived from its checked attributes. Raises ValueError for an impossible state.
    """
    fields = _fields(kind)
    names: list[str] = getattr(kind, "_get_param_names", list)()
    added = {name: value for name, value in _ADDED.items() if name in names}
    if _is_record(kind):
        defaults = ((field.name, field.default) for field in dataclasses.fields(kind))
        known = ((name, value) for name, value in defaults if name in (fields or ()))
        added = {name: value for name, value in known if value is not dataclasses.MISSING}
    state = {**state, **{name: value for name, value in added.items() if name not in state}}
    if fields is not None:  # what was added later may stand anywhere
        state = {name: state[name] for name in (*fields, *state) if name in state}
    _check_state(kind, state, names if fields is None else fields, is_record=fields is not None)
    if fields is not None:
        check_record(kind, state)
    if is_foreign(kind):
        settle_state(state)
    if issubclass(kind, tuple):
        return tuple.__new__(kind, state.values())
    made: Any = (dict if issubclass(kind, dict) else object).__new__(kind)
    for name, value in state.items():
        object.__setattr__(made, name, value)  # also works for frozen dataclasses
    if isinstance(made, FeatureCluster) and made.factors_ is not None:
        _check_factors(made.factors_, state.get("n_features_in_"))
    check_fitted(made)
    check_foreign(made)
    if isinstance(made, ScoreTable):
        _fill_scores(made)
    if "vocabulary_" in state:
        _check_vocabulary(kind, state["vocabulary_"])
    return made


def _check_state(
    kind: type, state: Mapping[str, Any], needed: Sequence[str], *, is_record: bool
) -> None:
    """Refuse missing attributes, ones that would hide a method, and ones that touch files."""
    missing = sorted(set(needed) - set(state))
    if missing:
        raise ValueError(f"a {kind.__name__} in it has no {missing[0]!r}")
    if is_record and tuple(state) != needed:
        raise ValueError(f"a {kind.__name__} in it does not have the entries {needed}")
    for name in state:
        hidden = getattr(kind, name, None)
        data = isinstance(hidden, property) or callable(hidden)
        if not name.isidentifier() or name.startswith("__") or (data and name not in needed):
            raise ValueError(f"a {kind.__name__} in it has an attribute {name!r:.40}")
    for name, harmless in _HARMLESS.items():
        if name in needed and state[name] != harmless:
            raise ValueError(
                f"a {kind.__name__} has {name}={state[name]!r:.80}, which reads or writes files; "
                f"model files hold {name}={harmless!r} only"
            )


def _check_factors(factors: Any, n_columns: Any) -> None:
    """Check that the factors of a model fit together, and to its columns."""
    try:
        places = [*(factor.place for factor in factors.factors), *factors.numeric]
        if sorted(places) != list(range(len(factors.names))) or n_columns != len(places):
            raise ValueError("columns differ")
        for factor in factors.factors:
            if len(set(factor.levels)) < len(factor.levels):
                raise ValueError("a level twice")
            n_bins = len(factor.levels) - (None in factor.levels)
            good = factor.edges is None or factor.edges.shape in ((n_bins - 1,), (0,))
            known = (factor.shares, factor.exposure, factor.observed)
            shapes = {(each.dtype.kind, each.shape) for each in known if each is not None}
            if not good or shapes != {("f", (len(factor.levels),))}:
                raise ValueError("shapes differ")
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError("the factors of a model in it are impossible") from error


def _fill_scores(table: ScoreTable) -> None:
    """Derive the columns of a table of scores, if its attributes fit together."""
    scores, index = table.fold_scores, cast("Any", table.best_index)
    axes = [getattr(table, name) for name in type(table).axes]
    try:
        shape = tuple(map(len, axes))
        good = scores.dtype == np.float64 and scores.size > 0 and scores.shape[:-1] == shape
        within = (
            isinstance(i, int | np.integer) and 0 <= int(i) < length
            for i, length in zip(index, shape, strict=True)
        )
        if not good or not all(within):
            raise ValueError("shapes differ")
        table.fill()
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        raise ValueError(f"the scores of a {type(table).__name__} in it are impossible") from error


def _check_vocabulary(kind: type, vocabulary: Any) -> None:
    """Words must be numbered from zero, or columns would lie beyond the end of the matrix."""
    if not isinstance(vocabulary, dict) or {int(n) for n in vocabulary.values()} != set(
        range(len(vocabulary))
    ):
        raise ValueError(f"the words of a {kind.__name__} in it are not numbered from zero")
