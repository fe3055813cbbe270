"""A driver board of a rig: the real board, its emulated firmware, or its code as a library."""

from collections.abc import Callable
from functools import partial

from hil.devices.board import protocol
from hil.devices.board.bundled_firmware import shipped_hash
from hil.devices.board.cells import BoardPlace
from hil.devices.board.driver import BoardSpec, CellBoard
from hil.devices.board.emulated import EmulatedBoard, check_tools
from hil.devices.board.identity import RigBoard
from hil.devices.board.link import Link
from hil.devices.board.native import NativeBoard
from hil.devices.board.port import Port, SerialPort
from hil.devices.board.resistance import Chain, Resistances, measures
from hil.devices.board.self_test import Operator, SimulatedOperator, SomebodyAtTheBench
from hil.devices.board.terminal import TerminalBoard
from hil.devices.board.terminal import missing as terminal_missing
from hil.devices.injection import Chip, FaultyGates, FaultyPort, Injection
from hil.devices.sim.plant import Gates
from hil.devices.tables import CellBoardTable
from hil.rig.instruments import supplies_of
from hil.rig.kinds import Built, DeviceInputs
from hil.rig.run_tables import RigTables

ANSWER_SHARE = 0.5  # fraction of a period to wait for a board's answer


def missing(backend: str) -> str:
    """What this computer lacks; `check_tools` raises if an emulated board lacks its tools."""
    if backend == "emulated":
        check_tools()
    return terminal_missing() if backend == "pty" else ""


def build(inputs: DeviceInputs[CellBoardTable]) -> Built:
    """Build the board of a backend.

    Simulated gates drive the plant. With a real board, and one on a pseudo-terminal, the plant
    follows the cells it reports on.
    """
    name, board, layout, injection = inputs.name, inputs.table, inputs.layout, inputs.injection
    cells, keep_alive = list(inputs.system.cell_names), inputs.keep_alive
    place = BoardPlace(
        gates=tuple(cells.index(cell) for cell in board.cells),
        cell_names=tuple(board.cells),
        index=len(layout.channels) + layout.boards.index(name),
        first_gate=layout.gate_of[cells.index(board.cells[0])],
    )
    limits = protocol.default_limits() | board.limits
    rig_board = RigBoard(
        inputs.config.path, name, board.port, board.serial, inputs.backend == "bench"
    )
    number = inputs.number + 1 if rig_board.simulated_number is None else rig_board.simulated_number
    connect: Callable[[], Port]
    operator: Operator
    if inputs.backend == "bench":
        connect = partial(SerialPort, name, board.port, inputs.now_s, inputs.now_s, keep_alive)
        inputs.plant.follow(place.gates)
        operator = SomebodyAtTheBench(inputs.wait_s)
    elif inputs.backend == "pty":
        operator = terminal = TerminalBoard(name, number, len(board.cells), limits, inputs.wait_s)
        connect = partial(terminal.connect, inputs.now_s, keep_alive)
        inputs.plant.follow(place.gates)
    elif inputs.backend == "emulated":
        chip = EmulatedBoard(
            inputs.number + 1, _limits_on(injection, limits, name), board.build, serial=number
        )
        inputs.plant.wire(_meddled(chip, name, injection), place.gates)
        operator = SimulatedOperator(chip)
        connect = partial(SerialPort, name, chip.url, chip.sent_s, chip.arrived_s, keep_alive)
    else:
        far_end = NativeBoard(
            number, _limits_on(injection, limits, name), inputs.draws(), board.sim,
            measures=board.measures,
        )  # fmt: skip
        inputs.plant.wire(_meddled(far_end, name, injection), place.gates)
        operator = SimulatedOperator(far_end)
        connect = partial(_same, far_end)
    if injection is not None:
        connect = partial(_faulty, connect, name, injection)
    on_bench = inputs.backend == "bench"
    spec = BoardSpec(
        limits,
        estop=board.estop == "proved",
        board=rig_board,
        firmware_hash=_firmware_hash(board) if on_bench else None,
        power=_power_of(inputs.config.tables),
        at_rest_C=inputs.config.clamps_at_rest_C(name),
        measures=board.measures,
        as_delivered=board.fuses == "as_delivered",
    )
    link = Link(name, connect, board.hold_s, ANSWER_SHARE * inputs.period_s, not on_bench)
    advance = inputs.advance_simulation if inputs.backend == "emulated" else None
    device = CellBoard(link, place, spec, operator, _resistances(inputs, limits), advance)
    return device, inputs.divider([place.index], place.gates)


def _resistances(
    inputs: DeviceInputs[CellBoardTable], limits: dict[str, int]
) -> Resistances | None:
    if not measures(limits):
        return None
    table = inputs.table.resistance
    chain = Chain.of(limits, table.lead_Ohm, table.u_relative, table.noise_counts)
    ranges = inputs.config.resistance_limits_Ohm(inputs.name)
    return Resistances(
        inputs.name, inputs.table.cells, chain, ranges, inputs.backend != "bench",
        limits["open_cells_max"] > 0,
    )  # fmt: skip


def _power_of(tables: RigTables) -> tuple[str, ...]:
    """Devices that switch the cells' power, as text for the operator."""
    return (
        *(f"'{n}' ({supply.resource})" for n, supply in supplies_of(tables.devices).items()),
        *(
            f"enable line '{name}' ({where})"
            for device in tables.devices.values()
            for name, where in device.enable_lines.items()
        ),
    )


def _same(port: Port) -> Port:
    return port


def _faulty(connect: Callable[[], Port], name: str, injection: Injection) -> Port:
    return FaultyPort(connect(), name, injection)


def _meddled(board: Chip, name: str, injection: Injection | None) -> Gates:
    return board if injection is None else FaultyGates(board, name, injection)


def _firmware_hash(board: CellBoardTable) -> int:
    return shipped_hash(board.build) if board.firmware is None else int(board.firmware, 16)


def _limits_on(injection: Injection | None, limits: dict[str, int], name: str) -> dict[str, int]:
    return limits if injection is None else injection.limits(limits, name)
