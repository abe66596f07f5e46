"""Intervals of parameters that slopes do not determine, with a posterior in closed form."""

import numpy as np
import pytest
from scipy.stats import norm

from softarm_ros.cli.identification.fit import fit_of
from softarm_ros.cli.identification.intervals import intervals
from softarm_ros.cli.identification.misfit import Errors
from softarm_ros.models.identifiable import Parameter

ROWS = 60
NOISE = 0.2  # of the error that a good model may have


def free(*names):
    return [Parameter(name, 'all', (f'arm.{name}',), 'shift', 1.0) for name in names]


class ClosedForm(Errors):
    """Errors of a function of x from its noisy values (n,) at the truth; NaN refuses a row."""

    def __init__(self, function, truth, seed=0):
        self.function = function
        noise = np.random.default_rng(seed).normal(0.0, NOISE, ROWS)
        self.measured = function(np.asarray(truth, float)) + noise
        count = len(truth)
        super().__init__(
            np.tile([-np.inf, np.inf], (count, 1)),
            np.arange(ROWS),
            np.arange(ROWS),
            np.full(ROWS, 10.0),
        )
        self.evaluations = 0

    def _errors(self, x, asked):
        self.evaluations += 1
        return np.where(asked, self.function(x) - self.measured, np.nan)


DRIVEN = np.linspace(1.0, 20.0, ROWS)  # value of each row at full effect
ANGLE = 0.25  # rad, the spread of the prior


def at_an_angle(x):
    """Return the joint effect of a factor exp(x_0) and the cosine of an angle."""
    return DRIVEN * np.exp(x[0]) * np.cos(ANGLE * x[1])


def test_a_factor_absorbs_the_effect_of_an_undetermined_angle():
    """The data determine exp(x_0) cos(angle) only: x_0 depends on an angle from its prior."""
    errors = ClosedForm(at_an_angle, [0.3, 0.8])
    found = fit_of(errors, free('factor', 'angle'), {'arm.factor': 0.0, 'arm.angle': 0.0})
    assert found.x[1] == pytest.approx(0.0, abs=0.05)  # the centre of its prior
    ends = intervals(found)
    # The angle is as uncertain as its prior.
    np.testing.assert_allclose(ends[1], [-1.96, 1.96], rtol=0.15)
    angle = ANGLE * np.abs(norm.ppf(0.5 + 0.5 * np.array([0.025, 0.975])))
    together = 0.3 + np.log(np.cos(ANGLE * 0.8))
    np.testing.assert_allclose(ends[0], together - np.log(np.cos(angle)), atol=0.03)
    assert ends[0, 0] <= found.x[0] <= ends[0, 1]


def test_intervals_contain_true_values_drawn_from_the_prior():
    """With slopes alone, 4 of 10 intervals contain the factor."""
    rng, inside = np.random.default_rng(4), []
    for seed in range(60):
        truth = rng.normal(size=2)
        errors = ClosedForm(at_an_angle, truth, seed)
        found = fit_of(errors, free('factor', 'angle'), {'arm.factor': 0.0, 'arm.angle': 0.0})
        ends = intervals(found, seed)
        inside.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
    assert np.mean(inside, axis=0).min() >= 0.9, np.mean(inside, axis=0)
    assert np.mean(inside) < 0.995


def test_intervals_are_no_wider_than_the_prior():
    """Only one block of six determines the slope, and its errors are a hundred times too large."""
    steep = np.where(np.arange(ROWS) < 10, DRIVEN, 0.01)
    errors = ClosedForm(lambda x: steep * x[0] + x[1], [1.0, -1.0])
    errors.block = np.arange(ROWS) // 10
    errors.measured[:10] += 20.0 * np.random.default_rng(2).normal(size=10)
    found = fit_of(errors, free('slope', 'place'), {'arm.slope': 0.0, 'arm.place': 0.0})
    ends = intervals(found)
    most = 2.571  # Student's t of six blocks, 95 %
    assert np.all(ends[:, 0] >= np.minimum(found.x, 0.0) - most - 1e-3)
    assert np.all(ends[:, 1] <= np.maximum(found.x, 0.0) + most + 1e-3)
    assert ends[0, 1] - ends[0, 0] > 1.0  # poorly determined


def test_the_search_leaves_a_point_of_zero_slope_and_the_interval_has_both_signs():
    errors = ClosedForm(lambda x: DRIVEN * np.cos(ANGLE * x[0]), [1.4])
    assert errors.slope(np.zeros(1)) == pytest.approx(0.0, abs=1e-2)
    found = fit_of(errors, free('angle'), {'arm.angle': 0.0})
    assert abs(found.x[0]) == pytest.approx(1.4, abs=0.1)
    ((low, high),) = intervals(found)
    assert low == pytest.approx(-1.4, abs=0.2)
    assert high == pytest.approx(1.4, abs=0.2)


def test_two_parameters_that_act_only_by_their_product_are_identified():
    """At zero, neither has a first or second derivative along its own direction."""
    errors = ClosedForm(lambda x: DRIVEN * (1.0 + 0.1 * x[0] * x[1]), [1.5, -1.5])
    found = fit_of(errors, free('one', 'other'), {'arm.one': 0.0, 'arm.other': 0.0})
    assert found.x[0] * found.x[1] == pytest.approx(-2.25, abs=0.2)
    ends = intervals(found)
    assert np.all(ends[:, 0] < -1.2)
    assert np.all(ends[:, 1] > 1.2)


def test_parameters_determined_by_slopes_need_no_further_evaluation():
    errors = ClosedForm(lambda x: DRIVEN * np.exp(0.1 * x[0]), [0.5])
    found = fit_of(errors, free('factor'), {'arm.factor': 0.0})
    assert found.bending is None
    assert errors.evaluations <= found.evaluations
    ((low, high),) = intervals(found)
    assert low < 0.5 < high
    # Least squares of one number, in closed form.
    deviation = NOISE / np.linalg.norm(DRIVEN * 0.1 * np.exp(0.05))
    assert high - low == pytest.approx(2.0 * 1.96 * deviation, rel=0.25)


def test_the_search_does_not_end_where_rows_are_refused():
    """Errors at the start are large: ten for each refused row would cost less."""

    def buckles(x):
        bend = DRIVEN * 10.0 * np.exp(0.5 * x[0])
        return np.where((x[0] < -2.5) & (DRIVEN > 5.0), np.nan, bend)

    errors = ClosedForm(buckles, [-1.8])
    assert np.abs(errors.at(np.zeros(1))).max() > 100.0
    found = fit_of(errors, free('stiffness'), {'arm.stiffness': 0.0})
    assert found.x[0] == pytest.approx(-1.8, abs=0.01)


def test_slopes_are_not_evaluated_for_refused_rows():
    asked = []

    class Refusing(ClosedForm):
        def _errors(self, x, asked_for):
            asked.append(int(asked_for.sum()))
            return super()._errors(x, asked_for)

    errors = Refusing(lambda x: np.where(DRIVEN > 15.0, np.nan, DRIVEN * x[0]), [0.5])
    slope = errors.slope(np.array([0.2]))[:, 0]
    refused = DRIVEN > 15.0
    np.testing.assert_allclose(slope, np.where(refused, 0.0, DRIVEN), rtol=1e-6)
    assert asked == [ROWS, ROWS - int(refused.sum())]
