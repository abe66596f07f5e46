"""
Compiled sag of soft mounts under weight and load, solved together with the pose.

Section i is a mount that tilts by v_i (about an axis across the arm), then a circular arc of
bending vector b_i and length L_i, then a rigid part. The moment at each mount follows from the
pose (Gong et al. 2018, eq. 14 as vectors), and the tilt from the moment by Yeoh's law (eq. 15-22
corrected: lambda_1 = 1 / lambda_3, the factor 4 of C20, no square in eq. 22). Beyond the paper an
arc may also be compliant: its bend grows by a compliance times the moment in its middle. The tilts
and these additional bends are called the give.
"""

from __future__ import annotations

import math

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.kernels import kernel
from softarm_ros.geometry.rotation_kernels import exp_so3_into, stumpff

# Gauss-Legendre points and weights on 0..1, for the weight along an arc.
_POINTS = (0.5 - math.sqrt(0.15), 0.5, 0.5 + math.sqrt(0.15))
_WEIGHTS = (5.0 / 18.0, 8.0 / 18.0, 5.0 / 18.0)
# Rows of the working space of a section: its mount's rotation after the tilt (3), another rotation
# (3), points along its arc (3), the middle of the arc, that of its outer half, and a moment.
_TURNED, _HALF, _ALONG, _MIDDLE, _OUTER, _MOMENT = 0, 3, 6, 9, 10, 11
STATIONS = 12
_TOLERANCE = 1e-13
_MAX_ITERATIONS = 60
_DIFFERENCE = 1e-6
_SURE = 1e-6  # of a squared pivot, far above rounding: the entries are of order 1


@kernel(allocates=False)
def yeoh_stress(stretch: float, c10: float, c20: float) -> tuple[float, float]:
    """Return the plane-strain stress [Pa] at a stretch, and its derivative: eq. 18 corrected."""
    a, b = 2.0 * c10, 4.0 * c20
    inverse = 1.0 / stretch
    shear = stretch - inverse
    first = stretch - inverse**3
    modulus = a + b * shear * shear
    slope = (1.0 + 3.0 * inverse**4) * modulus
    slope += first * 2.0 * b * shear * (1.0 + inverse * inverse)
    return first * modulus, slope


@kernel(allocates=False)
def tilt_per_moment(moment: float, mount: Array) -> float:
    """
    Return alpha / M [rad/(N m)] of a mount at a moment M >= 0, finite at zero.

    `mount` is diameter [m], deforming length [m], C10 and C20 [Pa].
    """
    diameter, length, c10, c20 = mount[0], mount[1], mount[2], mount[3]
    stress = 12.0 * moment / diameter**3
    strain = stress / (8.0 * c10)
    if strain < 1e-9:
        return 2.0 * length / diameter * 12.0 / diameter**3 / (8.0 * c10)
    # The stress exceeds 2 C10 times the strain, which bounds the strain from above.
    low, high = 0.0, stress / (2.0 * c10)
    strain = min(strain, high)
    for _ in range(80):
        value, slope = yeoh_stress(1.0 + strain, c10, c20)
        error = value - stress
        if error > 0.0:
            high = strain
        else:
            low = strain
        following = strain - error / slope
        if not (low <= following <= high):
            following = 0.5 * (low + high)
        if abs(following - strain) <= 1e-15 * (1.0 + strain):
            strain = following
            break
        strain = following
    return math.atan(2.0 * length * strain / diameter) / moment


@kernel(allocates=False)
def _product_into(a: Array, b: Array, out: Array) -> None:
    """Write the product of the upper left (3, 3) blocks of a and b into that block of `out`."""
    for i in range(3):
        for j in range(3):
            out[i, j] = a[i, 0] * b[0, j] + a[i, 1] * b[1, j] + a[i, 2] * b[2, j]


@kernel
def frames_into(bends: Array, lengths: Array, tilts: Array, mounts: Array, tips: Array) -> None:
    """
    Write mount frames before their tilt and section tips, both (sections, 4, 4).

    `bends` (sections, 3): b_x, b_y [rad] and centre length [m]; `lengths` (sections,): rigid
    parts [m]; `tilts` (sections, 2): rotation of the mount about its x and y axes [rad].
    """
    _frames_into(bends, lengths, tilts, mounts, tips, np.empty((len(bends), STATIONS, 3)))


@kernel(allocates=False)
def _frames_into(
    bends: Array, lengths: Array, tilts: Array, mounts: Array, tips: Array, stations: Array
) -> None:
    """Write as `frames_into`, and each mount's rotation after its tilt into `stations`."""
    for i in range(bends.shape[0]):
        for k in range(4):
            for j in range(4):
                if i == 0:
                    mounts[0, k, j] = 1.0 if j == k else 0.0
                else:
                    mounts[i, k, j] = tips[i - 1, k, j]
        rotation, turn = stations[i, _TURNED : _TURNED + 3], stations[i, _HALF : _HALF + 3]
        exp_so3_into(tilts[i, 0], tilts[i, 1], 0.0, turn)
        _product_into(mounts[i], turn, rotation)
        bx, by, length = bends[i, 0], bends[i, 1], bends[i, 2]
        c1, c2, _, _ = stumpff(bx * bx + by * by)
        _arc_turn_into(bx, by, c1, c2, turn)
        _product_into(rotation, turn, tips[i])
        for k in range(3):
            tips[i, k, 3] = (
                mounts[i, k, 3]
                + length * (rotation[k, 0] * bx * c2 + rotation[k, 1] * by * c2)
                + length * rotation[k, 2] * c1
                + lengths[i] * tips[i, k, 2]
            )
            tips[i, 3, k] = 0.0
        tips[i, 3, 3] = 1.0


@kernel(allocates=False)
def _add_moment(
    x: float, y: float, z: float, origin: Array, fx: float, fy: float, fz: float, moment: Array
) -> None:
    x -= origin[0]
    y -= origin[1]
    z -= origin[2]
    moment[0] += y * fz - z * fy
    moment[1] += z * fx - x * fz
    moment[2] += x * fy - y * fx


@kernel(allocates=False)
def _arc_turn_into(bx: float, by: float, c1: float, c2: float, turn: Array) -> None:
    """Write the rotation (3, 3) along an arc, from the `stumpff` functions of bx^2 + by^2."""
    turn[0, 0] = 1.0 - c2 * (bx * bx)
    turn[1, 1] = 1.0 - c2 * (by * by)
    turn[2, 2] = 1.0 - c2 * (by * by + bx * bx)
    turn[0, 1] = turn[1, 0] = -(c2 * by * bx)
    turn[0, 2], turn[2, 0] = c1 * bx, -c1 * bx
    turn[1, 2], turn[2, 1] = c1 * by, -c1 * by


@kernel(allocates=False)
def _arc_point_into(
    mount: Array, turned: Array, bend: Array, s: float, point: Array
) -> tuple[float, float]:
    """
    Write the point at share s of an arc; `turned` (3, 3) is the mount after its tilt.

    Return the first two `stumpff` functions there.
    """
    bx, by, length = bend[0], bend[1], bend[2]
    c1, c2, _, _ = stumpff(s * s * (bx * bx + by * by))
    px, py, pz = length * s * s * bx * c2, length * s * s * by * c2, length * s * c1
    for k in range(3):
        point[k] = mount[k, 3] + turned[k, 0] * px + turned[k, 1] * py + turned[k, 2] * pz
    return c1, c2


@kernel(allocates=False)
def moments_into(
    bends: Array,
    lengths: Array,
    tilts: Array,
    weights: Array,
    tip_weight: Array,
    tip_force: Array,
    tip_moment: Array,
    mounts: Array,
    tips: Array,
    moments: Array,
    middles: Array,
    stations: Array,
) -> None:
    """
    Write the moments at every mount and in the middle of every arc (sections, 3) [N m].

    Moments at mounts are in the base frame, moments of arcs in the frame of the arc's middle. The
    frames are updated. `weights` (sections, 3) [N] are spread evenly along arc and rigid part of
    each section. `tip_weight` (4,) is the weight (3,) [N] of a gripper and its distance [m] beyond
    the tip. `stations` (sections, STATIONS, 3) is working space.
    """
    _frames_into(bends, lengths, tilts, mounts, tips, stations)
    count = bends.shape[0]
    for i in range(count):
        turned, half = stations[i, _TURNED : _TURNED + 3], stations[i, _HALF : _HALF + 3]
        for k in range(3):
            _arc_point_into(mounts[i], turned, bends[i], _POINTS[k], stations[i, _ALONG + k])
        c1, c2 = _arc_point_into(mounts[i], turned, bends[i], 0.5, stations[i, _MIDDLE])
        _arc_turn_into(0.5 * bends[i, 0], 0.5 * bends[i, 1], c1, c2, half)
        _arc_point_into(mounts[i], turned, bends[i], 0.75, stations[i, _OUTER])
    for i in range(count):
        moment = stations[i, _MOMENT]
        for k in range(3):
            moment[k] = mounts[i, k, 3]
        _moment_at(
            moment, i, False, bends, lengths, weights, tip_weight, tip_force, tip_moment, tips,
            stations, moments[i],
        )  # fmt: skip
        _moment_at(
            stations[i, _MIDDLE], i, True, bends, lengths, weights, tip_weight, tip_force,
            tip_moment, tips, stations, moment,
        )  # fmt: skip
        turned, half = stations[i, _TURNED : _TURNED + 3], stations[i, _HALF : _HALF + 3]
        middle = stations[i, _ALONG : _ALONG + 3]  # the points of this arc are no longer needed
        _product_into(turned, half, middle)
        for k in range(3):
            middles[i, k] = (
                middle[0, k] * moment[0] + middle[1, k] * moment[1] + middle[2, k] * moment[2]
            )


@kernel(allocates=False)
def _moment_at(
    origin: Array,
    first: int,
    halfway: bool,
    bends: Array,
    lengths: Array,
    weights: Array,
    tip_weight: Array,
    tip_force: Array,
    tip_moment: Array,
    tips: Array,
    stations: Array,
    moment: Array,
) -> None:
    """Write the moment (3,) about an origin (3,) at the mount or, if `halfway`, in the middle."""
    count = bends.shape[0]
    last = tips[count - 1]
    for k in range(3):
        moment[k] = tip_moment[k]
    _add_moment(
        last[0, 3], last[1, 3], last[2, 3], origin, tip_force[0], tip_force[1], tip_force[2],
        moment,
    )  # fmt: skip
    d = tip_weight[3]
    _add_moment(
        last[0, 3] + d * last[0, 2],
        last[1, 3] + d * last[1, 2],
        last[2, 3] + d * last[2, 2],
        origin,
        tip_weight[0],
        tip_weight[1],
        tip_weight[2],
        moment,
    )
    for j in range(first, count):
        x, y, z = weights[j, 0], weights[j, 1], weights[j, 2]
        share = bends[j, 2] / (bends[j, 2] + lengths[j])
        if halfway and j == first:  # the outer half of this arc
            point, part = stations[j, _OUTER], 0.5 * share
            _add_moment(point[0], point[1], point[2], origin, x * part, y * part, z * part, moment)
        else:
            for k in range(3):
                point, part = stations[j, _ALONG + k], _WEIGHTS[k] * share
                _add_moment(
                    point[0], point[1], point[2], origin, x * part, y * part, z * part, moment
                )
        back, part = 0.5 * lengths[j], 1.0 - share
        _add_moment(
            tips[j, 0, 3] - back * tips[j, 0, 2],
            tips[j, 1, 3] - back * tips[j, 1, 2],
            tips[j, 2, 3] - back * tips[j, 2, 2],
            origin,
            x * part,
            y * part,
            z * part,
            moment,
        )


@kernel(allocates=False)
def residual_into(
    bends: Array,
    lengths: Array,
    give: Array,
    materials: Array,
    compliances: Array,
    weights: Array,
    tip_weight: Array,
    tip_force: Array,
    tip_moment: Array,
    bent: Array,
    mounts: Array,
    tips: Array,
    moments: Array,
    middles: Array,
    stations: Array,
    residual: Array,
) -> None:
    """
    Write the give minus the give caused by its moments (4 sections,); twist is not modelled.

    `give` (sections, 4): tilt of the mount about x and y, then the additional bend [rad].
    """
    for i in range(bends.shape[0]):
        bent[i, 0] = bends[i, 0] + give[i, 2]
        bent[i, 1] = bends[i, 1] + give[i, 3]
        bent[i, 2] = bends[i, 2]
    moments_into(
        bent, lengths, give[:, :2], weights, tip_weight, tip_force, tip_moment, mounts, tips,
        moments, middles, stations,
    )  # fmt: skip
    for i in range(bends.shape[0]):
        x = y = ratio = 0.0
        for k in range(3):
            x += mounts[i, k, 0] * moments[i, k]
            y += mounts[i, k, 1] * moments[i, k]
        if materials[i, 0] > 0.0:
            ratio = tilt_per_moment(math.hypot(x, y), materials[i])
        residual[4 * i] = give[i, 0] - ratio * x
        residual[4 * i + 1] = give[i, 1] - ratio * y
        # The arc rotates about (-b_y, b_x, 0).
        residual[4 * i + 2] = give[i, 2] - compliances[i] * middles[i, 1]
        residual[4 * i + 3] = give[i, 3] + compliances[i] * middles[i, 0]


@kernel(allocates=False)
def is_rigid(k: int, materials: Array, compliances: Array) -> bool:
    """Return whether entry k of the give (4 sections,) belongs to a rigid mount or arc."""
    if k % 4 < 2:
        return bool(materials[k // 4, 0] == 0.0)
    return bool(compliances[k // 4] == 0.0)


@kernel(allocates=False)
def _jacobian_into(
    bends: Array,
    lengths: Array,
    give: Array,
    materials: Array,
    compliances: Array,
    weights: Array,
    tip_weight: Array,
    tip_force: Array,
    tip_moment: Array,
    bent: Array,
    mounts: Array,
    tips: Array,
    moments: Array,
    middles: Array,
    stations: Array,
    after: Array,
    before: Array,
    jacobian: Array,
) -> None:
    """Write d residual / d give (4 sections, 4 sections) by central differences."""
    size = 4 * bends.shape[0]
    for k in range(size):
        if is_rigid(k, materials, compliances):  # always zero
            for i in range(size):
                jacobian[i, k] = 1.0 if i == k else 0.0
            continue
        saved = give[k // 4, k % 4]
        give[k // 4, k % 4] = saved + _DIFFERENCE
        residual_into(
            bends, lengths, give, materials, compliances, weights, tip_weight, tip_force,
            tip_moment, bent, mounts, tips, moments, middles, stations, after,
        )  # fmt: skip
        give[k // 4, k % 4] = saved - _DIFFERENCE
        residual_into(
            bends, lengths, give, materials, compliances, weights, tip_weight, tip_force,
            tip_moment, bent, mounts, tips, moments, middles, stations, before,
        )  # fmt: skip
        give[k // 4, k % 4] = saved
        for i in range(size):
            jacobian[i, k] = (after[i] - before[i]) / (2.0 * _DIFFERENCE)


@kernel(allocates=False)
def _largest(values: Array) -> float:
    """Return the largest magnitude; NaN if a value is NaN."""
    largest = 0.0
    for value in values:
        if math.isnan(value):
            return math.nan
        largest = max(largest, abs(value))
    return largest


@kernel(allocates=False)
def is_surely_stable(jacobian: Array, factor: Array) -> bool:
    """
    Return whether the symmetric part of a matrix (n, n) is positive definite beyond rounding.

    Then the real parts of all its eigenvalues are positive: they are at least the least eigenvalue
    of the symmetric part. The converse does not hold. `factor` (n, n) is working space.
    """
    for i in range(len(jacobian)):
        for j in range(i + 1):
            value = 0.5 * (jacobian[i, j] + jacobian[j, i])
            for k in range(j):
                value -= factor[i, k] * factor[j, k]
            if j < i:
                factor[i, j] = value / factor[j, j]
            elif value > _SURE:  # False for NaN
                factor[i, i] = math.sqrt(value)
            else:
                return False
    return True


@kernel(allocates=False)
def compliances_into(bends: Array, softness: Array, compliances: Array) -> None:
    """
    Write the compliances L / (E I) (sections,) of arcs (sections, 3); stretch thins their walls.

    The rows of `softness` (3, sections) are the compliance of an unstretched arc [rad/(N m)], its
    growth per strain, and the rest length [m].
    """
    for i in range(bends.shape[0]):
        strain = bends[i, 2] / softness[2, i] - 1.0
        compliances[i] = softness[0, i] * (1.0 + softness[1, i] * max(strain, 0.0))


@kernel
def solve_give(
    bends: Array,
    lengths: Array,
    materials: Array,
    softness: Array,
    weights: Array,
    tip_weight: Array,
    tip_force: Array,
    tip_moment: Array,
    give: Array,
    bent: Array,
    mounts: Array,
    tips: Array,
    moments: Array,
    jacobian: Array,
) -> tuple[bool, float, bool]:
    """
    Solve for `give` (sections, 4) [rad] in place by Newton; also write frames and moments.

    Return whether it converged, the largest residual [rad], and whether the equilibrium is stable
    beyond doubt; if not, the eigenvalues of `jacobian` tell. `jacobian` (4 sections, 4 sections)
    is d residual / d give by central differences. It is reused as long as each step reduces the
    residual to a tenth, and it shows whether the equilibrium is stable. It does not affect the
    solution. `softness` (3, sections) is that of `compliances_into`.
    """
    count = bends.shape[0]
    size = 4 * count
    compliances, middles = np.empty(count), np.empty((count, 3))
    compliances_into(bends, softness, compliances)
    residual, trial, other = np.empty(size), np.empty(size), np.empty(size)
    stations, factor = np.empty((count, STATIONS, 3)), np.empty((size, size))
    flat = give.reshape(size)
    saved = np.empty(size)
    residual_into(
        bends, lengths, give, materials, compliances, weights, tip_weight, tip_force,
        tip_moment, bent, mounts, tips, moments, middles, stations, residual,
    )  # fmt: skip
    worst = _largest(residual)
    here = False  # whether the Jacobian is that of the present give
    stale = True  # whether its steps no longer reduce the residual well
    for _ in range(_MAX_ITERATIONS):
        if stale:
            _jacobian_into(
                bends, lengths, give, materials, compliances, weights, tip_weight, tip_force,
                tip_moment, bent, mounts, tips, moments, middles, stations, trial, other, jacobian,
            )  # fmt: skip
            here, stale = True, False
        saved[:] = flat
        better = False
        if worst > _TOLERANCE:
            step = np.linalg.solve(jacobian, residual)
            scale = 1.0
            for _ in range(20 if here else 1):
                for k in range(size):
                    flat[k] = saved[k] - scale * step[k]
                residual_into(
                    bends, lengths, give, materials, compliances, weights, tip_weight, tip_force,
                    tip_moment, bent, mounts, tips, moments, middles, stations, trial,
                )  # fmt: skip
                if _largest(trial) < worst:
                    better = True
                    break
                scale *= 0.5
        if better:
            residual[:] = trial
            before, worst = worst, _largest(residual)
            here, stale = False, worst > 0.1 * before
            continue
        flat[:] = saved
        if not here:
            stale = True
            continue
        # Converged down to rounding, or stuck.
        residual_into(
            bends, lengths, give, materials, compliances, weights, tip_weight, tip_force,
            tip_moment, bent, mounts, tips, moments, middles, stations, trial,
        )  # fmt: skip
        return worst <= 1e3 * _TOLERANCE, worst, is_surely_stable(jacobian, factor)
    return False, worst, False
