"""That the figures of simulated cards are measured; what they are is not asserted."""

import json

from hil.bench import daq


def test_every_figure_is_measured_and_has_its_line(monkeypatch):
    monkeypatch.setattr(daq, "TICKS", 20)
    monkeypatch.setattr(daq, "MINUTE_S", 0.1)
    monkeypatch.setattr(daq, "CALLS", 5)
    found = daq.measure()
    assert found["samples_right"] == found["samples_expected"] == 4 * 1000
    assert min(found["tick_p50_s"], found["minute_s"], found["grpc_read_p50_s"]) > 0.0
    assert json.loads(json.dumps(found)) == found
    assert len(daq.as_text(found).splitlines()) == 3
