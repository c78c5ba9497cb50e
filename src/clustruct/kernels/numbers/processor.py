"""What the processor can do."""

import cython

if not cython.compiled:

    def avx2_is_there():
        """Whether there is a C compiler that knows; without one, nothing was compiled."""
        return False


def has_avx2():
    """Whether the processor has vectors of four doubles, as far as the compiler can ask."""
    return bool(avx2_is_there())
