"""The page of a bench in a browser: it starts, trips, ends, is cut off, and does not grow."""

import os
import re
import signal
import subprocess
import sys
import time
from urllib.parse import urlsplit

import pytest

from hil.watch.serve import take_over
from watch.chromium import browser

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]
WORDS = re.compile(r"page: (\S+)  \(code to stop the run: (\S+)\)")
STATE = "document.getElementById('state').textContent"
SHOWN = "!document.getElementById('{}').hidden"


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("chromium")) as one:
        yield one


@pytest.fixture
def started(configs, tmp_path):
    """Starts a run with a page; returns its process, address and code."""
    running, ports = [], []

    def start(experiment, *words):
        command = [sys.executable, "-m", "hil", "run", str(configs / experiment), "--page", "0"]
        command += ["--out", str(tmp_path / "run.h5"), "--set", "loop.overrun=tolerate",
                    "--set", "loop.overruns_max=2000", *words]  # fmt: skip
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        running.append(process)
        url, code = next(filter(None, map(WORDS.match, process.stderr))).groups()
        ports.append(urlsplit(url).port)
        return process, url, code

    yield start
    for process in running:
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGINT)
        process.wait()
        process.stderr.close()
    deadline_s = time.monotonic() + 30.0  # until the pages know that their runs are over
    while ports and time.monotonic() < deadline_s:
        ports = [port for port in ports if not take_over(port)]
        time.sleep(0.2)


def test_a_run_is_shown_stops_with_its_code_and_leaves_its_report(tab, started):
    process, url, code = started("wires4/hold.toml", "--set", "experiment.duration_s=60")
    tab.open(url)
    tab.wait(f"{STATE} === 'running'")
    tab.wait("rows && rows.t_s > 2")
    text = tab.text()
    for words in ("wires4: wires held on and let go", "SIMULATED", "measured", "muscle.4",
                  "temperature of a clamp", "supply", "self-test"):  # fmt: skip
        assert words in text
    roles = tab.named()
    for wanted in (("status", ""), ("heading", "Limits used"), ("rowheader", "muscle.2"),
                   ("button", "Stop"), ("main", "")):  # fmt: skip
        assert wanted in roles
    tab.evaluate(f"$('code').value = '{code.lower()}'; $('stop').querySelector('button').click()")
    tab.wait(f"{STATE} === 'aborted'")
    tab.wait(SHOWN.format("picture"))
    assert tab.evaluate("$('picture').naturalWidth") > 800
    assert process.wait() == 130
    tab.open(tab.evaluate("$('report').href"))
    assert "wires held on and let go" in tab.text()
    assert tab.said == []


def test_a_trip_is_told_with_who_how_much_and_which_limit(tab, started, tmp_path):
    faults = tmp_path / "faults.toml"
    faults.write_text('[[fault]]\nkind = "sensor_stuck"\nat_s = 4.0\nfor_s = 0.3\n')
    _, url, _ = started("miga6/all_on.toml", "--inject", str(faults), "--duration", "6")
    tab.open(url, still=True)
    tab.wait(SHOWN.format("faults"))
    assert "sensor_frozen: force at" in tab.evaluate("$('faults').innerText")
    assert ("alert", "") in tab.named()
    tab.wait(f"{STATE} === 'tripped'")


def test_old_data_are_red_whether_the_loop_stands_still_or_the_network_is_cut(tab, started):
    process, url, _ = started("miga6/all_on.toml", "--duration", "120")
    tab.open(url)
    tab.wait("rows && rows.t_s > 1")
    red = "$('age').className === 'old' && /data \\d.* s old/.test($('age').textContent)"
    assert not tab.evaluate(red)
    process.send_signal(signal.SIGSTOP)
    tab.wait(red)
    assert tab.evaluate("$('gone').textContent") == "no new data"
    process.send_signal(signal.SIGCONT)
    tab.wait("$('age').className === ''")
    tab.evaluate("socket.close()")
    tab.cut_off(True)
    tab.wait(f"{red} && $('age').textContent.startsWith('not connected')")
    tab.cut_off(False)
    tab.wait("$('age').className === '' && socket.readyState === 1")
    times = tab.evaluate("charts[0].data[0]")
    assert times == sorted(set(times))


def test_a_program_that_was_killed_is_told(tab, started):
    process, url, _ = started("miga6/all_on.toml", "--duration", "120")
    tab.open(url)
    tab.wait("rows && rows.t_s > 0.5")
    os.kill(process.pid, signal.SIGKILL)
    tab.wait("$('gone').textContent === 'the program was killed'")
    tab.wait(f"{STATE} === 'recovered'")


MARKUP = "<img src=x onerror='document.body.dataset.harm=1'><script>alert(1)</script>"


def test_markup_in_a_name_or_a_note_is_text(tab, started):
    _, url, _ = started("miga6/all_on.toml", "--duration", "60",
                        "--set", f'experiment.name="{MARKUP}"')  # fmt: skip
    tab.open(url)
    tab.wait("rows && rows.t_s > 0")
    tab.evaluate("socket.onmessage = null")  # late ticks are events: they would take its place
    tab.evaluate(f'on_events({{id: run.id, events: [[0, "fault", "guard", `{MARKUP}`]]}})')
    texts = f"name: `{MARKUP}`, asked: `{MARKUP}`, why: `{MARKUP}`"
    counts = "count: 2, complete: 1, settled: 1, now: 2, left_s: 3"
    tab.evaluate(f"on_bench({{campaign: {{{texts}, {counts}}}, fatigue: null}})")
    assert tab.evaluate("$('title').textContent").endswith(MARKUP)
    assert MARKUP in tab.evaluate("$('faults').innerText")
    assert tab.evaluate("document.querySelectorAll('main img[src], main script').length") == 0
    assert not tab.evaluate("'harm' in document.body.dataset")
    tab.evaluate("const s = document.createElement('script'); s.textContent = "
                 "'document.body.dataset.harm = 1'; document.body.append(s)")  # fmt: skip
    assert not tab.evaluate("'harm' in document.body.dataset"), "the page's policy lets it run"


def test_a_device_that_is_read_now_and_then_shows_its_last_reading(tab, tmp_path):
    """A dash stood there for most of the time; so it does after two seconds without a reading."""
    command = [sys.executable, "-m", "hil", "watch", str(tmp_path), "--page", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        tab.open(next(filter(None, map(WORDS.match, process.stderr)))[1])
        tab.wait(f"{STATE} === 'no run in progress'")
        tab.evaluate(
            "on_run({id: 'a', title: '', cells: [], wires: [], devices: [], limits: [],"
            " signals: [{name: 'force', unit: 'N', band: 0}]})"
        )
        shown = []
        for t, y, s in (("0, 1", "2, null", "3, 5"), ("2.5, 3.1", "null, null", "7, 8")):
            tab.evaluate(f"charts[0].add([[{t}], [{y}], [{s}], []], false); charts[0].draw()")
            shown.append(tab.evaluate("charts[0].figures.map(one => one.textContent)"))
        process.send_signal(signal.SIGINT)
    assert shown == [["2 N", "3 N", "-1 N"], ["–", "8 N", "–"]]


@pytest.mark.parametrize(("width", "height"), [(360, 740), (1280, 800), (3840, 2160)])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_is_cut_off_at_any_width_and_text_has_contrast(tab, started, width, height, dark):
    """WCAG 2.2: 4.5 to 1 of text, targets of 24 px."""
    _, url, _ = started("wires4/hold.toml", "--set", "experiment.duration_s=60")
    tab.open(url, width, height, dark=dark)
    tab.wait("rows && rows.t_s > 1")
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    low = tab.evaluate("""(() => {
      const rgb = c => c.match(/[\\d.]+/g).map(Number);
      const light = c => rgb(c).slice(0, 3).map(v => v / 255).map(v =>
        v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
      const behind = e => { const c = getComputedStyle(e).backgroundColor;
        return rgb(c)[3] === 0 && e.parentElement ? behind(e.parentElement) : c; };
      return [...document.querySelectorAll("body *")].filter(e => e.checkVisibility() &&
        [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())).map(e => {
          const a = light(getComputedStyle(e).color), b = light(behind(e));
          return [(Math.max(a, b) + .05) / (Math.min(a, b) + .05), e.outerHTML.slice(0, 80)];
        }).filter(([ratio]) => ratio < 4.5);
    })()""")
    assert low == []
    small = tab.evaluate(
        "[...document.querySelectorAll('button, select, input')].filter("
        "e => e.checkVisibility() && e.getBoundingClientRect().height < 24).length"
    )
    assert small == 0


def test_everything_is_reached_by_the_keyboard(tab, started):
    _, url, _ = started("miga6/all_on.toml", "--duration", "60")
    tab.open(url)
    tab.wait("rows && rows.t_s > 0.5")
    reached = []
    for _ in range(6):
        tab.key("Tab")
        reached.append(tab.evaluate("document.activeElement.id || document.activeElement.tagName"))
        assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    assert {"span", "theme", "code", "OL", "BUTTON", "A"} <= set(reached)


def test_a_day_on_the_page_takes_no_more_memory_than_an_hour(tab, started):
    """24 h at 20 frames a second, as quickly as the page takes them."""
    _, url, _ = started("wires4/hold.toml", "--set", "experiment.duration_s=60")
    tab.open(url)
    tab.wait("rows && rows.t_s > 1")
    tab.evaluate("socket.onmessage = null; var base_s = charts[0].data[0].at(-1); var last = rows")
    sizes = []
    for hour in range(24):
        tab.evaluate(f"""for (let i = 0; i < 72000; i++) {{
          const t = base_s + 3600 * {hour} + .05 * i, x = Math.sin(t);
          on_rows({{...last, history: false, t_s: t, n: 50, points: [[[t + .01, t + .02, t + .05],
            [x, x + .1, x], [x, x, x], [null, null, null]]]}});
        }} draw()""")
        sizes.append(tab.heap_B())
    assert max(sizes[12:]) < 1.1 * max(sizes[1:12])
    assert tab.evaluate("charts[0].data[0].length") < 60_000
    assert max(sizes) < 60e6
