import shutil

import pytest


@pytest.fixture
def rigs(configs, tmp_path):
    """A copy of the rigs that these tests change, with their calibrations."""
    for folder in ("configs/slider", "configs/wires4", "calibration"):
        shutil.copytree(configs.parent / folder, tmp_path / folder)
    return tmp_path / "configs"
