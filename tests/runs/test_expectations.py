"""`[[expect]]`: an experiment says what its run must reach, and the run says whether it did."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest

import hil
from hil.__main__ import main
from hil.errors import ConfigError

SHORT = ("experiment.duration_s=0.3",)
BAD = [
    ("{measure='force_vaf'}", "a figure needs a bound: give above or below"),
    ("{outcome='tripped', below=1.0}", "an outcome has no bounds: remove them"),
    ("{measure='force_vaf', column='t_s', take='max', below=1.0}", "give one of outcome, measure"),
    ("{below=1.0}", "give one of outcome, measure"),
    ("{column='t_s', below=1.0}", "column and take belong together: give both"),
    ("{column='t_s', take='max', from_s=2.0, to_s=1.0, below=1.0}", "is not after from_s = 2"),
    ("{outcome='complete', first_fault='force_high'}", "belongs to outcome = 'tripped'"),
    ("{outcome='tripped', first_fault='force_hgh'}", "did you mean 'force_high'?"),
    ("{measure='force_vaf', above=1.0, below=1.0}", "above = 1 is not below 1"),
    ("{measure='force_vaf', above=nan}", "finite number"),
    ("{measure='force_vav', above=0.9}", "no such figure: did you mean 'force_vaf'?"),
    ("{column='force_N', take='max', below=1.0}", "the rig has no column of that name: choose t_s"),
    ("{column='t_s', take='max', from_s=9.0, below=1.0}", "looks beyond the experiment's 0.3 s"),
]


@pytest.fixture
def experiment(configs):
    return configs / "miga6/all_on.toml"


def expecting(*tables):
    return (*SHORT, f"expect=[{', '.join(tables)}]")


@pytest.mark.parametrize(("table", "said"), BAD)
def test_what_no_run_can_answer_is_refused_in_one_line(experiment, capsys, table, said):
    sets = [word for one in expecting(table) for word in ("--set", one)]
    assert main(["check", str(experiment), *sets]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert said in line
    assert "expect.0" in line


def test_a_program_that_loads_it_is_told_the_same(experiment):
    with pytest.raises(
        ConfigError, match=r"expect\.0\.measure = 'tracking': a run of this rig has"
    ):
        hil.load(experiment, expecting("{measure='tracking', below=1.0}"))


def test_nothing_is_recorded_of_a_run_that_cannot_answer(experiment, tmp_path):
    sets = [word for one in expecting(BAD[-2][0]) for word in ("--set", one)]
    assert main(["run", str(experiment), *sets, "--out", str(tmp_path / "run.h5")]) == 2
    assert list(tmp_path.iterdir()) == []


def test_each_statistic_is_that_of_the_recorded_column_between_its_times(experiment, tmp_path):
    between = {"max": np.max, "min": np.min, "mean": np.mean, "std": np.std,
               "last": lambda y: y[-1], "rms": lambda y: np.sqrt(np.mean(y**2))}  # fmt: skip
    tables = [f"{{column='force_measured_N', take='{take}', from_s=0.1, to_s=0.2, above=-99.0}}"
              for take in between]  # fmt: skip
    run = hil.open_run(hil.run(hil.load(experiment, expecting(*tables)), out=tmp_path / "r.h5"))
    force_N = run.force_measured_N.values[(run.t_s >= 0.1) & (run.t_s <= 0.2)]
    rows = json.loads(run.attrs["summary"])["expectations"]
    for row, statistic in zip(rows, between.values(), strict=True):
        assert row["value"] == pytest.approx(statistic(force_N[np.isfinite(force_N)]), rel=1e-12)
        assert row["passed"]


BOUNDS = {"above=0.0": True, "below=0.0": False, "above=0.0, below=9.0": True,
          "above=8.0, below=9.0": False}  # fmt: skip


@pytest.mark.parametrize(("met", "code"), [([True, False], 5), ([True], 0)])
def test_a_figure_passes_within_its_bounds_alone_also_in_memory(
    experiment, tmp_path, capsys, met, code
):
    bounds = [one for one, passed in BOUNDS.items() if passed in met]
    sets = expecting(*(f"{{measure='force_residual_rms_N', {one}}}" for one in bounds))
    words = [word for one in sets for word in ("--set", one)]
    out = tmp_path / "run.h5"
    assert main(["run", str(experiment), *words, "--out", str(out)]) == code
    said = capsys.readouterr().out
    assert said.count("passed: ") == 2
    assert said.count("FAILED: ") == (2 if False in met else 0)
    in_memory = json.loads(hil.simulate(experiment, sets=sets).attrs["summary"])["expectations"]
    assert in_memory == json.loads(hil.open_run(out).attrs["summary"])["expectations"]
    assert [row["passed"] for row in in_memory] == [BOUNDS[one] for one in bounds]


def test_a_figure_on_its_bound_is_neither_above_nor_below_it(experiment):
    """A run on the virtual clock has missed no period."""
    sets = expecting(*(f"{{measure='missed_periods', {word}=0.0}}" for word in ("above", "below")))
    rows = json.loads(hil.simulate(experiment, sets=sets).attrs["summary"])["expectations"]
    assert [(row["value"], row["passed"]) for row in rows] == [(0, False), (0, False)]


def test_a_figure_that_the_run_does_not_have_is_not_met(experiment):
    """Nothing is followed, so there is no error of following."""
    sets = expecting("{measure='force_tracking_rms_N', below=99.0}")
    [row] = json.loads(hil.simulate(experiment, sets=sets).attrs["summary"])["expectations"]
    assert (row["value"], row["passed"]) == (None, False)


@pytest.mark.parametrize(
    ("fault", "expected", "code"),
    [("", "", 3), ("force_residual_high", "", 0), ("force_high", "", 5), ("", "tripped", 0),
     ("", "complete", 5)],
)  # fmt: skip
def test_a_trip_passes_only_where_it_is_expected(experiment, tmp_path, fault, expected, code):
    words = ["run", str(experiment), "--out", str(tmp_path / "run.h5")]
    words += ["--set", "plant.arrays.muscle.dead_cells=[2]"]
    words += ["--set", "guard.force_residual_max_N=0.1"]
    if fault:
        words += ["--set", f"expect=[{{outcome='tripped', first_fault='{fault}'}}]"]
    elif expected:
        words += ["--set", f"expect=[{{outcome='{expected}'}}]"]
    assert main(words) == code


def test_a_run_that_should_trip_and_does_not_fails(experiment, tmp_path):
    words = ["--set", "expect=[{outcome='tripped'}]", "--duration", "0.1"]
    assert main(["run", str(experiment), *words, "--out", str(tmp_path / "run.h5")]) == 5


def test_junit_has_a_case_for_each_expectation_and_one_for_the_outcome(experiment, tmp_path):
    file = tmp_path / "ci.xml"
    expect = "expect=[{measure='missed_periods', below=1.0}, {measure='force_vaf', above=2.0}]"
    words = ["run", str(experiment), "--duration", "0.3", "--out", str(tmp_path / "run.h5"),
             "--set", "experiment.name='a < b'", "--junit", str(file), "--set", expect]  # fmt: skip
    assert main(words) == 5
    suites = ElementTree.parse(file).getroot()
    [suite] = suites
    assert suite.attrib | {"time": ""} == {
        "name": "a < b", "tests": "3", "failures": "1", "errors": "0", "time": ""
    }  # fmt: skip
    assert [case.get("name") for case in suite] == [
        "outcome, complete", "missed_periods, below 1", "force_vaf, above 2"
    ]  # fmt: skip
    assert [len(case) for case in suite] == [0, 0, 1]
    assert "force_vaf: " in suite[2][0].get("message")


@pytest.mark.parametrize("name", ["", "none/ci.xml", "run.h5", "mine.toml"])
def test_junit_that_cannot_be_written_is_refused_before_the_run(experiment, tmp_path, capsys, name):
    out = tmp_path / "run.h5"
    assert main(["run", str(experiment), "--out", str(out), "--junit", str(tmp_path / name)]) == 2
    assert "--junit" in capsys.readouterr().err
    assert not out.exists()


def test_a_run_without_a_result_leaves_no_junit_of_an_older_one(experiment, tmp_path, capsys):
    file, link = tmp_path / "ci.xml", tmp_path / "link.xml"
    file.write_text("<testsuites/>")
    link.symlink_to(file)
    assert main(["run", str(experiment), "--junit", str(link), "--set", "loop.perod_s=1"]) == 2
    assert "loop.perod_s" in capsys.readouterr().err
    assert not file.exists()
    assert link.is_symlink()


def test_a_campaign_counts_what_was_missed(experiment, tmp_path):
    """In its table, and by its exit code."""
    mine = tmp_path / "mine.toml"
    mine.write_text(
        experiment.read_text()
        .replace('"rig.toml"', f"'{experiment.parent / 'rig.toml'}'")
        .replace("duration_s = ", "duration_s = 0.1 # ")
        + '[[expect]]\nmeasure = "force_vaf"\nabove = 2.0\n[[expect]]\noutcome = "complete"\n'
    )
    file = tmp_path / "c.toml"
    file.write_text('[campaign]\nname = "c"\nexperiments = ["mine.toml"]\nrepeats = 2\n')
    assert main(["campaign", str(file), "--out", str(tmp_path / "c")]) == 5
    assert hil.campaign(file, tmp_path / "c").failed_expectations.values.tolist() == [1, 1]


def test_no_bound_is_met_by_a_measure_of_another_rig(experiment):
    with pytest.raises(ConfigError, match="no such figure"):
        hil.simulate(experiment, sets=expecting("{measure='bend_vaf', above=0.5}"))
