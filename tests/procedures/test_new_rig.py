"""`hil new rig`: from what is on a bench to a rig that protects its wires."""

import io
import signal
import tomllib
from math import pi
from pathlib import Path

import pytest

from hil.__main__ import main
from hil.errors import ConfigError
from hil.experiment.load import check_rig, load
from hil.experiment.wire_catalogue import shipped, usual_Ohm_per_m, wire
from hil.procedures.new_rig import Answers, Made, answers_of, choices, make
from hil.procedures.questions import QUESTIONS
from hil.systems.array.drawing import drawing

ISSUE = {
    "wire": "flexinol_100_HT", "cells": 4, "against": "spring", "switches": "arduino",
    "measures": "labjack-T7", "cut": "labjack",
}  # fmt: skip
MIGA = {"wire": "miga_nanomuscle_704", "cells": 2, "switches": "board", "cut": "none",
        "measures": "USB-6009"}  # fmt: skip
BENCHES = {
    "four wires on a spring, an Arduino, a LabJack and a plain supply": {},
    "a card whose lines switch": {"switches": "card", "measures": "PCIe-6321", "cut": "card",
                                  "against": "fixed", "cells": 2},
    "hil's board and a supply": {"switches": "board", "measures": "phidget", "cut": "supply",
                                 "against": "weight", "cells": 1, "wire": "flexinol_150_LT"},
    "antagonists and an indicator": {"measures": "indicator", "cut": "supply",
                                     "joined": "antagonists", "against": "fixed", "cells": 2},
    "a topology and FUTEK": {"measures": "futek", "cut": "supply", "against": "fixed", "cells": 3,
                             "joined": "-:2 | &3:1 | &1:-1"},
    "a device of one's own": {"switches": "device", "cells": 1, "against": "fixed"},
    "Miga on a spring": MIGA | {"cells": 1},
    "Miga and a supply": MIGA | {"against": "weight", "cut": "supply", "supply_V": 6.0,
                                 "supply_current_max_A": 2.0},
}  # fmt: skip


def options(answers):
    return [word for key, value in answers.items()
            for word in (f"--{key.replace('_', '-')}", str(value))]  # fmt: skip


@pytest.mark.slow_beyond(3)
@pytest.mark.parametrize("bench", BENCHES)
def test_a_described_bench_becomes_a_rig_whose_wires_are_protected(bench, tmp_path):
    made = make(tmp_path, Answers(**(ISSUE | BENCHES[bench])))
    rig = check_rig(tmp_path / "rig.toml")  # refuses limits that would not protect a wire
    if "miga" in rig.path.read_text():  # whose wire nobody states
        assert rig.tables.guard.cells_on_max == 1
        assert "devices.board.wire" in rig.protection_doubts[0]
    elif rig.protections:
        (board,) = rig.protections
        assert not board.unknown
        assert all(peak.protected for peak in board.peaks())
    else:
        (loop,) = rig.loop_protections
        assert set(loop.budgets) == set(loop.cells)
    assert "miga" in bench.lower() or not [x for x in rig.protection_doubts if "wire" in x]
    assert made.ran[0].startswith("simulated: complete")
    assert load(tmp_path / "first_cell.toml").tables.controller.steps[1].t_s == 1.5


def test_the_limits_of_a_new_rig_are_those_that_hil_board_limits_prints(tmp_path, capsys):
    make(tmp_path, Answers(**ISSUE | {"cells": 1}))
    assert main(["board", "limits", "--from", str(tmp_path / "rig.toml")]) == 0
    printed = tomllib.loads(capsys.readouterr().out)["devices"]["board"]["limits"]
    assert load(tmp_path / "first_cell.toml").boards["board"].limits == printed


@pytest.mark.parametrize(
    ("change", "line"),
    [({"cut": "none"}, "cut = 'none': a transistor that stays on is not noticed, and nothing could "
      "cut its power: add a relay with two contacts in the cells' supply (5 to 15 EUR): "
      "cut = 'labjack'"),
     ({"cut": "none", "measures": "futek"}, "cut = 'supply', a supply that hil commands (from 100"),
     ({"cut": "card"}, "cut = 'card': no NI card measures: measures = 'USB-6009'"),
     ({"switches": "card", "measures": "USB-6009", "cut": "card"}, "a USB-6009 has no watchdog"),
     ({"wire": "flexinol_510_HT"}, "needs 4 A, and a board switches 1.9 A of a cell: take"),
     ({"joined": "antagonists", "cells": 3, "against": "fixed"}, "cells = 3: antagonists have as"),
     ({"joined": "parrallel"}, "joined = 'parrallel': did you mean 'parallel'?"),
     ({"joined": "-:2 &3"}, "or choose parallel, series, antagonists"),
     ({"joined": "-:2 | &3:-1"}, "has 2 cells, and cells = 4"),
     ({"measures": "USB-6090"}, "measures = 'USB-6090': unknown: did you mean 'USB-6009'?"),
     ({"measures": "labjack-U3"}, "choose labjack-T4, labjack-T7, labjack-T8"),
     ({"wire": "flexinol_100_TH"}, "wire = 'flexinol_100_TH': unknown: did you mean"),
     (MIGA | {"switches": "arduino"}, "switches = 'arduino': nobody states the wire of a miga_"),
     (MIGA | {"length_m": 0.2}, "length_m: a miga_nanomuscle_704 is a cell as it is sold"),
     (MIGA | {"cut": "supply"}, "supply_V, supply_current_max_A: missing: nobody states what a"),
     ({"supply_current_max_A": 1e-9}, "supply_current_max_A = 1e-09: a cell takes 0."),
     ({"cells": 1, "capacity_N": 0.02}, "first_cell.toml: one cell on for 1 s does not pass: "),
     ({"supply_V": 12.0}, "no limits protect this wire and let it contract: ")],
)  # fmt: skip
def test_a_bench_that_cannot_be_safe_is_one_line_with_what_is_missing(change, line, tmp_path):
    with pytest.raises(ConfigError) as error:
        make(tmp_path / "mine", Answers(**(ISSUE | change)))
    assert line in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "mine").exists()


@pytest.mark.parametrize(
    ("number", "ends"),
    [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, KeyboardInterrupt), (None, SystemExit)],
)
def test_one_that_is_interrupted_leaves_nothing(number, ends, tmp_path, monkeypatch):
    def interrupted(experiment):
        if number is None:
            raise SystemExit
        signal.raise_signal(number)

    monkeypatch.setattr("hil.procedures.new_rig.simulate", interrupted)
    kept = tmp_path / "kept"
    kept.mkdir()
    for folder in (tmp_path / "a/b", kept):
        with pytest.raises(ends):
            make(folder, Answers(**MIGA))
    assert [*tmp_path.rglob("*")] == [kept]


def test_every_answer_has_its_question_which_names_its_choices():
    assert list(QUESTIONS) == list(Answers.model_fields)
    for key, text in QUESTIONS.items():
        if key in ("against", "switches", "cut"):
            assert all(word in text for word in choices(key)), key


def test_a_rig_that_is_refused_is_not_said_to_lack_limits(tmp_path):
    heavy = Answers(**(ISSUE | {"against": "weight", "mass_kg": 1000.0}))
    with pytest.raises(ConfigError) as error:
        make(tmp_path / "mine", heavy)
    cause = "model.arrays.muscle.activation: its wires would carry "
    assert str(error.value).startswith(f"{tmp_path / 'mine/rig.toml'}: {cause}")


@pytest.mark.slow
def test_options_a_file_and_a_person_s_answers_are_the_same_rig(tmp_path, monkeypatch, capsys):
    one = ISSUE | {"cells": 1}
    assert main(["new", "rig", str(tmp_path / "a"), *options(one)]) == 0
    assert "force:" in capsys.readouterr().out
    (tmp_path / "answers.toml").write_text(
        "\n".join(f"{key} = {value!r}" for key, value in one.items())
    )
    assert (
        main(["new", "rig", str(tmp_path / "b"), "--answers", str(tmp_path / "answers.toml")]) == 0
    )
    typed = [str(one.get(key, "")) for key in Answers.model_fields]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(typed) + "\n"))
    assert main(["new", "rig", str(tmp_path / "c")]) == 0
    a, b, c = ((tmp_path / name / "rig.toml").read_text() for name in "abc")
    assert a == b == c


@pytest.mark.parametrize("answers", [options(ISSUE), []])
def test_a_rig_that_is_there_is_not_overwritten(tmp_path, capsys, monkeypatch, answers):
    """Which a person hears before any question."""
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    (tmp_path / "rig.toml").write_text("mine")
    assert main(["new", "rig", str(tmp_path), *answers]) == 2
    said = capsys.readouterr()
    assert "rig.toml: exists already: choose another folder" in said.err
    assert said.out == ""
    assert (tmp_path / "rig.toml").read_text() == "mine"


@pytest.mark.parametrize(("system", "quoted"), [("linux", "'my rig/b'"), ("win32", '"my rig/b"')])
def test_the_next_commands_can_be_pasted_whatever_the_folder_is_called(system, quoted, monkeypatch):
    monkeypatch.setattr("sys.platform", system)
    made = Made((Path("my rig/a"), Path("my rig/b")), [], [], [], [])
    assert made.as_text().endswith(f"; hil run {quoted}; hil gui {quoted}")


def test_a_missing_answer_names_its_option_and_what_it_may_be():
    with pytest.raises(ConfigError) as error:
        answers_of({"wire": "flexinol_100_HT"}, None, input)
    lines = str(error.value).splitlines()
    assert lines[0] == (
        "hil new rig: --switches: missing: what switches the cells: board (hil's), arduino, card "
        "(lines of an NI card) or device (your own)"
    )
    assert [line.split(": ")[1] for line in lines] == ["--switches", "--measures", "--cut"]
    with pytest.raises(ConfigError, match="--cells: 'four': must be"):
        answers_of({"cells": "four"}, None, input)


def test_a_wire_of_one_s_own_goes_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wires.toml").write_text(
        '[mine]\nalloy = "flexinol_LT"\ndiameter_m = 120e-6\nmartensite_Ohm_per_m = 88.0\n'
        'current_A = 0.27\npull_N = 1.9\nsource = "spool 7"\n'
    )
    assert wire("mine").A_s_C == 68.0
    make(tmp_path / "rig", Answers(**ISSUE | {"wire": "mine", "cells": 1}))
    (line,) = (x for x in (tmp_path / "rig/rig.toml").read_text().splitlines()
               if x.startswith("martensite_Ohm_per_m"))  # fmt: skip
    assert line.split() == ["martensite_Ohm_per_m", "=", "88", "#", "spool", "7"]
    (tmp_path / "wires.toml").write_text("[mine]\ndiameter_m = 0.12\n")
    with pytest.raises(ConfigError, match=r"^wires.toml: mine\."):
        wire("mine")


@pytest.mark.parametrize(
    ("text", "said"),
    [("actuators = 5", r"^wires.toml: \[actuators\]: give tables, such as \[actuators.mine\]"),
     ("[actuators]\nmine = 3", r"^wires.toml: \[actuators\]: mine: "),
     ('[actuators.mine]\nsource = "x"\npull_N = 3.0', r"^wires.toml: \[actuators\]: mine.mass_kg"),
     ("alloys = 5", r"^wires.toml: alloys: give tables")],
)  # fmt: skip
def test_a_wrong_file_of_wires_is_one_line(text, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wires.toml").write_text(text)
    with pytest.raises(ConfigError, match=said):
        wire("mine")


def test_the_shipped_wires_agree_with_the_maker_s_stress_and_one_resistivity():
    # Dynalloy's pull forces are at 172 MPa; F1140 prints 80 to 100 microOhm cm, and
    # the diameter of the thinnest is rounded by a tenth.
    for name, one in shipped().items():
        assert one.area_m2 == pytest.approx(pi / 4.0 * one.diameter_m**2)
        assert one.pull_N / one.area_m2 == pytest.approx(172e6, rel=0.05), name
        microohm_cm = 1e8 * one.martensite_Ohm_per_m * one.area_m2
        assert 69.0 < microohm_cm < 106.0, name


def test_a_resistance_between_two_shipped_wires_goes_with_the_area():
    expected, nearest = usual_Ohm_per_m(136e-6)
    assert nearest == "flexinol_130_HT"
    assert expected == pytest.approx(126.0 * (100.0 / 136.0) ** 2, rel=0.03)
    assert usual_Ohm_per_m(1020e-6)[0] == pytest.approx(4.3 / 4.0, rel=1e-3)


def test_a_drawing_shows_every_cell_between_its_ends():
    free = {"support": "free", "mass_kg": 0.02, "spring_N_per_m": 128.0}
    fixed = {"support": "fixed"}
    lines = drawing({"m": ("load", "hook", "-:2 | &3:-1")}, {"load": free, "hook": fixed})
    assert lines == [
        "load +==[m.1]==+ hook",
        "     +==[m.2]==+",
        r"load: free, 20 g, a spring /\/\/ of 128 N/m to the frame",
        "hook: fixed",
    ]
    lines = drawing({"m": ("a", "b", "-:1 | &1:1 | &1:-1")}, {})
    assert lines == ["a==[m.1]==m2==[m.2]==b"]
    lines = drawing({"m": ("a", "b", "-:2 | &3:1 | &1:-1")}, {})
    assert lines == ["a +==[m.1]==+ m2", "  +==[m.2]==+", "m2 -==[m.3]==- b"]
