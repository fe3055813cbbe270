"""Every shipped experiment runs to its end on the simulated rig, from a copy anywhere."""

import tomllib
from pathlib import Path

import pytest

from hil import load, open_run, run
from hil.bundled_configs import copy_examples, root
from hil.runs.simulate import simulate

EXPERIMENTS = sorted(
    str(path.relative_to(root()))
    for path in (root() / "configs").glob("*/*.toml")
    if path.name != "rig.toml"
)
FIRST_OF_EACH_RIG = sorted({Path(name).parent: name for name in reversed(EXPERIMENTS)}.values())


@pytest.fixture(scope="session")
def copied(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")
    copy_examples(folder)
    return folder


def ran_to_its_end(recording):
    assert recording.attrs["outcome"] == "complete"
    assert not recording.fault_bits.values.any()


BEGINNING_S = 0.25
# These are refused if their impacts or their movement do not fit into the run.
SHORTER = {
    "arm": (),
    "pantograph": (
        "experiment.duration_s=2.0",
        "controller.repeats=1",
        "controller.gamma_deg=[30]",
    ),
}


@pytest.mark.parametrize("name", FIRST_OF_EACH_RIG)
def test_the_beginning_of_a_shipped_experiment_runs_to_its_end(copied, name):
    experiment = tomllib.loads((copied / name).read_text())["experiment"]
    duration_s = min(experiment["duration_s"], BEGINNING_S)
    sets = SHORTER.get(Path(name).parent.name, (f"experiment.duration_s={duration_s}",))
    config = load(copied / name, sets)
    recording = simulate(config)
    ran_to_its_end(recording)
    assert recording.t_s.values[-1] >= 0.9 * duration_s


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_shipped_experiment_runs_to_its_end(copied, name, tmp_path):
    ran_to_its_end(open_run(run(copied / name, out=tmp_path / "run.h5")))


def test_values_that_nobody_published_are_marked():
    for rig in (root() / "configs").glob("*/rig.toml"):
        text = rig.read_text()
        sources = ("MacNair & Ueda", "Font-Llagunes & Koevecses", "Makkonen 2021",
                   "Hemami & Hemami", "Buchholz", "docs/wires.md")  # fmt: skip
        assert any(source in text for source in sources) or rig.parent.name == "slider"
        assert text.count("# assumed") >= 4
