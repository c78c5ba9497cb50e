"""Offsets: known numbers of samples, or of samples and outputs, that are added to the scores.

Fits join them with the targets, see `clustruct.losses.offset`; predictions add them before the
inverse link.
"""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from clustruct._typing import Floats
from clustruct.arrays import beside
from clustruct.design import Beside, Design, Rows, load
from clustruct.losses import Loss, join_offset, with_offset


def attach_offset(design: Design, offset: Any) -> Rows | None:
    """Validated offsets of the rows, None where there are none."""
    if offset is None:
        return None
    given = design.attach(offset, "offset", _offset_on_host)
    _require_finite_offset(int(design.fold(_count_infinite, given)))
    return given


def beside_offset(offset: Any) -> tuple[Beside, ...]:
    """Offsets as something that belongs to rows; nothing where there are none."""
    return () if offset is None else (Beside(offset, "offset", _offset_on_host),)


def shifted(scores: Rows, offset: Any) -> Rows:
    """Scores, ``n x K`` or of experts ``n x Q x K``, with an offset of the host, if any."""
    if offset is None:
        return scores
    columns = beside(offset_columns(offset, scores.shape[-1]), scores)
    return scores + (columns if scores.ndim == 2 else columns[:, None, :])


def offset_columns(offset: NDArray[Any], n_outputs: int) -> Floats:
    """Offsets with a column for each output, or the same one for all of them."""
    _require_columns(offset.shape, n_outputs)
    _require_finite_offset(_count_infinite(offset))  # pieces of a Dask collection come unchecked
    columns = offset.astype(np.float64, copy=False).reshape(offset.shape[0], -1)
    return np.broadcast_to(columns, (columns.shape[0], n_outputs))


def _offset_on_host(offset: Any, n_samples: int) -> Floats:
    """Offsets of rows on the host, validated."""
    given = load(offset)
    if isinstance(given, Real):
        given = np.full(n_samples, given)
    values: Floats = check_array(
        given,
        ensure_2d=False,
        allow_nd=True,
        ensure_all_finite=False,
        dtype=np.float64,
        order="C",
        input_name="offset",
    )
    if values.ndim == 0 or values.shape[0] != n_samples:
        raise ValueError(
            f"offset has shape {values.shape}, but X has {n_samples} samples. Give one number for "
            "each sample, or a column for each output."
        )
    _require_finite_offset(_count_infinite(values))
    return values


def _require_columns(shape: tuple[int, ...], n_outputs: int) -> None:
    """Complain of offsets with other columns than one, or one for each output."""
    if len(shape) > 2 or shape[1:] not in ((), (1,), (n_outputs,)):
        raise ValueError(
            f"offset has shape {tuple(shape)}, but a sample has {n_outputs} scores. Give one "
            "number for each sample, or a column for each output."
        )


def _count_infinite(values: NDArray[Any]) -> int:
    """How many numbers are NaN or infinite."""
    return int(np.count_nonzero(~np.isfinite(np.asarray(values, dtype=np.float64))))


def _require_finite_offset(count: int) -> None:
    """Complain of offsets that are NaN or infinite."""
    if count:
        raise ValueError(
            f"offset contains NaN or infinity, {count} times. Give finite numbers; for rates, the "
            "logarithm of an exposure above 0."
        )


def with_offsets(
    design: Design, target: Rows, loss: Loss, n_outputs: int, offset: Rows | None
) -> tuple[Rows, Loss]:
    """Target and loss, with the offset of each sample if there is one."""
    if offset is None:
        return target, loss
    _require_columns(offset.shape, n_outputs)
    if loss.relative and offset.shape[1:] in ((), (1,)):
        raise ValueError(
            f"offset has shape {tuple(offset.shape)}: the same number for all {n_outputs} classes "
            "changes no probability. Give a column for each class."
        )

    def join(y: NDArray[Any], o: NDArray[Any]) -> Any:
        return join_offset(loss, y, offset_columns(o, n_outputs))

    return design.map(join, target, offset), with_offset(loss)
