"""Printed values of the leg as text, because the number of digits gives the uncertainty.

The leg lies in the plane of axes 2 and 3; coordinates outside of this plane are omitted.
"""

from collections.abc import Iterator

# Makkonen 2021, Simulated Muscle Driven Leg (LUT): Fig. 10, Tables 4 to 6.
# Mass in kg, moments of inertia in kg m^2.
_BODIES = """\
thigh 9.3014   0.1412 0.0351 0.1339
shin  3.7075   0.0511 0.0051 0.0504
foot  1.5666   0.0052 0.0025 0.0051
"""
_JOINTS = """\
hip.at_child_m.3 0.17
knee.at_parent_m.3 -0.2258
knee.at_child_m.3 0.1867
ankle.at_parent_m.3 -0.2433
ankle.at_child_m.2 -0.0636
ankle.at_child_m.3 0.0148
"""
# F_max in N, l_CE_opt and l_SEE_0 in m; then the points of the path, each in its body, in m.
_ITS_MUSCLES = """\
TA   1528.0 0.082 0.223  0.018 0.0247  0.033 -0.2083  0.0044 -0.0092
SOL  3883.0 0.055 0.245  -0.002 0.0337  -0.1126 0.0038
"""
# OpenSim's model gait2354, put into the same plane; gastrocnemius' force: Makkonen 2021, 4.2.
_FURTHER_MUSCLES = """\
GAS  1639.0 0.09  0.36   -0.019 -0.2229  -0.03 -0.2322  -0.1126 0.0038
VAS  5000.0 0.107 0.116  0.029 -0.0224  0.0335 -0.0384  0.0555 0.212
RF   1169.0 0.114 0.31   0.0412 0.035  0.0618 0.2077
HAM  2700.0 0.109 0.326  -0.0553 -0.0365  -0.0301 0.1507  -0.0234 0.1304
BFSH 804.0  0.173 0.089  0.005 -0.0411  -0.0301 0.1507  -0.0234 0.1304
GLU  819.0  0.147 0.127  -0.0642 0.0837  -0.0669 0.0141  -0.0426 0.117  -0.0156 0.0684
ILI  1073.0 0.1   0.1    0.0033 0.1026  0.0449 0.0111  0.0419 -0.0144  0.0017 0.1157  -0.0193 0.1079
"""

Printed = Iterator[tuple[str, str]]


def makkonen() -> Printed:
    """Keys of `[model]` of Makkonen's leg, each with its printed value."""
    for line in _BODIES.splitlines():
        name, mass, *inertia = line.split()
        yield f"bodies.{name}.mass_kg", mass
        for axis, text in enumerate(inertia, start=1):
            yield f"bodies.{name}.inertia_kg_m2.{axis}", text
    for line in _JOINTS.splitlines():
        name, text = line.split()
        yield f"joints.{name}", text
    yield from _muscles(_ITS_MUSCLES)


def gait2354() -> Printed:
    """Keys of `[model]` of the muscles that Makkonen's leg lacks, each with its printed value."""
    return _muscles(_FURTHER_MUSCLES)


def _muscles(lines: str) -> Printed:
    for line in lines.splitlines():
        name, force, fibre, tendon, *path = line.split()
        yield f"muscles.{name}.F_max_N", force
        yield f"muscles.{name}.l_CE_opt_m", fibre
        yield f"muscles.{name}.l_SEE_0_m", tendon
        for i, text in enumerate(path):
            yield f"muscles.{name}.path.{i // 2 + 1}.at_m.{2 + i % 2}", text
