"""Units of the bundled rigs, exported once, and opened."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fmu_unit import PERIOD_S, Unit
from hil.experiment.kind import ModelRequest
from hil.experiment.load import load_model, load_rig
from hil.systems.array.description import boards_of
from hil.systems.array.fmu import export


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The unit of a file and an FMI version, for this computer; with its boards if asked for."""
    folder, made = tmp_path_factory.mktemp("units"), {}

    def build(file, fmi=3, period_s=PERIOD_S, sets=(), with_boards=False):
        key = (str(file), file.read_text(), fmi, period_s, tuple(sets), with_boards)
        if key not in made:
            loaded = load_model(file, sets)
            model, cells = loaded.model, loaded.activation()
            tables = load_rig(file, sets).boards if with_boards else {}
            boards = boards_of(ModelRequest(model, cells, period_s, boards=tables))
            path = folder / f"{len(made)}.fmu"
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(export, "TARGETS", export.TARGETS[:1])
                export.export(model, cells, period_s, path, fmi, boards)
            made[key] = path
        return made[key]

    return build


@pytest.fixture
def opened(tmp_path):
    """Opens units, each in a folder of its own."""
    n_opened = 0

    @contextmanager
    def open_unit(path) -> Iterator[Unit]:
        nonlocal n_opened
        n_opened += 1
        unit = Unit(str(path), str(tmp_path / f"unit{n_opened}"))
        try:
            yield unit
        finally:
            unit.fmu.freeInstance()

    return open_unit
