"""Whether the parts of a fitted estimator in a model file fit together.

A table says which attributes a fitted estimator has, of what type, and of which shape: equal
letters stand for equal lengths, as ``w`` for the number of weights. Files that pass can be used:
no label lies beyond its groups, and no count is larger than the arrays that are there.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from clustruct.estimators.common import ClusterModel
from clustruct.estimators.features.base import FeatureCluster
from clustruct.estimators.samples.base import SampleCluster
from clustruct.estimators.samples.gate import Gate
from clustruct.estimators.tasks.base import TaskCluster
from clustruct.estimators.tasks.entries import Frame
from clustruct.losses import Loss, loss_of
from clustruct.results import Certificate, CountSelection, StabilityResult, Status

# What the first word of an entry stands for: kinds of NumPy's types of arrays and numbers.
_KINDS = {"floats": "f", "integers": "iu", "values": "biufUMmO", "names": "UO"}
_PLAIN: dict[str, Any] = {
    "integer": (int, np.integer),
    "float": (float, int, np.floating, np.integer),
    "truth": (bool,),
    "text": (str,),
}
# Attributes of fitted estimators. Shapes in turn are alternatives; an entry that begins with a
# question mark may be missing or None. The letter of an integer gets its value.
_COMMON = {
    "n_features_in_": "integer d",
    "n_clusters_": "integer q",
    "objective_": "float",
    "n_iter_": "?integer",
    "has_offset_": "?truth",
    "feature_names_in_": "?names d",
    "classes_": "?values c",
    "_single": "?truth",
    "alpha_": "?float",
    "best_score_": "?float",
}
_ATTRIBUTES: dict[type, dict[str, str]] = {
    FeatureCluster: {
        **_COMMON,
        "labels_": "integers w",
        "_weights": "floats w,k",
        "_offset": "floats k",
        "cluster_values_": "floats q q,k",
        "cluster_sizes_": "integers q",
        "coef_": "floats w k,w",
        "intercept_": "float | floats k",
    },
    SampleCluster: {
        **_COMMON,
        "labels_": "integers n",
        "_weights": "floats q",
        "_W": "floats q,d,k",
        "_b": "floats q,k",
        "experts_": "floats q,d q,k,d",
        "intercepts_": "floats q q,k",
        "weights_": "?floats q",
    },
    TaskCluster: {
        **_COMMON,
        "tasks_": "values t",
        "_layout": "text",
        "labels_": "integers t",
        "coef_": "floats t,d",
        "intercept_": "floats t",
        "centroids_": "floats q,d",
        "centroid_intercepts_": "floats q",
        "cluster_sizes_": "integers q",
        "mean_coef_": "floats d",
        "mean_intercept_": "float",
        "responsibilities_": "?floats t,q",
        "proportions_": "?floats q",
        "spreads_": "?floats q,d",
        "spread_intercepts_": "?floats q",
    },
}
# Objects that estimators may hold.
_OBJECTS = {
    "stability_": StabilityResult,
    "selection_": CountSelection,
    "certificate_": Certificate,
    "status_": Status,
    "trace_": tuple,
    "best_params_": dict,
    "_loss_of_fit": Loss,
    "_frame": Frame,
}
_LAYOUTS = ("single", "rows", "columns", "classes")
# Numbers of axes of attributes that have one less in models of a single output.
_AXES = {"coef_": 2, "intercept_": 1, "experts_": 3, "intercepts_": 2}


def check_fitted(model: Any) -> None:
    """Refuse a fitted estimator of ours whose parts do not fit together."""
    state = vars(model)
    entries = next((each for kind, each in _ATTRIBUTES.items() if isinstance(model, kind)), {})
    if any(name in state for name in entries if not entries[name].startswith("?")):
        checked(model, lambda: _check_model(model, state, entries))


def checked(model: Any, check: Callable[[], None]) -> None:
    """Run a check; whatever an impossible model makes it raise is told as a ValueError."""
    try:
        check()
    except Exception as error:
        raise ValueError(f"a {type(model).__name__} in it is impossible: {error}") from error


def _check_model(model: ClusterModel, state: Mapping[str, Any], entries: Mapping[str, str]) -> None:
    lengths: dict[str, int] = {}
    if isinstance(model, FeatureCluster):
        # One weight for each feature, or for each level and numeric column.
        factors = model.factors_
        lengths["w"] = int(state["n_features_in_"] if factors is None else factors.n_weights)
    check_entries(state, entries, lengths)
    least = -1 if isinstance(model, FeatureCluster) else 0
    labels = np.asarray(state["labels_"])
    if labels.size and not (least <= labels.min() and labels.max() < lengths["q"]):
        raise ValueError("labels_ has labels of groups that there are not")
    model._validate_params()
    n_outputs = _n_outputs(model, state)
    if n_outputs is not None and lengths.get("k", n_outputs) != n_outputs:
        raise ValueError(f"it has {lengths['k']} outputs instead of {n_outputs}")
    if not isinstance(model, TaskCluster):
        _check_axes(model, state)
    _check_types(state, _OBJECTS)
    if isinstance(model, SampleCluster):
        _check_gate(state["_gate"], lengths["q"])
    if isinstance(model, TaskCluster) and state["_layout"] not in _LAYOUTS:
        raise ValueError(f"its layout is {state['_layout']!r:.40}")
    if (found := state.get("stability_")) is not None:
        _check_stability(found)
    if (selection := state.get("selection_")) is not None:
        _check_selection(selection)


def check_entries(
    state: Mapping[str, Any], entries: Mapping[str, str], lengths: dict[str, int]
) -> None:
    """Check attributes one after the other."""
    for name, entry in entries.items():
        _check_entry(name, state.get(name), entry, lengths)


def _check_entry(name: str, value: Any, entry: str, lengths: dict[str, int]) -> None:
    """Check an attribute; letters that are not known yet get their lengths from it."""
    if entry.startswith("?"):
        if value is None:
            return
        entry = entry[1:]
    for alternative in entry.split(" | "):
        kind, *shapes = alternative.split()
        if kind not in _PLAIN:
            is_kind = isinstance(value, np.ndarray) and value.dtype.kind in _KINDS[kind]
            is_kind &= kind != "names" or all(isinstance(name, str) for name in value.flat)
            is_kind &= kind != "values" or are_plain(value)
            if is_kind and any(_fits(value.shape, s.split(","), lengths) for s in shapes):
                return
        elif isinstance(value, _PLAIN[kind]) and isinstance(value, bool) == (kind == "truth"):
            lengths.update({letter: int(value) for letter in shapes})
            return
    shape = f" {value.dtype} {value.shape}" if isinstance(value, np.ndarray) else ""
    raise ValueError(f"{name}, a {type(value).__name__}{shape}, does not fit to the rest")


def are_plain(values: NDArray[Any]) -> bool:
    """Whether there is no container or other object among values: some are longer than memory."""
    plain = str | int | float | np.generic | None
    return values.dtype.kind != "O" or all(isinstance(value, plain) for value in values.flat)


def _fits(shape: tuple[int, ...], letters: Sequence[str], lengths: dict[str, int]) -> bool:
    """Whether an array has that shape; letters that are not known yet are learnt if it has."""
    if len(shape) != len(letters):
        return False
    if any(lengths.get(letter, size) != size for letter, size in zip(letters, shape, strict=True)):
        return False
    lengths.update(zip(letters, shape, strict=True))
    return True


def _n_outputs(model: Any, state: Mapping[str, Any]) -> int | None:
    """Number of scores of a sample, where it follows from the target."""
    loss = loss_of(model)
    if not is_classifier(model):
        return 1 if state.get("_single", True) else None
    classes = state["classes_"]
    if classes.size < 2 or np.unique(classes.astype(str)).size != classes.size:
        raise ValueError("classes_ has a class twice, or only one")
    return None if isinstance(model, TaskCluster) else loss.n_outputs(int(classes.size))


def _check_axes(model: Any, state: Mapping[str, Any]) -> None:
    """Attributes have an axis for outputs, or none of them has one."""
    if not is_classifier(model) and "_single" not in state:
        raise ValueError("it does not say whether it has one output")
    single = bool(getattr(model, "_single", False))
    axes = {name: number - single for name, number in _AXES.items() if name in state}
    if isinstance(model, FeatureCluster):
        axes["cluster_values_"] = 1 + model._many_outputs()
    for name, number in axes.items():
        if np.ndim(state[name]) != number:
            raise ValueError(f"{name} has {np.ndim(state[name])} axes instead of {number}")


def _check_types(state: Mapping[str, Any], types: Mapping[str, type]) -> None:
    for name, kind in types.items():
        if state.get(name) is not None and not isinstance(state[name], kind):
            raise ValueError(f"{name} is a {type(state[name]).__name__}")


def _check_gate(gate: Any, n_experts: int) -> None:
    """A gate knows experts that there are."""
    if gate is None:
        return
    if not isinstance(gate, Gate):
        raise ValueError(f"its gate is a {type(gate).__name__}")
    check_entries(vars(gate), {"log_shares": "floats q", "sharpness": "float"}, {"q": n_experts})
    if gate.classifier is not None:
        known = np.asarray(gate.classifier.classes_)
        if known.dtype.kind not in "iu" or not set(known.tolist()) <= set(range(n_experts)):
            raise ValueError("its gate knows experts that there are not")


def _check_stability(found: StabilityResult) -> None:
    lengths: dict[str, int] = {}
    entries = {
        "groups": "integers g",
        "group_firmness": "floats g",
        "model_labels": "integers i",
        "firmness": "floats i",
        "together": "floats g,g",
        "consensus_labels": "integers i",
    }
    check_entries(vars(found), entries, lengths)
    if found.values is not None:
        of_values = {
            "resampled": "floats b,r,v",
            "estimates": "floats r,v",
            "std_errors": "floats r,v",
        }
        check_entries(vars(found.values), of_values, lengths)
        if lengths["r"] < lengths["g"]:
            raise ValueError("its stability has values of fewer groups than there are")


def _check_selection(found: CountSelection) -> None:
    entries = {
        "n_clusters": "integers g",
        "values": "floats g",
        "standard_errors": "floats g",
        "losses": "floats g",
        "fold_values": "?floats g,f",
    }
    check_entries(vars(found), entries, {})
    if found.best not in found.n_clusters:
        raise ValueError("its selection chose a number that was not tried")


# ---- Results


def check_record(kind: type, state: Mapping[str, Any]) -> None:
    """Refuse a result whose fields are not of the types that its class names."""
    for name, hint in _hints(kind).items():
        if name in state and not _is_a(state[name], hint):
            raise ValueError(f"a {kind.__name__} in it has {name}={state[name]!r:.40}")


@cache
def _hints(kind: type) -> dict[str, Any]:
    try:
        return get_type_hints(kind)
    except NameError:  # of names that are known to type checkers only
        return {}


def _is_a(value: Any, hint: Any) -> bool:
    """Whether a value is of a type, as far as that can be told quickly."""
    if get_origin(hint) in (Union, UnionType):
        return any(_is_a(value, one) for one in get_args(hint))
    kind = get_origin(hint) or hint
    if kind is tuple and isinstance(value, tuple):
        return _are(value, get_args(hint))
    if kind is float:
        return isinstance(value, int | float | np.number)
    if kind is int:
        return isinstance(value, int | np.integer)
    if kind is bool:
        return isinstance(value, bool | np.bool_)
    if kind is np.ndarray:
        # The arguments of an annotation of arrays are their shape and their type of numbers.
        (number,) = get_args(get_args(hint)[1]) or (Any,)
        kinds = {np.float64: "f", np.intp: "iu"}.get(number, "")
        return isinstance(value, np.ndarray) and (not kinds or value.dtype.kind in kinds)
    return kind is Any or not isinstance(kind, type) or isinstance(value, kind)


def _are(items: tuple[Any, ...], hints: tuple[Any, ...]) -> bool:
    """Whether the items of a tuple are of its types; ``...`` is any number of the one before."""
    if len(hints) == 2 and hints[1] is ...:
        hints = hints[:1] * len(items)
    return not hints or (len(items) == len(hints) and all(map(_is_a, items, hints)))
