"""A sensor and its emulated device on this computer, which measure a swinging arm."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
import pytest

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import inverse_pose, pose
from softarm_ros.geometry.rotations import exp_so3, rotation_y
from softarm_ros.geometry.sightings import Sighting
from softarm_ros.plant.mocap import PoseMeasurement

Streaming = Callable[..., AbstractContextManager['Bench']]
SECTIONS = ('proximal', 'distal')
FRAME_ID = 'arm/base'
RATE_HZ = 100.0
DELAY_S = 0.008
BODIES = (
    {'name': 'base', 'section': 'base', 'offset_m': (0.03, 0.0, -0.01), 'turn_deg': (0, 20, 5)},
    {'name': 'middle', 'section': 'proximal'},
    {'name': 'tip', 'section': 'distal', 'offset_m': (0, 0, 0.01), 'turn_deg': (0, 0, 90)},
)


def section_tips(time_s: float) -> Array:
    """Return the true section tips (2, 4, 4) of an arm that swings at half a hertz."""
    bend = np.radians(60.0) * np.sin(np.pi * time_s)
    middle = pose(rotation_y(0.5 * bend), [0.05 * np.sin(bend), 0.0, 0.1])
    tip = pose(rotation_y(bend), [0.15 * np.sin(bend), 0.0, 0.2 * np.cos(0.5 * bend)])
    return np.array([middle, tip])


class Bench:
    """Drives an emulated device at `RATE_HZ` in real time, and reads it with a sensor."""

    def __init__(self, sensor: Any, device: Any) -> None:
        self.sensor, self.device = sensor, device
        self.sightings: list[Sighting] = []
        self.exposed: dict[int, float] = {}
        self.began_ns = time.time_ns()
        self._began_s = time.monotonic()
        self._exposures = 0
        self._under_way: list[PoseMeasurement] = []
        self._random = np.random.default_rng(0)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._drive, daemon=True)
        self.started = False

    @property
    def now_s(self) -> float:
        """Simulated time [s]."""
        return time.monotonic() - self._began_s

    def start(self) -> None:
        self._thread.start()
        self.started = True

    def stop(self) -> None:
        self._ending.set()
        if self.started:
            self._thread.join()

    def _drive(self) -> None:
        while not self._ending.wait(0.002):
            now = self.now_s
            while self._exposures / RATE_HZ <= now:
                stamp = self._exposures / RATE_HZ
                tips = section_tips(stamp)
                tips[:, :3, 3] += 1e-4 * self._random.standard_normal((2, 3))
                for tip in tips:
                    tip[:3, :3] = tip[:3, :3] @ exp_so3(1e-3 * self._random.standard_normal(3))
                self._under_way.append(PoseMeasurement(stamp, tips))
                self._exposures += 1
            ready = [m for m in self._under_way if m.stamp_s + DELAY_S <= now]
            self._under_way = [m for m in self._under_way if m.stamp_s + DELAY_S > now]
            self.device.deliver(ready, now)

    def read(self, duration_s: float) -> list[Sighting]:
        """Read for `duration_s` [s]; return the sightings."""
        found: list[Sighting] = []
        end = time.monotonic() + duration_s
        while (left := end - time.monotonic()) > 0.0:
            found += self.sensor.read(min(left, 0.05))
        self.sightings += found
        return found

    def wait_for(self, condition: Callable[[], object], limit_s: float = 30.0) -> None:
        """Read until a condition holds; after `limit_s` [s], fail with the sensor's health."""
        end = time.monotonic() + limit_s
        while not condition():
            assert time.monotonic() < end, self.sensor.health()
            self.sightings += self.sensor.read(0.05)

    def codes(self) -> set[str]:
        """Return the codes of the present problems."""
        return {problem.code for problem in self.sensor.health().problems}

    def codes_within(self, duration_s: float) -> set[str]:
        """Read for `duration_s` [s]; return the codes of all problems that were present."""
        told: set[str] = set()
        end = time.monotonic() + duration_s
        while time.monotonic() < end:
            self.sensor.read(0.01)
            told |= self.codes()
        return told

    def simulated_s(self, sighting: Sighting) -> float:
        """Return the simulated time [s] of a sighting's stamp."""
        return 1e-9 * (sighting.stamp_ns - self.began_ns)

    def errors_m(self, sightings: list[Sighting]) -> Array:
        """Return the position errors (n,) of bodies against the true arm at their stamps."""
        offsets = self.sensor.config.places(SECTIONS)
        found = []
        for sighting in sightings:
            true = section_tips(self.simulated_s(sighting))
            for body in sighting.bodies:
                place = offsets[body.name]
                seen = body.pose @ inverse_pose(place.offset)
                found.append(float(np.linalg.norm(seen[:3, 3] - true[place.section][:3, 3])))
        return np.array(found)


@contextmanager
def bench(sensor: Any, device: Any) -> Iterator[Bench]:
    """Start device and sensor; close them whatever happens."""
    running = Bench(sensor, device)
    try:
        running.start()
        sensor.open()
        yield running
    finally:
        running.stop()
        sensor.close()
        device.close()


# -- checks for every system with a network; `streaming` starts a server and its sensor


def settle(running: Bench) -> None:
    """Read until frames arrive and the base is known."""
    running.wait_for(lambda: len(running.sightings) > 50)


def check_that_single_markers_are_points(streaming: Streaming) -> None:
    """Check that a single marker, which has no orientation, is measured at its place."""
    points = ({'name': '7', 'section': 'distal', 'offset_m': (0.01, 0.0, 0.0)},)
    with streaming(points=points) as running:
        settle(running)
        found = running.read(0.3)
    assert found and all(p.name == '7' for s in found for p in s.points)
    tip = next(b for b in found[-1].bodies if b.name == 'tip')
    assert np.linalg.norm(found[-1].points[0].position - tip.pose[:3, 3]) < 0.02


def check_that_points_need_no_body(streaming: Streaming) -> None:
    """Check that single markers are streamed without any body, and have no faults of bodies."""
    points = ({'name': '7', 'section': 'distal'}, {'name': '8', 'section': 'proximal'})
    with streaming(bodies=(), points=points, base_from='sensor') as running:
        settle(running)
        found = running.read(0.3)
        with pytest.raises(ValueError, match="no fault 'hide' here; known: blind, jitter"):
            running.device.inject('hide')
    assert found and all([p.name for p in s.points] == ['7', '8'] for s in found)


# Faults of every server: name, reported code, its subject, and what is still delivered of the tip.
FAULTS = (
    ('hide', 'body-lost', 'tip', 'nothing'),
    ('flip', 'flip', 'tip', 'position'),
    ('swap', 'swap', 'tip', 'nothing'),
    ('blind', 'no-frames', 'server', 'nothing'),
    ('die', 'no-server', 'server', 'nothing'),
)
RENAMED = ('rename', 'wrong-name', 'tip', 'nothing')
GARBLED = ('corrupt', 'corrupt', 'network', 'some')
MUTE = ('mute', 'no-frames', 'server', 'nothing')


def check_that_a_fault_moves_nothing(
    streaming: Streaming, fault: str, code: str, subject: str, tip: str
) -> None:
    """Check that a fault is reported with advice, and that no wrong pose is delivered."""
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
    # All delivered poses are where the arm was. Only its size reveals a number with a wrong bit,
    # so the limit is wide there (real networks drop corrupted packets by their checksum).
    assert max(running.errors_m(during), default=0.0) < (0.1 if fault == 'corrupt' else 8e-3)
    bodies = {b.name for s in during for b in s.bodies}
    points = {p.name for s in during for p in s.points}
    assert ('tip' in bodies) == (tip in ('pose', 'some'))
    assert ('tip' in points) == (tip == 'position')
    assert {b.name for s in after for b in s.bodies} == {'middle', 'tip'}


def check_that_a_set_clock_is_noticed(streaming: Streaming, fault: str) -> None:
    """Check that a jump of the server's clock is reported, and that stamps stay right."""
    with streaming() as running:
        settle(running)
        running.device.inject(fault)
        running.wait_for(lambda: 'clock-jump' in running.codes())
        problem = next(p for p in running.sensor.health().problems if p.code == 'clock-jump')
        found = running.read(0.8)
    told_s = float(problem.text.split(' s;')[0].split()[-1])
    assert told_s == pytest.approx(0.7 if fault == 'clock' else -0.7, abs=0.05)
    assert np.median(running.errors_m(found)) < 1e-3


def check_that_jitter_shifts_no_stamp(streaming: Streaming) -> None:
    """Check that occasional late packets do not shift the stamps, and are reported."""
    with streaming() as running:
        settle(running)
        running.device.inject('jitter')
        found = running.read(1.5)
        assert np.median(running.errors_m(found)) < 1e-3
        assert 'clock-jump' not in running.codes()
        running.wait_for(lambda: 'jitter' in running.codes())


def check_that_a_late_server_is_found(streaming: Streaming) -> None:
    """Check that a server that starts late is found, and again after the sensor was closed."""
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


def check_that_poses_are_where_the_arm_was(running: Bench) -> None:
    """Compare one second of sightings with the true arm at the exposures."""
    settle(running)
    found = running.read(1.0)
    health = running.sensor.health()
    assert len(found) > 50
    assert {b.name for s in found for b in s.bodies} == {'middle', 'tip'}
    assert np.median(running.errors_m(found)) < 0.8e-3
    assert health.connected
    assert health.seen == ('middle', 'tip')
    assert health.values['bodies_of_server'] == 'base, middle, tip'
