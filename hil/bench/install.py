"""`hil doctor --install`: what is installed, what is missing, and for what it is needed."""

import re
import shutil
import sys
from ctypes.util import find_library
from importlib.metadata import PackageNotFoundError, requires, version

from hil.bench.doctor import QT_LIBRARIES
from hil.config.values import Figures
from hil.devices.board import emulated
from hil.devices.board.native import built
from hil.errors import ConfigError, install

DISTRIBUTION = "hil-arrays"
CORE = "check, runs on the simulated rig, recordings, reports, models, identification"
EXTRAS = {
    "fast": "compiled models, which the real clock needs (Numba)",
    "gui": "the window",
    "daq": "driver boards, NI cards, serial indicators, simulated NI cards",
    "sweep": "campaigns and topologies on a cluster",
    "tune": "campaigns that tune their controllers",
    "bodies": "the study of the body, against another program",
    "catalogue": "finding runs (hil runs)",
    "control": "models for python-control",
    "crate": "export of a data set for publication",
    "figures": "styles of journals for hil figure",
    "export": "export as MCAP, MDF and Parquet",
    "fmu": "functional mock-up units",
    "foxglove": "live view in Foxglove",
    "gym": "Gymnasium environments of simulated rigs",
    "import": "import of TDMS, LVM, MDF, Parquet, workbooks and more, conversion of units",
    "instruments": "instruments of FUTEK, LabJack and Phidgets",
    "lsl": "samples for Lab Streaming Layer",
    "metrics": "metrics of a bench for Prometheus",
    "mqtt": "measurements for an MQTT broker",
    "notify": "messages by mail, Slack, Matrix, ntfy and others",
    "ophyd": "plans of bluesky",
    "page": "page of a bench in a browser",
    "supply": "bench supplies",
    "tiled": "runs for a Tiled server",
}


def look() -> list[dict[str, object]]:
    """Every purpose with what it lacks here and the command that installs it; empty if nothing."""
    packages = _packages()
    rows = [_row(CORE, _missing(packages[""]), f"pip install {DISTRIBUTION}")]
    for extra, purpose in EXTRAS.items():
        missing = _missing(packages.get(extra, ()))
        rows.append(_row(f"{purpose} ({extra})", missing, install(extra)))
    return [*rows, *_system()]


def as_text(rows: list[Figures]) -> str:
    """One line a purpose; the command that installs what it lacks is below."""
    lines = []
    for row in rows:
        mark = "ok     " if not row["missing"] else "missing"
        lacks = f": {', '.join(row['missing'])}" if row["missing"] else ""
        lines.append(f"{mark} {row['for']}{lacks}")
        if row["missing"]:
            lines.append(f"        {row['remedy']}")
    lines += ["", "Only apt-get needs an administrator (sudo); all else works without."]
    return "\n".join(lines)


def _row(purpose: str, missing: list[str], remedy: str) -> dict[str, object]:
    return {"for": purpose, "missing": missing, "remedy": remedy if missing else ""}


def _packages() -> dict[str, list[str]]:
    """Names of the packages of the core (`""`) and of every extra, from this distribution."""
    packages: dict[str, list[str]] = {"": []}
    for line in requires(DISTRIBUTION) or ():
        name = re.match(r"[\w.-]+", line)
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", line)
        if name and name[0] != DISTRIBUTION:
            packages.setdefault(extra[1] if extra else "", []).append(name[0])
    return packages


def _missing(names: list[str] | tuple[str, ...]) -> list[str]:
    return [name for name in names if not _is_installed(name)]


def _is_installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


def _system() -> list[dict[str, object]]:
    """What pip does not install."""
    board = [] if built("libboard.so").is_file() else _tools("cc", "make")
    rows = [_row("the simulated driver board", board, "sudo apt-get install gcc libc6-dev make")]
    if sys.platform == "linux":
        wanted = {k: v for libraries in QT_LIBRARIES.values() for k, v in libraries.items()}
        lacking = [library for library in wanted if not find_library(library)]
        remedy = f"sudo apt-get install {' '.join(wanted[library] for library in lacking)}"
        rows.append(_row("libraries of the window", lacking, remedy))
        rows.append(_chip())
    driver = "nicaiu" if sys.platform == "win32" else "nidaqmx"
    rows.append(_library("NI cards in this computer", driver, "NI's driver NI-DAQmx, from ni.com"))
    rows.append(_library("LabJack", "LabJackM", "the library LJM, from labjack.com"))
    return rows


def _chip() -> dict[str, object]:
    """The emulated chip, in the words of its own check."""
    purpose = "the driver board's chip in emulation, and its tests"
    try:
        emulated.check_tools()
    except ConfigError as error:
        return _row(purpose, ["compiler or simavr"], str(error).rpartition(": ")[2])
    return _row(purpose, [], "")


def _library(purpose: str, library: str, remedy: str) -> dict[str, object]:
    return _row(purpose, [] if find_library(library) else [library], remedy)


def _tools(*names: str) -> list[str]:
    return [name for name in names if shutil.which(name) is None]
