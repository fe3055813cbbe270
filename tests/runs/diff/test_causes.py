"""Why two runs differ: a planted cause is named first, and the effects add up to the difference."""

import shutil
from datetime import date
from pathlib import Path

import h5py
import numpy as np
import pytest

import hil
from hil.__main__ import main
from hil.calibration.files import load_record
from hil.calibration.write import write_record
from hil.devices.injection import Injection
from hil.devices.injection_tables import FaultTable
from hil.procedures.recalibrate import recalibrate
from hil.record.layout import RECORDED
from hil.runs.diff.causes import explain
from hil.runs.diff.facts import _behind, shown
from hil.runs.diff.setup import setup_of

PID, PULSE, SILICONE = "miga6/pid.toml", "wires4/pulse.toml", "silicone4/pid.toml"
ALL_ON = "miga6/all_on.toml"
LASTS_S = {PID: 1.5, ALL_ON: 1.5, PULSE: 1.6, SILICONE: 4.0}
CHANNEL = "devices.daq.channels.force.sim"
WIRE = "plant.arrays.muscle.activation"
STALLS = [FaultTable(kind="machine_stalls", at_s=0.3 + 0.1 * i, for_s=0.008) for i in range(6)]
WEAK_CURRENT = FaultTable(kind="current_gain", at_s=0.0, cell=3, value=0.9)
# Differences that change little, in every second run.
BESIDE = ("guard.force_max_N=8.4", "experiment.name='another'", "loop.after_trip_s=0.4")

PLANTED = [
    (PID, "gain", "controller.k_p", ["controller.k_p=0.5"]),
    (PID, "gain", "controller.k_i_per_s", ["controller.k_i_per_s=0.5"]),
    (SILICONE, "gain", "controller.k_p", ["controller.k_p=0.6"]),
    (PID, "calibration slope", "calibration of force", 1.03),
    (PID, "calibration slope", "calibration of force", 0.98),
    (PID, "delay", "delay_s", [f"{CHANNEL}.delay_s=0.03"]),
    (PID, "delay", "delay_s", [f"{CHANNEL}.delay_s=0.06"]),
    (SILICONE, "delay", "delay_s", [f"{CHANNEL}.delay_s=0.05"]),
    (PID, "noise", "noise_rms_V", [f"{CHANNEL}.noise_rms_V=0.004"]),
    (PULSE, "noise", "noise_rms_V", [f"{CHANNEL}.noise_rms_V=0.003"]),
    (PULSE, "temperature", "ambient_C", [f"{WIRE}.ambient_C=29.0"]),
    (PULSE, "temperature", "ambient_C", [f"{WIRE}.ambient_C=18.0"]),
    (ALL_ON, "dead cell", "dead_cells", ["plant.arrays.muscle.dead_cells=[3]"]),
    (ALL_ON, "dead cell", "dead_cells", ["plant.arrays.muscle.dead_cells=[6]"]),
    (SILICONE, "dead cell", "dead_cells", ["plant.arrays.muscle.dead_cells=[1]"]),
    (PULSE, "supply", "supply", ["devices.supply.voltage_V=7.6", f"model.{WIRE[6:]}.supply_V=7.6"]),
    (PULSE, "supply", "supply", ["devices.supply.voltage_V=8.3", f"model.{WIRE[6:]}.supply_V=8.3"]),
    (PID, "lost ticks", "lost ticks", STALLS[:3]),
    (PID, "lost ticks", "lost ticks", STALLS),
    (SILICONE, "lost ticks", "lost ticks", STALLS[:4]),
]


@pytest.fixture
def two(configs, tmp_path):
    """Makes two recordings, the second with a planted cause, another seed, and more beside."""

    def made(file, planted, duration_s):
        length = f"experiment.duration_s={duration_s}"
        first = hil.run(hil.load(configs / file, (length,)), out=tmp_path / "a.h5", seed=1)
        changes = planted if isinstance(planted, list) else []
        sets = [change for change in changes if isinstance(change, str)]
        injection = Injection(changes) if changes and not sets else None
        config = hil.load(configs / file, (length, *BESIDE, *sets))
        second = hil.run(config, out=tmp_path / "b.h5", seed=2, injection=injection)
        if isinstance(planted, float):
            record = steeper(configs.parent / "calibration/futek_9N.toml", tmp_path, planted)
            second = recalibrate(second, record, out=tmp_path / "c.h5").path
        return first, second

    return made


def steeper(path, folder, factor):
    """A calibration like another one, with another slope."""
    table = load_record(path, named_by="test").record.model_dump(exclude_none=True)
    del table["hash"], table["format"]
    table["act"] |= {"date": date(2027, 1, 1)}
    table["model"]["coefficients_N"] = [factor * c for c in table["model"]["coefficients_N"]]
    write_record(folder / "steeper.toml", table)
    return folder / "steeper.toml"


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize(("file", "what", "name", "planted"), PLANTED)
def test_a_planted_cause_is_named_first(two, file, what, name, planted):
    first, second = two(file, planted, LASTS_S[file])
    found = explain(setup_of(first), setup_of(second))
    assert name in found.causes[0].name
    share = found.causes[0].effects[found.figure] / found.difference
    assert share == pytest.approx(1.0, abs=0.3)


@pytest.mark.slow
def test_a_single_difference_explains_all_of_it_and_backwards_the_opposite(configs, tmp_path):
    """A run on the virtual clock repeats every value, so nothing remains."""
    length = ("experiment.duration_s=0.8",)
    first = hil.run(hil.load(configs / PID, length), out=tmp_path / "a.h5", seed=1)
    config = hil.load(configs / PID, (*length, "controller.k_p=0.4"))
    setups = setup_of(first), setup_of(hil.run(config, out=tmp_path / "b.h5", seed=1))
    found, back = explain(*setups), explain(*reversed(setups))
    assert found.recorded == found.again
    (cause,) = found.causes
    assert cause.text() == "gain: controller.k_p: 1.0 -> 0.4"
    assert cause.effects[found.figure] == pytest.approx(found.difference, rel=1e-12)
    assert found.together == pytest.approx(0.0, abs=1e-12)
    assert found.software == 0.0
    assert back.causes[0].effects[found.figure] == pytest.approx(-found.difference, rel=1e-12)


def relabelled(path, out, **attributes):
    """A copy of a recording that states something else."""
    shutil.copyfile(path, out)
    with h5py.File(out, "r+", libver=("v110", "v110")) as file:
        for key, value in attributes.items():
            file.attrs[key] = value
    return out


@pytest.fixture(scope="module")
def bench(configs, tmp_path_factory):
    """Makes a run that states that it was at a bench, and nothing of its plant."""
    folder = tmp_path_factory.mktemp("bench")
    length = ("experiment.duration_s=1.2",)
    stated = hil.load(configs / ALL_ON, length).to_toml()

    def made(name, sets=(), seed=1, faults=None):
        config = hil.load(configs / ALL_ON, (*length, *sets))
        injection = Injection(faults) if faults else None
        path = hil.run(
            config, out=folder / f"{name}-sim.h5", seed=seed, injection=injection, force=True
        )
        return relabelled(path, folder / f"{name}.h5", backend="bench", clock="real", simulated="",
                          experiment=stated, injected="[]")  # fmt: skip

    return made


def test_the_twin_with_the_recorded_residual_makes_a_bench_run_again(bench):
    """But for the converter's step, which is added a second time: 20 V / 2^16 at 0.95 N/V."""
    setup = setup_of(bench("again"))
    assert not setup.simulated
    again = setup.again()
    step_N = 0.95 * 20.0 / 2**16
    difference_N = again.force_measured_N.values - setup.run.force_measured_N.values
    assert abs(difference_N).max() <= step_N


@pytest.mark.slow
@pytest.mark.parametrize(("name", "planted"), [
    ("lost ticks", STALLS),
    ("noise of force", [f"{CHANNEL}.noise_rms_V=0.004"]),
    ("delay of force behind the twin", [f"{CHANNEL}.delay_s=0.03"]),
    ("current of muscle.3 while on", [WEAK_CURRENT]),
    ("gain of force over the twin", ["plant.arrays.muscle.dead_cells=[3]"]),
])  # fmt: skip
def test_what_no_configuration_says_is_shown_first_by_the_rows(bench, name, planted):
    sets = planted if isinstance(planted[0], str) else ()
    first = bench("first")
    second = bench("second", sets, 2, None if sets else planted)
    assert shown(hil.open_run(first), hil.open_run(second))[0].name == name
    found = explain(setup_of(first), setup_of(second))
    assert found.causes[0].name.startswith(("what the twin does not know", "lost ticks"))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("noise", [0.002, 0.05])
def test_a_delay_under_noise_is_known_as_well_as_its_scatter_says(seed, noise):
    """Of a noisy exponential it was -0.2 s with a gain of 1.7, each for certain."""
    t_s = 1e-3 * np.arange(2000)
    model = 1.8 * (1.0 - np.exp(-t_s / 0.36))
    late = 1.8 * (1.0 - np.exp(-np.maximum(0.0, t_s - 0.007) / 0.36))
    y = 0.98 * late + np.random.default_rng(seed).normal(0.0, noise, len(t_s))
    fit = _behind(y, model, 1e-3, noise**2)
    assert abs(fit.lag_s - 0.007) <= fit.lag_scatter_s
    assert abs(fit.gain - 0.98) <= fit.gain_scatter
    assert fit.lag_scatter_s <= (0.0011 if noise < 0.01 else 0.3)


def test_a_cell_that_was_on_without_a_reading_of_its_current_is_compared_without_a_warning(all_on):
    """A line of NumPy about an empty slice stood in the answer."""
    one, other = hil.open_run(all_on), hil.open_run(all_on)
    one["muscle.1.current_A"].values[:] = np.nan
    assert shown(one, other) == []


def test_noise_of_a_device_that_is_read_now_and_then_is_that_of_its_readings(all_on):
    """Straight lines between readings have none: it was 0 with `every = 10`."""
    quiet, loud = hil.open_run(all_on), hil.open_run(all_on)
    readings = np.arange(quiet.sizes["tick"]) % 10 == 0
    force_N = quiet.force_measured_N.values
    scatter_N = np.random.default_rng(1).normal(0.0, 0.1, len(force_N))
    quiet.force_measured_N.values[:] = np.where(readings, force_N, np.nan)
    loud.force_measured_N.values[:] = np.where(readings, force_N + scatter_N, np.nan)
    condition = next(one for one in shown(quiet, loud) if one.name == "noise of force")
    assert condition.now == pytest.approx(0.1, rel=0.1)
    assert condition.was < 0.02


@pytest.mark.slow
def test_the_command_names_the_cause_and_writes_a_page_without_markup_of_the_file(two, capsys):
    first, second = two(PID, ["controller.k_p=0.5"], 0.8)
    evil = "<script>alert(1)</script>"
    evil_run = relabelled(second, second.with_name("evil.h5"), operator=evil)
    page = second.with_name("why.html")
    assert main(["diff", str(first), str(evil_run), "--page", str(page)]) == 0
    out = capsys.readouterr().out
    why = out.splitlines().index(next(x for x in out.splitlines() if x.startswith("why:")))
    assert "gain: controller.k_p: 1.0 -> 0.5" in out.splitlines()[why + 1]
    assert "both runs were simulated again" in out
    text = page.read_text()
    assert evil not in text
    assert "&lt;script&gt;alert(1)" in text
    assert "SIMULATED" in text


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize(("words", "said"), [
    (["a.h5", "none.h5"], "none.h5: "),
    (["a.h5", "b.h5", "--figure", "force_rms"], "--figure force_rms: not in both runs"),
])  # fmt: skip
def test_bad_input_is_one_line(two, capsys, monkeypatch, words, said):
    first, _ = two(PID, [], 0.1)
    monkeypatch.chdir(first.parent)
    assert main(["diff", *words]) == 2
    assert capsys.readouterr().err.startswith(said)


@pytest.mark.parametrize("swapped", [False, True])
def test_a_run_without_rows_is_one_line(all_on, tmp_path, capsys, swapped):
    """As one that was stopped before its first tick is."""
    empty = Path(shutil.copy(all_on, tmp_path / "empty.h5"))
    with h5py.File(empty, "r+") as file:
        for column in file["ticks"].values():
            column.resize(0, axis=0)
        file[RECORDED][0] = 0
    words = [str(empty), str(all_on)]
    assert main(["diff", *(words[::-1] if swapped else words)]) == 2
    assert capsys.readouterr().err.startswith(f"{empty}: has no rows")


def test_a_run_that_cannot_be_made_again_is_compared_all_the_same(two, capsys):
    first, second = two(PID, [], 0.1)
    other = relabelled(second, second.with_name("other.h5"), imported="{}", operator="Bo")
    assert main(["diff", str(first), str(other)]) == 0
    out = capsys.readouterr().out
    assert "operator: " in out
    assert "why: not known: " in out
