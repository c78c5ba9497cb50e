"""Rows in pieces, each a matrix of its own: on disk, in memory or on the workers of a cluster."""

import operator
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, repeat
from operator import itemgetter
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import delayed
from numpy.typing import NDArray

from clustruct._typing import Floats, Indices, Labels
from clustruct.design.local import (
    Check,
    Combine,
    Design,
    Rows,
    T,
    aligned,
    far_among,
)
from clustruct.design.partitioned.collections import check_length, with_known_rows
from clustruct.design.partitioned.in_step import Meeting
from clustruct.design.partitioned.pieces import (
    Mapped,
    Piece,
    Pieces,
    added,
    available_bytes,
    cluster,
    compute,
    delay,
    join,
    keep,
    piece_by_piece,
    sent,
    single_threaded,
    unfolded,
)
from clustruct.design.partitioned.questions import (
    Question,
    combined,
    concatenated,
    count_bad,
    describe,
    fetch_rows,
    is_finite,
    joined_moments,
    joined_ranges,
    kept,
    local_matrix,
    locate_in_piece,
    looked_at,
    moments,
    stacked,
    take_masked,
    touch,
)
from clustruct.design.sources import as_design, is_partitioned

# Bytes of a column of rows up to which sums over them are taken on the host.
MOST_LOCAL = 1 << 30
# Bytes of group sums that are brought to this process from a cluster, and of those that its threads
# do not share.
MOST_AT_HAND, LEAST_SHARED = 1 << 27, 1 << 24
# Bytes of rows that passes keep for those who work side by side.
MOST_KEPT = 1 << 29


def block_design(X: Any) -> "BlockDesign":
    """The design of a Dask array or data frame; read once and kept, if it fits into memory.

    Its chunks are NumPy arrays, SciPy sparse matrices or data frames.
    """
    array = with_known_rows(X)
    array = array.rechunk({1: -1}) if array.numblocks[1] > 1 else array
    pairs = zip(array.to_delayed()[:, 0], array.chunks[0], strict=True)
    filled = [(block, height) for block, height in pairs if height > 0]
    if not filled:
        raise ValueError(
            f"Found array with 0 sample(s) (shape={array.shape}) in X. Give some rows."
        )
    blocks, heights = zip(*filled, strict=True)
    design = BlockDesign(blocks, heights, array.shape[1])
    if design.survey() <= available_bytes():
        design.hold()
    return design


class BlockDesign(Design):
    """A matrix in pieces of rows.

    Each block is a delayed NumPy array or SciPy sparse matrix, none of them empty.
    """

    streamed = True
    single = True  # pieces may be

    def __init__(self, blocks: Sequence[Piece], heights: Sequence[int], width: int) -> None:
        self._blocks = tuple(blocks)
        self.heights = tuple(heights)
        self.shape: tuple[int, int] = (sum(heights), width)
        self.n_entries = self.shape[0] * width
        self.n_bytes = 8.0 * self.n_entries
        self.n_passes = 0
        self.lazy = True  # what users get is computed when they ask for it
        self._blamed = False
        self._narrow: Indices = np.empty(0, dtype=np.intp)  # columns that hardly vary in a block
        self._larger: tuple[Piece, ...] = ()
        self._meeting: Meeting[Question] | None = None

    def survey(self) -> float:
        """Look at the first block, for what is stored in all; return their bytes, about."""
        parts = delay(describe, [self._blocks[:1]])
        answers = self._guarded(lambda: compute(parts))
        ((self.is_sparse, entries, n_bytes, self._narrow),) = answers
        scale = self.shape[0] / self.heights[0]
        self.n_entries = int(scale * entries)
        self.n_bytes = scale * n_bytes
        return self.n_bytes

    def hold(self) -> None:
        """Read the blocks once, and keep them where they were read."""
        self.n_passes += 1
        self._blocks = self._guarded(lambda: keep(self._blocks))

    @property
    def _beside(self) -> Sequence[Piece]:
        """What rows are to lie beside."""
        return self._larger or self._blocks

    # ---- Rows

    def map(self, function: Callable[..., Any], *rows: Pieces) -> Pieces:
        """Left for the pass that needs it: it costs less than to keep the result."""
        return Mapped(function, rows)

    def fold(self, function: Callable[..., T], *rows: Pieces, combine: Combine[T] = None) -> T:
        """On the host while rows are small beside a pass over ``X``, else where they lie."""
        if 8 * self.shape[0] > MOST_LOCAL and cluster() is not None:
            return self._total(delay(function, [mine.parts for mine in rows]), combine)
        results = [function(*mine) for mine in piece_by_piece(rows)]
        return join(results, combine or added, delayed_=False)

    def sweep(self, function: Callable[..., T], *rows: Pieces, combine: Combine[T] = None) -> T:
        """One pass over the blocks."""

        def summed(*arguments: Any) -> tuple[None, T]:
            return None, function(*arguments)

        total: T = self._ask(Question(summed, rows, combine or added, 0))[1]
        return total

    def sweep_keeping(
        self, function: Callable[..., tuple[Any, T]], *rows: Pieces, combine: Combine[T] = None
    ) -> tuple[Pieces, T]:
        """One pass over the blocks; new rows are kept, the sums of single blocks are not."""
        return self._ask(Question(function, rows, combine or added, 1))

    def side_by_side(self, jobs: Sequence[Callable[[], T]]) -> list[T]:
        """Their passes are made together."""
        if self._meeting is not None:
            return self._meeting.run(jobs)
        self._meeting = Meeting(self._answers, self._go_together)
        try:
            return self._meeting.run(jobs)
        finally:
            self._meeting = None

    def place(self, rows: Any) -> Pieces:
        """In the same pieces."""
        if isinstance(rows, Pieces):
            return rows
        return self._at_hand(np.split(rows, np.cumsum(self.heights)[:-1]), rows.shape)

    def attach(self, values: Any, name: str = "rows", check: Check | None = None) -> Pieces:
        """In the same pieces, and kept."""
        if not is_partitioned(values):
            if hasattr(values, "shape"):
                check_length(values, self, name)
            rows = np.asarray(values) if check is None else check(values, self.shape[0])
            return self.place(rows)
        array = with_known_rows(values)
        check_length(array, self, name)
        array = array.rechunk((self.heights, *((-1,) * (array.ndim - 1))))
        return Pieces.of(keep(list(array.to_delayed().reshape(-1))), array.shape)

    def gather(self, rows: Pieces) -> NDArray[Any]:
        """One piece after the other."""
        return np.concatenate(rows.local)

    def _at_hand(self, local: list[Any], shape: tuple[int, ...] | None = None) -> Pieces:
        """Rows of this process, sent to where the blocks are when they are wanted there."""
        if cluster() is None:
            return Pieces.of(local, shape)
        return Pieces(lambda: sent(local, self._beside), lambda: local, shape)

    def keep(self, rows: Pieces) -> Pieces:
        """Held by the workers of a cluster; in this process they are held once they were used."""
        if cluster() is None:
            return rows
        return Pieces(lambda: keep(rows.parts), lambda: rows.local, rows.shape)

    # ---- The matrix

    def scores(self, W: Floats) -> Pieces:
        """``X W``, kept where the blocks are."""
        if not W.any():  # where all fits begin, and nothing has to be read
            return self.place(np.zeros((self.shape[0], W.shape[1])))
        return self._rows_of(lambda X: X.scores(W), W.shape[1])

    def adjoint(self, R: Rows) -> Floats:
        """``X' R``."""
        return self.sweep(lambda X, r: X.adjoint(r), R)

    def moments(self, shares: Rows) -> tuple[Floats, Floats]:
        """Weighted mean and variance of each column, in one pass: those of blocks are joined."""
        _, means, variances = self.sweep(moments, shares, combine=joined_moments)
        return means, variances

    def far_columns(self, ratio: float) -> Iterator[tuple[int, float, float]]:
        """By the first block, and then by all: no pass unless it has columns that hardly vary."""
        columns = self._narrow
        if columns.size:
            least, largest = self.sweep(lambda X: X.ranges(columns), combine=joined_ranges)
            yield from far_among(columns, least, largest, ratio)

    def gram(self, shares: Rows, means: Floats) -> Floats:
        """Weighted Gram matrix of the columns less ``means``."""
        return self.sweep(lambda X, s: X.gram(s, means), shares)

    def cross(self, R: Rows, means: Floats) -> Floats:
        """``X'R`` of the columns less ``means``, in double precision."""
        return self.sweep(lambda X, r: X.cross(r, means), R)

    def group_sums(self, labels: Labels, n_groups: int) -> Pieces:
        """``X Z``, kept where the blocks are."""
        return self.group_sums_together([(labels, n_groups)])[0]

    def group_sums_together(self, groupings: Sequence[tuple[Labels, int]]) -> list[Pieces]:
        """The same for several groupings, in one pass."""
        ends = np.cumsum([count for _, count in groupings])
        together = self._rows_of(
            lambda X: np.hstack([X.group_sums(labels, count) for labels, count in groupings]),
            int(ends[-1]),
        )
        return [
            self._columns(together, int(end) - count, count)
            for end, (_, count) in zip(ends, groupings, strict=True)
        ]

    # ---- Some of the rows

    def only(self, mask: Pieces, *rows: Pieces) -> tuple["BlockDesign", tuple[Pieces, ...]]:
        """The rows where the mask is true; read once and kept, if they fit into memory."""
        counts = self.fold(lambda m: [int(np.count_nonzero(m))], mask, combine=operator.add)
        filled = [number for number, count in enumerate(counts) if count]

        def some(lists: Sequence[Piece]) -> list[Piece]:
            chosen = [[parts[number] for number in filled] for parts in (lists, mask.parts)]
            return delay(take_masked, chosen)

        fewer = BlockDesign(
            some(self._blocks), [counts[number] for number in filled], self.shape[1]
        )
        fewer.is_sparse = self.is_sparse
        part = fewer.shape[0] / self.shape[0]
        fewer.n_entries, fewer.n_bytes = int(part * self.n_entries), part * self.n_bytes
        if fewer.n_bytes <= available_bytes():
            self.n_passes += 1
            fewer.hold()
        return fewer, tuple(Pieces.of(keep(some(mine.parts))) for mine in rows)

    def locate(self, shares: Pieces, positions: Floats) -> Labels:
        """Piece by piece: each is told what the pieces before it add up to."""
        totals = self.fold(lambda s: [float(s.sum())], shares, combine=operator.add)
        ends = np.cumsum(totals)
        sought = np.sort(positions) * ends[-1]
        bounds = [0, *np.searchsorted(sought, ends[:-1]), sought.size]
        mine = Pieces.of([sought[a:b] for a, b in pairwise(bounds)])
        before = Pieces.of([0.0, *ends[:-1]])
        first = Pieces.of([0, *np.cumsum(self.heights)[:-1]])
        return self.fold(locate_in_piece, shares, mine, before, first, combine=concatenated)

    def fetch(self, index: Labels, *rows: Pieces) -> tuple[Any, tuple[Any, ...]]:
        """From the blocks that hold some of them."""
        ends = np.cumsum(self.heights)
        bounds = [0, *np.searchsorted(index, ends)]
        filled = [number for number, (a, b) in enumerate(pairwise(bounds)) if b > a]
        mine = [index[bounds[n] : bounds[n + 1]] - (ends[n] - self.heights[n]) for n in filled]
        lists = [self._blocks, *(each.parts for each in rows)]
        chosen = [[parts[number] for number in filled] for parts in lists]
        self.n_passes += 1
        found = self._total(delay(fetch_rows, [mine, *chosen]), stacked)
        return local_matrix(found[0]), tuple(map(aligned, found[1:]))

    def hand_out(self, codes: Pieces) -> Any:
        """As a Dask array with a chunk for each block, unless a mapped file was passed."""
        if not self.lazy:
            return self.gather(codes).astype(np.intp, copy=False)
        as_codes = delayed(np.asarray, pure=False)
        parts = [
            da.from_delayed(as_codes(part, dtype=np.intp), (height,), np.intp)
            for part, height in zip(codes.parts, self.heights, strict=True)
        ]
        return da.concatenate(parts)

    def over(self, rows: Pieces) -> "BlockDesign":
        """The same pieces of other columns."""
        assert rows.shape is not None
        _, width = rows.shape
        if 8 * self.shape[0] * width <= (LEAST_SHARED if cluster() is None else MOST_AT_HAND):
            return BlocksAtHand(rows.local, self.heights, width, self._beside)
        return BlockDesign(rows.parts, self.heights, width)

    # ---- Passes

    def _columns(self, rows: Pieces, first: int, count: int) -> Pieces:
        """Some columns of rows."""
        some = self.map(lambda r: np.ascontiguousarray(r[:, first : first + count]), rows)
        some.shape = (self.shape[0], count)
        return some

    def _rows_of(self, function: Callable[..., Any], width: int) -> Pieces:
        """Rows that take a pass, and so are kept."""

        def kept_only(X: Any) -> tuple[Any, None]:
            return function(X), None

        rows: Pieces = self._ask(Question(kept_only, (), None, width))[0]
        return rows

    def _ask(self, question: Question) -> tuple[Any, Any]:
        """New rows and a sum, by a pass that is shared by those who work side by side."""
        if self._meeting is None:
            return self._answers([question])[0]
        answer: tuple[Any, Any] = self._meeting.ask(question)
        return answer

    def _go_together(self, questions: Sequence[Question]) -> bool:
        """Whether a pass may answer these questions: the rows that it keeps are not too many."""
        width = sum(question.width for question in questions)
        return 8 * self.shape[0] * width <= MOST_KEPT

    def _answers(self, questions: Sequence[Question]) -> list[tuple[Any, Any]]:
        """New rows and sums that questions ask for, by one pass."""
        self.n_passes += 1
        look, rows = looked_at(questions), [mine for each in questions for mine in each.rows]
        keeping = [number for number, question in enumerate(questions) if question.width]
        if not keeping:
            found = self._on_blocks(lambda *arguments: look(*arguments)[1], rows)
            sums = self._total(found, combined(questions))
            return [(None, total) for total in sums]
        found = self._on_blocks(look, rows)
        parts: Sequence[Piece] = [
            part for number in keeping for part in delay(kept(number), [found])
        ]
        sums = (None,) * len(questions)
        if all(question.combine is None for question in questions):
            parts = self._guarded(lambda: keep(parts))
        else:
            total = join(delay(itemgetter(1), [found]), combined(questions), delayed_=True)
            *parts, total = self._guarded(lambda: keep([*parts, total]))
            (sums,) = self._guarded(lambda: compute([total]))
            self._checked(sums)
        height = len(self._blocks)
        new = {
            number: self._kept(parts[first * height : (first + 1) * height])
            for first, number in enumerate(keeping)
        }
        return [(new.get(number), total) for number, total in enumerate(sums)]

    def _kept(self, parts: Sequence[Piece]) -> Pieces:
        """Rows of a pass, which may yet fail where it is made later."""
        return Pieces(lambda: parts, lambda: self._guarded(lambda: compute(parts)))

    def _on_blocks(self, function: Callable[..., Any], rows: Sequence[Pieces]) -> list[Piece]:
        """The function of each block's design and rows."""
        bases, made = unfolded(rows)

        def on_block(block: Any, *mine: Any) -> Any:
            design = as_design(local_matrix(block), in_stretches=True)
            return function(design, *made(*map(aligned, mine)))

        return delay(on_block, [self._blocks, *(mine.parts for mine in bases)])

    def _total(self, parts: Sequence[Piece], combine: Callable[[T, T], T] | None) -> T:
        joined = join(parts, combine or added, delayed_=True)
        return self._checked(self._guarded(lambda: compute([joined])[0]))

    def _checked(self, total: T) -> T:
        """A result that is not finite has its reason told, once."""
        if not self._blamed and not is_finite(total):
            self._blamed = True
            self._name_bad_block()
        return total

    def _guarded(self, work: Callable[[], T]) -> T:
        """A failure of one block is told with its place."""
        try:
            return work()
        except Exception as error:
            self._name_failing_block(error)
            raise

    def _name_failing_block(self, error: Exception) -> None:
        for number, block in enumerate(self._blocks):
            try:
                compute(delay(touch, [[block]]))
            except Exception as reason:
                raise RuntimeError(
                    f"Chunk {number} of X ({self._place(number)}) could not be computed: "
                    f"{type(reason).__name__}: {reason}. Mend the source of that chunk, or leave "
                    "it out."
                ) from error

    def _name_bad_block(self) -> None:
        for number, block in enumerate(self._blocks):
            (bad,) = compute(delay(count_bad, [[block]]))
            if bad:
                raise ValueError(
                    f"Input X contains NaN or infinity: {bad} entries in chunk {number} "
                    f"({self._place(number)}). Replace them, or leave these rows out."
                )

    def _place(self, number: int) -> str:
        first = sum(self.heights[:number])
        return f"rows {first} to {first + self.heights[number] - 1}"


class BlocksAtHand(BlockDesign):
    """The same for small blocks in this process, where sending them out would take longer.

    Blocks are treated one by one and joined in the same tree, so that not a bit differs. `beside`
    are the larger blocks that the rows belong to.
    """

    def __init__(
        self, blocks: Sequence[Any], heights: Sequence[int], width: int, beside: Sequence[Piece]
    ) -> None:
        super().__init__(blocks, heights, width)
        self._larger = tuple(beside)

    def _answers(self, questions: Sequence[Question]) -> list[tuple[Any, Any]]:
        look, rows = looked_at(questions), [mine for each in questions for mine in each.rows]
        pieces = piece_by_piece(rows) if rows else repeat(())
        with single_threaded():
            found = [
                look(as_design(aligned(block), in_stretches=True), *mine)
                for block, mine in zip(self._blocks, pieces, strict=bool(rows))
            ]
        sums = join([sums for _, sums in found], combined(questions), delayed_=False)
        self._checked(sums)
        return [
            (
                self._at_hand([new[number] for new, _ in found]) if question.width else None,
                sums[number],
            )
            for number, question in enumerate(questions)
        ]
