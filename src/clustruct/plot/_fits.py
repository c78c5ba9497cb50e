"""How good models are along a search or a path, and how a fit came about."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

from clustruct._arguments import as_choice
from clustruct.figures.fits import (
    convergence_figure,
    curve_figure,
    objectives_figure,
    values_figure,
)
from clustruct.figures.marks import Figure
from clustruct.inspection import Convergence, Curve, convergence_of, curve_of
from clustruct.plot._display import Display, function_of
from clustruct.results import FeaturePath

__all__ = ["ConvergenceDisplay", "PathDisplay", "convergence", "path"]


@dataclass(eq=False, repr=False)
class PathDisplay(Display, function="path", maker="from_result"):
    """Scores of a search, or objectives and weights of a path, for every number of groups.

    Parameters
    ----------
    result : Curve or FeaturePath
        What to draw.
    quantity : {"objective", "weights"}, default="objective"
        For a path: the objectives, with the room down to their lower bounds, or the values of the
        groups, with marks as large as the groups. A search has scores, and nothing to choose.
    """

    result: Curve | FeaturePath
    _: KW_ONLY
    quantity: str = "objective"

    def __post_init__(self) -> None:
        as_choice(self.quantity, "quantity", ("objective", "weights"))

    @classmethod
    def from_result(cls, result: Any, *, quantity: str = "objective", ax: Any = None) -> Self:
        """Draw scores of a search, or objectives and weights of a path, over the number of groups.

        Parameters
        ----------
        result : FeaturePath, SearchResult, TaskSelection, CountSelection, estimator or Pipeline
            A path, the result of a search, or a fitted model that has searched.
        quantity : {"objective", "weights"}, default="objective"
            For a path: the objectives, with the room down to their lower bounds, or the values of
            the groups, with marks as large as the groups. A search has scores, and nothing to
            choose.

        Examples
        --------
        >>> import clustruct as cs
        >>> problem = cs.datasets.make_clustered_features(100, 10, 3, random_state=0)
        >>> model = cs.FeatureClusterRegressorCV((2, 3, 4), alphas=(1e-1, 1e-3), random_state=0)
        >>> cs.plot.path(model.fit(problem.X, problem.y)).ax_.get_ylabel()
        'mean squared error (smaller is better)'
        """
        found = result if isinstance(result, FeaturePath) else curve_of(result)
        if found is None:
            raise ValueError(
                f"{type(result).__name__} holds no search and no path. Give the result of "
                "feature_cluster_path, a cv_results_ or selection_, or a fitted model whose name "
                "ends in CV."
            )
        return cls(found, quantity=quantity).plot(ax)

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Any = None) -> Self:
        """Draw the search of a fitted model; see `from_result`."""
        return cls.from_result(model, ax=ax)

    def _figure(self) -> Figure:
        if isinstance(self.result, Curve):
            return curve_figure(self.result)
        draw = {"objective": objectives_figure, "weights": values_figure}
        return draw[self.quantity](self.result)


@dataclass(eq=False, repr=False)
class ConvergenceDisplay(Display, function="convergence"):
    """The objective after every iteration, and what is proved of the end.

    Parameters
    ----------
    convergence : Convergence
        Iterations, as `clustruct.inspection.convergence_of` gives them.
    """

    convergence: Convergence

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Any = None) -> Self:
        """Draw the objective after every iteration of a fit, with the proven bound.

        Parameters
        ----------
        model : estimator or Pipeline
            A fitted model.

        Examples
        --------
        >>> import clustruct as cs
        >>> problem = cs.datasets.make_clustered_features(200, 20, 3, random_state=0)
        >>> model = cs.FeatureClusterRegressor(3).fit(problem.X, problem.y)
        >>> cs.plot.convergence(model).ax_.get_title("left")
        'Convergence'
        """
        return cls(convergence_of(model)).plot(ax)

    def _figure(self) -> Figure:
        return convergence_figure(self.convergence)


path = function_of("path", PathDisplay.from_result)
convergence = function_of("convergence", ConvergenceDisplay.from_estimator)
