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
_TOLERANCE = 1e-13
_MAX_ITERATIONS = 60
_DIFFERENCE = 1e-6


@kernel
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


@kernel
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


@kernel
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
    turn, arc, rotation = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    for i in range(bends.shape[0]):
        if i == 0:
            mounts[0] = np.eye(4)
        else:
            mounts[i] = tips[i - 1]
        exp_so3_into(tilts[i, 0], tilts[i, 1], 0.0, turn)
        bx, by, length = bends[i, 0], bends[i, 1], bends[i, 2]
        exp_so3_into(-by, bx, 0.0, arc)
        c1, c2, _, _ = stumpff(bx * bx + by * by)
        _product_into(mounts[i], turn, rotation)
        _product_into(rotation, arc, tips[i])
        for k in range(3):
            tips[i, k, 3] = (
                mounts[i, k, 3]
                + length * (rotation[k, 0] * bx * c2 + rotation[k, 1] * by * c2)
                + length * rotation[k, 2] * c1
                + lengths[i] * tips[i, k, 2]
            )
            tips[i, 3, k] = 0.0
        tips[i, 3, 3] = 1.0


@kernel
def _add_moment(x: float, y: float, z: float, origin: Array, force: Array, moment: Array) -> None:
    x -= origin[0]
    y -= origin[1]
    z -= origin[2]
    moment[0] += y * force[2] - z * force[1]
    moment[1] += z * force[0] - x * force[2]
    moment[2] += x * force[1] - y * force[0]


@kernel
def _arc_point_into(mount: Array, turned: Array, bend: Array, s: float, point: Array) -> None:
    """Write the point at share s of an arc; `turned` (3, 3) is the mount after its tilt."""
    bx, by, length = bend[0], bend[1], bend[2]
    c1, c2, _, _ = stumpff(s * s * (bx * bx + by * by))
    px, py, pz = length * s * s * bx * c2, length * s * s * by * c2, length * s * c1
    for k in range(3):
        point[k] = mount[k, 3] + turned[k, 0] * px + turned[k, 1] * py + turned[k, 2] * pz


@kernel
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
) -> None:
    """
    Write the moments at every mount and in the middle of every arc (sections, 3) [N m].

    Moments at mounts are in the base frame, moments of arcs in the frame of the arc's middle. The
    frames are updated. `weights` (sections, 3) [N] are spread evenly along arc and rigid part of
    each section. `tip_weight` (4,) is the weight (3,) [N] of a gripper and its distance [m] beyond
    the tip.
    """
    frames_into(bends, lengths, tilts, mounts, tips)
    turn, turned, half = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    middle, point, origin, moment = np.empty((3, 3)), np.empty(3), np.empty(3), np.empty(3)
    count = bends.shape[0]
    last = tips[count - 1]
    for i in range(count):
        for station in range(2):  # the mount, the middle of the arc
            exp_so3_into(tilts[i, 0], tilts[i, 1], 0.0, turn)
            _product_into(mounts[i], turn, turned)
            _arc_point_into(mounts[i], turned, bends[i], 0.5 * station, origin)
            moment[:] = tip_moment
            _add_moment(last[0, 3], last[1, 3], last[2, 3], origin, tip_force, moment)
            d = tip_weight[3]
            _add_moment(
                last[0, 3] + d * last[0, 2],
                last[1, 3] + d * last[1, 2],
                last[2, 3] + d * last[2, 2],
                origin,
                tip_weight[:3],
                moment,
            )
            for j in range(i, count):
                whole = bends[j, 2] + lengths[j]
                share = bends[j, 2] / whole
                exp_so3_into(tilts[j, 0], tilts[j, 1], 0.0, turn)
                _product_into(mounts[j], turn, turned)
                if j == i and station == 1:  # the outer half of this arc
                    _arc_point_into(mounts[j], turned, bends[j], 0.75, point)
                    force = weights[j] * (0.5 * share)
                    _add_moment(point[0], point[1], point[2], origin, force, moment)
                else:
                    for k in range(3):
                        _arc_point_into(mounts[j], turned, bends[j], _POINTS[k], point)
                        force = weights[j] * (_WEIGHTS[k] * share)
                        _add_moment(point[0], point[1], point[2], origin, force, moment)
                back = 0.5 * lengths[j]
                _add_moment(
                    tips[j, 0, 3] - back * tips[j, 0, 2],
                    tips[j, 1, 3] - back * tips[j, 1, 2],
                    tips[j, 2, 3] - back * tips[j, 2, 2],
                    origin,
                    weights[j] * (1.0 - share),
                    moment,
                )
            if station == 0:
                moments[i] = moment
                continue
            exp_so3_into(tilts[i, 0], tilts[i, 1], 0.0, turn)
            _product_into(mounts[i], turn, turned)
            exp_so3_into(-0.5 * bends[i, 1], 0.5 * bends[i, 0], 0.0, half)
            _product_into(turned, half, middle)
            for k in range(3):
                middles[i, k] = (
                    middle[0, k] * moment[0] + middle[1, k] * moment[1] + middle[2, k] * moment[2]
                )


@kernel
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
    residual: Array,
) -> None:
    """
    Write the give minus the give caused by its moments (4 sections,); twist is not modelled.

    `give` (sections, 4): tilt of the mount about x and y, then the additional bend [rad].
    """
    bent[:, :] = bends
    bent[:, :2] += give[:, 2:]
    moments_into(
        bent, lengths, give[:, :2], weights, tip_weight, tip_force, tip_moment, mounts, tips,
        moments, middles,
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


@kernel
def is_rigid(k: int, materials: Array, compliances: Array) -> bool:
    """Return whether entry k of the give (4 sections,) belongs to a rigid mount or arc."""
    if k % 4 < 2:
        return bool(materials[k // 4, 0] == 0.0)
    return bool(compliances[k // 4] == 0.0)


@kernel
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
    jacobian: Array,
) -> None:
    """Write d residual / d give (4 sections, 4 sections) by central differences."""
    size = 4 * bends.shape[0]
    after, before = np.empty(size), np.empty(size)
    flat = give.reshape(size)
    for k in range(size):
        if is_rigid(k, materials, compliances):  # always zero
            jacobian[:, k] = 0.0
            jacobian[k, k] = 1.0
            continue
        saved = flat[k]
        flat[k] = saved + _DIFFERENCE
        residual_into(
            bends, lengths, give, materials, compliances, weights, tip_weight, tip_force,
            tip_moment, bent, mounts, tips, moments, middles, after,
        )  # fmt: skip
        flat[k] = saved - _DIFFERENCE
        residual_into(
            bends, lengths, give, materials, compliances, weights, tip_weight, tip_force,
            tip_moment, bent, mounts, tips, moments, middles, before,
        )  # fmt: skip
        flat[k] = saved
        jacobian[:, k] = (after - before) / (2.0 * _DIFFERENCE)


@kernel
def solve_give(
    bends: Array,
    lengths: Array,
    materials: Array,
    compliances: Array,
    weights: Array,
    tip_weight: Array,
    tip_force: Array,
    tip_moment: Array,
    give: Array,
    bent: Array,
    mounts: Array,
    tips: Array,
    moments: Array,
    middles: Array,
    jacobian: Array,
) -> tuple[bool, float]:
    """
    Solve for `give` (sections, 4) [rad] in place by Newton; also write frames and moments.

    Return whether it converged and the largest residual [rad]. `jacobian` (4 sections,
    4 sections) is d residual / d give by central differences. It is reused as long as each step
    reduces the residual to a tenth, and it shows whether the equilibrium is stable. It does not
    affect the solution.
    """
    size = 4 * bends.shape[0]
    residual, trial = np.empty(size), np.empty(size)
    flat = give.reshape(size)
    saved = np.empty(size)
    residual_into(
        bends, lengths, give, materials, compliances, weights, tip_weight, tip_force,
        tip_moment, bent, mounts, tips, moments, middles, residual,
    )  # fmt: skip
    worst = np.abs(residual).max()
    here = False  # whether the Jacobian is that of the present give
    stale = True  # whether its steps no longer reduce the residual well
    for _ in range(_MAX_ITERATIONS):
        if stale:
            _jacobian_into(
                bends, lengths, give, materials, compliances, weights, tip_weight, tip_force,
                tip_moment, bent, mounts, tips, moments, middles, jacobian,
            )  # fmt: skip
            here, stale = True, False
        saved[:] = flat
        better = False
        if worst > _TOLERANCE:
            step = np.linalg.solve(jacobian, residual)
            scale = 1.0
            for _ in range(20 if here else 1):
                flat[:] = saved - scale * step
                residual_into(
                    bends, lengths, give, materials, compliances, weights, tip_weight, tip_force,
                    tip_moment, bent, mounts, tips, moments, middles, trial,
                )  # fmt: skip
                if np.abs(trial).max() < worst:
                    better = True
                    break
                scale *= 0.5
        if better:
            residual[:] = trial
            before, worst = worst, np.abs(residual).max()
            here, stale = False, worst > 0.1 * before
            continue
        flat[:] = saved
        if not here:
            stale = True
            continue
        # Converged down to rounding, or stuck.
        residual_into(
            bends, lengths, give, materials, compliances, weights, tip_weight, tip_force,
            tip_moment, bent, mounts, tips, moments, middles, trial,
        )  # fmt: skip
        return worst <= 1e3 * _TOLERANCE, worst
    return False, worst
