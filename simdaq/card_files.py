"""The files of card models, without the enumerations of `nidaqmx`: tables and terminals."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "cards"


@cache
def tables() -> dict[str, dict[str, Any]]:
    """The tables of all models by product, as they stand in the files, read once."""
    models: dict[str, dict[str, Any]] = {}
    for file in sorted(FOLDER.glob("*.toml")):
        models |= tomllib.loads(file.read_text())
    return models


def whole(name: str, tables: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The table of a model with everything that it takes over from others."""
    table = dict(tables[name])
    base = table.pop("like", None)
    if base is None:
        return table
    merged = whole(base, tables)
    merged.pop("assumed", None)
    for key, value in table.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = {**merged[key], **value} if both else value
    return merged


def terminals(table: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Names of the physical channels of a model, by kind: ai, ao, ci, co, di, do."""
    ai, ao, counters = (table.get(key, {}) for key in ("ai", "ao", "counters"))
    stem = "_ctr" if table.get("slots") else "ctr"
    ci = tuple(f"{stem}{i}" for i in range(counters.get("n", 0)))
    lines = {
        key: tuple(f"port{p}/line{i}" for p, port in enumerate(table.get("ports", ()))
                   if port.get(way, True) for i in range(port["n_lines"]))
        for key, way in (("di", "input"), ("do", "output"))
    }  # fmt: skip
    return {
        "ai": (*(f"ai{i}" for i in range(ai.get("n_channels", 0))), *ai.get("extra_channels", ())),
        "ao": tuple(f"ao{i}" for i in range(ao.get("n_channels", 0))),
        "ci": ci,
        "co": ci if counters.get("outputs", True) else (),
        **lines,
    }


@cache
def terminals_of(product: str) -> dict[str, tuple[str, ...]]:
    """Names of the physical channels of a model in the files, by kind."""
    return terminals(whole(product, tables()))
