"""NI's functions for calibrating a device; simulated converters have nothing to correct."""

from __future__ import annotations

from datetime import datetime

from simdaq import errors
from simdaq.card import Card
from simdaq.errors import DaqmxError
from simdaq.system import System

# Date of a card's factory calibration: year, month, day, hour, minute.
FACTORY = (2020, 1, 1, 0, 0)


def _with_calibration(system: System, device_name: str) -> Card:
    card = system.card(device_name)
    card.must_be_there()
    if not card.model.self_calibration:
        raise DaqmxError(errors.NO_CALIBRATION, Device=device_name)
    return card


def device_supports_cal(system: System, *, device_name: str) -> bool:
    """Whether a device can be calibrated."""
    return system.card(device_name).model.self_calibration


def self_cal(system: System, *, device_name: str) -> None:
    """Calibrate a device by itself: only its date changes."""
    card = _with_calibration(system, device_name)
    card.stored["self_cal_time_s"] = system.origin_unix_s + system.now_s


def restore_last_ext_cal_const(system: System, *, device_name: str) -> None:
    """Undo the self-calibrations since the last external one."""
    _with_calibration(system, device_name).stored.pop("self_cal_time_s", None)


def get_self_cal_last_date_and_time(
    system: System, *, device_name: str
) -> tuple[int, int, int, int, int]:
    """When a device was last calibrated by itself."""
    done_s = _with_calibration(system, device_name).stored.get("self_cal_time_s")
    if not isinstance(done_s, float):
        return FACTORY
    date = datetime.fromtimestamp(done_s)
    return date.year, date.month, date.day, date.hour, date.minute


def get_ext_cal_last_date_and_time(
    system: System, *, device_name: str
) -> tuple[int, int, int, int, int]:
    """When a device was last calibrated externally."""
    _with_calibration(system, device_name)
    return FACTORY
