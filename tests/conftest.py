"""What all tests share."""

import os
import signal
import subprocess
import sys

import pytest
import scipy.linalg  # noqa: F401  (loads the linear algebra whose threads are limited below)
from hypothesis import settings
from threadpoolctl import threadpool_limits

# The same commit gets the same verdict; CLUSTRUCT_EXAMPLES=1000 seeks new examples, another lot
# each time.
settings.register_profile("compiled", deadline=None, derandomize=True)
settings.register_profile("uncompiled", deadline=None, derandomize=True, max_examples=20)
settings.load_profile("uncompiled" if "CLUSTRUCT_UNCOMPILED" in os.environ else "compiled")
if "CLUSTRUCT_EXAMPLES" in os.environ:
    wanted = int(os.environ["CLUSTRUCT_EXAMPLES"])
    settings.register_profile("seeking", deadline=None, max_examples=wanted)
    settings.load_profile("seeking")

# What a shell script starts in the background ignores Ctrl-C, and so would all that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Small problems in one thread: on a busy machine threads wait for each other most of the time.

    Tests of what threads may change ask for their number themselves.
    """
    with threadpool_limits(1):
        yield


@pytest.fixture(autouse=True)
def no_figures_left():
    """Figures that a test or an example opened are closed, if there is anything to close."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def run_python(tmp_path):
    """A function that runs code, or a module with arguments, in a Python process of its own."""

    def run(*args, uncompiled=False, env=None, **kwargs):
        command = ["-c", *args] if len(args) == 1 else list(args)
        variables = {k: v for k, v in os.environ.items() if k != "CLUSTRUCT_UNCOMPILED"}
        if uncompiled:
            variables["CLUSTRUCT_UNCOMPILED"] = "1"
        return subprocess.run(
            [sys.executable, *command],
            env={**variables, **(env or {})},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            **kwargs,
        )

    return run
