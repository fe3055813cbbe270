"""Channels, devices and outputs are found by name: the order of a rig's tables says nothing."""

import copy
import random
from dataclasses import replace

import numpy as np
import pytest
import tomli_w

import hil
from hil.__main__ import main
from hil.config.files import read_merged
from hil.experiment.load import load
from hil.loop import loop
from hil.loop.clock import VirtualClock
from hil.runs import assembly
from hil.runs.plan import Plan
from hil.runs.replay import replay

TICKS = 120
EXPERIMENTS = {  # of every shipped rig one, with feedback where it has any
    "arm": "reach",
    "array14": "broadcast",
    "body": "sway",
    "body_flat": "sway",
    "first_bench": "first_cell",
    "hand": "pinch",
    "isotonic": "pulse",
    "leg": "up_down",
    "leg9": "lift",
    "miga1": "pulse",
    "miga6": "pid",
    "miga6_lines": "pid",
    "pantograph": "impact_symmetric",
    "silicone1": "pulse",
    "silicone4": "pid",
    "slider": "steps",
    "soft_finger": "bend",
    "spring_bias": "pulse",
    "stage": "pull",
    "antagonist": "steps",
    "wires4": "follow",
}
# A model's states and inputs have the order of these tables, and its sums their rounding.
MODEL_ORDER = {
    "arrays", "points", "links", "muscles", "bodies", "joints", "connections", "supports", "holds",
}  # fmt: skip


class Rows:
    """A sink that keeps every row."""

    disk_low = file_harmed = ""

    def __init__(self, frame):
        self._row, self.rows = frame.row, []

    def push(self):
        self.rows.append(self._row[0].copy())
        return True

    def event(self, t_s, level, source, text):
        """Nobody reads it."""

    def requests(self, tick):
        return ()

    def input(self, tick, t_s, name, value, text=""):
        """Nobody reads it."""


def recorded(path):
    """Every column of a short run by name, and every flag by column and name; no timing."""
    config = load(path)
    pipeline = assembly.build(Plan(config, seed=3))
    sink = Rows(pipeline.frame)
    parts = pipeline.context(VirtualClock(), sink)
    pipeline.rig.open()
    pipeline.rig.self_test(print)
    loop.run(replace(parts, n_ticks=TICKS))
    pipeline.rig.close()
    rows, found = np.array(sink.rows), {}
    for column in pipeline.frame.columns:
        if column.role == "timing" and column.name != "t_s":
            continue
        if column.flags:
            for bit, flag in enumerate(column.flags):
                found[f"{column.name}: {flag}"] = rows[column.name] >> np.uint64(bit) & np.uint64(1)
        else:
            found[column.name] = rows[column.name]
    return found


def shuffled(table, how, path=()):
    """The same tables with their keys in another order."""
    if not isinstance(table, dict):
        return table
    keys = list(table)
    if not (path and path[0] in ("model", "plant") and path[-1] in MODEL_ORDER):
        how(keys)
    return {key: shuffled(table[key], how, (*path, key)) for key in keys}


def written(rigs, rig, table):
    path = rigs / rig / "merged.toml"
    path.write_text(tomli_w.dumps(table), encoding="utf-8")
    return path


def same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def test_every_shipped_rig_is_looked_at(configs):
    assert {path.parent.name for path in configs.glob("*/rig.toml")} == set(EXPERIMENTS)


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("rig", EXPERIMENTS)
def test_a_shipped_rig_records_the_same_whatever_the_order_of_its_tables(rigs, rig):
    merged = read_merged(rigs / rig / f"{EXPERIMENTS[rig]}.toml").table
    merged.pop("plant_card", None)
    for name, device in merged["devices"].items():
        if device["kind"] == "nidaq" and len(device["channels"]) == 1:  # which has no order
            (first,) = device["channels"].values()
            signal = first.get("signal") or f"{next(iter(merged['model']['arrays']))}.right_N"
            device["channels"][f"{name}_2"] = {
                "kind": "voltage",
                "terminal": "ai1",
                "signal": signal,
                "units_per_V": 0.5,
                "sim": {"noise_rms_V": 0.01, "reading_lost_probability": 0.1},
            }
    as_shipped = recorded(written(rigs, rig, merged))
    assert len(as_shipped["t_s"]) == TICKS
    drawn = random.Random(5)
    for how in (list.reverse, drawn.shuffle):
        same(recorded(written(rigs, rig, shuffled(copy.deepcopy(merged), how))), as_shipped)


KEY = "loop.force_channel"
NOISE = {"noise_rms_V": 0.002}
VOLTS = {"kind": "voltage", "terminal": "ai1", "signal": "muscle.x2_m", "units_per_V": 0.01}
VOLTS |= {"sim": NOISE}
LEFT = {"terminal": "ai2", "signal": "muscle.left_N", "newtons_per_V": 0.95, "sim": NOISE}


def miga6(rigs, channels, **loop_keys):
    """The merged tables of miga6/pid, with these channels on its card."""
    merged = read_merged(rigs / "miga6" / "pid.toml").table
    merged.pop("plant_card")
    merged["loop"] |= loop_keys
    force = merged["devices"]["daq"]["channels"]["force"]
    merged["devices"]["daq"]["channels"] = {
        name: force if channel is None else channel for name, channel in channels.items()
    }
    return written(rigs, "miga6", merged)


def test_a_voltage_above_the_force_is_not_what_the_pid_regulates(rigs):
    """Set point 0.6 N, held within half of a cell's 0.287 N; by volts all cells go on."""
    config = load(miga6(rigs, {"volts": VOLTS, "force": None}))
    pipeline = assembly.build(Plan(config, seed=1))
    sink = Rows(pipeline.frame)
    parts = pipeline.context(VirtualClock(), sink)
    pipeline.rig.open()
    pipeline.rig.self_test(print)
    assert loop.run(replace(parts, n_ticks=3000)) == "complete"
    force_N = np.array([row["force_measured_N"] for row in sink.rows[2000:]])
    assert force_N.mean() == pytest.approx(0.6, abs=0.15)


def test_what_is_recorded_of_a_force_does_not_depend_on_the_channels_beside_it(rigs):
    alone = recorded(miga6(rigs, {"force": None}))
    beside = recorded(miga6(rigs, {"volts": VOLTS, "force": None, "left": LEFT}))
    for name in alone.keys() - {"daq_t_s", "daq_age_s"}:
        np.testing.assert_array_equal(alone[name], beside[name], err_msg=name)


def test_of_several_forces_the_one_that_the_rig_names_is_controlled(rigs):
    """Between fixed ends both ends pull alike at rest, but their noise is not the same."""
    channels = {"one": LEFT, "other": LEFT | {"terminal": "ai3"}}
    for named in channels:
        found = recorded(miga6(rigs, channels, force_channel=named))
        own = f"{named}.force_measured_N"
        np.testing.assert_array_equal(found["force_measured_N"], found[own])
    assert not np.array_equal(found["one.force_measured_N"], found["other.force_measured_N"])


def warnings_in(text):
    """Those about the force that is controlled; others are of no concern here."""
    return [line for line in text.splitlines() if line.startswith("warning: ") and KEY in line]


def test_several_forces_of_which_none_is_named_are_warned_of_in_one_line(rigs, capsys):
    path = miga6(rigs, {"one": LEFT, "other": LEFT | {"terminal": "ai3"}})
    assert main(["check", str(path)]) == 0
    said = warnings_in(capsys.readouterr().out)
    assert said == [
        f"warning: {path}: loop.force_channel: missing: the rig has the force channels one, other, "
        "and the first in the file, 'one', is controlled: set loop.force_channel"
    ]
    found = recorded(path)
    np.testing.assert_array_equal(found["force_measured_N"], found["one.force_measured_N"])
    out = path.parent / "run.h5"
    assert main(["run", str(path), "--duration", "0.2", "--out", str(out)]) == 0
    assert said == warnings_in(capsys.readouterr().err)
    run = hil.open_run(out)
    assert said[0].removeprefix("warning: ") in run.event_text.values[run.event_level == "warning"]
    assert replay(out) == (200, None)


def test_a_force_named_force_is_controlled_without_a_word(rigs, capsys):
    path = miga6(rigs, {"left": LEFT, "force": None})
    assert main(["check", str(path)]) == 0
    assert not warnings_in(capsys.readouterr().out)
    found = recorded(path)
    np.testing.assert_array_equal(found["force_measured_N"], found["force.force_measured_N"])


@pytest.mark.parametrize(
    ("channels", "loop_keys", "said"),
    [
        ({"volts": VOLTS}, {}, "no channel of kind 'force'"),
        ({"volts": VOLTS, "force": None}, {"force_channel": "volts"}, "choose force"),
        ({"force": None}, {"force_channel": "left"}, "choose force"),
    ],
)
def test_a_rig_without_the_force_that_is_controlled_is_refused(
    rigs, capsys, channels, loop_keys, said
):
    path = miga6(rigs, channels, **loop_keys)
    assert main(["check", str(path)]) == 2
    error = capsys.readouterr().err.splitlines()
    assert len(error) == 1
    assert str(path) in error[0]
    assert said in error[0]
