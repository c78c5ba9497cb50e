"""Scores of fitted models, by a name that scikit-learn knows or by a function."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any

from sklearn.metrics import get_scorer

from clustruct._typing import Floats

Scoring = str | Callable[..., float]
# Methods of models that predict.
PREDICTING = frozenset(
    {
        "decision_function",
        "predict",
        "predict_experts",
        "predict_log_proba",
        "predict_proba",
        "score",
    }
)


def predicting_with(model: Any, **arguments: Any) -> Any:
    """A model that predicts with further arguments, those that are not None."""
    given = {name: value for name, value in arguments.items() if value is not None}
    return _PredictingWith(model, given) if given else model


@dataclass(repr=False, eq=False)
class _PredictingWith:
    """A fitted model whose predictions take arguments that scorers know nothing of."""

    _model: Any
    _arguments: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._model, name)
        if name not in PREDICTING:
            return value

        # scikit-learn asks for its name
        return wraps(value)(partial(value, **self._arguments))


def name_of(scoring: Scoring) -> str:
    """The name of a score, as results and messages show it."""
    return scoring if isinstance(scoring, str) else getattr(scoring, "__name__", repr(scoring))


def is_of_predictions(scoring: Scoring) -> bool:
    """Whether a score is a function of targets and predictions, and needs no samples."""
    return hasattr(get_scorer(scoring), "_score_func")


def model_scorer(
    scoring: Scoring, weights: Floats | None, offset: Any = None
) -> Callable[[Any, Any, Any], float]:
    """A function from a fitted model, samples and targets to the score.

    Samples have the given weights, for scores that take them, and are predicted with the offset.
    """
    scorer = get_scorer(scoring)
    taken = inspect.signature(getattr(scorer, "_score_func", scorer)).parameters
    routed = {"sample_weight": weights} if "sample_weight" in taken and weights is not None else {}
    return lambda model, X, y: float(scorer(predicting_with(model, offset=offset), X, y, **routed))
