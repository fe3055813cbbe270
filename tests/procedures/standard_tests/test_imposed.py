"""`hil test isothermal` and `work-loop`, on curves whose stiffness and work are known."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from hil.__main__ import main
from hil.experiment.load import load
from hil.procedures.standard_tests import imposed
from hil.procedures.standard_tests.kind import Trial
from hil.procedures.standard_tests.subject import subject_of, write_experiment

SUBJECT = SimpleNamespace(displacement="x_m", force="F_N", temperature="T_C", measured=True)


def recorded(t_s, x_m, F_N, levels):
    columns = {"t_s": t_s, "x_m": x_m, "F_N": F_N, "T_C": np.full(len(t_s), 25.0)}
    return Trial(levels, xr.Dataset({name: ("tick", v) for name, v in columns.items()}))


def test_the_work_of_a_force_in_quadrature_is_pi_times_its_amplitudes():
    """Of x = A (1 - cos), F = F_0 - F_1 sin: W = pi A F_1, done while the end moves inward."""
    phase = np.arange(1000) / 1000.0 * 2.0 * np.pi
    x_m, F_N = 0.002 * (1.0 - np.cos(phase)), 3.0 - 0.5 * np.sin(phase)
    assert imposed.work_J(x_m, F_N) == pytest.approx(np.pi * 0.002 * 0.5, rel=1e-4)
    assert imposed.work_J(x_m, 3.0 + 100.0 * x_m) == pytest.approx(0.0, abs=1e-15)


def test_a_work_loop_page_gives_work_and_power_of_every_phase(tmp_path):
    values = imposed.WorkLoopValues(
        stroke_m=0.002, frequency_Hz=0.5, cycles=4, phases=[0.0, 0.5], on_share=0.3
    )
    t_s = np.arange(0.0, 0.5 + 8.0, 0.002)
    phase = 2.0 * np.pi * 0.5 * (t_s - 0.5)
    x_m = 0.001 * (1.0 - np.cos(phase))
    trials = [
        recorded(t_s, x_m, 2.0 + sign * 0.4 * np.sin(phase), {"heat": f"{at}_of_a_cycle"})
        for at, sign in (("0", 1.0), ("0_5", -1.0))
    ]
    found = imposed.analyse_work_loop(values, SUBJECT, trials, tmp_path)["phases"]
    exact_mJ = np.pi * 0.001 * 0.4 * 1e3
    assert [f["phase"] for f in found] == [0.0, 0.5]
    assert [f["work_mJ"][0] for f in found] == pytest.approx([-exact_mJ, exact_mJ], rel=1e-3)
    assert found[1]["power_mW"][0] == pytest.approx(0.5 * exact_mJ, rel=1e-3)
    assert (tmp_path / "work-loops.png").stat().st_size > 5_000


def test_isothermal_gives_both_stiffnesses_and_what_a_loop_dissipates(tmp_path):
    """2 N/mm up to 0.5 mm and 1 N/mm beyond; 0.3 N less on the way back."""
    values = imposed.IsothermalValues(stroke_m=0.001, rate_m_per_s=0.0005, hold_s=0.5, cycles=2)
    t_s = np.arange(0.0, 0.5 + 2 * 5.0, 0.001)
    x = 1e-3 * np.interp((t_s - 0.5) % 5.0, [0.0, 2.0, 2.5, 4.5, 5.0], [0.0, 1.0, 1.0, 0.0, 0.0])
    x[t_s < 0.5] = 0.0
    back = (t_s >= 0.5) & ((t_s - 0.5) % 5.0 > 2.25)
    F = np.where(x < 5e-4, 2e3 * x, 1.0 + 1e3 * (x - 5e-4)) - 0.3 * back
    [found] = imposed.analyse_isothermal(values, SUBJECT, [recorded(t_s, x, F, {})], tmp_path)[
        "temperatures"
    ]
    assert found["stiffness_start"][0] == pytest.approx(2.0, rel=1e-6)
    assert found["stiffness_end"][0] == pytest.approx(1.0, rel=1e-6)
    assert found["dissipated_mJ"][0] == pytest.approx(0.3, rel=0.02)  # 0.3 N over 1 mm
    assert found["left_N"][0] == pytest.approx(-0.3, abs=0.02)
    assert found["varies_K"][0] == 0.0


@pytest.mark.parametrize("name", ["isothermal", "work-loop"])
def test_the_plans_are_valid_experiments(name, configs, tmp_path):
    subject = subject_of(configs / "stage" / "rig.toml", tmp_path)
    values, plan = {
        "isothermal": (imposed.IsothermalValues(), imposed.plan_isothermal),
        "work-loop": (imposed.WorkLoopValues(), imposed.plan_work_loop),
    }[name]
    found = plan(values, subject)
    path = write_experiment(
        subject.rig, tmp_path, name, found.duration_s, found.steps, found.outputs
    )
    curve = load(path).tables.controller.outputs["stage"]
    assert max(curve.value) == pytest.approx(values.stroke_m)
    assert (curve.value[0], curve.value[-1]) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["isothermal", "isotonic/rig.toml"], "this test needs a stage"),
        (["work-loop", "spring_bias/rig.toml"], "this test needs a stage"),
        (["isothermal", "stage/rig.toml", "--set", "temperatures_C=[150.0]"], "to 120 degC"),
        (["isothermal", "stage/rig.toml", "--set", "temperatures_C=[25.0, 25.0]"], "listed twice"),
        (["isothermal", "stage/rig.toml", "--set", "stroke_m=1e-9"], "fewer than 100 readings"),
        (["isothermal", "stage/rig.toml", "--set", "stroke_m=0.02"], "with max = 0.005: lower it"),
        (
            ["isothermal", "stage/rig.toml", "--set", "rate_m_per_s=0.5"],
            "rate_max_per_s = 0.02: lower",
        ),
        (
            ["work-loop", "stage/rig.toml", "--set", "frequency_Hz=20.0"],
            "rate_max_per_s = 0.02: lower",
        ),
        (["work-loop", "stage/rig.toml", "--set", "frequency_Hz=0.01"], "cell_on_max_s = 20"),
        (["work-loop", "stage/rig.toml", "--set", "phases=[1.5]"], "phases"),
        (["work-loop", "stage/rig.toml", "--set", "on_share=nan"], "on_share"),
    ],
)
def test_what_a_stage_cannot_do_is_refused_in_one_line(args, words, configs, tmp_path, capsys):
    name, rig, *sets = args
    assert main(["test", name, str(configs / rig), *sets, "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert len(error) == 1
    assert words in error[0]


@pytest.mark.slow
def test_a_cold_wire_does_no_work_on_the_stage(configs, tmp_path):
    """It is elastic: the loop has no area beside the energy that it stores, (F_max - F_min) A."""
    out, rig = tmp_path / "out", str(configs / "stage" / "rig.toml")
    sets = ["cycles=3", "frequency_Hz=1.5", "phases=[0.5]", "on_share=0.001"]
    words = [word for change in sets for word in ("--set", change)]
    assert main(["test", "work-loop", rig, "--out", str(out), *words]) == 0
    [found] = json.loads((out / "results.json").read_text())["phases"]
    assert abs(found["work_mJ"][0]) < 0.05 * 0.5 * 1.0
    assert "work-loops.png" in (out / "index.html").read_text()
