"""How experts or groups of tasks differ, and whom a gate sends where: sentences and pictures."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from clustruct.explanation.contrasts import Contrasts, GateView, contrasts_of, gate_view
from clustruct.figures.numbers import TIMES, shown, signed
from clustruct.figures.weights import contrasts_figure, gate_figure, middles_figure
from clustruct.inspection import final_estimator, kind_of
from clustruct.reporting.pictures import Picture
from clustruct.reporting.wording import Wording, name_list

MOST_DIFFERENCES = 3  # features that are told of each expert
MOST_DRAWN = 12
# Differences and pulls below this part of the largest are not worth a word.
WORTH_A_WORD = 0.15
LEAST_PULL = 0.25  # less, for a standard deviation, sends hardly a sample elsewhere
CLEARLY = 1.2  # times as much
BARELY = 0.1  # of the others' weight


@dataclass(eq=False)
class Differences:
    """What the section on differences says: how to read it, sentences on each model, pictures."""

    note: str
    items: list[tuple[int, str, list[str]]] = field(default_factory=list)  # label, name, sentences
    figures: list[Picture] = field(default_factory=list)


def describe_differences(
    model: Any, X: Any, names: Sequence[str] | None, wording: Wording
) -> Differences | None:
    """How experts or groups of tasks differ; None where there is one only, or none."""
    if kind_of(model) == "features" or len(wording.weights) < 2:
        return None
    found = contrasts_of(model, X, names)
    gate = gate_view(model, X, names) if kind_of(model) == "samples" else None
    page = Differences(
        f"Weights are compared with the mean of the other {found.thing}s, as what one standard "
        f"deviation of a feature adds to the {found.outputs.quantity}."
    )
    for q in range(len(found.weights)):
        sentences = _differences(found, q, wording)
        if gate is not None:
            sentences.append(_sent(gate, q))
        page.items.append((q, f"{found.thing.capitalize()} {q}", sentences))
    axis = f"{found.outputs.quantity} per standard deviation"
    weights = contrasts_figure(found, axis, MOST_DRAWN)
    remark = "Every dot is a weight; where dots of a row lie apart, there the models differ."
    page.figures.append(Picture.of(weights, remark))
    remark = "All features are at their means: what is left is the intercept."
    page.figures.append(Picture.of(middles_figure(found, MOST_DRAWN), remark))
    if gate is not None:
        remark = "Dots to the right: larger values of the feature send a sample to this expert."
        page.figures.append(Picture.of(gate_figure(gate, MOST_DRAWN), remark))
    elif kind_of(model) == "samples" and getattr(final_estimator(model), "gate", None) is None:
        page.note += (
            " There is no gate, so that nothing tells which expert is right for a new sample: "
            "its prediction is the mean of all experts, weighted by their shares."
        )
    return page


# ---- In words.


def _differences(found: Contrasts, place: int, wording: Wording) -> list[str]:
    """Where one differs most from the mean of the others."""
    mine, middle = found.weights[place], found.middles[place]
    others, middles = found.against_others(place)
    difference = np.abs(mine - others)
    least = WORTH_A_WORD * float(np.ptp(found.weights, axis=0).max())
    sentences = []
    for flat in np.argsort(-difference, axis=None, kind="stable")[:MOST_DIFFERENCES]:
        k, j = np.unravel_index(flat, difference.shape)
        if difference[k, j] > max(least, 0.0):
            effect = wording.effect(place, int(k), int(j))
            weights = float(mine[k, j]), float(others[k, j])
            sentences.append(compared(str(found.names[j]), *weights, _what(found, int(k)), effect))
    if not sentences:
        sentences.append("Its weights are much like those of the others.")
    k = int(np.abs(middle - middles).argmax())
    sentences.append(_middle(found, k, float(middle[k]), float(middles[k])))
    return sentences


def compared(feature: str, mine: float, others: float, what: str, effect: str = "") -> str:
    """The weight of a feature beside the mean of the others' weights, in words and numbers.

    Weights add to `what`, such as "the odds of red"; the effect is the same weight in raw units,
    if that is another number.
    """
    numbers = f"({signed(mine)} against {signed(others)}{effect and f'; here {effect}'})"
    verb = "raises" if mine > 0.0 else "lowers"
    if abs(mine) <= BARELY * abs(others):
        return f"{feature} hardly changes {what} {numbers}."
    if abs(others) <= BARELY * abs(mine):
        return f"{feature} {verb} {what}, for the others hardly {numbers}."
    if mine * others < 0.0:
        return f"{feature} {verb} {what}, for the others the reverse {numbers}."
    ratio = mine / others
    amount = f"{shown(ratio, 2)} {TIMES} as much"
    if ratio >= CLEARLY:
        return f"{feature} {verb} {what} {amount} {numbers}."
    if ratio <= 1.0 / CLEARLY:
        return f"{feature} {verb} {what} less, {amount} {numbers}."
    return f"{feature} {verb} {what} about as much {numbers}."


def _what(found: Contrasts, k: int) -> str:
    """What the weights of an output add to."""
    name = found.outputs.names[k]
    what = {"number": "prediction", "odds": "odds", "score": "score"}[found.outputs.kind]
    return f"the {what} of {name}" if name else f"the {what}"


def _middle(found: Contrasts, k: int, mine: float, others: float) -> str:
    """The intercept, as the score of the average sample."""
    what = _what(found, k).replace("the odds", "the log odds")
    verb = "are" if found.outputs.kind == "odds" else "is"
    return f"For the average sample {what} {verb} {shown(mine)}, with the others {shown(others)}."


def _sent(gate: GateView, place: int) -> str:
    """Which samples the gate sends to an expert."""
    pulls, share = gate.pulls[place], float(gate.shares[place])
    least = max(WORTH_A_WORD * float(np.abs(gate.pulls).max(initial=0.0)), LEAST_PULL)
    order = np.argsort(-np.abs(pulls), kind="stable")[:MOST_DIFFERENCES]
    kept = [int(j) for j in order if abs(pulls[j]) > least]
    if not kept:
        return f"The gate sends it {share:.0%} of the samples, by no feature in particular."
    large = [str(gate.names[j]) for j in kept if pulls[j] > 0.0]
    small = [str(gate.names[j]) for j in kept if pulls[j] < 0.0]
    parts = [f"large {name_list(large)}"] if large else []
    parts += [f"small {name_list(small)}"] if small else []
    return f"The gate sends it {share:.0%} of the samples, those with {' and '.join(parts)}."
