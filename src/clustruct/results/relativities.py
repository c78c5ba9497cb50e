"""Relativities: the levels of factors as the table of a tariff."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any

from clustruct._atomic import PathLike, replacing
from clustruct._docs import documented_fields
from clustruct.results.tables import GroupTable, plural

# The level of the only row of a numeric column.
PER_UNIT = "per unit"
# The level of rows whose value the fit has not seen.
UNKNOWN = "unknown"


@documented_fields
@dataclass(frozen=True)
class Relativity:
    """A level of a factor: its group, what was observed of it, and its relativity.

    See Also
    --------
    FeatureClusterRegressor : Its method ``relativities`` returns a list of them.

    Examples
    --------
    >>> import clustruct as cs
    >>> cs.Relativity("fuel", "diesel", "nominal", 1, 80.5, 7.0, 0.2, 1.22).relativity
    1.22
    """

    factor: Annotated[str, "Name of the column."]
    level: Annotated[
        Any,
        'The level; None for missing values, a bin in words, "per unit" for a numeric column, '
        '"unknown" for values that the fit has not seen.',
    ]
    kind: Annotated[str, 'Kind of the factor, such as "ordinal"; "numeric" for other columns.']
    group: Annotated[int | None, "Number of the group, as in ``labels_``; None if unknown."]
    exposure: Annotated[
        float | None,
        "Sum of the weights of its rows; where predictions are exponentials, each weight is "
        "multiplied by the exponential of the offset.",
    ]
    observed: Annotated[
        float | None,
        "Weighted sum of the targets of its rows: the claims, if targets are numbers or costs of "
        "claims. For two classes, the weight of the second one.",
    ]
    effect: Annotated[
        float, "Effect on the score; the mean over the training rows of a factor is 0."
    ]
    relativity: Annotated[
        float,
        "What the level multiplies the prediction, or the odds, of the reference level by; or what "
        "it adds to it, see `Relativities`.",
    ]
    fitted: Annotated[
        float | None, "Weighted sum of the predictions for its rows, if rows were given."
    ] = None
    observed_mean: Annotated[float | None, "Observed for each unit of exposure."] = None
    fitted_mean: Annotated[float | None, "Fitted for each unit of exposure."] = None
    lower: Annotated[
        float | None,
        "Lower end of an interval of 90 % of the relativity, which carries the uncertainty of the "
        "grouping; None unless `stability` was run with ``scheme='bootstrap'``, and for reference "
        "levels other than those with the most exposure.",
    ] = None
    upper: Annotated[float | None, "Upper end, likewise."] = None


# Columns that text and notebooks have no room for.
_HIDDEN = {"kind", "fitted"}


class Relativities(GroupTable[Relativity]):
    """The table of a tariff: a list of `Relativity` that is shown as a table.

    A prediction is the base value and the relativities of a row's levels, multiplied or added up;
    the relativity of a numeric column counts once for each unit, to the power of the number or
    times the number. ``pandas.DataFrame(table)`` makes a data frame of it.

    Parameters
    ----------
    iterable : iterable of Relativity, default=()
        The levels, one factor after the other, then the numeric columns.
    base : float, default=1.0
        Base value: the prediction, odds or score at the reference levels, with numeric columns and
        offset at 0.
    multiplies : bool, default=True
        Whether relativities multiply the base value; otherwise they are added to it.
    scale : str, default="prediction"
        What the base value is: "prediction"; "odds" of the second class; or "score", from which
        another link or class follows.
    references : mapping, default=None
        The reference level of each factor; empty if these are mean effects.

    See Also
    --------
    FeatureClusterRegressor : Its method ``relativities`` returns one.

    Examples
    --------
    >>> import clustruct as cs
    >>> rows = [
    ...     cs.Relativity("fuel", "petrol", "nominal", 0, 120.0, 6.0, -0.1, 1.0),
    ...     cs.Relativity("fuel", "diesel", "nominal", 1, 60.0, 4.0, 0.2, 1.35),
    ... ]
    >>> print(cs.Relativities(rows, base=0.05))
    2 levels of 1 factor in 2 groups; relativities multiply a base prediction of 0.05
    <BLANKLINE>
    factor   level  group  exposure  observed  effect  relativity
    -------------------------------------------------------------
      fuel  petrol      0       120         6    -0.1  1
      fuel  diesel      1        60         4     0.2  1.35
    """

    def __init__(
        self,
        iterable: Iterable[Relativity] = (),
        *,
        base: float = 1.0,
        multiplies: bool = True,
        scale: str = "prediction",
        references: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(iterable)
        self.base, self.multiplies, self.scale = base, multiplies, scale
        self.references = dict(references or {})

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary for each level, without columns that no level has.

        Returns
        -------
        list of dict
            ``pandas.DataFrame(table.rows())`` makes a data frame of it.
        """
        columns = self._columns()
        return [{name: getattr(row, name) for name in columns} for row in self]

    def to_csv(self, path: PathLike) -> None:
        """Write the table as comma-separated values, with all digits.

        Parameters
        ----------
        path : path-like
            The file; an older one is replaced.
        """
        rows = [{**row, "level": shown_level(row["level"])} for row in self.rows()]
        with replacing(path) as partial, partial.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, self._columns())
            writer.writeheader()
            writer.writerows(rows)

    def _columns(self) -> list[str]:
        """Columns that some level has an entry of, and those of every table."""
        return [
            field.name
            for field in fields(Relativity)
            if field.default is not None
            or any(getattr(row, field.name) is not None for row in self)
        ]

    def _table(self) -> tuple[str, Sequence[str], list[Sequence[object]]]:
        rows = self.rows()
        header = [name for name in self._columns() if name not in _HIDDEN]
        cells: list[Sequence[object]] = [
            [shown_level(row[name]) if name == "level" else _cell(row[name]) for name in header]
            for row in rows
        ]
        levels = [row for row in self if row.kind != "numeric"]
        size = plural(len(levels), "level")
        factors = plural(len({row.factor for row in levels}), "factor")
        groups = plural(len({row.group for row in levels} - {None}), "group")
        verb = "multiply" if self.multiplies else "are added to"
        title = (
            f"{size} of {factors} in {groups}; relativities {verb} a base {self.scale} of "
            f"{self.base:.4g}"
        )
        return title, [name.replace("_", " ") for name in header], cells


def shown_level(level: Any) -> str:
    """A level in words; numbers without needless digits."""
    if level is None:
        return "missing"
    return f"{level:.10g}" if isinstance(level, float) else str(level)


def _cell(value: Any) -> object:
    """A value of a table, empty where there is none."""
    return "" if value is None else value
