"""The rig under test: its cells, and the columns that a test reads."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import tomli_w

from hil.config.files import read_toml
from hil.errors import ConfigError, writing
from hil.experiment.load import load
from hil.experiment.loaded import Experiment
from hil.platform.whole_files import write_whole
from hil.rig.instruments import channels_of, signals_of

EXPERIMENT = "experiment.toml"


@dataclass(frozen=True)
class Subject:
    """What is tested, and how it is seen.

    Attributes
    ----------
    rig : its file
    config : an experiment on it
    displacement, force : columns of the measured displacement and force; empty if there is none
    temperature : column of the wire's temperature
    measured : whether an instrument measures the temperature; else it is the twin's
    stage : output that moves a driven point; empty if there is none
    """

    rig: Path
    config: Experiment
    displacement: str
    force: str
    temperature: str
    measured: bool
    stage: str

    @property
    def output(self) -> str:
        """The displacement, or else the force."""
        return self.displacement or self.force

    def needs(self, *kinds: str) -> None:
        """Require columns of `displacement`, `force`, `temperature` or `output`.

        Raises
        ------
        ConfigError
            The rig has none of one of them.
        """
        for kind in kinds:
            if not getattr(self, kind):
                what = {"output": "displacement or force"}.get(kind, kind)
                raise ConfigError(f"{self.rig}: this test needs a channel of {what}: add one")

    def needs_stage(self) -> str:
        """The output of the stage; ConfigError without one, its channel or a force channel."""
        if not self.stage:
            raise ConfigError(
                f"{self.rig}: this test needs a stage: an output that drives POINT.x_m of a point "
                "with support = 'driven', as configs/stage has"
            )
        self.needs("displacement", "force", "temperature")
        return self.stage

    def refuse_longer(self, on_s: float) -> None:
        """ConfigError if the guard would end a run that heats cells for so long."""
        limit_s = self.config.tables.guard.cell_on_max_s
        if limit_s is not None and on_s > limit_s:
            raise ConfigError(
                f"cells would be on for {on_s:g} s, longer than guard.cell_on_max_s = {limit_s:g} "
                f"of {self.rig}: lower heat_s or bit_s"
            )


def subject_of(rig: Path, out: Path) -> Subject:
    """Look at a rig; writes an experiment without action into `out`.

    Raises
    ------
    ConfigError
        The file is not a rig with cells, or is not valid.
    """
    table = read_toml(rig)
    if "model" not in table or "devices" not in table:
        raise ConfigError(f"{rig}: not a rig: give a file such as configs/isotonic/rig.toml")
    if not any("cells" in device for device in table["devices"].values()):
        raise ConfigError(f"{rig}: has no cells on a board: standard tests heat cells")
    path = write_experiment(rig, out, "look", 1.0, [{"t_s": 0.0, "off": "all"}])
    config = load(path)
    tables = config.tables
    channels, signals = channels_of(tables), signals_of(tables.devices)
    measured = {c.name: c.column("measured") for c in channels}
    moves = [n for n, signal in signals.items() if signal.endswith("_m")]
    forces = [c.column("measured") for c in channels if c.force == "main"]
    hot = [n for n, signal in signals.items() if signal.endswith(".wire_C")]
    twin = f"{config.model.cell_names[0]}.wire_model_C"
    stages = [
        name
        for device in tables.devices.values()
        for name, output in getattr(device, "outputs", {}).items()
        if output.drives.endswith(".x_m")
    ]
    wired = bool(config.kind.wires and config.kind.wires(tables.model, config.model))
    return Subject(
        rig, config, measured[moves[0]] if moves else "", forces[0] if forces else "",
        measured[hot[0]] if hot else (twin if wired else ""), bool(hot),
        stages[0] if stages else "",
    )  # fmt: skip


def write_experiment(
    rig: Path,
    out: Path,
    name: str,
    duration_s: float,
    steps: list[dict[str, object]],
    outputs: Mapping[str, object] | None = None,
) -> Path:
    """Write an experiment that switches cells at given times; returns its path.

    `outputs` are curves that outputs follow.
    """
    table = {
        "rig": rig.resolve().as_posix(),
        "experiment": {"name": name, "duration_s": duration_s},
        "controller": {"kind": "schedule", "steps": steps, "outputs": dict(outputs or {})},
    }
    return write_toml(out / EXPERIMENT, table)


def write_toml(path: Path, table: Mapping[str, object]) -> Path:
    """Write a table unless the file already has the same content; returns the path."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, tomli_w.dumps(table))
    return path
