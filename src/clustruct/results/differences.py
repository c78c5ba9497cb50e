"""Tests of whether two groups differ."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from clustruct._docs import documented_fields
from clustruct._typing import Floats
from clustruct.results.tables import GroupTable


@documented_fields
@dataclass(frozen=True, eq=False)
class GroupDifference:
    """A test of whether two groups have different values.

    See Also
    --------
    compare_groups : Tests for the groups of a model.
    compare_groups_1d : Tests for groups of numbers.

    Examples
    --------
    >>> import clustruct as cs
    >>> cs.GroupDifference((0, 1), ("a, b", "c"), -1.2, 0.3, 6e-5, 6e-5).p_value
    6e-05
    """

    labels: Annotated[tuple[int, int], "Numbers of the two groups."]
    names: Annotated[tuple[str, str], "What is in them."]
    difference: Annotated[float, "Value of the first less that of the second."]
    std_error: Annotated[float, "Standard error of the difference, given the groups."]
    p_value: Annotated[float, "Of the hypothesis that they have the same value."]
    adjusted: Annotated[float, "The same by Holm's rule, for all pairs together."]


class GroupDifferences(GroupTable[GroupDifference]):
    """A list of `GroupDifference` that is shown as a table.

    Parameters
    ----------
    iterable : iterable of GroupDifference, default=()
        The tests.
    method : str, default=""
        How they account for groups that were found on the same data.

    See Also
    --------
    compare_groups : The function that returns it.

    Examples
    --------
    >>> import clustruct as cs
    >>> test = cs.GroupDifference((0, 1), ("a, b", "c"), -1.2, 0.3, 6e-5, 6e-5)
    >>> print(cs.GroupDifferences([test], method="selective"))
    1 pair of groups, selective inference
    <BLANKLINE>
    groups  difference  std. error  p-value  adjusted  members
    -----------------------------------------------------------
     0 | 1        -1.2         0.3    6e-05     6e-05  a, b | c
    """

    def __init__(self, iterable: Sequence[GroupDifference] = (), method: str = "") -> None:
        super().__init__(iterable)
        self.method = method

    def _table(self) -> tuple[str, Sequence[str], list[Sequence[object]]]:
        means = {"selective": ", selective inference", "split": ", groups found on one half"}
        title = f"{len(self):,} {'pair' if len(self) == 1 else 'pairs'} of groups"
        header = ("groups", "difference", "std. error", "p-value", "adjusted", "members")
        rows: list[Sequence[object]] = [
            (
                " | ".join(map(str, each.labels)),
                each.difference,
                each.std_error,
                each.p_value,
                each.adjusted,
                " | ".join(each.names),
            )
            for each in self
        ]
        return title + means.get(self.method, ""), header, rows


def holm(p_values: Floats) -> Floats:
    """p-values adjusted by Holm's rule; NaN stays, and does not count."""
    adjusted = np.full(p_values.shape, np.nan)
    known = np.flatnonzero(np.isfinite(p_values))
    order = known[np.argsort(p_values[known], kind="stable")]
    factors = np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p_values[order] * factors))
    return adjusted
