"""Piecewise cubics compared with those of scipy, and the absence of overshoot."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import CubicSpline, PchipInterpolator

from softarm_ros.geometry.piecewise_cubic import monotone_cubic, natural_spline, periodic_spline

steps = st.lists(st.floats(1e-3, 10.0), min_size=1, max_size=12)
ROUNDING = 1e-12


def places(x):
    """Return the points, places between them, and places beyond both ends."""
    step = (x[-1] - x[0]) / 97
    return np.concatenate([x, np.arange(x[0] - 3 * step, x[-1] + 3 * step, step)])


@given(steps, st.lists(st.integers(-99, 99), min_size=13, max_size=13))
def test_monotone_cubic_equals_scipy_pchip(dx, values):
    x = np.cumsum([0.5, *dx])
    y = 0.1 * np.array(values[: len(x)])
    ours, theirs = monotone_cubic(x, y), PchipInterpolator(x, y)
    at = places(x)
    np.testing.assert_array_equal(ours.coefficients, theirs.c)
    for found, wanted in ((ours(at), theirs(at)), (ours.slope(at), theirs(at, 1))):
        np.testing.assert_allclose(found, wanted, atol=ROUNDING * np.abs(wanted).max(), rtol=0.0)
    assert float(ours(at[3])) == ours(at)[3]  # one value, not an array


def test_monotone_cubic_does_not_overshoot_its_points():
    x, y = np.arange(6.0), np.array([0.0, 1.0, 1.0, 5.0, 4.0, 4.5])
    dense = monotone_cubic(x, y)(np.linspace(0.0, 5.0, 501))
    for i in range(5):
        low, high = sorted(y[i : i + 2])
        piece = dense[100 * i : 100 * i + 101]
        assert low - ROUNDING <= piece.min() and piece.max() <= high + ROUNDING


@pytest.mark.parametrize(
    ('make', 'ends'), [(natural_spline, 'natural'), (periodic_spline, 'periodic')]
)
@pytest.mark.parametrize('count', [4, 5, 6, 40])
def test_natural_and_periodic_splines_equal_scipy_cubic_spline(make, ends, count):
    rng = np.random.default_rng(count)
    x = np.cumsum(rng.uniform(0.01, 1.0, count))
    y = rng.normal(size=(count, 3))
    if make is periodic_spline:
        y[-1] = y[0]
    ours, theirs = make(x, y), CubicSpline(x, y, bc_type=ends)
    at = places(x)
    at = at[(at >= x[0]) & (at <= x[-1])]  # scipy's periodic spline repeats
    largest = np.abs(theirs(at, 1)).max()
    np.testing.assert_allclose(ours(at), theirs(at), atol=ROUNDING * np.abs(y).max(), rtol=0.0)
    np.testing.assert_allclose(ours.slope(at), theirs(at, 1), atol=ROUNDING * largest, rtol=0.0)
    assert ours(at[0]).shape == (3,) and ours.slope(at[:7]).shape == (7, 3)


@pytest.mark.parametrize('count', [2, 3])
def test_a_natural_spline_of_two_or_three_points_equals_scipy(count):
    x, y = np.array([0.0, 1.0, 4.0])[:count], np.array([[1.0], [3.0], [2.0]])[:count]
    at = np.linspace(0.0, x[-1], 9)
    theirs = CubicSpline(x, y, bc_type='natural')
    np.testing.assert_allclose(natural_spline(x, y)(at), theirs(at), atol=ROUNDING)
