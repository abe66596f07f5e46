"""From tracker frames to sightings, without a network: order, base, names, invalid values."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tracked_arm import BODIES, FRAME_ID, SECTIONS, section_tips

from softarm_ros.emulation.tracked_scene import TrackedScene
from softarm_ros.geometry.poses import inverse_pose, pose
from softarm_ros.geometry.rotations import quaternion_from_matrix, rotation_x
from softarm_ros.perception import frame_intake
from softarm_ros.perception.base_calibration_file import read_base, write_base
from softarm_ros.perception.base_frame import BaseCalibration
from softarm_ros.perception.captured import (
    CapturedBody,
    CapturedFrame,
    CapturedPoint,
    CorruptFrameError,
)
from softarm_ros.perception.config import PoseSensorConfig
from softarm_ros.perception.frame_intake import FrameIntake
from softarm_ros.perception.problem_log import ProblemLog
from softarm_ros.perception.sensor import SensorError, SensorProblem
from softarm_ros.plant.mocap import PoseMeasurement

X_SB = pose(rotation_x(2.8), [0.5, -0.2, 1.4])


class ManualTime:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.time_s = 0.0

    def now_s(self) -> float:
        return self.time_s


def config(**fields: object) -> PoseSensorConfig:
    return PoseSensorConfig.model_validate(
        {'rate_hz': 100.0, 'timeout_s': 0.25, 'bodies': BODIES, **fields}
    )


def frame(number: int, *, without: str = '', lost: tuple[str, ...] = ()) -> CapturedFrame:
    """Return a tracker's frame of the swinging arm, sent after 5 ms and received 1 ms later."""
    places = config().places(SECTIONS)
    time_s = 0.01 * number
    tips = section_tips(time_s)
    bodies = []
    for name, place in places.items():
        seen = X_SB @ (tips[place.section] if place.section >= 0 else np.eye(4)) @ place.offset
        if name != without:
            turn = tuple(quaternion_from_matrix(seen[:3, :3]))
            bodies.append(CapturedBody(name, tuple(seen[:3, 3]), turn))
    sent_s = 100.0 + time_s + 0.005
    return CapturedFrame(
        number, 100.0 + time_s, sent_s, time_s + 0.006, tuple(bodies), (), tuple(lost)
    )


def fed(intake: FrameIntake, clock: ManualTime, frames: list[CapturedFrame]) -> list:
    found = []
    for one in frames:
        clock.time_s = one.arrived_s
        found.append(intake.take(one))
    return found


def test_bodies_match_the_arm_at_the_exposure_in_its_base_frame(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = ManualTime()
    wall = SimpleNamespace(time_ns=lambda: 10**18 + round(1e9 * clock.time_s))
    monkeypatch.setattr(frame_intake, 'time', wall)
    intake = FrameIntake(config(), FRAME_ID, clock)
    sightings = fed(intake, clock, [frame(k) for k in range(100)])
    tip = next(body for body in sightings[-1].bodies if body.name == 'tip')
    true = section_tips(0.99)[1] @ config().places(SECTIONS)['tip'].offset
    np.testing.assert_allclose(tip.pose, true, atol=1e-9)
    assert {body.name for body in sightings[-1].bodies} == {'middle', 'tip'}
    assert np.diag(tip.covariance) == pytest.approx([4e-8] * 3 + [4e-6] * 3)
    # The exposure was 6 ms before the arrival, less the network's fastest 1 ms.
    assert sightings[-1].stamp_ns == 10**18 + 991_000_000
    assert float(intake.health().values['latency_ms']) == pytest.approx(5.0, abs=1e-6)
    assert not intake.health().problems


def test_nothing_is_delivered_before_the_base_was_seen() -> None:
    clock = ManualTime()
    intake = FrameIntake(config(), FRAME_ID, clock)
    frames = [frame(k, without='base' if k < 40 else '', lost=('base',)) for k in range(60)]
    sightings = fed(intake, clock, frames)
    assert [s is not None for s in sightings] == [k >= 40 for k in range(60)]
    assert 'body-lost' in {p.code for p in intake.health().problems}


def test_older_frames_after_newer_ones_are_not_used() -> None:
    clock = ManualTime()
    intake = FrameIntake(config(), FRAME_ID, clock)
    frames = [frame(k) for k in range(30)]
    late = replace(frames[20], arrived_s=0.31)
    assert fed(intake, clock, [*frames, late, late])[-2:] == [None, None]
    assert {p.code for p in intake.health().problems} == {'out-of-order'}


def test_restarted_device_is_followed_after_one_clock_jump() -> None:
    clock = ManualTime()
    intake = FrameIntake(config(), FRAME_ID, clock)
    fed(intake, clock, [frame(k) for k in range(200)])
    again = [
        replace(frame(k), arrived_s=3.0 + 0.01 * k, exposed_s=0.01 * k, sent_s=0.01 * k + 0.005)
        for k in range(200)
    ]
    sightings = fed(intake, clock, again)
    assert all(s is not None for s in sightings[60:])
    assert intake.clock_offset.jumps == 1


@pytest.mark.parametrize(
    ('wrong', 'what'),
    [
        ({'sent_s': 90.0}, 'after the exposure'),
        ({'sent_s': math.nan}, 'after the exposure'),
        ({'exposed_s': 1e13, 'sent_s': 1e13}, 'time stamp'),
        ({'bodies': (CapturedBody('tip', (0, 0, math.inf), (0, 0, 0, 1)),)}, 'limit 100 m'),
        ({'bodies': (CapturedBody('tip', (0, 0, 101.0), (0, 0, 0, 1)),)}, 'limit 100 m'),
        ({'bodies': (CapturedBody('tip', (0, 0, 0), (0, 0, 0, 1.02)),)}, 'quaternion of norm'),
        ({'bodies': (CapturedBody('tip', (0, 0, 0), (0, math.nan, 0, 1)),)}, 'quaternion of norm'),
    ],
)
def test_impossible_values_in_a_frame_are_refused(wrong: dict, what: str) -> None:
    with pytest.raises(CorruptFrameError, match=what):
        replace(frame(0), **wrong).check()


def test_base_calibration_replaces_a_body_on_the_base(tmp_path: Path) -> None:
    file = tmp_path / 'base.yaml'
    write_base(file, BaseCalibration(X_SB, 1e-8 * np.eye(6), 1e-4))
    found = read_base(file)
    np.testing.assert_array_equal(found.pose, X_SB)
    assert found.rms_m == 1e-4
    clock = ManualTime()
    fields = {'base_from': 'calibration', 'base_calibration': str(file), 'bodies': BODIES[1:]}
    intake = FrameIntake(config(**fields), FRAME_ID, clock)
    sighting = fed(intake, clock, [frame(k, without='base') for k in range(5)])[-1]
    tip = sighting.bodies[-1].pose @ inverse_pose(config().places(SECTIONS)['tip'].offset)
    np.testing.assert_allclose(tip, section_tips(0.04)[1], atol=1e-9)


def test_implausible_single_markers_are_rejected_like_bodies() -> None:
    """A marker that takes the name of another must not move an arm that is controlled by it."""
    clock = ManualTime()
    points = [{'name': '5', 'section': 'proximal'}, {'name': '7', 'section': 'distal'}]
    intake = FrameIntake(config(points=points, plausibility={'reach_m': 0.5}), FRAME_ID, clock)
    frames = []
    for k in range(40):
        tips = section_tips(0.01 * k)[:, :3, 3] @ X_SB[:3, :3].T + X_SB[:3, 3]
        if 10 <= k < 15:
            tips = tips[::-1]
        if k == 20:
            tips[1] = tips[1] + [0.0, 0.1, 0.0]
        if k == 30:
            tips[1] = tips[1] + [0.0, 9.0, 0.0]
        seen = tuple(CapturedPoint(name, tuple(tip)) for name, tip in zip('57', tips))
        frames.append(replace(frame(k), points=seen))
    for k, sighting in enumerate(fed(intake, clock, frames)):
        tips = {point.name: point.position for point in sighting.points}
        for name, true in zip('57', section_tips(0.01 * k)[:, :3, 3]):
            if name in tips:
                np.testing.assert_allclose(tips[name], true, atol=1e-9)
        assert set(tips) == (set() if 10 <= k < 15 else {'5'} if k in (20, 30) else {'5', '7'}), k
    codes = {(p.code, p.subject) for p in intake.problems.now(clock.time_s)}
    assert codes == {('swap', '5'), ('swap', '7'), ('jump', '7'), ('reach', '7')}


@pytest.mark.parametrize('other', ['middle', 'tip'])
def test_body_swapped_with_the_base_is_not_used_and_does_not_become_the_base(other: str) -> None:
    names = {'base': other, other: 'base'}
    clock = ManualTime()
    intake = FrameIntake(config(), FRAME_ID, clock)
    fed(intake, clock, [frame(k) for k in range(60)])
    swapped = []
    for k in range(60, 200):  # longer than a body that stays elsewhere is refused
        one = frame(k)
        bodies = tuple(replace(body, name=names.get(body.name, body.name)) for body in one.bodies)
        swapped.append(replace(one, bodies=bodies))
    during = fed(intake, clock, swapped)
    codes = {(problem.code, problem.subject) for problem in intake.health().problems}
    (after,) = fed(intake, clock, [frame(200)])
    assert codes == {('swap', 'base'), ('swap', other)}
    assert all(other not in {body.name for body in seen.bodies} for seen in during)
    assert {body.name for body in after.bodies} == {'middle', 'tip'}
    tip = next(body for body in after.bodies if body.name == 'tip')
    true = section_tips(2.0)[1] @ config().places(SECTIONS)['tip'].offset
    np.testing.assert_allclose(tip.pose, true, atol=1e-9)


def test_mirrored_base_calibration_is_refused(tmp_path: Path) -> None:
    """A left-handed base frame moves the arm the wrong way along one axis."""
    file = tmp_path / 'base.yaml'
    mirrored = X_SB @ np.diag([1.0, 1.0, -1.0, 1.0])
    write_base(file, BaseCalibration(mirrored, 1e-8 * np.eye(6), 1e-4))
    with pytest.raises(SensorError, match='X_sensor_base: it mirrors'):
        read_base(file)


def test_base_calibration_in_millimetres_is_refused(tmp_path: Path) -> None:
    file = tmp_path / 'base.yaml'
    far = X_SB.copy()
    far[:3, 3] *= 1e3
    write_base(file, BaseCalibration(far, 1e-8 * np.eye(6), 1e-4))
    with pytest.raises(SensorError, match=r'X_sensor_base: the base is .* m away \(limit 100 m\)'):
        read_base(file)


@pytest.mark.parametrize(
    ('row', 'column', 'value', 'what'),
    [
        (0, 0, -1e-6, 'smallest eigenvalue is -1e-06: expected 0 or more'),
        (0, 1, 1e-8, 'expected a symmetric matrix'),
    ],
)
def test_base_calibration_with_an_impossible_covariance_is_refused(
    tmp_path: Path, row: int, column: int, value: float, what: str
) -> None:
    file = tmp_path / 'base.yaml'
    covariance = 1e-8 * np.eye(6)
    covariance[row, column] = value
    write_base(file, BaseCalibration(X_SB, covariance, 1e-4))
    with pytest.raises(SensorError, match=f'covariance: .*{what}'):
        read_base(file)


@pytest.mark.parametrize(
    ('text', 'what'),
    [
        (None, 'softarm calibrate base --seen'),
        ('version: 2', 'version = 2: '),
        ('version: 1\nrms_m: 0.1', 'X_sensor_base: Field required'),
        ('format: softarm_ros cameras', 'of cameras'),
        ('[', 'base_calibration'),
    ],
)
def test_invalid_base_calibration_is_refused_in_one_line(
    tmp_path: Path, text: str | None, what: str
) -> None:
    file = tmp_path / 'base.yaml'
    if text is not None:
        file.write_text(text)
    with pytest.raises(SensorError, match=what) as refused:
        read_base(file)
    assert '\n' not in str(refused.value)


@pytest.mark.parametrize('step_s', [0.7, -0.7])
def test_clock_jump_is_reported_only_as_wrong_time_and_clock_jump(step_s: float) -> None:
    clock = ManualTime()
    intake = FrameIntake(config(), FRAME_ID, clock)
    told: list[set[str]] = []
    for k in range(160):
        one, step = frame(k), step_s if k >= 100 else 0.0
        one = replace(one, exposed_s=one.exposed_s + step, sent_s=one.sent_s + step)
        fed(intake, clock, [one])
        told.append({problem.code for problem in intake.problems.now(clock.time_s)})
    assert not any(told[:100])
    # No frame is late here; the clock jump is known after a few frames.
    assert told[100] == {'wrong-time'}
    assert told[-1] == {'clock-jump'}
    assert set().union(*told) == {'wrong-time', 'clock-jump'}


@pytest.mark.parametrize(
    ('wrong_s', 'what'),
    [(0.7, 'dated 0.700 s after its arrival'), (-3.0e6, 's before the previous frame')],
)
def test_corrupt_time_of_a_frame_is_reported_as_wrong_time_only(wrong_s: float, what: str) -> None:
    clock = ManualTime()
    intake = FrameIntake(config(), FRAME_ID, clock)
    frames = [frame(k) for k in range(60)]
    wrong = frames[30]
    frames[30] = replace(wrong, exposed_s=wrong.exposed_s + wrong_s, sent_s=wrong.sent_s + wrong_s)
    sightings = fed(intake, clock, frames)
    assert [k for k, sighting in enumerate(sightings) if sighting is None] == [30]
    (problem,) = intake.problems.now(clock.time_s)
    assert problem.code == 'wrong-time'
    assert what in problem.text


@pytest.mark.parametrize(('drift', 'told'), [(4.0e-4, False), (-4.0e-4, False), (1.25e-3, True)])
def test_clock_that_drifts_too_fast_is_reported(drift: float, told: bool) -> None:
    """A tracker that counts 40 frames per second where the rig file says 40.05 drifts by 0.1 %."""
    clock = ManualTime()
    intake = FrameIntake(config(), FRAME_ID, clock)
    fast = [
        replace(one, exposed_s=(1.0 - drift) * one.exposed_s, sent_s=(1.0 - drift) * one.sent_s)
        for one in map(frame, range(2000))
    ]
    assert all(fed(intake, clock, fast))
    assert ('clock-drift' in {p.code for p in intake.health().problems}) == told


def test_frame_repeated_after_a_pause_is_not_used_and_is_no_fault() -> None:
    """A restarted reader requests the last frame of the device again."""
    clock = ManualTime()
    intake = FrameIntake(config(), FRAME_ID, clock)
    frames = [frame(k) for k in range(30)]
    assert fed(intake, clock, [*frames, replace(frames[-1], arrived_s=5.0)])[-1] is None
    assert not intake.problems.now(clock.time_s)


def test_frames_delayed_by_the_network_are_reported_as_late() -> None:
    clock = ManualTime()
    intake = FrameIntake(config(), FRAME_ID, clock)
    frames = [frame(k) for k in range(80)]
    frames[20:40] = [replace(one, arrived_s=0.4) for one in frames[20:40]]
    sightings = fed(intake, clock, frames)
    (problem,) = intake.problems.now(clock.time_s)
    assert problem.code == 'late-frames'
    assert 'this computer is busy' in problem.advice
    assert all(sightings[k] is not None for k in (*range(20), *range(40, 80)))
    assert sightings[20:30] == [None] * 10


def seen_by_tracker(scene: TrackedScene, number: int) -> CapturedFrame:
    """Return a tracker's frame of the swinging arm, with the faults of a scene."""
    now_s = 0.01 * number
    (sent,) = scene.passing([PoseMeasurement(now_s - 0.005, section_tips(now_s))], now_s)
    bodies = tuple(
        CapturedBody(name, tuple(X[:3, 3]), tuple(quaternion_from_matrix(X[:3, :3])))
        for name, X in sent.bodies.items()
        if X is not None
    )
    lost = tuple(name for name, X in sent.bodies.items() if X is None)
    return CapturedFrame(sent.number, sent.exposed_s, sent.sent_s, now_s + 0.001, bodies, (), lost)


@pytest.mark.parametrize(
    ('faults', 'told'),
    [
        (('hide', 'clock'), {('clock-jump', 'clock'), ('body-lost', 'tip')}),
        (('clock-back', 'flip'), {('clock-jump', 'clock'), ('flip', 'tip')}),
        (('clock', 'rename'), {('clock-jump', 'clock'), ('wrong-name', 'tip')}),
        (('clock', 'swap'), {('clock-jump', 'clock'), ('swap', 'tip'), ('swap', 'middle')}),
    ],
)
def test_two_simultaneous_faults_are_both_reported_until_mended(
    faults: tuple[str, ...], told: set[tuple[str, str]]
) -> None:
    clock, scene = ManualTime(), TrackedScene(config(), SECTIONS, 0)
    intake = FrameIntake(config(), FRAME_ID, clock)
    fed(intake, clock, [seen_by_tracker(scene, k) for k in range(50)])
    for fault in faults:
        scene.inject(fault)
    fed(intake, clock, [seen_by_tracker(scene, k) for k in range(50, 150)])
    problems = intake.problems.now(clock.time_s)
    assert {(p.code, p.subject) for p in problems} == told
    assert problems[0].code == 'clock-jump'  # the most severe
    scene.inject('mend')
    assert scene.told_faults() == 'none'
    fed(intake, clock, [seen_by_tracker(scene, k) for k in range(150, 500)])
    assert not intake.problems.now(clock.time_s)
    assert intake.health().seen == ('middle', 'tip')


def test_single_problem_is_reported_for_3_s_and_a_lasting_one_1_s_after_its_end() -> None:
    log, problem = ProblemLog(), SensorProblem('body-lost', 'tip', 'not seen', 'look')
    log.report(0.0, 1, problem)
    assert log.now(2.9) == (problem,)
    assert log.now(3.1) == ()
    for k in range(100):
        log.report(10.0 + 0.1 * k, 1, problem)
    assert log.now(20.8) == (problem,)
    assert log.now(21.0) == ()


def test_missing_frames_are_reported_with_one_reason_and_no_low_rate() -> None:
    clock = ManualTime()
    intake = FrameIntake(config(timeout_s=0.5), FRAME_ID, clock)
    fed(intake, clock, [frame(k) for k in range(300)])
    silent = SensorProblem('no-server', 'server', 'nothing answers', 'start it')
    intake.problems.report(clock.time_s, 2, SensorProblem('no-server', 'server', 'closed', 'look'))
    clock.time_s += 0.4
    assert [p.code for p in intake.health(lambda: silent).problems] == ['no-server']
    clock.time_s += 0.2
    assert intake.health(lambda: silent).problems == (silent,)
