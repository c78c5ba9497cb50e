"""Docstrings completed from tables and annotations, so that each thing is described once.

A table is text in numpydoc's form. What a docstring describes itself is kept.
"""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from clustruct._typing import Floats, Labels

T = TypeVar("T")
Class = TypeVar("Class", bound=type)
# Type and text of each name.
Entries = Mapping[str, tuple[str, str]]

# The order of numpydoc's sections.
SECTIONS = (
    "Parameters",
    "Returns",
    "Raises",
    "Attributes",
    "See Also",
    "Notes",
    "References",
    "Examples",
)
_ARRAYS = {Floats: "ndarray of float", Labels: "ndarray of int"}


def documented(
    parameters: Sequence[str], attributes: Sequence[str] = (), arguments: Sequence[str] = ()
) -> Callable[[T], T]:
    """Complete the docstring of a function, or of a class and its public methods.

    Parameters
    ----------
    parameters : sequence of str
        Tables of the parameters, whose defaults are those of the signature. Of several tables that
        have a name, the last one counts.
    attributes : sequence of str
        Tables of the attributes of a class, which follow those in its docstring.
    arguments : sequence of str
        Tables of the arguments of methods.

    Returns
    -------
    callable
        The decorator.
    """

    def decorate(thing: T) -> T:
        _describe_signature(thing, parameters)
        if not isinstance(thing, type):
            return thing
        _complete(thing, "Attributes", _joined(attributes))
        for name, method in vars(thing).items():
            if inspect.isfunction(method) and not name.startswith("_"):
                _describe_signature(method, arguments)
                if name == "fit":
                    _complete(method, "Returns", {"self": ("object", "Itself.")})
        return thing

    return decorate


def documented_fields(kind: Class) -> Class:
    """Add numpydoc's section Attributes to a dataclass, from fields ``Annotated[type, text]``."""
    hints = get_type_hints(kind, include_extras=True).items()
    fields = {name: get_args(hint) for name, hint in hints if get_origin(hint) is Annotated}
    _complete(kind, "Attributes", {n: (_type_name(t), text) for n, (t, text) in fields.items()})
    return kind


def _type_name(hint: Any) -> str:
    """A type as numpydoc writes it, such as "float or ndarray of float"."""
    if hint in _ARRAYS:
        return _ARRAYS[hint]
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(map(_type_name, get_args(hint)))
    if get_origin(hint) is tuple:
        inner = " and ".join(dict.fromkeys(_type_name(a) for a in get_args(hint) if a is not ...))
        return f"tuple of {inner}"
    if hint is Any:
        return "object"
    return "None" if hint is type(None) else str(getattr(hint, "__name__", hint))


def _read(table: str) -> dict[str, tuple[str, str]]:
    """The entries of a table."""
    parts = re.split(r"^(\w[\w, ]*?)(?: : (.*))?$", inspect.cleandoc(table), flags=re.MULTILINE)
    return {
        name: (kind or "", inspect.cleandoc(text))
        for name, kind, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True)
    }


def _joined(tables: Sequence[str]) -> dict[str, tuple[str, str]]:
    """The entries of several tables; of equal names the last one counts."""
    return {name: entry for table in tables for name, entry in _read(table).items()}


def _describe_signature(function: Any, tables: Sequence[str]) -> None:
    """Add the parameters that tables know to a docstring, in the order of the signature."""
    known, found = _joined(tables), {}
    parameters = inspect.signature(function).parameters
    for name in known.keys() & parameters.keys():
        kind, text = known[name]
        default = parameters[name].default
        if default is not inspect.Parameter.empty and "default=" not in kind:
            shown = f'"{default}"' if isinstance(default, str) else repr(default)
            kind = f"{kind}, default={shown}"
        found[name] = (kind, text)
    _complete(function, "Parameters", found, tuple(parameters))


def _complete(
    described: Any, section: str, entries: Entries, order: Sequence[str] | None = None
) -> None:
    """Add entries to a section of a docstring: after its own, or in the order of the names."""
    if not entries:
        return
    doc = inspect.cleandoc(described.__doc__ or "")
    heads = {
        match[1]: match.start()
        for match in re.finditer(r"^([A-Z][\w ]+)\n-{3,}$", doc, flags=re.MULTILINE)
    }
    later = (heads[name] for name in SECTIONS[SECTIONS.index(section) + 1 :] if name in heads)
    end = min(later, default=len(doc))
    begin = heads.get(section, end)
    own = _read("\n".join(doc[begin:end].splitlines()[2:])) if section in heads else {}
    said = {name for names in own for name in names.split(", ")}
    merged = {**own, **{name: entry for name, entry in entries.items() if name not in said}}
    lines = [section, "-" * len(section)]
    names = list(merged)
    if order is not None:  # "low, high" stands where low does
        names.sort(key=lambda name: order.index(name.partition(",")[0]))
    for name in names:
        kind, text = merged[name]
        lines.append(f"{name} : {kind}" if kind else name)
        lines.extend(f"    {line}".rstrip() for line in text.splitlines())
    parts = (doc[:begin].rstrip(), "\n".join(lines), doc[end:].rstrip())
    described.__doc__ = "\n\n".join(part for part in parts if part) + "\n"
