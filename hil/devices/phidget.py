"""A bridge input of Phidgets, by their library Phidget22.

A reading has the age of its oldest channel: the time since its event arrived. The sample itself is
up to one data interval older, over which the Phidget measures.
"""

from functools import partial
from math import isfinite, nan
from typing import TYPE_CHECKING

from hil.devices.latest import LatestReading, now_s
from hil.devices.sensor_tables import PhidgetTable

if TYPE_CHECKING:
    from Phidget22.Devices.VoltageRatioInput import VoltageRatioInput

ATTACH_MS = 2000
MV_PER_V = 1e3


class PhidgetBridge(LatestReading[PhidgetTable]):
    """The Phidget on the bench; its readings are in mV/V."""

    def __init__(self, table: PhidgetTable) -> None:
        address = f"Phidget {table.serial}" if table.serial is not None else "Phidget"
        super().__init__(table, address, "check its bridge with Phidgets' Control Panel")
        self._open_inputs: list[VoltageRatioInput] = []
        self._ratios = [nan] * len(table.channels)
        self._at_s = [0.0] * len(table.channels)

    def _connect(self) -> None:
        from Phidget22.BridgeGain import BridgeGain
        from Phidget22.Devices.VoltageRatioInput import VoltageRatioInput

        table = self._table
        for i, channel in enumerate(table.channels.values()):
            bridge = VoltageRatioInput()
            self._open_inputs.append(bridge)
            if table.serial is not None:
                bridge.setDeviceSerialNumber(table.serial)
            if table.hub_port is not None:
                bridge.setHubPort(table.hub_port)
            bridge.setChannel(channel.input)
            bridge.setOnDetachHandler(self._detached)
            bridge.openWaitForAttachment(ATTACH_MS)
            bridge.setBridgeEnabled(True)
            bridge.setBridgeGain(getattr(BridgeGain, f"BRIDGE_GAIN_{table.gain}"))
            bridge.setDataInterval(round(1e3 * table.interval_s))
            bridge.setVoltageRatioChangeTrigger(0.0)  # an event for every sample
            bridge.setOnVoltageRatioChangeHandler(partial(self._sampled, i))

    def _sampled(self, i: int, _: object, volts_per_volt: float) -> None:
        self._ratios[i], self._at_s[i] = MV_PER_V * volts_per_volt, now_s()
        if all(map(isfinite, self._ratios)):
            self.take(self._ratios, min(self._at_s))

    def _detached(self, _: object) -> None:
        self.fail("is gone: plug it in again")

    def _disconnect(self) -> None:
        for bridge in self._open_inputs:
            bridge.setOnDetachHandler(None)
            bridge.close()
        self._open_inputs = []
