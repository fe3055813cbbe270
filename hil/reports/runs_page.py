"""Many runs as one HTML file with search, sorting and thumbnails, for a shared drive."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

import numpy as np

from hil.errors import ConfigError, writing
from hil.loop.channels import signals_in
from hil.pages.html import rendered
from hil.pages.style import MEASURED, REFERENCE
from hil.platform.whole_files import write_whole
from hil.record.read import n_whole_rows, open_h5
from hil.runs.catalogue.query import Answer

WIDTH, HEIGHT, POINTS = 120, 28, 60


def write_page(folder: Path, answer: Answer, path: Path) -> None:
    """Write the page of runs that `Catalogue.find` returned with their column `path`.

    Raises
    ------
    ConfigError
        The page cannot be written.
    """
    at = answer.columns.index("path")
    known = [any(row[i] is not None for row in answer.rows) for i in range(len(answer.columns))]
    keep = [i for i, is_known in enumerate(known) if is_known or i == at]
    rows = []
    for row in answer.rows:
        recording = folder / str(row[at])
        report = recording.with_suffix(".html")
        link = report if report.is_file() else recording
        cells = [(_shown(row[i]), _sorted(row[i])) for i in keep]
        rows.append((_link(link, path.parent), *thumbnail(recording), cells))
    with writing(path):
        text = rendered(
            "runs.html",
            title=f"{len(rows)} runs in {folder}",
            columns=[answer.columns[i] for i in keep],
            rows=rows,
            at=keep.index(at),
            width=WIDTH,
            height=HEIGHT,
        )
        write_whole(path, text)


def _link(file: Path, folder: Path) -> str:
    """Relative address of a file; never one with a scheme, whatever its name."""
    return "./" + quote(os.path.relpath(file.resolve(), folder.resolve()).replace(os.sep, "/"))


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds")
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _sorted(value: object) -> str:
    """What a cell is sorted by."""
    return repr(float(value)) if isinstance(value, int | float) else _shown(value)


def thumbnail(recording: Path) -> tuple[bool, list[tuple[str, str]]]:
    """Whether a run is simulated; colour and points of small curves of set point and first signal.

    There are no curves of a recording that cannot be read.
    """
    try:
        with open_h5(recording) as file:
            simulated = bool(file.attrs.get("simulated"))
            n, ticks = n_whole_rows(file), file["ticks"]
            signals = signals_in(ticks)
            if not signals or n < 2:
                return simulated, []
            names = [(signals[0].reference, REFERENCE), (signals[0].measured, MEASURED)]
            curves = [(*_known(ticks[name][:n]), colour) for name, colour in names if name]
    except ConfigError:
        return False, []
    known = np.concatenate([y for _, y, _ in curves])
    if not len(known):
        return simulated, []
    low, span = float(known.min()), float(np.ptp(known)) or 1.0
    return simulated, [(colour, _points(x, (y - low) / span)) for x, y, colour in curves]


def _known(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places from 0 to 1 and values of POINTS readings, or a few more; not every row has one."""
    at = np.flatnonzero(np.isfinite(y))
    at = at[:: max(1, len(at) // POINTS)]
    return at / (len(y) - 1), y[at]


def _points(x: np.ndarray, y: np.ndarray) -> str:
    pairs = [f"{1.0 + a * (WIDTH - 2.0):.1f},{HEIGHT - 2.0 - b * (HEIGHT - 4.0):.1f}"
             for a, b in zip(x, y, strict=True)]  # fmt: skip
    return " ".join(pairs)
