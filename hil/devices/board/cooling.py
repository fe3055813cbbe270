"""Wait for the wires to cool before arming, by the board's heat budget.

After a reset, a new table of limits or a run that has used up heat the board answers `cooling` to
arming, until no more than an eighth of it is used up.
"""

import math
import sys
from collections.abc import Callable, Sequence

from hil.devices.board import protocol
from hil.devices.board.self_test import Operator
from hil.errors import DeviceError
from hil.platform.terminal import say

LOOK_EVERY_S = 0.1
SAY_EVERY_S = 10.0
MARGIN_S = 2.0  # beyond what the law says, in which other boards and the line have their share
SHARE_MAX = 1.0 / protocol.HEAT_TO_ARM


def seconds_to_cool(heat_per_255: Sequence[int], time_constant_s: float) -> float:
    """Time until the hottest of these cells can be armed: H falls as exp(-t / time constant)."""
    share = max(heat_per_255, default=0) / 255.0
    return time_constant_s * math.log(share / SHARE_MAX) if share > SHARE_MAX else 0.0


def armed_once_cool(
    name: str,
    ask: Callable[..., protocol.Message],
    operator: Operator,
    time_constant_s: float,
    limits_crc: int,
    cells: int,
) -> protocol.Message:
    """Arm these cells once they have cooled; prints how long it waits. Returns the answer.

    Raises
    ------
    DeviceError
        They do not cool.
    """
    waited_s, said_s, most_s = 0.0, -math.inf, math.inf
    while True:
        answer = ask("arm", limits_crc=limits_crc, cells=cells)
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
