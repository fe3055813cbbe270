"""A recording to be changed for the worse."""

import shutil

import pytest


@pytest.fixture
def hostile(all_on, tmp_path):
    """A sound recording in a folder of its own, to be changed for the worse."""
    folder = tmp_path / "mail"
    folder.mkdir()
    path = folder / "run.h5"
    shutil.copyfile(all_on, path)
    return path
