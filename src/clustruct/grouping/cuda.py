"""CUDA kernels for arrays of torch and CuPy: compiled when they are first used, then kept.

CuPy compiles for its own arrays. For tensors torch does if it is new enough, CuPy otherwise, so
that users of either need not have the other. Neither is imported before there is an array of it.
"""

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from clustruct.arrays import Array

# What all GPUs have.
LEAST_SHARED = 48 << 10
OLD_TORCH = (
    "K-means of the rows of a tensor on a GPU needs CuPy, or a newer torch (2.11 will do), to "
    "compile the kernel. `pip install --upgrade torch` or `pip install cupy-cuda13x` (of your "
    "version of CUDA) installs either."
)


class Limits(NamedTuple):
    """Multiprocessors; bytes of shared memory for a block and for all on one, and of memory."""

    processors: int
    block_shared: int
    shared: int
    memory: int


class Launch(NamedTuple):
    """The text of a CUDA program, the name of its kernel, and how that is to run."""

    source: str
    kernel: str
    blocks: int
    threads: int
    shared_bytes: int


class Gpu(Protocol):
    """What a kernel needs to know and to do where an array lies."""

    def limits(self) -> Limits:
        """The size of the GPU."""

    def empty(self, shape: tuple[int, ...], dtype: str) -> Array:
        """An array of any content on the GPU."""

    def address(self, array: Array) -> int:
        """Where the first entry of an array lies."""

    def steps(self, array: Array) -> tuple[int, ...]:
        """How many entries the neighbours along each axis are apart."""

    def run(self, launch: Launch, words: Sequence[int]) -> None:
        """Run a kernel, whose only argument points to integers of 64 bits."""


def lies_on_gpu(x: Array) -> bool:
    """Whether an array is one of torch or CuPy on an NVIDIA GPU."""
    library = type(x).__module__.partition(".")[0]
    if library == "torch":
        return bool(x.is_cuda) and import_module("torch").version.hip is None
    return library == "cupy" and not import_module("cupy").cuda.runtime.is_hip


def gpu_of(x: Array) -> Gpu:
    """The GPU where an array lies, by way of the library of the array."""
    return TorchGpu(x) if type(x).__module__.partition(".")[0] == "torch" else CupyGpu(x)


class CupyGpu:  # pragma: no cover (needs a GPU)
    """A GPU with arrays of CuPy."""

    def __init__(self, x: Array) -> None:
        self.cupy = import_module("cupy")
        self.device = x.device

    def limits(self) -> Limits:
        """The size of the GPU."""
        known = self.device.attributes
        return Limits(
            known["MultiProcessorCount"],
            known["MaxSharedMemoryPerBlockOptin"],
            known["MaxSharedMemoryPerMultiprocessor"],
            self.device.mem_info[1],
        )

    def empty(self, shape: tuple[int, ...], dtype: str) -> Array:
        """An array of any content."""
        with self.device:
            return self.cupy.empty(shape, dtype=dtype)

    def address(self, array: Array) -> int:
        """Where the first entry of an array lies."""
        return int(array.data.ptr)

    def steps(self, array: Array) -> tuple[int, ...]:
        """How many entries the neighbours along each axis are apart."""
        return tuple(step // array.itemsize for step in array.strides)

    def run(self, launch: Launch, words: Sequence[int]) -> None:
        """Run a kernel on the present stream of CuPy."""
        with self.device:
            _run_by_cupy(launch, self.cupy.asarray(words, dtype="int64"))


class TorchGpu:  # pragma: no cover (needs a GPU)
    """A GPU with tensors of torch."""

    def __init__(self, x: Array) -> None:
        self.torch = import_module("torch")
        self.device = x.device

    def limits(self) -> Limits:
        """The size of the GPU."""
        known = self.torch.cuda.get_device_properties(self.device)
        return Limits(
            known.multi_processor_count,
            getattr(known, "shared_memory_per_block_optin", LEAST_SHARED),
            getattr(known, "shared_memory_per_multiprocessor", LEAST_SHARED),
            known.total_memory,
        )

    def empty(self, shape: tuple[int, ...], dtype: str) -> Array:
        """A tensor of any content."""
        return self.torch.empty(shape, dtype=getattr(self.torch, dtype), device=self.device)

    def address(self, array: Array) -> int:
        """Where the first entry of a tensor lies."""
        return int(array.data_ptr())

    def steps(self, array: Array) -> tuple[int, ...]:
        """How many entries the neighbours along each axis are apart."""
        return tuple(array.stride())

    def run(self, launch: Launch, words: Sequence[int]) -> None:
        """Run a kernel on the present stream of torch."""
        sent = self.torch.tensor(words, dtype=self.torch.int64, device=self.device)
        with self.torch.cuda.device(self.device):
            kernel: Any = None
            if hasattr(self.torch.cuda, "_compile_kernel"):
                kernel = _compiled_by_torch(launch.source, launch.kernel, self.device.index)
            if hasattr(kernel, "set_shared_memory_config"):
                kernel.set_shared_memory_config(launch.shared_bytes)
                grid, block = (launch.blocks, 1, 1), (launch.threads, 1, 1)
                kernel(grid, block, [sent], shared_mem=launch.shared_bytes)
                return
            try:
                cupy = import_module("cupy")
            except ImportError as error:
                raise ImportError(OLD_TORCH) from error
            self.torch.cuda.current_stream().synchronize()
            with cupy.cuda.Device(self.device.index):
                _run_by_cupy(launch, cupy.asarray(sent))
                cupy.cuda.get_current_stream().synchronize()


@cache  # pragma: no cover (needs a GPU)
def _compiled_by_torch(source: str, kernel: str, device: int) -> Any:
    """A kernel for a GPU; one that a new enough torch has compiled."""
    return import_module("torch").cuda._compile_kernel(source, kernel)


@cache  # pragma: no cover (needs a GPU)
def _compiled_by_cupy(source: str) -> Any:
    """The kernels of a program, for all GPUs."""
    return import_module("cupy").RawModule(code=source, options=("-std=c++17",))


def _run_by_cupy(launch: Launch, sent: Array) -> None:  # pragma: no cover (needs a GPU)
    """Run a kernel with an array of CuPy as its argument."""
    kernel = _compiled_by_cupy(launch.source).get_function(launch.kernel)
    kernel.max_dynamic_shared_size_bytes = launch.shared_bytes
    kernel((launch.blocks,), (launch.threads,), (sent,), shared_mem=launch.shared_bytes)
