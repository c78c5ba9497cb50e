"""Saved models of factors in the units of their table, so that they can be written as formulas."""

from typing import NamedTuple

import numpy as np

from clustruct._typing import Floats
from clustruct.cli.application import Saved
from clustruct.cli.reading.tables import pandas
from clustruct.estimators.columns.transformers import MissingFlag


class Units(NamedTuple):
    """How the numbers of a table become those that a model was fitted to: ``z = slope x + shift``.

    Where a number is not missing; ``z`` is 0 at the centre of its scale.
    """

    names: list[str]
    slope: Floats
    shift: Floats

    @property
    def centres(self) -> dict[str, float]:
        """The number that is 0 on the scale of the model, by column."""
        return dict(zip(self.names, (-self.shift / self.slope).tolist(), strict=True))


def units_of(saved: Saved) -> Units:
    """The scales of the numbers of a saved model of factors."""
    factors = getattr(saved.model[-1], "factors_", None)
    if factors is None:
        raise ValueError(
            f"{saved.path} is no model of factors, and has no tariff. Fit one by `clustruct fit` "
            "with --category, --ordinal, --monotone, --cyclic or --bins."
        )
    _require_numbers(saved)
    shift, there = (
        saved.model[0]
        .transform(
            pandas().DataFrame(
                {n: [at if kind == "number" else np.nan] for n, kind in saved.columns.items()}
            )
        )
        .iloc[0, list(factors.numeric)]
        .to_numpy(dtype=np.float64)
        for at in (0.0, 1.0)
    )
    return Units([factors.names[place] for place in factors.numeric], there - shift, shift)


def _require_numbers(saved: Saved) -> None:
    """Complain of columns that a formula cannot take as they are in the table."""
    own = {factor.name for factor in saved.model[-1].factors_.factors}
    for title, step, names in saved.model[0].transformers_:
        dates = [name for name in names if saved.columns.get(name) == "date" and title not in own]
        last = step[-1] if hasattr(step, "steps") else step
        if dates or isinstance(last, MissingFlag):
            why = "is a date" if dates else "has missing values with a weight of their own"
            name = (dates or names)[0]
            raise ValueError(
                f"{saved.path}: the column {name!r} {why}, which no formula of a tariff takes. Fit "
                f"the model with --ordinal {name!r}, --bins {name}=10 or --drop {name!r}."
            )


def fill_remark(saved: Saved, mark: str) -> str:
    """Lines at the top of a formula on numbers that were missing in the fit; mostly none."""
    found = []
    for _, step, names in saved.model[0].transformers_:
        filler = getattr(step, "named_steps", {}).get("simpleimputer")
        if filler is not None:
            found += [f"{n} {v:.6g}" for n, v in zip(names, filler.statistics_, strict=True)]
    if not found:
        return ""
    return f"{mark} Fill missing numbers before, as the fit did: {', '.join(found)}.\n"
