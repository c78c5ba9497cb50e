"""Progress of a search: how many of its jobs are done."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Tell = Callable[[int, int], object]

_listener: ContextVar[Tell | None] = ContextVar("listener", default=None)


@contextmanager
def reporting_to(tell: Tell) -> Iterator[None]:
    """Report the progress of every search that runs inside of the ``with`` block.

    `tell` is called with the number of jobs that are done and with their total number, when a
    search begins and whenever a fold or a fit is done.

    Examples
    --------
    >>> import clustruct as cs
    >>> from clustruct.estimators.search.progress import reporting_to
    >>> problem = cs.datasets.make_clustered_features(60, 8, 2, random_state=0)
    >>> model = cs.FeatureClusterRegressorCV((1, 2), alphas=0.1, cv=3, random_state=0)
    >>> seen = []
    >>> with reporting_to(lambda done, total: seen.append((done, total))):
    ...     model = model.fit(problem.X, problem.y)
    >>> seen
    [(0, 3), (1, 3), (2, 3), (3, 3)]
    """
    token = _listener.set(tell)
    try:
        yield
    finally:
        _listener.reset(token)


def counter(verbose: int | bool, thing: str, total: int) -> Callable[[], None]:
    """Return a function to call whenever one of `total` jobs is done.

    It reports to the listener of `reporting_to`; with `verbose`, it also writes a line to standard
    error, with the time spent and the time left. `thing` names a job, such as "fold".
    """
    listener, begin, done = _listener.get(), time.perf_counter(), 0
    if listener is not None:
        listener(done, total)

    def tell() -> None:
        nonlocal done
        done += 1
        if listener is not None:
            listener(done, total)
        if verbose:
            seconds = time.perf_counter() - begin
            left = seconds / done * (total - done)
            line = f"{thing} {done} of {total}: {seconds:.1f} s, {left:.1f} s left"
            print(line, file=sys.stderr, flush=True)

    return tell
