"""Figures on the page."""

from typing import NamedTuple

from clustruct.figures.marks import Figure
from clustruct.figures.svg import render

__all__ = ["Picture"]


class Picture(NamedTuple):
    """A figure on the page: its title, the SVG and a remark."""

    title: str
    svg: str
    remark: str = ""

    @classmethod
    def of(cls, figure: Figure, remark: str = "", title: str = "") -> "Picture":
        """Draw a figure, under its own title if none is given; tell in the remark what it omits."""
        note = f"{figure.note[0].upper()}{figure.note[1:]}." if figure.note else ""
        return cls(title or figure.title, render(figure), f"{remark} {note}".strip())
