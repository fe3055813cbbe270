"""Timing columns of a tick."""

from time import perf_counter

from hil.loop.frame import Column, Frame

STAGES = ("read", "estimate", "control", "guard", "write")


class Stopwatch:
    """Times the stages of a tick and writes the timing columns of the row."""

    def __init__(self, frame: Frame) -> None:
        self._values = frame.values
        self._t_at, self._late_at, self._busy_at = (
            frame.index(name) for name in ("t_s", "late_s", "busy_s")
        )
        self._stage_at = {name: frame.index(f"{name}_stage_s") for name in STAGES}
        self._started = self._last = 0.0

    @staticmethod
    def columns() -> list[Column]:
        """The columns that it writes."""
        return [
            Column("t_s", "s", "timing", "scheduled time of the tick"),
            Column("late_s", "s", "timing", "start of the tick after its scheduled time"),
            Column(
                "busy_s", "s", "timing", "from the start of the tick until its row was complete"
            ),
            *(
                Column(f"{name}_stage_s", "s", "timing", f"spent in stage {name}")
                for name in STAGES
            ),
        ]

    def start(self, t_s: float, late_s: float) -> None:
        """Start the tick that was scheduled at t_s and starts late_s later."""
        self._values[self._t_at] = t_s
        self._values[self._late_at] = late_s
        self._started = self._last = perf_counter()

    def lap(self, stage: str) -> None:
        """End a stage; the next one starts now."""
        now = perf_counter()
        self._values[self._stage_at[stage]] = now - self._last
        self._last = now

    def stop(self) -> None:
        """End the tick: it was busy until the end of its last stage."""
        self._values[self._busy_at] = self._last - self._started
