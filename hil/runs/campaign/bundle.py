"""The files of a campaign's experiments, for workers that share no folder with this computer."""

from __future__ import annotations

import hashlib
import os
import threading
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from hil.errors import ConfigError
from hil.experiment.loaded import Experiment
from hil.platform.scratch import Scratch
from hil.platform.whole_files import write_whole
from hil.plugins.load import plugin_tables

FOLDER = "hil-campaign-"  # beginning of the names of workers' folders


class Bundle(NamedTuple):
    """Files below a folder.

    Attributes
    ----------
    root : the folder, on the computer that made the bundle
    files : compressed contents by path below it
    """

    root: str
    files: Mapping[str, bytes]

    @property
    def digest(self) -> str:
        """SHA-256 of all paths and contents."""
        digest = hashlib.sha256()
        for name, content in sorted(self.files.items()):
            digest.update(f"{name}\n{len(content)}\n".encode() + content)
        return digest.hexdigest()


def bundle_of(configs: Iterable[Experiment]) -> Bundle:
    """Everything that loading these experiments reads.

    Raises
    ------
    ConfigError
        The files are not below one folder, or one cannot be read.
    """
    paths = sorted({os.path.abspath(path) for config in configs for path in files_of(config)})
    try:
        root = os.path.commonpath([os.path.dirname(path) for path in paths])
    except ValueError:  # on several drives
        raise ConfigError(f"{paths[0]}: workers need all files on one drive: move it") from None
    files = {}
    for path in paths:
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
        files[Path(path).relative_to(root).as_posix()] = zlib.compress(content)
    return Bundle(root, files)


def files_of(config: Experiment) -> list[Path]:
    """The files from which an experiment is loaded."""
    named = [Path(name) for name, _ in config.merged.sources]
    files = [path for path in named if path.suffix == ".toml" and path.is_file()]
    reference = config.merged.table.get("reference")
    if isinstance(reference, dict) and isinstance(reference.get("file"), str):
        files.append(config.path.parent / reference["file"])
    files += [record.path for record in config.records.values()]
    files += [sourced.source.path for sourced in config.sources]
    files += [t.plugin.file for *_, t in plugin_tables(config.tables) if not t.plugin.package]
    return [*files, *(unit.file for unit in config.units.values())]


def unpacked(bundle: Bundle) -> Path:
    """The folder of this process with the files of a bundle, in place of its root."""
    with _ONE:  # a worker may have several threads
        if (kept := _KEPT.get(bundle.digest)) is None:
            kept = Scratch(FOLDER)
            for name, content in bundle.files.items():
                path = kept.path / name
                path.parent.mkdir(parents=True, exist_ok=True)
                write_whole(path, zlib.decompress(content))
            _KEPT[bundle.digest] = kept  # its folder lasts as long as this process
    return kept.path


_KEPT: dict[str, Scratch] = {}
_ONE = threading.Lock()
