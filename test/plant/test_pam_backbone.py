"""Backbone of the muscle arm: the minimum-energy rod as reference, closed forms, energy."""

import math
from itertools import pairwise

import numpy as np
import pytest

from softarm_ros import load_rig
from softarm_ros.models.minimum_energy.arm import MinimumEnergyArm
from softarm_ros.models.minimum_energy.config import BackboneConfig, ParallelModulesConfig
from softarm_ros.plant.errors import PlantError
from softarm_ros.plant.joint_kernels import log_of_quaternion
from softarm_ros.plant.pam_arm.backbone import MovingBackbone
from softarm_ros.plant.pam_arm.muscle_kernels import muscle_springs_into

ROD = BackboneConfig()
PLANT = load_rig('pam_arm').plant
MODULES = 10
SLACK = 1e-12  # stiffness of an absent muscle [N/m]


def backbone(n, modules=MODULES, gravity=(0.0, 0.0, 9.81), load=0.0, rod=None, **changes):
    """Return a moving backbone with the model's own parameters, except for `changes`."""
    fields = {
        'intervals': n,
        'backbone': ROD.model_dump() | (rod or {}),
        'anchor_radius_m': 0.02,
        'muscle_damping_time_s': 0.02,
        'backbone_damping_time_s': 0.05,
        'drag_rate_1_s': 0.0,
    }
    config = PLANT.model_validate(PLANT.model_dump(by_alias=True) | fields | changes)
    return MovingBackbone(config, modules, gravity, load)


def inextensible(moving):
    """Make the rod so stiff along its axis that its stretch is below a nanometre."""
    stiffness = moving.body.stiffness.copy()
    stiffness[:, 2] *= 1e6
    moving.body = moving.body._replace(stiffness=stiffness)
    return moving


# -- at rest: another formulation of the same arm ---------------------------------------------

TARGETS = [(0.2, 0.1, 0.9), (-0.15, 0.25, 0.88)]


@pytest.mark.parametrize('load', [0.0, 0.05])
@pytest.mark.parametrize('target', TARGETS)
def test_backbone_at_rest_converges_to_the_minimum_energy_rod(target, load):
    modules = ParallelModulesConfig(muscle_stiffness_N_m=5e4)
    lengths = MinimumEnergyArm(ROD, modules, 40, tip_load_kg=load).inverse(target).actuation
    # The model's lumped weights converge with order two as well: extrapolate.
    rods = [MinimumEnergyArm(ROD, modules, n, tip_load_kg=load) for n in (80, 160)]
    coarse, fine = (rod.equilibrium(lengths) for rod in rods)
    tip = fine.positions[-1] + (fine.positions[-1] - coarse.positions[-1]) / 3.0
    tips = []
    for n in (10, 20, 40):
        moving = inextensible(backbone(n, load=load))
        moving.settle(lengths, np.full(30, 5e4))
        tips.append(moving.section_tips()[0][:3, 3])
        pulls = 5e4 * (moving.muscle_lengths() - lengths)
        np.testing.assert_allclose(moving.state.tension, pulls, atol=1e-5)
    errors = np.linalg.norm(np.array(tips) - tip, axis=1)
    assert errors[0] < 3e-3
    # Second order in the intervals, and one limit.
    np.testing.assert_allclose(errors[:2] / errors[1:], 4.0, atol=0.3)
    assert np.linalg.norm(tips[2] + (tips[2] - tips[1]) / 3.0 - tip) < 5e-6


@pytest.mark.parametrize('target', TARGETS)
def test_backbone_with_gas_muscles_converges_to_the_minimum_energy_rod(target):
    """The plant has amounts of gas, the model free lengths."""
    modules = ParallelModulesConfig()
    commands = MinimumEnergyArm(ROD, modules, 40).inverse(target).actuation
    rods = [MinimumEnergyArm(ROD, modules, n).equilibrium(commands) for n in (80, 160)]
    tip = rods[1].positions[-1] + (rods[1].positions[-1] - rods[0].positions[-1]) / 3.0
    skeleton = 22.8 / 0.06
    gas = (22.8 - skeleton * (0.11 - commands)) * commands
    limits = np.array([0.11, 22.8, 13.5, 0.0, 0.0, 1e4])
    tips = []
    for n in (10, 20, 40):
        moving, length = inextensible(backbone(n)), np.full(30, 0.1)
        acting, stiffness = np.empty(30), np.empty(30)
        for _ in range(8):
            muscle_springs_into(
                gas, length.copy(), length, np.full(30, skeleton), limits, acting, stiffness
            )
            moving.settle(acting, stiffness)
            length = moving.muscle_lengths()
        tips.append(moving.section_tips()[0][:3, 3])
        if n == 40:
            np.testing.assert_allclose(moving.state.tension, rods[1].tensions, atol=0.02)
    errors = np.linalg.norm(np.array(tips) - tip, axis=1)
    assert errors[0] < 5e-3
    np.testing.assert_allclose(errors[:2] / errors[1:], 4.0, atol=0.4)
    assert np.linalg.norm(tips[2] + (tips[2] - tips[1]) / 3.0 - tip) < 2e-5


def test_extensible_rod_hangs_lower_by_its_strain():
    moving = backbone(40, load=0.5)
    moving.settle(np.full(30, 0.1), np.full(30, SLACK))
    area = math.pi * ROD.diameter_m**2 / 4.0
    weight = 9.81 * ROD.mass_per_length_kg_m
    stretch = (0.5 * 9.81 + 0.5 * weight) / (ROD.youngs_modulus_Pa * area)
    # Lumped weights: exact at the nodes.
    assert moving.section_tips()[0][2, 3] - 1.0 == pytest.approx(stretch, abs=1e-9)


def test_intervals_that_are_no_multiple_of_the_modules_are_refused():
    with pytest.raises(ValueError, match=r'intervals = 25 .* modules = 10'):
        backbone(25)


def test_error_of_a_folded_arm_names_the_interval():
    moving = backbone(10)
    moving.settle(np.tile([0.06, 0.1, 0.1], 10), np.full(30, 5e4))
    with pytest.raises(PlantError, match=r'interval 1 of module'):
        moving.settle(np.tile([0.02, 0.12, 0.12], 10), np.full(30, 5e5))


# -- in motion: closed forms ------------------------------------------------------------------


def free(n, bending, density, gravity=(0.0, 0.0, 0.0), damping=0.0):
    """Return a rod of 1 m without muscles."""
    modulus = bending / (math.pi * ROD.diameter_m**4 / 64.0)
    rod = {
        'youngs_modulus_Pa': modulus,
        'shear_modulus_Pa': 0.5 * modulus,
        'mass_per_length_kg_m': density,
    }
    moving = backbone(
        n, 1, gravity, rod=rod, backbone_damping_time_s=damping, gyration_radius_m=1e-4
    )
    stiffness = moving.body.stiffness.copy()
    stiffness[:, 2] = 1e6 * n
    moving.body = moving.body._replace(stiffness=stiffness)
    return moving


def push(moving, velocity):
    """Give the bodies roughly the velocities (n,) along x, by turning the joints about y."""
    slope = np.diff(np.concatenate([[0.0], velocity])) * len(velocity)
    turning = 0.5 * (slope + np.append(slope[1:], slope[-1]))
    moving.state.velocity[:, 1] = np.diff(np.concatenate([[0.0], turning]))


def frequency_and_decay(x, h):
    """Return frequency [Hz] and damping ratio of an oscillation, from zero crossings and peaks."""
    up = np.flatnonzero((x[:-1] < 0.0) & (x[1:] >= 0.0))
    times = h * (up + x[up] / (x[up] - x[up + 1]))
    peaks = [np.max(x[a:b]) for a, b in pairwise(up)]
    decrement = np.log(peaks[0] / peaks[-1]) / (len(peaks) - 1)
    return (len(times) - 1) / (times[-1] - times[0]), decrement / (2.0 * math.pi)


def swing(moving, h, seconds):
    tips = []
    for _ in range(round(seconds / h)):
        moving.advance(np.full(3, 1.0), np.full(3, SLACK), h)
        tips.append(moving.section_tips()[0][0, 3])
    return np.array(tips)


def cantilever_mode(n):
    s = np.arange(1, n + 1) / n
    b = 1.8751040687
    ratio = (math.cosh(b) + math.cos(b)) / (math.sinh(b) + math.sin(b))
    return (np.cosh(b * s) - np.cos(b * s) - ratio * (np.sinh(b * s) - np.sin(b * s))) / 2.0


def test_cantilever_oscillates_at_its_first_frequency():
    bending, density = 0.5, 0.4
    expected = 1.8751040687**2 * math.sqrt(bending / density) / (2.0 * math.pi)
    moving = free(20, bending, density)
    push(moving, 1e-2 * cantilever_mode(20))
    frequency, ratio = frequency_and_decay(swing(moving, 2e-3, 6.0), 2e-3)
    assert frequency == pytest.approx(expected, rel=0.01)
    # The implicit step alone damps by omega h / 2.
    assert ratio == pytest.approx(math.pi * expected * 2e-3, rel=0.05)


def test_strain_damping_matches_kelvin_voigt():
    bending, density, time = 0.5, 0.4, 0.02
    omega = 1.8751040687**2 * math.sqrt(bending / density)
    moving = free(10, bending, density, damping=time)
    push(moving, 1e-2 * cantilever_mode(10))
    _, ratio = frequency_and_decay(swing(moving, 1e-3, 8.0), 1e-3)
    assert ratio == pytest.approx(0.5 * omega * (time + 1e-3), rel=0.02)


def test_limp_rod_swings_like_a_hanging_chain():
    expected = 0.5 * 2.404825558 * math.sqrt(9.81) / (2.0 * math.pi)
    s = np.arange(1, 21) / 20
    j0 = np.array([_bessel0(2.404825558 * math.sqrt(1.0 - x)) for x in s])
    moving = free(20, 1e-4, 0.4, gravity=(0.0, 0.0, 9.81), damping=0.2)
    push(moving, 1e-2 * j0)
    frequency, _ = frequency_and_decay(swing(moving, 2e-3, 12.0), 2e-3)
    assert frequency == pytest.approx(expected, rel=0.015)


def _bessel0(x):
    angle = (np.arange(400) + 0.5) * math.pi / 400
    return float(np.mean(np.cos(x * np.sin(angle))))


def energy(moving):
    phi = np.array([log_of_quaternion(q)[:3] for q in moving.state.quaternion])
    strain = np.column_stack([phi[:, 0] ** 2 + phi[:, 1] ** 2, phi[:, 2] ** 2])
    strain = np.column_stack([strain, moving.state.extension**2])
    elastic = 0.5 * float(np.sum(moving.body.stiffness * strain))
    kinetic = moving.kinetic_energy()
    heights = moving.scratch.origin[1:] @ moving.body.gravity
    return kinetic + elastic - float(moving.body.mass @ heights)


def test_free_swing_loses_energy_and_never_exceeds_its_initial_energy():
    moving = free(10, 0.1, 0.4, gravity=(0.0, 0.0, 9.81), damping=0.01)
    push(moving, np.linspace(0.1, 2.0, 10))
    moving.state.velocity[:, 0] = 0.05
    energies = [energy(moving)]
    for _ in range(800):
        moving.advance(np.full(3, 1.0), np.full(3, SLACK), 2.5e-3)
        energies.append(energy(moving))
    assert np.max(energies) == energies[0]
    # Weight forces are taken at the start of a step: the resulting gain of energy stays small.
    assert np.diff(energies).max() < 1e-3 * (energies[0] - energies[-1])
    assert energies[-1] < energies[0] - 0.01


def test_air_drag_slows_a_rotation_at_the_drag_rate():
    moving = backbone(20, drag_rate_1_s=0.8, gravity=(0.0, 0.0, 0.0))
    moving.state.velocity[0, 2] = 3.0  # the whole arm turns about its axis on a free base
    stiffness = moving.body.stiffness.copy()
    stiffness[0, 1] = 1e-12
    moving.body = moving.body._replace(stiffness=stiffness)
    moving.advance(np.full(30, 0.1), np.full(30, SLACK), 1e-3, 1000)
    assert moving.state.velocity[0, 2] == pytest.approx(3.0 * math.exp(-0.8), rel=1e-3)


# -- muscles in motion ------------------------------------------------------------------------


def test_time_steps_end_in_the_settled_equilibrium():
    modules = ParallelModulesConfig(muscle_stiffness_N_m=5e4)
    lengths = MinimumEnergyArm(ROD, modules, 20).inverse(TARGETS[0]).actuation
    settled, moved = backbone(20), backbone(20, drag_rate_1_s=5.0)
    settled.settle(lengths, np.full(30, 5e4))
    moved.advance(lengths, np.full(30, 5e4), 0.01, 1500)
    np.testing.assert_allclose(moved.section_tips()[0], settled.section_tips()[0], atol=1e-7)
    np.testing.assert_allclose(moved.muscle_lengths(), settled.muscle_lengths(), atol=1e-8)


def test_module_stretches_at_the_frequency_of_its_rod_and_springs():
    moving = backbone(
        4, 1, (0.0, 0.0, 0.0), muscle_damping_time_s=0.0, backbone_damping_time_s=0.0
    )
    stiffness = moving.body.stiffness.copy()
    stiffness[:, 2] = 4.0 * 100.0  # four intervals in a row
    mass = np.array([1e-6, 1e-6, 1e-6, 0.4])
    moving.body = moving.body._replace(stiffness=stiffness, mass=mass)
    spring, h = 200.0, 1e-4
    moving.state.velocity[:, 3] = 1e-3
    lengths = []
    for _ in range(10000):
        moving.advance(np.full(3, 1.0), np.full(3, spring), h)
        lengths.append(moving.section_tips()[0][2, 3] - 1.0)
    frequency, _ = frequency_and_decay(np.array(lengths), h)
    expected = math.sqrt((100.0 + 3.0 * spring) / mass[-1]) / (2.0 * math.pi)
    assert frequency == pytest.approx(expected, rel=2e-3)
