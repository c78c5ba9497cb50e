"""Samples with their targets, and unfitted copies of models to fit to them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing

from clustruct._typing import Floats, Indices
from clustruct.inspection import final_estimator

MOST_ROWS = 20_000
MOST_CODED_ROWS = 200_000  # of frames with factors, whose fits take codes
MOST_ENTRIES = 20_000_000


@dataclass(frozen=True, eq=False)
class Data:
    """Samples, targets, weights and offset; X is an array, a sparse matrix or a DataFrame."""

    X: Any
    y: NDArray[Any]  # several columns for several outputs or tasks
    tasks: NDArray[Any] | None = None  # of each row, where every task has rows of its own
    weights: Floats | None = None
    offset: Floats | None = None  # of each row, or of each row and output

    @property
    def n(self) -> int:
        """Number of samples."""
        return len(self.y)

    def rows(self, index: Indices) -> "Data":
        """Some of the samples."""
        own = (self.tasks, self.weights, self.offset)
        parts = (None if part is None else part[index] for part in own)
        return Data(_safe_indexing(self.X, index), self.y[index], *parts)

    def routed(self) -> dict[str, Any]:
        """What goes to `predict` beside the samples."""
        given = {"tasks": self.tasks, **self.routed_to_experts()}
        return {name: value for name, value in given.items() if value is not None}

    def routed_to_experts(self) -> dict[str, Any]:
        """What goes to `predict_experts` beside the samples."""
        return {} if self.offset is None else {"offset": self.offset}

    @property
    def shift(self) -> Any:
        """The offset as it is added to targets, 0 where there is none."""
        if self.offset is None:
            return 0.0
        return self.offset.reshape((self.n, -1) if self.y.ndim == 2 else self.n)

    def routed_to_fit(self) -> dict[str, Any]:
        """What goes to `fit` beside samples and targets."""
        weights = {} if self.weights is None else {"sample_weight": self.weights}
        return {**self.routed(), **weights}

    def drawn(self, seed: int, most: int | None = None) -> "Data":
        """At most so many samples, `MOST_ROWS` if None, fewer where they are wide; in order."""
        shape = getattr(self.X, "shape", (self.n, 1))
        entries = self.X.nnz if issparse(self.X) else int(np.prod(shape))
        most = MOST_ROWS if most is None else most
        limit = max(200, min(most, int(MOST_ENTRIES * self.n / max(1, entries))))
        if self.n <= limit:
            return self
        index = np.random.default_rng(seed).choice(self.n, limit, replace=False)
        return self.rows(np.sort(index))

    def split(self, test_size: float, seed: int, *, classes: bool) -> tuple["Data", "Data"]:
        """Samples to fit and a share to hold out, with all classes or tasks in both if possible."""
        strata = self.y if self.tasks is None and classes and self.y.ndim == 1 else self.tasks
        index = np.arange(self.n)
        options: dict[str, Any] = {"test_size": test_size, "random_state": seed}
        try:
            fit, held = train_test_split(index, stratify=strata, **options)
        except ValueError:  # a class or task with one sample
            fit, held = train_test_split(index, **options)
        return self.rows(np.sort(fit)), self.rows(np.sort(held))


def long(data: Data, names: NDArray[Any]) -> Data:
    """One row for each sample and task, where a column of the targets is a task of that name."""
    if data.y.ndim == 1:
        return data
    rows, columns = np.nonzero(~is_missing(data.y))
    weights = None if data.weights is None else data.weights[rows]
    offset = data.offset
    if offset is not None:
        offset = np.broadcast_to(offset.reshape(data.n, -1), data.y.shape)[rows, columns]
    X = _safe_indexing(data.X, rows)
    return Data(X, data.y[rows, columns], names[columns], weights, offset)


def is_missing(y: NDArray[Any]) -> NDArray[np.bool_]:
    """Which targets are missing."""
    return np.isnan(y) if y.dtype.kind == "f" else np.asarray(y == None)  # noqa: E711


def unfitted(model: Any) -> Any:
    """An unfitted copy of a model that searches again and says nothing meanwhile."""
    copy = clone(model)
    quiet = {
        name: None if name.endswith("callback") else type(value)(0)
        for name, value in copy.get_params().items()
        if name.rsplit("__", 1)[-1] in ("verbose", "callback")
    }
    copy.set_params(**quiet)
    estimator = final_estimator(copy)
    if getattr(estimator, "blocks", None) is not None and hasattr(copy, "steps"):
        # Blocks are of the columns that these steps make, and fewer samples would make others.
        copy.steps[:-1] = [
            (name, step if step is None or isinstance(step, str) else FrozenEstimator(step))
            for name, step in model.steps[:-1]
        ]
    return copy
