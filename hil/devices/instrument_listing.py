"""Instruments of LabJack, FUTEK and Phidgets, and serial indicators, that are connected."""

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from ctypes.util import find_library
from importlib.util import find_spec
from typing import NamedTuple

from hil.devices.futek import LIBRARY
from hil.devices.indicator import Lines, templates
from hil.devices.latest import now_s
from hil.errors import install, one_line

LISTENED_S, PHIDGETS_S = 1.0, 0.5  # for a line of an indicator; for Phidgets to report themselves
BAUDS = (9600, 2400, 19200)
LABJACKS = {4: "T4", 7: "T7", 8: "T8"}  # LJM's numbers of device types
CONNECTIONS = {1: "USB", 2: "TCP", 3: "Ethernet", 4: "WiFi"}
UNITS = ("N", "kg", "g", "lb", "kN")


class Instrument(NamedTuple):
    """An instrument that is there: what it is, and its table for a rig."""

    what: str
    table: str


def labjacks() -> list[Instrument]:
    """The LabJacks on USB and in the network."""
    if find_spec("labjack") is None or find_library("LabJackM") is None:
        return []
    from labjack import ljm

    n, types, connections, serials, _ = ljm.listAllS("ANY", "ANY")
    instruments: dict[int, Instrument] = {}
    for kind, connection, serial in zip(types[:n], connections[:n], serials[:n], strict=True):
        model = LABJACKS.get(kind)
        if model is not None and serial not in instruments:
            what = f"LabJack {model} {serial}, {CONNECTIONS.get(connection, 'connected')}"
            table = _table(
                "labjack", f'model = "{model}"', f'identifier = "{serial}"',
                channel=('terminal = "AIN0"', "newtons_per_V = 1.0   # capacity over 10 V"),
            )  # fmt: skip
            instruments[serial] = Instrument(what, table)
    return list(instruments.values())


def futeks(ports: Sequence[str]) -> list[Instrument]:
    """The instruments of FUTEK at these ports, which are opened."""
    if not ports or find_spec("futek_device_communication") is None:
        return []
    import futek_device_communication as futek

    logging.getLogger(LIBRARY).addHandler(logging.NullHandler())  # else it prints its retries
    instruments = []
    for port in ports:
        for instrument in futek.FutekSerialScanner.discover_devices(comports=[port]):
            try:
                table = _table("futek", f'port = "{port}"')
                instruments.append(
                    Instrument(f"FUTEK {type(instrument).__name__} at {port}", table)
                )
            finally:
                instrument.disconnect()
    return instruments


def phidgets() -> list[Instrument]:
    """The bridge inputs of Phidgets that are plugged in."""
    if find_spec("Phidget22") is None:
        return []
    from Phidget22.ChannelClass import ChannelClass
    from Phidget22.Devices.Manager import Manager
    from Phidget22.Phidget import Phidget
    from Phidget22.PhidgetException import PhidgetException

    try:
        Phidget.getLibraryVersion()
    except OSError:  # Phidgets' library itself is not installed
        return []
    bridges: dict[tuple[int, int, bool], str] = {}

    def attached(_: object, channel: object) -> None:
        if channel.getChannelClass() == ChannelClass.PHIDCHCLASS_VOLTAGERATIOINPUT:  # type: ignore[attr-defined]
            on_hub = bool(channel.getIsHubPortDevice()) or channel.getHubPort() > 0  # type: ignore[attr-defined]
            key = (channel.getDeviceSerialNumber(), channel.getHubPort(), on_hub)  # type: ignore[attr-defined]
            bridges.setdefault(key, channel.getDeviceName())  # type: ignore[attr-defined]

    manager = Manager()
    try:
        manager.setOnAttachHandler(attached)
        manager.open()
        threading.Event().wait(PHIDGETS_S)
    except PhidgetException:
        return []
    finally:
        manager.close()
    return [
        Instrument(
            f"{name} {serial}",
            _table(
                "phidget_bridge", f"serial = {serial}", *([f"hub_port = {port}"] if on_hub else []),
                channel=("input = 0", 'record = "calibration/mine.toml"'),
            ),
        )
        for (serial, port, on_hub), name in bridges.items()
    ]  # fmt: skip


def indicators(ports: Iterable[str]) -> list[Instrument]:
    """Serial indicators that send by themselves at these ports, which are opened and listened to.

    Of several templates that describe their line, the first is named.
    """
    import serial

    instruments = []
    for port in ports:
        for baud in BAUDS:
            try:
                with serial.serial_for_url(port, baud, timeout=0.05) as line:
                    heard = _listened(line.read)
            except (OSError, serial.SerialException):
                break
            if (instrument := indicator(port, baud, heard)) is not None:
                instruments.append(instrument)
                break
    return instruments


def _listened(read: Callable[[int], bytes]) -> bytes:
    heard, end_s = b"", now_s() + LISTENED_S
    while now_s() < end_s:
        heard += read(256)
    return heard


def indicator(port: str, baud: int, heard: bytes) -> Instrument | None:
    """The indicator whose template describes each whole line of what was heard; None if none."""
    for name, template in templates().items():
        if template.get("request") or template.get("length"):
            continue
        for unit in UNITS:
            lines = Lines(template["pattern"], unit, begins_whole=False)
            lines.take(heard, 0.0)
            if lines.last is not None and not lines.fault and not lines.dropped:
                table = _table(
                    "serial_indicator", f'port = "{port}"', f'template = "{name}"',
                    f'unit = "{unit}"', f"baud = {baud}",
                )  # fmt: skip
                return Instrument(f"indicator at {port}, as template '{name}' in {unit}", table)
    return None


def _table(kind: str, *keys: str, channel: Sequence[str] = ()) -> str:
    return "\n".join(
        ["[devices.cell]", f'kind = "{kind}"', *keys, "[devices.cell.channels.force]",
         'kind = "force"', *channel]
    )  # fmt: skip


def why_none() -> str:
    """What this computer lacks for instruments of these makers; empty if nothing."""
    packages = {
        "LabJack": "labjack",
        "FUTEK": "futek_device_communication",
        "Phidgets": "Phidget22",
    }
    lacking = [maker for maker, package in packages.items() if find_spec(package) is None]
    return f"{', '.join(lacking)} need an extra: {install('instruments')}" if lacking else ""


def instruments_as_text(instruments: Sequence[Instrument], why: str, *, identify: bool) -> str:
    """Every instrument with the lines to paste into a rig."""
    lines = []
    for what, table in instruments:
        lines += [one_line(what), *(f"    {line}" for line in table.splitlines())]
    if why:
        lines.append(why)
    if not identify:
        lines.append("--identify also asks FUTEK's instruments, and listens to serial indicators")
    return "\n".join(lines)
