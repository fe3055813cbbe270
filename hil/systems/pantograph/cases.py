"""Evaluates the recording of an impact experiment, case by case: measured and predicted figures.

Every trial is analysed separately (`hil.systems.pantograph.impact_trial`). The figures of a case
are the mean over its trials, their standard deviation, and the standard uncertainty of the mean.
The latter combines deviation / sqrt(n), the instruments, and the rounding of the arm's parameters.
"""

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr

from hil.config.values import Figures, TomlTable
from hil.errors import ModelError
from hil.mechanics.arrays import Array
from hil.mechanics.impact import NonIdeal
from hil.record.read import experiment_of
from hil.systems.pantograph.build import build_arm
from hil.systems.pantograph.control import APPROACH, CONTACT
from hil.systems.pantograph.controllers import ANGLES, NORMAL, TANGENTIAL, contact_m
from hil.systems.pantograph.impact import Impacts, bands, predict, with_friction
from hil.systems.pantograph.impact_trial import Trial, Uncertainty, analyse
from hil.systems.pantograph.linkage import Elbows, Pantograph, Pose
from hil.systems.pantograph.tables import ImpactTable, PantographTable

# Figure of a trial: key, heading, scale, digits.
SHOWN = (
    ("speed_m_per_s", "speed m/s", 1.0, 4),
    ("T_c_J", "T_c- mJ", 1e3, 3),
    ("T_a_J", "T_a- mJ", 1e3, 3),
    ("T_a_after_J", "T_a+ mJ", 1e3, 3),
    ("xi", "xi", 1.0, 3),
    ("impulse_n_N_s", "F_n N ms", 1e3, 2),
    ("impulse_t_N_s", "F_t N ms", 1e3, 2),
)
# Figures that the ideal event predicts, with the names of their bands.
PREDICTED = {"speed_m_per_s": "speed_m_per_s", "T_c_J": "T_c_J", "T_a_J": "T_a_J",
             "T_a_after_J": "T_a_J", "xi": "xi", "impulse_n_N_s": "impulse_N_s"}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """The trials at one angle, and the predictions for them.

    Attributes
    ----------
    predicted, band : prediction of the ideal event at the commanded energy; range due to rounding
    rough : the same event with the model's friction; None if the sliding direction reverses
    at_speed : ranges at the measured speed and angle
    """

    gamma_deg: float
    trials: list[Trial]
    predicted: dict[str, float]
    rough: NonIdeal | None
    band: dict[str, tuple[float, float]]
    at_speed: dict[str, tuple[float, float]]

    def values(self, key: str) -> Array:
        return np.array([getattr(trial, key) for trial in self.trials])

    def mean(self, key: str) -> float:
        return float(self.values(key).mean())

    def spread(self, key: str) -> float:
        """Standard deviation over the trials; 0 for a single trial."""
        values = self.values(key)
        return float(values.std(ddof=1)) if len(values) > 1 else 0.0

    def friction_N_s(self, pose: Pose) -> float:
        """Tangential impulse with the model's friction; NaN if the sliding direction reverses."""
        if self.rough is None:
            return math.nan
        # f_N = J_x^T F_t
        return float(np.linalg.lstsq(pose.J_m[:1].T, self.rough.f_N, rcond=None)[0][0])

    def standard(self, key: str) -> float:
        """Standard uncertainty of the mean: deviation, instruments, parameters."""
        instruments = float(np.mean([trial.standard.get(key, 0.0) for trial in self.trials]))
        low, high = self.at_speed.get(PREDICTED.get(key, ""), (0.0, 0.0))
        parameters = (high - low) / math.sqrt(12.0)
        random = self.spread(key) / math.sqrt(len(self.trials))
        return math.hypot(random, instruments, parameters)


@dataclass(frozen=True)
class Impact:
    """Everything that the report shows."""

    rig: Pantograph
    pose: Pose
    energy_J: float
    mu: float
    cases: list[Case]
    failed: list[str]
    elbows: Elbows = "outward"


def evaluate(run: xr.Dataset) -> Impact:
    """Analyse every trial of a recording."""
    tables = experiment_of(run)
    controller = ImpactTable.model_validate(tables["controller"])
    model = PantographTable.model_validate(tables["model"])
    rig = Pantograph(build_arm(model).parameters)  # measured angles can exceed the motor ranges
    pose = rig.inverse(contact_m(controller, model), model.elbows)
    known = Uncertainty(
        controller.force_gain_uncertainty,
        controller.sensor_turned_uncertainty_rad,
        _angle_step_rad(tables),
    )
    gamma_deg = controller.gamma_deg
    trials: list[list[Trial]] = [[] for _ in gamma_deg]
    failed = []
    t_s, q_rad, force_N = _signals(run, tables)
    trial_of, phase = run.trial.values, run.phase.values
    last = int(np.nanmax(trial_of, initial=-1.0))
    for number in range(last + 1):
        rows = np.flatnonzero((trial_of == number) & np.isin(phase, (APPROACH, CONTACT)))
        case = number % len(gamma_deg)
        try:
            trials[case].append(
                analyse(rig, pose.assembly, t_s[rows], q_rad[rows], force_N[rows], known)
            )
        except ModelError as error:
            failed.append(f"trial {number} at {gamma_deg[case]:g} deg: {error}")
    ideal = predict(pose, gamma_deg, controller.energy_J)
    band = bands(rig, pose, gamma_deg, controller.energy_J, model.elbows)
    rough = with_friction(pose, ideal, model.plate.mu)
    cases = [
        Case(
            gamma_deg=gamma,
            trials=trials[i],
            predicted=_predicted(ideal, i),
            rough=rough[i],
            band=_of_case(band, i),
            at_speed=_at_speed(rig, pose, controller.energy_J, model.elbows, trials[i]),
        )
        for i, gamma in enumerate(gamma_deg)
    ]
    return Impact(rig, pose, controller.energy_J, model.plate.mu, cases, failed, model.elbows)


def _of_case(band: dict[str, Array], i: int) -> dict[str, tuple[float, float]]:
    return {k: (float(v[0, i]), float(v[1, i])) for k, v in band.items() if v.ndim == 2}


def _at_speed(
    rig: Pantograph, pose: Pose, energy_J: float, elbows: Elbows, trials: list[Trial]
) -> dict[str, tuple[float, float]]:
    """Return the ranges, due to rounded parameters, of figures at the measured velocity."""
    if not trials:
        return {}
    gamma = float(np.mean([trial.gamma_deg for trial in trials]))
    speed = float(np.mean([trial.speed_m_per_s for trial in trials]))
    return _of_case(bands(rig, pose, [gamma], energy_J, elbows, [speed]), 0)


def _angle_step_rad(tables: TomlTable) -> float:
    """Return the step of the coarser encoder."""
    return max(
        2.0 * math.pi / float(channel["counts_per_turn"])
        for device in tables["devices"].values()
        for channel in device.get("channels", {}).values()
        if channel.get("signal") in ANGLES
    )


def _signals(run: xr.Dataset, tables: TomlTable) -> tuple[Array, Array, Array]:
    """Return time, both angles, and both forces, found by the signals of the channels."""
    names = {
        channel["signal"]: name
        for device in tables["devices"].values()
        for name, channel in device.get("channels", {}).items()
        if "signal" in channel
    }
    angles = [run[f"{names[signal]}_measured_rad"].values for signal in ANGLES]
    forces = [run[f"{names[s]}.force_measured_N"].values for s in (NORMAL, TANGENTIAL)]
    return run.t_s.values, np.column_stack(angles), np.column_stack(forces)


def _predicted(ideal: Impacts, i: int) -> dict[str, float]:
    split = ideal.split
    return {
        "speed_m_per_s": float(ideal.speed_m_per_s[i]), "T_c_J": float(split.T_c_J[i]),
        "T_a_J": float(split.T_a_J[i]), "T_a_after_J": float(split.T_a_J[i]),
        "xi": float(split.xi[i]), "impulse_n_N_s": float(ideal.impulse_N_s[i]),
        "impulse_t_N_s": 0.0,
    }  # fmt: skip


def as_json(impact: Impact) -> Figures:
    """Return every figure of every case: prediction with range, and measurement."""
    return {
        "pose_m": impact.pose.E_m.tolist(),
        "energy_J": impact.energy_J,
        "cases": [
            {
                "gamma_deg": case.gamma_deg,
                "n_trials": len(case.trials),
                "predicted": case.predicted,
                "predicted_with_friction": None if case.rough is None else {
                    "T_a_after_J": case.rough.T_a_after_J,
                    "impulse_n_N_s": -float(case.rough.impulse[0]),
                    "impulse_t_N_s": case.friction_N_s(impact.pose),
                },
                "band": case.band,
                "measured": {
                    key: {"mean": case.mean(key), "spread": case.spread(key),
                          "standard_uncertainty": case.standard(key)}
                    for key, *_ in SHOWN
                } if case.trials else {},
                "trials": [
                    {key: getattr(trial, key) for key, *_ in SHOWN}
                    | {"gamma_deg": trial.gamma_deg, "onset_s": trial.onset_s,
                       "end_s": trial.end_s, "closure": trial.closure}
                    for trial in case.trials
                ],
            }
            for case in impact.cases
        ],
        "failed": impact.failed,
    }  # fmt: skip
