"""Air-chamber sections as one rod: closed forms, arcs on mounts, derivatives, round trips."""

import math

import numpy as np
import pytest

from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.pneumatic.angle_correction import PneumaticArm
from softarm_ros.models.pneumatic.angle_correction_kernels import tilt_per_moment
from softarm_ros.models.pneumatic.config import (
    ChamberSectionConfig,
    MountConfig,
    placeholder_curve,
)
from softarm_ros.models.pneumatic.rod import RodByExtensions, RodOfChambers
from softarm_ros.rigs.loader import load_rig

HANGING, NOWHERE = (0.0, 0.0, 9.81), (0.0, 0.0, 0.0)
GIVE, MASS = 2.1, 0.093
NO_MOUNT = MountConfig(deforming_length_m=1e-9)
PRESSURES = np.array([1e4, 5e4, 0.0, 3e4, 0.0, 2e4])


def sections(count=2, give=GIVE, growth=0.4, mass=MASS, **changes):
    return [
        ChamberSectionConfig(
            name=name,
            curves=(placeholder_curve(),),
            bend_per_moment_rad_N_m=give,
            give_growth=growth,
            mass_kg=mass,
            **changes,
        )
        for name in ('proximal', 'distal')[:count]
    ]


def rod(
    gravity=HANGING, mount=None, density=0.0, tip_mass=0.065, offset=0.035, steps=3, **changes
):
    return RodOfChambers(
        sections(**changes), mount or MountConfig(), gravity, density, tip_mass, offset, steps
    )


ARM = RodByExtensions(rod())


# -- against closed forms and the arcs on mounts ----------------------------------------------


def test_rod_without_weight_and_load_matches_constant_curvature_arcs():
    ours = rod(NOWHERE, steps=10)
    theirs = PneumaticArm(sections(give=0.0))
    for pressure in (PRESSURES, np.full(6, 6e4), np.array([0.0, 0.0, 9e4, 9e4, 0.0, 0.0])):
        here, there = ours.forward(pressure), theirs.forward(pressure)
        np.testing.assert_allclose(here.section_tips, there.section_tips, atol=1e-8)
        np.testing.assert_allclose(here.configuration, there.configuration, atol=1e-12)
        np.testing.assert_allclose(here.centerline(41), there.centerline(41), atol=3e-5)


def test_tip_moment_bends_the_rod_as_compliant_arcs_without_mounts():
    """A tip moment is the same everywhere along the arm, so both models bend equally."""
    ours = rod(NOWHERE, NO_MOUNT, tip_mass=0.0, steps=10)
    theirs = PneumaticArm(sections(), gravity=NOWHERE)
    moment = (0.0, 0.15, 0.0)
    for pressure in (np.zeros(6), np.full(6, 7e4)):
        here = ours.forward(pressure, tip_moment=moment)
        there = theirs.forward(pressure, tip_moment=moment)
        np.testing.assert_allclose(here.section_tips, there.section_tips, atol=1e-7)
    assert here.tip[0, 3] > 0.05


@pytest.mark.parametrize('moment', [0.02, 0.2, 0.6])
def test_tip_moment_tilts_the_mounts_by_the_papers_law(moment):
    mount = MountConfig()
    stiff = rod(NOWHERE, mount, tip_mass=0.0, give=1e-7)
    tip = stiff.forward(np.zeros(6), tip_moment=(0.0, moment, 0.0)).tip
    material = np.array([mount.diameter_m, mount.deforming_length_m, mount.c10_Pa, mount.c20_Pa])
    alpha = moment * tilt_per_moment(moment, material)
    assert math.atan2(tip[0, 2], tip[2, 2]) == pytest.approx(
        2.0 * (alpha + 1e-7 * moment), abs=2e-8
    )
    linear = moment * tilt_per_moment(0.0, material)
    assert abs(alpha / linear - 1.0) > (1e-3 if moment > 0.1 else 0.0)  # the law is not linear


def test_small_tip_force_deflects_one_section_as_a_timoshenko_beam():
    arm = rod(NOWHERE, NO_MOUNT, tip_mass=0.0, count=1)
    section = arm.sections[0]
    length, end = section.bending_length_m, section.rigid_length_m
    bending = length / GIVE
    shear = 4.0 * bending / section.chamber_radius_m**2 / 3.0
    force = 1e-4
    whole = length + end
    beam = force * ((whole**3 - end**3) / (3.0 * bending) + length / shear)
    moved = arm.forward(np.zeros(3), tip_force=(force, 0.0, 0.0)).tip[0, 3]
    assert moved == pytest.approx(beam, rel=1e-6)


def test_rod_under_weight_stays_near_the_arcs_on_mounts():
    """The rod spreads the stiffness that the arcs concentrate at their middles and mounts."""
    theirs = PneumaticArm(sections(), MountConfig(), HANGING, 0.0, 0.065, 0.035)
    for pressure in (PRESSURES, np.array([0.0, 6e4, 0.0, 0.0, 6e4, 0.0])):
        here, there = ARM.forward(pressure), theirs.forward(pressure)
        apart = np.linalg.norm(here.section_tips[:, :3, 3] - there.section_tips[:, :3, 3], axis=1)
        arcs = PneumaticArm(sections(give=0.0)).forward(pressure).tip[:3, 3]
        sag = np.linalg.norm(there.tip[:3, 3] - arcs)
        assert np.all(apart < 3e-3) and apart[-1] < 0.25 * sag


# -- derivatives and round trips --------------------------------------------------------------


@pytest.mark.parametrize('growth', [0.0, 0.4])
def test_jacobians_match_finite_differences(growth):
    arm = RodByExtensions(rod(growth=growth))
    q = arm.configuration_of(PRESSURES + 1e4)
    tip, jacobian = arm.tip_and_jacobian(q)
    np.testing.assert_allclose(tip, arm.shape_of(q).tip[:3, 3], atol=1e-9)
    for i in range(6):
        dq = 1e-5 * np.eye(6)[i]
        move = np.subtract(*arm.tips_of([q + dq, q - dq])) / 2e-5
        np.testing.assert_allclose(jacobian[:, i], move, atol=2e-4 * np.abs(jacobian).max())
    by_pressure = arm.jacobian(PRESSURES + 1e4)
    scale = np.abs(by_pressure[:3]).max()
    for i in range(6):
        dp = 20.0 * np.eye(6)[i]
        ahead, behind = (arm.forward(PRESSURES + 1e4 + sign * dp).tip for sign in (1.0, -1.0))
        np.testing.assert_allclose(
            by_pressure[:3, i], (ahead - behind)[:3, 3] / 40.0, atol=3e-4 * scale
        )


def test_jacobian_at_rest_is_the_derivative_by_extensions_that_chambers_can_have():
    """Chambers only stretch, and stretched arcs are softer."""
    arm, rest = RodByExtensions(rod(growth=1.0)), np.zeros(6)
    jacobian = arm.tip_and_jacobian(rest)[1]
    step = 1e-5 * np.arange(1.0, 7.0)
    here, near, far = arm.tips_of([rest, rest + step, rest + 2.0 * step])
    move = 0.5 * (4.0 * near - 3.0 * here - far)
    np.testing.assert_allclose(jacobian @ step, move, rtol=2e-4, atol=2e-4 * np.abs(move).max())


def test_pressures_and_poses_round_trip():
    np.testing.assert_allclose(
        ARM.actuation_of(ARM.configuration_of(PRESSURES)), PRESSURES, atol=1e-3
    )
    tip = ARM.forward(PRESSURES).tip
    found = ARM.inverse(tip[:3, 3])
    assert found.converged, found.message
    np.testing.assert_allclose(ARM.forward(found.actuation).tip[:3, 3], tip[:3, 3], atol=1e-6)
    force = (0.05, -0.02, 0.1)
    pulled = ARM.inverse((0.03, 0.02, 0.21), tip_force=force)
    assert pulled.converged, pulled.message
    again = ARM.forward(pulled.actuation, tip_force=force).tip[:3, 3]
    np.testing.assert_allclose(again, (0.03, 0.02, 0.21), atol=1e-6)
    pose = ARM.forward(PRESSURES + 1e4, tip_force=force).tip
    posed = ARM.inverse(pose[:3, 3], pose[:3, :3], tip_force=force)
    assert posed.converged, posed.message
    np.testing.assert_allclose(ARM.forward(posed.actuation, force).tip, pose, atol=1e-6)


def test_posture_does_not_depend_on_earlier_calls():
    rng = np.random.default_rng(4)
    goals = [ARM.configuration_of(rng.uniform(0.0, 6e4, 6)) for _ in range(6)]
    posture = None
    for q in goals:
        posture = ARM.posture_of(q, posture)
        fresh = RodByExtensions(rod()).posture_of(q)
        np.testing.assert_allclose(posture.tip, fresh.tip, atol=1e-8)
        np.testing.assert_allclose(posture.section_tips, fresh.section_tips, atol=1e-8)
        scale = np.abs(fresh.tip_jacobian).max()
        np.testing.assert_allclose(posture.tip_jacobian, fresh.tip_jacobian, atol=1e-5 * scale)


# -- surroundings -----------------------------------------------------------------------------


def test_neutrally_buoyant_arm_has_the_pose_of_a_weightless_arm():
    whole = 0.1 * math.pi * 0.017**2
    sunk = rod(density=998.0, mass=998.0 * whole, tip_mass=0.0)
    light = rod(NOWHERE, tip_mass=0.0)
    np.testing.assert_allclose(
        sunk.forward(PRESSURES).tip, light.forward(PRESSURES).tip, atol=1e-9
    )


def test_tip_mass_without_offset_acts_as_a_tip_force():
    carried = rod(tip_mass=0.05, offset=0.0)
    pulled = rod(tip_mass=0.0).forward(PRESSURES, tip_force=(0.0, 0.0, 0.05 * 9.81))
    np.testing.assert_allclose(carried.forward(PRESSURES).tip, pulled.tip, atol=1e-9)


def test_shifting_the_pressures_by_one_chamber_turns_the_arm_by_120_deg():
    turn = np.array([[-0.5, -math.sqrt(0.75), 0.0], [math.sqrt(0.75), -0.5, 0.0], [0.0, 0.0, 1.0]])
    onward = np.roll(PRESSURES.reshape(2, 3), 1, axis=1).ravel()
    here, there = ARM.forward(PRESSURES), ARM.forward(onward)
    np.testing.assert_allclose(
        there.section_tips[:, :3, 3], here.section_tips[:, :3, 3] @ turn.T, atol=1e-8
    )


def test_rig_arm_inverse_reaches_random_tips_of_its_workspace():
    rig = load_rig('pneumatic_arm')
    arm = rig.model('cosserat')
    drawn = rig.arm.sample_configurations(arm, np.random.default_rng(0), 10)
    limits = rig.actuator_limits()
    for tip in arm.tips_of(drawn):
        found = arm.inverse(tip)
        assert found.converged, found.message
        limits.check(found.actuation)
        assert np.linalg.norm(arm.forward(found.actuation).tip[:3, 3] - tip) < 1e-6


def test_invalid_sections_pressures_and_loads_are_refused():
    with pytest.raises(ModelError, match='bend_per_moment_rad_N_m is 0: an elastic rod'):
        rod(give=0.0)
    with pytest.raises(ModelError, match='a mass beyond it needs a rigid part'):
        rod(rigid_length_m=0.0)
    with pytest.raises(ModelError, match='proximal_chamber_2: pressure 95000 Pa is outside'):
        ARM.forward(np.array([0.0, 9.5e4, 0.0, 0.0, 0.0, 0.0]))
    heavy = rod((0.0, 0.0, -9.81), tip_mass=3.0)
    with pytest.raises(ModelError, match=r'no (stable )?equilibrium'):
        heavy.forward(np.zeros(6))
