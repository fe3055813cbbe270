"""Independent oracle: an impact in maximal coordinates, every joint a constraint.

Bodies carry (x, y, angle) of their centres of mass; nothing is reduced, no mass matrix of joint
angles is formed. One linear system holds the balance of momentum of every body and the
velocities of every joint and contact after the event::

    [M  -G^T  -F] [v+    ]   [M v-]
    [G   0     0] [joints] = [0   ]
    [A   0     0] [lambda]   [0   ]

with F = A^T, plus friction's direction where the contact is not ideal.
"""

import numpy as np


def event(mass, G, A, v_before, friction=None):
    """v+, and the contact's impulses, of bodies with this diagonal of masses."""
    n, g, m = len(mass), len(G), len(A)
    F = A.T if friction is None else A.T + friction
    K = np.zeros((n + g + m, n + g + m))
    K[:n, :n] = np.diag(mass)
    K[:n, n : n + g] = -G.T
    K[:n, n + g :] = -F
    K[n : n + g, :n] = G
    K[n + g :, :n] = A
    right = np.concatenate((mass * v_before, np.zeros(g + m)))
    solved = np.linalg.solve(K, right)
    return solved[:n], solved[n + g :]


def energy(mass, v):
    return 0.5 * float(np.sum(mass * v * v))


class FiveBar:
    """Four rods and a tip, 14 coordinates and 12 joint equations, at a pose given by points."""

    def __init__(self, E, elbows, l5, l1, l2, a1, a2, m1, m2, mE, I1, I2):
        motors = [np.array([-l5 / 2, 0.0]), np.array([l5 / 2, 0.0])]
        self.mass = np.array([*(m1, m1, I1, m2, m2, I2) * 2, mE, mE], dtype=float)
        rows = []
        for leg in range(2):
            C = np.asarray(elbows[leg])
            along_1, along_2 = (C - motors[leg]) / l1, (np.asarray(E) - C) / l2
            first, second, tip = 6 * leg, 6 * leg + 3, 12
            rows += self._point(first, -a1 * along_1, None, None)
            rows += self._point(first, (l1 - a1) * along_1, second, -a2 * along_2)
            rows += self._point(second, (l2 - a2) * along_2, tip, None)
        self.G = np.array(rows)

    def _point(self, i, r, j, s):
        """A point at r from body i's centre stands still, or moves as body j's point at s."""
        x, y = np.zeros(14), np.zeros(14)
        x[[i, i + 2]], y[[i + 1, i + 2]] = (1.0, -r[1]), (1.0, r[0])
        if j is not None:
            x[j], y[j + 1] = -1.0, -1.0
            if s is not None:
                x[j + 2], y[j + 2] = s[1], -s[0]
        return [x, y]

    def moving(self, tip_velocity):
        """Velocities of all bodies when the tip has this one."""
        pick = np.zeros((2, 14))
        pick[0, 12] = pick[1, 13] = 1.0
        return np.linalg.solve(
            np.vstack((self.G, pick)), np.concatenate((np.zeros(12), tip_velocity))
        )

    def stop_y(self, v, mu=0.0):
        """A plate normal to y; sliding towards +x meets friction mu times the plate's push."""
        A, friction = np.zeros((1, 14)), np.zeros((14, 1))
        A[0, 13] = 1.0
        friction[12, 0] = mu  # lambda is below zero: the plate pushes towards -y
        return event(self.mass, self.G, A, v, friction)
