"""Fits offset and drift of the devices' clocks relative to the loop's; changes no time stamp.

    device = offset + (1 + drift) loop + noise

by least squares over all readings. The loop's time of a reading is that of the tick less the
reading's age. Boards count microseconds in 32 bits, which wrap around after 72 minutes; the fit
unwraps them.
"""

import numpy as np
from numpy.typing import NDArray

from hil.config.values import Figures

WRAP_S = 2**32 * 1e-6


def fit_clock(loop_s: NDArray[np.float64], device_s: NDArray[np.float64]) -> Figures:
    """Offset, drift with its standard error, and residual; empty if there are too few readings.

    Parameters
    ----------
    loop_s, device_s : (n,) arrays
        Times of the same readings by both clocks [s]; repeated rows of one reading count once.
    """
    mask = np.isfinite(loop_s) & np.isfinite(device_s)
    mask[1:] &= np.diff(device_s) != 0.0
    loop_s, device_s = loop_s[mask], device_s[mask]
    if len(loop_s) < 3 or np.ptp(loop_s) == 0.0:
        return {}
    device_s = device_s + WRAP_S * np.cumsum(np.diff(device_s, prepend=device_s[0]) < -WRAP_S / 2)
    middle_s = loop_s.mean()
    x, y = loop_s - middle_s, device_s - loop_s
    drift = float(x @ y / (x @ x))
    at_middle_s = float(y.mean())
    rest_s = y - at_middle_s - drift * x
    variance = float(rest_s @ rest_s) / (len(x) - 2)
    return {
        "offset_s": at_middle_s - drift * middle_s,
        "drift_ppm": 1e6 * drift,
        "drift_ppm_standard_error": 1e6 * float(np.sqrt(variance / (x @ x))),
        "residual_rms_s": float(np.sqrt(np.mean(rest_s**2))),
        "readings": len(x),
    }
