"""Stepper motors: limits, targets, whole steps, backlash, slack."""

import numpy as np
import pytest
from plant_cases import STEPPER

from softarm_ros.plant.config import StepperConfig
from softarm_ros.plant.stepper import Steppers
from softarm_ros.plant.stepper_kernels import advance_motor

SPEED, ACCELERATION = 0.02, 0.1
H = 0.002


def steppers(count=1, **fields):
    return Steppers(StepperConfig.model_validate(STEPPER | fields), count)


def run(motor, target, seconds, h=H):
    """Return positions and velocities (k, m) after each step towards a target."""
    motor.command(np.atleast_1d(np.asarray(target, dtype=float)))
    trace = []
    for _ in range(round(seconds / h)):
        motor.advance(h)
        trace.append((motor.state.position.copy(), motor.state.velocity.copy()))
    return np.array([p for p, _ in trace]), np.array([v for _, v in trace])


@pytest.mark.parametrize('h', [0.0005, 0.002, 0.01])
@pytest.mark.parametrize('distance', [3e-5, 1e-4, 0.001, 0.003, 0.0041, 0.03, -0.02])
def test_motor_reaches_the_target_in_trapezoidal_time_without_overshoot(distance, h):
    motor = steppers(step_m=1e-6)
    ramp = SPEED**2 / ACCELERATION
    if abs(distance) >= ramp:
        ideal = abs(distance) / SPEED + SPEED / ACCELERATION
    else:
        ideal = 2.0 * np.sqrt(abs(distance) / ACCELERATION)
    positions, velocities = run(motor, distance, ideal + 4 * h, h)
    along = positions[:, 0] * np.sign(distance)
    assert along.max() <= abs(distance) + 1e-15
    assert np.diff(along).min() >= -1e-15
    assert positions[-1, 0] == pytest.approx(distance, abs=1e-15)
    assert velocities[-1, 0] == 0.0
    arrival = np.argmax(along >= abs(distance) - 1e-15) * h + h
    assert arrival >= ideal - 1e-9


def test_motor_follows_the_trapezoidal_speed_profile():
    motor = steppers()
    positions, velocities = run(motor, 0.029, 1.0)
    t = H * np.arange(1, 501)
    ramp = t <= 0.2
    np.testing.assert_allclose(velocities[ramp, 0], ACCELERATION * t[ramp], atol=1e-12)
    np.testing.assert_allclose(positions[ramp, 0], 0.5 * ACCELERATION * t[ramp] ** 2, atol=1e-12)
    np.testing.assert_allclose(velocities[~ramp, 0], SPEED, atol=1e-12)


@pytest.mark.parametrize('h', [0.0005, 0.002, 0.01])
def test_speed_and_acceleration_limits_hold_for_random_commands(h):
    rng = np.random.default_rng(0)
    motor = steppers(3)
    last_p, last_v = motor.state.position.copy(), motor.state.velocity.copy()
    for k in range(20000):
        if rng.random() < 0.05:
            motor.command(rng.uniform(-0.05, 0.05, 3) * rng.choice([1.0, 0.01]))
        if k % 997 == 0:
            motor.hold()
        motor.advance(h)
        p, v = motor.state.position, motor.state.velocity
        assert np.abs(v).max() <= SPEED * (1 + 1e-12)
        assert np.abs(v - last_v).max() <= ACCELERATION * h * (1 + 1e-9)
        assert np.abs(p - last_p).max() <= SPEED * h * (1 + 1e-12)
        last_p, last_v = p.copy(), v.copy()
    assert np.abs(p).max() > 1e-3


def test_target_behind_the_motor_is_reached_after_braking():
    motor = steppers()
    run(motor, 0.03, 0.5)
    start = motor.state.position[0]
    positions, velocities = run(motor, 0.001, 3.0)
    assert positions.max() == pytest.approx(start + SPEED**2 / (2 * ACCELERATION), abs=1e-9)
    assert motor.position[0] == pytest.approx(0.001, abs=1.5e-5)
    assert velocities[-1, 0] == 0.0
    turned = np.argmax(velocities[:, 0] < 0.0)
    assert positions[turned:, 0].min() >= motor.position[0] - 1e-15


def test_hold_brakes_at_the_acceleration_limit_and_stays():
    motor = steppers(2)
    run(motor, (0.03, -0.03), 0.5)
    start = motor.state.position.copy()
    for _ in range(300):
        motor.hold()
        motor.advance(H)
    travel = np.abs(motor.state.position - start)
    stop = SPEED**2 / (2 * ACCELERATION)
    assert np.all((travel >= stop - 1e-12) & (travel <= stop + STEPPER['step_m']))
    assert np.all(motor.velocity == 0.0)
    rest = motor.position
    motor.hold()
    motor.advance(1.0)
    np.testing.assert_array_equal(motor.position, rest)
    # A command ends the hold.
    run(motor, (0.0, 0.0), 3.0)
    np.testing.assert_allclose(motor.position, 0.0, atol=1e-15)


def test_position_is_counted_in_whole_steps():
    motor = steppers()
    step = STEPPER['step_m']
    run(motor, 0.01003, 0.35)
    moving = motor.position[0] / step
    assert moving == pytest.approx(round(moving), abs=1e-9)
    assert abs(motor.position[0] - motor.state.position[0]) <= 0.5 * step
    run(motor, 0.01003, 2.0)
    assert motor.position[0] == pytest.approx(round(0.01003 / step) * step, abs=1e-15)
    assert motor.position[0] != pytest.approx(0.01003, abs=1e-7)


def test_backlash_opens_a_loop_of_its_width():
    motor = steppers(backlash_m=4e-4)
    loop = {}
    for name, target in (('start', 0.004), ('down', -0.004), ('up', 0.004)):
        positions, cables = [], []
        motor.command(np.array([target]))
        for _ in range(800):
            motor.advance(H)
            positions.append(motor.state.position[0])
            cables.append(motor.contraction[0])
        order = np.argsort(positions, kind='stable')
        loop[name] = (np.array(positions)[order], np.array(cables)[order])
    inside = np.linspace(-0.003, 0.003, 7)
    gap = np.interp(inside, *loop['down']) - np.interp(inside, *loop['up'])
    np.testing.assert_allclose(gap, 4e-4, atol=1e-9)


def test_slack_reduces_the_contraction_but_not_the_reported_position():
    motor = steppers(slack_m=0.002, backlash_m=0.0)
    assert motor.contraction[0] == -0.002
    run(motor, 0.0058, 2.0)
    assert motor.position[0] == pytest.approx(0.0058)
    assert motor.contraction[0] == pytest.approx(0.0038)


def test_motor_at_rest_on_target_stays_exactly():
    assert advance_motor(0.0123, 0.0, 0.0123, SPEED, ACCELERATION, H) == (0.0123, 0.0)
