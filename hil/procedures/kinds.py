"""What can be calibrated: procedures whose readings are typed, and those of one run of the rig."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hil.procedures import (
    certificate,
    channels,
    encoder,
    masses,
    pantograph,
    response,
    springs,
    transducer,
)
from hil.procedures.act import ActFile, AnyAct
from hil.procedures.procedure import Typed

TYPED: dict[str, Typed[Any]] = {
    "certificate": certificate,
    "force_transducer": transducer,
    "spring_constants": springs,
    "masses": masses,
    "encoder": encoder,
    "pantograph_geometry": pantograph,
}


@dataclass(frozen=True)
class OnRig:
    """A procedure of one run: a template, its act, and what makes values of a recording."""

    template: str
    act: type[AnyAct]
    method: str
    cell: bool
    finish: Callable[..., dict[str, dict[str, Any]]]


def _of_one_cell(fit: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, dict[str, Any]]]:
    return lambda path, cell, settings, channel: {"": fit(path, cell)}


ON_RIG = {
    "damping": OnRig(response.DAMPING, ActFile[response.Settings],
                     "one cell between fixed ends, response time", True,
                     _of_one_cell(response.damping)),
    "activation": OnRig(response.ACTIVATION, ActFile[response.ActivationSettings],
                        "one cell between fixed ends, profile", True,
                        lambda path, cell, settings, channel:
                        {"": response.activation(path, cell, settings)}),
    "cell_force": OnRig(response.CELL_FORCE, ActFile[response.ForceSettings],
                        "one cell between fixed ends, on and off", True,
                        _of_one_cell(response.cell_force)),
    "daq_channel": OnRig(channels.TEMPLATE, ActFile[channels.Settings],
                         "raw readings at rest", False,
                         lambda path, cell, settings, channel:
                         channels.daq_channel(path, settings, channel)),
    "latency": OnRig(channels.LATENCY, ActFile[response.Settings], "shift against the twin", False,
                     lambda path, cell, settings, channel: channels.latency(path, channel)),
}  # fmt: skip
KINDS = (*TYPED, *ON_RIG)


def template(kind: str) -> str:
    """The file to begin with."""
    return TYPED[kind].TEMPLATE if kind in TYPED else ON_RIG[kind].template


def act_kind(kind: str) -> type[AnyAct]:
    """What its file has to be."""
    return TYPED[kind].Act if kind in TYPED else ON_RIG[kind].act
