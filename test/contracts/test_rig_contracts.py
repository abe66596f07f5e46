"""Properties of every rig of the package, whatever its kind."""

import pickle
import xml.etree.ElementTree as ET
from functools import cache

import numpy as np
import pytest

from softarm_ros.models.arm_model import ModelError
from softarm_ros.plant.plant import ChamberPressures
from softarm_ros.rigs.graph import SUPERVISED_NODES, graph_plan
from softarm_ros.rigs.loader import list_rigs, load_rig
from softarm_ros.rigs.urdf import build_urdf, joint_map, joint_names
from softarm_ros.runtime.arm_assembly import build_plant
from softarm_ros.runtime.assembly import build_inverse_kinematics

NAMES = [info.name for info in list_rigs()]
SHARE = 0.6  # of the way from rest to the limits, for round trips
POSES = 6
TIPS = 40  # of configurations sampled over the whole workspace
WITHIN_M = 1e-5
LOAD_N = (0.02, 0.01, 0.05)
READ_BEYOND = 0.05  # of the range; sensors read less far beyond a limit
SUMMARY = {
    *('rig', 'backend', 'model', 'controller', 'trajectory', 'task'),
    *('open_loop', 'direct', 'rate', 'seed'),
    *('tracking_error_m', 'tracking_error_after_first_lap_m', 'laps', 'duration_s'),
    *('tracking_error_of', 'measured_error_m', 'machine', 'drawn'),
    *('normalised_error_percent', 'loop', 'completed', 'events', 'devices'),
}


@cache
def rig_of(name):
    return load_rig(name)


@cache
def model_of(name, model=None):
    return rig_of(name).model(model)


@cache
def postures(name, model):
    """Return actuations within the limits, spread over the workspace."""
    rig, arm = rig_of(name), model_of(name, model)
    limits = rig.actuator_limits()
    rest = arm.rest_configuration
    found = []
    for configuration in rig.sample_configurations(np.random.default_rng(1), 40 * POSES):
        try:
            actuation = arm.actuation_of(rest + SHARE * (configuration - rest))
            limits.check(actuation)
            arm.forward(actuation)
        except (ModelError, ValueError):
            continue
        found.append(actuation)
        if len(found) == POSES:
            break
    assert len(found) == POSES, 'the limits of configuration and actuators do not fit together'
    return found


def cases():
    return [(name, model) for name in NAMES for model in rig_of(name).model_names]


@pytest.mark.parametrize('name', NAMES)
def test_sizes_and_names_of_rig_model_and_limits_agree(name):
    rig, arm, limits = rig_of(name), model_of(name), rig_of(name).actuator_limits()
    assert arm.actuator_names == rig.actuator_names == limits.names
    dof = len(arm.configuration_names)
    assert len(set(arm.configuration_names)) == dof
    assert arm.rest_configuration.shape == arm.configuration_scale.shape == (dof,)
    assert np.all(arm.configuration_scale > 0.0)
    bounds = rig.configuration_limits()
    assert bounds.lower.shape == bounds.upper.shape == (dof,)
    np.testing.assert_allclose(bounds.clipped(arm.rest_configuration), arm.rest_configuration)
    limits.check(arm.actuation_of(arm.rest_configuration))
    assert len(rig.body_radii_m()) == len(rig.section_names)


@pytest.mark.parametrize(('name', 'model'), cases())
def test_inverse_of_a_forward_tip_returns_to_that_tip(name, model):
    arm = model_of(name, model)
    for actuation in postures(name, model):
        tip = arm.forward(actuation).tip[:3, 3]
        solution = arm.inverse(tip, guess=actuation + 0.02 * np.abs(actuation))
        assert solution.converged, solution.message
        again = arm.forward(solution.actuation).tip[:3, 3]
        assert np.linalg.norm(again - tip) < 1e-4 * arm.rest_length_m


@pytest.mark.parametrize(('name', 'model'), cases())
def test_inverse_of_a_pose_returns_to_that_pose(name, model):
    arm = model_of(name, model)
    rest = arm.actuation_of(arm.rest_configuration)
    for far in postures(name, model)[:2]:
        actuation = rest + 0.6 * (far - rest)  # so that no section bends beyond its limit
        pose = arm.forward(actuation).tip
        for guess in (None, actuation):
            solution = arm.inverse(pose[:3, 3], pose[:3, :3], guess)
            assert solution.converged, solution.message
            reached = arm.forward(solution.actuation).tip
            np.testing.assert_allclose(reached[:3, 3], pose[:3, 3], atol=WITHIN_M)
            np.testing.assert_allclose(reached[:3, :3], pose[:3, :3], atol=1e-4)


@pytest.mark.parametrize('model', rig_of('cable_arm').model_names)
def test_inverse_from_a_guess_beyond_a_bending_limit_keeps_to_the_limit(model):
    """The guess reaches the pose exactly, so the search could end where it starts."""
    limits = [f'arm.sections[{k}].max_bending_angle_deg=60.0' for k in range(2)]
    arm = load_rig('cable_arm', limits).model(model)
    guess = arm.actuation_of(np.radians([75.0, 0.0, 0.0, 20.0]))
    pose = arm.forward(guess).tip
    for orientation in (pose[:3, :3], None):
        solution = arm.inverse(pose[:3, 3], orientation, guess)
        bends = np.linalg.norm(solution.shape.configuration.reshape(-1, 2), axis=1)
        assert np.all(np.degrees(bends) < 60.0 + 1e-4)
        assert not (solution.converged and orientation is not None)


@pytest.mark.parametrize(('name', 'model'), cases())
def test_inverse_under_a_load_holds_the_tip_where_the_load_moved_it(name, model):
    arm, force = model_of(name, model), LOAD_N
    actuations = postures(name, model)[:2]
    try:
        tips = [arm.forward(actuation, force).tip[:3, 3] for actuation in actuations]
    except ModelError as refusal:
        with pytest.raises(ModelError, match='load'):
            arm.inverse(arm.forward(actuations[0]).tip[:3, 3], tip_force=force)
        assert 'load' in str(refusal)
        return
    for tip in tips:
        solution = arm.inverse(tip, tip_force=force)
        assert solution.converged, solution.message
        again = arm.forward(solution.actuation, force).tip[:3, 3]
        assert np.linalg.norm(again - tip) < WITHIN_M


@pytest.mark.parametrize(('name', 'model'), cases())
def test_a_model_and_its_shapes_can_be_sent_to_another_process(name, model):
    arm, actuation = model_of(name, model), postures(name, model)[0]
    shape = arm.forward(actuation)
    solution = arm.inverse(shape.tip[:3, 3], guess=actuation)
    copied = pickle.loads(pickle.dumps(arm)).shape_of(arm.configuration_of(actuation))
    for sent in (shape, solution.shape, copied):
        received = pickle.loads(pickle.dumps(sent))
        assert np.array_equal(received.tip, sent.tip)
        assert np.array_equal(received.centerline(5), sent.centerline(5))


@pytest.mark.parametrize('name', NAMES)
def test_sampled_configurations_are_within_the_actuator_limits(name):
    rig, arm = rig_of(name), model_of(name)
    drawn = rig.sample_configurations(np.random.default_rng(0), 30)
    assert drawn.shape == (30, len(arm.configuration_names))
    assert np.ptp(drawn, axis=0).min() > 0.0
    for configuration in drawn:
        rig.actuator_limits().check(arm.actuation_of(configuration))


@pytest.mark.parametrize('name', NAMES)
def test_inverse_reaches_every_sampled_tip_within_the_actuator_limits(name):
    rig, arm = rig_of(name), model_of(name)
    limits = rig.actuator_limits()
    for tip in arm.tips_of(rig.sample_configurations(np.random.default_rng(0), TIPS)):
        solution = arm.inverse(tip)
        assert solution.converged, f'{tip.tolist()}: {solution.message}'
        limits.check(solution.actuation)
        again = arm.forward(solution.actuation).tip[:3, 3]
        assert np.linalg.norm(again - tip) < WITHIN_M


@pytest.mark.parametrize('name', NAMES)
def test_inverse_of_an_unreachable_tip_does_not_converge_and_returns_the_residual(name):
    arm = model_of(name)
    length = arm.rest_length_m
    for share in ((0.0, 0.0, -0.6), (0.5, 0.0, -0.7)):
        far = length * np.array(share)
        solution = arm.inverse(far)
        assert not solution.converged and solution.message
        left = np.linalg.norm(solution.shape.tip[:3, 3] - far)
        assert solution.residual == pytest.approx(left, abs=1e-6)


@pytest.mark.parametrize(('name', 'model'), cases())
def test_invalid_tip_loads_and_guesses_are_refused_by_name(name, model):
    """A number instead of a vector would act along all axes at once."""
    arm, actuation = model_of(name, model), postures(name, model)[0]
    tip = arm.forward(actuation).tip[:3, 3]
    for bad in (0.05, [0.05], [0.0, 0.0], np.zeros((3, 1)), [0.0, np.nan, 0.0]):
        with pytest.raises(ValueError, match='tip_force'):
            arm.forward(actuation, tip_force=bad)
        with pytest.raises(ValueError, match='tip_moment'):
            arm.forward(actuation, tip_moment=bad)
        with pytest.raises(ValueError, match='tip_force'):
            arm.inverse(tip, tip_force=bad)
    guess = actuation.copy()
    guess[1] = np.nan
    for asked in (arm.forward, arm.jacobian, lambda values: arm.inverse(tip, guess=values)):
        with pytest.raises(ValueError, match=arm.actuator_names[1]):
            asked(guess)
    assert arm.tips_of(np.zeros((0, len(arm.configuration_names)))).shape == (0, 3)


@pytest.mark.parametrize(('name', 'model'), cases())
def test_preferred_configuration_refuses_what_is_no_configuration(name, model):
    if name == 'pneumatic_arm':
        pytest.skip('prefers the same for every configuration')
    arm = model_of(name, model)
    for wrong in (arm.rest_configuration[:-1], np.full_like(arm.rest_configuration, np.nan)):
        with pytest.raises(ValueError, match=r'^(configuration|actuation|tensions?) |nan') as told:
            arm.preferred_configuration(wrong)
        assert str(len(arm.configuration_names)) in str(told.value) or 'nan' in str(told.value)


@pytest.mark.parametrize(('name', 'model'), cases())
def test_observed_configuration_is_none_or_nan_if_tips_are_missing(name, model):
    arm = model_of(name, model)
    tips = arm.shape_of(arm.rest_configuration).section_tips
    seen = arm.observed_configuration(tips)
    for missing in (tips[:-1], tips[:, :3]):
        assert arm.observed_configuration(missing) is None
    unseen = tips.copy()
    unseen[0, 0, 0] = np.nan
    seen_less = arm.observed_configuration(unseen)
    if seen is None:
        assert seen_less is None
    else:
        np.testing.assert_allclose(seen, arm.rest_configuration, atol=0.05)
        assert seen_less.shape == seen.shape and np.isnan(seen_less).all()


@pytest.mark.parametrize(('name', 'model'), cases())
@pytest.mark.filterwarnings('error')
def test_arguments_that_are_not_arrays_of_real_numbers_are_refused(name, model):
    arm = model_of(name, model)
    configuration = arm.rest_configuration
    actuation = arm.actuation_of(configuration)
    calls = [(call, actuation) for call in (arm.forward, arm.jacobian, arm.configuration_of)]
    calls += [(call, configuration) for call in (arm.actuation_of, arm.shape_of)]
    calls += [(arm.tip_and_jacobian, configuration), (arm.inverse, np.array([0.01, 0.0, 0.2]))]
    for call, good in calls:
        hidden = np.ma.masked_array(good, mask=np.arange(len(good)) == 1)
        for wrong, says in (
            (hidden, 'nan'),
            (good + 1j, 'complex'),
            ({'a': 1.0}, 'real numbers'),
            ([[0.0], 0.0], r'^\w+ = \[\[0\.0\], 0\.0\]: expected real numbers'),
        ):
            with pytest.raises(ValueError, match=says):
                call(wrong)
    for wrong in ([configuration + 1j], {'a': 1.0}, None):
        with pytest.raises(ValueError, match=r'complex|real numbers|shape'):
            arm.tips_of(wrong)


@pytest.mark.parametrize(('name', 'model'), cases())
def test_tips_from_configuration_and_from_actuation_agree(name, model):
    arm = model_of(name, model)
    for actuation in postures(name, model):
        configuration = arm.configuration_of(actuation)
        by_shape = arm.shape_of(configuration).tip[:3, 3]
        by_kinematics, _ = arm.tip_and_jacobian(configuration)
        held = arm.forward(arm.actuation_of(configuration)).tip[:3, 3]
        tolerance = 1e-4 * arm.rest_length_m
        assert np.linalg.norm(by_kinematics - by_shape) < tolerance
        assert np.linalg.norm(held - by_shape) < tolerance
        np.testing.assert_allclose(arm.tips_of(configuration[None])[0], by_shape, atol=tolerance)


@pytest.mark.parametrize(('name', 'model'), cases())
def test_jacobians_equal_central_differences(name, model):
    arm = model_of(name, model)
    scale = arm.configuration_scale
    for actuation in postures(name, model)[:3]:
        q = arm.configuration_of(actuation)
        _, J = arm.tip_and_jacobian(q)
        A = arm.actuation_jacobian(q)
        for k in range(len(q)):
            h = np.zeros(len(q))
            h[k] = 1e-4 * scale[k]
            ahead, behind = arm.tip_and_jacobian(q + h)[0], arm.tip_and_jacobian(q - h)[0]
            slope = (ahead - behind) / (2.0 * h[k])
            np.testing.assert_allclose(
                J[:, k] * scale[k], slope * scale[k], atol=2e-3 * arm.rest_length_m
            )
            forward, backward = arm.actuation_of(q + h), arm.actuation_of(q - h)
            span = np.max(np.abs(A)) * scale[k] + 1e-12
            np.testing.assert_allclose(
                A[:, k] * scale[k] / span,
                (forward - backward) / (2.0 * h[k]) * scale[k] / span,
                atol=5e-3,
            )


@pytest.mark.parametrize(('name', 'model'), cases())
def test_models_refuse_actuations_beyond_a_limit_by_actuator_name(name, model):
    arm, limits = model_of(name, model), rig_of(name).actuator_limits()
    rest = np.clip(0.0, limits.position_min, limits.position_max)
    further = READ_BEYOND * (limits.position_max - limits.position_min)
    for k, actuator in enumerate(limits.names):
        for bad in (limits.position_min - further, limits.position_max + further):
            actuation = rest.copy()
            actuation[k] = bad[k]
            for asked in (arm.forward, arm.jacobian):
                with pytest.raises(ValueError, match=rf'{actuator}\b.*(outside|allowed)'):
                    asked(actuation)


@pytest.mark.parametrize(
    ('name', 'field'),
    [
        ('pneumatic_arm', 'pressure_max_Pa'),
        ('hydraulic_arm', 'pressure_max_Pa'),
        ('fishbone_arm', 'tension_max_N'),
    ],
)
def test_models_keep_to_actuator_limits_below_those_of_the_body(name, field):
    """The body allows twice as much, as a curve that was measured further than a limit."""
    most = 0.5 * rig_of(name).actuator_limits().position_max
    lower = [f'arm.actuators[{k}].{field}={value}' for k, value in enumerate(most)]
    rig = load_rig(name, lower)
    too_much = 1.6 * most * (np.arange(len(most)) % 3 == 0)
    for model in rig.model_names:
        arm = rig.model(model)
        for asked in (arm.forward, arm.jacobian):
            with pytest.raises(ValueError, match=rf'{arm.actuator_names[0]}\b.*(outside|allowed)'):
                asked(too_much)
        solution = arm.inverse(model_of(name, model).forward(too_much).tip[:3, 3])
        assert not (solution.converged and np.any(solution.actuation > (1.0 + 1e-8) * most))


@pytest.mark.parametrize('name', NAMES)
def test_limits_refuse_commands_beyond_them_by_actuator_name(name):
    rig = rig_of(name)
    limits = rig.actuator_limits()
    middle = 0.5 * (limits.position_min + limits.position_max)
    for k, actuator in enumerate(limits.names):
        for bad in (limits.position_max[k] + 1e-3 * (limits.position_max - middle)[k], np.nan):
            command = middle.copy()
            command[k] = bad
            with pytest.raises(ValueError, match=actuator):
                limits.check(command)
    stage = build_inverse_kinematics(rig)
    with pytest.raises(ValueError, match='shape'):
        stage.actuation_of(np.zeros(len(stage.model.configuration_names) + 1))


@pytest.mark.parametrize('name', NAMES)
def test_plant_is_repeatable_refuses_invalid_commands_and_holds_position(name):
    rig, arm = rig_of(name), model_of(name)
    limits = rig.actuator_limits()
    rest = arm.actuation_of(arm.rest_configuration)
    target = rest + 0.1 * (limits.position_max - rest)
    one, two = build_plant(rig, 5), build_plant(rig, 5)
    count = len(limits.names)
    assert one.actuator_state().position.shape == (count,)
    for bad in (np.zeros(count + 1), np.full(count, np.nan)):
        with pytest.raises(ValueError, match=r'command|expected|finite'):
            one.step(bad, 0.02)
    assert one.time_s == 0.0
    seen = []
    for plant in (one, two):
        poses = []
        for _ in range(10):
            plant.step(target, 0.02)
            poses += [p.section_tips for p in plant.poll_poses()]
        seen.append(poses)
    assert len(seen[0]) == len(seen[1])
    np.testing.assert_array_equal(np.array(seen[0]), np.array(seen[1]))
    tips = one.true_section_tips()
    line = one.true_centerline(9)
    assert tips.shape[1:] == (4, 4) and line.shape == (9, 3)
    np.testing.assert_allclose(line[-1], tips[-1, :3, 3], atol=2e-3 * arm.rest_length_m)
    one.mocap_enabled = False
    one.poll_poses()
    one.hold()
    one.step(None, 2.0)
    still = one.actuator_state().position
    one.step(None, 0.5)
    moved = np.abs(one.actuator_state().position - still)
    assert np.all(moved <= 0.02 * (limits.position_max - limits.position_min))
    assert len([p for p in one.poll_poses() if p.stamp_s > 0.3]) == 0
    if isinstance(one, ChamberPressures):
        assert np.all(np.isfinite(one.chamber_pressures()))
    if one.weighed is not None:
        assert one.weighed.base_wrench().shape == (6,)
    assert (one.gripping is not None) == (rig.gripper is not None)


@pytest.mark.parametrize('name', NAMES)
def test_graph_plan_has_all_supervised_nodes_with_parameters_of_ros_types(name):
    rig = rig_of(name)
    plan = graph_plan(rig)
    assert set(SUPERVISED_NODES) | {'supervisor'} <= {spec.name for spec in plan}
    for spec in plan:
        assert spec.namespace == f'/{name}'
        for value in spec.parameters.values():
            assert isinstance(value, (bool, int, float, str)) or all(
                isinstance(v, str) for v in value
            )


@pytest.mark.parametrize('name', NAMES)
def test_urdf_joint_positions_of_a_configuration_lead_to_the_tip_of_the_model(name):
    rig, arm = rig_of(name), model_of(name)
    robot = ET.fromstring(build_urdf(rig))
    joints = {j.get('name'): j for j in robot.findall('joint')}
    movable = [n for n, j in joints.items() if j.get('type') != 'fixed']
    assert sorted(movable) == sorted(joint_names(rig))
    positions = joint_map(rig)
    for actuation in postures(name, rig.default_model)[:3]:
        configuration = arm.configuration_of(actuation)
        values = dict(zip(*positions(configuration)))
        expected = arm.shape_of(configuration).tip[:3, 3]
        assert np.linalg.norm(urdf_tip(robot, values) - expected) < 1e-4


def urdf_tip(robot, values):
    """Return the position (3,) of link `tip` from the frames and axes of the joints."""
    above = {j.find('child').get('link'): j for j in robot.findall('joint')}
    chain, link = [], 'tip'
    while link != 'base':
        chain.append(above[link])
        link = above[link].find('parent').get('link')
    rotation, position = np.eye(3), np.zeros(3)
    for joint in reversed(chain):
        position = position + rotation @ np.array(joint.find('origin').get('xyz').split(), float)
        if joint.get('type') == 'fixed':
            continue
        axis = np.array(joint.find('axis').get('xyz').split(), dtype=float)
        value = values[joint.get('name')]
        if joint.get('type') == 'prismatic':
            position = position + rotation @ (axis * value)
            continue
        hat = np.cross(np.eye(3), axis)
        rotation = rotation @ (np.eye(3) + np.sin(value) * hat + (1 - np.cos(value)) * hat @ hat)
    return position
