"""Defaults of older versions, for the configurations of old recordings."""

import copy
from collections.abc import Iterator, Mapping

from hil.config.replaced import renamed
from hil.config.values import TomlTable


def as_it_meant(table: Mapping[str, object]) -> dict[str, object]:
    """Complete the configuration of an old recording with the defaults of its version.

    A sigmoid without `law` was the unscaled one, and the first of several force channels in the
    file was controlled; steps in contact were taken whole; wires under stress held it over a
    period. New recordings have these keys. Tables get their present names.
    """
    made = renamed(copy.deepcopy(dict(table)))
    for activation in _activations(made):
        if activation.get("kind") == "sigmoid":
            activation.setdefault("law", "unscaled")
        elif activation.get("kind") == "sma":
            activation.setdefault("coupling", "held")
    forces, loop = _force_channels(made), made.get("loop")
    if len(forces) > 1 and isinstance(loop, dict):
        loop.setdefault("force_channel", forces[0])
    for model in ("model", "plant"):
        part = made.get(model)
        if isinstance(part, dict) and isinstance(ground := part.get("ground"), dict):
            ground.setdefault("pieces_max", 1)
    return made


def _tables(table: object, key: str) -> Iterator[TomlTable]:
    """Yield all subtables of a key."""
    below = table.get(key) if isinstance(table, dict) else None
    if isinstance(below, dict):
        yield from (value for value in below.values() if isinstance(value, dict))


def _activations(table: dict[str, object]) -> Iterator[dict[str, object]]:
    for model in ("model", "plant"):
        for array in _tables(table.get(model), "arrays"):
            activation = array.get("activation")
            of_cells = activation if isinstance(activation, list) else [activation]
            yield from (one for one in of_cells if isinstance(one, dict))


def _force_channels(table: dict[str, object]) -> list[str]:
    return [
        name
        for device in _tables(table, "devices")
        if device.get("kind") == "nidaq" and isinstance(device.get("channels"), dict)
        for name, channel in device["channels"].items()
        if isinstance(channel, dict) and channel.get("kind", "force") == "force"
    ]
