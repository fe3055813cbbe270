"""Instruments of Phidgets, LabJack and FUTEK, against simulated far ends.

Phidgets' and LabJack's Python packages run as they are, above a library whose C functions are
simulated here as their headers say. FUTEK's library is compiled into its package: there the methods
of its instrument are simulated, as its documentation states them.
"""

import re
import time
import tomllib
from pathlib import Path
from types import SimpleNamespace

import futek_device_communication
import numpy as np
import pytest
import tomli_w
from labjack.ljm import errorcodes
from labjack.ljm import ljm as ljm_module
from Phidget22._phidget_support import PhidgetSupport

from hil.devices.futek import Futek
from hil.devices.labjack import LabJack
from hil.devices.phidget import PhidgetBridge
from hil.devices.sensor_tables import FutekTable, LabJackTable, PhidgetTable, RemoteNidaqTable
from hil.devices.tables import NidaqTable
from hil.errors import ConfigError, DeviceError
from hil.experiment.load import load_with
from hil.loop.frame import Frame
from hil.rig.kinds import device_kinds
from hil.rig.rig import HostTime, build_rig
from hil.runs.imports.guess import IDLE

WAIT_S = 120.0
REAL_TIME = HostTime(time.perf_counter, time.sleep)
ROOT = Path(__file__).resolve().parents[2]
RECORD = str(ROOT / "calibration" / "futek_9N.toml")


def until(what):
    """Wait until `what()` is true."""
    end_s = time.monotonic() + WAIT_S
    while not what():
        assert time.monotonic() < end_s
        time.sleep(0.005)


def failure_of(instrument):
    """The message with which reading ends."""
    found = []

    def failed():
        try:
            instrument.read(0.0)
        except DeviceError as error:
            found.append(str(error))
        return bool(found)

    until(failed)
    return found[0]


class Ljm:
    """LabJack's library with one T7, and a relay at EIO4 whose second contact is at EIO5."""

    def __init__(self):
        self.volts = {"AIN0": 0.0, "AIN2": 0.0, "EIO4": 0.0, "EIO5": 0.0}
        self.written, self.order, self.error, self.opened = {}, [], 0, None
        self.welded = self.no_coil = False

    def LJM_OpenS(self, model, connection, identifier, handle):
        self.opened = (model, connection, identifier)
        handle._obj.value = 7
        return self.error

    def LJM_eWriteNames(self, handle, n, names, values, _):
        pairs = [(names._obj[i].decode(), values._obj[i]) for i in range(n.value)]
        self.written, self.order = dict(pairs), [*self.order, *pairs]
        self.volts |= {name: level for name, level in pairs if name in self.volts}
        return 0

    def LJM_eNames(self, handle, n, names, writes, numbers, values, _):
        assert handle == 7
        for i in range(n.value):
            name = names._obj[i].decode()
            if writes._obj[i]:
                self.volts[name] = values._obj[i]
            values._obj[i] = self.volts[name]
        relay = self.volts["EIO4"] or self.welded
        self.volts["EIO5"] = float(relay and not self.no_coil)
        time.sleep(0.001)
        return self.error

    def LJM_ErrorToString(self, code, text):
        pass

    def LJM_Close(self, handle):
        self.opened = None
        return 0


@pytest.fixture
def ljm(monkeypatch):
    far_end = Ljm()
    monkeypatch.setattr(ljm_module, "_staticLib", far_end)
    return far_end


def labjack(**more):
    force = {"kind": "force", "terminal": "AIN0", "newtons_per_V": 2.0}
    values = {"kind": "labjack", "channels": {"force": force | more}}
    return LabJack(LabJackTable.model_validate(values))


def test_a_labjack_bridge_gives_mV_per_V(ljm):
    more = {"newtons_per_V": None, "record": RECORD, "excitation_V": 5.0}
    cell = labjack(**more, negative="AIN1", range_V=0.01)
    ljm.volts["AIN0"] = 0.004
    cell.open()
    assert cell.read(0.0) == (pytest.approx(0.8),)
    assert ljm.written == {"AIN0_RANGE": 0.01, "AIN0_NEGATIVE_CH": 1}
    assert ljm.opened == (b"ANY", b"ANY", b"ANY")
    cell.close()
    assert ljm.opened is None


def test_a_labjack_input_that_it_cannot_read_is_no_reading(ljm):
    ljm.volts["AIN0"] = -9999.0  # LJM_DUMMY_VALUE
    cell = labjack(negative="GND")
    cell.open()
    assert np.isnan(cell.read(0.0)[0])
    assert ljm.written == {"AIN0_NEGATIVE_CH": 199}
    cell.close()


def test_a_labjack_that_is_unplugged_or_absent_is_one_line(ljm):
    cell = labjack()
    cell.open()
    ljm.error = errorcodes.RECONNECT_FAILED
    gone = "LabJack ANY: is gone (Address -1, LJM library error code 1239"
    assert failure_of(cell).startswith(gone)
    cell.close()
    ljm.error = errorcodes.DEVICE_NOT_FOUND
    with pytest.raises(DeviceError, match=r"LabJack ANY: cannot be opened \(LJM .* code 1227"):
        labjack().open()


def rig_with_a_labjack(tmp_path, host=REAL_TIME, **more):
    """The rig of configs/miga6 with a LabJack on the bench in place of its card."""
    rig = tomllib.loads((ROOT / "configs/miga6/rig.toml").read_text())
    force = {"terminal": "AIN0", "newtons_per_V": -2.0, "zero_V": 0.5}
    travel = {"kind": "displacement", "terminal": "AIN2", "metres_per_V": 0.001}
    cell = {"kind": "labjack", "channels": {"force": force, "travel": travel}, **more}
    rig["devices"] = {"board": rig["devices"]["board"], "cell": cell}
    del rig["plant_card"], rig["model"]["arrays"]["muscle"]["record"]
    del rig["model"]["arrays"]["muscle"]["cell"]["record"]
    (tmp_path / "rig.toml").write_text(tomli_w.dumps(rig))
    config = load_with(tmp_path / "rig.toml", IDLE, "test")
    rig = build_rig(config, 0, {"board": "sim", "cell": "bench"}, host)
    return rig, Frame(rig.columns)


def test_a_labjack_in_a_rig_gives_newtons_and_metres_with_their_age(ljm, tmp_path):
    ljm.volts |= {"AIN0": -0.25, "AIN2": 3.0}
    rig, frame = rig_with_a_labjack(tmp_path)
    rig.bind(frame)
    rig.open()
    rig.read(1.0)
    rig.close()
    assert frame.values[frame.index("force_measured_N")] == pytest.approx(1.5)
    assert frame.values[frame.index("travel_measured_m")] == pytest.approx(0.003)
    assert 0.0 < frame.values[frame.index("cell_age_s")] < WAIT_S


def test_a_rig_has_power_by_a_labjack_once_its_relay_is_closed(ljm, tmp_path):
    rig, frame = rig_with_a_labjack(tmp_path, lines={"power": LINE}, enable_settle_s=0.02)
    rig.bind(frame)
    with rig.opened():
        assert not ljm.volts["EIO4"]
        rig.arm()
        assert ljm.volts["EIO4"]
        assert rig.ready()
        rig.commands.enabled[:] = False  # as after a trip
        rig.write(0.0)
        until(lambda: not ljm.volts["EIO4"])
    assert not ljm.volts["EIO4"]


def test_the_line_of_a_labjack_is_held_while_its_power_settles(ljm, tmp_path, monkeypatch):
    """Longer than the second after which a LabJack that nobody asks lets go."""
    passed_s, held_s, hold = [0.0], [], LabJack.hold

    def sleep(duration_s):
        passed_s[0] += duration_s

    def noted(labjack, on):
        held_s.append(passed_s[0])
        hold(labjack, on)

    monkeypatch.setattr(LabJack, "hold", noted)
    monkeypatch.setattr(LabJack, "follows", lambda labjack: True)
    host = HostTime(lambda: passed_s[0], sleep)
    lines = {"lines": {"power": LINE}, "enable_settle_s": 3.0, "watchdog_s": 1}
    rig, frame = rig_with_a_labjack(tmp_path, host, **lines)
    rig.bind(frame)
    with rig.opened():
        rig.arm()
        assert passed_s[0] >= 3.0
        assert np.diff(held_s).max() < 0.01


def test_power_that_cannot_be_switched_off_is_said_at_the_end(ljm, tmp_path):
    rig, frame = rig_with_a_labjack(tmp_path, lines={"power": LINE}, enable_settle_s=0.02)
    rig.bind(frame)
    rig.open()
    rig.arm()
    ljm.welded = True
    with pytest.raises(DeviceError, match="LabJack ANY: EIO4 is low and EIO5 reads back high"):
        rig.safe()
    rig.close()


LINE = {"kind": "enable", "terminal": "EIO4", "readback": "EIO5"}


def labjack_with_a_relay(**more):
    force = {"kind": "force", "terminal": "AIN0", "newtons_per_V": 2.0}
    values = {"kind": "labjack", "channels": {"force": force}, "lines": {"power": LINE}}
    return LabJack(LabJackTable.model_validate({"enable_settle_s": 0.02, **values, **more}))


def test_a_labjack_holds_the_relay_of_the_cells_and_its_watchdog_lets_go(ljm):
    cell = labjack_with_a_relay(watchdog_s=3)
    cell.open()
    names = [name for name, _ in ljm.order]
    assert names[0] == "EIO4"  # low before anything else
    assert names.index("WATCHDOG_ENABLE_DEFAULT") < names.index("WATCHDOG_TIMEOUT_S_DEFAULT")
    assert ljm.written["WATCHDOG_ENABLE_DEFAULT"] == 1
    assert ljm.written["WATCHDOG_TIMEOUT_S_DEFAULT"] == 3
    # Source: T-Series Datasheet: EIO4 is line 12; 1 is an output, and of inhibit a line left alone.
    assert ljm.written["WATCHDOG_DIO_DIRECTION_DEFAULT"] == 1 << 12
    assert ljm.written["WATCHDOG_DIO_INHIBIT_DEFAULT"] == 0x7FFFFF - (1 << 12)
    assert ljm.written["WATCHDOG_DIO_STATE_DEFAULT"] == 0
    cell.hold(True)
    until(lambda: ljm.volts["EIO4"] and cell.follows())
    cell.hold(False)
    until(lambda: not ljm.volts["EIO4"] and cell.follows())
    cell.hold(True)
    until(cell.follows)
    cell.close()
    assert ljm.volts["EIO4"] == 0.0
    assert ljm.order[-2:] == [("EIO4", 0.0), ("WATCHDOG_ENABLE_DEFAULT", 0.0)]


@pytest.mark.parametrize(
    ("fault", "line"),
    [("welded", "EIO4 is low and EIO5 reads back high"),
     ("no_coil", "EIO4 is high and EIO5 reads back low")],
)  # fmt: skip
def test_a_relay_that_does_not_follow_its_line_ends_reading_with_no_power(ljm, fault, line):
    cell = labjack_with_a_relay()
    cell.open()
    cell.hold(True)
    until(cell.follows)
    setattr(ljm, fault, True)
    if fault == "welded":
        cell.hold(False)
    assert line in failure_of(cell)
    until(lambda: ljm.volts["EIO4"] == 0.0)
    cell.close()


def test_a_labjack_that_fails_once_lets_go_of_its_relay_at_once(ljm):
    cell = labjack_with_a_relay(watchdog_s=30)
    cell.open()
    cell.hold(True)
    until(cell.follows)
    ljm.error = errorcodes.RECONNECT_FAILED
    assert "is gone" in failure_of(cell)
    until(lambda: ljm.volts["EIO4"] == 0.0)
    cell.close()


def test_a_loop_that_is_silent_loses_the_power_of_a_labjack_for_good(ljm, monkeypatch):
    cell = labjack_with_a_relay(watchdog_s=1)
    cell.open()
    cell.hold(True)
    until(cell.follows)
    monkeypatch.setattr("hil.devices.labjack.now_s", lambda: time.monotonic() + 1.5)
    assert "the loop was silent for 1 s" in failure_of(cell)
    ljm.volts["EIO4"] = 1.0
    cell.hold(True)
    until(lambda: ljm.volts["EIO4"] == 0.0)
    cell.close()


class Phidgets:
    """Phidgets' library with one bridge; it notes calls and sends an event for every sample."""

    def __init__(self):
        self.calls, self.sample, self.detach = {}, None, None

    def __getattr__(self, name):
        def function(handle, *values):
            self.calls[name] = [getattr(value, "value", value) for value in values]
            return 0

        return function

    @property
    def PhidgetVoltageRatioInput_setOnVoltageRatioChangeHandler(self):
        def function(handle, callback, _):
            self.sample = callback
            callback(None, None, 0.00125)
            return 0

        return function

    @property
    def Phidget_setOnDetachHandler(self):
        def function(handle, callback, _):
            self.detach = callback
            return 0

        return function


def phidget(**more):
    channels = {"force": {"kind": "force", "input": 2, "record": RECORD}}
    return PhidgetBridge(
        PhidgetTable.model_validate({"kind": "phidget_bridge", "channels": channels} | more)
    )


def test_a_phidget_bridge_gives_every_sample_in_mV_per_V(monkeypatch):
    far_end = Phidgets()
    monkeypatch.setattr(PhidgetSupport, "_PhidgetSupport__dll", far_end)
    cell = phidget(serial=141519, gain=64, interval_s=0.008)
    cell.open()
    assert cell.read(0.0) == (pytest.approx(1.25),)
    taken_s = cell.taken_s
    time.sleep(0.002)
    far_end.sample(None, None, -0.002)
    assert cell.read(0.0) == (pytest.approx(-2.0),)
    assert cell.taken_s > taken_s
    calls = {name.rpartition("_")[2]: values for name, values in far_end.calls.items()}
    assert calls["setDeviceSerialNumber"] == [141519]
    assert calls["setChannel"] == [2]
    assert calls["setBridgeEnabled"] == [1]
    assert calls["setBridgeGain"] == [7]  # BRIDGE_GAIN_64 of phidget22.h
    assert calls["setDataInterval"] == [8]  # ms
    assert calls["setVoltageRatioChangeTrigger"] == [0.0]
    far_end.detach(None, None)
    with pytest.raises(DeviceError, match="Phidget 141519: is gone: plug it in again"):
        cell.read(0.0)
    cell.close()


def test_phidgets_own_library_says_in_one_line_that_none_is_plugged_in(monkeypatch):
    monkeypatch.setattr("hil.devices.phidget.ATTACH_MS", 50)
    with pytest.raises(DeviceError, match=r"Phidget 1: cannot be opened .*No Phidgets were") as no:
        phidget(serial=1).open()
    assert "\n" not in str(no.value)


class FutekInstrument:
    """An instrument as FUTEK's documentation describes FutekDevice."""

    def __init__(self, unit):
        self.unit, self.error, self.rate, self.connected = unit, None, None, True

    def get_unit_of_measure(self, channel_number=0):
        return futek_device_communication.UnitOfMeasureEnum[self.unit]

    def set_sampling_rate_value(self, samples_per_second, channel_number=0):
        self.rate = samples_per_second

    def get_reading(self, channel_number=0):
        time.sleep(0.001)
        if self.error is not None:
            raise self.error
        return 2.5

    def disconnect(self):
        self.connected = False


@pytest.fixture
def futek(monkeypatch):
    def make(unit="lb", plugged_in=True):
        instrument = FutekInstrument(unit)

        def discover_devices(device_models=None, comports=None):
            assert comports == ["/dev/ttyUSB3"]
            return [instrument] if plugged_in else []

        scanner = SimpleNamespace(discover_devices=discover_devices)
        monkeypatch.setattr(futek_device_communication, "FutekSerialScanner", scanner)
        table = {"kind": "futek", "port": "/dev/ttyUSB3", "rate_Hz": 1200.0}
        table["channels"] = {"force": {"kind": "force"}}
        return Futek(FutekTable.model_validate(table)), instrument

    return make


# One pound-force is 0.45359237 kg times 9.80665 m/s2, one ounce-force a sixteenth of it.
@pytest.mark.parametrize(
    ("unit", "force_N"),
    [("N", 2.5), ("lb", 11.12055404), ("oz", 0.69503463), ("gram", 0.02451663), ("k_N", 2500.0)],
)
def test_a_futek_instrument_gives_newtons_in_any_unit_of_force(unit, force_N, futek):
    cell, far_end = futek(unit)
    cell.open()
    assert cell.read(0.0) == (pytest.approx(force_N, rel=1e-6),)
    assert far_end.rate == 1200.0
    cell.close()
    assert not far_end.connected


def test_a_futek_instrument_that_gives_no_force_or_nothing_is_one_line(futek):
    with pytest.raises(DeviceError, match="/dev/ttyUSB3: gives 'psi', not a force: set its unit"):
        futek("psi")[0].open()
    with pytest.raises(DeviceError, match="no FUTEK instrument answers: check port, cable"):
        futek(plugged_in=False)[0].open()
    cell, far_end = futek()
    cell.open()
    far_end.error = futek_device_communication.FutekCommunicationError("no bytes\nfrom it")
    assert failure_of(cell) == "/dev/ttyUSB3: is gone (no bytes from it): plug it in again"
    cell.close()


@pytest.mark.parametrize(
    ("table", "channel", "expected"),
    [
        (LabJackTable, {"terminal": "AIN0"}, "give either record"),
        (LabJackTable, {"terminal": "DAC0", "newtons_per_V": 1.0}, "AIN"),
        (
            LabJackTable,
            {"terminal": "AIN0", "newtons_per_V": 1.0, "excitation_V": 5.0},
            "a bridge needs record",
        ),
        (FutekTable, {"kind": "force", "record": "cell.toml"}, "by its own calibration"),
        (PhidgetTable, {"kind": "force"}, "record"),
    ],
)
def test_a_channel_without_its_calibration_is_refused(table, channel, expected):
    kind = table.model_fields["kind"].annotation.__args__[0]
    values = {"kind": kind, "channels": {"force": channel}}
    if table is FutekTable:
        values["port"] = "/dev/ttyUSB0"
    with pytest.raises(ValueError, match=expected):
        table.model_validate(values)


@pytest.mark.parametrize(
    ("ends", "limit_N", "said"),
    [
        ({"newtons_per_V": -0.4, "range_V": 10.0}, 3.9, ""),
        ({"newtons_per_V": -0.4, "range_V": 10.0}, 4.0, "newtons_per_V = -0.4: the channel's"),
        ({"newtons_per_V": -0.4, "zero_V": 5.0, "range_V": 10.0}, 2.0, "range ends at 2 N"),
        # 4.75 N for 1 mV/V: 5 mV of 5 V
        ({"record": RECORD, "excitation_V": 5.0, "range_V": 0.005}, 5.0, "record: the channel's"),
        ({"record": RECORD, "excitation_V": 5.0, "range_V": 0.01}, 5.0, ""),
    ],
)
def test_an_input_that_ends_within_the_guards_limit_is_refused(ends, limit_N, said, tmp_path):
    rig = tomllib.loads((ROOT / "configs/miga6/rig.toml").read_text())
    cell = {"kind": "labjack", "channels": {"force": {"terminal": "AIN0", **ends}}}
    rig["devices"] = {"board": rig["devices"]["board"], "cell": cell}
    del rig["plant_card"], rig["model"]["arrays"]["muscle"]["record"]
    del rig["model"]["arrays"]["muscle"]["cell"]["record"]
    rig["guard"]["force_max_N"] = limit_N
    (tmp_path / "rig.toml").write_text(tomli_w.dumps(rig))
    try:
        load_with(tmp_path / "rig.toml", IDLE, "test")
        found = ""
    except ConfigError as error:
        found = str(error)
    assert said in found
    assert ("the guard would never trip" in found) == bool(said)


@pytest.mark.parametrize(
    ("table", "channel"),
    [
        (LabJackTable, {"terminal": "AIN0", "newtons_per_V": 0.0}),
        (LabJackTable, {"kind": "displacement", "terminal": "AIN0", "metres_per_V": 0.0}),
        (NidaqTable, {"terminal": "ai0", "newtons_per_V": 0.0}),
        (NidaqTable, {"kind": "voltage", "terminal": "ai0", "signal": "x", "units_per_V": 0.0}),
    ],
)
def test_a_reading_that_no_voltage_moves_is_refused_since_no_limit_would_ever_see_it(
    table, channel
):
    values = {"channels": {"x": channel}, "kind": table.model_fields["kind"].annotation.__args__[0]}
    more = {"card": "Dev1"} if table is NidaqTable else {}
    with pytest.raises(ValueError, match="must not be 0: a reading would have no effect"):
        table.model_validate(values | more)


def test_every_table_of_their_page_is_valid():
    page = (ROOT / "docs/how-to/instruments.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```text\n(\[devices.*?)```", page, re.DOTALL)
    devices = [device for b in blocks for device in tomllib.loads(b)["devices"].values()]
    tables = [device_kinds()[device["kind"]].table for device in devices]
    assert set(tables) == {FutekTable, LabJackTable, PhidgetTable, RemoteNidaqTable}
    for table, device in zip(tables, devices, strict=True):
        table.model_validate(device)
