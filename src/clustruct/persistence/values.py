"""Values as JSON, and back.

``null``, booleans, integers, finite numbers, strings and lists stand for themselves. Everything
else is an object with one entry, whose key is the kind of the value; `_DECODERS` lists the kinds.
Each array is a member of its own; equal arrays are stored once.
"""

import hashlib
import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from clustruct.design import computed
from clustruct.persistence.arrays import KINDS, array_of_bytes, bytes_of_array, plain_dtype
from clustruct.persistence.classes import class_of, make, name_of, state_of

_DEEPEST = 60
_PLAIN_TYPES = {"bool": bool, "float": float, "int": int, "object": object, "str": str}
_SPARSE = ("csr", "csc")
_OBJECTS = np.dtype(object).str


class Encoder:
    """Turns values into JSON, and collects the arrays among them in `members`."""

    def __init__(self) -> None:
        self.members: dict[str, bytes] = {}
        self._names: dict[bytes, str] = {}

    def encode(self, value: Any, where: str, depth: int = 0) -> Any:
        """A value as JSON; ``where`` names it in the ValueError for a kind that cannot be saved."""
        if depth > _DEEPEST:
            raise ValueError(f"{where:.200} is nested too deeply to be saved, or holds itself.")
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": struct.pack(">d", value).hex()}
        if type(value) in (list, tuple, set, frozenset):
            return self._encode_items(value, where, depth)
        if type(value) is dict:
            pairs = [
                [
                    self.encode(key, f"a key of {where}", depth + 1),
                    self.encode(item, f"{where}[{key!r:.40}]", depth + 1),
                ]
                for key, item in value.items()
            ]
            return {"dict": pairs}
        value = computed(value)  # such as labels that have not been computed yet
        if isinstance(value, np.ndarray | np.generic):
            return self._encode_numpy(value, where, depth)
        if sparse.issparse(value) and value.format in _SPARSE:
            container = "array" if isinstance(value, sparse.sparray) else "matrix"
            parts = (value.data, value.indices, value.indptr)
            arrays = [self._encode_numpy(part, where, depth) for part in parts]
            return {"sparse": [value.format, container, list(value.shape), arrays]}
        return self._encode_rest(value, where, depth)

    def _encode_items(self, value: Any, where: str, depth: int) -> Any:
        # Sets are sorted so that equal models give equal files.
        items = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        encoded = [self.encode(x, f"{where}[{i}]", depth + 1) for i, x in enumerate(items)]
        return encoded if type(value) is list else {type(value).__name__: encoded}

    def _encode_numpy(self, value: Any, where: str, depth: int) -> Any:
        if isinstance(value, np.str_):
            return {"str_": str(value)}
        if isinstance(value, np.generic):
            if value.dtype.kind not in KINDS:
                raise ValueError(_refused(value, where))
            return {"scalar": [value.dtype.str, value.tobytes().hex()]}
        if type(value) not in (np.ndarray, np.memmap):
            raise ValueError(_refused(value, where))
        if value.dtype.kind == "O":
            items = self.encode(value.ravel().tolist(), where, depth + 1)
            return {"objects": [list(value.shape), items]}
        if value.dtype.kind not in KINDS or value.dtype.names is not None:
            raise ValueError(_refused(value, where))
        data = bytes_of_array(value)
        name = self._names.setdefault(
            hashlib.sha256(data).digest(), f"arrays/{len(self._names)}.npy"
        )
        self.members.setdefault(name, data)
        return {"array": name}

    def _encode_rest(self, value: Any, where: str, depth: int) -> Any:
        if isinstance(value, slice | range):
            return {type(value).__name__: [value.start, value.stop, value.step]}
        if isinstance(value, np.dtype) and value.kind in (*KINDS, "O"):
            return {"dtype": value.str}
        if isinstance(value, type):
            if _PLAIN_TYPES.get(value.__name__) is value:
                return {"type": value.__name__}
            if issubclass(value, np.generic) and np.dtype(value).kind in KINDS:
                return {"type": f"numpy.{value.__name__}"}
        known = name_of(type(value))
        if known is None:
            raise ValueError(_refused(value, where))
        state = {key: computed(x) for key, x in state_of(value).items()}
        encoded = {key: self.encode(x, f"{where}.{key}", depth + 1) for key, x in state.items()}
        make(type(value), state)  # refuses now what loading would refuse
        return {"object": [known, encoded]}


def _refused(value: Any, where: str) -> str:
    """The message for a value that cannot be saved, with the remedy."""
    kind = type(value)
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return (
            f"{where} is a {kind.__name__}, whose state model files do not hold. "
            "Give an integer as random_state, fit again, and save."
        )
    if callable(value) and hasattr(value, "__name__"):
        return (
            f"{where} is the function {value.__name__!r}, and model files hold no code. "
            "Give the name of a built-in one, where there is one, or save the model without it."
        )
    return (
        f"{where} is a {kind.__module__}.{kind.__qualname__}, which model files do not hold: "
        "they hold numbers, text, arrays, lists, dictionaries, clustruct's estimators and "
        "scikit-learn's common transformers. Replace it by one of these and save again."
    )


class Decoder:
    """Turns JSON and the ``.npy`` files in `members` into values."""

    def __init__(self, members: dict[str, bytes]) -> None:
        self._members = members
        self.foreign = False  # whether some object is not our own

    def decode(self, value: Any, depth: int = 0) -> Any:
        """The value of some JSON; ValueError if `Encoder` cannot have written it."""
        if depth > _DEEPEST:
            raise ValueError("its values are nested too deeply")
        if isinstance(value, list):
            return [self.decode(item, depth + 1) for item in value]
        if not isinstance(value, dict):
            return value
        if len(value) != 1:
            raise ValueError("it holds an entry that is of no kind, or of several")
        ((kind, content),) = value.items()
        if kind not in _DECODERS:
            raise ValueError(f"it holds an entry of the kind {kind!r:.40}, which there is not")
        try:
            return _DECODERS[kind](self, content, depth + 1)
        except (TypeError, KeyError, AttributeError, OverflowError, struct.error) as error:
            raise ValueError(f"an entry of the kind {kind!r} is malformed") from error

    def _scalar(self, content: Any, depth: int) -> Any:
        name, data = content
        dtype, raw = plain_dtype(name), bytes.fromhex(data)
        if len(raw) != dtype.itemsize:
            raise ValueError("a scalar does not have the bytes that it needs")
        return np.frombuffer(raw, dtype)[0]

    def _objects(self, content: Any, depth: int) -> Any:
        shape, items = content
        decoded = self.decode(items, depth)
        if not isinstance(decoded, list):  # a range, for one, may be longer than memory
            raise ValueError("an array of objects does not hold a list of them")
        flat = np.empty(len(decoded), dtype=object)
        for place, item in enumerate(decoded):
            flat[place] = item
        return flat.reshape([_whole(length) for length in shape])

    def _sparse(self, content: Any, depth: int) -> Any:
        layout, container, shape, parts = content
        if layout not in _SPARSE or container not in ("array", "matrix"):
            raise ValueError("it holds a sparse matrix of an unknown layout")
        arrays = [self.decode(part, depth) for part in parts]
        kind = getattr(sparse, f"{layout}_{container}")
        made = kind(tuple(arrays), shape=tuple(_whole(length) for length in shape))
        made.check_format(full_check=True)  # compiled code does not check the indices
        return made

    def _type(self, content: Any, depth: int) -> type:
        if content in _PLAIN_TYPES:
            return _PLAIN_TYPES[content]
        kind = getattr(np, content.removeprefix("numpy."), None)
        if not isinstance(kind, type) or not issubclass(kind, np.generic):
            raise ValueError(f"it names the type {content!r:.40}, which no model file may hold")
        return kind

    def _object(self, content: Any, depth: int) -> Any:
        name, state = content
        self.foreign |= not name.startswith("clustruct.")
        return make(class_of(name), {key: self.decode(x, depth) for key, x in state.items()})


def _whole(value: Any) -> int:
    """Check that a length or a bound is an integer."""
    if type(value) is not int:
        raise ValueError(f"{value!r:.40} is no whole number")
    return value


def _bounds(content: Any) -> list[int | None]:
    """Start, stop and step."""
    start, stop, step = content
    return [None if bound is None else _whole(bound) for bound in (start, stop, step)]


_DECODERS: dict[str, Callable[[Decoder, Any, int], Any]] = {
    "float": lambda self, content, depth: struct.unpack(">d", bytes.fromhex(content))[0],
    "tuple": lambda self, content, depth: tuple(self.decode(list(content), depth)),
    "set": lambda self, content, depth: set(self.decode(list(content), depth)),
    "frozenset": lambda self, content, depth: frozenset(self.decode(list(content), depth)),
    "dict": lambda self, content, depth: {
        self.decode(key, depth): self.decode(item, depth) for key, item in content
    },
    "str_": lambda self, content, depth: np.str_(content),
    "scalar": Decoder._scalar,
    "array": lambda self, content, depth: array_of_bytes(self._members[content]),
    "objects": Decoder._objects,
    "sparse": Decoder._sparse,
    "slice": lambda self, content, depth: slice(*_bounds(content)),
    "range": lambda self, content, depth: range(*_bounds(content)),  # type: ignore[arg-type]
    "dtype": lambda self, content, depth: (
        np.dtype(object) if content == _OBJECTS else plain_dtype(content)
    ),
    "type": Decoder._type,
    "object": Decoder._object,
}
