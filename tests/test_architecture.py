"""Imports run downwards: a room may use the rooms on lower floors, none above or beside it."""

import ast
import re
from pathlib import Path

import pytest

import clustruct

ROOT = Path(clustruct.__file__).parent

# From the ground up. A new module fails the test until it has its place here.
FLOORS = (
    {"_typing"},
    {
        "kernels",
        "_arguments",
        "_atomic",
        "_docs",
        "_extras",
        "_finite",
        "_interrupts",
        "_progress",
        "_threads",
        "arrays",
    },
    {"results"},
    {"grouping"},
    {"losses", "design", "datasets"},
    {"objectives"},
    {"relaxations"},
    {"solvers"},
    {"estimators"},
    {"inspection", "persistence"},
    {"explanation", "trust"},
    {"figures"},
    {"plot"},
    {"reporting", "experiments"},
    {"cli"},
    {"__main__"},
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
# The same inside of rooms that have rooms of their own.
INNER_FLOORS = {
    "kernels": ({"numbers", "fits"}, {"cuts", "prices"}, {"kmeans"}, {"factors"}),
    "design": ({"local"}, {"sparse", "factors"}, {"device", "partitioned"}),
    "objectives": ({"features", "tasks"}, {"samples"}),
    "solvers": ({"search", "experts", "tasks"},),
    "estimators": (
        {"offsets"},
        {"intake", "columns"},
        {"search"},
        {"common"},
        {"features", "samples", "tasks"},
    ),
    "experiments": ({"output"}, {"paper"}),
    "reporting": ({"comparing"}, {"factors"}),
    "cli": ({"reading"}, {"preparing"}, {"commands"}),
}
INNER_FLOOR = {
    f"{room}.{inner}": floor
    for room, floors in INNER_FLOORS.items()
    for floor, rooms in enumerate(floors)
    for inner in rooms
}


def rooms_imported(path, root):
    """Yield (line, path) for all that a source file imports from the package.

    The path begins with the room. A name imported from the package itself is yielded as if it were
    a room, unless it is the version: a module takes what it needs from where it is defined.
    """
    parents = path.relative_to(root.parent).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            targets = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = list(parents[: len(parents) + 1 - node.level]) if node.level else []
            base += node.module.split(".") if node.module else []
            targets = [[*base, alias.name] for alias in node.names]
        else:
            continue
        for target in targets:
            if target[0] == root.name and target[1:] != ["__version__"]:
                yield node.lineno, target[1:] or [root.name]


def rooms_cimported(path, root):
    """Yield (line, path) for all that a Cython declaration file imports from the package."""
    pattern = re.compile(rf"^\s*(?:from|cimport)\s+{root.name}\.(\w+)")
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if match := pattern.match(line):
            yield number, [match[1]]


def upward_imports(root):
    """One sentence for each import of the package that does not run downwards."""
    complaints = []
    for path in sorted([*root.rglob("*.py"), *root.rglob("*.pxd")]):
        if path == root / "__init__.py":
            continue  # the public face: it names rooms, and loads none until asked
        room = path.relative_to(root).parts[0].partition(".")[0]
        where = path.relative_to(root.parent).as_posix()
        if room not in FLOOR:
            complaints.append(f"{where}: {room} has no floor yet; give it one in FLOORS")
            continue
        find = rooms_cimported if path.suffix == ".pxd" else rooms_imported
        mine = ".".join(path.relative_to(root).with_suffix("").parts[:2])
        for line, (other, *inner) in find(path, root):
            theirs = ".".join([other, *inner[:1]])
            if other not in FLOOR:
                complaints.append(f"{where}:{line}: {other} is no room; import from its own module")
            elif other != room and FLOOR[other] >= FLOOR[room]:
                complaints.append(f"{where}:{line}: {room} must not import {other}")
            elif (
                other == room
                and {mine, theirs} <= INNER_FLOOR.keys()
                and not (mine == theirs or INNER_FLOOR[theirs] < INNER_FLOOR[mine])
            ):
                complaints.append(f"{where}:{line}: {mine} must not import {theirs}")
    return complaints


def test_imports_run_downwards():
    assert upward_imports(ROOT) == []


# Libraries whose arrays users pass as X, and words that ask what a matrix is or where it lives.
LIBRARIES = {"dask", "distributed", "cupy", "torch", "array_api_strict"}
WHERE = re.compile(
    r"\b(?:is_(?:partitioned|elsewhere|large_map|sparse_tensor)|stays_elsewhere|BlockDesign|Pieces"
    r"|DeviceDesign)\b"
    r"|isinstance\([^()]*\b(?!Grouped)\w*(?:Design|Pieces|memmap)\b"
    r"|hasattr\([^()]*[\"'](?:local|to_dask_array|compute|toarray|get|detach)[\"']"
)


def location_leaks(root):
    """One sentence for each place outside of design/ that knows where ``X`` lives."""
    complaints, modules = [], {path.stem for path in (root / "design").iterdir()}
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        where = path.relative_to(root.parent).as_posix()
        if name.startswith("design/") or name == "arrays.py":
            continue
        text = path.read_text(encoding="utf-8")
        for line, (room, *inner) in rooms_imported(path, root):
            if room == "design" and inner[0] in modules:
                complaints.append(f"{where}:{line}: import from clustruct.design itself")
        for line, library in libraries_imported(text):
            # The command line makes Dask arrays of files, as users do.
            if library in LIBRARIES and not (name.startswith("cli/") and library == "dask"):
                complaints.append(f"{where}:{line}: {library} is the business of design/")
        for number, line in enumerate(text.splitlines(), start=1):
            if match := WHERE.search(line):
                complaints.append(f"{where}:{number}: {match[0]!r} asks where X lives")
    return complaints


def libraries_imported(text):
    """Yield (line, name) for all that a source text imports."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.partition(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.lineno, node.module.partition(".")[0]


def test_where_x_lives_is_the_business_of_design():
    assert location_leaks(ROOT) == []


@pytest.fixture
def tree(tmp_path):
    """A small package that keeps to the rules, and a function that writes its modules."""
    root = tmp_path / "clustruct"

    def write(name, text):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")

    write("__init__.py", "from clustruct.cli import main\n")
    write("kernels/__init__.py", "")
    write("kernels/chain.py", "from . import sorting\nfrom clustruct.kernels.sorting import f\n")
    write("kernels/chain.pxd", "from clustruct.kernels.sorting cimport f\n")
    write("grouping/projections.py", "import numpy\nfrom clustruct.kernels import chain\n")
    write("cli.py", "from clustruct import __version__\nimport clustruct.grouping.projections\n")
    return root, write


def test_checker_accepts_downward_imports(tree):
    assert upward_imports(tree[0]) == []


@pytest.mark.parametrize(
    ("module", "text", "complaint"),
    [
        ("kernels/a.py", "from clustruct import solvers", "kernels must not import solvers"),
        ("kernels/a.py", "from ..results import Projection", "kernels must not import results"),
        ("kernels/a.py", "def f():\n    from .. import cli", "kernels must not import cli"),
        ("kernels/a.pxd", "from clustruct.solvers cimport f", "kernels must not import solvers"),
        ("losses.py", "from .design import Design", "losses must not import design"),
        ("solvers/a.py", "from clustruct import kmeans_1d", "kmeans_1d is no room"),
        ("solvers/a.py", "import clustruct", "clustruct is no room"),
        ("attic.py", "", "attic has no floor yet"),
    ],
)
def test_checker_catches(tree, module, text, complaint):
    root, write = tree
    write(module, text)
    (found,) = upward_imports(root)
    assert found.startswith(f"clustruct/{module}:")
    assert complaint in found


@pytest.mark.parametrize(
    ("module", "text", "complaint"),
    [
        ("solvers/a.py", "import dask.array as da", "dask is the business of design/"),
        ("estimators/a.py", "def f():\n    from torch import Tensor", "torch is the business"),
        (
            "estimators/a.py",
            "from clustruct.design.sources import load",
            "import from clustruct.de",
        ),
        (
            "cli/a.py",
            "from clustruct.design.partitioned.blocks import f",
            "import from clustruct.de",
        ),
        ("estimators/a.py", "x = is_partitioned(X)", "'is_partitioned' asks where X lives"),
        ("estimators/a.py", "x = stays_elsewhere(X)", "'stays_elsewhere' asks where X lives"),
        ("objectives/a.py", "x = isinstance(X, DenseDesign)", "asks where X lives"),
        ("reporting/a.py", 'x = hasattr(X, "compute")', "asks where X lives"),
        ("inspection.py", "x = isinstance(X, np.memmap)", "asks where X lives"),
    ],
)
def test_checker_catches_where_x_lives(tree, module, text, complaint):
    root, write = tree
    write("design/__init__.py", "")
    write("design/sources.py", "import dask\n\n\ndef is_partitioned(X): ...\n")
    write("design/partitioned/blocks.py", "")
    write("arrays.py", "import torch")
    assert location_leaks(root) == []
    write(module, text)
    (found,) = location_leaks(root)
    assert found.startswith(f"clustruct/{module}:")
    assert complaint in found
