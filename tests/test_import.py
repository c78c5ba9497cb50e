"""``import clustruct`` is cheap, and every public name is found."""

import ast
import json
from pathlib import Path

import pytest

import clustruct

HEAVY = ("dask", "matplotlib", "pandas", "polars", "rich", "torch")


def modules_after(run_python, code):
    done = run_python(f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))")
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def test_import_loads_nothing_heavy(run_python):
    # Without NumPy it cannot cost more than NumPy does.
    loaded = modules_after(run_python, "import clustruct")
    assert loaded.isdisjoint((*HEAVY, "numpy", "scipy", "sklearn"))
    assert "clustruct.kernels" not in loaded


def test_public_names_load_nothing_that_is_an_extra(run_python):
    loaded = modules_after(
        run_python, "import clustruct\nfor name in clustruct.__all__: getattr(clustruct, name)"
    )
    # What scikit-learn itself loads where it is installed cannot be helped.
    inevitable = modules_after(run_python, "import sklearn.linear_model")
    assert (loaded - inevitable).isdisjoint(HEAVY)


def test_a_public_module_is_loaded_when_first_used(run_python):
    code = "import sys, clustruct as cs\nassert 'clustruct.datasets' not in sys.modules\n"
    done = run_python(f"{code}assert cs.datasets is sys.modules['clustruct.datasets']")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", clustruct.__all__)
def test_public_name_resolves(name):
    value = getattr(clustruct, name)
    assert value is getattr(clustruct, name)
    assert name in dir(clustruct)


def test_dir_shows_public_names_only():
    shown = [name for name in dir(clustruct) if not name.startswith("__")]
    assert shown == sorted(set(clustruct.__all__) - {"__version__"})


def test_star_import_gives_the_public_names():
    namespace = {}
    exec("from clustruct import *", namespace)
    assert set(clustruct.__all__) <= set(namespace)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'clustruct' has no attribute 'nonsense'"):
        _ = clustruct.nonsense


def test_type_checkers_see_the_same_names():
    tree = ast.parse(Path(clustruct.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name: node.module for node in block.body for alias in node.names}
    assert seen == clustruct._HOMES
    assert {*seen, "__version__"} == set(clustruct.__all__)
