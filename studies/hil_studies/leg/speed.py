"""`hil bench`: cost of limbs with muscles: one evaluation compared with MuJoCo, and 2.5 s of a run.

An evaluation computes the rates of angles, angular velocities and fibre lengths: kinematics, paths,
muscles, dynamics. For MuJoCo it is `mj_forward` with the same bodies and paths and MuJoCo's own
muscle, which has no fibre state. Times are minima over alternating rounds.
"""

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from hil import bundled_configs
from hil.compiled import njit
from hil.config.files import read_toml
from hil.runs.timing import least_s
from hil.systems.leg import stepper as leg_stepper
from hil.systems.leg.build import build_limb
from hil.systems.leg.limb import Limb
from hil.systems.leg.muscle import ACTIVATION_MIN
from hil.systems.leg.stepper import LimbStepper
from hil.systems.leg.tables import LimbTable
from hil_studies.leg.peers import mujoco_model

RIGS = ("leg", "leg9")
CALLS, TURNS = 500, 60
PERIOD_S, RUN_S = 1e-3, 2.5

Row = dict[str, Any]


def compare(turns: int = TURNS) -> list[Row]:
    """Return a row for each bundled limb; times in s."""
    return [_row(name, turns) for name in RIGS]


def shipped_limb(name: str) -> Limb:
    """Return the limb of a bundled rig."""
    model = read_toml(bundled_configs.root() / "configs" / name / "rig.toml")["model"]
    return build_limb(LimbTable.model_validate(model))


def _row(name: str, turns: int) -> Row:
    limb = shipped_limb(name)
    stepper = LimbStepper(limb)
    u, out = np.full(stepper.n_m, 0.02), np.empty_like(stepper.x)

    def evaluate() -> None:
        _evaluate(stepper.links, stepper.work, stepper.scratch, stepper.x, u, out, CALLS)

    tools: dict[str, Callable[[], None]] = {"own": evaluate}
    if find_spec("mujoco") is not None:
        tools["mujoco"] = _mujoco(limb)
    least = least_s(tools, turns)
    return {
        "rig": name, "joints": stepper.n_q, "muscles": stepper.n_m, "run_s": _seconds(stepper),
        "evaluations_per_period": float(stepper.scratch.counts[2] * PERIOD_S / RUN_S),
        **{f"{tool}_evaluation_s": seconds / CALLS for tool, seconds in least.items()},
    }  # fmt: skip


def _mujoco(limb: Limb) -> Callable[[], None]:
    import mujoco

    model = mujoco_model(limb, "muscle")
    data = mujoco.MjData(model)
    data.act[:] = 0.02
    forward = mujoco.mj_forward

    def run() -> None:
        for _ in range(CALLS):
            forward(model, data)

    return run


def _seconds(stepper: LimbStepper) -> float:
    """Return the wall time of RUN_S of the limb at PERIOD_S; activations change every period."""
    n = round(RUN_S / PERIOD_S)
    u = np.full((n, stepper.n_m), ACTIVATION_MIN)
    u[:, 0] = 0.02 + 0.01 * np.sin(0.01 * np.arange(n))
    stepper.step(PERIOD_S, u[0])
    best = np.inf
    for _ in range(3):
        stepper.start(u[0])
        stepper.scratch.counts[:] = 0
        began = time.perf_counter()
        for row in u:
            stepper.step(PERIOD_S, row)
        best = min(best, time.perf_counter() - began)
    return best


@njit(cache=True, error_model="numpy")
def _evaluate(p, k, r, x, u, out, n):  # type: ignore[no-untyped-def]
    for _ in range(n):
        leg_stepper.slope(p, k, r, x, u, out)


def as_text(rows: list[Row]) -> str:
    """Return the rows as a table."""
    lines = [f"{'limb':<28}{'evaluation':>12}{'MuJoCo':>10}{'ratio':>8}{'2.5 s at 1 kHz':>16}"]
    for row in rows:
        ours, peer = row["own_evaluation_s"], row.get("mujoco_evaluation_s")
        what = f"{row['rig']}: {row['joints']} joints, {row['muscles']} muscles"
        beside = f"{1e6 * peer:>7.2f} us{ours / peer:>8.2f}" if peer else f"{'':>18}"
        lines.append(f"{what:<28}{1e6 * ours:>9.2f} us{beside}{row['run_s']:>14.2f} s")
    return "\n".join([*lines, "below twice MuJoCo's; below 1 s"])
