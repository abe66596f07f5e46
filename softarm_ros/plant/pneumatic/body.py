"""The simulated body: sagging end parts, arcs with chambers, gripper; in air or water."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from softarm_ros.models.dynamics.arm import ArmDynamics
from softarm_ros.models.dynamics.config import (
    ConnectorConfig,
    DynamicSectionConfig,
    RigidBodyConfig,
    diagonal4,
    round_section,
)
from softarm_ros.models.dynamics.layout import Loads
from softarm_ros.models.dynamics.simulation import ArmIntegrator
from softarm_ros.models.dynamics.tangents import equilibrium
from softarm_ros.models.hydrodynamics.arm_in_water import ArmInWater
from softarm_ros.plant.errors import PlantError
from softarm_ros.plant.pneumatic.base_load import load_on_base
from softarm_ros.plant.pneumatic.config import PneumaticPlantConfig

Array = NDArray[np.float64]

_END_PART_SEGMENTS = 2
_GRIPPER_SEGMENTS = 2
_GRIPPER_MODULUS_PA = 2e7  # stiff beside the arm: its own bending is nothing
_POINTS = 146


class PneumaticBody:
    """
    The body as a chain of constant-strain segments, without regulators and sensors.

    From the frame down: for each section a soft end part, then the part with chambers; a rigid
    part to the tip; the gripper. The end part of the first section lies behind the base's origin.

    Parameters
    ----------
    config
        Everything about it.
    gravity_m_s2 : (3,)
        Base frame.
    in_water
        Whether it is immersed: buoyancy, drag, added mass.
    tip_load_kg
        Carried in the middle of the gripper for good.

    """

    def __init__(
        self,
        config: PneumaticPlantConfig,
        gravity_m_s2: Sequence[float],
        in_water: bool,
        tip_load_kg: float,
    ) -> None:
        self.config = config
        self.gravity = np.array(gravity_m_s2, dtype=float)
        self.density = config.water.density_kg_m3 if in_water else 0.0
        self._tip_load_kg = tip_load_kg
        self._base = np.array([0.0, 0.0, -config.sections[0].deforming_length_m])
        n, m = config.segments_per_section, _END_PART_SEGMENTS
        count = len(config.sections)
        self._arc_segments = [slice((n + m) * k + m, (n + m) * (k + 1)) for k in range(count)]
        # A section ends where the chambers of the next one begin, the last one at the tip.
        self._section_nodes = [(n + m) * (k + 1) + m for k in range(count - 1)] + [(n + m) * count]
        self._middle_node = (n + m) * count + _GRIPPER_SEGMENTS // 2
        self._build(0.0, 0.0, np.zeros(3))
        self._state = self._integrator.start(self._loads)
        self._acceleration = np.zeros_like(self._state.rates)
        self.free = np.zeros((count, 4))

    # What it carries.

    def carry(self, mass_kg: float, volume_m3: float, offset: Array) -> None:
        """Hold an object at an offset (3,) [m] from the middle of the fingers, tip axes."""
        self._build(mass_kg, volume_m3, offset)

    def _build(self, mass_kg: float, volume_m3: float, offset: Array) -> None:
        c = self.config
        parts = []
        for k in range(len(c.sections)):
            parts += [self._end_part(k), self._arc(k, last=k == len(c.sections) - 1)]
        parts.append(self._gripper())
        half = np.array([0.0, 0.0, -0.5 * c.gripper.length_m])
        load, total = self._tip_load_kg, self._tip_load_kg + mass_kg
        centre = half + (mass_kg / total * offset if total > 0.0 else 0.0)
        x, y, z = (float(value) for value in centre)
        # The two as points: what they add about their common centre.
        moment = load * mass_kg / total * offset**2 if total > 0.0 else np.zeros(3)
        inertia = moment.sum() - moment
        payload = RigidBodyConfig(
            mass_kg=total,
            displaced_fluid_kg=self.density * volume_m3,
            centre_m=(x, y, z),
            inertia_kg_m2=(float(inertia[0]), float(inertia[1]), float(inertia[2])),
        )
        self.arm = ArmDynamics(parts, payload)
        self._integrator = ArmIntegrator(self.arm, tolerance_m=c.tolerance_m)
        self._loads: Loads = self.arm.loads(self.gravity)
        self._drive = np.zeros((self.arm.segments, 4))
        self._water = None
        if self.density > 0.0:
            self._water = ArmInWater(self.arm, c.water, self._diameters())

    def _area(self, radius_m: float) -> float:
        return math.pi * radius_m**2

    def _end_part(self, k: int) -> DynamicSectionConfig:
        s = self.config.sections[k]
        area = self._area(s.outer_radius_m)
        solid = round_section(
            length_m=s.deforming_length_m,
            radius_m=s.outer_radius_m,
            youngs_modulus_Pa=s.youngs_modulus_Pa,
            density_kg_m3=s.mass_per_length_kg_m / area,
            segments=_END_PART_SEGMENTS,
            damping_time_s=s.damping_time_s,
        )
        # The first one sits in the frame, out of the water.
        displaced = self.density * area if k > 0 else 0.0
        return solid.model_copy(update={'displaced_fluid_kg_m': displaced})

    def _arc(self, k: int, last: bool) -> DynamicSectionConfig:
        c, s = self.config, self.config.sections[k]
        area = self._area(s.outer_radius_m)
        stiffness = (
            s.axial_stiffness_N,
            s.bending_stiffness_N_m2,
            s.bending_stiffness_N_m2,
            s.bending_stiffness_N_m2 / 1.5,  # G J of an incompressible round bar
        )
        damping = tuple(s.damping_time_s * value for value in stiffness)
        slice_ = 0.25 * s.mass_per_length_kg_m * s.outer_radius_m**2
        body, connector = RigidBodyConfig(), ConnectorConfig()
        if last:
            connector = ConnectorConfig(length_m=c.tip_length_m)
            across = c.tip_part_mass_kg * c.tip_length_m**2 / 12.0
            body = RigidBodyConfig(
                mass_kg=c.tip_part_mass_kg,
                displaced_fluid_kg=self.density * area * c.tip_length_m,
                centre_m=(0.0, 0.0, 0.5 * c.tip_length_m),
                inertia_kg_m2=(across, across, 0.0),
            )
        return DynamicSectionConfig(
            length_m=s.bending_length_m,
            segments=c.segments_per_section,
            mass_per_length_kg_m=s.mass_per_length_kg_m,
            slice_inertia_kg_m=(slice_, slice_, 2.0 * slice_),
            stiffness=diagonal4(stiffness),
            damping=diagonal4((damping[0], damping[1], damping[2], damping[3])),
            displaced_fluid_kg_m=self.density * area,
            body=body,
            connector=connector,
        )

    def _gripper(self) -> DynamicSectionConfig:
        g = self.config.gripper
        area = self._area(g.outer_radius_m)
        rod = round_section(
            length_m=g.length_m,
            radius_m=g.outer_radius_m,
            youngs_modulus_Pa=_GRIPPER_MODULUS_PA,
            density_kg_m3=max(g.mass_kg, 1e-4) / (area * g.length_m),
            segments=_GRIPPER_SEGMENTS,
            damping_time_s=self.config.sections[-1].damping_time_s,
        )
        return rod.model_copy(update={'displaced_fluid_kg_m': self.density * area})

    def _diameters(self) -> Array:
        c = self.config
        rows = [
            np.full(_END_PART_SEGMENTS + c.segments_per_section, 2.0 * s.outer_radius_m)
            for s in c.sections
        ]
        return np.concatenate([*rows, np.full(_GRIPPER_SEGMENTS, 2.0 * c.gripper.outer_radius_m)])

    # Motion.

    def advance(self, free: Array, duration_s: float) -> None:
        """
        Move on for a time with free strains (sections, 4) of the chambers.

        Raises
        ------
        PlantError
            If the motion cannot be integrated.

        """
        moved = self._integrator.advance(self._state, self._loads_of(free, True), duration_s)
        if not moved.converged:
            raise PlantError(f'motion of the arm cannot be followed: {moved.message}')
        self._acceleration = (moved.state.rates - self._state.rates) / duration_s
        self._state = moved.state
        self.free = free

    def settle(self, free: Array) -> None:
        """Take the state of rest under free strains (sections, 4); raise `PlantError` if none."""
        self._state = self._integrator.start(self._loads_of(free, False), self._rest(free))
        self._acceleration = np.zeros_like(self._state.rates)
        self.free = free

    def section_tips_at_rest(self, free: Array) -> Array:
        """Return the section tips (sections, 4, 4) at rest under free strains; nothing moves."""
        return self._tips(self.arm.node_poses(self._rest(free)))

    def _rest(self, free: Array) -> Array:
        found = equilibrium(self.arm, self._loads_of(free, False), guess=self._guess(free))
        if not (found.converged and found.stable):
            raise PlantError(f'the arm finds no rest: {found.message}')
        return found.strains

    def _guess(self, free: Array) -> Array:
        strains = np.zeros((self.arm.segments, 4))
        for part, strain in zip(self._arc_segments, free):
            strains[part] = strain
        return strains

    def _loads_of(self, free: Array, moving: bool) -> Loads:
        for part, strain in zip(self._arc_segments, free):
            self._drive[part] = self.arm.body.stiffness[part.start] @ strain
        loads = self._loads._replace(drive=self._drive)
        if self._water is None or not moving:
            return loads
        return self._water.immersed(loads, self._state.strains, self._state.rates)

    # What it looks like and weighs on.

    def section_tips(self) -> Array:
        """Return the pose (sections, 4, 4) of every section's tip, base frame."""
        return self._tips(self._poses())

    def fingers(self) -> Array:
        """Return the pose (4, 4) of the middle of the gripper's fingers, base frame."""
        pose = self._poses()[self._middle_node].copy()
        pose[:3, 3] += self._base
        return pose

    def centerline(self, n: int) -> Array:
        """Return n points (n, 3) [m] from the base's origin to the tip, evenly spaced."""
        if n < 2:
            raise ValueError(f'centreline of {n} points; expected at least 2')
        c = self.config
        dense = self.arm.shape(self._state.strains).centerline(_POINTS) + self._base
        along = np.linspace(0.0, self.arm.rest_length_m, _POINTS)
        start = c.sections[0].deforming_length_m
        end = self.arm.rest_length_m - c.gripper.length_m
        wanted = np.concatenate(([start], along[(along > start) & (along < end)], [end]))
        points = np.stack([np.interp(wanted, along, dense[:, k]) for k in range(3)], axis=1)
        arc = np.concatenate(([0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))))
        at = np.linspace(0.0, arc[-1], n)
        return np.stack([np.interp(at, arc, points[:, k]) for k in range(3)], axis=1)

    def base_wrench(self) -> Array:
        """Return the load on the base (6,) [N, N m] about its origin, mean of the last step."""
        loads = self._loads_of(self.free, True)
        wrench = load_on_base(self.arm, loads, self._state, self._acceleration)
        # About the origin of the base frame, which lies beyond the first end part.
        wrench[3:] += np.cross(self._base, wrench[:3])
        return wrench

    def _poses(self) -> Array:
        return self.arm.node_poses(self._state.strains)

    def _tips(self, poses: Array) -> Array:
        tips = poses[self._section_nodes].copy()
        tips[:, :3, 3] += self._base
        return tips
