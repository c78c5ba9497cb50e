"""Model files with some bytes changed, and model files forged with valid checksums.

A file is refused with an error that names it, or the model can be used: its methods answer, or
raise a ValueError.
"""

import hashlib
import io
import json
import os
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import clustruct as cs
from fuzz.cases import Fault, Random, Recipe, Target
from fuzz.damage import Edit, damaged, draw_damage
from fuzz.messages import is_useless
from fuzz.scratch import folder
from fuzz.shrinking import without_parts
from tests.persistence.models import every_model

Keys = list[Any]  # the way to an entry of a tree

# ---- Models to begin with


@cache
def bases() -> list[tuple[dict[str, bytes], Any]]:
    """Members of model files of every kind, with samples to predict."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [(_members(model), X) for model, X in every_model()]


@cache
def _entries(base: int) -> list[Keys]:
    """The ways to all entries of a model."""
    return list(_ways(_tree(base), []))


@cache
def _tree(base: int) -> Any:
    return json.loads(bases()[base][0]["model.json"])


def _members(model: Any) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        cs.save(model, path)
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}


def _ways(node: Any, before: Keys) -> Iterator[Keys]:
    items: Any = ()
    if isinstance(node, dict):
        items = node.items()
    elif isinstance(node, list):
        items = enumerate(node)
    for key, value in items:
        yield [*before, key]
        yield from _ways(value, [*before, key])


def _prepare() -> None:
    bases()


# ---- Recipes

_NUMBERS = ["float", "int", "int32", "bool", "text", "complex"]
_CONTENTS = ["zeros", "ones", "negative", "huge", "nan", "empty", "long", "flat", "wide", "rolled"]


def _draw(rng: Random) -> Recipe:
    base = int(rng.integers(len(bases())))
    forged = rng.random() < 0.7
    number = 1 + int(rng.integers(3))
    edits = [_draw_forgery(rng, base) if forged else draw_damage(rng) for _ in range(number)]
    return {"base": base, "forged": forged, "edits": edits}


def _draw_forgery(rng: Random, base: int) -> Edit:
    """A change of an entry, or of an array."""
    arrays = [name for name in bases()[base][0] if name.startswith("arrays/")]
    ways = _entries(base)
    if arrays and rng.random() < 0.3:
        change = [str(rng.choice(_CONTENTS)), str(rng.choice(_NUMBERS))]
        return ["array", str(rng.choice(arrays)), *change]
    way = ways[int(rng.integers(len(ways)))]
    if rng.random() < 0.5:
        way = _draw_way(rng, _tree(base))
    chance = rng.random()
    if chance < 0.2:
        return ["delete", way]
    if chance < 0.5:
        return ["copy", way, ways[int(rng.integers(len(ways)))]]
    values: list[Any] = [
        None, True, False, 0, -1, 1, 7, 2**31, 2**63, -(10**30), 1e308, -0.5, "", "x", "model",
        [], {}, [[]], {"float": "7ff8000000000000"}, {"float": "7ff0000000000000"},
        {"tuple": []}, {"dict": []}, {"set": [1]}, {"range": [0, 10**12, 1]},
        {"slice": [None, None, 0]}, {"type": "str"}, {"dtype": "<f8"},
        {"array": "arrays/0.npy"}, {"array": "arrays/1.npy"}, {"str_": "a"},
        {"scalar": ["<i8", "ffffffffffffffff"]}, {"objects": [[0], []]},
    ]  # fmt: skip
    return ["set", way, values[int(rng.integers(len(values)))]]


def _draw_way(rng: Random, node: Any) -> Keys:
    """The way to an entry, by a random turn at each level, so that long lists get no more."""
    way: Keys = []
    while children := list(node) if isinstance(node, dict) else range(_length(node)):
        way.append(children[int(rng.integers(len(children)))])
        node = node[way[-1]]
        if rng.random() < 0.1:
            break
    return way


def _length(node: Any) -> int:
    return len(node) if isinstance(node, list) else 0


# ---- The file of a recipe


def forged_file(base: int, edits: list[Edit]) -> bytes:
    """A model file with changed entries whose checksums are right."""
    members = dict(bases()[base][0])
    tree = json.loads(members["model.json"])
    for kind, *how in edits:
        if kind == "array":
            members[how[0]] = _changed_array(members[how[0]], how[1], how[2])
        else:
            _change_entry(tree, kind, *how)
    members["model.json"] = json.dumps(tree).encode()
    manifest = json.loads(members.pop("manifest.json"))
    manifest["members"] = {
        name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in members.items()
    }
    return _zipped({"manifest.json": json.dumps(manifest).encode(), **members})


def _zipped(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return stream.getvalue()


def _change_entry(tree: Any, kind: str, way: Keys, other: Any = None) -> None:
    """Change an entry, if the way to it is still there."""
    node, key = _at(tree, way[:-1]), way[-1]
    if not _holds(node, key):
        return
    if kind == "delete":
        del node[key]
    elif kind == "copy":
        value = _at(tree, other)
        node[key] = json.loads(json.dumps(value))
    else:
        node[key] = other


def _at(tree: Any, way: Keys) -> Any:
    for key in way:
        if not _holds(tree, key):
            return None
        tree = tree[key]
    return tree


def _holds(node: Any, key: Any) -> bool:
    if isinstance(node, list):
        return isinstance(key, int) and key < len(node)
    return isinstance(node, dict) and key in node


def _changed_array(data: bytes, content: str, kind: str) -> bytes:
    array = np.load(io.BytesIO(data), allow_pickle=False)
    if content in ("zeros", "ones", "negative", "huge", "nan"):
        value = {"zeros": 0.0, "ones": 1.0, "negative": -7.0, "huge": 1e300, "nan": np.nan}[content]
        changed = np.full(array.shape, value)
    else:
        changed = {
            "empty": lambda: array[:0],
            "long": lambda: np.concatenate([array.ravel()] * 3),
            "flat": array.ravel,
            "wide": lambda: array[..., None],
            "rolled": lambda: np.roll(array, 1),
        }[content]()
    kinds = {"float": "<f8", "int": "<i8", "int32": "<i4", "bool": "|b1", "text": "<U8"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            changed = changed.astype(kinds.get(kind, "<c16"))
        except ValueError:
            changed = np.zeros(changed.shape, dtype=kinds.get(kind, "<c16"))
    stream = io.BytesIO()
    np.save(stream, np.ascontiguousarray(changed))
    return stream.getvalue()


# ---- The check


def _check(recipe: Recipe) -> str:
    base, edits = recipe["base"], recipe["edits"]
    members, X = bases()[base]
    content = forged_file(base, edits) if recipe["forged"] else damaged(_zipped(members), edits)
    path = Path(folder()) / f"{os.getpid()}.clustruct"
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = cs.load(path, max_size=1 << 28)
        except ValueError as error:
            if path.name not in str(error) or is_useless(str(error), ()):
                raise Fault("load: the message names no file or no remedy", str(error)) from error
            return "refused"
        except OSError as error:
            raise Fault(f"load: {type(error).__name__}", str(error)) from error
        return _use(model, X)


def _use(model: Any, X: Any) -> str:
    """Call what a user would call; ValueError is an answer."""
    uses = {
        "repr": lambda: repr(model),
        "get_params": model.get_params,
        "predict": lambda: model.predict(X),
        "predict_proba": lambda: model.predict_proba(X),
        "transform": lambda: model.transform(X),
        "clusters": lambda: str(model.clusters()),
        "score": lambda: model.score(X, np.zeros(len(model.predict(X)))),
        "save": lambda: cs.save(model, os.path.join(folder(), f"{os.getpid()}.again")),
    }
    outcome = "used"
    for name, use in uses.items():
        if name not in ("repr", "save") and not _has(model, name):
            continue
        try:
            use()
        except ValueError:
            outcome = "refused on use"
        except MemoryError:
            raise
        except Exception as error:
            raise Fault(
                f"{name} of a forged model: {type(error).__name__}", f"{type(model)} {error}"
            ) from error
    return outcome


def _has(model: Any, name: str) -> bool:
    try:
        return callable(getattr(model, name, None))
    except ValueError:
        return False


def _smaller(recipe: Recipe) -> Iterator[Recipe]:
    yield from ({**recipe, "edits": edits} for edits in without_parts(recipe["edits"], least=1))


TARGET = Target(
    "models", _draw, _check, _smaller, share=0.16, short=120, prepare=_prepare, seconds=20.0
)
