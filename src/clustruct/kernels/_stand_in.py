"""The part of the ``cython`` module that uncompiled kernels touch.

Uncompiled kernels start with ``import cython``. Where the Cython package is installed they get it;
elsewhere they get the module built here, for just as long as they are being imported.
"""

import math
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_INTEGERS = (
    "char schar uchar short ushort int uint long ulong longlong ulonglong "
    "size_t ssize_t Py_ssize_t ptrdiff_t"
).split()
_FLOATS = "float double longdouble".split()
_MARKS = "cfunc ccall cclass inline final nogil gil".split()
_OPTIONS = (
    "boundscheck cdivision exceptval initializedcheck locals nonecheck overflowcheck returns "
    "wraparound"
).split()


class CType:
    """A C type: called it converts a value, subscripted it becomes the type of an array.

    That is a list where the length is given, and any array where it is a slice.
    """

    def __init__(self, convert: Callable[[Any], Any]) -> None:
        self._convert = convert

    def __call__(self, value: Any = 0) -> Any:
        return self._convert(value)

    def __getitem__(self, item: Any) -> "CType":
        if isinstance(item, int) and item > 0:
            return CType(lambda value: value or [self._convert(0)] * item)
        return CType(_unchanged)


class Mark:
    """Something that means nothing uncompiled, be it ``@cython.nogil`` or ``with cython.nogil``."""

    def __call__(self, function: Any) -> Any:
        return function

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        pass


def _unchanged(value: Any) -> Any:
    return value


def _option(*args: Any, **kwargs: Any) -> Mark:
    return Mark()


def _cast(kind: Callable[[Any], Any], value: Any, typecheck: bool = False) -> Any:
    return kind(value)


def _declare(kind: Callable[..., Any] | None = None, *value: Any, **kinds: Any) -> Any:
    return None if kind is None else kind(*value)


def _unknown(name: str) -> Any:
    raise AttributeError(
        f"clustruct's stand-in for Cython has no {name!r}: install Cython, or add the name to "
        "clustruct/kernels/_stand_in.py"
    )


def build() -> ModuleType:
    """A fresh module that kernels can use in place of ``cython``."""
    module = ModuleType("cython", "clustruct's stand-in for Cython, see clustruct.kernels")
    types = {name: CType(int) for name in _INTEGERS}
    types |= {name: CType(float) for name in _FLOATS}
    types |= {"bint": CType(bool), "void": CType(_unchanged)}
    for name, kind in types.items():
        setattr(module, name, kind)
        setattr(module, f"const_{name}", kind)
        setattr(module, f"p_{name}", kind[0])
        setattr(module, f"pp_{name}", kind[0])
    for name in ("const", "pointer"):
        setattr(module, name, CType(_unchanged))
    for name in _MARKS:
        setattr(module, name, Mark())
    for name in _OPTIONS:
        setattr(module, name, _option)
    vars(module).update(
        compiled=False,
        cast=_cast,
        declare=_declare,
        fused_type=lambda *types: CType(_unchanged),
        NULL=None,
        __getattr__=_unknown,
    )
    return module


_lock = threading.Lock()
_users = 0
_replaced: dict[str, ModuleType | None] = {}


def _is_importable() -> bool:
    try:
        import cython  # noqa: F401
    except ImportError:
        return False
    return True


@contextmanager
def importable_cython() -> Iterator[None]:
    """Let ``import cython`` succeed inside the block, and leave no trace after it.

    Blocks may be nested, and several threads may be inside one at a time: the first that finds no
    Cython installs the stand-in, and the last to leave removes it.
    """
    global _users
    with _lock:
        stands_in = _users > 0 or not _is_importable()
        if stands_in:
            if _users == 0:
                for name, module in {"cython": build(), "cython.cimports.libc.math": math}.items():
                    if name in sys.modules:
                        _replaced[name] = sys.modules[name]
                    sys.modules[name] = module
            _users += 1
    try:
        yield
    finally:
        if stands_in:
            with _lock:
                _users -= 1
                if _users == 0:
                    for name in ("cython", "cython.cimports.libc.math"):
                        del sys.modules[name]
                    sys.modules.update(_replaced)  # type: ignore[arg-type]
                    _replaced.clear()
