"""Types of records: numbers and parts by their names, in compiled code and without."""

import numpy as np
import pytest

from hil.compiled import njit
from hil.mechanics.arrays import record_type

POINT = record_type("x", "y")
BODY = record_type("mass", middle=POINT, moments=3)


def test_a_kernel_reads_and_writes_what_python_does():
    @njit
    def turned(bodies):
        for i in range(len(bodies)):
            body = bodies[i]
            body.middle.x, body.middle.y = -body.middle.y, body.middle.x
            body.moments[2] += body.mass

    bodies = np.zeros(2, BODY)
    bodies["mass"], bodies["middle"]["x"], bodies["moments"][1] = 2.0, [3.0, 4.0], 1.0
    turned(bodies)
    assert [bodies[i].middle.y for i in range(2)] == [3.0, 4.0]
    np.testing.assert_array_equal(bodies["moments"], [[0.0, 0.0, 2.0], [1.0, 1.0, 3.0]])


def test_a_record_is_its_numbers_in_order_and_then_its_parts():
    [body] = np.arange(6.0).view(BODY)
    assert (body.mass, body.middle.x, body.middle.y) == (0.0, 1.0, 2.0)
    np.testing.assert_array_equal(body.moments, [3.0, 4.0, 5.0])


@pytest.mark.parametrize("name", ["T", "real", "mean"])
def test_a_name_that_every_record_has_already_is_refused(name):
    with pytest.raises(ValueError, match=f"{name}.*attributes of every record"):
        record_type("x", name)
