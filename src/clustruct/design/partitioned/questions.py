"""What is asked of a pass over blocks, and what is computed from a single block."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse, vstack

from clustruct._typing import Floats, Indices, Labels
from clustruct.design.local import LEAST_RATIO, aligned, hardly_varying
from clustruct.design.partitioned.pieces import Pieces


@dataclass(frozen=True, eq=False)
class Question:
    """What is wanted of a pass.

    The function takes the design of a block and the pieces of `rows` beside it, and returns new
    rows of about `width` columns, or None, and a sum, or None. `combine` adds two sums.
    """

    function: Callable[..., tuple[Any, Any]]
    rows: tuple[Pieces, ...]
    combine: Callable[[Any, Any], Any] | None
    width: int


def looked_at(
    questions: Sequence[Question],
) -> Callable[..., tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """A function of blocks that serves all questions: it returns new rows, and sums."""
    parts = tuple((question.function, len(question.rows)) for question in questions)

    def answer(X: Any, *rows: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        answers, first = [], 0
        for function, count in parts:
            answers.append(function(X, *rows[first : first + count]))
            first += count
        new, sums = zip(*answers, strict=True)
        return new, sums

    return answer


def combined(questions: Sequence[Question]) -> Callable[[Any, Any], tuple[Any, ...]]:
    """How what is to be added up is put together, each by its own rule."""
    rules = tuple(question.combine for question in questions)

    def combine(a: Any, b: Any) -> tuple[Any, ...]:
        return tuple(
            None if rule is None else rule(x, y) for rule, x, y in zip(rules, a, b, strict=True)
        )

    return combine


def kept(number: int) -> Callable[[Any], Any]:
    """The new rows of one of the questions, of what a block answered."""
    return lambda answer: answer[0][number]


# ---- Single blocks


def local_matrix(X: Any) -> Any:
    """A piece of a matrix as a design wants it: single or double precision, CSR or CSC."""
    if issparse(X):
        X = X if X.format in ("csr", "csc") else X.tocsr()
        X = X if all(part.flags.aligned for part in (X.data, X.indices, X.indptr)) else X.copy()
    else:
        X = aligned(np.asarray(X))
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def moments(design: Any, shares: Floats) -> tuple[float, Floats, Floats]:
    """Weight, means and summed squares of a block."""
    weight = float(shares.sum())
    if weight <= 0.0:
        return 0.0, np.zeros(design.shape[1]), np.zeros(design.shape[1])
    means, variances = design.moments(shares / weight)
    return weight, means, weight * variances


def joined_moments(
    a: tuple[float, Floats, Floats], b: tuple[float, Floats, Floats]
) -> tuple[float, Floats, Floats]:
    """Those of two blocks together."""
    weight = a[0] + b[0]
    share_of_b = b[0] / weight if weight > 0.0 else 0.0
    apart = b[1] - a[1]
    return (
        weight,
        a[1] + share_of_b * apart,
        a[2] + b[2] + a[0] * share_of_b * apart**2,
    )


def joined_ranges(a: tuple[Floats, Floats], b: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Least and largest values of two blocks together."""
    return np.minimum(a[0], b[0]), np.maximum(a[1], b[1])


def take_masked(rows: Any, mask: NDArray[np.bool_]) -> Any:
    """Rows where the mask is true."""
    return local_matrix(rows)[mask] if issparse(rows) else np.asarray(rows)[mask]


def locate_in_piece(shares: Floats, sought: Floats, before: float, first: int) -> Labels:
    """Numbers of a piece's rows at which the sums, with those before it, pass what is sought."""
    found = (before + shares.cumsum()).searchsorted(sought, side="right")
    return first + np.minimum(found, shares.size - 1)


def concatenated(a: Any, b: Any) -> Any:
    """Rows of two blocks."""
    return np.concatenate([a, b])


def fetch_rows(index: Labels, block: Any, *rows: Any) -> tuple[Any, ...]:
    """Some rows of a block, and what belongs to them."""
    return local_matrix(block)[index], *(np.asarray(mine)[index] for mine in rows)


def stacked(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    """Rows of two blocks, and what belongs to them, one below the other."""
    matrices = [a[0], b[0]]
    matrix = vstack(matrices, format="csr") if issparse(a[0]) else np.concatenate(matrices)
    return matrix, *map(concatenated, a[1:], b[1:])


def describe(block: Any) -> tuple[bool, int, int, Indices]:
    """Whether a block is sparse, the numbers it stores, its bytes, and columns that hardly vary."""
    matrix = local_matrix(block)
    narrow = hardly_varying(matrix, LEAST_RATIO)
    if issparse(matrix):
        n_bytes = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
        return True, int(matrix.nnz), int(n_bytes), narrow
    return False, int(matrix.size), int(matrix.nbytes), narrow


def touch(block: Any) -> tuple[int, ...]:
    """Shape of a block, once it has been computed."""
    return local_matrix(block).shape


def count_bad(block: Any) -> int:
    """How many entries of a block are not finite."""
    matrix = local_matrix(block)
    values = matrix.data if issparse(matrix) else matrix
    return int(values.size - np.count_nonzero(np.isfinite(values)))


def is_finite(total: Any) -> bool:
    """Whether all numbers of a result are."""
    if isinstance(total, tuple):
        return all(is_finite(part) for part in total)
    if hasattr(total, "__dict__"):
        return all(is_finite(part) for part in vars(total).values())
    array = np.asarray(total)
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())
