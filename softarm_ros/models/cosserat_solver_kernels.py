"""Compiled strategy around the shots: coarse first, then fine; load steps where that fails."""

from __future__ import annotations

from numba import njit

from softarm_ros.models.arm_model import Array
from softarm_ros.models.cosserat_shooting_kernels import Grid, Loads, Trace, newton
from softarm_ros.models.cosserat_strain_kernels import OK

# Error [rad] at the base at which the coarse grid hands over: its own error is not smaller.
HAND_OVER = 1e-3
SMALLEST_LOAD_STEP = 1e-3


@njit(cache=True, fastmath=False, error_model='numpy')
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


@njit(cache=True, fastmath=False, error_model='numpy')
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
            fine, loads, tip_rotation, tolerance, 16, False, trace
        )
        if status == OK:
            return status, error, regular, shots, 1.0
    tip_rotation[:] = rest_rotation
    status, _, regular, _ = newton(coarse, loads, tip_rotation, HAND_OVER, 25, True, coarse_trace)
    # A start that is unstable on the coarse grid may be another branch: walk there in load steps.
    if status == OK and regular:
        status, error, regular, count = newton(
            fine, loads, tip_rotation, tolerance, 16, True, trace
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
            fine, partial, tip_rotation, tolerance, 16, fresh, trace
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
