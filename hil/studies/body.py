"""`hil study body`: one body in four state spaces; a skeleton in three dimensions, standing, timed.

Source: Hemami & Hemami, "State Space Methods and Examples for Computational Models of Human
Movement", sections 2 to 4 and appendix A. Its Figs. 7 and 8 are of the arm: `hil study arm`.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.integrate import solve_ivp

from hil.config.bodies import BodiesTable
from hil.config.build_bodies import build_bodies, load_skeleton
from hil.config.table import NotNegative, Table
from hil.models.bodies.forms import FORMS, Acting, Answer, joint_forces, momentum_rates, projected
from hil.models.bodies.one_body import FORMS as STATE_SPACES
from hil.models.bodies.one_body import (
    OneBody,
    hinge_eliminated,
    hinge_simultaneous,
    hold_angles,
    hold_quaternion,
    lyapunov_angles_J,
    lyapunov_quaternion_J,
)
from hil.models.bodies.recursion import Recursion
from hil.models.bodies.rotations import angles, attitude, quaternion
from hil.models.bodies.skeleton import Skeleton
from hil.models.bodies.system import Push
from hil.shipped import root
from hil.studies import body_figures
from hil.views import bench_bodies

Array = NDArray[np.float64]
CASE_J = (0.008, 0.006, 0.003)
CASE_THETA, CASE_OMEGA = (0.3, -0.4, 0.5), (1.0, -0.7, 1.5)
CASE_AT_2 = ("3.912927164", "-0.104420988", "-1.695351984")
AGREE = 1e-14
TORQUE_N_M = 5.0
STEP_S = 0.002
DROP_M, TILT_RAD = 0.02, 0.05
EVENTS_SHOWN = 12
FALLEN = 0.6  # of the centre of mass's height at rest, below which a run ends


class Values(Table):
    """What `--set` may change; `rig` is a file whose [model] is of kind "bodies"."""

    rig: str = "configs/body/rig.toml"
    states: Annotated[int, Field(ge=1, le=1000)] = 30
    seed: Annotated[int, Field(ge=0)] = 13
    spread_rad: Annotated[float, Field(gt=0.0, le=1.5)] = 0.8
    push_share_of_weight: NotNegative = 0.05
    duration_s: Annotated[float, Field(ge=0.3, le=60.0)] = 3.0


def run(out: Path, values: Values) -> dict[str, Any]:
    """Compare, stand and push into the folder `out`; what goes into results.json."""
    path = Path(values.rig)
    if not path.exists() and not path.is_absolute():
        path = root() / path  # the shipped one, from anywhere
    skeleton, table = load_skeleton(path)
    one, at_2_s = _one_body()
    gaps = _dimensions(skeleton, values)
    standing = _standing(skeleton)
    momentum = _momentum(skeleton, values)
    timings = bench_bodies.cost_of(skeleton)
    pushed = {name: _pushed(table, values, c) for name, c in
              (("co-activated", table.coactivation), ("relaxed", 0.0))}  # fmt: skip
    dropped = _dropped(table, values) if skeleton.supports else None
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
                   for name, run in pushed.items()},
        "dropped": dropped,
        "tables": [
            {"title": f"{values.states} random states: largest difference over largest value",
             "columns": ["stands on", "compared", "median", "largest"], "rows": rows},
            _forces_table(standing),
            *([_events_table(dropped)] if dropped else []),
            {"title": "Time of an evaluation of all accelerations, from Python (in turns, least)",
             "columns": ["tool", "us", "over the recursion's"],
             "rows": [[r["tool"], f"{r['us']:.1f}", f"{r['ratio']:.1f}"] for r in timings]},
        ],
        "checks": _checks(at_2_s, one, gaps, standing, momentum, skeleton),
        "figures": [
            body_figures.singularity(out, one),
            body_figures.lyapunov(out, one["lyapunov"]),
            body_figures.agreement(out, gaps),
            body_figures.pushed(out, skeleton, pushed),
            *([body_figures.dropped(out, dropped)] if dropped else []),
            body_figures.timings(out, timings),
        ],
        "notes": _notes(skeleton, one, momentum, pushed, timings, values),
    }  # fmt: skip


def case_torque(t_s: float) -> Array:
    """N of the case, in the body's frame."""
    return np.array([0.010 * np.sin(2 * t_s), 0.008 * np.cos(3 * t_s), -0.006 * np.sin(t_s)])


def _one_body() -> tuple[dict[str, Any], Array]:
    """The case in four state spaces, free motion, and a run through the singularity."""
    body, t_s = OneBody.of(CASE_J), np.linspace(0.0, 2.0, 201)
    A0, omega0 = attitude(CASE_THETA), np.array(CASE_OMEGA)
    runs = {form: body.run(form, A0, omega0, case_torque, t_s) for form in STATE_SPACES}
    reference = runs["quaternion"]
    at_2_s = angles(reference[0])
    followed = np.unwrap(at_2_s, axis=0)[-1]

    def free(_t_s: float) -> Array:
        return np.zeros(3)

    drifts, courses = {}, {}
    met = body.run("quaternion", attitude([0.4, np.pi / 2, 0.2]), -omega0, free, [0.0, 0.5])
    through_s = np.linspace(0.0, 1.0, 201)
    for form in STATE_SPACES:
        A, omega = body.run(form, A0, omega0, free, t_s)
        L = np.einsum("nij,jk,nk->ni", A, body.J, omega)
        E = np.einsum("ni,ij,nj->n", omega, body.J, omega) / 2.0
        drifts[form] = {
            "L": float(np.abs(L - L[0]).max() / np.linalg.norm(L[0])),
            "E": float(np.abs(E - E[0]).max() / E[0]),
        }
        courses[form] = body.run(form, met[0][-1], -met[1][-1], free, through_s)[0]
    truth = courses["quaternion"]
    return {
        "theta_at_2_s": followed,
        "from_quaternion": {form: float(np.abs(A - reference[0]).max())
                            for form, (A, _) in runs.items()},
        "free_motion": drifts,
        "hinge": _hinge(body),
        "lyapunov": _lyapunov(body),
        "through_s": through_s,
        "pitch_deg": np.rad2deg(np.arcsin(np.clip(truth[:, 0, 2], -1.0, 1.0))),
        "through_deg": {form: _apart_deg(A, truth) for form, A in courses.items()},
        "clipped_deg": {f"{limit:g}": _clipped(body, limit) for limit in (10.0, 20.0, 100.0)},
    }, followed  # fmt: skip


def _hinge(body: OneBody) -> dict[str, float]:
    """The hinge's force by both methods at random states: largest difference over the force."""
    rng, worst = np.random.default_rng(0), 0.0
    for _ in range(20):
        r, omega, N, F = rng.normal(size=(4, 3))
        given = (body, 1.3, 0.2 * r, attitude(rng.uniform(-3.0, 3.0, 3)), omega, N, F)
        worst = max(worst, _gap(hinge_eliminated(*given).Gamma, hinge_simultaneous(*given).Gamma))
    return {"apart": worst}


def _lyapunov(body: OneBody) -> dict[str, Any]:
    """A body held by springs and dampers, on its angles and on its quaternion: v over time."""
    K, D, k, d = np.array([0.03, 0.05, 0.02]), np.array([2e-3, 1e-3, 3e-3]), 0.05, 2e-3
    t_s = np.linspace(0.0, 8.0, 201)
    theta = np.array([1.0, -0.6, 0.8])
    omega = np.array(CASE_OMEGA)
    on_angles = solve_ivp(
        lambda _t, x: body.newton_euler(x, hold_angles(x[:3], x[3:], K, D)), (0.0, t_s[-1]),
        np.concatenate((theta, omega)), t_eval=t_s, rtol=1e-8, atol=1e-10,
    ).y.T  # fmt: skip
    on_quaternion = solve_ivp(
        lambda _t, x: body.quaternion(x, hold_quaternion(x[:4], x[4:], k, d)), (0.0, t_s[-1]),
        np.concatenate((quaternion(theta), omega)), t_eval=t_s, rtol=1e-8, atol=1e-10,
    ).y.T  # fmt: skip
    return {
        "t_s": t_s,
        "angles_J": [lyapunov_angles_J(body, x[:3], x[3:], K) for x in on_angles],
        "quaternion_J": [lyapunov_quaternion_J(body, x[:4], x[4:], k) for x in on_quaternion],
    }


def _apart_deg(A: Array, B: Array) -> Array:
    """Angle between attitudes, from the sine, which rounding spoils less."""
    turn = np.swapaxes(A, 1, 2) @ B - np.eye(3)
    half = np.linalg.norm(turn, axis=(1, 2)) / (2.0 * np.sqrt(2.0))
    apart: Array = np.rad2deg(2.0 * np.arcsin(np.minimum(half, 1.0)))
    return apart


def _clipped(body: OneBody, limit: float) -> dict[str, float]:
    """Error after a run that passes the singularity nearby, with 1/cos held below a limit."""
    miss = 0.4 / limit

    def free(_t_s: float) -> Array:
        return np.zeros(3)

    met, spin = attitude([0.4, np.pi / 2 - miss, 0.2]), -np.array(CASE_OMEGA)
    A, omega = body.run("quaternion", met, spin, free, [0.0, 0.5])
    A0, omega0 = A[-1], -omega[-1]
    truth, _ = body.run("quaternion", A0, omega0, free, [0.0, 1.0])

    def clipped(t_s: float, x: Array) -> Array:
        _, t2, t3 = x[:3]
        c2 = np.copysign(max(abs(np.cos(t2)), 1.0 / limit), np.cos(t2))
        first = (np.cos(t3) * x[3] - np.sin(t3) * x[4]) / c2
        second = np.sin(t3) * x[3] + np.cos(t3) * x[4]
        rates = (first, second, x[5] - np.sin(t2) * first)
        return np.concatenate((rates, body.omega_rate(x[3:], free(t_s))))

    x0 = body.state("newton_euler", A0, omega0)
    x = solve_ivp(clipped, (0.0, 1.0), x0, rtol=1e-9, atol=1e-11).y[:, -1]
    error = float(_apart_deg(attitude(x[None, :3]), truth[-1:])[0])
    return {"error_deg": error, "passing_at_deg": float(np.rad2deg(miss))}


def _gap(found: Array, exact: Array) -> float:
    return float(np.abs(found - exact).max() / np.abs(exact).max())


def _state(skeleton: Skeleton, values: Values, rng: np.random.Generator) -> tuple[Acting, Array]:
    A = attitude(rng.uniform(-values.spread_rad, values.spread_rad, (skeleton.n, 3)))
    torques = TORQUE_N_M * rng.normal(size=(len(skeleton.joints), 3))
    return Acting(A, rng.normal(size=(skeleton.n, 3)), skeleton.paired(A, torques)), torques


def _dimensions(skeleton: Skeleton, values: Values) -> list[dict[str, Any]]:
    """Forms, recursion and pinocchio against each other: one row a comparison."""
    names = [support.name for support in skeleton.supports]
    order, carried = skeleton.tree()
    tree, peer = Recursion(carried), None
    if find_spec("pinocchio") is not None:
        from hil.views.body_peer import Peer

        peer = Peer(skeleton)
    rows = []
    sizes = skeleton.dimensions
    rng = np.random.default_rng(values.seed)
    for held in [names[:k] for k in range(len(names) + 1)]:
        found: dict[str, list[float]] = {}

        def note(what: str, gap: float, found: dict[str, list[float]] = found) -> None:
            found.setdefault(what, []).append(gap)

        for _ in range(values.states):
            now, torques = _state(skeleton, values, rng)
            now = Acting(now.A, now.omega, now.N, held)
            whole, middle, small = (form(skeleton, now) for form in FORMS.values())
            for size, other in ((sizes[1], middle), (sizes[2], small)):
                if size != sizes[0]:
                    note(f"{sizes[0]} and {size}: accelerations", _apart(other, whole))
            note(f"{sizes[0]} and {sizes[2]}: forces of joints and ground",
                 _gap(_all_forces(skeleton, now, small),
                      np.concatenate((whole.joint_N, whole.support_N))))  # fmt: skip
            if not held:
                tree.solve(now.A[order], now.omega[order], now.N[order])
                note(f"{sizes[2]} and the recursion: accelerations",
                     max(_gap(tree.V_rate, small.V_rate[order]),
                         _gap(tree.omega_rate, small.omega_rate[order])))  # fmt: skip
            if peer is not None:
                V, W = (peer.standing(now.A, now.omega, torques, held)[:2] if held
                        else peer.accelerations(now.A, now.omega, torques))  # fmt: skip
                note(f"{sizes[2]} and pinocchio: accelerations",
                     max(_gap(V, small.V_rate), _gap(W, small.omega_rate)))  # fmt: skip
        where = " and ".join(held) or "nothing, in the air"
        rows += [
            {"stands on": where, "compared": what, "median": float(np.median(gaps)),
             "largest": float(np.max(gaps))}
            for what, gaps in found.items()
        ]  # fmt: skip
    return rows


def _apart(one: Answer, other: Answer) -> float:
    return max(_gap(one.V_rate, other.V_rate), _gap(one.omega_rate, other.omega_rate))


def _all_forces(skeleton: Skeleton, now: Acting, answer: Answer) -> Array:
    return np.concatenate((joint_forces(skeleton, now, answer), answer.support_N))


def _standing(skeleton: Skeleton) -> list[dict[str, Any]]:
    """Upright at rest without any torque, on every support, one, none: forces of all joints."""
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
    return {"title": "Upright at rest, no torque: forces on upper bodies, up", "columns": columns,
            "rows": rows}  # fmt: skip


def _momentum(skeleton: Skeleton, values: Values) -> dict[str, float]:
    """Torque about the centre of mass by internal torques: rotated as they must be, and not."""
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


def _pushed(table: BodiesTable, values: Values, coactivation: float) -> dict[str, Any]:
    """A push of 0.2 s forward at 0.1 s on the first module's top link."""
    system = build_bodies(table.model_copy(update={"coactivation": coactivation}), STEP_S)
    motion, inputs = system.motion, np.zeros(len(system.inputs))
    weight_N = float(motion.skeleton.mass_kg.sum() * 9.81)
    system.pushes = (Push(2, (values.push_share_of_weight * weight_N, 0.0, 0.0), 0.1, 0.3),)
    n = round(values.duration_s / STEP_S)
    centre, forces, pictures = np.empty((n, 3)), np.empty((n, len(motion.stands))), []
    for i in range(n):
        centre[i], forces[i] = motion.centre_of_mass_m(), motion.support_N[:, 2]
        if i % max(1, n // 20) == 0:
            pictures.append((motion.t_s, motion.X_a.copy(), motion.A))
        if centre[i, 2] < FALLEN * centre[0, 2]:
            n = i + 1
            break
        system.step(np.zeros(0), inputs)
    centre, forces = centre[:n], forces[:n]
    return {
        "coactivation": coactivation,
        "t_s": STEP_S * np.arange(n), "centre_m": centre, "support_z_N": forces,
        "lift_offs": [{"t_s": t, "support": name} for t, name in motion.lift_offs],
        "landings": [
            {"t_s": t, "stands": list(x.stands), "let_go": list(x.let_go),
             "impulse_N_s": x.impulse_N_s, "T_c_J": x.T_c_J, "T_a_J": x.T_a_J}
            for t, x in motion.landings
        ],
        "lowest_m": float(centre[:, 2].min()),
        "fallen": bool(centre[-1, 2] < FALLEN * centre[0, 2]),
        "pictures": pictures,
    }  # fmt: skip


def _dropped(table: BodiesTable, values: Values) -> dict[str, Any]:
    """Let fall in one piece, tilted to a side: it lands on one support, then on others."""
    system = build_bodies(table, STEP_S)
    motion = system.motion
    theta = np.zeros((motion.skeleton.n, 3))
    theta[:, 0] = TILT_RAD
    motion.set_attitudes(theta)
    motion.X_a[2] += DROP_M - motion.feet_m()[:, 2].min()
    motion.stand([])
    motion.c[:] = table.coactivation
    h_s, n = STEP_S / system.n_steps, round(values.duration_s / STEP_S)
    forces, feet = np.empty((2, n, len(motion.stands)))
    for i in range(n):
        for _ in range(system.n_steps):
            motion.step(h_s)
        forces[i], feet[i] = motion.support_N[:, 2], motion.feet_m()[:, 2]
        if motion.centre_of_mass_m()[2] < FALLEN * DROP_M:
            forces, feet = forces[: i + 1], feet[: i + 1]
            break
    events = [
        {
            "t_s": t_s,
            "event": "lands",
            "supports": list(x.stands),
            "let_go": list(x.let_go),
            "impulse_N_s": x.impulse_N_s,
            "T_c_J": x.T_c_J,
            "T_a_J": x.T_a_J,
        }
        for t_s, x in motion.landings
    ] + [{"t_s": t_s, "event": "lifts off", "supports": [name]} for t_s, name in motion.lift_offs]
    return {
        "t_s": STEP_S * np.arange(1, len(forces) + 1), "support_z_N": forces, "foot_z_m": feet,
        "supports": [s.name for s in motion.skeleton.supports],
        "events": sorted(events, key=lambda event: event["t_s"]),
    }  # fmt: skip


def _events_table(dropped: dict[str, Any]) -> dict[str, Any]:
    rows = []
    for event in dropped["events"][:EVENTS_SHOWN]:
        impulse = event.get("impulse_N_s")
        rows.append([
            f"{event['t_s']:.4f}", event["event"], ", ".join(event["supports"]),
            "" if impulse is None else ", ".join(f"{z:.2f}" for z in impulse[:, 2]),
            "" if impulse is None else f"{event['T_c_J']:.3f}",
            "" if impulse is None else f"{event['T_a_J']:.3f}",
        ])  # fmt: skip
    n = len(dropped["events"])
    more = "" if n <= EVENTS_SHOWN else f" (first {EVENTS_SHOWN} of {n})"
    return {
        "title": f"Let fall {1e3 * DROP_M:g} mm, tilted: contact made and broken{more}",
        "columns": ["t s", "", "stands then", "impulse up N s", "T_c J", "T_a J"], "rows": rows,
    }  # fmt: skip


def _checks(
    at_2_s: Array, one: dict[str, Any], gaps: list[dict[str, Any]], standing: list[dict[str, Any]],
    momentum: dict[str, float], skeleton: Skeleton,
) -> list[dict[str, Any]]:  # fmt: skip
    checks = [
        {"what": f"one body: Theta_{i + 1}(2 s), every form", "value": float(value),
         "expected": expected, "unit": "rad", "agrees": abs(value - float(expected)) < 1.5e-9}
        for i, (value, expected) in enumerate(zip(at_2_s, CASE_AT_2, strict=True))
    ]  # fmt: skip

    def below(what: str, value: float, limit: float, unit: str = "") -> None:
        checks.append({"what": what, "value": value, "expected": f"< {limit:g}", "unit": unit,
                       "agrees": value < limit})  # fmt: skip

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
    at_rest = np.abs(standing[0]["centre_m_per_s2"]).max() < 1e-9  # in balance, if not stable
    if standing[0]["held"] and at_rest:
        weight_N = float(9.81 * skeleton.mass_kg.sum())
        sum_N = float(standing[0]["sum_N"][2])
        checks.append({"what": "upright, the supports carry m g", "value": sum_N,
                       "expected": f"{weight_N:.9g}", "unit": "N",
                       "agrees": abs(sum_N / weight_N - 1.0) < 1e-13})  # fmt: skip
    return checks


def _notes(
    skeleton: Skeleton, one: dict[str, Any], momentum: dict[str, float],
    pushed: dict[str, dict[str, Any]], timings: list[dict[str, Any]], values: Values,
) -> list[str]:  # fmt: skip
    drift = max(v for form in one["free_motion"].values() for v in form.values())
    through = max(float(course.max()) for course in one["through_deg"].values())
    clipped = {limit: row["error_deg"] for limit, row in one["clipped_deg"].items()}
    notes = [
        f"Free motion keeps L and E to {drift:.1e} of their size in every form; through a pitch of "
        f"90 deg all forms stay within {through:.1e} deg.",
        "The paper's remedy, a large finite number for 1 / cos, errs without a word: by "
        + ", ".join(f"{deg:.1f} deg held at {limit}" for limit, deg in clipped.items())
        + ". Here angles change their chart, and quaternions need none.",
        "Internal torques not rotated into each body's frame make "
        f"{momentum['unrotated_median_N_m']:.1f} N m out of nothing; rotated, "
        f"{momentum['rotated_median_N_m']:.0e} N m are left.",
    ]  # fmt: skip
    by_name = {row["tool"]: row for row in timings}
    if bench_bodies.PINOCCHIO in by_name:
        ratio = by_name[bench_bodies.PINOCCHIO]["ratio"]
        notes.append(f"Pinocchio's ABA takes {ratio:.1f} times the recursion's time.")
    else:
        notes.append("pinocchio is not installed (pip install 'hil-arrays[bodies]'): not compared.")
    if skeleton.supports:
        what = []
        for name, run in pushed.items():
            down_mm = 1e3 * (run["centre_m"][0, 2] - run["lowest_m"])
            end = f"has fallen after {run['t_s'][-1]:.2f} s" if run["fallen"] else (
                f"sinks by {down_mm:.1f} mm at most")  # fmt: skip
            what.append(f"{name}, the centre of mass {end}")
        notes.append(
            f"Pushed with {values.push_share_of_weight:g} of the weight for 0.2 s: "
            f"{'; '.join(what)}. Points of support do not slide."
        )
    notes.append("Figs. 7 and 8 of the paper are of the arm: hil study arm.")
    return notes
