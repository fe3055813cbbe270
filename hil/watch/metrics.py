"""Metrics of a bench for Prometheus, at `/metrics` of its page."""

import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from hil.watch.bench import Bench

if TYPE_CHECKING:
    from prometheus_client import Metric

TYPE = "text/plain; version=0.0.4; charset=utf-8"
MISSING = "metrics need an extra: pip install 'hil-arrays[metrics]'\n"


def is_installed() -> bool:
    """Whether the package is installed."""
    return find_spec("prometheus_client") is not None


def metrics_of(bench: Bench) -> bytes:
    """The metrics of a bench as it is now, in Prometheus' text format."""
    from prometheus_client import CollectorRegistry, generate_latest

    class Collector:
        def collect(self) -> "Iterator[Metric]":
            return _families(bench)

    registry = CollectorRegistry()
    registry.register(Collector())
    return generate_latest(registry)


def _families(bench: Bench) -> "Iterator[Metric]":
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    def gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
        return GaugeMetricFamily(f"hil_{name}", text, value=value)

    state = bench.state()
    if campaign := state.get("campaign"):
        yield gauge("trials", "trials of the campaign", campaign["count"])
        yield gauge("trials_complete", "trials that are complete", campaign["complete"])
        waits = float(bool(campaign["asked"]))
        yield gauge("waits_for_operator", "1 while the campaign waits for its operator", waits)
    if fatigue := state.get("fatigue"):
        yield CounterMetricFamily("hil_cycles", "cycles of the fatigue test", fatigue["cycles"])
    if bench.folder.is_dir():
        free_B = shutil.disk_usage(bench.folder).free
        yield gauge("disk_free_bytes", "free where the recordings are", free_B)
    run = bench.run
    yield gauge(
        "running", "1 while a run is in progress", float(run is not None and not run.is_over)
    )
    if run is None or run.facts is None:
        return
    yield CounterMetricFamily("hil_rows", "rows of the run", run.n_rows)
    yield gauge("row_age_seconds", "time since the last row", run.age_s)
    now, about = run.latest(), run.about()
    tripped = gauge("faults", "latched faults of the guard", len(now.get("faults", ())))
    yield tripped
    families = {
        kind: GaugeMetricFamily(
            f"hil_{kind}", f"{kind} value of a signal", labels=("signal", "unit")
        )
        for kind in ("measured", "model")
    }
    for signal, (measured, model, _) in zip(about["signals"], now.get("last", ()), strict=False):
        for family, value in zip(families.values(), (measured, model), strict=True):
            if value is not None:
                family.add_metric((signal["name"], signal["unit"]), value)
    yield from families.values()
    used = GaugeMetricFamily("hil_limit_used_ratio", "share of a limit in use", labels=("limit",))
    for (name, *_), (_, share) in zip(about["limits"], now.get("limits", ()), strict=False):
        if share is not None:
            used.add_metric((name,), share)
    yield used
    ages = GaugeMetricFamily("hil_reading_age_seconds", "age of a reading", labels=("device",))
    for device, age_s in zip(about["devices"], now.get("ages", ()), strict=False):
        if age_s is not None:
            ages.add_metric((device,), age_s)
    yield ages
