"""An array's loop is closed by the force of any device, not only by an NI card's."""

import contextlib
import itertools
import os
import pty
import threading
import time
import tomllib
import tty
from datetime import date
from pathlib import Path

import numpy as np
import pytest
import tomli_w

import hil
from hil.__main__ import main
from hil.commands.parser import DEVICE, TRIPPED
from hil.experiment.load import load_with
from hil.loop.frame import Frame
from hil.record.read import n_whole_rows, open_h5
from hil.record.repair import faults_of
from hil.rig.calibrated import calibrations
from hil.rig.rig import HostTime, build_rig
from hil.runs.imports.guess import IDLE
from hil.runs.replay import replay

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
OWN = """
class Cell:
    age_s = 0.0
    def __init__(self, values): self.n = 0
    def open(self): pass
    def read(self, t_s): return [0.0]
    def close(self): pass
"""
FORCE = {"force": {"kind": "force", "sim": {"noise_rms": 0.002}}}
DEVICES = {
    "own": {"kind": "cell.py:Cell", "channels": FORCE},
    "indicator": {"kind": "serial_indicator", "port": "/dev/ttyUSB0", "channels": FORCE},
}


@pytest.fixture(params=DEVICES)
def experiment(request, tmp_path):
    """The PID of configs/miga6, with its NI card replaced."""
    folder = CONFIGS / "miga6"
    rig = tomllib.loads((folder / "rig.toml").read_text().replace("../..", str(CONFIGS.parent)))
    rig["devices"] = {"board": rig["devices"]["board"], "cell": DEVICES[request.param]}
    del rig["plant_card"]
    (tmp_path / "cell.py").write_text(OWN)
    (tmp_path / "rig.toml").write_text(tomli_w.dumps(rig))
    path = tmp_path / "pid.toml"
    path.write_text((folder / "pid.toml").read_text())
    return path


@pytest.mark.slow_beyond(1)
def test_the_loop_tracks_and_replays(experiment, tmp_path):
    config = hil.load(experiment, ["experiment.duration_s=2.0"])
    run = hil.open_run(hil.run(config, out=tmp_path / "run.h5", seed=2))
    late = run.t_s.values > 1.0
    card = hil.load(CONFIGS / "miga6" / "pid.toml", ["experiment.duration_s=2.0"])
    beside = hil.open_run(hil.run(card, out=tmp_path / "card.h5", seed=2))

    def tracking_N(r):
        error_N = (r.force_measured_N - r.force_reference_N).values[late]
        return float(np.sqrt(np.mean(error_N**2)))

    assert tracking_N(run) == pytest.approx(tracking_N(beside), rel=0.2)
    assert replay(tmp_path / "run.h5")[1] is None


@pytest.mark.parametrize(
    ("fault", "flag"), [("sensor_stuck", "sensor_frozen"), ("sensor_lost", "reading_stale")]
)
def test_a_faulty_reading_trips_the_guard(fault, flag, experiment, tmp_path):
    (tmp_path / "faults.toml").write_text(f'[[fault]]\nkind = "{fault}"\nat_s = 0.2\n')
    out = tmp_path / "run.h5"
    words = ["run", str(experiment), "--set", "experiment.duration_s=1.0", "--out", str(out)]
    assert main([*words, "--inject", str(tmp_path / "faults.toml")]) == TRIPPED
    run = hil.open_run(out)
    assert not run.cells_commanded.values[-1].any()
    assert flag in str(run.attrs["summary"])


GIVES = """
class Cell:
    def __init__(self, values): pass
    def open(self): self.age_s = 0.0
    def read(self, t_s):
        self.age_s = 0.012
        return [1.25]
    def close(self): pass
"""


def test_a_reading_in_mV_per_V_is_converted_by_the_record_and_has_its_own_age(tmp_path):
    rig = tomllib.loads((CONFIGS / "miga6" / "rig.toml").read_text())
    record = CONFIGS.parent / "calibration" / "futek_9N.toml"
    table = {"kind": "cell.py:Cell", "channels": {"force": {"kind": "force"}}}
    table["channels"]["force"]["record"] = str(record)
    rig["devices"] = {"board": rig["devices"]["board"], "cell": table}
    del rig["plant_card"], rig["model"]["arrays"]["muscle"]["record"]
    del rig["model"]["arrays"]["muscle"]["cell"]["record"]
    (tmp_path / "cell.py").write_text(GIVES)
    (tmp_path / "rig.toml").write_text(tomli_w.dumps(rig))
    config = load_with(tmp_path / "rig.toml", IDLE, "test")
    rig = build_rig(
        config, 0, {"board": "sim", "cell": "bench"}, HostTime(time.perf_counter, time.sleep)
    )
    frame = Frame(rig.columns)
    rig.bind(frame)
    rig.open()
    rig.read(1.0)
    rig.close()
    coefficients = tomllib.loads(record.read_text())["model"]["coefficients_N"]
    assert rig.readings.measured[0] == pytest.approx(np.polyval(coefficients[::-1], 1.25))
    assert frame.values[frame.index("cell_age_s")] == pytest.approx(0.012)
    assert frame.values[frame.index("cell_t_s")] == pytest.approx(1.0 - 0.012)
    kept = calibrations(config.tables, config.records, date(2026, 1, 1))
    assert kept["force"]["record_id"]


class Unplugged:
    """An indicator on a pseudo-terminal that is unplugged when the run has recorded some rows."""

    def __init__(self, recording):
        self._recording = recording
        self._master, slave = pty.openpty()
        tty.setraw(slave)
        self.port = os.ttyname(slave)
        os.close(slave)
        self._thread = threading.Thread(target=self._talk)
        self._ended = threading.Event()

    def __enter__(self):
        os.set_blocking(self._master, False)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()

    def _talk(self):
        for n in itertools.count():
            with contextlib.suppress(BlockingIOError):  # nobody reads yet
                os.write(self._master, f"ST,GS,+0000.{n % 100:03d} N\r\n".encode())
            if self._ended.wait(0.005) or (n % 100 == 99 and self._rows() > 50):
                break
        with contextlib.suppress(BlockingIOError):
            os.write(self._master, b"ST,GS,+00")  # half a line
        os.close(self._master)

    def _rows(self):
        if not self._recording.exists():
            return 0
        with open_h5(self._recording) as file:
            return n_whole_rows(file)


@pytest.mark.slow
@pytest.mark.xdist_group("real time")
@pytest.mark.parametrize("experiment", ["indicator"], indirect=True)
def test_an_indicator_that_is_unplugged_in_a_run_is_one_line_with_all_off(
    experiment, tmp_path, capsys
):
    out = tmp_path / "run.h5"
    with Unplugged(out) as far_end:
        rig = tomllib.loads((tmp_path / "rig.toml").read_text())
        rig["devices"]["cell"]["port"] = far_end.port
        rig["loop"]["overrun"] = "skip"
        # The machine may stall, and the board's plant does not pull at this load cell.
        rig["guard"] = {"force_max_N": 9.0, "cell_on_max_s": 10.0, "reading_age_max_s": 10.0}
        (tmp_path / "rig.toml").write_text(tomli_w.dumps(rig))
        where = ["--backend", "board=sim,cell=bench", "--out", str(out)]
        words = ["run", str(experiment), "--set", "experiment.duration_s=60.0", *where]
        assert main(words) == DEVICE, capsys.readouterr().err
    said = capsys.readouterr().err.splitlines()
    (line,) = [line for line in said if not line.startswith("warning: ")]
    assert line.startswith(f"cell: {far_end.port}: is gone (")
    assert faults_of(out) == []
    run = hil.open_run(out)
    assert len(run.t_s) > 50
    assert not run.cells_commanded.values[-1].any()


@pytest.mark.parametrize("experiment", ["indicator"], indirect=True)
def test_the_operators_tare_works_on_an_instruments_force(experiment):
    config = hil.load(experiment)
    readings = {}
    for tared_N in (0.0, 0.125):
        rig = build_rig(config, 0)
        rig.bind(Frame(rig.columns))
        with rig.opened():
            rig.tare("force", tared_N)
            rig.read(0.0)
        readings[tared_N] = float(rig.readings.measured[0])
    assert readings[0.0] - readings[0.125] == pytest.approx(0.125, abs=1e-12)
