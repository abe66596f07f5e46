"""Identified curves and the valve times computed from them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.minimum_energy.valves import MuscleValves, exponential_valves
from softarm_ros.models.monotone_curve import MonotoneCurve

steps = st.lists(st.floats(1e-3, 10.0), min_size=2, max_size=12)


@given(steps, steps, st.sampled_from([1.0, -1.0]), st.lists(st.floats(0.0, 1.0), max_size=5))
@settings(deadline=None, max_examples=150)
def test_curve_is_monotone_and_its_inverse_exact(dx, dy, sign, shares):
    size = min(len(dx), len(dy))
    x, y = np.cumsum(dx[:size]), sign * np.cumsum(dy[:size])
    curve = MonotoneCurve(x, y)
    at = np.concatenate([x, x[0] + np.array(shares) * (x[-1] - x[0])]).clip(x[0], x[-1])
    values = curve(at)
    np.testing.assert_allclose(curve(curve.inverse(values)), values, atol=1e-12 * np.abs(y).max())
    np.testing.assert_array_equal(curve.inverse(y), x)
    dense = curve(np.linspace(x[0], x[-1], 200).clip(x[0], x[-1]))
    assert np.all(sign * np.diff(dense) >= -1e-12)


def test_slope_matches_finite_differences():
    curve = MonotoneCurve([0, 1, 3, 4], [0, 2, 3, 7])
    at, h = np.array([0.3, 1.7, 3.4]), 1e-6
    np.testing.assert_allclose(
        curve.slope(at), (curve(at + h) - curve(at - h)) / (2 * h), rtol=1e-7
    )


@given(steps, st.sampled_from([1.0, -1.0]), st.floats(0.0, 1.0))
@settings(deadline=None, max_examples=150)
def test_scalar_evaluation_equals_array_evaluation(dx, sign, share):
    x = np.cumsum(dx)
    curve = MonotoneCurve(x, sign * np.sqrt(np.arange(1.0, x.size + 1.0)))
    for place in (float(np.clip(x[0] + share * (x[-1] - x[0]), x[0], x[-1])), float(x[1])):
        value, slope = curve.at(place)
        assert value == pytest.approx(float(curve(place)), rel=1e-14)
        assert slope == pytest.approx(float(curve.slope(place)), rel=1e-12)


def test_extrapolation_and_bad_tables_are_refused():
    curve = MonotoneCurve([0, 1, 2], [5, 3, 2], 'time_s', 'length_m')
    with pytest.raises(ModelError, match=r'time_s = 2\.1 is outside the identified range 0 to 2'):
        curve([0.5, 2.1])
    with pytest.raises(ModelError, match=r'length_m = 1\.9 is outside'):
        curve.inverse(1.9)
    with pytest.raises(ModelError, match='nan'):
        curve(float('nan'))
    for beyond in ('2.1', 'nan'):
        with pytest.raises(ModelError, match=f'time_s = {beyond} is outside'):
            curve.at(float(beyond))
    assert curve.at(2.0 + 1e-13) == curve.at(2.0)
    with pytest.raises(ValueError, match='length_m must be strictly monotone: point 2 is 3'):
        MonotoneCurve([0, 1, 2], [5, 3, 3], 'time_s', 'length_m')
    with pytest.raises(ValueError, match='x must be strictly monotone'):
        MonotoneCurve([0, 1, 1], [5, 3, 2])
    with pytest.raises(ValueError, match='3 values of x but 2 of y'):
        MonotoneCurve([0, 1, 2], [5, 3])
    with pytest.raises(ValueError, match='at least two values'):
        MonotoneCurve([0], [5])


def test_valve_times_and_lengths_round_trip():
    valves = exponential_valves(0.05, 0.10, 1.0)
    present = np.array([0.09, 0.06, 0.08])
    wanted = np.array([0.07, 0.095, 0.08])
    command = valves.times(present, wanted)
    assert command.deflate_s[0] > 0.0 and command.inflate_s[0] == 0.0
    assert command.inflate_s[1] > 0.0 and command.deflate_s[1] == 0.0
    assert command.inflate_s[2] == command.deflate_s[2] == 0.0
    np.testing.assert_allclose(valves.lengths(present, command), wanted, atol=1e-12)
    # Within the table the closed form holds up to its interpolation.
    floor = 0.05 - 0.05 * np.exp(-3.0) / (1.0 - np.exp(-3.0))
    expected = np.log((0.09 - floor) / (0.07 - floor))
    assert command.deflate_s[0] == pytest.approx(expected, abs=1e-3)
    command.deflate_s[0] = 99.0
    assert valves.lengths(present, command)[0] == pytest.approx(0.05)


def test_valves_refuse_invalid_curves_lengths_and_time_constants():
    good = exponential_valves(0.05, 0.10, 1.0)
    with pytest.raises(ValueError, match='must fall'):
        MuscleValves(good.inflating, good.inflating)
    with pytest.raises(ValueError, match='must rise'):
        MuscleValves(good.deflating, good.deflating)
    with pytest.raises(ModelError, match=r'length_m = 0\.12'):
        good.times(np.array([0.09]), np.array([0.12]))
    with pytest.raises(ValueError, match='time_constant_s'):
        exponential_valves(0.05, 0.10, 0.0)
