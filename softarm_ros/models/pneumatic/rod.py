"""Pneumatic arm as a Cosserat rod: chambers of `PneumaticArm`, shapes of `RodChain`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from softarm_ros.geometry.arrays import Array, finite_array, real_array
from softarm_ros.models.actuation_range import ActuationRange
from softarm_ros.models.arm_model import ZERO3, Posture, Shape, Vector3
from softarm_ros.models.pneumatic.angle_correction import PneumaticArm
from softarm_ros.models.pneumatic.chamber_arm import ChamberArm, ExtensionPosture
from softarm_ros.models.pneumatic.config import ChamberSectionConfig, MountConfig
from softarm_ros.models.pneumatic.rod_chain import RodChain, RodPose


class RodOfChambers(PneumaticArm):
    """
    Sections of three chambers that bend and stretch as one elastic rod.

    The identified curves connect pressures and configuration, as in `PneumaticArm`: the
    configuration is the bends and lengths of the arm without load. Weight and load add to them.

    Parameters
    ----------
    sections, mount, gravity, fluid_density_kg_m3, tip_mass_kg, tip_offset_m
        As in `PneumaticArm`; every section must be compliant.
    steps
        Integration steps along each arc and each mount.

    """

    def __init__(
        self,
        sections: Sequence[ChamberSectionConfig],
        mount: MountConfig,
        gravity: Vector3,
        fluid_density_kg_m3: float,
        tip_mass_kg: float,
        tip_offset_m: float,
        steps: int,
    ) -> None:
        super().__init__(sections, mount, gravity, fluid_density_kg_m3, tip_mass_kg, tip_offset_m)
        self.name = 'cosserat'
        self.rod_chain = RodChain(
            sections,
            mount,
            self.gravity,
            fluid_density_kg_m3,
            tip_mass_kg,
            tip_offset_m,
            steps,
        )

    def pose_under(
        self,
        configuration: Array,
        tip_force: Vector3 = ZERO3,
        tip_moment: Vector3 = ZERO3,
        near: RodPose | None = None,
    ) -> RodPose:
        """
        Return the pose of a configuration (3 sections,) under weight and a load at the tip.

        `near` is the pose of a similar configuration, which shortens the search.

        Raises
        ------
        ModelError
            If there is no stable equilibrium.

        """
        values = self._checked_configuration(configuration)
        force, moment = (
            finite_array(tip_force, (3,), 'tip_force'),
            finite_array(tip_moment, (3,), 'tip_moment'),
        )
        return self.rod_chain.pose(values, force, moment, near)

    def section_tips_under(
        self, configuration: Array, tip_force: Vector3 = ZERO3, tip_moment: Vector3 = ZERO3
    ) -> Array:
        """Return the section tips (sections, 4, 4) of `pose_under`, under weight and load."""
        return self.pose_under(configuration, tip_force, tip_moment).section_tips

    def shape_under(
        self, configuration: Array, tip_force: Vector3 = ZERO3, tip_moment: Vector3 = ZERO3
    ) -> Shape:
        """Return the shape of a configuration (3 sections,) under weight and a load at the tip."""
        pose = self.pose_under(configuration, tip_force, tip_moment)
        return Shape(
            pose.section_tips[-1].copy(),
            pose.section_tips,
            real_array(configuration, 'configuration'),
            partial(self.rod_chain.centerline, pose),
        )

    def tip_and_jacobian(self, configuration: Array) -> tuple[Array, Array]:
        """Return tip position (3,) [m] and its derivative (3, 3 sections) by configuration."""
        pose = self.pose_under(configuration)
        return pose.section_tips[-1, :3, 3].copy(), self.rod_chain.tip_twists(pose)[:3]

    def tip_twists(self, configuration: Array, tip_force: Vector3 = ZERO3) -> Array:
        """Return the tip twist (6, dof) per configuration."""
        return self.rod_chain.tip_twists(self.pose_under(configuration, tip_force))


class RodByExtensions(ChamberArm):
    """A `ChamberArm` with a rod's shape; a similar posture shortens the search for it."""

    def __init__(self, arm: RodOfChambers, within: ActuationRange | None = None) -> None:
        super().__init__(arm, 'cosserat', within)
        self.rod_arm = arm

    def posture_of(self, configuration: Array, near: Posture | None = None) -> Posture:
        """Return the posture at extensions (dof,) [m]; `near` is one at similar extensions."""
        values = real_array(configuration, 'configuration')
        return RodPosture(self, values, near.pose if isinstance(near, RodPosture) else None)


@dataclass(frozen=True)
class RodPosture(ExtensionPosture):
    """An `ExtensionPosture` that keeps its pose as the start of the search for the next one."""

    model: RodByExtensions
    start: RodPose | None

    @cached_property
    def pose(self) -> RodPose:
        """Pose of the rod under its own weight."""
        return self.model.rod_arm.pose_under(self.bends, near=self.start)

    @property
    def section_tips(self) -> Array:
        """Poses of all section tips (sections, 4, 4) [m]."""
        return self.pose.section_tips

    @cached_property
    def tip_jacobian(self) -> Array:
        """Derivative of the tip by the extensions (3, dof)."""
        twists = self.model.rod_arm.rod_chain.tip_twists(self.pose)
        return self.model.by_extensions(twists[:3])
