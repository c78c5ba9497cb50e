"""What a fitted model has to tell, as plain values for JSON and as tables for people."""

from typing import Any

import numpy as np
from scipy import sparse

from clustruct._console import Console
from clustruct.cli.messages import listed
from clustruct.cli.training import Trained
from clustruct.inspection import kind_of
from clustruct.reporting.comparison import Comparison
from clustruct.results.searched import Edge, edges, tried

__all__ = ["model_values", "print_model", "print_scores", "score_values"]

SHOWN = 12  # features named in a row of a table
LISTED = 1000  # features named in JSON
MOST_ROWS = 40  # of a table of features without groups


def model_values(trained: Trained) -> dict[str, Any]:
    """The model and its groups as plain values."""
    estimator = trained.estimator
    certificate = getattr(estimator, "certificate_", None)
    return {
        "class": type(estimator).__name__,
        "use": kind_of(trained.model),
        "n_features": len(trained.feature_names),
        "chosen": _chosen(estimator),
        "given": _given(estimator),
        "grouped": _wanted(estimator) is not None,
        "remarks": _remarks(estimator),
        "objective": float(estimator.objective_),
        "relative_gap": None if certificate is None else float(certificate.relative_gap),
        "groups": _GROUPS[kind_of(trained.model)](trained),
    }


def _chosen(estimator: Any) -> dict[str, Any]:
    """What was chosen or given, and what is in use."""
    chosen: dict[str, Any] = {"n_clusters": int(estimator.n_clusters_)}
    for name in ("alpha", "n_nonzero", "relax"):
        found = getattr(estimator, "best_params_", {}).get(name, getattr(estimator, name, None))
        if found is None or isinstance(found, int | float):
            chosen[name] = found
    return chosen


def _search_of(estimator: Any) -> Any:
    """All that was tried, or None where nothing was searched."""
    return getattr(estimator, "cv_results_", getattr(estimator, "selection_", None))


def _tried(estimator: Any) -> dict[str, tuple[float, ...]]:
    found = _search_of(estimator)
    return {} if found is None else tried(found)


def _given(estimator: Any) -> bool:
    """Whether the number of groups was given, and not chosen."""
    return len(_tried(estimator).get("n_clusters", ())) < 2


def _wanted(estimator: Any) -> Any:
    """The number of groups that was chosen or given, of which fewer may be in use; None for any."""
    return getattr(estimator, "best_params_", {}).get("n_clusters", estimator.n_clusters)


def _remarks(estimator: Any) -> list[str]:
    """Choices at the end of what was tried, where there may be better ones beyond it."""
    found = _search_of(estimator)
    if found is None:
        return []
    return [_remark(edge, estimator) for edge in edges(found, _most_groups(estimator))]


def _remark(edge: Edge, estimator: Any) -> str:
    if edge.name == "n_clusters":
        most = min(2 * edge.value, _most_groups(estimator))
        what = "experts" if hasattr(estimator, "experts_") else "groups"
        return (
            f"{edge.value:.0f} {what}, the most that were tried, are clearly better than "
            f"{edge.neighbour:.0f}. More may be better still: --clusters "
            f"{edge.value:.0f}:{most:.0f} tries them."
        )
    way = "--alpha A sets one" if edge.name == "alpha" else "the estimators in Python try others"
    beyond = "Larger" if edge.end == "largest" else "Smaller"
    return (
        f"{edge.name} {edge.value:.3g}, the {edge.end} that was tried, is clearly better than "
        f"{edge.neighbour:.3g}. {beyond} ones may be better still: {way}."
    )


def _most_groups(estimator: Any) -> float:
    """How many groups there can be."""
    if hasattr(estimator, "tasks_"):
        return len(estimator.tasks_)
    if hasattr(estimator, "experts_"):
        return len(estimator.classes_) - 1 if hasattr(estimator, "classes_") else np.inf
    return int(estimator.n_features_in_)


def _importance(trained: Trained) -> Any:
    """How much each feature moves the answers, by its mean size and weight."""
    matrix = trained.matrix
    size = abs(matrix).mean(axis=0)
    sizes = np.asarray(size.todense() if sparse.issparse(size) else size).reshape(-1)
    weights = np.abs(np.atleast_2d(trained.estimator.coef_)).sum(axis=0)
    return sizes * weights


def _feature_groups(trained: Trained) -> list[dict[str, Any]]:
    """Groups of features, in the order of their weights, those that matter most first in each."""
    estimator, names = trained.estimator, np.array(trained.feature_names, dtype=object)
    importance = _importance(trained)
    groups = []
    for label in [*range(estimator.n_clusters_), -1]:
        members = np.flatnonzero(estimator.labels_ == label)
        if not members.size:
            continue
        order = members[np.argsort(-importance[members], kind="stable")]
        weight = np.zeros(1) if label < 0 else np.atleast_1d(estimator.cluster_values_[label])
        groups.append(
            {
                "group": label,
                "weight": float(weight[0]) if weight.size == 1 else weight.tolist(),
                "size": int(members.size),
                "features": names[order[:LISTED]].tolist(),
            }
        )
    return groups


def _expert_groups(trained: Trained) -> list[dict[str, Any]]:
    """Experts, those with the most rows first, with their largest weights."""
    estimator, names = trained.estimator, np.array(trained.feature_names, dtype=object)
    groups = []
    for number, weights in enumerate(estimator.experts_):
        flat = np.atleast_2d(weights)
        order = np.argsort(-np.abs(flat).sum(axis=0), kind="stable")[:LISTED]
        groups.append(
            {
                "group": number,
                "share": float(estimator.weights_[number]),
                "intercept": np.atleast_1d(estimator.intercepts_[number]).tolist(),
                "weights": {
                    str(names[j]): float(flat[0, j]) if len(flat) == 1 else flat[:, j].tolist()
                    for j in order
                },
            }
        )
    return groups


def _task_groups(trained: Trained) -> list[dict[str, Any]]:
    """Groups of tasks."""
    estimator = trained.estimator
    tasks = np.asarray(estimator.tasks_)
    return [
        {
            "group": int(label),
            "size": int(np.sum(estimator.labels_ == label)),
            "tasks": [str(task) for task in tasks[estimator.labels_ == label][:LISTED]],
        }
        for label in np.unique(estimator.labels_)
    ]


_GROUPS = {"features": _feature_groups, "samples": _expert_groups, "tasks": _task_groups}


def score_values(trained: Trained) -> dict[str, Any] | None:
    """Scores on the rows held out, as plain values."""
    found = trained.comparison
    if found is None:
        return None
    return {
        "rows": found.n_test,
        "plain_models_fitted_to": found.n_train,
        "scores": [
            {
                "model": entry.name,
                "ours": entry.ours,
                **dict(zip(found.metrics, entry.scores, strict=False)),
            }
            for entry in found.entries
        ],
    }


def print_model(trained: Trained, console: Console) -> None:
    """The model as tables."""
    values = model_values(trained)
    console.say(_headline(trained, values))
    header, rows = (_TABLES[values["use"]] if values["grouped"] else _weight_table)(
        values["groups"]
    )
    console.table(header, rows)
    if len(rows) < len(values["groups"]):
        console.say(f"... and {len(values['groups']) - len(rows)} more features.")
    for remark in values["remarks"]:
        console.say(remark)
    certificate = getattr(trained.estimator, "certificate_", None)
    if certificate is not None and values["grouped"]:
        console.say(certificate.in_words)
    gate = getattr(trained.estimator, "gate_score_", None)
    if gate is not None:
        worth = "helps" if gate.helps else "does not help"
        console.say(
            f"The gate, which tells from a row which expert answers, {worth}: mean loss "
            f"{gate.gated:.4g} on rows it had not seen, {gate.constant:.4g} without it, "
            f"{gate.best:.4g} if it always knew."
        )
    console.say()


def _headline(trained: Trained, values: dict[str, Any]) -> str:
    """What was fitted, and which of it was chosen how."""
    estimator, chosen = trained.estimator, values["chosen"]
    what = _WHAT[values["use"]](trained, values["given"])
    if trained.in_blocks:
        what += ", shared inside the numbers and inside each category or text"
    strengths = [
        f"{name} {chosen[name]:.3g}"
        for name in ("alpha", "relax")
        if chosen.get(name) and (name, chosen[name]) != ("relax", 1.0)
    ]
    if strengths and values["given"] and len(_tried(estimator).get("alpha", ())) > 1:
        strengths[-1] += " chosen by cross-validation"
    details = [", ".join(strengths)] if strengths else []
    if chosen.get("n_nonzero"):
        details.append(f"at most {chosen['n_nonzero']} weights not zero")
    classes = list(getattr(estimator, "classes_", []))
    if values["use"] == "features" and len(classes) == 2:
        details.append(f"weights above zero speak for {str(classes[1])!r}")
    elif len(classes) > 2:
        details.append(f"weights are for the classes {listed(classes)}, in this order")
    return f"Model: {'; '.join([what, *details])}"


def _features(trained: Trained, given: bool) -> str:
    estimator, n_features = trained.estimator, len(trained.feature_names)
    text, count = _counted(n_features, "feature"), int(estimator.n_clusters_)
    if n_features == 1:
        return text
    if _wanted(estimator) is not None:
        return f"{text} in {_counted(count, 'group')} of equal weight, {_how(estimator, given)}"
    if count < n_features:
        text += f", {count} of them with a weight"
    most = max(number for number in _tried(estimator)["n_clusters"] if np.isfinite(number))
    return f"{text}, every one with its own weight: no grouping, of up to {most:.0f}, was as good"


def _experts(trained: Trained, given: bool) -> str:
    estimator = trained.estimator
    return f"{_counted(int(estimator.n_clusters_), 'expert')}, {_how(estimator, given)}"


def _tasks(trained: Trained, given: bool) -> str:
    estimator = trained.estimator
    groups = _counted(int(estimator.n_clusters_), "group")
    return f"{_counted(len(estimator.tasks_), 'task')} in {groups}, {_how(estimator, given)}"


_WHAT = {"features": _features, "samples": _experts, "tasks": _tasks}


def _how(estimator: Any, given: bool) -> str:
    """How the number of groups came about."""
    wanted = _wanted(estimator)
    if given and isinstance(wanted, int) and wanted > estimator.n_clusters_:
        return f"as given: at most {wanted}"
    if given:
        return "as given"
    found = _search_of(estimator)
    if getattr(found, "criterion", "cv") != "cv":
        return f"chosen by {found.criterion.upper()}"
    if getattr(found, "rule", "best") == "fewest":
        return "the fewest not clearly worse than the best in cross-validation"
    return "chosen by cross-validation"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _shown(names: list[str], size: int) -> str:
    """The first of some names, and how many there are besides."""
    rest = size - min(size, SHOWN)
    return ", ".join(names[:SHOWN]) + (f", ... ({rest} more)" if rest > 0 else "")


def _weight(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(f"{one:+.3g}" for one in value)
    return f"{value:+.4g}" if value else "0"


def _feature_table(groups: list[dict[str, Any]]) -> tuple[tuple[str, ...], list[list[str]]]:
    rows = []
    for group in groups:
        label = str(group["group"]) if group["group"] >= 0 else "zero"
        names = _shown(group["features"], group["size"])
        rows.append([label, _weight(group["weight"]), str(group["size"]), names])
    return ("group", "weight", "size", "features, those that matter most first"), rows


def _weight_table(groups: list[dict[str, Any]]) -> tuple[tuple[str, ...], list[list[str]]]:
    """Features that have a weight of their own, the largest first."""
    order = sorted(groups, key=lambda group: -float(np.abs(group["weight"]).sum()))
    rows = [[_weight(g["weight"]), _shown(g["features"], g["size"])] for g in order[:MOST_ROWS]]
    return ("weight", "feature, the largest weights first"), rows


def _expert_table(groups: list[dict[str, Any]]) -> tuple[tuple[str, ...], list[list[str]]]:
    rows = []
    for group in groups:
        weights = [f"{name} {_weight(value)}" for name, value in group["weights"].items()]
        intercept = " ".join(f"{value:+.4g}" for value in group["intercept"])
        rows.append(
            [str(group["group"]), f"{group['share']:.1%}", intercept, _shown(weights, len(weights))]
        )
    return ("expert", "rows", "intercept", "weights, the largest first"), rows


def _task_table(groups: list[dict[str, Any]]) -> tuple[tuple[str, ...], list[list[str]]]:
    rows = [[str(g["group"]), str(g["size"]), _shown(g["tasks"], g["size"])] for g in groups]
    return ("group", "size", "tasks"), rows


_TABLES = {"features": _feature_table, "samples": _expert_table, "tasks": _task_table}


def print_scores(trained: Trained, console: Console) -> None:
    """How well the model does on the rows held out, beside plain ones."""
    found = trained.comparison
    if found is None:
        return
    console.table(
        (*found.metrics, "model"),
        [
            [f"{score:.4f}" for score in entry.scores]
            + [""] * (len(found.metrics) - len(entry.scores))
            + [entry.name]
            for entry in found.entries
        ],
        f"On {found.n_test} rows held out{_plainly(found)}",
    )


def _plainly(found: Comparison) -> str:
    """What plain models were fitted to, where it is not all that ours was."""
    if found.n_train >= found.n_available:
        return ""
    return f"; plain models fitted to {found.n_train} of {found.n_available} rows, drawn at random"
