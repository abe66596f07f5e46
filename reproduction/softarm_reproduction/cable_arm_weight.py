"""
Find the stable rest positions of the simulated cable_arm for several body masses.

    python -m softarm_reproduction.cable_arm_weight

The result does not depend on a controller's model. A grid of contractions bends both sections in
one plane. For each, the simulated arm comes to rest, is pushed sideways by 2 mN at the tip, and
comes to rest again. If the push moves the tip by more than 20 mm, the arm has fallen aside. Cables
have no friction here, because friction would hold an arm that cable tension alone cannot.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from softarm_ros import load_rig
from softarm_ros.control.trajectory_config import CircleConfig
from softarm_ros.geometry.arrays import Array
from softarm_ros.models.arm_model import ModelError
from softarm_ros.plant.config import PlantCable, PlantConfig
from softarm_ros.plant.errors import PlantError
from softarm_ros.plant.soft_arm import SoftArm
from softarm_ros.rigs.arms.cable_driven import CableArm
from softarm_ros.rigs.schema import Rig

PUSH_N = (0.0, 2e-3, 0.0)
FALLEN_M = 0.02
STILL = 1e-5  # rad/s
PROXIMAL_DEG = tuple(range(60, 151, 15))
DISTAL_DEG = tuple(range(-30, 151, 20))
PRETENSIONS_M = (3e-3, 8e-3)


@dataclass(frozen=True)
class Stand:
    """A rest position: tip (3,) [m] before the push, and displacement by the push [m]."""

    tip: Array
    moved_m: float

    @property
    def stable(self) -> bool:
        """Return whether the arm stayed up."""
        return self.moved_m < FALLEN_M


def body_of(rig: Rig, mass_kg: float) -> SoftArm:
    """Return the simulated body of the nominal machine with the given mass per section."""
    plant = rig.plant_of(PlantConfig).nominal()
    sections = tuple(s.model_copy(update={'body_mass_kg': mass_kg}) for s in plant.sections)
    arm = CableArm.of(rig)
    cables = [
        PlantCable(arm.section_names.index(a.section), float(np.deg2rad(a.angle_deg)))
        for a in arm.actuators
    ]
    changed = {'sections': sections, 'cable_friction_coefficient': 0.0}
    return SoftArm(plant.model_copy(update=changed), cables, rig.gravity_m_s2)


def stands(
    rig: Rig,
    mass_kg: float,
    proximal_deg: Sequence[float] = PROXIMAL_DEG,
    distal_deg: Sequence[float] = DISTAL_DEG,
    pretensions_m: Sequence[float] = PRETENSIONS_M,
) -> list[Stand]:
    """Return the rest positions for bending towards a cable and away from it."""
    model, found = rig.model('constant_curvature'), []
    for side, pretension, proximal in product((1.0, -1.0), pretensions_m, proximal_deg):
        body = body_of(rig, mass_kg)
        for distal in distal_deg:
            bends = side * np.radians([proximal, 0.0, distal, 0.0])
            try:
                # Rounded, so that cables of equal length are equal to the bit and only the push
                # decides to which side the arm falls.
                wound = np.round(model.actuation_of(bends) + pretension, 9)
                tip = body.settle(contraction=wound, tolerance=STILL).section_tips[-1, :3, 3]
                pushed = body.copy().settle(contraction=wound, tip_force=PUSH_N, tolerance=STILL)
            except (ModelError, PlantError):
                continue
            away = float(np.linalg.norm(pushed.section_tips[-1, :3, 3] - tip))
            found.append(Stand(tip.copy(), away))
    return found


def farthest_up(found: Sequence[Stand]) -> Stand:
    """Return the stable rest position with the highest tip; z points down, as the arm hangs."""
    return min((one for one in found if one.stable), key=lambda one: float(one.tip[2]))


def nearest(found: Sequence[Stand], radius_m: float, height_m: float) -> tuple[Stand, float]:
    """Return the stable rest nearest to a circle about the base axis, and its distance [m]."""

    def distance(one: Stand) -> float:
        return float(np.hypot(np.hypot(*one.tip[:2]) - radius_m, one.tip[2] - height_m))

    best = min((one for one in found if one.stable), key=distance)
    return best, distance(best)


def main() -> None:
    """Print the table of stable rest positions by body mass."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('--mass-g', type=float, nargs='+', default=[20.0, 30.0, 40.0, 58.0])
    given = parser.parse_args()
    rig = load_rig('cable_arm')
    circle = rig.trajectories['circle']
    if not isinstance(circle, CircleConfig):
        raise TypeError(f'circle of {rig.name} is a {circle.type}; expected a circle')
    print('body g | rests | stable | nearest to the circle, mm | highest stable z, mm')
    for mass in given.mass_g:
        found = stands(rig, 1e-3 * mass)
        stable = sum(one.stable for one in found)
        if stable == 0:
            print(f'{mass:g} | {len(found)} | 0 | - | -')
            continue
        _, away = nearest(found, circle.radius, circle.center[2])
        highest = 1e3 * farthest_up(found).tip[2]
        print(f'{mass:g} | {len(found)} | {stable} | {1e3 * away:.0f} | {highest:.0f}')


if __name__ == '__main__':
    main()
