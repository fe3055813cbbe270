"""Shapes of the JSON texts in a recording, and the check of a text against its shape."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn

DEPTH_MAX = 16


@dataclass(frozen=True)
class Table:
    """An object of known keys, each with the shape of its value.

    Attributes
    ----------
    needs : keys that readers require if the table is not empty
    other : shape of every other key's value; None if it may be anything
    """

    known: Mapping[str, object] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    other: object = None


@dataclass(frozen=True)
class List:
    """A list, each of whose items has this shape."""

    item: object


TEXT, NUMBER, FLAG, PLAIN = "a text", "a number", "true or false", "a text, number or flag"
TEXTS = List(TEXT)
_FORCE_NEEDS = ("residual_white", "residual_rms_N", "residual_max_N", "nrmse", "vaf",
                "p_uncorrelated", "p_zero_mean")  # fmt: skip
_FLAGS = {"held": FLAG, "residual_white": FLAG}
_CLOCK_NEEDS = ("offset_s", "drift_ppm", "drift_ppm_standard_error", "residual_rms_s")
SUMMARY = Table({
    **dict.fromkeys(("outcome", "stopped_by", "error", "first_cause"), TEXT),
    **dict.fromkeys(("rows", "rows_lost", "loop_s", "duration_s", "waited_s"), NUMBER),
    "first_fault": TEXTS,
    "faults": TEXTS,
    "untold": TEXT,
    "calibration": Table(other=TEXTS),
    "causes": List(Table({"t_s": NUMBER, "text": TEXT}, ("t_s", "text"))),
    "timing": Table({"clock": TEXT, "verdict": TEXT, "kernel": Table(other=NUMBER)}, other=NUMBER),
    "room": Table({"from": TEXT}, other=NUMBER),
    "clocks": Table(other=Table(needs=_CLOCK_NEEDS, other=NUMBER)),
    "exchanges": Table(other=Table(other=NUMBER)),
    "force": Table(_FLAGS, _FORCE_NEEDS, NUMBER),
    "responses": List(Table(needs=("t_s", "cells_on"), other=NUMBER)),
    "failed_cells": List(
        Table({"cell": TEXT, "found": TEXT, "t_s": NUMBER}, ("cell", "found", "t_s"))
    ),
    "signals": Table(other=Table({"units": TEXT, **_FLAGS}, ("units",), NUMBER)),
})  # fmt: skip
SOFTWARE = Table(other=PLAIN)
_FILE = dict.fromkeys(("source", "file", "format", "sha256"), TEXT)
_COLUMN = dict.fromkeys(("to", "column", "file", "unit", "method"), TEXT)
_CLOCK = Table({"method": TEXT}, ("method", "offset_s"), NUMBER)
IMPORTED = Table(
    {
        **dict.fromkeys(("imported_utc", "by", "map"), TEXT),
        "measured_known": FLAG,
        "begins_s": NUMBER,
        "files": List(Table(_FILE | {"clock": _CLOCK}, (*_FILE, "clock"), NUMBER)),
        "columns": List(Table(_COLUMN, tuple(_COLUMN), NUMBER)),
    },
    ("imported_utc", "files", "columns", "measured_known"),
)
_HISTORY = dict.fromkeys(("from", "sha256", "channel", "was", "with"), TEXT)
CAMPAIGN = Table({"name": TEXT, "trial": NUMBER})
LEVELS = List(NUMBER)
INJECTED = List(Table({"kind": TEXT, "device": TEXT}, ("kind", "at_s"), NUMBER))
RECALIBRATED = List(Table(_HISTORY | {"software": SOFTWARE}, ("from", "channel", "was", "with")))


def fault_of(text: str, shape: object) -> str:
    """The error of a JSON text, without its name; empty if it is valid."""
    try:
        value = json.loads(text, parse_constant=_refuse)
    except RecursionError:
        return "is nested too deeply"
    except ValueError as error:
        return f"is not JSON ({error})"
    return _fault(value, shape, "", 0)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON value")


def _fault(value: object, shape: object, where: str, depth: int) -> str:
    if depth > DEPTH_MAX:
        return "is nested too deeply"
    at = f": '{where}'" if where else ""
    if isinstance(shape, Table):
        return _fault_of_table(value, shape, where, depth) if isinstance(value, dict) else (
            f"has another shape than a run writes{at} is no table")  # fmt: skip
    if isinstance(shape, List):
        if not isinstance(value, list):
            return f"has another shape than a run writes{at} is no list"
        items = (_fault(v, shape.item, f"{where}.{i}", depth + 1) for i, v in enumerate(value))
        return next((fault for fault in items if fault), "")
    if shape is None:
        return _fault_of_depth(value, depth)
    return (
        "" if _is(value, str(shape)) else f"has another shape than a run writes{at} is not {shape}"
    )


def _fault_of_table(value: dict[str, object], shape: Table, where: str, depth: int) -> str:
    for key in shape.needs if value else ():
        if key not in value:
            return f"has another shape than a run writes: '{where}' has no '{key}'"
    for key, item in value.items():
        inside = f"{where}.{key}" if where else key
        if fault := _fault(item, shape.known.get(key, shape.other), inside, depth + 1):
            return fault
    return ""


def _fault_of_depth(value: object, depth: int) -> str:
    if depth > DEPTH_MAX:
        return "is nested too deeply"
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((fault for item in below if (fault := _fault_of_depth(item, depth + 1))), "")


def _is(value: object, shape: str) -> bool:
    number = value is None or _is_number(value)
    kinds = {
        TEXT: isinstance(value, str),
        NUMBER: number,
        FLAG: value is None or isinstance(value, bool),
        PLAIN: number or isinstance(value, str | bool),
    }
    return kinds[shape]


def _is_number(value: object) -> bool:
    """Whether a value is a number that fits a float; JSON allows any number of digits."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return -1e300 < value < 1e300
