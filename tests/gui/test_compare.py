"""Runs over each other in the window."""

import numpy as np
import pytest
import tomli_w

import hil
from hil.runs.imports.importing import import_files
from hil.runs.recording import Output


@pytest.fixture
def imported_run(pid_run, configs, tmp_path):
    """The recording again, from a file of another program with force in mN and a later clock."""
    run = hil.open_run(pid_run)
    columns = np.column_stack(
        [run.t_s + 100.0, 1e3 * run.force_measured_N, run.cells_commanded.values]
    )
    names = [f"cell{i}" for i in range(1, 7)]
    header = ",".join(["time (s)", "force (mN)", *names])
    np.savetxt(tmp_path / "lab.csv", columns, "%.9g", ",", header=header, comments="")
    mapped = {
        "name": "the same run, by another program",
        "sources": {"lab": {"file": "lab.csv", "time": {"column": "time (s)"}}},
        "channels": {"force": {"column": "force (mN)"}},
        "cells": {f"muscle.{i}": {"column": f"cell{i}"} for i in range(1, 7)},
    }
    (tmp_path / "map.toml").write_text(tomli_w.dumps(mapped))
    rig = configs / "miga6" / "rig.toml"
    out = tmp_path / "imported.h5"
    return import_files([tmp_path / "lab.csv"], rig, tmp_path / "map.toml", Output(out)).path


def test_an_imported_recording_is_compared_like_a_run(pid_run, imported_run, opened, qtbot, said):
    window = opened(pid_run)
    window.compare.add([imported_run])
    qtbot.waitUntil(lambda: not window.jobs.is_busy, timeout=300_000)
    window.compare.align.setCurrentText("first cell on")
    window.frame()
    table = window.compare.table
    assert table.item(0, 0).text() == imported_run.name
    assert table.item(0, 1).text() == "+0.000 s"
    expected = hil.open_run(imported_run)
    rms_N = float(np.sqrt(np.nanmean((expected.force_measured_N - expected.force_model_N) ** 2)))
    number, unit = table.item(0, 2).text().split()
    assert float(number) * {"mN": 1e-3, "N": 1.0}[unit] == pytest.approx(rms_N, rel=0.01)
    assert len(window.traces.overlays) == 1
    assert said == []
