"""Rows in one piece, wherever that is."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from clustruct.design.protocols import Rows, T

__all__ = ["WholeRows", "one_by_one"]


def one_by_one(works: Sequence[Callable[[], T]]) -> Iterator[T]:
    """What works return, each done when its result is asked for."""
    return (work() for work in works)


class WholeRows:
    """Rows that are one array each: all of them are treated at once, where they are."""

    streamed = False
    _X: Any

    @property
    def single(self) -> bool:
        """Whether products are of single precision."""
        return str(self._X.dtype).endswith("float32")

    def keep(self, rows: Rows) -> Rows:
        """They are there."""
        return rows

    def map(self, function: Callable[..., Any], *rows: Rows) -> Rows:
        """The function itself."""
        return function(*rows)

    def sweep(
        self,
        function: Callable[..., T],
        *rows: Rows,
        combine: Callable[[T, T], T] | None = None,
    ) -> T:
        """The function of this design."""
        return function(self, *rows)

    def side_by_side(self, works: Sequence[Callable[[], T]]) -> Iterator[T]:
        """One after the other."""
        return one_by_one(works)

    def hand_out(self, codes: Rows) -> Any:
        """As they are."""
        return codes
