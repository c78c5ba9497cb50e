"""Losses of scores to which an offset is added, a known number for each sample and output.

With an offset ``o`` the loss of a sample is ``loss(y, z + o)``. The offset belongs to the sample as
its target does, so it travels with it: `join` makes one array of both, and the stand-in for the
loss takes them apart again. Whoever has targets, a loss and scores needs to know no more.
"""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from clustruct._typing import Floats, Indices
from clustruct.arrays import beside, concatenated, namespace, row_dots
from clustruct.arrays import cast as as_type
from clustruct.losses.base import Loss, Measure, Target
from clustruct.losses.intercept import at_once, best_intercept, mean_hessian

__all__ = ["join_offset", "with_offset", "without_offset"]


def with_offset(loss: Loss) -> Loss:
    """The same loss for targets that `join_offset` has joined with offsets."""
    stand_in = _Shifted(loss) if loss.quadratic else _Offset(loss)
    return cast("Loss", stand_in)  # it passes on all that does not depend on targets


def without_offset(loss: Loss) -> Loss:
    """The loss that a stand-in with offsets stands for, or the loss itself."""
    return loss.inner if isinstance(loss, _StandIn) else loss


def join_offset(loss: Loss, target: Target, offset: Floats) -> Target:
    """Targets for ``with_offset(loss)``, of targets for a loss and of offsets, ``n x K``."""
    return target - offset if loss.quadratic else _joined(target, offset)


@dataclass(frozen=True)
class _StandIn:
    """Everything that does not depend on targets is that of the loss itself."""

    inner: Loss

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # a copy is asked for these before it has its attributes
            raise AttributeError(name)
        return getattr(self.inner, name)


class _Shifted(_StandIn):
    """The squared loss, for targets less the offset: ``1/2 |y - (z + o)|^2``."""

    def class_measure(self, scoring: str) -> Measure | None:
        """None: without the offset a shifted target does not tell the class."""
        return None


class _Offset(_StandIn):
    """Other losses, for targets in the first columns and the offset in the last ``K``."""

    def value(self, target: Target, scores: Floats) -> Floats:
        """``loss(y, z + o)``."""
        return self.inner.value(*self._apart(target, scores))

    def gradient(self, target: Target, scores: Floats) -> Floats:
        """Its derivative by ``z``, that of the loss at ``z + o``."""
        return self.inner.gradient(*self._apart(target, scores))

    def hessian_product(self, target: Target, scores: Floats, direction: Floats) -> Floats:
        """The second derivative there, times the direction."""
        return self.inner.hessian_product(*self._apart(target, scores), direction)

    def conjugate(self, target: Target, slope: Floats) -> Floats:
        """``max_z <g, z> - loss(y, z + o) = loss*(g) - <g, o>``."""
        y, offset = self._split(target, slope.shape[1])
        return self.inner.conjugate(y, slope) - row_dots(slope, offset)

    def deviance(self, target: Target, scores: Floats) -> Floats:
        """Deviance of each row."""
        return self.inner.deviance(*self._apart(target, scores))

    def residuals(self, target: Target, scores: Floats) -> Floats:
        """Targets less scores and offset."""
        return self.inner.residuals(*self._apart(target, scores))

    def mixed_value(self, target: Target, weights: Floats, scores: Floats) -> Floats:
        """Loss of the weighted mean of several predictions, ``scores`` being ``n x Q x K``."""
        y, offset = self._split(target, scores.shape[2])
        return self.inner.mixed_value(y, weights, scores + offset[:, None, :])

    def measure(self, scoring: str) -> Measure | None:
        """A score of numbers."""
        return self._measuring(self.inner.measure(scoring))

    def class_measure(self, scoring: str) -> Measure | None:
        """A score of classes."""
        return self._measuring(self.inner.class_measure(scoring))

    def _measuring(self, measure: Measure | None) -> Measure | None:
        if measure is None:
            return None
        return lambda target, scores: measure(*self._apart(target, scores))

    def start_curvature(self, target: Any, shares: Any, fold: Any = at_once) -> float:
        """Second derivative of the mean loss at the best constant score, for one output."""
        if self.inner.centred:
            return self.inner.curvature

        def from_zero(function: Any, y: Any, _: Any, s: Any) -> Any:
            return fold(lambda y, s: function(y, 0.0 * y[:, :1], s), y, s)

        mine = cast("Loss", self)
        score = best_intercept(mine, target, target, shares, np.zeros(1), from_zero)
        bend = from_zero(lambda y, z, s: mean_hessian(mine, y, z + score, s), target, None, shares)
        return max(float(bend[0, 0]), np.finfo(np.float64).tiny)

    def closed_intercept(
        self, target: Any, scores: Any, shares: Any, fold: Any = at_once
    ) -> Floats | None:
        """The best intercept, if the loss has a closed form for it: at scores with the offset."""
        closed = getattr(self.inner, "closed_intercept", None)  # losses may lack it
        if closed is None:
            return None

        def folded(function: Any, *rows: Any) -> Any:
            return fold(lambda y, z, s: function(*self._apart(y, z), s), *rows)

        intercept: Floats | None = closed(target, scores, shares, folded)
        return intercept

    # ---- Classes

    def contrasts(self, n_outputs: int) -> None:
        """None: scores are not all that the probabilities depend on."""
        return None

    def codes(self, target: Target) -> Target:
        """Codes of the classes."""
        return as_type(target[:, 0], namespace(target).int64)

    def recoded(self, target: Target, codes: Indices, present: Indices) -> Target:
        """Targets and offsets for some of the classes, numbered anew."""
        y, offset = self._split(target, codes.size)
        kept = namespace(offset).take(offset, beside(present, offset), axis=1)
        return _joined(self.inner.recoded(y, codes, present), kept)

    # ---- Targets and offsets

    def _apart(self, target: Target, scores: Floats) -> tuple[Target, Floats]:
        """Targets, and scores with the offset."""
        y, offset = self._split(target, scores.shape[1])
        return y, scores + offset

    def _split(self, target: Target, n_outputs: int) -> tuple[Target, Floats]:
        """Targets and offsets."""
        joined: Any = target
        y = self.codes(joined) if self.inner.coded else joined[:, :-n_outputs]
        return y, joined[:, -n_outputs:]


def _joined(target: Target, offset: Floats) -> Target:
    """Targets, or codes of classes, and offsets side by side."""
    columns = target if target.ndim == 2 else target[:, None]
    return concatenated([as_type(columns, namespace(offset).float64), offset], axis=1)
