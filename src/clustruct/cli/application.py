"""Saved models and the tables they are applied to: columns found, and as they were in the fit."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from clustruct._typing import Floats
from clustruct.cli.console import Console
from clustruct.cli.messages import BadUsage, did_you_mean, listed
from clustruct.cli.preparing.columns import as_kind, as_texts, check_missing, find, written_as_text
from clustruct.cli.preparing.opening import LargeFrame, frames_of, open_data
from clustruct.cli.preparing.targets import OffsetColumn, with_target
from clustruct.cli.reading.scratch import Scratch
from clustruct.cli.reading.streams import Source, format_of
from clustruct.cli.reading.tables import pandas, read_sparse, sparse_names
from clustruct.inspection import factors_of, prepared
from clustruct.persistence.model_files import ModelFile, read_model_file
from clustruct.persistence.shapes import check_record
from clustruct.results.relativities import shown_level


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
    offset: OffsetColumn | None = None

    @property
    def beside(self) -> list[str]:
        """Columns that it needs and that are no features."""
        offset = None if self.offset is None else self.offset.name
        return [name for name in (self.tasks, offset) if name is not None]

    def as_kind(self, series: Any, kind: str, source: str) -> Any:
        """Values of a column as they were in the fit."""
        return as_kind(series, kind, source, self.styles.get(series.name, ""))

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the features that the pipeline itself does not know."""
        base = self.base
        return None if base is None else sparse_names(base, self.model[0].n_features_in_)


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows of a table that a model can be applied to."""

    source: str
    X: Any
    y: NDArray[Any] | None  # targets, if all rows have one
    tasks: NDArray[Any] | None
    n_all: int  # rows of the whole table
    kept: Any = None  # columns to write beside the predictions
    offset: Floats | None = None

    @property
    def routed(self) -> dict[str, Any]:
        """What goes to `predict` beside the samples."""
        given = {"tasks": self.tasks, "offset": self.offset}
        return {name: value for name, value in given.items() if value is not None}


def load_model(path: str) -> Saved:
    """A model that ``clustruct fit`` wrote."""
    if not Path(path).is_file():
        what = "is a folder" if Path(path).is_dir() else "does not exist"
        raise ValueError(f"{path} {what}. Name a model file that `clustruct fit --out` wrote.")
    found = read_model_file(path)
    try:
        return _saved(path, found)
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} holds a model, but not what the command line needs to know of its table. Use "
            "clustruct.load in Python, or fit it with `clustruct fit --out`."
        ) from error


def _saved(path: str, found: ModelFile) -> Saved:
    """What a model file holds, if `clustruct fit` wrote it; it may come from anywhere."""
    notes = dict(found.notes)
    offset = notes.pop("offset", None)
    names = {"target", "kind", "columns", "missing", "tasks", "base"}
    if set(notes) - {"styles"} != names:  # which older files do not have
        raise ValueError("other notes")
    check_record(Saved, notes)
    texts = [*notes["columns"].items(), *notes.get("styles", {}).items()]
    if not all(isinstance(text, str) for pair in texts for text in pair):
        raise ValueError("no names")
    if not isinstance(found.model, Pipeline) or len(found.model) < 1:
        raise ValueError("no pipeline")
    if offset is not None:
        check_record(OffsetColumn, offset)
    column = None if offset is None else OffsetColumn(**offset)
    return Saved(path, found.model, **notes, offset=column)


def read_some(saved: Saved, args: argparse.Namespace, console: Console, most: int) -> Batch:
    """Rows of a table that have a target; `most` of them where they do not fit into memory."""
    with Scratch() as scratch:
        batches = list(read_batches(saved, args, scratch, console, most, only_with_target=True))
    if len(batches) == 1:
        return batches[0]
    X = pandas().concat([batch.X for batch in batches], ignore_index=True)
    joined: dict[str, Any] = {}
    for name in ("y", "tasks", "offset"):
        parts = [getattr(batch, name) for batch in batches]
        joined[name] = None if any(part is None for part in parts) else np.concatenate(parts)
    return replace(batches[0], X=X, kept=None, **joined)


def read_batches(
    saved: Saved,
    args: argparse.Namespace,
    scratch: Scratch,
    console: Console,
    most: int | None = None,
    *,
    only_with_target: bool = False,
) -> Iterator[Batch]:
    """Read the table of a command line: at once, or in batches where it does not fit into memory.

    A copy of it, if there has to be one, is in `scratch`. With `most`, so many rows are drawn at
    random of a table that does not fit. With `only_with_target`, rows without a target are
    left out.
    """
    texts = written_as_text(saved.columns, saved.styles, saved.tasks)
    if saved.offset is not None and saved.offset.style:
        texts.append(saved.offset.name)
    kept = getattr(args, "keep", [])
    if (args.format or format_of(args.data)) in ("csv", "tsv"):  # where numbers would be rewritten
        texts += [name for name in kept if name not in saved.columns and name != saved.target]
    with open_data(args, texts, scratch, console) as data:
        if isinstance(data, Source) != (saved.base is not None):
            wants = "a table with named columns" if saved.base is None else "libsvm"
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
        if only_with_target and saved.target in frame.columns:
            n_read = len(frame)
            frame, absent = with_target(frame, saved.target, name, "Give a table with some.")
            if absent:
                console.note(
                    f"clustruct: {name}: {n_read:,} rows, {absent:,} left out because the target "
                    "is missing."
                )
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
    columns = [name for name in (*kinds, saved.target, *saved.beside) if name in frame.columns]
    columns = list(dict.fromkeys(columns))
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


def _batch(saved: Saved, frame: Any, source: str, n_all: int, kept: Sequence[str]) -> Batch:
    """Values as the model takes them."""
    X = pandas().DataFrame(
        {name: saved.as_kind(frame[name], kind, source) for name, kind in saved.columns.items()}
    )
    tasks = None if saved.tasks is None else as_texts(frame[saved.tasks])
    carried = frame[list(kept)].reset_index(drop=True)
    y = _targets(saved, frame, source)
    offset = None if saved.offset is None else saved.offset.values(frame, source)
    return Batch(source, X.reset_index(drop=True), y, tasks, n_all, carried, offset)


def _sparse_batch(saved: Saved, source: Source) -> Batch:
    table = read_sparse(source, int(saved.model[0].n_features_in_), saved.base)
    y: NDArray[Any] = table.y
    if saved.kind == "classification" and np.asarray(saved.model.classes_).dtype.kind in "iu":
        y = y.astype(np.int64)
    return Batch(source.name, table.X, y, None, table.X.shape[0])


def _check_columns(
    saved: Saved, frame: Any, source: str, console: Console, kept: Sequence[str]
) -> None:
    needed = [*saved.columns, *saved.beside]
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
        steps = getattr(saved.model[0], "transformers_", ())
        self._encoders = {
            names[0]: encoder for _, encoder, names in steps if hasattr(encoder, "categories_")
        }
        self._factors = factors_of(saved.model)
        self._levels: dict[str, tuple[int, Any]] = {}  # how many rows have new ones, and the first
        self._tasks: set[str] = set()

    def count(self, batch: Batch) -> None:
        """Count those of some rows."""
        for name, encoder in self._encoders.items():
            self._add(name, batch.X[name], ~batch.X[name].isin(encoder.categories_[0]))
        if self._factors is not None:
            made = prepared(self._saved.model, batch.X)
            for name, rows in self._factors.unknown(made).items():
                self._add(name, made[name], rows)
        if batch.tasks is not None:
            self._tasks.update(np.unique(batch.tasks).tolist())

    def _add(self, name: str, values: Any, are_new: Any) -> None:
        new = values[are_new]
        if len(new):
            count, example = self._levels.get(name, (0, new.iloc[0]))
            self._levels[name] = count + len(new), example

    def tell(self, source: str, console: Console) -> None:
        """Say what was counted."""
        known = {str(task) for task in self._saved.model[-1].tasks_} if self._tasks else set()
        if new := sorted(self._tasks - known):
            console.note(
                f"clustruct: {source}, column {self._saved.tasks!r}: {len(new)} tasks were not "
                f"in the fit, as {new[0]!r:.40}; they are predicted by the mean of all tasks."
            )
        for name, (count, example) in self._levels.items():
            shown = "a missing one" if example != example else repr(shown_level(example))[:40]
            what, answer = "levels", "get the mean effect of its levels"
            if name in self._encoders:
                what, answer = "categories", f"count as {_counts_as(self._encoders[name])}"
            console.note(
                f"clustruct: {source}, column {name!r}: {count} rows hold {what} that were not "
                f"in the fit, as {shown}; they {answer}."
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
    targets = frame[saved.target]
    if saved.kind == "regression":
        return np.asarray(saved.as_kind(targets, "number", source))
    classes = np.asarray(saved.model.classes_)
    if classes.dtype.kind in "iuf":
        return np.asarray(as_kind(targets, "number", source)).astype(classes.dtype)
    return as_texts(targets)
