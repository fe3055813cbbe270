"""A plug-in model, as plant and as twin: copy this file, change it, and name it in your rig:

[model]
kind = "model.py:MyModel"
mass_kg = 0.2

[plant]             # parameters in which the simulated hardware differs
mass_kg = 0.22

`hil check RIG.toml` validates it, `pytest --hil-contract model.py` tests it.
"""

import numpy as np
from pydantic import BaseModel, Field

GRAVITY_M_PER_S2 = 9.81


class MyModel:
    """A pendulum on a motor: m l^2 q'' = tau - b q' - m g l sin q."""

    class Values(BaseModel):
        """The keys of its table."""

        mass_kg: float = Field(default=0.2, gt=0.0)
        length_m: float = Field(default=0.3, gt=0.0)
        friction_N_m_s: float = Field(default=0.01, ge=0.0)

    # Names end with their unit; cards' outputs drive the inputs, channels measure the outputs.
    inputs = ("motor.torque_N_m",)
    outputs = ("pendulum.angle_rad",)

    def __init__(self, period_s, values):
        self.period_s = period_s
        self.values = values
        self.x = np.zeros(2)  # angle and its rate: a run starts at rest
        self.y = self.x[:1].copy()  # the outputs at rest

    def rate(self, x, torque_N_m):
        """X' = f(x, u)."""
        v = self.values
        pull_N_m = v.mass_kg * GRAVITY_M_PER_S2 * v.length_m * np.sin(x[0])
        torque = torque_N_m - v.friction_N_m_s * x[1] - pull_N_m
        return np.array([x[1], torque / (v.mass_kg * v.length_m**2)])

    def step(self, drive, inputs):
        """Outputs one period later; `drive` has one duty for each cell, and here no entries."""
        h, u, x = self.period_s, inputs[0], self.x
        k1 = self.rate(x, u)
        k2 = self.rate(x + 0.5 * h * k1, u)
        k3 = self.rate(x + 0.5 * h * k2, u)
        k4 = self.rate(x + h * k3, u)
        self.x = x + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        return self.x[:1]
