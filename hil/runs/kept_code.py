"""Code of others that a recording contains or names; it runs only if the user trusts it.

A plug-in class is in the recording. A functional mock-up unit (FMU) is a file that it names, of the
twin alone: no plant runs again.
"""

import importlib.util
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import xarray as xr

from hil.calibration.files import transducers_of
from hil.errors import ConfigError, one_line
from hil.experiment.load import from_toml
from hil.experiment.loaded import Experiment
from hil.experiment.registry import named
from hil.platform.terminal import word
from hil.plugins import trust
from hil.record.read import calibrations_of, experiment_of, open_run, plugins_of

# Tab, form feed, no-break space: every editor shows them at their place.
HARMLESS = "\t\f\u00a0"


class UntrustedError(ConfigError):
    """A recording contains code that this user has not trusted."""


@dataclass(frozen=True)
class KeptCode:
    """The source of one user-written class.

    Attributes
    ----------
    key : path of its table, such as `controller`
    kind : as the configuration names it, such as `mine.py:MyController`
    file : name of its file, as the recording states it
    """

    key: str
    kind: str
    file: str
    source: str

    @property
    def sha256(self) -> str:
        """SHA-256 of the stored text, independent of the hash that the recording states."""
        return trust.sha256_of(self.source)


@dataclass(frozen=True)
class NamedUnit:
    """A file of native code that the twin of a recording runs.

    Attributes
    ----------
    stated : its SHA-256, as the recording states it; empty in older recordings
    """

    file: Path
    stated: str

    @property
    def sha256(self) -> str:
        """SHA-256 of the file; ConfigError if it cannot be read."""
        try:
            return trust.sha256_of_file(self.file)
        except OSError as error:
            raise ConfigError(
                f"model.file: '{one_line(str(self.file))}': cannot be read "
                f"({error.strerror}): the recording names this file, and does not contain it"
            ) from None


def named_unit(run: xr.Dataset) -> NamedUnit | None:
    """The unit of a recording's twin; None without one."""
    table = experiment_of(run).get("model")
    if not isinstance(table, dict):
        return None
    kind = named(table.get("kind"))
    file = table.get(kind.code) if kind is not None else None
    if not isinstance(file, str):
        return None
    return NamedUnit(Path(file), str(run.attrs.get("model_sha256", "")))


def kept_code(path: Path) -> list[KeptCode]:
    """The user code stored in a recording, without that of installed packages."""
    return [
        KeptCode(key, facts.get("kind", ""), facts.get("file", ""), facts["source"])
        for key, facts in plugins_of(path).items()
        if not facts.get("package")
    ]


def config_of(path: Path, run: xr.Dataset, code: Mapping[str, str] | None = None) -> Experiment:
    """The configuration of a recording, with its user code loaded.

    Parameters
    ----------
    run : the recording, as `open_run` returns it
    code : sources by key that replace the stored ones

    Raises
    ------
    UntrustedError
        The recording contains code that is not trusted; none of it was run.
    ConfigError
        This version cannot load its configuration.
    """
    if code is None:
        code = _consented(path, run)
    _refuse_unit(path, run)
    records = transducers_of(path, calibrations_of(path))
    config = from_toml(path, experiment_of(run), records, code)
    for unit in config.units.values():
        if unit.sha256 not in trust.trusted():  # changed since
            raise UntrustedError(_unit_message(path, run, NamedUnit(unit.file, unit.sha256)))
    return config


def _refuse_unit(path: Path, run: xr.Dataset) -> None:
    """Refuse an untrusted unit; a file that the recording itself calls untrusted is not opened."""
    unit = named_unit(run)
    if unit is None:
        return
    consented = trust.trusted()
    for sha256 in (unit.stated or unit.sha256, unit.sha256):
        if sha256 not in consented:
            raise UntrustedError(_unit_message(path, run, NamedUnit(unit.file, sha256)))
    if unit.stated and unit.sha256 != unit.stated:
        raise ConfigError(
            f"{path}: model.file: {unit.file} differs from the unit that was recorded, sha256 "
            f"{unit.stated}: put that one there to replay"
        )


def _needed(path: Path) -> list[KeptCode]:
    """Stored code without that of the plant, which does not run again."""
    return [c for c in kept_code(path) if c.key != "plant"]


def _consented(path: Path, run: xr.Dataset) -> dict[str, str]:
    kept = _needed(path)
    unknown = {c.sha256: c for c in kept if c.sha256 not in trust.trusted()}
    if unknown:
        raise UntrustedError(_trust_message(path, run, list(unknown.values())))
    return {c.key: c.source for c in kept}


def _trust_message(path: Path, run: xr.Dataset, unknown: Sequence[KeptCode]) -> str:
    """Message on untrusted code: its stated origin, and how to read and trust it."""
    lines = [f"{path}: contains Python code that is not trusted: none of it was run"]
    for c in unknown:
        lines.append(f"  {one_line(c.file)} for {one_line(c.key)}, sha256 {c.sha256}")
    lines.append(_origin(run))
    words = " ".join(f"--trust {c.sha256}" for c in unknown)
    lines += [
        f"  read it first: hil replay {word(path)} --show-code",
        f"  then trust it: hil replay {word(path)} {words}",
        f"  or run your own file instead: hil replay {word(path)} --code FILE.py",
    ]
    return "\n".join(lines)


def _unit_message(path: Path, run: xr.Dataset, unit: NamedUnit) -> str:
    """Message on an untrusted unit."""
    return "\n".join(
        [
            f"{path}: its twin is a unit of native code that is not trusted: it was not run",
            f"  {one_line(str(unit.file))} for model, sha256 {unit.stated}",
            _origin(run),
            f"  if you know where it comes from: hil replay {word(path)} --trust {unit.stated}",
        ]
    )


def _origin(run: xr.Dataset) -> str:
    """The stated origin of a recording."""
    stated = {key: one_line(str(run.attrs.get(key, "?"))) for key in
            ("created_utc", "operator", "experiment_file")}  # fmt: skip
    return (
        f"  recorded {stated['created_utc']} by {stated['operator']} with "
        f"{stated['experiment_file']}, as the file states"
    )


def let_run(path: Path, hashes: Sequence[str]) -> None:
    """Trust code of this recording by its hashes, permanently.

    Raises
    ------
    ConfigError
        The recording has no code with such a hash, the code has invisible characters, or the
        hash cannot be stored.
    """
    if not hashes:
        return
    kept = {c.sha256: c for c in kept_code(path)}
    unit = named_unit(open_run(path))
    of_unit = "" if unit is None else unit.stated or unit.sha256
    for sha256 in hashes:
        if sha256 == of_unit:
            continue
        if sha256 not in kept:
            choices = ", ".join(filter(None, [*kept, of_unit])) or "none"
            raise ConfigError(
                f"--trust {sha256}: {path} contains no code with that hash: {choices}"
            )
        if hidden := _hidden(kept[sha256].source):
            raise ConfigError(
                f"--trust {sha256}: {path}: {hidden}: the code that runs differs from the code "
                "that is shown: read it in an editor and give a copy without that character, "
                "--code FILE.py"
            )
    for sha256 in hashes:
        file = kept[sha256].file if sha256 in kept else str(unit and unit.file)
        trust.trust(sha256, f"{file}, kept in {path.name}, by --trust")


def _hidden(source: str) -> str:
    """The first invisible character, which may break or reverse a line; empty if none."""
    for number, line in enumerate(source.split("\n"), start=1):
        for c in line:
            if not c.isprintable() and c not in HARMLESS:
                return f"line {number} has the character U+{ord(c):04X}"
    return ""


def replaced(path: Path, names: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Sources from the user's files by key, and a line for each that differs from the recorded one.

    Parameters
    ----------
    names : file, or module of a package such as `lab.control`; each replaces the stored file of
        the same name, or the only one

    Raises
    ------
    ConfigError
        There is no such file, or no stored code that it could replace.
    UntrustedError
        Stored code that is not replaced is not trusted.
    """
    kept = _needed(path)
    sources: dict[str, str] = {}
    lines = []
    for name in names:
        file = _file_of(name)
        try:
            source = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"--code {name}: cannot be read ({error})") from None
        fitting = [c for c in kept if Path(c.file).name == file.name]
        if not fitting and len({c.sha256 for c in kept}) == 1:
            fitting = kept
        if not fitting:
            choices = ", ".join(sorted({one_line(c.file) for c in kept})) or "none"
            raise ConfigError(f"--code {name}: {path} contains no code with that name: {choices}")
        for c in fitting:
            sources[c.key] = source
        if trust.sha256_of(source) != fitting[0].sha256:
            lines.append(f"--code {name}: differs from the recorded code: sha256 "
                         f"{trust.sha256_of(source)}, recorded {fitting[0].sha256}")  # fmt: skip
    if missing := [c for c in kept if c.key not in sources]:
        consented = trust.trusted()
        for c in missing:
            if c.sha256 not in consented:
                raise UntrustedError(_trust_message(path, open_run(path), missing))
            sources[c.key] = c.source
    return sources, lines


def _file_of(name: str) -> Path:
    if name.endswith(".py") or not re.fullmatch(r"\w+(\.\w+)*", name):
        return Path(name)
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise ConfigError(f"--code {name}: no such file, and no installed module of that name")
    return Path(spec.origin)
