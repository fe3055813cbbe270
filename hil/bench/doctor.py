"""`hil doctor`: checks whether this machine is fit for real time, and names remedies."""

import os
import platform
import shutil
import sys
from ctypes.util import find_library
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from hil.bench.latency import PERIODS_MAX
from hil.bench.realtime import compiler
from hil.config.values import Figures
from hil.errors import install
from hil.loop.clock import RealClock, sees_sleep
from hil.platform import sleep

PROBE_PERIOD_S = 0.001
PROBE_TICKS = 1000
# Shared library -> Debian's package of it.
QT_LIBRARIES = {
    "without a screen": {
        "glib-2.0": "libglib2.0-0",
        "GL": "libgl1",
        "EGL": "libegl1",
        "xkbcommon": "libxkbcommon0",
        "dbus-1": "libdbus-1-3",
        "fontconfig": "libfontconfig1",
    },
    "on X11": {
        "xcb-cursor": "libxcb-cursor0",
        "xcb-icccm": "libxcb-icccm4",
        "xcb-keysyms": "libxcb-keysyms1",
        "xcb-shape": "libxcb-shape0",
        "xcb-xkb": "libxcb-xkb1",
        "xkbcommon-x11": "libxkbcommon-x11-0",
    },
}


def examine(loopback: Figures | None = None) -> Figures:
    """Examine the machine; `fit` is whether a real-time run at 1 kHz makes sense here.

    `loopback` is the result of `hil.bench.latency`, if it was measured.
    """
    findings = [
        _python(),
        _kernel(),
        _preemption(),
        _priority(),
        _sleep(),
        _throttling(),
        _memory_lock(),
        _governor(),
        _clock_source(),
        _isolated(),
        _shared_memory(),
        _virtual(),
        _compiler(),
        _extras(),
        _qt(),
        _serial(),
        _daq(),
        _wake_up(),
    ]
    if loopback is not None:
        findings.append(_loopback(loopback))
        findings += [_offset(*item) for item in loopback["offsets"].items()]
    return {
        "fit": all(finding["state"] != "unfit" for finding in findings),
        "findings": findings,
    }


def as_text(report: Figures) -> str:
    """One line a finding, remedies indented below."""
    marks = {"good": "ok   ", "could be better": "note ", "unfit": "UNFIT"}
    lines = []
    for finding in report["findings"]:
        lines.append(f"{marks[finding['state']]} {finding['what']}: {finding['found']}")
        if finding["remedy"]:
            lines.append(f"        {finding['remedy']}")
    verdict = "fit" if report["fit"] else "NOT fit"
    lines += ["", f"This machine is {verdict} for runs on the real clock at 1 kHz."]
    return "\n".join(lines)


def _finding(what: str, observation: str, remedy: str = "", state: str = "") -> dict[str, str]:
    """One finding; with a remedy it is one that could be better, unless the state says more."""
    state = state or ("could be better" if remedy else "good")
    return {"what": what, "found": observation, "state": state, "remedy": remedy}


def _python() -> dict[str, str]:
    return _finding("Python", f"{platform.python_version()} on {platform.machine()}")


def _kernel() -> dict[str, str]:
    if sys.platform != "linux":
        return _finding(
            "kernel",
            platform.platform(),
            "hard timing needs Linux; all else works here, runs on the real clock included",
            state="could be better",
        )
    return _finding("kernel", platform.release())


def _preemption() -> dict[str, str]:
    """The preemption model, from the version string and the boot line of the kernel."""
    if sys.platform != "linux":
        return _finding("preemption", "not on this system", state="could be better")
    words, boot = platform.version().split(), _read("/proc/cmdline").split()
    if _read("/sys/kernel/realtime") == "1" or "PREEMPT_RT" in words:
        return _finding("preemption", "PREEMPT_RT")
    modes = [word.removeprefix("preempt=") for word in boot if word.startswith("preempt=")]
    if "PREEMPT" in words or "full" in modes:
        return _finding("preemption", "full")
    remedy = "boot with preempt=full, or take a PREEMPT_RT kernel for hard deadlines"
    if "PREEMPT_DYNAMIC" in words:
        observation = f"chosen at boot: {modes[0]}" if modes else "chosen at boot, none requested"
        return _finding("preemption", observation, f"on the kernel command line: {remedy}")
    return _finding("preemption", "voluntary or none", remedy)


def _priority() -> dict[str, str]:
    if sys.platform != "linux":
        return _finding("real-time priority", "not on this system", state="could be better")
    before = os.sched_getscheduler(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        return _finding(
            "real-time priority",
            "SCHED_FIFO is not allowed",
            f"add '{os.environ.get('USER', 'USER')} - rtprio 80' to /etc/security/limits.conf "
            "and log in again",
        )
    os.sched_setscheduler(0, before, os.sched_param(0))
    return _finding("real-time priority", "SCHED_FIFO is allowed")


def _sleep() -> dict[str, str]:
    """Whether a run can keep the machine awake."""
    with sleep.held_off() as how:
        observation = how
    if not sees_sleep():
        observation += "; sleep of the computer is not detected"
    if not how.startswith(sleep.NOT_HELD):
        return _finding("sleep during a run", observation)
    remedy = "prevent sleep yourself"
    if sys.platform == "linux":
        remedy += ", as root: systemctl mask sleep.target suspend.target"
    return _finding("sleep during a run", observation, remedy)


def _throttling() -> dict[str, str]:
    """The share of time for which the kernel lets real-time processes run."""
    runtime, period = (
        _read(f"/proc/sys/kernel/sched_rt_{name}_us") for name in ("runtime", "period")
    )
    if not runtime or not period:
        return _finding("real-time share", "unknown")
    if int(runtime) < 0:
        return _finding("real-time share", "not limited")
    share = 100.0 * int(runtime) / int(period)
    remedy = f"as root: sysctl kernel.sched_rt_runtime_us={int(0.95 * int(period))}"
    observation = f"{share:.0f} % of every {int(period) / 1e6:g} s"
    return _finding("real-time share", observation, "" if share >= 90.0 else remedy)


def _memory_lock() -> dict[str, str]:
    if sys.platform != "linux":
        return _finding("locked memory", "not on this system", state="could be better")
    import resource

    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    if limit == resource.RLIM_INFINITY or os.geteuid() == 0:
        return _finding("locked memory", "no limit")
    if limit >= 256 * 2**20:
        return _finding("locked memory", f"up to {limit // 2**20} MiB")
    return _finding(
        "locked memory",
        f"only {limit // 1024} KiB",
        "add 'USER - memlock unlimited' to /etc/security/limits.conf and log in again",
    )


def _governor() -> dict[str, str]:
    paths = sorted(Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor"))
    governors = {path.read_text().strip() for path in paths}
    if not governors:
        return _finding("CPU frequency", "not scaled by this kernel")
    observation = f"governor {', '.join(sorted(governors))}"
    remedy = "as root: cpupower frequency-set -g performance"
    return _finding("CPU frequency", observation, "" if governors == {"performance"} else remedy)


def _clock_source() -> dict[str, str]:
    source = _read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    fast = source in ("tsc", "kvm-clock", "arch_sys_counter")
    remedy = "tsc is the fastest to read: see the kernel option clocksource=tsc"
    return _finding("clock source", source or "unknown", "" if fast else remedy)


def _isolated() -> dict[str, str]:
    n_cpus = os.cpu_count() or 1
    isolated = _read("/sys/devices/system/cpu/isolated")
    if isolated:
        return _finding("CPUs", f"{n_cpus}, isolated: {isolated}")
    if n_cpus < 2:
        return _finding("CPUs", "one", "the recorder shares it with the loop: use two")
    return _finding("CPUs", f"{n_cpus}, none isolated")


def _shared_memory() -> dict[str, str]:
    folder = Path("/dev/shm")
    if folder.is_dir() and os.access(folder, os.W_OK):
        free_B = shutil.disk_usage(folder).free
        if free_B > 64 * 2**20:
            return _finding("shared memory", f"/dev/shm, {free_B // 2**20} MiB free")
    return _finding(
        "shared memory",
        "no space in /dev/shm",
        "rows pass through the temporary folder instead: mount a tmpfs on /dev/shm",
    )


def _compiler() -> dict[str, str]:
    compiler_path = compiler()
    remedy = "" if compiler_path else "only needed to build firmware: apt install gcc"
    return _finding("C compiler", compiler_path or "none", remedy)


def _extras() -> dict[str, str]:
    parts = {
        "fast": "numba", "gui": "pyqtgraph", "daq": "nidaqmx", "sweep": "distributed",
        "control": "control",
    }  # fmt: skip
    missing = [extra for extra, module in parts.items() if find_spec(module) is None]
    if not missing:
        return _finding("extras", "all installed")
    return _finding("extras", f"without {','.join(missing)}", install(*missing))


def _virtual() -> dict[str, str]:
    """Whether this is a virtual machine, and the share of time that its host has taken."""
    if " hypervisor" not in _read("/proc/cpuinfo"):
        return _finding("machine", "no hypervisor")
    words = _read("/proc/stat").splitlines()[:1]
    ticks = [int(word) for word in words[0].split()[1:9]] if words else [0] * 8
    share = 100.0 * ticks[7] / max(1, sum(ticks))
    return _finding(
        "machine",
        f"virtual; {share:.1f} % of its time was stolen since boot",
        "a virtual machine stalls at times: run experiments on real hardware",
    )


def _qt() -> dict[str, str]:
    """The shared libraries that PySide6 needs, by display."""
    if find_spec("PySide6") is None:
        return _finding("Qt", "not installed (an extra: gui)")
    if sys.platform != "linux":
        return _finding("Qt", "installed with its libraries")
    missing = {
        what: [package for library, package in wanted.items() if not find_library(library)]
        for what, wanted in QT_LIBRARIES.items()
    }
    if not any(missing.values()):
        return _finding("Qt libraries", "for a screen and without one")
    lacking = [what for what, packages in missing.items() if packages]
    packages = " ".join(package for names in missing.values() for package in names)
    return _finding(
        "Qt libraries",
        f"some are missing to draw {' and '.join(lacking)}",
        f"sudo apt-get install {packages}",
    )


def _serial() -> dict[str, str]:
    """Latency timers of USB serial adapters, and whether this user may open the ports."""
    ports = [Path("/dev") / path.name for path in Path("/sys/bus/usb-serial/devices").glob("*")]
    ports += sorted(Path("/dev").glob("ttyACM*"))
    if not ports:
        return _finding("serial ports", "no USB serial port is plugged in")
    shut = [str(port) for port in ports if not os.access(port, os.R_OK | os.W_OK)]
    if shut:
        return _finding(
            "serial ports",
            f"{', '.join(shut)} may not be opened",
            "sudo usermod -a -G dialout $USER, and log in again",
        )
    slow = [
        (port.name, timer)
        for port in ports
        if (timer := _read(f"/sys/bus/usb-serial/devices/{port.name}/latency_timer"))
        and int(timer) > 1
    ]
    if slow:
        name, timer = slow[0]
        return _finding(
            "serial ports",
            f"{name} delays bytes by {timer} ms",
            f"echo 1 | sudo tee /sys/bus/usb-serial/devices/{name}/latency_timer",
        )
    return _finding("serial ports", f"{', '.join(port.name for port in ports)}, no latency timer")


def _daq() -> dict[str, str]:
    """NI's driver, without which nidaqmx finds no card."""
    if find_spec("nidaqmx") is None:
        return _finding("NI-DAQmx", "the Python package is not installed (an extra: daq)")
    if find_library("nicaiu" if sys.platform == "win32" else "nidaqmx"):
        return _finding("NI-DAQmx", "driver found; cards are read in blocks, without a timer")
    return _finding(
        "NI-DAQmx",
        "no driver: cards cannot be used here, simulated ones can",
        "install NI's Linux drivers (Ubuntu, RHEL or openSUSE), or read a card in another computer "
        "with kind = 'nidaq_remote'",
    )


def _loopback(figures: Figures) -> dict[str, str]:
    """Latency from one edge of the gate to the next, through the wire."""
    text = (
        f"ADC to gate p50 {1e3 * figures['p50_s']:.2f} ms, p99 {1e3 * figures['p99_s']:.2f} ms, "
        f"max {1e3 * figures['max_s']:.2f} ms: {figures['p99_periods']:.2f} periods "
        f"({', '.join(f'{name} {kind}' for name, kind in figures['backend'].items())})"
    )
    remedy = (
        f"more than {PERIODS_MAX:g} periods: check the latency timers above, and the card's filter"
    )
    return _finding("loop-back", text, "" if figures["p99_periods"] <= PERIODS_MAX else remedy)


def _offset(channel: str, figures: Figures) -> dict[str, str]:
    """How much later than the board a device dates the same edge."""
    off_ms, u_ms = 1e3 * figures["offset_s"], 1e3 * figures["uncertainty_s"]
    text = (
        f"{channel} dates an edge {off_ms:.2f} ms after the board (standard uncertainty "
        f"{u_ms:.2f} ms, {figures['edges']} edges)"
    )
    remedy = "its age leaves this delay out: look for a filter" if off_ms > 2.0 * u_ms else ""
    return _finding("time base", text, remedy)


def _wake_up() -> dict[str, str]:
    """Lateness of a bare loop, measured for a second."""
    clock = RealClock()
    late_s = np.empty(PROBE_TICKS)
    clock.start()
    for tick in range(PROBE_TICKS):
        late_s[tick] = clock.sleep_until_s(tick * PROBE_PERIOD_S)
    p50_us, p99_us = (1e6 * q for q in np.quantile(late_s, (0.5, 0.99)))
    lateness = f"late by p50 {p50_us:.0f} us, p99 {p99_us:.0f} us, max {1e6 * late_s.max():.0f} us"
    if p50_us > 1e6 * PROBE_PERIOD_S / 2:
        return _finding(
            "1 kHz wake-up",
            lateness,
            "the computer is overloaded or its timers are coarse",
            state="unfit",
        )
    if p99_us > 1e6 * PROBE_PERIOD_S:
        return _finding("1 kHz wake-up", lateness, "occasional stalls")
    return _finding("1 kHz wake-up", lateness)


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
