"""Every script in examples/ runs as it stands."""

import runpy

import pytest


@pytest.mark.parametrize("name", ["first_look.py"])
def test_an_example_runs_as_it_stands(name, pytestconfig, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(pytestconfig.rootpath / "examples" / name), run_name="__main__")
    said = capsys.readouterr().out
    assert "complete, 5000 rows, SIMULATED: board, daq" in said
    assert "it rings at 27.916, 40.767, 52.560 Hz" in said


def test_every_example_is_run(pytestconfig):
    assert [path.name for path in (pytestconfig.rootpath / "examples").glob("*.py")] == [
        "first_look.py"
    ]
