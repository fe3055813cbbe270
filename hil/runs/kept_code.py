"""User code stored in a recording, and the trust without which it does not run."""

import importlib.util
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import xarray as xr

from hil.calibration.files import transducers_of
from hil.errors import ConfigError, one_line
from hil.experiment.load import Config, from_toml
from hil.plugins import trust
from hil.record.read import calibrations_of, experiment_of, open_run, plugins_of

# Tab, form feed, the space that does not break: in anybody's editor, and where they seem to be.
HARMLESS = "\t\f\u00a0"


class UntrustedError(ConfigError):
    """A recording contains code that this user has not trusted."""


@dataclass(frozen=True)
class KeptCode:
    """The source of one user-written class.

    Attributes
    ----------
    key : its role, such as `controller`
    kind : as the configuration names it, `mine.py:MyController`
    file : name of its file, as the recording says
    """

    key: str
    kind: str
    file: str
    source: str

    @property
    def sha256(self) -> str:
        """SHA-256 of the stored text, whatever hash the recording states."""
        return trust.sha256_of(self.source)


def kept_code(path: Path) -> list[KeptCode]:
    """The code stored in a recording; for an installed package only its name is stored."""
    return [
        KeptCode(key, facts.get("kind", ""), facts.get("file", ""), facts["source"])
        for key, facts in plugins_of(path).items()
        if not facts.get("package")
    ]


def config_of(path: Path, run: xr.Dataset, code: Mapping[str, str] | None = None) -> Config:
    """The configuration of a recording, with its user code loaded.

    Parameters
    ----------
    run : the recording, as `open_run` gives it
    code : sources by key that run instead of those that it keeps

    Raises
    ------
    UntrustedError
        It keeps code that is not trusted; nothing of it was run.
    ConfigError
        It cannot be configured again by this version.
    """
    if code is None:
        code = _consented(path, run)
    records = transducers_of(path, calibrations_of(path))
    return from_toml(path, experiment_of(run), records, code)


def _consented(path: Path, run: xr.Dataset) -> dict[str, str]:
    kept = kept_code(path)
    unknown = {c.sha256: c for c in kept if c.sha256 not in trust.trusted()}
    if unknown:
        raise UntrustedError(_asking(path, run, list(unknown.values())))
    return {c.key: c.source for c in kept}


def _asking(path: Path, run: xr.Dataset, unknown: Sequence[KeptCode]) -> str:
    """Text on untrusted code: its stated origin, and how to read and trust it."""
    said = {key: one_line(str(run.attrs.get(key, "?"))) for key in
            ("created_utc", "operator", "experiment_file")}  # fmt: skip
    lines = [f"{path}: keeps Python code that has never run here and is not trusted: none was run"]
    for c in unknown:
        lines.append(f"  {one_line(c.file)} for {one_line(c.key)}, sha256 {c.sha256}")
    lines.append(f"  recorded {said['created_utc']} by {said['operator']} with "
                 f"{said['experiment_file']}, as the file says")  # fmt: skip
    words = " ".join(f"--trust {c.sha256}" for c in unknown)
    lines += [
        f"  read it first: hil replay {path} --show-code",
        f"  then let it run: hil replay {path} {words}",
        f"  or run a file of yours instead: hil replay {path} --code FILE.py",
    ]
    return "\n".join(lines)


def let_run(path: Path, hashes: Sequence[str]) -> None:
    """Trust code of this recording by its hashes, permanently.

    Raises
    ------
    ConfigError
        It keeps no code of such a hash, or the hashes cannot be kept.
    """
    kept = {c.sha256: c for c in kept_code(path)}
    for sha256 in hashes:
        if sha256 not in kept:
            there = ", ".join(kept) or "none"
            raise ConfigError(f"--trust {sha256}: {path} keeps no code of that hash: {there}")
        if hidden := _hidden(kept[sha256].source):
            raise ConfigError(
                f"--trust {sha256}: {path}: {hidden}: what is shown of it is not what runs: read "
                "it in an editor and give a copy without, --code FILE.py"
            )
    for sha256 in hashes:
        trust.trust(sha256, f"{kept[sha256].file}, kept in {path.name}, by --trust")


def _hidden(source: str) -> str:
    """The first character that ends a line, or turns it, without being seen."""
    for number, line in enumerate(source.split("\n"), start=1):
        for c in line:
            if not c.isprintable() and c not in HARMLESS:
                return f"line {number} has the character U+{ord(c):04X}"
    return ""


def replaced(path: Path, names: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Sources from files that the user names, by key, and a line on each that is another.

    Parameters
    ----------
    names : a file, or a module of a package as `lab.control`; each stands for the kept file of its
        name, or for the only one

    Raises
    ------
    ConfigError
        No such file, or nothing says which kept code it stands for.
    """
    kept = kept_code(path)
    found: dict[str, str] = {}
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
            there = ", ".join(sorted({one_line(c.file) for c in kept})) or "none"
            raise ConfigError(f"--code {name}: {path} keeps no code of that name: {there}")
        for c in fitting:
            found[c.key] = source
        if trust.sha256_of(source) != fitting[0].sha256:
            lines.append(f"--code {name}: differs from what was recorded: sha256 "
                         f"{trust.sha256_of(source)}, recorded {fitting[0].sha256}")  # fmt: skip
    if missing := [c for c in kept if c.key not in found]:
        consented = trust.trusted()
        for c in missing:
            if c.sha256 not in consented:
                raise UntrustedError(_asking(path, open_run(path), missing))
            found[c.key] = c.source
    return found, lines


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
