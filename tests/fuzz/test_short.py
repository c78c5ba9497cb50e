"""A short run of the fuzzer with a fixed seed: nothing new fails."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.cases import NAMES, load_target

SEED = 19


@pytest.mark.skipif(sys.platform != "linux", reason="limits and signals are those of Linux")
def test_nothing_new_fails():
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "fuzz", "--short", "--seed", str(SEED), "--jobs", "1"],
        cwd=root,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, f"{done.stdout[-8000:]}\n{done.stderr[-3000:]}"
    for name in NAMES:
        assert f"| {name} | {load_target(name).short:,} |" in done.stdout
