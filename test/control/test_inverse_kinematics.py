import numpy as np
import pytest

from softarm_ros import load_rig
from softarm_ros.control.inverse_kinematics import InverseKinematics
from softarm_ros.control.pretension import Pretension
from softarm_ros.rigs.rig_files import list_rigs
from softarm_ros.runtime.assembly import build_inverse_kinematics

RIG = load_rig('cable_arm')
MODEL = RIG.model()
LIMITS = RIG.actuator_limits()
BEND = np.array([0.9, 0.4, -0.3, 1.1])
PERIOD = 0.01


def stage(pretension_m=0.0):
    pretension = Pretension.of_length(pretension_m, LIMITS)
    return InverseKinematics(MODEL, RIG.configuration_limits(), pretension, PERIOD)


def test_actuation_without_pretension_is_that_of_the_model():
    assert np.array_equal(stage().actuation_of(BEND), MODEL.actuation_of(BEND))


def test_pretension_winds_all_cables_equally_and_without_a_jump():
    winding = stage(2.0e-3)
    count = round(winding.pretension.duration_s(2.0e-3) / PERIOD) + 2
    extra = np.array([winding.actuation_of(BEND) - MODEL.actuation_of(BEND) for _ in range(count)])
    assert np.allclose(extra, extra[:, :1])
    assert extra[0, 0] < 1e-5
    assert np.all(np.diff(extra[:, 0]) >= 0.0)
    assert np.diff(extra[:, 0]).max() <= 0.2 * LIMITS.max_speed[0] * PERIOD * (1 + 1e-9)
    assert extra[-1] == pytest.approx(2.0e-3)


@pytest.mark.parametrize('wound_m', [2.0e-3, 1.3e-3, 0.0])
@pytest.mark.parametrize('before_s', [0.0, 5.0])
def test_pretension_continues_from_the_wound_length_after_a_restart(wound_m, before_s):
    """A restart of this stage, which has wound nothing yet, or of the driver, which is at rest."""
    winding = stage(2.0e-3)
    for _ in range(1 + round(before_s / PERIOD)):
        winding.actuation_of(BEND, moving=before_s > 0.0)
    stand = MODEL.actuation_of(BEND) + wound_m
    winding.stand(stand)
    assert winding.actuation_of(BEND, moving=False) == pytest.approx(stand, abs=1e-6)
    first, last = (winding.actuation_of(BEND) for _ in range(2))
    assert first == pytest.approx(stand, abs=0.2 * LIMITS.max_speed[0] * PERIOD)
    assert np.all(last - first >= 0.0)
    # An arm stopped in motion and NaN are not restarts.
    before = winding.actuation_of(BEND, moving=False)
    for other in (before + 1e-4 * np.cos(np.arange(len(before))), np.full(len(before), np.nan)):
        winding.stand(other)
        assert np.array_equal(winding.actuation_of(BEND, moving=False), before)


def test_pretension_waits_until_the_arm_may_move():
    """Otherwise the arm would start with a jump to the length wound while it was held."""
    winding = stage(2.0e-3)
    for _ in range(300):
        standing = winding.actuation_of(BEND, moving=False)
    assert np.array_equal(standing, MODEL.actuation_of(BEND))
    moving = winding.actuation_of(BEND)
    assert 0.0 < np.max(moving - standing) < 1e-5


def test_winding_goes_on_from_rest_after_a_stop():
    """At the speed of the moment of the stop, the motors would start in one period."""
    winding = stage(2.0e-3)
    for _ in range(30):
        moving = winding.actuation_of(BEND)
    stopped = winding.actuation_of(BEND, moving=False)
    assert np.array_equal(stopped, moving)
    first = winding.actuation_of(BEND) - stopped
    assert 0.0 < first.max() <= 0.2 * LIMITS.max_acceleration[0] * PERIOD**2
    for _ in range(200):
        last = winding.actuation_of(BEND)
    assert last - MODEL.actuation_of(BEND) == pytest.approx(2.0e-3)


@pytest.mark.parametrize(
    ('configuration', 'message'),
    [
        ([0.1, 0.2], r'shape \(2,\); expected \(4,\)'),
        ([0.1, np.nan, 0.0, 0.0], 'expected a finite number'),
        (
            [0.0, 0.0, 2.0, 2.0],
            r'distal_bend_x, distal_bend_y\) bends by 162.* at most 1[0-9]+ deg',
        ),
    ],
)
def test_bad_configurations_are_refused(configuration, message):
    with pytest.raises(ValueError, match=message):
        stage().actuation_of(configuration)


def test_coordinate_beyond_its_range_is_refused_by_name():
    rig = load_rig('pneumatic_arm')
    answer = build_inverse_kinematics(rig)
    beyond = answer.model.rest_configuration.copy()
    beyond[1] = -0.01
    with pytest.raises(
        ValueError, match=rf'{answer.model.configuration_names[1]} = -0\.01 outside'
    ):
        answer.actuation_of(beyond)


@pytest.mark.parametrize('name', [info.name for info in list_rigs()])
def test_rest_configuration_of_every_rig_is_within_actuator_limits(name):
    rig = load_rig(name)
    for model in rig.model_names:
        answer = build_inverse_kinematics(rig, model)
        rig.actuator_limits().check(answer.actuation_of(answer.model.rest_configuration))
