"""`hil model` for a skeleton: its links, and stiffness and viscosity of its joints."""

import numpy as np

from hil.config.values import Figures
from hil.experiment.kind import Description, ModelRequest
from hil.systems.bodies.system import BodySystem


def describe(request: ModelRequest) -> Description:
    """Return links and joints of a skeleton."""
    facts = _skeleton(request.model)
    return Description(facts, _skeleton_lines(facts))


def _skeleton(system: BodySystem) -> Figures:
    """Return links, and stiffness and viscosity of the joints at the rig's co-activation."""
    motion, s = system.motion, system.motion.skeleton
    stiffness, viscosity = motion.gains(motion.c)
    fastest_per_s, fastest = motion.fastest_per_s(motion.c)
    names = [*(j.name for j in s.joints), *(f"{f.name} on the ground" for f in s.supports)]
    ends = [f"{s.names[j.lower]} - {s.names[j.upper]}" for j in s.joints]
    ends += [s.names[f.body] for f in s.supports]
    links = [
        {"name": name, "mass_kg": link.mass_kg, "inertia_kg_m2": np.linalg.eigvalsh(J).tolist(),
         "length_m": float(np.linalg.norm(np.subtract(link.top_m, link.bottom_m)))}
        for name, link, J in zip(s.names, s.links, s.J, strict=True)
    ]  # fmt: skip
    return {
        "mass_kg": float(s.mass_kg.sum()),
        "modules": [m.name for m in s.modules],
        "dimensions": dict(zip(("free bodies", "modules", "projected"), s.dimensions, strict=True)),
        "links": links,
        "joints": [
            {"name": name, "between": between, "stiffness_N_m_per_rad": float(k),
             "viscosity_N_m_s_per_rad": float(d)}
            for name, between, k, d in zip(names, ends, stiffness, viscosity, strict=True)
        ],
        "fastest_per_s": fastest_per_s,
        "fastest_joint": fastest,
    }  # fmt: skip


def _skeleton_lines(facts: Figures) -> list[str]:
    sizes = ", ".join(f"{n} ({what})" for what, n in facts["dimensions"].items())
    width = max(len(link["name"]) for link in facts["links"])
    lines = [
        f"{len(facts['modules'])} modules of three links, {facts['mass_kg']:.4g} kg: "
        + ", ".join(facts["modules"]),
        f"coordinates: {sizes}",
        "",
        f"{'links':{width + 2}}{'kg':>10}{'m':>9}   principal moments kg m^2",
    ]
    for link in facts["links"]:
        moments = "  ".join(f"{moment:.3g}" for moment in link["inertia_kg_m2"])
        lines.append(
            f"  {link['name']:{width}}{link['mass_kg']:>10.4g}{link['length_m']:>9.4f}   {moments}"
        )
    across = max(len(joint["between"]) for joint in facts["joints"])
    wide = max(len(joint["name"]) for joint in facts["joints"])
    lines += ["", f"{'joints':{wide + across + 5}}{'N m/rad':>9}{'N m s/rad':>11}"]
    lines += [
        f"  {joint['name']:{wide}}  {joint['between']:{across}}"
        f" {joint['stiffness_N_m_per_rad']:>9.4g}{joint['viscosity_N_m_s_per_rad']:>11.4g}"
        for joint in facts["joints"]
    ]
    return [*lines, "", f"fastest: {facts['fastest_per_s']:.4g} 1/s at {facts['fastest_joint']}"]
