"""Intervals for the values of groups."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.special import ndtr, ndtri

from clustruct._docs import documented_fields
from clustruct._typing import Floats
from clustruct.results.tables import GroupTable, plural


@documented_fields
@dataclass(frozen=True, eq=False)
class GroupInterval:
    """The value of a group, with intervals.

    See Also
    --------
    StabilityResult : Its method ``intervals`` returns a list of them.

    Examples
    --------
    >>> import clustruct as cs
    >>> cs.GroupInterval(0, "", 1.5, (1.2, 1.9), (1.3, 1.7)).value
    1.5
    """

    label: Annotated[int | str, "Number of the group, or ``'intercept'``."]
    output: Annotated[str, "Which of its values, if it has several."]
    value: Annotated[float, "The value in the model."]
    with_grouping: Annotated[
        tuple[float, float], "Bootstrap interval, in which groups are found anew each time."
    ]
    given_groups: Annotated[
        tuple[float, float],
        "Normal interval, which takes the groups for known: often too short. NaN for tasks.",
    ]


class GroupIntervals(GroupTable[GroupInterval]):
    """The table of intervals: a list of `GroupInterval` that is shown as a table.

    Parameters
    ----------
    iterable : iterable of GroupInterval, default=()
        The intervals.

    See Also
    --------
    StabilityResult : Its method ``intervals`` returns one.

    Examples
    --------
    >>> import clustruct as cs
    >>> print(cs.GroupIntervals([cs.GroupInterval(0, "", 1.5, (1.2, 1.9), (1.3, 1.7))]))
    1 group
    <BLANKLINE>
    group  value  with the grouping found anew  given the groups
    ------------------------------------------------------------
        0    1.5                    1.2 to 1.9  1.3 to 1.7
    """

    def _table(self) -> tuple[str, Sequence[str], list[Sequence[object]]]:
        several = any(each.output for each in self)
        rows: list[Sequence[object]] = [
            (
                "zero" if each.label == -1 else each.label,
                *([each.output] if several else []),
                each.value,
                _shown(each.with_grouping),
                _shown(each.given_groups),
            )
            for each in self
        ]
        header = ("group", *(["output"] if several else []), "value")
        header = (*header, "with the grouping found anew", "given the groups")
        n_groups = len({each.label for each in self} - {"intercept"})
        return plural(n_groups, "group"), header, rows


def _shown(interval: tuple[float, float]) -> str:
    if not np.isfinite(interval).all():
        return "not known"
    return f"{interval[0]:.4g} to {interval[1]:.4g}"


@dataclass(frozen=True, eq=False)
class GroupValues:
    """Values of groups in the resamples, with what is known of them given the groups.

    rows: labels of the groups, then "intercept" for features.
    columns: what each value is for.
    resampled (B, R, C); estimates, std_errors and accelerations (R, C).
    """

    rows: tuple[int | str, ...]
    columns: tuple[str, ...]
    resampled: Floats
    estimates: Floats
    std_errors: Floats
    accelerations: Floats

    def intervals(self, level: float, *, bca: bool) -> Iterator[GroupInterval]:
        """Those of the bootstrap and those given the groups, for each value."""
        bend = self.accelerations if bca else None
        low, high = bootstrap_interval(self.resampled, self.estimates, level, bend)
        away = ndtri(0.5 + 0.5 * level) * self.std_errors
        for (r, c), value in np.ndenumerate(self.estimates):
            yield GroupInterval(
                self.rows[r],
                self.columns[c],
                float(value),
                (float(low[r, c]), float(high[r, c])),
                (float(value - away[r, c]), float(value + away[r, c])),
            )


def bootstrap_interval(
    values: Floats, estimates: Floats, level: float, accelerations: Floats | None
) -> tuple[Floats, Floats]:
    """Percentile intervals, or BCa intervals where accelerations are given (Efron, 1987).

    Shapes: values (B, ...), estimates (...). Resamples without a value (NaN) are left out. With
    ``z0`` the normal quantile of the share of resamples below the estimate and ``a`` the
    acceleration, the quantile ``z`` of the normal is replaced by
    ``z0 + (z0 + z) / (1 - a (z0 + z))``.
    """
    there = np.isfinite(values)
    n_there = np.maximum(there.sum(axis=0), 1)
    z = np.broadcast_to(ndtri([0.5 - 0.5 * level, 0.5 + 0.5 * level]), (*estimates.shape, 2))
    if accelerations is not None:
        below = (values < estimates) & there
        ties = (values == estimates) & there
        share = (below.sum(axis=0) + 0.5 * ties.sum(axis=0)) / n_there
        z0 = ndtri(np.clip(share, 0.5 / n_there, 1.0 - 0.5 / n_there))[..., None]
        z = z0 + (z0 + z) / (1.0 - accelerations[..., None] * (z0 + z))
    shares = ndtr(z)
    bounds = np.full((*estimates.shape, 2), np.nan)
    for place in np.ndindex(*estimates.shape):
        mine = values[(slice(None), *place)]
        if (mine := mine[np.isfinite(mine)]).size:
            bounds[place] = np.quantile(mine, shares[place])
    return bounds[..., 0], bounds[..., 1]
