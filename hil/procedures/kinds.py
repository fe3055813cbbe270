"""Kinds of calibration procedures: with typed readings, or from one run of the rig."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil.procedures import (
    certificate,
    channels,
    displacement,
    encoder,
    masses,
    pantograph,
    response,
    springs,
    transducer,
)
from hil.procedures.procedure import Typed
from hil.procedures.session_file import AnySession, SessionFile

TYPED: dict[str, Typed[Any]] = {
    "certificate": certificate,
    "force_transducer": transducer,
    "spring_constants": springs,
    "displacement_sensor": displacement,
    "masses": masses,
    "encoder": encoder,
    "pantograph_geometry": pantograph,
}


@dataclass(frozen=True)
class OnRig:
    """A procedure of one run.

    Attributes
    ----------
    session : type of the session file
    method : for the record
    cell : whether the rig must have exactly one cell
    finish : (path, cell, settings, channel) -> values by channel
    """

    session: type[AnySession]
    method: str
    cell: bool
    finish: Callable[..., dict[str, dict[str, object]]]


def _of_one_cell(
    fit: Callable[..., dict[str, object]],
) -> Callable[..., dict[str, dict[str, object]]]:
    return lambda path, cell, settings, channel: {"": fit(path, cell)}


ON_RIG = {
    "damping": OnRig(SessionFile[response.Settings],
                     "one cell between fixed ends, response time", True,
                     _of_one_cell(response.damping)),
    "activation": OnRig(SessionFile[response.ActivationSettings],
                        "one cell between fixed ends, profile", True,
                        lambda path, cell, settings, channel:
                        {"": response.activation(path, cell, settings)}),
    "cell_force": OnRig(SessionFile[response.ForceSettings],
                        "one cell between fixed ends, on and off", True,
                        _of_one_cell(response.cell_force)),
    "daq_channel": OnRig(SessionFile[channels.Settings],
                         "raw readings at rest", False,
                         lambda path, cell, settings, channel:
                         channels.daq_channel(path, settings, channel)),
    "latency": OnRig(SessionFile[response.Settings],
                     "shift against the twin", False,
                     lambda path, cell, settings, channel: channels.latency(path, channel)),
}  # fmt: skip
KINDS = (*TYPED, *ON_RIG)
TEMPLATES = Path(__file__).parent / "templates"


def template(kind: str) -> str:
    """Text of a session file to start from."""
    return (TEMPLATES / f"{kind}.toml").read_text(encoding="utf-8")


def session_kind(kind: str) -> type[AnySession]:
    """Type of the session file."""
    return TYPED[kind].Session if kind in TYPED else ON_RIG[kind].session
