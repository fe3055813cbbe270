"""Currents that a real board reads too low: it trips, or its wire stays below what is computed.

Each board has one cell. Its wire carries V / R of its own state at the highest voltage, in the
warmest room and the least cooling (`oracles.sma_wires`), and somebody commands it on and arms it
again whatever it answers.
"""

from dataclasses import replace

import numpy as np
import pytest

from firmware.boards import NativeBoard
from hil.devices.board import protocol
from hil.experiment.board_limits import Protection
from hil.mechanics.sma.limits import COOLING_LEAST, SUPPLY_ERROR, Bench, CellWire
from hil.mechanics.sma.wire import SmaWire
from oracles.sma_wires import Wires

GAINS = np.append(np.random.default_rng(11).uniform(0.05, 1.0, 7), 1.0)
STEP_US, COMMAND_MS, LONG_S = 500, 5, 12.0
NOTICED_S = 0.03  # two scans of 4 ms, and a command every 5 ms


def a_board(supply_V, most_C, **limits):
    """A cell of wires4 at this voltage, with the limits that hil derives for it."""
    cell = CellWire("a.1", SmaWire(n_wires=4, supply_V=supply_V), most_C)
    table = {"on_time_max_ms": 60000, "current_full_scale_mA": 1000, **limits}
    limits = protocol.default_limits() | table
    bench = Bench(15.0, 28.0, supply_V, 0.74, 4.42e-3, 0.0)
    board = Protection("board", limits, [cell], [], bench).with_full_scale(1000)
    return replace(board, limits={**limits, **board.wanted()})


def heated(libboard, board, gains):
    """Peaks of the wires, and how long each was on before the first trip."""
    [cell], n = board.cells, len(gains)
    wires = Wires(cell.wire, n, board.bench.warm_C, COOLING_LEAST)
    made = [NativeBoard(libboard, n_cells=1, scan_period_us=4000) for _ in gains]
    crc, full_A = protocol.limits_crc(board.limits), 1e-3 * board.limits["current_full_scale_mA"]
    for one in made:
        assert one.result("set_limits", limits=board.limits) == "done"
    volts = (1.0 + SUPPLY_ERROR) * board.bench.supply_V
    tripped, on_s = [None] * n, np.zeros(n)
    duties = [255] + [0] * (protocol.CELLS_MAX - 1)
    for k in range(round(1e6 * LONG_S / STEP_US)):
        amps = volts / np.array([cell.wire.resistance_Ohm(xi) for xi in wires.xi])
        on = np.zeros(n)
        for i, one in enumerate(made):
            one.set_analog(0, on=min(1023, int(gains[i] * amps[i] / full_A * 1024)))
            if k * STEP_US % (1000 * COMMAND_MS) == 0:
                result = one.result("set_duties", valid_for_ms=100, duty_per_255=duties)
                if result in ("is_faulted", "not_armed"):
                    if tripped[i] is None and (faults := one.faults()):
                        tripped[i] = faults
                    one.command("clear_faults")
                    one.command("arm", limits_crc=crc, cells=1)
            on[i] = one.gates()[0] / 255
            one.advance(STEP_US)
        on_s += np.where([one is None for one in tripped], on, 0.0) * 1e-6 * STEP_US
        wires.step(on * amps**2, 1e-6 * STEP_US)
    return wires.peak_C, tripped, on_s


@pytest.fixture(scope="module", params=[(8.0, 180.0), (14.0, 280.0)])
def tried(request, libboard):
    board = a_board(*request.param)
    return board, *heated(libboard, board, GAINS)


@pytest.mark.slow_beyond(1)
def test_a_current_that_is_read_too_low_trips_or_its_wire_stays_below_what_is_computed(tried):
    board, peaks_C, tripped, on_s = tried
    [least] = board.unnoticed()
    [true] = board.peaks()
    below = least.share > GAINS
    assert 0 < below.sum() < len(GAINS)
    for i in np.flatnonzero(below):
        assert tripped[i] == ["current_low"], GAINS[i]
        assert on_s[i] <= NOTICED_S
        assert peaks_C[i] < board.bench.warm_C + 25.0
    for i in np.flatnonzero(~below):
        assert peaks_C[i] <= max(least.worst_C, true.worst_C), GAINS[i]
    assert tripped[-1] in (None, ["cell_energy_high"])  # a true reading is none that is too low


@pytest.mark.slow_beyond(1)
def test_the_wire_of_a_bundled_rig_bears_every_current_that_is_read_too_low(tried):
    """8 V are those of configs/wires4: no reading lets them burn a wire."""
    board, peaks_C, _, _ = tried
    if board.bench.supply_V == 8.0:
        assert board.unnoticed()[0].protected
        assert max(peaks_C) <= board.cells[0].temperature_max_C


def test_a_limit_of_20_mA_lets_a_current_that_is_read_at_an_eighth_burn_a_wire(libboard):
    """0.3 A from 14 V: what every board comes with, and what is computed for it."""
    board = a_board(14.0, 280.0)
    blind = replace(board, limits={**board.limits, "current_on_min_mA": 20})
    peaks_C, tripped, _ = heated(libboard, blind, np.array([0.1]))
    assert tripped == [None]
    assert board.cells[0].temperature_max_C + 90.0 < peaks_C[0] < blind.unnoticed()[0].worst_C
