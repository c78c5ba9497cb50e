"""Saved models and the tables they are applied to: columns found, and as they were in the fit."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustruct.cli.console import Console
from clustruct.cli.messages import BadUsage, did_you_mean, listed
from clustruct.cli.preparing.columns import as_kind, check_missing, find
from clustruct.cli.preparing.large import LargeFrame, frames_of
from clustruct.cli.preparing.opening import open_data
from clustruct.cli.reading.scratch import Scratch
from clustruct.cli.reading.streams import Source, format_of
from clustruct.cli.reading.tables import pandas, read_sparse
from clustruct.persistence.model_files import read_model_file

__all__ = ["Batch", "Saved", "load_model", "read_batches", "read_some"]


@dataclass(frozen=True, eq=False)
class Saved:
    """A model that ``clustruct fit`` wrote, and what it remembers of its table."""

    path: str
    model: Any
    target: str
    kind: str  # "regression" or "classification"
    columns: dict[str, str]  # kinds of the columns that it needs, by name
    missing: str  # "impute" or "refuse"
    tasks: str | None  # the column that tells tasks apart
    base: int | None  # for libsvm, the number of the first column
    # How numbers and dates of columns, and of the target, are written, by name
    styles: dict[str, str] = field(default_factory=dict)

    def as_kind(self, series: Any, kind: str, source: str) -> Any:
        """Values of a column as they were in the fit."""
        return as_kind(series, kind, source, self.styles.get(series.name, ""))

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the features that the pipeline itself does not know."""
        if self.base is None:
            return None
        return [f"x{column + self.base}" for column in range(int(self.model[0].n_features_in_))]


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows of a table that a model can be applied to."""

    source: str
    X: Any
    y: NDArray[Any] | None  # targets, if all rows have one
    tasks: NDArray[Any] | None
    n_all: int  # rows of the whole table
    kept: Any = None  # columns to write beside the predictions


def load_model(path: str) -> Saved:
    """A model that ``clustruct fit`` wrote."""
    if not Path(path).is_file():
        what = "is a folder" if Path(path).is_dir() else "does not exist"
        raise ValueError(f"{path} {what}. Name a model file that `clustruct fit --out` wrote.")
    found = read_model_file(path)
    names = {"target", "kind", "columns", "missing", "tasks", "base"}
    if set(found.notes) - {"styles"} != names:  # which files of older releases do not have
        raise ValueError(
            f"{path} holds a model, but not what the command line needs to know of its table. Use "
            "clustruct.load in Python, or fit it with `clustruct fit --out`."
        )
    return Saved(path, found.model, **found.notes)


def read_some(saved: Saved, args: argparse.Namespace, console: Console, most: int) -> Batch:
    """Rows of a table that have a target; `most` of them where they do not fit into memory."""
    with Scratch() as scratch:
        batches = list(read_batches(saved, args, scratch, console, most, with_target=True))
    return Batch(
        batches[0].source,
        batches[0].X if len(batches) == 1 else _below([batch.X for batch in batches]),
        _joined([batch.y for batch in batches]),
        _joined([batch.tasks for batch in batches]),
        batches[0].n_all,
    )


def _below(frames: Sequence[Any]) -> Any:
    return pandas().concat(frames, ignore_index=True)


def _joined(arrays: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    """Arrays one after the other; None where one is missing."""
    present = [array for array in arrays if array is not None]
    return np.concatenate(present) if len(present) == len(arrays) else None


def read_batches(
    saved: Saved,
    args: argparse.Namespace,
    scratch: Scratch,
    console: Console,
    most: int | None = None,
    *,
    with_target: bool = False,
) -> Iterator[Batch]:
    """Read the table of a command line: at once, or in batches where it does not fit into memory.

    A copy of it, if there has to be one, is in `scratch`. With `most`, so many rows are drawn at
    random of a table that does not fit. With `with_target`, rows without a target are left out.
    """
    texts = [name for name, kind in saved.columns.items() if kind != "number"]
    texts += [name for name, style in saved.styles.items() if style and name not in texts]
    texts += [] if saved.tasks is None else [saved.tasks]
    kept = getattr(args, "keep", [])
    if (args.format or format_of(args.data)) in ("csv", "tsv"):  # where numbers would be rewritten
        texts += [name for name in kept if name not in saved.columns and name != saved.target]
    with open_data(args, texts, scratch, console) as data:
        is_sparse = isinstance(data, Source)
        if is_sparse != (saved.base is not None):
            wants = "a table with named columns" if is_sparse else "libsvm"
            raise ValueError(
                f"{data.name} is {data.format_name}, and {saved.path} was fitted to {wants}. "
                "Give data of the same form."
            )
        if isinstance(data, Source):
            if kept:
                raise BadUsage(f"--keep names columns, and those of {data.name} have no names.")
            yield _sparse_batch(saved, data)
            return
        frame, name = data.load(), data.name
        _check_columns(saved, frame, name, console, kept)
        if with_target and saved.target in frame.columns:
            frame = _with_target(saved, frame, name, console)
        needed = list(saved.columns) if saved.missing == "refuse" else []
        check_missing(frame, needed, name)
        if saved.tasks is not None:
            check_missing(frame, [saved.tasks], name, "the model of tasks")
        new = _New(saved)
        for part in _frames(saved, frame, kept, most):
            batch = _batch(saved, part, name, len(frame), kept)
            new.count(batch)
            yield batch
        new.tell(name, console)


def _frames(saved: Saved, frame: Any, kept: Sequence[str], most: int | None) -> Iterator[Any]:
    """A table in memory as it is; of one on disk the columns that are needed, in batches."""
    if not isinstance(frame, LargeFrame):
        yield frame
        return
    kinds = saved.columns | ({} if saved.tasks is None else {saved.tasks: "category"})
    columns = [name for name in (*kinds, saved.target) if name in frame.columns]
    columns += [name for name in kept if name not in columns]
    # Missing numbers anywhere in a column change how its whole numbers are written.
    types = {
        name: frame[name].dtype
        for name in columns
        if (kinds.get(name) in ("category", "text") or name in kept)
        and not frame.table.is_text(name)
    }
    numbers = frame.index
    if most is not None and numbers.size > most:
        numbers = np.sort(np.random.default_rng(0).choice(numbers, most, replace=False))
    for part in frames_of(frame.table, columns, numbers):
        yield part.astype(types)


def _with_target(saved: Saved, frame: Any, source: str, console: Console) -> Any:
    """Leave out the rows without a target, and say how many they are."""
    absent = frame[saved.target].isna()
    if absent.all():
        raise ValueError(
            f"{source}, column {saved.target!r}: the target has no values. Give a table with some."
        )
    if not absent.any():
        return frame
    console.note(
        f"clustruct: {source}: {len(absent):,} rows, {absent.sum():,} left out because the target "
        "is missing."
    )
    return frame[~absent]


def _batch(saved: Saved, frame: Any, source: str, n_all: int, kept: Sequence[str]) -> Batch:
    """Values as the model takes them."""
    X = pandas().DataFrame(
        {name: saved.as_kind(frame[name], kind, source) for name, kind in saved.columns.items()}
    )
    tasks = None
    if saved.tasks is not None:
        tasks = as_kind(frame[saved.tasks], "category", source).to_numpy(object).astype(str)
    carried = frame[list(kept)].reset_index(drop=True)
    y = _targets(saved, frame, source)
    return Batch(source, X.reset_index(drop=True), y, tasks, n_all, carried)


def _sparse_batch(saved: Saved, source: Source) -> Batch:
    first = saved.model[0]
    table = read_sparse(source, int(first.n_features_in_), saved.base)
    y: NDArray[Any] = table.y
    if saved.kind == "classification" and np.asarray(saved.model.classes_).dtype.kind in "iu":
        y = y.astype(np.int64)
    return Batch(source.name, table.X, y, None, table.X.shape[0])


def _check_columns(
    saved: Saved, frame: Any, source: str, console: Console, kept: Sequence[str]
) -> None:
    needed = [*saved.columns, *([] if saved.tasks is None else [saved.tasks])]
    missing = [name for name in needed if name not in frame.columns]
    if missing:
        others = [name for name in frame.columns if name not in saved.columns]
        raise ValueError(
            f"{source} has no column {listed(map(repr, missing))}, which {saved.path} needs. "
            f"{did_you_mean(missing[0], others or frame.columns)} Rename or add it."
        )
    for name in kept:
        find(frame, name, source, "--keep")
    known = {*needed, saved.target, *kept}
    unknown = [name for name in frame.columns if name not in known]
    if unknown:
        console.note(
            f"clustruct: {source}: {len(unknown)} columns that the model does not know are "
            f"ignored: {listed(map(repr, unknown))}."
        )


class _New:
    """Counts categories and tasks that were not in the fit, batch by batch."""

    def __init__(self, saved: Saved) -> None:
        self._saved = saved
        steps = saved.model[0].transformers_ if hasattr(saved.model[0], "transformers_") else ()
        self._encoders = {
            names[0]: encoder for _, encoder, names in steps if hasattr(encoder, "categories_")
        }
        self._counts: dict[str, int] = {}
        self._examples: dict[str, Any] = {}
        self._tasks: set[str] = set()

    def count(self, batch: Batch) -> None:
        """Count those of some rows."""
        for name, encoder in self._encoders.items():
            new = batch.X[name][~batch.X[name].isin(encoder.categories_[0])]
            if len(new):
                self._counts[name] = self._counts.get(name, 0) + len(new)
                self._examples.setdefault(name, new.iloc[0])
        if batch.tasks is not None:
            self._tasks.update(np.unique(batch.tasks).tolist())

    def tell(self, source: str, console: Console) -> None:
        """Say what was counted."""
        if self._tasks:
            known = {str(task) for task in self._saved.model[-1].tasks_}
            new = sorted(self._tasks - known)
            if new:
                console.note(
                    f"clustruct: {source}, column {self._saved.tasks!r}: {len(new)} tasks were not "
                    f"in the fit, as {new[0]!r:.40}; they are predicted by the mean of all tasks."
                )
        for name, count in self._counts.items():
            example = self._examples[name]
            shown = "a missing one" if example != example else f"{example!r:.40}"
            console.note(
                f"clustruct: {source}, column {name!r}: {count} rows hold categories that were not "
                f"in the fit, as {shown}; they count as {_counts_as(self._encoders[name])}."
            )


def _counts_as(encoder: Any) -> str:
    """What an encoder takes an unknown level for."""
    if encoder.infrequent_categories_[0] is not None:
        return "other rare ones do"
    dropped = None if encoder.drop_idx_ is None else encoder.drop_idx_[0]
    return "none of them" if dropped is None else f"{encoder.categories_[0][dropped]!r}"


def _targets(saved: Saved, frame: Any, source: str) -> NDArray[Any] | None:
    """The targets, where the table has all of them."""
    if saved.target not in frame.columns or frame[saved.target].isna().any():
        return None
    if saved.kind == "regression":
        numbers: NDArray[np.float64] = saved.as_kind(
            frame[saved.target], "number", source
        ).to_numpy()
        return numbers
    classes = np.asarray(saved.model.classes_)
    if classes.dtype.kind in "iuf":
        return as_kind(frame[saved.target], "number", source).to_numpy().astype(classes.dtype)
    return as_kind(frame[saved.target], "category", source).to_numpy(object).astype(str)
