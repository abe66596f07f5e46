"""Holds, starts and gaps of the estimate at random moments: no command leaves the limits."""

import numpy as np
import pytest

from softarm_ros.control.goals.goal import configuration_goal, point_goal
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.assembly import build_goal_loop, build_loop
from softarm_ros.runtime.loop import Phase, PoseSample

CURVATURE = 1.02  # the tracker keeps acceleration limits to first order


class Events:
    """Random holds of up to half a second, and slowdowns as of an estimator in a gap."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.held_until_s = self.pace = None
        self._ramp = 1.0

    def apply(self, loop, now_s):
        if self.held_until_s is None and self.rng.random() < 0.01:
            loop.hold(now_s)
            self.held_until_s = now_s + self.rng.uniform(0.02, 0.5)
        elif self.held_until_s is not None and now_s >= self.held_until_s:
            loop.resume(now_s)
            self.held_until_s = None
        if self.rng.random() < 0.005:
            self._ramp = -self._ramp
        pace = loop.pace + self._ramp * loop.period_s / 0.2
        loop.pace = float(np.clip(pace, 0.0, 1.0))


def random_goal(loop, number, rng):
    model = loop.model
    away = (
        0.3
        * np.asarray(model.configuration_scale)
        * rng.normal(size=model.rest_configuration.size)
    )
    place = loop.tracker.configuration_limits.clipped(model.rest_configuration + away)
    if rng.random() < 0.5:
        names = model.configuration_names
        return configuration_goal(number, names, [rng.uniform(0.0, 1.0)], [place], expected=names)
    return point_goal(number, model.tips_of(place[None])[0], stream=rng.random() < 0.3)


LOOPS = {
    'path': lambda: build_loop(load_rig('cable_arm'), 'line_small'),
    'goals': lambda: build_goal_loop(load_rig('cable_arm_single')),
    'task': lambda: build_loop(load_rig('pneumatic_arm'), None, task='pick_and_place'),
}


@pytest.mark.parametrize('kind', LOOPS)
def test_commands_keep_speed_and_acceleration_limits_whatever_holds_and_slows_the_arm(kind):
    """Stopping itself is as quick as the actuators; all other changes keep the limits."""
    loop, events = LOOPS[kind](), Events(5)
    loop.start(0.0)
    period, limits = loop.period_s, loop.limits
    before, rate, fastest, phases = loop.tracker.actuation, 0.0, 0.0, []
    for k in range(1000):
        now = k * period
        events.apply(loop, now)
        held = events.held_until_s is not None
        if kind == 'goals' and not held and events.rng.random() < 0.02:
            loop.submit(random_goal(loop, k, events.rng))
        output = loop.cycle(now, PoseSample(now, loop.tracker.tip()))
        assert not any('nan' in event.message for event in output.events)
        new = (output.actuation - before) / period
        assert np.all(np.abs(new) <= limits.max_speed * (1.0 + 1e-6))
        if held:
            assert not new.any()
        else:
            acceleration = np.abs(new - rate) / period
            assert np.all(acceleration <= CURVATURE * limits.max_acceleration)
        before, rate = output.actuation, new
        fastest = max(fastest, float(np.max(np.abs(new) / limits.max_speed)))
        phases.append(output.phase)
    assert fastest > 0.3
    assert phases.count(Phase.HELD) > 50
    assert Phase.TRACK in phases
