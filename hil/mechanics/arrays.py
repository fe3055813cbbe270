"""Names of arrays and vectors in annotations; shapes are in docstrings."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.uint8]
Indices = NDArray[np.int64]
Vector = tuple[float, float, float]
