"""Commissioning of driver boards: list ports, read and set limits, simulate a board."""

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from hil.devices.board import fuses, protocol
from hil.devices.board.identity import serial_text
from hil.devices.board.ineffective import without_effect
from hil.devices.board.native import built
from hil.devices.board.port import SerialPort, arriving, holder_of
from hil.errors import ConfigError, DeviceError, remedy
from hil.loop.clock import RealClock

WHOLE = re.compile("-?[0-9]{1,10}")  # no limit has more digits
ATTEMPTS = 3
TIMEOUT_S = 0.3


def serial_ports() -> list[dict[str, str]]:
    """Serial ports with their USB serial numbers; none is opened."""
    from serial.tools import list_ports

    return [
        {"port": p.device, "usb": p.serial_number or "", "what": p.description or ""}
        for p in sorted(list_ports.comports(), key=lambda p: str(p.device))
    ]


def identified(ports: list[dict[str, str]]) -> list[dict[str, str]]:
    """The same ports, each with the identity that its board reports."""
    return [port | {"board": _who(port["port"])} for port in ports]


def _who(path: str) -> str:
    try:
        board = identity(path)
    except DeviceError as error:
        held = holder_of(path)
        return f"held by {held}" if held else str(error).removeprefix(f"board: {path}: ")
    agrees = "" if board["wire_agrees"] else ", PROTOCOL DIFFERS: hil board flash"
    return (
        f"driver board {serial_text(board['serial'])}, {board['n_cells']} cells, "
        f"firmware {board['firmware_hash']:08x}{agrees}"
    )


def ports_as_text(ports: list[dict[str, str]]) -> str:
    """One line a port."""
    if not ports:
        return "no serial ports: check cable and power; on Linux, membership of group dialout"
    return "\n".join(
        f"{p['port']:<16} {'usb:' + p['usb'] if p['usb'] else '':<24} "
        f"{p.get('board') or p['what']}".rstrip()
        for p in ports
    )


def ask(address: str, command: str, **fields: object) -> protocol.Message:
    """One exchange with a board; nothing is energised.

    Raises
    ------
    DeviceError
        There is no such port, it is in use, or there is no answer.
    """
    now_s = RealClock().now_s
    port = SerialPort("board", address, now_s, now_s)
    try:
        port.write(b"\0")
        identity = _exchange(port, address, 0, "identify")
        if command == "identify":
            return identity
        return _exchange(port, address, identity["seq_taken"], command, **fields)
    finally:
        port.close()


def _exchange(
    port: SerialPort, address: str, seq_taken: int, command: str, **fields: object
) -> protocol.Message:
    decoder = protocol.Decoder()
    for ahead in range(1, ATTEMPTS + 1):
        seq = (seq_taken + ahead) % 256
        port.write(protocol.encode(command, seq, **fields))
        for data in arriving(port, TIMEOUT_S):
            for message in decoder.feed(data):
                if message.seq == seq:
                    return message
    if decoder.n_foreign:
        raise DeviceError(
            f"board: {address}: its firmware speaks another version of the protocol: hil board "
            f"flash"
        )
    raise DeviceError(f"board: {address}: no answer: is this a driver board with firmware?")


def identity(address: str) -> protocol.Fields:
    """The identity of the board, and its limits."""
    answer = ask(address, "identify")
    fields = dict(answer.fields)
    fields["wire_agrees"] = fields["wire_hash"] == protocol.WIRE_HASH
    return fields


def identity_as_text(address: str, board: protocol.Fields) -> str:
    """A few lines, then the table of limits."""
    agrees = "matches" if board["wire_agrees"] else "DIFFERS: hil needs the firmware it came with"
    lines = [
        f"{address}: serial {serial_text(board['serial'])}, {board['n_cells']} cells, "
        f"firmware {board['firmware_hash']:08x}, protocol {agrees}",
        f"fuses {fuses.as_text(board['fuses'])}"
        + "".join(f"\n  WRONG: {text}" for text in fuses.problems(board["fuses"])),
        checked_as_text(board["faults_checked"]),
        f"every cell is scanned once in {1e-3 * board['scan_period_us']:g} ms",
    ]
    for name, value in board["limits"].items():
        changed = "" if value == protocol.LIMITS[name].default else "   (changed)"
        lines.append(f"  {name:<28} {value:>10}{changed}")
    lines += [f"  WRONG: {text}" for text in _wrong(board)]
    return "\n".join(lines)


def _wrong(board: protocol.Fields) -> list[str]:
    """Entries of a board's own table that leave a protection without effect."""
    measures = bool(board["faults_checked"] & protocol.FAULTS_MEASURED)
    table = board["limits"]
    wrong = without_effect(table, measures=measures)
    return [f"{key} = {table[key]}: {text}" for key, text in wrong]


def checked_as_text(faults_checked: int) -> str:
    """Which faults this build of the firmware can find."""
    lacking = [name for name, bit in protocol.FAULTS.items() if not faults_checked >> bit & 1]
    if not lacking:
        return "it finds every fault of docs/safety.md"
    return f"it measures nothing and cannot find {', '.join(lacking)}"


def changed_limits(board: protocol.Fields, sets: Iterable[str]) -> dict[str, int]:
    """The table of a board with `name=value` changes.

    Parameters
    ----------
    board : the identity of the board, with its limits

    Raises
    ------
    ConfigError
        An unknown limit, a value it cannot have, or one that leaves a protection without effect.
    """
    table = dict(board["limits"])
    for text in sets:
        name, _, value = text.partition("=")
        known = protocol.LIMITS.get(name)
        if known is None:
            near = remedy(name, protocol.LIMITS)
            raise ConfigError(f"--set {text}: the board has no such limit{near}")
        if not WHOLE.fullmatch(value) or not known.lowest <= int(value) <= known.highest:
            raise ConfigError(
                f"--set {text}: choose a whole number from {known.lowest} to {known.highest}"
            )
        table[name] = int(value)
    before = _wrong(board)  # an entry at a time mends a table
    if wrong := [text for text in _wrong({**board, "limits": table}) if text not in before]:
        raise ConfigError("\n".join(f"--set: {text}" for text in wrong))
    return table


def store_limits(address: str, table: dict[str, int]) -> None:
    """Write a table into the board's memory.

    Raises
    ------
    DeviceError
        The board refuses, such as while it is armed.
    """
    answer = ask(address, "set_limits", limits=table)
    result = protocol.result_name(answer["result"])
    if result != "done":
        raise DeviceError(f"board: {address}: the limits were not stored: {result}")


def run_simulated(n_cells: int, serial: int) -> int:
    """Run a simulated board on a pty until it is stopped.

    Raises
    ------
    ConfigError
        It has not been built.
    """
    program: Path = built("board_pty")
    return subprocess.run([str(program), str(n_cells), str(serial)], check=False).returncode
