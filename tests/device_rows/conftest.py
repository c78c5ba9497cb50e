"""GPUs for tests of k-means of rows."""

import pytest

from tests.device_rows.host import build


@pytest.fixture(scope="session")
def host_library(tmp_path_factory):
    """The CUDA kernel, compiled for the host."""
    return build(tmp_path_factory.mktemp("device_rows"))


@pytest.fixture(params=["torch", "cupy"])
def cuda(request):
    """A library with a GPU."""
    library = pytest.importorskip(request.param)
    count = library.cuda.device_count if request.param == "torch" else _count_by_cupy
    if not count():
        pytest.skip("no CUDA GPU here")
    return library


def _count_by_cupy():
    import cupy

    try:
        return cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError:
        return 0
