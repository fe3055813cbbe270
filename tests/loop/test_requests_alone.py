"""What an operator may ask for, with nothing but the requests themselves."""

import math
from types import SimpleNamespace

import pytest

from hil.loop.channels import Channel, RigLayout
from hil.loop.requests import TARE_SHARE_MAX, Inputs

NAN = math.nan
LOW_N, HIGH_N = -2.0, 9.0
TARE_MAX_N = 0.5


class Window:
    def __init__(self):
        self.asked, self.inputs, self.events = [], [], []

    def requests(self, tick):
        return self.asked

    def input(self, tick, t_s, name, value, text=""):
        self.inputs.append((tick, t_s, name, value, text))

    def event(self, t_s, level, source, text):
        self.events.append((t_s, level, source, text))


class Control:
    """A control stage with one set point and one gain."""

    def __init__(self):
        self.set_points = {"force_reference_N": SimpleNamespace(held=NAN)}
        self.gains, self.restarts = {"k_p": 1.0}, 0

    def set_gain(self, key, value):
        if key not in self.gains:
            raise KeyError(key)
        self.gains[key] = value

    def restart(self):
        self.restarts += 1

    @property
    def held_N(self):
        return self.set_points["force_reference_N"].held


class Unsteered:
    def restart(self): ...


class Guard:
    def __init__(self):
        self.fault_bits, self.armed, self.commands_anything = 0, False, False
        self.is_ready, self.tared = True, []

    def tare(self, channel, newtons):
        self.tared.append((channel, newtons))

    def arm(self):
        self.armed = self.is_ready
        return self.is_ready

    def disarm(self):
        self.armed = False


class Rig:
    layout = RigLayout(
        (Channel("pull", "_N", "main"), Channel("other", "_N", "further")), (), (), (), 0
    )

    def __init__(self):
        self.tared = []

    def tare(self, channel, newtons):
        if channel == "none":
            raise ValueError("there is no force channel 'none'")
        self.tared.append((channel, newtons))


class Desk:
    """Requests in, and what came of them."""

    def __init__(self, control=None, measured_N=NAN, was_armed=False):
        self.window, self.guard, self.rig = Window(), Guard(), Rig()
        self.control = control or Control()
        self.inputs = Inputs(
            self.window, self.control, self.guard, self.rig,
            {"force_reference_N": (LOW_N, HIGH_N)}, TARE_MAX_N,
            measured={"force_reference_N": lambda: measured_N},
        )  # fmt: skip
        if was_armed:
            self.inputs.was_armed = True

    def ask(self, name, value=NAN, text="", tick=3):
        """Whether the request was granted; else why not."""
        before = len(self.window.inputs)
        self.window.asked = [(name, value, text)]
        goes_on = self.inputs.apply(tick, 0.5)
        assert goes_on == (not self.inputs.stop.reason)
        if len(self.window.inputs) > before:
            return True
        (t_s, level, source, why) = self.window.events[-1]
        assert (t_s, level, source) == (0.5, "warning", "window")
        return why


def test_a_rig_that_refuses_to_be_armed_says_so_and_nothing_begins():
    desk = Desk()
    desk.guard.is_ready = False
    assert "has not passed its self-test" in desk.ask("arm", 1.0)
    assert (desk.control.restarts, desk.inputs.was_armed) == (0, False)
    desk.guard.is_ready = True
    assert desk.ask("arm", 1.0) is True
    assert (desk.control.restarts, desk.inputs.was_armed) == (1, True)


@pytest.mark.parametrize("value", [LOW_N, HIGH_N, 0.0, NAN])
def test_a_set_point_within_its_limits_is_held_and_recorded_with_its_tick(value):
    desk = Desk()
    assert desk.ask("force_reference_N", value) is True
    assert desk.control.held_N == value or math.isnan(value)
    assert desk.window.inputs[0][:3] == (3, 0.5, "force_reference_N")


@pytest.mark.parametrize("value", [LOW_N - 1e-9, HIGH_N + 1e-9, -math.inf, math.inf])
def test_a_set_point_beyond_either_limit_is_refused_and_changes_nothing(value):
    desk = Desk()
    assert "is outside -2 to 9" in desk.ask("force_reference_N", value)
    assert math.isnan(desk.control.held_N)


def test_a_tare_up_to_its_limit_in_either_direction_is_granted_and_none_beyond():
    for sign in (1.0, -1.0):
        desk = Desk()
        assert desk.ask("tare", sign * TARE_MAX_N) is True
        assert desk.rig.tared == [("", sign * TARE_MAX_N)]
        assert "exceeds 0.5 N" in Desk().ask("tare", sign * (TARE_MAX_N + 1e-9))


def test_the_guard_is_told_of_a_tare_and_not_of_one_that_is_refused():
    desk = Desk()
    assert desk.ask("tare", 0.25, "other") is True
    assert desk.ask("tare", 0.125) is True
    assert "no force channel" in desk.ask("tare", 0.125, "none")
    assert desk.guard.tared == [(1, 0.25), (0, 0.125)]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_tares_do_not_creep_beyond_their_limit_in_either_direction(sign):
    desk = Desk()
    assert desk.ask("tare", sign * 0.375) is True
    assert f"a total tare of {sign * 0.625:g} N exceeds" in desk.ask("tare", sign * 0.25)
    assert desk.ask("tare", -sign * 0.5) is True  # back: the total counts
    assert "exceeds" in desk.ask("tare", -sign * 0.4375)
    assert desk.ask("tare", -0.5 * sign, "other") is True  # of each channel by itself
    assert [newtons for _, newtons in desk.rig.tared] == [sign * 0.375, -sign * 0.5, -sign * 0.5]


def test_a_force_has_one_limit_of_its_tare_whether_it_is_named_or_not():
    desk = Desk()
    assert desk.ask("tare", 0.375) is True
    assert "a total tare of 0.75 N exceeds" in desk.ask("tare", 0.375, "pull")
    assert [newtons for _, newtons in desk.rig.tared] == [0.375]


def test_a_tare_that_fails_on_the_rig_leaves_the_total_of_its_channel_as_it_was():
    desk = Desk()
    granted = desk.rig.tare

    def refused(channel, newtons):
        raise ValueError("not now")

    desk.rig.tare = refused
    assert "not now" in desk.ask("tare", 0.375)
    desk.rig.tare = granted
    assert desk.ask("tare", 0.375) is True


def test_armed_again_without_a_reading_a_set_point_that_was_held_is_held_on():
    desk = Desk(measured_N=NAN, was_armed=True)
    assert desk.ask("force_reference_N", 3.0) is True
    assert desk.ask("arm", 1.0) is True
    assert desk.control.held_N == 3.0


def test_no_tare_while_anything_is_driven():
    """The guard checks tared forces: a tare under load would hide it."""
    desk = Desk()
    desk.guard.commands_anything = True
    assert "only while every cell is off and every output is idle" in desk.ask("tare", 0.1)
    assert desk.rig.tared == []


def test_a_twentieth_of_the_guard_s_largest_force_may_be_tared():
    """More would hide a load from the guard, which checks tared forces."""
    assert pytest.approx(0.45) == TARE_SHARE_MAX * 9.0


def test_a_tare_that_the_rig_refuses_counts_nothing():
    desk = Desk()
    assert "no force channel" in desk.ask("tare", 0.375, "none")
    assert desk.ask("tare", 0.375) is True
    assert "not a finite number" in desk.ask("tare", math.inf)


def test_arming_after_a_trip_is_refused_and_disarming_is_not():
    desk = Desk()
    desk.guard.fault_bits = 4
    assert "the guard has tripped" in desk.ask("arm", 1.0)
    assert not desk.guard.armed
    desk.guard.armed = True
    assert desk.ask("arm", 0.0) is True
    assert not desk.guard.armed


def test_arming_arms_the_guard_and_half_armed_is_nothing():
    desk = Desk()
    assert desk.ask("arm", 1.0) is True
    assert desk.guard.armed
    for value in (0.5, -1.0, NAN):
        assert "is neither 0 nor 1" in desk.ask("arm", value)
    assert desk.guard.armed


def test_arming_what_is_armed_changes_nothing():
    desk = Desk(measured_N=1.5, was_armed=True)
    desk.guard.armed = True
    assert desk.ask("arm", 1.0) is True
    assert desk.control.restarts == 0
    assert math.isnan(desk.control.held_N)


@pytest.mark.parametrize(("measured_N", "held_N"), [(1.5, 1.5), (50.0, HIGH_N), (-50.0, LOW_N)])
def test_armed_again_the_rig_holds_what_is_measured_within_the_limits(measured_N, held_N):
    desk = Desk(measured_N=measured_N)
    desk.ask("arm", 1.0)
    assert math.isnan(desk.control.held_N)  # the first time the experiment's set point counts
    assert desk.control.restarts == 1
    desk.ask("arm", 0.0)
    desk.ask("arm", 1.0)
    assert desk.control.held_N == held_N
    assert desk.control.restarts == 2


def test_armed_again_without_a_reading_the_set_point_is_as_configured():
    desk = Desk(measured_N=NAN, was_armed=True)
    desk.ask("arm", 1.0)
    assert math.isnan(desk.control.held_N)


def test_armed_again_a_set_point_of_what_nobody_measures_is_as_configured():
    desk = Desk(was_armed=True)
    desk.inputs.measured = {}
    assert desk.ask("arm", 1.0) is True
    assert math.isnan(desk.control.held_N)


def test_gains_are_finite_not_below_zero_and_known():
    desk = Desk()
    assert desk.ask("controller.k_p", 0.0) is True
    assert desk.ask("controller.k_p", 2.0) is True
    for value, why in ((-1e-9, "below zero"), (math.inf, "not a finite"), (NAN, "not a finite")):
        assert why in desk.ask("controller.k_p", value)
    assert "no such gain" in desk.ask("controller.k_x", 1.0)
    assert desk.control.gains == {"k_p": 2.0}


def test_a_stage_that_nobody_steers_has_neither_gain_nor_set_point():
    desk = Desk(Unsteered())
    assert "has no gains" in desk.ask("controller.k_p", 1.0)
    assert "unknown: choose from controller.<gain>" in desk.ask("force_reference_N", 1.0)
    desk.inputs.was_armed = True
    assert desk.ask("arm", 1.0) is True


def test_a_stop_is_recorded_once_with_its_reason_and_ends_the_run():
    for text, reason in (("smoke", "smoke"), ("", "a window")):
        desk = Desk()
        assert desk.ask("stop", text=text) is True
        assert desk.window.inputs == [(3, 0.5, "stop", 1.0, reason)]


def test_a_note_changes_nothing_and_is_recorded():
    desk = Desk()
    assert desk.ask("note", text="the cat") is True
    assert desk.window.inputs[0][4] == "the cat"
    assert desk.window.events == []
    assert desk.control.restarts == 0
