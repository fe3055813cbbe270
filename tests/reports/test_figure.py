"""Figures for papers show what was recorded, at the width of a column, with fonts inside."""

import re
import zlib
from itertools import pairwise

import numpy as np
import pytest
import xarray as xr
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import same_color, to_rgb
from matplotlib.figure import Figure

import hil
from hil.__main__ import main
from hil.errors import ConfigError
from hil.pages.style import CELL, MEASURED, MODEL
from hil.reports.cells import draw_cells

BAD = [
    (["--what", "forse"], "--what forse: run has none: did you mean 'force'?"),
    (["--what", "force,cells,force"], "--what force,cells,force: force twice: give it once"),
    (["--what", ","], "--what: empty: choose force, residual, cells"),
    (["--what", "muscle.1.curent_A"], "--what muscle.1.curent_A: run has none"),
    (["--style", "iee"], "--style iee: no such style or file: did you mean 'ieee'?"),
    (["--width", "88"], "--width 88: give a width from 20 mm to 1 m"),
    (["--width", "5km"], "--width 5km: give a width"),
    (["--width", "1mm"], "--width 1mm: give a width"),
    (["--from", "50"], "run: has no row from 50 to inf s: it is 0 to "),
    (["--from", "2", "--to", "1"], "--to 1: is not after --from 2"),
    (["--out", "figure.jpg"], "--out figure.jpg: no format of a figure: give .pdf, .svg"),
]


@pytest.fixture(scope="module")
def simulated(configs):
    return hil.simulate(configs / "miga6/pid.toml", sets=("experiment.duration_s=1.5",))


@pytest.fixture
def run(simulated):
    return simulated.copy(deep=True)


def line(axis, label):
    [found] = [one for one in axis.get_lines() if one.get_label() == label]
    return found


def test_its_curves_are_the_columns_of_the_recording_in_si_units(run):
    force, residual, cells = hil.figure(run).axes
    t_s = run.t_s.values
    for label, column, colour in (
        ("measured", "force_measured_N", MEASURED),
        ("simulated", "force_model_N", MODEL),
    ):
        np.testing.assert_array_equal(line(force, label).get_xdata(), t_s)
        np.testing.assert_array_equal(line(force, label).get_ydata(), run[column].values)
        assert same_color(line(force, label).get_color(), colour)
    set_point_N = line(force, "set point").get_ydata()
    assert set_point_N.tolist() == [0.0] * 500 + [0.6] * 1000
    shown_N = line(residual, "measured − simulated").get_ydata()
    np.testing.assert_array_equal(shown_N, (run.force_measured_N - run.force_model_N).values)
    assert [axis.get_ylabel() for axis in (force, residual, cells)] == [
        "force [N]", "residual [N]", "cells on"
    ]  # fmt: skip
    assert cells.get_figure().get_supxlabel() == "time [s]"
    assert "SIMULATED" in [text.get_text() for text in force.figure.texts]


def test_a_cell_is_filled_while_it_was_reported_on(run):
    cells = hil.figure(run, what=["cells"]).axes[0]
    spans = {}
    for bars in cells.collections:
        for path in bars.get_paths():
            x, y = path.vertices.T
            spans.setdefault(round(y.mean()), []).append((x.min(), x.max()))
    on = run.cells_reported.values == 1
    assert sorted(spans) == [cell + 1 for cell in range(6) if on[:, cell].any()]
    for cell, [(start_s, end_s)] in spans.items():
        at_s = run.t_s.values[on[:, cell - 1]]
        assert start_s == pytest.approx(at_s[0], abs=1e-9)
        assert end_s == pytest.approx(at_s[-1], abs=0.0011)


def test_of_modulated_cells_the_duties_are_shown(configs):
    run = hil.simulate(configs / "wires4/modulate.toml", sets=("experiment.duration_s=1.5",))
    duty = run.cells_duty.values
    cells = hil.figure(run, what=["cells"]).axes[0]
    [image] = cells.collections
    shown = image.get_array().reshape(4, -1)
    np.testing.assert_allclose(shown.mean(axis=1), duty.mean(axis=0), atol=0.002)
    assert 0.0 < shown.max() <= 1.0
    assert cells.get_ylabel() == "duty of cells"
    over = hil.figure(run, run, overlay=True, what=["cells"]).axes[0]
    assert over.get_ylabel() == "sum of duties"
    assert over.get_lines()[0].get_ydata().tolist() == duty.sum(axis=1).tolist()


def test_between_the_readings_of_a_slow_device_the_curve_goes_on(run):
    name = "force.raw_V"
    slow = run.copy(deep=True)
    slow[name].values[np.arange(len(run.t_s)) % 4 != 0] = np.nan
    axis = hil.figure(slow, what=[name]).axes[0]
    assert len(line(axis, name).get_xdata()) == 375
    assert axis.get_ylabel() == "force.raw_V [V]"


def test_runs_are_laid_over_each_other_or_stand_side_by_side(run, configs):
    other = hil.simulate(
        configs / "miga6/pid.toml", sets=("experiment.duration_s=1.5", "controller.k_p=0.2")
    )
    over = hil.figure(run, other, overlay=True, what=["force", "cells"])
    force, cells = over.axes
    measured = [one for one in force.get_lines() if one.get_label() != "set point"]
    assert len(measured) == 2
    for shown, recorded in zip(measured, (run, other), strict=True):
        np.testing.assert_array_equal(shown.get_ydata(), recorded.force_measured_N.values)
    assert not same_color(measured[0].get_color(), measured[1].get_color())
    n_on = (other.cells_reported.values == 1).sum(axis=1)
    assert cells.get_lines()[1].get_ydata().tolist() == n_on.tolist()
    beside = hil.figure(run, other, what=["force"]).axes
    assert len(beside) == 2
    assert beside[0].get_ylim() == beside[1].get_ylim()


def texts_beside_each_other(drawn, texts):
    """Whether no text reaches into the next, or out of the figure."""
    renderer = FigureCanvasAgg(drawn).get_renderer()
    drawn.draw(renderer)
    ends = [text.get_window_extent(renderer) for text in texts]
    return all(a.x1 < b.x0 for a, b in pairwise(ends)) and ends[-1].x1 <= drawn.bbox.x1


@pytest.mark.parametrize("overlay", [False, True])
def test_names_of_files_fit_beside_each_other(run, overlay, monkeypatch):
    names = [f"miga6-pid-20261128T0759{i}9.689909Z" for i in range(3)]
    monkeypatch.setattr("hil.reports.figure.names_of", lambda runs: names)
    drawn = hil.figure(run, run, run, overlay=overlay)
    [legend] = drawn.legends
    titles = [axis.title for axis in drawn.axes[:3]] if not overlay else legend.get_texts()[::2]
    assert texts_beside_each_other(drawn, titles)
    for axis in drawn.axes:  # not so high that figures of a panel run into each other
        shown = [label for label in axis.get_yticklabels() if label.get_text()]
        boxes = [label.get_window_extent() for label in shown]
        assert all(not a.overlaps(b) for a, b in pairwise(boxes))


def test_only_the_part_that_is_asked_for_is_shown(run):
    axis = hil.figure(run, what=["force"], from_s=0.4, to_s=0.6).axes[0]
    t_s = line(axis, "measured").get_xdata()
    assert (t_s[0], t_s[-1]) == pytest.approx((0.4, 0.6))


def test_a_pdf_has_its_width_its_fonts_and_the_command_that_makes_it(all_on, tmp_path, monkeypatch):
    out = tmp_path / "figure.pdf"
    words = ["figure", str(all_on), "--out", str(out), "--width", "3.5in"]
    monkeypatch.setattr("sys.argv", ["hil", *words])
    assert main(words) == 0
    data = out.read_bytes()
    box = re.search(rb"/MediaBox \[\s*0 0 ([\d.]+) ", data)
    assert float(box[1]) == pytest.approx(3.5 * 72.0)
    assert b"/FontFile2" in data
    assert b"/Type3" not in data
    streams = [
        zlib.decompress(part) for part in re.findall(rb"stream\n(x.*?)\nendstream", data, re.S)
    ]
    assert any(b" re\n" in part or b" l\n" in part for part in streams)  # lines, not an image
    assert f"(hil figure {all_on} ".encode() in data


def test_an_svg_and_a_png_name_their_command_too(all_on, tmp_path, monkeypatch):
    for ending in ("svg", "png"):
        out = tmp_path / f"figure.{ending}"
        words = ["figure", str(all_on), "--out", str(out), "--what", "force"]
        monkeypatch.setattr("sys.argv", ["hil", *words])
        assert main(words) == 0
        assert b"hil figure" in out.read_bytes()


@pytest.mark.parametrize("style", ["ieee", "nature", "bmh", "own.mplstyle"])
def test_styles_of_journals_of_matplotlib_and_of_a_file_change_the_look(
    run, style, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.mplstyle").write_text("font.size: 5\n")
    plain, styled = hil.figure(run), hil.figure(run, style=style)
    sizes = [figure.axes[0].yaxis.label.get_size() for figure in (plain, styled)]
    grids = [figure.axes[0].xaxis.get_gridlines()[0].get_visible() for figure in (plain, styled)]
    spines = [figure.axes[0].spines["top"].get_visible() for figure in (plain, styled)]
    assert sizes[0] != sizes[1] or grids[0] != grids[1] or spines[0] != spines[1]


@pytest.mark.parametrize(("words", "said"), BAD)
def test_what_cannot_be_drawn_is_refused_in_one_line(
    all_on, tmp_path, monkeypatch, capsys, words, said
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.h5").symlink_to(all_on)
    assert main(["figure", "run.h5", "--out", "figure.pdf", *words]) == 2
    [told] = capsys.readouterr().err.splitlines()
    assert told.startswith(said)
    assert [path.name for path in tmp_path.iterdir()] == ["run.h5"]


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"text.usetex: True\n"])
def test_a_style_that_matplotlib_cannot_use_is_refused_in_one_line(
    all_on, tmp_path, monkeypatch, capsys, content
):
    monkeypatch.setenv("PATH", "")
    style, out = tmp_path / "own.mplstyle", tmp_path / "figure.pdf"
    style.write_bytes(content)
    assert main(["figure", str(all_on), "--out", str(out), "--style", str(style)]) == 2
    assert f"--style {style}: " in capsys.readouterr().err.splitlines()[-1]
    assert not out.exists()


def test_pgf_without_latex_is_refused_with_another_choice(all_on, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("hil.reports.figure.shutil.which", lambda name: None)
    out = tmp_path / "figure.pgf"
    assert main(["figure", str(all_on), "--out", str(out)]) == 2
    assert "needs xelatex of LaTeX: install it, or give a .pdf" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.slow
def test_of_a_thousand_cells_that_are_on_none_looks_half_on():
    run = xr.Dataset(
        {"cells_reported": (("tick", "cell"), np.ones((10, 1152), np.uint8))},
        coords={"t_s": ("tick", np.arange(10.0))},
    )
    figure = Figure(figsize=(6.0, 2.0))
    axis = figure.add_axes((0.1, 0.2, 0.8, 0.7))
    draw_cells(axis, run)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    box = axis.get_window_extent()
    picture = np.asarray(canvas.buffer_rgba())[::-1, :, :3]
    inside = picture[int(box.y0) + 3 : int(box.y1) - 3, int(box.x0) + 3 : int(box.x1) - 3]
    np.testing.assert_array_equal(np.unique(inside.reshape(-1, 3), axis=0), [rgb(CELL)])


def rgb(colour):
    return [round(255 * part) for part in to_rgb(colour)]


def test_a_program_may_name_one_panel_and_must_give_a_run(run):
    """A text was taken letter by letter, and no run was a division by zero."""
    assert len(hil.figure(run, what="force").axes) == 1
    with pytest.raises(ConfigError, match="a figure needs a run"):
        hil.figure()
