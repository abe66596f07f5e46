"""Offset and drift of a device's clock, estimated from the times of its packets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softarm_ros.perception.clock_offset import ClockOffset

RATE_HZ = 100.0


def stream(
    rng: np.random.Generator, duration_s: float, *, offset_s: float, drift: float, jitter_s: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return send times on the device's clock and arrival times on ours [s]."""
    true_s = np.arange(0.0, duration_s, 1.0 / RATE_HZ)
    sent_s = (1.0 - drift) * true_s - offset_s
    return sent_s, true_s + rng.exponential(jitter_s, len(true_s))


@settings(max_examples=25, deadline=None)
@given(
    offset_s=st.floats(-1.0e6, 1.0e6),
    drift=st.floats(-1.0e-4, 1.0e-4),
    jitter_s=st.floats(1.0e-5, 5.0e-3),
    seed=st.integers(0, 2**31),
)
def test_mapped_times_are_right_for_any_offset_drift_and_jitter(
    offset_s: float, drift: float, jitter_s: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    sent_s, arrived_s = stream(rng, 20.0, offset_s=offset_s, drift=drift, jitter_s=jitter_s)
    clock = ClockOffset()
    mapped = [clock.update(s, a) for s, a in zip(sent_s, arrived_s)]
    true_s = np.arange(len(sent_s)) / RATE_HZ
    error_s = np.array([m.time_s for m in mapped]) - true_s
    # From 2 s on; the fastest of a hundred packets is late by jitter / 100 on average.
    assert np.abs(error_s[200:]).max() < 0.1 * jitter_s + 2.0 * abs(drift) * 10.0 + 1.0e-6
    assert np.abs(error_s[-200:]).max() < 0.3 * jitter_s + 1.0e-6
    assert clock.jumps == 0


def test_clock_drift_is_estimated() -> None:
    rng = np.random.default_rng(0)
    sent_s, arrived_s = stream(rng, 60.0, offset_s=-3.0, drift=5.0e-5, jitter_s=1.0e-3)
    clock = ClockOffset()
    for s, a in zip(sent_s, arrived_s):
        clock.update(s, a)
    assert clock.drift == pytest.approx(5.0e-5, abs=2.0e-6)


@settings(max_examples=25, deadline=None)
@given(
    jump_s=st.floats(0.1, 1.0e5) | st.floats(-1.0e5, -0.1),
    jitter_s=st.floats(1.0e-5, 2.0e-3),
    seed=st.integers(0, 2**31),
)
def test_jump_of_the_device_clock_is_detected_and_followed(
    jump_s: float, jitter_s: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    sent_s, arrived_s = stream(rng, 10.0, offset_s=7.0, drift=1.0e-5, jitter_s=jitter_s)
    sent_s[500:] += jump_s
    clock = ClockOffset()
    mapped = [clock.update(s, a) for s, a in zip(sent_s, arrived_s)]
    true_s = np.arange(len(sent_s)) / RATE_HZ
    error_s = np.array([m.time_s for m in mapped]) - true_s
    trusted = np.array([m.trusted for m in mapped])
    assert clock.jumps == 1
    assert clock.last_jump_s == pytest.approx(-jump_s, abs=20.0 * jitter_s + 1.0e-3)
    assert trusted[530:].all()
    # Trusted times are right: at once, or after the quarter of a second that detection takes.
    late = 20.0 * jitter_s + 1.0e-3
    assert np.abs(error_s[trusted]).max() < late


def test_network_stall_is_not_taken_for_a_clock_jump() -> None:
    rng = np.random.default_rng(1)
    sent_s, arrived_s = stream(rng, 10.0, offset_s=0.0, drift=0.0, jitter_s=2.0e-4)
    held = (arrived_s > 5.0) & (arrived_s < 5.8)
    arrived_s[held] = 5.8 + 1.0e-4 * np.arange(held.sum())  # all at once
    clock = ClockOffset()
    mapped = [clock.update(s, a) for s, a in zip(sent_s, arrived_s)]
    assert clock.jumps == 0
    error_s = np.array([m.time_s for m in mapped]) - np.arange(len(sent_s)) / RATE_HZ
    assert np.abs(error_s[200:]).max() < 1.0e-4  # right, though old
    assert not any(m.trusted for m, late in zip(mapped, held) if late and m.delay_s > 0.05)


def test_mapped_time_is_that_of_the_exposure() -> None:
    clock = ClockOffset()
    for k in range(300):
        mapped = clock.update(100.0 + 0.01 * k, 0.01 * k + 0.0002, 100.0 + 0.01 * k - 0.006)
    assert mapped.time_s == pytest.approx(2.99 - 0.006 + 0.0002, abs=1e-9)
