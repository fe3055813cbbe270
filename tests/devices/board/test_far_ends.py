"""What simulated boards have in common: the core on this machine, and the image on its own chip."""

import numpy as np
import pytest

from hil.devices.board import emulated, protocol
from hil.devices.board.cells import BoardPlace
from hil.devices.board.driver import BoardSpec, CellBoard
from hil.devices.board.emulated import EmulatedBoard
from hil.devices.board.link import Link
from hil.devices.board.native import N_CELLS, NativeBoard
from hil.devices.board.port import SerialPort
from hil.devices.board.self_test import SimulatedOperator
from hil.errors import ConfigError, DeviceError
from hil.loop.channels import RigLayout
from hil.loop.frame import Column
from rows import Seen, row_of

GATES = (2, 0, 3)
PERIOD_S = 0.001


class Far:
    """A board with three cells behind a driver, and time."""

    def __init__(self, kind, **limits):
        table = protocol.default_limits() | limits
        if kind == "native":
            self.board = NativeBoard(7, table, np.random.default_rng(0))
            port = self.board
        else:
            self.board = EmulatedBoard(7, table)
            chip = self.board
            port = SerialPort("board", chip.url, chip.sent_s, chip.arrived_s)
        for cell in range(N_CELLS):
            self.board.sense(cell, 0.2, 0.0, 25.0)
        self.board.advance(100_000)
        self.duty = np.zeros(N_CELLS)
        place = BoardPlace(GATES, ("a.3", "a.1", "a.4"), index=0)
        link = Link("board", lambda: port, 0.05, 0.5 * PERIOD_S, simulated=True)
        self.driver = CellBoard(link, place, BoardSpec(table), SimulatedOperator(self.board))
        layout = RigLayout((), (), ("board",), ("board",), 4)
        cells = [
            Column(name, "1", "commanded", "", n_cells=4)
            for name in ("cells_commanded", "cells_reported")
        ]
        self.frame = row_of(layout, *self.driver.columns, *cells)
        self.readings, self.commands = layout.bind(self.frame)
        self.driver.bind(self.frame, self.readings)
        self.bits = Seen(self.frame, self.readings).bits
        self._n = 0

    def open(self):
        self.driver.open()
        self.driver.arm()
        self.driver.read(0.0)
        return self

    def tick(self, *cells):
        """A command, a period, and the answer."""
        self.commands.cells[:] = 0
        self.commands.cells[list(cells)] = 1
        self.driver.write(self._n * PERIOD_S, self.commands)
        self.pass_period()
        self.driver.read(self._n * PERIOD_S)

    def pass_period(self):
        self.duty = self.board.step(round(1e6 * PERIOD_S))
        self._n += 1

    def value(self, column):
        return self.frame.values[self.frame.index(column)]


@pytest.fixture(params=["native", "emulated"])
def far(request):
    return Far(request.param)


def test_a_command_reaches_the_gates_of_its_cells_and_comes_back(far):
    far.open()
    far.tick(0, 3)
    far.tick(0, 3)
    assert far.duty[:4].tolist() == pytest.approx([0.0, 1.0, 1.0, 0.0], abs=1e-3)  # an instruction
    assert far.readings.cells_reported.tolist() == [1, 0, 0, 1]
    assert far.readings.valid[0]


def test_opening_energises_nothing_and_unarmed_commands_switch_nothing(far):
    far.driver.open()
    for _ in range(3):
        far.tick(0, 2, 3)
        assert not far.duty.any()
        assert not far.readings.cells_reported.any()


def test_currents_and_temperatures_are_read_back_cell_by_cell(far):
    far.open()
    seen = {}
    for _ in range(40):
        far.tick(0)
        for name in ("a.1.current_A", "a.3.current_A", "a.1.temperature_C"):
            if not np.isnan(far.value(name)):
                seen[name] = far.value(name)
    # one count of 1023 is 2 mA and 0.49 degC
    assert seen["a.1.current_A"] == pytest.approx(0.2, abs=0.003)
    assert seen["a.3.current_A"] == 0.0
    assert seen["a.1.temperature_C"] == pytest.approx(25.0, abs=0.6)


def test_a_silent_host_is_switched_off_by_the_board_and_stays_off(far):
    far.open()
    far.tick(0, 2, 3)
    on = 0
    for _ in range(60):
        far.pass_period()
        on += bool(far.duty[:3].all())
    assert 48 <= on <= 50  # ms that the command held
    for _ in range(60):
        far.pass_period()
    far.driver.read(0.121)
    far.tick(0, 2, 3)
    assert not far.duty.any()
    assert protocol.fault_names(far.bits("board_fault_bits")) == ["host_silent"]


def test_an_emergency_stop_in_the_run_opens_all_gates_within_the_period(far):
    far.open()
    far.tick(0, 2, 3)
    far.board.set_estop(True)
    far.tick(0, 2, 3)
    assert (far.duty < 0.1).all() or far.board.__class__ is NativeBoard  # it polls when stepped
    far.tick(0, 2, 3)
    assert not far.duty.any()
    assert protocol.fault_names(far.bits("board_fault_bits")) == ["estop_open"]


def test_a_cell_that_overheats_is_switched_off(far):
    far.open()
    far.tick(0)
    far.board.sense(1, 0.2, 0.0, 91.0)
    for _ in range(12):
        far.tick(0)
    assert not far.duty.any()
    assert protocol.fault_names(far.bits("board_fault_bits")) == ["temperature_high"]


def test_a_broken_wire_is_named_before_the_run_begins(far):
    far.board.sense(0, 0.0, 0.0, 25.0)
    far.driver.open()
    with pytest.raises(DeviceError, match=r"refused to be armed: is_faulted \(current_low: a.3\)"):
        far.driver.arm()


def test_safe_turns_everything_off_at_any_time(far):
    far.open()
    far.tick(0, 2, 3)
    far.driver.safe()
    far.pass_period()  # the emulated chip has taken part of it to answer
    for _ in range(3):
        far.driver.safe()
        far.pass_period()
        assert not far.duty.any()


@pytest.mark.parametrize("kind", ["native", "emulated"])
def test_stored_limits_are_the_rigs(kind):
    far = Far(kind, on_time_max_ms=50).open()
    for _ in range(60):
        far.tick(0)
    assert protocol.fault_names(far.bits("board_fault_bits")) == ["cell_on_too_long"]


def test_an_exchange_over_the_line_takes_what_its_bytes_take():
    """10 bytes there and 30 back at 10 us each, and what the chip takes to work on them."""
    far = Far("emulated").open()
    for k in range(100):
        far.tick(k % 4)
        assert 400e-6 < far.value("board_round_trip_s") < 1000e-6
    assert far.board.lost_bytes == 0


def test_a_late_answer_costs_the_chip_no_time():
    """The driver waits for an answer that takes longer than the period, and time goes on right."""
    far = Far("emulated").open()
    began_s = far.board.sent_s()
    for _ in range(20):
        far.commands.cells[:] = 1
        far.driver.write(0.0, far.commands)
        far.board.step(500)
        far.driver.read(0.0)
        assert far.readings.valid[0]
        far.board.step(500)
    assert far.board.sent_s() - began_s == pytest.approx(40 * 500e-6, abs=1e-6)


def test_an_emulated_board_of_another_process_is_not_there():
    with pytest.raises(DeviceError, match=r"emulated://4711 cannot be opened.*no emulated board"):
        SerialPort("board", "emulated://4711")


def test_what_the_emulation_lacks_is_named_with_its_packages(monkeypatch):
    monkeypatch.setattr(emulated.shutil, "which", lambda name: None)
    packages = "gcc-avr avr-libc simavr libsimavr-dev libelf-dev"
    with pytest.raises(ConfigError, match=packages):
        emulated.check_tools()


def test_the_board_proves_that_it_stops_by_itself_and_that_its_estop_opens(far):
    far.driver.open()
    tested = far.driver.self_test(print)
    assert tested == ["watchdog tested", "e-stop seen open"]
    far.driver.arm()


def test_a_reset_switches_all_off_and_is_found_with_the_first_answer(far):
    far.open()
    for _ in range(20):
        far.tick(0, 2, 3)
    assert far.bits("board_link_bits") == 0
    far.board.reset()
    for _ in range(8):
        far.tick(0, 2, 3)
        assert not far.duty.any()
    assert far.bits("board_link_bits") == 1


def test_a_dead_converter_is_stale_within_the_board_s_own_limit(far):
    far.open()
    far.board.set_converter(False)
    for _ in range(20 + 8):
        far.tick(0, 2, 3)
    assert not far.duty.any()
    assert "scan_stale" in protocol.fault_names(far.bits("board_fault_bits"))


def test_limits_that_are_spoilt_while_the_board_works_are_found_within_a_second(far):
    far.open()
    for _ in range(8):
        far.tick(0, 2, 3)
    assert far.duty.any()
    far.board.spoil_limits()
    n_ticks = 0
    while far.duty.any():
        far.tick(0, 2, 3)
        n_ticks += 1
        assert n_ticks <= 1000
    far.tick()
    far.tick()
    assert protocol.fault_names(far.bits("board_fault_bits")) == ["limits_corrupt"]
