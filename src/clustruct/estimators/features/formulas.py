"""Fitted models as source text: a function of Python, and a statement of SQL.

Both are written from the same `Score` of each output: the intercept, the effects of the levels of
factors, and the slopes of numeric columns. The mean effect of each factor goes into the intercept,
so that a level that is not known has the effect 0.
"""

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier

from clustruct._typing import Floats, Labels
from clustruct.estimators.columns.factors import FactorLevels
from clustruct.estimators.intake import names_of_features
from clustruct.losses import loss_of

# Lines of listed levels and columns are at most so wide.
WIDTH = 96
# Columns that are added up in one bracket: databases limit how deep expressions are nested.
MOST_TERMS = 50

# What the text of a function for models with factors needs.
HELPERS = '''\
# Levels that are not listed have the mean effect of their factor, 0.


def by_level(factors):
    """Effects by level, from pairs of an effect and the levels that share it."""
    return {
        name: {level: effect for effect, levels in groups for level in levels}
        for name, groups in factors.items()
    }


def known(value):
    """A value, None if it is missing."""
    try:
        return None if value is None or value != value else value
    except TypeError:  # pandas.NA is neither equal to itself nor different
        return None


'''


class Bin(NamedTuple):
    """Values below an edge, None for no end, and their effect."""

    below: float | None
    effect: float


class Part(NamedTuple):
    """A factor with several groups: the effects of its groups, or of bins of a numeric column."""

    name: str
    missing: float
    groups: list[tuple[float, list[Any]]]
    bins: list[Bin]


class Score(NamedTuple):
    """The score of one output; slopes belong to all columns of a group."""

    intercept: float
    parts: list[Part]
    slopes: list[tuple[float, list[str]]]


class Link(NamedTuple):
    """From a score to what is predicted: what that is, and the function in both languages."""

    meaning: str
    python: str
    sql: str


IDENTITY = Link("score", "{}", "({})")
LOG = Link("prediction", "math.exp({})", "exp({})")
# Written so that the exponential does not overflow in Python.
LOGISTIC = Link(
    "probability",
    "1.0 / (1.0 + math.exp(-{0})) if {0} > -700.0 else math.exp({0})",
    "1.0 / (1.0 + exp(-({})))",
)
# Of scores less their largest one; divided by the sum over classes afterwards.
SOFTMAX = Link("probability", "math.exp({} - max(scores))", "")


def before_scaling(model: Any, slope: Floats, shift: Floats | None = None) -> Any:
    """A copy of a model of factors for numbers ``x`` that it was fitted to as ``slope x + shift``.

    A weight ``w`` becomes ``slope w``, and ``shift w`` goes into the intercept. No shift is 0.
    """
    changed, W, numeric = copy(model), np.array(model._weights), model.factors_.slices[-1]
    changed._offset = model._offset + (0.0 if shift is None else shift @ W[numeric])
    W[numeric] *= slope[:, None]
    changed._weights = W
    changed._set_linear(W, changed._offset)
    if model.stability_ is not None and model.stability_.effects is not None:
        effects = {name: np.array(ends) for name, ends in model.stability_.effects.items()}
        for ends in effects.values():
            ends[numeric] = np.sort(ends[numeric] * slope[:, None], axis=1)
        changed.stability_ = replace(model.stability_, effects=effects)
    return changed


def scores_of(model: Any) -> list[Score]:
    """The score of each output of a fitted model."""
    W, labels, columns = model._weights, model.labels_, model.factors_
    names = [str(name) for name in names_of_features(model)]
    if len(set(names)) < len(names):
        raise ValueError(
            "The model has columns of the same name, which a formula cannot tell apart. Rename "
            "them before the fit."
        )
    scores = [Score(float(value), [], []) for value in model._offset]
    *levels, numeric = [slice(0, None)] if columns is None else columns.slices
    for factor, mine in zip(() if columns is None else columns.factors, levels, strict=True):
        means = _means(factor, W[mine], labels[mine])
        scores = [s._replace(intercept=s.intercept + m) for s, m in zip(scores, means, strict=True)]
        if np.unique(labels[mine]).size > 1:
            for k, score in enumerate(scores):
                score.parts.append(_part(factor, W[mine, k] - means[k], labels[mine]))
    if columns is not None:
        names = [names[place] for place in columns.numeric]
    W, labels = W[numeric], labels[numeric]
    for q in np.unique(labels):
        members = np.flatnonzero(labels == q)
        for k, score in enumerate(scores):
            if slope := float(W[members[0], k]):
                score.slopes.append((slope, [names[j] for j in members]))
    return scores


def _means(factor: FactorLevels, weights: Floats, labels: Labels) -> list[float]:
    """Mean effect of a factor for each output; exact where there is one group."""
    one = bool((labels == labels[0]).all())
    means: list[float] = (weights[0] if one else factor.shares @ weights).tolist()
    return means


def _part(factor: FactorLevels, effects: Floats, labels: Labels) -> Part:
    """Effects of the groups of a factor, or of its bins; neighbours of a group are one bin."""
    effect = dict(zip(factor.levels, effects.tolist(), strict=True))
    missing = effect.pop(None, 0.0)
    if factor.edges is None:
        groups = [
            (float(effects[members[0]]), [_plain(factor.levels[j], factor.name) for j in members])
            for members in (np.flatnonzero(labels == q) for q in np.unique(labels))
        ]
        return Part(factor.name, missing, groups, [])
    bins = [Bin(*b) for b in zip([*factor.edges.tolist(), None], effect.values(), strict=False)]
    joined = [list(same)[-1] for _, same in groupby(bins, key=lambda each: each.effect)]
    # Where all values were missing in training, no bin is known.
    return Part(factor.name, missing, [], joined or [Bin(None, 0.0)])


def _plain(level: Any, name: str) -> Any:
    """A level that can be written down."""
    finite = not isinstance(level, float) or np.isfinite(level)
    if finite and (level is None or isinstance(level, str | bool | int | float)):
        return level
    raise ValueError(
        f"The factor {name!r} has the level {level!r:.80} of type {type(level).__name__}, which a "
        "formula cannot hold. Convert the column to text before the fit, or give it bins."
    )


def link_of(model: Any) -> Link:
    """How predictions follow from scores."""
    loss = loss_of(model)
    if is_classifier(model):
        if loss.class_scale != "odds":
            return IDENTITY
        return LOGISTIC if model.classes_.size == 2 else SOFTMAX
    if loss.has_identity_link or loss.has_log_link:
        return IDENTITY if loss.has_identity_link else LOG
    raise ValueError(
        f"No formula is known for predictions of loss={loss!r}, whose link is neither the identity "
        "nor the logarithm. Keep this model."
    )


def classes_of(model: Any) -> list[Any]:
    """The classes of a classifier, none for numbers."""
    if not is_classifier(model):
        return []
    return [_plain(name, "y") for name in model.classes_.tolist()]


def _require_one_offset(model: Any, n_outputs: int) -> None:
    """Complain of offsets with a column for each output."""
    if model.has_offset_ and n_outputs > 1:
        raise ValueError(
            "This model was fitted with an offset and has several outputs, and formulas take one "
            "offset. Fit a model for each output."
        )


def wrapped(items: Iterable[str], indent: str, joint: str = ", ") -> str:
    """Items in lines of limited width."""
    lines, line = [], ""
    for item in items:
        longer = f"{line}{joint}{item}" if line else item
        if line and len(indent) + len(longer) > WIDTH:
            lines.append(f"{line}{joint.rstrip()}")
            longer = item
        line = longer
    return f"\n{indent}".join([*lines, line])


# ---- Python


def python_formula(model: Any) -> str:
    """The text of a module with a function `predict`."""
    scores, link = scores_of(model), link_of(model)
    _require_one_offset(model, len(scores))
    suffixes = [f"_{k}" for k in range(len(scores))] if len(scores) > 1 else [""]
    title = f"{type(model).__name__}: `predict` takes a mapping from columns to values."
    lines = [f'"""{title}"""', ""]
    lines += ["import math", ""] if "math" in link.python else []
    lines += [] if model.factors_ is None else [HELPERS.rstrip(), "", ""]
    lines += [_python_score(*each) for each in zip(scores, suffixes, strict=True)]
    plus, arguments = (" + offset", "row, offset=0.0") if model.has_offset_ else ("", "row")
    calls = [f"score{suffix}(row){plus}" for suffix in suffixes]
    write = _python_single if len(scores) == 1 else _python_several
    return "\n".join(
        [*lines, f"def predict({arguments}):", *write(link, calls, classes_of(model)), ""]
    )


def _python_score(score: Score, suffix: str) -> str:
    """Effects of levels, and the function that adds them up."""
    lines = []
    if levels := [part for part in score.parts if part.groups]:
        lines += [f"EFFECTS{suffix} = by_level({{"]
        for part in levels:
            lines += [f"    {part.name!r}: [", *map(_python_group, part.groups), "    ],"]
        lines += ["})", "", ""]
    lines += [f"def score{suffix}(row):", '    """The linear predictor of a row."""']
    lines += [f"    total = {score.intercept!r}"]
    for part in score.parts:
        value = f"known(row[{part.name!r}])"
        if part.groups:
            lines += [f"    total += EFFECTS{suffix}[{part.name!r}].get({value}, 0.0)"]
        else:
            lines += [f"    value = {value}", *_python_bins(part)]
    for slope, names in score.slopes:
        if len(names) == 1:
            lines += [f"    total += {slope!r} * row[{names[0]!r}]"]
        else:
            listed = wrapped(map(repr, names), " " * 8)
            lines += ["    names = [", f"        {listed},", "    ]"]
            lines += [f"    total += {slope!r} * sum(row[name] for name in names)"]
    return "\n".join([*lines, "    return total", "", ""])


def _python_group(group: tuple[float, list[Any]]) -> str:
    """An effect and the levels that share it."""
    effect, levels = group
    return (
        f"        ({effect!r}, [\n            {wrapped(map(repr, levels), ' ' * 12)},\n        ]),"
    )


def _python_bins(part: Part) -> list[str]:
    """Comparisons of a value with the edges of bins."""
    lines = ["    if value is None:", f"        total += {part.missing!r}"]
    for below, effect in part.bins:
        test = "else" if below is None else f"elif value < {below!r}"
        lines += [f"    {test}:", f"        total += {effect!r}"]
    return lines


def _python_single(link: Link, calls: Sequence[str], classes: Sequence[Any]) -> list[str]:
    """The prediction for one output."""
    what = f"The {link.meaning} of class {classes[1]!r}." if classes else "The prediction of a row."
    return [f"    # {what}", f"    value = {calls[0]}", f"    return {link.python.format('value')}"]


def _python_several(link: Link, calls: Sequence[str], classes: Sequence[Any]) -> list[str]:
    """Predictions for outputs as a list, for classes as a dictionary."""
    lines = [f"    scores = [{wrapped(calls, ' ' * 14)}]"]
    lines += [f"    values = [{link.python.format('score')} for score in scores]"]
    if link is SOFTMAX:
        lines += ["    total = sum(values)", "    values = [value / total for value in values]"]
    if not classes:
        return [*lines, "    return values"]
    listed = wrapped(map(repr, classes), " " * 8)
    lines += ["    classes = [", f"        {listed},", "    ]"]
    return [
        *lines,
        f"    # The {link.meaning} of each class.",
        "    return dict(zip(classes, values))",
    ]


# ---- SQL


def sql_formula(model: Any, table: str, name: str, offset: str | None, exposure: str | None) -> str:
    """The text of a statement that selects all columns and the predictions."""
    scores, link, classes = scores_of(model), link_of(model), classes_of(model)
    _require_one_offset(model, len(scores))
    if link is SOFTMAX:
        raise ValueError(
            "to_sql is for one output or two classes, and this model has probabilities of "
            f"{len(classes)} classes. Use to_python, or fit each class against the others."
        )
    if exposure is not None and (link is not LOG or offset is not None):
        raise ValueError(
            f"exposure={exposure!r} is for losses whose predictions are exponentials, and without "
            "offset. Give offset alone, a column that is added to the scores."
        )
    plus = "" if offset is None else f"\n    + {_identifier(offset)}"
    times = "" if exposure is None else f"{_identifier(exposure)} * "
    names = [name]
    if len(scores) > 1:
        names = [f"{name}_{each}" for each in classes or range(len(scores))]
    columns = [
        f"  {times}{link.sql.format(_sql_score(score) + plus)} AS {_identifier(mine)}"
        for score, mine in zip(scores, names, strict=True)
    ]
    return ",\n".join(["SELECT *", *columns]) + f"\nFROM {_identifier(table)}"


def _sql_score(score: Score) -> str:
    """The sum of all effects."""
    terms = [repr(score.intercept), *map(_sql_part, score.parts)]
    for slope, names in score.slopes:
        columns = [_identifier(each) for each in names]
        sums = [
            "(" + wrapped(columns[first : first + MOST_TERMS], " " * 8, " + ") + ")"
            for first in range(0, len(columns), MOST_TERMS)
        ]
        terms.append(f"{slope!r} * {sums[0] if len(sums) == 1 else '(' + ' + '.join(sums) + ')'}")
    return "\n    + ".join(terms)


def _sql_part(part: Part) -> str:
    """A CASE for a factor."""
    name = _identifier(part.name)
    lines = [f"WHEN {name} IS NULL THEN {part.missing!r}"]
    for effect, levels in part.groups:
        present = [_literal(level) for level in levels if level is not None]
        if present:
            lines.append(f"WHEN {name} IN ({wrapped(present, ' ' * 8)}) THEN {effect!r}")
    lines += [f"WHEN {name} < {below!r} THEN {effect!r}" for below, effect in part.bins[:-1]]
    otherwise = part.bins[-1].effect if part.bins else 0.0
    return "\n      ".join(["CASE", *lines, f"ELSE {otherwise!r}"]) + "\n    END"


def _literal(level: Any) -> str:
    """A level as a literal of SQL."""
    if isinstance(level, str):
        return _quoted(level, "'")
    return str(level).upper() if isinstance(level, bool) else repr(level)


def _identifier(name: str) -> str:
    """The name of a column or table."""
    return _quoted(name, '"')


def _quoted(text: str, quote: str) -> str:
    """Text between quotes, which are doubled inside."""
    if "\0" in text:
        raise ValueError(f"{text!r:.80} holds a null character, which SQL cannot. Rename it.")
    return quote + text.replace(quote, quote * 2) + quote
