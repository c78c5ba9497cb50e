"""How a fit came about."""

from typing import Any, Self

import numpy as np

from clustruct.inspection import Convergence, convergence_of
from clustruct.plot._axes import COLOURS, dress, note
from clustruct.plot._display import Display

__all__ = ["ConvergenceDisplay", "convergence"]


class ConvergenceDisplay(Display):
    """The objective after every step, and what is proved of the end.

    Parameters
    ----------
    convergence : Convergence
        Steps, as `clustruct.inspection.convergence_of` gives them.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the plot.
    figure_ : matplotlib Figure
        Figure of the axes.

    See Also
    --------
    convergence : Makes one of a fitted model and draws it.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_features(200, 20, 3, random_state=0)
    >>> model = cs.FeatureClusterRegressor(3).fit(problem.X, problem.y)
    >>> cs.plot.ConvergenceDisplay.from_estimator(model).ax_.get_ylabel()
    'objective'
    """

    def __init__(self, convergence: Convergence) -> None:
        self.convergence = convergence

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Any = None) -> Self:
        """Draw the steps of a fitted model.

        Parameters
        ----------
        model : estimator or Pipeline
            A fitted model.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        ConvergenceDisplay
            With `ax_` and `figure_`.
        """
        return cls(convergence_of(model)).plot(ax)

    def _draw(self, ax: Any) -> None:
        begin = 0
        for number, stage in enumerate(self.convergence.stages):
            steps = begin + np.arange(stage.objectives.size)
            ax.plot(
                steps,
                stage.objectives,
                color=COLOURS[number % len(COLOURS)],
                marker="o",
                markersize=3.5,
                linewidth=1.4,
                label=stage.solver,
            )
            begin = int(steps[-1])  # a solver begins where the one before it has ended
        bound = self.convergence.bound
        if bound is not None:
            ax.axhline(bound, color="0.4", linestyle="--", linewidth=1, label="bound")
        values = np.concatenate([stage.objectives for stage in self.convergence.stages])
        if values.min() > 0.0 and values.max() > 20.0 * values.min():
            ax.set_yscale("log")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.legend(fontsize="small", frameon=False)
        other = self.convergence.other_units
        note(ax, f"{other[0].solver}, in other units, not shown" if other else "")
        dress(ax, title="Convergence", x="step", y="objective")


def convergence(model: Any, *, ax: Any = None) -> ConvergenceDisplay:
    """Draw the objective after every step of a fit, with the proven bound.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted model.
    ax : matplotlib Axes, default=None
        Where to draw; a new figure if None.

    Returns
    -------
    ConvergenceDisplay
        With `ax_` and `figure_`.

    Examples
    --------
    >>> import clustruct as cs
    >>> problem = cs.datasets.make_clustered_features(200, 20, 3, random_state=0)
    >>> model = cs.FeatureClusterRegressor(3).fit(problem.X, problem.y)
    >>> cs.plot.convergence(model).ax_.get_title("left")
    'Convergence'
    """
    return ConvergenceDisplay.from_estimator(model, ax=ax)
