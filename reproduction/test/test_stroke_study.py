"""The stroke study: its kinematics, its signals, and the hand-checked Morison table."""

from __future__ import annotations

import math

import numpy as np
import pytest

from softarm_reproduction import stroke_study
from softarm_reproduction.stroke_study import (
    StrokeModel,
    motion_of,
    peaks,
    sine,
    switched,
)


@pytest.mark.parametrize(
    ('frequency', 'stroke', 'force', 'torque'),
    [
        (0.3, 0.05, 0.044, 0.008),
        (0.3, 0.20, 0.290, 0.058),
        (0.4, 0.15, 0.313, 0.061),
        (0.5, 0.10, 0.264, 0.050),
        (0.5, 0.20, 0.806, 0.160),
    ],
)
def test_forces_of_the_linear_profile_match_the_checked_table(frequency, stroke, force, torque):
    found = peaks(StrokeModel('', sine), frequency, stroke)
    assert found.force == pytest.approx(force, abs=6e-4)
    assert found.torque == pytest.approx(torque, abs=6e-4)


def test_small_rigid_swing_matches_the_closed_form():
    """Tiny stroke: inertia only, F = (rho C_a S + m / L) A w^2 L / 2, lever 2 L / 3."""
    found = peaks(StrokeModel('', sine), 0.5, 1e-5)
    water = 998.0 * math.pi * 0.034**2 / 4.0
    force = (water + 0.251 / 0.27) * 1e-5 * math.pi**2 * 0.27 / 2.0
    assert found.force == pytest.approx(force, rel=1e-3)
    assert found.lever == pytest.approx(0.18, rel=1e-3)


@pytest.mark.parametrize('signal', [sine, switched(0.1), switched(0.3)])
def test_signals_are_periodic_with_correct_derivatives(signal):
    time = np.linspace(0.001, 1.999, 4001)
    y, dy, ddy = signal(time, 0.5)
    inner = np.abs(np.mod(time, 1.0) - 0.5) < 0.49  # the second derivative jumps at switches
    np.testing.assert_allclose(np.gradient(y, time)[inner], dy[inner], atol=2e-3)
    np.testing.assert_allclose(np.gradient(dy, time)[inner], ddy[inner], atol=2e-2)
    later = signal(time + 2.0, 0.5)[0]
    np.testing.assert_allclose(later, y, atol=1e-9)
    np.testing.assert_allclose(
        signal(np.array([0.999999, 1.000001]), 0.5)[0][0], y[2000], atol=1e-2
    )


@pytest.mark.parametrize('bending', [(0.0, 0.2), (0.1, 0.2)])
def test_derivatives_of_bent_motion_match_finite_differences(bending):
    model = StrokeModel('', sine, bending)
    motions = motion_of(model, 0.4, 0.12)
    dt = 1.0 / 0.4 / stroke_study.INSTANTS
    for k in (10, 60, 120):
        before, here, after = motions[k - 1], motions[k], motions[k + 1]
        velocity = (after.position - before.position) / (2 * dt)
        np.testing.assert_allclose(here.velocity, velocity, atol=2e-3)
        acceleration = (after.velocity - before.velocity) / (2 * dt)
        np.testing.assert_allclose(here.acceleration, acceleration, atol=2e-2)
        turning = (after.tangent - before.tangent) / (2 * dt)
        np.testing.assert_allclose(np.cross(here.spin, here.tangent), turning, atol=2e-2)
        steps = np.diff(here.position, axis=0)
        np.testing.assert_allclose(np.linalg.norm(steps, axis=1), 0.27 / 40, rtol=1e-3)
    tips = max(abs(m.position[-1, 0]) for m in motions)
    assert 0.115 < tips < 0.12


def test_stroke_out_of_reach_is_refused():
    with pytest.raises(ValueError, match=r'this arm reaches 0\.1'):
        motion_of(StrokeModel('', sine, (0.1, 0.2)), 0.3, 0.2)
