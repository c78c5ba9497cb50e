"""Passes over pieces of rows, by Dask.

A pass hands a function to every piece, where it lies and in any order, and joins the results in a
tree of fixed shape: the same pieces give the same bits, whatever workers there are.
"""

import operator
from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property, reduce
from typing import Any, cast

import dask
import numpy as np
from cloudpickle import dumps
from dask.base import get_scheduler
from dask.delayed import delayed
from threadpoolctl import ThreadpoolController

from clustruct.design.local import aligned

# How many results are joined at a time.
FAN = 8
# Bytes of a function that goes with each of its calls.
LIGHT = 1 << 16
# The part of the free memory that data may take.
PART_OF_MEMORY = 0.5

Piece = Any  # an array, or a Delayed, which has no type


class Pieces:
    """Rows in pieces, one array for each piece of the design.

    `make_parts` returns them where they lie, at hand or delayed, and `make_local` on the host, for
    sums that are not worth sending out. The shape is that of all pieces, where it is known.
    """

    def __init__(
        self,
        make_parts: Callable[[], Sequence[Piece]],
        make_local: Callable[[], Sequence[Any]],
        shape: tuple[int, ...] | None = None,
    ) -> None:
        self._make_parts = make_parts
        self._make_local = make_local
        self.shape = shape

    @classmethod
    def of(cls, parts: Sequence[Piece], shape: tuple[int, ...] | None = None) -> "Pieces":
        """Pieces that have been kept."""
        return cls(lambda: parts, lambda: compute(parts), shape)

    @cached_property
    def parts(self) -> Sequence[Piece]:
        """The pieces where they lie."""
        return self._make_parts()

    @cached_property
    def local(self) -> Sequence[Any]:
        """The pieces on the host."""
        return self.parts if self._make_local is self._make_parts else self._make_local()


class Mapped(Pieces):
    """Rows that a function makes of the pieces of others, where they are needed."""

    def __init__(self, function: Callable[..., Any], rows: Sequence[Pieces]) -> None:
        self.function = function
        self.rows = tuple(rows)

        def at_hand() -> list[Any]:
            return [function(*mine) for mine in piece_by_piece(self.rows)]

        def delayed_parts() -> Sequence[Piece]:
            return delay(function, [mine.parts for mine in self.rows])

        super().__init__(at_hand if cluster() is None else delayed_parts, at_hand)


def piece_by_piece(rows: Sequence[Pieces]) -> Iterator[tuple[Any, ...]]:
    """The pieces of several rows on the host, side by side."""
    return zip(*(map(aligned, mine.local) for mine in rows), strict=True)


def unfolded(rows: Sequence[Pieces]) -> tuple[list[Pieces], Callable[..., list[Any]]]:
    """What rows are made of, and a function that makes pieces of them of pieces of that.

    Whoever has a block makes what is needed beside it: nothing waits for another task, or lies
    elsewhere. In this process it is made once instead.
    """
    if cluster() is None:
        return list(rows), lambda *pieces: list(pieces)
    bases: list[Pieces] = []

    def place(mine: Pieces) -> Any:
        if isinstance(mine, Mapped):
            return mine.function, tuple(place(each) for each in mine.rows)
        if mine not in bases:
            bases.append(mine)
        return bases.index(mine)

    places = [place(mine) for mine in rows]

    def made(place: Any, pieces: Sequence[Any]) -> Any:
        if isinstance(place, int):
            return pieces[place]
        function, inputs = place
        return function(*(made(each, pieces) for each in inputs))

    return bases, lambda *pieces: [made(place, pieces) for place in places]


def delay(function: Callable[..., Any], lists: Sequence[Sequence[Piece]]) -> list[Piece]:
    """A call for each entry of the lists, side by side.

    A function that holds much travels to a worker once; any other with its calls, which is sooner.
    """
    itself = delayed(function, pure=False, traverse=False)
    if cluster() is None or len(dumps(function)) <= LIGHT:
        return [itself(*mine) for mine in zip(*lists, strict=True)]
    call = delayed(operator.call, pure=False, traverse=False)
    return [call(itself, *mine) for mine in zip(*lists, strict=True)]


def join(parts: Sequence[Any], combine: Callable[[Any, Any], Any], *, delayed_: bool) -> Any:
    """All results as one, in a tree that depends on their number alone."""
    merge = delayed(_joined, pure=False, traverse=False) if delayed_ else _joined
    while len(parts) > 1:
        parts = [merge(combine, *parts[first : first + FAN]) for first in range(0, len(parts), FAN)]
    return parts[0]


def added(a: Any, b: Any) -> Any:
    """The sum of two arrays, or of two tuples of them."""
    if isinstance(a, tuple):
        return tuple(x + y for x, y in zip(a, b, strict=True))
    return a + b


def compute(parts: Sequence[Piece]) -> tuple[Any, ...]:
    """The values themselves."""
    client = cluster()
    if client is not None:
        held = [_futures_of(part) for part in parts]
        if all(
            len(futures) == 1 and futures[0].key == part.key
            for futures, part in zip(held, parts, strict=True)
        ):
            return tuple(client.gather([future for (future,) in held]))
    with single_threaded():
        return dask.compute(*parts, traverse=False)


def _futures_of(part: Piece) -> list[Any]:
    """What a part of a cluster waits for: itself, where it is kept."""
    import distributed

    futures_of: Callable[[Piece], list[Any]] = distributed.futures_of
    return futures_of(part)


def keep(parts: Sequence[Piece]) -> tuple[Piece, ...]:
    """The same with their values computed, and held by the workers that did it."""
    if cluster() is None:
        return compute(parts)
    return dask.persist(*parts, traverse=False)


def cluster() -> Any:
    """The client of the cluster that does the work, or None where this process does it."""
    client = getattr(get_scheduler(), "__self__", None)
    return client if hasattr(client, "run_on_scheduler") else None


def sent(local: Sequence[Any], beside: Sequence[Piece]) -> list[Piece]:
    """Arrays of this process, each sent to a worker that holds the part it belongs to.

    They are arguments of tasks, which the scheduler keeps: data that is scattered is lost with its
    worker, and the fit with it.
    """
    import distributed

    client, wait = cluster(), cast(Callable[..., Any], distributed.wait)
    held = [_futures_of(part) for part in beside]
    under_way = [future for futures in held for future in futures]
    wait(under_way)  # until it is known who holds them
    holders = client.who_has(under_way)
    places = [
        [worker for future in futures for worker in holders.get(future.key, ())] for futures in held
    ]
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
        return [
            client.submit(
                _itself, array, workers=where, allow_other_workers=bool(where), pure=False
            )
            for array, where in zip(local, places, strict=True)
        ]


def available_bytes() -> float:
    """Memory that data may take, on the cluster or on this machine."""
    client = cluster()
    if client is not None:
        return PART_OF_MEMORY * client.run_on_scheduler(_memory_of_workers)
    import psutil

    return PART_OF_MEMORY * float(psutil.virtual_memory().available)


def _memory_of_workers(dask_scheduler: Any) -> float:
    """What the workers may take; the name of the argument is Dask's."""
    limits = [worker.memory_limit for worker in dask_scheduler.workers.values()]
    return float(sum(limits)) if all(limits) else np.inf


def _itself(array: Any) -> Any:
    return array


def _joined(combine: Callable[[Any, Any], Any], *parts: Any) -> Any:
    return reduce(combine, parts)


def single_threaded() -> Any:
    """Linear algebra in one thread: the pieces are what runs side by side, and bits stay put."""
    return _controller().limit(limits=1)


@cache
def _controller() -> ThreadpoolController:
    """Made once, as it looks through all libraries that are loaded."""
    return ThreadpoolController()
