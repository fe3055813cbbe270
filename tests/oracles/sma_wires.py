"""A wire heated by any current, by its balance of energy: apart from `hil.mechanics.sma.wire`."""

import numpy as np


class Wires:
    """Wires, each with a current of its own; constants and air are one for all, or (n,) arrays.

    Along a branch of the hysteresis the latent heat adds to the heat capacity; a step is so short
    that it may overshoot a branch by what one step heats.
    """

    def __init__(self, wire, n, air_C, cooling=1.0):
        self.wire, self.air_C = wire, air_C
        self.G = cooling * wire.loss_W_per_m_K
        self.T_C = np.full(n, air_C, dtype=float)
        self.xi = np.zeros(n)
        self.peak_C = self.T_C.copy()

    def heated(self, i2_A2):
        w = self.wire
        r = w.martensite_Ohm_per_m + (w.austenite_Ohm_per_m - w.martensite_Ohm_per_m) * self.xi
        return r * i2_A2 - self.G * (self.T_C - self.air_C)

    def step(self, i2_A2, dt_s):
        """Mean square of the current, held."""
        w, q = self.wire, self.heated(i2_A2)
        up, down = w.A_f_C - w.A_s_C, w.M_s_C - w.M_f_C
        heats = (q > 0) & (self.xi < 1) & (self.T_C >= w.A_s_C + self.xi * up)
        cools = (q < 0) & (self.xi > 0) & (self.T_C <= w.M_f_C + self.xi * down)
        width = np.where(heats, up, down)
        latent = np.where(heats | cools, w.latent_J_per_m / width, 0.0)
        self.T_C += q / (w.capacity_J_per_m_K + latent) * dt_s
        on_heating = np.clip((self.T_C - w.A_s_C) / up, 0, 1)
        on_cooling = np.clip((self.T_C - w.M_f_C) / down, 0, 1)
        self.xi = np.clip(self.xi, on_heating, on_cooling)
        self.peak_C = np.maximum(self.peak_C, self.T_C)
