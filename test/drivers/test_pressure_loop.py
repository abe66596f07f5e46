"""The pressure loop alone: torques, filter and tolerated delay."""

import numpy as np
import pytest

from softarm_ros.drivers.pressure_loop import PressureLoop, PressureLoopConfig

RATIO = np.array([2.5e-6, 2.0e-6])


def loop(gain=3.0, filter_s=0.06, start=1e5):
    return PressureLoop(PressureLoopConfig(gain=gain, filter_s=filter_s), RATIO, np.full(2, start))


def test_torque_without_error_is_the_nominal_one():
    one = loop()
    np.testing.assert_allclose(one.torque, RATIO * 1e5)
    one.command(np.array([3e5, 2e5]))
    np.testing.assert_allclose(one.torque, RATIO * [3e5, 2e5])


def test_lasting_error_adds_gain_times_filtered_error_for_any_number_of_steps():
    for steps in (1, 13):
        one = loop()
        for _ in range(steps):
            one.advance(np.array([0.9e5, 1.2e5]), 0.06 / steps)
        passed = 1.0 - np.exp(-1.0)
        error = np.array([0.1e5, -0.2e5])
        np.testing.assert_allclose(one.torque, RATIO * (1e5 + 3.0 * passed * error), rtol=1e-12)


def test_restart_clears_the_filtered_error():
    one = loop()
    one.advance(np.zeros(2), 1.0)
    one.restart(np.array([2e5, 0.0]))
    np.testing.assert_allclose(one.torque, RATIO * [2e5, 0.0])


@pytest.mark.parametrize(('gain', 'filter_s', 'delay_s'), [(3.0, 0.06, 0.02), (8.0, 0.2, 0.005)])
def test_phase_margin_matches_the_frequency_response(gain, filter_s, delay_s):
    config = PressureLoopConfig(gain=gain, filter_s=filter_s)
    omega = np.linspace(1.0, 400.0, 400_000)
    response = gain / (1.0 + 1j * omega * filter_s)
    crossing = np.argmin(np.abs(np.abs(response) - 1.0))
    phase = np.degrees(np.angle(response[crossing]) - omega[crossing] * delay_s)
    assert config.phase_margin_deg(delay_s) == pytest.approx(180.0 + phase, abs=0.05)
    assert PressureLoopConfig(gain=1.0).phase_margin_deg(9.0) == 180.0


@pytest.mark.parametrize(('share', 'settles'), [(0.8, True), (1.2, False)])
def test_loop_oscillates_beyond_the_delay_of_zero_phase_margin(share, settles):
    # An axis without its own lag: the pressure is the delayed torque.
    config = PressureLoopConfig(gain=3.0, filter_s=0.06)
    limit_s = np.radians(config.phase_margin_deg(0.0)) * config.filter_s / np.sqrt(8.0)
    assert abs(config.phase_margin_deg(limit_s)) < 1e-9
    h = 1e-4
    past = [1e5] * max(round(share * limit_s / h), 1)
    one = PressureLoop(config, np.ones(1), np.array([1e5]))
    one.command(np.array([1.1e5]))
    seen = []
    for _ in range(20_000):
        reading = past[-max(round(share * limit_s / h), 1)]
        one.advance(np.array([reading]), h)
        past.append(float(one.torque[0]))
        seen.append(reading)
    swing = np.ptp(seen[-4000:])
    assert swing < 100.0 if settles else swing > 1e5
