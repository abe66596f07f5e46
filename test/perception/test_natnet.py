"""OptiTrack from the wire to sightings: real packets over UDP, read by the real library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from tracked_arm import BODIES, DELAY_S, FRAME_ID, RATE_HZ, SECTIONS, Bench, bench

pytest.importorskip('natnet', reason="needs natnet: pip install 'softarm_ros[sensing]'")

from softarm_ros.emulation.natnet_server import NatNetServer
from softarm_ros.emulation.tracked_scene import TrackedScene
from softarm_ros.perception.natnet.config import NatNetConfig
from softarm_ros.perception.natnet.sensor import NatNetSensor
from softarm_ros.perception.sensor import SensorError

pytestmark = pytest.mark.packets


@contextmanager
def streaming(version: tuple[int, int] = (4, 1), **fields: object) -> Iterator[Bench]:
    """Start a server and a sensor that reads it."""
    config = NatNetConfig.model_validate(
        {'server': '127.0.0.1', 'rate_hz': RATE_HZ, 'timeout_s': 1.0, 'bodies': BODIES, **fields}
    )
    server = NatNetServer(config, TrackedScene(config, SECTIONS, 0), version)
    found = server.start()
    sensor = NatNetSensor(config.model_copy(update=found), FRAME_ID)
    with bench(sensor, server) as running:
        yield running


def settle(running: Bench) -> None:
    """Read until frames come and the base is known."""
    running.wait_for(lambda: len(running.sightings) > 50)


@pytest.mark.parametrize('version', [(3, 1), (4, 0), (4, 1), (4, 2)])
@pytest.mark.parametrize(
    'fields', [{}, {'up_axis': 'z', 'unit': 'mm'}, {'base_from': 'sensor', 'up_axis': 'y'}]
)
def test_poses_are_where_the_arm_was_when_it_was_exposed(
    version: tuple[int, int], fields: dict
) -> None:
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


def test_single_markers_are_points() -> None:
    points = ({'name': '7', 'section': 'distal', 'offset_m': (0.01, 0.0, 0.0)},)
    with streaming(points=points) as running:
        settle(running)
        found = running.read(0.3)
    assert found and all(p.name == '7' for s in found for p in s.points)
    tip = next(b for b in found[-1].bodies if b.name == 'tip')
    assert np.linalg.norm(found[-1].points[0].position - tip.pose[:3, 3]) < 0.02


@pytest.mark.parametrize(
    ('fault', 'code', 'subject', 'tip'),
    [
        ('hide', 'body-lost', 'tip', 'nothing'),
        ('flip', 'flip', 'tip', 'position'),
        ('swap', 'swap', 'tip', 'nothing'),
        ('rename', 'wrong-name', 'tip', 'nothing'),
        ('blind', 'no-frames', 'server', 'nothing'),
        ('die', 'no-server', 'server', 'nothing'),
        ('second', 'second-sender', 'network', 'pose'),
        ('corrupt', 'corrupt', 'network', 'some'),
    ],
)
def test_a_fault_is_named_with_what_to_do_and_moves_nothing(
    fault: str, code: str, subject: str, tip: str
) -> None:
    with streaming() as running:
        settle(running)
        running.device.inject(fault)
        running.wait_for(lambda: code in running.codes())
        during = running.read(0.5)
        problems = {p.subject: p for p in running.sensor.health().problems if p.code == code}
        running.device.inject('mend')
        running.wait_for(lambda: code not in running.codes() and running.sensor.health().connected)
        after = running.read(0.5)
    assert len(problems[subject].advice) > 10
    # Whatever was delivered is where the arm was. Nothing tells a number with a wrong bit from a
    # right one but where it leads to (networks drop garbled packets by the checksum of UDP).
    assert max(running.errors_m(during), default=0.0) < (0.1 if fault == 'corrupt' else 8e-3)
    bodies = {b.name for s in during for b in s.bodies}
    points = {p.name for s in during for p in s.points}
    assert ('tip' in bodies) == (tip in ('pose', 'some'))
    assert ('tip' in points) == (tip == 'position')
    assert {b.name for s in after for b in s.bodies} == {'middle', 'tip'}


@pytest.mark.parametrize('fault', ['clock', 'clock-back'])
def test_a_clock_that_is_set_is_noticed_and_stamps_stay_right(fault: str) -> None:
    with streaming() as running:
        settle(running)
        running.device.inject(fault)
        running.wait_for(lambda: 'clock-jump' in running.codes())
        problem = next(p for p in running.sensor.health().problems if p.code == 'clock-jump')
        found = running.read(0.8)
    told_s = float(problem.text.split(' s;')[0].split()[-1])
    assert told_s == pytest.approx(0.7 if fault == 'clock' else -0.7, abs=0.05)
    assert np.median(running.errors_m(found)) < 1e-3


def test_jitter_of_the_network_does_not_shift_the_stamps() -> None:
    with streaming() as running:
        settle(running)
        running.device.inject('jitter')
        found = running.read(1.5)
    assert np.median(running.errors_m(found)) < 1e-3
    assert 'clock-jump' not in running.codes()


def test_a_server_that_starts_late_or_again_is_found() -> None:
    with streaming() as running:
        running.device.inject('die')
        running.read(0.3)
        assert running.codes() == {'no-server'}
        assert not running.sensor.health().connected
        running.device.inject('mend')
        settle(running)
        running.sensor.close()
        running.sensor.close()
        assert running.sensor.read(0.0) == []
        running.sensor.open()
        running.wait_for(lambda: running.sensor.health().connected)


def test_an_old_version_is_refused_with_what_to_do() -> None:
    with streaming((2, 9)) as running:
        running.wait_for(lambda: 'version' in running.codes())
        assert 'NatNet 2.9' in str(running.sensor.health().problems[0])


def test_addresses_that_cannot_be_are_refused_by_name() -> None:
    fields = {'server': '127.0.0.1', 'rate_hz': RATE_HZ, 'bodies': BODIES}
    for wrong, what in (
        ({'local': '203.0.113.7'}, "local = '203.0.113.7'"),
        ({'mode': 'multicast', 'multicast_group': '10.0.0.1'}, "multicast_group = '10.0.0.1'"),
    ):
        config = NatNetConfig.model_validate({**fields, **wrong, 'data_port': 39511})
        with pytest.raises(SensorError, match=what):
            NatNetSensor(config, FRAME_ID).open()
