"""Scores of fitted models, by a name that scikit-learn knows or by a function."""

import inspect
from collections.abc import Callable
from typing import Any

from sklearn.metrics import get_scorer

from clustruct._typing import Floats

Scoring = str | Callable[..., float]


def name_of(scoring: Scoring) -> str:
    """The name of a score, as results and messages show it."""
    return scoring if isinstance(scoring, str) else getattr(scoring, "__name__", repr(scoring))


def is_of_predictions(scoring: Scoring) -> bool:
    """Whether a score is a function of targets and predictions, and needs no samples."""
    return hasattr(get_scorer(scoring), "_score_func")


def model_scorer(scoring: Scoring, weights: Floats | None) -> Callable[[Any, Any, Any], float]:
    """A function from a fitted model, samples and targets to the score.

    Samples have the given weights, for scores that take them.
    """
    scorer = get_scorer(scoring)
    taken = inspect.signature(getattr(scorer, "_score_func", scorer)).parameters
    routed = {"sample_weight": weights} if "sample_weight" in taken and weights is not None else {}
    return lambda model, X, y: float(scorer(model, X, y, **routed))
