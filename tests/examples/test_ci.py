"""The files of examples/ci are what GitHub and GitLab read, and their commands judge the run."""

import shlex
from pathlib import Path
from xml.etree import ElementTree

import yaml

from hil.__main__ import main

HERE = Path(__file__).resolve().parents[2] / "examples/ci"


def github(file):
    [job] = file["jobs"].values()
    assert file[True] == ["push"]  # YAML 1.1 reads the key "on" as a boolean, as GitHub knows
    assert job["runs-on"].startswith("ubuntu")
    return [step["run"] for step in job["steps"] if "run" in step]


def gitlab(file):
    [job] = file.values()
    assert job["artifacts"]["reports"] == {"junit": "ci.xml"}
    return [*job["before_script"], *job["script"], *job["after_script"]]


def commands(read):
    lines = read(yaml.safe_load((HERE / f"{read.__name__}.yml").read_text()))
    assert lines.pop(0) == 'pip install "hil-arrays[daq] @ $HIL"'
    return lines


def test_both_services_run_the_same_commands():
    assert commands(github) == commands(gitlab)


def test_the_commands_run_and_leave_a_recording_a_page_and_a_junit_file(
    configs, tmp_path, monkeypatch
):
    text = (HERE / "ci.toml").read_text()
    (tmp_path / "ci.toml").write_text(text.replace("../../configs", configs.as_posix()))
    monkeypatch.chdir(tmp_path)
    for line in commands(github):
        program, *words = shlex.split(line)
        assert program == "hil"
        assert main(words) == 0
    made = sorted(path.name for path in tmp_path.iterdir())
    assert made == ["ci.h5", "ci.html", "ci.png", "ci.toml", "ci.xml"]
    assert ElementTree.parse("ci.xml").getroot().get("failures") == "0"


def test_its_experiment_is_the_one_of_the_page():
    page = (HERE.parents[1] / "docs/how-to/continuous-integration.md").read_text()
    [shown] = [part.split("```")[0] for part in page.split("```toml\n")[1:]]
    ours = (HERE / "ci.toml").read_text().replace("../../configs", "configs")
    assert shown.splitlines()[1:] == ours.splitlines()[1:]
