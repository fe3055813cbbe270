"""Annotation of arrays of float; their shapes are in docstrings."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
