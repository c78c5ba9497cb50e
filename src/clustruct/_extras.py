"""Packages that only some functions need, and the remedy where one is not installed."""

from importlib import import_module
from typing import Any


def load_extra(module: str, purpose: str, extra: str) -> Any:
    """Import a module of a package that comes with an extra; ImportError with the remedy."""
    try:
        return import_module(module)
    except ImportError as error:
        raise missing_extra(module.partition(".")[0], purpose, extra) from error


def missing_extra(package: str, purpose: str, extra: str) -> ImportError:
    """What to raise where a package is not installed."""
    return ImportError(
        f"{purpose} needs {package}, which is not installed. `pip install 'clustruct[{extra}]'` "
        "installs it."
    )
