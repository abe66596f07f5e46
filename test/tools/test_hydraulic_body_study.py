"""The hydraulic arm's body against the reported and the identified numbers."""

import numpy as np
import pytest

from softarm_ros.tools.hydraulic_body_study import ramps, response, static_pose, step

# Torque on one actuator, tips x, z of both sections [m], angles [deg]: identified set, n = 1.
STATIC = [
    (1, 0.5, (-0.046, 0.394), (-0.117, 0.785), (-13.3, 6.2)),
    (1, 1.0, (-0.092, 0.383), (-0.232, 0.754), (-26.9, 12.4)),
    (1, 1.5, (-0.137, 0.365), (-0.346, 0.701), (-41.2, 18.6)),
    (1, 2.0, (-0.181, 0.337), (-0.456, 0.620), (-56.5, 24.7)),
    (4, 0.5, (-0.021, 0.396), (0.039, 0.785), (-6.2, 29.9)),
    (4, 1.0, (-0.042, 0.394), (0.076, 0.755), (-12.1, 60.4)),
    (4, 1.5, (-0.060, 0.391), (0.110, 0.704), (-17.5, 92.1)),
    (4, 2.0, (-0.075, 0.388), (0.137, 0.630), (-22.0, 126.3)),
]


@pytest.mark.parametrize(
    ('torques', 'angle_deg', 'radius_m'),
    [((0.0, 2.5, 2.5), 165.7, 0.1387), ((2.5, 0.0, 0.0), -168.0, 0.1361)],
)
def test_limit_poses_are_the_reported(torques, angle_deg, radius_m):
    """Bending angles of one section at 1 MPa; the bar is 2 %."""
    pose = static_pose(torques)
    assert pose.stable
    assert pose.angles_deg[0] == pytest.approx(angle_deg, abs=0.02)
    assert pose.lengths_m[0] / np.radians(abs(angle_deg)) == pytest.approx(radius_m, rel=2e-3)


@pytest.mark.parametrize(('actuator', 'torque', 'first', 'second', 'angles'), STATIC)
def test_static_tips(actuator, torque, first, second, angles):
    """An independent solution with curvature per stretched length: 0.5 % of strain apart."""
    pose = static_pose(step(actuator, torque_N_m=torque)(0.0))
    assert np.allclose(pose.tips_m[0, [0, 2]], first, atol=1.5e-3)
    assert np.allclose(pose.tips_m[1, [0, 2]], second, atol=2.5e-3)
    assert np.allclose(pose.angles_deg, angles, atol=0.3)
    assert np.abs(pose.tips_m[:, 1]).max() < 1e-12


def test_steps_settle_as_reported():
    """Within 1 s for actuators 1, 5, 6 and within 1.5 s for 1 and 4."""
    together, against = response(step(1, 5, 6)), response(step(1, 4))
    assert together.tip_settling_s < 1.0
    assert together.curvature_settling_s.max() < 1.0
    assert against.tip_settling_s < 1.5
    assert against.curvature_settling_s.max() < 1.5
    # Bent the same way, and in reverse.
    assert np.allclose(together.curvature[-1], (-1.19, -3.48), atol=0.05)
    assert np.allclose(against.curvature[-1], (-2.67, 4.81), atol=0.05)


def test_ramps_oscillate_less_than_steps():
    """The paper's reason for ramps."""
    stepped = response(step(1, 4), end_s=6.0)
    ramped = response(ramps({1: 0.0, 4: 0.0}, 0.75), begin_s=2.0, end_s=6.0)
    assert stepped.overshoot > 0.05
    assert ramped.overshoot < 0.5 * stepped.overshoot
