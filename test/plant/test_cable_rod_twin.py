"""
The rod of the models against the simulated arm, which uses other mathematics, on the same cables.

The plant is a chain of elastic joints with taut threads through points of its cross-sections; the
rod is integrated from tip to base and its cables follow it. With the same numbers, cables on
guides, no friction and no shear (the chain has none) the chain converges to the rod as its joints
get finer.
"""

from itertools import product

import numpy as np
import pytest

from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.cable_driven import rod_layout
from softarm_ros.models.cable_driven.rod import CableRodArm
from softarm_ros.models.config import CableConfig, SectionConfig
from softarm_ros.plant.config import PlantCable, PlantConfig
from softarm_ros.plant.soft_arm import SoftArm
from softarm_ros.rigs.loader import load_rig

GUIDED = 1e9  # N/m^2
HANGING = (0.0, 0.0, 9.81)
SECTION = {
    'length_m': 0.0935,
    'endcap_length_m': 0.015,
    'cable_radius_m': 0.0123,
    'bending_stiffness_N_m2': 2.16e-3,
    'axial_stiffness_N': 690.0,
    'body_mass_kg': 0.058,
    'endcap_mass_kg': 0.004,
}
ANGLES_DEG = (0.0, 120.0, 240.0)
WOUND_M = 2e-3
POSES = np.array([[0.6, 0.4, -0.7, 0.5], [0.9, -0.2, 0.4, 0.8], [-0.3, -0.9, 0.8, -0.6]])


@pytest.fixture(autouse=True)
def _without_shear(monkeypatch):
    monkeypatch.setattr(rod_layout, '_SHEAR_SHARE', 300.0)


def twins(segments, rig='cable_arm', pair=False, radii=(0.0123, 0.0123), passing=0.0, **changes):
    """Return the simulated body and the rod, with the same numbers."""
    plant = load_rig(rig).plant_of(PlantConfig).nominal()
    common = {**SECTION, **changes}
    names = ('proximal', 'distal')
    bodies, sections, wires, cables = [], [], [], []
    for k, name in enumerate(names):
        own = {**common, 'cable_radius_m': radii[k], 'cutting_in_stiffness_N_m2': GUIDED}
        if k == 0:
            own['passing_radius_m'] = passing
        sections.append(SectionConfig(name=name, **own))
        twist = {'torsion_stiffness_N_m2': 2.0 / 3.0 * own['bending_stiffness_N_m2']}
        bodies.append(plant.sections[0].model_copy(update={**own, **twist}))
    free, thread = plant.cable_free_length_m, plant.cable_axial_stiffness_N
    for k, name in enumerate(names):
        inside = sum(s.length_m + 2 * s.endcap_length_m for s in sections[:k])
        whole = free + inside + sections[k].endcap_length_m + sections[k].length_m
        for angle in (0.0, 90.0) if pair else ANGLES_DEG:
            motor = len(cables)
            cables.append(
                CableConfig(
                    name=f'{name}_{angle:g}', section=name, angle_deg=angle, pair=pair,
                    stretch_m_N=whole / thread,
                )
            )  # fmt: skip
            wires.append(PlantCable(k, np.radians(angle), motor))
            if pair:
                wires.append(PlantCable(k, np.radians(angle) + np.pi, motor, -1.0))
    changed = {
        'sections': tuple(bodies), 'cable_friction_coefficient': 0.0,
        'segments_per_section': segments, 'zero_offset_m': (),
    }  # fmt: skip
    body = SoftArm(plant.model_copy(update=changed), wires, HANGING)
    return body, CableRodArm(sections, cables, HANGING, pretension_m=WOUND_M, steps=6)


def misses(segments, contractions, load=(0.0, 0.0, 0.0), **arm):
    found = []
    for contraction in contractions:
        body, rod = twins(segments, **arm)
        wound = rod.rod.wound(contraction)
        rest = body.settle(contraction=wound, tip_force=load, tolerance=1e-6)
        shape = rod.forward(contraction, load)
        found.append(np.linalg.norm(shape.section_tips - rest.section_tips, axis=(1, 2)).max())
        loose = rest.tension < 1e-6
        mine = rod.rod.under(rod.rod.wound(contraction), rod.rod.load(np.array(load), np.zeros(3)),
                             shape.configuration)  # fmt: skip
        if not np.any(load):
            np.testing.assert_array_equal(mine.tension < 1e-6, loose)
            np.testing.assert_allclose(mine.tension, rest.tension, atol=0.5)
    return np.array(found)


def pulls(arcs):
    a = SECTION['cable_radius_m'] * np.stack(
        [np.cos(np.radians(ANGLES_DEG)), np.sin(np.radians(ANGLES_DEG))], axis=1
    )
    return [np.concatenate([a @ bend for bend in pose.reshape(2, 2)]) for pose in arcs]


@pytest.mark.parametrize('load', [(0.0, 0.0, 0.0), (0.1, -0.05, 0.2)])
def test_chain_on_single_cables_converges_to_the_rod(load):
    coarse, fine = (misses(n, pulls(POSES), load) for n in (8, 24))
    assert fine.mean() < 7e-4 and fine.mean() < 0.3 * coarse.mean()


def test_chain_and_rod_agree_with_slack_cables():
    """One cable of each section is let out by 12 mm."""
    contractions = [c - 0.012 * np.array([0, 0, 1, 0, 1, 0]) for c in pulls(POSES)]
    assert misses(24, contractions).max() < 2e-4


def test_chain_on_pairs_through_another_section_converges_to_the_rod():
    arm = {'rig': 'trunk', 'pair': True, 'radii': (0.03, 0.012), 'passing': 0.012,
           'bending_stiffness_N_m2': 0.03, 'axial_stiffness_N': 2e4}  # fmt: skip
    contractions = np.array([[0.01, -0.004, 0.006, 0.005], [-0.004, 0.008, -0.012, 0.006]])
    coarse, fine = (misses(n, contractions, **arm) for n in (8, 24))
    assert fine.mean() < 2e-5 and fine.mean() < 0.3 * coarse.mean()


def test_rod_is_refused_exactly_where_the_chain_falls_aside():
    """Bent beyond the horizontal, pushed sideways by 2 mN; fixed cable lengths alone hold some."""
    verdicts, folds = [], 0
    places = [
        *product((0.058,), (2e-3,), (75.0, 90.0, 105.0), (-30.0, 30.0, 90.0, 130.0)),
        *product((0.040,), (3e-3,), (105.0, 120.0), (-30.0, 50.0, 130.0)),
    ]
    for mass, pretension, proximal, distal in places:
        body, rod = twins(10, body_mass_kg=mass)
        arcs = np.radians([proximal, 0.0, distal, 0.0])
        (contraction,) = pulls(arcs[None])
        wound = np.round(contraction + pretension, 9)
        tip = body.settle(contraction=wound, tolerance=1e-5).section_tips[-1, :3, 3]
        pushed = (
            body.copy()
            .settle(contraction=wound, tip_force=(0.0, 2e-3, 0.0), tolerance=1e-5)
            .section_tips[-1, :3, 3]
        )
        load = rod.rod.load(np.zeros(3), np.zeros(3))
        try:
            folds += rod.rod.under(wound, load, arcs).shot.folds
            stands = True
        except ModelError as error:
            assert 'falls aside' in str(error)
            stands = False
        verdicts.append((bool(np.linalg.norm(pushed - tip) < 0.02), stands))
    assert all(chain == rod for chain, rod in verdicts), verdicts
    assert {chain for chain, _ in verdicts} == {True, False}
    assert folds > 0
