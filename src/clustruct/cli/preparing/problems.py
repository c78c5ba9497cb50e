"""A table read and understood: what to predict, from what, and what was left out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustruct.cli.messages import BadUsage
from clustruct.cli.preparing.columns import (
    Column,
    as_kind,
    as_texts,
    check_missing,
    find,
    recognise,
)
from clustruct.cli.preparing.factors import FactorOptions, with_factors
from clustruct.cli.preparing.opening import LargeColumns, LargeFrame
from clustruct.cli.preparing.targets import OffsetColumn, Target, recognise_target, with_target
from clustruct.cli.reading.streams import Source
from clustruct.cli.reading.tables import pandas, read_sparse

LABEL = "the number before each row"


@dataclass(frozen=True)
class Wanted:
    """Options of the command line about columns."""

    target: str | None = None  # needed unless the table is libsvm
    kind: str | None = None  # "regression" or "classification"; None to tell from the values
    only: Sequence[str] = ()  # columns to use; all if there are none
    drop: Sequence[str] = ()  # columns to leave out
    kinds: Mapping[str, str] = field(default_factory=dict)  # kinds of columns, by name
    # How numbers or dates of columns are written, by name, as `Column.style`
    styles: Mapping[str, str] = field(default_factory=dict)
    weights: str | None = None  # column of the weights of rows
    tasks: str | None = None  # column of the tasks
    offset: OffsetColumn | None = None
    missing: str = "impute"  # "impute" or "refuse"
    scale: str | None = None  # how numbers are scaled; None for the usual way
    factors: FactorOptions = field(default_factory=FactorOptions)


@dataclass(frozen=True, eq=False)
class Problem:
    """A table that was read: the target, and the columns to predict it from."""

    source: str  # name of the file
    format_name: str
    X: Any  # samples; of a frame, the columns in use, as `as_kind` gives them
    target: Target
    columns: list[Column]  # all columns, with their kinds; empty for libsvm
    remarks: list[str]  # what was left out, and why
    wanted: Wanted
    weights: NDArray[np.float64] | None = None  # of the rows
    tasks: NDArray[Any] | None = None  # task of each row
    base: int | None = None  # for libsvm, the number of the first column
    left_out: Mapping[str, int] = field(default_factory=dict)  # rows left out, by the reason
    offset: NDArray[np.float64] | None = None  # of the rows

    @property
    def scale(self) -> str:
        """How numbers are scaled."""
        return self.wanted.scale or ("standard" if self.base is None else "maxabs")

    @property
    def used(self) -> list[Column]:
        """Columns that the model sees."""
        return [column for column in self.columns if column.used]

    @property
    def n_rows(self) -> int:
        """Number of rows that are used."""
        return int(self.X.shape[0])

    @property
    def n_read(self) -> int:
        """Number of rows of the file."""
        return self.n_rows + sum(self.left_out.values())

    def rows(self, index: NDArray[np.intp]) -> Any:
        """Some of the samples."""
        return self.X[index] if self.base is not None else self.X.take(index)

    @property
    def is_large(self) -> bool:
        """Whether the samples are read piece by piece."""
        return isinstance(self.X, LargeColumns)


def understand(frame: Any, source: str, format_name: str, wanted: Wanted) -> Problem:
    """Recognise target and columns of a table, which is a `DataFrame` or a `LargeFrame`."""
    name = str(wanted.target)
    roles = _check_names(frame, wanted, source)
    refuse, every_row = wanted.missing == "refuse", frame
    remedy = "Fill it, or name another column with --target."
    frame, n_absent = with_target(frame, name, source, remedy)
    if refuse:
        check_missing(every_row, [name], source)
    left_out = {"the target is missing": n_absent} if n_absent else {}
    target = recognise_target(frame[name], name, wanted.kind, source)
    if target.kept is not None:
        frame = frame[target.kept]
    left_out |= target.left_out
    names = [column for column in wanted.only or frame.columns if column not in roles]
    n_left_out = sum(left_out.values())
    wishes = {**wanted.factors.looks, **wanted.kinds}
    columns = recognise(frame, names, wishes, source, wanted.styles, n_left_out)
    columns, told = with_factors(columns, frame, wanted.factors, target, source)
    remarks = [f"{source}, {remark}" for remark in _remarks(target, columns)]
    if told:
        remarks.append(f"{source}: {told}")
    used = [column for column in columns if column.used]
    if not used:
        raise ValueError(
            f"{source} has no column to predict {name!r} from. "
            "Give a table with more columns, or name fewer in --drop."
        )
    if refuse:
        check_missing(frame, [column.name for column in used], source)
    if isinstance(frame, LargeFrame):
        X: Any = LargeColumns(frame, used)  # which are read later
    else:
        values = {c.name: as_kind(frame[c.name], c.kind, source, c.style) for c in used}
        X = pandas().DataFrame(values).reset_index(drop=True)
    weights = None if wanted.weights is None else _weights(frame, wanted.weights, source)
    tasks = None if wanted.tasks is None else _tasks(frame, wanted.tasks, source)
    return Problem(
        source,
        format_name,
        X,
        target,
        columns,
        remarks,
        wanted,
        weights,
        tasks,
        left_out=left_out,
        offset=None if wanted.offset is None else wanted.offset.values(frame, source),
    )


def _remarks(target: Target, columns: Sequence[Column]) -> Iterator[str]:
    """What a person should know of the columns, or decide."""
    if target.question:
        yield f"column {target.name!r}: {target.question}"
    for column in columns:
        if not column.used:
            yield (
                f"column {column.name!r}: left out, as {column.reason}. "
                f"--drop {column.name!r} says that this is meant."
            )
        elif column.remark:
            yield f"column {column.name!r}: {column.remark}"


def _check_names(frame: Any, wanted: Wanted, source: str) -> set[str]:
    """The columns that are no features; all that are named must be there."""
    options = {"--target": wanted.target, "--weights": wanted.weights, "--tasks": wanted.tasks}
    if wanted.offset is not None:
        options[wanted.offset.option] = wanted.offset.name
    named = [
        find(frame, name, source, option) for option, name in options.items() if name is not None
    ]
    twice = [name for name in named if named.count(name) > 1 or name in wanted.drop]
    if twice:
        raise BadUsage(
            f"{source}, column {twice[0]!r} is named for two purposes by "
            f"{', '.join(options)} or --drop. Name it once."
        )
    for option, names in (("--drop", wanted.drop), ("--columns", wanted.only)):
        for name in names:
            find(frame, name, source, option)
    for name, kind in wanted.kinds.items():
        find(frame, name, source, f"--{kind}")
    roles = {*named, *wanted.drop}
    for name, option in wanted.factors.options.items():
        find(frame, name, source, option)
        if name in roles or (wanted.only and name not in wanted.only):
            role = next((other for other, role in options.items() if role == name), "")
            role = role or ("--drop" if name in wanted.drop else "--columns without it")
            raise BadUsage(
                f"{option} {name} and {role} cannot both be meant: a factor is a column to predict "
                "from. Leave one of the two out."
            )
    return roles


def _weights(frame: Any, name: str, source: str) -> NDArray[np.float64]:
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
    tasks = as_texts(frame[name])
    if np.unique(tasks).size < 2:
        raise ValueError(
            f"{source}, column {name!r}: all rows are of one task. "
            "Name the column that tells tasks apart with --tasks, or leave it out."
        )
    return tasks


def read_sparse_problem(source: Source, wanted: Wanted) -> Problem:
    """Read a libsvm file, which has no names and so nothing to choose from."""
    name = source.name
    named = (wanted.target, wanted.weights, wanted.tasks, wanted.only, wanted.drop, wanted.kinds)
    if any(named) or wanted.factors.asked or wanted.offset is not None:
        raise BadUsage(
            f"{name} is libsvm, whose columns have no names: the target is {LABEL}. Leave "
            "out options that name columns."
        )
    table = read_sparse(source)
    if not table.X.nnz:
        raise ValueError(f"{name} has no values to predict from. Give column:value pairs.")
    target = recognise_target(pandas().Series(table.y), "target", wanted.kind, name)
    X = table.X if target.kept is None else table.X[target.kept]
    remarks = [f"{name}, {remark}" for remark in _remarks(target, ())]
    rest: dict[str, Any] = {"base": table.base, "left_out": target.left_out}
    return Problem(name, source.format_name, X, target, [], remarks, wanted, **rest)
