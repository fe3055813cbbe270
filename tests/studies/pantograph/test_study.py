"""`hil study pantograph` gives the paper's table, says what it cannot, and refuses in words."""

import json

import pytest

from hil.__main__ import main


def study(out, *sets):
    arguments = [part for text in sets for part in ("--set", text)]
    assert main(["study", "pantograph", "--out", str(out), *arguments]) == 0
    return json.loads((out / "results.json").read_text())


@pytest.fixture(scope="module")
def symmetric(tmp_path_factory):
    out = tmp_path_factory.mktemp("study")
    return out, study(out)


def test_table_iii_agrees_and_table_iv_is_said_not_to_be(symmetric):
    out, results = symmetric
    assert len(results["checks"]) == 16
    assert [c["what"] for c in results["checks"] if not c["agrees"]] == []
    said = [note for note in results["notes"] if note.startswith("Not reproduced")]
    assert "tangential impulses" in said[0]
    assert "normal impulses" in said[1]
    page = (out / "index.html").read_text()
    for figure in results["figures"]:
        assert (out / figure["file"]).read_bytes().startswith(b"\x89PNG")
        assert figure["file"] in page
    assert "Not reproduced: Table IV" in page


def test_rows_have_the_published_names_and_fit_together(symmetric):
    _, results = symmetric
    names = {"gamma_deg", "speed_m_per_s", "T_c_J", "T_a_J", "xi", "impulse_N_s",
             "tip_velocity_after_m_per_s"}  # fmt: skip
    A, M = results["constraint_row"], results["mass_matrix"]
    assert len(A) == 2
    assert M[0][1] == M[1][0]
    for row in results["rows"]:
        assert names <= row.keys()
        assert row["T_c_J"] + row["T_a_J"] == pytest.approx(0.01, rel=1e-12)
        assert row["tip_velocity_after_m_per_s"][1] == pytest.approx(0.0, abs=1e-12)
        low, high = row["bands"]["speed_m_per_s"]
        assert low < row["speed_m_per_s"] < high


def test_a_pose_angles_and_energy_are_taken_from_the_command_line(tmp_path):
    results = study(tmp_path, "pose_m=[0.19981, 0.22538]", "gamma_deg=[-7.582, 20]",
                    "energy_J=0.02")  # fmt: skip
    assert results["gamma_of_xi_1_deg"] == pytest.approx(-7.582, abs=5e-4)
    assert [row["gamma_deg"] for row in results["rows"]] == [-7.582, 20.0]
    assert results["rows"][0]["T_c_J"] == pytest.approx(0.02, rel=1e-9)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pose_m=[0.5, 0.2]", "unreachable"),
        ("pose_m=[0.1, 0.0]", "both assembly modes are possible"),
        ("pose_m=[0.1]", "pose_m"),
        ("gamma_deg=90", "no impact"),
        ("gamma_deg=[0, -135]", "separating"),
        ("gamma_deg=nan", "finite"),
        ("energy_J=0", "greater than 0"),
    ],
)
def test_what_cannot_be_is_one_line_and_nothing_is_written(text, message, tmp_path, capsys):
    assert main(["study", "pantograph", "--set", text, "--out", str(tmp_path / "out")]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert message in line
    assert not list(tmp_path.rglob("results.json"))
