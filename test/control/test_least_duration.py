"""Shortest duration of a change of the configuration."""

import numpy as np
import pytest

from softarm_ros.control.goals.least_duration import least_duration_s
from softarm_ros.rigs.loader import load_rig

SPEED_M_S, WINDOW_S = 0.015, 0.3


def duration_of(rig, way):
    model = rig.model()
    posture = model.posture_of(model.rest_configuration)
    room = rig.actuator_limits()
    return least_duration_s(np.array(way), posture, model, room, SPEED_M_S, WINDOW_S)


def test_elongation_takes_no_longer_than_the_motion_of_the_tip_and_the_pressures_need():
    """Its scale is a tenth of a millimetre: as tip motion it would take four minutes."""
    rig = load_rig('hydraulic_arm')
    assert 0.002 / SPEED_M_S < duration_of(rig, [0.0] * 5 + [0.002]) < 10.0


@pytest.mark.parametrize('name', ['cable_arm', 'trunk'])
def test_bends_that_cancel_at_the_tip_are_not_free(name):
    """The Jacobian changes on the way, so opposite bends of two sections do move the tip."""
    rig = load_rig(name)
    model = rig.model()
    slopes = model.posture_of(model.rest_configuration).tip_jacobian
    way = np.zeros(len(model.rest_configuration))
    way[0], way[2] = 0.5, -0.5 * slopes[0, 0] / slopes[0, 2]
    assert np.linalg.norm(slopes @ way) < 0.05 * np.linalg.norm(slopes[:, 0] * way[0])
    assert duration_of(rig, way) > 0.2 * 0.5 * model.rest_length_m / SPEED_M_S
