"""What all displays share."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

from clustruct.plot._axes import get_axes

__all__ = ["Display"]


class Display(ABC):
    """Numbers that can be drawn, again and again, on any axes."""

    _size: ClassVar[tuple[float, float]] = (6.4, 4.2)

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        Display
            Itself, with `ax_` and `figure_` set.
        """
        self.ax_ = get_axes(ax, self._size)
        self.figure_ = self.ax_.get_figure()
        self._draw(self.ax_)
        return self

    @abstractmethod
    def _draw(self, ax: Any) -> None:
        """Draw on these axes."""
