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
    def of(cls, title: str, figure: Figure, remark: str = "") -> "Picture":
        """Draw a figure; what is left out of it is told in the remark."""
        note = f"{figure.note[0].upper()}{figure.note[1:]}." if figure.note else ""
        return cls(title, render(figure), f"{remark} {note}".strip())
