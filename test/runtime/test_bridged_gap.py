"""Cameras go blind while the arm moves: behaviour of loop, estimator, supervisor and gate."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from softarm_ros.control.supervisor import SafetyState
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.assembly import build_supervisor
from softarm_ros.runtime.loop import Phase
from softarm_ros.runtime.supervised_run import SupervisedArm

BEGIN_S = 1.5  # of tracking


@dataclass
class Seen:
    """Per cycle: time since tracking began, state, true error [m], step of the command, pace."""

    time_s: list = field(default_factory=list)
    state: list = field(default_factory=list)
    error_m: list = field(default_factory=list)
    step: list = field(default_factory=list)
    pace: list = field(default_factory=list)
    reason: str = ''


def drive(kind, gap_s, strict=True, until_s=4.0):
    """Track a circle under supervision, blind for `gap_s`."""
    rig = load_rig('cable_arm_single', [f'estimator.kind={kind}'])
    arm = SupervisedArm(rig, 'circle_small', laps=2, seed=3)
    arm.supervisor = build_supervisor(rig, ['tracker'], strict=strict)
    seen, began, before = Seen(), None, None
    while began is None or arm.now_s - began < until_s:
        if arm.status.state is SafetyState.READY:
            arm.start()
        tracked = -1.0 if began is None else arm.now_s - began
        arm.plant.mocap_enabled = not BEGIN_S <= tracked < BEGIN_S + gap_s
        output = arm.cycle()
        if began is None and output.phase is Phase.TRACK:
            began = arm.now_s
        for _ in range(arm.looks):
            arm.advance()
        if began is not None:
            tip = arm.plant.true_section_tips()[-1, :3, 3]
            seen.time_s.append(tracked)
            seen.state.append(arm.status.state)
            seen.error_m.append(float(np.linalg.norm(output.reference_position - tip)))
            seen.step.append(float(np.max(np.abs(output.actuation - before))))
            seen.pace.append(arm.loop.pace)
            seen.reason = seen.reason or arm.status.reason
        before = output.actuation.copy()
    return seen


def test_arm_with_the_direct_estimator_is_held_in_a_gap_of_300_ms():
    seen = drive('direct', 0.3, until_s=2.5)
    assert seen.state[-1] is SafetyState.FAULT
    assert 'feedback stale' in seen.reason
    assert 'limit 120 ms' in seen.reason


def test_arm_with_the_filter_tracks_through_a_gap_of_300_ms():
    seen, clear = drive('filter', 0.3), drive('filter', 0.0)
    assert set(seen.state) == {SafetyState.RUNNING}
    assert min(seen.pace) > 0.5
    assert max(seen.error_m) < max(clear.error_m) + 1e-3
    assert max(seen.step[10:]) < 1.2 * max(clear.step[10:])


@pytest.mark.parametrize('strict', [True, False])
def test_arm_with_the_filter_stops_by_itself_before_it_is_held_in_a_gap_of_1_s(strict):
    seen = drive('filter', 1.0, strict)
    time_s, step = np.array(seen.time_s), np.array(seen.step)
    held = np.array([state is not SafetyState.RUNNING for state in seen.state])
    first = time_s[held][0]
    assert first - BEGIN_S == pytest.approx(0.5 + 0.12, abs=0.05)
    assert 'limit 620 ms' in seen.reason
    usual = step[(time_s > 0.5) & (time_s < BEGIN_S)].max()
    # The arm has stopped by itself when the supervisor holds it.
    assert step[(time_s > first - 0.05) & (time_s < first)].max() < 0.05 * usual
    if strict:
        assert seen.state[-1] is SafetyState.FAULT
        return
    assert seen.state[-1] is SafetyState.RUNNING
    assert max(step[time_s > BEGIN_S]) < 1.2 * usual  # it goes on without a jump
