"""Progress of a search: how many of its jobs are done."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from clustruct._progress import Progress, telling

Tell = Callable[[int, int], object]


@contextmanager
def reporting_to(tell: Tell) -> Iterator[None]:
    """Report the progress of every search that runs inside of the ``with`` block.

    `tell` is called with the number of jobs that are done and with their total number, when a
    search, a path or `stability` begins and whenever a fold, a fit or a refit is done.

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
    last: tuple[int, int] | None = None

    def hear(progress: Progress) -> None:
        nonlocal last
        now = progress.done, progress.total
        if progress.over:
            last = None
        elif not progress.at_most and now != last:  # parts of jobs and starts are not told
            last = now
            tell(*now)

    with telling(hear):
        yield
