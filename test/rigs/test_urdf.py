"""The URDF, read back by an independent forward kinematics, bends like the arm."""

import math
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from softarm_ros.rigs.arms.cable_driven import CableArm
from softarm_ros.rigs.loader import list_rigs, load_rig
from softarm_ros.rigs.urdf import build_urdf, joint_names, joint_positions

COMMITTED = Path(__file__).parents[2] / 'urdf' / 'cable_arm.urdf'
# Of the others, test/contracts asks what they promise.
RIGS = [info.name for info in list_rigs() if isinstance(load_rig(info.name).arm, CableArm)]
BENDS = [0.9, -0.6, -0.4, 1.3]


def rotation(axis, angle):
    x, y, z = axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + math.sin(angle) * K + (1.0 - math.cos(angle)) * K @ K


def numbers(text):
    return [float(part) for part in text.split()]


def link_poses(urdf, positions):
    """Return the pose (4, 4) of every link in the root link's frame."""
    robot = ET.fromstring(urdf)
    joints = {j.find('child').get('link'): j for j in robot.findall('joint')}
    links = [link.get('name') for link in robot.findall('link')]
    (root,) = set(links) - set(joints)
    poses = {root: np.eye(4)}

    def pose(link):
        if link not in poses:
            joint = joints[link]
            origin = joint.find('origin')
            assert numbers(origin.get('rpy')) == [0.0, 0.0, 0.0]
            step = np.eye(4)
            step[:3, 3] = numbers(origin.get('xyz'))
            if joint.get('type') == 'revolute':
                turn = rotation(
                    numbers(joint.find('axis').get('xyz')), positions[joint.get('name')]
                )
                step[:3, :3] = turn
            poses[link] = pose(joint.find('parent').get('link')) @ step
        return poses[link]

    for link in links:
        pose(link)
    return root, poses


def section_transform(bend_x, bend_y, length, endcap):
    """Tz(h) [exp(hat(-b_y, b_x, 0)) | L (b_x A, b_y A, sinc theta)] Tz(h)."""
    theta = math.hypot(bend_x, bend_y)
    cap, arc = np.eye(4), np.eye(4)
    cap[2, 3] = endcap
    if theta == 0.0:
        arc[2, 3] = length
        return cap @ arc @ cap
    A = (1.0 - math.cos(theta)) / theta**2
    arc[:3, :3] = rotation((-bend_y / theta, bend_x / theta, 0.0), theta)
    arc[:3, 3] = length * np.array([bend_x * A, bend_y * A, math.sin(theta) / theta])
    return cap @ arc @ cap


def exact_tips(rig, configuration):
    pose, tips = np.eye(4), {}
    for section, bend in zip(rig.arm.sections, np.reshape(configuration, (-1, 2))):
        pose = pose @ section_transform(*bend, section.length_m, section.endcap_length_m)
        tips[f'{section.name}_tip'] = pose
    tips['tip'] = pose
    return tips


def tip_error(rig, configuration, links):
    names, values = joint_positions(rig, configuration, links)
    _, poses = link_poses(build_urdf(rig, links), dict(zip(names, values)))
    return max(
        np.linalg.norm(poses[name] - tip) for name, tip in exact_tips(rig, configuration).items()
    )


@pytest.mark.parametrize('name', RIGS)
def test_straight_arm_is_exact_and_along_z(name):
    rig = load_rig(name)
    zero = np.zeros(2 * len(rig.arm.sections))
    assert tip_error(rig, zero, 8) < 1e-9
    names, values = joint_positions(rig, zero)
    _, poses = link_poses(build_urdf(rig), dict(zip(names, values)))
    length = sum(s.length_m + 2.0 * s.endcap_length_m for s in rig.arm.sections)
    np.testing.assert_allclose(poses['tip'][:3, 3], [0.0, 0.0, length], atol=1e-8)


@pytest.mark.parametrize('odd', [0, 1], ids=['even', 'odd'])
@pytest.mark.parametrize(
    'bends', [BENDS, [1.5, 0.0, 1.5, 0.0], [0.0, -1.2, 0.0, 1.2], [1.4, 1.4, -1.4, 1.4]]
)
def test_bent_arm_converges_at_second_order(bends, odd):
    """Position and orientation of every section tip; twist of the joint pairs included."""
    rig = load_rig('cable_arm')
    counts = np.array([8, 16, 32]) + odd
    errors = [tip_error(rig, bends, int(n)) for n in counts]
    orders = np.log(np.divide(errors[:-1], errors[1:])) / np.log(counts[1:] / counts[:-1])
    np.testing.assert_allclose(orders, 2.0, atol=0.15)
    assert errors[-1] < 5e-3


def test_default_number_of_links_is_good_enough_to_look_at():
    """At 90 degrees a section the drawn tip is within a millimetre of the model's."""
    rig = load_rig('cable_arm')
    bends = [math.pi / 2, 0.0, 0.0, math.pi / 2]
    names, values = joint_positions(rig, bends)
    _, poses = link_poses(build_urdf(rig), dict(zip(names, values)))
    assert np.linalg.norm(poses['tip'][:3, 3] - exact_tips(rig, bends)['tip'][:3, 3]) < 1e-3


@pytest.mark.parametrize('name', RIGS)
def test_it_is_a_tree_of_unique_names_rooted_in_base(name):
    rig = load_rig(name)
    robot = ET.fromstring(build_urdf(rig))
    assert robot.get('name') == name
    links = [link.get('name') for link in robot.findall('link')]
    joints = [joint.get('name') for joint in robot.findall('joint')]
    assert len(set(links)) == len(links) and len(set(joints)) == len(joints)
    children = [j.find('child').get('link') for j in robot.findall('joint')]
    parents = [j.find('parent').get('link') for j in robot.findall('joint')]
    assert len(set(children)) == len(children) == len(links) - 1
    assert set(parents) | set(children) == set(links)
    root, poses = link_poses(build_urdf(rig), dict.fromkeys(joint_names(rig), 0.0))
    assert root == 'base' and len(poses) == len(links)
    materials = {m.get('name') for m in robot.findall('material')}
    used = {m.get('name') for m in robot.findall('link/visual/material')}
    assert used == materials


def test_movable_joints_are_the_named_ones_in_order():
    rig = load_rig('cable_arm')
    robot = ET.fromstring(build_urdf(rig, 5))
    movable = [j.get('name') for j in robot.findall('joint') if j.get('type') != 'fixed']
    assert movable == joint_names(rig, 5) == joint_positions(rig, BENDS, 5)[0]
    assert len(movable) == 2 * 2 * 5
    assert movable[:4] == [
        'proximal_01_about_x',
        'proximal_01_about_y',
        'proximal_02_about_y',
        'proximal_02_about_x',
    ]


def test_mass_is_the_arm_s_and_inertias_are_physical():
    rig = load_rig('cable_arm')
    robot = ET.fromstring(build_urdf(rig, 6))
    inertials = robot.findall('link/inertial')
    masses = [float(i.find('mass').get('value')) for i in inertials]
    expected = sum(s.body_mass_kg + 2.0 * s.endcap_mass_kg for s in rig.plant.sections)
    assert sum(masses) == pytest.approx(expected, rel=1e-7)
    for inertial in inertials:
        i = inertial.find('inertia')
        moments = sorted(float(i.get(k)) for k in ('ixx', 'iyy', 'izz'))
        assert moments[0] > 0.0 and moments[0] + moments[1] >= moments[2] * (1.0 - 1e-6)
    names = {link.get('name') for link in robot.findall('link') if link.find('inertial') is None}
    assert names == {'base', 'tip', 'proximal_tip', 'distal_tip'}


def test_center_of_mass_of_the_straight_arm():
    """Cylinders along z: the sections are symmetric, so their centres are half-way."""
    rig = load_rig('cable_arm')
    _, poses = link_poses(build_urdf(rig), dict.fromkeys(joint_names(rig), 0.0))
    moment, mass = 0.0, 0.0
    for link in ET.fromstring(build_urdf(rig)).findall('link'):
        inertial = link.find('inertial')
        if inertial is not None:
            m = float(inertial.find('mass').get('value'))
            z = numbers(inertial.find('origin').get('xyz'))[2] + poses[link.get('name')][2, 3]
            moment, mass = moment + m * z, mass + m
    assert moment / mass == pytest.approx(0.123, abs=1e-6)


def test_limits_hold_the_largest_bending():
    rig = load_rig('cable_arm')
    for section in (0, 1):
        for axis in (0, 1):
            bends = np.zeros(4)
            bends[2 * section + axis] = math.radians(
                rig.arm.sections[section].max_bending_angle_deg
            )
            names, values = joint_positions(rig, bends)
            limits = {
                j.get('name'): j.find('limit')
                for j in ET.fromstring(build_urdf(rig)).findall('joint')
                if j.get('type') == 'revolute'
            }
            for name, value in zip(names, values):
                assert float(limits[name].get('lower')) <= value + 1e-8
                assert value <= float(limits[name].get('upper')) + 1e-8
                assert float(limits[name].get('effort')) > 0.0
                assert float(limits[name].get('velocity')) > 0.0
            top = max(float(limit.get('upper')) for limit in limits.values())
            assert np.max(np.abs(values)) == pytest.approx(top, rel=1e-6)


def test_committed_file_is_what_the_generator_writes():
    assert COMMITTED.read_text(encoding='utf-8') == build_urdf(load_rig('cable_arm'))


@pytest.mark.parametrize('links', [0, -1, 100])
def test_number_of_links_is_checked(links):
    with pytest.raises(ValueError, match=f'links_per_section = {links}: expected 1 to 99'):
        build_urdf(load_rig('cable_arm'), links)


def test_configuration_is_checked():
    rig = load_rig('cable_arm')
    with pytest.raises(ValueError, match=r'shape \(3,\); expected \(4,\)'):
        joint_positions(rig, [0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match='expected finite angles'):
        joint_positions(rig, [0.0, np.nan, 0.0, 0.0])
