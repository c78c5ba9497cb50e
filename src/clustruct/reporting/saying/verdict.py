"""What the comparison allows to say, in words that a reader can repeat."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from clustruct.inspection import final_estimator, kind_of
from clustruct.reporting.comparing.comparison import Comparison, Entry, count_groups
from clustruct.reporting.comparing.scores import NEGLIGIBLE
from clustruct.reporting.svg import shown
from clustruct.results.tables import plural

__all__ = ["Verdict", "verdict_on"]

# A larger gain that is not significant is not called nothing: there are too few rows to tell.
NOTHING = 0.02


@dataclass(frozen=True)
class Verdict:
    """The answer to "is it any good", and what it rests on.

    Attributes
    ----------
    headline : str
        One sentence.
    support : tuple of str
        Sentences with the figures and the tests.
    """

    headline: str
    support: tuple[str, ...]


def verdict_on(model: Any, found: Comparison | None) -> Verdict:
    """Judge a model by what was measured.

    Parameters
    ----------
    model : estimator or Pipeline
        Fitted.
    found : Comparison or None
        None where nothing was held out.

    Returns
    -------
    Verdict
    """
    kind = kind_of(model)
    words = _WORDS[kind](model, None if found is None else found.n_groups)
    if found is None:
        text = "Nothing was held out, so nothing is known about its predictions on new rows."
        return Verdict(f"{words.plain}.", (text,))
    support = [*_support(found), *_boosting(found), *_oracle(found), _how(model, found)]
    return Verdict(_headline(words, found), tuple(support))


@dataclass(frozen=True)
class _Words:
    """How a model is spoken of.

    Attributes
    ----------
    plain : str
        What the model is: "5 numbers for 30 features".
    better, tie, worse : str
        Sentences about a rival, which is put in for {}.
    """

    plain: str
    better: str
    tie: str
    worse: str


def _headline(words: _Words, found: Comparison) -> str:
    rival = found.rival
    test = None if rival is None else found.against(rival)
    if rival is not None and test is not None and test.worse:
        return f"{words.worse.format(_short(rival))}."
    for constant in found.of_role("constant"):
        against = found.against(constant)
        if not against.better:
            name = _constant(found)
            if against.gain < NOTHING:
                return f"No better than {name}: nothing was found."
            return f"Not shown to be better than {name}: {found.n_targets:,} rows cannot tell."
    if rival is None or test is None:
        return f"{words.plain}; it was not held against a model without groups."
    if test.better:
        return f"{words.better.format(_short(rival))}."
    sure = abs(test.gain) < NEGLIGIBLE
    doubt = "" if sure else f", as far as {found.n_targets:,} held-out rows can tell"
    return f"{words.tie.format(_short(rival))}{doubt}."


def _constant(found: Comparison) -> str:
    if found.classes is None:
        return "always saying the mean"
    return "always giving the classes their overall shares"


def _short(entry: Entry) -> str:
    """The name of a rival inside a sentence."""
    name = entry.name.split(",")[0]
    return name[0].lower() + name[1:]


def _span(count: int, judged: int | None, thing: str) -> str:
    """A number of things; a range where the copy that was judged has another number of them."""
    low, high = sorted((count, count if judged is None else judged))
    return plural(high, thing) if low == high else f"{low:,} to {plural(high, thing)}"


def _of_features(model: Any, judged: int | None) -> _Words:
    estimator = final_estimator(model)
    labels = np.asarray(estimator.labels_)
    count, d = int(estimator.n_clusters_), labels.size
    outputs = 1 if np.ndim(estimator.coef_) == 1 else np.shape(estimator.coef_)[0]
    numbers = _span(count * outputs, None if judged is None else judged * outputs, "number")
    if count == int((labels >= 0).sum()) and d > 1 and judged in (None, count):
        zero = d - count
        own = "every feature has its own weight"
        if zero:
            own = f"{plural(count, 'feature')} have their own weights, {zero:,} have none"
        text = f"No groups: {own}"
        return _Words(text, f"{text}; better than {{}}", f"{text}; as good as {{}}",
                      f"{text}; worse than {{}}")  # fmt: skip
    instead = f"{numbers} instead of {d * outputs:,}"
    return _Words(
        f"{numbers} for {plural(d * outputs, 'weight')}",
        f"Better than {{}}, with {instead}",
        f"As good as {{}}, with {instead}",
        f"Worse than {{}}: {numbers} cannot replace {d * outputs:,} here",
    )


def _of_samples(model: Any, judged: int | None) -> _Words:
    estimator = final_estimator(model)
    count = len(estimator.experts_)
    if count == 1 and judged in (None, 1):
        kind = "logistic" if is_classifier(estimator) else "linear"
        text = f"One expert is enough: one {kind} model for all rows"
        return _Words(text, f"{text}, better than {{}}", f"{text}, as good as {{}}",
                      f"{text}, worse than {{}}")  # fmt: skip
    experts = _span(count, judged, "expert")
    return _Words(
        experts,
        f"{experts} predict better than {{}}",
        f"{experts} predict as well as {{}}",
        f"{experts} predict worse than {{}}",
    )


def _of_tasks(model: Any, judged: int | None) -> _Words:
    estimator = final_estimator(model)
    count, n = np.unique(estimator.labels_).size, len(estimator.tasks_)
    if count == 1 and judged in (None, 1):
        text = f"No groups: {plural(n, 'task')} about one common centre"
    else:
        text = f"{plural(n, 'task')} in {_span(count, judged, 'group')}"
    return _Words(
        text,
        f"{text} are predicted better than by {{}}",
        f"{text} are predicted as well as by {{}}",
        f"{text} are predicted worse than by {{}}, which is best",
    )


_WORDS = {"features": _of_features, "samples": _of_samples, "tasks": _of_tasks}


# ---- Figures and tests.


def _figures(entry: Entry, found: Comparison) -> str:
    """The figures of an entry that a sentence quotes."""
    if entry.n_wrong is None:
        return f"RMSE {shown(entry.scores['RMSE'], 4)}"
    wrong = f"{entry.n_wrong:,} of {found.n_targets:,} wrong"
    if "Log loss" in entry.scores:
        wrong += f", log loss {shown(entry.scores['Log loss'])}"
    return wrong


def _support(found: Comparison) -> list[str]:
    """Our figures and the best linear rival's, with the test between them."""
    mine = _figures(found.mine, found)
    rival = found.rival
    if rival is None:
        seen = [entry.remark for entry in found.entries if entry.role == "linear" and entry.remark]
        why = f" The linear model {seen[0]}." if seen else ""
        return [f"On held-out rows: {mine}.{why}"]
    test = found.against(rival)
    result = "a tie" if test.tie else "better" if test.better else "worse"
    return [
        f"On held-out rows: {mine}; {_short(rival)}: {_figures(rival, found)}. "
        f"By a paired test on the {found.n_targets:,} losses this is {result} ({test.in_words})."
    ]


def _boosting(found: Comparison) -> list[str]:
    """What staying linear costs."""
    if not any(entry.role == "boosting" for entry in found.entries):
        return ["Gradient boosting was not tried, as there are too many rows or columns for it."]
    texts = []
    for entry in found.of_role("boosting"):
        test = found.against(entry)
        if test.worse:
            end = "does better: that is the price of staying linear"
        elif test.better:
            end = "does worse"
        elif test.gain < -NEGLIGIBLE:
            end = "is ahead, though not clearly"
        else:
            end = "does no better"
        figure = _figures(entry, found)
        texts.append(f"Gradient boosting, which is not linear, {end} ({figure}).")
    return texts


def _oracle(found: Comparison) -> list[str]:
    """What experts would achieve if it were known who answers."""
    return [
        f"If the best expert of every row were known: {_figures(entry, found)}."
        for entry in found.entries
        if entry.role == "oracle"
    ]


def _how(model: Any, found: Comparison) -> str:
    how = (
        f"The model was fitted anew to {found.n_train:,} rows, its search included, and judged on "
        f"{found.n_test:,} others."
        if found.refitted
        else f"The model was judged on {found.n_test:,} rows that were held out."
    )
    count = count_groups(final_estimator(model))
    if found.n_groups != count:
        thing = "expert" if kind_of(model) == "samples" else "group"
        how += f" That copy has {plural(found.n_groups, thing)}, the model of this page {count}."
    if found.n_available > found.n_train + found.n_test * found.refitted:
        how += f" To be quick, rows were drawn at random from {found.n_available:,}."
    return how
