"""The signal chain: volts -> mV/V -> newtons, encoder counts -> angle, and checks of readings.

    r = (V - V_0) / (1e-3 G E)        conditioner of gain G, offset V_0 and excitation E; r in mV/V
    F = sum_k c_k (r - r_0)^k         certificate's polynomial in the deflection from the zero r_0
    theta = theta_0 + s 2 pi c / n    c counts of an encoder with n counts a turn

Source: ASTM E74, Standard Practices for Calibration and Verification for Force-Measuring
Instruments: force as a polynomial in the deflection, the reading less the reading at no force.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hil.compiled import njit

Values = TypeVar("Values", float, NDArray[np.float64])

AT_RAIL, FROZEN, NOT_A_NUMBER = 1, 2, 4
TROUBLES = {
    AT_RAIL: "at_rail",
    FROZEN: "frozen",
    NOT_A_NUMBER: "not_a_number",
}
NEWTON_STEPS = 50


@dataclass(frozen=True)
class Chain:
    """Conversion of a raw reading to a physical value: sum_k c_k ((raw - offset) / a - r_0)^k.

    Attributes
    ----------
    raw_per_ratio : float
        a, raw units (V, or mV/V with a bridge card) for one unit of the polynomial's argument.
    offset : raw reading at which the polynomial's argument is zero
    coefficients : c_k of the k-th power, N for a force
    zero_ratio : r_0, the ratio at no force
    """

    raw_per_ratio: float
    offset: float
    coefficients: tuple[float, ...]
    zero_ratio: float = 0.0

    @classmethod
    def linear(cls, units_per_V: float, zero_V: float) -> "Chain":
        """Value = units_per_V (V - zero_V), for a channel without a record."""
        return cls(1.0, zero_V, (0.0, units_per_V))

    @classmethod
    def recorded(cls, entry: Mapping[str, Any]) -> "Chain":
        """The chain of a channel that a recording describes by these attributes."""
        if "coefficients" in entry:
            return cls(entry["raw_per_ratio"], entry["raw_offset"], tuple(entry["coefficients"]))
        # A recording of a version without calibration records.
        slope = entry["newtons_per_V"] if "newtons_per_V" in entry else entry["units_per_V"]
        return cls.linear(slope, entry["zero_V"])

    @classmethod
    def conditioned(
        cls, gain: float, offset_V: float, excitation_V: float, coefficients: Sequence[float]
    ) -> "Chain":
        """The chain of a transducer with a conditioner; coefficients in N/(mV/V)^k."""
        return cls(1e-3 * gain * excitation_V, offset_V, tuple(coefficients))

    def ratio(self, raw: Values) -> Values:
        """The ratio r of a raw reading; the zero r_0 is not subtracted."""
        return (raw - self.offset) / self.raw_per_ratio

    def value(self, raw: Values) -> Values:
        """The physical value of a raw reading, in newtons for a force."""
        deflection = self.ratio(raw) - self.zero_ratio
        value = deflection * 0.0
        for coefficient in reversed(self.coefficients):
            value = value * deflection + coefficient
        return value

    def raw(self, value: float) -> float:
        """The raw reading of a physical value, the inverse of `value`.

        Newton's method, starting from the linear term.

        Raises
        ------
        ValueError
            The polynomial does not reach the value.
        """
        deflection = (value - self.coefficients[0]) / self.coefficients[1]
        if len(self.coefficients) > 2:
            for _ in range(NEWTON_STEPS):
                reached = slope = 0.0
                for coefficient in reversed(self.coefficients):
                    slope = slope * deflection + reached
                    reached = reached * deflection + coefficient
                change = (reached - value) / slope
                deflection -= change
                if abs(change) <= 1e-14 * max(1.0, abs(deflection)):
                    break
            else:
                raise ValueError(f"the polynomial does not reach {value:g}")
        return self.offset + self.raw_per_ratio * (deflection + self.zero_ratio)

    def slope(self) -> float:
        """Derivative of the value by the raw reading at no deflection."""
        return self.coefficients[1] / self.raw_per_ratio

    def zeroed(self, raw_at_no_force: float) -> "Chain":
        """The same chain with this raw reading as its zero."""
        return replace(self, zero_ratio=self.ratio(raw_at_no_force))


@dataclass(frozen=True)
class Encoder:
    """A quadrature encoder on a counter that rolls over.

    Attributes
    ----------
    counts_per_turn : counts of all four edges of every pulse
    direction : {1, -1}
    offset_rad : angle at the count 0
    """

    counts_per_turn: int
    direction: int = 1
    offset_rad: float = 0.0
    counter_bits: int = 32

    @property
    def rad_per_count(self) -> float:
        return self.direction * 2.0 * math.pi / self.counts_per_turn

    @property
    def chain(self) -> Chain:
        """The chain from signed counts to radians."""
        return Chain.linear(self.rad_per_count, -self.offset_rad / self.rad_per_count)

    def signed(self, count: int) -> int:
        """The count of an unsigned counter as a signed number: below 0 the counter wraps around."""
        half = 1 << (self.counter_bits - 1)
        return (count + half) % (1 << self.counter_bits) - half

    def angle_rad(self, signed_count: float) -> float:
        return self.offset_rad + self.rad_per_count * signed_count


FILTERED = np.dtype(
    [(name, float) for name in ("low", "high", "last", "mean")]
    + [(name, np.int64) for name in ("frozen_after", "equal", "troubles")]
)


class BlockFilter:
    """Reduces a block of samples to one reading a tick, and checks whether the reading is valid.

    The reading is the mean over the block: a boxcar filter with zeros at the multiples of the tick
    rate and a delay of half its length.

    Parameters
    ----------
    low, high : (C,) array_like, a sample at or beyond these is at its rail
    frozen_after : (C,) array_like of int
        Number of equal consecutive samples that a working channel never gives; 0: no check.

    Attributes
    ----------
    mean : (C,) array, NaN before the first block
    troubles : (C,) int array, bits of the last block: AT_RAIL, FROZEN, NOT_A_NUMBER
    """

    def __init__(
        self, low: Sequence[float], high: Sequence[float], frozen_after: Sequence[int]
    ) -> None:
        self._channels = np.zeros(len(low), dtype=FILTERED)
        for name, values in (("low", low), ("high", high), ("frozen_after", frozen_after)):
            self._channels[name] = values
        self._channels["last"] = self._channels["mean"] = np.nan
        self.mean, self.troubles = self._channels["mean"], self._channels["troubles"]
        _reduce(np.zeros((0, 1)), 1, self._channels[:0])  # JIT-compiles before the first tick

    def take(self, block: NDArray[np.float64], n_samples: int) -> None:
        """Reduce the first `n_samples` of a (C, n) block."""
        _reduce(block, n_samples, self._channels)

    @staticmethod
    def delay_s(n_samples: int, rate_Hz: float) -> float:
        """Delay of a block's mean relative to its last sample, (n - 1) / (2 rate) [s]."""
        return 0.5 * (n_samples - 1) / rate_Hz


@njit(cache=True)
def _reduce(block: NDArray[np.float64], n_samples: int, channels: NDArray[np.void]) -> None:
    for c in range(len(channels)):
        total, troubles, channel = 0.0, 0, channels[c]
        low, high, last, equal = channel["low"], channel["high"], channel["last"], channel["equal"]
        for i in range(n_samples):
            value = block[c, i]
            total += value
            if np.isnan(value):
                troubles |= 4
            elif value <= low or value >= high:
                troubles |= 1
            equal = equal + 1 if value == last else 1
            last = value
        channel["last"], channel["equal"] = last, equal
        if channel["frozen_after"] and equal >= channel["frozen_after"]:
            troubles |= 2
        channel["mean"] = total / n_samples
        channel["troubles"] = troubles


def rails(low: float, high: float, bits: int) -> tuple[float, float]:
    """Limits at and beyond which a reading is at its rail, half a step outside the valid codes.

    An ideal converter ends one step below its upper range limit. Real ones continue for a few per
    cent beyond, outside their calibrated range.
    """
    step = (high - low) / 2.0**bits
    return low + 0.5 * step, high - 1.5 * step


def frozen_after(noise_rms: float, step: float, rate_Hz: float) -> int:
    """Number of equal consecutive samples after which a channel is frozen; 0 for never.

    With noise of half a step or more the most probable code has a probability of at most 0.68. A
    run of 0.2 s and at least 100 samples of one code then has a probability below 1e-16. A channel
    with less noise may stay at one code.
    """
    return 0 if noise_rms < 0.5 * step else max(100, math.ceil(0.2 * rate_Hz))


@dataclass(frozen=True)
class ZeroCheck:
    """Zero and noise of a channel at no force, compared with its commissioning.

    Attributes
    ----------
    zero, noise_rms : mean and standard deviation, raw units
    messages : differences from the commissioning figures
    """

    zero: float
    noise_rms: float
    messages: tuple[str, ...]


def check_zero(
    samples: NDArray[np.float64],
    chain: Chain,
    *,
    zero_ratio: float | None,
    zero_tolerance_N: float | None,
    noise_rms: float | None,
) -> ZeroCheck:
    """Compare zero and noise of (n,) raw samples with commissioning figures; None skips a check.

    More than twice the noise gives a message (a loose shield), and so does less than a quarter of
    it (a conditioner that passes no signal).
    """
    zero, noise = float(samples.mean()), float(samples.std())
    messages = []
    if zero_ratio is not None and zero_tolerance_N is not None:
        drift_N = (chain.ratio(zero) - zero_ratio) * chain.coefficients[1]
        if abs(drift_N) > zero_tolerance_N:
            messages.append(
                f"zero is {drift_N:+.3g} N from commissioning, tolerance {zero_tolerance_N:g} N"
            )
    if noise_rms is not None and noise_rms > 0.0:
        share = noise / noise_rms
        if share > 2.0 or share < 0.25:
            messages.append(f"noise is {share:.2g} times that of commissioning")
    return ZeroCheck(zero, noise, tuple(messages))
