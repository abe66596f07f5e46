"""Compiled bounds of a period against the same formulas in NumPy."""

import numpy as np
import pytest

from softarm_ros.control import bound_kernels
from softarm_ros.control.configuration_limits import ConfigurationLimits
from softarm_ros.control.limits import ActuatorLimits

PERIOD_S, M, DOF = 0.01, 5, 4
BENDS = ConfigurationLimits(
    np.array([-np.inf, -np.inf, -0.4, -np.inf]),
    np.array([np.inf, np.inf, 0.5, 2.0]),
    np.array([[0, 1]]),
    np.array([1.2]),
)


def limits(rng):
    low, high = -rng.uniform(0.1, 1.0, M), rng.uniform(0.1, 1.0, M)
    names = tuple(f'a{i}' for i in range(M))
    return ActuatorLimits(names, 'm', low, high, rng.uniform(0.1, 2.0, M), rng.uniform(1, 20, M))


def fastest(room, brake):
    """Return the largest speeds that can brake within `room`, over all numbers of periods."""
    n = np.arange(1, 4000)[:, None]
    step = brake * PERIOD_S**2
    speed = (room / n + 0.5 * step * (n - 1)) / PERIOD_S
    # Valid if the speed is not negative in the last of the n periods.
    return np.min(np.where((n - 1) * step <= speed * PERIOD_S, speed, np.inf), axis=0)


@pytest.fixture(params=range(20))
def rng(request):
    return np.random.default_rng(request.param)


def test_fastest_towards_matches_a_search_over_all_numbers_of_periods(rng):
    room, brake = rng.uniform(0.0, 0.3, 30), rng.uniform(0.5, 20.0, 30)
    found = [bound_kernels.fastest_towards(r, b, PERIOD_S) for r, b in zip(room, brake)]
    np.testing.assert_allclose(found, fastest(room, brake), rtol=1e-9)


def test_rate_bounds_match_speed_acceleration_and_braking_limits(rng):
    arm = limits(rng)
    command = rng.uniform(1.1 * arm.position_min, 1.1 * arm.position_max)
    rate = rng.uniform(-1.0, 1.0, M) * arm.max_speed
    low, high = arm.rate_bounds(command, rate, PERIOD_S)
    up = np.minimum(
        arm.max_speed,
        fastest(np.maximum(arm.position_max - command, 0.0), arm.max_acceleration),
    )
    down = np.minimum(
        arm.max_speed,
        fastest(np.maximum(command - arm.position_min, 0.0), arm.max_acceleration),
    )
    change = arm.max_acceleration * PERIOD_S
    above, below = np.minimum(up, rate + change), np.maximum(-down, rate - change)
    crossed = below > above
    only = np.clip(rate, -down, up)
    np.testing.assert_allclose(high, np.where(crossed, only, above), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(low, np.where(crossed, only, below), rtol=1e-9, atol=1e-12)


def test_velocity_bounds_limit_a_bend_along_its_direction_and_coordinates_singly(rng):
    configuration = np.array([*rng.normal(0.0, 0.8, 2), *rng.uniform(-0.6, 0.7, 2)])
    rows, low, high = BENDS.velocity_bounds(configuration, PERIOD_S)
    bend = configuration[:2]
    np.testing.assert_allclose(rows[0], [*(bend / np.linalg.norm(bend)), 0.0, 0.0])
    np.testing.assert_allclose(rows[1:], np.eye(4)[2:])
    size = np.linalg.norm(bend)
    expected = np.maximum([1.2 - size, *(BENDS.upper[2:] - configuration[2:])], 0.0) / PERIOD_S
    np.testing.assert_allclose(high, expected)
    np.testing.assert_allclose(low, [-1e30, min((-0.4 - configuration[2]) / PERIOD_S, 0.0), -1e30])


def test_velocity_bound_of_a_straight_section_has_a_zero_row():
    rows, _, high = BENDS.velocity_bounds(np.zeros(DOF), PERIOD_S)
    assert not rows[0].any()
    assert high[0] == pytest.approx(1.2 / PERIOD_S)


def test_joined_bounds_are_scaled_by_actuator_speeds_and_leave_room_to_brake(rng):
    arm, scale = limits(rng), rng.uniform(0.5, 2.0, DOF)
    by = rng.normal(size=(M, DOF))
    low, high = -rng.uniform(0.0, 1.0, M), rng.uniform(0.0, 1.0, M)
    rows = rng.normal(size=(3, DOF))
    rows[2] = 0.0
    row_low, row_high = -rng.uniform(0.0, 30.0, 3), rng.uniform(0.0, 30.0, 3)
    joined, below, above = bound_kernels.joined_bounds(
        by,
        low,
        high,
        rows,
        row_low,
        row_high,
        scale,
        arm.max_speed,
        arm.max_acceleration,
        PERIOD_S,
    )
    np.testing.assert_allclose(joined[:M], by * scale / arm.max_speed[:, None])
    np.testing.assert_allclose(joined[M:], rows * scale)
    np.testing.assert_allclose([below[:M], above[:M]], [low / arm.max_speed, high / arm.max_speed])
    hardest = np.max(np.abs(by @ rows.T) / arm.max_acceleration[:, None], axis=0)
    brake = 1.0 / np.maximum(hardest, 1e-12)
    for k in range(2):  # the last row is zero and bounds nothing
        up = fastest(np.array([row_high[k] * PERIOD_S]), brake[k])[0]
        down = fastest(np.array([-row_low[k] * PERIOD_S]), brake[k])[0]
        assert above[M + k] == pytest.approx(min(row_high[k], up))
        assert below[M + k] == pytest.approx(max(row_low[k], -down))


def test_damped_programme_solves_damped_least_squares(rng):
    jacobian, scale = rng.normal(size=(3, DOF)), rng.uniform(0.5, 2.0, DOF)
    wanted, rest, damping = rng.normal(size=3), rng.normal(size=DOF), 0.03
    H, f = bound_kernels.damped_programme(jacobian, scale, wanted, rest, damping)
    stacked = np.vstack([jacobian * scale, np.sqrt(damping) * np.eye(DOF)])
    aim = np.concatenate([wanted, np.sqrt(damping) * rest / scale])
    expected = np.linalg.lstsq(stacked, aim, rcond=None)[0]
    np.testing.assert_allclose(np.linalg.solve(H, -f), expected, rtol=1e-9, atol=1e-12)
    assert np.trace(H) == pytest.approx(1.0)


@pytest.mark.parametrize('bad', [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize('place', range(DOF))
def test_limits_refuse_nan_and_infinite_values(place, bad):
    configuration = np.zeros(DOF)
    configuration[place] = bad
    with pytest.raises(ValueError, match='expected a finite number'):
        BENDS.check(configuration, ('a', 'b', 'c', 'd'))
    arm, command = limits(np.random.default_rng(0)), np.zeros(M)
    command[place] = bad
    assert not arm.hold(command)
    with pytest.raises(ValueError, match=f'a{place} = {bad}: expected a finite number'):
        arm.check(command)


def test_on_a_bound_detects_an_active_bound_and_ignores_zero_rows():
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    low, high = np.array([-1.0, -1.0, 0.0]), np.array([1.0, 2.0, 0.0])
    assert not bound_kernels.on_a_bound(np.array([0.5, -0.5]), rows, low, high)
    assert bound_kernels.on_a_bound(np.array([1.0, 0.0]), rows, low, high)
    assert bound_kernels.on_a_bound(np.array([0.0, -1.0]), rows, low, high)


def test_array_views_trigger_no_further_compilation():
    """Compiling takes a second, during which a moving arm would get no command."""
    arm, apart = limits(np.random.default_rng(0)), np.zeros((2 * M, 2))[::2, 0]
    BENDS.check(np.zeros(DOF), ('a', 'b', 'c', 'd'))
    arm.check(np.zeros(M))
    kernels = (bound_kernels.configuration_holds, bound_kernels.lies_within)
    before = [len(kernel.overloads) for kernel in kernels]
    BENDS.check(apart[:DOF], ('a', 'b', 'c', 'd'))
    arm.check(apart)
    assert [len(kernel.overloads) for kernel in kernels] == before
