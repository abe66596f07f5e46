"""The simulated water-hydraulic arm: rest, motion, friction, fabric, water."""

import numpy as np
import pytest
from hydraulic_cases import (
    CHAMBERS,
    GRAVITY,
    LOSSES,
    PRELOAD,
    RATIO,
    SECTION,
    SWING,
    config,
    plant,
    ramp,
    statics,
    world_of,
)

from softarm_ros.models.dynamics.tangents import equilibrium
from softarm_ros.models.hydraulics.arm import HydraulicArm
from softarm_ros.models.hydraulics.axes import WaterHydraulics
from softarm_ros.models.hydraulics.section_config import (
    Surroundings,
)
from softarm_ros.models.hydraulics.sections import chamber_drive
from softarm_ros.models.hydrodynamics.arm_in_water import ArmInWater
from softarm_ros.models.hydrodynamics.config import WaterConfig
from softarm_ros.plant.errors import PlantError
from softarm_ros.plant.fluid import Fluid
from softarm_ros.plant.hydraulic.body import HydraulicBody
from softarm_ros.plant.hydraulic.config import (
    FabricConfig,
)
from softarm_ros.plant.hydraulic.fabric import fabric_stops
from softarm_ros.plant.hydraulic.fabric_kernels import follow_bends
from softarm_ros.plant.hydraulic.hydraulic_plant import plant_axes
from softarm_ros.plant.world import World

# -- rest, repeatability, commands ------------------------------------------------------------


def test_arm_starts_at_rest_under_the_preload_and_stays_there():
    arm = plant()
    before = arm.true_section_tips()
    np.testing.assert_allclose(arm.drives.true_pressures(), PRELOAD, rtol=1e-9)
    arm.step(np.full(6, PRELOAD), 1.0)
    np.testing.assert_allclose(arm.true_section_tips(), before, atol=1e-7)
    assert arm.time_s == 1.0


def test_same_seed_gives_the_same_run_for_any_division_into_steps():
    runs = []
    for seed, cuts in ((3, 1), (3, 5), (4, 1)):
        arm = plant(
            seed,
            friction=25.0,
            gain=3.0,
            pressure_sensor={'noise_Pa': 1000.0, 'offset_Pa': 2500.0, 'step_Pa': 98.0},
        )
        for _ in range(25):
            for _ in range(cuts):
                arm.step(SWING, 0.02 / cuts)
        runs.append((arm.true_section_tips(), arm.chamber_pressures(), arm.poll_poses()))
    np.testing.assert_allclose(runs[0][0], runs[1][0], atol=1e-12)
    np.testing.assert_array_equal(runs[0][1], runs[1][1])
    assert len(runs[0][2]) == len(runs[1][2]) > 20
    np.testing.assert_allclose(
        runs[0][2][-1].section_tips, runs[1][2][-1].section_tips, atol=1e-12
    )
    assert np.abs(runs[0][0] - runs[2][0]).max() > 1e-6


@pytest.mark.parametrize(
    ('command', 'duration', 'message'),
    [
        (np.zeros(5), 0.1, r'shape \(5,\)'),
        ([1e5, 1e5, np.nan, 1e5, 1e5, 1e5], 0.1, 'c3'),
        (np.zeros(6), 0.0, 'duration_s'),
        (np.zeros(6), np.inf, 'duration_s'),
    ],
)
def test_bad_commands_are_refused_and_nothing_moves(command, duration, message):
    arm = plant()
    before = arm.true_section_tips()
    with pytest.raises(ValueError, match=message):
        arm.step(command, duration)
    assert arm.time_s == 0.0
    np.testing.assert_array_equal(arm.true_section_tips(), before)


def test_hold_keeps_torques_and_the_arm_comes_to_rest():
    arm = plant(friction=25.0, gain=3.0)
    for _ in range(25):
        arm.step(SWING, 0.02)
    arm.hold()
    torque = arm.actuator_state().effort
    arm.step(None, 2.0)
    np.testing.assert_array_equal(arm.actuator_state().effort, torque)
    np.testing.assert_array_equal(arm.actuator_state().velocity, 0.0)
    before = arm.true_section_tips()
    arm.step(None, 0.5)
    np.testing.assert_allclose(arm.true_section_tips(), before, atol=1e-5)


# -- equilibrium ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'surroundings',
    [
        Surroundings(GRAVITY),
        Surroundings(GRAVITY, 0.0, 0.15),
        Surroundings(GRAVITY, 998.0, 0.15),
    ],
    ids=['air', 'payload', 'water'],
)
def test_chain_and_statics_of_segments_have_the_same_limit(surroundings):
    gaps, tips = [], []
    for n in (5, 10, 20):
        arm = plant(surroundings=surroundings, segments_per_section=n)
        arm.body.settle(SWING)
        tips.append(arm.true_section_tips())
        wanted = statics(surroundings, n).forward(SWING)
        gaps.append(np.abs(tips[-1] - wanted.section_tips).max())
    # Both lump the weight at the segment ends, with an error of 1 / n; they differ by 1 / n^2.
    np.testing.assert_allclose(np.divide(gaps[:2], gaps[1:]), 4.0, rtol=0.15)
    assert gaps[-1] < 2e-4
    assert np.abs(tips[2] - tips[1]).max() < 0.6 * np.abs(tips[1] - tips[0]).max()


@pytest.mark.parametrize(
    'surroundings',
    [Surroundings(GRAVITY, 0.0, 0.15), Surroundings(GRAVITY, 998.0, 0.15)],
    ids=['air', 'water'],
)
def test_plate_mass_acts_at_the_section_end_as_in_the_statics(
    surroundings,
):
    gaps = []
    for n in (5, 10, 20):
        arm = plant(
            surroundings=surroundings,
            segments_per_section=n,
            sections=[{**SECTION, **LOSSES, 'plate_mass_kg': 0.06}] * 2,
        )
        assert arm.body.body.mass.sum() == pytest.approx(
            2 * 0.35 - 0.29 / n / 2 + surroundings.tip_load_kg  # less half a segment's at the base
        )
        arm.body.settle(SWING)
        wanted = statics(surroundings, n, plate_mass_kg=0.06).forward(SWING)
        gaps.append(np.abs(arm.true_section_tips() - wanted.section_tips).max())
    np.testing.assert_allclose(np.divide(gaps[:2], gaps[1:]), 4.0, rtol=0.15)
    assert gaps[-1] < 2e-4


@pytest.mark.parametrize(
    'surroundings',
    [Surroundings(GRAVITY, 0.0, 0.15), Surroundings(GRAVITY, 998.0, 0.15)],
    ids=['air', 'water'],
)
def test_motion_without_errors_and_friction_ends_in_the_static_equilibrium(surroundings):
    arm = plant(surroundings=surroundings)
    ramp(arm, SWING, 2.0)
    arm.step(SWING, 5.0)
    np.testing.assert_allclose(arm.drives.true_pressures(), SWING, rtol=1e-4)
    still = plant(surroundings=surroundings)
    still.body.settle(arm.drives.true_pressures())
    np.testing.assert_allclose(arm.true_section_tips(), still.true_section_tips(), atol=2e-4)
    points = arm.true_centerline(9)
    np.testing.assert_allclose(points, still.true_centerline(9), atol=2e-4)


def test_tilt_of_the_base_turns_the_arm_but_not_gravity():
    level, tilted = plant(), plant(base_tilt_deg=(0.0, 2.0))
    tip, moved = level.true_section_tips()[-1], tilted.true_section_tips()[-1]
    shift = moved[:3, 3] - tip[:3, 3]
    # The arm points away by 2 deg, and hangs back towards the vertical.
    assert 0.0 < shift[0] < 0.794 * np.radians(2.0)
    assert abs(shift[1]) < 1e-6
    base = tilted.true_centerline(2)[0]
    np.testing.assert_allclose(base, 0.0, atol=1e-12)


def test_seals_hold_the_arm_until_the_breakaway_force():
    arm = plant(friction=25.0)
    before = arm.true_section_tips()
    band = 1.4 * 25.0 / (0.25 * np.pi * 0.04**2)
    arm.step(np.full(6, PRELOAD) + 0.9 * band * np.eye(6)[1], 1.0)
    np.testing.assert_allclose(arm.true_section_tips(), before, atol=1e-6)
    arm.step(np.full(6, PRELOAD) + 1.5 * band * np.eye(6)[1], 1.0)
    assert np.linalg.norm((arm.true_section_tips() - before)[-1, :3, 3]) > 2e-3


def test_pressure_loop_reduces_the_hysteresis_of_friction():
    gaps = {}
    for gain in (0.0, 3.0):
        arm = plant(friction=25.0, gain=gain)
        ramp(arm, SWING)
        arm.step(SWING, 1.0)
        up = arm.drives.true_pressures()[0]
        over = SWING + 1e5 * np.eye(6)[0]
        ramp(arm, over, 1.0, SWING)
        ramp(arm, SWING, 1.0, over)
        arm.step(SWING, 1.0)
        gaps[gain] = arm.drives.true_pressures()[0] - up
    seals = 25.0 / (0.25 * np.pi * 0.04**2)
    # Upward and downward motion end on opposite sides, each at most the sliding friction away.
    assert 0.8 * seals < gaps[0.0] <= 2.05 * seals
    assert gaps[3.0] < 0.4 * gaps[0.0]


def test_pressure_loop_reduces_the_pressure_error_of_a_wrong_efficiency():
    factors = [0.95] + [1.0] * 5
    errors = {}
    for gain in (0.0, 4.0):
        arm = plant(gain=gain, efficiency_factors=factors)
        ramp(arm, SWING, 2.0)
        arm.step(SWING, 3.0)
        errors[gain] = arm.drives.true_pressures()[0] / SWING[0] - 1.0
    assert errors[0.0] == pytest.approx(-0.05, rel=1e-3)
    # 0.95 (p + 4 (p - x)) = x
    assert errors[4.0] == pytest.approx(0.95 * 5.0 / (1.0 + 0.95 * 4.0) - 1.0, rel=2e-2)


def test_water_slows_the_swing_by_drag_and_added_mass():
    bodies = [{**SECTION, **LOSSES, 'displaced_volume_m3': 0.0}] * 2  # no buoyancy
    nothing = {
        'drag_across': 0.0, 'drag_along': 0.0, 'added_mass_across': 0.0, 'added_mass_along': 0.0,
    }  # fmt: skip
    tips = []
    for fluid in (None, Fluid(WaterConfig(**nothing)), Fluid(WaterConfig())):
        arm = plant(world=World(GRAVITY, fluid), sections=bodies)
        before = arm.true_section_tips()[-1, :3, 3]
        for _ in range(5):
            arm.step(SWING, 0.02)
        tips.append(arm.true_section_tips()[-1, :3, 3] - before)
    np.testing.assert_allclose(tips[1], tips[0], atol=1e-9)
    assert np.linalg.norm(tips[2]) < 0.95 * np.linalg.norm(tips[0])


def test_boiling_water_raises_an_error():
    arm = plant(preload=0.0)
    with pytest.raises(PlantError, match='boils'):
        for _ in range(50):
            arm.step([1e6, 0.0, 0.0, 0.0, 0.0, 0.0], 0.02)


def test_fabric_stiffens_small_bends_and_yields_with_hysteresis():
    settings = FabricConfig(stiffness_share=0.1, yield_bend_deg=20.0)
    sections = config().sections
    own = SECTION['bending_stiffness_N_m2'] / SECTION['length_m']
    stops = fabric_stops(settings, sections, np.array([[0.2, 0.0], [0.0, -0.1]]))

    def moments_against(bends):
        moment = np.zeros((2, 3))
        follow_bends(stops, np.array(bends), moment)
        return -moment[:, :2]

    small = moments_against([[0.21, 0.0], [0.0, -0.1]])
    np.testing.assert_allclose(small, [[0.1 * own * 0.01, 0.0], [0.0, 0.0]], atol=1e-12)
    # All stops yield: eight of them, spread evenly up to 20 deg, hold the mean threshold.
    far = moments_against([[1.2, 0.0], [0.0, 1.0]])
    held = 0.1 * own * np.radians(20.0) * 9.0 / 16.0
    np.testing.assert_allclose(far, [[held, 0.0], [0.0, held]], atol=1e-12)
    back = moments_against([[0.2, 0.0], [0.0, -0.1]])
    np.testing.assert_allclose(back, [[-held, 0.0], [0.0, -held]], atol=1e-12)


def test_fabric_causes_hysteresis_of_the_tip():
    ends = []
    for share in (0.0, 0.08):
        arm = plant(fabric={'stiffness_share': share})
        far = SWING + 1e5 * np.eye(6)[0]
        stops = []
        for start, to in ((np.full(6, PRELOAD), SWING), (SWING, far), (far, SWING)):
            ramp(arm, to, 2.0, start)
            arm.step(to, 3.0)
            stops.append(arm.true_section_tips()[-1, :3, 3])
        ends.append(np.linalg.norm(stops[2] - stops[0]))
    assert ends[1] > 1e-3 and ends[1] > 5.0 * ends[0]


# -- in motion: another formulation of the same arm -------------------------------------------


@pytest.mark.parametrize('density', [0.0, 998.0], ids=['air', 'water'])
def test_motion_matches_the_dynamics_in_strains(density):
    settings, surroundings = config(segments_per_section=5), Surroundings(GRAVITY, density, 0.1)
    axes = WaterHydraulics(plant_axes(settings, CHAMBERS))
    losses = [section.damping for section in settings.sections]
    oracle = HydraulicArm(
        chamber_drive(settings.sections, CHAMBERS, 5, surroundings, losses), axes
    )
    loads = oracle.arm.loads(GRAVITY)
    water = ArmInWater(oracle.arm, WaterConfig(), 0.04) if density else None
    rest = np.full(6, PRELOAD)
    start = equilibrium(oracle.arm, loads._replace(drive=oracle.drive.drive(rest))).strains
    known = oracle.rest_state(start)
    axes.fill(known.axes, rest, oracle.drive.volume_change(start))
    bodies = []
    for _ in range(2):
        body = HydraulicBody(
            settings, CHAMBERS, world_of(surroundings), WaterHydraulics(axes.axes)
        )
        body.settle(rest)
        bodies.append(body)
    gaps, way = [], []
    first = bodies[0].section_tips()[-1, :3, 3]
    for k in range(500):
        torque = RATIO * (SWING if k < 250 else np.roll(SWING, 1))
        wet = loads if water is None else water.immersed(loads, known.strains, known.rates)
        known = oracle.step(known, torque, 0.002, wet).state
        tip = oracle.arm.node_poses(known.strains)[-1, :3, 3]
        for body, parts in zip(bodies, (2, 8)):
            for _ in range(parts):
                body.advance(axes.force_per_torque * torque, 0.002 / parts)
        gaps.append([np.linalg.norm(b.section_tips()[-1, :3, 3] - tip) for b in bodies])
        way.append(np.linalg.norm(tip - first))
    # The steps of the chain are of first order; the rest comes from the segments of both models.
    worst = np.max(gaps, axis=0)
    assert worst[1] < 0.5 * worst[0] < 5e-4
    assert max(way) > 0.1
