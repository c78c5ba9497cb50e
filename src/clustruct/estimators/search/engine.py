"""The search: score every candidate, choose one by a rule.

Features, samples and tasks differ in how the fits of a fold are made and scored; each has a `Use`
for that. Scores do not depend on which process does the work: every fit has the same seed, and
linear algebra runs in one thread, so that they are the same bits whatever ``n_jobs`` is.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from joblib import effective_n_jobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.parallel import Parallel, delayed

from clustruct._threads import one_thread
from clustruct._typing import Floats
from clustruct.estimators.search.progress import counter
from clustruct.estimators.search.rules import Rule, check_scores

Table = TypeVar("Table")
T = TypeVar("T")


class Scored(NamedTuple):
    """What a job has found: scores, their place among all, and how many fits did not converge."""

    place: Any
    scores: Any
    unconverged: int


@dataclass(frozen=True, eq=False)
class Use(Generic[Table]):
    """What is special to a search of features, samples or tasks.

    A job is a `thing`, "fold" or "fit", and may be of several fits. `shape` is that of all scores,
    with the folds last; `scoring` is their name. `table` makes, of all scores and a rule, a table
    with the candidate that is chosen.
    """

    thing: str
    n_things: int
    n_fits: int
    shape: tuple[int, ...]
    scoring: str
    jobs: Iterable[Scored]
    table: Callable[[Floats, Rule], Table]


def run_search(use: Use[Table], rule: Rule, max_iter: int, verbose: int | bool) -> Table:
    """Score all candidates and return the table with the one that is chosen.

    A warning tells of fits that were stopped by `max_iter`; with `verbose`, a line on standard
    error tells of each job that is done.
    """
    scores, unconverged = np.empty(use.shape), 0
    tell = counter(verbose, use.thing, use.n_things)
    for place, found, count in use.jobs:
        scores[place] = found
        unconverged += count
        tell()
    warn_of_unconverged(unconverged, use.n_fits, max_iter)
    check_scores(scores, use.scoring)
    return use.table(scores, rule)


def run_jobs(
    jobs: Sequence[Callable[[], T]],
    n_jobs: int | None,
    together: Callable[[Sequence[Callable[[], T]]], Iterable[T]] | None = None,
) -> Iterator[T]:
    """Run jobs in processes, or together where they share passes over ``X``; in any order."""
    alone = [partial(_in_one_thread, job) for job in jobs]
    with one_thread():
        if together is not None:
            yield from together(alone)
        elif effective_n_jobs(n_jobs) == 1:
            yield from (job() for job in jobs)
        else:
            parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
            yield from parallel(delayed(job)() for job in alone)


def _in_one_thread(job: Callable[[], T]) -> T:
    """Run a job without threads of linear algebra."""
    with one_thread():
        return job()


def warn_of_unconverged(count: int, total: int, max_iter: int) -> None:
    """One warning for all fits that were stopped by their budget."""
    if count:
        warnings.warn(
            f"{count} of {total} fits on the grid were stopped by max_iter={max_iter}. "
            "Raise max_iter, raise tol, or scale the columns of X.",
            ConvergenceWarning,
            stacklevel=3,
        )


def check_counts(n_clusters: Any, things: str) -> list[int]:
    """Numbers of groups or experts to try, from one number or several."""
    counts = list(np.atleast_1d(n_clusters))
    if not counts or not all(isinstance(q, Integral) and int(q) >= 1 for q in counts):
        raise ValueError(
            f"n_clusters={n_clusters!r} must hold whole numbers of {things}, 1 or more."
        )
    return [int(count) for count in counts]


class SearchFace:
    """The attributes of a finished search that are derived from its table of scores."""

    def _set_search(self, found: Any) -> None:
        """Keep the table of scores, and what was chosen."""
        self.cv_results_ = found
        self.best_params_ = found.points()[found.flat_index]
        self.best_score_ = float(found.mean_scores[found.best_index])

    @property
    def best_index_(self) -> int:
        """Index of the point chosen into the columns of `cv_results_`."""
        return int(self.cv_results_.flat_index)
