"""Whole runs of the bundled rigs with wires: intact ones run on, untrue readings end them."""

import numpy as np
import pytest

from hil import open_run
from hil.__main__ import main
from hil.devices.injection import Injection
from hil.devices.injection_tables import FaultTable
from hil.errors import DeviceError
from hil.experiment.load import load
from hil.runs.simulate import simulate

RIGS = {"wires4": "hold", "isotonic": "pulse", "spring_bias": "pulse", "stage": "pull"}
CELLS = {"wires4": 4, "isotonic": 1, "spring_bias": 1, "stage": 1}
ARRAY = {"wires4": "muscle", "isotonic": "wire", "spring_bias": "wire", "stage": "wire"}
ON_S = 0.3
# 20 % low, 21 mA of 0.4 A, half, 25 mA of 0.17 A.
LOW = [0.8, 21.0 / 400.0, 0.5, 25.0 / 170.0]


def ran(path, sets, faults=()):
    """A run of an experiment; its outcome, its end and the texts of its faults."""
    injection = Injection([FaultTable(**fault) for fault in faults])
    run = simulate(load(path, sets), injection=injection)
    texts = [str(text) for text, level in zip(run.event_text.values, run.event_level.values,
                                              strict=True) if level == "fault"]  # fmt: skip
    tripped = run.t_s.values[run.fault_bits.values != 0]
    return run.attrs["outcome"], float(tripped[0]) if len(tripped) else None, texts


def steps(random, cells, duration_s):
    """Cells that go on and off at random."""
    times_s = np.sort(random.uniform(0.1, duration_s, 12))
    rows = [
        f"{{t_s={t:.4f}, {random.choice(['on', 'off'])}=[{random.integers(1, cells + 1)}]}}"
        for t in times_s
    ]
    return f"controller.steps=[{{t_s=0.05, on='all'}}, {', '.join(rows)}]"


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("rig", RIGS)
@pytest.mark.parametrize("seed", [1, 2])
def test_no_intact_wire_within_its_tolerances_ends_a_run(rig, seed, rigs):
    """The rig's own model is compared too, and would find a plant that is so different."""
    random = np.random.default_rng([seed, *map(ord, rig)])
    path = rigs / rig / "rig.toml"
    lines = [line for line in path.read_text().splitlines()
             if not line.startswith(("force_residual_max_N", "force_rise_min_N"))]  # fmt: skip
    path.write_text("\n".join(lines))
    experiment = path.with_name(f"{RIGS[rig]}.toml")
    (board,) = load(experiment).protections
    error = board.bench.current_error
    gains = random.uniform(1.0 - error, 1.0 + error, CELLS[rig])
    ohms = 1.0 + random.uniform(-0.1 + error, 0.1 - error)
    own = {
        "martensite_Ohm_per_m": 126.0 * ohms, "austenite_Ohm_per_m": 113.0 * ohms,
        "convection_W_per_m2_K": 125.0 * 0.85 ** random.uniform(-1.0, 1.0),
        "specific_heat_J_per_kg_K": 450.0 * random.uniform(0.9, 1.1),
        "latent_heat_J_per_kg": 24.2e3 * random.uniform(0.7, 1.3),
        "ambient_C": random.uniform(*load(experiment).tables.devices["board"].ambient_range_C),
    }  # fmt: skip
    sets = [f"plant.arrays.{ARRAY[rig]}.activation.{key}={value}" for key, value in own.items()]
    faults = [{"kind": "current_gain", "cell": i + 1, "value": gain, "at_s": 0.0}
              for i, gain in enumerate(gains)]  # fmt: skip
    sets += ["experiment.duration_s=4.0", "controller.kind='schedule'",
             steps(random, CELLS[rig], 4.0)]  # fmt: skip
    outcome, _, texts = ran(experiment, sets, faults)
    assert (outcome, texts) == ("complete", [])


@pytest.mark.slow_beyond(2 * len(RIGS))
@pytest.mark.parametrize("rig", RIGS)
@pytest.mark.parametrize("gain", LOW)
def test_a_current_that_reads_low_is_noticed_at_arming_and_while_running(rig, gain, configs):
    """At most a quarter of a second after: two readings of resistance, or two scans."""
    experiment = configs / rig / f"{RIGS[rig]}.toml"
    sets = ["experiment.duration_s=0.9", "controller.kind='schedule'",
            f"controller.steps=[{{t_s={ON_S}, on='all'}}]"]  # fmt: skip
    fault = {"kind": "current_gain", "value": gain}
    with pytest.raises(DeviceError, match="current_low") as refused:
        ran(experiment, sets, [{**fault, "at_s": 0.0}])
    assert len(str(refused.value).splitlines()) == 1
    at_s = 0.6
    outcome, when_s, texts = ran(experiment, sets, [{**fault, "at_s": at_s}])
    assert outcome == "tripped"
    assert at_s <= when_s <= at_s + 0.25
    assert any("current_low" in text or "resistance_out_of_range" in text for text in texts)


@pytest.mark.parametrize("rig", RIGS)
def test_a_room_of_45_degC_is_refused_before_anything_is_on(rig, configs, tmp_path, capsys):
    out = tmp_path / "run.h5"
    hot = f"plant.arrays.{ARRAY[rig]}.activation.ambient_C=45.0"
    experiment = configs / rig / f"{RIGS[rig]}.toml"
    assert main(["run", str(experiment), "--set", hot, "--out", str(out)]) == 4
    err = capsys.readouterr().err
    [line] = [line for line in err.splitlines() if "clamp" in line]
    assert "before anything is on, " in line
    assert "1's clamp is at 44.72 C, and in the rig's room it is at 13 to " in line
    assert "devices.board.ambient_range_C" in line
    assert not out.exists() or not open_run(out).sizes["t_s"]


@pytest.mark.parametrize("air_C", [60.0, 110.0])
def test_a_wire_in_a_chamber_that_its_model_states_runs_on(air_C, configs):
    """Its austenite has a sixth less resistance, more than the tolerance of a cold wire."""
    wire = [f"{part}.arrays.wire.activation.{key}"
            for part in ("model", "plant")
            for key in (f"ambient_C={air_C}", "austenite_Ohm_per_m=105.0")]  # fmt: skip
    off = ["experiment.duration_s=1.5", "controller.steps=[{t_s=0.0, off='all'}]"]
    outcome, _, texts = ran(configs / "stage/pull.toml", wire + off)
    assert (outcome, texts) == ("complete", [])


@pytest.mark.parametrize(("cell", "code"), [("wire.1", 0), ("wire.2", 2)])
def test_a_cell_without_a_sensor_at_its_clamp_is_named(cell, code, rigs, tmp_path, capsys):
    path = rigs / "isotonic/rig.toml"
    board = "[devices.board]\n"
    path.write_text(path.read_text().replace(board, f'{board}without_clamp_sensor = ["{cell}"]\n'))
    words = ["--set", "plant.arrays.wire.activation.ambient_C=45.0", "--duration", "0.1"]
    run = ["run", str(path.with_name("pulse.toml")), *words, "--out", str(tmp_path / "run.h5")]
    assert main(run) == code
    if code:
        [line] = capsys.readouterr().err.splitlines()
        assert line.startswith(
            f"{path}: devices.board.without_clamp_sensor = 'wire.2': 'board' has no such cell"
        )


LIGHT = [f"{part}.arrays.muscle.activation.clamp_capacity_J_per_K=0.0005"
         for part in ("model", "plant")]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "fault", "on_s", "within_s", "sets"),
    [
        ("current_untrue", {"kind": "current_gain", "value": 1.15}, 5.0, 0.3, []),
        ("clamp_untrue", {"kind": "cell_temperature", "value": 25.0}, 1.0, 0.9, LIGHT),
    ],
)
def test_what_only_the_wires_state_shows_to_be_untrue_trips(
    name, fault, on_s, within_s, sets, configs
):
    """A cold wire that reads as austenite; a clamp, 200 times as light, that does not warm."""
    at_s = 1.0
    sets = [*sets, "experiment.duration_s=2.5", f"controller.steps=[{{t_s={on_s}, on='all'}}]"]
    faults = [{**fault, "cell": 2, "at_s": at_s}]
    path = configs / "wires4/hold.toml"
    outcome, when_s, texts = ran(path, sets, faults)
    assert outcome == "tripped"
    assert at_s <= when_s <= at_s + within_s
    [text] = texts
    assert text.startswith(f"{name}: muscle.2")
