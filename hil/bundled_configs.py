"""The configurations that travel with the package."""

from pathlib import Path

from hil.errors import ConfigError, writing
from hil.platform.whole_files import write_whole

FOLDERS = ("configs", "calibration", "examples/ci", "examples/own", "examples/load_frame")
TEMPLATES = ("controller", "reference", "model", "device")


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
    with writing(folder):
        for source, target in zip(sources, targets, strict=True):
            target.parent.mkdir(parents=True, exist_ok=True)
            write_whole(target, source.read_bytes())
    return targets


def copy_template(kind: str, file: Path | None) -> Path:
    """Copy the shipped controller, reference, model or device to start a plug-in from.

    Parameters
    ----------
    kind : one of TEMPLATES
    file : by default `my_<kind>.py` here

    Raises
    ------
    ConfigError
        The file is there already, or cannot be written.
    """
    target = Path(f"my_{kind}.py") if file is None else file
    if target.suffix != ".py":
        raise ConfigError(f"{target}: give the name of a Python file, such as my_{kind}.py")
    if target.exists():
        raise ConfigError(f"{target}: exists already: choose another name")
    text = (root() / "examples" / "own" / f"{kind}.py").read_text(encoding="utf-8")
    with writing(target):
        write_whole(target, text.replace(f"{kind}.py", target.name))
    return target
