"""`hil calibrate literature`: records of printed values and of assumed values.

A printed value is uncertain by at least half a unit of its last digit, uniformly distributed:
u = half / sqrt(3) (JCGM 100:2008, 4.3.7). If the paper names the instruments, their uncertainty
is added: for springs, two micro-positioners of 0.02 mm over an assumed stretch of 4 mm and a
transducer of 0.25 % give 0.33 %. Assumed values have a large uncertainty. Values of one
measurement count as uncorrelated, because no paper prints a covariance.
"""

from dataclasses import dataclass
from datetime import date
from math import sqrt
from pathlib import Path

import numpy as np

from hil.calibration.files import load_any
from hil.calibration.write import signed, values_table, write_record
from hil.errors import ConfigError
from hil.mechanics.sma.wire import SmaWire
from hil.procedures.literature_leg import Printed, gait2354, makkonen
from hil.systems.arm.links import TABLE_1
from hil.systems.pantograph.linkage import ROUNDING, Parameters

WRITTEN, UNTIL = date(2026, 11, 1), date(2099, 12, 31)
CELLS = "MacNair & Ueda, Dynamic Cellular Actuator Arrays and Expanded Fingerprint Method"
IMPACTS = "Font-Llagunes & Koevecses, Dynamics of Variable Topology Systems, Table II"
WIRE = "Dynalloy TCF1140 and Baraghini; see hil/mechanics/sma/wire.py"
LOOPS = "loops of Flexinol from github maestrolab/calibrating; heat as in TCF1140"
OURS = "nobody: assumed for this project"
SPRING = 0.0033  # relative standard uncertainty of a spring constant, see above
PUBLISHED, DERIVED, ASSUMED = "published", "derived", "assumed"

Value = tuple[str, float, float, str]  # name, value, standard uncertainty, basis


@dataclass(frozen=True)
class Entry:
    """One record: stem of its file, what it describes, and the place of its values in print."""

    stem: str
    kind: str
    article: str
    serial: str
    where: str
    method: str
    values: tuple[Value, ...]

    def table(self) -> dict[str, object]:
        names, values, u, basis = zip(*self.values, strict=True)
        status = "assumed" if set(basis) == {ASSUMED} else "literature"
        return {
            "kind": self.kind,
            "status": status,
            "article": {"name": self.article, "serial": self.serial},
            "act": {
                "by": self.where,
                "date": WRITTEN,
                "valid_until": UNTIL,
                "method": self.method,
            },
            "model": values_table(
                "as printed" if status == "literature" else "assumed",
                dict(zip(names, values, strict=True)),
                np.diag(np.square(u)),
                basis=list(basis),
            ),
        }

    def text(self) -> str:
        return signed(self.table(), COMMENT)


COMMENT = (
    "Made by hil calibrate literature: published or assumed values, not a measurement of your "
    "specimen. Calibrate your specimen and name that calibration instead."
)


def digit(half: float) -> float:
    """Standard uncertainty of a value printed to plus or minus half a unit of its last digit."""
    return half / sqrt(3.0)


_MIGA = ("Miga NanoMuscle 704 cell", "MacNair-Ueda-Miga", CELLS)
_SILICONE = ("silicone rubber cell with four wires", "MacNair-Ueda-silicone", CELLS)
_FINGER = ("cell of the soft finger", "soft-finger", OURS)
_ARM, _TABLE_II = Parameters(), digit(ROUNDING)
_FLEXINOL = SmaWire()
_HEAT = (
    ("diameter_m", _FLEXINOL.diameter_m, digit(5e-6), PUBLISHED),
    ("density_kg_per_m3", _FLEXINOL.density_kg_per_m3, digit(5.0), PUBLISHED),
    ("specific_heat_J_per_kg_K", _FLEXINOL.specific_heat_J_per_kg_K, 100.0, ASSUMED),
    ("latent_heat_J_per_kg", _FLEXINOL.latent_heat_J_per_kg, digit(50.0), PUBLISHED),
    ("convection_W_per_m2_K", _FLEXINOL.convection_W_per_m2_K, 15.0, ASSUMED),
    ("martensite_Ohm_per_m", _FLEXINOL.martensite_Ohm_per_m, digit(0.5), PUBLISHED),
    ("austenite_Ohm_per_m", _FLEXINOL.austenite_Ohm_per_m, 10.0, ASSUMED),
)

_ARM_LINKS = ("upper_arm", "forearm", "hand")


def _digits(text: str) -> float:
    """Standard uncertainty of a printed number, from half a unit of its last digit."""
    decimals = len(text.partition(".")[2])
    return digit(0.5 * 10.0**-decimals if text.partition(".")[2] != "0" else 0.5)


def _as_printed(entries: Printed) -> tuple[Value, ...]:
    return tuple((key, float(text), _digits(text), PUBLISHED) for key, text in entries)


def _arm_links() -> tuple[Value, ...]:
    """Table 1 of Hemami & Hemami: inertias to four decimals, other values to two."""
    values: list[Value] = []
    for name, link in zip(_ARM_LINKS, TABLE_1, strict=True):
        values += [(f"links.{name}.{key}", getattr(link, key), digit(0.005), PUBLISHED)
                  for key in ("mass_kg", "com_m", "length_m")]  # fmt: skip
        values += [(f"links.{name}.inertia_kg_m2.{i}", value, digit(0.5e-4), PUBLISHED)
                  for i, value in enumerate(link.inertia_kg_m2, start=1)]  # fmt: skip
    return tuple(values)


ENTRIES = (
    Entry("miga_springs", "spring_constants", *_MIGA,
          "stretched between two micro-positioners of 0.02 mm; section Physical Actuator Array", (
              ("k_pe_N_per_m", 20.0, digit(0.5), PUBLISHED),
              ("k_se_N_per_m", 386.52, SPRING * 386.52, PUBLISHED),
              ("k_ae_N_per_m", 1000.0, SPRING * 1000.0, PUBLISHED))),
    Entry("miga_damper", "damping", *_MIGA, "from the response time; 5 % is assumed for that", (
              ("b_N_s_per_m", 500.0, 25.0, PUBLISHED),)),
    Entry("miga_masses", "masses", *_MIGA,
          "one figure for all masses, which its own residual says are not alike: 5 % assumed", (
              ("mass_kg", 0.01583, 0.0008, PUBLISHED),)),
    Entry("miga_force", "cell_force", *_MIGA, "eq. (1), F = k_ae s, an assumed stroke of 4 mm", (
              ("force_on_N", 4.0, 1.0, ASSUMED),)),
    Entry("silicone_springs", "spring_constants", *_SILICONE,
          "wires and sheet with two micro-positioners; k_pe is not in the paper", (
              ("k_pe_N_per_m", 20.0, 10.0, ASSUMED),
              ("k_se_N_per_m", 611.0, SPRING * 611.0, PUBLISHED),
              ("k_ae_N_per_m", 10160.0, 4.0 * SPRING * 2540.0, DERIVED))),
    Entry("silicone_damper", "damping", *_SILICONE, 'assumed: "high damping" is all it says', (
              ("b_N_s_per_m", 50.0, 25.0, ASSUMED),)),
    Entry("silicone_masses", "masses", *_SILICONE, "assumed: not in the paper", (
              ("mass_kg", 0.02, 0.01, ASSUMED),)),
    Entry("silicone_force", "cell_force", *_SILICONE, "0.7 mm times 2.54 N/mm a wire, four wires", (
              ("force_on_N", 6.8, 4.0 * digit(0.05), DERIVED),)),
    Entry("silicone_activation", "activation", *_SILICONE,
          "F / (1 + exp(-(5 t - 6))), corrected from the printed form; digits as printed", (
              ("rate_per_s", 5.0, digit(0.5), PUBLISHED),
              ("delay_s", 1.2, digit(0.1), DERIVED))),
    Entry("soft_finger_damper", "damping", *_FINGER, "assumed", (
              ("b_N_s_per_m", 100.0, 50.0, ASSUMED),)),
    Entry("soft_finger_masses", "masses", *_FINGER, "assumed", (
              ("mass_kg", 0.004, 0.002, ASSUMED),)),
    Entry("soft_finger_activation", "activation", *_FINGER, "assumed: wires thinner than 0.1 mm", (
              ("rate_per_s", 10.0, 3.0, ASSUMED),
              ("delay_s", 0.4, 0.2, ASSUMED))),
    Entry("flexinol_100um", "parameters", "Flexinol 0.10 mm HT wire", "TCF1140", WIRE,
          "maker's data sheet; see hil/mechanics/sma/wire.py for what it does not give", (
              *_HEAT,
              ("A_s_C", _FLEXINOL.A_s_C, digit(0.5), PUBLISHED),
              ("A_f_C", _FLEXINOL.A_f_C, digit(0.5), PUBLISHED),
              ("M_s_C", _FLEXINOL.M_s_C, digit(0.5), PUBLISHED),
              ("M_f_C", _FLEXINOL.M_f_C, digit(0.5), PUBLISHED))),
    Entry("flexinol_100um_stress", "parameters", "Flexinol 0.10 mm HT wire under stress",
          "maestrolab-50-200-MPa", LOOPS, "fit to loops of 50 and 200 MPa, docs/wires.md", (
              *(value for value in _HEAT if value[0] != "latent_heat_J_per_kg"),
              ("latent_heat_J_per_kg", 17.0e3, 2.0e3, DERIVED),
              ("C_A_MPa_per_K", 8.3, 0.2, DERIVED),
              ("C_M_MPa_per_K", 7.5, 0.15, DERIVED),
              ("heating.middle_C", 78.3, 0.4, DERIVED),
              ("heating.core_K", 1.06, 0.19, DERIVED),
              ("heating.shoulder_ratio", 8.3, 1.1, DERIVED),
              ("heating.shoulder_at_K", -4.0, 0.9, DERIVED),
              ("heating.core_share", 0.51, 0.036, DERIVED),
              ("heating.widens_per_MPa", 0.0018, 0.0007, DERIVED),
              ("cooling.middle_C", 56.3, 0.33, DERIVED),
              ("cooling.core_K", 1.27, 0.17, DERIVED),
              ("cooling.shoulder_ratio", 8.3, 0.8, DERIVED),
              ("cooling.shoulder_at_K", -3.3, 0.9, DERIVED),
              ("cooling.core_share", 0.53, 0.03, DERIVED),
              ("cooling.widens_per_MPa", 0.0006, 0.0006, DERIVED))),
    Entry("pantograph_arm", "pantograph_geometry", "composite of two pantograph planes",
          "Font-Llagunes-Koevecses", IMPACTS, "Table II, to its last digit",
          tuple((name, getattr(_ARM, name), _TABLE_II, PUBLISHED)
                for name in Parameters.__dataclass_fields__)),
    Entry("pantograph_plate", "parameters", "plate that the pantograph meets",
          "Font-Llagunes-Koevecses", IMPACTS, "y from Tables III and V; its contact is assumed", (
              ("y_m", 0.22538, digit(0.5e-4), DERIVED),
              ("k_N_per_m", 5.2e4, 2e4, ASSUMED),
              ("alpha_s_per_m", 3.2, 1.0, ASSUMED),
              ("mu", 0.04, 0.02, DERIVED))),
    Entry("leg_makkonen", "parameters", "leg of thigh, shin and foot with two muscles",
          "Makkonen-2021", "Makkonen 2021, Simulated Muscle Driven Leg (LUT)",
          "Fig. 10, Tables 4 to 6, to their last digit", _as_printed(makkonen())),
    Entry("leg_gait2354", "parameters", "seven further muscles of the leg",
          "gait2354", "OpenSim, model gait2354; Makkonen 2021, 4.2",
          "put into the leg's plane, to its last digit", _as_printed(gait2354())),
    Entry("arm_links", "parameters", "arm of three links", "Hemami-Hemami-2016",
          "Hemami & Hemami 2016, Table 1", "to its last digit", _arm_links()),
)  # fmt: skip


def write_literature(folder: Path) -> list[tuple[Path, bool]]:
    """Write every missing record; returns (file, whether it was written) for each.

    Raises
    ------
    ConfigError
        A file of that name exists with other content.
    """
    done = []
    for entry in ENTRIES:
        path = folder / f"{entry.stem}.toml"
        if path.is_file():
            if load_any(path, named_by=str(path)).text != entry.text():
                raise ConfigError(f"{path}: is another record: choose another --out")
            done.append((path, False))
        else:
            write_record(path, entry.table(), COMMENT)
            done.append((path, True))
    return done
