"""A tracker at an actuator's limit slides along it."""

import numpy as np

from softarm_ros.control.controllers.resolved_rate import ResolvedRate
from softarm_ros.control.tracker import Tracker
from softarm_ros.rigs.loader import load_rig
from softarm_ros.rigs.part_choice import chosen_part

PERIOD_S, SPEED_M_S, CYCLES = 0.02, 0.03, 80


def test_idle_actuators_at_their_limit_do_not_stop_the_others():
    rig = load_rig('hydraulic_arm')
    model, limits = rig.model(), rig.actuator_limits()
    _, config = chosen_part('controller', rig.tracker)
    config = config.model_copy(update={'straightening_gain_1_s': 0.0})
    tracker = Tracker(model, ResolvedRate(config, model), limits, rig.configuration_limits())
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(6):
        # One chamber of each section is empty; curvature would lead its pressure below zero.
        pressure = rng.uniform(1e5, 5e5, 6)
        pressure[rng.integers(3)] = pressure[3 + rng.integers(3)] = 0.0
        tracker.reset(model.configuration_of(pressure))
        along = rng.normal(size=3) * (1.0, 1.0, 0.3)
        along /= np.linalg.norm(along)
        start = tracker.tip()
        for _ in range(CYCLES):
            step = tracker.step(SPEED_M_S * along, np.zeros(3), PERIOD_S)
            assert np.all(step.actuation >= limits.position_min - limits.rounding)
        moved = float((tracker.tip() - start) @ along)
        shares.append(moved / (CYCLES * SPEED_M_S * PERIOD_S))
    assert min(shares) > 0.8


def test_limits_reached_are_named_with_value_and_unit():
    rig = load_rig('cable_arm')
    model, limits, bends = rig.model(), rig.actuator_limits(), rig.configuration_limits()
    _, config = chosen_part('controller', rig.tracker)
    tracker = Tracker(model, ResolvedRate(config, model), limits, bends)
    assert tracker.limits_reached() == []
    furthest = np.array([bends.max_bending_rad[0], 0.0, 0.0, 0.0])
    tracker.reset(furthest)
    x, y = model.configuration_names[:2]
    assert tracker.limits_reached() == [
        f'({x}, {y}) at {np.degrees(bends.max_bending_rad[0]):.4g} deg'
    ]
    command, rate = limits.position_min.copy(), np.zeros(len(limits.names))
    command[1:] += 1e-2 * (limits.position_max - limits.position_min)[1:]
    rate[2] = -limits.max_speed[2]
    assert limits.reached(command, rate) == [
        f'{limits.names[0]} at {limits.position_min[0]:.4g} m',
        f'{limits.names[2]} at {limits.max_speed[2]:.4g} m/s',
    ]
