"""Identified parameters of the hydraulic arm: identification data and an independent solution."""

from __future__ import annotations

from dataclasses import astuple, replace

import numpy as np
import pytest

from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.hydraulics.identified_arm import (
    SET_B,
    build_body,
    build_hydraulic_arm,
    identify,
    rest_pose,
)

# Pressure [Pa] on one actuator, tips x, z of both sections [m], angles [deg]; n = 1.
STATIC = [
    (1, 2e5, (-0.046, 0.394), (-0.117, 0.785), (-13.3, 6.2)),
    (1, 4e5, (-0.092, 0.383), (-0.232, 0.754), (-26.9, 12.4)),
    (1, 6e5, (-0.137, 0.365), (-0.346, 0.701), (-41.2, 18.6)),
    (1, 8e5, (-0.181, 0.337), (-0.456, 0.620), (-56.5, 24.7)),
    (4, 2e5, (-0.021, 0.396), (0.039, 0.785), (-6.2, 29.9)),
    (4, 4e5, (-0.042, 0.394), (0.076, 0.755), (-12.1, 60.4)),
    (4, 6e5, (-0.060, 0.391), (0.110, 0.704), (-17.5, 92.1)),
    (4, 8e5, (-0.075, 0.388), (0.137, 0.630), (-22.0, 126.3)),
]


@pytest.mark.parametrize('segments', SET_B)
def test_stored_set_equals_a_new_identification(segments):
    assert SET_B[segments].segments == segments
    np.testing.assert_allclose(astuple(SET_B[segments]), astuple(identify(segments)), rtol=2e-7)


@pytest.mark.parametrize('segments', SET_B)
@pytest.mark.parametrize(
    ('pressures', 'length_m', 'angle_deg', 'radius_m'),
    [((0.0, 1e6, 1e6), 0.401, 165.7, 0.1387), ((1e6, 0.0, 0.0), 0.399, -168.0, 0.1361)],
)
def test_limit_poses_match_the_reported_poses(segments, pressures, length_m, angle_deg, radius_m):
    """One section at 1 MPa; required 2 %. The length with one actuator comes from the model."""
    pose = rest_pose(build_body(SET_B[segments], 1), pressures)
    assert pose.stable
    assert pose.lengths[0] == pytest.approx(length_m, abs=1e-4)
    assert np.degrees(pose.angles[0]) == pytest.approx(angle_deg, abs=1e-3)
    assert pose.lengths[0] / abs(pose.angles[0]) == pytest.approx(radius_m, rel=2e-3)


@pytest.mark.parametrize(('actuator', 'pressure', 'first', 'second', 'angles'), STATIC)
def test_static_tips_match_an_independent_solution(actuator, pressure, first, second, angles):
    """The reference takes curvature per stretched length: 0.5 % of strain apart."""
    pressures = np.zeros(6)
    pressures[actuator - 1] = pressure
    pose = rest_pose(build_body(SET_B[1]), pressures)
    np.testing.assert_allclose(pose.tips[0, [0, 2]], first, atol=1.5e-3)
    np.testing.assert_allclose(pose.tips[1, [0, 2]], second, atol=2.5e-3)
    np.testing.assert_allclose(np.degrees(pose.angles), angles, atol=0.3)
    assert np.abs(pose.tips[:, 1]).max() < 1e-12


def test_set_for_one_segment_is_too_compliant_for_five():
    """With the mass of five segments at their tops, the stiffness for one segment is too low."""
    drive = build_body(replace(SET_B[1], segments=5), 1)
    assert np.degrees(rest_pose(drive, (0.0, 1e6, 1e6)).angles[0]) > 175.0


def test_actuators_1_and_4_are_opposite_and_the_excess_is_in_the_lever():
    drive = build_body(SET_B[5])
    np.testing.assert_allclose(drive.map[0, 1:3, 0], -drive.map[5, 1:3, 3], atol=1e-18)
    # The excess is in the lever, not in the force.
    np.testing.assert_array_equal(drive.map[0, 0, :3], drive.map[0, 0, 0])
    levers = np.hypot(drive.map[0, 1, :3], drive.map[0, 2, :3])
    assert levers[0] / levers[1] == pytest.approx(SET_B[5].excess)
    assert levers[1] == pytest.approx(levers[2])


def test_hydraulic_axes_have_no_chamber_compliance_of_their_own():
    system = build_hydraulic_arm(SET_B[1], sections=3)
    assert [axis.name for axis in system.hydraulics.axes] == [f'axis{i}' for i in range(1, 10)]
    assert all(axis.chamber_compliance_m3_Pa == 0.0 for axis in system.hydraulics.axes)


def test_section_under_extreme_vacuum_raises_no_equilibrium():
    with pytest.raises(ModelError, match='no equilibrium'):
        rest_pose(build_body(SET_B[1], 1), (-1e8, -1e8, -1e8))
