"""Groups of columns as the columns of a design."""

from collections.abc import Callable

from clustruct._typing import Floats, Labels
from clustruct.design.local import Combine, Design, Operator, Rows, T
from clustruct.grouping.rows import assignment


class GroupedDesign(Operator):
    """``X Z`` as a design of its own, without forming it: ``Z`` gathers, ``Z'`` adds up.

    `labels` are the groups of the columns, -1 for none. Rows are handled as those of ``X``.
    """

    def __init__(self, design: Design, labels: Labels, n_groups: int) -> None:
        self._design = design
        self._labels = labels
        self._assignment = assignment(labels, n_groups)
        self.shape = (design.shape[0], n_groups)
        self.streamed = design.streamed
        self.single = design.single
        self.place = design.place  # type: ignore[method-assign]
        self.map = design.map  # type: ignore[method-assign]
        self.fold = design.fold  # type: ignore[method-assign]

    def sweep(self, function: Callable[..., T], *rows: Rows, combine: Combine[T] = None) -> T:
        """As of ``X``, with the same groups everywhere."""
        return self._design.sweep(self._grouped(function), *rows, combine=combine)

    def sweep_keeping(
        self, function: Callable[..., tuple[Rows, T]], *rows: Rows, combine: Combine[T] = None
    ) -> tuple[Rows, T]:
        """As of ``X``, with the same groups everywhere."""
        return self._design.sweep_keeping(self._grouped(function), *rows, combine=combine)

    def _grouped(self, function: Callable[..., T]) -> Callable[..., T]:
        """A function of designs whose columns are grouped."""
        labels, n_groups = self._labels, self.shape[1]

        def grouped(design: Design, *mine: Rows) -> T:
            return function(GroupedDesign(design, labels, n_groups), *mine)

        return grouped

    def scores(self, W: Floats) -> Rows:
        """``X (Z V)``."""
        return self._design.scores(self._assignment @ W)

    def adjoint(self, R: Rows) -> Floats:
        """``Z' (X' R)``."""
        return self._assignment.T @ self._design.adjoint(R)

    def moments(self, shares: Rows) -> tuple[Floats, Floats]:
        """Means, and the variances of uncorrelated columns: good enough to scale by."""
        means, variances = self._design.moments(shares)
        return self._assignment.T @ means, self._assignment.T @ variances
