"""The rows of an imported recording: readings, commands, ages and validity at every tick."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hil.errors import ConfigError
from hil.experiment.loaded import Experiment
from hil.loop.channels import WORD_BITS, RigLayout, valid_columns
from hil.loop.frame import CELL_UNKNOWN, units
from hil.mechanics.arrays import Array
from hil.record.layout import Columns
from hil.rig.instruments import device_of
from hil.runs.imports.opened import Opened, file_facts, remarks
from hil.runs.imports.resample import Resampled, method_for, pulses, resampled
from hil.runs.imports.tables import CellColumnTable, ColumnTable, MapTable, Method
from hil.runs.imports.units import converted

NAMED = 12  # columns that a note names


class Rows:
    """The columns of a recording, filled from the files.

    Attributes
    ----------
    columns : by name, each with one value (or one a cell) for every tick
    notes : (level, text) pairs for the recording's events
    """

    def __init__(
        self,
        config: Experiment,
        layout: RigLayout,
        sources: Mapping[str, Opened],
        ticks_s: Array,
        map_path: Path,
    ) -> None:
        self._config, self._layout, self._sources = config, layout, sources
        self._ticks_s, self._map = ticks_s, map_path
        self._period_s = config.tables.loop.period_s
        n_rows = len(ticks_s)
        nothing = np.full(n_rows, np.nan)
        self._valid_columns = valid_columns(len(layout.channels) + len(layout.boards))
        self.columns: Columns = {
            "t_s": self._period_s * np.arange(n_rows),
            "late_s": nothing,
            "busy_s": nothing,
            "fault_bits": np.zeros(n_rows, dtype=np.uint64),
            **{name: np.zeros(n_rows, dtype=np.uint64) for name in self._valid_columns},
        }
        self.notes: list[tuple[str, str]] = []
        self._used: list[dict[str, object]] = []

    def fill(self, mapped: MapTable) -> None:
        """Fill readings, set points, commands, ages and validity."""
        for opened in self._sources.values():
            self.notes += list(remarks(opened))
        self._fill_channels(mapped.channels)
        for name, table in mapped.references.items():
            channel = self._layout.channels[self._layout.index(name)]
            samples, _ = self._column(table, f"references.{name}", channel.units)
            self.columns[channel.column("reference")] = samples.values
        for column in self._layout.outputs:
            name = column.partition("_commanded")[0]
            self.columns[column] = np.zeros(len(self._ticks_s))
            if name in mapped.outputs:
                samples, _ = self._column(mapped.outputs[name], f"outputs.{name}", units(column))
                self.columns[column] = np.nan_to_num(samples.values)
        if self._layout.n_cells:
            self._fill_cells(mapped.cells)
        self._note_left(mapped)

    def _note_left(self, mapped: MapTable) -> None:
        """Note the columns and times of every file that are not in the recording."""
        tables = (mapped.channels, mapped.references, mapped.outputs, mapped.cells)
        taken = {(c.source, c.column) for table in tables for c in table.values()}
        left: dict[str, set[str]] = {}
        for name, opened in self._sources.items():
            source, table = opened.source, opened.table
            used = {column for of, column in taken if of in (None, name)}
            used |= set() if table.time is None else set(table.time.columns)
            if table.align is not None and table.align.column is not None:
                used.add(table.align.column)
            rest = set(source.columns) - {source.name_of(column, name) for column in used}
            left[source.path.name] = left.get(source.path.name, rest) & rest
            if opened.times is not None:
                t_s = opened.clock.to_recording(opened.times.t_s)
                n = [int((t_s < self._ticks_s[0] - self._period_s).sum()),
                     int((t_s > self._ticks_s[-1] + self._period_s).sum())]  # fmt: skip
                if any(n):
                    self.notes.append(("info", f"{source.path.name}: {n[0]} rows before the "
                                               f"recording and {n[1]} after it"))  # fmt: skip
        for file, columns in left.items():
            if columns:
                more = f" and {len(columns) - NAMED} more" if len(columns) > NAMED else ""
                text = f"{file}: columns that are not taken: {', '.join(sorted(columns)[:NAMED])}"
                self.notes.append(("info", text + more))

    def _fill_channels(self, tables: Mapping[str, ColumnTable]) -> None:
        for i, channel in enumerate(self._layout.channels):
            values = np.full(len(self._ticks_s), np.nan)
            if channel.name in tables:
                table = tables[channel.name]
                samples, device_s = self._column(table, f"channels.{channel.name}", channel.units)
                values = samples.values
                self._fill_age(
                    device_of(self._config.tables.devices, channel.name), samples, device_s
                )
                self._compare_with_guard(channel.name, values)
            else:
                self.notes.append(("warning", f"no column for channel {channel.name}"))
            self.columns[channel.column("measured")] = values
            bit = np.uint64(1 << i)
            self.columns["valid_bits"] |= np.where(np.isfinite(values), bit, np.uint64(0))

    def _fill_age(self, device: str, samples: Resampled, device_s: Array) -> None:
        """The oldest reading of a device gives its age and its clock."""
        age, clock = f"{device}_age_s", f"{device}_t_s"
        if age not in self.columns:
            self.columns[age], self.columns[clock] = samples.age_s, device_s
            return
        older = ~(samples.age_s <= self.columns[age])
        self.columns[age] = np.where(older, samples.age_s, self.columns[age])
        self.columns[clock] = np.where(older, device_s, self.columns[clock])

    def _column(
        self, table: ColumnTable | CellColumnTable, key: str, unit: str
    ) -> tuple[Resampled, Array]:
        """A column at the ticks in the rig's unit, and the file's own time of each reading."""
        where = f"{self._map}: {key}"
        opened = self._sources[table.source or next(iter(self._sources))]
        series = opened.source.column(table.column, f"{where}.column")
        if not np.isfinite(series.values).any():
            raise ConfigError(
                f"{where}.column = '{table.column}': no number in {opened.source.path.name}: name "
                "another column; formulas have values once a spreadsheet has saved them"
            )
        times = opened.times_of(table.column, f"{where}.column")
        scale, offset = getattr(table, "scale", 1.0), getattr(table, "offset", 0.0)
        file_unit = table.unit or series.unit or ("1" if scale == 1.0 else unit)
        values = converted(scale * times.values(series.values) + offset, file_unit, unit, where)
        method: Method | None = getattr(table, "method", "previous")
        method = method or method_for(times.interval_s, self._period_s)
        t_s = opened.clock.to_recording(times.t_s)
        samples = resampled(t_s, values, self._ticks_s, self._period_s, times.gap_s, method)
        device_s = 0.5 * (times.t_s[samples.first] + times.t_s[np.maximum(samples.taken, 0)])
        if method == "linear":
            device_s = opened.clock.offset_s + (1.0 + opened.clock.drift) * self._ticks_s
        missing = int(np.isnan(samples.values).sum())
        self._used.append({
            "to": key, "column": table.column, "file": opened.source.path.name, "unit": file_unit,
            "scale": scale, "offset": offset, "method": method, "rows_without": missing,
        })  # fmt: skip
        if missing == len(samples.values):
            raise ConfigError(
                f"{where}.column = '{table.column}': has no reading between the recording's start "
                f"and end: check sources.{opened.name}.align, start_s and end_s"
            )
        if missing:
            self.notes.append(("warning", f"{key}: no reading in {missing} of "
                                          f"{len(samples.values)} rows"))  # fmt: skip
        return samples, np.where(np.isfinite(samples.age_s), device_s, np.nan)

    def _fill_cells(self, tables: Mapping[str, CellColumnTable]) -> None:
        names, n_rows = self._layout.cell_names, len(self._ticks_s)
        commanded = np.full((n_rows, len(names)), CELL_UNKNOWN, dtype=np.uint8)
        for n, name in enumerate(names):
            if name in tables:
                commanded[:, n] = self._command(tables[name], f"cells.{name}")
        if missing := [name for name in names if name not in tables]:
            self.notes.append(("warning", f"no column for cells {', '.join(missing)}: the twin "
                                          "has them off"))  # fmt: skip
        reported = np.vstack((np.full((1, len(names)), CELL_UNKNOWN, np.uint8), commanded[:-1]))
        self.columns["cells_commanded"], self.columns["cells_reported"] = commanded, reported
        for i, board in enumerate(self._layout.boards, start=len(self._layout.channels)):
            if tables:
                self.columns[f"{board}_age_s"] = np.zeros(n_rows)
                self.columns[f"{board}_t_s"] = self._ticks_s
                word, bit = divmod(i, WORD_BITS)
                self.columns[self._valid_columns[word]] |= np.uint64(1 << bit)

    def _command(self, table: CellColumnTable, key: str) -> NDArray[np.uint8]:
        """A cell's state from every tick on; unknown where the file has no value."""
        unit = "1" if table.unit is None or table.carrier_Hz else table.unit
        if table.carrier_Hz is None:
            values = self._column(table, key, unit)[0].values
            on = values > table.on_above
        else:
            if table.carrier_Hz * self._period_s > 0.5:
                raise ConfigError(
                    f"{self._map}: {key}.carrier_Hz = {table.carrier_Hz:g}: two periods of "
                    f"{self._period_s:g} s at least are needed in one of the carrier: give a "
                    "shorter period_s"
                )
            values = self._column(table, key, "1")[0].values
            if np.nanmax(values) > 1.0 + 1e-6 or np.nanmin(values) < -1e-6:
                raise ConfigError(
                    f"{self._map}: {key}: duty from {np.nanmin(values):.4g} to "
                    f'{np.nanmax(values):.4g}: it must be 0 to 1: give unit = "percent"'
                )
            on = pulses(values, self._ticks_s - self._ticks_s[0], table.carrier_Hz).astype(bool)
        return np.where(np.isfinite(values), on, CELL_UNKNOWN).astype(np.uint8)

    def _compare_with_guard(self, name: str, values: Array) -> None:
        """Note where a reading is beyond the rig's limits; no guard watched this recording."""
        guard = self._config.tables.guard
        channel = self._layout.channels[self._layout.index(name)]
        low, high = -np.inf, np.inf
        if channel.force and guard.force_max_N is not None:
            low, high = -guard.force_max_N, guard.force_max_N
        if name in guard.signals:
            low, high = max(low, guard.signals[name].min), min(high, guard.signals[name].max)
        beyond = np.flatnonzero((values < low) | (values > high))
        if len(beyond):
            t_s = float(self.columns["t_s"][beyond[0]])
            self.notes.append((
                "warning",
                f"{name}: {len(beyond)} readings beyond the rig's limits, first "
                f"{values[beyond[0]]:.4g} {channel.units} at {t_s:g} s: no guard of hil watched",
            ))  # fmt: skip

    def facts(self) -> dict[str, object]:
        """Files, clocks and columns, for the recording."""
        return {
            "files": [file_facts(opened) for opened in self._sources.values()],
            "columns": self._used,
            "begins_s": float(self._ticks_s[0]),
        }
