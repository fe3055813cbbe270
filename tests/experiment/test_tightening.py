"""An experiment can only tighten, and a rig has bounds: every key that weakens is tried."""

import copy
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hil.__main__ import main
from hil.config.files import Merged, merge, read_merged
from hil.config.validate import validated
from hil.errors import ConfigError
from hil.experiment.load import load
from hil.experiment.schema import RigTables
from hil.experiment.tightening import ROWS, faults
from hil.loop import interlocks
from hil.runs import assembly
from hil.runs.plan import Plan

ROOT = Path(__file__).resolve().parents[2]
RIG, RUN = "configs/wires4/rig.toml", "configs/wires4/hold.toml"
UP_TO_1, VOLTS = st.floats(0.001, 1.0), st.floats(1.0, 30.0)
ANY = st.floats(1e-3, 1e3)
WHOLE = st.integers(1, 12)
LOWER, HIGHER = "lower", "higher"
KEPT, ADDED = "unchanged where the rig has it", "unchanged in a table of the rig"
TRIP, ESTOP = ("trip", "tolerate", "skip"), ("proved", "none")
FUSES, WATCHDOG = ("required", "as_delivered"), ("required", "if_present", "off")
# Of every key: the rig, a place there, which way is tighter, values, and the default.
PLACES = {
    "guard.force_max_N": ("miga6", "guard.force_max_N", LOWER, ANY, None),
    "guard.force_rate_max_N_per_s": ("miga6", "guard.force_rate_max_N_per_s", LOWER, ANY, None),
    "guard.force_jump_max_N": ("miga6", "guard.force_jump_max_N", LOWER, ANY, None),
    "guard.force_residual_max_N": ("miga6", "guard.force_residual_max_N", LOWER, ANY, None),
    "guard.force_rise_min_N": ("miga6", "guard.force_rise_min_N", LOWER, ANY, None),
    "guard.frozen_s": ("miga6", "guard.frozen_s", LOWER, ANY, None),
    "guard.cell_on_max_s": ("miga6", "guard.cell_on_max_s", LOWER, ANY, None),
    "guard.cells_on_max": ("miga6", "guard.cells_on_max", LOWER, WHOLE, None),
    "guard.signals.*.max": ("slider", "guard.signals.slide.max", LOWER, ANY, "required"),
    "guard.signals.*.min": ("slider", "guard.signals.slide.min", HIGHER, ANY, "required"),
    "guard.signals.*.rate_max_per_s": (
        "slider", "guard.signals.slide.rate_max_per_s", LOWER, ANY, None
    ),
    "guard.reading_age_max_s": ("miga6", "guard.reading_age_max_s", LOWER, ANY, 0.05),
    "guard.disk_free_min_MB": ("miga6", "guard.disk_free_min_MB", HIGHER, ANY, 100.0),
    "loop.overrun": ("miga6", "loop.overrun", TRIP, st.sampled_from(TRIP), "trip"),
    "loop.overruns_max": ("miga6", "loop.overruns_max", LOWER, st.integers(1, 99), 20),
    "devices.*.estop": ("miga6", "devices.board.estop", ESTOP, st.sampled_from(ESTOP), "proved"),
    "devices.*.fuses": ("miga6", "devices.board.fuses", FUSES, st.sampled_from(FUSES), "required"),
    "devices.*.firmware": (
        "miga6", "devices.board.firmware", "unchanged",
        st.sampled_from(["deadbeef", "0badcafe"]), None,
    ),
    "devices.*.serial": (
        "miga6", "devices.board.serial", KEPT, st.sampled_from(["42", "43", "usb:HIL-1"]), None
    ),
    "devices.*.hold_s": ("miga6", "devices.board.hold_s", LOWER, st.floats(0.002, 0.1), 0.05),
    "devices.*.resistance.tolerance": (
        "wires4", "devices.board.resistance.tolerance", LOWER, st.floats(0.02, 0.5), 0.1
    ),
    "devices.*.resistance.min_Ohm": (
        "wires4", "devices.board.resistance.min_Ohm", "unchanged", st.floats(30.0, 40.0), None
    ),
    "devices.*.resistance.max_Ohm": (
        "wires4", "devices.board.resistance.max_Ohm", "unchanged", st.floats(60.0, 80.0), None
    ),
    "devices.*.resistance.lead_Ohm": (
        "wires4", "devices.board.resistance.lead_Ohm", "unchanged", st.floats(0.0, 2.0), 0.0
    ),
    "devices.*.without_clamp_sensor": (
        "wires4", "devices.board.without_clamp_sensor", "unchanged",
        st.sampled_from([["muscle.1"], ["muscle.1", "muscle.2"]]), [],
    ),
    "devices.*.watchdog": (
        "miga6_lines", "devices.daq.watchdog", WATCHDOG, st.sampled_from(WATCHDOG), "if_present"
    ),
    "devices.*.watchdog_s": (
        "miga6_lines", "devices.daq.watchdog_s", LOWER, st.floats(0.01, 30.0), 0.1
    ),
    "devices.*.lines.*.kind": (
        "miga6_lines", "devices.daq.lines.loop.kind", "unchanged",
        st.sampled_from(["input", "estop", "enable"]), "required",
    ),
    "devices.*.switches.dead_man_s": (
        "own", "devices.relays.switches.dead_man_s", LOWER, UP_TO_1, "required"
    ),
    "devices.*.outputs.*.max": ("slider", "devices.daq.outputs.motor.max", LOWER, ANY, "required"),
    "devices.*.outputs.*.min": ("slider", "devices.daq.outputs.motor.min", HIGHER, ANY, "required"),
    "devices.*.outputs.*.rate_max_per_s": (
        "slider", "devices.daq.outputs.motor.rate_max_per_s", LOWER, ANY, "required"
    ),
    "devices.*.outputs.*.units_per_V": (
        "slider", "devices.daq.outputs.motor.units_per_V", "unchanged", ANY, "required"
    ),
    "devices.*.voltage_max_V": ("wires4", "devices.supply.voltage_max_V", LOWER, VOLTS, "required"),
    "devices.*.current_max_A": ("wires4", "devices.supply.current_max_A", LOWER, VOLTS, "required"),
    "devices.*.answer_max_s": (
        "wires4", "devices.supply.answer_max_s", LOWER, st.floats(0.1, 10.0), 1.0
    ),
    "devices.*.obey_max_s": (
        "wires4", "devices.supply.obey_max_s", LOWER, st.floats(0.05, 5.0), 0.5
    ),
    "devices.*.poll_s": ("wires4", "devices.supply.poll_s", LOWER, st.floats(0.02, 1.0), 0.1),
    "devices.*.voltage_tolerance_V": (
        "wires4", "devices.supply.voltage_tolerance_V", LOWER, ANY, 0.2
    ),
    "devices.*.wire.temperature_max_C": (
        "wire", "devices.board.wire.temperature_max_C", LOWER, ANY, 180.0
    ),
    "devices.*.switches.wire.temperature_max_C": (
        "miga6_lines", "devices.daq.switches.wire.temperature_max_C", LOWER, ANY, 180.0
    ),
    "model.arrays.*.activation.temperature_max_C": (
        "wires4", "model.arrays.muscle.activation.temperature_max_C", LOWER, ANY, 180.0
    ),
    "devices.*.ambient_range_C": (
        "miga6", "devices.board.ambient_range_C", "wider",
        st.tuples(st.floats(0.0, 20.0), st.floats(20.0, 40.0)).map(list), [15.0, 30.0],
    ),
    "devices.*.switches.ambient_range_C": (
        "miga6_lines", "devices.daq.switches.ambient_range_C", "wider",
        st.tuples(st.floats(0.0, 20.0), st.floats(20.0, 40.0)).map(list), [15.0, 30.0],
    ),
    "model.arrays.*.activation.kind": (
        "heated", "model.arrays.muscle.activation.kind", "unchanged",
        st.sampled_from(["sma", "thermal"]), "required",
    ),
}  # fmt: skip
HELD_S = {"force_rate_high": 0.005, "force_residual_high": 0.1, "force_no_rise": 0.5}
for _row in interlocks.LOOP:
    if _row.key:
        _key = f"guard.hold_s.{_row.name}"
        PLACES[_key] = ("miga6", _key, LOWER, ANY, HELD_S.get(_row.name, 0.0))
WIRE = {"diameter_m": 1e-4, "length_m": 0.1, "supply_V": 2.0, "martensite_Ohm_per_m": 126.0,
        "austenite_Ohm_per_m": 113.0, "convection_W_per_m2_K": 125.0}  # fmt: skip
for _rig, _device, _row in (
    ("miga6", "board", "devices.*"), ("miga6_lines", "daq.switches", "devices.*.switches"),
):  # fmt: skip
    PLACES[f"{_row}.supply_current_max_A"] = (
        _rig, f"devices.{_device}.supply_current_max_A", "unchanged", st.floats(0.1, 5.0), None
    )  # fmt: skip
# Its numbers, and what it is if its table does not say; a number is tried within its own half.
for _key, _default in {
    **dict.fromkeys(WIRE, "required"),
    "n_wires": 1,
    "wiring": "series",
    "density_kg_per_m3": 6450.0,
    "specific_heat_J_per_kg_K": 450.0,
    "latent_heat_J_per_kg": 24.2e3,
    "A_s_C": 88.0,
    "A_f_C": 98.0,
    "M_s_C": 72.0,
    "M_f_C": 62.0,
}.items():
    _typical = WIRE.get(_key, _default)
    _values = st.sampled_from(["series", "parallel"] if _key == "wiring" else [1, 2, 3])
    if isinstance(_typical, float):
        _share = 0.01 if _key.endswith("_C") else 0.1  # starts stay below ends
        _values = st.floats((1.0 - _share) * _typical, (1.0 + _share) * _typical)
    _of_model = None if _key == "supply_V" else _typical  # as SmaWire has it
    for _rig, _path, _row, _has in (
        ("wire", "devices.board.wire", "devices.*.wire", _default),
        ("miga6_lines", "devices.daq.switches.wire", "devices.*.switches.wire", _default),
        ("heated", "model.arrays.muscle.activation", "model.arrays.*.activation", _of_model),
    ):
        PLACES[f"{_row}.{_key}"] = (_rig, f"{_path}.{_key}", "unchanged", _values, _has)
for _key, _default, _values in (
    ("conductivity_W_per_m_K", 18.0, ANY),
    ("clamp_capacity_J_per_K", 0.1, ANY),
    ("clamp_loss_W_per_K", 2.5e-3, ANY),
    ("resistivity.martensite_per_K", 0.0, st.floats(-2e-3, 2e-3)),
    ("resistivity.austenite_per_K", 0.0, st.floats(-2e-3, 2e-3)),
    ("resistivity.at_C", 25.0, st.floats(0.0, 50.0)),
    ("resistivity.per_strain", 0.0, st.floats(0.0, 10.0)),
    ("resistivity.r_phase_Ohm_per_m", 0.0, ANY),
    ("resistivity.R_s_C", 60.0, st.floats(55.0, 65.0)),
    ("resistivity.R_f_C", 50.0, st.floats(45.0, 50.0)),
    ("resistivity.strain", 0.04, st.floats(0.0, 0.2)),
):
    PLACES[f"model.arrays.*.activation.{_key}"] = (
        "heated", f"model.arrays.muscle.activation.{_key}", "unchanged", _values, _default
    )  # fmt: skip
for _key, _default, _values in (
    ("pretension_N", 0.0, ANY),
    ("C_A_MPa_per_K", 8.3, ANY),
    ("C_M_MPa_per_K", 7.5, ANY),
    ("stroke_min", 0.04, st.floats(0.0, 0.2)),
    ("stroke_max", 0.041, st.floats(0.001, 0.2)),
    ("stroke_rate_per_MPa", 0.012, ANY),
    ("softer_per_TPa", 25.0, ANY),
    *[
        (f"{_branch}{_more}", *_has)
        for _branch in ("heating", "cooling")
        for _more, _has in {
            "": (None, st.just({"middle_C": 80.0, "core_K": 2.0})),
            ".middle_C": ("required", st.floats(50.0, 100.0)),
            ".core_K": ("required", ANY),
            ".shoulder_ratio": (3.0, st.floats(1.0, 9.0)),
            ".shoulder_at_K": (0.0, ANY),
            ".core_share": (1.0, st.floats(0.0, 1.0)),
            ".work_share": (0.5, st.floats(0.0, 1.0)),
            ".widens_per_MPa": (0.0, st.floats(-0.05, 0.05)),
        }.items()
    ],
):
    PLACES[f"model.arrays.*.activation.{_key}"] = (
        "wires4",
        f"model.arrays.muscle.activation.{_key}",
        "unchanged",
        _values,
        _default,
    )
PLACES["model.arrays.*.activation.strength_MPa"] = (
    "wires4", "model.arrays.muscle.activation.strength_MPa", LOWER, ANY, 1000.0
)  # fmt: skip
_daq, _lines = "devices.daq.channels", st.sampled_from(["port0/line1", "port0/line2"])
_patterns = st.sampled_from(["(?P<value>.+) N", "(?P<value>.+) kN"])
_bridge, _pull = f"{_daq}.force.bridge", "devices.cell.channels.pull"
for _key, _rig, _place, _values, _default in (
    ("lines.*.terminal", "miga6_lines", "devices.daq.lines.loop.terminal", _lines, "required"),
    (
        "lines.*.readback",
        "labjack",
        "devices.cell.lines.power.readback",
        st.sampled_from(["EIO4", "EIO5"]),
        "required",
    ),
    ("switches.lines.*", "relays", "devices.daq.switches.lines.one", _lines, None),
    ("switches.readback.*", "relays", "devices.daq.switches.readback.one", _lines, None),
    (
        "outputs.*.terminal",
        "slider",
        "devices.daq.outputs.motor.terminal",
        st.sampled_from(["ao0", "ao1"]),
        "required",
    ),
    (
        "channels.*.terminal",
        "miga6",
        f"{_daq}.force.terminal",
        st.sampled_from(["ai0", "ai1"]),
        "required",
    ),
    ("channels.*.newtons_per_V", "miga6", f"{_daq}.force.newtons_per_V", ANY, None),
    ("channels.*.metres_per_V", "laser", f"{_daq}.x.metres_per_V", ANY, "required"),
    ("channels.*.units_per_V", "slider", f"{_daq}.slide.units_per_V", ANY, "required"),
    ("channels.*.zero_V", "slider", f"{_daq}.slide.zero_V", ANY, 0.0),
    (
        "channels.*.counts_per_turn",
        "leg9",
        "devices.hips.channels.hip.counts_per_turn",
        st.sampled_from([400, 4000]),
        "required",
    ),
    (
        "channels.*.direction",
        "leg9",
        "devices.hips.channels.hip.direction",
        st.sampled_from([1, -1]),
        1,
    ),
    ("channels.*.offset_rad", "leg9", "devices.hips.channels.hip.offset_rad", ANY, 0.0),
    ("channels.*.index_rad", "leg9", "devices.hips.channels.hip.index_rad", ANY, None),
    (
        "channels.*.index_phase",
        "leg9",
        "devices.hips.channels.hip.index_phase",
        st.sampled_from(["high_high", "low_low"]),
        "high_high",
    ),
    ("channels.*.record", "miga6", f"{_daq}.force.record", st.sampled_from(["a", "b"]), None),
    ("channels.*.signal", "miga6", f"{_daq}.force.signal", st.sampled_from(["x", "y"]), None),
    (
        "channels.*.wiring",
        "miga6",
        f"{_daq}.force.wiring",
        st.sampled_from(["differential", "single_ended"]),
        "default",
    ),
    ("channels.*.bridge", "miga6", f"{_daq}.force.bridge", st.just({"excitation_V": 2.5}), None),
    (
        "channels.*.bridge.excitation_V",
        "miga6",
        f"{_daq}.force.bridge.excitation_V",
        st.floats(1.0, 20.0),
        "required",
    ),
    ("channels.*.bridge.resistance_Ohm", "bridge", f"{_bridge}.resistance_Ohm", ANY, 350.0),
    (
        "channels.*.bridge.arms",
        "bridge",
        f"{_bridge}.arms",
        st.sampled_from(["full", "half", "quarter"]),
        "full",
    ),
    ("channels.*.excitation_V", "strain", f"{_pull}.excitation_V", ANY, None),
    ("channels.*.negative", "labjack", f"{_pull}.negative", st.sampled_from(["GND", "AIN1"]), None),
    ("channels.*.range_V", "labjack", f"{_pull}.range_V", ANY, None),
    ("channels.*.input", "phidget", "devices.cell.channels.pull.input", st.integers(0, 3), 0),
    ("gain", "phidget", "devices.cell.gain", st.sampled_from([1, 8, 128]), 128),
    ("range_V", "miga6", "devices.daq.range_V", ANY, 10.0),
    ("input", "futek", "devices.cell.input", st.integers(0, 3), 0),
    ("unit", "indicator", "devices.cell.unit", st.sampled_from(["N", "kN", "gf"]), "N"),
    ("template", "indicator", "devices.cell.template", st.sampled_from(["and", "kern"]), "and"),
    ("pattern", "indicator", "devices.cell.pattern", _patterns, None),
    ("card", "miga6", "devices.daq.card", st.sampled_from(["Dev1", "Dev2"]), "required"),
    ("server", "remote", "devices.cell.server", st.sampled_from(["a:1", "b:1"]), "required"),
    ("identifier", "labjack", "devices.cell.identifier", st.sampled_from(["1", "2"]), "ANY"),
    ("hub_port", "phidget", "devices.cell.hub_port", st.integers(0, 5), None),
    (
        "resource",
        "wires4",
        "devices.supply.resource",
        st.sampled_from(["ASRL1::INSTR", "ASRL2::INSTR"]),
        "required",
    ),
    (
        "switches.cells",
        "own",
        "devices.relays.switches.cells",
        st.permutations(["muscle.1", "muscle.2"]),
        "required",
    ),
    (
        "cells",
        "miga6",
        "devices.board.cells",
        st.permutations([f"muscle.{n}" for n in range(1, 7)]),
        "required",
    ),
):
    _tighter = KEPT if _key.startswith(("switches.lines", "switches.readback")) else ADDED
    PLACES[f"devices.*.{_key}"] = (_rig, _place, _tighter, _values, _default)
PLACES["devices.*.channels.*.tare"] = (
    "miga6", f"{_daq}.force.tare", (False, True), st.booleans(), False
)  # fmt: skip
PLACES["devices.*.channel"] = (
    "wires4", "devices.supply.channel", "unchanged", st.integers(1, 8), 1
)  # fmt: skip
# The largest value that a rig may have, by hand: miga6 and wires4 let cells be on for 10 and 20 s.
BOUNDS = {f"guard.hold_s.{name}": 0.1 for name in (
    "cell_on_too_long", "cell_energy_high", "too_many_cells_on", "board_silent", "reading_stale",
    "gate_stuck", "resistance_out_of_range", "current_untrue", "clamp_untrue", "supply_silent",
    "supply_wrong", "supply_not_off", "force_high", "signal_out_of_range", "sensor_frozen",
    "force_rate_high", "signal_fast",
)} | {
    "guard.hold_s.estop_open": 0.02, "guard.hold_s.force_jump": 0.0,
    "guard.hold_s.loop_late": 0.0, "guard.hold_s.disk_low": 1.0,
    "guard.hold_s.force_residual_high": 10.0, "guard.hold_s.force_no_rise": 10.0,
    "guard.reading_age_max_s": 10.0, "devices.*.watchdog_s": 1.0,
    "devices.*.voltage_tolerance_V": 0.8,
}  # fmt: skip

INSTRUMENTS = {
    "labjack": {
        "kind": "labjack",
        "channels": {"pull": {"terminal": "AIN0", "newtons_per_V": 1.0}},
        "lines": {"power": {"kind": "enable", "terminal": "EIO0", "readback": "EIO4"}},
    },
    "strain": {
        "kind": "labjack",
        "channels": {"pull": {"terminal": "AIN0", "record": "pull.toml"}},
    },
    "phidget": {"kind": "phidget_bridge", "channels": {"pull": {"record": "pull.toml"}}},
    "remote": {
        "kind": "nidaq_remote",
        "server": "a:1",
        "card": "Dev1",
        "channels": {"pull": {"terminal": "ai0", "newtons_per_V": 1.0}},
    },
    "futek": {"kind": "futek", "port": "COM3", "channels": {"pull": {}}},
    "indicator": {"kind": "serial_indicator", "port": "COM3", "channels": {"pull": {}}},
}


def rig_of(name):
    if name == "own":
        table = rig_of("miga6")
        table["devices"]["relays"] = {
            "kind": "relays.py:Relays",
            "switches": {"cells": ["muscle.1", "muscle.2"], "dead_man_s": 0.05},
        }
        return table
    if name == "wire":
        table = rig_of("miga6")
        table["devices"]["board"]["wire"] = dict(WIRE)
        return table
    if name == "bridge":
        table = rig_of("miga6")
        table["devices"]["daq"]["channels"]["force"]["bridge"] = {"excitation_V": 2.5}
        return table
    if name in INSTRUMENTS:
        table = rig_of("miga6")
        table["devices"]["cell"] = INSTRUMENTS[name]
        return table
    if name == "relays":  # a name without a dot, for dotted keys
        table = rig_of("miga6_lines")
        table["devices"]["daq"]["switches"] |= {
            "lines": {"other": "port0/line8"}, "readback": {"other": "port0/line16"},
        }  # fmt: skip
        return table
    if name == "laser":
        table = rig_of("miga6")
        table["devices"]["daq"]["channels"]["x"] = {
            "kind": "displacement", "terminal": "ai2", "signal": "muscle.x_m", "metres_per_V": 1.0,
        }  # fmt: skip
        return table
    if name == "heated":
        table = rig_of("miga6")
        table["model"]["arrays"]["muscle"]["activation"] = {"kind": "thermal"}
        return table
    return read_merged(ROOT / "configs" / name / "rig.toml").table


RIGS = {name: rig_of(name) for name in {place[0] for place in PLACES.values()}}


def put(table, key, value):
    """A copy of the table with a value at a dotted key; None takes it out."""
    root = copy.deepcopy(table)
    *above, last = key.split(".")
    inside = root
    for part in above:
        inside = inside.setdefault(part, {})
    inside.pop(last, None)
    if value is not None:
        inside[last] = value
    return root


def found(rig, change=None):
    """The keys that are refused, with their texts, of a rig and what --set changes."""
    sources = [("rig.toml", rig), *([("--set", change)] if change else [])]
    merged = Merged(merge(rig, change or {}), sources)
    tables = validated(RigTables, merged)
    return {
        key.split(" = ")[0]: text
        for late in (False, True)
        for key, text in faults(tables, merged, late=late)
    }


def looser(tighter, value, than):
    if tighter == LOWER:
        return value > than
    if tighter == HIGHER:
        return value < than
    if tighter == "wider":
        return value[0] > than[0] or value[1] < than[1]
    if tighter in ("unchanged", KEPT, ADDED):
        return value != than
    return tighter.index(value) > tighter.index(than)


def test_every_key_that_weakens_is_tried_here_and_every_interlock_that_can_be_held_is_one():
    keys = [key for row in ROWS for key in row.keys]
    assert sorted(keys) == sorted(PLACES)
    assert {key for row in ROWS if row.bound is not None for key in row.keys} == {*BOUNDS}
    assert all(row.because for row in ROWS if row.bound is not None)


@pytest.mark.parametrize("key", PLACES)
@settings(max_examples=settings().max_examples * 2 // 5, deadline=None)
@given(data=st.data())
def test_an_experiment_only_tightens_what_its_rig_has_or_leaves_to_the_default(key, data):
    rig, place, tighter, values, default = PLACES[key]
    own = data.draw(values if default == "required" else st.one_of(st.none(), values))
    value = data.draw(st.one_of(values, st.just(own if own is not None else default)))
    if value is None:
        return
    table = put(RIGS[rig], place, own)
    refused = found(table, put({}, place, value)).get(place, "")
    if own is not None:
        wanted = "looser than the rig's" if looser(tighter, value, own) else ""
    elif tighter in ("unchanged", ADDED) and default is None:
        wanted = "not in the rig"
    else:
        has = default is not None and looser(tighter, value, default)
        wanted = "looser than the default" if has else ""
    assert refused.startswith(wanted)
    assert bool(wanted) == ("only tighten" in refused)


@pytest.mark.parametrize("key", BOUNDS)
def test_a_rig_goes_as_far_as_its_bound_and_no_further(key):
    rig, place, _, _, _ = PLACES[key]
    bound = BOUNDS[key]
    for value, fine in ((bound, True), (math.nextafter(bound, math.inf), False)):
        refused = found(put(RIGS[rig], place, value)).get(place, "")
        assert refused.startswith("" if fine else f"choose at most {bound:g}: ")
        assert bool(refused) != fine


@pytest.mark.parametrize(
    ("rig", "place", "other", "value", "bound"),
    [
        ("miga6", "guard.reading_age_max_s", "guard.cell_on_max_s", 0.5, 0.5),
        ("slider", "guard.reading_age_max_s", "guard.cell_on_max_s", None, 10.0),
        ("miga6", "guard.hold_s.force_no_rise", "guard.cell_on_max_s", 0.5, 0.5),
        ("slider", "guard.hold_s.force_residual_high", "guard.cell_on_max_s", None, 1.0),
        ("miga6", "devices.daq.watchdog_s", "loop.period_s", 0.5, 5.0),
        ("miga6", "devices.daq.watchdog_s", "loop.period_s", 0.05, 1.0),
        ("wires4", "devices.supply.voltage_tolerance_V", "devices.supply.voltage_V", 1.0, 0.2),
        ("wires4", "devices.supply.voltage_tolerance_V", "devices.supply.voltage_V", 5.0, 0.5),
    ],
)
def test_a_bound_follows_what_it_protects(rig, place, other, value, bound):
    table = put(RIGS[rig], other, value)
    assert place not in found(put(table, place, bound))
    assert found(put(table, place, 1.001 * bound))[place].startswith(f"choose at most {bound:g}: ")


@pytest.fixture
def hil(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)

    def run(*args):
        code = main([str(a) for a in args])
        return code, capsys.readouterr().err

    return run


@pytest.mark.parametrize(
    "change",
    [
        "devices.supply.voltage_tolerance_V=5.0", "guard.disk_free_min_MB=0.0",
        "devices.board.firmware='deadbeef'", "devices.board.estop='none'",
        "guard.hold_s.estop_open=3600.0", "devices.daq.watchdog='off'",
    ],
)  # fmt: skip
def test_no_run_takes_what_weakens_its_rig(change, hil, tmp_path):
    out = tmp_path / "run.h5"
    for words in (("run", RUN, "--out", out), ("check", RIG), ("check", RUN)):
        code, err = hil(*words, "--set", change)
        assert code == 2
        assert len(err.splitlines()) == 1
        assert err.startswith(f"--set {change}: {change.split('=')[0]} = ")
        assert "only tighten" in err
    assert not out.exists()


@pytest.mark.parametrize(
    ("key", "value"),
    [("hold_s.estop_open", 3600.0), ("hold_s.cell_on_too_long", 3600.0),
     ("hold_s.cell_energy_high", 3600.0), ("hold_s.board_silent", 3600.0)],
)  # fmt: skip
def test_a_rig_of_which_a_condition_must_last_an_hour_is_no_valid_rig(key, value, hil, rigs):
    path = rigs / "miga6/rig.toml"
    path.write_text(f"{path.read_text()}\n[guard.hold_s]\n{key.split('.')[1]} = {value}\n")
    for words in (("check", path), ("check", path.with_name("all_on.toml"))):
        code, err = hil(*words)
        assert code == 2
        assert f"guard.{key} = 3600: choose at most " in err


LATE = ["guard.reading_age_max_s=10.0", "loop.overrun='skip'", "loop.overruns_max=1000"]


@pytest.mark.parametrize("change", LATE)
def test_a_late_computer_is_excused_where_nothing_is_on_the_bench_and_nowhere_else(change, hil):
    """A silent board then goes unnoticed to the end of a run of 10 s."""
    for file in (RIG, RUN):
        code, err = hil("check", file, "--set", change)
        assert code == 2
        assert "looser than the default" in err
    config = load(ROOT / RUN, [change])
    assembly.build(Plan(config, seed=1))
    with pytest.raises(ConfigError, match="looser than the default") as refused:
        Plan(config, "board=bench")
    assert str(refused.value).startswith(f"--set {change}: ")


def test_an_experiment_cannot_bring_its_rig_below_a_maximum_by_the_stress_of_a_wire(hil, rigs):
    """A wider branch has less austenite at 180 degC, which is left to release its heat."""
    path = rigs / "wires4/rig.toml"
    text = path.read_text().replace("widens_per_MPa = 0.0018", "widens_per_MPa = 0.01")
    record = next(line for line in text.splitlines() if "flexinol_100um_stress" in line)
    path.write_text(text.replace(record, ""))
    code, err = hil("check", path)
    assert code == 2
    assert "the board could heat the wire of 'muscle.1' to " in err
    place = "model.arrays.muscle.activation.heating.widens_per_MPa"
    code, err = hil("check", path, "--set", f"{place}=0.0018")
    assert code == 2
    assert err.startswith(f"--set {place}=0.0018: {place} = 0.0018: looser than the rig's 0.01: ")


def test_an_experiment_is_held_against_its_rig_as_set_is(hil, rigs):
    path = rigs / "miga6/all_on.toml"
    path.write_text(path.read_text() + "\n[guard]\ndisk_free_min_MB = 1.0\n")
    code, err = hil("check", path)
    assert code == 2
    assert err.startswith(f"{path}: guard.disk_free_min_MB = 1: looser than the default 100: ")
    rig = path.with_name("rig.toml")
    rig.write_text(rig.read_text().replace("[guard]\n", "[guard]\ndisk_free_min_MB = 1.0\n"))
    assert hil("check", path)[0] == 0


def test_new_lines_and_limits_that_the_rig_has_not_may_be_added(hil):
    words = ["--set", "devices.daq.lines.feed={kind='enable', terminal='port0/line1'}",
             "--set", "guard.cells_on_max=4"]  # fmt: skip
    assert hil("check", RUN, *words)[0] == 0


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("miga6_lines", "devices.daq.lines.loop.terminal='port1/line7'"),
        ("miga6", "devices.daq.channels.force.terminal='ai7'"),
        ("slider", "devices.daq.channels.slide.units_per_V=0.002"),
        ("miga6_lines", "devices.daq.card='Dev2'"),
        ("miga6_lines", "devices.supply.resource='ASRL/dev/ttyUSB7::INSTR'"),
        ("miga6", "devices.daq.channels.force.tare=true"),
    ],
)
def test_an_experiment_does_not_rewire_a_bench_and_may_add_a_channel(name, change, hil):
    """An e-stop that is read at a free line is closed for ever; a lower slope hides travel.

    At another supply, the cells' stays on after a trip; a tare hides the load that hangs there.
    """
    code, err = hil("check", f"configs/{name}/rig.toml", "--set", change)
    assert code == 2
    assert "looser than the " in err
    room = "{kind='voltage', terminal='ai5', signal='ambient_C', units_per_V=10.0, zero_V=2.5}"
    more = ("--set", f"devices.daq.channels.room={room}")
    assert hil("check", "configs/miga6_lines/rig.toml", *more)[0] == 0
    more = ("--set", "devices.daq.channels.other={terminal='ai6', newtons_per_V=1.0, tare=true}")
    assert hil("check", "configs/miga6_lines/rig.toml", *more)[0] == 0


@pytest.mark.parametrize("change", ["devices.supply.voltage_tolerance_V=0.06", ""])
def test_heat_that_is_computed_counts_with_as_much_as_the_supply_may_be_off(change, hil, rigs):
    """3 % of 2 V; the rig's own line is taken out, so that the default of 0.2 V stands."""
    path = rigs / "miga6_lines/rig.toml"
    text = path.read_text()
    line = next(x for x in text.splitlines() if x.startswith("voltage_tolerance_V"))
    assert hil("check", path)[0] == 0
    path.write_text(text.replace(line, ""))
    code, err = hil("check", path, *(("--set", change) if change else ()))
    assert code == (0 if change else 2)
    assert ("give at most 0.06" in err) == (not change)


def test_the_time_that_heat_may_be_too_high_counts_as_heat(rigs):
    """100 ms more until the lines are low; the budget has that less."""
    path = rigs / "miga6_lines/rig.toml"
    (before,) = load(path.with_name("all_on.toml")).loop_protections
    path.write_text(path.read_text() + "\n[guard.hold_s]\ncell_energy_high = 0.1\n")
    (after,) = load(path.with_name("all_on.toml")).loop_protections
    for cell, budget in before.budgets.items():
        late_K = 0.1 * budget.heats_K_per_s
        assert after.budgets[cell].rise_max_K == pytest.approx(budget.rise_max_K - late_K)


def test_the_time_that_a_cell_may_be_on_too_long_counts_to_its_board_s_limit(hil, rigs):
    """The board's default is 10 s, as the guard's limit."""
    path = rigs / "miga6/rig.toml"
    path.write_text(path.read_text() + "\n[guard.hold_s]\ncell_on_too_long = 0.1\n")
    code, err = hil("check", path)
    assert code == 2
    assert "guard.cell_on_max_s = 10: board 'board' switches a cell off after 10 s" in err
    path.write_text(path.read_text().replace("cell_on_max_s = 10.0", "cell_on_max_s = 9.9"))
    assert hil("check", path)[0] == 0


def test_one_table_for_all_cells_is_no_looser_than_the_default_of_a_cell_without_a_limit():
    """The rig gives one cell of two a limit above the default of 180; the other keeps 180."""
    hot, plain = {"kind": "thermal", "temperature_max_C": 300.0}, {"kind": "thermal"}
    for own in ([hot, plain], [plain, hot]):
        table = put(RIGS["wires4"], "model.arrays.muscle.activation", own)
        table = put(table, "model.arrays.muscle.fingerprint", "-:2 | &F:-1")
        for change in (hot, [hot], [hot, hot]):
            refused = found(table, put({}, "model.arrays.muscle.activation", change))
            assert [text.partition(":")[0] for text in refused.values()] == [
                "looser than the default 180"
            ]
        tighter = put({}, "model.arrays.muscle.activation", {"temperature_max_C": 180.0} | plain)
        assert not found(table, tighter)


@pytest.mark.parametrize(
    ("name", "place", "lines"),
    [
        ("miga6_lines/all_on.toml", "devices.daq.switches.wire", "loop_protections"),
        ("miga6/all_on.toml", "devices.board.wire", "protections"),
    ],
)
def test_a_wire_in_the_model_does_not_lift_the_maximum_of_the_device_s_wire(
    name, place, lines, rigs
):
    """The rig says 150; an experiment that describes wires in the model has the default of 180."""
    sets = [f"{place}.temperature_max_C=150.0"]
    if "board" in place:
        keys = ("diameter_m=1e-4, length_m=0.1, supply_V=2.0, martensite_Ohm_per_m=125.0, "
                "austenite_Ohm_per_m=113.0, convection_W_per_m2_K=125.0")  # fmt: skip
        sets = [f"{place}={{{keys}, temperature_max_C=150.0}}"]
    own = "model.arrays.muscle.activation={kind='thermal', supply_V=2.0}"
    (one,) = getattr(load(rigs / name, [*sets, own]), lines)
    wires = one.wires.values() if "loop" in lines else one.cells
    assert [wire.temperature_max_C for wire in wires] == [150.0] * 6
