"""Clustered levels of factors: clustered features whose design holds integer codes."""

import numpy as np

from clustruct._typing import Floats
from clustruct.design import FactorDesign
from clustruct.objectives.features.objective import FeatureObjective
from clustruct.objectives.linear import Response


class FactorObjective(FeatureObjective):
    """Mean loss plus a ridge that may differ from factor to factor.

    relative (d,): ridge on each level and numeric column, in units of alpha; None for ones.
    """

    data: FactorDesign

    def __init__(
        self,
        design: FactorDesign,
        response: Response,
        alpha: float,
        relative: Floats | None = None,
    ) -> None:
        super().__init__(design, response, alpha)
        self.relative = np.ones(design.shape[1]) if relative is None else relative
        self.penalties = alpha * self.relative

    def with_alpha(self, alpha: float) -> "FactorObjective":
        """The same loss with another alpha; column moments are kept."""
        other = FactorObjective(self.data, self.response, alpha, self.relative)
        other._moments = self._column_moments()
        return other
