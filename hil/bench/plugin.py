"""`hil bench`: duration of a tick with a plug-in controller, reference or model, or own device."""

from pathlib import Path
from time import perf_counter

import numpy as np

from hil import bundled_configs
from hil.bench.table import as_table
from hil.config.values import Figures
from hil.devices.latest import LatestReading, now_s
from hil.devices.plugin import PluginBench, PluginDevice, PluginPlace
from hil.devices.tables import InstrumentTable
from hil.experiment.load import load
from hil.loop.channels import Channel, RigLayout
from hil.loop.frame import Frame
from hil.plugins.code import Plugin
from hil.record.read import open_run
from hil.rig.rig import Rig
from hil.runs import session
from hil.runs.plan import Plan
from hil.runs.recording import Output

ROUNDS = 5
TICKS = 1000
# Compared: a stage of the tick, with built-in code and with the example's.
COMPARED = {
    "controller": ("control", "configs/miga6/pid.toml", "examples/own/controller.toml"),
    "reference": ("control", "configs/miga6/pid.toml", "examples/own/reference.toml"),
    "model": ("estimate", "configs/slider/steps.toml", "examples/own/model.toml"),
}


class _OwnForce:
    """A force device as a user would write it, without hardware behind it."""

    age_s = 0.001

    def __init__(self, values: object) -> None:
        """Keep nothing."""

    def open(self) -> None:
        """Open nothing."""

    def read(self, t_s: float) -> tuple[float]:
        """Give the same force for ever."""
        return (1.25,)

    def close(self) -> None:
        """Close nothing."""


class _Latest(LatestReading[InstrumentTable]):
    """A driver of hil's whose one reading has come."""

    def __init__(self, table: InstrumentTable) -> None:
        super().__init__(table, "bench", "")

    def _connect(self) -> None:
        self.take((1.25,), now_s())

    def _disconnect(self) -> None:
        """Nothing is connected."""


def measure(folder: Path) -> Figures:
    """Medians of a stage, in turns on the virtual clock; times in s."""
    figures = {what: _compared(folder, *how) for what, how in COMPARED.items()}
    took = {"built_in_s": _read_s(_Latest), "own_s": _read_s(_OwnForce)}
    return figures | {"device": {"stage": "read", **took}}


def _read_s(cls: type) -> float:
    """Median time of a device's `read`, as the loop calls it."""
    plugin = Plugin("bench", cls, None, Path(__file__), "", {"": 1})
    device = PluginDevice(
        "cell", plugin, ["force"], PluginPlace(0, 0), PluginBench(perf_counter, 1.0)
    )
    layout = RigLayout((Channel("force", "_N", "main"),), (), (), ("cell",), 0)
    frame = Frame(Rig([device], layout).columns)
    readings, _ = layout.bind(frame)
    device.bind(frame, readings)
    device.open()
    took_s = np.empty(TICKS)
    for i in range(TICKS):
        began_s = perf_counter()
        device.read(1e-3 * i)
        took_s[i] = perf_counter() - began_s
    device.close()
    return float(np.median(took_s))


def _compared(folder: Path, stage: str, built_in: str, custom: str) -> Figures:
    took: dict[str, list[float]] = {"built_in_s": [], "own_s": []}
    for _ in range(ROUNDS):
        for key, name in (("built_in_s", built_in), ("own_s", custom)):
            period_s = load(bundled_configs.root() / name).tables.loop.period_s
            config = load(
                bundled_configs.root() / name, (f"experiment.duration_s={TICKS * period_s}",)
            )
            path = session.run(Plan(config), Output(out=folder / "own.h5", force=True)).path
            took[key].append(float(np.median(open_run(path)[f"{stage}_stage_s"])))
    return {"stage": stage, **{key: min(times) for key, times in took.items()}}


def as_text(figures: Figures) -> str:
    """The figures as a table."""
    return as_table(
        (f"plug-in {what}, {row['stage']} stage", f"{1e6 * row['own_s']:.1f} us",
         f"with hil's {1e6 * row['built_in_s']:.1f} us")
        for what, row in figures.items()
    )  # fmt: skip
