"""Pressures that bring a pneumatic arm to a pose, two chambers of a section at most."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import least_squares

from softarm_ros.geometry.poses import displacement, pose
from softarm_ros.models.arm_model import Array, InverseSolution, ModelError, Vector3
from softarm_ros.models.pneumatic_chambers import bend_of_chambers, finite_vector

if TYPE_CHECKING:
    from softarm_ros.models.angle_correction import PneumaticArm

_TIP_TOLERANCE = 1e-8  # of the arm's length, and in rad


def search_pressures(
    arm: PneumaticArm,
    position: Vector3,
    orientation: Array | None,
    guess: Array | None,
    tip_force: Vector3,
) -> InverseSolution:
    """Return what `PneumaticArm.inverse` promises, by bounded least squares in the bends."""
    point = finite_vector(position, 'position')
    target = pose(np.eye(3) if orientation is None else orientation, point)
    rows = 3 if orientation is None else 6
    scale = np.array([1.0, 1.0, 1.0] + 3 * [arm.rest_length_m])[:rows]
    limits = np.repeat(np.radians([s.max_bending_angle_deg for s in arm.sections]), 2)

    def error_of(bends: Array) -> Array:
        configuration = arm.two_chamber_configuration(bends)
        tip = arm.sagged_pose(configuration, tip_force).section_tips[-1]
        beyond = _beyond_curves(arm, configuration)
        return np.concatenate([scale * displacement(target, tip)[:rows], beyond])

    best, best_key = None, (math.inf, math.inf, math.inf)
    for start in _starts(arm, target, guess):
        try:
            found = least_squares(
                error_of,
                np.clip(start, -0.99 * limits, 0.99 * limits),
                bounds=(-limits, limits),
                x_scale=1.0,
                xtol=1e-15,
                ftol=1e-15,
                gtol=1e-15,
                max_nfev=60,
            )
        except ModelError:
            continue
        missed = float(np.linalg.norm(found.fun[:rows]))
        arrived = missed <= _TIP_TOLERANCE * arm.rest_length_m
        beyond = float(np.linalg.norm(found.fun[rows:]))
        key = (0.0 if arrived else missed, beyond, float(np.linalg.norm(found.x)))
        if key < best_key:
            best, best_key = found.x, key
    if best is None:
        raise ModelError(f'no pose near position {target[:3, 3].tolist()} is in equilibrium')
    return _solution(arm, best, target, tip_force, best_key[0] == 0.0)


def _solution(
    arm: PneumaticArm, bends: Array, target: Array, tip_force: Vector3, arrived: bool
) -> InverseSolution:
    wanted = arm.two_chamber_configuration(bends)
    clamped, message = _within_curves(arm, wanted)
    shape = arm.shape_under(clamped, tip_force)
    residual = float(np.linalg.norm(shape.tip[:3, 3] - target[:3, 3]))
    if not arrived:
        short = f'the tip stays {1e3 * residual:.3g} mm off its target'
        message = f'{short}; {message}' if message else short
    return InverseSolution(
        actuation=arm.actuation_of(clamped),
        shape=shape,
        residual=residual,
        converged=arrived and not message,
        message=message,
    )


def _within_curves(arm: PneumaticArm, configuration: Array) -> tuple[Array, str]:
    """Return the configuration with extensions within the curves, and what was clamped."""
    clamped, clamps = configuration.copy(), []
    for k, (section, curve) in enumerate(zip(arm.sections, arm.curves)):
        wanted = arm.extensions(k, configuration)
        within = np.clip(wanted, 0.0, curve.max_extension_m)
        if np.array_equal(within, wanted):
            continue
        bent = bend_of_chambers(section.bending_length_m + within, section.chamber_radius_m)
        clamped[3 * k : 3 * k + 3] = [*bent.bend, bent.length_m]
        clamps += [
            f'{arm.actuator_names[3 * k + j]} would have to extend by {1e3 * wanted[j]:.2f} '
            f'mm, {1e3 * curve.max_extension_m[j]:.2f} mm at most'
            for j in range(3)
            if wanted[j] > curve.max_extension_m[j] + 1e-12
        ]
    return clamped, '; '.join(clamps)


def _beyond_curves(arm: PneumaticArm, configuration: Array) -> Array:
    """Return by how much [m] each chamber would extend beyond its curve (3 sections,)."""
    return np.concatenate(
        [
            np.maximum(0.0, arm.extensions(k, configuration) - curve.max_extension_m)
            for k, curve in enumerate(arm.curves)
        ]
    )


def _starts(arm: PneumaticArm, target: Array, guess: Array | None) -> list[Array]:
    """Return bends (2 sections,) to start from."""
    if guess is not None:
        return [arm.configuration_of(guess).reshape(-1, 3)[:, :2].ravel()]
    x, y = target[:2, 3]
    aside = math.hypot(x, y)
    toward = np.array([1.0, 0.0]) if aside < 1e-9 else np.array([x, y]) / aside
    shares = itertools.product((0.9, 0.2, -0.6), repeat=len(arm.sections))
    return [
        np.concatenate([share * toward + 0.02 * toward[::-1] * (1, -1) for share in combo])
        for combo in shares
    ]
