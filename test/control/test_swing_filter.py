"""Notch filter at the swing of an arm, and the largest gain it allows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softarm_ros.control.swing_filter import (
    DAMPINGS,
    FREQUENCIES,
    PASSED_DAMPING,
    SwingConfig,
    SwingFilter,
    largest_gain,
)

SWINGS = st.builds(
    SwingConfig, frequency_hz=st.floats(0.2, 5.0), damping=st.floats(0.02, PASSED_DAMPING - 0.1)
)
PERIODS = st.lists(st.floats(0.0, 0.05), min_size=1, max_size=50)


@given(SWINGS, PERIODS, st.floats(-0.1, 0.1))
def test_swing_filter_passes_a_constant_unchanged(swing, periods, value):
    passed = SwingFilter(swing)
    for period in periods:
        np.testing.assert_allclose(passed(np.full(3, value), period), value, atol=1e-12)


@settings(max_examples=10)
@given(SWINGS)
def test_swing_amplitude_is_reduced_to_damping_over_pole_damping(swing):
    passed, period = SwingFilter(swing), 5e-3 / swing.frequency_hz
    times = period * np.arange(2000)
    out = np.array([passed(np.array([np.sin(swing.rate_rad_s * t)]), period)[0] for t in times])
    amplitude = np.abs(out[-400:]).max()
    assert amplitude == pytest.approx(swing.damping / PASSED_DAMPING, rel=0.01)


def test_slow_errors_pass_and_irregular_periods_give_the_same_output():
    swing, rng = SwingConfig(frequency_hz=1.5, damping=0.1), np.random.default_rng(0)
    even, uneven = SwingFilter(swing), SwingFilter(swing)
    times = 0.002 * np.arange(10001)
    wave = np.sin(2.0 * np.pi * 0.05 * times)
    out = np.array([even(np.array([w]), 0.002)[0] for w in wave])
    chosen = np.unique(np.append(rng.choice(10001, 3000), [0, 10000]))
    steps = np.diff(times[chosen], prepend=0.0)
    other = [uneven(np.array([wave[k]]), step)[0] for k, step in zip(chosen, steps)]
    np.testing.assert_allclose(other, out[chosen], atol=5e-4)
    assert np.abs(out[5000:]).max() == pytest.approx(1.0, abs=0.01)


def test_reset_clears_the_swing_filter():
    passed = SwingFilter(SwingConfig(frequency_hz=1.0, damping=0.1))
    passed(np.zeros(3), 0.01)
    assert passed(np.ones(3), 0.01).max() < 1.0
    passed.reset()
    np.testing.assert_allclose(passed(np.ones(3), 0.01), 1.0, atol=1e-12)


def _late(gain: float, swing: SwingConfig, frequency: float, damping: float) -> float:
    """Return the growth of the error from the first to the last third of 60 swings."""
    rate, period = frequency * swing.rate_rad_s, 5e-3 / swing.frequency_hz
    passed, behind = SwingFilter(swing), round(0.1 / swing.frequency_hz / period)
    command, tip, speed = 0.0, 1.0, 0.0
    seen = []
    for _ in range(12000):
        seen.append(tip)
        late = seen[-1 - behind] if len(seen) > behind else 1.0
        command -= period * gain * passed(np.array([late]), period)[0]
        speed += period * (rate**2 * (command - tip) - 2.0 * damping * rate * speed)
        tip += period * speed
    first, last = np.abs(seen[:4000]).max(), np.abs(seen[-4000:]).max()
    return float(last / first)


@pytest.mark.parametrize('damping', [0.07, 0.14])
def test_simulated_loop_is_stable_below_and_unstable_above_the_largest_gain(damping):
    swing = SwingConfig(frequency_hz=1.5, damping=damping)
    gain = largest_gain(swing, 0.1 / swing.frequency_hz)
    corners = [(f, DAMPINGS[0] * damping) for f in (FREQUENCIES[0], FREQUENCIES[-1])]
    below = [_late(0.9 * gain, swing, *corner) for corner in corners]
    above = [_late(1.1 * gain, swing, *corner) for corner in corners]
    assert max(below) < 0.7
    assert max(above) > 1.5


def test_notch_allows_a_larger_gain_for_a_lightly_damped_arm():
    """Without the notch, 2 d w is the bound even without delay; with it, over twice that."""
    swing = SwingConfig(frequency_hz=1.0, damping=0.05)
    assert largest_gain(swing, 0.05) > 2.0 * 2.0 * swing.damping * swing.rate_rad_s


@pytest.mark.parametrize('scale', [1e-2, 1e3])
def test_largest_gain_scales_with_the_swing_frequency(scale):
    swing = SwingConfig(frequency_hz=1.5, damping=0.1)
    faster = SwingConfig(frequency_hz=1.5 * scale, damping=0.1)
    expected = scale * largest_gain(swing, 0.05)
    assert largest_gain(faster, 0.05 / scale) == pytest.approx(expected, rel=1e-6)


def test_largest_gain_for_a_very_fast_swing_is_limited_by_the_delay():
    """The largest gain of a delayed integrator is pi / 2 over the delay."""
    gain = largest_gain(SwingConfig(frequency_hz=1e4, damping=0.1), 0.05)
    assert gain == pytest.approx(np.pi / 2.0 / 0.05, rel=0.01)
