"""A folder for the files of cases, in memory where there is such a one."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import cache


@cache
def folder() -> str:
    """The folder, which goes when the process that asked first ends."""
    memory = "/dev/shm"
    made = tempfile.mkdtemp(prefix="clustruct-fuzz-", dir=memory if os.path.isdir(memory) else None)
    at_end(lambda: shutil.rmtree(made, ignore_errors=True))
    return made


def at_end(function: Callable[[], None]) -> None:
    """Call a function when this process ends, and not when one of its children does."""
    owner = os.getpid()

    def call() -> None:
        if os.getpid() == owner:
            function()

    atexit.register(call)
