"""Names of the units of miga6's array, and what spoils them."""

from hil.systems.fmu.tables import FmuTable

PERIOD_S = 0.001
OUTPUTS = ("muscle.left_N", "muscle.right_N")
CELLS = tuple(f"muscle.{n}" for n in range(1, 7))
FAULTS = {
    "crashes": "abort();",
    "hangs": "for (;;) {}",
    "gives no number": "unit->y[1] = 0.0 / 0.0; return;",
}


def table(file, **more):
    """The table of the sound unit, with these changes."""
    names = {"cells": {cell: f"{cell}.duty" for cell in CELLS},
             "outputs": {name: name for name in OUTPUTS}}  # fmt: skip
    return FmuTable(kind="fmu", file=str(file), **names | more)


def with_unit(rigs, unit, more="", key="plant"):
    """An experiment on miga6 whose simulated plant is this unit; as its model, one that idles."""
    rig = rigs / "miga6/rig.toml"
    text = rig.read_text()
    whole = "[plant.arrays.muscle]" if key == "plant" else "[model]"
    start, end = text.index(whole), text.index("[loop]")
    cells = "".join(f'"{cell}" = "{cell}.duty"\n' for cell in CELLS)
    outputs = "".join(f'"{name}" = "{name}"\n' for name in OUTPUTS)
    table = f'[{key}]\nkind = "fmu"\nfile = "{unit}"\n{more}\n[{key}.cells]\n{cells}'
    rig.write_text(f"{text[:start]}{table}[{key}.outputs]\n{outputs}\n{text[end:]}")
    if key == "plant":
        return rigs / "miga6/all_on.toml"
    text, channel = rig.read_text(), "[devices.daq.channels.force]"
    text = text.replace(channel, f'{channel}\nsignal = "muscle.right_N"')
    rig.write_text(text[: text.index("[observer]")])
    idle = rigs / "miga6/idle.toml"
    idle.write_text(
        'rig = "rig.toml"\n[experiment]\nname = "rest"\nduration_s = 0.1\n'
        '[controller]\nkind = "idle"\n'
    )
    return idle
