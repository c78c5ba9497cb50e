"""What the rest of the package may ask of ``X``, and how arrays with a row a sample are handled.

Arrays with a row for each sample (scores, targets, shares) are *rows*: they live where the rows of
``X`` live, and only the design knows how to reach them. Arrays with an entry for each feature
(weights, means, Gram matrices) are on the host, in double precision.

A design answers questions of capability (whether passes are dear, whether rows are on the host);
nobody asks what it is.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from numpy.typing import NDArray

from clustruct._typing import Floats, Labels

__all__ = [
    "Check",
    "Design",
    "Floats",
    "Labels",
    "LocalDesign",
    "Operator",
    "PickingDesign",
    "Rows",
    "StreamedDesign",
    "T",
]

# A NumPy array where ``X`` is one; the array of another library, or of many pieces, elsewhere.
Rows = Any
T = TypeVar("T")
# Brings what users pass for so many rows to the host, validates it, and returns an array.
Check = Callable[[Any, int], NDArray[Any]]


class Operator(Protocol):
    """A linear map from weights to scores: what gradients and Newton steps need of ``X``.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns.
    streamed : bool
        Whether passes are dear: reading ``X`` costs more than computing with it.
    """

    shape: tuple[int, int]
    streamed: bool

    @property
    def single(self) -> bool:
        """Whether products are of single precision, or may be."""
        ...

    def scores(self, W: Floats) -> Rows:
        """``X W`` for a ``d x K`` matrix."""
        ...

    def adjoint(self, R: Rows) -> Floats:
        """``X' R`` for an ``n x K`` matrix."""
        ...

    def place(self, rows: Any) -> Rows:
        """Bring rows on the host, or attached ones, to where those of ``X`` are."""
        ...

    def map(self, function: Callable[..., Any], *rows: Rows) -> Rows:
        """New rows from others: the function treats each row by itself."""
        ...

    def fold(
        self,
        function: Callable[..., T],
        *rows: Rows,
        combine: Callable[[T, T], T] | None = None,
    ) -> T:
        """A sum over rows: the function returns an array, or a tuple of them, for those given.

        What it returns for different rows is added up, or put together by `combine`.
        """
        ...

    def sweep(
        self,
        function: Callable[..., T],
        *rows: Rows,
        combine: Callable[[T, T], T] | None = None,
    ) -> T:
        """The same for functions that take the design of these rows first: one pass over ``X``."""
        ...

    def sweep_keeping(
        self,
        function: Callable[..., tuple[Rows, T]],
        *rows: Rows,
        combine: Callable[[T, T], T] | None = None,
    ) -> tuple[Rows, T]:
        """A sweep by a function that returns new rows as well, which stay where ``X`` is.

        It returns an array of rows, or a tuple of them, and what is to be added up.
        """
        ...

    def moments(self, shares: Rows) -> tuple[Floats, Floats]:
        """Weighted mean and variance of each column."""
        ...


class Design(Operator, Protocol):
    """What the rest of the package may ask of ``X`` (``n x d``).

    Attributes
    ----------
    n_entries : int
        Stored numbers, a measure of the cost of one product.
    is_sparse : bool
        Whether zeros are left out.
    on_host : bool
        Whether rows are on the host, as NumPy arrays; the design is then a `LocalDesign`.
    """

    n_entries: int
    is_sparse: bool
    on_host: bool

    def attach(self, values: Any, name: str = "rows", check: Check | None = None) -> Rows:
        """What users pass for the rows, validated, as `map` and `fold` take it.

        It is on the host, also where ``X`` is on a device, or in the pieces of ``X``. The check
        sees whole arrays; it is not applied to Dask collections, which have to be folded for it.
        """
        ...

    def gather(self, rows: Rows) -> NDArray[Any]:
        """Rows as one array on the host."""
        ...

    def keep(self, rows: Rows) -> Rows:
        """The same rows, computed once, where `map` would leave that to every pass."""
        ...

    def gram(self, shares: Rows, means: Floats) -> Floats:
        """``(X - 1 m')' diag(shares) (X - 1 m')`` for given ``m``, ``d x d``."""
        ...

    def cross(self, R: Rows, means: Floats) -> Floats:
        """``(X - 1 m')' R`` for given ``m``, as exact as `gram` whatever the precision of ``X``."""
        ...

    def group_sums(self, labels: Labels, n_groups: int) -> Rows:
        """``X Z``: the columns of each group added up, those with label -1 left out."""
        ...

    def weights(self, values: Floats) -> Any:
        """Weights as users get them: where ``X`` is, and in its precision if that is elsewhere."""
        ...

    def hand_out(self, codes: Rows) -> Any:
        """Integers of the rows as users get them: beside ``X``, lazily for Dask."""
        ...

    def side_by_side(self, jobs: Sequence[Callable[[], T]]) -> Iterable[T]:
        """Run independent jobs and return their results; concurrent jobs share passes."""
        ...

    def only(self, mask: Rows, *rows: Rows) -> tuple["Design", tuple[Rows, ...]]:
        """The design of the rows where the mask is true, and what belongs to these rows."""
        ...

    def locate(self, shares: Rows, positions: Floats) -> Labels:
        """Numbers of the rows at which shares, added up from the first, pass the positions."""
        ...

    def fetch(self, index: Labels, *rows: Rows) -> tuple[Any, tuple[Any, ...]]:
        """Rows of ascending numbers as a matrix of the host, and what belongs to them."""
        ...

    def by_rows(self) -> "Design":
        """The same design, of which rows are cheap to take."""
        ...

    def over(self, rows: Rows) -> "Design":
        """The design whose matrix is the given rows, ``n x Q``."""
        ...

    def cluster(
        self, values: Floats, weights: Floats | None, n_clusters: int
    ) -> tuple[Labels, Floats, Labels, float]:
        """Exact k-means of numbers of the host, made where it takes least time.

        Labels, centres, sizes and inertia, see `kernels.kmeans1d.cluster_values`.
        """
        ...


class StreamedDesign(Design, Protocol):
    """What may be asked in addition where a pass over ``X`` is dear."""

    def group_sums_together(self, groupings: Sequence[tuple[Labels, int]]) -> list[Rows]:
        """`group_sums` of several groupings, in one pass."""
        ...


class PickingDesign(Design, Protocol):
    """What may be asked in addition where all rows are at hand, on the host or on a device."""

    @property
    def dtype(self) -> Any:
        """Precision of the entries of ``X``."""
        ...

    def rows(self, index: Labels) -> "PickingDesign":
        """Some of the rows, as a design of their own."""
        ...


class LocalDesign(PickingDesign, Protocol):
    """What may be asked in addition where rows are arrays of the host."""

    def matrix(self) -> Any:
        """``X`` itself, a NumPy array or a sparse matrix."""
        ...

    def rows(self, index: Labels) -> "LocalDesign":
        """Some of the rows, as a design of their own."""
        ...

    def row_products(self, B: Rows) -> Rows:
        """``[b_i1 x_i, ..., b_iK x_i]`` for each row ``b_i`` of an ``n x K`` matrix, dense."""
        ...
