"""NumPy arrays as ``.npy`` bytes and back, with a parser that accepts only what NumPy writes.

For plain types NumPy writes one fixed form of header; reading accepts no other.
"""

import io
import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

KINDS = "biufcUmM"  # booleans, numbers, text and times: no Python objects

_MAGIC = b"\x93NUMPY\x01\x00"
_DTYPE = re.compile(r"[<>|][biufcUmM][0-9]{1,9}(\[[0-9A-Za-z]{1,12}\])?")
_HEADER = re.compile(
    rf"\{{'descr': '(?P<descr>{_DTYPE.pattern})', 'fortran_order': (?P<fortran>True|False), "
    r"'shape': \((?P<shape>(?:[0-9]{1,18}(?:, |,)?)*)\), \} *\n"
)
_LAST_CHARACTER = 0x10FFFF


def bytes_of_array(array: NDArray[Any]) -> bytes:
    """The array as a ``.npy`` file."""
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), version=(1, 0), allow_pickle=False)
    return stream.getvalue()


def array_of_bytes(data: bytes) -> NDArray[Any]:
    """The array in a ``.npy`` file, writeable; ValueError if `bytes_of_array` did not write it."""
    length = int.from_bytes(data[len(_MAGIC) : len(_MAGIC) + 2], "little")
    start = len(_MAGIC) + 2 + length
    header = _HEADER.fullmatch(data[len(_MAGIC) + 2 : start].decode("latin-1"))
    if not data.startswith(_MAGIC) or header is None:
        raise ValueError("an array has a header that this package does not write")
    dtype = plain_dtype(header["descr"])
    shape = tuple(int(length) for length in re.findall(r"[0-9]+", header["shape"]))
    size = math.prod(shape)
    if len(shape) > 32 or size * dtype.itemsize != len(data) - start:
        raise ValueError(f"an array of shape {shape} does not have the bytes that it needs")
    flat = np.frombuffer(data, dtype, size, start) if size else np.empty(0, dtype)
    _check_entries(flat)
    if header["fortran"] == "True":
        return flat.reshape(shape, order="F").copy(order="F")
    return flat.reshape(shape).copy()


def plain_dtype(text: str) -> np.dtype[Any]:
    """The data type of that name; ValueError if it is not a plain one."""
    if not _DTYPE.fullmatch(text):
        raise ValueError(f"{text!r:.40} is not the name of a plain data type")
    try:
        dtype = np.dtype(text)
    except TypeError as error:
        raise ValueError(f"{text!r} is not the name of a data type") from error
    if dtype.kind not in KINDS or not dtype.itemsize:
        raise ValueError(f"{text!r} is not the name of a plain data type")
    return dtype


def _check_entries(flat: NDArray[Any]) -> None:
    """Refuse bytes that are no boolean or no character."""
    if flat.dtype.kind == "b" and flat.size and flat.view(np.uint8).max() > 1:
        raise ValueError("an array of truth values holds other bytes than 0 and 1")
    if flat.dtype.kind == "U" and flat.size:
        codes = flat.view(np.dtype(np.uint32).newbyteorder(flat.dtype.byteorder))
        if codes.max() > _LAST_CHARACTER:
            raise ValueError("an array of text holds bytes that are no characters")
