"""The study writes what it says, and every figure agrees with the specification."""

import json

import numpy as np
import pytest
import scipy.integrate

import hil
from hil.__main__ import main
from hil.experiment.load import load
from hil.systems.array.model.cell_array import CellArray
from hil.systems.array.topology.figures import MIGA
from hil_studies.fingerprint.noise import REPORTED_MN, fluctuation, step_responses_N


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    out = tmp_path_factory.mktemp("study")
    assert main(["study", "fingerprint", "--out", str(out), "--set", "group_on_s=1.0"]) == 0
    return out


@pytest.mark.slow
def test_every_figure_agrees_to_the_digits_given(study):
    results = json.loads((study / "results.json").read_text())
    assert len(results["checks"]) == 40
    assert [c["what"] for c in results["checks"] if c["verdict"] == "NOT reproduced"] == [
        "Fig. 9: fluctuation grows with group 2, by",
        "Six cells: share of arrays with p > 0",
        "Six cells: share that grows at every level",
    ]


@pytest.mark.slow
def test_the_page_shows_every_figure_with_its_caption(study):
    results = json.loads((study / "results.json").read_text())
    page = (study / "index.html").read_text()
    files = ["fig9.png", "fig10.png", "fig11.png", "noise.png", "effort.png"]
    assert [f["file"] for f in results["figures"]] == files
    for figure in results["figures"]:
        assert (study / figure["file"]).read_bytes().startswith(b"\x89PNG")
        assert figure["file"] in page
        assert "leaves out" in figure["caption"] or figure["file"] == "effort.png"


@pytest.mark.slow
def test_effort_counts_what_is_written_by_hand(study):
    effort = {e["array"]: e for e in json.loads((study / "results.json").read_text())["effort"]}
    # Two states an interior mass and one a cell.
    assert effort["miga6"]["equations_by_hand"] == 2 * 3 + 6
    assert effort["array14"]["equations_by_hand"] == 2 * 6 + 14
    assert effort["silicone4"]["equations_by_hand"] == 4
    # the rows of A and B, as SymPy's derivation from Newton's law has them
    assert all(row["symbolic_difference"] < 1e-12 for row in effort.values())
    assert all(row["symbolic_s"] > 0.0 for row in effort.values())


def two_cells(t_s, x, F):
    """One mass between two Miga cells, by Newton's law; x, v, and both actuators' lengths."""
    k_pe, k_se, k_ae, b, m = 20.0, 386.52, 1000.0, 500.0, 0.01583
    e = np.array([x[0], -x[0]])
    tension = k_pe * e + k_se * (e - x[2:])
    rates = (k_se * (e - x[2:]) - k_ae * x[2:] - F) / b
    return [x[1], (tension[1] - tension[0]) / m, *rates]


def test_step_responses_are_those_of_newtons_law():
    chain = CellArray.from_fingerprint(
        "-:1 | &1:1 | &1:-1", cell=MIGA, mass_kg=0.01583, name="muscle"
    )
    found = step_responses_N(chain, 0.5)
    t = np.arange(500) * 1e-3
    for cell, F in enumerate(np.eye(2)):
        x = scipy.integrate.solve_ivp(two_cells, (0.0, 0.5), np.zeros(4), args=(F,), t_eval=t,
                                      method="DOP853", rtol=1e-11, atol=1e-13).y  # fmt: skip
        right = 20.0 * -x[0] + 386.52 * (-x[0] - x[3])
        np.testing.assert_allclose(found[:, cell], right, atol=1e-8)


def test_an_undamped_oscillation_fluctuates_with_its_amplitude_over_root_two():
    """A sum of a level, a trend and a sine, through the definition itself."""
    t = np.linspace(-1.0, 1.0, 1000)
    sine = 3e-3 * np.sin(2.0 * np.pi * 40.0 * t)
    assert fluctuation(1.0 + 0.2 * t**3 + sine) == pytest.approx(3e-3 / np.sqrt(2.0), rel=1e-2)


@pytest.mark.slow
def test_the_groups_fluctuate_as_in_a_recording_of_their_run(configs, tmp_path):
    """The twin in the loop, a trend of third degree: 1.3, 1.1, 2.8, 5.8, 10.0 mN."""
    path = hil.run(load(configs / "array14/groups.toml"), out=tmp_path / "groups.h5")
    force_N = hil.open_run(path).force_model_N.values[:10_000].reshape(5, 2000)[:, 1000:]
    t = np.linspace(-1.0, 1.0, 1000)
    left = [row - np.polyval(np.polyfit(t, row, 3), t) for row in force_N]
    assert [f"{1e3 * row.std():.1f}" for row in left] == list(REPORTED_MN)


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
