"""Covariance of a model's parameters from the calibration records of a run."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hil.calibration.files import Source
from hil.identification import parameters
from hil.mechanics.arrays import Array


@dataclass(frozen=True)
class Known:
    """Parameters with a calibration record.

    Attributes
    ----------
    keys : names, as in `hil.identification.parameters`
    covariance : (P, P) array, covariance of their logarithms
    unsaid : keys of parameters that no record covers
    """

    keys: tuple[str, ...]
    covariance: Array
    unsaid: tuple[str, ...]


def known_of(tables: parameters.Tables, records: Sequence[tuple[Source, Sequence[str]]]) -> Known:
    """Covariance of the parameters from (record, paths of the tables that name it)."""
    offered = parameters.candidates(tables)
    keys: list[str] = []
    blocks: list[Array] = []
    for source, named_by in records:
        prefixes = [path.removeprefix("model.") for path in named_by if path.startswith("model.")]
        entries = [
            (i, f"{prefix}.{name}")
            for prefix in prefixes
            for i, name in enumerate(source.names)
            if f"{prefix}.{name}" in offered and f"{prefix}.{name}" not in keys
        ]
        at = [i for i, _ in entries]
        if not at:
            continue
        value = np.array([parameters.get(tables, key) for _, key in entries])
        blocks.append(source.covariance[np.ix_(at, at)] / np.outer(value, value))
        keys += [key for _, key in entries]
    C = np.zeros((len(keys), len(keys)))
    first = 0
    for block in blocks:
        last = first + len(block)
        C[first:last, first:last] = block
        first = last
    return Known(tuple(keys), C, tuple(key for key in offered if key not in keys))
