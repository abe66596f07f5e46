"""Regulators of the simulated pneumatic arm: lag, rate, resolution, play."""

import math

import numpy as np
import pytest
from pneumatic_cases import CONFIG, plant, regulators

from softarm_ros.drivers.play_compensation import PlayCompensation, PlayCompensationConfig


@pytest.mark.parametrize('step', [0.001, 0.01, 0.05])
def test_regulator_lag_matches_its_closed_form_at_any_step(step):
    r = regulators()
    r.command(np.array([5e4]))
    for _ in range(round(0.1 / step)):
        r.advance(step)
    assert r.valves.pressure[0] == pytest.approx(5e4 * (1.0 - math.exp(-0.1 / 0.07)), rel=1e-5)


def test_flow_limits_the_rate_and_commands_are_clipped_to_the_range():
    r = regulators(max_rate_Pa_s=1e5)
    r.command(np.array([2e5]))
    r.advance(0.1)
    assert r.valves.pressure[0] == pytest.approx(1e4)
    p = plant()
    for _ in range(20):
        p.step(np.full(6, 2e5), 0.1)
    most = CONFIG.regulators.max_pressure_Pa
    assert p.chamber_pressures() == pytest.approx(most, rel=0.02)


def test_output_is_quantised_by_the_dac():
    r = regulators(dac_bits=12)
    found = set()
    for target in np.linspace(1e4, 1.1e4, 400):
        r.command(np.array([target]))
        r.advance(10.0)
        found.add(round(float(r.valves.pressure[0]), 3))
    assert len(found) == pytest.approx(1e3 / (5e5 / 4096), abs=1.5)


def settle_to(r, *targets, play=0.0):
    driver = PlayCompensation(PlayCompensationConfig(play_Pa=play), 1)
    for target in targets:
        r.command(driver.signal([target]))
        for _ in range(20):
            r.advance(0.1)
    return float(r.valves.pressure[0])


def test_play_has_its_stated_width_and_the_driver_compensates_its_part():
    for play, left in ((0.0, 1000.0), (800.0, 200.0), (1000.0, 0.0)):
        up = settle_to(regulators(dead_zone_Pa=1e3), 2e4, 4e4, play=play)
        down = settle_to(regulators(dead_zone_Pa=1e3), 6e4, 4e4, play=play)
        assert down - up == pytest.approx(left, abs=1.0)


def test_sensor_shares_gain_and_offset_and_zero_command_empties_the_chamber():
    r = regulators(gain=(1.05,), offset_Pa=(300.0,))
    assert settle_to(r, 4e4) == pytest.approx(1.05 * 4e4 + 300.0, rel=1e-6)
    assert r.valves.measured[0] == pytest.approx(4e4, rel=1e-6)
    assert settle_to(r, 0.0) == pytest.approx(0.0, abs=1e-3)
