"""From columns to a matrix: a plain ``ColumnTransformer``, so that models take the table as it is.

Numbers and dates (as days) are filled with the median and scaled to mean 0 and deviation 1: a
weight is then what a deviation of its column changes, which is what makes weights of different
columns comparable enough to be shared. Categories become columns of zeros and ones, text becomes
TF-IDF. A category with two levels is one column of zeros and ones, as is what tells where numbers
are missing; weights of these are shared with each other and with no others. Factors stay columns of
levels, and what is made is a frame.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, RobustScaler, StandardScaler

from clustruct.cli.messages import in_percent
from clustruct.cli.preparing.columns import KINDS, MOST_LEVELS, Column, rare_below
from clustruct.cli.preparing.opening import LargeColumns
from clustruct.cli.preparing.styles import date_words
from clustruct.cli.preparing.words import fit_words
from clustruct.cli.reading.tables import pandas
from clustruct.estimators.columns.transformers import (
    DateToDays,
    FilledText,
    LevelEncoder,
    LevelText,
    MissingFlag,
    WordsOfColumn,
    WrittenDates,
    WrittenNumbers,
)
from clustruct.estimators.columns.written import ISO, read_numbers
from clustruct.estimators.features.blocks import column_blocks

# What makes numbers comparable, in words too; zeros that are not stored must not be moved.
SCALES: dict[str, tuple[Any, Any, str]] = {
    "standard": (StandardScaler(), StandardScaler(with_mean=False), "mean 0, deviation 1"),
    "robust": (RobustScaler(), RobustScaler(with_centering=False), "median 0, middle half 1"),
    "maxabs": (MaxAbsScaler(), MaxAbsScaler(), "largest 1"),
    "none": (None, None, "as it is"),
}
NUMBERS = "numbers"
LONG_NAMES = "{transformer_name}: {feature_name}"  # where two features have the same name
STEPS = "yes-or-no columns"
MOST_WORDS = 20_000
FEW_ROWS = 100  # to see what columns are made of a table
DENSE_LEVELS = 500  # more than that, and zeros are not stored


def how(column: Column, scale: str, missing: str) -> str:
    """What is done to a column, in words."""
    if not column.used:
        return column.reason
    if column.factor is not None:
        return _how_factor(column)
    if column.kind == "text":
        return "TF-IDF of its words"
    if column.kind == "category":
        return _how_levels(column)
    steps = [SCALES[scale][-1]]
    if column.n_missing and missing == "impute":
        share = f" ({in_percent(column.share_missing)} missing)" if column.is_flagged else ""
        steps.insert(0, f"filled with the median{share}")
        if column.is_flagged:
            steps.append("and 1 where it is missing")
    if column.kind == "date":
        form = f" from {date_words(column.style)}" if column.style not in ("", ISO) else ""
        steps.insert(0, f"days{form}")
    elif column.style:
        example = read_numbers(pandas().Series([column.example]), column.style)[0]
        steps.insert(0, f"read as {example:.12g}")
    return ", ".join(steps)


def _how_factor(column: Column) -> str:
    """What becomes of a factor."""
    factor = column.factor
    assert factor is not None
    kind = "monotone" if column.finds_direction else factor.learnt_kind
    missing = f", one of them missing ({in_percent(column.share_missing)})"
    levels = f"{column.n_distinct + bool(column.n_missing)} levels"
    if factor.bins is not None:
        count = factor.bins if isinstance(factor.bins, int) else len(factor.bins) + 1
        levels, missing = f"{count} bins", f", and missing ({in_percent(column.share_missing)})"
    return f"{kind} factor: {levels}{missing if column.n_missing else ''}"


def _how_levels(column: Column) -> str:
    """What becomes of a category."""
    share = f" ({in_percent(column.share_missing)})" if column.n_missing else ""
    levels = [*column.levels, *([f"missing{share}"] if share else [])]
    if len(levels) == 2 and not column.has_rare:
        return f"1 for {levels[1]}, 0 for {levels[0]}"
    missing = f", one for missing{share}" if share else ""
    if column.has_rare:
        return f"a column of 0 and 1 for each level, one for rare ones together{missing}"
    return f"{column.n_distinct + bool(column.n_missing)} columns of 0 and 1{missing}"


def fit_columns(
    frame: Any, columns: Sequence[Column], scale: str, missing: str, source: str
) -> Any:
    """The transformer that makes a matrix of the columns, fitted."""
    parts, sparse = _parts(columns, scale, missing, len(frame))
    words = [column for column in columns if column.kind == "text"]
    return _fitted(_assembled(parts, sparse), frame, words, source)


def fit_columns_apart(
    table: LargeColumns, rows: NDArray[np.intp], columns: Sequence[Column], scale: str, missing: str
) -> Any:
    """The same for a table of which one column at a time is in memory."""
    parts, sparse = _parts(columns, scale, missing, rows.size)
    _assembled(parts, sparse)  # tells the parts whether to make data frames
    learnt = []
    for name, transformer, names in parts:
        if transformer != "passthrough":
            if not isinstance(transformer, Pipeline):
                transformer = clone(transformer).fit(table.column(names[0], rows))
            elif isinstance(transformer[-1], TfidfVectorizer):
                transformer = _fit_text(clone(transformer), table, rows, names[0])
            else:
                transformer = _fit_steps(transformer, table, rows, names)
            # The few rows that show what is made teach it nothing.
            transformer = FrozenEstimator(transformer)
        learnt.append((name, transformer, names))
    few = table.take(rows[:FEW_ROWS])
    # A text without words, so that the matrix is seen to have zeros.
    few.loc[few.index[-1], [column.name for column in columns if column.kind == "text"]] = np.nan
    return _fitted(_assembled(learnt, sparse), few, (), table.name)


def _fit_text(
    pipeline: Pipeline, table: LargeColumns, rows: NDArray[np.intp], name: str
) -> Pipeline:
    """Fit the words of a column of text that is read in batches."""
    filler, vectorizer = pipeline[0], pipeline[-1]

    def texts() -> Iterator[Any]:
        for frame in table.batches(name, rows):
            yield filler.fit(frame).transform(frame)

    try:
        fitted = fit_words(vectorizer, texts, f"{table.name}, column {name!r}")
    except ValueError as error:
        raise _no_words(error, table.name, name) from error
    return Pipeline([pipeline.steps[0], (pipeline.steps[-1][0], fitted)])


def _fit_steps(
    pipeline: Pipeline, table: LargeColumns, rows: NDArray[np.intp], names: Sequence[str]
) -> Pipeline:
    """Fit steps to columns of numbers or dates, of which one at a time is in memory.

    Medians and quartiles are learnt from the quartiles of each column, which are the same as those
    of all values; means and deviations from one batch of rows after the other.
    """
    few = table.take(rows[:FEW_ROWS], names)
    fitted: list[tuple[str, Any]] = []
    for place, (title, step) in enumerate(pipeline.steps):
        step = clone(step)
        if hasattr(step, "partial_fit"):
            for frame in table.frames(rows, names):
                step.partial_fit(_after(fitted, frame))
        elif isinstance(step, SimpleImputer | RobustScaler):
            before = pipeline[:place]
            columns = [_quartiles(before, table.column(name, rows)) for name in names]
            names_out = getattr(_after(fitted, few), "columns", None)
            values = np.column_stack(columns)
            step.fit(values if names_out is None else pandas().DataFrame(values, columns=names_out))
        else:  # reads numbers or dates, or tells where they are missing
            step.fit(_after(fitted, few))
        fitted.append((title, step))
    return Pipeline(fitted)


def _after(fitted: list[tuple[str, Any]], frame: Any) -> Any:
    return Pipeline(fitted).transform(frame) if fitted else frame


def _quartiles(steps: Pipeline, column: Any) -> NDArray[np.float64]:
    """Minimum, quartiles and maximum of a column, after some steps."""
    values = clone(steps).fit_transform(column) if len(steps) else column
    quartiles: NDArray[np.float64] = np.nanpercentile(np.asarray(values), [0, 25, 50, 75, 100])
    return quartiles


def _parts(
    columns: Sequence[Column], scale: str, missing: str, n_rows: int
) -> tuple[list[tuple[str, Any, Any]], bool]:
    """What is done to which columns, and whether zeros are left out of the matrix."""
    factors = [column for column in columns if column.factor is not None]
    of_kind = {kind: [c for c in columns if c.kind == kind and c.factor is None] for kind in KINDS}
    levels = sum(min(column.n_distinct, MOST_LEVELS) for column in of_kind["category"])
    sparse = bool(of_kind["text"]) or levels > DENSE_LEVELS
    parts: list[tuple[str, Any, Any]] = []

    def add(title: str, step: Any, name: str) -> None:
        title = title.replace("__", "_")  # which scikit-learn does not allow
        taken = {NUMBERS, STEPS, *(part[0] for part in parts)}
        parts.append((title if title not in taken else f"{title} ({len(parts)})", step, [name]))

    for column in factors:
        add(column.name, _level_reader(column), column.name)
    for kind, title in (("number", NUMBERS), ("date", "dates")):
        for style in sorted({column.style for column in of_kind[kind]}):
            names = [column.name for column in of_kind[kind] if column.style == style]
            filler = [SimpleImputer(strategy="median")] if missing == "impute" else []
            scaler = SCALES[scale][0]
            steps = [*_reader(kind, style), *filler, *([] if scaler is None else [clone(scaler)])]
            made = make_pipeline(*steps) if steps else "passthrough"
            parts.append((f"{title} {style}".rstrip(), made, names))
    for column in (*of_kind["number"], *of_kind["date"]):
        if column.is_flagged and missing == "impute":
            flag = MissingFlag(features="all", sparse=False)
            flagged = make_pipeline(*_reader(column.kind, column.style), flag)
            add(f"{column.name} missing", flagged, column.name)
    for column in of_kind["category"]:
        encoder = LevelEncoder(
            handle_unknown="infrequent_if_exist",
            drop="if_binary",
            max_categories=MOST_LEVELS,
            min_frequency=rare_below(n_rows),
            sparse_output=sparse,
        )
        add(column.name, encoder, column.name)
    for column in of_kind["text"]:
        # Words neither rare nor in half of all texts, which are those of the language itself.
        rare = 1 if n_rows < 50 else 2 if n_rows < 1000 else 5
        vectorizer = TfidfVectorizer if len(columns) == 1 else WordsOfColumn
        words = vectorizer(min_df=rare, max_df=0.5, max_features=MOST_WORDS, sublinear_tf=True)
        add(column.name, make_pipeline(FilledText(), words), column.name)
    return parts, sparse


def _reader(kind: str, style: str) -> list[Any]:
    """What makes numbers of values that are written in a style."""
    if kind == "date":
        return [WrittenDates(style) if style not in ("", ISO) else DateToDays()]
    return [WrittenNumbers(style)] if style else []


def _level_reader(column: Column) -> Any:
    """What makes levels of the values of a factor: numbers as they are, all else as text."""
    if column.kind == "number":
        return WrittenNumbers(column.style) if column.style else "passthrough"
    return LevelText((column.style or ISO) if column.kind == "date" else "")


def factors_in(transformer: Any, columns: Sequence[Column]) -> dict[str, Column]:
    """The factors, by the names that they have in the frame which a fitted transformer makes."""
    by_name = {column.name: column for column in columns if column.factor is not None}
    made, found = transformer.get_feature_names_out(), {}
    for title, _, names in transformer.transformers_:
        if len(names) == 1 and (column := by_name.pop(names[0], None)) is not None:
            found[str(made[transformer.output_indices_[title].start])] = column
    return found


def _assembled(parts: Sequence[tuple[str, Any, Any]], sparse: bool) -> ColumnTransformer:
    transformer = ColumnTransformer(
        parts, sparse_threshold=float(sparse), verbose_feature_names_out=False
    )
    if not sparse:
        transformer.set_output(transform="pandas")  # so that the model knows the names
    return transformer


def _fitted(transformer: Any, frame: Any, words: Sequence[Column], source: str) -> Any:
    try:
        transformer.fit(frame)
    except ValueError as error:
        if "not unique" not in str(error):
            raise _no_words(error, source, *(column.name for column in words)) from error
        transformer.set_params(verbose_feature_names_out=LONG_NAMES).fit(frame)
    try:
        transformer.get_feature_names_out()
    except ValueError:  # the same name from two columns
        transformer.set_params(verbose_feature_names_out=LONG_NAMES).fit(frame)
    return transformer


def _no_words(error: ValueError, source: str, *names: str) -> ValueError:
    """The complaint of a vectorizer in our words; any other as it is."""
    if "vocabulary" not in str(error) and "no terms remain" not in str(error):
        return error
    return ValueError(
        f"{source}, column {names[0]!r}: no words are left when rare ones and those in half of the "
        f"rows are gone. Say that it is no text: --category {names[0]!r}, --drop {names[0]!r}."
    )


def blocks_of(transformer: Any) -> NDArray[np.object_] | None:
    """For each column of the matrix the block in which weights are shared; None if there is one.

    Numbers and dates are one block. The columns of a category are another, and so are the words of
    a column of text. Columns of 0 and 1 that stand alone, for a category with two levels or for
    missing values, are one block together.
    """
    ids = column_blocks(transformer)
    for name, step, _ in transformer.transformers_:
        place = transformer.output_indices_[name]
        step = step.estimator if isinstance(step, FrozenEstimator) else step
        last = step[-1] if isinstance(step, Pipeline) else step
        is_level = isinstance(last, LevelEncoder)
        if isinstance(last, MissingFlag) or (is_level and place.stop - place.start == 1):
            ids[place] = STEPS
        elif not is_level and not isinstance(last, TfidfVectorizer):
            ids[place] = NUMBERS
    return ids if len(set(ids)) > 1 else None
