"""Chambers that do not hold their commanded pressure."""

import numpy as np
import pytest

from softarm_ros.control.config import PressureWatchConfig
from softarm_ros.control.pressure_watch import PressureWatch

PERIOD_S = 0.01
LIMITS = PressureWatchConfig(response_s=0.1, max_error_Pa=10e3, lasting_s=0.2)


def drive(watch, duration_s, command, measured, *, start_s=0.0, moving=True):
    """Feed pressures (m,), functions of time; return time and text of the first problem."""
    for k in range(round(duration_s / PERIOD_S)):
        now = start_s + k * PERIOD_S
        watch.on_command(command(now))
        problem = watch.on_pressure(now, measured(now), moving=moving)
        if problem is not None:
            return now, problem
    return None


def asked(now):
    return np.array([50e3 + 30e3 * np.sin(2 * now), 40e3])


def test_chambers_that_follow_their_command_raise_no_problem():
    watch = PressureWatch(LIMITS, ['a', 'b'])
    assert drive(watch, 10.0, asked, lambda now: asked(now - 0.1) + 2e3) is None
    assert 2e3 <= watch.largest_Pa < LIMITS.max_error_Pa


def test_burst_chamber_is_reported_by_name_right_after_lasting_s():
    watch = PressureWatch(LIMITS, ['a', 'b'])

    def burst(now):
        return asked(now - 0.1) * ([1.0, 1.0] if now < 2.0 else [1.0, 0.0])

    at, problem = drive(watch, 10.0, asked, burst)
    assert 2.0 + LIMITS.lasting_s <= at + 1e-9 <= 2.0 + LIMITS.lasting_s + 2 * PERIOD_S
    assert problem.startswith('b does not hold its pressure: 0.0 kPa measured, 40.0 kPa expected')
    assert 'limit 10 kPa' in problem


def test_pressure_spikes_are_not_reported():
    watch = PressureWatch(LIMITS, ['a', 'b'])

    def spiky(now):
        return asked(now - 0.1) * (0.0 if round(now / PERIOD_S) % 10 == 5 else 1.0)

    assert drive(watch, 5.0, asked, spiky) is None


def test_commanded_step_gets_the_response_time_of_the_drives():
    watch = PressureWatch(LIMITS, ['a', 'b'])
    tau = 0.05

    def step(now):
        return np.full(2, 0.0 if now < 1.0 else 100e3)

    def answer(now):
        x = max(now - 1.0, 0.0) / tau
        return np.full(2, 100e3 * (1.0 - np.exp(-x) * (1.0 + x)))

    assert drive(watch, 3.0, step, answer) is None


def test_pressures_are_not_judged_while_the_drives_are_held():
    watch = PressureWatch(LIMITS, ['a', 'b'])
    empty = np.zeros(2)
    assert drive(watch, 2.0, asked, lambda now: empty, moving=False) is None
    # Once motion is allowed, the drives start from the measured pressures.
    at, _ = drive(watch, 2.0, asked, lambda now: empty, start_s=2.0)
    assert at > 2.0 + LIMITS.lasting_s


@pytest.mark.parametrize('bad', [[np.nan, 1.0], [1.0]])
def test_invalid_command_is_ignored(bad):
    watch = PressureWatch(LIMITS, ['a', 'b'])
    watch.on_command(bad)
    assert watch.on_pressure(0.0, [1.0, 1.0], moving=True) is None
    assert watch.largest_Pa == 0.0
