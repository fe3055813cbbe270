"""The same soft chain in other tools: pinocchio, Exudyn, SciPy."""

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.integrate
import scipy.linalg

from hil.mechanics.arrays import Array
from hil.systems.soft.stepper import SoftStepper
from hil.systems.soft.tree import SoftTree
from hil_studies.soft_chain.cases import SERVO, servo_input

Forward = Callable[[Array, Array, Array], Any]


def has(tool: str) -> bool:
    """Return whether an optional tool is installed."""
    return find_spec(tool) is not None


def _pinocchio_model(tree: SoftTree) -> Any:
    import pinocchio

    model = pinocchio.Model()
    model.gravity.linear = np.array(tree.gravity_m_per_s2)
    ids = {-1: 0}
    for i, body in enumerate(tree.bodies):
        kind = pinocchio.JointModelRevoluteUnaligned(np.array(body.axis))
        if tree.is_planar:
            kind = pinocchio.JointModelRZ()
        elif body.slides:
            kind = pinocchio.JointModelPrismaticUnaligned(np.array(body.axis))
        turn = np.asarray(body.joint_turn, dtype=float)
        place = pinocchio.SE3(turn, np.array(body.joint_at_m))
        ids[i] = model.addJoint(ids[body.parent], kind, place, f"joint{i}")
        inertia = pinocchio.Inertia(body.mass_kg, np.array(body.centre_m), body.inertia)
        model.appendBodyToJoint(ids[i], inertia, pinocchio.SE3.Identity())
    return model


def pinocchio_aba(tree: SoftTree) -> Forward:
    """Return accelerations by pinocchio's articulated-body algorithm, from q, v and torques."""
    import pinocchio

    model = _pinocchio_model(tree)
    data = model.createData()

    def accelerations(q: Array, v: Array, torque: Array) -> Any:
        return pinocchio.aba(model, data, q, v, torque)

    return accelerations


def pinocchio_dense(tree: SoftTree) -> Forward:
    """Return accelerations by pinocchio's dense mass matrix and LAPACK's Cholesky solver."""
    import pinocchio

    model = _pinocchio_model(tree)
    data = model.createData()

    def accelerations(q: Array, v: Array, torque: Array) -> Any:
        upper = pinocchio.crba(model, data, q)
        bias = pinocchio.nonLinearEffects(model, data, q, v)
        factor = scipy.linalg.cho_factor(upper, check_finite=False)
        return scipy.linalg.cho_solve(factor, torque - bias, check_finite=False)

    return accelerations


def exudyn_run(
    tree: SoftTree, step_s: float, duration_s: float, spectral_radius: float = 0.8
) -> tuple[Array, float]:
    """Return final joint positions and seconds taken by Exudyn's kinematic tree.

    It uses generalized-alpha with modified Newton on Voigt elements. Joint 0 is a servo that
    follows `servo_input`, which costs one Python call per residual.
    """
    import exudyn
    from exudyn.itemInterface import NodeGenericODE2, ObjectKinematicTree

    n, bodies = tree.n, tree.bodies
    system = exudyn.SystemContainer().AddSystem()
    zeros = [0.0] * n
    node = system.AddNode(
        NodeGenericODE2(
            referenceCoordinates=zeros, initialCoordinates=zeros, initialCoordinates_t=zeros,
            numberOfODE2Coordinates=n,
        )
    )  # fmt: skip
    push = np.zeros(n)

    def drive(_system: Any, t_s: float, _item: int, _q: Any, _v: Any) -> Array:
        reference, rate, _ = servo_input(np.array(t_s))
        push[0] = SERVO.k * reference + SERVO.c * rate
        return push

    elements = [body.element for body in bodies]
    vectors: Any = exudyn.Vector3DList
    matrices: Any = exudyn.Matrix3DList
    system.AddObject(
        ObjectKinematicTree(
            nodeNumber=node,
            gravity=list(tree.gravity_m_per_s2),
            jointTypes=[exudyn.JointType.RevoluteZ] * n,
            linkParents=[body.parent for body in bodies],
            jointTransformations=matrices([np.eye(3)] * n),
            jointOffsets=vectors([np.array(body.joint_at_m) for body in bodies]),
            linkInertiasCOM=matrices([body.inertia for body in bodies]),
            linkCOMs=vectors([np.array(body.centre_m) for body in bodies]),
            linkMasses=[body.mass_kg for body in bodies],
            jointPControlVector=[0.0 if e is None else e.k for e in elements],
            jointDControlVector=[0.0 if e is None else e.c for e in elements],
            jointPositionOffsetVector=zeros,
            jointVelocityOffsetVector=zeros,
            forceUserFunction=drive,
        )
    )
    system.Assemble()
    settings = exudyn.SimulationSettings()
    integration = settings.timeIntegration
    integration.endTime = duration_s
    integration.numberOfSteps = round(duration_s / step_s)
    integration.verboseMode = 0
    integration.generalizedAlpha.spectralRadius = spectral_radius
    integration.newton.useModifiedNewton = True
    settings.solution.file.write = False
    settings.show.statistics = False
    began = time.perf_counter()
    system.SolveDynamic(settings, solverType=exudyn.DynamicSolverType.GeneralizedAlpha)
    taken_s = time.perf_counter() - began
    q = system.GetNodeOutput(node, exudyn.OutputVariableType.Coordinates)
    return np.array(q, dtype=float), taken_s


def scipy_run(
    tree: SoftTree, method: str, tolerance: float, duration_s: float
) -> tuple[Array, float]:
    """Return final joint positions and seconds taken by `solve_ivp` on this package's recursion.

    The state is [q, v, R]; joint 0 is a servo that follows `servo_input`.
    """
    stepper = SoftStepper(tree)
    n, at = tree.n, tree.branch_joint
    kM, tau_s = stepper.parts.branches[:2]
    branches = stepper.R

    def rates(t_s: float, y: Array) -> Array:
        branches[:] = y[2 * n :]
        x = stepper.accelerations(y[:n], y[n : 2 * n], servo_input(np.array(t_s)))
        return np.concatenate((y[n : 2 * n], x, kM * y[n + at] - branches / tau_s))

    y0 = np.zeros(2 * n + len(at))
    began = time.perf_counter()
    answer = scipy.integrate.solve_ivp(
        rates, (0.0, duration_s), y0, method=method, rtol=tolerance, atol=tolerance
    )
    taken_s = time.perf_counter() - began
    return np.asarray(answer.y[:n, -1], dtype=float), taken_s
