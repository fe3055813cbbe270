"""A rig whose board is an Arduino as it is sold: what it must say, what stands in, that it runs."""

import ctypes
from math import ceil

import numpy as np
import pytest
import tomli_w

import hil
from hil.__main__ import main
from hil.config.files import read_merged
from hil.devices.board import protocol
from hil.devices.board.cells import BoardPlace
from hil.devices.board.driver import BoardSpec, CellBoard
from hil.devices.board.link import Link
from hil.devices.board.native import NativeBoard
from hil.devices.board.self_test import SimulatedOperator
from hil.errors import DeviceError
from hil.experiment.load import load, load_rig
from hil.loop.channels import RigLayout
from hil.runs import session
from hil.runs.plan import Plan
from hil.runs.recording import Output
from rows import row_of

FACTORY = (0xFF, 0xDE, 0xFD)  # of an Uno, in the order low, high, extended
LACKING = {
    "current_high", "current_low", "current_when_off", "temperature_high", "temperature_range",
    "scan_untrue",
}  # fmt: skip


@pytest.fixture
def arduino(rigs):
    """Writes wires4/hold with an Arduino for its board; a function changes its tables first."""

    def written(change=lambda table: None, volts=9.0):
        table = read_merged(rigs / "wires4/hold.toml").table
        devices = table["devices"]
        devices["board"] |= {"build": "arduino", "fuses": "as_delivered"}
        devices["board"]["limits"]["sense_every_ms"] = 0
        devices["supply"] |= {"voltage_V": volts, "voltage_max_V": volts}
        for which in ("model", "plant"):
            arrays = table.setdefault(which, {}).setdefault("arrays", {})
            arrays.setdefault("muscle", {}).setdefault("activation", {})["supply_V"] = volts
        least_Ohm = 4 * 0.1 * 113.0  # four wires of 0.1 m in series, austenite
        devices["board"]["limits"]["current_max_mA"] = ceil(1e3 * 1.03 * volts / least_Ohm)
        table["guard"] |= {"force_residual_max_N": 1e3, "force_rate_max_N_per_s": 1e4,
                           "force_rise_min_N": 1e3}  # fmt: skip
        change(table)
        path = rigs / "wires4/arduino.toml"
        path.write_text(tomli_w.dumps(table))
        return path

    return written


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("backend", ["sim", "board=emulated,daq=sim,supply=sim"])
def test_it_runs_and_what_it_does_not_measure_is_no_number(arduino, backend, tmp_path):
    path = arduino()
    sets = ["experiment.duration_s=0.5", "controller.steps=[{t_s=0.1, on='all'}]"]
    session.run(Plan(load(path, sets), backend=backend, seed=1), Output(out=tmp_path / "r.h5"))
    there = hil.open_run(tmp_path / "r.h5")
    assert there.attrs["outcome"] == "complete"
    assert there.cells_reported.values[-300:].all()
    for n in (1, 2, 3, 4):
        assert np.isnan(there[f"muscle.{n}.current_A"]).all()
        assert np.isnan(there[f"muscle.{n}.temperature_C"]).all()
    assert main(["replay", str(tmp_path / "r.h5")]) == 0


def test_wires_that_are_held_on_stay_below_their_maximum_by_the_assumed_current(arduino, tmp_path):
    """14 V would take them to 330 C and more; nobody measures it."""

    def change(table):
        table["experiment"]["duration_s"] = 3.0
        table["controller"]["steps"] = [{"t_s": 0.0, "on": "all"}]
        table["guard"]["force_max_N"] = 21.0
        table["devices"]["supply"]["current_A"] = 1.2

    path = arduino(change, volts=14.0)
    session.run(Plan(load(path), seed=1), Output(out=tmp_path / "r.h5"))
    there = hil.open_run(tmp_path / "r.h5")
    texts = [str(text) for text in there.event_text.values]
    assert any("cell_energy_high: muscle." in t and "at 0.32 A" in t for t in texts)
    hottest_C = max(float(there[f"muscle.{n}.wire_model_C"].max()) for n in (1, 2, 3, 4))
    assert 80.0 < hottest_C < 180.0


def _without(name):
    def change(table):
        del table["devices"][name]

    return change


def _board(**limits):
    return lambda table: table["devices"]["board"]["limits"].update(limits)


def _two_cells_unknown(table):
    for which in ("model", "plant"):
        table[which]["arrays"]["muscle"]["activation"] = {"kind": "step"}
    del table["model"]["arrays"]["muscle"]["record"]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (_board(current_max_mA=170), "counts this current as heat, and an intact cell can draw"),
        (_without("supply"), "nothing could cut its power: add an enable line to a card, or a sup"),
        (_without("supply"), "supply_current_max_A: missing: nothing measures the current of a"),
        (_board(open_cells_max=1), "limits.open_cells_max = 1: an Arduino measures nothing"),
        (_board(sense_every_ms=100), "limits.sense_every_ms = 100: an Arduino measures nothing"),
        (_two_cells_unknown, "devices.board.wire: missing: an Arduino computes the heat of"),
    ],
)
def test_a_rig_without_what_stands_in_for_sensors_is_refused(change, text, arduino, capsys):
    assert main(["check", str(arduino(change))]) == 2
    assert text in capsys.readouterr().err


def test_the_plan_says_what_it_cannot_find_and_how_hot_wires_may_get(arduino, capsys):
    shorter = ("--set", "controller.steps=[{t_s=0.5, on=[1]}, {t_s=1.2, off='all'}]")
    assert main(["check", str(arduino()), "--energise-plan", *shorter]) == 0
    said = capsys.readouterr().out
    assert "'board' (Arduino) measures nothing: it cannot find current_high, current_low" in said
    assert "counts 206 mA as heat of every cell that is on" in said  # 1.03 of 9 V over 45.2 Ohm
    assert "the maximum is 180 C; a cell held on trips after" in said


def test_the_limits_for_its_wires_assume_the_largest_current_of_an_intact_cell(arduino, rigs):
    table = read_merged(arduino(volts=8.0)).table
    for name in ("experiment", "controller"):
        del table[name]
    (rigs / "wires4/rig_arduino.toml").write_text(tomli_w.dumps(table))
    (board,) = load_rig(rigs / "wires4/rig_arduino.toml").protections
    wanted = board.wanted()
    assert wanted["current_max_mA"] == ceil(1e3 * 1.03 * 8.0 / (4 * 0.1 * 113.0))
    held_on = type(board)(
        board.name, {**board.limits, **wanted}, board.cells, (), board.bench, measures=False
    )
    assert max(p.worst_C for p in held_on.peaks()) <= 180.0


# The handshake


class Uno:
    """A board and its driver; `deaf` exchanges stay unanswered while its boot loader waits."""

    def __init__(self, measures, says=False, fuses=None, as_delivered=True, deaf=0):
        self.board = NativeBoard(
            1, protocol.default_limits(), np.random.default_rng(0), measures=measures
        )
        if fuses is not None:
            self.board._library.libboard_set_fuses(ctypes.c_void_p(self.board._board), *fuses)
            self.board.reset()
            self.board.advance(20_000_000)
        self.deaf, self.waited_s = deaf, 0.0
        operator = SimulatedOperator(self.board)
        inner = operator.wait

        def wait(duration_s):
            self.waited_s += duration_s
            self.deaf = 0 if self.waited_s > 1.0 else self.deaf
            inner(duration_s)

        operator.wait = wait
        names = ("c.1", "c.2")
        spec = BoardSpec(protocol.default_limits(), measures=says, as_delivered=as_delivered)
        link = Link("board", lambda: self, 0.05, 0.01, simulated=True)
        self.driver = CellBoard(link, BoardPlace((0, 1), names, 0), spec, operator)
        layout = RigLayout((), (), ("board",), ("board",), 2, cell_names=names)
        frame = row_of(layout, *self.driver.columns)
        readings, _ = layout.bind(frame)
        self.driver.bind(frame, readings)

    def write(self, data):
        if not self.deaf:
            self.board.write(data)

    def read(self, timeout_s):
        return self.board.read(timeout_s)

    def sent_s(self):
        return self.board.sent_s()

    arrived_s = sent_s

    def close(self):
        """Nothing is held."""


def test_a_board_that_protects_less_than_the_rig_says_is_refused():
    with pytest.raises(DeviceError, match=r"cannot find current_high, .*build = \"arduino\"") as no:
        Uno(measures=False, says=True).driver.open()
    assert all(name in str(no.value) for name in LACKING)
    with pytest.raises(DeviceError, match=r"measures currents, and the rig says.*remove"):
        Uno(measures=True, says=False).driver.open()


def test_the_fuses_of_an_arduino_are_a_warning_only_where_the_rig_accepts_them():
    with pytest.raises(DeviceError, match=r"do not protect: WDTON.*BODLEVEL.*EESAVE"):
        Uno(measures=False, fuses=FACTORY, as_delivered=False).driver.open()
    uno = Uno(measures=False, fuses=FACTORY)
    uno.driver.open()
    (note,) = uno.driver.messages()
    assert note.level == "warning"
    assert note.text.startswith("fuses as delivered: WDTON: the watchdog can be switched off")
    assert uno.driver.messages() == []
    assert uno.driver.self_test(print) == ["watchdog tested", "e-stop seen open"]


def test_an_arduino_that_the_opening_of_its_port_has_reset_is_met_once_it_has_started():
    uno = Uno(measures=False, deaf=1)
    uno.driver.open()
    assert 1.0 < uno.waited_s < 3.5
    with pytest.raises(DeviceError, match="does not answer"):
        Uno(measures=False, as_delivered=False, deaf=1).driver.open()
