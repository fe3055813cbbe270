"""A serial indicator, against a far end on a pseudo-terminal that speaks as A&D's manuals say."""

import itertools
import os
import pty
import select
import threading
import time
import tty

import numpy as np
import pytest
import serial
from hypothesis import given
from hypothesis import strategies as st

from hil.devices.indicator import Lines, templates
from hil.devices.indicator_port import SerialIndicator
from hil.devices.sensor_tables import IndicatorTable
from hil.errors import DeviceError

WAIT_S = 120.0
LBF_N = 4.4482216152605  # NIST SP 811
AND = templates()["and"]["pattern"]


def table(port="/dev/null", **more):
    values = {"kind": "serial_indicator", "port": port, "channels": {"force": {"kind": "force"}}}
    return IndicatorTable.model_validate(values | more)


def until(what):
    """Wait until `what()` is true."""
    end_s = time.monotonic() + WAIT_S
    while not what():
        assert time.monotonic() < end_s
        time.sleep(0.005)


class FarEnd:
    """The indicator's side of a line: sends `line` again and again, or one for every request."""

    def __init__(self, line, request=b""):
        self.line, self.request = line, request
        self.master, slave = pty.openpty()
        tty.setraw(slave)
        self.port, self._slave = os.ttyname(slave), slave
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._talk, daemon=True)
        self._thread.start()

    def _talk(self):
        while not self._ended.is_set():
            if self.request:
                if not select.select([self.master], [], [], 0.02)[0]:
                    continue
                assert os.read(self.master, 64).endswith(self.request)
            if self.line:
                os.write(self.master, self.line)
            self._ended.wait(0.005)

    def unplug(self):
        self._ended.set()
        self._thread.join(WAIT_S)
        os.close(self._slave)
        os.close(self.master)


@pytest.fixture
def far_end(request):
    made = []

    def make(line, ask=b""):
        made.append(FarEnd(line, ask))
        return made[-1]

    yield make
    for end in made:
        if not end._ended.is_set():
            end.unplug()


# Lines as A&D's manuals print them (AD-4329A, AD-4404), in newtons by g = 9.80665 m/s2.
SPOKEN = [
    (AND, "kg", "ST,GS,+0001.000kg", 9.80665),
    (AND, "kg", "US,NT,-0000.500 kg", -4.903325),
    (AND, "g", "ST,+00123.45  g", 1.21063094),
    (AND, "N", "ST,NT,+0012.340 N", 12.34),
    (AND, "kg", "ST,G ,+01234.5kg", 12106.309425),
    (AND, "kg", "ST,N ,-0001,500 kg", -14.709975),
    (AND, "kg", "ST,NT,+0012.34kg", 121.014061),
    (AND, "kN", "ST,NT,-0.01234kN", -12.34),
    (templates()["number_unit"]["pattern"], "lbf", "2.5 lbf", 11.1205540),
    (templates()["number_unit"]["pattern"], "N", "- 3.5e-1 N", -0.35),
    (templates()["number"]["pattern"], "N", "  7.25", 7.25),
    # MT-SICS Interface Command Set, "S"; manuals of Kern FKB, KFN-TM, KXS-TM, Sauter FH and Mark-10
    # Series 4; the examples of the libraries HX711 and HX711_ADC.
    (templates()["sics"]["pattern"], "g", "S S     100.00 g", 0.980665),
    (templates()["sics"]["pattern"], "g", "S D     -99.97 g", -0.9803708005),
    (templates()["kern"]["pattern"], "g", " M       12.3 g  ", 0.120621795),
    (templates()["kern"]["pattern"], "g", "        -0.5 ", -0.004903325),
    (templates()["kern_platform"]["pattern"], "kg", "ST,GS 1.000KG", 9.80665),
    (templates()["kern_platform"]["pattern"], "lb", "US,GS,+01234.56  lb", 1234.56 * LBF_N),
    (templates()["sauter"]["pattern"], "N", "0011.70", -11.70),
    (templates()["sauter"]["pattern"], "N", "1021.15", 21.15),
    (templates()["mark10"]["pattern"], "lbf", "-18.78 lbF", -18.78 * LBF_N),
    (templates()["hx711"]["pattern"], "g", "Load_cell output val: 123.45", 1.21063094),
    (
        templates()["hx711"]["pattern"],
        "lb",
        "Reading: -1.5 lbs calibration_factor: -7050.0",
        -1.5 * LBF_N,
    ),
    (templates()["hx711"]["pattern"], "N", "one reading:\t12.3\t| average:\t12.5", 12.3),
    (templates()["hx711"]["pattern"], "kg", "0.250 kg", 2.4516625),
]


@pytest.mark.parametrize(("pattern", "unit", "line", "force_N"), SPOKEN)
def test_lines_become_newtons(pattern, unit, line, force_N):
    lines = Lines(pattern, unit)
    lines.take(f"{line}\r\n".encode(), 3.0)
    assert lines.last == (pytest.approx(force_N, rel=1e-8), 3.0)


def test_the_half_of_a_first_line_is_left_out():
    lines = Lines(templates()["number"]["pattern"], "N", begins_whole=False)
    lines.take(b"2.34", 1.0)
    lines.take(b"5\r\n", 1.0)
    assert lines.last is None
    lines.take(b"12.345\r\n", 2.0)
    assert lines.last == (12.345, 2.0)


@pytest.mark.parametrize(
    ("template", "line"),
    [("and", b"OL,GS,+9999999kg"), ("and", b"OL,G ,+    .  kg"), ("and", b"LO,NT,        kg"),
     ("and", b"OL,+9999999E+19"), ("sics", b"S +"), ("sics", b"S -"), ("kern", b"       Error"),
     ("kern_platform", b"OL,GS,+         ")],
)  # fmt: skip
def test_an_overload_is_no_reading(template, line):
    lines = Lines(templates()[template]["pattern"], "kg")
    lines.take(line + b"\r\n", 1.0)
    assert np.isnan(lines.last[0])
    assert lines.fault == ""


def test_answers_without_an_end_of_line_are_cut_by_their_length():
    lines = Lines(templates()["sauter"]["pattern"], "N", length=7)
    for part, force_N in ((b"1021", None), (b".15", 21.15), (b"0011.70", -11.70)):
        lines.take(part, 1.0)
        assert (lines.last and lines.last[0]) == force_N


@pytest.mark.parametrize("end_comes", [True, False])
@pytest.mark.parametrize(
    ("template", "answer", "force_N", "cuts"),
    [("mark10", b"-18.78 N\r\n", -18.78, range(1, 9)),
     ("sauter", b"0011.70", -11.70, range(1, 7))],
)  # fmt: skip
def test_the_end_of_an_answer_that_comes_after_the_next_request_is_no_answer(
    template, answer, force_N, cuts, end_comes
):
    words = templates()[template]
    for cut in cuts:
        lines = Lines(words["pattern"], "N", length=words.get("length", 0))
        lines.take(answer[:cut], 1.0)
        for request in range(4):
            lines.forget()
            late = answer[cut:] if end_comes and not request else b""
            for byte in late + answer:
                lines.take(bytes([byte]), 2.0)
                assert lines.last in (None, (force_N, 2.0))
        assert lines.last == (force_N, 2.0)


class Port:
    """A serial port that gives what has come; to ask it for more would block."""

    def __init__(self, *chunks, answers=False):
        self.chunks, self.answers, self.written = list(chunks), answers, []

    @property
    def in_waiting(self):
        return len(self.chunks[0]) if self.chunks else 0

    def read(self, size):
        assert size <= max(1, self.in_waiting)
        return self.chunks.pop(0) if self.chunks else b""

    def write(self, data):
        self.written.append(data)
        if self.answers:
            self.chunks.append(b"ST,GS,+0002.000 N\r\n")
        raise serial.SerialTimeoutException("Write timeout")  # the thread waited for its turn


def polled(template, *chunks, n=1, **more):
    indicator = SerialIndicator(table(template=template, **more))
    indicator._port = port = Port(*chunks, answers=bool(templates()[template]["request"]))
    for _ in range(n):
        indicator._poll()
    return indicator, port


def test_each_line_that_ends_with_cr_alone_is_taken_as_it_comes():
    indicator, _ = polled("number_unit", b"", b"1.0 N\r", b"2.0 N\r")
    values = []
    for _ in range(3):
        indicator._poll()
        values.append(indicator._last and indicator._last[0][0])
    assert values == [None, 2.0, 2.0]  # the first bytes may be the end of a line


def test_a_write_that_waited_for_its_turn_is_no_fault_while_the_indicator_answers():
    indicator, port = polled("and_request", n=3)
    assert indicator._last[0] == (2.0,)
    assert port.written == [b"Q\r\n"] * 3


def test_a_request_is_repeated_after_its_answer_or_a_wait_and_not_before(monkeypatch):
    now = [10.0]
    monkeypatch.setattr("hil.devices.indicator_port.now_s", lambda: now[0])
    indicator, port = polled("and_request", n=0)
    port.answers = False
    for waited_s, n_written in ((0.0, 1), (0.2, 1), (0.1, 2)):
        now[0] += waited_s
        indicator._poll()
        assert len(port.written) == n_written
    port.chunks.append(b"ST,GS,+0002.000 N\r\n")
    indicator._poll()
    indicator._poll()
    assert len(port.written) == 3


def test_sics_is_told_to_start_and_told_again_when_it_falls_silent(monkeypatch):
    now = [10.0]
    monkeypatch.setattr("hil.devices.indicator_port.now_s", lambda: now[0])
    indicator, port = polled("sics", b"\r\n", b"S S     100.00 g\r\n", n=3, unit="g")
    assert port.written == [b"SIR\r\n"]
    assert indicator._last[0] == (pytest.approx(0.980665),)
    now[0] += 1.5
    indicator._poll()
    assert port.written == [b"SIR\r\n"] * 2


def test_lines_left_out_are_counted_and_said_at_the_first_the_tenth_and_so_on():
    noise = [b"zero set\r\n1.0 N\r\n"] * 12
    indicator, _ = polled("number_unit", b"\r\n", *noise, n=2)
    assert indicator.notes() == [
        "1 lines left out that its template does not describe, the last 'zero set'"
    ]
    assert indicator.notes() == []
    for _ in range(11):
        indicator._poll()
    assert indicator.notes()[0].startswith("12 lines left out")


def test_another_unit_ends_reading_and_is_named():
    lines = Lines(AND, "N")
    lines.take(b"ST,GS,+0001.000kg\r\n", 1.0)
    assert "sends 'kg', not 'N'" in lines.fault
    assert lines.last is None


def test_lines_that_no_template_describes_end_reading_after_some():
    lines = Lines(AND, "N")
    lines.take(b"hello\r\n", 1.0)
    assert lines.fault == ""
    lines.take(b"hello\r\n" * 30, 1.0)
    assert "sends 'hello', which its template does not describe" in lines.fault


def test_bytes_without_an_end_of_line_end_reading():
    lines = Lines(AND, "N")
    lines.take(b"\xfe" * 300, 1.0)
    assert "without an end of line: check its baud" in lines.fault


@given(cuts=st.lists(st.integers(0, 57), max_size=8), noise=st.binary(max_size=12))
def test_half_lines_and_noise_never_change_a_value(cuts, noise):
    data = noise + b"\r\n" + b"ST,GS,+0001.250 N\r\n" * 3
    lines, edges = Lines(AND, "N"), [0, *sorted(cuts), len(data)]
    for a, b in itertools.pairwise(edges):
        lines.take(data[a:b], 1.0)
    assert lines.fault or lines.last == (1.25, 1.0)


@pytest.mark.parametrize("request_", [b"", b"Q\r\n"])
def test_an_indicator_is_read_over_its_port(request_, far_end):
    end = far_end(b"ST,GS,+0002.000kg\r\n", request_)
    template = "and_request" if request_ else "and"
    indicator = SerialIndicator(table(end.port, unit="kg", template=template))
    indicator.open()
    assert indicator.read(0.0) == (pytest.approx(19.6133),)
    assert indicator.age_s >= 0.0
    end.line = b"ST,GS,-0001.000kg\r\n"
    until(lambda: indicator.read(0.0)[0] < 0.0)
    indicator.close()


def test_a_reading_grows_old_when_no_line_comes(far_end):
    end = far_end(b"ST,GS,+0002.000 N\r\n")
    indicator = SerialIndicator(table(end.port))
    indicator.open()
    end.line = b""

    def is_old():
        indicator.read(0.0)
        return indicator.age_s > 0.2

    until(is_old)
    taken_s, age_s = indicator.taken_s, indicator.age_s
    until(lambda: indicator.read(0.0) and indicator.age_s > age_s)
    assert indicator.taken_s == taken_s  # the same sample
    indicator.close()


def test_an_indicator_that_is_unplugged_is_one_line(far_end):
    end = far_end(b"ST,GS,+0002.000 N\r\n")
    indicator = SerialIndicator(table(end.port))
    indicator.open()
    end.unplug()

    def gone():
        try:
            indicator.read(0.0)
        except DeviceError as error:
            return "is gone" in str(error)
        return False

    until(gone)
    indicator.close()


def test_a_port_that_does_not_exist_and_one_that_is_silent_are_one_line(far_end, monkeypatch):
    with pytest.raises(DeviceError, match="/dev/none: cannot be opened"):
        SerialIndicator(table("/dev/none")).open()
    monkeypatch.setattr("hil.devices.latest.FIRST_S", 0.1)
    with pytest.raises(DeviceError, match=r"no reading within 0\.1 s: check port and baud"):
        SerialIndicator(table(far_end(b"").port)).open()


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"template": "mettler"}, "choose and, and_request, .*, sics, sics_request, kern"),
        ({"unit": "stone"}, "choose N, mN"),
        ({"pattern": "(["}, "not a regular expression"),
        ({"pattern": "[0-9]+"}, r"needs a group \(\?P<value>"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused(more, expected):
    with pytest.raises(ValueError, match=expected):
        table(**more)
