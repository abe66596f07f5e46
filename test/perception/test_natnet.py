"""OptiTrack from the wire to sightings: real packets over UDP, read by the real library."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace

import numpy as np
import pytest
from tracked_arm import (
    BODIES,
    DELAY_S,
    FAULTS,
    FRAME_ID,
    GARBLED,
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
    check_that_single_markers_are_points,
    settle,
)

pytest.importorskip('natnet', reason="needs natnet: pip install 'softarm_ros[sensing]'")

import natnet

from softarm_ros.emulation import natnet_packets
from softarm_ros.emulation.natnet_server import OWN_FAULTS, NatNetServer
from softarm_ros.emulation.tracked_scene import Scene, TrackedScene
from softarm_ros.perception.captured import CapturedFrame, CorruptFrameError
from softarm_ros.perception.natnet.config import NatNetConfig
from softarm_ros.perception.natnet.packets import Server, kind_of, read_frame, read_model
from softarm_ros.perception.natnet.sensor import NatNetSensor
from softarm_ros.plant.mocap import PoseMeasurement

pytestmark = pytest.mark.packets


@contextmanager
def streaming(version: tuple[int, int] = (4, 1), **fields: object) -> Iterator[Bench]:
    """Start a server and a sensor that reads it."""
    config = NatNetConfig.model_validate(
        {'server': '127.0.0.1', 'rate_hz': RATE_HZ, 'timeout_s': 1.0, 'bodies': BODIES, **fields}
    )
    server = NatNetServer(config, TrackedScene(config, SECTIONS, 0, OWN_FAULTS), version)
    found = server.start()
    sensor = NatNetSensor(config.model_copy(update=found), FRAME_ID)
    with bench(sensor, server) as running:
        yield running


@pytest.mark.parametrize(
    ('version', 'fields'),
    [  # versions differ only in steps before axes, units and bases are handled
        ((3, 1), {}),
        ((4, 0), {'up_axis': 'z', 'unit': 'mm'}),
        ((4, 1), {'base_from': 'sensor', 'up_axis': 'y'}),
        ((4, 2), {}),
    ],
)
def test_poses_match_the_arm_at_the_exposure(version: tuple[int, int], fields: dict) -> None:
    with streaming(version, **fields) as running:
        settle(running)
        found = running.read(1.0)
        health = running.sensor.health()
    assert len(found) > 50
    assert {b.name for s in found for b in s.bodies} == {'middle', 'tip'}
    assert {s.frame_id for s in found} == {FRAME_ID}
    # The tip swings at 0.5 m/s: a stamp that is 8 ms late would show as 4 mm.
    assert np.median(running.errors_m(found)) < 0.8e-3
    assert health.connected
    assert health.rate_hz > 0.5 * RATE_HZ
    assert health.seen == ('middle', 'tip')
    assert float(health.values['latency_ms']) > 1e3 * DELAY_S - 1.0
    assert 'NatNet ' + '.'.join(map(str, version)) in health.values['server']


def test_single_markers_are_delivered_as_points() -> None:
    check_that_single_markers_are_points(streaming)


@pytest.mark.parametrize(
    ('version', 'label'),
    [((3, 1), 'tip:1'), ((4, 1), 'tip:1'), ((4, 2), 'tip:Marker2'), ((4, 1), 'tip:6')],
)
def test_a_marker_of_a_body_is_seen_by_its_label(version: tuple[int, int], label: str) -> None:
    points = ({'name': label, 'section': 'distal', 'offset_m': (0.01, 0.0, 0.0)},)
    with streaming(version, points=points) as running:
        settle(running)
        found = running.read(0.3)
        assert running.sensor.health().seen == ('middle', 'tip', label)
    tip = next(body for body in found[-1].bodies if body.name == 'tip')
    assert np.linalg.norm(found[-1].points[0].position - tip.pose[:3, 3]) < 0.02


def test_markers_are_streamed_without_any_body() -> None:
    check_that_points_need_no_body(streaming)


def test_a_marker_that_a_body_lacks_is_reported_with_the_labels_that_exist() -> None:
    points = ({'name': 'tip:1', 'section': 'distal'},)
    with streaming(points=points) as running:
        settle(running)
        running.device.inject('rename')  # of the body, and so of its labels
        running.wait_for(
            lambda: (
                ('wrong-name', 'tip:1')
                in {(p.code, p.subject) for p in running.sensor.health().problems}
            )
        )
        problem = next(p for p in running.sensor.health().problems if p.subject == 'tip:1')
    assert 'tip 2:1' in problem.text


def test_a_marker_of_an_unknown_asset_is_not_taken_for_a_lone_marker_of_its_number() -> None:
    """A body that was just defined, or a skeleton, has markers with the numbers of lone ones."""
    server = Server('server', natnet.Version(4, 1), 1e7)
    model = read_model(natnet_packets.model((4, 1), [(1, 'tip')]), server.version)
    lone = natnet_packets.SentMarker(0, 2, (0.1, 0.2, 0.3))
    unknown = natnet_packets.SentMarker(9, 2, (5.0, 5.0, 5.0))
    hidden = natnet_packets.SentMarker(9, 3, (5.0, 5.0, 5.0), occluded=True)
    data = natnet_packets.frame(
        (4, 1), 1, [], [lone, unknown, hidden], exposed_ticks=0, sent_ticks=1, time_s=0.0
    )
    read = read_frame(data, server, model, (), 0.0, 1.0, 'z').frame
    assert [point.name for point in read.points] == ['2']
    assert read.points[0].position == pytest.approx((0.1, 0.2, 0.3))
    assert read.lost == ()


def test_a_hidden_labelled_marker_is_lost_and_not_unknown() -> None:
    bodies = [(1, 'tip')]
    version = natnet.Version(4, 1)
    hidden = natnet_packets.SentMarker(1, 2, (0.0, 0.0, 0.0), occluded=True)
    data = natnet_packets.frame(
        (4, 1), 5, [], [hidden], exposed_ticks=5_000_000, sent_ticks=5_060_000, time_s=0.5
    )
    model = read_model(natnet_packets.model((4, 1), bodies), version)
    read = read_frame(data, Server('Motive', version, 1e7), model, (), 1.0, 1.0, 'z')
    assert read.frame.points == ()
    assert 'tip:2' in read.frame.lost


def test_a_hidden_lone_marker_that_was_seen_before_is_lost_and_not_unknown() -> None:
    points = ({'name': '7', 'section': 'distal'}, {'name': '8', 'section': 'distal'})
    with streaming(points=points) as running:
        scenes = running.device.scene.passing
        sent = {'7'}  # 8 is never seen

        def passing(measured: Sequence[PoseMeasurement], now_s: float) -> Iterator[Scene]:
            for scene in scenes(measured, now_s):
                points = {name: at for name, at in scene.points.items() if name in sent}
                yield replace(scene, points=points)

        running.device.scene.passing = passing
        settle(running)
        sent.clear()
        running.wait_for(lambda: {'body-lost', 'wrong-name'} <= running.codes())
        found = {(p.code, p.subject) for p in running.sensor.health().problems}
    assert found == {('body-lost', '7'), ('wrong-name', '8')}


@pytest.mark.parametrize(
    ('fault', 'code', 'subject', 'tip'),
    (*FAULTS, RENAMED, ('second', 'second-sender', 'network', 'pose'), GARBLED),
)
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


def test_restarted_server_may_renumber_its_bodies() -> None:
    with streaming(timeout_s=0.2) as running:
        settle(running)
        running.device.inject('die')
        running.read(0.4)
        base, middle, tip = running.sensor.config.bodies
        settings = running.sensor.config.model_copy(update={'bodies': (base, tip, middle)})
        running.device.scene = TrackedScene(settings, SECTIONS, 0, OWN_FAULTS)
        running.wait_for(lambda: running.sensor.health().connected)
        found = running.read(0.3)
    assert len(found) > 10
    assert max(running.errors_m(found)) < 8e-3


@pytest.mark.parametrize('version', [(3, 1), (4, 2)])
def test_names_that_are_not_utf_8_stop_no_frames(version: tuple[int, int]) -> None:
    """Programs for Windows may send names in its western code page."""
    sent = natnet_packets.model(version, [(1, 'K?rper'), (2, 'tip')]).replace(b'K?', b'K\xf6')
    read = read_model(sent, natnet.Version(*version))
    assert read.bodies == {1: 'Körper', 2: 'tip'}
    assert read.markers[1, 1][0] == 'Körper:1'
    utf_8 = natnet_packets.model(version, [(1, 'Körper'), (2, 'tip')])
    assert read_model(utf_8, natnet.Version(*version)) == read


def test_renumbered_bodies_are_noticed_if_the_frame_that_reports_it_is_lost() -> None:
    with streaming() as running:
        settle(running)
        base, middle, tip = running.sensor.config.bodies
        settings = running.sensor.config.model_copy(update={'bodies': (tip, middle, base)})
        scene = TrackedScene(settings, SECTIONS, 0, OWN_FAULTS)
        running.device._names = list(scene.names)  # as if the frame that reports it had been sent
        running.device.scene = scene
        running.read(0.2)
        found = running.read(0.3)
    assert len(found) > 10
    assert max(running.errors_m(found)) < 8e-3


def test_change_of_the_model_interrupts_the_poses_only_briefly() -> None:
    with streaming() as running:
        settle(running)
        known = running.read(1.0)
        running.device._names = ['before']  # as if an asset had just been added
        found = running.read(1.0)
    stamps = np.array([s.stamp_ns for s in (known[-1], *found)])
    assert 1e-9 * np.max(np.diff(stamps)) < 0.15


class SilentAboutTheLast(TrackedScene):
    """A scene whose device streams a last body that it does not describe."""

    @property
    def names(self) -> list[str]:
        return super().names[:-1]


def test_body_without_a_name_does_not_interrupt_the_poses() -> None:
    with streaming() as running:
        settle(running)
        bodies = running.sensor.config.bodies
        more = (*bodies, bodies[-1].model_copy(update={'name': 'spare'}))
        settings = running.sensor.config.model_copy(update={'bodies': more})
        running.device.scene = SilentAboutTheLast(settings, SECTIONS, 0, OWN_FAULTS)
        running.read(0.5)
        assert len(running.read(1.0)) > 50


@pytest.mark.parametrize(
    ('bodies', 'places', 'says'),
    [
        ([(1, 'tip'), (2, 'cup')], [(0.1, 0.2, 0.3), (np.nan, 0.0, 0.0)], 'cup: at'),
        ([(1, 'tip'), (2, 'cup')], [(0.1, 0.2, 0.3), (500.0, 0.0, 0.0)], 'cup: at'),
        ([(1, 'tip'), (2, 'cup'), (3, 'cup')], [(0.1, 0.2, 0.3)] * 3, 'cup occurs twice'),
    ],
)
def test_impossible_body_of_another_user_of_the_server_stops_no_arm(
    bodies: list[tuple[int, str]], places: list[tuple[float, float, float]], says: str
) -> None:
    version = natnet.Version(4, 1)
    model = read_model(natnet_packets.model((4, 1), bodies), version)
    turn = (0.0, 0.0, 0.0, 1.0)
    sent = [natnet_packets.SentBody(k, place, turn) for (k, _), place in zip(bodies, places)]
    marker = natnet_packets.SentMarker(0, 7, (np.nan, 0.0, 0.0))
    data = natnet_packets.frame(
        (4, 1), 1, sent, [marker], exposed_ticks=0, sent_ticks=1, time_s=0.0
    )

    def read(*names: str) -> CapturedFrame:
        server = Server('Motive', version, 1e7)
        return read_frame(data, server, model, names, 0.0, 1.0, 'z').frame

    tip = next(body for body in read('tip').bodies if body.name == 'tip')
    assert tip.position == pytest.approx((0.1, 0.2, 0.3))
    assert '7' in read('tip').lost
    with pytest.raises(CorruptFrameError, match=says):
        read('tip', 'cup')
    with pytest.raises(CorruptFrameError, match='7: at'):
        read('tip', '7')
    with pytest.raises(CorruptFrameError, match='bytes'):
        kind_of(data[:-1])


def test_server_that_stops_sending_but_answers_is_not_called_silent() -> None:
    with streaming(timeout_s=0.2) as running:
        settle(running)
        running.read(3.5)  # longer than an answer counts
        running.device.inject('blind')
        assert running.codes_within(1.0) == {'no-frames'}


def test_stream_taken_over_by_another_program_is_reported() -> None:
    with streaming(timeout_s=0.2) as running:
        settle(running)
        first = running.device
        second = NatNetServer(running.sensor.config, first.scene)
        port = second.start()['command_port']
        try:
            second._clients, running.device = first._clients, second
            before = running.sensor.config.command_port
            told = f'port {port}; until they stopped they came from port {before}'
            running.wait_for(lambda: told in str(running.sensor.health().problems), 3.0)
        finally:
            running.device = first
            second.close()


def test_positions_in_another_unit_are_reported_with_the_field_that_sets_it() -> None:
    with streaming(unit='mm') as running:
        running.sensor.close()
        metres = running.sensor.config.model_copy(update={'unit': 'm'})
        with closing(NatNetSensor(metres, FRAME_ID)) as sensor:
            sensor.open()
            running.sensor = sensor
            running.wait_for(lambda: 'corrupt' in running.codes())
            problem = next(p for p in sensor.health().problems if p.code == 'corrupt')
    assert 'limit 100 m' in problem.text and '`unit`' in problem.advice


def test_old_natnet_version_is_reported() -> None:
    with streaming((2, 9)) as running:
        running.wait_for(lambda: 'version' in running.codes())
        assert 'NatNet 2.9' in str(running.sensor.health().problems[0])


@pytest.mark.parametrize(
    ('field', 'value'), [('local', '203.0.113.7'), ('server', 'motive.invalid')]
)
def test_unreachable_address_is_reported_and_tried_again(field: str, value: str) -> None:
    with streaming() as running:
        reachable = running.sensor.config
        running.sensor.config = reachable.model_copy(update={field: value})
        running.sensor.open()
        assert running.sensor.read(0.0) == []
        problem = running.sensor.health().problems[0]
        assert problem.code == 'no-server'
        assert problem.text.startswith(f'{field} = {value!r}')
        running.sensor.config = reachable  # the network is up
        running.wait_for(lambda: running.sensor.health().connected)
