"""Bryant angles from a fingertip position, eq (15), and the movement of section 6.

Four of the nine angles move: pitch and yaw of the upper arm, and pitch of forearm and hand, which
have the same direction. The text says "yaw" for the latter two; eq (15) uses their pitch. The other
angles are zero.
"""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from hil.errors import ModelError
from hil.mechanics.arrays import Array
from hil.systems.arm.links import Arm

UPPER_PITCH, UPPER_YAW, FORE_PITCH, HAND_PITCH = ATTENTION = (1, 2, 4, 7)
"""Indices of the angles that move."""

MOVEMENT_S = 2.0
REACH_SLACK_M = 1e-9
STRAIGHT = 1e-6


@dataclass(frozen=True)
class Motion:
    """Angles, rates and accelerations over time; (n,) and (n, 9)."""

    t_s: Array
    theta: Array
    rate: Array
    acceleration: Array


def printed_motion(t_s: ArrayLike) -> Motion:
    """Return the angles of section 6, which the paper gives for two seconds.

    theta_12 = -pi/4 + pi/8 sin(pi t), theta_13 = pi/4 cos(pi t), theta_22 = theta_32 =
    pi/8 cos(pi t)
    """
    t = np.asarray(t_s, dtype=float)
    s, c, w = np.sin(np.pi * t), np.cos(np.pi * t), np.pi
    theta, rate, acceleration = (np.zeros((*t.shape, 9)) for _ in range(3))
    theta[..., UPPER_PITCH] = -np.pi / 4.0 + np.pi / 8.0 * s
    rate[..., UPPER_PITCH] = np.pi / 8.0 * w * c
    acceleration[..., UPPER_PITCH] = -np.pi / 8.0 * w**2 * s
    for at, size in ((UPPER_YAW, np.pi / 4.0), (FORE_PITCH, np.pi / 8.0),
                     (HAND_PITCH, np.pi / 8.0)):  # fmt: skip
        theta[..., at] = size * c
        rate[..., at] = -size * w * s
        acceleration[..., at] = -size * w**2 * c
    return Motion(t, theta, rate, acceleration)


def angles_of(arm: Arm, fingertip_m: ArrayLike) -> Array:
    """Return the angles for a fingertip, eq (15), with the elbow up; (..., 3) -> (..., 9).

    y = l1 sin(theta_13) leaves a planar linkage of l1 cos(theta_13) and l2 + l3 in x and -z, which
    are the cosines and sines of the pitch.

    Raises
    ------
    ModelError
        The fingertip is out of reach.
    """
    places = np.asarray(fingertip_m, dtype=float)
    l1, beyond = arm.lengths_m[0], arm.lengths_m[1:].sum()
    if places.shape[-1:] != (3,) or not np.isfinite(places).all():
        raise ModelError(
            "fingertip_m: give three numbers: x front, y left, z up, from the shoulder"
        )
    x, y, down = places[..., 0], places[..., 1], -places[..., 2]
    _within(places, np.abs(y), 0.0, l1, "is {:.4g} m to the side")
    yaw = np.arcsin(np.clip(y / l1, -1.0, 1.0))
    near, r = l1 * np.cos(yaw), np.hypot(x, down)
    _within(places, r, np.abs(near - beyond), near + beyond, "is {:.4g} m out in its plane")
    # At a yaw of 90 degrees the pitch of the upper arm is undefined: any value will do.
    safe = np.where(near * beyond > 0.0, 2.0 * near * beyond, 1.0)
    bend = np.arccos(np.clip((r**2 - near**2 - beyond**2) / safe, -1.0, 1.0))
    pitch = np.arctan2(down, x) - np.arctan2(beyond * np.sin(bend), near + beyond * np.cos(bend))
    theta = np.zeros((*places.shape[:-1], 9))
    theta[..., UPPER_PITCH] = np.arctan2(np.sin(pitch), np.cos(pitch))
    theta[..., UPPER_YAW] = yaw
    theta[..., FORE_PITCH] = theta[..., HAND_PITCH] = np.arctan2(
        np.sin(pitch + bend), np.cos(pitch + bend)
    )
    return theta


def _within(places: Array, value: Array, low: ArrayLike, high: ArrayLike, what: str) -> None:
    low, high = np.broadcast_to(low, value.shape), np.broadcast_to(high, value.shape)
    wrong = (value > high + REACH_SLACK_M) | (value < low - REACH_SLACK_M)
    if wrong.any():
        at = int(np.argmax(wrong.ravel()))
        place = ", ".join(f"{c:g}" for c in places.reshape(-1, 3)[at])
        raise ModelError(
            f"fingertip_m = [{place}]: out of reach: {what.format(value.ravel()[at])}, the arm "
            f"reaches {low.ravel()[at]:.4g} to {high.ravel()[at]:.4g} there"
        )


def motion_through(
    arm: Arm, t_s: ArrayLike, fingertips_m: ArrayLike, sample_s: ArrayLike
) -> Motion:
    """Return straight movements between fingertip positions, at rest in each.

    The position between two points is 10 s^3 - 15 s^4 + 6 s^5 of the relative time s. Source:
    Flash & Hogan, "The coordination of arm movements", 1985 (minimum-jerk straight line).

    Parameters
    ----------
    t_s, fingertips_m : (k,), (k, 3), times and positions of the fingertip
    sample_s : (n,), times of the result

    Raises
    ------
    ModelError
        A point of the path is out of reach, or the arm is straight there, where its rates are
        infinite.
    """
    times, places = np.asarray(t_s, dtype=float), np.asarray(fingertips_m, dtype=float)
    wanted = np.asarray(sample_s, dtype=float)
    fine = np.linspace(times[0], times[-1], 50 * (len(times) - 1) + 1)
    leg = np.clip(np.searchsorted(times, fine, side="right") - 1, 0, len(times) - 2)
    s = (fine - times[leg]) / (times[leg + 1] - times[leg])
    share = (10.0 * s**3 - 15.0 * s**4 + 6.0 * s**5)[:, None]
    angles_of(arm, places)
    try:
        theta = angles_of(arm, places[leg] + share * (places[leg + 1] - places[leg]))
    except ModelError as error:
        raise ModelError(f"{error}, on the straight way between two") from None
    straight = np.abs(np.sin(theta[:, FORE_PITCH] - theta[:, UPPER_PITCH])) < STRAIGHT
    straight |= np.abs(np.cos(theta[:, UPPER_YAW])) < STRAIGHT
    if straight.any():
        place = ", ".join(f"{c:g}" for c in arm.places_m(theta[np.argmax(straight)])[2])
        raise ModelError(f"fingertip_m = [{place}]: the arm is straight there: bring it nearer")
    theta = np.unwrap(theta, axis=0)
    spline = scipy.interpolate.make_interp_spline(fine, theta, k=5)
    inside = np.clip(wanted, times[0], times[-1])
    moving = ((wanted > times[0]) & (wanted < times[-1]))[:, None]
    return Motion(
        wanted, spline(inside), np.where(moving, spline(inside, 1), 0.0),
        np.where(moving, spline(inside, 2), 0.0),
    )  # fmt: skip
