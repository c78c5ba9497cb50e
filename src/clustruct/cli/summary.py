"""What a fitted model has to tell, as plain values for JSON and as tables for people."""

import math
from typing import Any

import numpy as np
from scipy import sparse

from clustruct._console import Console
from clustruct.cli.columns import ZERO
from clustruct.cli.messages import listed
from clustruct.cli.preparation import STEPS
from clustruct.cli.training import Trained
from clustruct.inspection import kind_of
from clustruct.reporting.comparison import Comparison
from clustruct.reporting.verdict import verdict_on

__all__ = ["model_values", "print_model", "print_scores", "score_values"]

SHOWN = 12  # features named in a row of a table
LISTED = 1000  # features named in JSON


def model_values(trained: Trained) -> dict[str, Any]:
    """The model and its groups as plain values."""
    estimator = trained.estimator
    certificate = getattr(estimator, "certificate_", None)
    gap = math.inf if certificate is None else float(certificate.relative_gap)
    return {
        "class": type(estimator).__name__,
        "use": kind_of(trained.model),
        "n_features": len(trained.feature_names),
        "chosen": _chosen(estimator),
        "objective": float(estimator.objective_),
        "relative_gap": gap if math.isfinite(gap) else None,
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
    told = verdict_on(trained.model, found)
    return {
        "rows": found.n_test,
        "plain_models_fitted_to": found.n_train,
        "verdict": told.headline,
        "support": list(told.support),
        "scores": [
            {
                "model": entry.name,
                "ours": entry.ours,
                "rows": entry.n_train,
                **({} if entry.n_wrong is None else {"wrong": entry.n_wrong}),
                **entry.scores,
            }
            for entry in found.entries
        ],
    }


def print_model(trained: Trained, console: Console) -> None:
    """The model as tables."""
    values = model_values(trained)
    console.say(verdict_on(trained.model, trained.comparison).headline)
    console.say()
    console.say(_headline(trained, values))
    header, rows = _TABLES[values["use"]](values["groups"])
    console.table(header, rows)
    certificate = getattr(trained.estimator, "certificate_", None)
    if certificate is not None:
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
    chosen = values["chosen"]
    count = chosen["n_clusters"]
    what = {
        "features": f"{values['n_features']} features with {count} distinct weights",
        "samples": f"{count} experts",
        "tasks": f"{count} groups of tasks",
    }[values["use"]]
    by = "chosen by cross-validation" if hasattr(trained.estimator, "best_params_") else "as given"
    if hasattr(trained.estimator, "selection_"):
        by = f"chosen by {trained.estimator.selection_.criterion.upper()}"
    details = [f"{name} {chosen[name]:.3g}" for name in ("alpha", "relax") if chosen.get(name)]
    if chosen.get("n_nonzero"):
        details.append(f"at most {chosen['n_nonzero']} weights not zero")
    classes = list(getattr(trained.estimator, "classes_", []))
    if values["use"] == "features" and len(classes) == 2:
        details.append(f"weights above zero speak for {str(classes[1])!r}")
    elif len(classes) > 2:
        details.append(f"weights are for the classes {listed(classes)}, in this order")
    blocks = (
        ", shared inside the numbers and inside each category or text" if trained.in_blocks else ""
    )
    if trained.in_blocks and STEPS in trained.estimator.blocks:
        blocks += f", and among {STEPS}"
    return f"Model: {what}{blocks} ({', '.join([by, *details])})"


def _shown(names: list[str], size: int) -> str:
    """The first of some names, and how many there are besides."""
    rest = size - min(size, SHOWN)
    return ", ".join(names[:SHOWN]) + (f", ... ({rest} more)" if rest > 0 else "")


def _number(value: float, largest: float) -> str:
    """A number beside others of which this is the largest: zero if it is so up to rounding."""
    return f"{value:+.4g}" if abs(value) > ZERO * largest else "0"


def _weight(value: Any, largest: float) -> str:
    values = value if isinstance(value, list) else [value]
    return " ".join(_number(one, largest) for one in values)


def _largest(values: Any) -> float:
    """The largest absolute value of numbers and lists of numbers."""
    return max((float(np.abs(value).max()) for value in values if np.size(value)), default=0.0)


def _feature_table(groups: list[dict[str, Any]]) -> tuple[tuple[str, ...], list[list[str]]]:
    rows = []
    largest = _largest(group["weight"] for group in groups)
    for group in groups:
        label = str(group["group"]) if group["group"] >= 0 else "zero"
        names = _shown(group["features"], group["size"])
        rows.append([label, _weight(group["weight"], largest), str(group["size"]), names])
    return ("group", "weight", "size", "features, those that matter most first"), rows


def _expert_table(groups: list[dict[str, Any]]) -> tuple[tuple[str, ...], list[list[str]]]:
    rows = []
    numbers = [[group["intercept"], *group["weights"].values()] for group in groups]
    largest = max(map(_largest, numbers), default=0.0)
    for group in groups:
        weights = [f"{name} {_weight(value, largest)}" for name, value in group["weights"].items()]
        intercept = _weight(group["intercept"], largest)
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
    counted = found.mine.n_wrong is not None
    console.table(
        (*(["wrong"] if counted else []), *found.metrics, "model"),
        [
            [
                *([f"{entry.n_wrong:,}"] if counted else []),
                *(f"{entry.scores[m]:.4f}" if m in entry.scores else "" for m in found.metrics),
                f"{entry.name} ({entry.remark})" if entry.remark else entry.name,
            ]
            for entry in found.entries
        ],
        f"On {found.n_test:,} rows held out{_plainly(found)}",
    )
    told = verdict_on(trained.model, found)
    for sentence in told.support[:-1]:  # the last one says what the title of the table says
        console.say(sentence)
    console.say()


def _plainly(found: Comparison) -> str:
    """What other models were fitted to, where it is not all that ours was."""
    if found.n_train >= found.mine.n_train:
        return ""
    some = f"{found.n_train:,} of {found.mine.n_train:,} rows"
    return f"; other models were fitted to {some}, drawn at random"
