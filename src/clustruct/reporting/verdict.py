"""What the comparison allows to say, in words that a reader can repeat."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from clustruct.figures.numbers import shown
from clustruct.reporting.comparing.comparison import Comparison
from clustruct.reporting.comparing.scores import Entry
from clustruct.reporting.subjects import Subject, Words, subject_of
from clustruct.results.tables import plural

# A larger gain that is not significant is not called nothing: there are too few rows to tell.
NOTHING = 0.02
PROPER = ("Poisson", "Tweedie", "RMSE")  # names that keep their capital


class Verdict(NamedTuple):
    """One sentence that says whether a model is any good, and sentences with figures and tests."""

    headline: str
    support: tuple[str, ...]


def verdict_on(model: Any, found: Comparison | None) -> Verdict:
    """Judge a fitted model by what was measured; the comparison is None if nothing was held out."""
    subject = subject_of(model)
    if found is None:
        text = "Nothing was held out, so nothing is known about its predictions on new rows."
        return Verdict(f"{subject.words(None).plain}.", (text,))
    known = [
        f"If the best expert of every row were known: {_figures(entry, found)}."
        for entry in found.entries
        if entry.role == "oracle"
    ]
    support = (_support(found), *_boosting(found), *known, _how(subject, found))
    return Verdict(_headline(subject.words(found.n_groups), found), support)


def _headline(words: Words, found: Comparison) -> str:
    rival = found.rival
    test = None if rival is None else found.against(rival)
    if rival is not None and test is not None and test.worse:
        return f"{words.worse.format(_short(rival))}."
    for constant in found.of_role("constant"):
        against = found.against(constant)
        if not against.better:
            name = "always giving the classes their overall shares"
            if found.classes is None:
                name = f"always saying {constant.name.removeprefix('Always ')}"
            if against.gain < (0.0 if found.by_deviance else NOTHING):
                return f"No better than {name}: nothing was found."
            return f"Not shown to be better than {name}: {found.n_targets:,} rows cannot tell."
    if rival is None or test is None:
        return f"{words.plain}; it was not compared with a model without groups."
    if test.better:
        return f"{words.better.format(_short(rival))}."
    sure = abs(test.gain) < test.negligible
    doubt = "" if sure else f", as far as {found.n_targets:,} held-out rows can tell"
    return f"{words.tie.format(_short(rival))}{doubt}."


def _short(entry: Entry) -> str:
    """The name of a rival inside a sentence."""
    return _inside(entry.name.split(",")[0])


def _inside(text: str) -> str:
    """A text as it stands inside a sentence."""
    return text if text.startswith(PROPER) else text[0].lower() + text[1:]


# ---- Figures and tests.


def _figures(entry: Entry, found: Comparison) -> str:
    """The figures of an entry that a sentence quotes."""
    if entry.n_wrong is None:
        told = (f"{_inside(name)} {shown(entry.scores[name], 4)}" for name in entry.quoted)
        return ", ".join(told)
    wrong = f"{entry.n_wrong:,} of {found.n_targets:,} wrong"
    if "Log loss" in entry.scores:
        wrong += f", log loss {shown(entry.scores['Log loss'])}"
    return wrong


def _support(found: Comparison) -> str:
    """Our figures and the best linear rival's, with the test between them."""
    mine = _figures(found.mine, found)
    rival = found.rival
    if rival is None:
        seen = [entry.remark for entry in found.entries if entry.role == "linear" and entry.remark]
        why = f" The linear model {seen[0]}." if seen else ""
        return f"On held-out rows: {mine}.{why}"
    test = found.against(rival)
    result = "a tie" if test.tie else "better" if test.better else "worse"
    return (
        f"On held-out rows: {mine}; {_short(rival)}: {_figures(rival, found)}. "
        f"By a paired test on the {found.n_targets:,} losses this is {result} ({test.in_words})."
    )


def _boosting(found: Comparison) -> Iterator[str]:
    """What staying linear costs."""
    if not any(entry.role == "boosting" for entry in found.entries):
        yield "Gradient boosting was not tried, as there are too many rows or columns for it."
    for entry in found.of_role("boosting"):
        test = found.against(entry)
        if test.worse:
            end = "does better: that is the price of staying linear"
        elif test.better:
            end = "does worse"
        elif test.gain < -test.negligible:
            end = "is ahead, though not clearly"
        else:
            end = "does no better"
        figure = _figures(entry, found)
        yield f"Gradient boosting, which is not linear, {end} ({figure})."


def _how(subject: Subject, found: Comparison) -> str:
    how = (
        f"The model was fitted anew to {found.n_train:,} rows, its search included, and judged on "
        f"{found.n_test:,} others."
        if found.refitted
        else f"The model was judged on {found.n_test:,} rows that were held out."
    )
    if found.n_groups != subject.n_groups:
        copy = plural(found.n_groups, subject.thing)
        how += f" That copy has {copy}, the model of this page {subject.n_groups}."
    if found.n_available > found.n_train + found.n_test * found.refitted:
        how += f" To be quick, rows were drawn at random from {found.n_available:,}."
    return how
