import io
import time

import pytest
from numba.core import event

from hil.record.progress import QUIET_S, doing, say_compiling


class Terminal(io.StringIO):
    def isatty(self):
        return True


def compile_for(monkeypatch, *took_s):
    """As numba does: an event a function, of which each takes so long."""
    now = 100.0
    for one in took_s:
        monkeypatch.setattr(time, "monotonic", lambda now_s=now: now_s)
        with event.trigger_event("numba:compile"):
            now += one


@pytest.mark.parametrize(
    ("wanted", "terminal", "took_s", "lines"),
    [
        (True, Terminal, (0.6 * QUIET_S,) * 5, 1),
        (True, Terminal, (0.1 * QUIET_S,) * 5, 0),  # over before anybody wonders
        (True, Terminal, (), 0),  # all in the cache
        (True, io.StringIO, (QUIET_S,) * 5, 0),
        (False, Terminal, (QUIET_S,) * 5, 0),
    ],
)
def test_compiling_is_said_once_on_a_terminal_when_it_takes_long(
    monkeypatch, wanted, terminal, took_s, lines
):
    stderr = terminal()
    monkeypatch.setattr("sys.stderr", stderr)
    with say_compiling(wanted):
        compile_for(monkeypatch, *took_s)
    compile_for(monkeypatch, *took_s)  # whatever comes after is not its business
    assert stderr.getvalue().count("\n") == lines


def test_what_a_start_is_at_is_said_at_once_to_a_window_and_late_to_a_terminal(monkeypatch):
    told = []
    monkeypatch.setattr("threading.Timer.start", lambda timer: told.append(timer.interval))
    for wanted, attended, terminal, lines, timers in (
        (False, True, io.StringIO, ["step: self-test"], []), (True, False, Terminal, [], [QUIET_S]),
        (True, False, io.StringIO, [], []), (False, False, Terminal, [], []),
    ):  # fmt: skip
        told.clear()
        monkeypatch.setattr("sys.stderr", said := terminal())
        with doing("self-test", wanted, attended):
            assert (said.getvalue().splitlines(), told) == (lines, timers)
