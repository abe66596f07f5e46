"""Compiled solver: Newton on shots, coarse first, then fine; load steps if that fails."""

from __future__ import annotations

import math

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.models.cosserat.frame_kernels import solve3, turn_right
from softarm_ros.models.cosserat.shooting_kernels import shoot
from softarm_ros.models.cosserat.strain_kernels import OK
from softarm_ros.models.cosserat.tables import Grid, Loads, Trace

SINGULAR, TOO_MANY_ITERATIONS = 3, 4
MAX_SHOTS = 16
# Error [rad] at the base at which the fine grid takes over: the coarse grid is no more accurate.
HAND_OVER = 1e-3
SMALLEST_LOAD_STEP = 0.01


@kernel
def base_error(q: Array, error: Array) -> float:
    """Write the rotation vector from the reached base to the identity; return its norm."""
    x, y, z, w = q[0], q[1], q[2], q[3]
    if w < 0.0:
        x, y, z, w = -x, -y, -z, -w
    sine = math.sqrt(x * x + y * y + z * z)
    k = 2.0 if sine < 1e-9 else 2.0 * math.atan2(sine, w) / sine
    error[0], error[1], error[2] = -k * x, -k * y, -k * z
    return k * sine


@kernel
def newton(
    grid: Grid,
    loads: Loads,
    tip_rotation: Array,
    tolerance: float,
    max_shots: int,
    fresh: bool,
    trace: Trace,
) -> tuple[int, float, bool, int]:
    """
    Turn `tip_rotation` in place until the base is met, by Newton's method with backtracking.

    While the error falls fast, Y is corrected by Broyden's rule instead of integrated again.
    Returns the status, the error at the base [rad], whether Y stayed regular in the last shot that
    integrated it, and the number of shots.
    """
    trial = tip_rotation.copy()
    error, turn, last_error = np.zeros(3), np.zeros(3), np.zeros(3)
    y = np.eye(3)
    best, fraction = math.inf, 1.0
    regular, integrated_regular = True, True
    failure = TOO_MANY_ITERATIONS
    integrate = True
    for shot in range(max_shots):
        status, regular = shoot(grid, loads, trial, 3 if integrate else 0, False, fresh, trace)
        fresh = status != OK
        size = math.inf
        if status == OK:
            size = base_error(trace.base_rotation, error)
        else:
            failure = status
        if integrate:
            integrated_regular = regular
        if size < tolerance:
            tip_rotation[:] = trial
            return OK, size, integrated_regular, shot + 1
        if not size < best:
            if not integrate:
                # The corrected Y misled: integrate it at the best rotation so far.
                integrate = True
                best = math.inf
                trial[:] = tip_rotation
                continue
            # Worse than at the start of the step: halve the step.
            fraction *= 0.5
            if fraction < 0.05 or best == math.inf:
                return failure, best, integrated_regular, shot + 1
            trial[:] = tip_rotation
            turn_right(trial, fraction * turn[0], fraction * turn[1], fraction * turn[2])
            continue
        if integrate:
            for i in range(3):
                for c in range(3):
                    y[i, c] = trace.variation[i, c]
        else:
            # Broyden: Y turn is the change of the base, last_error - error.
            norm = turn[0] ** 2 + turn[1] ** 2 + turn[2] ** 2
            for i in range(3):
                miss = last_error[i] - error[i]
                for c in range(3):
                    miss -= y[i, c] * turn[c]
                for c in range(3):
                    y[i, c] += miss * turn[c] / norm
        integrate = not size < 0.1 * best and not size < 0.05
        best = size
        tip_rotation[:] = trial
        last_error[:] = error
        # d(base rotation) = Y d(tip rotation), both in their local frames
        if not solve3(y, error, turn):
            return SINGULAR, best, integrated_regular, shot + 1
        length = math.sqrt(turn[0] ** 2 + turn[1] ** 2 + turn[2] ** 2)
        fraction = min(1.0, 1.5 / length)
        if fraction < 1.0:
            integrate = True
        turn_right(trial, fraction * turn[0], fraction * turn[1], fraction * turn[2])
    return failure, best, integrated_regular, max_shots


@kernel
def _scale_loads(loads: Loads, share: float, out: Loads) -> None:
    """Write the loads times `share`."""
    for i in range(loads.tensions.shape[0]):
        out.tensions[i] = share * loads.tensions[i]
    for i in range(6):
        out.tip[i] = share * loads.tip[i]
    for i in range(3):
        out.gravity[i] = share * loads.gravity[i]
    for k in range(loads.connectors.shape[0]):
        for i in range(6):
            out.connectors[k, i] = share * loads.connectors[k, i]


@kernel
def equilibrate(
    fine: Grid,
    coarse: Grid,
    loads: Loads,
    tip_rotation: Array,
    rest_rotation: Array,
    warm: bool,
    tolerance: float,
    trace: Trace,
    coarse_trace: Trace,
    partial: Loads,
) -> tuple[int, float, bool, int, float]:
    """
    Find the equilibrium under the loads; `tip_rotation` (4,) is start (if `warm`) and result.

    Returns the status, the error at the base [rad], whether Y stayed regular on the fine grid,
    the number of fine shots and the share of the loads reached (1 where solved).
    """
    shots = 0
    if warm:
        status, error, regular, shots = newton(
            fine, loads, tip_rotation, tolerance, MAX_SHOTS, False, trace
        )
        if status == OK:
            return status, error, regular, shots, 1.0
    tip_rotation[:] = rest_rotation
    status, _, regular, _ = newton(coarse, loads, tip_rotation, HAND_OVER, 25, True, coarse_trace)
    # A start that is unstable on the coarse grid may lie on another branch: use load steps then.
    if status == OK and regular:
        status, error, regular, count = newton(
            fine, loads, tip_rotation, tolerance, MAX_SHOTS, True, trace
        )
        shots += count
        if status == OK:
            return status, error, regular, shots, 1.0
    reached, share_step = 0.0, 0.25
    tip_rotation[:] = rest_rotation
    error, regular, fresh = 0.0, True, True
    before = rest_rotation.copy()
    while reached < 1.0:
        share = min(1.0, reached + share_step)
        _scale_loads(loads, share, partial)
        before[:] = tip_rotation
        status, error, regular, count = newton(
            fine, partial, tip_rotation, tolerance, MAX_SHOTS, fresh, trace
        )
        shots += count
        fresh = status != OK
        if status == OK:
            reached = share
            share_step = min(0.25, 1.7 * share_step)
        else:
            tip_rotation[:] = before
            share_step *= 0.5
            if share_step < SMALLEST_LOAD_STEP:
                return status, error, regular, shots, reached
    return OK, error, regular, shots, 1.0
