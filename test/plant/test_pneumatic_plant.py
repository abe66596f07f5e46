"""The simulated pneumatic arm: chambers, body, loads on the base, water."""

import math

import numpy as np
import pytest
from pneumatic_cases import CONFIG, TARGET, plant

from softarm_ros.models.hydrodynamics.config import WaterConfig
from softarm_ros.models.pneumatic.angle_correction import PneumaticArm
from softarm_ros.models.pneumatic.chambers import bend_of_chambers
from softarm_ros.models.pneumatic.config import ChamberSectionConfig, placeholder_curve
from softarm_ros.plant.fluid import Fluid
from softarm_ros.plant.hysteresis import HysteresisConfig, KelvinVoigtCreep, PrandtlIshlinskii
from softarm_ros.plant.plant import BaseWrench, ChamberPressures, Gripping
from softarm_ros.plant.pneumatic.body import PneumaticBody
from softarm_ros.plant.pneumatic.chamber_kernels import follow_pressures
from softarm_ros.plant.pneumatic.chambers import PlantChambers
from softarm_ros.plant.pneumatic.gripper import GrippedObject

BARE = CONFIG.model_copy(update={'gripper': None, 'wrench_sensor': None})
FEATHER = CONFIG.gripper.model_copy(update={'mass_kg': 0.0, 'length_m': 1e-3})  # 0.1 g

# -- chambers and body ------------------------------------------------------------------------


def test_settled_filling_meets_the_curve_and_emptying_stays_above_filling():
    section = CONFIG.sections[0]
    chambers = PlantChambers([section], CONFIG.hysteresis)
    full = np.full((1, 3), section.full_pressure_Pa)
    np.testing.assert_allclose(chambers.settle(full)[0], section.extension_m, rtol=1e-12)
    going = PlantChambers([section], CONFIG.hysteresis)
    up = [going.advance(np.full((1, 3), p), 1e-3)[0, 0] for p in np.linspace(0.0, 9e4, 91)]
    down = [going.advance(np.full((1, 3), p), 1e-3)[0, 0] for p in np.linspace(9e4, 0.0, 91)]
    width = np.array(down[::-1]) - np.array(up)
    assert np.all(width[1:-1] > 0.0)
    assert 0.005 < width.max() / section.extension_m[0] < 0.05


def test_chamber_hysteresis_is_the_inverse_of_prandtl_ishlinskii():
    law = HysteresisConfig(stiffness=1.0, lost_share=0.4, saturation=0.5, stops=6)
    element = PrandtlIshlinskii(law)
    share, stops = np.zeros(1), np.zeros((1, 6))
    rng = np.random.default_rng(0)
    for pressure in rng.uniform(0.0, 1.5, 200):
        args = (element.elastic, element.thresholds, element.weights)
        follow_pressures(np.array([pressure]), *args, share, stops)
        assert element.step(float(share[0])).output == pytest.approx(pressure, abs=1e-9)
        assert element.stored >= 0.0


def test_chamber_creep_matches_the_kelvin_voigt_element():
    section, law = CONFIG.sections[0], CONFIG.hysteresis
    chambers = PlantChambers([section], law)
    creep = KelvinVoigtCreep(law.creep)
    scale = chambers.arrays.scale[0]
    for pressure in (3e4, 3e4, 8e4, 1e4):
        chambers.advance(np.full((1, 3), pressure), 0.7)
        crept = creep.step(float(chambers.arrays.share[0, 0]), 0.7)
        np.testing.assert_allclose(chambers.arrays.output[0], scale * crept, rtol=1e-13)


def free_strain(section, extensions):
    """Return the strain by chamber extensions (3,) [m] in the closed form of the paper."""
    angles = np.radians([90.0, 210.0, 330.0])
    x, y = np.cos(angles) @ extensions, np.sin(angles) @ extensions
    lever = 2.0 / (3.0 * section.chamber_radius_m)
    strain = np.array([lever * y, -lever * x, 0.0, np.mean(extensions)])
    return strain / section.bending_length_m


def test_free_strains_of_chambers_match_the_closed_form():
    chambers = PlantChambers(CONFIG.sections, CONFIG.hysteresis)
    extensions = chambers.settle(TARGET.reshape(2, 3))
    for section, extension, free in zip(CONFIG.sections, extensions, chambers.free_strains()):
        straight = section.model_copy(update={'turn_deg': 0.0})
        turn = math.radians(section.turn_deg)
        turned = free.copy()
        turned[:2] = free[:2] @ [
            [math.cos(turn), -math.sin(turn)],
            [math.sin(turn), math.cos(turn)],
        ]
        np.testing.assert_allclose(turned, free_strain(straight, extension), atol=1e-12)


def test_weightless_body_matches_the_constant_curvature_arm():
    section = CONFIG.sections[0].model_copy(update={'turn_deg': 0.0})
    config = CONFIG.model_copy(update={'sections': (section, section)})
    body = PneumaticBody(config, (0.0, 0.0, 0.0), None, 0.0)
    e = np.array([[0.004, 0.020, 0.010], [0.018, 0.0, 0.007]])
    tips = body.section_tips_at_rest(np.array([free_strain(section, row) for row in e]))
    known = [ChamberSectionConfig(name=n, curves=(placeholder_curve(),)) for n in ('a', 'b')]
    arm = PneumaticArm(known)
    parts = []
    for row in e:
        bent = bend_of_chambers(0.080 + row, 0.017)
        parts += [*bent.bend, bent.length_m]
    expected = arm.shape_of(np.array(parts)).section_tips
    np.testing.assert_allclose(tips[-1], expected[-1], atol=1e-7)
    np.testing.assert_allclose(tips[0][:3, 3], expected[0][:3, 3], atol=1e-7)


def test_sideways_load_tilts_the_end_parts_as_a_beam():
    """Small sideways gravity, stiff arcs: each end part turns by M L / (E I)."""
    stiff = tuple(s.model_copy(update={'wall_share': 1e6}) for s in CONFIG.sections)
    config = CONFIG.model_copy(update={'sections': stiff})
    g = 1e-3
    body = PneumaticBody(config, (g, 0.0, 0.0), None, 0.0)
    tip = body.section_tips_at_rest(np.zeros((2, 4)))[-1]
    E, L = stiff[0].youngs_modulus_Pa, 0.020
    EI = E * math.pi * 0.017**4 / 4.0
    lam = 0.93
    # Pieces beyond an end part: mass and height of its centre above the base origin.
    pieces = [
        (lam * 0.080, 0.040),
        (lam * 0.020, 0.090),
        (lam * 0.080, 0.140),
        (0.0186, 0.190),
        (0.065, 0.235),
    ]

    def turn(start, end):
        """Integrate the moment over an end part, and over its distance from the tip."""
        z = np.linspace(start, end, 2001)
        moment = np.zeros_like(z)
        for mass, centre in pieces:
            if centre > end:
                moment += mass * g * (centre - z)
        own = 0.5 * lam * g * (end - z) ** 2
        curvature = (moment + own) / EI

        def integral(values):
            return float(np.sum(0.5 * (values[1:] + values[:-1]) * np.diff(z)))

        return integral(curvature), integral(curvature * (0.200 - z))

    angles, shifts = zip(turn(-L, 0.0), turn(0.080, 0.100))
    assert tip[0, 2] == pytest.approx(sum(angles), rel=2e-3)
    assert tip[0, 3] == pytest.approx(sum(shifts), rel=2e-3)


def test_tip_changes_little_with_finer_segments():
    def tip(n):
        config = CONFIG.model_copy(update={'segments_per_section': n})
        return plant(config=config).drives.tips_at_rest(TARGET)[-1, :3, 3]

    coarse, used, fine = tip(2), tip(4), tip(16)
    assert np.linalg.norm(used - fine) < 1e-4
    assert np.linalg.norm(used - fine) < 0.5 * np.linalg.norm(coarse - fine) + 1e-9


# -- plant ------------------------------------------------------------------------------------


def test_arm_settles_at_the_static_tip_for_both_time_steps():
    calm = CONFIG.regulators.model_copy(
        update={
            'gain': (1.0,) * 6,
            'offset_Pa': (0.0,) * 6,
            'dead_zone_Pa': 0.0,
            'dac_bits': 24,
        }
    )
    tips = []
    for h in (0.005, 0.010):
        config = CONFIG.model_copy(update={'regulators': calm, 'time_step_s': h})
        p = plant(config=config)
        for _ in range(30):
            p.step(TARGET, 1.0)
        tips.append(p.true_section_tips()[-1, :3, 3])
        rest = p.drives.tips_at_rest(TARGET)[-1, :3, 3]
        # Creep (four seconds) has ended; the hysteresis was never reversed.
        assert np.linalg.norm(tips[-1] - rest) < 2e-4
    np.testing.assert_allclose(tips[0], tips[1], atol=2e-5)


def test_plant_fulfils_its_protocols_and_repeats_with_its_seed():
    one, two, other = plant(3), plant(3), plant(4)
    assert isinstance(one, ChamberPressures) and isinstance(one, BaseWrench)
    assert isinstance(one, Gripping)
    for p in (one, two, other):
        for _ in range(10):
            p.step(TARGET, 0.02)
    np.testing.assert_array_equal(one.base_wrench(), two.base_wrench())
    np.testing.assert_array_equal(one.chamber_pressures(), two.chamber_pressures())
    first, second, third = ([f.section_tips for f in p.poll_poses()] for p in (one, two, other))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, third)
    np.testing.assert_array_equal(one.true_section_tips(), other.true_section_tips())


def test_bad_commands_are_refused_and_time_does_not_advance():
    p = plant()
    for bad in (np.zeros(5), np.full(6, math.nan)):
        with pytest.raises(ValueError, match='command'):
            p.step(bad, 0.01)
    with pytest.raises(ValueError, match='duration_s'):
        p.step(TARGET, 0.0)
    with pytest.raises(ValueError, match='gripper pressure'):
        p.command_gripper(math.inf)
    assert p.time_s == 0.0
    np.testing.assert_array_equal(p.actuator_state().position, plant().actuator_state().position)


def test_hold_keeps_the_pressures():
    p = plant()
    p.step(TARGET, 0.05)
    p.hold()
    before = p.actuator_state().position
    p.step(None, 1.0)
    np.testing.assert_allclose(p.actuator_state().position, before, atol=600.0)
    assert np.all(before < 0.8 * TARGET + 1e3)


def test_centreline_is_evenly_spaced_and_ends_at_the_tip():
    p = plant()
    p.step(TARGET, 1.0)
    line = p.true_centerline(21)
    tip = p.true_section_tips()[-1, :3, 3]
    np.testing.assert_allclose(line[0], 0.0, atol=5e-4)  # the first end part sags a little
    np.testing.assert_allclose(line[-1], tip, atol=1e-12)
    gaps = np.linalg.norm(np.diff(line, axis=0), axis=1)
    np.testing.assert_allclose(gaps, gaps.mean(), rtol=1e-3)


# -- base load, water, gripper ----------------------------------------------------------------


def masses():
    own = [s.mass_per_length_kg_m * (s.deforming_length_m + 0.080) for s in CONFIG.sections]
    return sum(own) + CONFIG.tip_part_mass_kg + CONFIG.gripper.mass_kg


def test_base_wrench_at_rest_is_the_weight_less_buoyancy():
    np.testing.assert_allclose(
        plant().body.base_wrench(), [0, 0, 9.81 * masses(), 0, 0, 0], atol=1e-9
    )
    loaded = plant(tip_load_kg=0.1).body.base_wrench()
    assert loaded[2] == pytest.approx(9.81 * (masses() + 0.1), rel=1e-9)
    area = math.pi * 0.017**2
    water = 998.0 * area * (0.080 + 0.020 + 0.080 + 0.020 + 0.070)
    wet = plant(fluid=Fluid(WaterConfig())).body.base_wrench()
    assert wet[2] == pytest.approx(9.81 * (masses() - water), rel=1e-9)


def test_base_moment_places_the_weight_between_base_and_tip():
    p = plant()
    for _ in range(12):
        p.step(TARGET, 0.5)
    force, moment = np.split(p.body.base_wrench(), 2)
    assert force[2] == pytest.approx(9.81 * masses(), abs=0.01)
    centre = np.array([-moment[1], moment[0], 0.0]) / force[2]
    # The line of the weight meets the arm between base and tip, well out to its side.
    tip = p.true_section_tips()[-1, :3, 3]
    assert 0.2 < centre @ tip / (tip[:2] @ tip[:2]) < 0.9


def test_base_force_integrates_to_zero_from_rest_to_rest():
    """The impulse equals the change of momentum; in between, the force is not zero."""
    p, h = plant(), 0.005
    total, largest = np.zeros(3), 0.0
    for _ in range(1600):
        p.step(TARGET, h)
        force = p.body.base_wrench()[:3] - [0.0, 0.0, 9.81 * masses()]
        total += force * h
        largest = max(largest, float(np.linalg.norm(force)))
    assert largest > 0.2
    assert np.linalg.norm(total) < 0.01 * largest


def test_water_reduces_the_sag_and_slows_the_arm():
    dry, wet = plant(), plant(fluid=Fluid(WaterConfig()))
    sag = [
        np.linalg.norm(p.drives.tips_at_rest(TARGET)[-1, :3, 3] - weightless()) for p in (dry, wet)
    ]
    assert sag[1] < 0.15 * sag[0]
    left = []
    for p in (dry, wet):
        for _ in range(4):
            p.step(TARGET, 0.5)
        before = float(np.linalg.norm(p.true_section_tips()[-1, :2, 3]))
        p.step(np.zeros(6), 0.2)
        left.append(float(np.linalg.norm(p.true_section_tips()[-1, :2, 3])) / before)
    assert left[1] > 1.2 * left[0]


def test_current_loads_the_arm_with_the_drag_of_a_cylinder():
    speed, length = 0.05, 0.080 + 0.020 + 0.080 + 0.020 + 0.070
    drag = 0.5 * 998.0 * 1.2 * 2.0 * 0.017 * length * speed**2
    loads, tips = [], []
    for direction in (1.0, -1.0):
        p = plant(fluid=Fluid(WaterConfig(), (direction * speed, 0.0, 0.0)))
        for _ in range(30):
            p.step(np.zeros(6), 0.5)
        loads.append(p.body.base_wrench()[:3])
        tips.append(p.true_section_tips()[-1, :3, 3])
    still = plant(fluid=Fluid(WaterConfig())).body.base_wrench()[2]
    np.testing.assert_allclose(loads[0], [drag, 0.0, still], rtol=0.01, atol=1e-6)
    np.testing.assert_allclose(loads[1], [-drag, 0.0, still], rtol=0.01, atol=1e-6)
    np.testing.assert_allclose(tips[0], tips[1] * [-1.0, 1.0, 1.0], atol=1e-6)
    assert tips[0][0] > 1e-4


def bare(**changes):
    return plant(config=BARE, **changes)


def test_arm_without_gripper_and_wrench_sensor_keeps_its_tip_and_refuses_their_calls():
    p, light = bare(), plant(config=CONFIG.model_copy(update={'gripper': FEATHER}))
    assert p.gripping is None and p.weighed is None
    assert light.gripping is light and light.weighed is light
    for other in (p, light):
        other.step(TARGET, 1.0)
    tip = p.true_section_tips()[-1]
    np.testing.assert_allclose(tip, light.true_section_tips()[-1], atol=2e-4)
    np.testing.assert_allclose(p.true_centerline(21)[-1], tip[:3, 3], atol=1e-12)
    for wrong, name in (
        (lambda: p.command_gripper(0.0), 'gripper'),
        (p.gripper_pressure, 'gripper'),
        (lambda: p.drives.place_object(GrippedObject((0.0, 0.0, 0.2), 0.1)), 'gripper'),
        (p.base_wrench, 'wrench_sensor'),
    ):
        with pytest.raises(ValueError, match=rf'plant\.{name}'):
            wrong()


def test_payload_hangs_from_the_tip_without_a_gripper():
    own = masses() - CONFIG.gripper.mass_kg
    loaded, empty = bare(tip_load_kg=0.1).body, bare().body
    assert loaded.base_wrench()[2] == pytest.approx(9.81 * (own + 0.1), rel=1e-9)
    first, last = (b.arm.body.mass[-1] * b.arm.body.centre[-1] for b in (empty, loaded))
    assert last - first == pytest.approx(0.1 * CONFIG.tip_length_m, rel=1e-9)


def test_current_loads_an_arm_without_gripper_along_its_whole_length():
    speed, length = 0.05, 0.080 + 0.020 + 0.080 + 0.020
    drag = 0.5 * 998.0 * 1.2 * 2.0 * 0.017 * length * speed**2
    p = bare(fluid=Fluid(WaterConfig(), (speed, 0.0, 0.0)))
    for _ in range(30):
        p.step(np.zeros(6), 0.5)
    assert p.body.base_wrench()[0] == pytest.approx(drag, rel=0.01)


def weightless():
    return plant(gravity=(0.0, 0.0, 0.0)).drives.tips_at_rest(TARGET)[-1, :3, 3]
