"""The machine and the versions that figures were computed with."""

import os
import platform
import re
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("clustruct", "numpy", "scipy", "scikit-learn", "sortedl1")


def environment(packages: Sequence[str] = PACKAGES) -> dict[str, Any]:
    """Date, commit, machine and versions."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "load": [round(load, 2) for load in os.getloadavg()] if hasattr(os, "getloadavg") else None,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: installed_version(name) for name in packages},
    }


def environment_line(facts: dict[str, Any]) -> str:
    """The facts as one line of text."""
    packages = ", ".join(f"{name} {number}" for name, number in facts["packages"].items() if number)
    commit = f", commit {facts['commit'][:10]}" if facts["commit"] else ""
    return (
        f"{facts['date']}{commit}; {facts['cpu']}, {facts['cores']} cores, {facts['system']}; "
        f"Python {facts['python']}, {packages}"
    )


def _cpu() -> str:
    """The model of the processor."""
    with suppress(OSError):
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        if found := re.search(r"^model name\s*:\s*(.*)$", text, flags=re.MULTILINE):
            return found[1].strip()
    return platform.processor() or "unknown"


def installed_version(package: str) -> str | None:
    """The version of a package; None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The commit, marked where the working tree differs from it; None outside a repository."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(Path(__file__).parent), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        return git("rev-parse", "HEAD") + (
            "+changes" if git("status", "--porcelain", "--untracked-files=no") else ""
        )
    except (OSError, subprocess.CalledProcessError):
        return None
