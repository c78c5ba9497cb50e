"""What all displays share: axes to draw on, documentation, and a function for each of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar, ParamSpec, Self, TypeVar

from clustruct._docs import documented
from clustruct._extras import load_extra
from clustruct.figures import mpl
from clustruct.figures.marks import Figure

# Parameters of displays, and of the functions that make them.
PARAMETERS = """
model : estimator or Pipeline
    A fitted model, or a pipeline that ends in one.
levels : Levels
    Weights, groups and names, as `clustruct.inspection.levels_of` gives them.
bars : GroupBars
    Lengths and texts.
convergence : Convergence
    Iterations, as `clustruct.inspection.convergence_of` gives them.
feature_names : sequence of str
    Names of the features; those that the model knows if None.
reference : array-like of shape (n_features,)
    Other weights of the same features, such as those of a ridge regression, drawn as dots that are
    joined to their level.
max_features : int
    Draw no more than so many features, evenly over their order; the plot says so.
max_groups : int
    Draw no more than so many groups, evenly over their order; the plot says so.
max_samples : int
    Draw no more than so many samples; the plot says so.
max_names : int
    Write no names where there are more tasks than this, nor names that would touch; the plot says
    so.
axis : str
    What the weights are, for the axis.
outputs : sequence of str
    Names of several outputs, such as classes; numbers if None.
quantity : {"objective", "weights"}
    For a path: the objectives, with the room down to their lower bounds, or the values of the
    groups, with marks as large as the groups. A search has scores, and nothing to choose.
X : {array-like, sparse matrix} of shape (n_samples, n_features)
    Samples; weights are those for a standard deviation of each feature then.
ax : matplotlib Axes
    Where to draw; a new figure if None.
"""
AX = """
ax_ : matplotlib Axes
    Axes with the plot.
figure_ : matplotlib Figure
    Figure of the axes.
"""

Given = ParamSpec("Given")
Made = TypeVar("Made")
Kind = TypeVar("Kind", bound=type)


class Display(ABC):
    """Numbers that can be drawn, again and again, on any axes."""

    _size: ClassVar[tuple[float, float]] = (6.4, 4.2)

    @documented([PARAMETERS])
    def plot(self, ax: Any = None) -> Self:
        """Draw.

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
        pyplot = load_extra("matplotlib.pyplot", "A plot", "plot")
        return pyplot.subplots(figsize=self._size, layout="constrained")[1]


def described(function: str, maker: str = "from_estimator") -> Callable[[Kind], Kind]:
    """Complete the documentation of a display and of the class method that makes it."""

    def complete(kind: Kind) -> Kind:
        make = vars(kind)[maker].__func__
        about, heading, examples = make.__doc__.partition("        Examples\n")
        returns = f"        Returns\n        -------\n        {kind.__name__}\n            "
        make.__doc__ = f"{about}{returns}With `ax_` and `figure_`.\n\n{heading}{examples}"
        also = f"    See Also\n    --------\n    {function} : Makes one and draws it.\n\n"
        examples = f"{heading}{examples}".replace("\n    ", "\n")[4:]
        kind.__doc__ = f"{kind.__doc__}\n\n{also}{examples}"
        documented([PARAMETERS])(make)
        return documented([PARAMETERS], [AX])(kind)

    return complete


def function_of(name: str, make: Callable[Given, Made]) -> Callable[Given, Made]:
    """A class method that makes a display as a function, with its signature and documentation."""

    @wraps(make)
    def function(*args: Given.args, **options: Given.kwargs) -> Made:
        return make(*args, **options)

    function.__name__ = function.__qualname__ = name
    function.__module__ = "clustruct.plot"
    return function
