"""What is written after an option becomes a value, or a complaint that names it."""

import argparse
import re

import pytest

from clustruct.cli import options


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("clusters", "auto", None),
        ("clusters", "5", [5]),
        ("clusters", "2:4", [2, 3, 4]),
        ("clusters", "2,8,4", [2, 8, 4]),
        ("nonzero", "auto", None),
        ("nonzero", "all", 0),
        ("nonzero", "7", 7),
        ("positive", "3", 3),
        ("strength", "auto", None),
        ("strength", "0", 0.0),
        ("price", "auto", "auto"),
        ("price", "0.5", 0.5),
        ("resamples", "2", 2),
        ("non_negative", "1e-3", 1e-3),
    ],
)
def test_text_becomes_a_value(kind, text, value):
    assert getattr(options, kind)(text) == value


@pytest.mark.parametrize(
    ("kind", "texts", "complaint"),
    [
        ("clusters", ("0", "5:2", "2:", "two", "2,,3", ""), "is none of: auto, 5, 2:15 or 2,4,8"),
        ("nonzero", ("-1", "none", "2.5"), "is no whole number"),
        ("positive", ("0", "-1", "1.5", "x"), "is no whole number of at least 1"),
        ("strength", ("-1", "nan", "inf", "x"), "is no number of at least 0"),
        ("price", ("0", "0.0"), "with 0, every level is a group"),
        ("price", ("-1", "cheap"), "is no number of at least 0"),
        ("resamples", ("0", "1"), "is no number of at least 2"),
        ("resamples", ("-3", "many"), "is no whole number"),
    ],
)
def test_other_text_is_refused(kind, texts, complaint):
    for text in texts:
        with pytest.raises(argparse.ArgumentTypeError, match=re.escape(complaint)):
            getattr(options, kind)(text)
