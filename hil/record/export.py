"""Recordings in other formats."""

from pathlib import Path

import xarray as xr

from hil.errors import ConfigError
from hil.record.read import open_run


def to_csv(path: Path, out: Path | None = None) -> Path:
    """One line a tick, one column a value; cells become `cells_commanded.<cell>`.

    The first line names the columns, units being part of the names. Readings of simulated
    devices are marked by a column `source` that says SIMULATED.

    Raises
    ------
    ConfigError
        Not a recording, or a file that cannot be written.
    """
    run = open_run(path)
    target = path.with_suffix(".csv") if out is None else out
    columns = {"t_s": run.t_s.values}
    for name in run.data_vars:
        variable = run[name]
        if variable.dims == ("tick",):
            columns[str(name)] = variable.values
        elif variable.dims == ("tick", "cell"):
            for i, cell in enumerate(run.cell.values):
                columns[f"{name}.{cell}"] = variable.values[:, i]
    table = xr.Dataset({k: ("tick", v) for k, v in columns.items()}).to_dataframe()
    if run.attrs.get("simulated"):
        table["source"] = "SIMULATED"
    try:
        table.to_csv(target, index=False)
    except OSError as error:
        raise ConfigError(f"{target}: cannot be written ({error.strerror or error})") from None
    return target
