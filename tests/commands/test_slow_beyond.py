"""Which cases `slow_beyond` leaves to ./run-tests."""

from pathlib import Path

pytest_plugins = ["pytester"]
CONFTEST = Path(__file__).resolve().parents[1] / "conftest.py"
MARKERS = "[pytest]\nmarkers =\n  slow: later\n  slow_beyond(n): the first n are quick\n"
SOURCE = """
import pytest

@pytest.mark.slow_beyond(2)
@pytest.mark.parametrize("k", range(5))
def test_two(k): ...

@pytest.mark.slow_beyond(1)
@pytest.mark.parametrize("k", range(3))
def test_one(k): ...

@pytest.mark.slow_beyond(3)
@pytest.mark.parametrize("k", range(3))
def test_all(k): ...

@pytest.mark.parametrize("k", range(3))
def test_unmarked(k): ...
"""


def test_of_many_cases_of_a_test_the_first_are_quick_and_every_other_one_is_slow(pytester, request):
    pytester.makeini(MARKERS)
    items = pytester.getitems(SOURCE)
    plugins = request.config.pluginmanager.get_plugins()
    (conftest,) = (p for p in plugins if getattr(p, "__file__", None) == str(CONFTEST))
    conftest.pytest_collection_modifyitems(items)
    quick = [item.name for item in items if item.get_closest_marker("slow") is None]
    assert quick == [
        "test_two[0]", "test_two[1]", "test_one[0]", "test_all[0]", "test_all[1]", "test_all[2]",
        "test_unmarked[0]", "test_unmarked[1]", "test_unmarked[2]",
    ]  # fmt: skip
