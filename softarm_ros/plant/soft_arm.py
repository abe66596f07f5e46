"""The simulated body with its cables, without motors and sensors."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from softarm_ros.geometry.arrays import Array
from softarm_ros.plant.actuator_values import as_actuation
from softarm_ros.plant.body_kernels import load_bodies, place_bodies
from softarm_ros.plant.cable_kernels import measure_cables, thread_lengths
from softarm_ros.plant.config import PlantCable, PlantConfig
from softarm_ros.plant.failures import require_ok
from softarm_ros.plant.joint_kernels import log_of_quaternion
from softarm_ros.plant.layout import (
    ArmState,
    BodyParameters,
    CableParameters,
    Loads,
    new_scratch,
    rest_state,
)
from softarm_ros.plant.packing import pack_body, pack_cables
from softarm_ros.plant.settling import calm
from softarm_ros.plant.shape import centerline, section_tips
from softarm_ros.plant.step_kernels import advance_arm, settle_arm
from softarm_ros.plant.thread_friction import ThreadFriction, thread_friction


@dataclass(frozen=True)
class Equilibrium:
    """
    Arm at rest.

    Attributes
    ----------
    section_tips : (sections, 4, 4)
        Base -> tip of each section.
    contraction : (m,)
        Of the cables [m]; for given tensions, the contraction at which they have these tensions.
    tension : (m,)
        Of the cables [N].

    """

    section_tips: Array
    contraction: Array
    tension: Array


@dataclass(frozen=True)
class Energy:
    """Energy of the arm by kind [J]."""

    kinetic: float
    elastic: float
    gravity: float
    foundation: float
    threads: float
    bristles: float

    @property
    def potential(self) -> float:
        """All but the kinetic energy [J]."""
        return self.elastic + self.gravity + self.foundation + self.threads + self.bristles

    @property
    def total(self) -> float:
        """Their sum [J]."""
        return self.kinetic + self.potential


class SoftArm:
    """
    Chain of elastic joints with cables that cut in; the kernels describe the physics.

    Parameters
    ----------
    config
        Body, cables and time step; motors and sensors are not used.
    cables
        Anchor of each cable.
    gravity_m_s2 : (3,)
        In the base frame, which `base_tilt_deg` does not rotate.

    """

    def __init__(
        self, config: PlantConfig, cables: Sequence[PlantCable], gravity_m_s2: ArrayLike
    ) -> None:
        self.config = config
        self.body: BodyParameters = pack_body(config, gravity_m_s2)
        self.cables: CableParameters = pack_cables(config, cables)
        self.threads: ThreadFriction = thread_friction(config, cables)
        joints, segments = len(self.body.mass), config.segments_per_section
        self.state: ArmState = rest_state(joints, len(cables), segments)
        self.scratch = new_scratch(joints, len(cables), segments)
        self.no_loads = Loads(np.zeros(3), np.zeros(3))
        self._endcaps = np.array([section.endcap_length_m for section in config.sections])

    @property
    def cable_count(self) -> int:
        """Number of cables m."""
        return len(self.state.tension)

    def copy(self) -> SoftArm:
        """Return an independent copy in the same state."""
        twin = copy.copy(self)
        twin.state = self.state.copy()
        twin.threads = self.threads.copy()
        twin.scratch = new_scratch(
            len(self.body.mass), self.cable_count, self.config.segments_per_section
        )
        return twin

    def advance(
        self,
        *,
        contraction: ArrayLike | None = None,
        tension: ArrayLike | None = None,
        time_step_s: float,
        steps: int = 1,
        tip_force: ArrayLike = (0.0, 0.0, 0.0),
        tip_moment: ArrayLike = (0.0, 0.0, 0.0),
    ) -> None:
        """
        Advance with constant contractions (m,) [m] or tensions (m,) [N].

        If neither is given, the contractions stay constant. Tip loads are dead loads in the base
        frame [N], [N m].

        Raises
        ------
        ValueError
            If an input has the wrong shape, is not finite, or a tension is negative.
        PlantError
            If the arm leaves the range of the model.

        """
        target, tension_given = self._target(contraction, tension)
        status, joint = advance_arm(
            self.body,
            self.cables,
            self.threads,
            self.state,
            _loads(tip_force, tip_moment),
            target,
            tension_given,
            self.scratch,
            time_step_s,
            steps,
        )
        self.check(status, joint)

    def settle(
        self,
        *,
        contraction: ArrayLike | None = None,
        tension: ArrayLike | None = None,
        tip_force: ArrayLike = (0.0, 0.0, 0.0),
        tip_moment: ArrayLike = (0.0, 0.0, 0.0),
        tolerance: float = 1e-8,
        max_time_s: float = 240.0,
    ) -> Equilibrium:
        """
        Bring the arm to rest, starting from its present state; arguments as in `advance`.

        Damping is increased and momentum removed, which changes the way to the end but not the
        end itself. With friction of the cables the end depends on the way: after a jump of the
        contractions the arm swings, and the remaining friction is that of the last swing. If this
        matters, move in small steps, or slowly by `advance`.

        Raises
        ------
        PlantError
            If it does not come to rest (velocities below `tolerance` [rad/s]).

        """
        target, tension_given = self._target(contraction, tension)
        h = self.config.time_step_s
        status, joint = settle_arm(
            calm(self.body),
            self.cables,
            self.threads,
            self.state,
            _loads(tip_force, tip_moment),
            target,
            tension_given,
            self.scratch,
            h,
            int(max_time_s / h),
            tolerance,
        )
        self.check(status, joint)
        if tension_given:
            self.state.contraction[:] = self._holding_contraction()
        return Equilibrium(
            self.section_tips(), self.state.contraction.copy(), self.state.tension.copy()
        )

    def section_tips(self) -> Array:
        """Return the pose (sections, 4, 4) of every section's tip in the base frame."""
        return section_tips(self.body, self.state, self.scratch, self._endcaps)

    def centerline(self, n: int) -> Array:
        """Return n points (n, 3) [m] from base to tip, evenly spaced in arc length."""
        return centerline(self.body, self.state, self.scratch, n)

    def segment_rotation_vectors(self) -> Array:
        """Return the local bending and twist (n, 3) [rad] of every segment."""
        return np.array([log_of_quaternion(q)[:3] for q in self.state.quaternion]).reshape(-1, 3)

    def cable_lengths(self) -> Array:
        """Return the length (m,) [m] of every cable along the bending parts."""
        place_bodies(self.body, self.state, self.scratch)
        measure_cables(self.body, self.cables, self.state, self.scratch)
        return self.scratch.length.copy()

    def rest_lengths(self) -> Array:
        """Return the lengths (m,) [m] of the cables in the straight, unstressed arm."""
        segments = self.config.segments_per_section
        return np.array(
            [thread_lengths(self.body, self.cables, segments, i) for i in range(self.cable_count)]
        )

    def energy(self) -> Energy:
        """Return the present energy; threads at the present contractions."""
        body, state, scratch = self.body, self.state, self.scratch
        place_bodies(body, state, scratch)
        kinetic = load_bodies(body, state, self.no_loads, scratch, 0.0)
        phi = self.segment_rotation_vectors()
        strain = np.column_stack([phi[:, 0] ** 2 + phi[:, 1] ** 2, phi[:, 2] ** 2])
        strain = np.column_stack([strain, state.extension**2])
        centres = scratch.origin[1:] + body.centre[:, None] * scratch.rotation[1:, :, 2]
        stretch = self.cable_lengths() - self.rest_lengths() + state.contraction
        return Energy(
            float(kinetic),
            float(0.5 * np.sum(body.stiffness * strain)),
            float(-np.sum(body.mass[:, None] * centres * body.gravity)),
            float(0.5 * np.sum(self.cables.foundation[:, None, None] * state.cut_in**2)),
            float(0.5 * np.sum(self.cables.stiffness * np.maximum(stretch, 0.0) ** 2)),
            self.threads.nodes.stored,
        )

    def check(self, status: int, joint: int) -> None:
        """Raise PlantError unless a kernel's status is OK."""
        segments = self.config.segments_per_section
        require_ok(status, f'segment {joint % segments} of section {joint // segments}')

    def _holding_contraction(self) -> Array:
        stretch = self.state.tension / self.cables.stiffness
        return np.asarray(stretch + self.rest_lengths() - self.cable_lengths())

    def _target(
        self, contraction: ArrayLike | None, tension: ArrayLike | None
    ) -> tuple[Array, bool]:
        if contraction is not None and tension is not None:
            raise ValueError('contraction and tension given; expected one of them')
        if tension is not None:
            target = as_actuation(tension, self.cable_count, 'tension')
            if np.any(target < 0.0):
                worst = int(np.argmin(target))
                raise ValueError(f'tension[{worst}] = {target[worst]:g} N; a cable only pulls')
            return target, True
        if contraction is None:
            return self.state.contraction.copy(), False
        return as_actuation(contraction, self.cable_count, 'contraction'), False


def _loads(force: ArrayLike, moment: ArrayLike) -> Loads:
    return Loads(as_actuation(force, 3, 'tip_force'), as_actuation(moment, 3, 'tip_moment'))
