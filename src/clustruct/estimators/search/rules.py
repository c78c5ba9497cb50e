"""Rules: from the scores of candidates to the one that is chosen."""

from dataclasses import dataclass

import numpy as np

from clustruct._finite import require_finite
from clustruct._typing import Floats
from clustruct.results.paired import fewest, standard_errors

RULES = frozenset({"best", "fewest", "one_se"})


@dataclass(frozen=True)
class Rule:
    """How a candidate is chosen by its scores on the folds.

    "best" takes the best mean score, "fewest" the fewest groups that are not clearly worse, and
    "one_se" the simplest candidate within one standard error of the best. Clearly worse is behind
    by more than `n_errors` or `share`, see `clustruct.results.paired.fewest`, with `ratio` held-out
    samples of a fold for each that is fitted; or by more than `slack`, for scores without folds.
    """

    name: str
    n_errors: float = 1.0
    share: float | None = None
    ratio: float | None = None
    slack: float | None = None

    def choose(self, scores: Floats, sizes: Floats) -> int:
        """Index of the chosen one of several candidates, which come with the simplest first.

        Scores, of shape (n_candidates, n_folds), are larger for the better, and NaN for candidates
        that were not reached; sizes are numbers of groups. Of equal candidates the first is chosen.
        """
        reached = np.flatnonzero(~np.isnan(scores).any(axis=1))
        if 0 < reached.size < len(scores):
            return int(reached[self.choose(scores[reached], sizes[reached])])
        if self.name == "fewest" and self.slack is None:
            return fewest(scores, sizes, self.n_errors, self.ratio, self.share)
        means = scores.mean(axis=1)
        best = int(means.argmax())
        require_finite(float(means[best]), "the best score", "search")
        error = float(standard_errors(scores[best]))
        slack = {"best": 0.0, "one_se": error, "fewest": self.slack or 0.0}[self.name]
        return int(np.flatnonzero(means >= means[best] - slack)[0])


def check_scores(scores: Floats, scoring: str) -> None:
    """Refuse scores, the last axis of which stands for the folds, that are not numbers."""
    missing = np.isnan(scores).any(axis=-1)
    if missing.any():
        raise ValueError(
            f"scoring={scoring!r} gave NaN on {int(missing.sum())} of {missing.size} points. "
            "Give another scoring, or folds on which it is defined."
        )
