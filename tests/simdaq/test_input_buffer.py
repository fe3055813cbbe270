"""The ring of a converter's samples holds exactly its capacity and gives every sample once."""

import numpy as np
import pytest

from simdaq.buffers import InputBuffer


def block(*samples):
    return np.array([samples], dtype=float)


def test_a_full_buffer_has_lost_nothing_and_one_sample_more_loses():
    buffer = InputBuffer(1, 4, may_overwrite=False)
    buffer.push(block(1, 2, 3, 4))
    assert (buffer.available, buffer.lost) == (4, False)
    buffer.push(block(5))
    assert buffer.lost
    assert buffer.take(4).tolist() == [[1, 2, 3, 4]]


def test_samples_are_given_in_order_across_the_end_of_the_ring():
    buffer = InputBuffer(1, 4, may_overwrite=False)
    given = []
    for first in range(0, 12, 3):
        buffer.push(block(first, first + 1, first + 2))
        given += buffer.take(3)[0].tolist()
    assert given == list(range(12))
    assert (buffer.available, buffer.lost) == (0, False)


@pytest.mark.parametrize("pushes", [[(0, 1, 2), (3, 4, 5)], [(0, 1, 2, 3, 4, 5)]])
def test_a_buffer_that_may_overwrite_keeps_the_newest(pushes):
    buffer = InputBuffer(1, 4, may_overwrite=True)
    for samples in pushes:
        buffer.push(block(*samples))
    assert (buffer.written, buffer.position, buffer.lost) == (6, 2, False)
    assert buffer.take(4).tolist() == [[2, 3, 4, 5]]


def test_what_was_read_is_not_read_again_while_the_ring_is_not_full():
    buffer = InputBuffer(1, 8, may_overwrite=True)
    buffer.push(block(0, 1, 2))
    buffer.take(2)
    buffer.push(block(3))
    assert buffer.take(buffer.available).tolist() == [[2, 3]]
