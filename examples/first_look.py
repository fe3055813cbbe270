"""A first look, cell by cell: run it as a script, or in any editor that knows `# %%` cells."""

# %% Run the paper's six-cell array on the simulated rig.
from pathlib import Path

import numpy as np

import hil
from hil.models import CellArray, cells

root = Path(__file__).resolve().parents[1]
config = hil.load(root / "configs" / "miga6" / "all_on.toml")
path = hil.run(config, seed=7, out="runs/first_look.h5", force=True)

# %% Read the recording: an xarray.Dataset with units as attributes.
run = hil.open_run(path)
residual_N = run.force_measured_N - run.force_model_N
print(f"{run.attrs['outcome']}, {run.sizes['tick']} rows, {run.attrs['simulated']}")
print(f"largest force {float(run.force_measured_N.max()):.3f} {run.force_measured_N.units}")
print(f"RMS of measured - simulated {1e3 * float(np.sqrt((residual_N**2).mean())):.1f} mN")

# %% The force while it rises, and the cells that were on.
rise = run.isel(tick=slice(0, 1000))
n_on = int(rise.cells_reported[-1].sum())
print(f"after 1 s: {float(rise.force_model_N[-1]):.3f} N with {n_on} cells")

# %% The same array as a model of its own, and in python-control.
miga = cells.miga(k_pe_N_per_m=20.0, k_se_N_per_m=386.52, k_ae_N_per_m=1000.0, b_N_s_per_m=500.0)
model = CellArray.from_fingerprint("-:1 | &1:2 | &1:1 &2:2 | &7:-1", cell=miga, mass_kg=0.01583)
print(f"{len(model.states)} states, from {model.states[0]} to {model.states[-1]}")
system = model.to_control()
ringing_Hz = np.unique(np.round(np.abs(system.poles().imag) / (2 * np.pi), 3))
print(f"it rings at {', '.join(f'{f:.3f}' for f in ringing_Hz if f > 1)} Hz")
