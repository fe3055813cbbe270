"""The runner of NI's tests tells by its exit code, in words and in the background what failed."""

import json
import signal
import subprocess
import sys

import pytest

from simdaq.conformance import __main__ as conformance
from simdaq.conformance import examples

TESTS = """
import pytest
def test_good(): pass
def test_bad(): assert False
@pytest.mark.xfail(reason="NI's own")
def test_known(): raise ValueError("<object>")
@pytest.mark.skip(reason="no hardware")
def test_left_out(): pass
"""
EXAMPLE = """
print("until Ctrl-C", flush=True)
try:
    while True:
        pass
except KeyboardInterrupt:
    print("done")
"""


@pytest.fixture
def checkout(tmp_path):
    for place in ("examples", "tests/max_config", "tests/unit"):
        (tmp_path / place).mkdir(parents=True)
    (tmp_path / "tests" / "conftest.py").touch()
    (tmp_path / "tests" / "unit" / "test_some.py").write_text(TESTS)
    return tmp_path


def run(monkeypatch, capsys, *words):
    monkeypatch.setattr("simdaq.conformance.benches.for_tests", lambda checkout: None)
    monkeypatch.setattr("simdaq.conformance.benches.variables", lambda bench: {})
    monkeypatch.setattr(sys, "argv", ["conformance", *map(str, words), "--part", "library"])
    code = conformance.main()
    return code, *capsys.readouterr()


def test_a_failure_is_the_exit_code_and_one_that_was_known_is_not(checkout, monkeypatch, capsys):
    monkeypatch.setattr(conformance, "find_spec", lambda name: name)  # what NI's tests need
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    known = checkout / "known.json"
    code, out, _ = run(monkeypatch, capsys, checkout, "--json", known)
    assert code == 1
    assert "1 passed / 1 failed / 0 error / 1 skipped / 1 xfailed" in out
    assert "fails: library: tests/unit/test_some.py::test_bad" in out
    reasons = {
        r["test"].rpartition("::")[2]: r["reason"] for r in json.loads(known.read_text())["library"]
    }
    assert reasons["test_known"] == "NI's own"
    assert reasons["test_left_out"] == "no hardware"
    assert run(monkeypatch, capsys, checkout, "--known", known)[0] == 0


def test_what_is_missing_is_one_line(checkout, monkeypatch, capsys):
    monkeypatch.setattr(conformance, "find_spec", lambda name: None if name == "pytest" else name)
    code, _, said = run(monkeypatch, capsys, checkout)
    assert (code, said) == (2, "NI's tests need more packages: pip install pytest\n")
    code, _, said = run(monkeypatch, capsys, checkout / "none")
    assert code == 2
    assert said.count("\n") == 1


def test_an_example_that_waits_for_ctrl_c_gets_it_in_the_background_too(checkout, monkeypatch):
    (checkout / "examples" / "forever.py").write_text(EXAMPLE)
    monkeypatch.setattr(examples, "PATIENCE_S", 0.1)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell does for a job with &
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # as main() does
        (ran,) = examples.run(checkout, {}, 1)
    finally:
        signal.signal(signal.SIGINT, before)
    assert ran.reason == ""


def test_the_module_runs_without_pytest_as_far_as_its_one_line(tmp_path):
    words = "import sys; sys.modules['pytest'] = None; sys.argv = ['c', 'none']; "
    words += "import runpy; runpy.run_module('simdaq.conformance', run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
