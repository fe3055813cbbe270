"""`[devices.<name>]` of kind `supply`: a bench supply that powers the cells."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from hil.config.table import Address, Delay, Positive, Table
from hil.devices.tables import DeviceTable

Limit = Annotated[float, Field(gt=0.0, le=1000.0)]


class SimSupplyTable(Table):
    """Delays of a simulated supply."""

    obey_s: Delay = 0.02
    answer_s: Delay = 0.03


class SupplyTable(DeviceTable):
    """A bench supply with VISA: on a serial port, USB or LAN.

    hil sets its output to `voltage_V` and `current_A`, which must not exceed `voltage_max_V` and
    `current_max_A`. The output is on from arming until a trip or the end of the run, and hil polls
    the supply every `poll_s`. The guard trips if the last answer is older than `answer_max_s`, if
    the output still differs from the command `obey_max_s` after it, or if its voltage is off by
    more than `voltage_tolerance_V`. `channel` is its output, which the dialect `scpi` cannot name.
    `resource` is a VISA resource name such as `TCPIP::ADDRESS::5025::SOCKET` or
    `ASRL/dev/ttyUSB0::INSTR`. `visa` selects PyVISA's backend: `@py`, or `@ivi` for a vendor's
    library.
    """

    role = "supply"
    every: ClassVar[int] = 1  # its process polls it with its own period, poll_s
    kind: Literal["supply"]
    resource: Address
    dialect: Literal["scpi", "keysight", "rigol", "tti"] = "scpi"
    channel: Annotated[int, Field(ge=1, le=8)] = 1
    visa: str = "@py"
    baud: Annotated[int, Field(ge=1200, le=1_000_000)] = 9600
    voltage_V: Limit
    current_A: Limit
    voltage_max_V: Limit
    current_max_A: Limit
    voltage_tolerance_V: Positive = 0.2
    poll_s: Annotated[float, Field(ge=0.02, le=1.0)] = 0.1
    answer_max_s: Annotated[float, Field(ge=0.1, le=10.0)] = 1.0
    obey_max_s: Annotated[float, Field(ge=0.05, le=5.0)] = 0.5
    sim: SimSupplyTable = SimSupplyTable()
