"""`hil study benchmark`: its page is what it computes, and laws of packages enter."""

import json
from pathlib import Path

import numpy as np
import pytest

from hil.__main__ import main
from hil.errors import ModelError
from hil.identification.wire_loops.loops import hot_end, shipped
from hil.plugins.descriptors import points
from hil_studies.benchmark import study
from hil_studies.benchmark.laws import BUILT_IN, Entry

PAGE = Path(__file__).parents[3] / "docs" / "benchmark.md"
RMS_TOLERANCE = 0.002  # of the stroke: where least squares stop depends on rounding
LAW = """
class Mine:
    n_parameters = 1

    def fit(self, runs):
        self.stroke = max(loop.stroke for loop in runs)

    def simulate(self, inputs):
        return self.stroke * (inputs.T_C < 100.0)
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Install a package whose module has this text, with one law `mine`."""

    def install(text, name="mine"):
        info = tmp_path / "site" / "their_laws-1.0.dist-info"
        info.mkdir(parents=True)
        info.joinpath("METADATA").write_text(
            "Metadata-Version: 2.1\nName: their-laws\nVersion: 1\n"
        )
        info.joinpath("entry_points.txt").write_text(f"[hil.laws]\n{name} = their_laws:Mine\n")
        (tmp_path / "site" / "their_laws.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path / "site")
        monkeypatch.delitem(__import__("sys").modules, "their_laws", raising=False)
        points.cache_clear()

    yield install
    monkeypatch.undo()
    points.cache_clear()


def benchmark(tmp_path, **sets):
    arguments = [
        part for key, names in sets.items() for part in ("--set", f"{key}={json.dumps(names)}")
    ]
    return main(["study", "benchmark", "--out", str(tmp_path / "out"), *arguments])


def refused(tmp_path, capsys, **sets):
    assert benchmark(tmp_path, **sets) == 2
    [line] = capsys.readouterr().err.strip().splitlines()
    return line


def test_the_law_of_a_package_is_judged_as_it_should_be(package, tmp_path, capsys):
    package(LAW)
    assert benchmark(tmp_path, laws=["mine"], splits=["NiTiHf, between"]) == 0
    assert "mine" in capsys.readouterr().out
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    [score] = results["splits"]["NiTiHf, between"]
    loops = {loop.name: loop for loop in shipped("NiTiHf")}
    stroke = max(loops["NiTiHf 50 MPa"].stroke, loops["NiTiHf 400 MPa"].stroke)
    for rms, stress in zip(score["rms_of_stroke"], (100, 200, 300), strict=True):
        loop = loops[f"NiTiHf {stress} MPa"]
        error = stroke * (loop.T_C < 100.0) - loop.strain
        assert loop.T_C[hot_end(loop.T_C)].min() > 100.0
        assert rms == pytest.approx(np.sqrt(np.mean(error**2)) / np.ptp(loop.strain))
    assert score["n_parameters"] == 1
    assert score["in_band"] is None


def test_a_law_sees_no_strain_of_what_it_predicts(package, tmp_path):
    package(
        LAW.replace("return", "assert not (inputs.strain == inputs.strain).any()\n        return")
    )
    assert benchmark(tmp_path, laws=["mine"], splits=["NiTiCo, between"]) == 0


def test_a_law_cannot_change_the_loops_of_another(package, tmp_path):
    spoils = "for loop in runs:\n            loop.strain[:] = 0.0\n            loop.T_C[:] = 0.0"
    package(
        LAW.replace(
            "self.stroke = max(loop.stroke for loop in runs)",
            f"self.stroke = 1.0\n        {spoils}",
        )
    )
    split = ["NiTiCo, between"]
    assert benchmark(tmp_path, laws=["mine", "Boyd-Lagoudas"], splits=split) == 0
    with_it = json.loads((tmp_path / "out" / "results.json").read_text())["splits"][split[0]][1]
    assert benchmark(tmp_path, laws=["Boyd-Lagoudas"], splits=split) == 0
    [alone] = json.loads((tmp_path / "out" / "results.json").read_text())["splits"][split[0]]
    assert with_it["rms_of_stroke"] == alone["rms_of_stroke"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("class Mine", "class Other", "mine = their_laws:Mine in hil.laws"),
        ("def simulate", "def predict", "law 'mine': has no simulate: add it"),
        ("n_parameters = 1", "n_parameters = 'few'", "law 'mine': n_parameters = 'few': give"),
        ("inputs.T_C <", "inputs.T_C[1:] <", "simulate() of NiTiCo 150 MPa has the shape"),
        ("(inputs.T_C <", "float('nan') * (inputs.T_C <", "values that are not finite"),
        ("inputs.T_C < 100.0", "'cold'", "law 'mine': simulate(): TypeError: "),
        ("max(", "1 / max(0 * ", "law 'mine': fit(): ZeroDivisionError"),
        ("    n_parameters = 1", "    def __init__(self, runs): ...", "the class: TypeError"),
    ],
)  # fmt: skip
def test_a_law_that_cannot_be_judged_is_one_line(package, tmp_path, capsys, old, new, said):
    assert old in LAW
    package(LAW.replace(old, new))
    assert said in refused(tmp_path, capsys, laws=["mine"], splits=["NiTiCo, between"])


def test_a_name_is_taken_only_once(package, tmp_path, capsys):
    package(LAW, name="Brinson")
    assert "the kind 'Brinson' is taken" in refused(tmp_path, capsys, laws=["Brinson"])


def test_unknown_laws_and_splits_are_one_line(tmp_path, capsys):
    assert "laws: 'Brison' is unknown" in refused(tmp_path, capsys, laws=["Brison"])
    assert "splits: 'NiTi' is unknown" in refused(tmp_path, capsys, splits=["NiTi"])


def test_no_loop_is_both_fitted_and_held_out():
    for split in study.SPLITS:
        assert not set(split.fitted_MPa) & set(split.held_out_MPa)


def test_a_built_in_law_says_why_it_cannot_be_fitted():
    with pytest.raises(ModelError, match="loops of two stresses at least"):
        Entry("this law", BUILT_IN["this law"]).fit(shipped("NiTiCo")[1:2])


@pytest.mark.slow
@pytest.mark.parametrize("split", study.SPLITS, ids=lambda split: split.name)
def test_the_page_has_what_the_study_computes(split, tmp_path):
    results = study.run(tmp_path, study.Values(splits=[split.name]))
    data, table, _ = results["tables"]
    text = PAGE.read_text(encoding="utf-8")
    for row in (data["columns"], *data["rows"], table["columns"]):
        assert "| " + " | ".join(row) + " |" in text
    section = text.split(f"### {table['title']}\n")[1].split("\n#")[0]
    printed = [line.strip("| ").split(" | ") for line in section.splitlines() if line[:1] == "|"][
        2:
    ]
    assert [row[:2] for row in printed] == [row[:2] for row in table["rows"]]
    n = len(split.held_out_MPa)
    for row, computed in zip(printed, table["rows"], strict=True):
        spread = max(float(row[2 + n]), float(computed[2 + n]))
        for value, expected in zip(row[2 : 2 + n], computed[2 : 2 + n], strict=True):
            assert abs(float(value) - float(expected)) <= RMS_TOLERANCE + 2.0 * spread
    ours, printed_ours = table["rows"][0], printed[0]
    assert float(ours[2 + n]) <= RMS_TOLERANCE
    assert printed_ours[-2:] == ours[-2:]
