"""Both renderers draw the same description: every mark, on the same axes, texts escaped."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure as Canvas

from clustruct.figures import mpl
from clustruct.figures.groups import comparison_figure
from clustruct.figures.marks import (
    Across,
    Area,
    Axis,
    Bars,
    Cells,
    Dots,
    Figure,
    Line,
    Segments,
    Text,
    counted_ticks,
)
from clustruct.figures.numbers import log_scale, nice_ticks, shown, tick_texts
from clustruct.figures.svg import render
from clustruct.figures.weights import rows_figure

X, Y = np.array([1.0, 2.0, 3.0]), np.array([4.0, 1.0, 2.0])
MARKS = {
    "line": Line(X, Y, dash="--", label="a line"),
    "dots": Dots(X, Y, np.array([1.0, 2.0, 3.0]), titles=["a", "b", "c"], tone=9, shape=1),
    "ring": Dots(X, Y, hollow=True, tone="chosen"),
    "area": Area(X, np.array([0.0, np.nan, 1.0]), Y),
    "bars": Bars(X, [-1.0, 0.0, 2.0], 0.5, [0, -1, "ghost"]),
    "segments": Segments(np.stack([X, Y, Y, X], axis=1), opacity=0.5),
    "across": Across(2.5, vertical=True, tone="soft"),
    "text": Text(1.0, 4.0, "a < b costs $3 or $4", tone=2, bold=True),
    "cells": Cells(np.arange(3.0), np.arange(4.0), np.full((3, 2), 0.5), "share"),
}


def parsed(figure):
    return ElementTree.fromstring(render(figure))


ELEMENTS = {
    "line": ["circle", "text", "polyline"],  # the first two are its entry in the legend
    "dots": ["circle"] * 3,
    "ring": ["circle"] * 3,
    "area": ["polygon"],
    "bars": ["rect"] * 3,
    "segments": ["line"] * 3,
    "across": ["line"],
    "text": ["text"],
    "cells": ["rect"] * 6,
}


@pytest.mark.parametrize("name", MARKS)
def test_every_mark_is_drawn_by_both(name):
    empty = Axis(ticks=(), limits=(0.0, 5.0))
    figure = Figure("t", [MARKS[name]], empty, empty)
    assert [element.tag for element in parsed(figure)] == ELEMENTS[name]
    canvas = Canvas()
    ax = canvas.subplots()
    before = len(ax.get_children())
    mpl.draw(ax, figure)
    assert len(ax.get_children()) > before
    canvas.draw_without_rendering()


def circles(svg):
    return np.array(
        [[float(one.get(key)) for key in ("cx", "cy")] for one in svg if "cx" in one.attrib]
    )


@pytest.mark.parametrize("log", [False, True])
def test_dots_lie_where_their_values_are(log):
    y = np.array([1.0, 10.0, 100.0])
    svg = parsed(Figure("t", [Dots([0.0, 1.0, 2.0], y)], y=Axis(log=log)))
    found = circles(svg)
    places = np.log10(y) if log else y
    expected = np.interp(places, places[[0, 2]], found[[0, 2], 1])
    np.testing.assert_allclose(found[:, 1], expected, atol=0.1)
    assert found[0, 1] > found[2, 1], "larger values are higher"
    assert "100" in [text.text for text in svg.iter("text")]


def test_dots_tell_whose_they_are_and_names_are_escaped():
    chart = render(rows_figure("<i>", [("<b>", [1.0, -2.0])], ["one", "two"], "weight"))
    assert "<title>two: -2</title>" in chart
    assert "<b>" not in chart
    assert "<i>" not in chart
    assert chart.count("<circle") == 4  # two in the legend
    assert re.findall(r'class="dot (c\d)"', chart)[:2] == ["c0", "c1"]


def test_ticks_with_names_get_the_room_they_need():
    short = parsed(Figure("t", [Dots([1.0], [0.0])], y=Axis(ticks=[(0.0, "a")])))
    long = parsed(Figure("t", [Dots([1.0], [0.0])], y=Axis(ticks=[(0.0, "a long name")])))
    assert circles(long)[0, 0] > circles(short)[0, 0]


def test_bars_of_a_comparison_are_as_long_as_what_they_remove():
    svg = parsed(
        comparison_figure([("one", 0.5, False), ("ours", 0.25, True), ("bad", -9.0, False)])
    )
    bars = [one for one in svg if one.tag == "rect"]
    lengths = [float(bar.get("width")) for bar in bars]
    np.testing.assert_allclose(np.array(lengths) / lengths[0], [1.0, 0.5, 0.4], atol=0.01)
    assert [bar.get("class").split()[1] for bar in bars] == ["ghost", "main", "ghost"]
    assert "-900.0%" in "".join(svg.itertext())


def test_panels_share_their_axes_and_are_named_once():
    figures = [Figure(f"panel {k}", [Line(X, Y + k, label="a")]) for k in range(3)]
    canvas = Canvas()
    mpl.draw_panels(canvas, figures, "x", "y", rows=2)
    visible = [ax for ax in canvas.axes if ax.get_visible()]
    assert [ax.get_title() for ax in visible] == ["panel 0", "panel 1", "panel 2"]
    assert len({ax.get_ylim() for ax in visible}) == 1
    assert (canvas.get_supxlabel(), canvas.get_supylabel()) == ("x", "y")


def test_maps_have_one_scale_of_colours():
    canvas = Canvas()
    mpl.draw_panels(
        canvas, [Figure("one", [MARKS["cells"]]), Figure("two", [MARKS["cells"]])], "", ""
    )
    assert len(canvas.axes) == 3
    assert canvas.axes[-1].get_ylabel() == "share"


def test_of_many_ticks_some_are_written():
    assert counted_ticks(["1", "2", "3"]) == [(0.0, "1"), (1.0, "2"), (2.0, "3")]
    assert [text for _, text in counted_ticks([str(k) for k in range(30)], 12)] == [
        str(k) for k in range(0, 30, 3)
    ]


def test_only_positive_values_that_differ_much_are_drawn_logarithmically():
    assert log_scale(1.0, 100.0)
    assert not log_scale(1.0, 10.0)
    assert not log_scale(-1.0, 100.0)


# ---- Numbers on axes.


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (0.0, 1.0, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (-3.0, 12.0, ["-2.5", "0.0", "2.5", "5.0", "7.5", "10.0"]),
        (0.00741864, 0.00741883, ["0.00741865", "0.00741870", "0.00741875", "0.00741880"]),
        (0.0, 4e7, ["0", "1.00e+07", "2.00e+07", "3.00e+07", "4.00e+07"]),
    ],
)
def test_ticks_are_round_and_told_apart(low, high, texts):
    assert tick_texts(nice_ticks(low, high)) == texts


def test_counts_have_whole_ticks():
    assert nice_ticks(0.0, 3.0, whole=True) == [0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (1234567.0, "1.23e+06"), (0.5, "0.5"), (-12.3456, "-12.3"), (1e-5, "1.00e-05")],
)
def test_numbers_as_people_read_them(value, text):
    assert shown(value) == text
