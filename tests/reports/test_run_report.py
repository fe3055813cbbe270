import itertools
import json
import re
import shutil
import struct
from datetime import date

import h5py
import numpy as np
import pytest
from matplotlib.text import Text

import hil
from hil.__main__ import main
from hil.calibration.write import values_table, write_record
from hil.loop.channels import known_before
from hil.pages.style import styled_figure
from hil.procedures.recalibrate import recalibrate
from hil.record import summary
from hil.record.layout import LIBVER
from hil.reports import run_report
from hil.runs import session
from hil.runs.figures import figures_of
from hil.runs.plan import Plan
from hil.runs.recording import Output
from hil.validation.band import band_of


def report_of(path, folder, capsys):
    """Write the report by the command; size of the figure and text of the page."""
    assert main(["report", str(path), "--out", str(folder), "--json"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    written = json.loads(said.out)["reports"][0]
    with open(written["figure"], "rb") as file:
        head = file.read(24)
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    with open(written["page"], encoding="utf-8") as file:
        return struct.unpack(">II", head[16:24]), file.read()


def test_a_report_has_its_figure_its_events_and_says_simulated(all_on, tmp_path, capsys):
    (width, height), page = report_of(all_on, tmp_path / "deep/folder", capsys)
    assert min(width, height) > 600
    assert '<span class="simulated">SIMULATED</span>' in page
    assert "all on for three seconds" in page
    assert "started on the virtual clock" in page
    assert "ended: complete" in page
    assert "data:image/png;base64," in page
    assert "more than sensor noise" in page
    assert "k_se_N_per_m = 386.52" in page
    assert 'src="http' not in page


def test_two_runs_of_one_name_do_not_share_a_page(all_on, tmp_path, capsys):
    runs = [tmp_path / "first/run.h5", tmp_path / "second/run.h5"]
    for run in runs:
        run.parent.mkdir()
        shutil.copy(all_on, run)
    assert main(["report", *map(str, runs), "--out", str(tmp_path / "pages")]) == 2
    assert f"{runs[1]}: its page would replace that of {runs[0]}" in capsys.readouterr().err
    assert not (tmp_path / "pages").exists()


def test_the_figure_itself_says_simulated(all_on):
    from hil.reports.run_report import draw

    run = hil.open_run(all_on)
    band = band_of(all_on, run)
    figure = draw(run, band)
    texts = [text.get_text() for text in (*figure.texts, *figure.axes[0].texts)]
    assert texts.count("SIMULATED") == 2
    run.attrs["simulated"] = ""
    figure = draw(run, band)
    assert "SIMULATED" not in [t.get_text() for t in (*figure.texts, *figure.axes[0].texts)]


def test_the_figures_curves_are_the_recording(all_on):
    from hil.reports.run_report import draw

    run = hil.open_run(all_on)
    lines = {line.get_label(): line for line in draw(run, band_of(all_on, run)).axes[0].lines}
    for label, name in (("measured", "force_measured_N"), ("simulated (twin)", "force_model_N")):
        x, y = lines[label].get_data()
        ticks = np.rint(np.asarray(x) / 0.001).astype(int)
        np.testing.assert_array_equal(y, run[name].values[ticks])
        assert np.max(y) == run[name].values.max()


def test_no_legend_covers_a_curve_or_the_figures_of_the_title(configs, tmp_path):
    from hil.reports.run_report import draw

    config = hil.load(configs / "miga6/pid.toml", ("experiment.duration_s=1.0",))
    path = hil.run(config, out=tmp_path / "run.h5")
    figure = draw(hil.open_run(path), band_of(path, hil.open_run(path)))
    figure.canvas.draw()
    legends = [axis.get_legend() for axis in figure.axes if axis.get_legend()]
    assert len(legends) == 2
    for legend in legends:
        place = legend.get_window_extent().padded(-0.5)  # it may touch
        for axis in figure.axes:
            assert not place.overlaps(axis.get_window_extent())
            for text in axis.findobj(Text):
                inside = text.get_text() and text not in legend.get_texts()
                assert not (inside and place.overlaps(text.get_window_extent())), text


def test_a_tripped_run_is_reported_with_its_fault(configs, tmp_path, capsys):
    out = tmp_path / "run.h5"
    experiment = str(configs / "miga6/all_on.toml")
    words = ["run", experiment, "--out", str(out), "--set", "guard.force_max_N=1.0", "--report"]
    assert main(words) == 3
    said = capsys.readouterr().out
    assert "force_high" in said
    for what, ending in (("figure: ", ".png"), ("page:   ", ".html")):
        assert f"{what}{out.with_suffix(ending)}" in said
        assert out.with_suffix(ending).is_file()
    page = out.with_suffix(".html").read_text(encoding="utf-8")
    assert "Tripped:" in page
    assert "force_high" in page
    said = r"([\d.]+) s: force_high: force ([\d.]+) N, limit 1 N \(guard\.force_max_N\)"
    (at_s, force_N), *_ = re.findall(said, page)
    run = hil.open_run(out)
    tripped = np.flatnonzero(run.fault_bits.values)[0]
    assert float(at_s) == pytest.approx(run.t_s.values[tripped])
    assert float(force_N) == pytest.approx(run.force_measured_N.values[tripped], rel=1e-3)
    assert '<span class="fault">tripped</span>' in page


@pytest.mark.slow
def test_a_run_cut_off_is_reported_with_its_figures(all_on, tmp_path, capsys):
    out = shutil.copy(all_on, tmp_path / "cut.h5")
    with h5py.File(out, "r+", libver=LIBVER) as file:
        for column in file["ticks"].values():
            column.resize(2500, axis=0)
        file.attrs["outcome"] = "running"
        file.attrs["summary"] = "{}"
    for outcome in ("running", "recovered"):
        _, page = report_of(out, tmp_path, capsys)
        assert f'<span class="fault">{outcome}</span>' in page
        assert "SIMULATED" in page
        assert "no readings" not in page
        assert "VAF" in page
        assert main(["recover", str(out)]) == 0
        capsys.readouterr()


@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("n_ticks", [1, 2, 3, 10])
def test_a_run_of_few_ticks_is_reported(configs, tmp_path, n_ticks, capsys):
    out = tmp_path / "run.h5"
    words = ["run", str(configs / "miga6/all_on.toml"), "--out", str(out)]
    assert main([*words, "--duration", str(n_ticks * 0.001)]) == 0
    capsys.readouterr()
    assert len(hil.open_run(out).t_s) == n_ticks
    _, page = report_of(out, tmp_path, capsys)
    assert "SIMULATED" in page


@pytest.mark.slow
def test_a_run_with_lost_readings_is_reported(configs, tmp_path, capsys):
    out = tmp_path / "run.h5"
    lost = "devices.daq.channels.force.sim.reading_lost_probability"
    words = ["run", str(configs / "miga6/pid.toml"), "--out", str(out), "--duration", "1"]
    assert main([*words, "--set", f"{lost}=0.4"]) == 0
    assert main([*words, "--force", "--set", f"{lost}=1.0"]) == 3
    capsys.readouterr()
    _, page = report_of(out, tmp_path, capsys)
    assert "reading_stale" in page


def test_a_name_that_looks_like_markup_is_shown_as_text(configs, tmp_path, capsys):
    out = tmp_path / "run.h5"
    words = ["run", str(configs / "miga6/all_on.toml"), "--out", str(out), "--duration", "0.01"]
    assert main([*words, "--set", "experiment.name='<script>$x^$ &amp; µ'"]) == 0
    capsys.readouterr()
    _, page = report_of(out, tmp_path, capsys)
    assert "<script>$" not in page
    assert "&lt;script&gt;" in page


@pytest.mark.slow
def test_a_leg_that_stands_still_is_held_in_summary_page_and_table(configs, tmp_path, capsys):
    config = hil.load(configs / "leg/still.toml", ["experiment.duration_s=1.0"])
    result = session.run(Plan(config, seed=0), Output(out=tmp_path / "run.h5"))
    said = summary.as_text(result.path, result.summary)
    assert "height: VAF not meaningful (constant signal), RMS" in said
    # Of height and angle; no VAF with a figure beside them.
    assert said.count("VAF") == said.count("VAF not meaningful (constant signal)") == 2
    _, page = report_of(result.path, tmp_path, capsys)
    assert page.count('<td class="n">constant</td>') == 2
    assert figures_of(result.path, result.summary, {})["height_vaf"] is None


def test_cells_are_drawn_on_between_the_answers_of_a_board_that_is_asked_every_fourth_tick():
    cells = np.array([[0, 255], [255, 1], [1, 255], [255, 0]], dtype=np.uint8)
    expected = [[0, 255], [0, 1], [1, 1], [1, 0]]
    np.testing.assert_array_equal(known_before(cells), expected)


def test_the_levels_that_cells_can_hold_are_drawn_where_a_set_point_is_followed(configs, all_on):
    """Of miga6's cells there are 22 levels; without a set point none is drawn."""
    run = hil.simulate(str(configs / "miga6/broadcast.toml"), sets=("experiment.duration_s=0.1",))
    config = hil.load(configs / "miga6/broadcast.toml")
    model, forces_N = config.model, np.array([one.force_on_N for one in config.activation()])
    levels_N = json.loads(run.attrs["force_levels_N"])
    subsets = [
        model.force_at("muscle.right_N", model.solve_statics(forces_N * on).tension_N)
        for on in itertools.product((0.0, 1.0), repeat=6)
    ]
    assert levels_N == pytest.approx(sorted({round(level, 9) for level in subsets}), abs=1e-8)
    with styled_figure(4.0, 3.0) as figure:
        axis = figure.subplots()
        axis.set_ylim(-0.1, 1.0)
        run_report._draw_levels(axis, levels_N)
        assert len(axis.lines) == sum(level < 1.0 for level in levels_N)
        assert axis.get_ylim() == (-0.1, 1.0)
    assert "force_levels_N" not in hil.open_run(all_on).attrs


def test_a_channel_is_in_its_unit_and_a_record_of_no_force_has_no_newtons(
    configs, tmp_path, capsys
):
    """A recalibrated one of metres had no report at all."""
    config = hil.load(configs / "slider/steps.toml", ["experiment.duration_s=0.05"])
    path, record = hil.run(config, out=tmp_path / "run.h5"), tmp_path / "card.toml"
    assert "0.02 m/V, zero at 0 V</td><td>no record" in report_of(path, tmp_path, capsys)[1]
    write_record(record, {
        "kind": "daq_channel", "status": "measured", "article": {"name": "ai0", "serial": "D-1"},
        "act": {"by": "A", "date": date(2027, 1, 1), "valid_until": date(2028, 1, 1),
                "method": "shorted"},
        "model": values_table("mean", {"offset_V": 0.005, "noise_rms_V": 0.001},
                              np.diag([1e-10, 1e-10])),
    })  # fmt: skip
    again = recalibrate(path, record).path
    page = report_of(again, tmp_path, capsys)[1]
    assert "0.02 m/V, zero at 0.005 V</td><td>ai0, serial D-1: card@" in page
    assert ", measured, valid until 2028-01-01</td>" in page


def test_the_curves_of_a_card_that_is_read_every_fourth_tick_are_drawn(configs, tmp_path):
    """A line through a reading between rows without one would have no length."""
    sets = ("devices.daq.every=4", "experiment.duration_s=1.0")
    path = hil.run(hil.load(configs / "miga6/all_on.toml", sets), out=tmp_path / "r.h5", seed=1)
    run = hil.open_run(path)
    figure = run_report.draw(run, band_of(path, run))
    lines = [line for axis in figure.axes[:2] for line in axis.lines]
    [measured] = [line for line in lines if line.get_label() == "measured"]
    residual = figure.axes[1].lines[-1]
    for line in (measured, residual):
        assert len(line.get_ydata()) == 250
        assert np.isfinite(line.get_ydata()).all()
