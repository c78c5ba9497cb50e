"""The command line end to end, each call in a child process with limits on memory and time.

A call ends with status 0 and what it was to write, or with 1 or 2, a message, and nothing written.
Never is there a traceback, an unexpected error, or a character that a terminal would obey.
"""

import os
import re
import shutil
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np

import clustruct as cs
from clustruct.cli import main
from fuzz.cases import MIB, Fault, Random, Recipe, Target
from fuzz.damage import damaged, draw_damage, draw_hostility
from fuzz.driver import ending, limit_process
from fuzz.scratch import folder
from fuzz.shrinking import packed, shorter_contents, unpacked, without_parts

SECONDS, MEMORY = 60, 1536 * MIB
# What a terminal would take for more than text: control characters but for ends of lines and tabs.
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
USAGE, DATA = 2, 1

_OPTIONS: list[list[str]] = [
    ["--samples", "--clusters", "2"], ["--tasks", "kind"], ["--clusters", "2"],
    ["--clusters", "2:4"], ["--clusters", "0"], ["--clusters", "nan"], ["--loss", "huber"],
    ["--loss", "poisson"], ["--loss", "x"], ["--category", "kind"], ["--ordinal", "count"],
    ["--cyclic", "count"], ["--bins", "number=3"], ["--bins", "number=-1"], ["--text", "text"],
    ["--date", "day"], ["--number", "text"], ["--weights", "count"], ["--exposure", "count"],
    ["--offset", "number"], ["--missing", "refuse"], ["--scale", "none"], ["--alpha", "0.1"],
    ["--alpha", "-1"], ["--nonzero", "2"], ["--test-size", "0"], ["--test-size", "1.5"],
    ["--classification"], ["--regression"], ["--json"], ["--drop", "text"], ["--min-weight", "5"],
    ["--columns", "number", "count"], ["--encoding", "cp1252"], ["--encoding", "utf-16"],
    ["--encoding", "zip"], ["--price", "0.1"], ["--seed", "-1"], ["--report", "report.html"],
    ["--out-of-core", "yes"], ["--monotone", "count"], ["--stability", "4"],
]  # fmt: skip
_TARGETS = ["y", "y", "y", "y", "kind", "number", "missing", "nowhere", ""]


@cache
def _sound_table() -> bytes:
    import pandas as pd

    rng, n = np.random.default_rng(0), 40
    frame = pd.DataFrame(
        {
            "number": rng.standard_normal(n).round(3),
            "count": rng.integers(1, 6, n),
            "kind": rng.choice(["a", "b", "c"], n),
            "text": rng.choice(["good and bad", "fine", "very bad"], n),
            "day": pd.date_range("2024-01-01", periods=n).astype(str),
            "missing": np.where(rng.random(n) < 0.3, np.nan, 1.0),
        }
    )
    frame["y"] = (frame["number"] + (frame["kind"] == "a") + rng.standard_normal(n) * 0.1).round(3)
    return frame.to_csv(index=False).encode()


@cache
def _sound_model() -> bytes:
    """A model file of the sound table."""
    place = Path(folder()) / "sound"
    place.mkdir(exist_ok=True)
    (place / "table.csv").write_bytes(_sound_table())
    call = ["fit", str(place / "table.csv"), "--target", "y", "--category", "kind"]
    _in_child([*call, "--clusters", "2", "--out", str(place / "m.clustruct")], place)
    return (place / "m.clustruct").read_bytes()


def _prepare() -> None:
    """Load what every child needs, once."""
    import pandas  # noqa: F401
    import pyarrow.dataset  # noqa: F401
    import rich.table  # noqa: F401

    from clustruct.cli.commands import fit, predict, report, tariff  # noqa: F401

    warnings.simplefilter("ignore")
    _sound_model()


def _draw(rng: Random) -> Recipe:
    table, model = _sound_table(), _sound_model()
    edits = [
        draw_damage(rng) if rng.random() < 0.2 else draw_hostility(rng)
        for _ in range(int(rng.choice(3, p=[0.3, 0.5, 0.2])))
    ]
    table = damaged(table, edits)
    command = str(rng.choice(["fit", "fit", "fit", "predict", "predict", "report", "tariff"]))
    recipe: Recipe = {"command": command, "table": packed(table), "model": None, "options": []}
    if command == "fit":
        chosen = rng.choice(len(_OPTIONS), int(rng.integers(0, 4)), replace=False)
        target = ["--target", str(rng.choice(_TARGETS))]
        recipe["options"] = [target, ["--out", "out"], *(_OPTIONS[int(i)] for i in chosen)]
        return recipe
    broken = damaged(model, [draw_damage(rng)]) if rng.random() < 0.2 else None
    recipe["model"] = None if broken is None else packed(broken)
    choices = {
        "predict": [["--out", "out.csv"], ["--json"], ["--keep", "day"], ["--keep", "nowhere"]],
        "report": [["--out", "out"]],
        "tariff": [["--sql", "out"], ["--python", "out"], ["--csv", "out"], ["--reference", "x"]],
    }[command]
    kept = rng.random(len(choices)) < 0.4
    recipe["options"] = [option for option, keep in zip(choices, kept, strict=True) if keep]
    return recipe


def _check(recipe: Recipe) -> str:
    place = Path(folder()) / f"call-{os.getpid()}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    (place / "table.csv").write_bytes(unpacked(recipe["table"]))
    model = _sound_model() if recipe["model"] is None else unpacked(recipe["model"])
    (place / "m.clustruct").write_bytes(model)
    files = {
        "fit": ["table.csv"],
        "predict": ["m.clustruct", "table.csv"],
        "report": ["m.clustruct", "table.csv"],
        "tariff": ["m.clustruct"],
    }[recipe["command"]]
    given = [word for option in recipe["options"] for word in option]
    status, out, err = _in_child([recipe["command"], *files, *given], place)
    written = sorted(path.name for path in place.iterdir()) if place.exists() else []
    written = [name for name in written if name not in ("table.csv", "m.clustruct")]
    _judge(recipe["command"], status, out, err, written)
    if status == 0 and recipe["command"] == "fit":
        cs.load(place / "out")
    return f"{recipe['command']}: {status}"


def _judge(command: str, status: int, out: str, err: str, written: list[str]) -> None:
    told = f"{out[-300:]}\n{err[-1500:]}"
    if status < 0:
        raise Fault(f"{command} {ending(status)}", told)
    if "Traceback" in err or "unexpected " in err:
        error = re.search(r"unexpected (\w+)", err)
        raise Fault(f"{command}: {error[0] if error else 'a traceback'}", told)
    if status not in (0, DATA, USAGE):
        raise Fault(f"{command}: status {status}", told)
    # Predictions on standard output are data, with what columns were to be kept.
    if CONTROL.search(err) or (command != "predict" and CONTROL.search(out)):
        raise Fault(f"{command}: prints control characters", repr(told))
    if status and not err.strip():
        raise Fault(f"{command}: status {status} without a message", told)
    if status and written:
        raise Fault(f"{command}: leaves files behind although it failed", f"{written} {told}")
    if not status and any(name.startswith(".") or "tmp" in name for name in written):
        raise Fault(f"{command}: leaves a temporary file", f"{written}")


def _in_child(call: list[str], place: Path) -> tuple[int, str, str]:
    """Status, standard output and standard error of a call; a negative status is a signal."""
    streams = [Path(f"{place}.{name}") for name in ("out", "err")]
    child = os.fork()
    if child == 0:
        status = 70
        try:
            for number, stream in enumerate(streams, start=1):
                os.dup2(os.open(stream, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
            sys.stdout, sys.stderr = (
                os.fdopen(number, "w", encoding="utf-8", closefd=False) for number in (1, 2)
            )
            os.chdir(place)
            limit_process(MEMORY)
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            try:
                status = main(call)
            except SystemExit as end:
                status = int(end.code or 0)
            sys.stdout.flush()
            sys.stderr.flush()
        except BaseException:
            import traceback

            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(status)
    _, waited = os.waitpid(child, 0)
    texts = []
    for stream in streams:
        texts.append(stream.read_text(encoding="utf-8", errors="replace"))
        with suppress(OSError):
            stream.unlink()
    return os.waitstatus_to_exitcode(waited), texts[0], texts[1]


def _smaller(recipe: Recipe) -> Iterator[Recipe]:
    yield from ({**recipe, "options": some} for some in without_parts(recipe["options"]))
    lines = unpacked(recipe["table"]).split(b"\n")
    for some in without_parts(lines, least=1):
        yield {**recipe, "table": packed(b"\n".join(some))}
    if len(recipe["table"]) < 500:
        yield from ({**recipe, "table": text} for text in shorter_contents(recipe["table"]))


# A child has limits of its own; those of its parent are far beyond.
TARGET = Target(
    "commands", _draw, _check, _smaller, share=0.05, short=8, prepare=_prepare,
    seconds=2.0 * SECONDS, memory=4 * MEMORY,
)  # fmt: skip
