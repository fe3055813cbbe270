"""`hil study wires` predicts anybody's loops, and refuses what it cannot fit in one line."""

import json

import numpy as np
import pytest

from hil.__main__ import main
from hil.identification.wire_loops.loops import shipped


def as_csv(path, loop):
    rows = np.column_stack([loop.T_C, loop.strain, np.full(len(loop.T_C), loop.stress_Pa / 1e6)])
    header = "temperature_C,strain,stress_MPa"
    np.savetxt(path, rows, delimiter=",", header=header, comments="")
    return str(path)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("loops")
    return {
        round(loop.stress_Pa / 1e6): as_csv(folder / f"{loop.stress_Pa / 1e6:.0f}.csv", loop)
        for loop in shipped("NiTiHf")
    }


@pytest.mark.slow
def test_loops_of_ones_own_are_fitted_and_predicted(files, tmp_path, capsys):
    sets = [f"fit={json.dumps([files[50], files[300]])}", f"predict={json.dumps([files[200]])}"]
    command = ["study", "wires", "--out", str(tmp_path), "--set", sets[0], "--set", sets[1]]
    assert main(command) == 0
    results = json.loads((tmp_path / "results.json").read_text())
    [found] = results["predict"]
    assert found["file"] == files[200]
    assert found["rms_of_stroke"] <= 0.03
    assert found["rms_of_stroke"] <= found["worst_of_stroke"] <= 0.2
    assert found["band_holds"] >= 0.9
    assert results["laws"]["without stress"][0] > 0.1
    printed = capsys.readouterr().out
    assert "Boyd-Lagoudas" in printed
    assert "Not identified by these loops" in printed
    assert (tmp_path / results["figures"][0]["file"]).read_bytes().startswith(b"\x89PNG")


def refused(files, tmp_path, capsys, *sets):
    arguments = [part for text in sets for part in ("--set", text)]
    assert main(["study", "wires", "--out", str(tmp_path / "out"), *arguments]) == 2
    [line] = capsys.readouterr().err.strip().splitlines()
    return line


def test_files_that_cannot_be_fitted_are_refused_in_one_line(files, tmp_path, capsys):
    line = refused(files, tmp_path, capsys, f'fit=["{files[50]}"]')
    assert line == (
        "study wires: fit: loops of two stresses at least are needed, or nothing says how a "
        "stress moves them: give files of more stresses"
    )
    line = refused(files, tmp_path, capsys, f'predict=["{files[50]}"]')
    assert line == "study wires: predict: files to predict, but none to fit: give fit=[...]"
    line = refused(files, tmp_path, capsys, 'fit=["none.csv"]')
    assert line.startswith("study wires: none.csv: cannot be read")
    both = json.dumps([files[50], files[400]])
    line = refused(files, tmp_path, capsys, f"fit={both}", "strength_MPa=300.0")
    assert "stress reaches 400 MPa: wires are pulled with 0 to 300 MPa" in line


@pytest.mark.slow
def test_shipped_loops_between_others_are_predicted(tmp_path):
    assert main(["study", "wires", "--out", str(tmp_path)]) == 0
    results = json.loads((tmp_path / "results.json").read_text())
    inside = results["NiTiHf"]["left_out"][1:-1]
    assert all(one["rms_of_stroke"] <= 0.03 and one["band_holds"] >= 0.9 for one in inside)
