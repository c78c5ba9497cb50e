"""What a reader of the report has to mind, each caveat with its remedy."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from clustruct._typing import Floats, Indices
from clustruct.explanation.origins import Origin
from clustruct.figures.numbers import shown, signed
from clustruct.inspection import factors_of, final_estimator, grid_ends, kind_of
from clustruct.reporting.comparing.comparison import Comparison
from clustruct.reporting.comparing.encoding import as_matrix
from clustruct.reporting.comparing.samples import Data
from clustruct.reporting.dispersion import Dispersion, dispersion_of
from clustruct.reporting.subjects import subject_of
from clustruct.reporting.wording import Wording, name_list
from clustruct.results.tables import plural

FEW_HELD_OUT = 50
UNEQUAL_SCALES = 30.0
MOST_CORRELATED = 500  # columns whose correlations are looked at
# Directions with so small a part of the variance of a column are as good as empty. Two columns
# with a correlation of 0.99 leave one.
EMPTY = 0.01
CANCELLING = 3.0  # times what is left of the weights, in deviations
MOSTLY_MISSING = 0.5
HANDFUL = 20
MOST_COUNTED = 50_000


def caveats(
    model: Any, data: Data, found: Comparison | None, wording: Wording, search: Any = None
) -> list[str]:
    """Sentences about what could mislead, the gravest first."""
    return [
        *_of_the_fit(final_estimator(model)),
        *_of_the_choice(model, search),
        *_of_the_comparison(found),
        *_of_the_dispersion(dispersion_of(model, data)),
        *_of_collinear_columns(wording, data.y),
        *_of_scales(wording, subject_of(model).scale_matters),
        *_of_filled_columns(data, wording.origins),
        *_of_few_rows(model, data, wording),
    ]


def _of_the_fit(estimator: Any) -> Iterator[str]:
    if estimator.status_.interrupted:
        yield (
            "Ctrl-C ended the fit early: the model is the best that was found by then. Fit it "
            "again, and let it come to its end."
        )
    elif not estimator.status_.converged:
        yield (
            "The solver was stopped before it had converged. Raise max_iter, or scale the columns."
        )
    wanted = getattr(estimator, "n_clusters", None)
    used = getattr(estimator, "n_clusters_", None)
    if isinstance(wanted, int) and used is not None and used < wanted:
        yield (
            f"{used} groups are in use, of the {wanted} asked for: more could not improve the fit."
        )
    score = getattr(estimator, "gate_score_", None)
    if score is not None and not score.helps and estimator.n_clusters_ > 1:
        yield "The gate does not help: the features do not tell which expert is right."


def _of_the_choice(model: Any, search: Any) -> Iterator[str]:
    """Choices at the end of what was tried, where there may be better ones beyond it."""
    for edge in grid_ends(model, search):
        what = edge.name
        if edge.name == "n_clusters":
            what = f"number of {subject_of(model).thing}s"
        beyond = "Larger" if edge.end == "largest" else "Smaller"
        yield (
            f"The {edge.end} {what} that was tried, {shown(edge.value)}, was chosen and is clearly "
            f"better than {shown(edge.neighbour)}. {beyond} ones may be better still: try them."
        )


def _of_the_comparison(found: Comparison | None) -> Iterator[str]:
    if found is None:
        return
    if found.rival is not None and found.against(found.rival).worse:
        yield (
            f"“{found.rival.name}” does better on held-out samples. Try more groups, another "
            "alpha, or a search (the estimators whose names end in CV)."
        )
    if found.n_targets < FEW_HELD_OUT:
        yield f"Only {found.n_targets} targets were held out: scores are rough guides."


def _of_the_dispersion(found: Dispersion | None) -> Iterator[str]:
    if found is not None and found.remark is not None:
        yield found.remark


def _numbers(wording: Wording) -> Indices:
    """Features that vary and are no levels, indicators or words, whose spread says how frequent."""
    other = ("level", "missing", "count", "text")
    numbers = [origin.kind not in other for origin in wording.origins]
    return np.flatnonzero(np.array(numbers) & (wording.deviations > 0.0)).astype(np.intp)


def _of_collinear_columns(wording: Wording, y: NDArray[Any]) -> Iterator[str]:
    """Weights that cancel: they are large along directions in which the columns hardly vary."""
    columns = _numbers(wording)
    n_rows = wording.matrix.shape[0]
    if not 2 <= columns.size <= MOST_CORRELATED or n_rows <= columns.size:
        return
    values = _dense(wording.matrix, columns)
    correlations = np.atleast_2d(np.corrcoef(values, rowvar=False))
    sizes, directions = np.linalg.eigh(correlations)
    empty = directions[:, sizes < EMPTY]
    if not empty.shape[1]:
        return
    scale = float(np.std(y)) if y.dtype.kind == "f" and wording.outputs.kind == "number" else 1.0
    names = wording.names
    weights = wording.weights.reshape(-1, names.size)
    contributions = weights[:, columns] * wording.deviations[columns]
    lost = contributions @ empty @ empty.T
    worst, large = _cancelling(contributions, lost, scale)
    if not large.size:
        return
    told = [f"{names[columns[i]]} ({signed(weights[worst, columns[i]], 4)})" for i in large]
    tie = "are tied to each other"
    if large.size == 2:
        tie = f"have a correlation of {shown(float(correlations[large[0], large[1]]), 4)}"
    yield (
        f"{name_list(told)} {tie}, and their large weights nearly cancel: read them together, as a "
        "single one of them says little. Leave some of these columns out, or give a larger alpha."
    )


def _cancelling(contributions: Floats, lost: Floats, scale: float) -> tuple[int, Indices]:
    """The output and the columns whose weights are large only along empty directions, if any.

    What is left of these columns without the empty directions says how large their weights have to
    be; at least a tenth of the target's deviation is asked for.
    """
    found: tuple[float, int, Indices] = (CANCELLING, 0, np.zeros(0, dtype=np.intp))
    for k, (all_of_it, empty) in enumerate(zip(contributions, lost, strict=True)):
        size = np.abs(empty)
        large = np.flatnonzero(size > 0.3 * size.max())
        left = np.abs(all_of_it - empty)[large].max()
        excess = float(size.max() / max(left, 0.1 * scale))
        if excess >= found[0]:
            found = excess, k, large[np.argsort(-size[large], kind="stable")]
    return found[1], found[2]


def _dense(matrix: Any, columns: Indices) -> Floats:
    if issparse(matrix):
        return np.asarray(matrix.tocsc()[:, columns].toarray(), dtype=np.float64)
    return np.asarray(matrix, dtype=np.float64)[:, columns]


def _of_scales(wording: Wording, reason: str) -> Iterator[str]:
    names, deviations = wording.names, wording.deviations
    columns = _numbers(wording)
    if issparse(wording.matrix) or columns.size < 2:
        return
    order = columns[np.argsort(deviations[columns], kind="stable")]
    low, high = np.percentile(deviations[order], (5, 95))
    if high <= UNEQUAL_SCALES * low:
        return
    least, most = int(order[0]), int(order[-1])
    yield (
        f"Columns are on very different scales: {names[least]} has a standard deviation of "
        f"{shown(float(deviations[least]))}, {names[most]} of {shown(float(deviations[most]))}. "
        f"{reason}: put a StandardScaler first."
    )


def _of_filled_columns(data: Data, origins: Sequence[Origin]) -> Iterator[str]:
    filled = dict.fromkeys(origin.column for origin in origins if origin.imputed)
    for column in filled:
        missing = _missing(data.X, column)
        share = float(missing.mean()) if missing.size else 0.0
        if share >= MOSTLY_MISSING:
            there = int(missing.size - missing.sum())
            yield (
                f"{column} is missing in {share:.0%} of the rows and was filled there: its weight "
                f"rests on the {plural(there, 'row')} that have it."
            )


def _missing(X: Any, column: str) -> NDArray[np.bool_]:
    """Where a column of a table, or of an array by its number, has no value."""
    if hasattr(X, "columns") and column in X.columns:
        return np.asarray(X[column].isna())
    if isinstance(X, np.ndarray) and X.dtype.kind == "f" and column[:1] == "x":
        number = column[1:]
        if number.isdigit() and int(number) < X.shape[1]:
            return np.asarray(np.isnan(X[:, int(number)]))
    return np.zeros(0, dtype=bool)


def _of_few_rows(model: Any, data: Data, wording: Wording) -> Iterator[str]:
    estimator, kind = final_estimator(model), kind_of(model)
    if kind == "features":
        yield from _of_rare_levels(model, data, wording)
    elif kind == "samples":
        sizes = np.bincount(np.asarray(estimator.labels_), minlength=int(estimator.n_clusters_))
        least = max(HANDFUL, 2 * (int(estimator.n_features_in_) + 1))
        for q in np.flatnonzero(sizes < least).tolist():
            yield (
                f"Expert {q} rests on {plural(int(sizes[q]), 'sample')}, few for "
                f"{plural(int(estimator.n_features_in_) + 1, 'number')}: its weights are rough."
            )
    elif data.tasks is not None:
        group_of = dict(zip(estimator.tasks_, np.asarray(estimator.labels_).tolist(), strict=True))
        groups = np.array([group_of.get(task, -1) for task in data.tasks])
        for q in np.unique(estimator.labels_).tolist():
            n_rows = int((groups == q).sum())
            if n_rows < HANDFUL:
                yield f"Group {q} rests on {plural(n_rows, 'row')}: its weights are rough."


def _of_rare_levels(model: Any, data: Data, wording: Wording) -> Iterator[str]:
    """Groups of levels that few rows have."""
    levels = wording.levels
    is_level = np.array([origin.kind in ("level", "missing") for origin in wording.origins])
    factors = factors_of(model)
    if levels is None or not is_level.any() or (data.n > MOST_COUNTED and factors is None):
        return
    matrix = as_matrix(model, data.X)
    # A row has one level of a factor at most, so that rows of levels can be added up.
    counts = None if factors is None else np.diff(matrix.tocsc().indptr)
    for label in range(len(levels.sizes)):
        members = levels.members(label)
        if not is_level[members].all():
            continue
        if counts is None:
            values = _dense(matrix, members)
            n_rows = int((values > values.min(axis=0)).any(axis=1).sum())
        else:
            n_rows = int(counts[members].sum())
        if n_rows < HANDFUL:
            yield (
                f"Group {label} ({name_list(wording.names[members])}) rests on "
                f"{plural(n_rows, 'row')}: its weight is rough."
            )
