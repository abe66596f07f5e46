"""The moving backbone of the simulated muscle arm: arrays, equilibrium, shape."""

from __future__ import annotations

import numpy as np

from softarm_ros.geometry.arrays import Array
from softarm_ros.plant.body_kernels import load_bodies, place_bodies
from softarm_ros.plant.failures import require_ok
from softarm_ros.plant.layout import (
    ArmState,
    BodyParameters,
    Links,
    Loads,
    Medium,
    new_scratch,
    rest_state,
)
from softarm_ros.plant.link_kernels import measure_links
from softarm_ros.plant.pam_arm.backbone_kernels import settle_backbone, step_backbone
from softarm_ros.plant.pam_arm.config import PamPlantConfig
from softarm_ros.plant.settling import SETTLE_S, STILL_RAD_S, calm, calm_time
from softarm_ros.plant.shape import body_poses, centerline


class MovingBackbone:
    """
    The backbone as a chain of elastic joints, its muscles as springs between the disks.

    Parameters
    ----------
    config
        The simulated arm.
    modules
        Number of modules, with three muscles each.
    gravity_m_s2 : (3,)
        In the base frame.
    tip_load_kg
        Payload at the tip.

    Attributes
    ----------
    body, state, medium, links, scratch
        Arrays of the kernels; only the kernels may change the state.

    Raises
    ------
    ValueError
        If a disk does not lie between two intervals.

    """

    def __init__(
        self, config: PamPlantConfig, modules: int, gravity_m_s2: Array, tip_load_kg: float
    ) -> None:
        n = config.intervals
        if n % modules:
            raise ValueError(
                f'intervals = {n} is not a multiple of modules = {modules}: the disks must fall '
                f'between intervals'
            )
        self._stride, self._time_step_s = n // modules, config.time_step_s
        self._muscle_damping_s = config.muscle_damping_time_s
        self._config, self._payload_kg = config, tip_load_kg
        self.body = _body(config, gravity_m_s2, tip_load_kg)
        self.medium = _air(config, self.body)
        self.links = _muscles(modules, self._stride, config.anchor_radius_m)
        self.state: ArmState = rest_state(n, 3 * modules, 1)
        self.scratch = new_scratch(n, 3 * modules, 1, immersed=True)
        self.loads = Loads(np.zeros(3), np.zeros(3))

    def hang(self, mass_kg: float) -> None:
        """Carry a mass at the tip in addition to the payload."""
        loaded = _body(self._config, self.body.gravity, self._payload_kg + mass_kg)
        self.body.mass[:] = loaded.mass
        self.medium.drag[:] = _air(self._config, loaded).drag

    def settle(self, rest_lengths: Array, muscle_stiffness: Array) -> None:
        """
        Bring the arm to rest under muscles of rest lengths and stiffnesses (m,) [m], [N/m].

        Raises
        ------
        PlantError
            If the arm does not come to rest.

        """
        h = self._time_step_s
        status, joint = settle_backbone(
            calm(self.body), self.state, self.loads, self.medium,
            self.links, rest_lengths, muscle_stiffness,
            calm_time(self._muscle_damping_s), self.scratch, h, int(SETTLE_S / h),
            STILL_RAD_S,
        )  # fmt: skip
        self.check(status, joint)

    def advance(
        self, rest_lengths: Array, muscle_stiffness: Array, time_step_s: float, steps: int = 1
    ) -> None:
        """Advance by equal steps under constant muscles; arguments and errors as in `settle`."""
        for _ in range(steps):
            status, joint, _ = step_backbone(
                self.body, self.state, self.loads, self.medium, self.links, rest_lengths,
                muscle_stiffness, self._muscle_damping_s, self.scratch, time_step_s,
            )  # fmt: skip
            self.check(status, joint)

    def check(self, status: int, joint: int) -> None:
        """Raise `PlantError` unless a kernel's status is OK."""
        module, interval = divmod(joint, self._stride)
        require_ok(status, f'interval {interval + 1} of module {module + 1}')

    def muscle_lengths(self) -> Array:
        """Return the lengths (m,) [m] of the muscles."""
        place_bodies(self.body, self.state, self.scratch)
        load_bodies(self.body, self.state, self.loads, self.scratch, self._time_step_s)
        measure_links(self.links, self.scratch)
        return self.scratch.length.copy()

    def kinetic_energy(self) -> float:
        """Return the kinetic energy [J]."""
        place_bodies(self.body, self.state, self.scratch)
        return float(
            load_bodies(self.body, self.state, self.loads, self.scratch, self._time_step_s)
        )

    def section_tips(self) -> Array:
        """Return the pose (1, 4, 4) of the tip, the only measured pose, in the base frame."""
        return np.asarray(body_poses(self.body, self.state, self.scratch)[-1:])

    def disks(self) -> Array:
        """Return the poses (modules, 4, 4) of the modules' distal disks, base frame."""
        poses = body_poses(self.body, self.state, self.scratch)
        return np.asarray(poses[self._stride :: self._stride])

    def centerline(self, n: int) -> Array:
        """Return n points (n, 3) [m], evenly spaced in arc length."""
        return centerline(self.body, self.state, self.scratch, n)


def _body(config: PamPlantConfig, gravity_m_s2: Array, tip_load_kg: float) -> BodyParameters:
    """Return the chain: the mass of an interval is lumped at its ends."""
    rod, n = config.backbone, config.intervals
    ds = rod.length_m / n
    bending = rod.bending_stiffness_N_m2
    mass = np.full(n, rod.mass_per_length_kg_m * ds)
    mass[-1] *= 0.5
    inertia = mass * config.gyration_radius_m**2
    mass[-1] += tip_load_kg
    per_joint = np.array([bending, rod.torsional_stiffness_N_m2, rod.axial_stiffness_N]) / ds
    return BodyParameters(
        segment_length=np.full(n, ds),
        offset=np.zeros(n),
        stiffness=np.tile(per_joint, (n, 1)),
        damping_time=np.full((n, 2), config.backbone_damping_time_s),
        mass=mass,
        centre=np.zeros(n),
        inertia=np.stack([inertia, inertia], axis=1),
        base_rotation=np.eye(3),
        gravity=np.array(gravity_m_s2, dtype=np.float64),
        tip_offset=np.zeros(1),
    )


def _air(config: PamPlantConfig, body: BodyParameters) -> Medium:
    """Return the drag of air and sleeve: loss of momentum at the rate `drag_rate_1_s`."""
    n, rate = len(body.mass), config.drag_rate_1_s
    return Medium(
        force=np.zeros((n, 3)),
        drag=rate * body.mass[:, None, None] * np.eye(3),
        turning=rate * body.inertia[:, 0],
        added=np.zeros((n, 3)),
        current=np.zeros(3),
    )


def _muscles(modules: int, stride: int, radius_m: float) -> Links:
    """Return the muscles: at 120 i + 30 deg in odd modules, 120 i - 30 deg in even ones."""
    module, i = np.divmod(np.arange(3 * modules), 3)
    angle = np.radians(120.0 * (i + 1) + np.where(module % 2 == 0, 30.0, -30.0))
    return Links(
        first=(module * stride).astype(np.int64),
        last=((module + 1) * stride).astype(np.int64),
        anchor=radius_m * np.stack([np.cos(angle), np.sin(angle)], axis=1),
    )
