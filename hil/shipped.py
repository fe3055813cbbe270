"""The configurations that travel with the package."""

import shutil
from pathlib import Path

from hil.errors import ConfigError

FOLDERS = ("configs", "calibration")


def root() -> Path:
    """Where they lie: beside the package in a checkout, inside it in a wheel."""
    package = Path(__file__).resolve().parent
    return package / "examples" if (package / "examples").is_dir() else package.parent


def copy_examples(folder: Path) -> list[Path]:
    """Copy them into a folder; the files made.

    Raises
    ------
    ConfigError
        A file is there already, or the folder cannot be written.
    """
    sources = [path for name in FOLDERS for path in sorted((root() / name).rglob("*.*"))]
    targets = [folder / source.relative_to(root()) for source in sources]
    for target in targets:
        if target.exists():
            raise ConfigError(f"{target}: exists already: choose an empty folder")
    try:
        for source, target in zip(sources, targets, strict=True):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be written ({error.strerror})") from None
    return targets
