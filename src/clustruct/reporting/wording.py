"""Weights and effects in words: what they are of, for one feature or one class, and how large."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from clustruct import inspection
from clustruct._typing import Floats
from clustruct.explanation.effects import raw_effects
from clustruct.figures.numbers import TIMES, shown, signed
from clustruct.reporting.comparing.encoding import as_matrix

SOME_ROWS = 2000
ROUNDING = 1e-10
# Units are told in powers of ten of the column where its deviation is not about one.
ABOUT_ONE = (0.3, 10.0)
LARGEST_LOG_ODDS = 10.0  # beyond that, a factor of the odds is a number nobody can read


class Wording:
    """How the weights of a fitted model are spoken of.

    `weights`, ``Q x K x d``, are those of every expert or centroid, with 0 for what is zero to
    rounding; for features Q is 1, and `levels` has the same zeros. `values` are what the unit of
    each raw column adds to each score, NaN where there is none, and `units` name these, such as
    "per 100" or "against red". `matrix` holds some samples, evenly drawn, as the model sees them,
    and `deviations` are those of its columns.
    """

    def __init__(self, model: Any, X: Any, n_rows: int, names: Sequence[str] | None = None) -> None:
        self.names = inspection.feature_names(model, names)
        rows = inspection.thinned(np.arange(n_rows), SOME_ROWS)
        self.matrix = check_array(as_matrix(model, X, rows), accept_sparse=True)
        self.deviations = inspection.moments(self.matrix)[1]
        self.outputs = inspection.outputs_of(model)
        self._of_factors = inspection.factors_of(model) is not None
        self.weights = tidy(inspection.weights_of(model))
        self.levels: inspection.Levels | None = None
        if inspection.kind_of(model) == "features":
            found = inspection.levels_of(model, names)
            self.levels = replace(found, values=tidy(found.values), weights=tidy(found.weights))
        effects = raw_effects(model, self.weights)
        self.origins = effects.origins
        self._rescaled = effects.rescaled
        slopes = np.array([abs(origin.slope) for origin in effects.origins])
        raw = np.array([unit == "per unit" for unit in effects.units])
        steps = np.ones(raw.size)
        steps[raw] = [_power_of_ten(spread) for spread in self.deviations[raw] / slopes[raw]]
        self.values = effects.values * steps
        self.units = tuple(
            unit if step == 1.0 else f"per {plain(step)}"
            for unit, step in zip(effects.units, steps, strict=True)
        )

    @property
    def several(self) -> bool:
        """Whether there is more than one output."""
        return len(self.outputs.names) > 1

    @cached_property
    def has_effects(self) -> bool:
        """Whether effects in raw units tell more than the weights do."""
        if self._of_factors:  # the section on factors has them
            return False
        return any(self.units) and (self._rescaled or set(self.units) - {"", "per unit"} != set())

    @property
    def unit_of_weights(self) -> str:
        """What of a feature a weight is for, in words."""
        numbers = [
            j for j, origin in enumerate(self.origins) if origin.kind not in ("level", "missing")
        ]
        if not numbers:
            return "the level"
        if all(self.origins[j].kind == "text" for j in numbers):
            return "unit of TF-IDF"
        spread = self.deviations[numbers]
        if abs(float(np.median(spread)) - 1.0) < 0.15 and np.ptp(spread) < 0.5:
            return "standard deviation"
        return "unit after scaling" if self._rescaled else "unit"

    @property
    def axis(self) -> str:
        """The name of an axis of weights: what they add to, and for what."""
        return f"weight: {self.outputs.quantity} per {self.unit_of_weights}"

    def note(self) -> list[str]:
        """Sentences that say how to read weights and effects."""
        outputs, unit = self.outputs, self.unit_of_weights
        one = "having" if unit == "the level" else "one"
        kinds = {origin.kind for origin in self.origins}
        level = "; that of a level, what having it adds" if kinds > {"level"} else ""
        texts = [
            f"A weight is what {one} {unit} of a feature adds to the {outputs.quantity}{level}."
        ]
        if outputs.kind != "number" and not self.several:
            what = "odds" if outputs.kind == "odds" else "score"
            rival = f"the {what} of {outputs.other}" if outputs.other else "those of the others"
            texts.append(
                f"A positive weight raises the {what} of {outputs.names[0]}, a negative one raises "
                f"{rival}."
            )
        elif outputs.kind == "odds":
            texts.append(
                "A positive weight raises the odds of its class against the others, a negative one "
                "lowers them."
            )
        if self.has_effects:
            told = "factor of the odds" if self._as_factor else f"change of the {outputs.quantity}"
            where = "The table of features lists" if self.several else "Beside a feature stands"
            texts.append(f"{where} the {told} in the units of its column.")
        if "text" in kinds:
            texts.append("Words count by their TF-IDF, which has no raw unit.")
        return texts

    @property
    def _as_factor(self) -> bool:
        return self.outputs.kind == "odds" and not self.several

    def effect(self, q: int, k: int, j: int) -> str:
        """The effect of a feature in its raw unit; empty where it tells no more than the weight."""
        value, unit = float(self.values[q, k, j]), self.units[j]
        if not self.has_effects or not unit or not np.isfinite(value):
            return ""
        if self._as_factor and abs(value) < LARGEST_LOG_ODDS:
            return f"odds {TIMES} {_factor(value)} {unit}"
        return f"{signed(value)} {unit}"

    def odds_ratio(self, value: float) -> str:
        """A weight as a factor of the odds, where it is one; else empty."""
        if not self._as_factor or abs(value) >= LARGEST_LOG_ODDS:
            return ""
        return f"odds of {self.outputs.names[0]} {TIMES} {_factor(value)}"


def _factor(log_odds: float) -> str:
    """A factor of the odds; one near 1 with more digits."""
    return shown(float(np.exp(log_odds)), 3 if abs(log_odds) > 0.05 else 5)


def _power_of_ten(deviation: float) -> float:
    """The power of ten next to a deviation, or 1 where that is near enough."""
    low, high = ABOUT_ONE
    if not np.isfinite(deviation) or deviation <= 0.0 or low <= deviation <= high:
        return 1.0
    return float(10.0 ** np.round(np.log10(deviation)))


def plain(step: float) -> str:
    """A power of ten without an exponent, as far as that is short."""
    return f"{step:,.0f}" if 1.0 <= step < 1e7 else f"{step:.10f}".rstrip("0")


def tidy(values: Floats) -> Floats:
    """The same with zero for what is zero to rounding, beside the largest."""
    largest = float(np.abs(values).max(initial=0.0))
    return np.where(np.abs(values) <= ROUNDING * largest, 0.0, values)


def name_list(names: Sequence[Any] | NDArray[Any], most: int = 5) -> str:
    """Names as a sentence has them, the first of many."""
    first = [str(name) for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(first)} and {len(names) - most:,} more"
    return first[0] if len(first) == 1 else f"{', '.join(first[:-1])} and {first[-1]}"
