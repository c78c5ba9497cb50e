"""How much memory there is, and how to say so."""

import os
from importlib.util import find_spec

import numpy as np

__all__ = ["free_bytes", "size_in_words"]


def free_bytes() -> float:
    """Memory that is free; infinite where nobody knows."""
    if find_spec("psutil") is not None:
        import psutil

        return float(psutil.virtual_memory().available)
    names = os.sysconf_names if hasattr(os, "sysconf_names") else {}
    if "SC_AVPHYS_PAGES" in names:
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return np.inf


def size_in_words(n_bytes: float) -> str:
    """Bytes as people read them."""
    return f"{n_bytes / 1e9:.3g} GB"
