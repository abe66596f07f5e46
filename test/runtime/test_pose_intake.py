"""From measured frames to the sightings that estimators get: every pose once."""

from dataclasses import replace

import numpy as np
import pytest

from softarm_ros.control.controller import AnswerError
from softarm_ros.control.estimator import Health
from softarm_ros.control.estimators import direct
from softarm_ros.control.estimators.direct import Direct
from softarm_ros.control.measurement_frame import MeasurementFrame
from softarm_ros.geometry.sightings import PointSighting, Sighting
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.assembly import build_estimator, build_pose_intake
from softarm_ros.runtime.points_along import markers_counted, points_along
from softarm_ros.runtime.pose_intake import sighting_of


def frame_of(rig, seed=0):
    """Return a frame of the arm in some posture, and its section tips."""
    model = rig.model()
    somewhere = rig.sample_configurations(np.random.default_rng(seed), 1)[0]
    tips = np.array(model.posture_of(somewhere).section_tips)
    return MeasurementFrame(10_000_000, tips[-1, :3, 3], tips), model


def filter_of(name):
    rig = load_rig(name, ['estimator.kind=filter'])
    return rig, build_estimator(rig, rig.model())


def test_every_pose_of_a_frame_is_in_its_sighting_once():
    frame, _ = frame_of(load_rig('cable_arm'))
    seen = sighting_of(frame)
    assert [body.name for body in seen.bodies] == ['section_0', 'tip']
    assert seen.points == ()
    np.testing.assert_array_equal([body.pose for body in seen.bodies], frame.section_tips)


def test_filter_uses_six_rows_per_measured_pose():
    rig, estimator = filter_of('cable_arm')
    measured, refused = estimator._places.measured(sighting_of(frame_of(rig)[0]))
    assert measured.names == ('section_0', 'tip')
    assert list(measured.sizes) == [6, 6]
    assert refused == []


def test_single_pose_of_an_arm_with_many_sections_is_that_of_its_tip():
    rig, estimator = filter_of('pam_arm')
    frame, _ = frame_of(rig)
    one = MeasurementFrame(frame.stamp_ns, frame.position, frame.section_tips[-1:])
    measured, _ = estimator._places.measured(sighting_of(one))
    assert measured.names == ('tip',)
    assert list(measured.sizes) == [6]
    assert list(measured.sections) == [len(frame.section_tips) - 1]


def test_position_without_orientation_becomes_a_point():
    frame, _ = frame_of(load_rig('cable_arm'))
    seen = sighting_of(MeasurementFrame(frame.stamp_ns, frame.position))
    assert seen.bodies == ()
    np.testing.assert_array_equal(seen.points[0].position, frame.position)


def test_samples_keep_their_values_when_an_estimator_fills_the_same_arrays_again():
    rig = load_rig('cable_arm')
    intake = build_pose_intake(rig, rig.model())
    estimate, tip, bend = intake.estimator.estimate, np.eye(4), np.zeros(4)

    def filled(now_s):
        found = estimate(now_s)
        if found is not None:
            tip[:], bend[:] = found.tip, found.configuration
            found = replace(found, tip=tip, configuration=bend)
        return found

    intake.estimator.estimate = filled
    taken = []
    for seed in (0, 1):
        frame, _ = frame_of(rig, seed)
        now_s = 1.0 + 0.01 * seed
        stamp_ns = round(1e9 * now_s)
        intake.frames.on_sections(now_s, stamp_ns, frame.section_tips)
        intake.frames.on_tip(now_s, stamp_ns, frame.position)
        taken.append((intake.take(now_s)[0], frame.position))
    for sample, position in taken:
        np.testing.assert_array_equal(sample.position, position)
    assert not np.allclose(taken[0][0].configuration, taken[1][0].configuration)


@pytest.mark.parametrize('whole', [True, False])
def test_direct_estimator_returns_the_measured_poses(whole):
    frame, model = frame_of(load_rig('cable_arm'))
    tips = frame.section_tips if whole else None
    estimator = direct.build(direct.DirectConfig(), model)
    assert (
        estimator.observe(sighting_of(MeasurementFrame(frame.stamp_ns, frame.position, tips)))
        is None
    )
    estimate = estimator.estimate(0.02)
    np.testing.assert_array_equal(estimate.tip[:3, 3], frame.position)
    if whole:
        np.testing.assert_array_equal(estimate.section_tips, frame.section_tips)
    else:
        assert estimate.section_tips is None
        assert estimate.configuration is None


@pytest.mark.parametrize(('kind', 'used'), [('direct', 1), ('filter', 4)])
def test_only_an_estimator_that_predicts_gets_all_frames_between_two_cycles(kind, used):
    rig = load_rig('pam_arm', [f'estimator.kind={kind}'])
    model = rig.model()
    intake = build_pose_intake(rig, model)
    frame, _ = frame_of(rig)
    intake.estimator.command(0.0, model.posture_of(model.rest_configuration))
    seen = []
    observe = intake.estimator.observe
    intake.estimator.observe = lambda sighting: seen.append(sighting.stamp_ns) or observe(sighting)
    tips = frame.section_tips[-1:]
    for k in range(1, 5):
        stamp_ns = k * 12_500_000
        intake.on_sections(1e-9 * stamp_ns, stamp_ns, 'base', tips)
        intake.on_tip(1e-9 * stamp_ns, stamp_ns, 'base', tips[-1, :3, 3])
    assert intake.take(0.051) is not None
    assert seen == [k * 12_500_000 for k in range(1, 5)][-used:]
    intake.take(0.052)
    assert len(seen) == used


def test_estimate_from_actuators_alone_is_degraded_and_not_used():
    rig = load_rig('cable_arm_single', ['estimator.kind=filter'])
    model = rig.model()
    intake = build_pose_intake(rig, model)
    bent = 0.3 * np.ones(len(model.rest_configuration))
    for now in np.arange(0.0, 1.0, 0.1):
        intake.estimator.command(now, model.posture_of(model.rest_configuration))
        intake.on_actuators(now, model.actuation_of(bent))
        assert intake.take(now) is None
    assert intake.newest.health is Health.DEGRADED
    assert 'from the actuators alone' in intake.newest.reason
    tip = model.shape_of(bent).tip
    assert np.linalg.norm(intake.newest.tip[:3, 3] - tip[:3, 3]) < 1e-3
    tips = np.array(model.posture_of(bent).section_tips)
    intake.on_sections(1.0, 1_000_000_000, 'base', tips)
    intake.on_tip(1.0, 1_000_000_000, 'base', tips[-1, :3, 3])
    assert intake.take(1.0) is not None
    assert intake.newest.health is Health.OK


@pytest.mark.parametrize('seed', range(6))
def test_filter_estimate_does_not_depend_on_the_order_in_which_frames_arrive(seed):
    rig = load_rig('cable_arm', ['estimator.kind=filter'])
    model, rng = rig.model(), np.random.default_rng(seed)
    intakes = [build_pose_intake(rig, model) for _ in range(2)]
    late_s = 0.01 + np.array([rng.uniform(0.0, 0.08, 60), np.zeros(60)])  # some overtake others
    frames, period = [], 0.01
    for k in range(60):
        bent = 0.2 * np.sin(0.1 * k + np.arange(len(model.rest_configuration)))
        tips = np.array(model.posture_of(bent).section_tips)
        tips[:, :3, 3] += 2e-4 * rng.standard_normal((len(tips), 3))
        frames.append(tips)
    for step in range(80):
        now = period * step
        posture = model.posture_of(np.zeros(len(model.rest_configuration)))
        for intake, late in zip(intakes, late_s):
            intake.estimator.command(now, posture)
            stamps = period * np.arange(60)
            for k in rng.permutation(np.flatnonzero(np.abs(stamps + late - now) <= period / 2)):
                stamp_ns, tips = round(1e9 * stamps[k]), frames[k]
                for part in rng.permutation(2):
                    if part:
                        assert intake.on_sections(now, stamp_ns, 'base', tips) is None
                    else:
                        assert intake.on_tip(now, stamp_ns, 'base', tips[-1, :3, 3]) is None
            intake.take(now)
    assert intakes[0].frames.counts.late > 0
    assert intakes[1].frames.counts.late == 0
    for intake in intakes:
        assert len(intake.estimator._log) > 20
    late, prompt = (intake.estimator.estimate(0.8) for intake in intakes)
    np.testing.assert_array_equal(late.tip, prompt.tip)
    np.testing.assert_array_equal(late.strain_covariance, prompt.strain_covariance)


def test_late_pose_is_refused_for_an_estimator_that_does_not_predict():
    rig = load_rig('cable_arm', ['estimator.kind=direct'])
    frame, model = frame_of(rig)
    intake = build_pose_intake(rig, model)
    for stamp_ns in (20_000_000, 10_000_000):
        intake.on_sections(0.02, stamp_ns, 'base', frame.section_tips)
        refusal = intake.on_tip(0.02, stamp_ns, 'base', frame.position)
        intake.take(0.021)
    assert 'does not advance: 10 ms behind the newest' in refusal
    assert intake.newest.stamp_s == pytest.approx(0.02)
    assert intake.estimator._stamp_ns == 20_000_000


POINTS = (
    'sensors.natnet.points=[{name: "7", section: proximal, fraction: 0.5}, '
    '{name: "8", section: distal}]'
)


def test_markers_along_the_arm_reach_a_filter_and_those_of_bodies_do_not():
    rig = load_rig('cable_arm', ['estimator.kind=filter', POINTS])
    along = points_along(rig)
    assert list(along) == ['7']  # the other one is published as the tip
    assert markers_counted(rig) == ('7', '8')
    model = rig.model()
    intake = build_pose_intake(rig, model)
    bent = 0.4 * np.ones(len(model.rest_configuration))
    line = model.shape_of(bent).centerline(401)
    half = line[round(400 * 0.5 * 0.5)]
    for k in range(100):
        now, stamp_ns = 0.01 * k, 10_000_000 * k
        intake.estimator.command(now, model.posture_of(model.rest_configuration))
        seen = tuple(PointSighting(name, half) for name in ('7', 'a_marker_of_a_disk'))
        sighting = Sighting(stamp_ns, 'base', (), seen)
        assert intake.on_points(now, sighting, along) is None
    measured, _ = intake.estimator._places.measured(Sighting(0, 'base', (), seen[:1]))
    assert measured.names == ('7',)
    where, _ = intake.estimator.place(along['7'], 1.0)
    assert np.linalg.norm(where[:3, 3] - half) < 1e-3
    old = Sighting(10_000_000, 'base', (), seen)
    assert 'ms old' in intake.on_points(1.0, old, along)
    elsewhere = Sighting(990_000_000, 'room', (), seen)
    assert "expected 'base'" in intake.on_points(1.0, elsewhere, along).replace('cable_arm/', '')


def test_points_are_not_used_by_an_estimator_that_does_not_predict():
    rig = load_rig('cable_arm', ['estimator.kind=direct', POINTS])
    intake = build_pose_intake(rig, rig.model())
    sighting = Sighting(0, 'base', (), (PointSighting('7', np.zeros(3)),))
    assert 'not used' in intake.on_points(0.0, sighting, points_along(rig))
    assert intake.take(0.0) is None


@pytest.mark.parametrize('kind', ['direct', 'filter', 'window'])
@pytest.mark.parametrize('step_s', [-0.5, -3600.0, 3600.0])
def test_poses_are_used_again_after_the_clock_of_the_computer_was_set(kind, step_s):
    """Before, all were late until it had caught up; a filter reported OK without them."""
    rig = load_rig('cable_arm', [f'estimator.kind={kind}'])
    model = rig.model()
    intake = build_pose_intake(rig, model)
    rest = model.posture_of(model.rest_configuration)
    rng = np.random.default_rng(0)
    used, now = [], 1000.0
    for k in range(200):
        now += 0.01 + (step_s if k == 100 else 0.0)
        intake.estimator.command(now, rest)
        stamp_ns = round(1e9 * (now - 0.01))
        tips = np.array(rest.section_tips)
        tips[:, :3, 3] += 1e-4 * rng.standard_normal((len(tips), 3))
        intake.on_sections(now, stamp_ns, 'base', tips)
        assert intake.on_tip(now, stamp_ns, 'base', tips[-1, :3, 3]) is None
        intake.take(now)
        used.append(intake.newest is not None and abs(now - intake.newest.measured_s) < 0.02)
    assert sum(used[100:]) >= 98
    assert used[103:] == [True] * 97
    assert intake.frames.counts.complete >= 195


@pytest.mark.parametrize('wrong', ['an hour ahead', 'not finite', 'none'])
def test_invalid_sections_do_not_block_later_ones(wrong):
    """Before, one from an hour ahead made all others late: the arm was held until a restart."""
    rig = load_rig('cable_arm', ['estimator.kind=direct'])
    model = rig.model()
    intake = build_pose_intake(rig, model)
    tips = np.array(model.posture_of(model.rest_configuration).section_tips)
    for k in range(100):
        now = 1000.0 + 0.01 * k
        stamp_ns = round(1e9 * (now - 0.01))
        if k == 50:
            ahead_ns = round(3600e9) if wrong == 'an hour ahead' else 0
            seen = {'not finite': np.nan * tips, 'none': tips[:0]}.get(wrong, tips)
            assert intake.on_sections(now, stamp_ns + ahead_ns, 'base', seen) is not None
        assert intake.on_sections(now, stamp_ns, 'base', tips) is None
        intake.on_tip(now, stamp_ns, 'base', tips[-1, :3, 3])
        intake.take(now)
    assert intake.frames.counts.complete == 100
    assert intake.frames.problem() is None


class Wrong(Direct):
    """An estimator whose estimates differ from those of `direct` in some fields."""

    def __init__(self, model, **fields):
        super().__init__(model)
        self._fields = fields

    def estimate(self, now_s):
        right = super().estimate(now_s)
        return right and replace(right, **self._fields)


@pytest.mark.parametrize(
    ('fields', 'message'),
    [
        ({'stamp_s': np.nan}, r'stamp_s nan \(float\); expected a time'),
        ({'stamp_s': None}, 'stamp_s None; expected a time'),
        ({'stamp_s': 0.0}, 'stamp_s 0.000000 s; expected the present time, 100.010000 s, or that'),
        ({'stamp_s': 200.0}, 'stamp_s 200.000000 s; .* none of which is older than 100.000000 s'),
        ({'health': 'ok'}, r"health 'ok' \(str\); expected Health"),
        ({'innovations': 3.0}, r'innovations 3.0 \(float\); expected Innovations or None'),
        ({'tip_load': 3.0}, r'tip_load 3.0 \(float\); expected TipLoad or None'),
        (
            {'tip_covariance': np.eye(3)},
            r'tip_covariance \[\[1.0, .* 6 x 6 finite numbers, float64',
        ),
        ({'tip': np.full((4, 4), np.nan)}, r'tip \[\[nan.* 4 x 4, with a finite position'),
    ],
)
def test_estimate_with_a_wrong_field_is_refused(fields, message):
    rig = load_rig('cable_arm')
    frame, model = frame_of(rig)
    intake = build_pose_intake(rig, model)
    intake.estimator = Wrong(model, **fields)
    intake.on_sections(100.01, 100_000_000_000, 'base', frame.section_tips)
    intake.on_tip(100.01, 100_000_000_000, 'base', frame.position)
    with pytest.raises(AnswerError, match=f'estimator Wrong returned {message}'):
        intake.take(100.01)


@pytest.mark.parametrize('stamp_s', [100.0, 100.01, np.float64(100.0)])
def test_estimate_of_now_or_of_a_measurement_is_used(stamp_s):
    rig = load_rig('cable_arm')
    frame, model = frame_of(rig)
    intake = build_pose_intake(rig, model)
    intake.estimator = Wrong(model, stamp_s=stamp_s)
    intake.on_sections(100.01, 100_000_000_000, 'base', frame.section_tips)
    intake.on_tip(100.01, 100_000_000_000, 'base', frame.position)
    assert intake.take(100.01)[0].stamp_s == stamp_s


@pytest.mark.parametrize('kind', ['direct', 'filter', 'window'])
@pytest.mark.parametrize('ahead_s', [-0.15, 0.0, 0.04])
def test_first_pose_is_used_if_its_stamp_is_a_little_late_or_ahead(kind, ahead_s):
    rig = load_rig('cable_arm_single', [f'estimator.kind={kind}'])
    model = rig.model()
    posture = model.posture_of(model.rest_configuration)
    tips = np.array(posture.section_tips)
    intake = build_pose_intake(rig, model)
    for k in range(3):
        now = 100.0 + 0.01 * k
        stamp_ns = round(1e9 * (now + ahead_s))
        intake.estimator.command(now, posture)
        intake.on_sections(now, stamp_ns, 'base', tips)
        intake.on_tip(now, stamp_ns, 'base', tips[-1, :3, 3])
        pose, _ = intake.take(now)
        np.testing.assert_allclose(pose.position, tips[-1, :3, 3], atol=1e-6)


def test_a_lost_tip_lets_nothing_move_whatever_the_pace_of_its_estimator():
    rig = load_rig('cable_arm')
    intake = build_pose_intake(rig, rig.model())
    estimate = intake.estimator.estimate

    def take(seed, health):
        def stated(now_s):
            found = estimate(now_s)
            return None if found is None else replace(found, health=health, reason='of this test')

        intake.estimator.estimate = stated
        frame, _ = frame_of(rig, seed)
        now = 1.0 + 0.01 * seed
        intake.on_sections(now, round(1e9 * now), 'base', frame.section_tips)
        intake.on_tip(now, round(1e9 * now), 'base', frame.position)
        assert intake.take(now) is not None
        return intake.pace(now)

    assert intake.pace(0.0) == 1.0
    assert take(0, Health.OK) == 1.0
    assert take(1, Health.LOST) == 0.0
    assert take(2, Health.OK) == 1.0
