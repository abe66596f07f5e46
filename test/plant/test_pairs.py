"""Pairs of cables on one motor, cables that pass sections off-centre, delayed commands."""

import numpy as np
import pytest
from plant_cases import GRAVITY, LENGTH, RADIUS, SECTION, WEIGHTLESS, plant_config, ring

from softarm_ros.models.cable_driven.bending import configuration_of_tips
from softarm_ros.plant.arm_plant import ArmPlant
from softarm_ros.plant.body_kernels import place_bodies
from softarm_ros.plant.cable_kernels import measure_cables
from softarm_ros.plant.config import PlantCable
from softarm_ros.plant.joint_kernels import turn
from softarm_ros.plant.packing import pack_wiring
from softarm_ros.plant.soft_arm import SoftArm

PASSING = 0.008
ANGLES = (0.3, 0.3 + 0.5 * np.pi)


def pairs(sections=1):
    """Return two pairs per section, each wound by one motor."""
    cables = []
    for k in range(sections):
        for angle in ANGLES:
            motor = len(cables) // 2
            cables.append(PlantCable(k, angle, motor))
            cables.append(PlantCable(k, angle + np.pi, motor, -1.0))
    return cables


def stiff_sections(passing_m=PASSING):
    """Return two sections whose cables hardly stretch or cut in."""
    section = SECTION | {'cutting_in_stiffness_N_m2': 1e6, 'axial_stiffness_N': 2e4}
    return [section | {'passing_radius_m': passing_m}, section]


def stiff_config(passing_m=PASSING, **fields):
    return plant_config(
        stiff_sections(passing_m), cable_axial_stiffness_N=3e4, segments_per_section=6, **fields
    )


def run(plant, command, seconds=1.5):
    for _ in range(round(seconds / 0.05)):
        plant.step(command, 0.05)
    return plant


# -- wiring ---------------------------------------------------------------------------------


def test_pair_acts_like_two_cables_moved_in_opposite_directions():
    config = plant_config(1, stepper={'backlash_m': 0.0})
    paired = run(ArmPlant(config, pairs(), GRAVITY), [0.004, -0.002])
    single = [PlantCable(c.section_index, c.angle_rad) for c in pairs()]
    apart = run(ArmPlant(config, single, GRAVITY), [0.004, -0.004, -0.002, 0.002])
    np.testing.assert_array_equal(paired.true_section_tips(), apart.true_section_tips())
    pull = apart.actuator_state().effort
    np.testing.assert_allclose(
        paired.actuator_state().effort, [pull[0] - pull[1], pull[2] - pull[3]], atol=1e-12
    )
    np.testing.assert_array_equal(
        paired.actuator_state().position, apart.actuator_state().position[[0, 2]]
    )


def test_offsets_and_pretension_are_wound_up_before_the_start():
    config = plant_config(1, pair_pretension_m=0.001, zero_offset_m=(0.003, -0.002))
    wiring = pack_wiring(config, pairs())
    np.testing.assert_allclose(wiring.offset, [0.004, -0.002, -0.001, 0.003])
    at_zero = run(ArmPlant(config, pairs(), GRAVITY), np.zeros(2))
    np.testing.assert_array_equal(at_zero.actuator_state().position, 0.0)
    steps = {'backlash_m': 0.0, 'step_m': 1e-6}
    plain = plant_config(1, pair_pretension_m=0.001, stepper=steps)
    driven = run(ArmPlant(plain, pairs(), GRAVITY), [0.003, -0.002], 4.0)
    np.testing.assert_allclose(at_zero.true_section_tips(), driven.true_section_tips(), atol=2e-5)


def test_pretension_keeps_both_cables_taut():
    for pretension, taut in ((0.0, False), (0.002, True)):
        config = stiff_config(pair_pretension_m=pretension)
        plant = run(ArmPlant(config, pairs(2), GRAVITY), [0.002, 0.0, 0.0, 0.001])
        tension = plant.drives.static_equilibrium().tension
        assert bool(np.all(tension > 0.0)) == taut, tension


def test_single_cables_have_their_own_motors_and_no_offset():
    wiring = pack_wiring(plant_config(2), ring(2))
    np.testing.assert_array_equal(wiring.motor, np.arange(6))
    np.testing.assert_array_equal(wiring.sign, 1.0)
    np.testing.assert_array_equal(wiring.offset, 0.0)


@pytest.mark.parametrize(
    ('cables', 'fields', 'message'),
    [
        ([PlantCable(0, 0.0, 0), PlantCable(0, 2.0, 2)], {}, 'expected 0 to 1'),
        (pairs(), {'zero_offset_m': (0.1,)}, 'zero_offset_m has 1 values; expected 2'),
    ],
)
def test_invalid_wiring_is_refused(cables, fields, message):
    with pytest.raises(ValueError, match=message):
        ArmPlant(plant_config(1, **fields), cables, GRAVITY)


def test_command_of_the_wrong_size_is_refused_and_nothing_moves():
    plant = ArmPlant(plant_config(1), pairs(), GRAVITY)
    before = plant.true_section_tips()
    with pytest.raises(ValueError, match=r'shape \(4,\), expected \(2,\)'):
        plant.step(np.zeros(4), 0.05)
    assert plant.time_s == 0.0
    np.testing.assert_array_equal(plant.true_section_tips(), before)


# -- passing off-centre ---------------------------------------------------------------------


def bent(arm, seed):
    """Bend, twist and stretch every joint of an arm by random amounts."""
    rng = np.random.default_rng(seed)
    for quaternion in arm.state.quaternion:
        turn(quaternion, *rng.uniform(-0.15, 0.15, 3))
    arm.state.extension[:] = rng.uniform(-0.001, 0.001, len(arm.state.extension))
    return arm


@pytest.mark.parametrize('seed', range(3))
def test_gradient_of_the_length_of_a_passing_cable_equals_differences(seed):
    arm = bent(SoftArm(stiff_config(), pairs(2), WEIGHTLESS), seed)
    arm.cable_lengths()
    place_bodies(arm.body, arm.state, arm.scratch)
    measure_cables(arm.body, arm.cables, arm.state, arm.scratch)
    gradient = arm.scratch.gradient.copy()
    step = 1e-6
    for joint in range(12):
        for axis in range(4):
            lengths = []
            for side in (1.0, -1.0):
                moved = arm.copy()
                if axis < 3:
                    turn(moved.state.quaternion[joint], *(side * step * np.eye(3)[axis]))
                else:
                    moved.state.extension[joint] += side * step
                lengths.append(moved.cable_lengths())
            np.testing.assert_allclose(
                gradient[:, joint, axis], (lengths[0] - lengths[1]) / (2.0 * step), atol=1e-9
            )


def test_length_of_a_passing_cable_matches_the_closed_form():
    arm = SoftArm(stiff_config(), pairs(2), WEIGHTLESS)
    angle = 0.04
    for quaternion in arm.state.quaternion[:6]:  # the first section bends towards its x axis
        turn(quaternion, 0.0, angle, 0.0)
    shorter = arm.rest_lengths() - arm.cable_lengths()
    for cable, change in zip(pairs(2), shorter):
        radius = RADIUS if cable.section_index == 0 else PASSING
        assert change == pytest.approx(6 * angle * radius * np.cos(cable.angle_rad), abs=1e-9)


@pytest.mark.parametrize('passing', [0.0, PASSING])
def test_tip_turns_back_when_the_base_bends_under_passing_cables(passing):
    """
    Inextensible cables: r b_1 = c_1 and r_p b_1 + r b_2 = c_2, whatever the stiffnesses.

    The motors of the tip stand still; its cables pass off-centre and turn the tip back by r_p / r.
    """
    config = stiff_config(passing, pair_pretension_m=0.001, stepper={'backlash_m': 0.0})
    plant = ArmPlant(config, pairs(2), WEIGHTLESS)
    contraction = np.array([0.005, 0.002, 0.0, 0.0])
    wound = np.repeat(contraction, 2) * np.tile([1.0, -1.0], 4) + 0.001
    bends = configuration_of_tips(plant.drives.static_equilibrium(contraction=wound).section_tips)
    turned = np.array([[np.cos(a), np.sin(a)] for a in ANGLES])
    base = np.linalg.solve(turned, contraction[:2]) / RADIUS
    np.testing.assert_allclose(bends[:2], base, rtol=0.02)
    np.testing.assert_allclose(bends[2:], -passing / RADIUS * base, atol=0.02 * np.abs(base).max())


def test_vanishing_passing_radius_gives_the_lengths_of_central_cables():
    near = SoftArm(stiff_config(1e-9), pairs(2), WEIGHTLESS)
    centre = SoftArm(stiff_config(0.0), pairs(2), WEIGHTLESS)
    for arm in (near, centre):
        bent(arm, 5)
    # A chord through the middle has the arc of the centreline.
    np.testing.assert_allclose(near.cable_lengths(), centre.cable_lengths(), atol=1e-9)
    assert centre.rest_lengths()[-1] == pytest.approx(2.0 * LENGTH)


# -- delayed commands -----------------------------------------------------------------------


def test_motors_start_after_the_delay():
    config = plant_config(1, stepper={'delay_s': 0.2, 'backlash_m': 0.0})
    plant = ArmPlant(config, pairs(), GRAVITY)
    moved = []
    for _ in range(40):
        plant.step([0.004, 0.0], 0.01)
        moved.append(plant.actuator_state().position[0] != 0.0)
    assert not any(moved[:20])
    assert moved[22]  # the first step of 0.03 mm takes 17 ms at 0.1 m/s^2


def test_delayed_motion_is_the_same_motion_shifted_in_time():
    commands = 0.004 * np.sin(np.linspace(0.0, 3.0, 60))

    def positions(delay):
        config = plant_config(1, stepper={'delay_s': delay})
        plant = ArmPlant(config, pairs(), GRAVITY)
        found = []
        for k in range(80):
            plant.step([commands[min(k, 59)], 0.0], 0.01)
            found.append(plant.actuator_state().position[0])
        return np.array(found)

    np.testing.assert_allclose(positions(0.1)[10:], positions(0.0)[:-10], atol=1e-12)


def test_hold_discards_delayed_commands():
    config = plant_config(1, stepper={'delay_s': 0.2})
    plant = ArmPlant(config, pairs(), GRAVITY)
    plant.step([0.004, 0.0], 0.05)
    plant.hold()
    for _ in range(20):
        plant.step(None, 0.05)
    np.testing.assert_array_equal(plant.actuator_state().position, 0.0)
