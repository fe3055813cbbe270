"""The documentation's extensions, installed as a package is: one file and one line each."""

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from math import acos
from pathlib import Path

import numpy as np
import pytest

import hil
import resident

LAB = Path(__file__).parent / "lab"
LENGTH_M, MASS_KG, G = 0.3, 0.5, 9.81


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """The folder into which pip installed the package, as docs/how-to/extend.md says."""
    folder = tmp_path_factory.mktemp("site")
    words = ["install", "--quiet", "--no-deps", "--no-build-isolation", "--target", folder, LAB]
    subprocess.run([sys.executable, "-m", "pip", *map(str, words)], check=True)
    return folder


@pytest.fixture(scope="module")
def installed(lab, tmp_path_factory, pytestconfig):
    """The socket of a process of hil where the lab's package is installed."""
    socket = str(tmp_path_factory.mktemp("resident") / "hil")
    root = pytestconfig.rootpath
    paths = os.pathsep.join(map(str, (lab, root, root / "gui")))
    environment = os.environ | {"PYTHONPATH": paths, "QT_QPA_PLATFORM": "offscreen"}
    with resident.started(socket, env=environment):
        yield socket


@pytest.fixture
def asked(installed, tmp_path):
    """`PROGRAM WORDS` where the lab's package is installed, given a text; its answer."""

    def run(*words, code=0, text=""):
        (tmp_path / "text").write_text(text)
        with (tmp_path / "text").open() as given, (tmp_path / "answer").open("w+") as answer:
            streams = given.fileno(), answer.fileno(), answer.fileno()
            found = resident.ask(installed, [*map(str, words)], str(tmp_path), streams)
            answer.seek(0)
            printed = answer.read()
        assert found == code, printed
        return printed

    return run


@pytest.fixture
def command(asked):
    """`hil WORDS`; its answer."""
    return partial(asked, "hil")


def test_a_pendulum_runs_replays_and_is_reported_with_its_own_section(command, tmp_path):
    file, run = LAB / "pendulum.toml", tmp_path / "run.h5"
    assert "a valid experiment" in command("check", file)
    command("run", file, "--out", run)
    assert "identical in 2000 rows" in command("replay", run)
    command("report", run)
    command("run", file, "--out", tmp_path / "card.h5", "--backend", "emulated")
    assert "The largest angle is" in (tmp_path / "run.html").read_text()
    # The push's work lifts the mass: u theta = m g l (1 - cos(theta_max)), before damping.
    angle_rad = hil.open_run(run).angle_measured_rad.values
    pushed_rad = float(angle_rad[101])
    lifted = 0.5 * pushed_rad / (MASS_KG * G * LENGTH_M)
    assert np.nanmax(angle_rad) == pytest.approx(acos(1.0 - lifted), rel=0.03)


def test_the_window_draws_the_pendulums_rod(asked):
    text = (
        "import sys; from pathlib import Path; from PySide6.QtWidgets import QApplication\n"
        "app = QApplication([])\n"
        "from hil_gui.data import load_settings, preview\n"
        "from hil_gui.path_view import PathView\n"
        "path = Path(sys.argv[1]); view = PathView()\n"
        "view.show_limb(preview(path, load_settings(path, {})[0]))\n"
        "print(view.has_points, view.limb._bones[0].getData()[1].tolist())\n"
    )
    assert "True [0.0, -0.3]" in asked("python", "-", LAB / "pendulum.toml", text=text)


@pytest.fixture
def rig(configs, tmp_path):
    """The six cells, as a rig that the lab's parts are put into."""
    shutil.copytree(configs, tmp_path / "configs")
    shutil.copytree(configs.parent / "calibration", tmp_path / "calibration")
    return tmp_path / "configs" / "miga6" / "pid.toml"


@pytest.fixture
def load_cell_rig(rig):
    """The lab's force sensor in place of the card."""
    table = rig.parent / "rig.toml"
    text = table.read_text()
    card = text[text.index("[devices.daq]") : text.index("[plant_card]")]
    plant_card = text[text.index("[plant_card]") : text.index("[guard]")]
    ours = (
        '[devices.cell]\nkind = "load_cell"\nport = "/dev/ttyACM9"\nnewtons_per_count = 0.001\n'
        "[devices.cell.channels.force]\nsim = {noise_rms = 0.0019}\n"
    )
    table.write_text(text.replace(card, ours).replace(plant_card, ""))
    return rig


def test_a_force_sensor_stands_for_the_cards_channel(command, load_cell_rig, tmp_path):
    rig, run = load_cell_rig, tmp_path / "run.h5"
    command("run", rig, "--out", run)
    assert "identical in" in command("replay", run)
    command("report", run)
    recorded = hil.open_run(run)
    residual_N = (recorded.force_measured_N - recorded.force_model_N).values
    assert np.std(np.diff(recorded.force_measured_N.values[:100])) == pytest.approx(
        0.0019 * 2**0.5, rel=0.25
    )
    assert np.nanmax(np.abs(residual_N)) < 0.5
    assert "port" in command("check", rig, "--set", "devices.cell.port=1", code=2)


@pytest.mark.slow
def test_an_array_is_identified_from_what_a_force_sensor_reads(command, load_cell_rig, tmp_path):
    run = tmp_path / "run.h5"
    experiment = load_cell_rig.with_name("identify.toml")
    alike = "plant.arrays.muscle.mass_kg=0.01583"
    command("run", experiment, "--duration", "2.0", "--set", alike, "--out", run)
    words = ["identify", run, "--free", "k_se_N_per_m", "--bootstrap", "0", "--json"]
    found = json.loads(command(*words))
    by_name = {p["name"]: p for p in found["parameters"]}
    # The plant's 390 N/m, which the model has at 386.52 N/m.
    assert by_name["arrays.muscle.cell.k_se_N_per_m"]["value"] == pytest.approx(390.0, rel=1e-4)


def test_a_controller_switches_the_cells_about_its_set_point(command, rig, tmp_path):
    text = rig.read_text()
    rig.write_text(text[: text.index("[controller]")] + '[controller]\nkind = "threshold"\n')
    assert "at most 6 cells at once" in command("check", rig, "--energise-plan")
    run = tmp_path / "run.h5"
    command("run", rig, "--out", run)
    assert "identical in" in command("replay", run)
    command("report", run)
    recorded = hil.open_run(run)
    force_N, wanted_N = recorded.force_measured_N.values, recorded.force_reference_N.values
    asked = recorded.cells_commanded.values.all(axis=1)
    before = recorded.fault_bits.values == 0
    known = np.isfinite(force_N) & np.isfinite(wanted_N) & before
    assert (asked == (force_N < wanted_N))[known].all()
    assert asked[known].any()


def test_a_cell_kind_is_the_cell_of_its_equivalent_spring(command, rig):
    springs = "k_pe_N_per_m=20.0, k_ae_N_per_m=1000.0, b_N_s_per_m=500.0"
    soft = "{kind='soft', k_se_N_per_m=600.0, k_soft_N_per_m=300.0, " + springs + "}"
    miga = "{kind='miga', k_se_N_per_m=200.0, " + springs + "}"
    found = []
    for cell in (soft, miga):
        sets = [f"{table}.arrays.muscle.cell={cell}" for table in ("model", "plant")]
        words = [word for change in sets for word in ("--set", change)]
        found.append(json.loads(command("model", rig, *words, "--json")))
    assert found[0]["poles"][0]["real_per_s"] == pytest.approx(found[1]["poles"][0]["real_per_s"])
    statics = [f["statics"]["muscle"]["stiffness_N_per_m"] for f in found]
    assert statics[0] == pytest.approx(statics[1], rel=1e-9)


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize(
    ("change", "meant"),
    [("model.kind=pendulm", "pendulum"), ("controller.kind=pussh", "push"),
     ("devices.daq.kind=load_cel", "load_cell")],
)  # fmt: skip
def test_an_unknown_kind_names_the_nearest_and_all_there_are(command, change, meant):
    said = command("check", LAB / "pendulum.toml", "--set", change, code=2)
    line = next(line for line in said.splitlines() if "unknown" in line)
    assert f"did you mean '{meant}'?" in line
    assert line.count(f"'{meant}'") == 2
