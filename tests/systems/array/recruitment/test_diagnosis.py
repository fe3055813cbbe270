"""Deliberate switches: one suspect at a time, a like cell in its place, and back again."""

import numpy as np

from hil.control.controller import ArrayEstimate
from hil.control.reference import NoReference
from hil.control.steering import Steerable
from hil.systems.array.recruitment.control import Recruitment
from hil.systems.array.recruitment.diagnosis import Diagnosis
from hil.systems.soft.control import FollowedChannel, SignalCells

SHARES = np.array([0.3, 0.3, 0.2, 0.31, 0.2])
USABLE = np.ones(5, dtype=np.uint8)


def asked(diagnosis, t_s, suspicion, wished=(1, 1, 1, 0, 0)):
    cells = np.array(wished, dtype=np.uint8)
    diagnosis.step(t_s, np.asarray(suspicion, dtype=float), USABLE, cells)
    return cells.tolist()


def test_without_suspects_wishes_stand():
    assert asked(Diagnosis(SHARES), 0.0, [0] * 5) == [1, 1, 1, 0, 0]


def test_the_likeliest_suspect_goes_off_and_a_cell_of_its_share_comes_on():
    assert asked(Diagnosis(SHARES), 0.0, [0.3, 0.6, 0.1, 0, 0]) == [1, 0, 1, 1, 0]


def test_the_next_one_goes_later_and_the_last_stays_on_whatever_is_wished():
    d = Diagnosis(SHARES, apart_s=0.5)
    suspicion = [0.3, 0.6, 0.1, 0, 0]
    asked(d, 0.0, suspicion)
    assert asked(d, 0.4, suspicion) == [1, 0, 1, 1, 0]
    assert asked(d, 0.5, suspicion) == [0, 0, 1, 1, 1]
    assert asked(d, 1.0, suspicion, wished=(0, 1, 0, 0, 0)) == [0, 0, 1, 1, 1]


def test_no_cell_is_held_on_when_all_are_to_go_off():
    d = Diagnosis(SHARES, apart_s=0.5)
    suspicion = [0.3, 0.6, 0.1, 0, 0]
    assert asked(d, 0.0, suspicion) == [1, 0, 1, 1, 0]
    assert asked(d, 0.1, suspicion, wished=(0, 0, 0, 0, 0)) == [0] * 5
    assert asked(d, 0.2, suspicion, wished=(0, 0, 1, 0, 0)) == [0, 0, 1, 0, 0]


def test_a_wire_that_is_held_on_keeps_its_duty_and_the_one_in_its_place_has_the_other_s():
    d = Diagnosis(SHARES)
    for t_s, wished in ((0.0, [0.3, 0.4, 0.2, 0.0, 0.0]), (0.1, [0.9, 0.0, 0.1, 0.0, 0.1])):
        duties = np.array(wished)
        d.step(t_s, np.array([0.3, 0.6, 0.1, 0.0, 0.0]), USABLE, duties)
        assert duties.tolist() == [0.3, 0.0, 0.2, 0.4, wished[4]]


def test_once_it_is_over_wishes_stand_again():
    d = Diagnosis(SHARES)
    asked(d, 0.0, [0.5, 0.5, 0, 0, 0])
    assert asked(d, 0.1, [0] * 5) == [1, 1, 1, 0, 0]


def test_after_all_was_off_no_cell_is_held_of_those_before():
    """The other suspects were held on: one alone is not switched, so nothing is held anew."""
    d = Diagnosis(SHARES)
    asked(d, 0.0, [0.3, 0.6, 0.1, 0, 0])
    d.restart()
    assert asked(d, 0.1, [0.3, 0.6, 0.1, 0, 0], wished=(0, 0, 0, 0, 0)) == [0] * 5


def test_a_stage_that_restarts_restarts_its_recruiter_and_its_diagnosis():
    class Noted:
        columns = ()

        def __init__(self):
            self.restarts = 0

        def restart(self):
            self.restarts += 1

    recruiter, diagnosis = Noted(), Noted()
    estimate = ArrayEstimate(
        cells=np.zeros(5, dtype=np.uint8), usable=USABLE, x=np.zeros(0), theta=np.zeros(5)
    )
    Recruitment(Steerable(NoReference()), recruiter, estimate, diagnosis).restart()
    assert (recruiter.restarts, diagnosis.restarts) == (1, 1)
    channel = FollowedChannel(0, "bend_reference", "bend_demand", "1", 0.0)
    SignalCells(Steerable(NoReference()), recruiter, channel, 5).restart()
    assert recruiter.restarts == 2
