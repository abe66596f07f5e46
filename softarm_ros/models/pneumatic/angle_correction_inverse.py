"""Pressures that bring a pneumatic arm to a pose, two chambers of a section at most."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import least_squares

from softarm_ros.geometry.poses import displacement, pose
from softarm_ros.models.arm_model import Array, InverseSolution, ModelError, Vector3
from softarm_ros.models.pneumatic.chambers import bend_of_chambers, finite_vector

if TYPE_CHECKING:
    from softarm_ros.models.pneumatic.angle_correction import PneumaticArm

_TIP_TOLERANCE = 1e-5  # of the arm's length, and in rad: a solution
_EXACT = 1e-5  # of that: where the iteration stops
_NEWTON_STEPS, _HALVINGS = 25, 4
_STEP, _MAX_STEP_RAD = 1e-6, 0.5


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

    starts = [
        np.clip(start, -0.99 * limits, 0.99 * limits) for start in _starts(arm, target, guess)
    ]
    tolerance = _EXACT * _TIP_TOLERANCE * arm.rest_length_m
    found_by_newton = [_newton(error_of, start, limits, tolerance) for start in starts]
    near = [bends for bends in found_by_newton if bends is not None]
    if near:
        least = min(near, key=lambda bends: float(np.linalg.norm(bends)))
        return _solution(arm, least, target, tip_force, True)
    # Out of reach, or close to limits: the best that can be had.
    best, least_missed = None, math.inf
    for start in starts:
        try:
            found = least_squares(
                error_of, start, bounds=(-limits, limits), x_scale=1.0, xtol=1e-12, max_nfev=60
            )
        except ModelError:
            continue
        if found.cost < least_missed:
            best, least_missed = found, found.cost
    if best is None:
        raise ModelError(f'no pose near position {target[:3, 3].tolist()} is in equilibrium')
    missed = float(np.linalg.norm(best.fun[:rows]))
    met = missed <= _TIP_TOLERANCE * arm.rest_length_m
    return _solution(arm, best.x, target, tip_force, met)


def _newton(
    error_of: Callable[[Array], Array], start: Array, limits: Array, tolerance: float
) -> Array | None:
    """
    Return where the error vanishes, by the smallest steps that close it, or None.

    The error has a kink where another chamber becomes the passive one. Differences as wide as the
    last step see both sides of one that lies within it, and the steps do not swing across it.
    """
    bends, width = start.copy(), _STEP
    try:
        error = error_of(bends)
        for _ in range(_NEWTON_STEPS):
            missed = float(np.linalg.norm(error))
            if missed <= tolerance:
                return bends
            jacobian = np.column_stack(
                [
                    (error_of(bends + width * e) - error_of(bends - width * e)) / (2.0 * width)
                    for e in np.eye(bends.size)
                ]
            )
            step = np.linalg.lstsq(jacobian, -error, rcond=1e-6)[0]
            step *= min(1.0, _MAX_STEP_RAD / float(np.abs(step).max()))
            for _ in range(_HALVINGS):
                trial = np.clip(bends + step, -limits, limits)
                moved = error_of(trial)
                if np.linalg.norm(moved) < 0.9 * missed:
                    break
                step *= 0.5
            width = max(_STEP, min(1e-3, float(np.abs(trial - bends).max())))
            bends, error = trial, moved
    except ModelError:
        pass
    return None


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
