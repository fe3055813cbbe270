import pytest

from hil_studies.array_speed import recruitment as control


@pytest.mark.slow
def test_recruitment_is_timed_with_and_without_the_tests_for_failed_cells(monkeypatch):
    monkeypatch.setattr(control, "TICKS", 200)
    monkeypatch.setattr(control, "ROUNDS", 1)
    found = control.compare()
    wires = [f"{name}, wires" for name in (*control.EXPERIMENTS, "optimal, modulated")]
    assert list(found) == [*control.EXPERIMENTS, *wires]
    for row in found.values():
        assert all(value > 0.0 for value in row.values())
        assert row["dearest_s"] >= row["tick_p50_s"]
    assert control.as_text(found).count("median below 30 us") == 6
