"""The CUDA kernel of k-means of rows on the host, where each thread of a GPU is a fibre."""

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import clustruct
from clustruct.grouping.cuda import Limits

HERE = Path(__file__).parent
SOURCES = Path(clustruct.__file__).parent / "grouping"


def build(folder):
    """Compile the kernel for the host; skips the test where that is not possible."""
    compiler = shutil.which("g++")
    if compiler is None or sys.platform != "linux":
        pytest.skip("the kernel is compiled for the host by g++ on Linux")
    library = folder / "rows.so"
    flags = ["-std=c++20", "-O1", "-U_FORTIFY_SOURCE", "-shared", "-fPIC", f"-I{SOURCES}"]
    command = [compiler, *flags, str(HERE / "host.cpp"), "-o", str(library)]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=240)
    return ctypes.CDLL(str(library))


class HostGpu:
    """Runs the kernel on NumPy arrays, with a given shared memory and order of threads."""

    def __init__(self, library, *, shared=227 << 10, descending=False, processors=2):
        self.library = library
        self.size = Limits(processors, shared, shared + 1024, 1 << 30)
        self.descending = descending
        self.launches = []

    def limits(self):
        return self.size

    def empty(self, shape, dtype):
        """Nothing is as it should be unless the kernel writes it."""
        array = np.empty(shape, dtype)
        array.view(np.uint8)[...] = 0x5A
        return array

    def address(self, array):
        return array.ctypes.data

    def steps(self, array):
        return tuple(step // array.itemsize for step in array.strides)

    def run(self, launch, words):
        sent = (ctypes.c_int64 * len(words))(*words)
        self.launches.append(launch)
        defined = int(launch.source.split(maxsplit=3)[2])
        ended = self.library.run(sent, defined, launch.blocks, launch.threads, self.descending)
        assert ended == 0, "threads of the kernel wait for each other for ever"
