"""Try the package where it is a stranger: in environments of its own, away from its sources.

    wheel        a wheel and an sdist, each installed by itself
    wheels       the wheels of a release for this system, by cibuildwheel
    oldest       the tests with the oldest packages that are allowed
    nightly      the tests with pre-releases, and with nightly wheels if PIP_EXTRA_INDEX_URL says
                 where they are
    torch        the tests with torch tensors, on the processor or a GPU
    no-compiler  an installation without a C compiler

Environments are made anew in build/environments and kept for a look. Further arguments go to
pytest, or to cibuildwheel. Only the standard library is needed.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
import venv
import zipfile
from itertools import chain
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
FOLDER = PROJECT / "build" / "environments"
DIST = PROJECT / "dist"
JOURNEYS = "tests/journeys"
# What the journeys need of the package, and what runs them.
EXTRAS = "cli,plot,report"
RUNNERS = ("hypothesis", "pytest", "pytest-xdist")
# Newer ones do not go with the oldest allowed: matplotlib calls what they deprecate in pyparsing,
# and scikit-learn reads names of columns by what polars deprecates in 1.40 and lacks in 2.
OF_THAT_AGE = ("pyparsing<3.3", "polars<1.40")
TOOLS = PROJECT / ".ci" / "requirements.txt"
WHERE = "import clustruct, clustruct.kernels as k; print(k.COMPILED, clustruct.__file__)"


class Environment:
    """An environment that has nothing but pip, made anew."""

    def __init__(self, name: str) -> None:
        self.folder = FOLDER / name
        shutil.rmtree(self.folder, ignore_errors=True)
        print(f"\n== {name}: {self.folder.relative_to(PROJECT)}", flush=True)
        venv.create(self.folder, with_pip=True)
        self.bin = self.folder / ("Scripts" if os.name == "nt" else "bin")

    def run(self, *words: str, **env: str) -> None:
        """Run Python with these arguments in the root of the project; the sources stay unseen."""
        subprocess.run(self._command(words), cwd=PROJECT, env=_variables(env), check=True)

    def told(self, *words: str) -> str:
        """What such a run prints."""
        done = subprocess.run(
            self._command(words),
            cwd=self.folder,
            env=_variables({}),
            check=True,
            text=True,
            stdout=subprocess.PIPE,
        )
        return done.stdout.strip()

    def install(self, *requirements: str, **env: str) -> float:
        """Install with pip. Returns the seconds that it took."""
        start = time.perf_counter()
        words = ("-m", "pip", "--disable-pip-version-check", "install", "--quiet")
        self.run(*words, *requirements, **env)
        return time.perf_counter() - start

    def expect(self, *, compiled: bool) -> None:
        """Fail unless the installed package is found, with compiled kernels or without."""
        kernels, _, path = self.told("-W", "ignore", "-c", WHERE).partition(" ")
        if not Path(path).is_relative_to(self.folder) or kernels != str(compiled):
            sys.exit(f"Wanted compiled={compiled} in {self.folder}; found {kernels} at {path}.")

    def test(self, *words: str, **env: str) -> None:
        self.run("-m", "pytest", "-p", "no:cacheprovider", "-q", *words, **env)

    def _command(self, words: tuple[str, ...]) -> list[str]:
        return [str(self.bin / "python"), *words]


def _variables(more: dict[str, str]) -> dict[str, str]:
    hidden = ("PYTHONPATH", "CLUSTRUCT_UNCOMPILED")
    return {name: value for name, value in os.environ.items() if name not in hidden} | more


def wheel(arguments: list[str]) -> None:
    """Build a wheel and an sdist, check what they hold, and try each of them by itself."""
    shutil.rmtree(DIST, ignore_errors=True)
    builder = Environment("build")
    builder.install("-r", str(TOOLS))
    # The wheel is built from the sdist: what the sdist lacks, the wheel lacks, too.
    builder.run("-m", "build", "--outdir", str(DIST), str(PROJECT))
    files = sorted(DIST.iterdir())
    builder.run("-m", "twine", "check", "--strict", *map(str, files))
    for path in files:
        check_contents(path)
    lines = []
    for path in files:
        kind = "wheel" if path.suffix == ".whl" else "sdist"
        environment = Environment(kind)
        needed = environment.install(*_requirements(), *RUNNERS)
        alone = environment.install("--no-deps", str(path))
        environment.expect(compiled=True)
        environment.run("-m", "pip", "check")
        environment.test(*(arguments or [JOURNEYS]))
        size = path.stat().st_size / 1e6
        lines.append(f"{path.name}: {size:.2f} MB; installed in {alone:.0f} s, ")
        lines[-1] += f"what it needs in {needed:.0f} s; journeys pass"
    print("", *lines, sep="\n")


def _requirements(*more: str) -> list[str]:
    """What the package requires, with the extras of the journeys and further ones."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [project["optional-dependencies"][extra] for extra in (*EXTRAS.split(","), *more)]
    return sorted({*project["dependencies"], *chain.from_iterable(extras)})


def check_contents(path: Path) -> None:
    """Fail if a wheel or an sdist holds too little or too much."""
    if path.suffix == ".whl":
        names = zipfile.ZipFile(path).namelist()
        here = {name for name in names if name.startswith("clustruct/")}
        root = PROJECT / "src"
        info = f"{path.name.split('-')[0]}-{path.name.split('-')[1]}.dist-info/"
        stray = {name for name in names if name not in here and not name.startswith(info)}
    else:
        with tarfile.open(path) as archive:
            members = [member.name.partition("/")[2] for member in archive if member.isfile()]
        here = {name.removeprefix("src/") for name in members if name.startswith("src/clustruct/")}
        root = PROJECT / "src"
        stray = {name for name in members if re.search(r"\.(so|pyd|c|pyc)$|^(build|dist)/", name)}
        stray |= {"no tests"} if f"{JOURNEYS}/test_csv.py" not in members else set()
    tracked = subprocess.run(
        ["git", "ls-files", "src/clustruct"], cwd=PROJECT, text=True, stdout=subprocess.PIPE
    )
    if tracked.returncode == 0:
        expected = {name.removeprefix("src/") for name in tracked.stdout.split()}
    else:  # no checkout, but an unpacked sdist
        expected = {p.relative_to(root).as_posix() for p in (root / "clustruct").rglob("*.py")}
    compiled = {name for name in here if name.endswith((".so", ".pyd"))}
    kernels = {n for n in expected if re.fullmatch(r"clustruct/kernels/\w+/[^_]\w*\.py", n)}
    # And one module for what they share. Some are there a second time, for wide vectors.
    plain = [name for name in compiled if "/_avx2/" not in name]
    if path.suffix == ".whl" and len(plain) != len(kernels) + 1:
        sys.exit(f"{path.name} has {len(plain)} compiled modules for {len(kernels)} kernels.")
    missing, more = expected - here, (here - expected - compiled) | stray
    if missing or more:
        sys.exit(f"{path.name} lacks {sorted(missing)} and should not hold {sorted(more)}.")
    print(f"{path.name}: {len(here)} files of the package, {len(compiled)} of them compiled")


def wheels(arguments: list[str]) -> None:
    """Build and test the wheels of a release for this system."""
    builder = Environment("build")
    builder.install("-r", str(TOOLS))
    builder.run("-m", "cibuildwheel", "--output-dir", str(DIST), *arguments)


def oldest(arguments: list[str]) -> None:
    """Run the tests with the oldest packages that are allowed."""
    environment = Environment("oldest")
    bounds = [re.sub(r"\[.*\]", "", one).replace(">=", "==") for one in _requirements("dask")]
    print(*bounds, flush=True)
    constraints = environment.folder / "constraints.txt"
    constraints.write_text("\n".join([*bounds, *OF_THAT_AGE]), encoding="utf-8")
    # Test packages that ask for newer ones are left out; their tests are skipped.
    tools = ("dask[dataframe]", "numpydoc", "polars", "selenium", *RUNNERS)
    environment.install("-c", str(constraints), f".[{EXTRAS},dask]", *tools)
    environment.expect(compiled=True)
    environment.test("--numprocesses", "auto", *arguments)


def nightly(arguments: list[str]) -> None:
    """Run the tests with pre-releases of what the package requires."""
    environment = Environment("nightly")
    environment.install("--pre", "--upgrade", *_requirements(), *RUNNERS)
    environment.install(".[test]")
    environment.expect(compiled=True)
    environment.test("--numprocesses", "auto", *arguments)


def torch(arguments: list[str]) -> None:
    """Run the tests that need torch, which the other checks skip."""
    environment = Environment("torch")
    environment.install(".[test,gpu]")
    environment.expect(compiled=True)
    environment.test("--numprocesses", "auto", "-k", "torch or cuda", *arguments)


def no_compiler(arguments: list[str]) -> None:
    """Install with a compiler that always fails, and try the result."""
    environment = Environment("no-compiler")
    environment.install("--no-cache-dir", f".[{EXTRAS}]", *RUNNERS, CC="false")
    environment.expect(compiled=False)
    environment.test(*(arguments or [JOURNEYS]))


CHECKS = {
    "wheel": wheel,
    "wheels": wheels,
    "oldest": oldest,
    "nightly": nightly,
    "torch": torch,
    "no-compiler": no_compiler,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("check", choices=CHECKS)
    chosen, arguments = parser.parse_known_args()
    try:
        CHECKS[chosen.check](arguments)
    except subprocess.CalledProcessError as error:
        sys.exit(f"Failed with status {error.returncode}: {' '.join(map(str, error.cmd))}")


if __name__ == "__main__":
    main()
