"""The array types that signatures name."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# Positions of rows or columns, and the groups that they are in.
Indices = NDArray[np.intp]
Labels = NDArray[np.intp]
# How often each row is in a part of them.
Counts = NDArray[np.integer]
