"""Versions of the software that made a recording, and the processor it ran on."""

import getpass
import hashlib
import platform
import subprocess
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path

PACKAGES = ("numpy", "scipy", "numba", "h5py")


def software() -> dict[str, str | bool]:
    """Versions of hil and its packages, processor; in a git checkout also commit, dirty state."""
    facts: dict[str, str | bool] = {
        "hil-arrays": _version("hil-arrays"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": processor(),
        **{name: _version(name) for name in PACKAGES},
    }
    try:
        return facts | _checkout()
    except (OSError, subprocess.SubprocessError):  # git is missing, or took too long this time
        return facts


def other_versions(recorded: Mapping[str, object]) -> dict[str, tuple[object, object]]:
    """What of `software` differs here: recorded and present value, by name."""
    here = software()
    return {
        name: (recorded[name], here[name])
        for name in ("hil-arrays", "commit", "python", *PACKAGES)
        if name in recorded and name in here and recorded[name] != here[name]
    }


@cache
def _checkout() -> dict[str, str | bool]:
    """Commit and dirty state of a git checkout; asked once, since a process runs what it loaded."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return {}
    commit = _git(root, "rev-parse", "HEAD")
    dirty = bool(_git(root, "status", "--porcelain", "--untracked-files=no"))
    return {"commit": commit, "dirty": dirty}


@cache
def numerics() -> dict[str, str]:
    """Versions on which the figures of a simulation depend; that of hil has a hash of its text."""
    package, digest = Path(__file__).resolve().parents[1], hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        if not name.startswith("examples/"):  # which only an installed package has
            digest.update(name.encode() + path.read_bytes())
    return {
        "hil-arrays": f"{_version('hil-arrays')} ({digest.hexdigest()[:8]})",
        "python": ".".join(platform.python_version_tuple()[:2]),
        **{name: _version(name) for name in PACKAGES},
    }


def processor() -> str:
    """LLVM's name of the processor; compiled code and BLAS round differently on another one.

    Without LLVM, which comes with Numba, the kind of machine.
    """
    try:
        from llvmlite.binding import get_host_cpu_name
    except ImportError:
        return platform.machine()
    name: str = get_host_cpu_name()
    return name


def user() -> str:
    """Login name of the user; empty if unknown."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


@cache
def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:  # numba is an extra
        return "not installed"


def _git(root: Path, *words: str) -> str:
    """What git says; it takes no lock of the user's checkout."""
    command = ["git", "--no-optional-locks", "-C", str(root), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    return done.stdout.strip()
