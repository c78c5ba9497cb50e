"""Saved models of factors in the units of their table, so that they can be written as formulas."""

from copy import copy
from typing import Any

import numpy as np

from clustruct.cli.application import Saved
from clustruct.cli.reading.tables import pandas
from clustruct.estimators.columns.transformers import MissingFlag


def in_units_of_the_table(saved: Saved) -> Any:
    """The last step of a model of factors, with weights for the numbers as they are in the table.

    Before it, a number ``x`` is filled and scaled: ``z = a x + b`` where it is not missing. So a
    weight ``w`` of ``z`` is ``w a`` of ``x``, and ``w b`` goes into the intercept.
    """
    estimator, steps = saved.model[-1], saved.model[0]
    factors = getattr(estimator, "factors_", None)
    if factors is None:
        raise ValueError(
            f"{saved.path} is no model of factors, and has no tariff. Fit one by `clustruct fit` "
            "with --category, --ordinal, --monotone, --cyclic or --bins."
        )
    _require_numbers(saved, steps)
    names, columns = list(saved.columns), saved.columns
    at = {
        unit: pandas().DataFrame(
            {name: [unit if columns[name] == "number" else np.nan] for name in names}
        )
        for unit in (0.0, 1.0)
    }
    shift, there = (
        steps.transform(frame).iloc[0, list(factors.numeric)].to_numpy(dtype=np.float64)
        for frame in at.values()
    )
    model, slope = copy(estimator), there - shift
    first = factors.n_weights - len(factors.numeric)
    weights = np.array(estimator._weights)
    gained = shift @ weights[first:]
    weights[first:] *= slope[:, None]
    model._weights, model._offset = weights, estimator._offset + gained
    model.coef_ = weights.T if np.ndim(estimator.coef_) == 2 else weights[:, 0]
    model.intercept_ = estimator.intercept_ + (
        gained if np.ndim(estimator.intercept_) else gained[0]
    )
    return model


def _require_numbers(saved: Saved, steps: Any) -> None:
    """Complain of columns that a formula cannot take as they are in the table."""
    own = {factor.name for factor in saved.model[-1].factors_.factors}
    for title, step, names in steps.transformers_:
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
