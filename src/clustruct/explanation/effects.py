"""Effects in the units of the table: what a raw unit, or a level, changes in the prediction."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from clustruct._typing import Floats
from clustruct.explanation.origins import Origin, origins_of
from clustruct.inspection import final_estimator, kind_of, outputs_of

YEAR = 365.25
# Dates that are spread by more days than this are spoken of in years.
SPREAD_IN_YEARS = 180.0


@dataclass(frozen=True, eq=False)
class RawEffects:
    """What a unit of a raw column changes in the score of a model.

    The score is the prediction for a regression, the logarithm of the odds for a classification.
    """

    origins: tuple[Origin, ...]  # where each of d features comes from
    # ... x d: the effect of one unit; for a level, against the level without a feature, or against
    # the mean of the other levels of its column. NaN where a feature has no unit.
    values: Floats
    # "per unit", "per year", "per day", "against red", "against the other levels", "if missing",
    # "per occurrence"; empty where there is none.
    units: tuple[str, ...]

    @property
    def rescaled(self) -> bool:
        """Whether some effect is another number than the weight of its feature."""
        return any(
            bool(unit) and (origin.slope != 1.0 or origin.kind == "level")
            for origin, unit in zip(self.origins, self.units, strict=True)
        )


def raw_effects(model: Any, weights: ArrayLike | None = None) -> RawEffects:
    """The effect of a unit of every raw column, through all steps before a model, for each weight.

    The weights, ... x d, are the model's own if None.
    """
    origins = origins_of(model)
    if weights is None:
        estimator = final_estimator(model)
        weights = estimator.experts_ if kind_of(model) == "samples" else estimator.coef_
    own = np.asarray(weights, dtype=np.float64)
    slopes = np.array([origin.slope for origin in origins])
    values = own * slopes
    for members in _levels_by_column(origins).values():
        others = values[..., members].sum(axis=-1, keepdims=True) - values[..., members]
        values[..., members] -= others / (len(members) - 1)
    days = np.array([_days(origin) for origin in origins])
    units = tuple(_unit(origin, step) for origin, step in zip(origins, days, strict=True))
    return RawEffects(tuple(origins), values * days, units)


def weight_axis(model: Any) -> str:
    """What the weights of a model add to, and for what of a feature, as the name of an axis."""
    scaled = any(
        origin.kind != "level" and np.isfinite(origin.slope) and origin.slope != 1.0
        for origin in origins_of(model)
    )
    quantity = outputs_of(model).quantity
    return f"weight: {quantity} per {'unit after scaling' if scaled else 'unit'}"


def _levels_by_column(origins: list[Origin]) -> dict[str, list[int]]:
    """Features of the columns whose levels all have one, and are at least two."""
    found: dict[str, list[int]] = {}
    for j, origin in enumerate(origins):
        if origin.kind == "level" and origin.base is None:
            found.setdefault(origin.column, []).append(j)
    return {column: members for column, members in found.items() if len(members) > 1}


def _days(origin: Origin) -> float:
    """Days in the unit of a date; 1 for all else."""
    in_years = origin.kind == "date" and abs(origin.slope) * SPREAD_IN_YEARS < 1.0
    return YEAR if in_years else 1.0


def _unit(origin: Origin, step: float) -> str:
    if not np.isfinite(origin.slope):
        return ""
    if origin.kind == "level":
        return "against the other levels" if origin.base is None else f"against {origin.base}"
    if origin.kind in ("missing", "count"):
        return "if missing" if origin.kind == "missing" else "per occurrence"
    if origin.kind == "date":
        return "per year" if step == YEAR else "per day"
    return "per unit"
