"""Numerical kernels: arrays in, arrays out, no models.

Every module of the rooms in this folder is a kernel, written in Cython's pure-Python mode. The
build compiles each of them to an extension module of the same name, which Python prefers to the
source. The sources run as they are, with the same results but far slower, where a compiled module
is missing, or where the environment variable ``CLUSTRUCT_UNCOMPILED`` is set to 1 (for debugging,
coverage and tests).

Compiled kernels call each other's C functions, so they are used all together or not at all. Some
are compiled a second time, in ``_avx2``, for processors with vectors of four doubles.

Attributes
----------
COMPILED : bool
    Whether the kernels are compiled.
"""

import os
import sys
import warnings
from importlib.abc import MetaPathFinder
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from types import ModuleType
from typing import Any

__all__ = ["COMPILED", "UncompiledKernelsWarning"]


class UncompiledKernelsWarning(RuntimeWarning):
    """The kernels run uncompiled: the results are the same, the time is not."""


class _SourceLoader(SourceFileLoader):
    """Load a kernel from its source, with a module to import as ``cython``."""

    def exec_module(self, module: ModuleType) -> None:
        from clustruct.kernels._stand_in import importable_cython

        with importable_cython():
            super().exec_module(module)


class _SourceFinder(MetaPathFinder):
    """Find the source of a kernel even where a compiled module of the same name exists."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        source = _KERNELS.get(fullname.removeprefix(f"{__name__}."))
        if source is None:
            return None
        return spec_from_file_location(fullname, source, loader=_SourceLoader(fullname, source))


class _WideFinder(MetaPathFinder):
    """Find what is compiled for wide vectors, where the processor has them."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        name = fullname.removeprefix(f"{__name__}.")
        if name not in _KERNELS:
            return None
        base = os.path.join(_FOLDER, "_avx2", *name.split("."))
        files = [base + suffix for suffix in EXTENSION_SUFFIXES if os.path.exists(base + suffix)]
        if files:
            from clustruct.kernels.numbers.processor import has_avx2

            if has_avx2():
                return spec_from_file_location(fullname, files[0])
        return None


def _why_uncompiled() -> tuple[str, str] | None:
    """The reason to run the sources and the remedy, or None where all kernels are compiled."""
    if os.environ.get("CLUSTRUCT_UNCOMPILED", "0") not in ("", "0"):
        return (
            "the environment variable CLUSTRUCT_UNCOMPILED is set",
            "unset it to use the compiled kernels",
        )
    missing = [
        name
        for name, source in (*_KERNELS.items(), ("_shared", os.path.join(_FOLDER, "_shared.py")))
        if not any(os.path.exists(f"{source[:-3]}{suffix}") for suffix in EXTENSION_SUFFIXES)
    ]
    if missing:
        return (
            f"there is no compiled module of {', '.join(missing)}, most likely because no C "
            "compiler was at hand when clustruct was installed",
            "install a C compiler, then install clustruct again with "
            "`pip install --force-reinstall --no-deps --no-cache-dir`",
        )
    return None


def _find_kernels() -> dict[str, str]:
    """The sources of all kernels by the names of their rooms and modules."""
    return {
        f"{room.name}.{file.removesuffix('.py')}": os.path.join(room.path, file)
        for room in sorted(os.scandir(_FOLDER), key=lambda room: room.name)
        if room.is_dir() and room.name[0] != "_"
        for file in sorted(os.listdir(room.path))
        if file.endswith(".py") and file[0] != "_"
    }


_FOLDER = os.path.dirname(os.path.abspath(__file__))
_KERNELS = _find_kernels()
_WHY = _why_uncompiled()
COMPILED = _WHY is None

if _WHY is not None:
    # pyproject.toml tells pytest to ignore this warning by its first words.
    warnings.warn(
        "clustruct runs its kernels uncompiled: the results are the same, but whatever calls a "
        f"kernel takes at least 100 times as long. Reason: {_WHY[0]}. Remedy: {_WHY[1]}.",
        UncompiledKernelsWarning,
        stacklevel=2,
    )
    sys.meta_path.insert(0, _SourceFinder())
elif os.path.isdir(os.path.join(_FOLDER, "_avx2")):
    sys.meta_path.insert(0, _WideFinder())
