"""Levels of factors as they are drawn: one by one, or in bands where there are many."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from clustruct._typing import Floats, Indices
from clustruct.inspection import factors_of, final_estimator, prepared
from clustruct.losses import loss_of
from clustruct.reporting.comparing.comparison import Comparison
from clustruct.results import Relativities, Relativity
from clustruct.results.relativities import shown_level

MOST_ROWS = 30  # levels without order that have a row each, or bands of them
MOST_STEPS = 120  # levels in an order
# Share of the exposure of held-out rows that levels in an order have together, at least.
LEAST_SHARE = 0.02
NOMINAL, DASH = "nominal", "\N{EN DASH}"


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Sums over held-out rows for each level of a factor."""

    exposure: Floats
    observed: Floats
    fitted: Floats
    variance: Floats  # of `observed`; NaN if the loss has none


@dataclass(frozen=True, eq=False)
class Band:
    """Levels that are drawn as one: a level, a group, or neighbouring groups."""

    levels: list[Relativity]
    places: Indices  # of its levels, in their factor
    name: str

    @property
    def exposure(self) -> float:
        """Of the training rows; the number of levels where it is not known."""
        return _total(self.levels)

    @property
    def relativity(self) -> float:
        """The mean, weighted by exposure; in a group all are the same."""
        weights = np.array([row.exposure or 0.0 for row in self.levels])
        values = np.array([row.relativity for row in self.levels])
        return float(np.average(values, weights=weights if weights.sum() > 0.0 else None))


@dataclass(frozen=True, eq=False)
class FactorRows:
    """A factor of the table of relativities, and the sums over held-out rows."""

    name: str
    kind: str
    levels: list[Relativity]
    held_out: HeldOut | None

    @property
    def groups(self) -> list[int]:
        """Numbers of its groups."""
        return sorted({row.group for row in self.levels if row.group is not None})

    @property
    def ordered(self) -> bool:
        """Whether its levels have an order."""
        return self.kind != NOMINAL

    @property
    def exposure(self) -> float:
        """Of all training rows."""
        return _total(self.levels)

    def bands(self) -> list[Band]:
        """Levels in the order in which they are drawn; of many, bands of those in one group."""
        most = MOST_STEPS if self.ordered else MOST_ROWS
        parts = [np.array([q]) for q in self._order]
        if len(parts) > most:
            parts = self.groups_in_order()
        if len(parts) > most:  # too many groups for one picture: neighbours share a band
            some = np.array_split(np.arange(len(parts)), most)
            parts = [np.concatenate([parts[q] for q in mine]) for mine in some]
        return [self._band(part) for part in parts]

    def held_out_bands(self) -> list[Band]:
        """The same; in an order, rare neighbours share a band, so that means can be told."""
        if not self.ordered or self.held_out is None:
            return self.bands()
        exposure = self.held_out.exposure
        parts: list[list[int]] = [[]]
        for q, row in enumerate(self.levels):
            full = exposure[parts[-1]].sum() >= LEAST_SHARE * exposure.sum()
            if parts[-1] and (full or row.level is None):
                parts.append([])
            parts[-1].append(q)
        rest = len(parts) - 1 - (self.levels[-1].level is None)
        if rest > 0 and exposure[parts[rest]].sum() < LEAST_SHARE * exposure.sum():
            parts[rest - 1 : rest + 1] = [parts[rest - 1] + parts[rest]]
        return [self._band(np.array(part)) for part in parts]

    def groups_in_order(self) -> list[Indices]:
        """Places of the levels of each group, by effect or in the order of the levels."""
        labels = np.array([-2 if row.level is None else row.group for row in self.levels])
        return np.split(self._order, np.flatnonzero(np.diff(labels[self._order])) + 1)

    @property
    def _order(self) -> Indices:
        if self.ordered:
            return np.arange(len(self.levels))
        effects = np.array([row.effect for row in self.levels])
        labels = np.array([-1 if row.group is None else row.group for row in self.levels])
        return np.lexsort((labels, effects))

    def _band(self, places: Indices) -> Band:
        rows = [self.levels[q] for q in places]
        names = [level_name(row.level) for row in rows]
        if len(rows) == 1:
            return Band(rows, places, names[0])
        if self.ordered:
            return Band(rows, places, f"{names[0]}{DASH}{names[-1]} ({len(rows)})")
        groups = sorted({row.group for row in rows if row.group is not None})
        group = f"group {groups[0]}" if len(groups) == 1 else f"groups {groups[0]}-{groups[-1]}"
        return Band(rows, places, f"{group}: {len(rows):,} levels")


def level_name(level: Any) -> str:
    """A level as it is written, even if it is an empty text."""
    return shown_level(level).strip() or "(empty)"


def _total(levels: list[Relativity]) -> float:
    return float(sum(row.exposure or 0.0 for row in levels))


def factor_rows(
    model: Any, table: Relativities, held: list[HeldOut] | None = None
) -> list[FactorRows]:
    """The factors of a model, one after the other, with sums over held-out rows, if there are."""
    learnt = factors_of(model).factors
    return [
        FactorRows(
            each.name,
            each.kind,
            [row for row in table if row.factor == each.name],
            held[place] if held else None,
        )
        for place, each in enumerate(learnt)
    ]


def judged_factors(found: Comparison | None) -> dict[str, FactorRows]:
    """Factors of the model that was judged, with means of held-out rows.

    A copy that was fitted without these rows has groups of its own. Those of the model of the page
    would not do: they were found with the targets of these rows.
    """
    if found is None:
        return {}
    held = list(_held_out_sums(found))
    table = final_estimator(found.judged).relativities() if held else Relativities()
    return {each.name: each for each in factor_rows(found.judged, table, held) if held}


def _held_out_sums(found: Comparison) -> Iterator[HeldOut]:
    """Sums over held-out rows for each level of each factor; none where no mean is predicted."""
    model, data = found.judged, found.held_out
    estimator = final_estimator(model)
    values = None if data is None else _targets_and_means(estimator, found)
    if data is None or values is None:
        return
    target, mean, variance = values
    weights = np.ones(data.n) if data.weights is None else data.weights
    exposure = weights
    if data.offset is not None and not is_classifier(estimator) and loss_of(estimator).has_log_link:
        exposure = weights * np.exp(data.offset.reshape(-1))
    # Pearson's dispersion of the held-out rows: their variance need not be that of the family.
    spread = float(np.average(np.square(target - mean) / variance, weights=weights))
    rows = [exposure, weights * target, weights * mean, np.square(weights) * spread * variance]
    design = factors_of(model).encode(prepared(model, data.X))
    for sums in design.tallies(np.column_stack(rows)):
        yield HeldOut(*sums[:-1].T)


def _targets_and_means(estimator: Any, found: Comparison) -> tuple[Floats, Floats, Floats] | None:
    """Held-out targets as numbers, what was predicted, and variances of the family."""
    mine, loss = found.mine, loss_of(estimator)
    if found.classes is None:
        if not loss.predicts_means:
            return None
        predicted = np.asarray(mine.predicted, dtype=np.float64).reshape(-1)
        variance = loss.variance(predicted)
        if variance is None:
            variance = np.ones_like(predicted)
        return np.asarray(found.truth, dtype=np.float64).reshape(-1), predicted, variance
    if mine.chances is None or len(found.classes) != 2:
        return None
    chance = np.clip(mine.chances[:, 1], 1e-9, 1.0 - 1e-9)
    happened: NDArray[Any] = np.asarray(found.truth == found.classes[1])
    return happened.astype(np.float64), chance, chance * (1.0 - chance)
