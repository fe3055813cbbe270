"""Plausible mistakes in a rig and its experiment, each with the line that a person gets."""

import shutil
from pathlib import Path

import pytest

from hil.__main__ import main

ROOT = Path(__file__).resolve().parents[2]
RIG, RUN = "rig.toml", "pulse.toml"
# The place of the mistake in configs/spring_bias, what is there, what is typed, and the line.
MISTAKES = [
    # no TOML
    (RUN, 'name = "a wire', "name = “a wire", "typographic quotes: type straight ones"),
    (RUN, "duration_s = 8.0", "duration_s = 8,0", "a decimal comma: write 8.0"),
    (RUN, "duration_s = 8.0", "duration_s = 8 s", "a number has no unit, the key names it:"),
    (RUN, "duration_s = 8.0", "duration_s = 1,000.0", "a comma in a number: write 1000.0"),
    (RUN, "duration_s = 8.0", "duration_s = 8.", "a number has digits on both sides of its point"),
    (RUN, "duration_s = 8.0", "duration_s 8.0", "a key and its value have = between them"),
    (RUN, "duration_s = 8.0", "duration_s =", "the value is missing"),
    (RUN, "duration_s = 8.0", "duration_s = −8.0", "a typographic minus: type -"),
    (RUN, "duration_s = 8.0", "duration_s = 1e", "digits are missing after the e, as in 1e3"),
    (RUN, "duration_s = 8.0", "duration_s = 0xZZ", "after 0x come digits 0 to 9 and a to f"),
    (RUN, "duration_s = 8.0", "duration s = 8.0", "a key has no spaces: write duration_s"),
    (RUN, "duration_s = 8.0", "duration_s = None", "TOML has no None: leave the key out"),
    (RUN, "duration_s = 8.0", "duration_s = 8.0\nduration_s = 9.0", "is there twice"),
    (RUN, 'kind = "schedule"', "kind = schedule", 'text needs quotes: write "schedule"'),
    (RUN, 'kind = "schedule"', 'kind = "schedule', "a quote is missing at the end of the text"),
    (RUN, 'kind = "schedule"', 'kind = """schedule', 'the text has no end: write """ after it'),
    (RUN, "[controller]", "[controller", "a ] is missing"),
    (RUN, "steps = [{t_s = 0.5, on", "steps = [{t_s = 0.5,\n  on",
     "a table in { } stands on one line"),
    (RUN, "}, {", "} {", "in a list, values have commas between them"),
    (RIG, "port = \"usb:HIL-0007\"", "port = \"C:\\dev\\com3\"", "a backslash in"),
    (RIG, "[devices.daq]", "tare = TRUE\n[devices.daq]", "true and false are written small"),
    # names
    (RUN, 'rig = "rig.toml"', 'rig = "rigg.toml"', "no such file: did you mean"),
    (RUN, 'rig = "rig.toml"', "", "rig: missing: name the file of the rig"),
    (RUN, "duration_s", "duration", "experiment.duration: unknown key: did you mean 'duration_s'?"),
    (RUN, "[experiment]", "[Experiment]", "Experiment: unknown in an experiment's file"),
    (RUN, 'kind = "schedule"', 'kind = "shedule"', "unknown: did you mean 'schedule'?"),
    (RUN, 'on = "all"', 'on = "wire.1"', "controller.steps.0.on"),
    (RUN, 'on = "all"', 'on = ["wire.2"]', "wire.2"),
    (RUN, 'on = "all"', "on = [0]", "0"),
    (RIG, 'kind = "cell_board"', 'kind = "arduino"', "cell_board"),
    (RIG, 'kind = "cell_board"', 'kind = "cellboard"', "did you mean 'cell_board'?"),
    (RIG, 'kind = "nidaq"', 'kind = "NIDAQ"', "nidaq"),
    (RIG, 'cells = ["wire.1"]', 'cells = ["wire1"]', "the model has no cell 'wire1'"),
    (RIG, 'cells = ["wire.1"]', 'cells = ["wire.1", "wire.1"]', "2 gates have cell 'wire.1'"),
    (RIG, "every = 4", "evry = 4", "unknown key: did you mean 'every'?"),
    (RIG, "period_s = 0.001", "period_s = 0.001\nforce_max_N = 1.0", "guard.force_max_N"),
    (RIG, "period_s = 0.001", "period_ms = 1.0", "period_ms: unknown key: did you mean"),
    (RIG, 'signal = "wire.right_N"', 'signal = "wire.rigth_N"', "the model has no such force"),
    (RIG, "[guard.signals.displacement]", "[guard.signals.laser]", "no channel of that name"),
    (RIG, 'from = "load"', 'from = "lod"', "lod"),
    (RIG, 'fingerprint = "-:1 | &1:-1"', 'fingerprint = "-:1 | &2:-1"', "fingerprint"),
    (RIG, 'kind = "hill"', 'kind = "hil"', "hill"),
    # values
    (RUN, "duration_s = 8.0", 'duration_s = "8.0"', "must be a number, without unit"),
    (RUN, "duration_s = 8.0", "duration_s = 0.0", "experiment.duration_s = 0.0: must be"),
    (RUN, "duration_s = 8.0", "duration_s = nan", "finite"),
    (RIG, "period_s = 0.001", "period_s = 1.5", "loop.period_s = 1.5: must be"),
    (RIG, "mass_kg = 0.02 ", "mass_kg = -0.02 ", "model.points.load.mass_kg = -0.02: must be"),
    (RIG, "ambient_C = 23.0", 'ambient_C = "23 C"', "must be a number, without unit"),
    (RIG, "force_max_N = 1.5", "force_max_N = 3.0", "the guard would never trip"),
    (RIG, "cell_on_max_s = 20.0", "cell_on_max_s = 30.0", "board 'board' switches a cell"),
    (RIG, "voltage_V = 2.2 ", "voltage_V = 4.0 ", "exceeds voltage_max_V = 3"),
    (RIG, "voltage_V = 2.2 ", "voltage_V = 2.8 ", "set both to the same value"),
    (RIG, "heat_max_cA2ms = 268474", "heat_max_cA2ms = 900000", "the board could heat the wire of"),
    (RIG, 'terminal = "ai1"', 'terminal = "ai0"', "'ai0': is used by devices.daq.channels."),
    (RIG, "metres_per_V = 0.001", "metres_per_V = 0.0", "must not be 0"),
    # plans that would trip
    (RUN, "{t_s = 4.0, off", "{t_s = 45.0, off", "never comes"),
    (RUN, "[controller]", "[guard]\ncell_on_max_s = 2.0\n[controller]",
     "'wire.1' on for 3.5 s from t_s = 0.5: the run would trip (cell_on_too_long)"),
    (RUN, "[controller]", "[guard]\nforce_max_N = 0.3\n[controller]",
     "controller.steps settles at"),
    (RIG, "on_time_max_ms = 20000", "on_time_max_ms = 3000", "on_time_max_ms"),
    # possible, but unusual
    (RIG, "mass_kg = 0.02 ", "mass_kg = 50.0 ", "unusual: usual is 0.01 to 1 kg"),
    (RIG, "length_m = 0.1", "length_m = 200.0", "unusual: usual is 0.05 to 0.5 m"),
    (RIG, "length_m = 0.1", "length_m = 0.1\ndiameter_m = 150e-6",
     "martensite_Ohm_per_m = 126: unusual for diameter_m = 0.00015: a NiTi wire of 150 um has "
     "about 55 Ohm/m (flexinol_150_HT in wires.toml)"),
    (RIG, "length_m = 0.1", "length_m = 0.02", "through a cold wire of 100 um and 0.02 m"),
    (RIG, "pretension_N = 0.8", "pretension_N = 8.0", "beyond strength_MPa = 1000: lower"),
    (RIG, "austenite_Ohm_per_m = 113.0", "austenite_Ohm_per_m = 11.3", "of the martensite's"),
    (RIG, "spring_N_per_m = 120.0", "spring_N_per_m = 0.12", "unusual: usual is 50 to 5000 N/m"),
]  # fmt: skip


def said_of(mistake, tmp_path, capsys):
    """The exit code of a strict check, and the lines that it prints beside those of a sound rig."""
    file, there, typed, _ = mistake
    folder = tmp_path / "mine"
    shutil.copytree(ROOT / "configs/spring_bias", folder)
    text = (folder / file).read_text(encoding="utf-8")
    assert text.count(there) >= 1, there
    (folder / file).write_text(text.replace(there, typed, 1), encoding="utf-8")
    code = main(["check", str(folder / RUN), "--strict"])
    told = capsys.readouterr()
    warned = [line for line in told.out.splitlines() if line.startswith("warning: ")]
    said = [line for line in told.err.splitlines() if not line.endswith(SOUND)]
    return code, [*said, *warned]


SOUND = ("has no record of a bring-up: run hil board bring-up, then name the record in the rig",
         "has no calibration record")  # fmt: skip


def test_there_are_sixty_mistakes():
    assert len({mistake[2] for mistake in MISTAKES}) >= 60


@pytest.mark.parametrize(
    "mistake", MISTAKES, ids=lambda m: (m[2] or "nothing").splitlines()[0][:40]
)
def test_a_mistake_gets_a_line_that_says_how_to_mend_it(mistake, tmp_path, capsys):
    code, lines = said_of(mistake, tmp_path, capsys)

    assert code == 2
    assert 1 <= len(lines) <= 2
    assert any(mistake[3] in line for line in lines), lines
    for line in lines:
        assert "internal error" not in line
        key = line.split(": ")[1].split(" = ")[0]
        assert f"did you mean '{key}'" not in line
