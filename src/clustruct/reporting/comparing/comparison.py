"""How well a model does on samples that it has not seen, beside models that everybody knows."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning

from clustruct._interrupts import in_part
from clustruct.inspection import factors_of, final_estimator, kind_of
from clustruct.losses import Loss, loss_of
from clustruct.reporting.comparing.encoding import as_codes, as_matrix, on_one_scale
from clustruct.reporting.comparing.rivals import fit_rivals
from clustruct.reporting.comparing.samples import MOST_CODED_ROWS, Data, long, unfitted
from clustruct.reporting.comparing.scores import (
    NEGLIGIBLE,
    NEGLIGIBLE_GAIN,
    Entry,
    PairedTest,
    Prediction,
    paired_test,
    score,
)
from clustruct.reporting.subjects import subject_of

FEWEST = 8  # targets to fit or to judge by


@dataclass(frozen=True, eq=False)
class Comparison:
    """Models on the same held-out samples."""

    entries: tuple[Entry, ...]
    truth: NDArray[Any]  # held-out targets; for tasks in columns, one after the other
    classes: NDArray[Any] | None
    n_train: int  # samples that our model was fitted to
    n_test: int
    n_available: int  # samples there were before some were drawn
    refitted: bool  # whether the model was fitted anew without the held-out samples
    n_groups: int  # of the model that was judged; a refitted one may have other than ours
    by_deviance: bool = False  # whether numbers are compared by the deviance of the loss
    judged: Any = None  # the fitted model that was judged
    held_out: Data | None = None

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the scores."""
        return max((tuple(entry.scores) for entry in self.entries), key=len)

    @property
    def mine(self) -> Entry:
        """The model in question."""
        return next(entry for entry in self.entries if entry.ours)

    def of_role(self, role: str) -> list[Entry]:
        """Models of a role that knew as much and have the same loss, the best first."""
        fair = [
            entry
            for entry in self.entries
            if entry.role == role
            and entry.fair
            and entry.n_train == self.mine.n_train
            and ("Log loss" in entry.scores) == ("Log loss" in self.mine.scores)
        ]
        return sorted(fair, key=lambda entry: entry.loss)

    @property
    def rival(self) -> Entry | None:
        """The best linear model without groups; None where it cannot be compared with ours."""
        return next(iter(self.of_role("linear")), None)

    def against(self, other: Entry) -> PairedTest:
        """Our model's losses against those of another one."""
        negligible = NEGLIGIBLE
        if self.by_deviance:
            removed = 1.0 - other.loss / self.constant.loss if self.constant.loss > 0.0 else 0.0
            negligible = min(negligible, NEGLIGIBLE_GAIN * max(0.0, removed))
        return paired_test(self.mine, other, negligible)

    @property
    def constant(self) -> Entry:
        """The model that predicts the same for all."""
        return next(entry for entry in self.entries if entry.role == "constant")

    @property
    def n_targets(self) -> int:
        """Held-out targets, of which a sample may have several."""
        return int(self.mine.losses.size)


def most_rows(model: Any) -> int | None:
    """Samples that a comparison takes, at most; None for the usual number."""
    return None if factors_of(model) is None else MOST_CODED_ROWS


def hold_out(model: Any, data: Data, test_size: float, seed: int) -> tuple[Data, Data] | None:
    """Samples to fit a copy of the model to, and others to judge it by; None if there are too few.

    Of many samples some are drawn.
    """
    data = data.drawn(seed, most_rows(model))
    if min(test_size, 1.0 - test_size) * data.y.size < FEWEST or test_size * data.n < 1.0:
        return None
    return data.split(test_size, seed, classes=is_classifier(final_estimator(model)))


@in_part()  # models that Ctrl-C has ended early are not compared
def compare(
    model: Any,
    train: Data,
    test: Data,
    *,
    seed: int,
    matrix: Any = None,
    n_fitted: int | None = None,
    refit: bool = False,
) -> Comparison:
    """Scores of a model and of its rivals on held-out samples.

    With `refit` a copy is judged that is fitted to `train`, searches and preparation included;
    otherwise the model is fitted to `train`, or to `n_fitted` rows of which `train` is a part.
    `matrix` is what the model's preparation makes of `train`, if it is at hand.
    """
    with warnings.catch_warnings():
        # Rivals that stop early, and scales that were warned of when the model was fitted.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        if refit:
            model = _fit(unfitted(model), train)
        estimator = final_estimator(model)
        if matrix is None or factors_of(model) is not None:  # a frame is no matrix yet
            matrix = as_matrix(model, train.X)
        seen, held = replace(train, X=matrix), test
        if kind_of(model) == "tasks" and train.y.ndim == 2:
            seen, held = long(seen, estimator.tasks_), long(held, estimator.tasks_)
        ready = replace(held, X=as_matrix(model, held.X))
        scaled = on_one_scale(model, seen.X, ready.X)
        seen, ready = replace(seen, X=scaled[0]), replace(ready, X=scaled[1])
        # Boosting takes longest, and proves nothing where it sees fewer rows than the model did.
        boost = n_fitted in (None, train.n)
        codes = as_codes(model, train.X, test.X) if boost else None
        found = list(fit_rivals(model, seen, ready, seed, boost=boost, codes=codes))
        if not hasattr(model, "predict_proba"):  # then only errors can be compared
            found = [replace(rival, chances=None) for rival in found]
        found += _ours(model, held, ready, seen.n if n_fitted is None else n_fitted)
        classes = estimator.classes_ if is_classifier(estimator) else None
        loss = loss_of(estimator)
        entries = tuple(score(one, held, classes, loss) for one in found)
    return Comparison(
        entries,
        held.y,
        classes,
        train.n,
        test.n,
        n_fitted or train.n + test.n * refit,
        refit,
        subject_of(model).n_groups,
        classes is None and not loss.goes_by_squares,
        model,
        test,
    )


def _fit(model: Any, data: Data) -> Any:
    routed = data.routed_to_fit()
    inner = getattr(model, "estimator", model)
    if routed and hasattr(inner, "steps"):
        last = inner.steps[-1][0]
        routed = {f"{last}__{name}": value for name, value in routed.items()}
    return model.fit(data.X, data.y, **routed)


def _ours(model: Any, held: Data, ready: Data, n_train: int) -> Iterator[Prediction]:
    """The model, and where every sample has several predictions, the best of them."""
    estimator, routed = final_estimator(model), held.routed()
    predicted = model.predict(held.X, **routed)
    chances = model.predict_proba(held.X, **routed) if hasattr(model, "predict_proba") else None
    yield Prediction(subject_of(model).name, "ours", predicted, chances, n_train)
    if kind_of(model) == "samples" and len(estimator.experts_) > 1:
        each = estimator.predict_experts(ready.X, **ready.routed_to_experts())
        name = f"Experts, best of {each.shape[1]} predictions"
        remark = "for each sample the best expert, chosen with the target at hand"
        loss = None if is_classifier(estimator) else loss_of(estimator)
        best = _nearest(each, held.y, loss)
        yield Prediction(name, "oracle", best, None, n_train, remark=remark)


def _nearest(each: NDArray[Any], y: NDArray[Any], loss: Loss | None) -> NDArray[Any]:
    """Of every sample's predictions the one nearest to the target, by the loss if there is one."""
    if loss is None:
        distance = (each != y[:, None]).astype(np.float64)
    elif loss.goes_by_squares:
        distance = np.abs(each - y[:, None])
        if distance.ndim == 3:
            distance = distance.sum(axis=2)
    else:
        columns = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        experts = each.reshape(len(y), each.shape[1], -1).transpose(1, 0, 2)
        distance = np.stack([loss.row_scores(columns, mine) for mine in experts], axis=1)
    return each[np.arange(len(y)), distance.argmin(axis=1)]
