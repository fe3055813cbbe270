"""`hil topologies`: table, JSON, page, cell files, errors."""

import csv
import json
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from hil.__main__ import main
from hil.systems.array.model import fingerprint
from hil.systems.array.topology.page import RANKS
from hil.systems.array.topology.picture import svg

KEYS = [
    "fingerprint", "n_masses", "blocked_force_N", "stroke_m", "n_force_levels",
    "smallest_step_N", "variance_N2", "robustness", "broken_worst", "two_broken_worst",
    "dead_worst", "two_dead_worst",
]  # fmt: skip
PHI = 386.52 / 1386.52
CELL = """
k_pe_N_per_m = 0.0
k_se_N_per_m = 3.0
k_ae_N_per_m = 6.0
b_N_s_per_m = 1.0
kind = "hill"
"""


def listed(capsys, *args):
    assert main(["topologies", *args, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(("n_cells", "count", "count_mirror"), [("4", 9, 7), ("6", 49, 31)])
def test_json_counts_and_lists_every_topology(capsys, n_cells, count, count_mirror):
    found = listed(capsys, n_cells)
    assert list(found) == ["count", "topologies"]
    assert found["count"] == len(found["topologies"]) == count
    assert all(list(row) == KEYS for row in found["topologies"])
    assert listed(capsys, n_cells, "--mirror")["count"] == count_mirror


@pytest.mark.slow
@pytest.mark.parametrize("key", RANKS)
def test_ranks_put_the_best_first(capsys, key):
    by = "broken_worst" if key == "robustness" else key
    values = [row[by] for row in listed(capsys, "6", "--rank", key)["topologies"]]
    rises = key in ("n_masses", "smallest_step_N", "variance_N2")
    assert values == pytest.approx(sorted(values, reverse=not rises), rel=1e-8, abs=1e-9)


def test_robustness_ranks_an_array_that_one_break_stops_behind_all_that_go_on(capsys):
    """Its mean over single breaks shares the second place."""
    rows = listed(capsys, "6", "--rank", "robustness")["topologies"]
    place = {row["fingerprint"]: i for i, row in enumerate(rows)}
    single = "-:1 | &1:5 | &1F:-1"
    row = rows[place[single]]
    means = sorted({round(r["robustness"], 9) for r in rows}, reverse=True)
    assert means.index(round(row["robustness"], 9)) == 1
    assert row["broken_worst"] == 0.0
    goes_on = [i for i, r in enumerate(rows) if r["broken_worst"] > 1e-9]
    assert max(goes_on) < place[single]


def test_equal_ranks_keep_the_order_of_enumeration(capsys):
    order = [row["fingerprint"] for row in listed(capsys, "6")["topologies"]]
    ranked = listed(capsys, "6", "--rank", "n_masses")["topologies"]
    five = [row["fingerprint"] for row in ranked if row["n_masses"] == 5]
    assert five == [text for text in order if text in five]


def test_the_table_shows_every_topology(capsys):
    assert main(["topologies", "4", "--rank", "robustness"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "9 topologies of 4 cells, by robustness, best worst case first"
    shown = [line for line in lines if "-:" in line]
    assert len(shown) == 9
    assert shown[0].split() == ["-:4", "|", "&F:-1", "2", "1.1151", "0.933", "5", "278.8",
                                "278.8", "75.0", "75.0", "50.0", "75.0", "50.0"]  # fmt: skip


def test_the_page_pictures_every_topology_and_the_csv_holds_its_figures(capsys, tmp_path):
    out = tmp_path / "new" / "folder"
    assert main(["topologies", "5", "--mirror", "--out", str(out)]) == 0
    assert str(out / "topologies.html") in capsys.readouterr().out.replace("\n", "")
    page = (out / "topologies.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 12
    assert "12 topologies of 5 cells, mirror images once" in page
    with (out / "topologies.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    expected = listed(capsys, "5", "--mirror")["topologies"]
    assert [{k: str(v) for k, v in row.items()} for row in expected] == rows


def test_a_page_can_be_written_again(tmp_path):
    for _ in range(2):
        assert main(["topologies", "3", "--json", "--out", str(tmp_path)]) == 0


@pytest.mark.parametrize(
    "text",
    [
        "-:1 | &1:-1",
        "-:5 | &1:1 &E:1 &10:3 | &1:1 &6:2 &18:1 | &F:-1",
        "-:7 | &1:1 &2:1 &4:1 &8:1 &10:1 &20:1 &40:1 | &7F:-1",
        "-:14 | &3FFF:-1",
    ],
)
def test_a_picture_has_each_mass_and_cell_within_its_frame(text):
    topology = fingerprint.parse(text)
    picture = ElementTree.fromstring(svg(topology))
    _, _, width, height = map(float, picture.attrib["viewBox"].split())
    dots = [(float(e.attrib["cx"]), float(e.attrib["cy"])) for e in picture if e.tag == "circle"]
    assert len(dots) == topology.n_masses - 2
    assert len(set(dots)) == len(dots)
    assert sum(e.tag == "rect" for e in picture) == 2
    (cells,) = (e.attrib["d"] for e in picture if e.attrib.get("class") == "cell")
    curves = cells.split("M")[1:]
    assert len(set(curves)) == len(curves) == topology.n_cells
    for curve in curves:
        start, bend = curve.split("Q")
        (x0, y0), (xc, yc, x1, y1) = map(float, start.split()), map(float, bend.split())
        assert 0.0 <= x0 < x1 <= width
        # The curve lies in the hull of its ends and passes (y0 + 2 yc + y1)/4 in the middle.
        assert 0.0 <= (y0 + 2.0 * yc + y1) / 4.0 <= height
        assert x0 <= xc <= x1 or topology.n_masses > 2


def test_a_cell_file_replaces_the_miga_cell(capsys, tmp_path):
    # K = 2 N/m, phi F = 2 N: one cell blocked and free.
    for text in (f"force_on_N = 6.0\n{CELL}", f"force_on_N = 6.0\n[cell]\n{CELL}"):
        file = tmp_path / "cell.toml"
        file.write_text(text)
        (row,) = listed(capsys, "1", "--cell", str(file))["topologies"]
        assert row["blocked_force_N"] == pytest.approx(2.0, rel=1e-12)
        assert row["stroke_m"] == pytest.approx(1.0, rel=1e-12)


def test_a_rigs_cell_can_be_taken(capsys, pytestconfig):
    rig = pytestconfig.rootpath / "configs/miga6/rig.toml"
    found = listed(capsys, "3", "--cell", str(rig))["topologies"]
    force_N = found[0]["blocked_force_N"]
    own = listed(capsys, "3")["topologies"]
    for row, miga in zip(found, own, strict=True):
        ratio = row["blocked_force_N"] / miga["blocked_force_N"]
        assert ratio == pytest.approx(force_N / (3.0 * PHI), rel=1e-12)
        assert row["robustness"] == pytest.approx(miga["robustness"], abs=1e-12)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (CELL.replace("3.0", "-3.0"), "cell.k_se_N_per_m"),
        (CELL.replace("k_ae_N_per_m", "k_ea_N_per_m"), "cell.k_ea_N_per_m: unknown key"),
        ('kind = "spring"', "cell.kind"),
        ('kind = "custom"\nKf = 1.0', "static stiffness is 0 N/m"),
        ('kind = "custom"\nKe = 1.0\nKd = [1.0]', "internal states"),
        (f"force_on_N = 0.0\n{CELL}", "force_on_N"),
        ("= 3", "not valid TOML"),
    ],
)
def test_a_bad_cell_file_is_named_with_its_key(capsys, tmp_path, text, said):
    file = tmp_path / "cell.toml"
    file.write_text(text)
    assert main(["topologies", "3", "--cell", str(file)]) == 2
    error = capsys.readouterr().err
    assert str(file) in error
    assert said in error


def test_cells_that_are_not_alike_are_no_cell(capsys, tmp_path):
    file = tmp_path / "model.toml"
    law = 'kind = "hill", k_pe_N_per_m = 1.0, k_se_N_per_m = {}, k_ae_N_per_m = 6.0'
    cells = ", ".join(f"{{ {law.format(k)}, b_N_s_per_m = 1.0 }}" for k in (3.0, 4.0))
    file.write_text(
        '[model]\nkind = "cell_array"\n[model.points.a]\nsupport = "fixed"\n'
        '[model.points.b]\nsupport = "fixed"\n[model.arrays.x]\nfingerprint = "-:2 | &3:-1"\n'
        f'from = "a"\nto = "b"\nmass_kg = 0.1\ncell = [{cells}]\n'
    )
    assert main(["topologies", "3", "--cell", str(file)]) == 2
    assert "its cells differ" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["0"], "1 to 16"),
        (["40"], "1 to 16"),
        (["3", "--cell", "no-such-file.toml"], "no such file"),
        pytest.param(
            ["3", "--scheduler", "tcp://127.0.0.1:9"],
            "--scheduler tcp://127.0.0.1:9",
            marks=pytest.mark.library_leaks("Dask's event loops outlast its clients"),
        ),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(capsys, args, said):
    assert main(["topologies", *args]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("args", [["three"], ["4", "--rank", "beauty"], []])
def test_what_the_parser_refuses_is_exit_code_2(capsys, args):
    with pytest.raises(SystemExit) as stop:
        main(["topologies", *args])
    assert stop.value.code == 2


def test_help_names_every_rank(capsys):
    with pytest.raises(SystemExit):
        main(["topologies", "--help"])
    text = capsys.readouterr().out
    assert all(key in text for key in RANKS)
    assert "example: hil topologies" in text


@pytest.mark.slow
def test_a_few_cells_do_not_load_dask():
    code = (
        "import sys; from hil.__main__ import main; main(['topologies', '6', '--json']); "
        "sys.exit('dask' in sys.modules or 'distributed' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
