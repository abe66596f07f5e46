"""Qualisys from the wire to sightings: real packets over TCP, read by the real library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from tracked_arm import (
    BODIES,
    DELAY_S,
    FAULTS,
    FRAME_ID,
    GARBLED,
    MUTE,
    RATE_HZ,
    RENAMED,
    SECTIONS,
    Bench,
    bench,
    check_that_a_fault_moves_nothing,
    check_that_a_late_server_is_found,
    check_that_a_set_clock_is_noticed,
    check_that_jitter_shifts_no_stamp,
    check_that_points_need_no_body,
    check_that_poses_are_where_the_arm_was,
    check_that_single_markers_are_points,
)

pytest.importorskip('qtm_rt', reason="needs qtm-rt: pip install 'softarm_ros[sensing]'")

from softarm_ros.emulation.qtm_server import QtmServer, frame
from softarm_ros.emulation.scene_server import OWN_FAULTS
from softarm_ros.emulation.tracked_scene import Scene, TrackedScene
from softarm_ros.geometry.arrays import Array
from softarm_ros.perception.captured import CorruptFrameError
from softarm_ros.perception.qtm.config import QtmConfig
from softarm_ros.perception.qtm.packets import Names, read_frame
from softarm_ros.perception.qtm.sensor import QtmSensor

pytestmark = pytest.mark.packets


@contextmanager
def streaming(**fields: object) -> Iterator[Bench]:
    """Start a server and a sensor that reads it."""
    config = QtmConfig.model_validate(
        {
            'host': '127.0.0.1',
            'rate_hz': RATE_HZ,
            'timeout_s': 1.0,
            'device_latency_s': DELAY_S,
            'bodies': BODIES,
            **fields,
        }
    )
    server = QtmServer(TrackedScene(config, SECTIONS, 0, OWN_FAULTS))
    found = server.start()
    sensor = QtmSensor(config.model_copy(update=found), FRAME_ID)
    with bench(sensor, server) as running:
        yield running


@pytest.mark.parametrize('fields', [{}, {'base_from': 'sensor'}])
def test_poses_match_the_arm_at_the_exposure(fields: dict) -> None:
    with streaming(**fields) as running:
        check_that_poses_are_where_the_arm_was(running)


def test_single_markers_are_delivered_as_points() -> None:
    check_that_single_markers_are_points(streaming)


def test_markers_are_streamed_without_any_body() -> None:
    check_that_points_need_no_body(streaming)


def test_markers_of_other_number_than_their_names_are_not_named_in_order() -> None:
    scene = Scene(1, 1.0, 1.0, {}, {'b': np.array([0.1, 0.2, 0.3])})
    content = frame(scene)
    (point,) = read_frame(content, Names((), ('b',)), ('b',), 0.0, 0.0).points
    assert point.name == 'b' and point.position == pytest.approx((0.1, 0.2, 0.3))
    assert read_frame(content, Names((), ()), (), 0.0, 0.0).points == ()
    with pytest.raises(CorruptFrameError, match=r'1 markers \(expected 2\)'):
        read_frame(content, Names((), ('a', 'b')), (), 0.0, 0.0)  # a was removed since


def test_a_hidden_marker_is_lost_not_unknown() -> None:
    points = {'a': np.full(3, np.nan), 'b': np.array([0.1, 0.2, 0.3])}
    names = Names((), ('a', 'b'))
    read = read_frame(frame(Scene(1, 1.0, 1.0, {}, points)), names, (), 0.0, 0.0)
    assert [point.name for point in read.points] == ['b']
    assert read.lost == ('a',)


@pytest.mark.parametrize(
    ('names', 'says'),
    [
        (Names(('tip', 'tip'), ('a', 'b')), 'two bodies have the name tip'),
        (Names(('base', 'tip'), ('a', 'a')), 'two labels have the name a'),
    ],
)
def test_names_that_occur_twice_are_refused(names: Names, says: str) -> None:
    poses = {'base': np.eye(4), 'tip': np.eye(4)}
    points = {'a': np.zeros(3), 'b': np.ones(3)}
    content = frame(Scene(1, 1.0, 1.0, poses, points))
    used = (*names.bodies, *names.points)
    right = Names(tuple(poses), tuple(points))
    assert len(read_frame(content, right, used, 0.0, 0.0).bodies) == 2
    with pytest.raises(CorruptFrameError, match=says):
        read_frame(content, names, used, 0.0, 0.0)


@pytest.mark.parametrize('cups', [('cup',), ('cup', 'cup')])
@pytest.mark.parametrize(
    ('pose', 'says'),
    [
        (np.diag((2.0, 2.0, 2.0, 1.0)), 'not a rotation'),
        (np.block([[np.eye(3), np.full((3, 1), 500.0)], [0.0, 0.0, 0.0, 1.0]]), 'limit 100 m'),
    ],
)
def test_impossible_body_of_another_user_of_the_server_stops_no_arm(
    cups: tuple[str, ...], pose: Array, says: str
) -> None:
    sent = {'tip': np.eye(4)} | {f'{name} {k}': pose for k, name in enumerate(cups)}
    content = frame(Scene(1, 1.0, 1.0, sent, {'m': np.array([500.0, 0.0, 0.0])}))
    names = Names(('tip', *cups), ('m',))
    read = read_frame(content, names, ('tip',), 0.0, 0.0)
    assert [body.name for body in read.bodies] == ['tip']
    assert read.lost == (*cups, 'm')
    with pytest.raises(CorruptFrameError, match=says if len(cups) == 1 else 'two bodies'):
        read_frame(content, names, ('tip', 'cup'), 0.0, 0.0)
    with pytest.raises(CorruptFrameError, match='m: at'):
        read_frame(content, names, ('tip', 'm'), 0.0, 0.0)
    with pytest.raises(CorruptFrameError):
        read_frame(content[:-4], names, ('tip',), 0.0, 0.0)


@pytest.mark.parametrize(('fault', 'code', 'subject', 'tip'), (*FAULTS, RENAMED, MUTE, GARBLED))
def test_fault_is_reported_with_advice_and_gives_no_wrong_pose(
    fault: str, code: str, subject: str, tip: str
) -> None:
    check_that_a_fault_moves_nothing(streaming, fault, code, subject, tip)


@pytest.mark.parametrize('fault', ['clock', 'clock-back'])
def test_jump_of_the_server_clock_is_reported_and_stamps_stay_right(fault: str) -> None:
    check_that_a_set_clock_is_noticed(streaming, fault)


def test_jitter_of_the_network_does_not_shift_the_stamps() -> None:
    check_that_jitter_shifts_no_stamp(streaming)


def test_late_server_is_found_and_found_again_by_a_reopened_sensor() -> None:
    check_that_a_late_server_is_found(streaming)


def test_lost_connection_is_reported_and_streams_at_once_when_restored() -> None:
    with streaming(timeout_s=25.0) as running:
        running.wait_for(lambda: len(running.sightings) > 10)
        running.device.inject('die')
        running.wait_for(lambda: 'no-server' in running.codes())
        told = running.sensor.health().problems
        running.device.inject('mend')
        began, seen = running.now_s, len(running.sightings)
        running.wait_for(lambda: len(running.sightings) > seen + 5)
        assert running.now_s - began < 20.0  # without waiting for timeout_s
    (problem,) = (problem for problem in told if problem.code == 'no-server')
    assert problem.subject == 'server'
    assert 'connection' in problem.text
