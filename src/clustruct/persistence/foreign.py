"""Whether the parts of scikit-learn's estimators in a model file fit together.

Their code takes fitted attributes as they are, and hands some of them to compiled code as numbers
of columns. Parameters are checked as `fit` would, attributes by a table as in `shapes`.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import sklearn
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import TfidfTransformer

from clustruct.estimators.common import ClusterModel
from clustruct.persistence.shapes import are_plain, check_entries, checked
from clustruct.persistence.trial import try_out

# Fitted attributes; those whose entry begins with a question mark may be missing or None.
_ATTRIBUTES: dict[str, dict[str, str]] = {
    "StandardScaler": {"mean_": "?floats d", "scale_": "?floats d", "var_": "?floats d"},
    "RobustScaler": {"center_": "?floats d", "scale_": "?floats d"},
    "MaxAbsScaler": {"scale_": "floats d", "max_abs_": "floats d"},
    "MinMaxScaler": {"scale_": "floats d", "min_": "floats d"},
    "SimpleImputer": {"statistics_": "values d"},
    "TfidfTransformer": {"idf_": "?floats d"},
    "PCA": {
        "components_": "floats p,d",
        "mean_": "?floats d",
        "explained_variance_": "floats p",
        "n_components_": "integer p",
    },
    "TruncatedSVD": {"components_": "floats p,d"},
    "LogisticRegression": {"coef_": "floats k,d", "intercept_": "floats k", "classes_": "values c"},
    "LinearRegression": {"coef_": "floats d k,d", "intercept_": "float | floats k"},
    "Ridge": {"coef_": "floats d k,d", "intercept_": "float | floats k"},
    "GaussianNB": {
        "theta_": "floats c,d",
        "var_": "floats c,d",
        "class_prior_": "floats c",
        "classes_": "values c",
    },
    "ColumnTransformer": {"sparse_output_": "truth", "verbose_feature_names_out": "truth | text"},
    "OneHotEncoder": {"_infrequent_enabled": "truth"},
}
# Attributes of these types, where they are.
_TYPES: dict[str, type] = {
    "_fill_dtype": np.dtype,
    "_fit_dtype": np.dtype,
    "_sklearn_output_config": dict,
    "_tfidf": TfidfTransformer,
    "_transformer_to_input_indices": dict,
    "categories_": list,
    "output_indices_": dict,
}
# Where compositions hold their parts.
_STEPS = {
    "Pipeline": ("steps",),
    "ColumnTransformer": ("transformers", "transformers_"),
    "FeatureUnion": ("transformer_list",),
}
_WORDS = ("drop", "passthrough")  # in place of a transformer
_FILLS_BY_TYPE = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8)


def is_foreign(kind: type) -> bool:
    """Whether a class is one of scikit-learn's estimators, or a transformer that extends one."""
    return issubclass(kind, BaseEstimator) and not issubclass(kind, ClusterModel)


def settle_state(state: dict[str, Any]) -> None:
    """Change what a transformer of a file may not decide, and add what its release did not write.

    It runs in this process, however many processes the file asks for. Imputers need a type of what
    they fill in since scikit-learn 1.8: that of the values they were fitted to.
    """
    if state.get("n_jobs") not in (None, 1):
        state["n_jobs"] = None
    if "_fit_dtype" in state and _FILLS_BY_TYPE:
        state.setdefault("_fill_dtype", state["_fit_dtype"])


def check_foreign(model: Any) -> None:
    """Refuse an estimator of scikit-learn, or one that extends it, that cannot be used."""
    if is_foreign(type(model)):
        checked(model, lambda: _check(model, vars(model)))
        checked(model, lambda: try_out(model))


def _check(model: Any, state: Mapping[str, Any]) -> None:
    kinds = type(model).__mro__
    name = next(kind.__name__ for kind in kinds if kind.__module__.startswith("sklearn."))
    if hasattr(model, "_parameter_constraints"):  # compositions have none
        model._validate_params()
    for attribute in _TYPES.keys() & state.keys():
        if not isinstance(state[attribute], _TYPES[attribute]):
            raise ValueError(f"{attribute} is a {type(state[attribute]).__name__}")
    if name in _STEPS:
        _check_steps(name, state)
    if not isinstance(state.get("dtype", float), type | np.dtype):
        raise ValueError(f"dtype is {state['dtype']!r:.40}")
    if name == "TfidfVectorizer" and "vocabulary_" in state:
        _check_words(state)
    if "n_features_in_" not in state:
        return
    entries = {"n_features_in_": "integer d", **_ATTRIBUTES.get(name, {})}
    needed = {name for name, entry in entries.items() if not entry.startswith("?")}
    if missing := sorted(needed - state.keys()):
        raise ValueError(f"it has no {missing[0]}")
    if "feature_names_in_" in state:
        entries["feature_names_in_"] = "names d"
    check_entries(state, entries, {})
    if name == "ColumnTransformer":
        _check_columns(state)
    if "categories_" in state:
        _check_categories(state["categories_"], int(state["n_features_in_"]))
    if name == "OneHotEncoder":
        _check_one_hot(model, state)


def _check_words(state: Mapping[str, Any]) -> None:
    """The frequencies of words are those of its vocabulary."""
    tfidf = state["_tfidf"]
    known = getattr(tfidf, "n_features_in_", None)
    if known != len(state["vocabulary_"]):
        raise ValueError(f"it has frequencies of {known} words")


def _check_steps(kind: str, state: Mapping[str, Any]) -> None:
    """Steps of a pipeline or of columns are names and transformers; the last one may predict."""
    for name in _STEPS[kind]:
        steps = state.get(name, [])
        if not isinstance(steps, list | tuple) or (name == "steps" and not steps):
            raise ValueError(f"{name} is a {type(steps).__name__}, or empty")
        for place, (title, part, *_) in enumerate(steps):
            known = isinstance(part, str) and part in _WORDS
            known |= part is None and kind == "Pipeline"
            last = name == "steps" and place == len(steps) - 1
            known |= hasattr(part, "get_params") and (last or hasattr(part, "transform"))
            if not isinstance(title, str) or not known:
                raise ValueError(f"{name} has a step {title!r:.40}: {part!r:.40}")


def _check_columns(state: Mapping[str, Any]) -> None:
    """Each transformer has columns that there are, as many as it was fitted to."""
    places, n_columns = state["_transformer_to_input_indices"], int(state["n_features_in_"])
    for name, transformer, columns in state["transformers_"]:
        mine = places[name]
        if not all(_is_place(i, n_columns) for i in mine):
            raise ValueError(f"columns of {name!r:.40} are not among those that there are")
        needed = 1 if isinstance(columns, str | int) else len(mine)
        if len(mine) != getattr(transformer, "n_features_in_", needed) or len(mine) != needed:
            raise ValueError(f"{name!r:.40} has {len(mine)} columns")
    _, _, rest = state["_remainder"]
    if not isinstance(rest, list) or not isinstance(state["_columns"], list):
        raise ValueError("its columns are not listed")


def _is_place(value: Any, count: int) -> bool:
    """Whether a value is one of the first ``count`` places; truths are no places."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and 0 <= value < count


def _check_categories(categories: list[Any], n_columns: int) -> None:
    """Categories of each column are different; numbers ascend, as the search for them assumes."""
    if len(categories) != n_columns:
        raise ValueError(f"it has categories of {len(categories)} columns")
    for each in categories:
        if not isinstance(each, np.ndarray) or each.ndim != 1:
            raise ValueError("the categories of a column are no array")
        if not are_plain(each):
            raise ValueError("a category is neither text nor a number")
        if each.dtype.kind == "O":
            distinct = len(set(each.tolist())) == each.size
        elif each.dtype.kind == "f":
            distinct = bool((np.diff(each[: each.size - np.isnan(each).sum()]) > 0).all())
        else:
            distinct = bool((each[1:] > each[:-1]).all())
        if not distinct:
            raise ValueError("the categories of a column are not in order")


def _check_one_hot(model: Any, state: Mapping[str, Any]) -> None:
    """Codes stay below the number of columns: compiled code writes to where they point."""
    sizes = [each.size for each in state["categories_"]]
    if state["_infrequent_enabled"]:
        for place, (size, mapping) in enumerate(
            zip(sizes, state["_default_to_infrequent_mappings"], strict=True)
        ):
            if mapping is not None:
                check_entries({"mapping": mapping}, {"mapping": "integers s"}, {"s": size})
                sizes[place] = int(np.unique(mapping).size)
                if set(np.unique(mapping).tolist()) != set(range(sizes[place])):
                    raise ValueError("rare categories are not grouped")
    dropped = state["_drop_idx_after_grouping"]
    if dropped is not None and getattr(dropped, "shape", ()) != (len(sizes),):
        raise ValueError("categories are left out of columns that there are not")
    for place, drop in enumerate([None] * len(sizes) if dropped is None else dropped):
        if drop is not None:
            if not _is_place(drop, sizes[place]):
                raise ValueError("a category is left out that there is not")
            sizes[place] -= 1
    if state["_n_features_outs"] != sizes:
        raise ValueError(f"it has {state['_n_features_outs']!r:.40} columns instead of {sizes}")
