"""
An independent formulation of the Cosserat rod in plain scipy, and arms to compare both on.

It uses the distributed cable loads of Rucker & Webster (2011), with all six base reactions as
unknowns, solved by `solve_ivp` and `root`.
"""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import root

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.rotations import hat
from softarm_ros.models.arm_model import ZERO3, Vector3
from softarm_ros.models.cosserat.config import (
    CableRoute,
    CosseratConfig,
    RodCableConfig,
    RodSegmentConfig,
    RoundProfile,
)


def two_segment_arm(
    steps: int = 5, extensible: bool = True, segments: int = 2, cables_each: int = 3
) -> CosseratConfig:
    """
    Return hanging segments of 0.2 m, r 10 mm, E 1 MPa, G = E/3, 1000 kg/m3, with cables.

    Each segment has its own cables at 8 mm from the centre; cables of distal segments also run
    through the proximal segments.
    """
    profile = RoundProfile(
        young_modulus_Pa=1e6, poisson_ratio=0.5, density_kg_m3=1000.0, radius_m=0.01
    )
    names = [f's{k}' for k in range(segments)]
    cables = [
        RodCableConfig(
            name=f'c{k}_{i}',
            routes=tuple(
                CableRoute(
                    segment=name, radius_m=0.008, angle_deg=360.0 * i / cables_each + 60.0 * k
                )
                for name in names[: k + 1]
            ),
        )
        for k in range(segments)
        for i in range(cables_each)
    ]
    return CosseratConfig(
        segments=tuple(RodSegmentConfig(name=n, length_m=0.2, profile=profile) for n in names),
        cables=tuple(cables),
        gravity_m_s2=(0.0, 0.0, 9.81),
        extensible=extensible,
        steps=steps,
    )


def random_cases(count: int, seed: int) -> list[tuple[Array, Array, Array]]:
    """Return tensions up to 5 N (a third slack), tip forces to 0.2 N, moments to 0.01 N m."""
    rng = np.random.default_rng(seed)
    return [
        (
            rng.uniform(0.0, 5.0, 6) * (rng.random(6) > 1.0 / 3.0),
            rng.uniform(-0.2, 0.2, 3),
            rng.uniform(-0.01, 0.01, 3),
        )
        for _ in range(count)
    ]


def reference_tip(
    config: CosseratConfig,
    tensions: Array,
    tip_force: Vector3 = ZERO3,
    tip_moment: Vector3 = ZERO3,
    tolerance: float = 1e-10,
    guess: Array | None = None,
) -> tuple[Array, Array, Array]:
    """
    Return tip position (3,) [m], rotation (3, 3) and base reactions (6,) by plain scipy.

    Connectors must have no length, mass or rotation, because this formulation ignores them.

    Raises
    ------
    RuntimeError
        If the shooting does not converge.

    """
    gravity = np.array(config.gravity_m_s2)
    routes = [{route.segment: route for route in cable.routes} for cable in config.cables]
    wrench = np.concatenate([tip_force, tip_moment])

    def cables_at(k: int, fraction: float) -> tuple[Array, Array, Array]:
        """Return tensions (c,), offsets and slopes (c, 3) of the cables in a segment."""
        segment = config.segments[k]
        present = [i for i, of_segment in enumerate(routes) if segment.name in of_segment]
        paths = [routes[i][segment.name].offset(fraction, segment.length_m) for i in present]
        table = np.reshape(paths, (len(present), 6))
        return tensions[present], table[:, :3], table[:, 3:]

    def slope(s: float, y: Array, k: int) -> Array:
        segment = config.segments[k]
        length = segment.length_m
        fraction = s / length
        rotation, n, m = y[3:12].reshape(3, 3), y[12:15], y[15:18]
        stiffness = segment.profile.stiffness(fraction)
        low, high = max(fraction - 1e-5, 0.0), min(fraction + 1e-5, 1.0)
        d_stiffness = segment.profile.stiffness(high) - segment.profile.stiffness(low)
        d_stiffness /= (high - low) * length
        wrench_local = np.concatenate([rotation.T @ m, rotation.T @ n])
        stretch = np.linalg.solve(stiffness, wrench_local)
        u = stretch[:3] + segment.rest_curvature_1_m
        v = stretch[3:] + np.array([0.0, 0.0, 1.0])
        hat_u, hat_v = hat(u), hat(v)
        # Linear in (u', v'): derivative of the material law, then balance with the cable loads.
        weight = rotation.T @ gravity * segment.profile.mass_per_length(fraction)
        turned = np.concatenate(
            [hat_u @ wrench_local[:3] + hat_v @ wrench_local[3:], hat_u @ wrench_local[3:]]
        )
        change = d_stiffness @ stretch
        right = -change - turned
        right[3:] -= weight
        matrix = stiffness.copy()
        pull, r, dr = cables_at(k, fraction)
        ddr = (cables_at(k, high)[2] - cables_at(k, low)[2]) / ((high - low) * length)
        first = v + r @ hat_u.T + dr
        for t, offset, p, known in zip(pull, r, first, (first + dr) @ hat_u.T + ddr):
            lever, across = hat(offset), hat(p)
            project = -t * across @ across / (p @ p) ** 1.5
            matrix[3:, :3] -= project @ lever
            matrix[3:, 3:] += project
            matrix[:3, :3] -= lever @ project @ lever
            matrix[:3, 3:] += lever @ project
            force = project @ known
            right[3:] -= force
            right[:3] -= lever @ force
        local = stiffness @ np.linalg.solve(matrix, right) + change + turned
        out = np.empty(18)
        out[:3] = rotation @ v
        out[3:12] = (rotation @ hat_u).ravel()
        out[12:15] = rotation @ local[3:]
        out[15:] = rotation @ (local[:3] - hat_v @ wrench_local[3:])
        return out

    def pulls(k: int, fraction: float, rotation: Array, n: Array, m: Array) -> Array:
        """Return force and moment (6,) of the cables across a cut, in the base frame."""
        segment = config.segments[k]
        stretch = np.linalg.solve(
            segment.profile.stiffness(fraction), np.concatenate([rotation.T @ m, rotation.T @ n])
        )
        u = stretch[:3] + segment.rest_curvature_1_m
        pull, r, dr = cables_at(k, fraction)
        along = stretch[3:] + (0.0, 0.0, 1.0) + r @ hat(u).T + dr
        force = pull[:, None] * along / np.linalg.norm(along, axis=1)[:, None]
        total = np.concatenate([force.sum(0), np.cross(r, force).sum(0)])
        return np.concatenate([rotation @ total[:3], rotation @ total[3:]])

    def integrate(reaction: Array) -> tuple[Array, Array]:
        y = np.concatenate([np.zeros(3), np.eye(3).ravel(), reaction])
        last = len(config.segments) - 1
        for k, segment in enumerate(config.segments):
            y = solve_ivp(
                slope,
                (0.0, segment.length_m),
                y,
                args=(k,),
                rtol=tolerance,
                atol=tolerance * 1e-2,
                method='DOP853',
            ).y[:, -1]
            rotation = y[3:12].reshape(3, 3)
            # Across a joint the total load of rod and cables is continuous; the strain of the rod
            # jumps, and with it the direction of the continuing cables.
            total = y[12:] + pulls(k, 1.0, rotation, y[12:15], y[15:])
            carried = total.copy()
            for _ in range(60 if k < last else 0):
                carried = total - pulls(k + 1, 0.0, rotation, carried[:3], carried[3:])
            y = np.concatenate([y[:12], carried])
        return y, y[12:] - wrench

    if guess is None:
        guess = np.concatenate([wrench[:3], wrench[3:]])
    scale = np.array([1.0, 1.0, 1.0, 0.1, 0.1, 0.1])
    found = root(
        lambda x: integrate(x * scale)[1] / scale,
        guess / scale,
        tol=1e-12,
        # Finite-difference step: the integration is not more accurate than `tolerance`.
        options={'eps': tolerance},
    )
    y, miss = integrate(found.x * scale)
    if np.abs(miss / scale).max() > 1e-7:
        raise RuntimeError(f'reference: no convergence, misses by {np.abs(miss / scale).max()}')
    return y[:3], y[3:12].reshape(3, 3), found.x * scale
