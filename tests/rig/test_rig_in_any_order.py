"""A rig whose devices fail at any call, started, armed, tripped and made safe in any order."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from hil.errors import DeviceError
from hil.loop.channels import RigLayout
from hil.rig.rig import Rig

NAMES = ("a", "line", "b", "supply")  # the supply feeds the line
SOURCES = ("supply", "line")
CALLS = ("open", "test", "arm", "safe", "close", "on", "off")
FAILING = st.sets(st.tuples(st.sampled_from(NAMES), st.sampled_from(CALLS)), max_size=2)


class Plain:
    """A device that knows whether it is open and armed, and fails where it is told to."""

    simulated, columns = False, ()

    def __init__(self, name, bench):
        self.name, self._bench = name, bench
        self.is_open = self.is_armed = self.is_on = False

    def _call(self, what):
        self._bench.calls.append((self.name, what))
        if (self.name, what) in self._bench.failing:
            raise DeviceError(f"{self.name}: no {what}")

    def open(self):
        self._call("open")
        self.is_open = True

    def self_test(self, say):
        assert self._bench.powered
        self._call("test")
        return []

    def arm(self):
        assert self._bench.powered
        self._call("arm")
        self.is_armed = True

    def safe(self):
        self._call("safe")
        self.is_armed = False

    def close(self):
        self.is_open = False
        self._call("close")


class Source(Plain):
    def enable(self):
        if self.name == "line":
            assert self._bench.of["supply"].is_on
        self._call("on")
        self.is_on = True

    def wait(self): ...

    def alive(self): ...

    def ready(self):
        return True

    def disable(self):
        self._call("off")
        self.is_on = False


class RigInAnyOrder(RuleBasedStateMachine):
    """The model: how far the rig has come since it was connected, and whether it has tripped."""

    def __init__(self):
        super().__init__()
        self.failing, self.calls = set(), []
        self.of = {n: (Source if n in SOURCES else Plain)(n, self) for n in NAMES}
        self.rig = Rig(list(self.of.values()), RigLayout((), (), (), (), 0))
        self.connected = self.tested = self.energised = self.running = False
        self.tripped = ""

    @property
    def powered(self):
        return all(self.of[name].is_on for name in SOURCES)

    def attempt(self, failing, act):
        """Whether it went well: it does if no device failed that was asked."""
        self.failing, self.calls = failing, []
        try:
            act()
        except DeviceError:
            assert set(self.calls) & failing
            return False
        finally:
            self.failing = set()
        assert not set(self.calls) & failing
        return True

    @rule(failing=FAILING)
    def open(self, failing):
        if self.connected:
            return
        if self.attempt(failing, self.rig.open):
            self.connected = True
        else:
            assert not any(device.is_open for device in self.of.values())

    @rule(failing=FAILING)
    def self_test(self, failing):
        if not self.connected or self.tested or self.tripped:
            return
        self.tested = self.attempt(failing, lambda: self.rig.self_test(print))
        if self.tested:
            return
        self.tripped = "fault"

    @rule(failing=FAILING)
    def arm_devices(self, failing):
        """All power first, or no device is armed."""
        if self.connected:
            self.attempt(failing, self.rig.arm)
            armed = [k for k, (_, what) in enumerate(self.calls) if what == "arm"]
            powered = [k for k, (_, what) in enumerate(self.calls) if what == "on"]
            assert not armed or (len(powered) == 2 and max(powered) < min(armed))

    @rule(event=st.sampled_from(("arm", "begin", "end", "fault", "estop")))
    def happen(self, event):
        """What guard and loop tell the states."""
        self.rig.states.on(event)
        if event == "arm" and self.tested and not self.tripped:
            self.energised = True
        elif event == "begin":
            self.running = self.energised
        elif event == "end":
            self.energised = self.running = False
        elif event in ("fault", "estop") and self.connected and self.tripped != "estop":
            self.tripped = event
            self.energised = self.running = False

    @rule(failing=FAILING)
    def make_safe(self, failing):
        """Whatever fails, every device is asked, and all power goes off first."""
        self.attempt(failing, self.rig.safe)
        off = [name for name, what in self.calls[:2]]
        assert sorted(off) == sorted(SOURCES)
        assert [what for _, what in self.calls] == ["off"] * 2 + ["safe"] * 4
        for name, device in self.of.items():
            assert not device.is_on or (name, "off") in failing
            assert not device.is_armed or (name, "safe") in failing

    @rule(failing=FAILING)
    def close(self, failing):
        self.attempt(failing, self.rig.close)
        assert not any(device.is_open for device in self.of.values())
        self.connected = self.tested = self.energised = self.running = False
        self.tripped = ""

    @invariant()
    def the_state_is_that_of_the_model(self):
        wanted = "connected" if self.connected else "off"
        if self.tested:
            wanted = "running" if self.running else "armed" if self.energised else "ready"
        assert self.rig.states.now == (self.tripped or wanted)


@pytest.mark.hypothesis
def test_in_any_order_and_whatever_fails_nothing_is_armed_without_power_or_after_a_trip():
    run_state_machine_as_test(RigInAnyOrder)
