"""What `hil board limits --from` writes, in a real board, against wires that burn step by step.

Each board has one cell, whose wire is heated by its balance of energy (`models.wire_oracle`) in the
warmest room, in the least cooling, under a current sensor that says the least that it may.
"""

import numpy as np
import pytest

from firmware.boards import NativeBoard
from hil.devices.board import protocol
from hil.mechanics.sma.limits import (
    COOLING_LEAST,
    Bench,
    CellWire,
    Thermal,
    peak,
    protecting,
    severest_table,
)
from hil.mechanics.sma.wire import SmaWire
from oracles.sma_wires import Wires

CELL = CellWire("a.1", SmaWire(n_wires=4, supply_V=8.0))
# as configs/wires4
BENCH = Bench(
    cold_C=15.0, warm_C=27.0, supply_V=8.0, supply_A=0.74, scan_s=5.58e-3, current_error=0.046
)
TABLE = protocol.default_limits() | {"on_time_max_ms": 60000, "current_full_scale_mA": 1000}
STEP_US, COMMAND_MS, LONG_S = 500, 5, 12.0
DUTY = 255
#: The supply is shorted across a piece of the wire when this much is used up, or so late.
NEARLY_USED_UP_PER_255, SETTLED_MS = 254, 7_000


class Attack:
    """A board, and somebody who tries to burn its wire: all on, whatever it answers."""

    sensor_counts = 1023
    contracted_A = BENCH.supply_V / CELL.wire.resistance_Ohm(1.0)

    def __init__(self, libboard, table, amps=contracted_A, shorted_A=None):
        self.board = NativeBoard(libboard, n_cells=1, scan_period_us=4000)
        self.table, self.amps, self.shorted_A = table, amps, shorted_A
        assert self.board.result("set_limits", limits=table) == "done"
        self.crc = protocol.limits_crc(table)
        self.is_short = False
        self.trips = 0
        self.counts = -1  # what the current sensor says

    def current_A(self):
        if self.is_short:
            assert self.shorted_A is not None
            return self.shorted_A
        return self.amps

    def duty(self, t_ms):
        """What the next command asks for."""
        return DUTY

    def command(self, t_ms):
        board, duty = self.board, self.duty(t_ms)
        duties = [duty] + [0] * (protocol.CELLS_MAX - 1)
        result = board.result("set_duties", valid_for_ms=100, duty_per_255=duties)
        if result in ("is_faulted", "not_armed"):
            self.trips += result == "is_faulted"
            self.is_short = False
            board.command("clear_faults")
            board.command("arm", limits_crc=self.crc, cells=1)
        elif self.shorted_A is not None:
            used = board.command("read")["heat_per_255"][0]
            settled = t_ms >= SETTLED_MS and self.trips == 0
            self.is_short |= used >= NEARLY_USED_UP_PER_255 or settled

    def step(self):
        """Half a millisecond: the mean square of the wire's current in it."""
        amps = self.current_A()
        full_A = 1e-3 * self.table["current_full_scale_mA"]
        counts = int(amps * (1.0 - BENCH.current_error) / full_A * 1024)
        if counts != self.counts:
            self.counts = counts
            self.board.set_analog(0, on=min(self.sensor_counts, counts))
        on = self.board.gates()[0] / 255
        self.board.advance(STEP_US)
        return on * amps**2


class NearlyTenSeconds(Attack):
    def duty(self, t_ms):
        return 0 if t_ms % 9905 >= 9900 else DUTY


class Toggles(Attack):
    def duty(self, t_ms):
        return DUTY if t_ms // COMMAND_MS % 2 else 0


class Disarms(Attack):
    def command(self, t_ms):
        if t_ms % 1000 == 0:
            self.board.command("disarm")
            self.board.command("arm", limits_crc=self.crc, cells=1)
        super().command(t_ms)


class Duties(Attack):
    def duty(self, t_ms):
        return 160


class Random(Attack):
    rng = np.random.default_rng(31)

    def duty(self, t_ms):
        return int(self.rng.choice([0, 64, 200, DUTY, DUTY]))


class Resets(Attack):
    """The board is reset every two seconds, and armed again as soon as it lets itself be."""

    def command(self, t_ms):
        if t_ms % 2000 == 0:
            self.board.reset()
        super().command(t_ms)


def attacks(libboard, table):
    most_A = 1e-3 * table["current_max_mA"]
    plain = [kind(libboard, table) for kind in (Attack, NearlyTenSeconds, Toggles, Disarms)]
    plain += [kind(libboard, table, most_A) for kind in
              (Attack, NearlyTenSeconds, Toggles, Disarms, Duties, Random, Resets)]  # fmt: skip
    settling_A = np.sqrt(1e-7 * table["heat_max_cA2ms"] / (1e-3 * table["heat_time_constant_ms"]))
    most_held_A = settling_A / (1.0 - BENCH.current_error)
    currents_A = [*(most_held_A * np.linspace(0.97, 0.99, 3)), Attack.contracted_A, most_A]
    shorts = [Attack(libboard, table, amps, BENCH.supply_A) for amps in currents_A]
    return [*plain, *shorts]


def burn(tried, seconds=LONG_S):
    """The peaks of every attack's wire."""
    wires = Wires(CELL.wire, len(tried), BENCH.warm_C, COOLING_LEAST)
    for n in range(round(1e6 * seconds / STEP_US)):
        t_ms = n * STEP_US // 1000
        if n * STEP_US % (1000 * COMMAND_MS) == 0:
            for attack in tried:
                attack.command(t_ms)
        wires.step(np.array([attack.step() for attack in tried]), 1e-6 * STEP_US)
    return wires.peak_C


@pytest.fixture(scope="module")
def burnt(libboard):
    table = TABLE | protecting([CELL], BENCH, TABLE)
    tried = attacks(libboard, table)
    return tried, burn(tried), peak(CELL, Thermal.of(table), BENCH).warm_C


def test_nothing_that_is_commanded_takes_a_wire_beyond_what_is_computed(burnt):
    tried, peaks_C, computed_C = burnt
    for attack, peak_C in zip(tried, peaks_C, strict=True):
        assert peak_C <= computed_C, type(attack).__name__


def test_the_worst_comes_near_what_is_computed(burnt):
    """So that the limits cost no more than they must. A tenth is the proof's: r_max for every r."""
    _, peaks_C, computed_C = burnt
    assert max(peaks_C) >= 0.83 * computed_C


def test_a_wire_that_is_held_on_by_an_unbroken_circuit_is_let_alone(burnt):
    tried, peaks_C, _ = burnt
    held = tried[0]
    assert held.trips == 0
    assert peaks_C[0] > CELL.wire.A_f_C


def test_a_table_for_ten_seconds_at_one_ampere_lets_the_same_attack_burn_it(libboard):
    """50e6 cA2ms: what boards had before. 0.4 A, an ordinary current to them, passes 400 degC."""
    before = TABLE | {"heat_max_cA2ms": 50_000_000, "current_max_mA": 1200}
    assert burn([Attack(libboard, before, 0.4)], 6.0)[0] > 400.0
    assert peak(CELL, Thermal.of(before), BENCH).worst_C > 400.0


def test_a_current_beyond_the_sensor_burns_a_wire_whose_table_lets_it_pass(libboard):
    """Full scale 0.2 A, current_high above 0.222 A: 0.8 A counts for 0.2 A."""
    blind = TABLE | {"current_full_scale_mA": 200, "current_max_mA": 222,
                     "heat_max_cA2ms": 150_000, "heat_time_constant_ms": 683}  # fmt: skip
    peaks_C = burn([Attack(libboard, blind, BENCH.supply_A)], 2.0)
    assert peaks_C[0] > CELL.temperature_max_C
    assert peak(CELL, Thermal.of(blind), BENCH).worst_C > peaks_C[0]


class Saturates(Attack):
    """Its amplifier ends 30 mV below its 4.905 V, and the converter shows two counts less."""

    sensor_counts = 1015


def test_no_limit_of_the_current_is_beyond_what_an_amplifier_can_show(libboard):
    """Before, 198 mA of a sensor of 200 mA: 0.74 A counted for 0.2 A, and the wire melted."""
    old = TABLE | {"current_full_scale_mA": 200, "current_max_mA": 198,
                   "heat_max_cA2ms": 150_000, "heat_time_constant_ms": 683}  # fmt: skip
    new = old | severest_table([CELL], BENCH, old)
    old_C, new_C = burn([Saturates(libboard, table, BENCH.supply_A) for table in (old, new)], 2.0)
    assert CELL.temperature_max_C < old_C < peak(CELL, Thermal.of(old), BENCH).worst_C
    assert new_C <= peak(CELL, Thermal.of(new), BENCH).warm_C <= CELL.temperature_max_C
