"""Units of the array of miga6 behind FMI, sound or spoilt, and rigs that use them."""

from functools import cache, partial

import pytest

from hil.experiment.load import load_model
from hil.systems.array.fmu.export import HERE, export
from systems.fmu.units import FAULTS, PERIOD_S, with_unit


@pytest.fixture(scope="module")
def made(configs, tmp_path_factory):
    """Units of the array of miga6: sound, with a fault after 50 steps, or with C of somebody."""
    folder = tmp_path_factory.mktemp("units")
    loaded = load_model(configs / "miga6/rig.toml")
    model, cells = loaded.model, loaded.activation()

    @cache
    def make(fmi=3, fault=None, more=""):
        path = folder / f"{fmi}-{fault}-{abs(hash(more))}.fmu"
        with pytest.MonkeyPatch.context() as patch:
            if fault is not None or more:
                spoilt = folder / f"spoilt {path.stem}"
                (spoilt / "c").mkdir(parents=True)
                for file in (*HERE.glob("*.j2"), *HERE.glob("c/*")):
                    (spoilt / file.relative_to(HERE)).write_text(file.read_text())
                unit = spoilt / "c/unit.c"
                text = "#include <stdlib.h>\n" + unit.read_text() + more
                start = "void unit_step(struct unit *unit)\n{\n"
                assert start in text
                late = f"if (unit->time_s > 50 * PERIOD_S) {{ {FAULTS.get(fault, '')} }}"
                unit.write_text(text.replace(start, f"{start}    {late}\n"))
                patch.setattr("hil.systems.array.fmu.export.HERE", spoilt)
            export(model, cells, PERIOD_S, path, fmi)
        return path

    return make


@pytest.fixture
def rig_with(rigs):
    """An experiment on miga6 whose simulated plant or model is this unit."""
    return partial(with_unit, rigs)
