"""How well predictions rank rows: the ordered Lorenz curve, its Gini coefficient, and lift.

Rows are ordered by their predicted rate ``r = mu / e``, with the exposure ``e`` (1 without an
offset) and weights ``w``. The curve runs through the shares of exposure and of targets,

    F_k = sum_{i <= k} w_i e_i / sum w e,    L_k = sum_{i <= k} w_i y_i / sum w y.

Rows with the same prediction are one straight piece of the curve, so that their order does not
matter, and a weight is the same as repetition.
"""

from typing import NamedTuple

import numpy as np

from clustruct._typing import Floats

TENTHS = 10
DIGITS = 9  # that tell two predictions apart


class Lorenz(NamedTuple):
    """Sums over the rows with the lowest predictions, from none of them to all.

    exposure, target, predicted (m + 1,): one entry for each distinct prediction, after a zero.
    """

    exposure: Floats
    target: Floats
    predicted: Floats

    @property
    def gini(self) -> float:
        """``1 - 2 A`` with the area ``A`` below the curve; 0 for a constant, NaN without targets.

        With trapezes ``2 A = sum_k (F_k - F_{k-1}) (L_k + L_{k-1})``.
        """
        if not self.target[-1] > 0.0:
            return float("nan")
        shares, targets = self.exposure / self.exposure[-1], self.target / self.target[-1]
        return float(1.0 - np.diff(shares) @ (targets[1:] + targets[:-1]))

    def lift(self, count: int = TENTHS) -> tuple[Floats, Floats]:
        """Observed and predicted means of equal parts of the exposure, the lowest first.

        Rows with one prediction that belong to two parts are shared out to both.
        """
        ends = np.linspace(0.0, self.exposure[-1], count + 1)
        each = self.exposure[-1] / count
        observed, predicted = (
            np.diff(np.interp(ends, self.exposure, sums)) / each
            for sums in (self.target, self.predicted)
        )
        return observed, predicted


def lorenz(target: Floats, predicted: Floats, exposure: Floats, weights: Floats | None) -> Lorenz:
    """The ordered Lorenz curve of targets by their predictions; arrays of shape (n,)."""
    weights = np.ones_like(exposure) if weights is None else weights
    kept = weights > 0.0
    target, predicted, exposure, weights = (
        values[kept] for values in (target, predicted, exposure, weights)
    )
    # Two predictions that are the same but for rounding, as mu / e may be, are the same.
    part, exponent = np.frexp(predicted / exposure)
    _, place = np.unique(np.ldexp(np.round(part, DIGITS), exponent), return_inverse=True)
    sums = (
        np.concatenate([[0.0], np.cumsum(np.bincount(place, weights * values))])
        for values in (exposure, target, predicted)
    )
    return Lorenz(*sums)
