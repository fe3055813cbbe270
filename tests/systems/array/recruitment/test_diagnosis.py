"""Deliberate switches: one suspect at a time, a like cell in its place, and back again."""

import numpy as np

from hil.systems.array.recruitment.diagnosis import Diagnosis

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
    assert asked(d, 1.0, suspicion, wished=(0, 0, 0, 0, 0)) == [0, 0, 1, 1, 1]


def test_once_it_is_over_wishes_stand_again():
    d = Diagnosis(SHARES)
    asked(d, 0.0, [0.5, 0.5, 0, 0, 0])
    assert asked(d, 0.1, [0] * 5) == [1, 1, 1, 0, 0]
