"""`hil study body`: one body in four state spaces; a skeleton in three forms, standing, timed.

Source: Hemami & Hemami, "State Space Methods and Examples for Computational Models of Human
Movement", sections 2 to 4 and appendix A. Its Figs. 7 and 8 are of the arm: `hil study arm`.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from hil.bundled_configs import root
from hil.config.table import NotNegative, Table
from hil.errors import install
from hil.mechanics.arrays import Array
from hil.mechanics.recursion import Recursion
from hil.mechanics.rotations import attitude
from hil.pages.study import as_table, check
from hil.record.progress import count_progress
from hil.systems.bodies.build import load_skeleton
from hil.systems.bodies.forms import FORMS, Acting, Answer, joint_forces, momentum_rates, projected
from hil.systems.bodies.skeleton import Skeleton
from hil.systems.bodies.tables import BodiesTable
from hil_studies.bodies import figures as study_figures
from hil_studies.bodies import speed as bench
from hil_studies.bodies.moving import DROP_M, dropped, pushed
from hil_studies.bodies.one import CASE_AT_2, one_body, relative

AGREE = 1e-14
TORQUE_N_M = 5.0
EVENTS_SHOWN = 12
PUSH_OF_PAIRS, STRENGTHS_N_M = 0.2, (5.0, 10.0, 20.0, 40.0, 0.0)
"""Strengths of muscles about every axis; 0: pairs are never slack."""


class Values(Table):
    """Values that `--set` can change; `rig` is a file whose [model] is of kind "bodies"."""

    rig: str = "configs/body/rig.toml"
    states: Annotated[int, Field(ge=1, le=1000)] = 30
    seed: Annotated[int, Field(ge=0)] = 13
    spread_rad: Annotated[float, Field(gt=0.0, le=1.5)] = 0.8
    push_share_of_weight: NotNegative = 0.05
    duration_s: Annotated[float, Field(ge=0.3, le=60.0)] = 3.0


def run(out: Path, values: Values) -> dict[str, Any]:
    """Compare, stand and push into the folder `out`; return the results for results.json."""
    path = Path(values.rig)
    if not path.exists() and not path.is_absolute():
        path = root() / path  # the bundled file, from any working directory
    skeleton, table = load_skeleton(path)
    with count_progress("body", 5, wanted=True) as advance:
        one, at_2_s = one_body()
        advance(1)
        gaps = _dimensions(skeleton, values)
        standing = _standing(skeleton)
        advance(1)
        momentum = _momentum(skeleton, values)
        advance(1)
        timings = bench.cost_of(skeleton)
        advance(1)
        push = values.push_share_of_weight, values.duration_s
        runs = {
            "co-activated": pushed(table, table.coactivation, *push),
            "relaxed": pushed(table, 0.0, *push),
        }
        strengths = [
            (strength, pushed(_paired(table, strength), 1.0, PUSH_OF_PAIRS, values.duration_s))
            for strength in STRENGTHS_N_M
        ]  # fmt: skip
        fall = dropped(table, values.duration_s) if skeleton.supports else None
        advance(1)
    rows = [
        [row["stands on"], row["compared"], f"{row['median']:.1e}", f"{row['largest']:.1e}"]
        for row in gaps
    ]
    return {
        "title": f"Rigid bodies: one in four state spaces, {skeleton.n} links in three dimensions",
        "dimensions": list(skeleton.dimensions),
        "one_body": one,
        "agreement": gaps,
        "standing": standing,
        "momentum": momentum,
        "timings": timings,
        "pushed": {name: {k: v for k, v in run.items() if k != "pictures"}
                   for name, run in runs.items()},
        "dropped": fall,
        "tables": [
            as_table(f"{values.states} random states: largest difference over largest value",
                  ["stands on", "compared", "median", "largest"], rows),
            _forces_table(standing),
            *([_events_table(fall)] if fall else []),
            _strengths_table(strengths),
            as_table("Time per evaluation of all accelerations, from Python (minimum of rounds)",
                  ["tool", "us", "over the recursion's"],
                  [[r["tool"], f"{r['us']:.1f}", f"{r['ratio']:.1f}"] for r in timings]),
        ],
        "checks": _checks(at_2_s, one, gaps, standing, momentum, skeleton),
        "figures": [
            study_figures.singularity(out, one),
            study_figures.lyapunov(out, one["lyapunov"]),
            study_figures.agreement(out, gaps),
            study_figures.pushed(out, skeleton, runs),
            *([study_figures.dropped(out, fall)] if fall else []),
            study_figures.timings(out, timings),
        ],
        "notes": _notes(skeleton, one, momentum, runs, timings, values),
    }  # fmt: skip


def _paired(table: BodiesTable, strength_N_m: float) -> BodiesTable:
    """Return the body with pairs of muscles of this strength about every axis of its joints."""
    holds = {name: hold.model_copy(update={"strength_N_m": strength_N_m})
             for name, hold in table.holds.items()}  # fmt: skip
    return table.model_copy(update={"holds": holds})


def _strengths_table(runs: list[tuple[float, dict[str, Any]]]) -> dict[str, Any]:
    return as_table(
        f"Pushed with {PUSH_OF_PAIRS:g} of the weight, pairs of muscles that only pull",
        ["strength N m", "fallen after s", "lowest centre of mass m"],
        [[f"{strength:g}" if strength else "never slack",
          f"{run['t_s'][-1]:.2f}" if run["fallen"] else "–", f"{run['lowest_m']:.3f}"]
         for strength, run in runs],
    )  # fmt: skip


def _state(skeleton: Skeleton, values: Values, rng: np.random.Generator) -> tuple[Acting, Array]:
    A = attitude(rng.uniform(-values.spread_rad, values.spread_rad, (skeleton.n, 3)))
    torques = TORQUE_N_M * rng.normal(size=(len(skeleton.joints), 3))
    return Acting(A, rng.normal(size=(skeleton.n, 3)), skeleton.paired(A, torques)), torques


def _dimensions(skeleton: Skeleton, values: Values) -> list[dict[str, Any]]:
    """Compare forms, recursion and pinocchio: one row per comparison."""
    names = [support.name for support in skeleton.supports]
    order, carried = skeleton.tree()
    tree, peer = Recursion(carried), None
    if find_spec("pinocchio") is not None:
        from hil_studies.bodies.peer import Peer

        peer = Peer(skeleton)
    rows = []
    sizes = skeleton.dimensions
    rng = np.random.default_rng(values.seed)
    for held in [names[:k] for k in range(len(names) + 1)]:
        differences: dict[str, list[float]] = {}

        def note(what: str, gap: float, differences: dict[str, list[float]] = differences) -> None:
            differences.setdefault(what, []).append(gap)

        for _ in range(values.states):
            now, torques = _state(skeleton, values, rng)
            now = Acting(now.A, now.omega, now.N, held)
            whole, middle, small = (form(skeleton, now) for form in FORMS.values())
            for size, other in ((sizes[1], middle), (sizes[2], small)):
                if size != sizes[0]:
                    note(f"{sizes[0]} and {size}: accelerations", _apart(other, whole))
            note(f"{sizes[0]} and {sizes[2]}: forces of joints and ground",
                 relative(_all_forces(skeleton, now, small),
                      np.concatenate((whole.joint_N, whole.support_N))))  # fmt: skip
            if not held:
                tree.solve(now.A[order], now.omega[order], now.N[order])
                note(f"{sizes[2]} and the recursion: accelerations",
                     max(relative(tree.V_rate, small.V_rate[order]),
                         relative(tree.omega_rate, small.omega_rate[order])))  # fmt: skip
            if peer is not None:
                V, W = (peer.standing(now.A, now.omega, torques, held)[:2] if held
                        else peer.accelerations(now.A, now.omega, torques))  # fmt: skip
                note(f"{sizes[2]} and pinocchio: accelerations",
                     max(relative(V, small.V_rate), relative(W, small.omega_rate)))  # fmt: skip
        where = " and ".join(held) or "nothing, in the air"
        rows += [
            {"stands on": where, "compared": what, "median": float(np.median(gaps)),
             "largest": float(np.max(gaps))}
            for what, gaps in differences.items()
        ]  # fmt: skip
    return rows


def _apart(one: Answer, other: Answer) -> float:
    return max(relative(one.V_rate, other.V_rate), relative(one.omega_rate, other.omega_rate))


def _all_forces(skeleton: Skeleton, now: Acting, answer: Answer) -> Array:
    return np.concatenate((joint_forces(skeleton, now, answer), answer.support_N))


def _standing(skeleton: Skeleton) -> list[dict[str, Any]]:
    """Return the joint forces upright at rest without torque, on every support, one, none."""
    names = [support.name for support in skeleton.supports]
    A, still = np.tile(np.eye(3), (skeleton.n, 1, 1)), np.zeros((skeleton.n, 3))
    rows = []
    for held in dict.fromkeys((tuple(names), tuple(names[:1]), ())):
        now = Acting(A, still, still, held)
        answer = projected(skeleton, now)
        forces = joint_forces(skeleton, now, answer)
        rows.append({
            "held": list(held),
            "support_N": dict(zip(held, answer.support_N, strict=True)),
            "sum_N": answer.support_N.sum(axis=0),
            "joint_N": {j.name: f for j, f in zip(skeleton.joints, forces, strict=True)},
            "centre_m_per_s2": skeleton.mass_kg @ answer.V_rate / skeleton.mass_kg.sum(),
        })  # fmt: skip
    return rows


def _forces_table(standing: list[dict[str, Any]]) -> dict[str, Any]:
    def shown(force: Array | None) -> str:
        return "" if force is None else f"{force[2]:.2f}"

    columns = ["vertical force N", *(", ".join(row["held"]) or "in the air" for row in standing)]
    supports = list(standing[0]["support_N"])
    rows = [[f"ground on {s}", *(shown(r["support_N"].get(s)) for r in standing)] for s in supports]
    rows += [
        [f"at {joint}", *(shown(r["joint_N"][joint]) for r in standing)]
        for joint in standing[0]["joint_N"]
    ]
    return as_table("Upright at rest, no torque: forces on upper bodies, up", columns, rows)


def _momentum(skeleton: Skeleton, values: Values) -> dict[str, float]:
    """Return the torque about the centre of mass by internal torques, rotated and not rotated."""
    rng, right, wrong = np.random.default_rng(values.seed), [], []
    for _ in range(values.states):
        now, torques = _state(skeleton, values, rng)
        right.append(np.abs(momentum_rates(skeleton, now, projected(skeleton, now))[1]).max())
        N = np.zeros((skeleton.n, 3))
        for joint, torque in zip(skeleton.joints, torques, strict=True):
            N[joint.upper] += torque
            N[joint.lower] -= torque
        other = Acting(now.A, now.omega, N)
        wrong.append(np.abs(momentum_rates(skeleton, other, projected(skeleton, other))[1]).max())
    return {
        "rotated_median_N_m": float(np.median(right)), "rotated_largest_N_m": float(np.max(right)),
        "unrotated_median_N_m": float(np.median(wrong)),
    }  # fmt: skip


def _events_table(fall: dict[str, Any]) -> dict[str, Any]:
    rows = []
    for event in fall["events"][:EVENTS_SHOWN]:
        impulse = event.get("impulse_N_s")
        rows.append([
            f"{event['t_s']:.4f}", event["event"], ", ".join(event["supports"]),
            "" if impulse is None else ", ".join(f"{z:.2f}" for z in impulse[:, 2]),
            "" if impulse is None else f"{event['T_c_J']:.3f}",
            "" if impulse is None else f"{event['T_a_J']:.3f}",
        ])  # fmt: skip
    n = len(fall["events"])
    more = "" if n <= EVENTS_SHOWN else f" (first {EVENTS_SHOWN} of {n})"
    return as_table(
        f"Dropped by {1e3 * DROP_M:g} mm, tilted: contact made and broken{more}",
        ["t s", "", "stands then", "impulse up N s", "T_c J", "T_a J"], rows,
    )  # fmt: skip


def _checks(
    at_2_s: Array, one: dict[str, Any], gaps: list[dict[str, Any]], standing: list[dict[str, Any]],
    momentum: dict[str, float], skeleton: Skeleton,
) -> list[dict[str, Any]]:  # fmt: skip
    checks = [
        check(f"one body: Theta_{i + 1}(2 s), every form", float(value), expected, "rad",
              agrees=abs(value - float(expected)) < 1.5e-9)
        for i, (value, expected) in enumerate(zip(at_2_s, CASE_AT_2, strict=True))
    ]  # fmt: skip

    def below(what: str, value: float, limit: float, unit: str = "") -> None:
        checks.append(check(what, value, f"< {limit:g}", unit, agrees=value < limit))

    drift = max(v for form in one["free_motion"].values() for v in form.values())
    below("free motion: L and E kept, relative", drift, 1e-12)
    through = max(float(course.max()) for course in one["through_deg"].values())
    below("through the singularity, all forms", through, 0.01, "deg")
    below("hinge's force, both methods, relative", one["hinge"]["apart"], 1e-12)
    exact = [r["median"] for r in gaps if "recursion" not in r["compared"]
             and "pinocchio" not in r["compared"]]  # fmt: skip
    if exact:
        below("dimensions agree, relative, median", max(exact), AGREE)
    peers = [r["largest"] for r in gaps if "pinocchio" in r["compared"]]
    if peers:
        below("pinocchio agrees, relative, largest", max(peers), 1e-10)
    below("torque about the centre of mass, rotated", momentum["rotated_median_N_m"], 1e-12, "N m")
    at_rest = np.abs(standing[0]["centre_m_per_s2"]).max() < 1e-9  # in equilibrium, maybe unstable
    if standing[0]["held"] and at_rest:
        weight_N = float(9.81 * skeleton.mass_kg.sum())
        sum_N = float(standing[0]["sum_N"][2])
        checks.append(check("upright, the supports carry m g", sum_N, f"{weight_N:.9g}", "N",
                            agrees=abs(sum_N / weight_N - 1.0) < 1e-13))  # fmt: skip
    return checks


def _notes(
    skeleton: Skeleton, one: dict[str, Any], momentum: dict[str, float],
    runs: dict[str, dict[str, Any]], timings: list[dict[str, Any]], values: Values,
) -> list[str]:  # fmt: skip
    drift = max(v for form in one["free_motion"].values() for v in form.values())
    through = max(float(course.max()) for course in one["through_deg"].values())
    clipped = {limit: row["error_deg"] for limit, row in one["clipped_deg"].items()}
    notes = [
        f"Free motion conserves L and E to {drift:.1e} (relative) in every form; through a pitch "
        f"of 90 deg all forms agree within {through:.1e} deg.",
        "The paper's remedy, a large finite number for 1 / cos, gives errors without a warning: "
        + ", ".join(f"{deg:.1f} deg with a limit of {limit}" for limit, deg in clipped.items())
        + ". Here angles change their chart, and quaternions need none.",
        "Internal torques that are not rotated into each body's frame create a net torque of "
        f"{momentum['unrotated_median_N_m']:.1f} N m; rotated, "
        f"{momentum['rotated_median_N_m']:.0e} N m.",
    ]  # fmt: skip
    by_name = {row["tool"]: row for row in timings}
    if bench.PINOCCHIO in by_name:
        ratio = by_name[bench.PINOCCHIO]["ratio"]
        notes.append(f"Pinocchio's ABA takes {ratio:.1f} times the recursion's time.")
    else:
        notes.append(f"pinocchio is not installed ({install('bodies')}): not compared.")
    if skeleton.supports:
        what = []
        for name, run in runs.items():
            down_mm = 1e3 * (run["centre_m"][0, 2] - run["lowest_m"])
            end = f"has fallen after {run['t_s'][-1]:.2f} s" if run["fallen"] else (
                f"sinks by at most {down_mm:.1f} mm")  # fmt: skip
            what.append(f"{name}, the centre of mass {end}")
        notes.append(
            f"Pushed with {values.push_share_of_weight:g} of the weight for 0.2 s: "
            f"{'; '.join(what)}. Points of support do not slide."
        )
    notes.append("Figs. 7 and 8 of the paper are of the arm: hil study arm.")
    return notes
