"""Commissioning of a rig, step by step: zero, sign, shunt, each cell in turn."""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PySide6.QtWidgets import (
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from hil_gui.bench_day import BenchDay
from hil_gui.data import rig_of
from hil_gui.fields import NumberField, toml_text
from hil_gui.plain import Label
from hil_gui.run_data import RunData
from hil_gui.tables import plain_table
from hil_gui.theme import SPACE
from hil_gui.units import si

CELL_ON_S, CELL_OFF_S, FIRST_S = 0.6, 0.9, 1.0
WINDOW_S = 1.0
SHUNT_TOLERANCE = 0.01
RISE_SIGMAS = 5.0
"""A cell pulls if the force rises by more than this multiple of its noise (standard deviation)."""


@dataclass(frozen=True)
class CellVerdict:
    """Result of switching one cell on alone."""

    name: str
    answered: bool
    rise_N: float
    twin_rise_N: float
    pulls: bool


def cell_steps(n_cells: int) -> list[dict[str, object]]:
    """Schedule that switches each cell on alone, one after another."""
    steps: list[dict[str, object]] = [{"t_s": 0.0, "off": "all"}]
    for n in range(n_cells):
        t_s = FIRST_S + n * (CELL_ON_S + CELL_OFF_S)
        steps += [{"t_s": t_s, "on": [n + 1]}, {"t_s": round(t_s + CELL_ON_S, 9), "off": [n + 1]}]
    return steps


def experiment_text(rig: Path, name: str, steps: list[dict[str, object]], length_s: float) -> str:
    """Experiment file (TOML) that switches the rig's cells by these steps, without a reference."""
    tables = {
        "experiment": {"name": name, "duration_s": length_s},
        "controller": {"kind": "schedule", "steps": steps},
    }
    lines = [f"rig = {toml_text(str(rig))}"]
    lines += [f"{key} = {toml_text(table)}" for key, table in tables.items()]
    return "\n".join([*lines, ""])


def duration_s(n_cells: int) -> float:
    """Duration of the schedule of `cell_steps`, s."""
    return FIRST_S + n_cells * (CELL_ON_S + CELL_OFF_S)


def judge_cells(data: RunData) -> list[CellVerdict]:
    """Judge each cell: was it reported on when commanded, and did the force rise?

    The rise is the mean force over the last third of the on time minus the mean over the 0.1 s
    before it. A cell pulls if its rise exceeds RISE_SIGMAS times the noise before the first cell
    and has the sign of the twin's rise. Cells whose test did not finish are left out.
    """
    if data.signal is None:
        return []
    measured, model = (data.index(data.signal.columns[k]) for k in ("measured", "model"))
    _, quiet = data.values.samples(0.2 * FIRST_S, FIRST_S)
    noise = float(np.nanstd(quiet[measured])) if quiet.size else 0.0
    verdicts = []
    for n, name in enumerate(data.about.cell_names):
        on_s = FIRST_S + n * (CELL_ON_S + CELL_OFF_S)
        off_s = on_s + CELL_ON_S
        if data.last_s < off_s:
            break
        _, before = data.values.samples(on_s - 0.1, on_s)
        _, held = data.values.samples(off_s - CELL_ON_S / 3, off_s)
        _, reported = data.cells["cells_reported"].samples(on_s + 0.1, off_s)
        rise, twin = (float(np.nanmean(held[i]) - np.nanmean(before[i])) for i in (measured, model))
        verdicts.append(
            CellVerdict(
                name=name,
                answered=bool(reported.size) and float(np.mean(reported[n] == 1)) > 0.9,
                rise_N=rise,
                twin_rise_N=twin,
                pulls=abs(rise) > RISE_SIGMAS * noise and rise * twin > 0.0,
            )
        )
    return verdicts


class Commissioning(QWidget):
    """Page of steps, each with an instruction, a button and a result."""

    def __init__(self, bench: BenchDay) -> None:
        super().__init__()
        self._bench = bench
        bench.ended.connect(self.run_ended)
        bench.shown.connect(self.show_state)
        self._testing_cells = False
        self._temporary: Path | None = None
        column = QVBoxLayout(self)
        column.setContentsMargins(SPACE, SPACE, SPACE, SPACE)
        column.setSpacing(SPACE // 2)
        self.watch_button = self._step(
            column, "1  Watch", "Read the rig with all cells off.", "Watch",
            "Read the rig with all outputs off, until stopped", bench.connect_rig,
        )  # fmt: skip
        self.zero_button = self._step(
            column, "2  Zero", "Unload the transducer, then press.", "Take zero",
            "Make the mean of the last second the zero of the force, N", self.zero,
        )  # fmt: skip
        self.zero_result = self._result(column)
        self.sign_button = self._step(
            column, "3  Sign", "Pull the transducer by hand, then press.", "Pulled",
            "Tension must read positive, N", self.sign,
        )  # fmt: skip
        self.sign_result = self._result(column)
        self.shunt_button = self._step(
            column, "4  Shunt", "Close the shunt switch. This checks the channel; it does not "
            "calibrate it.", "Check",
            f"Compare with the certificate, tolerance {100 * SHUNT_TOLERANCE:g} %", self.shunt,
        )  # fmt: skip
        form = QFormLayout()
        self.shunt_expected = NumberField("N", low=-1e4, high=1e4)
        self.shunt_expected.setToolTip("Reading on the certificate for this shunt, N")
        self.shunt_expected.setAccessibleName("Expected shunt reading")
        form.addRow(Label("expected"), self.shunt_expected)
        column.addLayout(form)
        self.shunt_result = self._result(column)
        self.cells_button = self._step(
            column, "5  Cells", "Each cell alone, in turn, within the rig's limits.",
            "Test cells", "Switch each cell on alone, one after another", self.test_cells,
        )  # fmt: skip
        self.table = QTableWidget(0, 4)
        plain_table(self.table, ["cell", "responds", "force", "twin"], wide=0)
        self.table.setMinimumHeight(150)
        column.addWidget(self.table, 1)
        self.cells_result = self._result(column)

    def _step(self, column, title, text, word, tip, do) -> QPushButton:
        heading = Label(title)
        heading.setProperty("role", "heading")
        column.addWidget(heading)
        row = QHBoxLayout()
        says = Label(text)
        says.setWordWrap(True)
        row.addWidget(says, 1)
        button = QPushButton(word)
        button.setToolTip(tip)
        button.clicked.connect(do)
        row.addWidget(button)
        column.addLayout(row)
        return button

    @staticmethod
    def _result(column: QVBoxLayout) -> QLabel:
        label = Label("")
        label.setProperty("role", "muted")
        label.setWordWrap(True)
        column.addWidget(label)
        return label

    def show_state(self, live: bool, may_start: bool) -> None:
        """Enable the steps that are possible now."""
        for button in (self.zero_button, self.sign_button, self.shunt_button):
            button.setEnabled(live)
        for button in (self.watch_button, self.cells_button):
            button.setEnabled(may_start)

    # Steps

    def test_cells(self) -> None:
        """Start a run that switches each cell on alone; on the bench once it is armed."""
        settings = self._bench.control.settings or {}
        n_cells = sum(len(d.get("cells", ())) for d in settings.get("devices", {}).values())
        self._testing_cells = self._start(
            "each cell in turn", cell_steps(n_cells), duration_s(n_cells)
        )
        if self._testing_cells:
            self.table.setRowCount(0)
            on_bench = self._bench.control.backend == "bench"
            self.cells_result.setText("Self-test, then Arm and Start" if on_bench else "Running …")

    def _start(self, name: str, steps: list[dict[str, object]], length_s: float) -> bool:
        path = self._bench.control.path
        if path is None:
            return False
        # The recording's name starts with the folder's name, so the folder is named as the rig's.
        # The run reads the file when it starts; its folder is removed when the run has ended.
        self._temporary = Path(tempfile.mkdtemp(prefix="hil-"))
        folder = self._temporary / path.resolve().parent.name
        folder.mkdir()
        file = folder / f"{name.replace(' ', '_')}.toml"
        file.write_text(experiment_text(rig_of(path), name, steps, length_s))
        started = self._bench.start_file(file)
        if not started:
            self._remove_files()
        return started

    def _remove_files(self) -> None:
        if self._temporary is not None:
            shutil.rmtree(self._temporary)
            self._temporary = None

    def zero(self) -> None:
        """Make the mean of the last second the zero of the force, and show the noise."""
        mean, noise, units = self._last_second()
        self._bench.tare()
        self.zero_result.setText(f"{si(mean, units)} subtracted, noise {si(noise, units, 3)} RMS")

    def sign(self) -> None:
        """Check that the largest force of the last five seconds is tension (positive)."""
        data = self._bench.data
        _, rows = data.values.samples(data.last_s - 5 * WINDOW_S, np.inf)
        y = rows[data.index(data.signal.columns["measured"])]
        most = float(y[np.nanargmax(np.abs(y))])
        _, noise, units = self._last_second()
        if abs(most) < 10 * noise:
            text = f"largest {si(most, units)}: within the noise, pull harder"
        elif most > 0.0:
            text = f"✓ tension reads {si(most, units)}"
        else:
            text = f"✗ tension reads {si(most, units)}: swap the signal wires, or change the "
            text += "sign of newtons_per_V"
        self.sign_result.setText(text)
        self._bench.send("note", text=f"sign: {text}")

    def shunt(self) -> None:
        """Compare the reading with the shunt closed to the certificate's."""
        mean, _, units = self._last_second()
        expected = self.shunt_expected.value()
        off = abs(mean - expected)
        good = expected != 0.0 and off <= SHUNT_TOLERANCE * abs(expected)
        text = f"{'✓' if good else '✗'} reads {si(mean, units)}, expected {si(expected, units)}"
        if not good:
            text += ": check the excitation, the gain and the wiring"
        self.shunt_result.setText(text)
        self._bench.send("note", text=f"shunt: {text}")

    def _last_second(self) -> tuple[float, float, str]:
        data = self._bench.data
        _, rows = data.values.samples(data.last_s - WINDOW_S, np.inf)
        y = rows[data.index(data.signal.columns["measured"])]
        return float(np.nanmean(y)), float(np.nanstd(y)), data.signal.units

    def run_ended(self, has_rows: bool) -> None:
        """Remove the run's file; after a cell test, show each cell's result."""
        self._remove_files()
        if not self._testing_cells:
            return
        self._testing_cells = False
        if not has_rows:
            self.cells_result.setText("The test did not run")
            return
        verdicts = judge_cells(self._bench.data)
        self.table.setRowCount(len(verdicts))
        for i, v in enumerate(verdicts):
            good = v.answered and v.pulls
            texts = [f"{'✓' if good else '✗'} {v.name}", "yes" if v.answered else "no",
                     si(v.rise_N, "N", 3), si(v.twin_rise_N, "N", 3)]  # fmt: skip
            for j, text in enumerate(texts):
                self.table.setItem(i, j, QTableWidgetItem(text))
        bad = [v.name for v in verdicts if not (v.answered and v.pulls)]
        self.cells_result.setText(
            f"Check {', '.join(bad)}: wire, gate, connector"
            if bad
            else "Every cell responds and pulls"
        )
