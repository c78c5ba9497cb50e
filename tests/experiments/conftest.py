"""Small experiments to run in the tests."""

import time

import numpy as np
import pytest

from clustruct.experiments.comparison import Comparison, Figure
from clustruct.experiments.experiment import Experiment, Measurement, Presentation, values_in

CELLS = ({"n": 1}, {"n": 2})


def measure(cell, seed):
    """Numbers that depend on cell and seed alone."""
    time.sleep(float(cell.get("wait", 0.0)))
    return {"errors": {"a": float(np.random.default_rng(seed).random()) + cell["n"]}}


def fail(cell, seed):
    raise RuntimeError("it <b>broke</b>")


def lack():
    raise FileNotFoundError("the file is nowhere; get it from <somewhere>")


def present(rows):
    found = {f"n = {c['n']}": {"a": values_in(rows, c, "errors", "a")} for c in CELLS}
    paper = {"n = 1": {"a": Figure(1.5, 0.3, 50)}, "n = 2": {"a": Figure(9.0, 0.1, 50)}}
    comparison = Comparison("title <i>", "error", {"a": "A & B"}, found, paper)
    return Presentation([comparison], remarks=["a remark"])


@pytest.fixture
def make_experiment():
    """A function that makes a small experiment."""

    def make(name="small", *, wait=0.0, settings=None, run=measure, check=lambda: None):
        cells = tuple({**cell, "wait": wait} if wait else cell for cell in CELLS)
        measurement = Measurement(name, run, settings or {}, check)
        return Experiment(name, "A title <b>", "About", measurement, cells, 4, present, cells[:1])

    return make


@pytest.fixture
def broken():
    return fail


@pytest.fixture
def lacking():
    return lack
