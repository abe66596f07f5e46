"""The hydraulic arm's experiments, coupled with its water, and without it behind a lag."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from softarm_reproduction.hydraulic_motions import (
    experiments,
    settling,
    simulate_apart,
    simulate_coupled,
    simulate_in_turn,
)
from softarm_ros.models.hydraulics.identified_arm import SET_B, build_hydraulic_arm


def coupled(values, found):
    return simulate_coupled(build_hydraulic_arm(values), found, 4e-3)


def lagged(values, found):
    return simulate_apart(values, found, 4e-3)


@pytest.mark.parametrize('segments', SET_B)
@pytest.mark.parametrize('simulate', [coupled, lagged])
def test_experiments_settle_as_reported(simulate, segments):
    """Steady within 1 s and 1.5 s; ramps overshoot less and settle sooner than steps."""
    records = [simulate(SET_B[segments], found) for found in experiments()]
    uni, bi, ramps, jumps, steps, slow = map(settling, records, experiments())
    assert max(*uni.curvature_s, uni.tip_s) < 1.0
    assert max(*bi.curvature_s, bi.tip_s) < 1.5
    assert ramps.overshoot < 0.6 * jumps.overshoot
    assert ramps.tip_speed < 0.6 * min(jumps.tip_speed, uni.tip_speed)
    assert ramps.tip_s < uni.tip_s
    assert slow.overshoot < 0.5 * steps.overshoot
    assert slow.tip_s < steps.tip_s
    # Bent the same way, and in reverse; the figures are an independent solution for n = 1.
    curvatures = np.array([record.curvature[-1] for record in records[:2]])
    assert curvatures[0, 0] * curvatures[0, 1] > 0.0 > curvatures[1, 0] * curvatures[1, 1]
    if segments == 1:
        np.testing.assert_allclose(curvatures, [(-1.19, -3.48), (-2.67, 4.81)], atol=0.05)
    # Ramp and step lead to the same end.
    np.testing.assert_allclose(records[2].tips[-1], records[0].tips[-1], atol=5e-3)
    np.testing.assert_allclose(records[5].tips[-1], records[1].tips[-1], atol=5e-3)


def test_coupled_simulation_is_more_accurate_than_solving_two_systems_in_turn():
    values = SET_B[1]
    first = replace(experiments()[0], duration_s=0.5)
    system = build_hydraulic_arm(values)
    truth = simulate_coupled(system, first, 5e-4).tips[9::10, 1]
    together = simulate_coupled(system, first, 5e-3).tips[:, 1]
    in_turn = simulate_in_turn(values, first, 5e-3)
    error = np.linalg.norm(together - truth, axis=1).max()
    assert error < 5e-4
    if in_turn is not None:
        assert np.linalg.norm(in_turn.tips[:, 1] - truth, axis=1).max() > 3.0 * error
