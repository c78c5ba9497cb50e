"""Saved models and the tables they are applied to: columns found, and as they were in the fit."""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clustruct._console import Console
from clustruct.cli.columns import as_kind, check_missing
from clustruct.cli.messages import did_you_mean, listed
from clustruct.cli.streams import Source, open_source
from clustruct.cli.tables import pandas, read_sparse, read_table
from clustruct.persistence.model_files import read_model_file

__all__ = ["Rows", "Saved", "load_model", "read_rows"]


@dataclass(frozen=True, eq=False)
class Saved:
    """A model that ``clustruct fit`` wrote, and what it remembers of its table.

    Attributes
    ----------
    path : str
    model : Pipeline
    target : str
    kind : str
        "regression" or "classification".
    columns : dict of str
        Kinds of the columns that it needs, by name.
    missing : str
        "impute" or "refuse".
    tasks : str or None
        The column that tells tasks apart.
    base : int or None
        For libsvm, the number of the first column.
    """

    path: str
    model: Any
    target: str
    kind: str
    columns: dict[str, str]
    missing: str
    tasks: str | None
    base: int | None

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the features that the pipeline itself does not know."""
        if self.base is None:
            return None
        return [f"x{column + self.base}" for column in range(int(self.model[0].n_features_in_))]


@dataclass(frozen=True, eq=False)
class Rows:
    """A table that a model can be applied to.

    Attributes
    ----------
    source : str
    X : DataFrame or csr_matrix
    y : ndarray or None
        Answers, if the table has all of them.
    tasks : ndarray or None
    """

    source: str
    X: Any
    y: NDArray[Any] | None
    tasks: NDArray[Any] | None


def load_model(path: str) -> Saved:
    """A model that ``clustruct fit`` wrote."""
    if not Path(path).is_file():
        what = "is a folder" if Path(path).is_dir() else "does not exist"
        raise ValueError(f"{path} {what}. Name a model file that `clustruct fit --out` wrote.")
    found = read_model_file(path)
    names = {"target", "kind", "columns", "missing", "tasks", "base"}
    if set(found.notes) != names:
        raise ValueError(
            f"{path} holds a model, but not what the command line needs to know of its table. Use "
            "clustruct.load in Python, or fit it with `clustruct fit --out`."
        )
    return Saved(path, found.model, **found.notes)


def read_rows(saved: Saved, args: argparse.Namespace, console: Console) -> Rows:
    """The table of a command line, for a model."""
    with open_source(args.data, args.format) as source:
        return _read(saved, source, args.encoding, console)


def _read(saved: Saved, source: Source, encoding: str, console: Console) -> Rows:
    if (source.format == "svm") != (saved.base is not None):
        wants = "libsvm" if saved.base is not None else "a table with named columns"
        raise ValueError(
            f"{source.name} is {source.format_name}, and {saved.path} was fitted to {wants}. "
            "Give data of the same form."
        )
    if saved.base is not None:
        return _sparse_rows(saved, source)
    kept = [name for name, kind in saved.columns.items() if kind != "number"]
    kept += [] if saved.tasks is None else [saved.tasks]
    frame = read_table(source, kept, encoding)
    _check_columns(saved, frame, source.name, console)
    if saved.missing == "refuse":
        check_missing(frame, list(saved.columns), source.name)
    X = pandas().DataFrame(
        {name: as_kind(frame[name], kind, source.name) for name, kind in saved.columns.items()}
    )
    tasks = None
    if saved.tasks is not None:
        check_missing(frame, [saved.tasks], source.name)
        tasks = as_kind(frame[saved.tasks], "category", source.name).to_numpy(object).astype(str)
        _note_new_tasks(saved, tasks, source.name, console)
    _note_new_categories(saved, X, source.name, console)
    return Rows(source.name, X, _answers(saved, frame, source.name), tasks)


def _sparse_rows(saved: Saved, source: Source) -> Rows:
    first = saved.model[0]
    table = read_sparse(source, int(first.n_features_in_), saved.base)
    answers = table.y
    if saved.kind == "classification" and np.asarray(saved.model.classes_).dtype.kind in "iu":
        answers = answers.astype(np.int64)
    return Rows(source.name, table.X, answers, None)


def _check_columns(saved: Saved, frame: Any, source: str, console: Console) -> None:
    needed = [*saved.columns, *([] if saved.tasks is None else [saved.tasks])]
    missing = [name for name in needed if name not in frame.columns]
    if missing:
        others = [name for name in frame.columns if name not in saved.columns]
        raise ValueError(
            f"{source} has no column {listed(map(repr, missing))}, which {saved.path} needs. "
            f"{did_you_mean(missing[0], others or frame.columns)} Rename or add it."
        )
    known = {*needed, saved.target}
    unknown = [name for name in frame.columns if name not in known]
    if unknown:
        console.note(
            f"clustruct: {source}: {len(unknown)} columns that the model does not know are "
            f"ignored: {listed(map(repr, unknown))}."
        )


def _note_new_tasks(saved: Saved, tasks: NDArray[Any], source: str, console: Console) -> None:
    """Tasks that the mean of all others answers."""
    known = {str(task) for task in saved.model[-1].tasks_}
    new = sorted(set(tasks.tolist()) - known)
    if new:
        console.note(
            f"clustruct: {source}, column {saved.tasks!r}: {len(new)} tasks were not in the fit, "
            f"as {new[0]!r:.40}; the mean of all tasks answers for them."
        )


def _note_new_categories(saved: Saved, X: Any, source: str, console: Console) -> None:
    """Values that no column of zeros and ones stands for."""
    for _, encoder, names in saved.model[0].transformers_:
        for name, known in zip(names, getattr(encoder, "categories_", ()), strict=False):
            present = X[name].dropna()
            new = present[~present.isin(known)]
            if len(new):
                console.note(
                    f"clustruct: {source}, column {name!r}: {len(new)} rows hold categories that "
                    f"were not in the fit, as {new.iloc[0]!r:.40}; they count as none of them."
                )


def _answers(saved: Saved, frame: Any, source: str) -> NDArray[Any] | None:
    """The targets, where the table has all of them."""
    if saved.target not in frame.columns or frame[saved.target].isna().any():
        return None
    if saved.kind == "regression":
        numbers: NDArray[np.float64] = as_kind(frame[saved.target], "number", source).to_numpy()
        return numbers
    classes = np.asarray(saved.model.classes_)
    if classes.dtype.kind in "iuf":
        return as_kind(frame[saved.target], "number", source).to_numpy().astype(classes.dtype)
    return as_kind(frame[saved.target], "category", source).to_numpy(object).astype(str)
