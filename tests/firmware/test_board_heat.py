"""The check's arithmetic of the heat budget is the board's: its core's, and whole boards'."""

import ctypes
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware.boards import NativeBoard
from firmware.test_heat import Heat
from hil.devices.board import protocol
from hil.experiment.load import load_rig
from hil.mechanics.sma.board_heat import TICK_S, HeatLaw
from hil.mechanics.sma.limits import Thermal, held_for_s

SCAN_US = 4000
RIGS = ["wires4", "isotonic", "spring_bias", "stage"]


class Law(ctypes.Structure):
    """struct heat_law, core/heat.h."""

    _fields_ = [
        ("rate", ctypes.c_uint32), ("span_ticks", ctypes.c_uint16), ("gain", ctypes.c_uint16),
    ]  # fmt: skip


def trips_after_s(libboard, law, counts, every_s):
    """With the core's own functions: held on from an unused budget, a reading at regular times."""
    limits = protocol.default_limits() | {
        "heat_max_cA2ms": law.heat_max_cA2ms,
        "heat_time_constant_ms": law.time_constant_ms,
        "current_full_scale_mA": law.full_scale_mA,
    }
    board = NativeBoard(libboard, n_cells=1, scan_period_us=SCAN_US)
    assert board.result("set_limits", limits=limits) == "done"
    libboard.heat_law.restype = Law
    core = libboard.heat_law(
        libboard.libboard_limits(board.memory, ctypes.byref(ctypes.c_size_t()))
    )
    heat, at, n_ticks = Heat(), ctypes.byref, round(every_s / TICK_S)
    for reading in range(1, 20_000):
        now_ticks = reading * n_ticks & 0xFFFF
        libboard.heat_count(at(heat), 255, now_ticks)
        libboard.heat_cool(at(heat), at(core), now_ticks)
        libboard.heat_add(at(heat), at(core), counts)
        if heat.cA2ms > law.heat_max_cA2ms:
            return reading * every_s
    return inf


@settings(max_examples=60, deadline=None)
@given(
    share=st.floats(0.3, 1.6),
    tau_ms=st.integers(30, 3000),
    full_scale_mA=st.sampled_from([200, 500, 1000, 2000]),
    counts=st.integers(4, 1023),
    ticks=st.integers(813, 4400),
)
def test_the_check_trips_with_the_reading_with_which_the_core_trips(
    libboard, share, tau_ms, full_scale_mA, counts, ticks
):
    """Around the limit at which holding has an end, and far from it."""
    settles = (1e-1 * full_scale_mA * counts / 1024) ** 2 * tau_ms
    law = HeatLaw(max(1, min(2**32 - 1, round(share * settles))), tau_ms, full_scale_mA)
    expected_s = trips_after_s(libboard, law, counts, ticks * TICK_S)
    assert law.trips_after_s(counts, ticks * TICK_S) == expected_s


def held_on_s(libboard, limits, amps, at_most_s):
    """How long a whole board lets a cell that draws this current be on."""
    board = NativeBoard(libboard, n_cells=1, scan_period_us=SCAN_US)
    limits = limits | {"on_time_max_ms": 60_000, "open_cells_max": 0, "sense_every_ms": 0}
    assert board.result("set_limits", limits=limits) == "done"
    board.recover()
    board.cool()
    counts = min(1023, int(1024e3 * amps / limits["current_full_scale_mA"]))
    board.set_analog(0, on=counts)
    board.arm()
    start_us = board.now_us()
    while board.now_us() - start_us < 1e6 * at_most_s:
        if board.set(0, ms=50) != "done":
            assert board.faults() == ["cell_energy_high"]
            return 1e-6 * (board.now_us() - start_us)
        board.advance(5_000)
    return inf


@pytest.mark.parametrize("name", RIGS)
def test_what_the_check_of_a_rig_promises_of_holding_its_board_keeps(libboard, configs, name):
    """Every current that its limits let pass, and closely around where holding ends."""
    one = load_rig(configs / name / "rig.toml").protections[0]
    thermal, scan_s = Thermal.of(one.limits), one.bench.scan_s
    settles_A = (thermal.heat_max_A2s / thermal.time_constant_s) ** 0.5
    near = [settles_A * (1.0 + 0.002 * k) for k in range(-8, 9, 2)]
    for amps in (*near, *(thermal.current_max_A * share for share in (0.9, 0.95, 0.99))):
        promised_s = held_for_s(amps, thermal, scan_s)
        found_s = held_on_s(libboard, one.limits, amps, 20.0)
        assert found_s >= promised_s - 2e-6 * SCAN_US, amps
        if found_s < 10.0:
            assert promised_s >= 0.75 * found_s, amps


@settings(max_examples=200, deadline=None)
@given(
    heat_cA2ms=st.integers(2**28, 2**32 - 1),
    tau_ms=st.integers(30, 60_000),
    ticks=st.integers(1, 65_000),
)
def test_a_large_heat_cools_by_the_same_share(libboard, heat_cA2ms, tau_ms, ticks):
    law = HeatLaw(2**31, tau_ms, 1000)
    core = Law(rate=(2**32 - 1) // (250 * tau_ms), span_ticks=min(250 * tau_ms, 0xFFFF), gain=640)
    heat, at = Heat(cA2ms=heat_cA2ms), ctypes.byref
    libboard.heat_cool(at(heat), at(core), ticks)
    assert law.after(heat_cA2ms, 0, ticks) == (heat.cA2ms, heat.rest)
