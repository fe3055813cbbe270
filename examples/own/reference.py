"""A plug-in reference: copy this file, change it, and name it in your experiment:

[reference]
kind = "reference.py:MyReference"
high_N = 1.2

`hil check EXPERIMENT.toml` checks it, `pytest --hil-contract reference.py` tests it.
"""

from pydantic import BaseModel, Field


class MyReference:
    """A periodic trapezoid: up, a pause, down, a pause."""

    class Values(BaseModel):
        """The keys of its table."""

        high_N: float = Field(default=1.0, ge=0.0)
        slope_s: float = Field(default=0.4, gt=0.0)
        rest_s: float = Field(default=0.6, ge=0.0)

    def __init__(self, values):
        self.values = values

    def at(self, t_s):
        """Set point at t_s; it must depend on the time only, so that a replay repeats it."""
        v = self.values
        phase_s = t_s % (2.0 * v.slope_s + 2.0 * v.rest_s)
        rising = phase_s / v.slope_s
        falling = (2.0 * v.slope_s + v.rest_s - phase_s) / v.slope_s
        return v.high_N * min(max(min(rising, falling), 0.0), 1.0)
