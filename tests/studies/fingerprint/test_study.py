"""The study writes what it says, and every figure agrees with the specification."""

import json

import pytest

from hil.__main__ import main


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    out = tmp_path_factory.mktemp("study")
    assert main(["study", "fingerprint", "--out", str(out), "--set", "group_on_s=1.0"]) == 0
    return out


@pytest.mark.slow
def test_every_figure_agrees_to_the_digits_given(study):
    results = json.loads((study / "results.json").read_text())
    assert len(results["checks"]) == 24
    assert [c["what"] for c in results["checks"] if not c["agrees"]] == []


@pytest.mark.slow
def test_the_page_shows_every_figure_with_its_caption(study):
    results = json.loads((study / "results.json").read_text())
    page = (study / "index.html").read_text()
    assert [f["file"] for f in results["figures"]] == ["fig9.png", "fig10.png", "fig11.png"]
    for figure in results["figures"]:
        assert (study / figure["file"]).read_bytes().startswith(b"\x89PNG")
        assert figure["file"] in page
        assert "leaves out" in figure["caption"]


@pytest.mark.slow
def test_effort_counts_what_is_written_by_hand(study):
    effort = {e["array"]: e for e in json.loads((study / "results.json").read_text())["effort"]}
    # Two states an interior mass and one a cell.
    assert effort["miga6"]["equations_by_hand"] == 2 * 3 + 6
    assert effort["array14"]["equations_by_hand"] == 2 * 6 + 14
    assert effort["silicone4"]["equations_by_hand"] == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fingerprints"], "study 'fingerprints': unknown"),
        (["fingerprint", "--set", "speed=1"], "--set speed=1: this study has group_on_s, seed"),
        (
            ["fingerprint", "--set", "seed=x"],
            "study fingerprint: seed = 'x': must be an integer",
        ),
        (
            ["fingerprint", "--set", "seed=-1"],
            "study fingerprint: seed = -1: must be greater than or equal to 0",
        ),
    ],
)
def test_a_study_that_cannot_be_run_says_why_in_one_line(arguments, message, tmp_path, capsys):
    assert main(["study", *arguments, "--out", str(tmp_path / "out")]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(message)
