"""The simulated arm at rest, against closed forms and virtual work."""

import numpy as np
import pytest
from plant_cases import (
    EA,
    EI,
    ENDCAP,
    GRAVITY,
    KT,
    LENGTH,
    RADIUS,
    PlantCable,
    beam,
    bend_angle,
    ring,
    rotation_about_z,
    soft_arm,
)
from scipy.optimize import brentq
from scipy.special import ellipe, ellipeinc, ellipk, ellipkinc

from softarm_ros.plant.errors import PlantError
from softarm_ros.plant.joint_kernels import turn

STIFF = {'cutting_in_stiffness_N_m2': 1e10}


@pytest.mark.parametrize('segments', [2, 5, 10])
@pytest.mark.parametrize('theta', [1e-3, 1.0, 2.9])
def test_tip_moment_bends_the_arm_into_a_circle_with_any_number_of_segments(theta, segments):
    arm = soft_arm(segments=segments)
    tip = arm.settle(tip_moment=(0.0, EI / LENGTH * theta, 0.0)).section_tips[-1]
    end = np.array([np.sin(theta), 0.0, np.cos(theta)])
    circle = LENGTH / theta * np.array([1.0 - np.cos(theta), 0.0, np.sin(theta)])
    np.testing.assert_allclose(tip[:3, 2], end, atol=1e-7)
    expected = np.array([0.0, 0.0, ENDCAP]) + circle + ENDCAP * end
    np.testing.assert_allclose(tip[:3, 3], expected, atol=1e-8)


def test_centreline_of_a_circular_arm_matches_the_closed_form():
    arm = soft_arm()
    arm.settle(tip_moment=(0.0, EI / LENGTH * 1.2, 0.0))
    points = arm.centerline(201)
    along = np.linspace(0.0, LENGTH + 2 * ENDCAP, 201) - ENDCAP
    theta = 1.2 * np.clip(along / LENGTH, 0.0, 1.0)
    beyond = np.clip(along - LENGTH, 0.0, None)
    before = np.clip(along, None, 0.0) + ENDCAP
    x = LENGTH / 1.2 * (1.0 - np.cos(theta)) + beyond * np.sin(theta)
    z = before + LENGTH / 1.2 * np.sin(theta) + beyond * np.cos(theta)
    np.testing.assert_allclose(points[:, 0], x, atol=1e-6)
    np.testing.assert_allclose(points[:, 1], 0.0, atol=1e-12)
    np.testing.assert_allclose(points[:, 2], z, atol=1e-6)
    with pytest.raises(ValueError, match='centreline of 1 points'):
        arm.centerline(1)


def elastica_tip(load):
    """Return tip (deflection, reach)/L of a cantilever under the dead end load load EI/L^2."""
    root = np.sqrt(load)

    def missing(slope):
        m = 0.5 * (1.0 + np.sin(slope))
        start = np.arcsin(1.0 / np.sqrt(2.0 * m))
        return ellipk(m) - ellipkinc(start, m) - root

    slope = brentq(missing, 1e-9, 0.5 * np.pi - 1e-9)
    m = 0.5 * (1.0 + np.sin(slope))
    start = np.arcsin(1.0 / np.sqrt(2.0 * m))
    deflection = 1.0 - 2.0 / root * (ellipe(m) - ellipeinc(start, m))
    return deflection, np.sqrt(2.0 * np.sin(slope)) / root


@pytest.mark.parametrize('load', [0.2, 1.0, 3.0, 8.0])
def test_cantilever_converges_to_the_elastica_with_second_order(load):
    deflection, reach = elastica_tip(load)
    exact = LENGTH * np.array([deflection, 0.0, reach])
    errors = []
    for segments in (5, 10, 20):
        tip = beam(segments).settle(tip_force=(load * EI / LENGTH**2, 0.0, 0.0)).section_tips[-1]
        errors.append(np.linalg.norm(tip[:3, 3] - exact))
    assert errors[1] < 4e-3 * LENGTH
    assert 3.5 < errors[0] / errors[1] < 4.5
    assert 3.5 < errors[1] / errors[2] < 4.5


def test_elastica_agrees_with_linear_theory_for_small_loads():
    assert elastica_tip(1e-3)[0] == pytest.approx(1e-3 / 3.0, rel=1e-5)


def test_torsion_and_extension_follow_hooke():
    arm = soft_arm()
    tip = arm.settle(tip_moment=(0.0, 0.0, 5e-3), tip_force=(0.0, 0.0, 2.0)).section_tips[-1]
    twist = np.arctan2(tip[1, 0], tip[0, 0])
    assert twist == pytest.approx(5e-3 * LENGTH / (EI / 1.5), rel=1e-6)
    assert tip[2, 3] - LENGTH - 2 * ENDCAP == pytest.approx(2.0 * LENGTH / EA, rel=1e-6)


def test_hanging_sections_stretch_under_the_weight_below():
    arm = soft_arm(sections=2, gravity=GRAVITY)
    tips = arm.settle().section_tips
    # Each section stretches under the weight below the middle of its body.
    below_2 = 0.5 * 0.058 + 0.008
    below_1 = 0.5 * 0.058 + 0.008 + 0.058 + 2 * 0.008
    total = LENGTH + 2 * ENDCAP
    assert tips[0, 2, 3] - total == pytest.approx(9.81 * below_1 * LENGTH / EA, rel=1e-6)
    stretch_2 = tips[1, 2, 3] - tips[0, 2, 3] - total
    assert stretch_2 == pytest.approx(9.81 * below_2 * LENGTH / EA, rel=1e-6)


@pytest.mark.parametrize('tension', [0.5, 3.0, 5.0])
@pytest.mark.parametrize('segments', [3, 10])
def test_cable_that_cannot_cut_in_bends_the_arm_into_a_circle(tension, segments):
    arm = soft_arm([PlantCable(0, 0.7)], segments=segments, section=STIFF)
    rest = arm.settle(tension=[tension])
    theta = tension * RADIUS * LENGTH / EI
    tip = rest.section_tips[-1]
    assert bend_angle(tip) == pytest.approx(theta, rel=1e-5)
    assert np.arctan2(tip[1, 2], tip[0, 2]) == pytest.approx(0.7, abs=1e-7)
    # Lever times angle, shortening of the body, and stretch of the cable.
    thread = tension * (0.3 + ENDCAP + LENGTH) / 7000.0
    expected = RADIUS * theta + tension * LENGTH / EA + thread
    assert rest.contraction[0] == pytest.approx(expected, rel=1e-5)


def test_cutting_in_depth_matches_a_string_on_an_elastic_foundation():
    # The cable turns by theta/L per length of body and cuts in by T theta/L over K_t, except near
    # the ends: this depth builds up over sqrt(T/K_t), as for a string on an elastic foundation.
    tension = 1.0
    arm = soft_arm([PlantCable(0, 0.0)], segments=40, section={'axial_stiffness_N': 1e7})
    theta = bend_angle(arm.settle(tension=[tension]).section_tips[-1])
    reach = (1.0 - RADIUS * theta / LENGTH) * np.sqrt(tension / KT)
    along = np.linspace(-0.5, 0.5, 41) * LENGTH * (1.0 - RADIUS * theta / LENGTH)
    string = 1.0 - np.cosh(along / reach) / np.cosh(along[-1] / reach)
    depth = tension * theta / LENGTH / KT * string
    # Towards the centre of the bend: away from the backbone.
    np.testing.assert_allclose(arm.state.cut_in[0, :, 0], depth, atol=0.02 * depth.max())
    assert np.abs(arm.state.cut_in[0, :, 1]).max() < 1e-9


@pytest.mark.parametrize(('tension', 'tolerance'), [(0.3, 0.005), (1.0, 0.01), (2.0, 0.02)])
def test_single_cable_follows_the_lumped_moment_law(tension, tolerance):
    # Qi et al. eq. 15, 20: T d cos(alpha) = K_b theta/L at the ends, T (d + delta) in the middle;
    # the bend must lie between the two, and tension and angle rise nearly in proportion.
    arm = soft_arm([PlantCable(0, 0.0)], section={'axial_stiffness_N': 1e7})
    theta = bend_angle(arm.settle(tension=[tension]).section_tips[-1])
    plain = tension * RADIUS * LENGTH / EI
    depth = np.abs(arm.state.cut_in).max()
    assert plain < theta < plain * (1.0 + depth / RADIUS)
    assert theta == pytest.approx(plain * (1.0 + 2.0 / 3.0 * depth / RADIUS), rel=tolerance)


def potential_gradient(arm, h=1e-6):
    """Return differences of the potential energy by joint coordinates [J/rad] and cut_in."""
    rest, gradient, pushes = arm.state, [], []

    def difference(move, step):
        ends = []
        for s in (-step, step):
            arm.state = rest.copy()
            move(arm.state, s)
            ends.append(arm.energy().potential)
        arm.state = rest
        return (ends[1] - ends[0]) / (2.0 * step)

    for g in range(len(rest.extension)):
        for axis in np.eye(3):
            gradient.append(
                difference(lambda s, e, g=g, axis=axis: turn(s.quaternion[g], *(e * axis)), h)
            )

        def stretch(state, e, g=g):
            state.extension[g] += e

        pushes.append(difference(stretch, 1e-8))
    for i in range(rest.cut_in.shape[0]):
        for k in range(1, rest.cut_in.shape[1] - 1):
            for c in range(2):

                def cut(state, e, i=i, k=k, c=c):
                    state.cut_in[i, k, c] += e

                pushes.append(difference(cut, 1e-7))
    return np.array(gradient), np.array(pushes)


@pytest.mark.parametrize(
    'contraction',
    [
        (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
        (0.012, -0.02, -0.003, -0.02, 0.010, 0.004),
        (0.020, -0.02, -0.02, -0.03, 0.008, 0.018),
    ],
)
def test_equilibrium_has_stationary_potential_energy(contraction):
    arm = soft_arm(ring(2), sections=2, gravity=(1.0, -0.5, 9.7), segments=6)
    rest = arm.settle(contraction=contraction)
    moments, forces = potential_gradient(arm)
    assert np.abs(moments).max() < 2e-7  # N m; the segments carry up to 5e-2
    assert np.abs(forces).max() < 2e-4  # N; the cables pull with several
    stretch = arm.cable_lengths() - arm.rest_lengths() + rest.contraction
    np.testing.assert_allclose(
        rest.tension, np.maximum(arm.cables.stiffness * stretch, 0.0), atol=1e-6
    )
    assert rest.tension.max() > 0.1


def test_equilibrium_does_not_depend_on_time_step_or_damping():
    pull = (0.015, -0.02, 0.002, -0.02, 0.012, 0.004)
    tips = []
    cases = ((0.002, 0.03, 0.02), (0.0005, 0.2, 0.02), (0.005, 0.01, 0.1))
    for step, damping, relaxation in cases:
        section = {'damping_time_s': damping, 'cutting_in_relaxation_s': relaxation}
        fields = {'time_step_s': step, 'cable_damping_time_s': relaxation}
        arm = soft_arm(ring(2), 2, GRAVITY, segments=6, section=section, **fields)
        tips.append(arm.settle(contraction=pull).section_tips)
    np.testing.assert_allclose(tips[1], tips[0], atol=1e-6)
    np.testing.assert_allclose(tips[2], tips[0], atol=1e-6)


def test_motion_ends_in_the_static_equilibrium():
    pull = np.array([0.015, -0.02, 0.002, -0.02, 0.012, 0.004])
    moving = soft_arm(ring(2), 2, GRAVITY, segments=6)
    resting = moving.copy()
    for k in range(200):
        moving.advance(contraction=pull * (k + 1) / 200, time_step_s=0.002, steps=5)
    moving.advance(time_step_s=0.002, steps=5000)
    rest = resting.settle(contraction=pull)
    np.testing.assert_allclose(moving.section_tips(), rest.section_tips, atol=1e-6)
    np.testing.assert_allclose(moving.state.tension, rest.tension, atol=1e-4)


def test_settling_by_tension_or_contraction_gives_the_same_equilibrium():
    arm = soft_arm(ring(2), 2, GRAVITY, segments=6)
    held = arm.copy().settle(contraction=(0.015, -0.03, 0.002, -0.03, 0.012, 0.006))
    pulled = arm.settle(tension=held.tension)
    np.testing.assert_allclose(pulled.section_tips, held.section_tips, atol=1e-6)
    taut = held.tension > 0.0
    assert taut.sum() >= 2
    np.testing.assert_allclose(pulled.contraction[taut], held.contraction[taut], atol=1e-6)


def test_distal_cables_leave_the_proximal_section_straight():
    arm = soft_arm(ring(2), sections=2)
    tips = arm.settle(tension=(0.0, 0.0, 0.0, 2.5, 1.0, 0.0)).section_tips
    assert bend_angle(tips[1], tips[0]) > 1.0
    assert bend_angle(tips[0]) < 1e-6
    assert tips[0, 2, 3] - LENGTH - 2 * ENDCAP == pytest.approx(-3.5 * LENGTH / EA, rel=1e-6)


def test_turning_cables_and_gravity_turns_the_shape():
    turn_z = rotation_about_z(2.0 * np.pi / 3.0)
    gravity = np.array([2.0, 1.0, 9.0])
    pull = np.array([0.015, -0.02, 0.002, -0.02, 0.012, 0.004])
    plain = soft_arm(ring(2), 2, gravity, segments=6).settle(contraction=pull).section_tips
    turned = (
        soft_arm(ring(2, 2.0 * np.pi / 3.0), 2, turn_z @ gravity, segments=6)
        .settle(contraction=pull)
        .section_tips
    )
    np.testing.assert_allclose(turned[:, :3, 3], plain[:, :3, 3] @ turn_z.T, atol=1e-8)
    np.testing.assert_allclose(turned[:, :3, 2], plain[:, :3, 2] @ turn_z.T, atol=1e-7)


def test_tilted_mount_equals_tilted_gravity():
    tilted = soft_arm((), 1, GRAVITY, base_tilt_deg=(0.0, 3.0))
    tip = tilted.settle().section_tips[-1]
    mount = tilted.body.base_rotation
    aside = soft_arm((), 1, mount.T @ GRAVITY).settle().section_tips[-1]
    np.testing.assert_allclose(tip[:3, 3], mount @ aside[:3, 3], atol=1e-8)
    tilt = np.deg2rad(3.0)
    np.testing.assert_allclose(mount[:, 2], [np.sin(tilt), 0.0, np.cos(tilt)], atol=1e-15)
    # The weight pulls the arm back towards the plumb line.
    assert 0.0 < bend_angle(tip) < tilt


def test_buckling_is_reported():
    arm = soft_arm(ring(1))
    with pytest.raises(PlantError, match=r'segment \d of section 0'):
        arm.settle(contraction=(0.04, 0.0399, 0.04))


def test_invalid_arguments_are_refused():
    arm = soft_arm(ring(1))
    with pytest.raises(ValueError, match='one of them'):
        arm.settle(contraction=np.zeros(3), tension=np.zeros(3))
    with pytest.raises(ValueError, match=r'tension\[1\] = -2 N; a cable only pulls'):
        arm.settle(tension=(0.0, -2.0, 0.0))
    with pytest.raises(ValueError, match=r'contraction has shape \(2,\), expected \(3,\)'):
        arm.advance(contraction=(0.0, 0.0), time_step_s=0.002)
    with pytest.raises(ValueError, match=r'tip_force\[2\] = inf is not finite'):
        arm.settle(tip_force=(0.0, 0.0, np.inf))
    with pytest.raises(ValueError, match=r'cable 0: section_index 1 outside \[0, 0\]'):
        soft_arm([PlantCable(1, 0.0)])
    with pytest.raises(ValueError, match='cable 0: angle_rad nan is not finite'):
        soft_arm([PlantCable(0, np.nan)])
    with pytest.raises(ValueError, match=r'gravity .* is not a finite vector'):
        soft_arm(gravity=(0.0, 9.81))
