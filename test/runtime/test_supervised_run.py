"""Loop, supervisor, gate and plant together: faults stop the arm, nothing else does."""

import numpy as np
import pytest

from softarm_ros.models.arm_model import ModelError
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.fault_trials import FaultTrials
from softarm_ros.runtime.supervised_run import SupervisedArm, run_supervised

LENGTH_M = 0.123


@pytest.fixture(scope='module')
def trials():
    return FaultTrials(load_rig('cable_arm_single'), 'circle_small', seed=2)


def test_run_without_faults_completes_and_repeats_exactly():
    rig = load_rig('cable_arm_single')
    first = run_supervised(rig, 'circle_small', laps=1, seed=4)
    again = run_supervised(rig, 'circle_small', laps=1, seed=4, until_s=6.0)
    assert first.completed
    assert first.faulted_s is None
    assert first.reason == ''
    assert len(again.tip) > 500
    np.testing.assert_array_equal(first.tip[: len(again.tip)], again.tip)
    limits = rig.supervisor.feedback_watch
    assert 0.0 < first.extremes.drift_m < limits.max_drift_m / 2
    assert 0.0 < first.extremes.model_error_m < limits.max_model_error_m / 2


@pytest.mark.parametrize(
    ('fault', 'within_s', 'said'),
    [
        ('cameras freeze', 0.5, 'repeats itself'),
        ('cameras room', 0.05, "frame 'room'"),
        ('cameras mislabel', 0.5, 'limit'),
        ('cameras stuck', 0.2, 'does not advance'),
        ('cameras future', 0.2, 'in the future'),
        ('cameras old', 0.2, 'ms old'),
    ],
)
def test_wrong_feedback_in_motion_is_noticed_before_the_tip_deviates_by_2_mm(
    trials, fault, within_s, said
):
    trial = trials.trial(fault)
    assert said in trial.noticed_by
    assert 0.0 < trial.reaction_s <= within_s
    assert trial.deviation_m < 0.002


@pytest.mark.parametrize('fault', ['cameras freeze', 'cameras mislabel'])
def test_wrong_feedback_from_the_start_is_noticed_before_a_deviation_of_10_mm(trials, fault):
    trial = trials.trial(fault, at_rest=True)
    assert trial.after_motion_s <= 0.5
    assert trial.deviation_m < 0.01


def test_poses_in_a_foreign_frame_prevent_the_start(trials):
    trial = trials.trial('cameras room', at_rest=True)
    assert trial.reaction_s is None
    assert "no start: not ready: pose in frame 'room'" in trial.noticed_by


def test_a_snapped_cable_stops_the_arm(trials):
    line = trials.cases()[-2].fault
    assert line.startswith('cable snap')
    trial = trials.trial(line)
    assert trial.reaction_s < 1.0
    assert trial.deviation_m > 0.01  # the tip springs away before the arm can stop


def test_frozen_pose_drives_the_arm_away_without_the_feedback_watch():
    """The purpose of the watch: with very wide limits the tip leaves its path."""
    blind = load_rig(
        'cable_arm_single',
        [
            'supervisor.feedback_watch.frozen_motion_m=10',
            'supervisor.feedback_watch.max_drift_m=10',
            'supervisor.feedback_watch.max_model_error_m=10',
            'supervisor.feedback_watch.max_tracking_error_m=10',
        ],
    )
    trial = FaultTrials(blind, 'circle_small', seed=2).trial('cameras freeze')
    assert not trial.noticed
    assert trial.deviation_m > 0.01


def test_model_error_in_motion_is_a_fault_with_its_reason(monkeypatch):
    arm = SupervisedArm(load_rig('cable_arm_single'), 'circle_small')

    def run(seconds):
        until_s = arm.now_s + seconds
        while arm.now_s < until_s:
            arm.cycle()
            for _ in range(arm.looks):
                arm.advance()

    def refuse(configuration, near=None):
        raise ModelError('bend 2.1 rad is beyond 2 rad')

    run(0.5)
    assert arm.start()[0]
    run(0.5)
    with monkeypatch.context() as patched:
        patched.setattr(arm.loop.model, 'posture_of', refuse)
        run(0.02)
    assert arm.status.reason == 'tracker: cannot go on: bend 2.1 rad is beyond 2 rad'
    run(0.1)
    stands = arm.plant.actuator_state().position
    run(0.1)
    np.testing.assert_array_equal(arm.plant.actuator_state().position, stands)
