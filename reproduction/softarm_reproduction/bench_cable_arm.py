"""
Benchmark of the kinematics and cable statics against plain versions of the same mathematics.

The numpy versions are written independently, from the paper's equations, and each result is
compared with its reference before both are timed. Timings never fail a build: the table shows
whether each time meets its bar.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq, fsolve

from softarm_reproduction.bench_rows import BenchRow, median_us, require_equal
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import Posture
from softarm_ros.models.cable_driven.cable_equilibrium_kernels import equilibrium_into
from softarm_ros.models.cable_driven.cable_statics import CableStaticsArm
from softarm_ros.models.cable_driven.cable_statics_kernels import holding_contractions_into
from softarm_ros.models.cable_driven.constant_curvature_kernels import (
    damped_step_into,
    tip_jacobian_into,
)
from softarm_ros.models.cable_driven.rod import CableRodArm
from softarm_ros.models.config import CableConfig, SectionConfig
from softarm_ros.models.cosserat.arm import CosseratArm

LENGTH, ENDCAP, RADIUS = 0.093, 0.015, 0.0125  # m
BENDING, CUTTING = 20.02e-4, 3.1e4  # N m^2, N/m^2
BEND = np.array([0.5, 0.2, -0.7, 0.9])  # rad, two sections
TARGET = np.array([0.06, 0.05, 0.19])  # m
DAMPING = 1e-6  # m^2
PRETENSION_M = 2e-3


def rows(repeats: int = 15) -> list[BenchRow]:
    """
    Return the measured rows; this takes a few seconds.

    Raises
    ------
    AssertionError
        If a kernel and its reference disagree, which makes the comparison void.

    """
    return [
        _bench_damped_step(repeats),
        _bench_tip_jacobian(repeats),
        _bench_workspace(repeats),
        _bench_statics_inverse(repeats),
        _bench_statics_forward(repeats),
        _bench_arm_inverse(repeats),
        _bench_rod(repeats),
    ]


def _bench_damped_step(repeats: int) -> BenchRow:
    lengths = np.array([[LENGTH, ENDCAP], [LENGTH, ENDCAP]])
    tip, jacobian, step = np.empty(3), np.empty((3, 4)), np.empty(4)

    def compiled() -> None:
        damped_step_into(BEND, lengths, TARGET, DAMPING, tip, jacobian, step)

    compiled()
    require_equal('damped step', step, numpy_damped_step(BEND, TARGET), 1e-9)
    return BenchRow(
        'constant-curvature step, 2 sections: FK + Jacobian + damped least squares',
        median_us(compiled, repeats),
        median_us(lambda: numpy_damped_step(BEND, TARGET), repeats),
        'numpy',
        bar_us=3.0,
    )


def _bench_tip_jacobian(repeats: int) -> BenchRow:
    lengths = np.array([[LENGTH, ENDCAP], [LENGTH, ENDCAP]])
    tip, jacobian = np.empty(3), np.empty((3, 4))

    def compiled() -> None:
        tip_jacobian_into(BEND, lengths, 3, tip, jacobian)

    compiled()
    require_equal('tip Jacobian', jacobian, numpy_tip_and_jacobian(BEND)[1], 1e-12)
    return BenchRow(
        'tip and Jacobian, 2 sections',
        median_us(compiled, repeats),
        median_us(lambda: numpy_tip_and_jacobian(BEND), repeats),
        'numpy',
    )


def _bench_workspace(repeats: int) -> BenchRow:
    arm = _arm()
    bends = np.random.default_rng(0).uniform(-1.5, 1.5, (1000, 4))
    require_equal('tips', arm.tips_of(bends), numpy_tips(bends), 1e-12)
    return BenchRow(
        'workspace sampling, 2 sections, 1000 poses',
        median_us(lambda: arm.tips_of(bends), repeats),
        median_us(lambda: numpy_tips(bends), repeats),
        'numpy, all at once',
        bar_us=1000.0,
    )


def _section_arrays() -> tuple[Array, Array]:
    angles = np.radians([0.0, 120.0, 240.0])
    cables = np.stack([RADIUS * np.cos(angles), RADIUS * np.sin(angles), angles], axis=1)
    return np.array([LENGTH, ENDCAP, BENDING, CUTTING]), cables


def _bench_statics_inverse(repeats: int) -> BenchRow:
    section, cables = _section_arrays()
    theta, phi = math.radians(90.0), math.radians(20.0)
    bx, by = theta * math.cos(phi), theta * math.sin(phi)
    contraction, moments, alphas = np.empty(3), np.empty(3), np.empty(3)

    def compiled() -> None:
        holding_contractions_into(bx, by, section, cables, contraction, moments, alphas)

    compiled()
    require_equal('statics inverse', contraction, plain_statics_inverse(theta, phi), 1e-9)
    return BenchRow(
        'cable-statics inverse, 1 section, 3 cables',
        median_us(compiled, repeats),
        median_us(lambda: plain_statics_inverse(theta, phi), repeats),
        'numpy, brentq',
        bar_us=20.0,
    )


def _bench_statics_forward(repeats: int) -> BenchRow:
    section, cables = _section_arrays()
    one_cable = cables[:1].copy()
    contraction = np.array([0.0213])
    moments, alphas, guess = np.empty(1), np.empty(1), np.full(2, math.nan)

    def compiled() -> tuple[int, float, float, float]:
        return equilibrium_into(contraction, section, one_cable, guess, moments, alphas)

    theta = compiled()[1]
    reference = plain_statics_forward(LENGTH - contraction[0])
    require_equal('statics forward', np.array([theta]), np.array([reference]), 1e-8)
    return BenchRow(
        'cable-statics forward, 1 section, 1 cable (eq. 21)',
        median_us(compiled, repeats),
        median_us(lambda: plain_statics_forward(LENGTH - contraction[0]), repeats),
        'fsolve',
    )


def _bench_arm_inverse(repeats: int) -> BenchRow:
    arm = _arm()
    neighbour = arm.inverse(TARGET + 0.002)
    guess, start = neighbour.actuation, neighbour.shape.configuration
    solution = arm.inverse(TARGET, guess=guess)
    reference = numpy_inverse_kinematics(start, TARGET)
    require_equal('inverse kinematics', numpy_tip_and_jacobian(reference)[0], TARGET, 1e-6)
    require_equal('inverse kinematics', solution.shape.tip[:3, 3], TARGET, 1e-6)
    return BenchRow(
        'whole inverse, 2 sections, warm: tip position -> contractions',
        median_us(lambda: arm.inverse(TARGET, guess=guess), repeats),
        median_us(lambda: numpy_inverse_kinematics(start, TARGET), repeats),
        'numpy steps, kinematics only',
    )


def _bench_rod(repeats: int) -> BenchRow:
    """Time the next posture of a heavy, compliant arm against a search over cable tensions."""
    arm = CableRodArm(*_parts(), (0.0, 0.0, 9.81), pretension_m=PRETENSION_M)
    near = arm.posture_of(BEND)
    following = BEND + 0.01

    def warm() -> Posture:
        posture = arm.posture_of(following, near)
        _ = posture.tip_jacobian, posture.actuation_jacobian
        return posture

    rest = arm.posture_of(following).held
    other = CosseratArm(arm.rod.shots.config)
    guided = other.rod.solve(rest.tension).contractions  # without cable stretch and cutting in

    def by_tensions() -> Array:
        found = other.forward_lengths(guided, 0.99 * rest.tension)
        return found.shape.tip[:3, 3] + [0.0, 0.0, ENDCAP]

    require_equal('rod on cables', warm().tip, by_tensions(), 1e-5)
    return BenchRow(
        'Cosserat rod on cables, 2 sections, warm: bends -> shape, contractions, Jacobians',
        median_us(warm, repeats),
        median_us(by_tensions, repeats),
        'lengths -> shape by tensions, scipy',
        bar_us=1000.0,
    )


def _arm() -> CableStaticsArm:
    return CableStaticsArm(*_parts())


def _parts() -> tuple[list[SectionConfig], list[CableConfig]]:
    sections = [
        SectionConfig(
            name=name,
            length_m=LENGTH,
            endcap_length_m=ENDCAP,
            cable_radius_m=RADIUS,
            bending_stiffness_N_m2=BENDING,
            cutting_in_stiffness_N_m2=CUTTING,
            body_mass_kg=0.058,
            endcap_mass_kg=0.004,
            axial_stiffness_N=690.0,
        )
        for name in ('proximal', 'distal')
    ]
    cables = [
        CableConfig(name=f'{section.name}_{angle}', section=section.name, angle_deg=angle)
        for section in sections
        for angle in (0, 120, 240)
    ]
    return sections, cables


# Plain reference versions


def numpy_tip_and_jacobian(bend: Array) -> tuple[Array, Array]:
    """Return the tip (3,) [m] and its Jacobian (3, 4) by matrix products and polar arcs."""
    frames, arcs = [np.eye(4)], []
    for bx, by in bend.reshape(-1, 2):
        theta, phi = math.hypot(bx, by), math.atan2(by, bx)
        c, s = math.cos(theta), math.sin(theta)
        axis = np.array([-math.sin(phi), math.cos(phi), 0.0])
        skew = np.array([[0.0, 0.0, axis[1]], [0.0, 0.0, -axis[0]], [-axis[1], axis[0], 0.0]])
        radial = np.array([math.cos(phi), math.sin(phi), 0.0])
        radius = LENGTH / theta
        arc = np.eye(4)
        arc[:3, :3] = np.eye(3) + s * skew + (1.0 - c) * skew @ skew
        arc[:3, 3] = radius * ((1.0 - c) * radial + np.array([0.0, 0.0, s]))
        by_theta = LENGTH * (s * theta - 1.0 + c) / theta**2 * radial
        by_theta[2] = LENGTH * (c * theta - s) / theta**2
        by_phi = radius * (1.0 - c) * axis
        # Angular velocity by theta: the axis; by phi: z before minus z after the bend.
        spin = np.array([0.0, 0.0, 1.0]) - arc[:3, 2]
        arcs.append((theta, phi, by_theta, by_phi, axis, spin))
        endcap = np.eye(4)
        endcap[2, 3] = ENDCAP
        frames.append(frames[-1] @ endcap @ arc @ endcap)
    tip = frames[-1][:3, 3]
    jacobian = np.empty((3, bend.size))
    for k, (theta, phi, by_theta, by_phi, axis, spin) in enumerate(arcs):
        rotation = frames[k][:3, :3]
        arc_end = frames[k + 1][:3, 3] - ENDCAP * frames[k + 1][:3, 2]
        lever = rotation.T @ (tip - arc_end)
        polar = np.stack(
            [by_theta + np.cross(axis, lever), by_phi + np.cross(spin, lever)], axis=1
        )
        to_polar = np.array(
            [[math.cos(phi), math.sin(phi)], [-math.sin(phi) / theta, math.cos(phi) / theta]]
        )
        jacobian[:, 2 * k : 2 * k + 2] = rotation @ polar @ to_polar
    return tip, jacobian


def numpy_tips(bends: Array) -> Array:
    """Return the tips (n, 3) [m] of bending vectors (n, 4), vectorised over all n poses."""
    tips = np.zeros((len(bends), 3))
    for k in (1, 0):
        bend = bends[:, 2 * k : 2 * k + 2]
        theta = np.linalg.norm(bend, axis=1)
        direction = bend / theta[:, None]
        c, s = np.cos(theta), np.sin(theta)
        x = np.sum(direction * tips[:, :2], axis=1)
        y = direction[:, 0] * tips[:, 1] - direction[:, 1] * tips[:, 0]
        z = tips[:, 2] + ENDCAP
        radial = c * x + s * z + LENGTH * (1.0 - c) / theta
        tips[:, 0] = direction[:, 0] * radial - direction[:, 1] * y
        tips[:, 1] = direction[:, 1] * radial + direction[:, 0] * y
        tips[:, 2] = c * z - s * x + LENGTH * s / theta + ENDCAP
    return tips


def numpy_damped_step(bend: Array, target: Array) -> Array:
    """Return J^T (J J^T + damping I)^-1 (target - tip) (4,) [rad] (eq. 35)."""
    tip, jacobian = numpy_tip_and_jacobian(bend)
    square = jacobian @ jacobian.T + DAMPING * np.eye(3)
    return jacobian.T @ np.linalg.solve(square, target - tip)


def numpy_inverse_kinematics(bend: Array, target: Array) -> Array:
    """Return the bending vectors (4,) [rad] to which repeated damped steps converge."""
    for _ in range(50):
        step = numpy_damped_step(bend, target)
        bend = bend + step
        if np.linalg.norm(step) < 1e-9:
            break
    return bend


def plain_statics_inverse(theta: float, phi: float) -> Array:
    """Return the contractions (3,) [m], cable by cable from eq. 16-30 with brentq."""
    kappa = theta / LENGTH
    angles = np.radians([0.0, 120.0, 240.0]) - phi
    offsets, levers = RADIUS * np.cos(angles), RADIUS * np.sin(angles)
    idle = int(np.argmin(offsets))
    first, second = (i for i in range(3) if i != idle)
    # Moments about both axes: sum m_i d_i = K_b kappa, sum m_i p_i = 0 (eq. 25, 27).
    balance = np.array([offsets[[first, second]], levers[[first, second]]])
    moments = np.zeros(3)
    moments[[first, second]] = np.linalg.solve(balance, [BENDING * kappa, 0.0])
    contraction = LENGTH * kappa * offsets
    for i in (first, second):
        chord = 2.0 * (1.0 / kappa - offsets[i]) * math.sin(0.5 * theta)
        sagitta = (1.0 / kappa - offsets[i]) * (1.0 - math.cos(0.5 * theta))

        def mismatch(
            alpha: float, moment: float = moments[i], c: float = chord, sag: float = sagitta
        ) -> float:
            curvature = 2.0 * math.sin(0.5 * theta - alpha) / c
            depth = sag - (1.0 - math.cos(0.5 * theta - alpha)) / curvature
            return CUTTING * depth * math.cos(alpha) - moment * curvature

        alpha = brentq(mismatch, 0.0, 0.5 * theta - 1e-9, xtol=1e-14)
        psi = 0.5 * theta - alpha
        contraction[i] = LENGTH - chord * psi / math.sin(psi)
    return contraction


def plain_statics_forward(cable_length: float) -> float:
    """Return theta [rad] for one cable by `fsolve` on eq. 21, starting without cutting in."""
    kappa = (LENGTH - cable_length) / (RADIUS * LENGTH)

    def residual(unknown: Array) -> list[float]:
        kb, alpha, kc, tension = unknown[0] * 10.0, unknown[1], unknown[2] * 10.0, unknown[3]
        theta = kb * LENGTH
        depth = (1.0 / kb - RADIUS) * (1.0 - math.cos(0.5 * theta))
        depth -= (1.0 - math.cos(0.5 * theta - alpha)) / kc
        chord = math.sin(0.5 * theta - alpha) / kc - (1.0 / kb - RADIUS) * math.sin(0.5 * theta)
        return [
            theta - kc * cable_length - 2.0 * alpha,
            1e2 * chord,
            tension * kc / CUTTING * 1e3 - depth * 1e3,
            tension * RADIUS * math.cos(alpha) * 1e2 - BENDING * kb * 1e2,
        ]

    start = [
        0.1 * kappa,
        0.0,
        0.1 * kappa / (1.0 - RADIUS * kappa),
        BENDING * kappa / RADIUS,
    ]
    return float(fsolve(residual, start, xtol=1e-13)[0]) * 10.0 * LENGTH
