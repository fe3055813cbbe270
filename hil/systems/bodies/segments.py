"""Segments of the human body: mass, length, centre of mass and inertia.

Masses of segments are fractions of the body's mass m, and lengths are proportional to its height
h. The centre of mass is at a fraction of the length from the upper end. The radii of gyration are
fractions of the length, about the sagittal (x, front), transverse (y, left) and longitudinal (z)
axes through the centre of mass.

Source: P. de Leva, "Adjustments to Zatsiorsky-Seluyanov's segment inertia parameters", Journal of
Biomechanics 29(9), 1996, table 4, men: mean mass 73.0 kg, height 1.741 m.
"""

from dataclasses import dataclass

MEAN_MASS_KG, MEAN_HEIGHT_M = 73.0, 1.741


@dataclass(frozen=True)
class Segment:
    """One row of the table: fractions, and the mean length.

    Attributes
    ----------
    mass : fraction of the body's mass
    length_m : length in the mean body
    centre : fraction of the length, from the upper (proximal) end, arms hanging
    radii : fractions of the length: about x, y and z
    ends : landmarks between which the length is measured
    """

    mass: float
    length_m: float
    centre: float
    radii: tuple[float, float, float]
    ends: str

    def inertia_kg_m2(self, mass_kg: float, length_m: float) -> tuple[float, float, float]:
        """Return the moments about x, y, z through the centre of mass."""
        x, y, z = (mass_kg * (length_m * r) ** 2 for r in self.radii)
        return x, y, z


HEAD = Segment(0.0694, 0.2429, 0.5002, (0.303, 0.315, 0.261), "vertex to cervicale")
UPPER_TRUNK = Segment(0.1596, 0.2421, 0.5066, (0.505, 0.320, 0.465), "cervicale to xiphion")
MID_TRUNK = Segment(0.1633, 0.2155, 0.4502, (0.482, 0.383, 0.468), "xiphion to omphalion")
LOWER_TRUNK = Segment(0.1117, 0.1457, 0.6115, (0.615, 0.551, 0.587), "omphalion to mid-hip")
UPPER_ARM = Segment(0.0271, 0.2817, 0.5772, (0.285, 0.269, 0.158), "shoulder to elbow")
FOREARM = Segment(0.0162, 0.2689, 0.4574, (0.276, 0.265, 0.121), "elbow to wrist")
HAND = Segment(0.0061, 0.0862, 0.7900, (0.628, 0.513, 0.401), "wrist to third metacarpale")
THIGH = Segment(0.1416, 0.4222, 0.4095, (0.329, 0.329, 0.149), "hip to knee")
SHANK = Segment(0.0433, 0.4403, 0.4395, (0.251, 0.246, 0.102), "knee to ankle")
FOOT = Segment(0.0137, 0.2581, 0.4415, (0.257, 0.245, 0.124), "heel to toe tip")

SEGMENTS = {
    "head": HEAD, "upper_trunk": UPPER_TRUNK, "mid_trunk": MID_TRUNK, "lower_trunk": LOWER_TRUNK,
    "upper_arm": UPPER_ARM, "forearm": FOREARM, "hand": HAND, "thigh": THIGH, "shank": SHANK,
    "foot": FOOT,
}  # fmt: skip
