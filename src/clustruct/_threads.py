"""Linear algebra in one thread, for sums whose order does not depend on the machine."""

from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    """The libraries of NumPy and SciPy; to find them takes milliseconds, so that is done once."""
    import scipy.linalg  # noqa: F401  it has a library of its own

    return ThreadpoolController()


def one_thread() -> Any:
    """A context in which linear algebra runs in one thread."""
    return _controller().limit(limits=1)
