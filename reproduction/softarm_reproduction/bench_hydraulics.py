"""Benchmark of the water hydraulics, the coupled arm, the hydrodynamics and the water rod."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.integrate import solve_ivp

from softarm_reproduction.bench_rows import BenchRow, median_us, require_equal
from softarm_ros import load_rig
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ArmModel, Posture
from softarm_ros.models.hydraulics.axes import WaterHydraulics, linear_system
from softarm_ros.models.hydraulics.axes_kernels import GAMMA, axes_step_into
from softarm_ros.models.hydraulics.config import HydraulicAxisConfig
from softarm_ros.models.hydraulics.identified_arm import HANGING_M_S2 as HANGING
from softarm_ros.models.hydraulics.identified_arm import SET_B, build_hydraulic_arm
from softarm_ros.models.hydrodynamics.morison import Hydrodynamics, PieceMotion, WaterConfig
from softarm_ros.models.hydrodynamics.morison_kernels import added_mass_into, drag_into

PRESSURES, SWAY, SEGMENTS = np.array([1e5, 3e5, 2e5, 4e5, 1e5, 2e5]), 1e-3, 5
TORQUE = np.array([1.5, 0.0, 0.0, 0.0, 1.5, 1.5])


def rows(repeats: int) -> list[BenchRow]:
    """Return the measured rows; raise if a compiled result differs from its reference."""
    return [
        _axes_row(repeats), _coupled_row(repeats), _morison_row(repeats), _rod_row(repeats),
    ]  # fmt: skip


def _axes_row(repeats: int) -> BenchRow:
    axis = HydraulicAxisConfig()
    hydraulics = WaterHydraulics([axis.model_copy(update={'name': f'a{i}'}) for i in range(6)])
    work, chain = hydraulics.scratch()
    force, still, out = hydraulics.force_per_torque * TORQUE, np.zeros(6), np.zeros(6)
    h, rest = 1e-3, hydraulics.rest_state()
    state = rest.copy()
    a, b = linear_system(axis)
    stage = np.linalg.inv(np.eye(3) - GAMMA * h * a)
    push = GAMMA * h * b[:, :1] * TORQUE

    def compiled() -> None:
        state[:] = rest
        axes_step_into(state, h, force, still, hydraulics.parameters, work, chain, out)

    def plain() -> Array:
        y = np.zeros((3, 6))
        first = stage @ (y + push)
        return np.asarray(stage @ (y + (1.0 - GAMMA) / GAMMA * (first - y) + push))

    compiled()
    require_equal('hydraulic axes', state[:, [0, 4, 2]] / 1e6, plain().T / 1e6, 1e-9)
    return BenchRow(
        'six hydraulic axes, one step', median_us(compiled, repeats), median_us(plain, repeats),
        'numpy, no friction', 10.0,
    )  # fmt: skip


def _coupled_row(repeats: int) -> BenchRow:
    """Time 20 ms of two sections and six axes: steps of 1 ms against scipy's Radau."""
    # A compliant wall helps Radau's numerical Jacobian and costs the 1 ms steps nothing.
    axis = HydraulicAxisConfig()
    system = build_hydraulic_arm(SET_B[1], axis)
    for row in system.hydraulics.parameters:
        row[9] = 5e-12
    soft = axis.model_copy(
        update={'chamber_compliance_m3_Pa': 5e-12 - axis.chamber_volume_m3 / axis.bulk_modulus_Pa}
    )
    a, b = linear_system(soft)
    loads = system.arm.loads(HANGING)
    volume = system.volume.reshape(6, 8)

    def rate(_: float, z: Array) -> Array:
        q, v, axes = z[:8].reshape(2, 4), z[8:16].reshape(2, 4), z[16:].reshape(6, 3)
        drive = system.drive.map @ axes[:, 1]
        acceleration = system.arm.forward_dynamics(q, v, loads._replace(drive=drive))
        inputs = np.stack([TORQUE, np.zeros(6), volume @ z[8:16]], axis=1)
        return np.concatenate(
            (v.ravel(), acceleration.ravel(), (axes @ a.T + inputs @ b.T).ravel())
        )

    def compiled() -> Array:
        state = system.rest_state()
        for _ in range(20):
            state = system.step(state, TORQUE, 1e-3, loads).state
        return state.strains

    def reference() -> Array:
        start = np.zeros(34)
        found = solve_ivp(rate, (0.0, 0.02), start, method='Radau', rtol=1e-4, atol=1e-6)
        return np.asarray(found.y[:8, -1].reshape(2, 4))

    require_equal('coupled arm, curvatures', compiled()[:, 1:], reference()[:, 1:], 2e-3)
    return BenchRow(
        'two sections and six axes, 20 steps of 1 ms', median_us(compiled, repeats),
        median_us(reference, 3), 'scipy Radau, 1e-4', 20e3 / 10.0,
    )  # fmt: skip


def _morison_row(repeats: int) -> BenchRow:
    n = 40
    rng = np.random.default_rng(0)
    tangent = rng.normal(size=(n, 3))
    tangent /= np.linalg.norm(tangent, axis=1)[:, None]
    motion = PieceMotion(*(rng.normal(size=(n, 3)) for _ in range(5)))
    config = WaterConfig()
    water = Hydrodynamics(config, np.full(n, 0.01), 0.034)
    drag, slope, added = np.empty((n, 3)), np.empty((n, 3, 3)), np.empty((n, 6))
    relative, rate = -motion.velocity, -motion.acceleration

    def compiled() -> None:
        args = (water.coefficients, water.length, water.diameter, tangent, relative)
        drag_into(*args, drag, slope)
        added_mass_into(*args, rate, motion.spin, added)

    def plain() -> Array:
        along = np.sum(relative * tangent, axis=1, keepdims=True) * tangent
        across = relative - along
        area = 998.0 * 0.034 * 0.01
        out = 0.5 * area * config.drag_across * np.linalg.norm(across, axis=1)[:, None] * across
        out += (
            0.5 * math.pi * area * config.drag_along
            * np.linalg.norm(along, axis=1)[:, None] * along
        )  # fmt: skip
        mass = 998.0 * math.pi * 0.034**2 / 4.0 * 0.01
        v = -relative
        own = -rate - np.cross(motion.spin, v)
        h = mass * (v - np.sum(v * tangent, axis=1, keepdims=True) * tangent)
        turned = mass * (own - np.sum(own * tangent, axis=1, keepdims=True) * tangent)
        force = -(turned + np.cross(motion.spin, h))
        return np.hstack((out, force, -np.cross(v, h)))

    compiled()
    require_equal('Morison loads', np.hstack((drag, added)), plain(), 1e-9)
    return BenchRow(
        'Morison loads of 40 nodes', median_us(compiled, repeats), median_us(plain, repeats),
        'numpy', 20.0,
    )  # fmt: skip


def _rod_row(repeats: int) -> BenchRow:
    """Time a tracker's queries on the rod of hydraulic_arm against its finely resolved statics."""
    rig = load_rig('hydraulic_arm')
    rod = rig.model('cosserat')
    statics = rig.with_model(segments_per_section=SEGMENTS).model('hydraulic_statics')
    near = rod.configuration_of(PRESSURES)

    def walker(model: ArmModel) -> Callable[[], Array]:
        postures: list[Posture | None] = [None]

        def walk() -> Array:
            step = -SWAY if len(postures) % 2 else SWAY
            posture = model.posture_of(near * (1.0 + step), postures[-1])
            postures.append(posture)
            del postures[:-2]
            _ = posture.tip_jacobian, posture.actuation_jacobian, posture.preferred
            return np.asarray(posture.tip)

        return walk

    ours, theirs = walker(rod), walker(statics)
    require_equal('rod of water chambers, tip', ours(), theirs(), 2e-3)
    return BenchRow(
        'rod of two water sections, a posture beside the last', median_us(ours, repeats),
        median_us(theirs, repeats), f'statics of {SEGMENTS} segments a section', 1000.0,
    )  # fmt: skip
