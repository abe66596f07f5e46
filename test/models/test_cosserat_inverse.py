"""Cosserat rod: tensions from a tip pose, and from cable lengths."""

import numpy as np
import pytest

from softarm_reproduction.rod_reference import random_cases, two_segment_arm
from softarm_ros.models.cosserat.arm import CosseratArm
from softarm_ros.models.cosserat.config import (
    CableRoute,
    RodCableConfig,
)
from softarm_ros.models.cosserat.inverse import tensions_of_lengths


@pytest.fixture(scope='module')
def arm():
    return CosseratArm(two_segment_arm())


def test_inverse_reaches_tip_poses_of_random_tensions(arm):
    for tensions, force, _ in random_cases(15, seed=3):
        target = arm.forward(tensions, force).tip
        found = arm.inverse(target[:3, 3], tip_force=force)
        assert found.converged, found.message
        assert found.shape.tip[:3, 3] == pytest.approx(target[:3, 3], abs=1e-7)
        assert np.linalg.norm(found.actuation) <= np.linalg.norm(tensions) * (1.0 + 1e-4)
        assert found.actuation.min() >= 0.0
        posed = arm.inverse(target[:3, 3], target[:3, :3], guess=found.actuation, tip_force=force)
        assert posed.converged, posed.message
        assert posed.shape.tip == pytest.approx(target, abs=1e-6)


def test_inverse_reports_an_unreachable_point(arm):
    found = arm.inverse((0.35, 0.0, 0.3))
    assert not found.converged
    assert found.residual > 0.01
    assert 'not reached: ' in found.message and 'c0_1 at 0 N' in found.message


def test_tensions_of_lengths_recovers_the_tensions(arm):
    for tensions, force, moment in random_cases(15, seed=4):
        wanted = arm.rod.solve(tensions, force, moment).contractions
        slack = tensions == 0.0
        # Slack cables are left longer than their path.
        found = tensions_of_lengths(
            arm.rod, wanted - 0.01 * slack, tip_force=force, tip_moment=moment
        )
        assert found.converged, found.message
        assert found.tensions == pytest.approx(tensions, abs=2e-4)
        assert found.state.slack[slack].all()


def test_inverse_reports_that_a_central_cable_cannot_move_the_tip():
    config = two_segment_arm()
    cables = [
        RodCableConfig(
            name='middle', routes=[CableRoute(segment='s0', radius_m=0.0, angle_deg=0.0)]
        )
    ]
    arm = CosseratArm(config.model_copy(update={'cables': tuple(cables), 'extensible': False}))
    found = arm.inverse((0.02, 0.0, 0.39))
    assert not found.converged
    assert 'no change of the actuation moves the tip' in found.message
