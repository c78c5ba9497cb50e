"""What all displays share: axes to draw on, documentation, and a function for each of them."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar, ParamSpec, Self, TypeVar

from clustruct.figures import mpl
from clustruct.figures.marks import Figure

__all__ = ["Display", "function_of"]

# What is said of every display, and of every function that makes one, before the examples.
OF_DISPLAYS = """

Attributes
----------
ax_ : matplotlib Axes
    Axes with the plot.
figure_ : matplotlib Figure
    Figure of the axes.

See Also
--------
{} : Makes one and draws it.

"""
OF_MAKERS = """
ax : matplotlib Axes, default=None
    Where to draw; a new figure if None.

Returns
-------
{}
    With `ax_` and `figure_`.

"""

Given = ParamSpec("Given")
Made = TypeVar("Made")


class Display(ABC):
    """Numbers that can be drawn, again and again, on any axes."""

    _size: ClassVar[tuple[float, float]] = (6.4, 4.2)

    def __init_subclass__(cls, function: str, maker: str = "from_estimator") -> None:
        """Complete the documentation of a display and of the class method that makes it."""
        super().__init_subclass__()
        make = vars(cls)[maker].__func__
        about, heading, examples = inspect.cleandoc(make.__doc__ or "").partition("Examples\n")
        examples = f"{heading}{examples}\n"
        make.__doc__ = about.rstrip() + OF_MAKERS.format(cls.__name__) + examples
        cls.__doc__ = inspect.cleandoc(cls.__doc__ or "") + OF_DISPLAYS.format(function) + examples

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


def function_of(name: str, make: Callable[Given, Made]) -> Callable[Given, Made]:
    """A class method that makes a display as a function, with its signature and documentation."""

    @wraps(make)
    def function(*args: Given.args, **options: Given.kwargs) -> Made:
        return make(*args, **options)

    function.__name__ = function.__qualname__ = name
    function.__module__ = "clustruct.plot"
    return function
