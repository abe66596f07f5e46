"""VRPN from the wire to sightings, and the emulated server with the VRPN project's client."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from manual_clock import ManualClock
from tracked_arm import (
    BODIES,
    DELAY_S,
    FAULTS,
    FRAME_ID,
    MUTE,
    RATE_HZ,
    SECTIONS,
    Bench,
    bench,
    check_that_a_fault_moves_nothing,
    check_that_a_late_server_is_found,
    check_that_a_set_clock_is_noticed,
    check_that_jitter_shifts_no_stamp,
    check_that_poses_are_where_the_arm_was,
    settle,
)

from softarm_ros.emulation.scene_server import OWN_FAULTS
from softarm_ros.emulation.tracked_scene import TrackedScene
from softarm_ros.emulation.vrpn_server import VrpnServer
from softarm_ros.perception.captured import CorruptFrameError
from softarm_ros.perception.config import UNITS_M
from softarm_ros.perception.vrpn.config import VrpnConfig
from softarm_ros.perception.vrpn.connection import Connection
from softarm_ros.perception.vrpn.packets import (
    COOKIE,
    HEADER,
    Decoder,
    VersionError,
    read_name,
    read_pose,
)
from softarm_ros.perception.vrpn.sensor import VrpnSensor


def config(**fields: object) -> VrpnConfig:
    return VrpnConfig.model_validate(
        {
            'host': '127.0.0.1',
            'rate_hz': RATE_HZ,
            'timeout_s': 1.0,
            'device_latency_s': DELAY_S,
            'bodies': BODIES,
            **fields,
        }
    )


@contextmanager
def streaming(**fields: object) -> Iterator[Bench]:
    """Start a server and a sensor that reads it."""
    settings = config(**fields)
    scene = TrackedScene(settings, SECTIONS, 0, OWN_FAULTS)
    server = VrpnServer(scene, UNITS_M[settings.unit])
    found = server.start()
    sensor = VrpnSensor(settings.model_copy(update=found), FRAME_ID)
    with bench(sensor, server) as running:
        yield running


@pytest.mark.packets
@pytest.mark.parametrize('fields', [{}, {'base_from': 'sensor'}, {'unit': 'mm'}])
def test_poses_match_the_arm_at_the_exposure(fields: dict) -> None:
    with streaming(**fields) as running:
        check_that_poses_are_where_the_arm_was(running)


@pytest.mark.packets
@pytest.mark.parametrize(('fault', 'code', 'subject', 'tip'), (*FAULTS, MUTE))
def test_fault_is_reported_with_advice_and_gives_no_wrong_pose(
    fault: str, code: str, subject: str, tip: str
) -> None:
    check_that_a_fault_moves_nothing(streaming, fault, code, subject, tip)


@pytest.mark.packets
def test_corrupted_messages_are_reported_and_the_stream_recovers() -> None:
    with streaming() as running:
        settle(running)
        running.device.inject('corrupt')
        running.wait_for(lambda: 'corrupt' in running.codes())
        during = running.read(2.0)
        running.device.inject('mend')
        running.wait_for(
            lambda: 'corrupt' not in running.codes() and running.sensor.health().connected
        )
        after = running.read(0.5)
    assert max(running.errors_m(during), default=0.0) < 0.1
    assert len(after) > 20 and max(running.errors_m(after)) < 8e-3


@pytest.mark.packets
@pytest.mark.parametrize('fault', ['clock', 'clock-back'])
def test_jump_of_the_server_clock_is_reported_and_stamps_stay_right(fault: str) -> None:
    check_that_a_set_clock_is_noticed(streaming, fault)


@pytest.mark.packets
def test_jitter_of_the_network_does_not_shift_the_stamps() -> None:
    check_that_jitter_shifts_no_stamp(streaming)


@pytest.mark.packets
def test_late_server_is_found_and_found_again_by_a_reopened_sensor() -> None:
    check_that_a_late_server_is_found(streaming)


def test_host_that_does_not_resolve_is_named() -> None:
    sensor = VrpnSensor(config(host='nobody.invalid'), FRAME_ID)
    sensor.open()
    try:
        sensor.read(0.0)
        problem = sensor.health().problems[0]
    finally:
        sensor.close()
    assert problem.code == 'no-server'
    assert "(host = 'nobody.invalid': " in problem.text


@pytest.mark.packets
def test_server_without_any_configured_body_is_reported_with_its_bodies() -> None:
    server = VrpnServer(TrackedScene(config(), SECTIONS, 0, OWN_FAULTS))
    found = server.start()
    others = [{**body, 'name': f'my_{body["name"]}'} for body in BODIES]
    sensor = VrpnSensor(config(bodies=others).model_copy(update=found), FRAME_ID)
    with bench(sensor, server) as running:
        running.wait_for(lambda: 'wrong-name' in running.codes())
        problem = running.sensor.health().problems[0]
    assert 'none of my_base, my_middle, my_tip; it has base, middle, tip' in problem.text


@pytest.mark.packets
def test_emulated_server_works_with_the_vrpn_library() -> None:
    """The client of the VRPN project, in its own process, finds the same bodies."""
    pytest.importorskip('motioncapture', reason='needs motioncapture: pip install motioncapture')
    script = (
        'import json, os, sys, time, motioncapture\n'
        "client = motioncapture.connect('vrpn', {'hostname': sys.argv[1]})\n"
        'seen, end = {}, time.monotonic() + 20.0\n'
        'while len(seen) < 3 and time.monotonic() < end:\n'
        '    client.waitForNextFrame()\n'
        '    seen.update({n: b.position.tolist() for n, b in client.rigidBodies.items()})\n'
        'print(json.dumps(seen), flush=True)\n'
        'os._exit(0)\n'
    )
    with streaming() as running:
        settle(running)
        where = running.sensor.config
        done = subprocess.run(
            [sys.executable, '-c', script, f'{where.host}:{where.port}'],
            capture_output=True,
            text=True,
            timeout=60.0,
            env={**os.environ, 'PYTHONWARNINGS': 'ignore'},
        )
    seen = json.loads(done.stdout.strip().splitlines()[-1])
    assert seen.keys() == {'base', 'middle', 'tip'}
    expected = running.device.scene.frame @ [*BODIES[0]['offset_m'], 1.0]
    np.testing.assert_allclose(seen['base'], expected[:3], atol=2e-3)


# -- the wire


def message(kind: int, content: bytes, sender: int = 0, microseconds: int = 250_000) -> bytes:
    header = struct.pack('>6i', 24 + len(content), 100, microseconds, sender, kind, 0)
    return header + content + bytes(-len(content) % 8)


def test_decoder_finds_messages_however_the_stream_is_split() -> None:
    contents = [b'a', b'longer than eight', b'', bytes(64)]
    stream = COOKIE + b''.join(message(i, c, sender=i) for i, c in enumerate(contents))
    for step in (1, 7, 24, len(stream)):
        decoder, found = Decoder(), []
        for start in range(0, len(stream), step):
            found += decoder.feed(stream[start : start + step])
        assert [m.content for m in found] == contents
        assert [m.sender for m in found] == [m.type for m in found] == [0, 1, 2, 3]
        assert {m.time_s for m in found} == {100.25}


@pytest.mark.parametrize(
    ('data', 'error', 'text'),
    [
        (b'HTTP/1.1 400 Bad Request', VersionError, "greets with 'HTTP"),
        (COOKIE.replace(b'07.', b'06.'), VersionError, 'expected version 07'),
        (COOKIE + struct.pack('>6i', 23, 0, 0, 0, 0, 0), CorruptFrameError, 'of 23 bytes'),
        (COOKIE + struct.pack('>6i', 1 << 30, 0, 0, 0, 0, 0), CorruptFrameError, 'bytes'),
        (COOKIE + message(0, b'', microseconds=-1), CorruptFrameError, '-1 microseconds'),
    ],
)
def test_decoder_refuses_data_that_is_not_vrpn(
    data: bytes, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        Decoder().feed(data)


@pytest.mark.parametrize(
    ('content', 'text'),
    [
        (bytes(60), '60 bytes'),
        (struct.pack('>2i7d', -1, 0, *7 * [0.0]), 'sensor -1'),
    ],
)
def test_invalid_pose_message_is_refused(content: bytes, text: str) -> None:
    with pytest.raises(CorruptFrameError, match=text):
        read_pose(content)


@pytest.mark.parametrize('content', [b'', b'\0\0\0\x09abc\0'])
def test_invalid_name_message_is_refused(content: bytes) -> None:
    with pytest.raises(CorruptFrameError):
        read_name(content)


@pytest.mark.parametrize('encoding', ['utf-8', 'cp1252'])
def test_name_with_an_umlaut_is_read_in_both_encodings(encoding: str) -> None:
    text = 'Körper'.encode(encoding) + b'\0'
    assert read_name(struct.pack('>i', len(text)) + text) == 'Körper'


def test_sensors_of_one_tracker_are_distinguished_by_their_numbers() -> None:
    sensor = VrpnSensor(config(bodies=[{**BODIES[0], 'name': 'hand'}]), FRAME_ID)
    names = message(-1, struct.pack('>i', 5) + b'hand\0') + message(
        -2, struct.pack('>i', 22) + b'vrpn_Tracker Pos_Quat\0'
    )
    poses = b''.join(
        message(0, struct.pack('>2i7d', n, n, 0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0)) for n in (0, 3)
    )

    class Wire:
        """A connection that has nothing to drop."""

        def drop(self) -> None:
            raise AssertionError(sensor.health())

    sensor._take(Wire(), COOKIE + names + poses, 0.0)
    assert HEADER.size == 24
    assert sensor.health().values['bodies_of_server'] == 'hand, hand[3]'


@pytest.mark.parametrize(
    ('name', 'numbers'),
    [
        ('cup', (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)),
        ('cup', (0.0, 0.0, 500.0, 0.0, 0.0, 0.0, 1.0)),
        ('tip', (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)),
        ('tip', (np.nan, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)),
    ],
)
def test_body_without_a_valid_pose_does_not_affect_the_others(
    name: str, numbers: tuple[float, ...]
) -> None:
    """Motion capture systems send zeros for a hidden body, which may be another lab's."""
    sensor = VrpnSensor(config(), FRAME_ID)
    trackers = ('base', 'cup', 'middle', 'tip')
    stream = COOKIE + message(-2, struct.pack('>i', 22) + b'vrpn_Tracker Pos_Quat\0')
    for number, each in enumerate(trackers):
        text = each.encode() + b'\0'
        stream += message(-1, struct.pack('>i', len(text)) + text, sender=number)
    for k in range(10):
        for number, each in enumerate(trackers):
            sent = numbers if each == name else (0.0, 0.0, 0.1 * number, 0.0, 0.0, 0.0, 1.0)
            content = struct.pack('>2i7d', 0, 0, *sent)
            stream += message(0, content, sender=number, microseconds=10_000 * k)

    class Wire:
        """A connection that must not be dropped."""

        def drop(self) -> None:
            raise AssertionError(sensor.health())

    seen = sensor._take(Wire(), stream, 0.0)
    wanted = {'middle', 'tip'} - {name}
    assert len(seen) >= 9  # the last may wait for missing bodies
    assert [{body.name for body in one.bodies} for one in seen] == [wanted] * len(seen)
    problems = {(p.code, p.subject) for p in sensor._intake.problems.now(0.0)}
    assert problems == ({('corrupt', 'tip')} if name == 'tip' else set())
    assert sensor.health().values['bodies_of_server'] == 'base, cup, middle, tip'


def test_server_that_falls_silent_without_closing_is_requested_again() -> None:
    clock = ManualClock()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        asked.bind(('127.0.0.1', 0))
        asked.settimeout(5.0)
        connection = Connection('127.0.0.1', asked.getsockname()[1], clock)
        servers = []
        for _ in range(2):  # the second time after its power was off
            connection.wait(0.0)
            host, port = asked.recv(100).rstrip(b'\0').split()
            servers.append(socket.create_connection((host.decode(), int(port))))
            connection.wait(5.0)
            assert connection.connected
            clock.sleep(3.9)
            connection.wait(0.0)
            assert connection.connected
            clock.sleep(0.2)
            connection.wait(0.0)
            assert not connection.connected
        for server in servers:
            server.close()
        connection.close()


@pytest.mark.parametrize(
    ('fields', 'text'),
    [({'unit': 'cm'}, 'unit'), ({'port': 0}, 'port'), ({'host': ''}, 'host')],
)
def test_invalid_vrpn_fields_are_refused(fields: dict, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        config(**fields)
