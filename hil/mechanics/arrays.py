"""Names of arrays and vectors in annotations; shapes are in docstrings. Types of records."""

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.uint8]
Indices = NDArray[np.int64]
Vector = tuple[float, float, float]
Records = NDArray[np.record]


def record_type(*numbers: str, **parts: np.dtype[np.record] | int) -> np.dtype[np.record]:
    """The type of a record with these numbers, then these parts: other records, or n numbers.

    Kernels read `record.name`, where an array would be read by an index.

    Raises
    ------
    ValueError
        Records of NumPy have an attribute of that name, which would hide the number.
    """
    if hidden := [name for name in (*numbers, *parts) if hasattr(np.record, name)]:
        raise ValueError(f"{hidden}: attributes of every record")
    fields: list[Any] = [(name, float) for name in numbers]
    for name, part in parts.items():
        fields.append((name, float, (part,)) if isinstance(part, int) else (name, part))
    return cast(np.dtype[np.record], np.dtype((np.record, fields)))
