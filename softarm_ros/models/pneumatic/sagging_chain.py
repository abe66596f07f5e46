"""Pose of arcs in series on sagging mounts, in equilibrium with weight and tip load."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.pneumatic.angle_correction_kernels import frames_into, solve_give
from softarm_ros.models.pneumatic.config import ChamberSectionConfig, MountConfig
from softarm_ros.models.pneumatic.sag_sensitivity_kernels import tip_twists

# If the first try fails, the load grows in steps from no load, which decides the branch.
_LOAD_SHARES = ((1.0,), tuple(np.linspace(0.0, 1.0, 21)[1:].tolist()))
_MAX_GIVE_RAD = math.radians(60.0)
_NONE = np.zeros(3)  # no load at the tip


@dataclass(frozen=True)
class SaggedPose:
    """
    Pose of an arm with its mounts in equilibrium.

    Attributes
    ----------
    section_tips, mounts : (sections, 4, 4)
        Ends of the sections, and mount frames before their tilt, both in the base frame.
    unloaded, bends : (sections, 3)
        Bending vectors [rad] and lengths [m] of the arcs, without load and under load.
    tilts : (sections, 2)
        Rotation of each mount about its x and y axes [rad].
    moments : (sections, 3)
        Moment on each mount [N m], base frame.
    residual : float
        Largest difference [rad] between a give and the give caused by its moments.

    """

    section_tips: Array
    mounts: Array
    unloaded: Array
    bends: Array
    tilts: Array
    moments: Array
    residual: float


@dataclass(frozen=True)
class _Found:
    """Arrays into which the kernels write an equilibrium; the Jacobian of its residual."""

    give: Array
    bends: Array
    mounts: Array
    section_tips: Array
    moments: Array
    jacobian: Array

    def pose(self, unloaded: Array, tilts: Array, residual: float) -> SaggedPose:
        return SaggedPose(
            self.section_tips, self.mounts, unloaded, self.bends, tilts, self.moments, residual
        )


class SaggingChain:
    """
    Sections of given bends and lengths, with mounts that tilt and compliant arcs.

    Parameters
    ----------
    sections, mount, fluid_density_kg_m3, tip_mass_kg, tip_offset_m
        As in `PneumaticArm`.
    gravity
        (3,) [m/s^2], base frame.

    """

    def __init__(
        self,
        sections: Sequence[ChamberSectionConfig],
        mount: MountConfig | None,
        gravity: Array,
        fluid_density_kg_m3: float,
        tip_mass_kg: float,
        tip_offset_m: float,
    ) -> None:
        soft = any(s.bend_per_moment_rad_N_m > 0.0 for s in sections)
        self.gives = mount is not None or soft
        self._rigid = np.array([s.rigid_length_m for s in sections])
        self._weights = np.array(
            [(s.mass_kg - fluid_density_kg_m3 * _volume_m3(s)) * gravity for s in sections]
        )
        self._tip_weight = np.append(tip_mass_kg * gravity, tip_offset_m)
        self._materials = np.array([_material(mount) for _ in sections])
        # Rows of `compliances_into`: compliances of unstretched arcs, their growth, rest lengths.
        self._softness = np.array(
            [
                [s.bend_per_moment_rad_N_m for s in sections],
                [s.give_growth for s in sections],
                [s.bending_length_m for s in sections],
            ]
        )

    def pose(
        self, configuration: Array, force: Array | None = None, moment: Array | None = None
    ) -> SaggedPose:
        """
        Return the pose for bends and lengths (3 sections,) under a tip force and moment (3,).

        Raises
        ------
        ModelError
            If the arm tips over before it carries its full weight and load, or its mounts tilt
            beyond the validity of the model.

        """
        bends = configuration.reshape(-1, 3)
        count = len(bends)
        force, moment = _NONE if force is None else force, _NONE if moment is None else moment
        found = _Found(
            give=np.zeros((count, 4)),
            bends=bends.copy(),
            mounts=np.empty((count, 4, 4)),
            section_tips=np.empty((count, 4, 4)),
            moments=np.zeros((count, 3)),
            jacobian=np.empty((4 * count, 4 * count)),
        )
        if not self.gives:
            tilts = np.zeros((count, 2))
            frames_into(bends, self._rigid, tilts, found.mounts, found.section_tips)
            return found.pose(bends, tilts, 0.0)
        for shares in _LOAD_SHARES:
            found.give[:] = 0.0
            for share in shares:
                stable, residual = self._solve(bends, share, force, moment, found)
                if not stable:
                    break
            else:
                return found.pose(bends, found.give[:, :2].copy(), residual)
        raise ModelError(
            f'no stable equilibrium under tip_force = {force.tolist()} N and tip_moment = '
            f'{moment.tolist()} N m: at {100 * share:.0f} % of weight and load the arm tips over, '
            f'or a mount or section yields by more than {math.degrees(_MAX_GIVE_RAD):.0f} deg'
        )

    def _solve(
        self, bends: Array, share: float, force: Array, moment: Array, found: _Found
    ) -> tuple[bool, float]:
        """Solve for the give (sections, 4) under a share of the load; return stable, residual."""
        weights, tip_weight = self._weights, self._tip_weight
        if share != 1.0:
            weights, force, moment = share * weights, share * force, share * moment
            tip_weight = tip_weight * np.array([share, share, share, 1.0])
        try:
            converged, residual, stable = solve_give(
                bends, self._rigid, self._materials, self._softness, weights, tip_weight, force,
                moment, found.give, found.bends, found.mounts, found.section_tips, found.moments,
                found.jacobian,
            )  # fmt: skip
        except np.linalg.LinAlgError:
            return False, math.inf
        # Stable: with positive eigenvalues, more give needs more moment than it causes.
        if converged and not stable:
            stable = bool(np.all(np.linalg.eigvals(found.jacobian).real > 0.0))
        most = max(map(abs, found.give.ravel().tolist()))
        return converged and stable and most <= _MAX_GIVE_RAD, residual

    def tip_twists(
        self, pose: SaggedPose, force: Array | None = None, moment: Array | None = None
    ) -> Array:
        """Return the tip twist per configuration (6, 3 sections) at a pose under these loads."""
        force, moment = _NONE if force is None else force, _NONE if moment is None else moment
        twists: Array = tip_twists(
            pose.unloaded, self._rigid, self._materials, self._softness, self._weights,
            self._tip_weight, force, moment, pose.tilts, pose.bends,
        )  # fmt: skip
        return twists

    def centerline(self, state: SaggedPose, n: int) -> Array:
        """Return (n, 3) points [m] evenly spaced along arcs and rigid parts of a pose."""
        bends, rigid = state.bends, self._rigid
        ends = np.cumsum(bends[:, 2] + rigid)
        points = np.empty((n, 3))
        for row, s in enumerate(np.linspace(0.0, ends[-1], n)):
            k = min(int(np.searchsorted(ends, s)), len(ends) - 1)
            length = bends[k, 2]
            along = s - (ends[k] - length - rigid[k])
            if along > length:
                tip = state.section_tips[k]
                points[row] = tip[:3, 3] - (length + rigid[k] - along) * tip[:3, 2]
                continue
            part = np.array([[bends[k, 0] * along / length, bends[k, 1] * along / length, along]])
            mounts, tips = np.zeros((1, 4, 4)), np.zeros((1, 4, 4))
            frames_into(part, np.zeros(1), state.tilts[k : k + 1], mounts, tips)
            points[row] = (state.mounts[k] @ tips[0])[:3, 3]
        return points


def _volume_m3(section: ChamberSectionConfig) -> float:
    length = section.bending_length_m + section.rigid_length_m
    return math.pi * section.chamber_radius_m**2 * length


def _material(mount: MountConfig | None) -> tuple[float, float, float, float]:
    if mount is None:
        return 0.0, 0.0, 0.0, 0.0  # rigid
    return mount.diameter_m, mount.deforming_length_m, mount.c10_Pa, mount.c20_Pa
