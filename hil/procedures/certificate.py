"""`hil calibrate certificate`: a laboratory's coefficients, checked with five weights.

The forces that the certificate gives for the readings must agree with those of the weights. With e
the differences, G the polynomial's derivatives by its coefficients, C_c their covariance, s the
noise of a reading (the zero is subtracted) and F' the slope,

    e^T V^-1 e,   V = G C_c G^T + (F' s)^2 (I + 1 1^T) + u_w^2 F F^T

has the chi-squared distribution with one degree of freedom a weight. Beyond its 99.9 % point the
certificate is refused: it is of another transducer, or polarity or unit is wrong.

Source: JCGM 100:2008 (GUM), eq. (13) and H.2.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.stats import chi2

from hil.calibration.signal_chain import Chain
from hil.calibration.tables import PolynomialTable
from hil.config.table import Positive, Table
from hil.errors import ConfigError
from hil.procedures.fits import refuse_implausible, refuse_saturated, refuse_unit_slip
from hil.procedures.procedure import Readings, Step
from hil.procedures.session_file import TransducerFile
from hil.procedures.transducer import AIR_KG_PER_M3, Density, RelativeU

KIND = "force_transducer"
METHOD = "a laboratory's certificate, checked with weights"
CONFIDENCE = 0.999


class Settings(Table):
    weights_kg: Annotated[list[Positive], Field(min_length=5, max_length=50)]
    certificate: PolynomialTable
    gravity_m_per_s2: Annotated[float, Field(ge=9.76, le=9.84)] = 9.80665
    density_kg_per_m3: Density = 8000.0
    weights_relative_u: RelativeU = 5e-5
    reading_u_mV_per_V: Positive = 0.0005


Session = TransducerFile[Settings]


def _forces_N(s: Settings) -> NDArray[np.float64]:
    buoyancy = 1.0 - AIR_KG_PER_M3 / s.density_kg_per_m3
    return np.array(s.weights_kg) * s.gravity_m_per_s2 * buoyancy


def _chain(s: Settings) -> Chain:
    return Chain(1.0, 0.0, tuple(s.certificate.coefficients_N))


def steps(session: Session) -> list[Step]:
    s = session.procedure
    if len(set(s.weights_kg)) < 5:
        raise ConfigError(
            "procedure.weights_kg: give five different weights: equal ones are a collinear set"
        )
    largest = float(_forces_N(s).max())
    if largest > 1.5 * session.article.capacity_N:
        what = "procedure.weights_kg: the largest load in N"
        refuse_unit_slip(largest, session.article.capacity_N, what, "give the weights in kg")
        refuse_implausible(largest, session.article.capacity_N, what)
    hung = [Step(f"weight {i}", f"hang on {m:g} kg alone, wait until it stands", "mV/V")
            for i, m in enumerate(s.weights_kg, start=1)]  # fmt: skip
    return [Step("zero", "nothing hangs on it", "mV/V"), *hung]


def finish(session: Session, readings: Readings) -> dict[str, object]:
    s, F = session.procedure, _forces_N(session.procedure)
    y = np.array([readings[f"weight {i}"] for i in range(1, len(F) + 1)])
    low, high = s.certificate.range_mV_per_V
    d = y - readings["zero"]
    chain = _chain(s)
    certified_N = np.array([chain.value(float(v)) for v in d])
    share, what = float(np.median(certified_N / F)), "the certificate's force over the weight's"
    refuse_unit_slip(
        share, 1.0, what, "give the weights in kg, the readings in mV/V, the certificate in N"
    )
    refuse_saturated(d, max(abs(low), abs(high)), "mV/V", "certificate: less the zero")
    refuse_implausible(share, 1.0, what)
    e = certified_N - F
    degree = len(s.certificate.coefficients_N)
    G = np.vander(d, degree, increasing=True)
    slope = np.array([_slope(s, float(v)) for v in d])
    noise = np.outer(slope, slope) * s.reading_u_mV_per_V**2
    V = G @ np.array(s.certificate.covariance_N2) @ G.T
    V += noise * (np.eye(len(F)) + 1.0) + s.weights_relative_u**2 * np.outer(F, F)
    statistic = float(e @ np.linalg.solve(V, e))
    p = float(chi2.sf(statistic, len(F)))
    if p < 1.0 - CONFIDENCE:
        worst = int(np.argmax(np.abs(e)))
        raise ConfigError(
            f"certificate: the weights disagree with it (chi-squared {statistic:.3g} of {len(F)} "
            f"degrees, p = {p:.2g}): at {s.weights_kg[worst]:g} kg it gives "
            f"{certified_N[worst]:.4g} N, the weight is {F[worst]:.4g} N: "
            "is the certificate of this transducer, or was the "
            "transducer overloaded?"
        )
    return {
        "status": "certificate",
        "conditioner": session.conditioner.model_dump(exclude_none=True)
        if session.conditioner
        else None,
        "model": s.certificate.model_dump(exclude_none=True),
        "raw": {
            "force_N": F,
            "reading_mV_per_V": y,
            "difference_N": e,
            "zero_mV_per_V": [readings["zero"]],
        },
        "said": [f"the weights agree with the certificate: p = {p:.2g}"],
    }


def _slope(s: Settings, d: float) -> float:
    c = s.certificate.coefficients_N
    return float(sum(k * c[k] * d ** (k - 1) for k in range(1, len(c))))


@dataclass(frozen=True)
class Truth:
    """A transducer whose coefficients are drawn from the certificate's uncertainty."""

    settings: Settings
    coefficients_N: tuple[float, ...]

    @property
    def truth(self) -> dict[str, float]:
        return {f"coefficients_N.{k}": c for k, c in enumerate(self.coefficients_N)}

    def read(self, step: Step, seed: int) -> float:
        s = self.settings
        noise = s.reading_u_mV_per_V * float(np.random.default_rng(seed).standard_normal())
        zero = 0.02
        if step.key == "zero":
            return zero + noise
        F = float(_forces_N(s)[int(step.key.removeprefix("weight ")) - 1])
        return zero + Chain(1.0, 0.0, self.coefficients_N).raw(F) + noise


def rehearsal(session: Session, seed: int) -> Truth:
    s = session.procedure
    c, C = s.certificate.coefficients_N, np.array(s.certificate.covariance_N2)
    drawn = np.random.default_rng(seed).multivariate_normal(c, C)
    return Truth(s, tuple(drawn.tolist()))
