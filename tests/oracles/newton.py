"""Independent oracle: Newton's law mass by mass, cell by cell, in loops.

Written from eqs (2)-(5) and the drawings of the cells (Figs. 1 and 5), not from the block
assembly: the force balance at every cell's inner node is solved for d' where it stands.
"""

from dataclasses import dataclass, field

import numpy as np


@dataclass
class OracleCell:
    """A hill, miga or two_damper cell of springs and dampers, or a custom one."""

    kind: str
    k_pe: float = 0.0
    k_se: float = 0.0
    k_ae: float = 0.0
    b_se: float = 0.0
    b_ae: float = 0.0
    custom: dict = field(default_factory=dict)
    dead: bool = False
    broken: bool = False

    @property
    def n_internal(self) -> int:
        return len(self.custom["Kd"]) if self.kind == "custom" else 1

    def tension_and_rates(self, e, v, d, F):
        """T and d' of one cell."""
        if self.dead or self.broken:
            F = 0.0
        if self.kind == "custom":
            c = self.custom
            T = c["Ke"] * e + c["Kv"] * v + c["Kf"] * F
            rates = []
            for q in range(self.n_internal):
                T += c["Kd"][q] * d[q]
                rate = c["Ze"][q] * e + c["Zv"][q] * v + c["Kp"][q] * F
                for r in range(self.n_internal):
                    rate += c["I"][q][r] * d[r]
                rates.append(rate)
        else:
            # Inner node: k_se (e - d) + b_se (v - d') = k_ae d + b_ae d' + F
            rate = (self.k_se * (e - d[0]) + self.b_se * v - self.k_ae * d[0] - F) / (
                self.b_se + self.b_ae
            )
            series = self.k_se * (e - d[0]) + self.b_se * (v - rate)
            T = self.k_pe * e + series
            rates = [rate]
        return (0.0 if self.broken else T), rates


@dataclass
class OracleArray:
    left: list[int]
    right: list[int]
    cells: list[OracleCell]
    mass_kg: list[float]
    start: str
    end: str

    @property
    def n_masses(self) -> int:
        return len(self.mass_kg)


class Newton:
    """points: name -> (support, mass); arrays: name -> OracleArray."""

    def __init__(self, points, arrays):
        self.points, self.arrays = points, arrays
        self.states = []
        for name, a in arrays.items():
            self.states += [("x", name, m) for m in range(1, a.n_masses - 1)]
            self.states += [("v", name, m) for m in range(1, a.n_masses - 1)]
            most = max(cell.n_internal for cell in a.cells)
            for q in range(most):
                for n, cell in enumerate(a.cells):
                    if cell.n_internal > q:
                        self.states.append(("d", name, q, n))
        for name, (support, _) in points.items():
            if support == "free":
                self.states += [("px", name), ("pv", name)]
        self.inputs = [("F", name, n) for name, a in arrays.items() for n in range(len(a.cells))]
        self.inputs += [("P", n) for n, (support, _) in points.items() if support == "free"]
        for name, (support, _) in points.items():
            if support == "driven":
                self.inputs += [("dx", name), ("dv", name), ("da", name)]

    def rates_and_outputs(self, x, u):
        s = dict(zip(self.states, x, strict=True))
        i = dict(zip(self.inputs, u, strict=True))
        point_mass = {name: mass for name, (_, mass) in self.points.items()}
        point_force = {name: i.get(("P", name), 0.0) for name in self.points}
        rate, outputs = {}, []
        for name, a in self.arrays.items():
            point_mass[a.start] += a.mass_kg[0]
            point_mass[a.end] += a.mass_kg[-1]
            force = [0.0] * a.n_masses
            left_N = right_N = 0.0
            for n, cell in enumerate(a.cells):
                xl, vl = self._motion(s, i, name, a, a.left[n])
                xr, vr = self._motion(s, i, name, a, a.right[n])
                d = [s["d", name, q, n] for q in range(cell.n_internal)]
                T, rates = cell.tension_and_rates(xr - xl, vr - vl, d, i["F", name, n])
                for q, value in enumerate(rates):
                    rate["d", name, q, n] = value
                force[a.left[n]] += T  # pulls the left mass to the right
                force[a.right[n]] -= T
                left_N += T if a.left[n] == 0 else 0.0
                right_N += T if a.right[n] == a.n_masses - 1 else 0.0
            for m in range(1, a.n_masses - 1):
                rate["x", name, m] = s["v", name, m]
                rate["v", name, m] = force[m] / a.mass_kg[m]
            point_force[a.start] += force[0]
            point_force[a.end] += force[-1]
            outputs += [left_N, right_N, *(s["x", name, m] for m in range(1, a.n_masses - 1))]
        for name, (support, _) in self.points.items():
            if support == "free":
                rate["px", name] = s["pv", name]
                rate["pv", name] = point_force[name] / point_mass[name]
                outputs.append(s["px", name])
        outputs += [i["dx", name] for name, (support, _) in self.points.items()
                    if support == "driven"]  # fmt: skip
        for name, (support, _) in self.points.items():
            sides = {(name == a.start, name == a.end) for a in self.arrays.values()}
            if support == "fixed" and {(True, False), (False, True)} <= sides:
                outputs.append(-point_force[name])  # what holds it still
        return np.array([rate[key] for key in self.states]), np.array(outputs)

    def _motion(self, s, i, name, a, mass):
        if 0 < mass < a.n_masses - 1:
            return s["x", name, mass], s["v", name, mass]
        point = a.start if mass == 0 else a.end
        support = self.points[point][0]
        if support == "free":
            return s["px", point], s["pv", point]
        if support == "driven":
            return i["dx", point], i["dv", point]
        return 0.0, 0.0

    def matrices(self):
        """A, B, C, D column by column from unit states and inputs."""
        n, m = len(self.states), len(self.inputs)
        columns = []
        for k in range(n + m):
            unit = np.zeros(n + m)
            unit[k] = 1.0
            columns.append(np.concatenate(self.rates_and_outputs(unit[:n], unit[n:])))
        whole = np.array(columns).T if columns else np.zeros((0, 0))
        return whole[:n, :n], whole[:n, n:], whole[n:, :n], whole[n:, n:]
