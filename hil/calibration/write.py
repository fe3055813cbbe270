"""Writes a calibration record with its hash; an existing record is never changed."""

import math
import re
import textwrap
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from numpy.typing import ArrayLike, NDArray

from hil.calibration.files import Record, digest, hash_of, parse_any
from hil.calibration.tables import refuse_no_covariance
from hil.errors import ConfigError
from hil.platform.whole_files import whole

WIDTH = 100
MATRIX_MAX = 12  # larger diagonal covariances are written as standard uncertainties
ROUNDING = 0.01  # rounding step of a value, in standard uncertainties
WIDER = 1e-5  # of each variance, where six digits of a covariance are none of a covariance


def values_table(
    kind: str,
    values: Mapping[str, float],
    covariance: ArrayLike,
    **keys: object,
) -> dict[str, object]:
    """`[model]` of a record of values.

    Values are rounded to a hundredth of their standard uncertainty or finer. This is short enough
    to repeat in a configuration, and the rounding error is negligible (JCGM 100:2008, 7.2.6).
    """
    C = np.array(covariance, dtype=float)
    u = [math.sqrt(max(c, 0.0)) for c in np.diag(C)]
    spread = (
        {"uncertainties": [_short(one) for one in u]}
        if len(u) > MATRIX_MAX and not np.any(C - np.diag(np.diag(C)))
        else {"covariance": _written(C)}
    )
    return {
        "kind": kind,
        "names": list(values),
        "values": [_round(v, one) for v, one in zip(values.values(), u, strict=True)],
        **spread,
        **{key: _shortened(value) for key, value in keys.items() if value is not None},
    }


def raw_table(
    data: Mapping[str, Sequence[object]], files: Mapping[str, str] | None = None
) -> object:
    """`[raw]`: the raw readings with their hash."""
    columns = {key: [_plain(v) for v in column] for key, column in data.items()}
    return {"hash": digest(columns), "files": dict(files or {}), "data": columns}


def signed(table: Mapping[str, object], comment: str = "") -> str:
    """The text of a record's file, with `format` and `hash`."""
    # Parsed again, so the hash covers exactly the types and digits that a reader sees.
    content = tomllib.loads(tomli_w.dumps({"format": "hil-calibration/2", "hash": "", **table}))
    content["hash"] = hash_of(content)
    plain = {key: value for key, value in content.items() if not isinstance(value, dict)}
    text = tomli_w.dumps(plain | {k: v for k, v in content.items() if isinstance(v, dict)})
    head = "".join(f"# {line}\n" for line in textwrap.wrap(comment, WIDTH - 2))
    return head + re.sub(r"\[\n\s+([^\[\]]*?),?\n\s*\]", _joined, text)


def write_record(path: Path, table: Mapping[str, object], comment: str = "") -> Record:
    """Write a new record as a read-only file, and read it back.

    Raises
    ------
    ConfigError
        A file of that name exists, it cannot be written, or the record is invalid.
    """
    text = signed(table, comment)
    record = parse_any(path, text)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole(path) as part:
            part.write_text(text, encoding="utf-8")
            if path.exists():
                raise FileExistsError
        path.chmod(0o444)
    except FileExistsError:
        raise ConfigError(
            f"{path}: exists already: a record is never changed: choose another --out"
        ) from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({error.strerror})") from None
    return record


def _joined(match: re.Match[str]) -> str:
    """Join the lines of a list, up to WIDTH columns."""
    items = " ".join(match[1].split())
    before = len(match.string[: match.start()].rsplit("\n", 1)[-1])
    if before + len(items) + 2 <= WIDTH:
        return f"[{items}]"
    if re.search(r'"[^",]*\s[^",]*"', items):  # a text would be broken at its spaces
        return match[0]
    lines = textwrap.wrap(items, WIDTH - 4, break_long_words=False, break_on_hyphens=False)
    return "[\n" + "".join(f"    {line}\n" for line in lines) + "]"


def _written(C: NDArray[np.float64]) -> list[list[float]]:
    """Six digits of a covariance; variances grow by WIDER where rounding makes it indefinite.

    That is so for values with hardly an uncertainty of their own beside a common one.
    """
    for more in (0.0, WIDER):
        rows = [[_short(c) for c in row] for row in (C + more * np.diag(np.diag(C))).tolist()]
        try:
            refuse_no_covariance(rows, len(C), "covariance", "name")
        except ValueError:
            continue
        break
    return rows


def _round(value: float, uncertainty: float) -> float:
    if not uncertainty:
        return float(value)
    return round(float(value), -math.floor(math.log10(ROUNDING * uncertainty)))


def _short(value: float) -> float:
    return float(f"{value:.6g}")


def _shortened(value: object) -> object:
    if isinstance(value, list | tuple | np.ndarray):
        return [_shortened(v) for v in value]
    return _short(float(value)) if isinstance(value, float | np.floating) else value


def _plain(value: Any) -> Any:
    return value if isinstance(value, str) else float(f"{float(value):.12g}")
