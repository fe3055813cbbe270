"""Number of the next tick, and progress of the experiment."""

FOREVER = 2**62


class Progress:
    """Counts ticks and missed periods.

    Missed periods are skipped, never caught up in a burst.

    Attributes
    ----------
    tick, t_s : the current tick and its scheduled time
    last_t_s : scheduled time of the tick before
    n_periods : periods since the previous tick
    end : the run ends before this tick
    overruns : periods missed in a row
    started : whether the experiment has started
    tripped : whether a fault has occurred
    """

    def __init__(self, period_s: float, n_ticks: int) -> None:
        self._period_s = period_s
        self._n_ticks = n_ticks
        self._first = 0
        self.tick = self.n_periods = 0
        self.t_s = self.last_t_s = 0.0
        self.end = FOREVER
        self.overruns = 0
        self.started = self.tripped = False

    @property
    def experiment_t_s(self) -> float:
        """Time since the experiment started."""
        return (self.tick - self._first) * self._period_s

    def start(self) -> None:
        """Start the experiment at the current tick."""
        self.started = True
        self._first, self.end = self.tick, self.tick + self._n_ticks

    def end_after(self, n_ticks: int) -> None:
        """End the run at most this many ticks after the current one."""
        self.end = min(self.end, self.tick + 1 + n_ticks)

    def advance(self, now_s: float) -> None:
        """Go to the tick that is due now, or to the next one if none is missed."""
        last, self.last_t_s = self.tick, self.t_s
        self.tick = max(last + 1, int(now_s / self._period_s))
        self.t_s = self.tick * self._period_s
        self.n_periods = self.tick - last
        skipped = min(self.tick, self.end) - last - 1
        self.overruns = self.overruns + skipped if skipped else 0
