"""Public names, signatures and defaults change only on purpose.

``tests/public_api.txt`` holds them all. After a change that is meant, write it anew by
``python -m tests.test_public_api``, and see in the difference what users will notice: names may be
added; what is taken away is deprecated first (CONTRIBUTING.md).
"""

import inspect
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

import clustruct
from tests.test_docstrings import NAMES

KEPT = Path(__file__).parent / "public_api.txt"


def public_lines() -> Iterator[str]:
    """A line for each public name, in the order of the alphabet."""
    for name in sorted(NAMES):
        yield from _lines(name, attrgetter(name)(clustruct))


def _lines(name: str, value: Any) -> Iterator[str]:
    """The signature of a function; of a class also those of its public methods."""
    if not inspect.isclass(value):
        yield f"{name}{_signature(value)}" if callable(value) else name
        return
    yield f"{name}{_signature(value)}"
    for inner in sorted(dir(value)):
        if inner.startswith("_") or not _ours(value, inner):
            continue
        member = inspect.getattr_static(value, inner)
        member = getattr(member, "__func__", member)  # of a static or class method
        if inspect.isfunction(member):
            yield f"{name}.{inner}{_signature(member)}"
        elif hasattr(member, "__get__"):  # a property, or a method that depends on the parameters
            yield f"{name}.{inner}"


def _ours(owner: type, name: str) -> bool:
    """Whether the attribute is this package's, and not that of a library that it builds on."""
    home = next((cls for cls in owner.__mro__ if name in vars(cls)), None)
    routed = name.startswith("set_") and name.endswith("_request")  # of scikit-learn
    return home is not None and home.__module__.startswith("clustruct") and not routed


def _signature(value: Any) -> str:
    """Names, kinds and defaults of the parameters; types are the type checker's affair."""
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in inspect.signature(value).parameters.values()
    ]
    return str(inspect.Signature(parameters))


def test_the_public_names_and_signatures_are_those_on_file():
    kept, found = KEPT.read_text().splitlines(), list(public_lines())
    gone = [line for line in kept if line not in found]
    new = [line for line in found if line not in kept]
    assert (gone, new) == ([], []), "see the docstring of this file"


if __name__ == "__main__":
    KEPT.write_text("".join(f"{line}\n" for line in public_lines()))
