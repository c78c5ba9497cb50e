"""From a wheel in an environment of its own to an answer."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.journeys.test_csv import write_flats
from tests.test_packaging import build_wheel

QUICK = ("--clusters", "3", "--alpha", "0.01", "--nonzero", "all")


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="the folders of an environment are those of Unix")
def test_from_a_wheel_to_an_answer(terminal):
    (terminal / "build").mkdir()
    wheel, _ = build_wheel(terminal / "build")
    home = terminal / "home"
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    python = str(home / "bin" / "python")
    command = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(command, check=True)
    (folder,) = (home / "lib").glob("python*/site-packages")
    # What clustruct requires is taken from here; clustruct itself is not, being elsewhere.
    (folder / "others.pth").write_text(sysconfig.get_paths()["purelib"])
    write_flats(terminal)
    words = ["fit", "flats.csv", "--target", "rent", *QUICK, "--out", "m", "--report", "r.html"]
    for arguments in (words, ["predict", "m", "flats.csv", "--out", "p.csv"]):
        done = subprocess.run(
            [str(home / "bin" / "clustruct"), *arguments],
            cwd=terminal.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "warning" not in done.stderr
    assert "<html" in Path(terminal / "r.html").read_text(encoding="utf-8")
    code = "import clustruct, clustruct.kernels as k; print(clustruct.__file__, k.COMPILED)"
    told = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.split() == [str(folder / "clustruct" / "__init__.py"), "True"]
