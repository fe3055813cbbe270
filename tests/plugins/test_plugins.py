"""Plug-in controllers, references, models and devices: run, timed, refused, replayed."""

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import hil
from hil.__main__ import main
from hil.bench import plugin
from hil.devices.plugin import PluginBench, PluginDevice, PluginPlace
from hil.errors import DeviceError, PluginError
from hil.experiment.load import load
from hil.loop.channels import Channel, RigLayout
from hil.loop.frame import Column
from hil.plugins import code
from hil.record.read import plugins_of
from hil.runs import rehearsal, session
from hil.runs.contract_checks import checks_of
from hil.runs.plan import Plan
from hil.runs.recording import Output
from rows import row_of

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "own"
KINDS = ("controller", "reference", "model", "device")
HEAD = """import numpy as np
class C:
    def __init__(self, facts, values):
        self.n, self.k = facts.n_commands, 0
    def step(self, now):
        self.k += 1
"""
EXPERIMENT = """rig = "{rig}"
[experiment]
name = "my own"
duration_s = {duration_s}
[controller]
kind = "mine.py:C"
"""


@pytest.fixture
def mine(tmp_path, configs):
    """Write a plug-in file beside an experiment on the six-cell array; its path."""

    def write(source, extra="", duration_s=0.2, rig="miga6"):
        (tmp_path / "mine.py").write_text(source)
        path = tmp_path / "mine.toml"
        rig_path = (configs / rig / "rig.toml").as_posix()
        path.write_text(EXPERIMENT.format(rig=rig_path, duration_s=duration_s) + extra)
        return path

    return write


def _said(capsys):
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1, lines
    return lines[0]


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("kind", KINDS)
def test_the_example_of_each_kind_runs_and_replays(kind, tmp_path):
    config = hil.load(EXAMPLES / f"{kind}.toml", ["experiment.duration_s=1.0"])
    path = hil.run(config, out=tmp_path / "run.h5")
    assert hil.open_run(path).attrs["outcome"] == "complete"
    assert main(["replay", str(path)]) == 0


def test_the_pendulum_of_the_examples_swings_with_the_period_of_a_pendulum():
    config = load(EXAMPLES / "model.toml", ("model.friction_N_m_s=0.0",))
    system = config.system()
    # from rest a constant torque swings it about its new rest: sin q = tau / (m g l)
    m, length_m, g, tau_N_m = 0.2, 0.3, 9.81, 1e-3
    n = 4000
    angle = np.empty(n)
    for k in range(n):
        system.step(np.zeros(0), np.array([tau_N_m]))
        angle[k] = system.y[0]
    rest = np.arcsin(tau_N_m / (m * g * length_m))
    up = np.flatnonzero((angle[:-1] < rest) & (angle[1:] >= rest))
    period_s = np.diff(up).mean() * config.tables.loop.period_s
    # 2 pi sqrt(l/g) for small swings (here 1.7 mrad); seven periods, a tick of 2 ms at each end
    assert period_s == pytest.approx(2 * np.pi * np.sqrt(length_m / g), abs=2 * 0.002 / 6)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("        raise ValueError('no')", "line 7, class C, in step(): ValueError: no"),
        ("        return np.full(self.n, np.nan)", "line 5, class C: step() gives nan as number 1"),
        ("        return np.ones(3)", "step() gives shape (3,): give an array of shape (6,)"),
        ("        pass", "step() gives None: give an array of shape (6,)"),
        ("        return ['on'] * 6", "step() gives ['on', 'on'"),
        (
            "        return 0.5 * np.ones(self.n)",
            "step() gives 0.5 for a cell: give 0 or 1, or set duties = True",
        ),
        (
            "        now.measured[0] = 0.0",
            "line 7, class C, in step(): ValueError: assignment dest",
        ),
        ("        now.t_s = 0.0", "line 7, class C, in step(): FrozenInstanceError"),
        ("        raise SystemExit(3)", "line 7, class C, in step(): SystemExit: 3"),
        ("        raise GeneratorExit", "line 7, class C, in step(): GeneratorExit"),
        ("        __import__('os')._exit(0)", "line 7, class C, in step(): ExitError: os._exit(0)"),
        ("        return now['force_N']", "no such column: force_N: choose force_model_N"),
    ],
)
def test_a_controller_that_fails_is_refused_with_its_line_before_anything_is_on(
    body, said, mine, tmp_path, capsys
):
    path = mine(HEAD + body + "\n")
    assert main(["run", str(path), "--out", str(tmp_path / "run.h5")]) == 2
    line = _said(capsys)
    assert str(tmp_path / "mine.py") in line
    assert said in line
    assert line.endswith("nothing was energised")
    assert not (tmp_path / "run.h5").exists()


DUTIES = HEAD.replace("class C:", "class C:\n    duties = True")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "        return 1.5 * np.ones(self.n)",
            "step() gives 1.5 for a cell: give 0, or a duty of",
        ),
        ("        return -0.5 * np.ones(self.n)", "step() gives -0.5 for a cell"),
        (
            "        return 0.03 * np.ones(self.n)",
            "gives 0.03 for a cell: give 0, or a duty of 0.0627",
        ),
        ("        return np.full(self.n, np.nan)", "step() gives nan as number 1"),
        ("        return np.full(self.n, np.inf)", "step() gives inf as number 1"),
        ("        return 0.5", "step() gives 0.5: give an array of shape (6,)"),
        ("        return 0.5 * np.ones(7)", "step() gives shape (7,): give an array of shape (6,)"),
        ("        return 0.5 * np.ones((6, 1))", "step() gives shape (6, 1)"),
        ("        return ['half'] * 6", "step() gives ['half', 'half'"),
        ("        return {'muscle.1': 0.5}", "step() gives {'muscle.1': 0.5}"),
        ("        return ['1'] * 6", "step() gives ['1', '1'"),
        ("        return np.full(self.n, 1j)", "give 6 numbers"),
        ("        return [10**400] * 6", "step() gives [1000000"),
        ("        return [10**5000] * 6", "step() gives a list: give 6 numbers"),
        (
            "        raise type('E', (Exception,), {'__str__': lambda e: 1 / 0})",
            "line 8, class C, in step(): E",
        ),
    ],
)
def test_a_duty_that_no_board_accepts_is_refused_before_anything_is_on(
    body, said, mine, tmp_path, capsys
):
    path = mine(DUTIES + body + "\n")
    assert main(["run", str(path), "--out", str(tmp_path / "run.h5")]) == 2
    line = _said(capsys)
    assert said in line
    assert line.endswith("nothing was energised")
    assert not (tmp_path / "run.h5").exists()


def test_a_controller_of_ones_own_may_return_duties(mine, tmp_path, capsys):
    path = mine(DUTIES + "        return np.linspace(0.1, 1.0, self.n)\n")
    out = tmp_path / "run.h5"
    assert main(["run", str(path), "--out", str(out)]) == 0
    run = hil.open_run(out)
    steps = np.rint(255 * np.linspace(0.1, 1.0, 6))
    np.testing.assert_allclose(255 * run.cells_duty.values[-1], steps, atol=1e-9)
    np.testing.assert_allclose(255 * run.cells_duty_reported.values[-1], steps, atol=1e-9)
    assert main(["replay", str(out)]) == 0


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import nosuch\n", "mine.py, line 1: does not import: ModuleNotFoundError"),
        ("import os\nos._exit(0)\n", "mine.py, line 2: does not import: ExitError: os._exit(0)"),
        ("x = 1\nclass C: def\n", "mine.py, line 2: invalid syntax"),
        ("class D: pass\n", "has no class 'C': it has D"),
        ("C = 3\n", "has no class 'C': it has none"),
        (
            "class C:\n    def __init__(self, facts, values): pass\n",
            "mine.py, line 1, class C: has no method step(self, now)",
        ),
        ("class C:\n    def step(self, now): pass\n", "no method __init__(self, facts, values)"),
        (
            "class C:\n    def __init__(self, a, b): pass\n    def step(self): pass\n",
            "mine.py, line 3, class C: step must take (self, now)",
        ),
        (
            "class C:\n    def __init__(self, facts, values): self.x = facts.y\n"
            "    def step(self, now): pass\n",
            "mine.py, line 2, class C, in __init__(): AttributeError",
        ),
        (
            "import os\nclass C:\n    def __init__(self, facts, values): os._exit(0)\n"
            "    def step(self, now): pass\n",
            "mine.py, line 3, class C, in __init__(): ExitError",
        ),
        (
            HEAD.replace("    def __init__", "    columns = ['a']\n    def __init__")
            + "        pass\n",
            "columns must be a dict from names to units",
        ),
    ],
)
def test_check_refuses_a_class_that_cannot_be_one(source, said, mine, capsys):
    assert main(["check", str(mine(source))]) == 2
    assert said in _said(capsys)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("controller.kind=nosuch.py:C", "nosuch.py: no such file beside the one that names it"),
        ("controller.kind=nosuch:C", "name a Python file and a class in it"),
        ("controller.kind=mien", "unknown: choose 'schedule'"),
        (
            "controller.k_q=1.0",
            "controller.k_q: unknown key: MyController has k_p, k_i_per_s, cell_N",
        ),
        ("controller.k_p=-1.0", "controller.k_p = -1.0: must be greater than or equal to 0"),
        ("controller.k_p=much", "controller.k_p = 'much': must be a valid number"),
        ("controller.budget_s=0.0", "controller.budget_s = 0.0: must be greater than 0"),
    ],
)
def test_a_table_of_ones_own_is_checked_like_any_other(change, said, capsys):
    assert main(["check", str(EXAMPLES / "controller.toml"), "--set", change]) == 2
    assert said in _said(capsys)


def test_a_file_beside_it_is_not_imported_since_a_recording_keeps_one(mine, tmp_path, capsys):
    (tmp_path / "helper.py").write_text("x = 1\n")
    assert main(["check", str(mine("import helper\n"))]) == 2
    assert "a recording keeps one file: put all into it, or make a package" in _said(capsys)


def test_a_controller_over_its_budget_is_refused_with_what_it_took(mine, tmp_path, capsys):
    path = mine("import time\n" + HEAD + "        time.sleep(0.002)\n        return [0] * self.n\n")
    assert main(["run", str(path), "--out", str(tmp_path / "run.h5")]) == 2
    line = _said(capsys)
    assert "mine.py, line 3, class C: mine.py:C takes " in line
    assert "ms at the median" in line
    assert "its budget is 0.5 ms of a period of 1 ms" in line
    # a larger budget, on the virtual clock, is the user's to give
    words = ["--set", "controller.budget_s=1.0", "--out", str(tmp_path / "run.h5")]
    assert main(["run", str(path), *words]) == 0


@pytest.fixture
def short_rehearsal(monkeypatch):
    """What fails after the rehearsal fails early."""
    monkeypatch.setattr(rehearsal, "TIMED_TICKS", 200)


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("        if self.k > 250: 1 / 0\n", "line 7, class C, in step(): ZeroDivisionError"),
        ("        if self.k > 250: return [np.nan] * 6\n", "line 5, class C: step() gives nan"),
        ("        while self.k > 250: pass\n", "line 7, class C, in step(): has not returned"),
        ("        if self.k > 250: raise GeneratorExit\n", "in step(): GeneratorExit"),
        ("        if self.k > 250: __import__('os')._exit(0)\n", "ExitError: os._exit(0)"),
    ],
)  # fmt: skip
def test_one_that_fails_in_the_run_trips_with_all_cells_off_and_the_recording_whole(
    body, said, short_rehearsal, mine, tmp_path, capsys
):
    path = mine(HEAD + body + "        return np.ones(self.n)\n", duration_s=0.4)
    out = tmp_path / "run.h5"
    assert main(["run", str(path), "--out", str(out)]) == 3
    printed = capsys.readouterr().out
    assert "tripped by own_code_failed; everything is off" in printed
    assert said in printed
    run = hil.open_run(out)
    assert run.cells_commanded.values[240].all()
    assert not run.cells_commanded.values[250:].any()
    assert main(["verify", str(out)]) == 0
    assert main(["replay", str(out)]) == 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_of_ones_own_that_ends_the_program_ends_the_run_with_all_cells_off(
    short_rehearsal, mine, tmp_path, capsys
):
    body = (
        "        import os, threading\n"
        "        thread = threading.Thread(target=os._exit, args=(0,))\n"
        "        if self.k == 250: thread.start(), thread.join()\n"
    )
    path, out = mine(HEAD + body + "        return np.ones(self.n)\n", duration_s=0.4), "run.h5"
    assert main(["run", str(path), "--out", str(tmp_path / out)]) == 130
    assert "plug-in: os._exit(0) would end the program" in capsys.readouterr().err
    run = hil.open_run(tmp_path / out)
    assert (run.attrs["outcome"], run.sizes["tick"]) == ("aborted", 250)


def test_a_fork_ends_by_os_exit_as_ever():
    with code.exit_refused():
        child = os.fork()
        if child == 0:
            with code.exit_refused():  # a run of its own
                pass
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        with pytest.raises(code.ExitError, match="raise an exception"):
            os._exit(7)
    assert os._exit.__module__ == "posix"


def test_a_fork_may_end_a_block_that_began_before_it():
    with code.exit_refused():
        child = os.fork()
    if child == 0:
        with code.exit_refused():
            pass
        code._real_exit(7 if os._exit is code._real_exit else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_model_that_fails_in_the_run_trips_too(short_rehearsal, tmp_path):
    text = (EXAMPLES / "model.py").read_text()
    assert "        h, u, x" in text
    fails = (
        "        self.k = getattr(self, 'k', 0) + 1\n        assert self.k < 210\n        h, u, x"
    )
    (tmp_path / "model.py").write_text(text.replace("        h, u, x", fails))
    shutil.copy(EXAMPLES / "model.toml", tmp_path)
    config = load(tmp_path / "model.toml", ("experiment.duration_s=0.6",))
    found = session.run(Plan(config), Output(out=tmp_path / "run.h5"))
    assert found.outcome == "tripped"
    assert found.summary["first_fault"] == ["own_code_failed"]
    assert hil.open_run(found.path).attrs["outcome"] == "tripped"


@pytest.mark.slow
def test_a_replay_takes_the_recorded_source_not_the_file_of_today(mine, tmp_path):
    source = HEAD + "        return (np.arange(self.n) < self.k // 50).astype(float)\n"
    path = mine(source)
    out = hil.run(path, out=tmp_path / "run.h5")
    kept = plugins_of(out)["controller"]
    assert kept["source"] == source
    assert kept["kind"] == "mine.py:C"
    (tmp_path / "mine.py").write_text("gone = True\n")
    assert main(["replay", str(out)]) == 0


def test_a_column_of_ones_own_that_is_no_number_is_refused(mine, tmp_path, capsys):
    for value in ("10**400", "'1'", "None"):
        source = HEAD.replace("class C:", "class C:\n    columns, own = {'own': 'N'}, 0.0")
        path = mine(f"{source}        self.own = {value}\n        return np.ones(self.n)\n")
        assert main(["run", str(path), "--out", str(tmp_path / "run.h5")]) == 2
        assert "columns names 'own', of which it has no number" in _said(capsys)


@pytest.mark.slow
def test_its_own_columns_stand_in_the_recording(tmp_path):
    run = hil.open_run(hil.run(EXAMPLES / "controller.toml", out=tmp_path / "run.h5"))
    wanted = run["controller.wanted_cells"].values
    assert run["controller.integral_N"].attrs["units"] == "N"
    assert np.array_equal(run.cells_commanded.values.sum(axis=1), wanted)


def test_an_installed_package_offers_its_classes_by_name(mine, tmp_path, monkeypatch):
    site = tmp_path / "site"
    info = site / "lab_controllers-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lab-controllers\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text("[hil.controllers]\nlab = lab_controllers:C\n")
    (site / "lab_controllers.py").write_text(HEAD + "        return [1] * self.n\n")
    monkeypatch.syspath_prepend(site)
    from hil.plugins.load import installed

    installed.cache_clear()
    path = mine("")
    path.write_text(path.read_text().replace("mine.py:C", "lab"))
    out = hil.run(path, out=tmp_path / "run.h5")
    assert plugins_of(out)["controller"]["package"] == "lab-controllers 1.2"
    assert main(["replay", str(out)]) == 0
    installed.cache_clear()


class _Gauge:
    def __init__(self, answers):
        self.answers = answers

    def __call__(self, values):
        gauge = self

        class Made:
            def open(self): ...

            def read(self, t_s):
                return gauge.answers(t_s)

            def close(self): ...

        return Made()


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (lambda t_s: 1 / 0, "ZeroDivisionError"),
        (lambda t_s: [1.0, 2.0], r"read\(\) must return 1 numbers"),
        (lambda t_s: "far", r"read\(\) must return 1 numbers"),
        (lambda t_s: ["1"], r"read\(\) must return 1 numbers"),
        (lambda t_s: [10**400], r"read\(\) must return 1 numbers"),
    ],
)
def test_a_device_of_ones_own_that_fails_is_a_device_that_failed(answers, said):
    cls = type("G", (), {"__new__": lambda c, values: _Gauge(answers)(values)})
    used = code.Plugin("g.py:G", cls, None, Path("g.py"), "", {"read": 4})
    device = PluginDevice("gauge", used, ["x"], PluginPlace(0, 0), PluginBench(lambda: 0.0, 1.0))
    device.open()
    with pytest.raises(DeviceError, match=f"gauge: g.py, line .*class G.*{said}"):
        device.self_test(print)


@pytest.mark.parametrize("answer", [np.inf, -np.inf, np.nan])
def test_a_reading_without_end_is_none_for_who_uses_it(answer):
    """A PID that has seen one never recovers: with k_d all cells go on."""
    cls = type("G", (), {"__new__": lambda c, values: _Gauge(lambda t_s: [1.5, answer])(values)})
    used = code.Plugin("g.py:G", cls, None, Path("g.py"), "", {"read": 4})
    device = PluginDevice("gauge", used, "xy", PluginPlace(0, 0), PluginBench(lambda: 0.0, 1.0))
    channels = (Channel("x", "_N", "main"), Channel("y", "_m"))
    layout = RigLayout(channels, (), (), ("gauge",), 0, others=("gauge",))
    frame = row_of(layout, Column("gauge_t_s", "s", "timing", ""))
    readings, _ = layout.bind(frame)
    device.bind(frame, readings)
    device.open()
    device.read(0.0)
    np.testing.assert_array_equal(readings.measured, [1.5, np.nan])
    assert readings.valid.tolist() == [True, False]


@pytest.mark.parametrize("answer", ["1", 1j, np.complex128(1j), 10**400, None])
def test_a_set_point_that_is_no_real_number_is_the_error_of_its_class(answer):
    cls = type("R", (), {"at": lambda self, t_s: answer, "columns": {}})
    used = code.Used(code.Plugin("r.py:R", cls, None, Path("r.py"), "", {"at": 2}), cls())
    with pytest.raises(PluginError, match=r"r.py, line 2, class R: at\(\) gives .*: give a number"):
        used.number("at", 0.0)


def test_a_device_that_answers_too_slowly_is_refused_before_arming():
    times = iter(np.arange(0.0, 10.0, 0.02).tolist())
    cls = type("G", (), {"__new__": lambda c, values: _Gauge(lambda t_s: [0.0])(values)})
    used = code.Plugin("g.py:G", cls, None, Path("g.py"), "", {"read": 4})
    bench = PluginBench(lambda: next(times), 0.005)
    device = PluginDevice("gauge", used, ["x"], PluginPlace(0, 0), bench)
    device.open()
    with pytest.raises(DeviceError, match="takes 20 ms at the median, 20 ms at worst, of 5 ms"):
        device.self_test(print)


# The contract that anyone may run


def _contract(*words, folder):
    environment = os.environ | {"PYTHONPATH": str(EXAMPLES.parents[1])}
    command = [sys.executable, "-m", "pytest", "-p", "hil.contract", "-q", "--hil-contract", *words]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_the_contract_accepts_a_template_and_says_what_a_class_breaks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for kind in KINDS:
        assert main(["examples", "--template", kind]) == 0
    assert main(["examples", "--template", "model"]) == 2  # is there already
    files = "".join((tmp_path / f"my_{kind}.py").read_text() for kind in KINDS)
    (tmp_path / "all_four.py").write_text(files)
    good = _contract("all_four.py", folder=tmp_path)
    assert good.returncode == 0, good.stdout
    assert "14 passed" in good.stdout
    counting = HEAD.replace("self.n, self.k = facts.n_commands, 0", "self.n = facts.n_commands")
    (tmp_path / "bad.py").write_text(
        counting.replace("class C:", "class C:\n    k = 0").replace("self.k += 1", "C.k += 1")
        + "        return (np.arange(self.n) < C.k % 7).astype(float)\n"
    )
    bad = _contract("bad.py", folder=tmp_path)
    assert bad.returncode == 1
    assert "gives another answer at tick 0 when made anew" in bad.stdout
    assert "Traceback" not in bad.stdout


FOUR = """
import numpy as np

class Four:
    def __init__(self, facts, values):
        self.force, self.order = facts.channels.index(facts.force), np.array([2, 0, 3, 1])

    def step(self, now):
        lacks_N = np.nan_to_num(now.reference[0]) - now["force_model_N"]
        on = np.zeros(4)
        on[self.order[: int(np.clip(lacks_N / 0.2, 0, 4))]] = 1.0
        return on
"""


def test_the_contract_tells_a_controller_of_the_rig_of_an_experiment(rigs):
    """Four cells and the twin's columns: the substitute plant has six and none."""
    (rigs / "wires4/four.py").write_text(FOUR)
    file = rigs / "wires4/four.toml"
    file.write_text(
        'rig = "rig.toml"\n[experiment]\nname = "four"\nduration_s = 0.1\n'
        '[reference]\nkind = "steps"\nt_s = [0.0]\nforce_N = [0.5]\n'
        '[controller]\nkind = "four.py:Four"\nbudget_s = 10.0\n'
    )
    checks = dict(checks_of(rigs / "wires4/four.py", file, opened=False))
    assert list(checks) == [
        "Four: gives a command for every cell and output",
        "Four: works without a reading or a set point",
        "Four: is reproducible",
        "rehearsal: fits its rig, in time",
    ]
    for check in checks.values():
        check()
    alone = dict(checks_of(rigs / "wires4/four.py", None, opened=False))
    with pytest.raises(PluginError, match="no such column: force_model_N"):
        alone["Four: is reproducible"]()


@pytest.mark.slow
def test_the_benchmark_says_what_a_tick_of_ones_own_costs(monkeypatch, tmp_path):
    monkeypatch.setattr(plugin, "ROUNDS", 1)
    monkeypatch.setattr(plugin, "TICKS", 50)
    found = plugin.measure(tmp_path)
    assert list(found) == ["controller", "reference", "model", "device"]
    assert all(0.0 < row[key] < 1.0 for row in found.values() for key in ("own_s", "built_in_s"))
    assert plugin.as_text(found).count("with hil's") == 4


class Slow:
    """A device whose calls take a tenth of a second."""

    def __init__(self, values):
        self.is_open = False

    def open(self):
        time.sleep(0.1)
        self.is_open = True

    def read(self, t_s):
        time.sleep(0.1)


def test_a_device_may_take_longer_to_connect_than_to_read():
    with code.watched(0.02):
        device = code.Plugin("mine.py:Slow", Slow, None, Path("mine.py"), "", {"": 1}).make()
        device.call("open")
        assert device.made.is_open
        with pytest.raises(PluginError, match=r"has not returned after 0\.02 s"):
            device.call("read", 0.0)


def test_runs_in_threads_that_overlap_leave_os_exit_as_it_was():
    real, entered, first_ended, refused = os._exit, threading.Event(), threading.Event(), []

    def second():
        with code.exit_refused():
            entered.set()
            first_ended.wait(60.0)
            refused.append(os._exit is not real)

    thread = threading.Thread(target=second)
    with code.exit_refused():
        thread.start()
        assert entered.wait(60.0)
    first_ended.set()
    thread.join(60.0)
    assert refused == [True]
    assert os._exit is real
