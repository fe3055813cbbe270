"""Any skeleton that a file can describe moves by the laws of contact, or is refused in one line."""

import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
import tomli_w
from hypothesis import given, note, settings
from hypothesis import strategies as st

from hil.errors import ConfigError, ModelError
from hil.runs.check import check
from hil.systems.bodies.build import build_bodies
from hil.systems.bodies.tables import BodiesTable

STEPS, PERIOD_S = 12, 1e-3
CORNER_M = st.sampled_from([-0.1, 0.0, 0.05, 0.1])
POINTS = st.lists(st.tuples(CORNER_M, CORNER_M, CORNER_M), min_size=1, max_size=4)


def size(low, high):
    """Numbers of every magnitude between two powers of ten."""
    return st.floats(low, high).map(lambda power: 10.0**power)


@st.composite
def links(draw, name):
    points = {f"p{i}": list(at) for i, at in enumerate(draw(POINTS))}
    kind = draw(st.sampled_from(["cylinder", "segment", "body"]))
    link = {"name": name, "points": points, "kind": kind}
    if kind == "cylinder":
        return link | {"length_m": draw(size(-2, 0)), "radius_m": draw(size(-2, -1)),
                       "density_kg_per_m3": draw(size(2, 4))}  # fmt: skip
    if kind == "segment":
        return link | {"segment": draw(st.sampled_from(["foot", "thigh", "hand"])),
                       "upper_end": draw(st.sampled_from(["proximal", "distal"]))}  # fmt: skip
    kg = draw(st.one_of(size(-1, 1), size(-1, 1), size(-12, 6)))  # some far from all others
    slim = draw(st.one_of(st.just(1.0), st.just(1.0), size(-14, 0)))  # some without a third moment
    J = kg * draw(size(-3, -1))
    return link | {"length_m": draw(st.sampled_from([0.0, 0.1, 0.3])), "mass_kg": kg,
                   "centre_m": draw(st.sampled_from([0.0, 0.05, -0.1])),
                   "inertia_kg_m2": [J, J, slim * J]}  # fmt: skip


@st.composite
def skeletons(draw):
    """Trees of one to three modules; most supports are on one link, as heel and toe are."""
    modules = [
        {"name": f"m{k}", "links": [draw(links(f"l{i}")) for i in range(3)]}
        for k in range(draw(st.integers(1, 3)))
    ]

    def point(k, link=None):
        i = draw(st.integers(0, 2)) if link is None else link
        on = modules[k]["links"][i]
        at = draw(st.sampled_from(["bottom", "top", *on["points"]]))
        return f"m{k}.{on['name']}.{at}"

    foot, sole = draw(st.integers(0, len(modules) - 1)), draw(st.integers(0, 2))
    supports = [point(foot, sole) for _ in range(draw(st.integers(0, 4)))]
    supports += [point(draw(st.integers(0, len(modules) - 1)))] * draw(st.integers(0, 1))
    of_joints = {"passive_N_m_per_rad": draw(size(-3, 0)), "active_N_m_per_rad": draw(size(-3, 0)),
                 "passive_N_m_s_per_rad": draw(size(-5, -2)), "viscosity_s": 0.01}  # fmt: skip
    newtons = st.floats(-100.0, 100.0)
    return {
        "kind": "bodies", "modules": modules,
        "connections": {f"c{k}": {"lower": point(draw(st.integers(0, k - 1))), "upper": point(k)}
                        for k in range(1, len(modules))},
        "supports": {f"s{i}": at for i, at in enumerate(supports)},
        "friction": draw(size(-2, 1)),
        "holds": draw(st.sampled_from([{}, {"all": of_joints}])),
        "pushes": [{"link": f"m0.l{draw(st.integers(0, 2))}", "from_s": 0.0, "to_s": 1.0,
                    "force_N": [draw(newtons) for _ in range(3)]}],
        "gravity_m_per_s2": draw(st.sampled_from(
            [[0.0, 0.0, -9.81], [0.0, 0.0, 0.0], [3.0, 0.0, -9.0], [0.0, 0.0, 9.81]]
        )),
    }  # fmt: skip


def refused_by(act):
    """The text with which an act is refused, if it is; nothing is printed beside it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            act()
    except (ConfigError, ModelError) as error:
        return str(error)
    return None


@settings(max_examples=max(1, settings().max_examples))
@given(skeletons())
def test_any_skeleton_keeps_to_the_cones_of_friction_or_is_refused_in_one_line(model):
    text = tomli_w.dumps({"model": model})
    note(text)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rig.toml"
        path.write_text(text)
        refusal = refused_by(lambda: check(path))
    assert refusal is None or ("\n" not in refusal and str(path) in refusal)
    if refusal is not None:
        return
    body = build_bodies(BodiesTable.model_validate(model), PERIOD_S)
    still = np.zeros(len(body.inputs))
    refusal = refused_by(lambda: [body.step(None, still) for _ in range(STEPS)])
    if refusal is not None:  # it says what to do
        assert "\n" not in refusal
        assert any(remedy in refusal for remedy in ("lower the", "make the lightest"))
        return
    assert np.isfinite(body.y).all()
    force = body.motion.support_N
    allowed = model["friction"] * force[:, 2] + 1e-6 * np.abs(force).max(initial=0.0)
    assert (np.hypot(force[:, 0], force[:, 1]) <= allowed).all()
    free = ~(body.motion.stands | body.motion.slides)
    assert force[free] == pytest.approx(0.0)
