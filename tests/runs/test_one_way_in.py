"""A run builds its model once: what follows from the files is computed before, and handed on."""

import subprocess
import sys
from collections import Counter

import pytest

from hil.__main__ import main
from hil.experiment import board_limits
from hil.rig import rig
from hil.systems import array
from hil.systems.array import build, build_force
from hil.systems.array import build_recruitment as recruitment
from hil.systems.array.estimate import state_observer
from hil.systems.array.model import cell_array, system


@pytest.fixture
def made(monkeypatch):
    """How often each of these was called."""
    counts = Counter()

    def count(module, name):
        called = getattr(module, name)

        def counting(*args, **kwargs):
            counts[name] += 1
            return called(*args, **kwargs)

        monkeypatch.setattr(module, name, counting)

    array._model_of.cache_clear()
    build_force._nominal.cache_clear()
    recruitment._prediction.cache_clear()
    state_observer.observer_gain.cache_clear()
    count(build, "CellArray")
    count(cell_array, "discretise")
    count(state_observer, "kalman_gain")
    count(board_limits, "protections")
    count(recruitment, "broken_gains_N")
    count(recruitment, "predict")
    return counts


@pytest.fixture
def constructed(monkeypatch):
    """How many objects of these classes were made."""
    counts = Counter()
    for made in (system.ArraySystem, rig.Rig):
        original = made.__init__

        def counting(self, *args, original=original, name=made.__name__, **kwargs):
            counts[name] += 1
            original(self, *args, **kwargs)

        monkeypatch.setattr(made, "__init__", counting)
    return counts


def test_a_run_builds_model_and_plant_once_and_what_follows_from_them(made, configs, tmp_path):
    words = ["run", str(configs / "array14/optimal.toml"), "--duration", "0.05"]
    assert main([*words, "--out", str(tmp_path / "a.h5")]) == 0
    assert made["CellArray"] == 2  # the plant's cells have other values
    once = {"kalman_gain": 1, "broken_gains_N": 1, "predict": 1, "protections": 1}
    assert {name: made[name] for name in once} == once
    assert made["discretise"] == 3  # model, plant, and the planner's response in finer steps


def test_a_plant_without_differences_is_the_same_model(made, rigs, tmp_path):
    path = rigs / "miga6/rig.toml"
    text = path.read_text()
    path.write_text(text[: text.index("[plant.arrays.muscle]")] + text[text.index("[loop]") :])
    words = ["run", str(rigs / "miga6/all_on.toml"), "--duration", "0.05"]
    assert main([*words, "--out", str(tmp_path / "a.h5")]) == 0
    assert made["CellArray"] == made["discretise"] == 1


def test_a_run_steps_one_twin_and_one_plant_beside_those_of_its_rehearsal(
    constructed, configs, tmp_path
):
    words = ["run", str(configs / "miga6/all_on.toml"), "--duration", "0.05"]
    assert main([*words, "--out", str(tmp_path / "a.h5")]) == 0
    assert constructed == {"ArraySystem": 4, "Rig": 2}


RUN = """
import sys
from hil.__main__ import main
assert main(sys.argv[1:]) == 0
print(*sorted({"dask", "matplotlib", "pandas", "scipy.optimize", "xarray"} & sys.modules.keys()))
"""


def test_a_run_loads_no_library_that_only_other_commands_need(configs, tmp_path):
    words = ["run", str(configs / "miga6/all_on.toml"), "--duration", "0.05"]
    run = subprocess.run(
        [sys.executable, "-c", RUN, *words, "--out", str(tmp_path / "a.h5")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert run.stdout.splitlines()[-1] == ""
