"""Compiled velocity bounds of the tracker: for so few numbers, calls in Python would dominate."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel

_STRAIGHT_RAD = 1e-6  # a smaller bending vector has no direction along which to bound it
_NONE = 1e30  # stands for an infinite bound


@kernel
def fastest_towards(room: float, brake: float, period_s: float) -> float:
    """
    Return the largest speed from which braking in whole periods stays within room.

    Over n periods, each slower than the last by brake T, the distance travelled is
    n v T - brake T^2 n (n - 1) / 2. In the final period the speed may drop by less.
    """
    step = brake * period_s**2
    periods = max(math.ceil(0.5 * (math.sqrt(1.0 + 8.0 * room / step) - 1.0)), 1.0)
    return (room / periods + 0.5 * step * (periods - 1.0)) / period_s


@kernel
def rate_bounds(
    command: Array,
    rate: Array,
    period_s: float,
    position_min: Array,
    position_max: Array,
    max_speed: Array,
    max_acceleration: Array,
) -> tuple[Array, Array]:
    """Compute the bounds (m,) of `ActuatorLimits.rate_bounds`; all arrays are (m,)."""
    m = len(command)
    low, high = np.empty(m), np.empty(m)
    for i in range(m):
        brake = max_acceleration[i]
        room_up = max(position_max[i] - command[i], 0.0)
        room_down = max(command[i] - position_min[i], 0.0)
        up = min(max_speed[i], fastest_towards(room_up, brake, period_s))
        down = min(max_speed[i], fastest_towards(room_down, brake, period_s))
        low[i] = max(-down, rate[i] - brake * period_s)
        high[i] = min(up, rate[i] + brake * period_s)
        if low[i] > high[i]:
            low[i] = high[i] = min(max(rate[i], -down), up)
    return low, high


@kernel
def configuration_rows(
    configuration: Array,
    period_s: float,
    lower: Array,
    upper: Array,
    bends: NDArray[np.int64],
    max_bending_rad: Array,
) -> tuple[Array, Array, Array]:
    """
    Return rows (r, dof), low (r,), high (r,) of `ConfigurationLimits.velocity_bounds`.

    `configuration`, `lower`, `upper` (dof,); `bends` (k, 2) of int, `max_bending_rad` (k,).
    """
    dof, k = len(lower), len(bends)
    count = k
    for j in range(dof):
        if math.isfinite(lower[j]) or math.isfinite(upper[j]):
            count += 1
    rows = np.zeros((count, dof))
    low, high = np.full(count, -_NONE), np.full(count, _NONE)
    for i in range(k):
        x, y = bends[i, 0], bends[i, 1]
        size = math.hypot(configuration[x], configuration[y])
        if size > _STRAIGHT_RAD:
            rows[i, x], rows[i, y] = configuration[x] / size, configuration[y] / size
        high[i] = max(max_bending_rad[i] - size, 0.0) / period_s
    i = k
    for j in range(dof):
        if math.isfinite(lower[j]) or math.isfinite(upper[j]):
            rows[i, j] = 1.0
            low[i] = max(min((lower[j] - configuration[j]) / period_s, 0.0), -_NONE)
            high[i] = min(max((upper[j] - configuration[j]) / period_s, 0.0), _NONE)
            i += 1
    return rows, low, high


@kernel
def joined_bounds(
    actuators: Array,
    low: Array,
    high: Array,
    rows: Array,
    row_low: Array,
    row_high: Array,
    scale: Array,
    max_speed: Array,
    max_acceleration: Array,
    period_s: float,
) -> tuple[Array, Array, Array]:
    """
    Return rows (m + r, dof), low (m + r,) and high (m + r,) for `VelocityBounds`.

    Parameters
    ----------
    actuators : (m, dof)
        Derivative of the actuation with respect to the configuration.
    low, high, max_speed, max_acceleration : (m,)
        Bounds on the actuator rates, and the actuators' largest speed and acceleration.
    rows, row_low, row_high : (r, dof), (r,), (r,)
        Bounds on the configuration velocity; the actuators must be able to brake before them.
    scale : (dof,)
        Scale of each coordinate of the configuration.
    period_s : float
        Period of the tracker [s].

    """
    m, dof = actuators.shape
    r = len(rows)
    joined = np.empty((m + r, dof))
    below, above = np.empty(m + r), np.empty(m + r)
    for i in range(m):
        # Divide by each actuator's largest speed: m/s and Pa/s become comparable.
        unit = 1.0 / max_speed[i]
        for j in range(dof):
            joined[i, j] = actuators[i, j] * scale[j] * unit
        below[i], above[i] = low[i] * unit, high[i] * unit
    for k in range(r):
        hardest = 1e-12
        for i in range(m):
            along = 0.0
            for j in range(dof):
                along += actuators[i, j] * rows[k, j]
            hardest = max(hardest, abs(along) / max_acceleration[i])
        brake = 1.0 / hardest
        for j in range(dof):
            joined[m + k, j] = rows[k, j] * scale[j]
        up = fastest_towards(row_high[k] * period_s, brake, period_s)
        down = fastest_towards(-row_low[k] * period_s, brake, period_s)
        above[m + k], below[m + k] = min(row_high[k], up), max(row_low[k], -down)
    return joined, below, above


@kernel
def drawn_in(low: Array, high: Array, bend: Array, inward: float) -> tuple[Array, Array]:
    """
    Return bounds (r,) less the motion `bend` (m,) that already uses part of the first m of them.

    Each of these m bounds also moves inward by `inward`, but not past the middle of its interval.
    """
    new_low, new_high = low.copy(), high.copy()
    for i in range(len(bend)):
        by = min(inward, 0.5 * max(high[i] - low[i], 0.0))
        new_low[i] += by - bend[i]
        new_high[i] -= by + bend[i]
    return new_low, new_high


@kernel(allocates=False)
def on_a_bound(x: Array, rows: Array, low: Array, high: Array) -> bool:
    """Return whether a velocity (dof,) lies on one of the bounds (r,) of rows (r, dof)."""
    for k in range(len(rows)):
        rate, size = 0.0, 0.0
        for j in range(len(x)):
            rate += rows[k, j] * x[j]
            size = max(size, abs(rows[k, j]))
        # A row of zeros, such as that of a chamber kept at rest, limits no motion.
        if size == 0.0:
            continue
        if rate >= high[k] - (1e-9 + 1e-6 * abs(high[k])):
            return True
        if rate <= low[k] + (1e-9 + 1e-6 * abs(low[k])):
            return True
    return False


@kernel
def damped_programme(
    jacobian: Array, scale: Array, wanted: Array, rest: Array, damping: float
) -> tuple[Array, Array]:
    """
    Return H (dof, dof) and f (dof,) of |J x - v|^2 + damping |x - w|^2, scaled to a trace of 1.

    Parameters
    ----------
    jacobian : (3, dof)
        Jacobian of the tip with respect to the configuration.
    scale : (dof,)
        Scale of each coordinate; x is in units of it.
    wanted : (3,)
        Wanted tip velocity v [m/s].
    rest : (dof,)
        Velocity w that the damping pulls towards, in the configuration's units per second.
    damping : float
        Weight of the second term [m^2].

    """
    dof = len(scale)
    H, f = np.empty((dof, dof)), np.empty(dof)
    trace = 0.0
    for i in range(dof):
        for j in range(i + 1):
            entry = 0.0
            for k in range(3):
                entry += jacobian[k, i] * jacobian[k, j]
            H[i, j] = H[j, i] = entry * scale[i] * scale[j]
        H[i, i] += damping
        trace += H[i, i]
        along = 0.0
        for k in range(3):
            along += jacobian[k, i] * wanted[k]
        f[i] = -(along * scale[i] + damping * rest[i] / scale[i])
    for i in range(dof):
        f[i] /= trace
        for j in range(dof):
            H[i, j] /= trace
    return H, f


@kernel
def brought_within(
    configuration: Array,
    lower: Array,
    upper: Array,
    bends: NDArray[np.int64],
    max_bending_rad: Array,
) -> Array:
    """Return the configuration (dof,) of `ConfigurationLimits.clipped`."""
    inside = np.minimum(np.maximum(configuration, lower), upper)
    for k in range(len(bends)):
        x, y = bends[k, 0], bends[k, 1]
        size = math.hypot(inside[x], inside[y])
        if size > max_bending_rad[k]:
            inside[x] *= max_bending_rad[k] / size
            inside[y] *= max_bending_rad[k] / size
    return inside


@kernel(allocates=False)
def lies_within(values: Array, low: Array, high: Array, slack: Array) -> bool:
    """Return whether values (k,) lie within [low, high], or at most slack (k,) outside."""
    within = True
    for i in range(len(values)):
        # Written so that NaN counts as outside.
        within = within and low[i] - slack[i] <= values[i] <= high[i] + slack[i]
    return within


@kernel
def of_order_one(velocity: Array, scale: Array, rows: Array, m: int) -> Array:
    """
    Return a velocity (dof,) divided by scale (dof,), at most twice as fast as the actuators allow.

    The first m of rows (r, dof) give the actuators' speeds as shares of their limits.
    """
    dof = len(velocity)
    scaled = velocity / scale
    fastest = 0.0
    for i in range(m):
        speed = 0.0
        for j in range(dof):
            speed += rows[i, j] * scaled[j]
        fastest = max(fastest, abs(speed))
    return scaled / max(0.5 * fastest, 1.0)


@kernel(allocates=False)
def configuration_holds(
    configuration: Array,
    lower: Array,
    upper: Array,
    slack: Array,
    bends: NDArray[np.int64],
    longest_rad: Array,
) -> bool:
    """
    Return whether a configuration (dof,) is finite and within its ranges and largest bendings.

    `lower`, `upper`, `slack` (dof,); `bends` (k, 2) of int, `longest_rad` (k,).
    """
    holds = lies_within(configuration, lower, upper, slack)
    for value in configuration:
        holds = holds and math.isfinite(value)  # a range may be infinite
    for k in range(len(bends)):
        size = math.hypot(configuration[bends[k, 0]], configuration[bends[k, 1]])
        holds = holds and size <= longest_rad[k]
    return holds
