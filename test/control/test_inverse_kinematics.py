import numpy as np
import pytest

from softarm_ros import load_rig
from softarm_ros.control.inverse_kinematics import InverseKinematics
from softarm_ros.control.limits import LimitError

RIG = load_rig('cable_arm')
MODEL = RIG.model()
LIMITS = RIG.actuator_limits()
BEND = np.array([0.9, 0.4, -0.3, 1.1])


def test_without_pretension_it_is_the_model():
    stage = InverseKinematics(MODEL, LIMITS)
    assert np.array_equal(stage.actuation_of(BEND), MODEL.actuation_of(BEND))


def test_pretension_winds_all_cables_alike_and_without_a_jump():
    stage = InverseKinematics(MODEL, LIMITS, 2.0e-3, 0.6e-3)
    extra = np.array([stage.actuation_of(BEND) - MODEL.actuation_of(BEND) for _ in range(6)])
    assert np.allclose(extra, extra[:, :1])
    assert np.allclose(extra[:, 0], [0.6e-3, 1.2e-3, 1.8e-3, 2e-3, 2e-3, 2e-3])


def test_pretension_never_leaves_the_range():
    low = MODEL.actuation_of(BEND) - 1e-3
    high = MODEL.actuation_of(BEND) + 0.5e-3
    limits = type(LIMITS)(
        LIMITS.names, LIMITS.unit, low, high, LIMITS.max_speed, LIMITS.max_acceleration
    )
    stage = InverseKinematics(MODEL, limits, 2.0e-3)
    assert np.allclose(stage.actuation_of(BEND), high)


def test_a_configuration_beyond_the_range_is_refused_with_the_cables_name():
    limits = type(LIMITS)(
        LIMITS.names,
        LIMITS.unit,
        np.full(6, -0.1),
        np.full(6, 0.01),
        LIMITS.max_speed,
        LIMITS.max_acceleration,
    )
    with pytest.raises(LimitError, match=r'proximal_1 = .* outside'):
        InverseKinematics(MODEL, limits, 2.0e-3).actuation_of([1.5, 0.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ('configuration', 'message'),
    [
        ([0.1, 0.2], r'shape \(2,\); expected \(4,\)'),
        ([0.1, np.nan, 0.0, 0.0], 'expected a finite number'),
    ],
)
def test_bad_configurations_are_refused(configuration, message):
    with pytest.raises(ValueError, match=message):
        InverseKinematics(MODEL, LIMITS).actuation_of(configuration)
