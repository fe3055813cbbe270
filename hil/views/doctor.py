"""`hil doctor`: is this machine fit for real time, and what would make it fitter."""

import os
import platform
import resource
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from hil.clock import RealClock

PROBE_PERIOD_S = 0.001
PROBE_TICKS = 1000


def examine() -> dict[str, Any]:
    """Look at the machine; `fit` is whether a real-time run at 1 kHz makes sense here."""
    findings = [
        _python(),
        _kernel(),
        _priority(),
        _memory_lock(),
        _governor(),
        _clock_source(),
        _isolated(),
        _shared_memory(),
        _compiler(),
        _extras(),
        _wake_up(),
    ]
    return {
        "fit": all(finding["state"] != "unfit" for finding in findings),
        "findings": findings,
    }


def as_text(found: dict[str, Any]) -> str:
    """One line a finding, remedies indented below."""
    marks = {"good": "ok   ", "could be better": "note ", "unfit": "UNFIT"}
    lines = []
    for finding in found["findings"]:
        lines.append(f"{marks[finding['state']]} {finding['what']}: {finding['found']}")
        if finding["remedy"]:
            lines.append(f"        {finding['remedy']}")
    verdict = "fit" if found["fit"] else "NOT fit"
    lines += ["", f"This machine is {verdict} for runs on the real clock at 1 kHz."]
    return "\n".join(lines)


def _finding(what: str, found: str, state: str = "good", remedy: str = "") -> dict[str, str]:
    return {"what": what, "found": found, "state": state, "remedy": remedy}


def _python() -> dict[str, str]:
    return _finding("Python", f"{platform.python_version()} on {platform.machine()}")


def _kernel() -> dict[str, str]:
    if sys.platform != "linux":
        return _finding(
            "kernel",
            platform.platform(),
            "unfit",
            "the real-time loop needs Linux; models, reports and recordings work here",
        )
    kind = "PREEMPT_RT" if _read("/sys/kernel/realtime") == "1" else platform.version()
    return _finding("kernel", f"{platform.release()} ({kind})")


def _priority() -> dict[str, str]:
    if sys.platform != "linux":
        return _finding("real-time priority", "not on this system", "could be better")
    before = os.sched_getscheduler(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        return _finding(
            "real-time priority",
            "SCHED_FIFO is not allowed",
            "could be better",
            f"add '{os.environ.get('USER', 'USER')} - rtprio 80' to /etc/security/limits.conf "
            "and log in again",
        )
    os.sched_setscheduler(0, before, os.sched_param(0))
    return _finding("real-time priority", "SCHED_FIFO is allowed")


def _memory_lock() -> dict[str, str]:
    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    if limit == resource.RLIM_INFINITY or os.geteuid() == 0:
        return _finding("locked memory", "no limit")
    if limit >= 256 * 2**20:
        return _finding("locked memory", f"up to {limit // 2**20} MiB")
    return _finding(
        "locked memory",
        f"only {limit // 1024} KiB",
        "could be better",
        "add 'USER - memlock unlimited' to /etc/security/limits.conf and log in again",
    )


def _governor() -> dict[str, str]:
    paths = sorted(Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor"))
    governors = {path.read_text().strip() for path in paths}
    if not governors:
        return _finding("CPU frequency", "not scaled by this kernel")
    if governors == {"performance"}:
        return _finding("CPU frequency", "governor performance")
    return _finding(
        "CPU frequency",
        f"governor {', '.join(sorted(governors))}",
        "could be better",
        "as root: cpupower frequency-set -g performance",
    )


def _clock_source() -> dict[str, str]:
    source = _read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    if source in ("tsc", "kvm-clock", "arch_sys_counter"):
        return _finding("clock source", source)
    return _finding(
        "clock source",
        source or "unknown",
        "could be better",
        "tsc is quickest to read: see the kernel option clocksource=tsc",
    )


def _isolated() -> dict[str, str]:
    n_cpus = os.cpu_count() or 1
    isolated = _read("/sys/devices/system/cpu/isolated")
    if isolated:
        return _finding("CPUs", f"{n_cpus}, isolated: {isolated}")
    if n_cpus < 2:
        return _finding(
            "CPUs", "one", "could be better", "the recorder shares it with the loop: use two"
        )
    return _finding("CPUs", f"{n_cpus}, none isolated")


def _shared_memory() -> dict[str, str]:
    folder = Path("/dev/shm")
    if folder.is_dir() and os.access(folder, os.W_OK):
        free_B = shutil.disk_usage(folder).free
        if free_B > 64 * 2**20:
            return _finding("shared memory", f"/dev/shm, {free_B // 2**20} MiB free")
    return _finding(
        "shared memory",
        "no room in /dev/shm",
        "could be better",
        "rows travel through the temporary folder instead: mount a tmpfs on /dev/shm",
    )


def _compiler() -> dict[str, str]:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler:
        return _finding("C compiler", compiler)
    return _finding(
        "C compiler", "none", "could be better", "only needed to build firmware: apt install gcc"
    )


def _extras() -> dict[str, str]:
    parts = {"gui": "pyqtgraph", "daq": "nidaqmx", "sweep": "distributed", "control": "control"}
    missing = [extra for extra, module in parts.items() if find_spec(module) is None]
    if not missing:
        return _finding("extras", "all installed")
    names = ",".join(missing)
    return _finding(
        "extras", f"without {names}", "could be better", f"pip install 'hil-arrays[{names}]'"
    )


def _wake_up() -> dict[str, str]:
    """Lateness of a bare loop, measured for a second."""
    clock = RealClock()
    late_s = np.empty(PROBE_TICKS)
    clock.start()
    for tick in range(PROBE_TICKS):
        late_s[tick] = clock.sleep_until_s(tick * PROBE_PERIOD_S)
    p50_us, p99_us = (1e6 * q for q in np.quantile(late_s, (0.5, 0.99)))
    found = f"late by p50 {p50_us:.0f} us, p99 {p99_us:.0f} us, max {1e6 * late_s.max():.0f} us"
    if p50_us > 1e6 * PROBE_PERIOD_S / 2:
        return _finding(
            "1 kHz wake-up", found, "unfit", "the machine is overloaded or does not sleep finely"
        )
    if p99_us > 1e6 * PROBE_PERIOD_S:
        return _finding(
            "1 kHz wake-up", found, "could be better", "something stalls it now and then"
        )
    return _finding("1 kHz wake-up", found)


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
