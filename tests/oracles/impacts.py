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


class WalkerBodies:
    """Two rods, a hip and a torso as bodies (x, y, angle clockwise from the vertical)."""

    def __init__(self, m, m_H, m_T, length, b, l_T, R):
        self.mass = np.array([m, m, 0, m, m, 0, m_H, m_H, m_T, m_T, 0], dtype=float)
        self.length, self.b, self.l_T, self.R = length, b, l_T, R

    def joints(self, stance, swing, torso):
        """Both legs and the torso meet at the hip."""
        rows = []
        for first, reach, angle in ((0, self.b, stance), (3, self.b, swing), (8, -self.l_T, torso)):
            x, y = np.zeros(11), np.zeros(11)
            x[[first, first + 2, 6]] = 1.0, reach * np.cos(angle), -1.0
            y[[first + 1, first + 2, 7]] = 1.0, -reach * np.sin(angle), -1.0
            rows += [x, y]
        return np.array(rows)

    def sole(self, first, angle):
        """Velocity of a foot's material point on the ground: forward, up."""
        down = self.length - self.R - self.b
        A = np.zeros((2, 11))
        A[0, [first, first + 2]] = 1.0, -down * np.cos(angle) - self.R
        A[1, [first + 1, first + 2]] = 1.0, down * np.sin(angle)
        return A

    def heel_strike(self, theta, torso, rate):
        """v-, v+, impulses (forward, up), and the old foot's velocity after the event."""
        stance, swing = theta / 2.0, -theta / 2.0
        G = self.joints(stance, swing, torso)
        turning = np.zeros((3, 11))
        turning[0, 2] = turning[1, 5] = turning[2, 10] = 1.0
        before = np.linalg.solve(
            np.vstack((G, self.sole(0, stance), turning)),
            np.concatenate((np.zeros(8), [rate, rate, 0.0])),
        )
        after, impulse = event(self.mass, G, self.sole(3, swing), before)
        return before, after, impulse, self.sole(0, stance) @ after

    def accelerations(self, z, g, slope):
        """q3'', q4'' while rolling on the stance foot; a torso without lever stands still."""
        q3, q4, w3, w4 = z

        def rows(h):
            a, b = q3 + h * w3, q4 + h * w4
            return np.vstack((self.joints(a, b, 0.0), self.sole(0, a), np.eye(11)[10:]))

        G = rows(0.0)
        v = np.linalg.solve(
            np.vstack((G, np.eye(11)[[2, 5]])), np.concatenate((np.zeros(9), [w3, w4]))
        )
        turning = (rows(1e-6) - rows(-1e-6)) / 2e-6 @ v
        weight = np.zeros(11)
        weight[[0, 3, 6, 8]], weight[[1, 4, 7, 9]] = g * np.sin(slope), -g * np.cos(slope)
        n = len(G)
        K = np.block([[np.diag(self.mass), -G.T], [G, np.zeros((n, n))]])
        found = np.linalg.solve(K, np.concatenate((self.mass * weight, -turning)))
        return found[[2, 5]]
