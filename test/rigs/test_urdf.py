"""The URDF, read back by an independent forward kinematics, has the arm's shape and mass."""

import math
import shutil
import subprocess
import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from softarm_ros.rigs.loader import list_rigs, load_rig
from softarm_ros.rigs.urdf import build_urdf, joint_map, joint_names, joint_positions

COMMITTED = Path(__file__).parents[2] / 'urdf' / 'cable_arm.urdf'
RIGS = [info.name for info in list_rigs()]
POSES = 20
WITHIN_M = 1e-4
WITHIN_RAD = 1e-3
# Masses of the rig files, added by hand.
MASSES_KG = {
    'cable_arm': 2 * (0.020 + 2 * 0.004),
    'cable_arm_single': 0.020 + 2 * 0.004,
    'trunk': 3 * (0.060 + 2 * 0.020),
    'hydraulic_arm': 0.359 + 0.346,
    'pneumatic_arm': 2 * 0.093 + 0.065,
    'pam_arm': 0.428987 * 0.9977,
    'fishbone_arm': 4 * (0.01546 + 27184.0 * 0.0003 * 0.023 * 0.05),
}


@cache
def rig_of(name):
    return load_rig(name)


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
            elif joint.get('type') == 'prismatic':
                along = np.array(numbers(joint.find('axis').get('xyz')))
                step[:3, 3] += positions[joint.get('name')] * along
            poses[link] = pose(joint.find('parent').get('link')) @ step
        return poses[link]

    for link in links:
        pose(link)
    return root, poses


def configurations(rig, count=POSES):
    return rig.sample_configurations(np.random.default_rng(7), count)


@pytest.mark.parametrize('links', [1, 8])
@pytest.mark.parametrize('name', RIGS)
def test_section_tips_of_the_urdf_match_the_model(name, links):
    """In random configurations: within 0.1 mm and 1 mrad, with joints within their limits."""
    rig = rig_of(name)
    model, urdf, positions = rig.model(), build_urdf(rig, links), joint_map(rig, links)
    limits = {
        j.get('name'): (float(j.find('limit').get('lower')), float(j.find('limit').get('upper')))
        for j in ET.fromstring(urdf).findall('joint')
        if j.get('type') != 'fixed'
    }
    for configuration in configurations(rig):
        values = dict(zip(*positions(configuration)))
        _, poses = link_poses(urdf, values)
        shape = model.shape_of(configuration)
        names = [f'{section}_tip' for section in rig.section_names]
        for link, expected in zip([*names, 'tip'], [*shape.section_tips, shape.tip], strict=True):
            assert np.linalg.norm(poses[link][:3, 3] - expected[:3, 3]) < WITHIN_M
            apart = poses[link][:3, :3].T @ expected[:3, :3]
            assert np.linalg.norm(apart - np.eye(3)) / math.sqrt(2.0) < WITHIN_RAD
        if links == 8:
            outside = {n: v for n, v in values.items() if not limits[n][0] <= v <= limits[n][1]}
            assert not outside


@pytest.mark.parametrize('name', RIGS)
def test_links_lie_on_the_centreline(name):
    rig = rig_of(name)
    (configuration,) = configurations(rig, 1)
    line = rig.model().shape_of(configuration).centerline(2000)
    values = dict(zip(*joint_positions(rig, configuration)))
    _, poses = link_poses(build_urdf(rig), values)
    for pose in poses.values():
        near = np.min(np.linalg.norm(line - pose[:3, 3], axis=1))
        assert near < 1e-3 * rig.model().rest_length_m


@pytest.mark.parametrize('name', RIGS)
def test_urdf_is_a_tree_of_unique_names_rooted_in_base(name):
    rig = rig_of(name)
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
    assert used <= materials


@pytest.mark.parametrize('name', RIGS)
def test_check_urdf_accepts_the_urdf(name, tmp_path):
    if shutil.which('check_urdf') is None:
        pytest.skip('check_urdf is not installed (apt: liburdfdom-tools)')
    path = tmp_path / f'{name}.urdf'
    path.write_text(build_urdf(rig_of(name)), encoding='utf-8')
    done = subprocess.run(
        ['check_urdf', path], capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'Successfully Parsed XML' in done.stdout
    assert 'rror' not in done.stderr


def test_movable_joints_have_the_expected_names_and_order():
    rig = rig_of('cable_arm')
    robot = ET.fromstring(build_urdf(rig, 5))
    movable = [j.get('name') for j in robot.findall('joint') if j.get('type') != 'fixed']
    assert movable == joint_names(rig, 5) == joint_positions(rig, [0.9, -0.6, -0.4, 1.3], 5)[0]
    assert len(movable) == 2 * (3 * 5 + 3)
    assert movable[:3] == ['proximal_01_about_x', 'proximal_01_about_y', 'proximal_01_along_z']


@pytest.mark.parametrize('links', [1, 8])
@pytest.mark.parametrize('name', RIGS)
def test_urdf_has_the_mass_of_the_arm_and_physical_inertias(name, links):
    robot = ET.fromstring(build_urdf(rig_of(name), links))
    inertials = robot.findall('link/inertial')
    masses = [float(i.find('mass').get('value')) for i in inertials]
    assert sum(masses) == pytest.approx(MASSES_KG[name], rel=1e-6)
    assert min(masses) > 0.0
    for inertial in inertials:
        i = inertial.find('inertia')
        moments = sorted(float(i.get(k)) for k in ('ixx', 'iyy', 'izz'))
        assert moments[0] > 0.0 and moments[0] + moments[1] >= moments[2] * (1.0 - 1e-6)
    without = {link.get('name') for link in robot.findall('link') if link.find('inertial') is None}
    assert without == ({'base'} if name == 'pneumatic_arm' else {'base', 'tip'})


def centre_of_mass(rig, configuration):
    _, poses = link_poses(build_urdf(rig), dict(zip(*joint_positions(rig, configuration))))
    moment, mass = np.zeros(3), 0.0
    for link in ET.fromstring(build_urdf(rig)).findall('link'):
        inertial = link.find('inertial')
        if inertial is not None:
            m = float(inertial.find('mass').get('value'))
            at = [*numbers(inertial.find('origin').get('xyz')), 1.0]
            moment, mass = moment + m * (poses[link.get('name')] @ at)[:3], mass + m
    return moment / mass


def test_centre_of_mass_of_straight_arms_matches_a_calculation_by_hand():
    """For symmetric sections, and for rods with a heavy connector after each."""
    rig = rig_of('cable_arm')
    np.testing.assert_allclose(centre_of_mass(rig, np.zeros(4)), [0.0, 0.0, 0.123], atol=2e-4)
    # Identified strips are not straight, nor do antagonists pull at the same radius.
    straight = [f'arm.segments[{k}].rest_curvature_1_m=[0.0, 0.0, 0.0]' for k in range(4)]
    alike = [f'arm.actuators[{j}].routes[0].radius_m=0.01' for j in range(8)]
    rig = load_rig('fishbone_arm', ['gravity_m_s2=[0.0, 0.0, 0.0]', *straight, *alike])
    rod = 27184.0 * 0.0003 * 0.023 * 0.05
    of_unit = (rod * 0.025 + 0.01546 * 0.05625) / (rod + 0.01546)
    expected = np.mean([0.0625 * k + of_unit for k in range(4)])
    straight = centre_of_mass(rig, rig.model().rest_configuration)
    np.testing.assert_allclose(straight, [0.0, 0.0, expected], atol=2e-4)


def test_tip_load_is_part_of_the_mass_of_the_urdf():
    rig = load_rig('pam_arm', ['tip_load_kg=0.05'])
    masses = [
        float(m.get('value')) for m in ET.fromstring(build_urdf(rig)).findall('link/inertial/mass')
    ]
    assert sum(masses) == pytest.approx(MASSES_KG['pam_arm'] + 0.05, rel=1e-6)


def test_masses_of_the_controller_count_before_those_of_the_plant():
    given = {'body_mass_kg': 0.05, 'endcap_mass_kg': 0.01}
    settings = [f'arm.sections[{k}].{n}={m}' for k in range(2) for n, m in given.items()]
    rig = load_rig('cable_arm', [*settings, 'tip_load_kg=0.03'])
    for known in (rig, rig.model_copy(update={'plant': None})):
        robot = ET.fromstring(build_urdf(known))
        masses = [float(m.get('value')) for m in robot.findall('link/inertial/mass')]
        assert sum(masses) == pytest.approx(2 * 0.07 + 0.03, rel=1e-6)


def test_urdf_of_an_arm_with_unknown_mass_has_no_inertials():
    rig = rig_of('cable_arm').model_copy(update={'plant': None})
    robot = ET.fromstring(build_urdf(rig))
    assert not robot.findall('link/inertial') and robot.findall('link/visual')


def test_committed_urdf_matches_the_generator():
    assert COMMITTED.read_text(encoding='utf-8') == build_urdf(rig_of('cable_arm'))


@pytest.mark.parametrize('links', [0, -1, 100])
def test_number_of_links_is_checked(links):
    with pytest.raises(ValueError, match=f'links_per_section = {links}: expected 1 to 99'):
        build_urdf(load_rig('cable_arm'), links)


def test_configuration_of_wrong_size_or_with_nan_is_refused():
    rig = load_rig('cable_arm')
    with pytest.raises(ValueError, match='configuration'):
        joint_positions(rig, [0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match='finite'):
        joint_positions(rig, [0.0, np.nan, 0.0, 0.0])
