"""The simulated body: sagging end parts, parts with chambers, a gripper; in air or water."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softarm_ros.geometry.arrays import Array, IntArray
from softarm_ros.models.hydrodynamics.config import WaterConfig
from softarm_ros.models.hydrodynamics.morison import Hydrodynamics, lengths_at_nodes
from softarm_ros.plant.failures import require_ok
from softarm_ros.plant.fluid import Fluid
from softarm_ros.plant.layout import BodyParameters, Loads, Medium, new_scratch, rest_state
from softarm_ros.plant.lumps import Lump, lumps_along
from softarm_ros.plant.pneumatic.arm_kernels import drive_arm, drive_into, prepare_arm, settle_arm
from softarm_ros.plant.pneumatic.config import PneumaticPlantConfig
from softarm_ros.plant.pneumatic.layout import Arm, Chambers, Valves
from softarm_ros.plant.pneumatic.spans import (
    GRIPPER_SEGMENTS,
    Part,
    body_of,
    displaced_lumps,
    end_part_segments,
    parts_of,
)
from softarm_ros.plant.point_kernels import Points
from softarm_ros.plant.settling import SETTLE_S, STILL_RAD_S, calm
from softarm_ros.plant.shape import body_poses, centerline
from softarm_ros.plant.step_damping import split_damping
from softarm_ros.plant.water_kernels import Water


class PneumaticBody:
    """
    The body as a chain of elastic joints, without regulators and sensors.

    From the frame down: for each section a soft end part, then the part with chambers; a rigid
    part to the tip; the gripper, if any. The end part of the first section lies behind the base's
    origin.

    Parameters
    ----------
    config
        All properties of the body.
    gravity_m_s2 : (3,)
        Base frame.
    fluid
        Surrounding fluid, with buoyancy, drag and added mass; None: air.
    tip_load_kg
        Permanent load, in the middle of the gripper or, without a gripper, at the tip.

    Attributes
    ----------
    arm
        Arrays of the kernels; only the kernels may change the state.
    free : (sections, 4)
        Free strains of the chambers: curvatures about x, y, z [1/m], stretch.

    """

    def __init__(
        self,
        config: PneumaticPlantConfig,
        gravity_m_s2: Sequence[float],
        fluid: Fluid | None,
        tip_load_kg: float,
    ) -> None:
        self.gravity = np.array(gravity_m_s2, dtype=np.float64)
        self.density = 0.0 if fluid is None else fluid.density_kg_m3
        self._config = config
        parts = parts_of(config, self.density)
        self._parts, self._payload_kg = parts, tip_load_kg
        self._mount = lumps_along([part.span for part in parts])[0]
        self._base = np.array([0.0, 0.0, -config.sections[0].deforming_length_m])
        n, m = config.segments_per_section, end_part_segments(config)
        count = len(config.sections)
        first = (n + m) * np.arange(count) + m
        # A section ends where the chambers of the next one begin, the last one at the tip.
        self._section_bodies = np.append(first[1:], (n + m) * count)
        self._rises = np.append(np.zeros(count - 1), config.tip_length_m)
        self._beyond = 0 if config.gripper is None else GRIPPER_SEGMENTS
        self._loaded = (n + m) * count + self._beyond // 2
        body = body_of(parts, tip_load_kg, self.gravity, self._loaded)
        self.arm = _arm(config, parts, body, fluid, first)
        self._displacing = self.arm.points
        self._damping_time = self.arm.body.damping_time.copy()
        self.free = np.zeros((count, 4))

    # Loads.

    def carry(self, mass_kg: float, volume_m3: float, offset: Array) -> None:
        """Hold an object at an offset (3,) [m] from the middle of the fingers, tip axes."""
        own = self._displacing
        self.arm = self.arm._replace(
            points=Points(
                np.append(own.joint, self._loaded - 1),
                np.vstack([own.place, offset]),
                np.append(own.mass, mass_kg),
                np.append(own.displaced, self.density * volume_m3),
            )
        )

    def release(self) -> None:
        """Release the object."""
        self.arm = self.arm._replace(points=self._displacing)

    def hang(self, mass_kg: float) -> None:
        """Carry a mass in addition to the payload, at the same place."""
        carried, own = self._payload_kg + mass_kg, self.arm.body
        loaded = body_of(self._parts, carried, self.gravity, self._loaded)
        own.mass[:], own.centre[:], own.inertia[:] = loaded.mass, loaded.centre, loaded.inertia

    # Motion.

    def drive(
        self, valves: Valves, tight: Array, noise: Array, chambers: Chambers, h: float
    ) -> None:
        """
        Advance with regulators and chambers, one step of h [s] per row of `noise`: `drive_arm`.

        Raises
        ------
        PlantError
            If the arm leaves the range of the simulation.

        """
        split_damping(
            self._damping_time, h, self.arm.body.damping_time, self.arm.solver.damping_time
        )
        self._check(*drive_arm(valves, tight, noise, chambers, self.free, self.arm, h))

    def settle(self, free: Array) -> None:
        """Come to rest under free strains (sections, 4); raise `PlantError` if that fails."""
        self.free[:] = free
        drive_into(self.arm, self.free)
        self._rest(self.arm)

    def section_tips_at_rest(self, free: Array) -> Array:
        """Return the section tips (sections, 4, 4) at rest under free strains; nothing moves."""
        n = len(self.arm.body.mass)
        twin = self.arm._replace(
            state=rest_state(n, 0, 1),
            scratch=new_scratch(n, 0, 1, immersed=self.density > 0.0),
            drive=np.zeros((n, 4)),
            lost=np.zeros(n),
        )
        drive_into(twin, np.asarray(free, dtype=np.float64))
        self._rest(twin)
        return self._tips(twin)

    def _rest(self, arm: Arm) -> None:
        h = self._config.time_step_s
        quiet = calm(arm.body._replace(damping_time=self._damping_time))
        calmed = arm._replace(body=quiet, solver=quiet)
        self._check(*settle_arm(calmed, h, int(SETTLE_S / h), STILL_RAD_S))
        prepare_arm(arm, h)
        arm.scratch.carried[0] = arm.scratch.bias.sum(axis=0)

    def _check(self, status: int, joint: int) -> None:
        n, m = self._config.segments_per_section, end_part_segments(self._config)
        section, segment = divmod(joint, n + m)
        if section == len(self._config.sections):
            require_ok(status, 'the gripper')
        part = 'the end part' if segment < m else f'segment {segment - m}'
        require_ok(status, f'{part} of section {section}')

    # Shape, and load on the base.

    def section_tips(self) -> Array:
        """Return the pose (sections, 4, 4) of every section's tip, base frame."""
        return self._tips(self.arm)

    def fingers(self) -> Array:
        """Return the pose (4, 4) of the middle of the gripper's fingers, base frame."""
        pose = body_poses(self.arm.body, self.arm.state, self.arm.scratch)[self._loaded]
        pose[:3, 3] += self._base
        return np.asarray(pose)

    def centerline(self, n: int) -> Array:
        """Return n points (n, 3) [m] from the base's origin to the tip, evenly spaced."""
        arm, start = self.arm, int(self.arm.chambered[0, 0])
        end = len(arm.body.mass) - self._beyond if self._beyond else None
        return centerline(arm.body, arm.state, arm.scratch, n, start, end) + self._base

    def base_wrench(self) -> Array:
        """Return the load on the base (6,) [N, N m] about its origin, at the last step's start."""
        borne = self.arm.scratch.carried[0]
        weight = self._mount.mass * self.gravity
        force = weight - borne[3:]
        moment = _moment(self._mount.centre, weight) - borne[:3]
        # About the origin of the base frame, which lies beyond the first end part.
        return np.concatenate([force, moment + _moment(self._base[2], force)])

    def _tips(self, arm: Arm) -> Array:
        tips = body_poses(arm.body, arm.state, arm.scratch)[self._section_bodies]
        tips[:, :3, 3] += self._base + self._rises[:, None] * tips[:, :3, 2]
        return np.asarray(tips)


def _moment(height_m: float, force: Array) -> Array:
    """Return the moment (3,) about the origin of a force (3,) that acts on the z axis."""
    return np.array([-height_m * force[1], height_m * force[0], 0.0])


def _arm(
    config: PneumaticPlantConfig,
    parts: list[Part],
    body: BodyParameters,
    fluid: Fluid | None,
    first: IntArray,
) -> Arm:
    """Return the straight arm at rest."""
    n, wet = len(body.mass), fluid is not None
    added, water = _water(parts, body, fluid)
    bending = np.array([s.bending_stiffness_N_m2 for s in config.sections])
    axial = np.array([s.axial_stiffness_N for s in config.sections])
    return Arm(
        body=body,
        solver=body._replace(damping_time=body.damping_time.copy()),
        state=rest_state(n, 0, 1),
        loads=Loads(np.zeros(3), np.zeros(3)),
        scratch=new_scratch(n, 0, 1, immersed=wet),
        points=_displacing(displaced_lumps(parts)[1:] if wet else []),
        still=added,
        medium=added._replace(force=added.force.copy(), drag=added.drag.copy()),
        water=water,
        drive=np.zeros((n, 4)),
        lost=np.zeros(n),
        stiffness=np.stack([bending, bending, bending / 1.5, axial], axis=1),
        chambered=np.stack([first, first + config.segments_per_section], axis=1),
        c20_share=np.array([6.0 * s.c20_Pa / s.youngs_modulus_Pa for s in config.sections]),
    )


def _water(
    parts: Sequence[Part], body: BodyParameters, fluid: Fluid | None
) -> tuple[Medium, Water]:
    """
    Return added mass and drag of the bodies (empty in air); the points have the buoyancy.

    The first end part is inside the frame: no water reaches it.
    """
    wet = 0 if fluid is None else len(body.mass)
    fluid = fluid or Fluid(WaterConfig())
    dry = parts[0].span.segments
    counts = [part.span.segments for part in parts]
    diameter = np.repeat([2.0 * part.span.radius_m for part in parts], counts)
    exposed = body.segment_length + body.offset
    exposed[:dry] = 0.0
    length = lengths_at_nodes(exposed)
    length[-1] += body.tip_offset[0]  # a rigid piece with nothing beyond it
    around = Hydrodynamics(fluid.properties, length[dry - 1 :], diameter[dry - 1 :])
    added = np.zeros((len(length), 3))
    added[dry - 1 :] = around.added_mass_matrices()[:, [0, 2, 3], [0, 2, 3]]
    return Medium(
        force=np.zeros((wet, 3)),
        drag=np.zeros((wet, 3, 3)),
        turning=np.zeros(wet),
        added=added[:wet],
        current=np.array(fluid.current_m_s, dtype=np.float64),
    ), Water(
        around.coefficients,
        length[:wet],
        diameter[:wet],
        np.zeros((wet, 3)),
        np.zeros((wet, 3)),
    )


def _displacing(lumps: Sequence[Lump]) -> Points:
    """Return the points at which the bodies displace fluid, from the lumps of displaced fluid."""
    n = len(lumps)
    place = np.zeros((n, 3))
    place[:, 2] = [lump.centre for lump in lumps]
    displaced = np.array([lump.mass for lump in lumps], dtype=np.float64)
    return Points(np.arange(n, dtype=np.int64), place, np.zeros(n), displaced)
