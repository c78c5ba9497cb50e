"""Free memory, within the limits that this process has."""

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
# A limit and what is used of it, in the second version of control groups and in the first.
LIMITS = (
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)


def free_bytes() -> float:
    """Free memory, of the machine or of the limits of this process; infinite if not known."""
    return max(0.0, min(_of_machine(), *_of_groups(), _of_process()))


def _of_machine() -> float:
    if find_spec("psutil") is not None:
        import psutil

        return float(psutil.virtual_memory().available)
    names = os.sysconf_names if hasattr(os, "sysconf_names") else {}
    if "SC_AVPHYS_PAGES" in names:
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return float("inf")


def _of_groups() -> Iterator[float]:
    """What is free in control groups, such as those of containers."""
    yield float("inf")
    for most, used in LIMITS:
        limit, taken = _number(CGROUPS / most), _number(CGROUPS / used)
        if limit is not None and taken is not None:
            yield float(limit - taken + _cached((CGROUPS / used).with_name("memory.stat")))


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # as in "max", or where there are no such groups
        return None


def _cached(path: Path) -> int:
    """Bytes of files in memory, which the system drops when it needs room."""
    try:
        found = dict(line.split(maxsplit=1) for line in path.read_text().splitlines())
        return int(found.get("inactive_file") or found.get("total_inactive_file") or 0)
    except (OSError, ValueError):
        return 0


def _of_process() -> float:
    """What the limit on the address space of this process leaves."""
    try:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (ImportError, OSError, ValueError, IndexError):  # as on Windows
        return float("inf")
    if limit == resource.RLIM_INFINITY:
        return float("inf")
    return float(limit - pages * resource.getpagesize())
