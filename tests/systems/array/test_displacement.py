"""Isotonic rigs: a laser reads what a wire under constant load, or against a spring, does."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

import hil
from hil.__main__ import main
from hil.bundled_configs import root
from hil.errors import ConfigError
from hil.experiment.load import load
from hil.loop.guard import names_of
from hil.mechanics.sma.stress import Branch, StressLaw
from hil.runs.replay import replay

WEIGHT = root() / "configs" / "isotonic" / "pulse.toml"
SPRING = root() / "configs" / "spring_bias" / "pulse.toml"
SHORT = ["experiment.duration_s=4.0"]
CHANNEL = "devices.daq.channels.displacement"
FLEXINOL = StressLaw(
    Branch(78.3, 8.3e6, 1.05, 8.2, -3.9, 0.52, 2.0e-9),
    Branch(56.3, 7.5e6, 1.23, 8.0, -3.4, 0.52, 0.8e-9),
    stroke_min=0.040, stroke_max=0.041, stroke_rate_per_Pa=1.2e-8,
    modulus_A_Pa=70e9, modulus_M_Pa=1.0 / (1.0 / 70e9 + 25e-12),
)  # fmt: skip
AREA_m2, LENGTH_m = 0.25 * np.pi * 1e-8, 0.1


def strain(xi, stress_Pa):
    """Of the wire beyond austenite's elastic strain."""
    return (1.0 - xi) * (FLEXINOL.stroke(stress_Pa) + 25e-12 * stress_Pa)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("displacement")
    return {
        name: hil.open_run(hil.run(load(file, SHORT), out=folder / f"{name}.h5"))
        for name, file in (("isotonic", WEIGHT), ("spring_bias", SPRING))
    }


def test_a_weight_rises_as_the_law_says_at_the_temperature_that_is_measured(recorded):
    """Where the weight hardly moves, its wire is at xi(T, sigma) of the heating branch."""
    run = recorded["isotonic"]
    stress_Pa = 1.177 / AREA_m2
    heating = (run.t_s.values > 2.5) & (run.t_s.values < 3.9)
    xi = FLEXINOL.least(run.temperature_measured_C.values[heating], stress_Pa)
    rise_m = LENGTH_m * (strain(0.0, stress_Pa) - strain(xi, stress_Pa))
    # Rest is not quite martensite (0.4 %), and noise of the pyrometer is 0.1 K.
    np.testing.assert_allclose(run.displacement_measured_m.values[heating], rise_m, atol=6e-5)


def test_a_bias_spring_is_stretched_by_the_force_that_its_wire_carries(recorded):
    run = recorded["spring_bias"]
    hot = (run.t_s.values > 3.5) & (run.t_s.values < 4.0)
    force_N = run.force_measured_N.values[hot].mean()
    assert force_N == pytest.approx(
        120.0 * run.displacement_measured_m.values[hot].mean(), rel=5e-3
    )
    assert force_N > 0.4


@pytest.mark.slow
def test_the_twin_of_a_displacement_is_recorded_and_replayed(recorded):
    run = recorded["isotonic"]
    assert run.displacement_model_m.attrs["units"] == "m"
    assert run.temperature_model_C.attrs["units"] == "degC"
    assert "force_measured_N" not in run
    np.testing.assert_array_equal(run.temperature_model_C, run["wire.1.wire_model_C"])
    assert replay(Path(run.encoding["source"])) == (4000, None)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (f"{CHANNEL}.metres_per_V=0.0", "metres_per_V must not be 0"),
        (f"{CHANNEL}.metres_per_V=0.0005", "the guard would never trip"),
        (f"{CHANNEL}.signal=wire.left_N", "no such displacement: choose load.x_m"),
        (f"{CHANNEL}.units_per_V=1.0", "unknown key"),
        ("devices.daq.channels.temperature.signal=wire.2.wire_C", "no such signal"),
        ("model.points.hook.spring_N_per_m=3.0", "moves nothing at a fixed point"),
    ],
)
def test_a_displacement_that_cannot_be_read_is_refused(change, words):
    with pytest.raises(ConfigError, match=words):
        load(WEIGHT, [change])


def test_a_displacement_without_limits_is_refused(tmp_path):
    text = (WEIGHT.parent / "rig.toml").read_text()
    at = text.index("[guard.signals.displacement]"), text.index("[guard.signals.temperature]")
    (tmp_path / "rig.toml").write_text(text[: at[0]] + text[at[1] :])
    (tmp_path / "pulse.toml").write_text(WEIGHT.read_text())
    with pytest.raises(ConfigError, match=r"guard\.signals\.displacement: missing"):
        load(tmp_path / "pulse.toml")


def test_a_rig_without_force_refuses_to_control_it(tmp_path):
    (tmp_path / "pid.toml").write_text(
        f'rig = "{(WEIGHT.parent / "rig.toml").as_posix()}"\n'
        '[experiment]\nname = "x"\nduration_s = 1.0\n'
        '[reference]\nkind = "steps"\nt_s = [0.1]\nforce_N = [0.1]\n'
        '[controller]\nkind = "pid"\nk_p = 1.0\nk_i_per_s = 0.0\n'
    )
    with pytest.raises(ConfigError, match="no channel of kind 'force' measures what it controls"):
        load(tmp_path / "pid.toml")


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        ("sensor_nan", "signal_out_of_range"),
        ("sensor_stuck", "sensor_frozen"),
        ("sensor_rail", "channel_untrue"),
    ],
)
def test_a_broken_displacement_sensor_trips(tmp_path, fault, cause):
    faults = tmp_path / "faults.toml"
    faults.write_text(f'[[fault]]\nkind = "{fault}"\nat_s = 0.2\ndevice = "displacement"\n')
    out = tmp_path / "run.h5"
    assert main(["run", str(WEIGHT), "--inject", str(faults), "--duration", "0.8",
                 "--out", str(out)]) == 3  # fmt: skip
    run = hil.open_run(out)
    first = run.fault_bits.values[run.fault_bits.values != 0][0]
    assert names_of(int(first)) == [cause]


def test_the_stroke_of_a_rig_is_that_of_its_law():
    """force_on_N / k_ae_N_per_m is written in the rig; the law has it at the tension of rest."""
    for config in (WEIGHT, SPRING):
        array = tomllib.loads((config.parent / "rig.toml").read_text())["model"]["arrays"]["wire"]
        stress_Pa = array["activation"]["pretension_N"] / AREA_m2
        stroke_m = array["force_on_N"] / array["cell"]["k_ae_N_per_m"]
        assert stroke_m == pytest.approx(LENGTH_m * strain(0.0, stress_Pa), rel=2e-3)
