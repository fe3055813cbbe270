"""Which tick comes next, and how far the experiment has come."""

FOREVER = 2**62


class Progress:
    """The number of the tick, of the first and of the end, and the periods that were missed.

    Missed periods are skipped, never caught up in a burst.

    Attributes
    ----------
    tick, t_s : the current tick and its scheduled time
    last_t_s : scheduled time of the tick before
    n_periods : periods since the tick before
    end : the tick that does not run any more
    overruns : periods missed in a row
    started, tripped : the experiment has started; a fault has been seen
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
        """The experiment starts at the current tick."""
        self.started = True
        self._first, self.end = self.tick, self.tick + self._n_ticks

    def end_after(self, n_ticks: int) -> None:
        """At most this many ticks follow the current one."""
        self.end = min(self.end, self.tick + 1 + n_ticks)

    def advance(self, now_s: float) -> None:
        """Go to the tick that is due now, or to the next one if none is missed."""
        last, self.last_t_s = self.tick, self.t_s
        self.tick = max(last + 1, int(now_s / self._period_s))
        self.t_s = self.tick * self._period_s
        self.n_periods = self.tick - last
        skipped = min(self.tick, self.end) - last - 1
        self.overruns = self.overruns + skipped if skipped else 0
