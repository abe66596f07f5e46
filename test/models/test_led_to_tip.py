"""Shapes moved to a measured tip, for drawing."""

import numpy as np
import pytest

from softarm_ros import load_rig
from softarm_ros.models.led_to_tip import configuration_at_tip
from softarm_ros.runtime.view_state import ViewState, drawn_configuration

RIGS = ('cable_arm', 'hydraulic_arm', 'pneumatic_arm', 'pam_arm', 'trunk')


@pytest.fixture(scope='module', params=RIGS)
def arm(request):
    rig = load_rig(request.param)
    return rig.model(), rig.sample_configurations(np.random.default_rng(3), 6)


def test_configuration_at_tip_reaches_the_measured_tip(arm):
    model, drawn = arm
    length, places = model.rest_length_m, model.tips_of(drawn)
    for at, here, there in zip(drawn[:-1], places[:-1], places[1:]):
        way = there - here
        tip = here + way * min(1.0, 0.05 * length / np.linalg.norm(way))
        led = configuration_at_tip(model, at, tip)
        assert np.linalg.norm(model.tips_of(led[None])[0] - tip) < 1e-3 * length


def test_tip_already_in_place_leaves_the_configuration_unchanged(arm):
    model, drawn = arm
    for at, tip in zip(drawn, model.tips_of(drawn)):
        np.testing.assert_array_equal(configuration_at_tip(model, at, tip), at)


def test_configuration_change_is_the_smallest_that_reaches_the_tip():
    """To first order the scaled coordinates move along the rows of the Jacobian."""
    rig = load_rig('trunk')
    model = rig.model()
    (at,) = rig.sample_configurations(np.random.default_rng(4), 1)
    place, jacobian = model.tip_and_jacobian(at)
    tip = place + np.array([1e-3, -1e-3, 5e-4])
    led = configuration_at_tip(model, at, tip)
    scale = model.configuration_scale
    least = scale * (np.linalg.pinv(jacobian * scale) @ (tip - place))
    assert np.linalg.norm((led - at - least) / scale) < 0.05 * np.linalg.norm(least / scale)


def test_unreachable_tip_raises_no_error_and_does_not_increase_the_distance():
    rig = load_rig('fishbone_arm')
    model = rig.model()
    rest = model.rest_configuration
    (tip,) = model.tips_of(rest[None])
    far = tip + np.array([0.0, 0.0, model.rest_length_m])
    led = configuration_at_tip(model, rest, far)
    assert np.linalg.norm(model.tips_of(led[None])[0] - far) <= np.linalg.norm(tip - far)


def test_drawn_configuration_moves_to_the_tip_only_if_it_is_not_measured():
    model = load_rig('cable_arm').model()
    at, tip = np.full(4, 0.3), np.array([0.02, 0.0, 0.2])
    measured = ViewState(configuration=at, measured=True, tip=tip)
    np.testing.assert_array_equal(drawn_configuration(model, measured), at)
    alone = ViewState(configuration=at)
    np.testing.assert_array_equal(drawn_configuration(model, alone), at)
    assert drawn_configuration(model, ViewState(tip=tip)) is None
    led = drawn_configuration(model, ViewState(configuration=at, tip=tip))
    assert not np.array_equal(led, at)
