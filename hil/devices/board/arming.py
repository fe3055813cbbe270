"""Wait for cold wires and for the cells' supply before arming.

After a reset, a new table of limits or a run that has used up heat the board answers `cooling` to
arming, until no more than an eighth of it is used up. Then it answers `supply_waits`, until relay
K1 has been seen open and closed: the rail dead while the supply is there, then alive.
"""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from hil.devices.board import protocol
from hil.devices.board.self_test import ALIVE_PER_255, Operator, feed_is_dead
from hil.errors import DeviceError
from hil.platform.terminal import say

LOOK_EVERY_S = 0.1
SUPPLY_EVERY_S = 0.005  # the board reads its supply every 13 ms or less often
SUPPLY_S = 2.0  # relay K1 drops, is seen open, closes: 0.3 s; it is stuck after 0.9 s at most
SAY_EVERY_S = 10.0
LOOK_S = 0.02  # between two looks at the heat of a board that waits to be armed
MARGIN_S = 2.0  # beyond what the law says, in which other boards and the line have their share
SHARE_MAX = 1.0 / protocol.HEAT_TO_ARM


def seconds_to_cool(heat_per_255: Sequence[int], time_constant_s: float) -> float:
    """Time until the hottest of these cells can be armed: H falls as exp(-t / time constant)."""
    share = max(heat_per_255, default=0) / 255.0
    return time_constant_s * math.log(share / SHARE_MAX) if share > SHARE_MAX else 0.0


class Heat:
    """The heat of a board's cells, of its readings.

    Attributes
    ----------
    is_hot : some cell has too much for arming, or nobody knows
    """

    def __init__(self, n_cells: int, limits: Mapping[str, int]) -> None:
        self.is_hot = True
        self._n_cells, self._time_constant_s = n_cells, 1e-3 * limits["heat_time_constant_ms"]
        self._look_s = -math.inf  # when it is looked at again

    def note(self, readings: protocol.Message) -> None:
        heat = readings["heat_per_255"][: self._n_cells]
        self.is_hot = seconds_to_cool(heat, self._time_constant_s) > 0.0

    def is_due(self, now_s: float) -> bool:
        """Whether a hot board is to be asked for its heat now; if so, a while passes then."""
        due = self.is_hot and now_s >= self._look_s
        self._look_s = now_s + LOOK_S if due else self._look_s
        return due


def supply_V(reading: protocol.Message, limits: Mapping[str, int]) -> tuple[float, float]:
    """The cells' supply before relay K1 and behind it, of the answer to `read`."""
    full_V = 1e-3 * limits["supply_full_scale_mV"]
    feed_V, rail_V = (reading[f"{place}_per_255"] / 255.0 * full_V for place in ("feed", "rail"))
    return feed_V, rail_V


def no_supply(
    name: str,
    ask: Callable[..., protocol.Message],
    limits: Mapping[str, int],
    power: Sequence[str],
) -> str:
    """Why a board waits for its supply in vain, and what to check; `power` is its path."""
    reading = ask("read")
    feed_V, rail_V = supply_V(reading, limits)
    text = f"{name}: refused to be armed:"
    if feed_is_dead(reading):
        path = ", ".join((*power, "its poles", "the fuse", "relay K2 and its START button"))
        return f"{text} no supply before relay K1 ({feed_V:.1f} V): switch it on, and check {path}"
    if reading["rail_per_255"] < ALIVE_PER_255:
        return (
            f"{text} relay K1 does not close: {feed_V:.1f} V before it, {rail_V:.1f} V behind it: "
            "check its coil, its contact and the pump at PB5 and SEL0"
        )
    return f"{text} {rail_V:.1f} V behind relay K1, which is open: switch the supply off"


def armed_once_ready(
    name: str,
    ask: Callable[..., protocol.Message],
    operator: Operator,
    limits: Mapping[str, int],
    cells: int,
    power: Sequence[str] = (),
) -> protocol.Message:
    """Arm these cells once they have cooled and their supply is there. Returns the answer.

    Prints for how long it waits until they have cooled.

    Raises
    ------
    DeviceError
        They do not cool, or the supply does not come.
    """
    arm = partial(ask, "arm", limits_crc=protocol.limits_crc(limits), cells=cells)
    answer = _once_cool(name, ask, arm, operator, cells, 1e-3 * limits["heat_time_constant_ms"])
    for _ in range(round(SUPPLY_S / SUPPLY_EVERY_S)):
        if protocol.result_name(answer["result"]) != "supply_waits":
            return answer
        operator.wait(SUPPLY_EVERY_S)
        answer = arm()
    raise DeviceError(no_supply(name, ask, limits, power))


def _once_cool(
    name: str,
    ask: Callable[..., protocol.Message],
    arm: Callable[[], protocol.Message],
    operator: Operator,
    cells: int,
    time_constant_s: float,
) -> protocol.Message:
    waited_s, said_s, most_s = 0.0, -math.inf, math.inf
    while True:
        answer = arm()
        if protocol.result_name(answer["result"]) != "cooling":
            return answer
        heat = ask("read")["heat_per_255"]
        left_s = seconds_to_cool([h for i, h in enumerate(heat) if cells >> i & 1], time_constant_s)
        if most_s == math.inf:
            most_s = 1.2 * left_s + MARGIN_S
        if waited_s > most_s:
            raise DeviceError(
                f"{name}: refused to be armed: its cells have not cooled within {waited_s:.0f} s "
                "with every gate off: check for a stuck gate, or replace the board"
            )
        if waited_s - said_s >= SAY_EVERY_S:
            said_s = waited_s
            say(f"{name}: waits {math.ceil(left_s)} s until its wires have cooled", file=sys.stderr)
        operator.wait(LOOK_EVERY_S)
        waited_s += LOOK_EVERY_S
