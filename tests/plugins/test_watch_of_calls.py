"""The handler of the alarm is restored, whatever it was before."""

import subprocess
import sys

import pytest

AROUND = """
import signal
from hil.loop.requests import Stop
from hil.platform import alarm
from hil.plugins.code import watched
from hil.runs import opened

alarm.NUMBER = signal.SIGABRT  # as on Windows; its handler is faulthandler's, in C
opened.STOP_SIGNALS = (signal.SIGABRT,)
assert signal.getsignal(signal.SIGABRT) is None
with {block}:
    pass
assert signal.getsignal(signal.SIGABRT) == signal.SIG_DFL
"""


@pytest.mark.slow
@pytest.mark.parametrize("block", ["watched()", "opened.stop_on_signals(Stop())"])
def test_a_signal_that_had_a_handler_in_c_is_let_go(block):
    command = [sys.executable, "-X", "faulthandler", "-c", AROUND.format(block=block)]
    subprocess.run(command, check=True)
