"""Frequency response of an array: another program, statics, zeros by their meaning, the figure."""

import json

import numpy as np
import pytest

import control
from hil.__main__ import main
from hil.experiment.load import load
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.model.frequency import intact, path
from hil.systems.array.topology.figures import MIGA

ALL_ON_N = 1.80128224  # of miga6, from its statics


def miga6(configs, *sets):
    config = load(configs / "miga6/all_on.toml", list(sets))
    return config.model, np.array([cell.force_on_N for cell in config.activation()])


def test_the_response_is_that_of_python_control(configs):
    model, force_on_N = miga6(configs)
    f_Hz = np.geomspace(0.05, 100.0, 60)
    found = path(model, force_on_N, "muscle.right_N").gain(f_Hz)
    other = control.ss(
        model.A, model.B @ force_on_N[:, None], model.C, model.D @ force_on_N[:, None]
    )
    at = model.outputs.index("muscle.right_N")
    expected = np.squeeze(other(2j * np.pi * f_Hz))[at]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    slowly = path(model, force_on_N, "muscle.right_N").gain(np.zeros(1))[0]
    assert slowly == pytest.approx(ALL_ON_N, abs=1e-8)


def test_at_its_zeros_the_array_passes_nothing_on(configs):
    model, force_on_N = miga6(configs)
    way = path(model, force_on_N, "muscle.right_N")
    zeros = way.zeros()
    # the relative degree is one: the damper lets a force through at the rate of d'
    assert sum(z.count * (2 if z.frequency_Hz else 1) for z in zeros) == len(model.states) - 1
    for zero in zeros:
        if zero.frequency_Hz:  # real ones cancel poles of the cells that move alike
            s = zero.value_per_s
            there = way.c @ np.linalg.solve(s * np.eye(len(way.A)) - way.A, way.b) + way.d
            beside = way.gain(np.array([1.01 * zero.frequency_Hz]))[0]
            assert abs(there) < 1e-6 * abs(beside)


def test_a_chain_of_two_cells_has_the_response_of_newtons_law():
    """One mass between two Miga cells that are on together: it does not move, so G = k / (1 + sT).

    T = b / (k_se + k_ae) and k = F phi: of a single cell with fixed ends.
    """
    chain = CellArray.from_fingerprint(
        "-:1 | &1:1 | &1:-1", cell=MIGA, mass_kg=0.01583, name="muscle"
    )
    f_Hz = np.geomspace(0.01, 200.0, 40)
    found = path(chain, np.full(2, 4.0), "muscle.right_N").gain(f_Hz)
    expected = 4.0 * 386.52 / 1386.52 / (1.0 + 2j * np.pi * f_Hz * 500.0 / 1386.52)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_without_failures_an_array_is_as_configured_without_them(configs):
    failed, force_on_N = miga6(configs, "model.arrays.muscle.broken_cells=[3]")
    whole, _ = miga6(configs)
    np.testing.assert_array_equal(intact(failed).A, whole.A)
    f_Hz = np.array([1.0, 30.0])
    gains = [path(m, force_on_N, "muscle.right_N").gain(f_Hz) for m in (failed, whole)]
    assert np.abs(gains[0] - gains[1]).min() > 1e-3


@pytest.fixture
def measured(tmp_path):
    f_Hz = np.geomspace(0.2, 50.0, 40)
    gain = ALL_ON_N / (1.0 + 1j * f_Hz / 0.45)
    result = {"frequency_Hz": f_Hz.tolist(), "gain": np.abs(gain).tolist(), "unit": "N",
              "phase_rad": np.angle(gain).tolist(), "coherence": [1.0] * 40}  # fmt: skip
    (tmp_path / "results.json").write_text(json.dumps(result))
    return tmp_path


def test_the_command_draws_both_states_and_the_measured_points(configs, measured, capsys):
    out = measured / "bode.png"
    rig = str(configs / "miga6/rig.toml")
    assert main(["model", rig, "--set", "model.arrays.muscle.broken_cells=[3]", "--bode", str(out),
                 "--measured", str(measured), "--json"]) == 0  # fmt: skip
    facts = json.loads(capsys.readouterr().out)["bode"]["outputs"]["muscle.right_N"]
    assert list(facts) == ["as_configured", "whole"]
    ringing = [[pole["frequency_Hz"] for pole in state["poles"] if pole["damping"] < 0.5]
               for state in facts.values()]  # fmt: skip
    assert ringing[1] == pytest.approx([27.916, 40.767, 52.560], abs=5e-4)
    assert ringing[0] != pytest.approx(ringing[1], rel=1e-3)
    assert facts["whole"]["gain_N"][0] == pytest.approx(ALL_ON_N, rel=0.02)
    assert out.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--bode", "b.txt"], "--bode b.txt: unknown ending: choose .png, .svg or .pdf"),
        (["--measured", "."], "--measured: lays points over a figure: add --bode FILE.png"),
        (["--bode", "b.png", "--measured", "."], "no result of 'hil test bode': give its --out"),
    ],
)
def test_what_cannot_be_drawn_is_one_line(
    arguments, message, configs, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert main(["model", str(configs / "miga6/rig.toml"), *arguments]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert message in line
    assert not list(tmp_path.iterdir())


def test_a_model_without_cells_has_no_share_of_cells(configs, tmp_path, capsys):
    rig = str(configs / "leg/rig.toml")
    assert main(["model", rig, "--bode", str(tmp_path / "b.png")]) == 2
    assert "this needs a cell_array" in capsys.readouterr().err


@pytest.mark.slow
def test_points_measured_on_the_simulated_rig_lie_on_its_models_curve(configs, tmp_path):
    """The plant has the model's masses here; the estimate of 11 windows scatters by 5 %."""
    text = (configs / "miga6/rig.toml").read_text().split("[plant")[0]
    rest = (configs / "miga6/rig.toml").read_text()
    rig = tmp_path / "rig.toml"
    rig.write_text((text + rest[rest.index("[loop]") :]).replace("../../", f"{configs.parent}/"))
    assert main(["test", "bode", str(rig), "--set", "bit_s=0.01", "--set", "duration_s=60",
                 "--set", "window_s=5", "--out", str(tmp_path / "bode")]) == 0  # fmt: skip
    found = json.loads((tmp_path / "bode/results.json").read_text())
    f_Hz, known = np.array(found["frequency_Hz"]), np.array(found["coherence"]) > 0.95
    known &= (f_Hz > 0.5) & (f_Hz < 15.0)
    model, force_on_N = miga6(configs)
    expected = np.abs(path(model, force_on_N, "muscle.right_N").gain(f_Hz[known]))
    assert known.sum() > 40
    np.testing.assert_allclose(np.array(found["gain"])[known], expected, rtol=0.15)
    assert np.median(np.array(found["gain"])[known] / expected) == pytest.approx(1.0, abs=0.03)
