"""What all displays share: axes to draw on, documentation, and a function for each of them."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar, ParamSpec, Self, TypeVar

from clustruct.figures import mpl
from clustruct.figures.marks import Figure

__all__ = ["Display", "function_of"]

# What the documentation of every display, and of what makes it, says before its examples.
OF_DISPLAYS = """\
Attributes
----------
ax_ : matplotlib Axes
    Axes with the plot.
figure_ : matplotlib Figure
    Figure of the axes.

See Also
--------
{function} : Makes one and draws it.

"""
OF_MAKERS = """\
ax : matplotlib Axes, default=None
    Where to draw; a new figure if None.

Returns
-------
{display}
    With `ax_` and `figure_`.

"""

Given = ParamSpec("Given")
Made = TypeVar("Made")


class Display(ABC):
    """Numbers that can be drawn, again and again, on any axes."""

    _size: ClassVar[tuple[float, float]] = (6.4, 4.2)

    def __init_subclass__(cls, function: str) -> None:
        super().__init_subclass__()
        cls.__doc__ = _with(cls.__doc__, OF_DISPLAYS.format(function=function))
        for value in vars(cls).values():
            if isinstance(value, classmethod):
                made = value.__func__
                made.__doc__ = _with(made.__doc__, OF_MAKERS.format(display=cls.__name__), -1)

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
        described = self._figure()
        self.ax_ = self._new_axes() if ax is None else ax
        self.figure_ = self.ax_.get_figure()
        mpl.draw(self.ax_, described)
        return self

    @abstractmethod
    def _figure(self) -> Figure:
        """What to draw."""

    def _new_axes(self) -> Any:
        try:
            from matplotlib import pyplot
        except ImportError as error:
            raise ImportError(
                "Plots need matplotlib, which is not installed. "
                "`pip install 'clustruct[plot]'` installs it."
            ) from error
        return pyplot.subplots(figsize=self._size, layout="constrained")[1]


def _with(doc: str | None, text: str, blank: int = 0) -> str:
    """Documentation with a text before its examples; -1 if the last section goes on with it."""
    before, mark, examples = inspect.cleandoc(doc or "").partition("Examples\n")
    return f"{before[: len(before) + blank]}{text}{mark}{examples}\n" if mark else before


def function_of(name: str, make: Callable[Given, Made]) -> Callable[Given, Made]:
    """A class method that makes a display as a function, with its signature and documentation."""

    @wraps(make)
    def function(*args: Given.args, **options: Given.kwargs) -> Made:
        return make(*args, **options)

    function.__name__ = function.__qualname__ = name
    function.__module__ = "clustruct.plot"
    return function
