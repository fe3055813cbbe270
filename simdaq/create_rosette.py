"""DAQmxCreateAIRosetteStrainGageChan: plane strain from the two or three gauges of a rosette.

Strains along the first gauge and across it (ex, ey) and their shear (g) follow from the gauges by
the transformation of plane strain; Mohr's circle has the centre (ex + ey) / 2 and the radius
sqrt(((ex - ey) / 2)^2 + (g / 2)^2).

Source: Vishay Precision Group, Tech Note TN-515, "Strain Gage Rosettes".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from nidaqmx.constants import (
    ChannelType,
    StrainGageRosetteMeasurementType,
    StrainGageRosetteType,
    StrainUnits,
    UsageTypeAI,
)

from simdaq import errors, names, sensors
from simdaq.channels import AnalogInput, Channel, Samples
from simdaq.errors import DaqmxError
from simdaq.sensors import Sensor
from simdaq.system import System

M = StrainGageRosetteMeasurementType
GAUGES = {
    StrainGageRosetteType.RECTANGULAR.value: 3,
    StrainGageRosetteType.DELTA.value: 3,
    StrainGageRosetteType.TEE.value: 2,
}


@dataclass(frozen=True)
class PlaneStrain:
    """Mohr's circle of strain: centre, radius, and the angle (rad) of the larger principal strain
    from the X axis.
    """

    centre: Samples
    radius: Samples
    angle: Samples


def plane_strain(rosette: int, gauges: Sequence[Samples], orientation_deg: float) -> PlaneStrain:
    """Plane strain from the strains of the gauges.

    Parameters
    ----------
    gauges : counted counterclockwise: 0, 45 and 90 degrees of a rectangular rosette, 0, 60 and 120
        of a delta rosette, 0 and 90 of a tee rosette, whose axes are the principal ones
    orientation_deg : angle of the first gauge from the X axis
    """
    first, second = gauges[0], gauges[1]
    if rosette == StrainGageRosetteType.TEE.value:
        along, across, shear = first, second, np.zeros_like(first)
    elif rosette == StrainGageRosetteType.DELTA.value:
        along, across = first, (2.0 * (second + gauges[2]) - first) / 3.0
        shear = 2.0 * (second - gauges[2]) / np.sqrt(3.0)
    else:
        along, across = first, gauges[2]
        shear = 2.0 * second - first - gauges[2]
    difference = along - across
    return PlaneStrain(
        centre=0.5 * (along + across), radius=0.5 * np.hypot(difference, shear),
        angle=0.5 * np.arctan2(shear, difference) + np.radians(orientation_deg),
    )  # fmt: skip


MEASUREMENTS: dict[int, tuple[str, Callable[[PlaneStrain], Samples]]] = {
    M.PRINCIPAL_STRAIN_1.value: ("principalStrain1", lambda s: s.centre + s.radius),
    M.PRINCIPAL_STRAIN_2.value: ("principalStrain2", lambda s: s.centre - s.radius),
    M.PRINCIPAL_STRAIN_ANGLE.value: ("principalStrainAngle", lambda s: np.degrees(s.angle)),
    M.CARTESIAN_STRAIN_X.value: (
        "cartesianStrainX", lambda s: s.centre + s.radius * np.cos(2.0 * s.angle)),
    M.CARTESIAN_STRAIN_Y.value: (
        "cartesianStrainY", lambda s: s.centre - s.radius * np.cos(2.0 * s.angle)),
    M.CARTESIAN_SHEAR_STRAIN_XY.value: (
        "cartesianShearStrainXY", lambda s: 2.0 * s.radius * np.sin(2.0 * s.angle)),
    M.MAX_SHEAR_STRAIN.value: ("maxShearStrain", lambda s: 2.0 * s.radius),
    M.MAX_SHEAR_STRAIN_ANGLE.value: (
        "maxShearStrainAngle", lambda s: np.degrees(s.angle) - 45.0),
}  # fmt: skip


@dataclass
class Rosette(AnalogInput):
    """One measurement of a rosette; angles are in degrees, the rest is strain."""

    gauges: tuple[AnalogInput, ...] = ()

    def fit_range(self) -> None:
        super().fit_range()
        for gauge in self.gauges:
            gauge.fit_range()

    def sample(self, t_s: Samples) -> Samples:
        strains = [gauge.scaled(gauge.sample(t_s)) for gauge in self.gauges]
        p = self.properties
        state = plane_strain(
            p["ai_rosette_strain_gage_rosette_type"], strains,
            p["ai_rosette_strain_gage_gage_orientation"],
        )  # fmt: skip
        _, measure = MEASUREMENTS[p["ai_rosette_strain_gage_rosette_meas_type"]]
        return measure(state)

    def sample_now(self, t_s: float) -> float:
        return float(self.sample(np.array([t_s]))[0])

    def scaled(self, raw: Any) -> Any:
        return raw


def create_ai_rosette_strain_gage_chan(system: System, **k: Any) -> None:
    """Create the measurements of one rosette, or of several whose gauges follow each other."""
    owner = system.task(k["task"])
    physicals, n = names.unflatten(k["physical_channel"]), GAUGES.get(k["rosette_type"], 0)
    if not n:
        raise owner.error(errors.BAD_VALUE, Requested_Value=k["rosette_type"])
    if not physicals or len(physicals) % n:
        code = errors.ROSETTE_NEEDS_TWO if n == 2 else errors.ROSETTE_NEEDS_THREE
        raise owner.error(code, Physical_Channel_Name=repr(k["physical_channel"]))
    if not len(k["rosette_meas_types"]):
        raise owner.error(errors.NO_ROSETTE_MEASUREMENT)
    rosettes = [physicals[i : i + n] for i in range(0, len(physicals), n)]
    n_before = len({c.physical for c in owner.channels if isinstance(c, Rosette)})
    defaults = [f"rosette{n_before + i}" for i in range(len(rosettes))]
    labels = names.labels(k["name_to_assign_to_channel"], defaults)
    created: list[Channel] = []
    for label, rosette in zip(labels, rosettes, strict=True):
        created += _measurements(system, label, rosette, k)
    system.add_channels(owner, created)


def _measurements(
    system: System, label: str, physicals: list[str], k: dict[str, Any]
) -> list[Channel]:
    common = sensors.properties(Sensor(UsageTypeAI.ROSETTE_STRAIN_GAGE), k) | {
        "ai_min": k["min_val"], "ai_max": k["max_val"],
        "ai_meas_type": UsageTypeAI.ROSETTE_STRAIN_GAGE.value,
        "ai_strain_units": StrainUnits.STRAIN.value,
        "ai_rosette_strain_gage_strain_chans": names.flatten(physicals),
        "chan_type": ChannelType.ANALOG_INPUT.value,
    }  # fmt: skip
    channels: list[Channel] = []
    for kind in k["rosette_meas_types"]:
        if int(kind) not in MEASUREMENTS:
            raise DaqmxError(errors.BAD_VALUE, Requested_Value=kind, Channel_Name=label)
        properties = common | {"ai_rosette_strain_gage_rosette_meas_type": int(kind)}
        gauges = tuple(_gauge(system, physical, properties) for physical in physicals)
        channels.append(
            Rosette(
                f"{label}_{MEASUREMENTS[int(kind)][0]}", names.flatten(physicals), "ai",
                gauges[0].card, gauges[0].short, properties, physical_signal=True, gauges=gauges,
            )
        )  # fmt: skip
    return channels


def _gauge(system: System, physical: str, properties: dict[str, Any]) -> AnalogInput:
    device, rest = names.split(physical)
    card = system.card(device)
    short = card.check(rest, "ai")
    if card.model.ai is None or UsageTypeAI.ROSETTE_STRAIN_GAGE not in card.model.ai.usages:
        raise DaqmxError(errors.WRONG_MEASUREMENT, Physical_Channel_Name=physical)
    return AnalogInput(physical, physical, "ai", card, short, properties, physical_signal=True)
