"""From a fitted model to a file."""

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clustruct import __version__
from clustruct._arguments import as_number
from clustruct._atomic import replacing
from clustruct._extras import load_extra
from clustruct.figures.numbers import score_text
from clustruct.inspection import final_estimator, kind_of
from clustruct.reporting.comparing.comparison import Comparison, compare, hold_out, most_rows
from clustruct.reporting.comparing.samples import Data
from clustruct.reporting.content import describe


def report(
    model: Any,
    X: Any,
    y: ArrayLike,
    path: str | os.PathLike[str],
    *,
    tasks: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    X_test: Any = None,
    y_test: ArrayLike | None = None,
    tasks_test: ArrayLike | None = None,
    offset_test: ArrayLike | None = None,
    sample_weight_test: ArrayLike | None = None,
    test_size: float = 0.25,
    feature_names: Sequence[str] | None = None,
    title: str | None = None,
    search: Any = None,
    model_file: str | os.PathLike[str] | None = None,
    random_state: int = 0,
) -> Path:
    """Write a report on a fitted model: one HTML file that needs no network.

    It tells what was fitted and how well it does on held-out samples beside models without groups,
    shows the groups with their members, the choice of their number and the convergence, warns of
    what matters, and ends with lines to copy. Of large data it shows a part, and says so.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted model of features, samples or tasks, or a pipeline that ends in one.
    X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        The samples it was fitted to.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Their targets.
    path : str or path-like
        The file to write, which appears when it is complete.
    tasks : array-like of shape (n_samples,), default=None
        The task of each sample, for models that were fitted with them.
    offset : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
        The offset of each sample, for models that were fitted with one.
    sample_weight : array-like of shape (n_samples,), default=None
        The weight of each sample, for models that were fitted with weights. Rivals, scores and
        exposures take them into account.
    X_test : {array-like, sparse matrix, data frame}, default=None
        Held-out samples to judge the model by.
    y_test : array-like, default=None
        Their targets.
    tasks_test : array-like, default=None
        Their tasks.
    offset_test : array-like, default=None
        Their offsets.
    sample_weight_test : array-like, default=None
        Their weights.
    test_size : float, default=0.25
        Without held-out samples, this part of ``X`` is held out, and a copy of the model is fitted
        to the rest, its search included, which takes as long as the fit did. 0 leaves the
        comparison out.
    feature_names : sequence of str, default=None
        Names of the features; those that the model knows if None.
    title : str, default=None
        Title of the report.
    search : SearchResult or CountSelection, default=None
        The search that chose the number of groups, if the model does not hold it.
    model_file : str or path-like, default=None
        Where the model was saved, for the lines to copy.
    random_state : int, default=0
        Seed of what is held out and drawn.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_features(100, 10, 3, random_state=0)
    >>> model = cs.FeatureClusterRegressor(3).fit(problem.X, problem.y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = cs.report(model, problem.X, problem.y, pathlib.Path(folder, "report.html"))
    ...     text = path.read_text(encoding="utf-8")
    >>> text.startswith("<!DOCTYPE html>")
    True
    """
    kind_of(model)  # complains of what cannot be reported on before anything else is done
    _environment()
    data = _as_data(model, X, y, tasks, offset, sample_weight)
    if (X_test is None) != (y_test is None):
        raise ValueError("X_test and y_test go together: give both, or neither.")
    size = as_number(test_size, "test_size", "at least 0 and less than 1", lambda s: 0 <= s < 1)
    comparison = None
    if y_test is not None:
        given = X_test, y_test, tasks_test, offset_test, sample_weight_test
        held_out = _as_data(model, *given, "_test").drawn(random_state, most_rows(model))
        comparison = compare(model, data, held_out, seed=random_state)
    elif size > 0.0 and (parts := hold_out(model, data, size, random_state)) is not None:
        comparison = compare(model, *parts, seed=random_state, refit=True)
        comparison = replace(comparison, n_available=data.n)
    about = {"title": title, "search": search, "model_file": model_file}
    return write_page(model, data, comparison, path, feature_names=feature_names, **about)


def write_page(
    model: Any, data: Data, found: Comparison | None, path: str | os.PathLike[str], **about: Any
) -> Path:
    """Write a report on what has been compared already; `about` are the options of `describe`."""
    page = describe(model, data, found, **about)
    text = _environment().get_template("report.html").render(page=page, version=__version__)
    target = Path(path)
    with replacing(target) as partial:
        partial.write_text(text, encoding="utf-8")
    return target


def _as_data(
    model: Any,
    X: Any,
    y: ArrayLike,
    tasks: ArrayLike | None,
    offset: ArrayLike | None,
    sample_weight: ArrayLike | None,
    of: str = "",
) -> Data:
    """Samples and targets that the model can have been fitted to; ``X{of}`` names them."""
    target: NDArray[Any] = np.asarray(y)
    rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if target.ndim == 0 or len(target) != rows:
        raise ValueError(
            f"y{of} has shape {target.shape}, but X{of} has {rows} samples. "
            "Give one target for each sample."
        )
    if target.ndim == 2 and target.shape[1] == 1:
        target = target[:, 0]
    ids = None if tasks is None else np.asarray(tasks)
    if ids is not None and ids.shape != (rows,):
        raise ValueError(
            f"tasks has shape {ids.shape}, but X{of} has {rows} samples. Give one id for each."
        )
    own = None if offset is None else np.asarray(offset, dtype=np.float64)
    if (own is not None) != final_estimator(model).has_offset_:
        raise ValueError(
            f"The model was fitted {'without' if own is not None else 'with'} an offset, and "
            f"offset{of} is {'given' if own is not None else 'None'}. Give `report` what `fit` had."
        )
    if own is not None and (own.ndim not in (1, 2) or own.shape[0] != rows):
        raise ValueError(
            f"offset{of} has shape {own.shape}, but X{of} has {rows} samples. Give one number, or "
            "one row, for each."
        )
    samples = X if hasattr(X, "shape") or hasattr(X, "iloc") else list(X)
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weights is not None and (weights.shape != (rows,) or not (weights >= 0.0).all()):
        raise ValueError(
            f"sample_weight{of} has shape {weights.shape}, or holds negative numbers or NaN, and "
            f"X{of} has {rows} samples. Give one number of at least 0 for each."
        )
    data = Data(samples, target, ids, weights, own)
    few = data.rows(np.arange(min(data.n, 2)))
    model.predict(few.X, **few.routed())  # complains of other features than the model's
    classes = getattr(final_estimator(model), "classes_", None)
    if classes is None or target.ndim > 1:
        return data
    unknown = [value for value in np.unique(target).tolist() if value not in set(classes.tolist())]
    if unknown:
        raise ValueError(
            f"y{of} holds {unknown[0]!r}, but the classes of the model are "
            f"{', '.join(repr(name) for name in classes.tolist()[:10])}. "
            "Give the targets as they were given to `fit`."
        )
    return data


def _environment() -> Any:
    jinja2 = load_extra("jinja2", "A report", "report")
    environment = jinja2.Environment(
        autoescape=jinja2.select_autoescape(),  # HTML, and not the lines to copy
        undefined=jinja2.StrictUndefined,
        loader=jinja2.PackageLoader("clustruct.reporting"),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["score"] = score_text
    # Compact, and safe between the tags of a script: tojson escapes what could end it.
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "sort_keys": False}
    environment.policies["json.dumps_function"] = json.dumps
    return environment
