"""What a fitted model has to tell, as plain values for JSON and as tables for people."""

import math
from typing import Any

import numpy as np
from scipy import sparse

from clustruct._typing import Floats
from clustruct.cli.console import Console
from clustruct.cli.factor_tables import (
    LISTED,
    Cells,
    factor_sentences,
    factor_table,
    factor_values,
    factors_in_words,
    numbers_in_words,
)
from clustruct.cli.preparing.columns import ZERO
from clustruct.cli.preparing.preparation import STEPS
from clustruct.cli.preparing.training import Trained
from clustruct.figures.numbers import score_text
from clustruct.inspection import factors_of, grid_ends, kind_of, most_groups, search_of
from clustruct.reporting.dispersion import dispersion_of
from clustruct.reporting.verdict import verdict_on
from clustruct.results.searched import Edge, tried
from clustruct.results.tables import plural

SHOWN = 12  # features named in a row of a table
MOST_CLASSES = 6  # with a column of their own
MOST_ROWS = 40  # of a table of features without groups


def model_values(trained: Trained) -> dict[str, Any]:
    """The model and its groups as plain values."""
    estimator = trained.estimator
    certificate = getattr(estimator, "certificate_", None)
    gap = math.inf if certificate is None else float(certificate.relative_gap)
    spread = dispersion_of(trained.model, trained.data)
    return {
        "class": type(estimator).__name__,
        "use": kind_of(trained.model),
        "n_features": len(trained.feature_names),
        "chosen": _chosen(estimator),
        "given": all(len(_tried(estimator, name)) < 2 for name in ("n_clusters", "price")),
        "grouped": _wanted(estimator) is not None,
        "remarks": [
            *(_remark(edge, estimator) for edge in grid_ends(estimator)),
            *([spread.remark] if spread is not None and spread.remark is not None else []),
        ],
        "objective": float(estimator.objective_),
        "dispersion": None if spread is None else spread.value,
        "relative_gap": gap if math.isfinite(gap) else None,
        "stability": _stability(estimator),
        "groups": _GROUPS[kind_of(trained.model)](trained),
        "factors": factor_values(estimator, trained.directions),
    }


def _stability(estimator: Any) -> dict[str, Any] | None:
    """Whether the groups came again, if that was asked for."""
    found = estimator.stability_
    if found is None:
        return None
    return {
        "in_words": found.in_words,
        "n_resamples": found.n_resamples,
        "groups": found.groups.tolist(),
        "firmness": found.group_firmness.tolist(),
        "n_clusters": found.n_clusters.tolist(),
    }


def _chosen(estimator: Any) -> dict[str, Any]:
    """What was chosen or given, and what is in use."""
    chosen: dict[str, Any] = {"n_clusters": int(estimator.n_clusters_)}
    for name in ("alpha", "n_nonzero", "relax", "price"):
        found = getattr(estimator, "best_params_", {}).get(name, getattr(estimator, name, None))
        if name == "price" and found is None:
            continue
        if found is None or isinstance(found, int | float):
            chosen[name] = found
    return chosen


def _tried(estimator: Any, name: str) -> tuple[float, ...]:
    """Values of a parameter that were tried; none where there was no search."""
    found = search_of(estimator)
    return () if found is None else tried(found).get(name, ())


def _wanted(estimator: Any) -> Any:
    """The number of groups that was chosen or given, of which fewer may be in use; None for any."""
    return getattr(estimator, "best_params_", {}).get("n_clusters", estimator.n_clusters)


def _remark(edge: Edge, estimator: Any) -> str:
    if edge.name == "n_clusters":
        most = min(2 * edge.value, most_groups(estimator))
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


def _feature_groups(trained: Trained) -> list[dict[str, Any]]:
    """Groups of features, in the order of their weights, those that matter most first in each."""
    estimator, names = trained.estimator, np.array(trained.feature_names, dtype=object)
    # How much each feature moves the predictions: its mean size times its weight.
    importance = _sizes(trained) * np.abs(np.atleast_2d(estimator.coef_)).sum(axis=0)
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


def _sizes(trained: Trained) -> Floats:
    """The mean size of each feature; of a level, its share of the rows."""
    factors = factors_of(trained.model)
    matrix = trained.matrix if factors is None else trained.matrix.iloc[:, list(factors.numeric)]
    size = abs(matrix).mean(axis=0)
    sizes = np.asarray(size.todense() if sparse.issparse(size) else size).reshape(-1)
    levels = [] if factors is None else [factor.shares for factor in factors.factors]
    return np.concatenate([*levels, sizes])


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
    estimator, groups = trained.estimator, []
    for label in np.unique(estimator.labels_):
        tasks = [str(task) for task in np.asarray(estimator.tasks_)[estimator.labels_ == label]]
        groups.append({"group": int(label), "size": len(tasks), "tasks": tasks[:LISTED]})
    return groups


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
    if values["factors"]:
        header, rows = factor_table(values["factors"])
        if rows:
            console.table(header, rows)
        numbers = numbers_in_words(trained.estimator)
        for sentence in [*factor_sentences(values["factors"]), *([numbers] if numbers else [])]:
            console.say(sentence)
    else:
        _print_groups(trained, values, console)
    if values["stability"] is not None:
        console.say(values["stability"]["in_words"])
    for remark in values["remarks"]:
        console.say(remark)
    if values["dispersion"] is not None:
        console.say(f"Dispersion (Pearson): {values['dispersion']:.3g}")
    certificate = getattr(trained.estimator, "certificate_", None)
    if certificate is not None and values["grouped"] and not certificate.proves_little:
        console.say(certificate.in_words)
    gate = getattr(trained.estimator, "gate_score_", None)
    if gate is not None and len(values["groups"]) > 1:
        worth = "helps" if gate.helps else "does not help"
        console.say(
            f"The gate, which predicts the expert of a row, {worth}: mean loss "
            f"{gate.gated:.4g} on rows it had not seen, {gate.constant:.4g} without it, "
            f"{gate.best:.4g} if it always knew."
        )
    console.say()


def _print_groups(trained: Trained, values: dict[str, Any], console: Console) -> None:
    """Groups of features, experts or tasks, one in a row."""
    table_of = _TABLES[values["use"]] if values["grouped"] else _weight_table
    classes = [str(name) for name in getattr(trained.estimator, "classes_", [])]
    header, rows = table_of(values["groups"], classes)
    console.table(header, rows)
    if len(rows) < len(values["groups"]):
        console.say(f"... and {len(values['groups']) - len(rows)} more features.")


def _headline(trained: Trained, values: dict[str, Any]) -> str:
    """What was fitted, and which of it was chosen how."""
    estimator, chosen = trained.estimator, values["chosen"]
    what = _what(trained, values)
    if getattr(estimator, "blocks", None) is not None and values["grouped"]:
        steps = f", and among {STEPS}" if STEPS in estimator.blocks else ""
        what += f", shared inside the numbers and inside each category or text{steps}"
    strengths = [
        f"{name} {chosen[name]:.3g}"
        for name in ("price", "alpha", "relax")
        if chosen.get(name) and (name, chosen[name]) != ("relax", 1.0)
    ]
    if strengths and values["given"] and len(_tried(estimator, "alpha")) > 1:
        strengths[-1] += " chosen by cross-validation"
    details = [", ".join(strengths)] if strengths else []
    if chosen.get("n_nonzero"):
        details.append(f"at most {chosen['n_nonzero']} weights not zero")
    return f"Model: {'; '.join([what, *details])}"


def _what(trained: Trained, values: dict[str, Any]) -> str:
    """How many features, experts or tasks there are, and their groups."""
    estimator, n_features = trained.estimator, values["n_features"]
    count, how = int(estimator.n_clusters_), _how(estimator, values["given"])
    if values["use"] == "samples":
        return f"{plural(count, 'expert')}, {how}"
    if values["use"] == "tasks":
        return f"{plural(len(estimator.tasks_), 'task')} in {plural(count, 'group')}, {how}"
    if values["factors"]:
        return f"{factors_in_words(estimator)}, {how}"
    text = plural(n_features, "feature")
    if n_features == 1:
        return text
    if values["grouped"]:
        return f"{text} in {plural(count, 'group')} of equal weight, {how}"
    if count < n_features:
        text += f", {count} of them with a weight"
    most = max(number for number in _tried(estimator, "n_clusters") if np.isfinite(number))
    return f"{text}, every one with its own weight: no grouping, of up to {most:.0f}, was as good"


def _how(estimator: Any, given: bool) -> str:
    """How the number of groups came about."""
    wanted = _wanted(estimator)
    if given and isinstance(wanted, int) and wanted > estimator.n_clusters_:
        return f"as given: at most {wanted}"
    if given:
        return "as given"
    found = search_of(estimator)
    if getattr(found, "by_evidence", False):
        return "chosen by evidence"
    criterion = getattr(found, "criterion", "cv")
    if criterion != "cv":
        return f"chosen by {criterion.upper()}"
    if getattr(found, "rule", "best") == "fewest":
        return "the fewest not clearly worse than the best in cross-validation"
    return "chosen by cross-validation"


def _shown(names: list[str], size: int | None = None) -> str:
    """The first of some names, and how many there are besides; `names` may not be all of them."""
    rest = (len(names) if size is None else size) - SHOWN
    return ", ".join(names[:SHOWN]) + (f", ... ({rest} more)" if rest > 0 else "")


def _number(value: float, largest: float) -> str:
    """A number beside others of which this is the largest: zero if it is so up to rounding."""
    return f"{value:+.4g}" if abs(value) > ZERO * largest else "0"


def _largest(values: Any) -> float:
    """The largest absolute value of numbers and lists of numbers."""
    return max((float(np.abs(value).max()) for value in values if np.size(value)), default=0.0)


def _feature_table(groups: list[dict[str, Any]], classes: list[str]) -> Cells:
    header, weights = _weights(groups, classes)
    rows = []
    for group, cells in zip(groups, weights, strict=True):
        label = str(group["group"]) if group["group"] >= 0 else "zero"
        names = _shown(group["features"], group["size"])
        rows.append([label, *cells, str(group["size"]), names])
    return ("group", *header, "size", "features, those that matter most first"), rows


def _weight_table(groups: list[dict[str, Any]], classes: list[str]) -> Cells:
    """Features that have a weight of their own, the largest first."""
    order = sorted(groups, key=lambda group: -float(np.abs(group["weight"]).sum()))
    header, weights = _weights(order, classes)
    rows = [
        [*cells, _shown(group["features"], group["size"])]
        for group, cells in zip(order[:MOST_ROWS], weights, strict=False)
    ]
    return (*header, "feature, the largest weights first"), rows


def _weights(groups: list[dict[str, Any]], classes: list[str]) -> Cells:
    """Headers and cells of weights: a column for each class where they are few, else one."""
    largest = _largest(group["weight"] for group in groups)
    are_few = 0 < len(classes) <= MOST_CLASSES

    def cells(value: Any) -> list[str]:
        values = value if isinstance(value, list) else [value]
        numbers = [_number(one, largest) for one in values]
        if not isinstance(value, list) or len(value) != len(classes):
            return [" ".join(numbers)]
        if are_few:
            return numbers
        top = np.argsort(-np.abs(value), kind="stable")[:MOST_CLASSES]
        return [", ".join(f"{classes[k]} {numbers[k]}" for k in top)]

    if any(isinstance(group["weight"], list) for group in groups):
        header = tuple(classes) if are_few else ("weights",)
    else:
        header = (f"weight for {classes[1]}",) if len(classes) == 2 else ("weight",)
    return header, [cells(group["weight"]) for group in groups]


def _expert_table(groups: list[dict[str, Any]], classes: list[str]) -> Cells:
    """A row for each expert, or for each expert and class."""
    numbers = [[group["intercept"], *group["weights"].values()] for group in groups]
    largest = max(map(_largest, numbers), default=0.0)
    several = len(classes) == max(len(group["intercept"]) for group in groups)
    rows = []
    for group in groups:
        for k, intercept in enumerate(group["intercept"]):
            first = ["", ""] if k else [str(group["group"]), f"{group['share']:.1%}"]
            weights = {name: np.atleast_1d(value)[k] for name, value in group["weights"].items()}
            order = sorted(weights, key=lambda name: -abs(weights[name]))
            shown = _shown([f"{name} {_number(weights[name], largest)}" for name in order])
            named = [classes[k]] if several else []
            rows.append([*first, *named, _number(intercept, largest), shown])
    title = ("for class",) if several else ()
    return ("expert", "rows", *title, "intercept", "weights, the largest first"), rows


def _task_table(groups: list[dict[str, Any]], classes: list[str]) -> Cells:
    rows = [[str(g["group"]), str(g["size"]), _shown(g["tasks"], g["size"])] for g in groups]
    return ("group", "size", "tasks"), rows


_TABLES = {"features": _feature_table, "samples": _expert_table, "tasks": _task_table}


def print_scores(trained: Trained, console: Console) -> None:
    """How well the model does on the rows held out, beside plain ones."""
    found = trained.comparison
    if found is None:
        return
    counted = found.mine.n_wrong is not None
    rows = []
    for entry in found.entries:
        wrong = [f"{entry.n_wrong:,}"] if counted else []
        scores = (
            score_text(entry.scores[m], m) if m in entry.scores else "" for m in found.metrics
        )
        name = f"{entry.name} ({entry.remark})" if entry.remark else entry.name
        rows.append([*wrong, *scores, name])
    title = f"On {found.n_test:,} rows held out"
    if found.n_train < found.mine.n_train:
        some = f"{found.n_train:,} of {found.mine.n_train:,} rows"
        title += f"; other models were fitted to {some}, drawn at random"
    console.table((*(["wrong"] if counted else []), *found.metrics, "model"), rows, title)
    told = verdict_on(trained.model, found)
    for sentence in told.support[:-1]:  # the last one says what the title of the table says
        console.say(sentence)
    console.say()
