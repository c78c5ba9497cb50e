"""Docstrings with generated parts: fields of dataclasses, parameters of several functions."""

import re
from collections.abc import Callable
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from clustruct._typing import Floats, Labels

__all__ = ["documented_fields", "with_parameters"]

Function = TypeVar("Function", bound=Callable[..., Any])
Class = TypeVar("Class", bound=type)

_ARRAYS = {Floats: "ndarray of float", Labels: "ndarray of int"}


def documented_fields(kind: Class) -> Class:
    """Add numpydoc's section Attributes to a dataclass, from fields ``Annotated[type, text]``."""
    lines = ["Attributes", "----------"]
    for name, hint in get_type_hints(kind, include_extras=True).items():
        if get_origin(hint) is Annotated:
            type_, text = get_args(hint)
            lines += [f"{name} : {_type_name(type_)}", f"    {text}"]
    section = "".join(f"    {line}\n" for line in lines)
    # The section goes before the first of those that follow it in numpydoc's order.
    pattern = r"(?=    (?:See Also|Notes|Examples)\n    ---)"
    kind.__doc__ = re.sub(pattern, f"{section}\n", kind.__doc__ or "", count=1)
    return kind


def with_parameters(**texts: str) -> Callable[[Function], Function]:
    """Replace each line ``{name}`` of a docstring by the text that several functions share."""

    def fill(function: Function) -> Function:
        for name, text in texts.items():
            indented = text.strip("\n").replace("\n", "\n    ")
            function.__doc__ = (function.__doc__ or "").replace(f"{{{name}}}", indented)
        return function

    return fill


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
