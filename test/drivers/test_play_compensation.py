"""Compensation of play in the signal of a valve."""

import numpy as np
import pytest

from softarm_ros.drivers.play_compensation import PlayCompensation, PlayCompensationConfig


def compensation(play=800.0, band=150.0, count=1):
    return PlayCompensation(PlayCompensationConfig(play_Pa=play, band_Pa=band), count)


def test_half_of_the_play_is_added_in_the_direction_of_motion():
    driver = compensation(count=2)
    np.testing.assert_allclose(driver.signal([2e4, 3e4]), [2.04e4, 3.04e4])
    np.testing.assert_allclose(driver.signal([2.5e4, 2e4]), [2.54e4, 1.96e4])
    np.testing.assert_allclose(driver.signal([2.5e4, 2e4]), [2.54e4, 1.96e4])


def test_step_back_within_the_band_is_not_a_reversal():
    driver = compensation()
    driver.signal([2e4])
    assert driver.signal([2e4 - 149.0]) == pytest.approx(2e4 - 149.0 + 400.0)
    assert driver.signal([2e4 - 151.0]) == pytest.approx(2e4 - 151.0 - 400.0)
    # On the way down, every further step down counts, however small.
    assert driver.signal([2e4 - 152.0]) == pytest.approx(2e4 - 152.0 - 400.0)


def test_zero_target_gives_zero_signal_and_no_signal_is_negative():
    driver = compensation()
    driver.signal([1e4])
    assert driver.signal([200.0]) == 0.0
    assert driver.signal([0.0]) == 0.0
    assert compensation().signal([0.0]) == 0.0


def test_compensation_cancels_a_play_of_its_own_width():
    """Behind a valve with that play, the pressure equals the target for any history."""
    driver, seat = compensation(play=1000.0), 0.0
    rng = np.random.default_rng(0)
    target, worst = 5e4, 0.0
    for i in range(2000):
        target = float(np.clip(target + 400.0 * rng.standard_normal(), 2e3, 9e4))
        signal = float(driver.signal([target])[0])
        seat = min(max(seat, signal - 500.0), signal + 500.0)
        if i > 10:
            worst = max(worst, abs(seat - target))
    assert worst <= 151.0  # the target may have turned back within the band
