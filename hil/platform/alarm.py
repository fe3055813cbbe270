"""An alarm that interrupts the main thread: a timer of the kernel, on Windows a thread.

`NUMBER` is the signal whose handler runs. Windows has no signal for this: there the handler of
SIGABRT runs, between two steps of Python code, up to POLL_S late; code that sleeps is not woken.
"""

import signal
import sys

if sys.platform == "win32":
    import _thread
    import math
    import threading
    import time

    NUMBER = signal.SIGABRT
    POLL_S = 0.02
    _due_s = math.inf
    _thread_started = False

    def set_s(after_s: float) -> None:
        """Ring once, this much later; 0 for never."""
        global _due_s, _thread_started
        _due_s = time.monotonic() + after_s if after_s else math.inf
        if not _thread_started:
            _thread_started = True
            threading.Thread(target=_ring, daemon=True).start()

    def _ring() -> None:
        global _due_s
        while True:
            time.sleep(POLL_S)
            if time.monotonic() >= _due_s:
                _due_s = math.inf
                _thread.interrupt_main(NUMBER)

else:
    NUMBER = signal.SIGALRM

    def set_s(after_s: float) -> None:
        """Ring once, this much later; 0 for never."""
        signal.setitimer(signal.ITIMER_REAL, after_s)
