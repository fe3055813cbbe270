"""Every shipped experiment runs to its end on the simulated rig, from a copy anywhere."""

from pathlib import Path

import pytest

from hil import open_run, run
from hil.bundled_configs import copy_examples, root

EXPERIMENTS = sorted(
    str(path.relative_to(root()))
    for path in (root() / "configs").glob("*/*.toml")
    if path.name != "rig.toml"
)


@pytest.fixture(scope="session")
def copied(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")
    copy_examples(folder)
    return folder


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_shipped_experiment_runs_to_its_end(copied, name):
    path = run(copied / name, out=copied / f"{Path(name).parent.name}-{Path(name).stem}.h5")
    recording = open_run(path)
    assert recording.attrs["outcome"] == "complete"
    assert not recording.fault_bits.values.any()


def test_values_that_nobody_published_are_marked():
    for rig in (root() / "configs").glob("*/rig.toml"):
        text = rig.read_text()
        sources = ("MacNair & Ueda", "Font-Llagunes & Koevecses", "Makkonen 2021",
                   "Hemami & Hemami", "Buchholz", "docs/wires.md")  # fmt: skip
        assert any(source in text for source in sources) or rig.parent.name == "slider"
        assert text.count("# assumed") >= 4
