"""A table read and understood: what to predict, from what, and what was left out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustruct.cli.columns import Column, as_kind, check_missing, find, recognise
from clustruct.cli.large import LargeColumns, LargeFrame
from clustruct.cli.messages import BadUsage
from clustruct.cli.streams import Source
from clustruct.cli.tables import pandas, read_sparse, read_table
from clustruct.cli.targets import Target, recognise_target

__all__ = ["Problem", "Wanted", "read_problem", "understand", "written_as_they_are"]

LABEL = "the number before each row"


@dataclass(frozen=True)
class Wanted:
    """What the command line says of the columns.

    Attributes
    ----------
    target : str or None
        Needed but for libsvm.
    kind : str or None
        "regression" or "classification"; None to tell from the values.
    only, drop : sequence of str
        Columns to use, and not to use; all if there are none.
    kinds : mapping
        Kinds of columns, by name.
    weights, tasks : str or None
        Columns with weights of rows, and with tasks.
    missing : str
        "impute" or "refuse".
    encoding : str
        Of text files.
    """

    target: str | None = None
    kind: str | None = None
    only: Sequence[str] = ()
    drop: Sequence[str] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    weights: str | None = None
    tasks: str | None = None
    missing: str = "impute"
    encoding: str = "utf-8"


@dataclass(frozen=True, eq=False)
class Problem:
    """What to predict, and from what.

    Attributes
    ----------
    source : str
        Name of the file.
    format_name : str
    X : DataFrame, LargeColumns or csr_matrix
        Samples; of a frame, the columns in use, as `as_kind` gives them.
    target : Target
    columns : list of Column
        All columns, with their kinds; empty for libsvm.
    remarks : list of str
        What was left out, and why.
    weights : ndarray or None
        Of the rows.
    tasks : ndarray or None
        Task of each row.
    base : int or None
        For libsvm, the number of the first column.
    """

    source: str
    format_name: str
    X: Any
    target: Target
    columns: list[Column]
    remarks: list[str]
    weights: NDArray[np.float64] | None = None
    tasks: NDArray[Any] | None = None
    base: int | None = None

    @property
    def used(self) -> list[Column]:
        """Columns that the model sees."""
        return [column for column in self.columns if column.used]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    def rows(self, index: NDArray[np.intp]) -> Any:
        """Some of the samples."""
        return self.X[index] if self.base is not None else self.X.take(index)

    @property
    def is_large(self) -> bool:
        """Whether the samples are read piece by piece."""
        return isinstance(self.X, LargeColumns)


def read_problem(source: Source, wanted: Wanted) -> Problem:
    """Read a table and understand its columns.

    Parameters
    ----------
    source : Source
    wanted : Wanted

    Returns
    -------
    Problem

    Raises
    ------
    ValueError
        If a column is missing or is not what it should be.
    """
    if source.format == "svm":
        return _read_svm(source, wanted)
    _check_target(wanted)
    frame = read_table(source, written_as_they_are(wanted), wanted.encoding)
    return understand(frame, source.name, source.format_name, wanted)


def understand(frame: Any, source: str, format_name: str, wanted: Wanted) -> Problem:
    """What the columns of a table are for.

    Parameters
    ----------
    frame : DataFrame or LargeFrame
    source, format_name : str
        For messages.
    wanted : Wanted

    Returns
    -------
    Problem
    """
    name = _check_target(wanted)
    roles = _check_names(frame, wanted, source)
    remarks: list[str] = []
    frame = _with_target(frame, name, wanted.missing, source, remarks)
    target = recognise_target(frame[name], name, wanted.kind, source)
    names = [column for column in wanted.only or frame.columns if column not in roles]
    columns = recognise(frame, names, dict(wanted.kinds), source)
    for column in columns:
        if not column.used:
            remarks.append(
                f"{source}, column {column.name!r}: left out, as {column.reason}. "
                f"--drop {column.name!r} says that this is meant."
            )
    used = [column for column in columns if column.used]
    if not used:
        raise ValueError(
            f"{source} has no column to predict {name!r} from. "
            "Give a table with more columns, or name fewer in --drop."
        )
    if wanted.missing == "refuse":
        check_missing(frame, [column.name for column in used], source)
    return Problem(
        source,
        format_name,
        _features(frame, used, source),
        target,
        columns,
        remarks,
        _weights(frame, wanted.weights, source),
        None if wanted.tasks is None else _tasks(frame, wanted.tasks, source),
    )


def _check_target(wanted: Wanted) -> str:
    if wanted.target is None:
        raise BadUsage("--target is needed: the name of the column to predict.")
    return wanted.target


def _features(frame: Any, used: Sequence[Column], source: str) -> Any:
    """The columns that the model sees; where they do not fit into memory, they are read later."""
    if isinstance(frame, LargeFrame):
        return LargeColumns(frame, used)
    values = {column.name: as_kind(frame[column.name], column.kind, source) for column in used}
    return pandas().DataFrame(values).reset_index(drop=True)


def written_as_they_are(wanted: Wanted) -> list[str]:
    """Columns whose values stay text, even where they look like numbers."""
    kept = [name for name, kind in wanted.kinds.items() if kind in ("category", "text", "date")]
    return kept if wanted.tasks is None else [*kept, wanted.tasks]


def _check_names(frame: Any, wanted: Wanted, source: str) -> set[str]:
    """The columns that are no features; all that are named must be there."""
    roles = {
        find(frame, name, source, option)
        for name, option in (
            (wanted.target, "--target"),
            (wanted.weights, "--weights"),
            (wanted.tasks, "--tasks"),
        )
        if name is not None
    }
    named = [name for name in (wanted.target, wanted.weights, wanted.tasks) if name is not None]
    twice = [name for name in named if named.count(name) > 1 or name in wanted.drop]
    if twice:
        raise BadUsage(
            f"{source}, column {twice[0]!r} is named for two purposes by --target, --weights, "
            "--tasks or --drop. Name it once."
        )
    for option, names in (("--drop", wanted.drop), ("--columns", wanted.only)):
        for name in names:
            find(frame, name, source, option)
    for name, kind in wanted.kinds.items():
        find(frame, name, source, f"--{kind}")
    return roles | set(wanted.drop)


def _with_target(frame: Any, name: str, missing: str, source: str, remarks: list[str]) -> Any:
    """The rows that have a target."""
    absent = frame[name].isna()
    if not absent.any():
        return frame
    if absent.all():
        raise ValueError(
            f"{source}, column {name!r}: the target has no values. "
            "Fill it, or name another column with --target."
        )
    if missing == "refuse":
        check_missing(frame, [name], source)
    count = int(absent.sum())
    remarks.append(f"{source}, column {name!r}: {count} rows without a target are left out.")
    return frame[~absent]


def _weights(frame: Any, name: str | None, source: str) -> NDArray[np.float64] | None:
    if name is None:
        return None
    check_missing(frame, [name], source, "--weights")
    weights: NDArray[np.float64] = as_kind(frame[name], "number", source).to_numpy()
    if weights.min() < 0 or not weights.any():
        raise ValueError(
            f"{source}, column {name!r}: weights of rows must not be negative, nor all of them "
            "zero. Mend them, or name another column with --weights."
        )
    return weights


def _tasks(frame: Any, name: str, source: str) -> NDArray[Any]:
    check_missing(frame, [name], source, "--tasks")
    tasks = as_kind(frame[name], "category", source).to_numpy(dtype=object).astype(str)
    if np.unique(tasks).size < 2:
        raise ValueError(
            f"{source}, column {name!r}: all rows are of one task. "
            "Name the column that tells tasks apart with --tasks, or leave it out."
        )
    return tasks


def _read_svm(source: Source, wanted: Wanted) -> Problem:
    """A libsvm file has no names, and so nothing to choose from."""
    named = (wanted.target, wanted.weights, wanted.tasks, wanted.only, wanted.drop, wanted.kinds)
    if any(named):
        raise BadUsage(
            f"{source.name} is libsvm, whose columns have no names: the target is {LABEL}. Leave "
            "out options that name columns."
        )
    table = read_sparse(source)
    if not table.X.nnz:
        raise ValueError(f"{source.name} has no values to predict from. Give column:value pairs.")
    target = recognise_target(pandas().Series(table.y), "target", wanted.kind, source.name)
    return Problem(source.name, source.format_name, table.X, target, [], [], base=table.base)
