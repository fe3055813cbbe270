"""A cell's budget of heat: it is never less than its wire has, and nothing refills it but time.

The law is dH/dt = I^2 - H / tau while the gate is on, and a wire of resistance r and capacity C a
metre is at most r H / C above the air. Expected values are its exact solution at the pins.
"""

import ctypes
import math

import numpy as np
import pytest

from firmware.boards import NativeBoard
from hil.devices.board import protocol
from hil.devices.board.scan import scan_s

CELL = 3
COUNTS = 512  # 1 A: 10^4 cA^2
I2_CA2 = 10_000
# The 0.1 mm wire of configs/wires4: ohms and heat capacity a metre, loss to still air
R_OHM_PER_M = 126.0
C_J_PER_M_K = 6450.0 * math.pi / 4 * 100e-6**2 * 450.0
G_W_PER_M_K = 125.0 * math.pi * 100e-6
SCAN_MS = 3


def heat_of(board, heat_max, cell=CELL):
    """At most so much, in cA^2 ms, and how much less it may be."""
    share = board.command("read")["heat_per_255"][cell]
    return share * heat_max / 255, heat_max / 255


class Wire:
    """The law, solved exactly between changes of the gate."""

    def __init__(self, board, I2_cA2, tau_ms):
        self.board, self.I2_cA2, self.tau_ms = board, I2_cA2, tau_ms
        self.H, self.at_us = 0.0, board.now_us()

    def advance(self, duration_us):
        """The board goes on; its gate stays as it is."""
        on = self.board.gates()[CELL] / 255
        self.board.advance(duration_us)
        rest = on * self.I2_cA2 * self.tau_ms
        fade = math.exp(-1e-3 * duration_us / self.tau_ms)
        self.H = rest + (self.H - rest) * fade


def ready(board, heat_max, tau_ms, counts=COUNTS):
    board.limit(
        heat_max_cA2ms=heat_max, heat_time_constant_ms=tau_ms, current_max_mA=1900,
        on_time_max_ms=60_000,
    )  # fmt: skip
    board.recover()
    board.cool()
    board.set_analog(CELL, on=counts)
    board.arm()


@pytest.mark.slow_beyond(6)  # two seeds
@pytest.mark.parametrize("tau_ms", [30, 683, 14_000])
@pytest.mark.parametrize("seed", range(4))
def test_the_budget_is_never_less_than_the_law_says_and_hardly_more(board, tau_ms, seed):
    rng = np.random.default_rng(seed)
    heat_max = round(0.9 * I2_CA2 * tau_ms)
    ready(board, heat_max, tau_ms)
    law = Wire(board, I2_CA2, tau_ms)
    for _ in range(1500):
        on = bool(rng.integers(2))
        if board.set(*([CELL] if on else []), ms=100) != "done":
            break
        law.advance(int(rng.integers(50, rng.choice([900, 9_000, 90_000]))))
        if on and not any(board.gates()):
            break  # it has tripped meanwhile
        most, unit = heat_of(board, heat_max)
        # what has been on since the cell's last turn is not yet counted
        late = 1.02 * I2_CA2 * SCAN_MS
        assert most + late >= law.H
        # 513 counts squared over 512 squared, a step and its rounding, a turn: 4 % and 30 ms in all
        assert most - unit <= 1.04 * law.H + I2_CA2 * 30, (most, law.H)


def held_on(board, tau_ms, command):
    """H of a cell that is held on, at least and at most, and what the law says of it.

    Until it has settled, within 3 %; `command` is called as often as the line allows, at most once
    a millisecond.
    """
    heat_max = round(1.2 * I2_CA2 * tau_ms)
    ready(board, heat_max, tau_ms)
    start_us, on_ms, n = board.now_us(), 0.0, 0
    while on_ms < 3.5 * tau_ms:
        before_us = board.now_us()
        command(n)
        board.advance(max(0, 1000 - (board.now_us() - before_us)))
        on_ms = (board.now_us() - start_us) / 1000
        n += 1
    most, unit = heat_of(board, heat_max)
    return most - unit, most, I2_CA2 * tau_ms * (1.0 - math.exp(-on_ms / tau_ms))


def allowed(exact, tau_ms, gap_ms):
    """H at most, if the current is read every gap_ms: firmware/README.md, with its rounding."""
    a_count_more = (COUNTS + 1) ** 2 / COUNTS**2
    a_tick_more = 1 + 0.004 / gap_ms
    rounded = 2 / (I2_CA2 * gap_ms)  # two units a reading
    return exact * (a_count_more * a_tick_more + rounded) / (1.0 - gap_ms / (2.0 * tau_ms))


@pytest.mark.slow_beyond(11)  # of the longest time constant one
@pytest.mark.parametrize("gap_ms", [1, 3, 9, 14, 17])
@pytest.mark.parametrize("tau_ms", [60, 683, 8_000])
def test_held_on_h_is_the_law_s_however_rarely_the_current_is_read(libboard, tau_ms, gap_ms):
    board = NativeBoard(libboard, scan_period_us=1000 * gap_ms)
    least, most, exact = held_on(board, tau_ms, lambda _: board.set(CELL))
    assert most + I2_CA2 * gap_ms >= exact  # what flowed since the last reading
    assert least <= allowed(exact, tau_ms, gap_ms), (least / exact, most / exact)


HELD = {
    "set_mask": lambda n: {"cells_on": 0xFFF * (n % 2) | 1 << CELL},
    "set_duties": lambda n: {
        "duty_per_255": [255 * (i == CELL or n % 2) for i in range(12)] + [0] * 4
    },
    "broadcast": lambda n: {
        "p_on_per_65536": protocol.PROBABILITY_ONE, "q_off_per_65536": 0, "tick": n + 1,
        "seed": 3, "first_cell": 0,
    },
}  # fmt: skip


@pytest.mark.parametrize("kind", HELD)
def test_on_the_chip_h_is_the_law_s_under_a_command_a_millisecond(chip, kind):
    """All the other cells switch, so that readings are up to 14 ms apart."""
    tau_ms, gap_ms = 200, 1e3 * scan_s(kind, 1e-3)

    def command(n):
        assert chip.result(kind, valid_for_ms=100, **HELD[kind](n)) == "done"

    least, most, exact = held_on(chip, tau_ms, command)
    print(f"{kind}: counted {least / exact:.3f} to {most / exact:.3f} of what was there")
    assert most + I2_CA2 * gap_ms >= exact
    assert least <= allowed(exact, tau_ms, gap_ms)


def test_a_partial_duty_uses_up_heat_in_proportion(board):
    heat_max = I2_CA2 * 100
    ready(board, heat_max, 40_000)
    duties = [0] * 16
    duties[CELL] = 51  # a fifth
    start_us = board.now_us()
    while not board.faults():
        board.command("set_duties", valid_for_ms=9, duty_per_255=duties)
        board.advance(1000)
        assert board.now_us() - start_us < 600_000
    assert board.faults() == ["cell_energy_high"]
    assert 490 <= (board.now_us() - start_us) / 1000 <= 510


class Heat(ctypes.Structure):
    """As in core/heat.h."""

    _fields_ = [
        ("cA2ms", ctypes.c_uint32), ("not_cA2ms", ctypes.c_uint32), ("rest", ctypes.c_uint16),
        ("on_ticks", ctypes.c_uint16), ("counted_ticks", ctypes.c_uint16),
        ("full_ticks", ctypes.c_uint16), ("cooled_ticks", ctypes.c_uint16),
        ("not_cooled_ticks", ctypes.c_uint16),
    ]  # fmt: skip


TICKS_A_UNIT = 4  # the lowest bit of a duty: 16 us in ticks of 4 us
SLOTS = np.repeat(np.arange(8), TICKS_A_UNIT * 2 ** np.arange(8))  # at every tick of a modulation


def stays_on(duty, phase):
    """For how many ticks from here."""
    on = duty >> np.roll(SLOTS, -phase) & 1
    return len(SLOTS) if on.all() else int(np.argmin(on))


def random_stream(rng):
    def draw(t):
        lasts = rng.integers(1, rng.choice([30, 3000]))
        return int(rng.choice([0, 255, *range(8, 255)])), int(lasts)

    return draw


def greedy(t):
    """At any time a partial duty that is on now, until it goes off."""
    phase = t % len(SLOTS)
    duty = max((8, 16, 32, 64, 127, 128, 247), key=lambda d: stays_on(d, phase) / d**0.5)
    return duty, max(1, stays_on(duty, phase))


def in_step(high, low, half_ticks, late):
    """Two duties in turn, in the rhythm of the modulation."""

    def draw(t):
        n, passed = divmod(t - late, half_ticks)
        return (low if n % 2 else high), half_ticks - passed

    return draw


STREAMS = {
    **{f"random {seed}": random_stream(np.random.default_rng(seed)) for seed in range(4)},
    "greedy": greedy,
    **{f"128 and 127, {late} late": in_step(128, 127, 510, late) for late in range(0, 1020, 85)},
    **{f"64 and 8, {late} late": in_step(64, 8, 255, late) for late in range(0, 1020, 170)},
    **{f"held {duty}": lambda t, d=duty: (d, 10**6) for duty in (8, 51, 128, 254)},
}


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
def test_no_stream_of_duties_is_on_for_longer_than_is_counted(libboard, stream):
    """At every turn of the scan, against the pin of the modulation that the chip has."""
    rng = np.random.default_rng(7)
    heat, at = Heat(), ctypes.byref
    t, duty, until, turn, on, counted = 0, 0, 0, 0, 0, 0
    while t < 150_000:
        if t >= until:
            libboard.heat_count(at(heat), duty, t & 0xFFFF)
            duty, lasts = stream(t)
            libboard.heat_begin(at(heat), duty, t & 0xFFFF)
            until = t + lasts
        if t >= turn:
            libboard.heat_count(at(heat), duty, t & 0xFFFF)
            counted += heat.on_ticks
            heat.on_ticks = 0
            assert counted >= on, t
            turn = t + int(rng.integers(500, 3500))
        end = min(until, turn)
        on += int((duty >> SLOTS[np.arange(t, end) % len(SLOTS)] & 1).sum())
        t = end
    if until >= 10**6:  # one that stays: hardly more than its share
        assert counted <= 1.02 * on + len(SLOTS) / 4


def cycles(board, on_us, off_us, between):
    """Milliseconds on until the trip, by the gate."""
    on_ms = 0.0
    while on_ms < 5_000:
        if board.set(CELL) != "done":
            return on_ms
        board.advance(on_us)
        on_ms += on_us / 1000
        if between(board) is False:
            return on_ms
        board.advance(off_us)
    raise AssertionError("it never trips")


def off(board):
    return board.set() == "done"


def disarm_and_arm(board):
    board.command("disarm")
    answer = board.ask_to_arm()
    if protocol.result_name(answer["result"]) == "cooling":
        return False  # better still: it is not armed at all
    return protocol.result_name(answer["result"]) == "done"


def fed(board):
    return board.set(CELL) == "done"


HEAT_MS, LONG_MS = 1000, 20_000


@pytest.mark.slow_beyond(2)
@pytest.mark.parametrize(
    ("on_us", "off_us", "between", "least"),
    [
        (1000, 0, fed, 0.97),
        (1000, 1000, off, 0.97),
        (500, 500, off, 0.97),
        pytest.param(100, 900, off, 0.9, marks=pytest.mark.slow),
        pytest.param(50, 50, off, 0.8, marks=pytest.mark.slow),
        (200, 200, off, 0.9),
        (99_000, 1000, off, 0.97),
        (90, 100, disarm_and_arm, 0.0),
        (50_000, 1000, disarm_and_arm, 0.1),
    ],
)
def test_no_way_of_switching_refills_the_budget(board, on_us, off_us, between, least):
    """A second of 1 A is allowed in all, and its time constant is long."""
    heat_max = I2_CA2 * HEAT_MS
    ready(board, heat_max, LONG_MS)
    on_ms = cycles(board, on_us, off_us, between)
    passed = on_ms * (1 + off_us / on_us) / LONG_MS  # of time constants
    assert on_ms <= HEAT_MS * (1 + passed) + SCAN_MS + 2 * on_us / 1000
    assert on_ms >= least * HEAT_MS


def test_a_cell_on_for_9_9_s_and_off_for_1_ms_trips_as_one_that_is_never_off(board):
    """0.4 A through the 0.1 mm wire under the default table: 400 C after 0.76 s, in the past."""
    took_ms = []
    for breaks in (False, True):
        board.recover()
        assert board.result("set_limits", limits=protocol.default_limits()) == "done"
        board.cool()
        board.set_analog(CELL, on=205)
        board.arm()
        start_us = board.now_us()
        while board.set(CELL) == "done":
            board.advance(9000)
            if breaks:
                board.set()
                board.advance(1000)
        took_ms.append((board.now_us() - start_us) / 1000)
        assert board.faults() == ["cell_energy_high"]
    assert took_ms[0] < 250
    assert took_ms[1] < 1.1 * took_ms[0] + 20


@pytest.mark.slow_beyond(6)
@pytest.mark.parametrize("current_A", [0.25, 0.4, 0.64, 1.19])
@pytest.mark.parametrize("pattern", ["held", "toggled", "armed again and again"])
def test_the_default_table_protects_the_wire_that_it_is_made_for(board, current_A, pattern):
    """The wire without its latent heat, which only delays; air at 30 C."""
    limits = protocol.default_limits()
    board.recover()
    assert board.result("set_limits", limits=limits) == "done"
    board.cool()
    board.arm()
    counts = round(current_A / 2.0 * 1024)
    board.set_analog(CELL, on=counts)
    theta_K = peak_K = 0.0
    # Without arming again the first trip, after at most 1.4 s, is the last.
    for n in range(40_000 if pattern == "armed again and again" else 5_000):
        on = pattern == "held" or n % 4 < 3
        if pattern == "armed again and again" and board.state() != "armed" and n % 500 == 0:
            board.command("clear_faults")
            board.ask_to_arm(1 << CELL)
        board.set(*([CELL] if on else []))
        for _ in range(4):
            heating_W_per_m = R_OHM_PER_M * current_A**2 * (board.gates()[CELL] > 0)
            board.advance(250)
            theta_K += 250e-6 * (heating_W_per_m - G_W_PER_M_K * theta_K) / C_J_PER_M_K
            peak_K = max(peak_K, theta_K)
    protected_K = 1e-7 * limits["heat_max_cA2ms"] * R_OHM_PER_M / C_J_PER_M_K
    assert protected_K == pytest.approx(160.0, abs=1.0)
    late_K = R_OHM_PER_M * current_A**2 * 1e-3 * (SCAN_MS + 1) / C_J_PER_M_K
    assert peak_K <= protected_K + late_K
    assert peak_K > 0.6 * protected_K  # it works all the same
    assert board.state() == "faulted" or pattern == "armed again and again"


# --- reset, cooling, arming ---


def test_after_a_reset_a_board_is_armed_only_when_its_wires_have_cooled(board):
    """From full to an eighth takes 2.08 time constants."""
    board.set_good_pins()
    tau_ms = 400
    for power_cycle in ("reset", "limits"):
        board.limit(heat_max_cA2ms=290_000, heat_time_constant_ms=tau_ms)
        if power_cycle == "reset":
            board.reset("brown_out")
        board.advance(20_000)
        crc = board.command("identify")["limits_crc"]
        start_us = board.now_us()
        assert board.faults() == []  # used up is not too much
        assert set(board.command("read")["heat_per_255"][:12]) <= set(range(235, 256))
        while board.result("arm", limits_crc=crc, cells=0xFFF) == "cooling":
            assert board.state() == "disarmed"
            board.advance(1000)
        took_ms = (board.now_us() - start_us) / 1000
        assert math.log(8) * tau_ms - 21 <= took_ms <= math.log(8) * tau_ms * 1.04 + 20
        board.command("disarm")


def test_only_cells_with_a_wire_must_have_cooled(board):
    ready(board, I2_CA2 * 200, 10_000)
    assert board.advance_fed(60_000, CELL)
    board.command("disarm")
    crc = board.command("identify")["limits_crc"]
    assert board.result("arm", limits_crc=crc, cells=0xFFF) == "cooling"
    assert protocol.result_name(board.ask_to_arm(0xFFF & ~(1 << CELL))["result"]) == "done"


def test_the_share_used_up_decides_on_arming_and_is_told(board):
    board.limit(heat_max_cA2ms=8, heat_time_constant_ms=40)
    crc = board.command("identify")["limits_crc"]
    board.advance(3000)
    seen = set()
    for _ in range(400):
        board.advance(1000)
        share = board.command("read")["heat_per_255"][CELL]
        heat = share * 8 // 255
        assert share == math.ceil(heat * 255 / 8)
        seen.add(heat)
        cool = board.result("arm", limits_crc=crc, cells=1 << CELL) != "cooling"
        assert cool is (heat <= 1), heat
        if cool:
            break
    assert seen >= {2, 4, 6}


@pytest.mark.parametrize("heat_max", [1, 255, 300, 2**24 - 1, 2**24, 4_000_000_000])
def test_used_up_heat_cools_to_nothing_whatever_the_limit(board, heat_max):
    tau_ms = 20
    board.limit(heat_max_cA2ms=heat_max, heat_time_constant_ms=tau_ms)
    assert board.command("read")["heat_per_255"][CELL] == 255
    # as many time constants as its logarithm, and the one in which the last unit goes
    board.advance(round((math.log(heat_max) + 2) * 1.2 * 1000 * (tau_ms + 8)))
    assert board.command("read")["heat_per_255"][CELL] == 0


def test_heat_of_the_probe_counts(any_board):
    """As much as flows under the pulse, and not more than twice as much."""
    board = any_board
    heat_max = 4_000_000
    board.limit(heat_max_cA2ms=heat_max, heat_time_constant_ms=30_000, current_max_mA=1900)
    counts = 972  # 1.9 A
    board.set_analog(CELL, on=counts)
    I2_cA2 = (counts / 1024 * 200) ** 2
    if board.exchange_us:
        board.limit(heat_max_cA2ms=4_000_000_000, heat_time_constant_ms=1, current_max_mA=1900)
        before_us = board.on_us()[CELL]
        board.arm()
        pulse_ms = (board.on_us()[CELL] - before_us) / 1000
        print(f"pulse of {1000 * pulse_ms:.0f} us")
        assert 0.1 <= pulse_ms <= 0.3  # PORT_PROBE_MAX_US
        return
    board.cool()
    n = 0
    while protocol.result_name(board.ask_to_arm(1 << CELL)["result"]) == "done":
        board.command("disarm")
        board.advance(100)
        n += 1
    assert heat_max / 8 / (I2_cA2 * 0.3) - 2 <= n + 1 <= heat_max / 8 / (I2_cA2 * 0.15)


def test_before_a_reading_with_the_gate_on_the_current_counts_at_its_worst(board):
    """The pulse at arming is the first reading; a wire shorted since then is found by the next."""
    heat_max = 400_000
    ready(board, heat_max, 10_000, counts=COUNTS)
    board.set_analog(CELL, on=900)
    board.set_scan(False)  # no reading while it is on
    assert board.set(CELL) == "done"
    board.advance(100)
    board.set()
    board.set_scan(True)
    board.advance(4000)
    most, unit = heat_of(board, heat_max)
    assert most - unit <= I2_CA2 * 1.01 * (0.11 + 0.31)


# --- at the pins of the chip ---


def _chip(chip, heat_ms):
    """Armed, with next to no heat used up."""
    chip.limit(heat_max_cA2ms=I2_CA2 * heat_ms, heat_time_constant_ms=400)
    chip.recover()
    while max(chip.command("read")["heat_per_255"]) > 1:
        chip.advance(200_000)
    chip.set_analog(CELL, on=COUNTS)
    chip.arm()


class Pins:
    """The law, solved for a gate's on-time as its pin has it, between two looks at it."""

    def __init__(self, chip):
        self.chip, self.H = chip, 0.0
        self.at_us, self.on_us = chip.now_us(), chip.on_us()[CELL]

    def look(self):
        now_us, on_us = self.chip.now_us(), self.chip.on_us()[CELL]
        self.H *= math.exp(-1e-3 * (now_us - self.at_us) / 400)
        self.H += I2_CA2 * 1e-3 * (on_us - self.on_us)
        self.at_us, self.on_us = now_us, on_us


@pytest.mark.parametrize("pause_us", [0, 400, 2000])
def test_on_the_chip_all_that_the_gate_was_on_counts(chip, pause_us):
    """On and off as fast as the line allows, at every phase of the millisecond."""
    _chip(chip, 300)
    pins = Pins(chip)
    for n in range(120):
        assert chip.set(CELL) == "done"
        chip.advance(n % 7 * 40)
        assert chip.set() == "done"
        pins.look()
        chip.advance(pause_us + n % 53)
    chip.advance(5000)
    pins.look()
    most, unit = heat_of(chip, I2_CA2 * 300)
    print(f"counted {(most - 2 * unit) / pins.H:.3f} to {most / pins.H:.3f} of what was there")
    assert most >= pins.H
    assert most - 2 * unit <= 1.3 * pins.H + I2_CA2 * 8


def _streamed(chip, duty_of, every_us, commands=120):
    """Counted, at most, and what was at the pin."""
    pins = Pins(chip)
    for n in range(commands):
        duties = [duty_of(n) * (i == CELL) for i in range(16)]
        start_us = chip.now_us()
        assert chip.result("set_duties", valid_for_ms=100, duty_per_255=duties) == "done"
        chip.advance(every_us - (chip.now_us() - start_us))
        pins.look()
    most, unit = heat_of(chip, I2_CA2 * 400)
    print(f"counted {(most - 2 * unit) / pins.H:.3f} to {most / pins.H:.3f} of what was there")
    return most, pins.H


@pytest.mark.slow_beyond(3)
@pytest.mark.parametrize("late_us", [3570, 0, 1530, 510, 1020, 2040, 2550, 3060])
def test_on_the_chip_duties_that_follow_the_modulation_count_in_full(chip, late_us):
    """128 is the modulation's last slot, 127 all the others: each in its time, and the gate is on.

    A change every half of a modulation (255 times 16 us), at any place in it.
    """
    _chip(chip, 400)
    chip.advance(late_us)
    most, there = _streamed(chip, lambda n: 128 - n % 2, 2040)
    assert most + I2_CA2 * 4 >= there


@pytest.mark.slow_beyond(2)
@pytest.mark.parametrize("every_us", [1300, 4080, 2000, 7777])
def test_on_the_chip_duties_at_random_count_in_full(chip, every_us):
    rng = np.random.default_rng(every_us)
    _chip(chip, 400)
    duties = [int(d) for d in rng.choice([0, 16, 32, 64, 127, 128, 254, 255], 60)]
    most, there = _streamed(chip, duties.__getitem__, every_us, 60)
    assert most + I2_CA2 * 4 >= there


def test_on_the_chip_a_partial_duty_counts_in_full(chip):
    _chip(chip, 200)
    pins = Pins(chip)
    command = {"valid_for_ms": 100, "duty_per_255": [100 * (i == CELL) for i in range(16)]}
    for _ in range(70):
        assert chip.result("set_duties", **command) == "done"
        chip.advance(2000)
        pins.look()
    most, unit = heat_of(chip, I2_CA2 * 200)
    assert most + I2_CA2 * 4 >= pins.H
    assert most - 2 * unit <= 1.05 * pins.H + I2_CA2 * 8
