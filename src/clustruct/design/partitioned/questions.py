"""What is asked of a pass over blocks, and how a block answers several questions at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from clustruct.design.partitioned.pieces import Pieces

__all__ = ["Question", "combined", "kept", "looked_at"]


@dataclass(frozen=True, eq=False)
class Question:
    """A function of blocks, and what to do with what it returns.

    Attributes
    ----------
    function : callable
        Takes the design of a block and what belongs to its rows; returns new rows, or None, and
        what is to be added up, or None.
    rows : tuple of Pieces
        What belongs to the rows.
    combine : callable or None
        Puts together what is to be added up, of two blocks; None where nothing is.
    width : int
        About how many columns the new rows have; 0 where there are none.
    """

    function: Callable[..., tuple[Any, Any]]
    rows: tuple[Pieces, ...]
    combine: Callable[[Any, Any], Any] | None
    width: int


def looked_at(
    questions: Sequence[Question],
) -> Callable[..., tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """A function of blocks that answers all questions: new rows, and what is to be added up."""
    parts = tuple((question.function, len(question.rows)) for question in questions)

    def answer(X: Any, *rows: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        answers, first = [], 0
        for function, count in parts:
            answers.append(function(X, *rows[first : first + count]))
            first += count
        new, sums = zip(*answers, strict=True)
        return new, sums

    return answer


def combined(questions: Sequence[Question]) -> Callable[[Any, Any], tuple[Any, ...]]:
    """How what is to be added up is put together, each by its own rule."""
    rules = tuple(question.combine for question in questions)

    def combine(a: Any, b: Any) -> tuple[Any, ...]:
        return tuple(
            None if rule is None else rule(x, y) for rule, x, y in zip(rules, a, b, strict=True)
        )

    return combine


def kept(number: int) -> Callable[[Any], Any]:
    """The new rows of one of the questions, of what a block answered."""
    return lambda answer: answer[0][number]
