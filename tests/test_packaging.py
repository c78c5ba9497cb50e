"""Compiled and uncompiled kernels, with and without Cython, and what a wheel holds."""

import importlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import clustruct
from clustruct import kernels
from clustruct.kernels._stand_in import importable_cython
from clustruct.kernels.numbers import processor

FOLDER = Path(kernels.__file__).parent
NAMES = sorted(f"{path.parent.name}.{path.stem}" for path in FOLDER.glob("*/[!_]*.py"))
PROJECT = Path(__file__).parent.parent

HIDE_CYTHON = """
import sys

class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0].lower() == "cython":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Hide())
"""
LOAD_ALL = f"""
import importlib, sys, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from clustruct import kernels
    modules = [importlib.import_module("clustruct.kernels." + name) for name in {NAMES}]
    import clustruct
    clustering = clustruct.kmeans_1d([3.0, 1.0, 0.0, 3.0], 2)
assert clustering.centers.tolist() == [0.5, 3.0], clustering
assert clustering.labels.tolist() == [1, 0, 0, 1], clustering
"""
ASSERT_UNCOMPILED = """
assert not kernels.COMPILED
assert all(module.__file__.endswith(".py") for module in modules), modules
(warning,) = caught
assert warning.category is kernels.UncompiledKernelsWarning
text = str(warning.message)
assert "results are the same" in text, text
assert "100 times" in text, text
"""


def check(done):
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(
    "CLUSTRUCT_UNCOMPILED" in os.environ, reason="this run was asked to be uncompiled"
)
def test_this_installation_is_compiled():
    assert kernels.COMPILED, "not compiled: see `python setup.py build_ext --inplace`"
    for name in NAMES:
        module = importlib.import_module(f"clustruct.kernels.{name}")
        assert not module.__file__.endswith(".py")


def test_compiled_is_silent(run_python):
    check(run_python(f"{LOAD_ALL}\nassert kernels.COMPILED\nassert not caught, caught[0].message"))


def test_uncompiled_on_request(run_python):
    checks = 'assert "CLUSTRUCT_UNCOMPILED is set" in text, text'
    check(run_python(f"{LOAD_ALL}{ASSERT_UNCOMPILED}{checks}", uncompiled=True))


@pytest.mark.parametrize("value", ["", "0"])
def test_request_can_be_taken_back(run_python, value):
    code = "from clustruct import kernels\nassert kernels.COMPILED"
    check(run_python(code, env={"CLUSTRUCT_UNCOMPILED": value}))


def test_uncompiled_without_cython(run_python):
    checks = """
assert all(not module.cython.compiled for module in modules if hasattr(module, "cython"))
assert not [name for name in sys.modules if name.partition(".")[0] == "cython"]
"""
    code = f"{HIDE_CYTHON}{LOAD_ALL}{ASSERT_UNCOMPILED}{checks}"
    check(run_python(code, uncompiled=True))


SAME_BITS = """
import sys
import numpy as np
import clustruct.kernels

if {plain}:
    sys.meta_path[:] = [one for one in sys.meta_path if type(one).__name__ != "_WideFinder"]
import clustruct as cs
from clustruct.kernels.prices import least_costs

rng = np.random.default_rng(0)
found = []
for n in (30, 300, 3000, 20_000):
    for k in (2, 5, 17, 64):
        for x in (rng.standard_normal(n), rng.standard_cauchy(n), rng.integers(0, n, n) / 7.0):
            for weight in (None, rng.random(n)):
                found.append(cs.kmeans_1d(x, min(k, n), sample_weight=weight))
labels, centers = (np.concatenate([getattr(one, name) for one in found])
                   for name in ("labels", "centers"))
print("_avx2" in least_costs.__file__, hash(labels.tobytes()), hash(centers.tobytes()))
"""


@pytest.mark.skipif(not (FOLDER / "_avx2").is_dir(), reason="nothing compiled for wide vectors")
def test_wide_vectors_give_the_same_bits(run_python):
    wide, plain = (
        run_python(SAME_BITS.format(plain=plain), env={"PYTHONHASHSEED": "0"})
        for plain in (False, True)
    )
    check(wide)
    check(plain)
    is_wide, *bits = wide.stdout.split()
    if is_wide == "False":
        pytest.skip("this processor has no wide vectors")
    assert plain.stdout.split() == ["False", *bits]


def test_processors_are_asked_for_wide_vectors():
    assert processor.has_avx2() in (False, True)
    if not kernels.COMPILED:
        assert not processor.has_avx2()


def copy_of_package(folder, ignored):
    ignore = shutil.ignore_patterns("__pycache__", *ignored)
    shutil.copytree(Path(clustruct.__file__).parent, folder / "clustruct", ignore=ignore)
    return {"PYTHONPATH": str(folder)}


# All or none: one missing module, or what they share, sends all of them to their sources.
@pytest.mark.parametrize("missing", ["*", NAMES[0], "_shared"], ids=["all", "one", "shared"])
def test_uncompiled_where_modules_are_missing(run_python, tmp_path, missing):
    checks = f"""
assert "no C compiler" in text, text
assert "--force-reinstall" in text, text
assert {missing!r} == "*" or "no compiled module of {missing}, most" in text, text
"""
    module = missing.rpartition(".")[2]
    env = copy_of_package(tmp_path, [f"{module}.*so", f"{module}.*pyd"])
    check(run_python(f"{LOAD_ALL}{ASSERT_UNCOMPILED}{checks}", env=env))


PURE_MODE = """
import cython
from cython.cimports.libc.math import sqrt

CONSTANT = cython.declare(cython.double, 2)
cython.declare(a=cython.int)

@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
@cython.boundscheck(False)
@cython.locals(y=cython.double)
@cython.returns(cython.double)
def half(y):
    return y / 2

@cython.ccall
@cython.wraparound(False)
@cython.cdivision(True)
@cython.initializedcheck(False)
@cython.exceptval(-1)
def total(
    x: cython.double[::1], m: cython.double[:, ::1], c: cython.const[cython.double][::1],
    p: cython.p_double, q: cython.pointer[cython.uchar], n: cython.Py_ssize_t, b: cython.bint,
) -> cython.double:
    i: cython.longlong
    s: cython.float = 0
    with cython.nogil, cython.boundscheck(False):
        for i in range(len(x)):
            s += half(x[i])
    return s

compiled = cython.compiled
casts = [
    cython.cast(cython.int, 2.9), cython.cast(cython.ulonglong, 3.), cython.cast(cython.long, -1.5),
    cython.cast(cython.double, 1), cython.cast(cython.bint, 2), cython.cast(cython.p_double, None),
    cython.double(2), cython.declare(cython.Py_ssize_t), sqrt(4), CONSTANT,
]
three = cython.declare(cython.double[3])
three[1] = 0.5
result = total([1.0, 2.0], None, None, None, None, 2, True)
"""


def test_stand_in_knows_pure_python_mode(monkeypatch):
    monkeypatch.setitem(sys.modules, "cython", None)  # makes `import cython` fail
    namespace = {}
    with importable_cython(), importable_cython():
        exec(PURE_MODE, namespace)
    assert sys.modules["cython"] is None
    assert namespace["compiled"] is False
    assert namespace["casts"] == [2, 3, -1, 1.0, True, None, 2.0, 0, 2.0, 2.0]
    assert [type(value) for value in namespace["casts"][:5]] == [int, int, int, float, bool]
    assert namespace["three"] == [0.0, 0.5, 0.0]
    assert namespace["result"] == 1.5
    with pytest.raises(AttributeError, match=r"stand-in .* no 'parallel'.*_stand_in\.py"):
        _ = namespace["cython"].parallel


def build_wheel(folder, **env):
    """The names of the files in a wheel built from a clean copy of the sources."""
    ignore = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__", "*.egg-info")
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(PROJECT / name, folder)
    shutil.copytree(PROJECT / "src", folder / "src", ignore=ignore)
    command = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "."]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **env}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not list((folder / "src").rglob("*.c")), "generated C beside the sources"
    (wheel,) = folder.glob("*.whl")
    return wheel, set(zipfile.ZipFile(wheel).namelist())


def kernels_with(names, *endings):
    """Names of files in the rooms of the kernels, as those of modules, by their endings."""
    inside = [name.removeprefix("clustruct/kernels/") for name in names if name.endswith(endings)]
    return {name.partition(".")[0].replace("/", ".") for name in inside}


@pytest.mark.slow
def test_wheel_holds_compiled_modules_and_sources(tmp_path):
    _, names = build_wheel(tmp_path)
    compiled = kernels_with(names, ".so", ".pyd")
    wide = {name for name in compiled if name.startswith("_avx2.")}
    assert compiled - wide == {*NAMES, "_shared"}
    assert {name.removeprefix("_avx2.") for name in wide} <= set(NAMES)
    sources = [*FOLDER.rglob("*.py"), *FOLDER.rglob("*.pxd")]
    assert {f"clustruct/kernels/{path.relative_to(FOLDER).as_posix()}" for path in sources} <= names
    assert "clustruct/grouping/device_rows.cu" in names
    assert "clustruct/py.typed" in names
    assert "clustruct/reporting/templates/report.html" in names
    assert not kernels_with(names, ".c")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("env", "tag"), [({"CC": "false"}, "linux"), ({"CLUSTRUCT_UNCOMPILED": "1"}, "py3-none-any")]
)
def test_wheel_without_a_compiler(tmp_path, env, tag):
    if tag == "linux" and sys.platform != "linux":
        pytest.skip("the compiler is named by CC on Unix only")
    wheel, names = build_wheel(tmp_path, **env)
    assert tag in wheel.name
    assert not kernels_with(names, ".so", ".pyd", ".c")
    assert {f"clustruct/kernels/{name.replace('.', '/')}.py" for name in NAMES} <= names
