"""Versions of the software that made a recording."""

import getpass
import platform
import subprocess
from importlib import metadata
from pathlib import Path

PACKAGES = ("numpy", "scipy", "numba", "h5py")


def software() -> dict[str, str | bool]:
    """Versions of hil and its packages; in a git checkout also commit and dirty state."""
    found: dict[str, str | bool] = {
        "hil-arrays": metadata.version("hil-arrays"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        **{name: metadata.version(name) for name in PACKAGES},
    }
    root = Path(__file__).resolve().parents[2]
    if (root / ".git").exists():
        commit = _git(root, "rev-parse", "HEAD")
        if commit is not None:
            found["commit"] = commit
            found["dirty"] = bool(_git(root, "status", "--porcelain", "--untracked-files=no"))
    return found


def user() -> str:
    """Login name of the user; empty if unknown."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def _git(root: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *words], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
