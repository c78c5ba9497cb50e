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
from clustruct.cli.reading.shelf import Shelf
from clustruct.cli.reading.stored import StoredTable
from clustruct.cli.reading.streams import Source, format_of
from clustruct.cli.reading.tables import pandas, read_sparse, read_table
from clustruct.persistence.model_files import read_model_file

__all__ = ["Rows", "Saved", "load_model", "read_pieces", "read_some"]


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
class Rows:
    """A table that a model can be applied to."""

    source: str
    X: Any
    y: NDArray[Any] | None  # answers, if the table has all of them
    tasks: NDArray[Any] | None
    n_all: int  # rows of the table that these are from
    kept: Any = None  # columns to write beside the answers


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


def read_some(saved: Saved, args: argparse.Namespace, console: Console, most: int) -> Rows:
    """Rows of a table that have a target; some of them where they do not fit into memory."""
    with Shelf() as shelf:
        pieces = list(read_pieces(saved, args, shelf, console, most, with_target=True))
    if len(pieces) == 1:
        return pieces[0]
    return Rows(
        pieces[0].source,
        pandas().concat([rows.X for rows in pieces], ignore_index=True),
        _joined([rows.y for rows in pieces]),
        _joined([rows.tasks for rows in pieces]),
        pieces[0].n_all,
    )


def _joined(arrays: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    """Arrays one after the other; None where one is missing."""
    present = [array for array in arrays if array is not None]
    return np.concatenate(present) if len(present) == len(arrays) else None


def read_pieces(
    saved: Saved,
    args: argparse.Namespace,
    shelf: Shelf,
    console: Console,
    most: int | None = None,
    *,
    with_target: bool = False,
) -> Iterator[Rows]:
    """The table of a command line, piece by piece where it does not fit into memory."""
    texts = [name for name, kind in saved.columns.items() if kind != "number"]
    texts += [name for name, style in saved.styles.items() if style and name not in texts]
    texts += [] if saved.tasks is None else [saved.tasks]
    kept = getattr(args, "keep", [])
    if (args.format or format_of(args.data)) in ("csv", "tsv"):  # where numbers would be rewritten
        texts += [name for name in kept if name not in saved.columns and name != saved.target]
    with open_data(args, texts, shelf, console) as data:
        if isinstance(data, Source):
            yield _read(saved, data, texts, args.encoding, console, kept, with_target)
            return
        table = data.table
        _check_form(saved, table.name, table.format_name, is_sparse=False)
        if data.in_pieces:
            numbers = _drawn(table.n_rows, most)
            yield from _read_in_pieces(saved, table, numbers, console, kept, with_target)
        else:
            yield _understand(saved, data.frame, table.name, console, kept, with_target)


def _drawn(n_rows: int, most: int | None) -> NDArray[np.intp] | None:
    """Numbers of some rows, ascending; None for all."""
    if most is None or n_rows <= most:
        return None
    return np.sort(np.random.default_rng(0).choice(n_rows, most, replace=False))


def _read_in_pieces(
    saved: Saved,
    table: StoredTable,
    numbers: NDArray[np.intp] | None,
    console: Console,
    kept: Sequence[str],
    with_target: bool,
) -> Iterator[Rows]:
    """A table that does not fit into memory."""
    _check_columns(saved, table, table.name, console, kept)
    _check_missing(saved, LargeFrame(table), table.name)
    kinds = (
        dict(saved.columns) if saved.tasks is None else saved.columns | {saved.tasks: "category"}
    )
    columns = [name for name in (*kinds, saved.target) if name in table.columns]
    columns += [name for name in kept if name not in columns]
    # Missing numbers anywhere in a column change how its whole numbers are written.
    types = {
        name: table.column(name).dtype
        for name in columns
        if (kinds.get(name) in ("category", "text") or name in kept) and not table.is_text(name)
    }
    n_rows = table.n_rows
    if with_target and saved.target in columns:
        n_rows = _note_left_out(saved, table.column(saved.target), table.name, console)
    new = _NewCategories(saved)
    tasks: set[str] = set()
    for frame in frames_of(table, columns, numbers):
        frame = _answered(saved, frame) if with_target else frame
        rows = _rows(saved, frame.astype(types), table.name, n_rows, kept)
        new.count(rows.X)
        tasks.update(() if rows.tasks is None else np.unique(rows.tasks).tolist())
        yield rows
    new.tell(table.name, console)
    _note_new_tasks(saved, tasks, table.name, console)


def _check_form(saved: Saved, name: str, format_name: str, *, is_sparse: bool) -> None:
    """Complain of data that are not of the form that the model was fitted to."""
    if is_sparse != (saved.base is not None):
        wants = "libsvm" if saved.base is not None else "a table with named columns"
        raise ValueError(
            f"{name} is {format_name}, and {saved.path} was fitted to {wants}. "
            "Give data of the same form."
        )


def _read(
    saved: Saved,
    source: Source,
    texts: Sequence[str],
    encoding: str,
    console: Console,
    kept: Sequence[str],
    with_target: bool,
) -> Rows:
    _check_form(saved, source.name, source.format_name, is_sparse=source.format == "svm")
    if saved.base is not None:
        if kept:
            raise BadUsage(f"--keep names columns, and those of {source.name} have no names.")
        return _sparse_rows(saved, source)
    frame = read_table(source, texts, encoding)
    return _understand(saved, frame, source.name, console, kept, with_target)


def _understand(
    saved: Saved,
    frame: Any,
    source: str,
    console: Console,
    kept: Sequence[str],
    with_target: bool,
) -> Rows:
    """A table in memory, for a model."""
    _check_columns(saved, frame, source, console, kept)
    if with_target and saved.target in frame.columns:
        _note_left_out(saved, frame[saved.target], source, console)
        frame = _answered(saved, frame)
    _check_missing(saved, frame, source)
    rows = _rows(saved, frame, source, len(frame), kept)
    tasks = set() if rows.tasks is None else set(rows.tasks.tolist())
    _note_new_tasks(saved, tasks, source, console)
    new = _NewCategories(saved)
    new.count(rows.X)
    new.tell(source, console)
    return rows


def _check_missing(saved: Saved, frame: Any, source: str) -> None:
    """Complain of values that the model cannot do without."""
    if saved.missing == "refuse":
        check_missing(frame, list(saved.columns), source)
    if saved.tasks is not None:
        check_missing(frame, [saved.tasks], source, "the model of tasks")


def _note_left_out(saved: Saved, target: Any, source: str, console: Console) -> int:
    """Say how many rows are left out as they have no target; return how many have one."""
    absent = int(target.isna().sum())
    if absent == len(target):
        raise ValueError(
            f"{source}, column {saved.target!r}: the target has no values. Give a table with some."
        )
    if absent:
        console.note(
            f"clustruct: {source}: {len(target):,} rows, {absent:,} left out because the target is "
            "missing."
        )
    return len(target) - absent


def _answered(saved: Saved, frame: Any) -> Any:
    """The rows that have a target; all where there is no such column."""
    if saved.target not in frame.columns:
        return frame
    return frame[frame[saved.target].notna()].reset_index(drop=True)


def _rows(saved: Saved, frame: Any, source: str, n_all: int, kept: Sequence[str]) -> Rows:
    """Values as the model takes them."""
    X = pandas().DataFrame(
        {name: saved.as_kind(frame[name], kind, source) for name, kind in saved.columns.items()}
    )
    tasks = None
    if saved.tasks is not None:
        tasks = as_kind(frame[saved.tasks], "category", source).to_numpy(object).astype(str)
    carried = frame[list(kept)].reset_index(drop=True)
    return Rows(source, X, _answers(saved, frame, source), tasks, n_all, carried)


def _sparse_rows(saved: Saved, source: Source) -> Rows:
    first = saved.model[0]
    table = read_sparse(source, int(first.n_features_in_), saved.base)
    answers = table.y
    if saved.kind == "classification" and np.asarray(saved.model.classes_).dtype.kind in "iu":
        answers = answers.astype(np.int64)
    return Rows(source.name, table.X, answers, None, table.X.shape[0])


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


def _note_new_tasks(saved: Saved, tasks: set[str], source: str, console: Console) -> None:
    """Tasks that the mean of all others answers."""
    known = {str(task) for task in saved.model[-1].tasks_} if tasks else set()
    new = sorted(tasks - known)
    if new:
        console.note(
            f"clustruct: {source}, column {saved.tasks!r}: {len(new)} tasks were not in the fit, "
            f"as {new[0]!r:.40}; the mean of all tasks answers for them."
        )


class _NewCategories:
    """Counts values that no column of zeros and ones stands for."""

    def __init__(self, saved: Saved) -> None:
        self._encoders = [
            (names[0], encoder)
            for _, encoder, names in saved.model[0].transformers_
            if hasattr(encoder, "categories_")
        ]
        self._counts: dict[str, int] = {}
        self._examples: dict[str, Any] = {}

    def count(self, X: Any) -> None:
        """Those of some rows."""
        for name, encoder in self._encoders:
            new = X[name][~X[name].isin(encoder.categories_[0])]
            if len(new):
                self._counts[name] = self._counts.get(name, 0) + len(new)
                self._examples.setdefault(name, new.iloc[0])

    def tell(self, source: str, console: Console) -> None:
        """What was counted."""
        for name, encoder in self._encoders:
            if name in self._counts:
                example = self._examples[name]
                shown = "a missing one" if example != example else f"{example!r:.40}"
                console.note(
                    f"clustruct: {source}, column {name!r}: {self._counts[name]} rows hold "
                    f"categories that were not in the fit, as {shown}; they count as "
                    f"{_counts_as(encoder)}."
                )


def _counts_as(encoder: Any) -> str:
    """What an encoder takes an unknown level for."""
    if encoder.infrequent_categories_[0] is not None:
        return "other rare ones do"
    dropped = None if encoder.drop_idx_ is None else encoder.drop_idx_[0]
    return "none of them" if dropped is None else f"{encoder.categories_[0][dropped]!r}"


def _answers(saved: Saved, frame: Any, source: str) -> NDArray[Any] | None:
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
