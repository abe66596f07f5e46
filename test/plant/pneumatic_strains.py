"""
Another formulation of the pneumatic body: segments of constant strain, `models/dynamics`.

It uses exact arcs with mass along them, Newton's method for the rest shape, and an implicit
second-order integrator with a bounded error for motion. The order of strains is stretch, then
curvatures about x, y, z.
"""

import math

import numpy as np

from softarm_ros.models.dynamics.arm import ArmDynamics
from softarm_ros.models.dynamics.config import (
    ConnectorConfig,
    DynamicSectionConfig,
    RigidBodyConfig,
    diagonal4,
    round_section,
)
from softarm_ros.models.dynamics.recursion_kernels import place_arm, residual
from softarm_ros.models.dynamics.simulation import ArmIntegrator
from softarm_ros.models.dynamics.tangents import equilibrium

GRIPPER_SEGMENTS = 2
GRIPPER_MODULUS_PA = 2e7


def modulus_left(stretch, c20_share, step=1e-3):
    """Return tangent modulus / modulus at rest, by central differences of Yeoh's energy."""

    def energy(at):
        first = at**2 + 2.0 / at - 3.0
        return first + c20_share * first**2

    bent = energy(stretch + step) - 2.0 * energy(stretch) + energy(stretch - step)
    return bent / step**2 / 6.0


class StrainBody:
    """Body of a plant's config: n segments per part with chambers, n / 2 per end part."""

    def __init__(
        self,
        config,
        gravity,
        n,
        *,
        load=0.0,
        held=0.0,
        offset=(0.0, 0.0, 0.0),
        density=0.0,
        stretched=(0.0, 0.0),
    ):
        """Build the arm; the silicone's stiffness is that at the free strains `stretched`."""
        self.stretched = stretched
        self.config, self.density = config, density
        self.n, self.m = n, max(1, n // 2)
        count = len(config.sections)
        parts = []
        for k in range(count):
            parts += [self._end_part(k), self._arc(k, last=k == count - 1)]
        parts.append(self._gripper())
        total = load + held
        half = np.array([0.0, 0.0, -0.5 * config.gripper.length_m])
        offset = np.asarray(offset)
        centre = half + (held / total * offset if total else 0.0)
        points = load * held / total * offset**2 if total else np.zeros(3)
        payload = RigidBodyConfig(
            mass_kg=total,
            centre_m=tuple(map(float, centre)),
            inertia_kg_m2=tuple(map(float, points.sum() - points)),
        )
        self.arm = ArmDynamics(parts, payload)
        self.base = np.array([0.0, 0.0, -config.sections[0].deforming_length_m])
        per = self.n + self.m
        self.arcs = [slice(per * k + self.m, per * (k + 1)) for k in range(count)]
        self.nodes = [per * (k + 1) + self.m for k in range(count - 1)] + [per * count]
        self.loads = self.arm.loads(tuple(gravity))

    def _end_part(self, k):
        s = self.config.sections[k]
        area = math.pi * s.outer_radius_m**2
        solid = round_section(
            length_m=s.deforming_length_m,
            radius_m=s.outer_radius_m,
            youngs_modulus_Pa=s.youngs_modulus_Pa,
            density_kg_m3=s.mass_per_length_kg_m / area,
            segments=self.m,
            damping_time_s=s.damping_time_s,
        )
        displaced = self.density * area if k > 0 else 0.0
        return solid.model_copy(update={'displaced_fluid_kg_m': displaced})

    def _arc(self, k, last):
        c, s = self.config, self.config.sections[k]
        bending = s.bending_stiffness_N_m2
        rest = (s.axial_stiffness_N, bending, bending, bending / 1.5)
        left = modulus_left(1.0 + self.stretched[k], 6.0 * s.c20_Pa / s.youngs_modulus_Pa)
        stiffness = tuple(left * value for value in rest)
        slice_ = 0.25 * s.mass_per_length_kg_m * s.outer_radius_m**2
        body, connector = RigidBodyConfig(), ConnectorConfig()
        if last:
            connector = ConnectorConfig(length_m=c.tip_length_m)
            across = c.tip_part_mass_kg * c.tip_length_m**2 / 12.0
            body = RigidBodyConfig(
                mass_kg=c.tip_part_mass_kg,
                displaced_fluid_kg=self.density * math.pi * s.outer_radius_m**2 * c.tip_length_m,
                centre_m=(0.0, 0.0, 0.5 * c.tip_length_m),
                inertia_kg_m2=(across, across, 0.0),
            )
        return DynamicSectionConfig(
            length_m=s.bending_length_m,
            segments=self.n,
            mass_per_length_kg_m=s.mass_per_length_kg_m,
            slice_inertia_kg_m=(slice_, slice_, 2.0 * slice_),
            stiffness=diagonal4(stiffness),
            damping=diagonal4(tuple(s.damping_time_s * value for value in rest)),
            displaced_fluid_kg_m=self.density * math.pi * s.outer_radius_m**2,
            body=body,
            connector=connector,
        )

    def _gripper(self):
        g = self.config.gripper
        area = math.pi * g.outer_radius_m**2
        rod = round_section(
            length_m=g.length_m,
            radius_m=g.outer_radius_m,
            youngs_modulus_Pa=GRIPPER_MODULUS_PA,
            density_kg_m3=g.mass_kg / (area * g.length_m),
            segments=GRIPPER_SEGMENTS,
            damping_time_s=self.config.sections[-1].damping_time_s,
        )
        return rod.model_copy(update={'displaced_fluid_kg_m': self.density * area})

    def under(self, free):
        """Return the loads of free strains (sections, 4) in the plant's order of strains."""
        drive = np.zeros((self.arm.segments, 4))
        for part, strain in zip(self.arcs, free):
            drive[part] = self.arm.body.stiffness[part.start] @ strain[[3, 0, 1, 2]]
        return self.loads._replace(drive=drive)

    def rest(self, free):
        """Return the strains at rest under free strains."""
        guess = np.zeros((self.arm.segments, 4))
        for part, strain in zip(self.arcs, free):
            guess[part] = strain[[3, 0, 1, 2]]
        found = equilibrium(self.arm, self.under(free), guess=guess)
        assert found.converged and found.stable
        return found.strains

    def tips(self, strains):
        """Return the section tips (sections, 4, 4) in the base frame."""
        tips = self.arm.node_poses(strains)[self.nodes].copy()
        tips[:, :3, 3] += self.base
        return tips

    def integrator(self, tolerance_m):
        return ArmIntegrator(self.arm, tolerance_m=tolerance_m)

    def load_on_base(self, free, strains, rates, accelerations):
        """Return force and moment (6,) of the arm on its mount, about the base's origin."""
        arm, scratch = self.arm, self.arm.scratch
        place_arm(arm.body, strains, scratch)
        residual(
            arm.body, self.under(free), strains, rates, accelerations, scratch,
            np.empty_like(strains),
        )  # fmt: skip
        turn, origin = scratch.rotation[:-1], scratch.origin[:-1]
        centre = origin + np.einsum('kij,kj->ki', turn, scratch.centre)
        force = np.einsum('kij,kj->ki', turn, scratch.force)
        moment = np.einsum('kij,kj->ki', turn, scratch.moment) + np.cross(centre, force)
        distal = turn @ scratch.turned
        end = origin + np.einsum('kij,kj->ki', turn, scratch.end)
        tip_force = np.einsum('kij,kj->ki', distal, scratch.tip_force)
        moment += np.einsum('kij,kj->ki', distal, scratch.tip_moment) + np.cross(end, tip_force)
        needed = np.concatenate([(force + tip_force).sum(axis=0), moment.sum(axis=0)])
        needed[3:] += np.cross(self.base, needed[:3])
        return -needed
