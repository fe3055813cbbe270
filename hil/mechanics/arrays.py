"""Names of arrays and vectors in annotations; shapes are in docstrings."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.uint8]
Indices = NDArray[np.int64]
Columns = dict[str, NDArray[Any]]  # of a recording, by name: each of its own type
Vector = tuple[float, float, float]
