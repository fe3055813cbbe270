"""Refusal of injected faults that cannot take effect in a run."""

from collections.abc import Mapping, Sequence
from math import ceil

from hil.devices.injection import FAILING
from hil.devices.injection_tables import (
    OF_EMULATED_CARDS,
    OF_VIRTUAL_TIME,
    ON_A_BOARD,
    ON_A_CELL,
    WITH_VALUE,
    FaultTable,
)
from hil.devices.tables import DeviceTable
from hil.errors import ConfigError, one_line
from hil.rig.calibrated import cards_of
from hil.rig.instruments import boards_of, plugin_devices, supplies_of, switching


def refuse_absent(
    faults: Sequence[FaultTable],
    devices: Mapping[str, DeviceTable],
    backends: Mapping[str, str],
    clock: str,
    n_ticks: int,
    period_s: float,
) -> None:
    """Refuse faults that would have no effect, since the run would seem to survive them.

    Parameters
    ----------
    backends : backend of every device, by its name

    Raises
    ------
    ConfigError
        One line for each fault that cannot take effect.
    """
    lines = []
    duration_s = n_ticks * period_s
    for i, fault in enumerate(faults):
        why = _why_absent(fault, devices, backends, clock)
        if fault.at_s >= duration_s:
            why = why or f"at_s = {fault.at_s:g}: the run ends at {duration_s:g} s"
        elif fault.value != 0.0 and fault.kind not in WITH_VALUE:
            stalls = fault.kind == "machine_stalls"
            instead = f"give for_s = {fault.value:g}" if stalls else "leave it out"
            why = why or f"value = {fault.value:g}: a fault of this kind has none: {instead}"
        elif fault.kind == "cell_weak" and not 0.0 < fault.value < 1.0:
            why = (
                why or f"value = {fault.value:g}: give the share of the force that is left, 0 to 1"
            )
        elif fault.kind == "board_reset":
            why = why or _why_unanswered(fault, devices, n_ticks, period_s)
        if why:
            lines.append(one_line(f"--inject: fault {i + 1}, {fault.kind}: {why}"))
    if lines:
        raise ConfigError("\n".join(lines))


def _why_absent(
    fault: FaultTable,
    devices: Mapping[str, DeviceTable],
    backends: Mapping[str, str],
    clock: str,
) -> str:
    """Why a fault cannot take effect in this run; empty if it can."""
    if fault.kind in OF_VIRTUAL_TIME and clock != "virtual":
        return "on the virtual clock only"
    cards = cards_of(devices)
    hit = [name for name in cards if fault.device in (None, name)]
    if fault.kind in OF_EMULATED_CARDS and any(backends.get(n) != "emulated" for n in hit):
        return f"on an emulated card only: --backend {hit[0]}=emulated"
    places = _places(fault, devices)
    if places is None:
        return ""
    what, names = places
    if not names:
        return f"the rig has no {what}"
    if fault.device is not None and fault.device not in names:
        return f"device = '{fault.device}': no {what} of this rig: choose {', '.join(names)}"
    if fault.kind == "line_stuck":
        lines = _lines_of(devices)
        n = max(lines[name] for name in names if fault.device in (None, name))
        if fault.cell > n:
            return f"cell = {fault.cell}: the cells of this device are numbered 1 to {n}"
    if fault.kind in ON_A_CELL:
        boards = boards_of(devices)
        hit = [fault.device or names[0]] if fault.kind in FAILING else names
        n = max(len(boards[name].cells) for name in hit if fault.device in (None, name))
        if fault.cell > n:
            return f"cell = {fault.cell}: the cells of a board are numbered 1 to {n}"
    return ""


def _why_unanswered(
    fault: FaultTable, devices: Mapping[str, DeviceTable], n_ticks: int, period_s: float
) -> str:
    """Why no exchange with the board follows its reset; empty if one does."""
    boards = boards_of(devices)
    every = min(boards[name].every for name in boards if fault.device in (None, name))
    reset_tick = ceil(fault.at_s / period_s - 1e-9)
    last_tick = (n_ticks - 1) // every * every
    if reset_tick < last_tick:
        return ""
    return f"at_s = {fault.at_s:g}: the board is not asked again after {last_tick * period_s:g} s"


def _places(fault: FaultTable, devices: Mapping[str, DeviceTable]) -> tuple[str, list[str]] | None:
    """Kind of device that a fault affects, and the rig's devices of it; None: needs no device."""
    cards = cards_of(devices)
    if fault.kind in ON_A_BOARD:
        return "board", list(boards_of(devices))
    if fault.kind == "line_stuck":
        return "device whose lines switch cells", list(_lines_of(devices))
    if fault.kind.startswith("supply_"):
        return "supply", list(supplies_of(devices))
    if fault.kind.startswith("sensor_"):
        inputs = [name for card in cards.values() for name in card.channels]
        if fault.kind == "sensor_rail":  # only a card's input has a range that hil knows
            return "channel of a card", inputs
        return "channel", [*inputs, *_readings(devices)]
    if fault.kind in OF_EMULATED_CARDS:
        return "card", list(cards)
    if fault.kind == "card_estop_open":
        with_estop = [name for name, card in cards.items()
                      if any(line.kind == "estop" for line in card.lines.values())]  # fmt: skip
        return "card with an e-stop line", with_estop
    if fault.kind == "enable_stuck_low":
        return "enable line", [name for table in devices.values() for name in table.enable_lines]
    return None


def _lines_of(devices: Mapping[str, DeviceTable]) -> dict[str, int]:
    """Number of cells of every device that switches some and is no board."""
    switches = switching(devices)
    return {name: len(d.cells_switched) for name, d in switches.items() if d.role != "board"}


def _readings(devices: Mapping[str, DeviceTable]) -> list[str]:
    """The channels of instruments that are not cards."""
    return [name for device in plugin_devices(devices).values() for name in device.channels]
