"""Identification of pairs from made-up recordings whose truth is known."""

from dataclasses import replace

import numpy as np
import pytest
from pair_cases import cables, sections, some_bends

from softarm_ros.geometry.rotations import exp_so3, rotation_x
from softarm_ros.models.arm_model import ModelError
from softarm_ros.models.cable_driven.pair_identification import (
    PairParameters,
    PairRecording,
    identify,
    predict,
)
from softarm_ros.models.cable_driven.paired_cables import PairedCablesArm
from softarm_ros.models.config import GROUPS

ARM = PairedCablesArm(sections(), cables())
KNOWN = PairParameters(
    mount_position=np.array([0.1, 0.0, 0.1]),
    mount_rotation=rotation_x(0.5 * np.pi),
    lengths=np.array([[s.length_m, s.endcap_length_m] for s in sections()]),
    rest=np.zeros(6),
    bends=ARM.bends_per_contraction,
    delay_s=0.1,
)
TRUTH = PairParameters(
    mount_position=KNOWN.mount_position + np.array([0.004, -0.003, 0.002]),
    mount_rotation=KNOWN.mount_rotation @ exp_so3([0.03, -0.02, 0.0]),
    lengths=KNOWN.lengths * [1.02, 1.0],
    rest=np.array([0.05, 0.1, -0.1, 0.02, 0.1, -0.08]),
    bends=some_bends(np.random.default_rng(8)),
    delay_s=0.17,
)


def moving(truth, rows=1200, noise_m=0.0, seed=0):
    """Return a recording at 50 Hz of an arm that is the model, every motor swinging by itself."""
    rng = np.random.default_rng(seed)
    time = 0.02 * np.arange(rows)
    waves = rng.uniform(0.5, 4.0, (6, 2)), rng.uniform(0.0, 6.0, (6, 2))
    contractions = 0.004 * np.sum(np.sin(time[:, None, None] * waves[0] + waves[1]), axis=2)
    recording = PairRecording(time, contractions, np.zeros((rows, 3, 3)))
    tips = predict(truth, recording)
    return replace(recording, tips=tips + rng.normal(0.0, noise_m, tips.shape))


def at_rest(truth, rows, seed=0):
    contractions = np.random.default_rng(seed).uniform(-0.008, 0.008, (rows, 6))
    recording = PairRecording(None, contractions, np.zeros((rows, 3, 3)))
    return replace(recording, tips=predict(truth, recording))


def rms(parameters, recording, rows):
    error = predict(parameters, recording, rows) - recording.tips[rows]
    return float(np.sqrt(np.mean(np.sum(error**2, axis=2))))


def test_prediction_is_the_model_seen_from_the_recordings_frame():
    arm = PairedCablesArm(sections(), cables(TRUTH.bends))
    still = replace(TRUTH, lengths=KNOWN.lengths, rest=arm.rest_configuration)
    recording = at_rest(still, 5)
    for contraction, tips in zip(recording.contractions, recording.tips):
        shape = arm.forward(contraction)
        for seen, tip in zip(tips, shape.section_tips):
            expected = still.mount_position + still.mount_rotation @ tip[:3, 3]
            np.testing.assert_allclose(seen, expected, atol=1e-14)


def test_commands_act_after_the_delay():
    recording = moving(TRUTH)
    later = replace(TRUTH, delay_s=TRUTH.delay_s + 0.02)
    rows = np.arange(100, 1000)
    np.testing.assert_allclose(
        predict(later, recording, rows), predict(TRUTH, recording, rows - 1), atol=1e-12
    )


def test_truth_is_found_and_unseen_rows_are_predicted():
    recording = moving(TRUTH, noise_m=5e-4)
    rows = np.arange(1200)
    found = identify(KNOWN, recording, rows[:600], GROUPS)
    assert rms(KNOWN, recording, rows[600:]) > 0.02
    # Noise of 0.5 mm in each of three coordinates is what no model predicts.
    assert rms(found, recording, rows[600:]) < 1.1 * 5e-4 * np.sqrt(3.0)
    assert found.delay_s == pytest.approx(TRUTH.delay_s, abs=0.003)


def test_poses_at_rest_do_as_well():
    recording = at_rest(TRUTH, 60)
    groups = tuple(group for group in GROUPS if group != 'delay')
    found = identify(KNOWN, recording, np.arange(40), groups)
    assert rms(found, recording, np.arange(40, 60)) < 5e-4
    assert found.delay_s == KNOWN.delay_s


def test_the_more_rows_the_nearer_to_the_truth():
    groups = tuple(group for group in GROUPS if group != 'delay')
    worst = []
    for rows in (100, 400, 1500):
        found = identify(KNOWN, at_rest(TRUTH, rows), np.arange(rows), groups)
        worst.append(np.abs(found.bends - TRUTH.bends).max())
    # What is left is the pull of what was known before, which fades with the number of rows.
    assert worst[0] < 2.0
    assert worst[1] < 0.4 * worst[0]
    assert worst[2] < 0.4 * worst[1]


def test_markers_mistaken_for_others_do_no_harm():
    recording = moving(TRUTH)
    tips = recording.tips.copy()
    tips[50:80, 1] += [0.0, 0.03, 0.03]
    tips[300:310, 2] -= 0.1
    wrong = replace(recording, tips=tips)
    found = identify(KNOWN, wrong, np.arange(600), GROUPS)
    # 30 rows of one disk off by 42 mm and 10 of another by 173 mm.
    assert rms(found, recording, np.arange(600, 1200)) < 2.5e-3


def test_only_what_is_free_changes():
    recording = moving(TRUTH)
    found = identify(KNOWN, recording, np.arange(600), ('rest_bends',))
    np.testing.assert_array_equal(found.bends, KNOWN.bends)
    np.testing.assert_array_equal(found.lengths, KNOWN.lengths)
    np.testing.assert_array_equal(found.mount_position, KNOWN.mount_position)
    assert found.delay_s == KNOWN.delay_s
    assert not np.allclose(found.rest, KNOWN.rest)


def test_rows_left_out_have_no_influence():
    recording = moving(replace(TRUTH, delay_s=0.0))
    tips = recording.tips.copy()
    tips[600:] = 7.0
    rows = np.arange(600)
    free = ('mount', 'bends')
    first = identify(KNOWN, recording, rows, free)
    second = identify(KNOWN, replace(recording, tips=tips), rows, free)
    np.testing.assert_array_equal(first.bends, second.bends)


def test_a_motor_that_never_moved_keeps_what_was_known():
    truth = replace(TRUTH, delay_s=0.1)
    recording = moving(truth)
    contractions = recording.contractions.copy()
    contractions[:, 5] = 0.0
    still = replace(recording, contractions=contractions)
    still = replace(still, tips=predict(truth, still))
    found = identify(KNOWN, still, np.arange(600), GROUPS)
    np.testing.assert_allclose(found.bends[:, 5], KNOWN.bends[:, 5], atol=1e-6)
    assert not np.allclose(found.bends[:, 0], KNOWN.bends[:, 0], atol=1.0)


def test_too_few_rows_are_refused():
    with pytest.raises(ModelError, match=r'5 rows with 45 coordinates for 51 unknowns'):
        identify(KNOWN, moving(TRUTH), np.arange(5), GROUPS)
    with pytest.raises(ModelError, match='something to identify'):
        identify(KNOWN, moving(TRUTH), np.arange(500), ())
