"""The search: score every candidate, choose one by a rule.

Features, samples and tasks differ in how the fits of a fold are made and scored; each has a `Use`
for that. Scores do not depend on which process does the work: every fit has the same seed, and
linear algebra runs in one thread, so that they are the same bits whatever ``n_jobs`` is.

Ctrl-C ends the search, and the choice is made among what is complete: by the folds on which all
candidates are scored or, if there is none, among the candidates that are scored on all folds.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.parallel import Parallel, delayed

from clustruct._interrupts import asked, deaf_children, keeping, next_part, waiting
from clustruct._progress import counting
from clustruct._threads import one_thread
from clustruct._typing import Floats
from clustruct.estimators.search.rules import Rule, check_scores

Table = TypeVar("Table")
T = TypeVar("T")


class Scored(NamedTuple):
    """What a job has found: scores, their place among all, and how many fits did not converge.

    A place of None is of no scores. `n_done` jobs are done with it.
    """

    place: Any
    scores: Any
    unconverged: int
    n_done: int = 1


@dataclass(frozen=True, eq=False)
class Use(Generic[Table]):
    """What is special to a search of features, samples or tasks.

    A job is one of its `things`, "folds" or "fits", and may be of several fits. `shape` is that of
    all scores, with the folds last; `scoring` is their name. `table` makes, of all scores and a
    rule, a table with the candidate that is chosen; scores of candidates that were not reached are
    NaN. `compared` are those of all scores that are compared, for progress.
    """

    things: str
    n_things: int
    n_fits: int
    shape: tuple[int, ...]
    scoring: str
    jobs: Iterable[Scored]
    table: Callable[[Floats, Rule], Table]
    compared: Any = ...


def run_search(use: Use[Table], rule: Rule, max_iter: int) -> Table:
    """Score all candidates and return the table with the one that is chosen.

    A warning tells of fits that were stopped by `max_iter`, and one of Ctrl-C.
    """
    scores, done = np.full(use.shape, np.nan), np.zeros(use.shape, dtype=bool)
    unconverged = n_done = 0
    jobs = iter(use.jobs)
    with keeping() as watch, counting(use.things, use.n_things, measure="score") as count:
        try:
            while (job := next_part(jobs)) is not None:
                if job.place is not None:
                    scores[job.place], done[job.place] = job.scores, True
                unconverged += job.unconverged
                n_done += job.n_done
                if _has_complete(done):
                    watch.hold()
                count.tick(_best(scores[use.compared], done[use.compared]), done=n_done)
            interrupted = watch.heed()  # all is scored, and the final fit is made in full
        except KeyboardInterrupt:
            interrupted = _has_complete(done) and watch.heed()
            if not interrupted:
                raise
    if interrupted:
        _warn_of_interrupt(use, n_done)
    if _folds(done).any():
        scores, done = scores[..., _folds(done)], done[..., _folds(done)]
    reached = _candidates(done)
    scores[~reached] = np.nan
    warn_of_unconverged(unconverged, use.n_fits, max_iter)
    check_scores(scores[reached], use.scoring)
    return use.table(scores, rule)


def _folds(done: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Folds on which all candidates are scored."""
    return np.asarray(done.all(axis=tuple(range(done.ndim - 1))))


def _candidates(done: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Candidates that are scored on all folds."""
    return np.asarray(done.all(axis=-1))


def _has_complete(done: NDArray[np.bool_]) -> bool:
    """Whether there is anything to choose by."""
    return bool(_folds(done).any() or _candidates(done).any())


def _best(scores: Floats, done: NDArray[np.bool_]) -> float | None:
    """The best mean score of what is complete; None if nothing is."""
    if (folds := _folds(done)).any():
        return float(scores[..., folds].mean(axis=-1).max())
    reached = _candidates(done)
    return float(scores[reached].mean(axis=-1).max()) if reached.any() else None


def _warn_of_interrupt(use: Use[Any], n_done: int) -> None:
    """Say that a search was ended by Ctrl-C, and what the choice is based on."""
    warnings.warn(
        f"Ctrl-C ended the search after {n_done} of {use.n_things} {use.things}. The choice is "
        "made by these, and the model is fitted to all samples now; press Ctrl-C again to end "
        "at once.",
        ConvergenceWarning,
        stacklevel=3,
    )


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
            for job in jobs:
                asked()
                yield job()
        else:
            yield from in_processes(alone, n_jobs, "generator_unordered")


def in_processes(
    jobs: Sequence[Callable[[], T]], n_jobs: int | None, order: str = "generator"
) -> Iterator[T]:
    """Run jobs in other processes, and yield what they return; Ctrl-C ends all of them."""
    with deaf_children():
        found = Parallel(n_jobs=n_jobs, return_as=order)(delayed(job)() for job in jobs)
    try:
        while True:
            with waiting():
                result = next(found)
            yield result
    except StopIteration:
        return
    finally:
        with warnings.catch_warnings():  # joblib warns of jobs that nobody waits for
            warnings.simplefilter("ignore")
            found.close()


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
