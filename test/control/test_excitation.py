"""Sequences of places through which an arm is moved for identification."""

import numpy as np
import pytest

from softarm_ros.control.configuration_limits import ConfigurationLimits
from softarm_ros.control.excitation import KINDS, excitation, steps_of_actuators
from softarm_ros.rigs.loader import load_rig

LIMITS = ConfigurationLimits.of_range(np.array([-1.0, 0.0]), np.array([1.0, 3.0]))
REST = np.array([0.5, 0.0])
DRAWN = LIMITS.sample(np.random.default_rng(1), 20)


def planned(kind, amplitude=1.0, dwell_s=1.0):
    return excitation(kind, LIMITS, REST, DRAWN, amplitude=amplitude, dwell_s=dwell_s)


@pytest.mark.parametrize('kind', [kind for kind in KINDS if kind != 'actuators'])
def test_excitation_stays_within_the_limits_and_uses_the_amplitude(kind):
    for amplitude in (0.4, 1.0):
        places = planned(kind, amplitude).places
        assert np.all(places >= LIMITS.lower - 1e-9)
        assert np.all(places <= LIMITS.upper + 1e-9)
        reach = np.abs(places - REST).max(axis=0)
        assert np.all(reach <= amplitude * np.array([1.5, 3.0]) + 1e-9)
        assert np.all(reach > 0.5 * amplitude * np.array([1.0, 3.0]))


def test_quasi_static_moves_one_coordinate_at_a_time_up_and_down():
    plan = planned('quasi-static')
    moved = np.abs(plan.places - REST) > 1e-9
    assert np.all(moved.sum(axis=1) <= 1)
    assert plan.at_rest
    np.testing.assert_allclose(plan.places[:, 1].max(), 3.0, atol=1e-9)
    back = int(np.flatnonzero(~moved.any(axis=1))[0])  # back at rest after the first coordinate
    way = np.abs(plan.places[:back, 0] - REST[0])
    top = int(np.argmax(way))
    assert top > 1
    np.testing.assert_allclose(way[top + 1 :], way[:top][::-1])  # down through the same places


def test_actuator_excitation_moves_actuators_singly_then_jointly_with_swings():
    rest, low, high = np.array([1.0, 8.0]), np.array([0.0, 0.0]), np.array([10.0, 10.0])
    steps = steps_of_actuators(rest, low, high, 0.5)
    assert np.all((steps >= low) & (steps <= high))
    plan = excitation('actuators', LIMITS, REST, steps, amplitude=0.5, dwell_s=1.0)
    assert plan.at_rest
    stood = plan.places[plan.read]
    np.testing.assert_allclose(stood[:3], [[2.5, 8.0], [4.0, 8.0], [5.5, 8.0]])
    np.testing.assert_allclose(stood[3:6, 1], 8.0 - 4.0 * np.array([1.0, 2.0, 3.0]) / 3.0)
    np.testing.assert_allclose(stood[8], [5.5, 4.0])
    # Alternately above and below the place, ever nearer.
    swings = (plan.places[5:9] - stood[1])[:, 0]
    assert np.all(swings[::2] > 0.0)
    assert np.all(swings[1::2] < 0.0)
    assert np.all(np.abs(swings[2:]) < np.abs(swings[:2]))
    kept = plan.kept([4, 5, 9])
    np.testing.assert_array_equal(kept.read, [True, False, True])
    np.testing.assert_array_equal(kept.places[1], plan.places[5])


def test_sweep_reaches_the_bending_limit():
    rig = load_rig('cable_arm')
    limits, rest = rig.configuration_limits(), rig.model().rest_configuration
    places = excitation('sweep', limits, rest, np.empty((0, 4)), amplitude=1.0, dwell_s=1.0).places
    np.testing.assert_allclose(np.abs(places).max(axis=0), np.abs(places).max(), rtol=1e-6)
    np.testing.assert_allclose(limits.use(places).max(), 1.0, rtol=1e-6)


@pytest.mark.parametrize(
    ('kind', 'amplitude', 'dwell_s', 'message'),
    [
        ('jump', 1.0, 1.0, "kind 'jump': expected quasi-static, actuators"),
        ('steps', 0.0, 1.0, 'amplitude 0: expected above 0, at most 1'),
        ('steps', 1.5, 1.0, 'amplitude 1.5: expected above 0, at most 1'),
        ('random', 1.0, 99.0, 'dwell 99 s: expected above 0, at most 60'),
    ],
)
def test_invalid_kind_amplitude_or_dwell_is_refused_by_name(kind, amplitude, dwell_s, message):
    with pytest.raises(ValueError, match=message):
        planned(kind, amplitude, dwell_s)
