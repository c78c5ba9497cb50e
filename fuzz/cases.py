"""What a case, a target and a fault are.

A case is a recipe: a dictionary that JSON can hold and that says all there is to know about an
input, so that a recipe in a file is a test. A target draws recipes, checks them, and offers smaller
ones where a check has failed.
"""

import json
import traceback
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

Recipe = dict[str, Any]
Random = np.random.Generator

MIB = 1 << 20
REGRESSIONS = Path(__file__).parents[1] / "tests" / "regressions"
OUT_OF_MEMORY = "takes memory beyond its limit"
# In the order in which they run: a fault of a kernel would show in everything that follows.
NAMES = ("kernels", "fits", "tables", "models", "commands", "reports")


class Fault(Exception):
    """A promise that did not hold.

    `what` names the promise, in words that are the same for every case that breaks it.
    """

    def __init__(self, what: str, details: str = "") -> None:
        super().__init__(f"{what}: {details}" if details else what)
        self.what = what


@dataclass(frozen=True)
class Failure:
    """A case that failed: where it was drawn, what happened, and how to have it again."""

    target: str
    index: int
    recipe: Recipe
    what: str  # the same for failures of the same cause
    details: str


def no_preparation() -> None:
    """For targets that need nothing before the first case."""


@dataclass(frozen=True)
class Target:
    """A subject of fuzzing.

    draw: makes a recipe from random numbers.
    check: runs a case, and returns in a word or two how it ended; raises `Fault` where a promise
        does not hold. Any other exception is a fault as well.
    smaller: recipes that are simpler than one that failed, the boldest first.
    prepare: is called once, before the first case.
    share: of the time of a run.
    short: cases of the run in ``make test``.
    seconds, memory: limits of a case, in processor time and in bytes beyond what is loaded.
    most_jobs: workers at most, where they would be in each other's way.
    """

    name: str
    draw: Callable[[Random], Recipe]
    check: Callable[[Recipe], str]
    smaller: Callable[[Recipe], Iterator[Recipe]]
    share: float
    short: int
    prepare: Callable[[], None] = no_preparation
    seconds: float = 60.0
    memory: int = 1024 * MIB
    most_jobs: int = 1024


def load_target(name: str) -> Target:
    """The target of that name; its module is imported now."""
    target: Target = import_module(f"fuzz.{name}").TARGET
    return target


def draw_case(target: Target, seed: int, index: int) -> Recipe:
    """The recipe of a case, which depends on seed, target and index only."""
    return target.draw(np.random.default_rng([seed, zlib.crc32(target.name.encode()), index]))


def run_case(target: Target, recipe: Recipe) -> tuple[str, str, str]:
    """How a case ended: the outcome, what failed (or ``""``), and details of the failure."""
    try:
        return target.check(recipe), "", ""
    except Fault as fault:
        return "failed", fault.what, str(fault)
    except MemoryError:
        return "failed", OUT_OF_MEMORY, traceback.format_exc()
    except Exception as error:
        return "failed", f"{type(error).__name__} {place_of(error)}", traceback.format_exc()


def place_of(error: BaseException) -> str:
    """The innermost function of this package in a traceback, else the innermost of all."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "clustruct" in Path(frame.filename).parts]
    last = (ours or frames)[-1]
    return f"in {Path(last.filename).stem}.{last.name}"


def keep_failure(failure: Failure, seed: int, folder: Path = REGRESSIONS) -> Path:
    """Write a failure to a file that the tests replay, and return its name."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "target": failure.target,
        "what": failure.what,
        "found": {"seed": seed, "index": failure.index},
        "recipe": failure.recipe,
    }
    mark = zlib.crc32(json.dumps(failure.recipe, sort_keys=True).encode())
    path = folder / f"{failure.target}-{mark:08x}.json"
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return path


def read_failure(path: Path) -> Failure:
    """A failure that was kept."""
    content = json.loads(path.read_text(encoding="utf-8"))
    found = content["found"]
    return Failure(content["target"], found["index"], content["recipe"], content["what"], "")
