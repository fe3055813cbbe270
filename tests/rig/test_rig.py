"""What a rig asks of its devices, and in which order, whatever they are: with devices that note."""

from types import SimpleNamespace

import numpy as np
import pytest
import tomli_w
import xarray as xr

from hil.config.files import read_merged
from hil.devices.board import protocol
from hil.devices.board.driver import CellBoard
from hil.devices.supply.driver import SupplyDevice
from hil.errors import ConfigError, DeviceError, StopError
from hil.experiment.load import load, load_rig
from hil.loop.channels import Channel, RigLayout, valid_rows
from hil.loop.frame import Column, Frame
from hil.loop.stages import Message
from hil.rig import rig as rigs
from hil.rig.instruments import layout_of
from hil.rig.rig import Rig, build_rig, parse_backend
from rows import row_of


class Noted:
    """A device that notes what it is asked, and fails where it is told to."""

    simulated, columns = False, ()

    def __init__(self, name, seen, fails=()):
        self.name, self._seen, self._fails = name, seen, fails

    def _note(self, what):
        self._seen.append(f"{self.name} {what}")
        if what in self._fails:
            raise DeviceError(f"{self.name}: no {what}")

    def open(self):
        self._note("open")

    def bind(self, frame, readings):
        self.readings = readings

    def self_test(self, say):
        self._note("test")
        return [] if self.name == "silent" else ["stops", "sees"]

    def arm(self):
        self._note("arm")

    def messages(self):
        return [Message("info", f"from {self.name}")]

    def read(self, t_s):
        self._note("read")

    def write(self, t_s, commands):
        self._note("write")

    def safe(self):
        self._note("safe")

    def close(self):
        self._note("close")


class Power(Noted):
    """A supply or an enable line, on once it has been asked often enough."""

    comes_on_after = 0

    def enable(self):
        self._note("on")

    def wait(self):
        self._note("waited for")

    def ready(self):
        self.comes_on_after -= 1
        return self.comes_on_after < 0

    def alive(self):
        self._note("fed")

    def disable(self):
        self._note("off")


def rig_of(*kinds, fails=None, layout=None):
    """A rig of devices by name: those named `supply` or `line` give power."""
    seen, fails = [], fails or {}
    devices = [
        (Power if name in ("supply", "line") else Noted)(name, seen, fails.get(name, ()))
        for name in kinds
    ]
    rig = Rig(devices, layout or RigLayout((), (), (), (), 0))
    return rig, seen, devices


def test_if_one_device_does_not_open_those_before_it_are_closed_and_the_rest_left_alone():
    rig, seen, _ = rig_of("a", "b", "c", "d", fails={"c": ("open",)})
    with pytest.raises(DeviceError, match="c: no open"):
        rig.open()
    assert seen[:3] == ["a open", "b open", "c open"]
    assert sorted(seen[3:]) == ["a close", "b close"]
    assert rig.states.now == "off"


def test_what_interrupts_opening_closes_too():
    rig, seen, (_, second) = rig_of("a", "b")

    def interrupted():
        raise KeyboardInterrupt

    second.open = interrupted
    with pytest.raises(KeyboardInterrupt):
        rig.open()
    assert seen == ["a open", "a close"]


def test_all_power_is_on_before_the_first_board_is_armed():
    rig, seen, _ = rig_of("a", "line", "b", "supply")
    rig.arm()
    words = [word for word in seen if not word.endswith("fed")]
    # the supply before the line behind it; then every device in turn
    assert words[:4] == ["supply on", "supply waited for", "line on", "line waited for"]
    assert words[4:] == ["a arm", "line arm", "b arm", "supply arm"]


@pytest.mark.parametrize("step", ["arm", "test"])
def test_the_watchdog_of_the_power_is_fed_before_and_after_each_device_that_takes_its_time(step):
    """A board that tests its wires may take longer than the watchdog holds; two in a row do."""
    rig, seen, _ = rig_of("line", "a", "b", "c")
    if step == "arm":
        rig.arm()
    else:
        rig.open()
        rig.self_test(print)
    for name in "abc":
        at = seen.index(f"{name} {step}")
        assert seen[at - 1] == "line fed"
        assert seen[at + 1] == "line fed"
    assert seen.index("line fed") < seen.index("line on")


def test_a_stop_while_devices_open_ends_that_and_one_after_it_is_left_alone():
    rig, _, _ = rig_of("line", "a")
    rig.stopped = lambda: True
    with pytest.raises(StopError):
        rig.open()
    rig.stopped = lambda: False
    rig.open()
    rig.stopped = lambda: True
    rig.keep_alive()


def test_a_stop_while_power_comes_on_ends_the_start_and_one_in_the_run_is_for_the_loop():
    rig, _, _ = rig_of("line", "a")
    rig.stopped = lambda: True
    with pytest.raises(StopError):
        rig.arm()
    rig.keep_alive()  # the start is over: nothing is raised into a tick
    rig.stopped = lambda: False
    rig.arm()
    rig.stopped = lambda: True
    rig.keep_alive()


def test_the_self_test_asks_the_sources_of_power_last_and_leaves_the_rig_ready():
    rig, seen, _ = rig_of("supply", "a", "silent", "line")
    rig.open()
    found = rig.self_test(print)
    tests = [word for word in seen if word.endswith("test")]
    assert tests == ["a test", "silent test", "supply test", "line test"]
    assert found == ["a: stops, sees", "supply: stops, sees", "line: stops, sees"]
    assert rig.states.now == "ready"


def test_a_device_that_fails_its_self_test_leaves_the_rig_in_a_fault():
    rig, seen, _ = rig_of("a", "b", fails={"a": ("test",)})
    rig.open()
    with pytest.raises(DeviceError, match="a: no test"):
        rig.self_test(print)
    assert rig.states.now == "fault"
    assert "b test" not in seen


def test_within_a_run_each_source_of_power_waits_for_the_one_that_feeds_it():
    rig, seen, (line, supply, _) = rig_of("line", "supply", "a")
    supply.comes_on_after, line.comes_on_after = 2, 1
    assert [rig.ready() for _ in range(4)] == [False, False, False, True]
    assert seen[:2] == ["supply on", "supply on"]  # the line stays low as long
    assert "line on" in seen
    assert not any("waited" in word for word in seen)  # a tick never waits


def test_power_goes_off_before_anything_else_and_whatever_fails():
    fails = {"line": ("off",), "a": ("safe", "close")}
    rig, seen, _ = rig_of("a", "line", "b", "supply", fails=fails)
    with pytest.raises(DeviceError, match="line: no off; a: no safe"):
        rig.safe()
    assert seen == ["line off", "supply off", "a safe", "line safe", "b safe", "supply safe"]


def test_on_every_way_out_all_is_switched_off_and_closed():
    rig, seen, _ = rig_of("a", "line", fails={"a": ("safe",)})
    with pytest.raises(DeviceError, match="a: no safe"), rig.opened():
        pass
    assert seen[-5:] == ["line off", "a safe", "line safe", "a close", "line close"]
    assert rig.states.now == "off"
    rig, seen, _ = rig_of("a")
    with pytest.raises(ZeroDivisionError), rig.opened():
        raise ZeroDivisionError
    assert seen == ["a open", "a safe", "a close"]


def test_a_device_that_fails_with_an_error_of_any_kind_is_named_and_the_next_is_closed():
    rig, seen, (first, _) = rig_of("a", "b")

    def broken():
        raise OSError

    first.close = broken
    with pytest.raises(DeviceError, match="OSError"):
        rig.close()
    assert seen == ["b close"]


FORCES = tuple(Channel(name, "_N", kind) for name, kind in (("left", "further"), ("f", "main")))


def bound(channels=FORCES):
    rig, _, _ = rig_of("a", layout=RigLayout(channels, (), (), (), 0))
    frame = Frame(rig.columns)
    rig.bind(frame)
    return rig, frame


def test_boards_beyond_the_bits_of_a_word_are_in_a_second_column():
    boards = tuple(f"board_{i}" for i in range(100))
    rig, _, _ = rig_of("a", layout=RigLayout(FORCES, (), boards, (), 0))
    frame = Frame(rig.columns)
    rig.bind(frame)
    flags = {c.name: c.flags for c in frame.columns if c.name.startswith("valid_bits")}
    assert flags["valid_bits"][:3] == ("left", "f", "board_0")
    assert flags["valid_bits"] + flags["valid_bits_2"] == ("left", "f", *boards)
    answered = [0, 2, 63, 64, 101]
    rig.readings.mark_valid((1 << 102) - 1, sum(1 << i for i in answered))
    rig.readings.mark_valid(1 << 63 | 1 << 70, 1 << 70)
    assert np.flatnonzero(rig.readings.valid).tolist() == [0, 2, 64, 70, 101]
    assert [i for i in range(102) if rig.readings.is_valid(i)] == [0, 2, 64, 70, 101]
    row = {name: np.array([frame.bits[frame.bit_index(name)]]) for name in flags}
    run = xr.Dataset({name: ("tick", row[name], {"flags": flags[name]}) for name in flags})
    valid = [source for source in ("left", "f", *boards) if valid_rows(run, source)[0]]
    assert valid == ["left", "board_0", "board_62", "board_68", "board_99"]


def test_a_tare_moves_its_channel_alone_adds_up_and_is_gone_from_no_later_tick():
    rig, frame = bound()
    for tared_N in (0.25, 0.5):
        rig.tare("left", tared_N)
    rig.tare("", 0.125)  # the controlled force
    for _ in range(2):
        rig.readings.measured[:] = 1.0, 2.0
        rig.read(0.0)
        assert frame.values[frame.index("left.force_measured_N")] == 0.25
        assert frame.values[frame.index("force_measured_N")] == 1.875
        # of several forces, the controlled one is recorded by its own name too
        assert frame.values[frame.index("f.force_measured_N")] == 1.875


def test_a_channel_that_is_no_force_has_no_tare():
    rig, _ = bound((*FORCES, Channel("height", "_m")))
    for name in ("height", "right"):
        with pytest.raises(ValueError, match=f"no force channel '{name}'"):
            rig.tare(name, 0.1)
    rig.readings.measured[:] = 1.0
    rig.read(0.0)
    np.testing.assert_array_equal(rig.readings.measured, 1.0)


def test_a_rig_that_is_at_rest_is_left_alone_by_a_stop():
    """Before power comes on a stop is for whoever runs it: the rig only feeds its watchdogs."""
    rig, seen, _ = rig_of("line")
    rig.stopped = lambda: True
    rig.keep_alive()
    assert seen == ["line fed"]


def test_of_a_single_force_there_is_one_column_and_no_copy():
    rig, _ = bound((Channel("f", "_N", "main"), Channel("height", "_m")))
    of = {column.name: column for column in rig.columns}
    assert [name for name in of if name.endswith("force_measured_N")] == ["force_measured_N"]
    assert of["force_measured_N"].description == "force on channel f"
    assert of["height_measured_m"].description == "reading on channel height"
    assert of["valid_bits"].flags == ("f", "height")
    rig.readings.measured[:] = 1.0, 2.0
    rig.read(0.0)
    assert rig.readings.measured.tolist() == [1.0, 2.0]


def test_a_rig_records_of_its_cells_what_its_boards_and_its_controller_do():
    def names(**more):
        layout = RigLayout(FORCES[:1], ("motor.torque_N_m",), (), (), 3, **more)
        rig, _, _ = rig_of("a", layout=layout)
        return {column.name: column for column in rig.columns}

    plain = names()
    assert set(plain) == {
        "left.force_measured_N", "motor.torque_N_m", "valid_bits", "cells_commanded",
        "cells_reported",
    }  # fmt: skip
    assert plain["motor.torque_N_m"].units == "N m"
    modulating = names(modulates=True)
    assert set(modulating) - set(plain) == {"cells_duty", "cells_duty_reported"}
    for name in ("cells_duty", "cells_duty_reported"):
        assert modulating[name].dtype.base == "<f8"
    assert set(names(isolates=True)) - set(plain) == {"cells_open"}
    assert all(column.n_cells == 3 for name, column in modulating.items() if "cells_" in name)


class Divider:
    """Reads and commands its device in every second tick."""

    def __init__(self, seen):
        self._seen, self._n = seen, 0

    def bind(self, frame, readings, device):
        self._seen.append(f"bound to {device.name}")

    def comes(self, t_s):
        self._n += 1
        return self._n % 2 == 1

    def leave_out(self, t_s):
        self._seen.append("left out")

    def writes(self, commands):
        return self._n % 2 == 1


def test_a_slow_device_is_read_and_commanded_when_its_divider_says_so_and_the_others_always():
    seen = []
    devices = [Noted("fast", seen), Noted("slow", seen)]
    rig = Rig(devices, RigLayout(FORCES, (), (), (), 0), [None, Divider(seen)])
    rig.bind(Frame(rig.columns))
    assert seen == ["bound to slow"]
    assert all(device.readings is rig.readings for device in devices)
    del seen[:]
    for t_s in (0.0, 1.0):
        rig.read(t_s)
        rig.write(t_s)
    first = ["fast read", "slow read", "fast write", "slow write"]
    assert seen == [*first, "fast read", "left out", "fast write"]
    rig, seen, _ = rig_of("a", "b", layout=RigLayout(FORCES, (), (), (), 0))
    rig.bind(Frame(rig.columns))
    rig.read(0.0)
    rig.write(0.0)
    assert seen == ["a read", "b read", "a write", "b write"]


class Fast(Noted):
    raw_samples = None

    def record_raw(self, sink): ...


def test_devices_that_sample_faster_than_the_loop_are_found_with_their_samples():
    seen = []
    fast, usual = Fast("fast", seen), Fast("usual", seen)
    fast.raw_samples = object()
    rig = Rig([Noted("a", seen), fast, usual], RigLayout((), (), (), (), 0))
    assert rig.samplers() == {"fast": (fast, fast.raw_samples)}


def card_rig():
    flags = ("estop_open", "m1_stuck", "f_at_rail", "g_frozen", "watchdog_expired")
    rig, _, (card,) = rig_of("card", layout=RigLayout(FORCES, (), (), ("card",), 0))
    card.columns = [
        Column("f.raw_V", "V", "measured", ""),
        Column("card_fault_bits", "1", "fault", "", flags=flags),
    ]
    frame = Frame(rig.columns)
    rig.bind(frame)
    frame.values[frame.index("f.raw_V")] = 9.99
    return rig, frame


@pytest.mark.parametrize(
    ("bits", "troubles"),
    [
        (0, {}),
        (1, {"estop_open": ["the e-stop loop that card reads is open"]}),
        (
            4,
            {
                "channel_untrue": [
                    "card: f_at_rail (a sample at an end of the input's range; their mean 9.99 V)"
                ]
            },
        ),
        (8, {"channel_untrue": ["card: g_frozen"]}),
        (
            16,
            {
                "device_failed": [
                    "card: its watchdog has expired and holds its outputs: the program stood still "
                    "for longer than watchdog_s"
                ]
            },
        ),
        (2, {"gate_stuck": ["card: m1 reads back another level than commanded"]}),
        (
            15,
            {
                "estop_open": ["the e-stop loop that card reads is open"],
                "channel_untrue": [
                    "card: f_at_rail (a sample at an end of the input's range; their mean 9.99 V)",
                    "card: g_frozen",
                ],
                "gate_stuck": ["card: m1 reads back another level than commanded"],
            },
        ),
    ],
)
def test_what_is_wrong_with_a_card_is_said_by_fault_with_its_voltage(bits, troubles):
    rig, frame = card_rig()
    frame.bits[frame.bit_index("card_fault_bits")] = bits
    assert rig.troubles(np.zeros(0)) == troubles


class Tables:
    """Two devices that can be anything, and a card for the plant or none."""

    def __init__(self, plant_card=None):
        self.devices, self.plant_card = {"board": None, "daq": None}, plant_card


@pytest.fixture
def _all_backends_there(monkeypatch):
    kind = SimpleNamespace(missing="any")
    monkeypatch.setattr("hil.rig.rig.device_kind", lambda table: kind)
    monkeypatch.setattr("hil.rig.rig.loaded", lambda name: lambda backend: "")


@pytest.mark.usefixtures("_all_backends_there")
def test_a_backend_is_for_all_devices_or_for_each_by_name():
    assert parse_backend("emulated", Tables()) == {"board": "emulated", "daq": "emulated"}
    assert parse_backend("daq=bench", Tables()) == {"board": "sim", "daq": "bench"}
    assert parse_backend("bench, daq=sim", Tables()) == {"board": "bench", "daq": "sim"}
    with_card = Tables(plant_card="card")
    assert parse_backend("plant=realtime", with_card) == {
        "board": "bench", "daq": "bench", "plant": "realtime",
    }  # fmt: skip
    assert parse_backend("plant=realtime,emulated", with_card)["daq"] == "emulated"


@pytest.mark.usefixtures("_all_backends_there")
@pytest.mark.parametrize(
    ("text", "card", "why"),
    [
        ("real", "card", "'real' is not one of sim, emulated, pty, bench"),
        ("daq=real", "card", "'real' is not one of"),
        ("left=sim", "card", "the rig has no device 'left', only board, daq"),
        ("plant=realtime", None, r"the rig has no \[plant_card\]"),
        ("plant=realtime,daq=sim", "card", "on the bench, or all emulated"),
        ("plant=realtime,sim", "card", "on the bench, or all emulated"),
        ("plant=realtime,daq=emulated", "card", "on the bench, or all emulated"),
    ],
)
def test_a_backend_that_cannot_be_is_refused_with_what_was_asked(text, card, why):
    with pytest.raises(ConfigError, match=f"--backend {text}: .*{why}"):
        parse_backend(text, Tables(card))


def test_a_backend_that_this_computer_lacks_is_named_with_its_device(monkeypatch):
    kind = SimpleNamespace(missing="any")
    monkeypatch.setattr("hil.rig.rig.device_kind", lambda table: kind)
    lacks = {"bench": "needs a driver", "sim": ""}
    monkeypatch.setattr("hil.rig.rig.loaded", lambda name: lacks.get)
    with pytest.raises(ConfigError, match="--backend daq=bench: 'daq' needs a driver"):
        parse_backend("daq=bench", Tables())


def test_messages_carry_the_name_of_their_device():
    rig, _, _ = rig_of("a", "b")
    assert [(name, message.text) for name, message in rig.messages()] == [
        ("a", "from a"), ("b", "from b"),
    ]  # fmt: skip
    assert not rig.has_news()
    assert rig.has_cooled()


def test_one_simulated_device_marks_what_may_come_from_it():
    rig, _, devices = rig_of("a", "b", layout=RigLayout(FORCES, (), (), (), 2))
    assert rig.simulated == []
    assert not any(column.simulated for column in rig.columns)
    devices[1].simulated = True
    assert rig.simulated == ["b"]
    of = {column.name: column.simulated for column in rig.columns}
    assert of["force_measured_N"]
    assert of["cells_reported"]
    assert not of["cells_commanded"]


class Board(CellBoard):
    """A board that answers at once."""

    simulated, columns = False, ()
    has_news = True

    def __init__(self, name, cool=True):
        self.name, self._cool = name, cool

    def bind(self, frame, readings): ...

    def has_cooled(self):
        return self._cool

    def troubles(self, on_s):
        return {"board_fault": [f"{self.name}: {on_s[0]:g} s on"]}


class Supply(SupplyDevice):
    simulated, columns = False, ()

    def __init__(self, name):
        self.name = name

    def bind(self, frame, readings): ...

    def troubles(self):
        return {"supply_wrong": [f"{self.name}: 9 V"], "board_fault": ["no power"]}


def test_what_devices_know_of_a_trip_is_put_together_by_fault():
    layout = RigLayout(FORCES[1:], (), ("a", "b"), (), 1)
    rig = Rig([Board("a"), Noted("d", []), Board("b"), Supply("s")], layout)
    rig.bind(row_of(layout))
    assert rig.troubles(np.array([2.5])) == {
        "board_fault": ["a: 2.5 s on", "b: 2.5 s on", "no power"],
        "supply_wrong": ["s: 9 V"],
    }


def test_a_rig_is_armed_only_once_every_board_has_cooled():
    for cool, has in (((True, True), True), ((True, False), False), ((False, True), False)):
        boards = [Board(name, of) for name, of in zip("ab", cool, strict=True)]
        assert Rig(boards, RigLayout((), (), ("a", "b"), (), 0)).has_cooled() == has


def test_news_within_a_run_come_from_boards_that_isolate_cells():
    for isolates in (True, False):
        layout = RigLayout((), (), ("a",), (), 0, isolates=isolates)
        assert Rig([Board("a")], layout).has_news() == isolates


def test_a_board_that_measures_resistance_tells_within_a_run_that_it_sees_no_supply(configs):
    layout = RigLayout((), (), ("a",), (), 0, senses=True)
    assert Rig([Board("a")], layout).has_news()
    for name, senses in (("wires4", True), ("miga6", False)):
        config = load_rig(configs / name / "rig.toml")
        assert layout_of(config.tables, config.models[0].cell_names).senses == senses


@pytest.mark.parametrize("experiment", ["miga6/all_on.toml", "wires4/hold.toml"])
def test_a_rig_is_built_boards_first_and_supplies_last_whatever_the_order_of_its_tables(
    configs, experiment, monkeypatch
):
    """A simulated plant follows what its boards report; power goes on backwards."""
    config = load(configs / experiment)
    numbers, dividers, loaded = {}, [], rigs.loaded

    def noted(name):
        def build(given):
            numbers.setdefault(given.table.role, []).append(given.number)
            dividers.append(SimpleNamespace())
            return loaded(name)(given)[0], dividers[-1]

        return build

    monkeypatch.setattr(rigs, "loaded", noted)
    rig = build_rig(config, 1)
    assert all(of == list(range(len(of))) for of in numbers.values())  # from 0, each role by itself
    assert rig._dividers == dividers
    names = [device.name for device in rig._devices]
    assert sorted(names) == sorted(config.tables.devices)
    roles = [config.tables.devices[name].role for name in names]
    assert roles == sorted(roles, key=("board", "card", "instrument", "supply").index)
    assert rig.simulated == names
    assert not rig.layout.modulates
    assert build_rig(load(configs / "wires4/modulate.toml"), 1).layout.modulates
    assert rig.layout.cell_names == tuple(config.system(plant=True).cell_names)


def test_every_source_of_power_is_fed():
    rig, seen, _ = rig_of("line", "a", "supply")
    rig.keep_alive()
    assert seen == ["line fed", "supply fed"]


class OneEstop:
    """Opens and closes one e-stop whose contacts are in the loops of several boards."""

    def __init__(self, operators):
        self._operators = operators

    def wait(self, duration_s):
        for operator in self._operators:
            operator.wait(duration_s)

    def set_estop(self, is_open):
        for operator in self._operators:
            operator.set_estop(is_open)
        return True


def test_boards_with_one_e_stop_are_tested_and_armed_one_after_the_other(configs):
    config = load(configs / "array14/pid.toml")
    rig = build_rig(config, 1)
    rig.bind(Frame(rig.columns))
    boards = [device for device in rig._devices if isinstance(device, CellBoard)]
    operators = [board._operator for board in boards]
    for board in boards:
        board._operator = OneEstop(operators)
    with rig.opened():
        tested = rig.self_test(print)
        assert sum("e-stop seen open" in line for line in tested) == 2
        rig.arm()
        operators[0].set_estop(True)
        rig.write(0.0)
        operators[0].wait(0.005)
        rig.read(0.005)
        with pytest.raises(DeviceError, match="board_a: cannot be armed while this persists: esto"):
            boards[0].forget_estop()


def test_boards_wait_for_their_relays_before_any_is_armed(rigs):
    """An armed one trips without a command for 0.1 s; 14 relays one after the other take 0.2 s."""
    table = read_merged(rigs / "array14/pid.toml").table
    like, devices = table["devices"]["board_a"], table["devices"]
    cells = like["cells"] + devices.pop("board_b")["cells"]
    del devices["board_a"]
    for i, cell in enumerate(cells):
        devices[f"board_{i}"] = like | {"cells": [cell], "port": f"usb:HIL-{i}"}
    path = rigs / "array14/boards.toml"
    path.write_text(tomli_w.dumps(table))
    config = load(path)
    rig = build_rig(config, 1)
    rig.bind(Frame(rig.columns))
    boards = [device for device in rig._devices if isinstance(device, CellBoard)]
    operators = [board._operator for board in boards]
    for board in boards:
        board._operator = OneEstop(operators)  # time passes for all of them
    with rig.opened():
        rig.self_test(print)
        rig.arm()
        states = {protocol.state_name(board._link.ask("read")["state"]) for board in boards}
    assert (len(boards), states) == (14, {"armed"})


class SlowToArm(Noted):
    """A card whose first samples come late: it waits as every device does, and time passes."""

    def __init__(self, operators):
        super().__init__("card", [])
        self._operators = operators

    def arm(self):
        for _ in range(60):
            for operator in self._operators:
                operator.wait(0.0025)
            self.rig.keep_alive()


def test_an_armed_board_stays_so_while_another_device_takes_its_time(configs):
    """150 ms, and a board that nobody commands trips after 100 ms."""
    rig = build_rig(load(configs / "miga6/pid.toml"), 1)
    rig.bind(Frame(rig.columns))
    [board] = rig._all_boards
    slow = SlowToArm([board._operator])
    slow.rig = rig
    with rig.opened():
        rig.self_test(print)
        rig._devices.append(slow)
        rig.arm()
        assert protocol.state_name(board._link.ask("read")["state"]) == "armed"
        rig.read(0.0)
        rig.write(0.0)
        board._operator.wait(0.001)
        rig.read(0.001)
        assert rig.readings.is_valid(board._place.index)
        assert not rig.readings.cells_reported.any()
        rig._devices.remove(slow)
