"""The driver against the shipped firmware core, and against boards that misbehave."""

import math

import numpy as np
import pytest

from hil.devices.board import protocol
from hil.devices.board.cells import BoardPlace
from hil.devices.board.driver import BoardSpec, CellBoard
from hil.devices.board.link import Link
from hil.devices.board.native import N_CELLS, NativeBoard
from hil.devices.board.self_test import SimulatedOperator
from hil.errors import DeviceError
from hil.loop.channels import Channel, RigLayout
from hil.loop.frame import CELL_UNKNOWN, Broadcast, Commands
from rows import Seen, row_of

GATES = (2, 0, 3)


def native(**limits):
    board = NativeBoard(7, protocol.default_limits() | limits, np.random.default_rng(0))
    for cell in range(N_CELLS):
        board.sense(cell, 0.2, 0.0, 25.0)
    board.advance(100_000)
    return board


def driver(port, *, modulates=False, hold_s=0.05, **limits):
    place = BoardPlace(GATES, ("a.3", "a.1", "a.4"), index=1)
    link = Link("board", lambda: port, hold_s, 0.001, simulated=True)
    spec = BoardSpec(protocol.default_limits() | limits)
    made = CellBoard(link, place, spec, SimulatedOperator(port))
    layout = RigLayout(
        (Channel("force", "_N", "main"),), (), ("board",), ("board",), 4, isolates=True,
        modulates=modulates,
    )  # fmt: skip
    frame = row_of(layout, *made.columns)
    readings, _ = layout.bind(frame)
    made.bind(frame, readings)
    return made, frame, Seen(frame, readings)


def on(*cells):
    mask = np.zeros(4, dtype=np.uint8)
    mask[list(cells)] = 1
    return Commands(mask, np.zeros(0))


def at_duties(**cells):
    """Duties of cells by number, such as c3=0.5."""
    duty = np.zeros(4)
    for cell, value in cells.items():
        duty[int(cell[1:])] = value
    return Commands((duty > 0.0).astype(np.uint8), np.zeros(0), duty=duty)


def armed(board=None, *, modulates=False, **limits):
    board = board or native(**limits)
    made, frame, readings = driver(board, modulates=modulates, **limits)
    made.open()
    made.arm()
    made.read(0.0)
    return board, made, frame, readings


def test_a_command_reaches_the_gates_of_its_cells_and_comes_back():
    board, made, _, r = armed()
    made.write(0.0, on(0, 3))
    assert board.gates()[:4].tolist() == [0, 255, 255, 0]
    board.advance(1000)
    made.read(0.001)
    assert r.cells_reported.tolist() == [1, 0, 0, 1]
    assert r.valid[1]
    assert r.value("board_age_s") == pytest.approx(0.001)


def test_a_duty_reaches_the_gate_of_its_cell_and_is_reported_once_the_board_has_it():
    board, made, _, r = armed(modulates=True)
    made.write(0.0, at_duties(c0=100 / 255, c3=1.0))
    assert board.gates()[:4].tolist() == [0, 100, 255, 0]
    board.advance(1000)
    made.read(0.001)
    assert r.cells_reported.tolist() == [1, 0, 0, 1]
    np.testing.assert_allclose(r.duty_reported, [100 / 255, 0.0, 0.0, 1.0], rtol=1e-15)


def test_the_duty_of_a_board_that_does_not_answer_is_unknown():
    _, made, _, r = armed(modulates=True)
    made.read(0.001)  # the answer to arming was read; no command has been sent since
    assert np.isnan(r.duty_reported[list(GATES)]).all()


def test_a_duty_that_the_board_refuses_is_not_reported_as_applied():
    board, made, _, r = armed(modulates=True)
    made.write(0.0, at_duties(c0=0.5))
    made.read(0.001)
    made.write(0.001, at_duties(c0=8 / 255))  # too short for a reading of its current
    made.read(0.002)
    assert board.gates()[1] == 128
    assert np.isnan(r.duty_reported[0])
    assert r.bits("board_link_bits") == 2  # board_refused


def test_after_a_trip_of_the_board_no_duty_is_on():
    board, made, _, r = armed(modulates=True)
    made.write(0.0, at_duties(c0=0.5, c2=1.0))
    board.set_estop(True)
    board.advance(5000)
    assert not board.gates().any()
    made.read(0.001)
    made.write(0.001, at_duties(c0=0.5, c2=1.0))
    assert not board.gates().any()
    made.read(0.002)
    assert not r.cells_reported[[0, 2, 3]].any()


def test_opening_energises_nothing_and_unarmed_commands_switch_nothing():
    board = native()
    made, _, r = driver(board)
    made.open()
    made.write(0.0, on(0, 2, 3))
    assert not board.gates().any()
    made.read(0.001)
    assert not r.cells_reported.any()


def test_currents_and_temperatures_are_read_back_cell_by_cell():
    board, made, frame, _ = armed()
    seen = {}
    for k in range(40):
        made.write(0.001 * k, on(0))
        board.advance(1000)
        made.read(0.001 * (k + 1))
        for name in ("a.1.current_A", "a.3.current_A", "a.1.temperature_C"):
            value = frame.values[frame.index(name)]
            if not math.isnan(value):
                seen[name] = value
    # one count of 1023 is 2 mA and 0.49 degC
    assert seen["a.1.current_A"] == pytest.approx(0.2, abs=0.002)
    assert seen["a.3.current_A"] == 0.0
    assert seen["a.1.temperature_C"] == pytest.approx(25.0, abs=0.49)


def test_a_silent_host_is_switched_off_by_the_board_and_stays_off():
    board, made, frame, r = armed()
    made.write(0.0, on(0, 2, 3))
    board.advance(40_000)
    assert board.gates().any()
    board.advance(70_000)
    assert not board.gates().any()
    made.read(0.11)
    made.write(0.11, on(0, 2, 3))
    made.read(0.111)
    assert not board.gates().any()
    assert protocol.fault_names(r.bits("board_fault_bits")) == ["host_silent"]
    assert protocol.fault_names(int(frame.bits[frame.bit_index("board_fault_bits")])) == [
        "host_silent"
    ]


def test_safe_turns_everything_off_at_any_time_and_any_number_of_times():
    board, made, _, _ = armed()
    made.write(0.0, on(0, 2, 3))
    for _ in range(3):
        made.safe()
        assert not board.gates().any()
    made.close()
    made.safe()
    made.close()


def test_an_open_estop_refuses_arming_with_its_name():
    board = native()
    board.set_estop(True)
    board.advance(5_000)
    made, _, _ = driver(board)
    with pytest.raises(DeviceError, match=r"cannot be armed while this persists: estop_open"):
        made.open()
    assert not board.gates().any()


def test_a_broken_wire_is_named_before_the_run_begins():
    board = native()
    board.sense(0, 0.0, 0.0, 25.0)  # gate 0 has cell a.3
    made, _, _ = driver(board)
    made.open()
    with pytest.raises(DeviceError, match=r"refused to be armed: is_faulted \(current_low: a.3\)"):
        made.arm()
    assert not board.gates().any()


def test_gates_that_the_rig_does_not_use_may_be_open():
    board = native()
    for gate in range(len(GATES), N_CELLS):
        board.sense(gate, 0.0, 0.0, 25.0)
    _, made, _, _ = armed(board)
    made.write(0.0, on(0, 2, 3))
    assert board.gates().astype(bool).sum() == 3


@pytest.mark.parametrize("key", protocol.LIMITS)
def test_limits_that_differ_are_found_at_opening_and_named(key):
    held = protocol.default_limits()[key]
    made, _, _ = driver(native(), **{key: held + 1})
    with pytest.raises(DeviceError, match=f"{key} is {held} on the board, {held + 1} in the rig"):
        made.open()


def test_a_board_with_its_own_limits_is_armed_by_a_rig_that_knows_them():
    board, made, _, _ = armed(on_time_max_ms=20_000)
    made.write(0.0, on(0))
    assert board.gates().any()


class Port:
    """A port whose answers are spoilt by a function."""

    def __init__(self, spoil):
        self._board = native()
        self._spoil = spoil

    def write(self, data):
        self._board.write(data)

    def read(self, timeout_s):
        return self._spoil(self._board.read(1.0))

    def advance(self, duration_us):
        self._board.advance(duration_us)

    def close(self):
        """Stays open."""

    def sent_s(self):
        return 0.0

    def arrived_s(self):
        return 0.0


def test_a_board_that_says_nothing_is_reported_with_what_to_check():
    made, _, _ = driver(Port(lambda data: b""))
    with pytest.raises(DeviceError, match=r"board: does not answer.*cable"):
        made.open()


def test_a_flipped_bit_makes_a_missing_answer_and_never_a_wrong_one():
    spoil = [lambda data: data]
    _, made, _, r = armed(Port(lambda data: spoil[0](data)))
    made.write(0.0, on(0))
    spoil[0] = lambda data: bytes([data[0], data[1] ^ 4, *data[2:]]) if data else data
    made.read(0.001)
    assert not r.valid[1]
    assert r.cells_reported[list(GATES)].tolist() == [255, 255, 255]


def test_an_answer_to_an_earlier_command_is_not_taken_for_the_latest():
    kept = []
    hold = [False]

    def delayed(data):
        if not hold[0] or not data:
            return data
        kept.append(data)
        return kept.pop(0) if len(kept) > 1 else b""

    _, made, _, r = armed(Port(delayed))
    hold[0] = True
    made.write(0.0, on(0))
    made.read(0.001)
    assert not r.valid[1]
    made.write(0.001, on())
    made.read(0.002)  # brings the answer to the first command only
    assert not r.valid[1]


def test_a_board_with_other_firmware_is_refused():
    def other_hash(data):
        decoder = protocol.Decoder()
        messages = decoder.feed(data)
        if messages and messages[0].name == "identity":
            fields = dict(messages[0].fields) | {"wire_hash": protocol.WIRE_HASH ^ 1}
            return protocol.encode("identity", messages[0].seq, **fields)
        return data

    made, _, _ = driver(Port(other_hash))
    with pytest.raises(DeviceError, match="another version of the protocol"):
        made.open()


class Slow:
    """A port whose answers are there only after the tick in which they were asked for."""

    def __init__(self, board):
        self._board = board
        self.slow = False

    def __getattr__(self, name):
        return getattr(self._board, name)

    def read(self, timeout_s):
        return b"" if self.slow else self._board.read(timeout_s)


def broadcast(tick, p=0.5, q=0.5):
    cells = np.zeros(4, dtype=np.uint8)
    return Commands(cells, np.zeros(0), broadcast=Broadcast(tick, p, q, seed=9))


def drawn_by_gates(tick, before=(0, 0, 0)):
    """What gates 0 to 2 have after a draw with p = q = 1/2, as cells 3, 1 and 4."""
    mask = np.zeros(4, dtype=np.uint8)
    for gate, cell in enumerate(GATES):
        changes = protocol.draw(9, tick, gate) < 32768
        mask[cell] = before[gate] ^ changes
    return mask


def test_a_broadcast_is_drawn_by_the_board_and_its_answer_fills_the_command():
    _, made, _, r = armed()
    commands = broadcast(1)
    made.write(0.0, commands)
    assert np.array_equal(commands.cells, drawn_by_gates(1))
    made.read(0.001)
    assert np.array_equal(r.cells_reported, drawn_by_gates(1))


def test_a_broadcast_sent_again_draws_nothing_new():
    _, made, _, r = armed()
    for k in range(20):
        commands = broadcast(1)
        made.write(0.001 * k, commands)
        made.read(0.001 * (k + 1))
        assert np.array_equal(r.cells_reported, drawn_by_gates(1))


def test_an_answer_too_late_for_its_tick_leaves_the_cells_unknown_until_the_next():
    port = Slow(native())
    _, made, _, r = armed(port)
    port.slow = True
    commands = broadcast(1)
    made.write(0.0, commands)
    assert [commands.cells[cell] for cell in GATES] == [255] * 3
    port.slow = False
    made.read(0.001)
    assert np.array_equal(r.cells_reported, drawn_by_gates(1))
    port.slow = True  # it has been told: nobody waits for the answer to a repetition
    again = broadcast(1)
    again.cells[:] = r.cells_reported
    made.write(0.001, again)
    assert np.array_equal(again.cells, drawn_by_gates(1))


def test_a_wire_that_breaks_in_the_run_is_set_apart_and_named_once():
    limits = {"open_cells_max": 1}
    board, made, _, r = armed(native(**limits), **limits)
    made.write(0.0, on(0, 2, 3))
    board.sense(0, 0.0, 0.0, 25.0)  # gate 0 has cell a.3
    for k in range(1, 15):
        board.advance(1000)
        made.read(0.001 * k)
        made.write(0.001 * k, on(0, 2, 3))
    assert r.cells_reported.tolist() == [1, 0, 0, 1]
    assert r.cells_open.tolist() == [0, 0, 1, 0]
    assert board.gates()[:3].tolist() == [0, 255, 255]
    assert not r.bits("board_fault_bits")
    assert made.has_news
    assert [message.text for message in made.messages()] == [
        "a.3: electrically dead: open wire, found by its board"
    ]
    assert not made.has_news
    assert made.messages() == []


def test_a_wire_found_open_at_arming_is_named_and_named_again_at_the_next_arming():
    limits = {"open_cells_max": 1}
    board = native(**limits)
    board.sense(1, 0.0, 0.0, 25.0)  # gate 1 has cell a.1
    _, made, _, r = armed(board, **limits)
    for _ in range(2):
        assert r.cells_open.tolist() == [1, 0, 0, 0]
        assert [message.text[:4] for message in made.messages()] == ["a.1:"]
        made.safe()
        made.arm()
    made.safe()
    board.sense(1, 0.2, 0.0, 25.0)  # mended
    made.arm()
    made.read(0.1)
    assert not r.cells_open.any()
    assert not made.has_news


def test_a_cell_found_open_as_it_draws_is_not_known_in_that_tick():
    limits = {"open_cells_max": 1}
    board, made, _, r = armed(native(**limits), **limits)
    message = Broadcast(tick=1, p_on=1.0, q_off=0.0, seed=3)
    commands = Commands(np.zeros(4, dtype=np.uint8), np.zeros(0), broadcast=message)
    made.write(0.0, commands)
    assert commands.cells[[0, 2, 3]].tolist() == [1, 1, 1]
    board.sense(0, 0.0, 0.0, 25.0)
    board.advance(1000)
    made.read(0.001)
    board.advance(10_000)  # no reading between finding and drawing
    message.tick = 2
    made.write(0.011, commands)
    assert commands.cells[[0, 2, 3]].tolist() == [1, CELL_UNKNOWN, 1]
    made.read(0.012)
    assert r.cells_open.tolist() == [0, 0, 1, 0]
    message.tick = 3
    made.write(0.012, commands)
    assert commands.cells[[0, 2, 3]].tolist() == [1, 0, 1]


class OldBoard:
    """Answers every command in a version of the wire of its own."""

    def __init__(self):
        self._answer = b""

    def write(self, data):
        body = bytes(
            (protocol.VERSION - 1, protocol.ANSWERS["status"], data[3] if len(data) > 3 else 0)
        )
        self._answer = protocol.framed(body + bytes(23))

    def read(self, timeout_s):
        answer, self._answer = self._answer, b""
        return answer

    def sent_s(self):
        return 0.0

    arrived_s = sent_s

    def advance(self, duration_us):
        """Its time does not matter."""

    def set_estop(self, is_open):
        """It has none."""

    def close(self):
        """Nothing to close."""


def test_a_board_of_another_version_of_the_wire_is_said_to_be_one():
    made, _, _ = driver(OldBoard())
    with pytest.raises(
        DeviceError, match="board: its firmware speaks another version of the protocol"
    ):
        made.open()


def troubles(made, frame):
    """What the driver finds wrong with its board's answers."""
    bits = int(frame.bits[frame.bit_index("board_link_bits")])
    return [name for i, name in enumerate(made.columns[-1].flags) if bits >> i & 1]


def ticks(board, made, n=3, commands=None, first=0):
    for k in range(first, first + n):
        made.write(0.001 * k, commands or on(0, 2, 3))
        board.advance(1000)
        made.read(0.001 * (k + 1))


def changed(**fields):
    """Answers with these fields changed: a value, or a function of it."""

    def with_changes(there):
        if "status" in there:  # of an answer to arming
            return there | {"status": with_changes(there["status"])}
        known = {k: v for k, v in fields.items() if k in there}
        return there | {k: v(there[k]) if callable(v) else v for k, v in known.items()}

    def spoil(data):
        answers = protocol.Decoder().feed(data)
        return b"".join(protocol.encode(a.name, a.seq, **with_changes(a.fields)) for a in answers)

    return spoil


class Spoilt:
    """A board whose answers a function changes from some moment on."""

    def __init__(self, spoil=lambda data: data):
        self._board = native()
        self.spoil = spoil

    def __getattr__(self, name):
        return getattr(self._board, name)

    def read(self, timeout_s):
        return self.spoil(self._board.read(timeout_s))


@pytest.mark.parametrize(("n_gates", "opens"), [(len(GATES) - 1, False), (len(GATES), True)])
def test_a_board_with_fewer_gates_than_its_rig_has_cells_is_refused(n_gates, opens):
    made, _, _ = driver(Spoilt(changed(n_cells=n_gates)))
    if opens:
        made.open()
    else:
        with pytest.raises(DeviceError, match=f"the board has {n_gates} gates, the rig asks for 3"):
            made.open()


def test_a_board_that_works_has_no_trouble():
    board, made, frame, r = armed()
    ticks(board, made, 300)
    assert troubles(made, frame) == []
    assert r.bits("board_link_bits") == 0


@pytest.mark.parametrize("message", [None, Broadcast(tick=1, p_on=0.5, q_off=0.5, seed=3)])
def test_a_reset_in_the_run_is_found_with_masks_and_with_broadcasts(message):
    board, made, frame, r = armed()
    commands = on(0, 2, 3)
    if message is not None:
        commands = Commands(commands.cells, np.zeros(0), broadcast=message)
    ticks(board, made, 20, commands)
    assert troubles(made, frame) == []
    board.reset()
    ticks(board, made, 2, commands, first=20)
    assert troubles(made, frame) == ["board_reset"]
    assert r.bits("board_link_bits") == 1


def test_a_reset_between_arming_and_the_first_tick_is_found_at_the_second():
    board = native()
    made, frame, _ = driver(board)
    made.open()
    made.arm()
    board.reset()
    made.read(0.0)
    ticks(board, made, 1)
    assert troubles(made, frame) == ["board_reset"]


@pytest.mark.parametrize("after_us", [0, 50_000, 150_000])
def test_a_reset_while_the_board_is_left_alone_to_prove_itself_is_said_to_be_one(after_us):
    board = native()
    made, _, _ = driver(board)
    made.open()
    advance = board.advance

    def advance_and_reset(duration_us):
        advance(after_us)
        board.reset()
        advance(max(0, duration_us - after_us))

    board.advance = advance_and_reset
    during = "(during its watchdog test|while it was being armed)"
    with pytest.raises(DeviceError, match=f"board: was reset {during}: check its supply"):
        made.self_test(print)


def test_a_board_that_is_silent_for_a_while_after_its_reset_is_found_once_it_answers():
    port = Slow(native())
    _, made, frame, r = armed(port)
    ticks(port, made, 5)
    port.reset()
    port.slow = True
    ticks(port, made, 30, first=5)
    assert not r.valid[1]
    port.slow = False
    ticks(port, made, 2, first=35)
    assert troubles(made, frame) == ["board_reset"]


def test_time_that_wraps_after_71_6_minutes_is_no_reset():
    port = Spoilt(changed(time_us=lambda us: (us + 2**32 - 105_000) % 2**32))
    _, made, frame, _ = armed(port)
    ticks(port, made, 50)  # the wrap is 5 ms into the run
    assert troubles(made, frame) == []


@pytest.mark.parametrize("ran_for_min", [1.0, 35.0, 36.0, 50.0, 71.0])
def test_time_that_begins_again_is_a_reset_however_long_the_board_had_run(ran_for_min):
    """Somebody else may have armed it since: only its time gives it away."""
    port = Spoilt(changed(time_us=lambda us: round(us + 60e6 * ran_for_min) % 2**32))
    _, made, frame, _ = armed(port)
    ticks(port, made, 5)
    assert troubles(made, frame) == []
    port.spoil = lambda data: data
    ticks(port, made, 2, first=5)
    assert troubles(made, frame) == ["board_reset"]


@pytest.mark.parametrize("result", [name for name in protocol.RESULTS if name != "done"])
def test_an_armed_board_that_answers_anything_but_done_is_in_trouble(result):
    port = Spoilt()
    _, made, frame, _ = armed(port)
    ticks(port, made, 5)
    state = "disarmed" if result == "not_armed" else "armed"
    port.spoil = changed(result=protocol.RESULTS[result], state=protocol.STATES[state])
    ticks(port, made, 1, first=5)
    expected = "board_reset" if state == "disarmed" else "board_refused"
    assert troubles(made, frame) == [expected]
    port.spoil = lambda data: data
    ticks(port, made, 5, first=6)
    assert troubles(made, frame) == [expected]  # latched


def test_a_fault_that_the_board_names_itself_is_not_also_a_refusal():
    board, made, frame, r = armed()
    board.set_estop(True)
    ticks(board, made, 5)
    assert protocol.fault_names(r.bits("board_fault_bits")) == ["estop_open"]
    assert troubles(made, frame) == []


def test_a_board_whose_host_stood_still_was_not_reset():
    class Asleep(Spoilt):
        def sent_s(self):
            return 0.0

    port = Asleep()
    _, made, frame, r = armed(port)
    ticks(port, made, 5)
    port.advance(10_000_000)
    ticks(port, made, 2, first=5)
    assert protocol.fault_names(r.bits("board_fault_bits")) == ["host_silent"]
    assert troubles(made, frame) == []


def test_a_board_that_was_told_to_disarm_is_in_no_trouble():
    board, made, frame, _ = armed()
    ticks(board, made, 5)
    made.safe()
    ticks(board, made, 5, first=5)
    assert troubles(made, frame) == []


# --- more than one host, and answers that get lost while arming ---


class Losing(Port):
    """A port that loses the next answer, or the n next ones."""

    def __init__(self):
        super().__init__(lambda data: data)
        self.lost = 0

    def read(self, timeout_s):
        data = super().read(timeout_s)
        if self.lost and data:
            self.lost -= 1
            return b""
        return data


def test_a_board_whose_answer_to_arming_is_lost_is_armed_anew_and_obeys():
    port = Losing()
    made, _, r = driver(port)
    made.open()
    while not made.close_relay():
        port.advance(1000)
    port.lost = 1
    made.arm()
    made.read(0.0)
    made.write(0.0, on(0, 3))
    made.read(0.001)
    assert r.cells_reported.tolist() == [1, 0, 0, 1]


def test_a_board_that_another_host_arms_first_is_left_to_it():
    board = native()
    one, _, _ = driver(board)
    two, _, r = driver(board)
    one.open()
    two.open()
    two.arm()
    with pytest.raises(DeviceError, match=r"board: another host has armed it: end that run first"):
        one.arm()
    two.read(0.0)
    two.write(0.0, on(0, 3))
    two.read(0.001)
    assert r.cells_reported.tolist() == [1, 0, 0, 1]


class LetsTheOtherGoOn(SimulatedOperator):
    """While one host waits, the other one's run goes on."""

    def __init__(self, board, run):
        super().__init__(board)
        self._run = run

    def wait(self, duration_s):
        for _ in range(round(1000 * duration_s)):
            super().wait(0.001)
            self._run.write(0.0, on(0, 3))
            self._run.read(0.0)


def test_a_host_that_comes_while_another_one_runs_is_refused_and_disturbs_nothing():
    board, run, _, r = armed()
    run.write(0.0, on(0, 3))
    late, _, _ = driver(board)
    late._operator = LetsTheOtherGoOn(board, run)
    with pytest.raises(DeviceError, match=r"another host has armed it"):
        late.open()
    assert r.cells_reported.tolist() == [1, 0, 0, 1]
    assert board.gates().any()


def test_a_board_whose_host_has_died_is_opened_once_it_has_latched():
    board, run, _, _ = armed()
    run.write(0.0, on(0, 3))
    late, _, r = driver(board)
    late.open()
    late.arm()
    late.read(0.0)
    late.write(0.0, on(0, 3))
    late.read(0.001)
    assert r.cells_reported.tolist() == [1, 0, 0, 1]


def test_the_stream_of_a_host_whose_board_was_taken_over_switches_nothing():
    board, one, _, _ = armed()
    one.write(0.0, on(0))
    board.advance(150_000)  # it stalls
    two, _, _ = driver(board)
    two.open()
    two.arm()
    for k in range(300):
        one.write(0.001 * k, on(0, 2, 3))
        board.advance(100)
        assert not board.gates().any()
    assert board.gates().sum() == 0


def test_commands_of_a_new_arming_are_none_of_the_last_ones():
    """The same cells under the same sequence numbers: frames made before would be refused."""
    board, made, _, _ = armed()
    for _ in range(3):
        for k in range(300):
            made.write(0.001 * k, on(0))
            board.advance(1000)
            made.read(0.001 * k)
            assert board.gates().any()
        made.safe()
        assert not board.gates().any()
        made.arm()
        made.read(0.0)


@pytest.mark.parametrize(
    ("low_high_extended", "what"),
    [
        ((0xFF, 0xDE, 0xFD), "WDTON.*BODLEVEL.*EESAVE"),  # an Arduino Uno's
        ((0xF7, 0xD6, 0xFC), "WDTON"),
        ((0xF7, 0xC6, 0xFD), "BODLEVEL: it keeps running below 4.3 V"),
        ((0xF7, 0x86, 0xFC), "DWEN"),
    ],
)
def test_a_board_whose_fuses_do_not_protect_is_refused(low_high_extended, what):
    port = Spoilt(changed(fuses=low_high_extended))
    made, _, _ = driver(port)
    with pytest.raises(DeviceError, match=rf"board: its fuses \(low 0x.*{what}.*--fuses"):
        made.open()


@pytest.mark.parametrize("low_high_extended", [(0xF7, 0xC6, 0xFC), (0xFF, 0xC7, 0x04)])
def test_clock_boot_loader_and_unused_bits_of_the_fuses_are_free(low_high_extended):
    port = Spoilt(changed(fuses=low_high_extended))
    made, _, _ = driver(port)
    made.open()


def last_command(made, board, commands=None):
    """A command whose answer no tick collects, and the end of the run; the time goes on."""
    made.write(0.02, commands or on(0, 2, 3))
    board.advance(300)


@pytest.mark.parametrize("message", [None, Broadcast(tick=1, p_on=0.5, q_off=0.5, seed=3)])
@pytest.mark.parametrize("when", ["before the last command", "after the last command"])
def test_a_reset_that_no_tick_sees_is_found_when_the_board_is_switched_off(when, message):
    board, made, frame, r = armed()
    commands = on(0, 2, 3)
    if message is not None:
        commands = Commands(commands.cells, np.zeros(0), broadcast=message)
    ticks(board, made, 20, commands)
    if when.startswith("before"):
        board.reset()
    last_command(made, board, commands)
    if when.startswith("after"):
        board.reset()
    assert troubles(made, frame) == []
    made.safe()
    assert troubles(made, frame) == ["board_reset"]
    assert r.bits("board_link_bits") == 1
    assert "was reset" in made.troubles(np.zeros(4))["board_reset"][0]
    assert not board.gates().any()


def test_a_last_command_that_was_refused_is_found_when_the_board_is_switched_off():
    port = Spoilt()
    board, made, frame, _ = armed(port)
    ticks(board, made, 20)
    last_command(made, board)
    refused = changed(result=protocol.RESULTS["bad_value"])
    port.spoil = lambda data: refused(data) if data else data
    made.safe()
    assert troubles(made, frame) == ["board_refused"]


def test_a_fault_that_a_board_names_in_its_answer_to_the_last_command_is_found():
    board, made, frame, r = armed()
    ticks(board, made, 20)
    board.set_estop(True)
    board.advance(5_000)
    last_command(made, board)
    made.safe()
    assert protocol.fault_names(r.bits("board_fault_bits")) == ["estop_open"]
    assert troubles(made, frame) == []


@pytest.mark.parametrize("what", ["nothing", "power goes first", "the host took its time"])
def test_a_board_that_works_is_switched_off_without_trouble(what):
    """Cells that are on find no current once their power is cut, and nobody feeds the dead-man."""
    board, made, frame, r = armed()
    ticks(board, made, 20)
    last_command(made, board)
    if what.startswith("power"):
        for gate in range(N_CELLS):
            board.sense(gate, 0.0, 0.0, 25.0)
        board.advance(20_000)
    elif what.startswith("the host"):
        board.advance(150_000)
    made.safe()
    made.safe()
    assert troubles(made, frame) == []
    assert not r.bits("board_fault_bits")
    assert not board.gates().any()


def test_an_armed_board_that_stops_answering_grows_old():
    """A reading is as old as the last command that was answered, not as the last one sent."""
    port = Slow(native())
    _, made, _, r = armed(port)
    ages_s = []
    for k in range(4):
        made.write(0.001 * k, on(0))
        port.advance(1000)
        port.slow = k > 0
        made.read(0.001 * (k + 1))
        ages_s.append(r.value("board_age_s"))
    np.testing.assert_allclose(ages_s, [0.001, 0.002, 0.003, 0.004], rtol=1e-9)


def test_a_hold_of_a_fraction_of_a_millisecond_is_rounded_up():
    board = native()
    made, _, _ = driver(board, hold_s=0.0502)
    made.open()
    made.arm()
    made.write(0.0, on(0))
    board.advance(50_500)
    assert board.gates().any()
    board.advance(1_500)
    assert not board.gates().any()


def test_a_broadcast_that_was_refused_is_asked_for_again():
    port = Slow(native())
    _, made, _, _ = armed(port)
    port.set_estop(True)
    port.advance(5000)
    port.slow = True
    made.write(0.005, broadcast(1))
    port.slow = False
    made.read(0.006)  # refused: the board is faulted
    again = broadcast(1)
    made.write(0.006, again)
    assert [again.cells[cell] for cell in GATES] == [CELL_UNKNOWN] * 3


def test_a_broadcast_whose_answer_never_came_is_asked_for_again():
    port = Slow(native())
    _, made, _, _ = armed(port)
    port.slow = True
    made.write(0.0, broadcast(1))
    made.read(0.001)
    port.slow = False
    again = broadcast(1)
    made.write(0.001, again)
    assert np.array_equal(again.cells, drawn_by_gates(1))


def test_any_cell_of_the_rig_that_is_hot_keeps_it_waiting_and_no_other_gate():
    for gate, cooled in ((0, False), (2, False), (3, True)):

        def spoilt(heat, gate=gate):
            return tuple(255 if i == gate else 0 for i in range(len(heat)))

        made, _, _ = driver(Spoilt(changed(heat_per_255=spoilt)))
        made.open()
        assert made.has_cooled() is cooled


def test_asking_whether_a_board_has_cooled_sends_nothing_whatever_its_state():
    """Who asks an armed board must not disarm it."""
    board, made, _, _ = armed()
    ticks(board, made, 3)
    sent, made._link.port.write = [], lambda data: sent.append(data)
    for _ in range(5):
        made.has_cooled()
    assert sent == []


def test_a_build_that_lacks_a_single_check_is_refused_by_its_name():
    lacks = 1 << protocol.FAULTS["current_high"]
    made, _, _ = driver(Spoilt(changed(faults_checked=lambda bits: bits & ~lacks)))
    with pytest.raises(DeviceError, match="its firmware cannot find current_high: flash"):
        made.open()


def test_a_reset_between_opening_and_arming_is_found_at_arming():
    board = native()
    made, _, _ = driver(board)
    made.open()
    board.advance(500_000)
    board.reset()
    with pytest.raises(DeviceError, match="board: was reset while it was being armed"):
        made.arm()


def test_armed_again_a_board_is_free_of_the_trouble_of_its_last_arming():
    port = Spoilt()
    _, made, frame, _ = armed(port)
    port.spoil = changed(result=protocol.RESULTS["bad_value"])
    ticks(port, made, 2)
    assert troubles(made, frame) == ["board_refused"]
    port.spoil = lambda data: data
    made.safe()
    made.arm()
    made.read(0.01)
    ticks(port, made, 2, first=10)
    assert troubles(made, frame) == []
    assert made.troubles(np.zeros(4)) == {}


def said_of_trip(board, made):
    """The board's faults as text, 50 ms after it has switched everything off."""
    board.advance(50_000)
    made.write(0.05, on())
    made.read(0.051)
    return made.troubles(np.zeros(4))["board_fault"]


def test_a_short_is_reported_with_the_current_that_tripped_not_with_what_flows_since():
    board, made, _, _ = armed()
    board.sense(2, 1.95, 0.0, 25.0)
    made.write(0.0, on(3))
    board.advance(20_000)
    assert said_of_trip(board, made) == [
        "board: current_high: a.4 at 1.95 A, limit 1.2 A (current_max_mA)"
    ]


def test_a_second_cell_has_no_current_that_it_had_at_another_time():
    board, made, _, _ = armed()
    board.sense(2, 1.95, 0.0, 25.0)
    made.write(0.0, on(3))
    board.advance(20_000)
    board.sense(0, 0.2, 0.5, 25.0)
    assert said_of_trip(board, made) == [
        "board: current_high: a.3, a.4 at 1.95 A, limit 1.2 A (current_max_mA)",
        "board: current_when_off: a.3, a.4 at 1.95 A, limit 0.02 A (current_off_max_mA)",
    ]


def test_currents_that_last_with_gates_off_are_those_of_every_cell():
    board, made, _, _ = armed()
    for cell in (0, 1):
        board.sense(cell, 0.2, 0.5, 25.0)
    assert said_of_trip(board, made) == [
        "board: current_when_off: a.3 at 0.5 A, a.1 at 0.5 A, limit 0.02 A (current_off_max_mA)"
    ]
