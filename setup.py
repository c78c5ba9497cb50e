"""The compiled half of the build; everything else is declared in pyproject.toml.

Kernels are Cython in pure-Python mode. Each is compiled when a C compiler is at hand, and each .py
file is installed as well, so that it can run uncompiled where there is none.
"""

import os
import platform
import shutil
from pathlib import Path
from threading import Lock

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

KERNELS = Path("src", "clustruct", "kernels")
# The kernels keep track of rounding errors: a compiler that contracts, reorders or drops
# floating-point operations would break them, so no fast-math and no fused multiply-add.
# A slice of an array is passed by value, all 200 bytes of it: inner loops that call functions with
# slices take more than twice as long where GCC, to keep a file short, does not inline them.
FLAGS = {
    "msvc": ["/O2", "/fp:precise"],
    "unix": ["-O3", "-g0", "-ffp-contract=off", "--param=inline-unit-growth=300"],
}
# Further flags, which come last: `make sanitize` asks for the sanitizers and for line numbers.
MORE_FLAGS = os.environ.get("CLUSTRUCT_FLAGS", "").split()


# Kernels that take less time with vectors of four doubles are compiled a second time, for
# processors that have them; `clustruct.kernels` chooses. Both give the same bits.
WIDE = {
    f"clustruct.kernels._avx2.{name}": f"clustruct.kernels.{name}"
    for name in ("numbers.intervals", "numbers.partition", "prices.least_costs")
}
WIDE_FLAGS = ["-mavx2"]

# What Cython writes for every module that takes arrays, compiled once for all of them: it was more
# than half of the work.
SHARED = "clustruct.kernels._shared"
_translating = Lock()


def kernels():
    """One optional extension module for each kernel, or none if CLUSTRUCT_UNCOMPILED is set."""
    if os.environ.get("CLUSTRUCT_UNCOMPILED", "0") not in ("", "0"):
        return []
    sources = {SHARED: []}
    for path in sorted(KERNELS.glob("*/[!_]*.py")):
        sources[f"clustruct.kernels.{path.parent.name}.{path.stem}"] = [path.as_posix()]
    if os.name == "posix" and platform.machine() in ("x86_64", "amd64"):
        sources |= {wide: sources[name] for wide, name in WIDE.items()}
    return [Extension(name, paths, optional=True) for name, paths in sources.items()]


class BuildKernels(build_ext):
    def build_extensions(self):
        # One kernel is translated to C while others are compiled.
        self.parallel = self.parallel or 1 + (os.cpu_count() or 1)
        super().build_extensions()

    def copy_extensions_to_source(self):
        for name in WIDE.keys() & {ext.name for ext in self.extensions}:
            Path("src", self.get_ext_filename(name)).parent.mkdir(parents=True, exist_ok=True)
        super().copy_extensions_to_source()

    def translate(self, ext):
        """Let Cython write the C file of a kernel, to build/ and never beside its source."""
        from Cython.Build import cythonize

        name = WIDE.get(ext.name, ext.name)
        with _translating:
            (generated,) = cythonize(
                [Extension(name, ext.sources)],
                build_dir="build/cython",
                # Local variables get the C types of what is assigned to them.
                compiler_directives={"language_level": 3, "infer_types": True},
                include_path=["src"],
                shared_utility_qualified_name=SHARED,
                quiet=True,
            )
        ext.sources = generated.sources
        ext.depends = [*generated.depends, "setup.py"]
        if ext.name in WIDE:
            # A file of its own, so that its object file has another name.
            folder = Path("build", "cython", *ext.name.split("."))
            folder.mkdir(parents=True, exist_ok=True)
            ext.sources = [shutil.copy2(source, folder) for source in generated.sources]

    def build_extension(self, ext):
        kind = "msvc" if self.compiler.compiler_type == "msvc" else "unix"
        ext.extra_compile_args = FLAGS[kind] + MORE_FLAGS
        if ext.name in WIDE:
            ext.extra_compile_args += WIDE_FLAGS
        ext.extra_link_args = MORE_FLAGS
        try:
            self.translate(ext)
            super().build_extension(ext)
        except Exception:
            # Leave no outdated module that would be preferred to the sources: where this one would
            # be, which is beside them in an editable installation as well.
            Path(self.get_ext_fullpath(ext.name)).unlink(missing_ok=True)
            if self.inplace or self.editable_mode:
                Path("src", self.get_ext_filename(ext.name)).unlink(missing_ok=True)
            raise


setup(ext_modules=kernels(), cmdclass={"build_ext": BuildKernels})
