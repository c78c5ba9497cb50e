"""Making a case that fails smaller while it still fails in the same way."""

import base64
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from fuzz.cases import Failure, Recipe, Target
from fuzz.driver import in_child

# A failure is made smaller for so many seconds at most.
PATIENCE = 20.0


def minimised(target: Target, failure: Failure, patience: float = PATIENCE) -> Failure:
    """The smallest case found by taking the first smaller one that fails alike, again and again."""
    deadline = time.monotonic() + patience
    recipe, found = failure.recipe, True
    while found:
        found = False
        for candidate in target.smaller(recipe):
            if time.monotonic() > deadline:
                return replace(failure, recipe=recipe)
            if in_child(target, candidate) == failure.what:
                recipe, found = candidate, True
                break
    return replace(failure, recipe=recipe)


def without_parts(items: Sequence[Any], least: int = 0) -> Iterator[list[Any]]:
    """A list without one half, one quarter, ..., one item; never shorter than `least`."""
    size = len(items)
    while size > 1:
        size = (size + 1) // 2
        for first in range(0, len(items), size):
            rest = [*items[:first], *items[first + size :]]
            if least <= len(rest) < len(items):
                yield rest
    if len(items) == 1 and least == 0:
        yield []


def with_entry(recipe: Recipe, name: str, values: Iterator[Any]) -> Iterator[Recipe]:
    """Recipes with other values of an entry."""
    for value in values:
        if value != recipe.get(name):
            yield {**recipe, name: value}


def packed(content: bytes) -> str:
    """Bytes as text, for a recipe."""
    return base64.b64encode(content).decode("ascii")


def unpacked(text: str) -> bytes:
    """Bytes of a recipe."""
    return base64.b64decode(text)


def shorter_contents(text: str) -> Iterator[str]:
    """Packed bytes without some of them."""
    for part in without_parts(list(unpacked(text))):
        yield packed(bytes(part))
