import pytest

from hil.errors import ModelError
from hil.systems.linear.system import LinearSystem


def test_a_model_that_grows_beyond_all_numbers_within_a_period_is_refused():
    with pytest.raises(ModelError, match="the state overflows within"):
        LinearSystem([[1e12]], [[1.0]], [[1.0]], None, ["u"], ["y"], 0.001)
