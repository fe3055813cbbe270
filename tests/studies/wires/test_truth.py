"""The page of assumed numbers has all of them, and errors that can be worked out by hand."""

import json
import re

import numpy as np
import pytest

from hil.errors import ConfigError
from hil.runs.study import run_study
from hil_studies.wires.truth import Assumed, Rig, Values, assumed, rigs_with_wires

SHORT = Values(heat_s=1.0, cool_s=0.2)


def test_every_assumed_number_of_a_rig_with_wires_is_on_the_page(pytestconfig):
    page = (pytestconfig.rootpath / "docs" / "truth.md").read_text(encoding="utf-8")
    sections = {part.split("`")[0].split(":")[0]: part for part in page.split("\n## configs/")[1:]}
    texts = rigs_with_wires()
    assert {"wires4", "isotonic", "spring_bias"} <= set(texts)
    assert set(sections) == set(texts)
    for name, text in texts.items():
        rows = [line for line in sections[name].splitlines() if line.startswith("| `")]
        cells = [re.split(r"(?<!\\)\|", row)[1:3] for row in rows]
        found = {tuple(c.strip(" `").replace("\\|", "|") for c in pair) for pair in cells}
        assert found == {(one.path, one.value) for one in assumed(name, text)}
        n_assumed = sum("# assumed" in line for line in text.splitlines())
        assert n_assumed <= len(rows)


def sorted_errors(cells):
    errors = [0.0 if cell == "–" else float(cell.removesuffix(" %")) for cell in cells]
    assert errors == sorted(errors, reverse=True)
    return errors


def test_the_errors_of_the_page_are_sorted(pytestconfig):
    page = (pytestconfig.rootpath / "docs" / "truth.md").read_text(encoding="utf-8")
    for part in page.split("\n## configs/")[1:]:
        rows = [line for line in part.splitlines() if line.startswith("| `")]
        errors = sorted_errors([re.split(r"(?<!\\)\|", row)[4].strip() for row in rows])
        assert errors[0] > 1.0


def test_a_key_is_found_with_its_table_and_its_value():
    text = '[a.b]\nk_m = 1_000.5  # assumed: so\nname = "x"  # assumed\nother = 3.0  # measured\n'
    found = list(assumed("rig", text))
    assert [(one.path, one.value) for one in found] == [("a.b.k_m", "1_000.5"), ("a.b.name", '"x"')]
    assert [one.number for one in found] == [1000.5, None]


def test_the_error_of_a_transducers_slope_is_its_share_of_the_force():
    rig = Rig("spring_bias", SHORT)
    one = Assumed("spring_bias", "devices.daq.channels.force.newtons_per_V", "0.2")
    effect = rig.effect(one)
    assert effect.peak == pytest.approx(0.01)
    share = np.sqrt(np.mean(rig.y**2)) / np.abs(rig.y).max()
    assert effect.rms == pytest.approx(0.01 * share)


def test_more_voltage_heats_sooner_and_a_limit_changes_nothing():
    rig = Rig("wires4", Values(heat_s=2.5, cool_s=0.2))
    supply = Assumed("wires4", "model.arrays.muscle.activation.supply_V", "8.0")
    limit = Assumed("wires4", "guard.cell_on_max_s", "20.0")
    [more] = rig.responses([((supply.path, 8.16),)])
    assert more[-150] > rig.y[-150] > 0.0
    assert rig.effect(supply).rms > 0.01
    assert (rig.effect(limit).rms, rig.effect(limit).peak) == (0.0, 0.0)


def test_the_study_writes_its_page_and_refuses_a_rig_without_wires(tmp_path):
    sets = ["rigs=['spring_bias']", "heat_s=0.4", "cool_s=0.1"]
    run_study("truth", sets, tmp_path)
    results = json.loads((tmp_path / "results.json").read_text())
    assert "`model.points.load.mass_kg`" in (tmp_path / "truth.md").read_text()
    [table] = results["tables"]
    assert sorted_errors([row[3] for row in table["rows"]])[0] > 0.0
    with pytest.raises(ConfigError, match="'slider' is no rig with wires"):
        run_study("truth", ["rigs=['slider']"], tmp_path)
