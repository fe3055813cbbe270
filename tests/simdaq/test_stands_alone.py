"""simdaq is a package of its own: it works where there is no hil."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import simdaq
from simdaq.command import main

WITHOUT_HIL = """
import sys
class Blocks:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("hil", "hil_gui"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocks())
"""
PROGRAM = """
import sys
import nidaqmx
with nidaqmx.Task() as task:
    task.ai_channels.add_ai_voltage_chan("Dev1/ai0")
    task.timing.cfg_samp_clk_timing(1000.0, samps_per_chan=500)
    print(len(task.read(500)), "hil" in sys.modules, *sys.argv[1:])
"""


@pytest.fixture
def alone(tmp_path):
    """Runs `python WORDS` in a folder that holds simdaq, where hil cannot be imported."""
    folder = tmp_path / "alone"
    shutil.copytree(
        Path(simdaq.__file__).parent, folder / "simdaq",
        ignore=shutil.ignore_patterns("__pycache__"),
    )  # fmt: skip
    (folder / "sitecustomize.py").write_text(WITHOUT_HIL)
    (folder / "program.py").write_text(PROGRAM)
    # The library is built anew, so that nothing built with hil's help is used.
    places = {"PYTHONPATH": str(folder), "XDG_CACHE_HOME": str(tmp_path / "cache")}

    def run(*words):
        return subprocess.run(
            [sys.executable, *words], cwd=folder, env=os.environ | places,
            capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip

    return run


def test_a_program_reads_simulated_cards_where_there_is_no_hil(alone):
    assert "No module named 'hil'" in alone("-c", "import hil").stderr
    done = alone("-m", "simdaq", "--fast", "--run", "program.py", "--of", "its own")
    assert (done.stdout, done.stderr) == ("500 False --of its own\n", "")


@pytest.mark.slow
def test_a_plant_is_coupled_by_the_readmes_program_where_there_is_no_hil(alone):
    page = (Path(simdaq.__file__).parent / "README.md").read_text()
    program = page.split("```python\n# plant.py\n")[1].split("```")[0]
    done = alone("-c", program)
    assert (done.stdout, done.stderr) == ("1.2 V\nline 0: 1.0\n", "")


def test_the_command_lists_its_bench(capsys):
    assert main([]) == 0
    assert "cDAQ1Mod1    NI 9205" in capsys.readouterr().out
    assert main(["--json", "--card", "USB-6001=Dev7"]) == 0
    assert '"model": "USB-6001"' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--card", "PCIe-9999=Dev1"], "card 'PCIe-9999' is not known"),
        (["--run", "nosuch.py"], "nosuch.py: no such file"),
        (["--run"], "name a program: python -m simdaq --run"),
    ],
)
def test_bad_input_of_the_command_is_one_line(words, line, capsys):
    assert main(words) == 2
    said = capsys.readouterr().err
    assert line in said
    assert said.count("\n") == 1


def test_without_nidaqmx_the_command_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr("simdaq.command.find_spec", lambda name: None)
    assert main([]) == 2
    assert capsys.readouterr().err == (
        "simulated cards need nidaqmx: an extra: pip install 'hil-arrays[daq]'\n"
    )


@pytest.mark.parametrize("words", [["--port", "many"], ["--nonsense"]])
def test_a_word_that_the_command_does_not_take_is_one_line(words, capsys):
    assert main(words) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert words[0] in line


def test_a_reader_that_has_enough_ends_the_listing_without_a_traceback():
    done = subprocess.run(
        [f"{sys.executable} -m simdaq | true"], shell=True, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.stderr == ""
