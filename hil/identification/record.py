"""Writes identified parameters as a calibration record that a rig's tables can name."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np

from hil.calibration.files import Record, Source
from hil.calibration.write import raw_table, values_table, write_record
from hil.config.values import TomlTable
from hil.errors import ConfigError
from hil.identification.fit import UNSETTLED
from hil.identification.identifiability import short
from hil.identification.identify import Identified
from hil.identification.runs import Recorded
from hil.identification.wires import IdentifiedWire, is_simulated
from hil.platform.provenance import software
from hil.platform.whole_files import sha256_of

VALID_DAYS = 365
ROUNDING = 1e-5


@dataclass(frozen=True)
class Session:
    """Operator, serial number of the article and validity of an identification."""

    by: str
    serial: str
    valid_days: int = VALID_DAYS


def write(
    path: Path,
    recorded: Sequence[Recorded],
    model: Identified,
    session: Session,
    today: datetime.date,
    supersedes: Sequence[str] = (),
) -> Record:
    """Write a new record.

    Raises
    ------
    ConfigError
        The model lacks an effect, the fit has not settled, the parameters are of several arrays or
        of different cells, or the file exists.
    """
    if not model.adequacy.adequate:
        raise ConfigError(f"--out {path}: no record is written: {model.adequacy.sentence()}")
    if not model.fit.settled:
        raise ConfigError(f"--out {path}: no record is written: {UNSETTLED}")
    arrays = {key.split(".")[1] for key in (*(p.key for p in model.parameters), *model.stated)}
    unlike = any(".cell." in p.key and p.key.split(".")[3].isdigit() for p in model.parameters)
    if len(arrays) > 1 or unlike:
        raise ConfigError(
            f"--out {path}: a record holds the values of one array with equal cells: fit them "
            "one by one with --free"
        )
    array = arrays.pop()
    first = recorded[0]
    held = ", ".join(f"{short(key)} = {value:.9g}" for key, value in model.held.items())
    table: TomlTable = {
        "kind": "parameters",
        "status": "simulated" if any(r.simulated for r in recorded) else "measured",
        "article": {"name": f"array {array} of {first.rig}", "serial": session.serial},
        "act": _act(
            session,
            today,
            "hil identify: least squares of the array's equations to recorded force",
            supersedes,
        ),
        "model": values_table(
            "parameters",
            {short(p.key): p.value for p in model.parameters}
            | {short(key): model.held[key] for key in model.stated},
            # Six digits are written. Values that follow a held one are almost perfectly correlated,
            # and rounding would make the covariance indefinite; 1e-5 of each variance prevents it.
            model.covariance + np.diag(ROUNDING * np.diag(model.covariance)),
            equation="force of the array at its transducer, cells as reported",
            basis=["measured"] * len(model.parameters) + ["derived"] * len(model.stated),
            degrees_of_freedom=float(model.fit.degrees_of_freedom),
            residual_rms=model.fit.rms_N,
        ),
        "raw": raw_table({}, {r.path.name: f"sha256:{r.data.sha256}" for r in recorded}),
        "notes": {"held": held or "nothing", "noise": model.noise.source},
    }
    return write_record(path, table, "Identified from recorded force. Name it in the tables of the "
                        "array and of its cell: record = \"...\"")  # fmt: skip


def write_wire(
    path: Path, files: Sequence[Path], wire: IdentifiedWire, session: Session, today: datetime.date
) -> Source:
    """Write a new record of a wire's law, which an activation of kind "sma" can name.

    Values that the loops do not identify are written as assumed: their uncertainty is the prior's.

    Raises
    ------
    ConfigError
        The file exists.
    """
    stresses = ", ".join(f"{loop.stress_Pa / 1e6:.0f}" for loop in wire.loops)
    table: TomlTable = {
        "kind": "parameters",
        "status": "simulated" if is_simulated(files) else "measured",
        "article": {"name": "wire under stress", "serial": session.serial},
        "act": _act(session, today, f"hil identify: fit to isobaric loops of {stresses} MPa"),
        "model": values_table(
            "parameters",
            {estimate.key: estimate.value for estimate in wire.estimates},
            # As above: six digits.
            wire.covariance + np.diag(ROUNDING * np.diag(wire.covariance)),
            equation="strain of a wire under stress, hil/mechanics/sma/stress.py",
            basis=["measured" if one.identified else "assumed" for one in wire.estimates],
        ),
        "raw": raw_table({}, {file.name: f"sha256:{sha256_of(file)}" for file in files}),
    }
    comment = (
        'Identified from isobaric loops. Name it in the table of the activation: record = "..."'
    )
    return cast(Source, write_record(path, table, comment))


def _act(
    session: Session, today: datetime.date, method: str, supersedes: Sequence[str] = ()
) -> TomlTable:
    return {
        "by": session.by,
        "date": today,
        "valid_until": today + datetime.timedelta(days=session.valid_days),
        "method": method,
        "software": f"hil-arrays {software()['hil-arrays']}",
        "supersedes": list(supersedes),
    }
