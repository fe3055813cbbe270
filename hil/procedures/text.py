"""A new record as text: its values, true values of a rehearsal, and lines for a rig's table."""

import numpy as np

from hil.calibration.files import Source
from hil.calibration.sources import base
from hil.procedures.run import Done


def as_text(done: Done) -> str:
    """Values with their standard uncertainty, and the true values of a rehearsal."""
    record = done.record
    values, C = record.values, record.covariance
    lines = [f"{done.path}: {record.record.kind}, {record.record.status}"]
    for i, name in enumerate(record.names):
        u = float(np.sqrt(C[i, i]))
        line = f"  {name} = {values[i]:.8g} +- {u:.2g}"
        if name in done.truth:
            line += f"   (truth {done.truth[name]:.8g})"
        lines.append(line)
    fit = getattr(record.record, "fit", None)
    if fit is not None:
        lines += [f"  {_words(k)} {1e3 * v:.3g} mN" for k, v in fit.model_dump().items()
                  if k.endswith("_N") and isinstance(v, float)]  # fmt: skip
    lines += [f"  {text}" for text in done.messages]
    if record.record.status != "simulated":
        lines += ["  for the rig's table:", *(f"    {line}" for line in _literals(done))]
    return "\n".join(lines)


def _literals(done: Done) -> list[str]:
    """Lines of TOML that name the record and repeat its values."""
    record = done.record
    named = f'record = "../../{done.path.resolve().parent.name}/{done.path.name}"'
    if record.record.kind == "bring_up":
        return [named]
    if isinstance(record, Source):
        lists = sorted({base(name) for name in record.names if "." in name})
        single = dict(zip(record.names, record.values.tolist(), strict=True))
        values_by_key = {
            key: [v for name, v in single.items() if base(name) == key] for key in lists
        }
        lines = [f"{key} = {value!r}" for key, value in values_by_key.items()]
        return [*lines, *(f"{k} = {v:.12g}" for k, v in single.items() if "." not in k), named]
    if record.record.conditioner is None:
        return [named]
    return [f"newtons_per_V = {record.chain(bridge=False).slope():.9g}", named]


def _words(key: str) -> str:
    return key.removesuffix("_N").replace("class_a_min", "class A from").replace("_", " ")
