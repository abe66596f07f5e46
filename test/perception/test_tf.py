"""From transforms on /tf to sightings, on a clock that the test sets."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from manual_clock import ManualClock
from tracked_arm import BODIES, DELAY_S, FRAME_ID, RATE_HZ, SECTIONS, section_tips

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import inverse_pose, pose, rows_from_transforms
from softarm_ros.geometry.rotations import exp_so3
from softarm_ros.geometry.sightings import Sighting
from softarm_ros.perception.tf.config import TfConfig
from softarm_ros.perception.tf.frame_tree import FrameTransform, chain_to
from softarm_ros.perception.tf.sensor import AHEAD_S, TfSensor
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.loader import load_rig

ROOM = 'map'
BASE_IN_ROOM = pose(exp_so3([0.3, -0.2, 1.0]), [1.0, -2.0, 0.5])
WALL_S = 1.7e9  # start of the test, on the clock of the stamps


def config(**fields: object) -> TfConfig:
    return TfConfig.model_validate(
        {'frame': ROOM, 'rate_hz': RATE_HZ, 'timeout_s': 0.25, 'bodies': BODIES, **fields}
    )


def transform(stamp_s: float, parent: str, child: str, X: Array) -> FrameTransform:
    row = rows_from_transforms(X[None])[0].tolist()
    stamp_ns = round(1e9 * (WALL_S + stamp_s))
    return FrameTransform(stamp_ns, parent, child, tuple(row[:3]), tuple(row[3:]))


class Room:
    """A driver that publishes the bodies of a swinging arm, and the sensor that receives them."""

    def __init__(self, **fields: object) -> None:
        self.clock = ManualClock()
        self.began_s = self.clock.now_s()
        self.sensor = TfSensor(config(**fields), FRAME_ID, self.clock)
        self.places = self.sensor.config.places(SECTIONS)
        self.sensor.open()

    def seen_at(self, stamp_s: float) -> dict[str, Array]:
        """Return every body in the room (4, 4)."""
        tips = section_tips(stamp_s)
        at = {-1: np.eye(4), 0: tips[0], 1: tips[1]}
        return {n: BASE_IN_ROOM @ at[p.section] @ p.offset for n, p in self.places.items()}

    def bodies(self, stamp_s: float) -> list[FrameTransform]:
        return [transform(stamp_s, ROOM, n, X) for n, X in self.seen_at(stamp_s).items()]

    def send(self, transforms: Sequence[FrameTransform], *, static: bool = False) -> None:
        now_s = self.clock.now_s() - self.began_s
        received_ns = round(1e9 * (WALL_S + now_s))
        self.sensor.take_transforms(transforms, static=static, received_ns=received_ns)

    def until(self, stamp_s: float) -> None:
        """Let time pass until an exposure of this time would arrive."""
        self.clock.sleep(self.began_s + stamp_s + DELAY_S - self.clock.now_s())

    def run(self, count: int, first: int = 0, change: object = None) -> list[Sighting]:
        """Send `count` exposures in time, each changed by `change`; return the sightings."""
        found = []
        for k in range(first, first + count):
            self.until(k / RATE_HZ)
            sent = self.bodies(k / RATE_HZ)
            self.send(change(sent) if callable(change) else sent)
            found += self.sensor.read(0.005)
        return found

    def errors_m(self, sightings: list[Sighting], stamps_s: Sequence[float]) -> Array:
        """Return the errors (n,) of bodies against the arm at these times."""
        found = []
        for sighting, stamp_s in zip(sightings, stamps_s, strict=True):
            tips = section_tips(stamp_s)
            for body in sighting.bodies:
                place = self.places[body.name]
                X = body.pose @ inverse_pose(place.offset)
                found.append(float(np.linalg.norm(X - tips[place.section])))
        return np.array(found)

    def problems(self) -> dict[str, str]:
        return {problem.code: str(problem) for problem in self.sensor.health().problems}


def test_bodies_in_the_room_are_delivered_in_the_base_frame():
    room = Room()
    seen = room.run(20)
    assert len(seen) == 20
    assert all(len(sighting.bodies) == 2 for sighting in seen)
    assert all(sighting.frame_id == FRAME_ID for sighting in seen)
    assert room.errors_m(seen, [k / RATE_HZ for k in range(20)]).max() < 1e-9
    assert room.problems() == {}


def test_stamp_and_latency_follow_from_the_stamps_of_transforms():
    room = Room()
    room.run(20)
    before = time.time()
    (sighting,) = room.run(1, first=20)
    after = time.time()
    latency_s = float(room.sensor.health().values['latency_ms']) * 1e-3
    assert latency_s == pytest.approx(DELAY_S, abs=1e-5)
    assert before - DELAY_S - 1e-3 <= 1e-9 * sighting.stamp_ns <= after - DELAY_S + 1e-3


def test_separate_messages_of_bodies_form_one_exposure():
    room = Room()
    for k in range(5):
        room.until(k / RATE_HZ)
        for jitter_s, body in zip((0.0, 1e-4, 3e-4), room.bodies(k / RATE_HZ)):
            room.send([replace(body, stamp_ns=body.stamp_ns + round(1e9 * jitter_s))])
        (sighting,) = room.sensor.read(0.005)
        assert len(sighting.bodies) == 2


def test_an_exposure_that_lacks_a_body_is_used_without_it():
    room = Room()
    room.run(10)
    (sighting,) = room.run(1, first=10, change=lambda sent: sent[:2])
    assert [body.name for body in sighting.bodies] == ['middle']
    room.run(40, first=11, change=lambda sent: sent[:2])
    assert 'tip' in room.problems()['body-lost']


def test_poses_are_composed_over_static_and_moving_frames():
    """The base is on a static stand; the markers of the tip are on a moving plate."""
    room = Room()
    plate = pose(exp_so3([0.0, 0.4, 0.0]), [0.0, 0.02, 0.01])
    stand = pose(exp_so3([0.0, 0.0, 0.5]), [0.2, 0.0, 1.0])
    at = room.seen_at(0.0)
    room.send(
        [
            transform(0.0, ROOM, 'stand', stand),
            transform(0.0, 'stand', 'base', inverse_pose(stand) @ at['base']),
            transform(0.0, 'plate', 'tip', plate),
        ],
        static=True,
    )
    for k in range(3):
        room.until(k / RATE_HZ)
        at = room.seen_at(k / RATE_HZ)
        room.send(
            [
                transform(k / RATE_HZ, 'camera', 'plate', at['tip'] @ inverse_pose(plate)),
                transform(k / RATE_HZ, ROOM, 'camera', np.eye(4)),
                transform(k / RATE_HZ, ROOM, 'middle', at['middle']),
            ]
        )
        seen = room.sensor.read(0.005)
        if k > 0:  # after the first exposure the sensor knows that the camera is in the chain
            assert room.errors_m(seen, [k / RATE_HZ]).max() < 1e-9
            assert len(seen[0].bodies) == 2


@pytest.mark.parametrize('parent', [ROOM, 'base'])
def test_a_static_body_of_the_arm_is_no_measurement(parent):
    """It was published again and again, with the stamps of the moving base: a frozen tip."""
    room = Room()
    tip = room.bodies(0.0)[2]
    stuck = tip if parent == ROOM else replace(tip, parent='base', position=(0.0, 0.0, 0.2))
    room.send([stuck], static=True)
    seen = room.run(40, change=lambda sent: sent[:2])
    assert len(seen) == 40
    assert {body.name for sighting in seen for body in sighting.bodies} == {'middle'}
    assert room.problems()['static'] == (
        'tip: is static (/tf_static), so it is no measurement and not used; publish it on /tf, '
        'with the time of each exposure'
    )
    room.run(400, first=40)  # a body that moves now is no longer static
    assert 'static' not in room.problems()
    (sighting,) = room.run(1, first=440)
    assert {body.name for body in sighting.bodies} == {'middle', 'tip'}


def test_an_arm_that_is_static_as_a_whole_is_called_static():
    room = Room()
    room.send(room.bodies(0.0), static=True)
    room.clock.sleep(0.5)
    assert room.sensor.read(0.005) == []
    assert 'middle: is static (/tf_static)' in room.problems()['static']


def test_transforms_of_other_robots_are_ignored():
    room = Room()

    def among_others(sent: list[FrameTransform]) -> list[FrameTransform]:
        others = [
            replace(sent[0], stamp_ns=sent[0].stamp_ns + shift, child=f'robot/{k}', parent='robot')
            for k, shift in enumerate((3_000_000, -50_000_000))
        ]
        return [sent[0], others[0], sent[1], others[1], sent[2]]

    seen = room.run(20, change=among_others)
    assert len(seen) == 20
    assert all(len(sighting.bodies) == 2 for sighting in seen)
    assert room.problems() == {}


@pytest.mark.parametrize(
    ('change', 'code', 'said'),
    [
        ({'position': (np.nan, 0.0, 0.0)}, 'corrupt', 'tip: at (nan'),
        ({'position': (1e3, 0.0, 0.0)}, 'corrupt', 'limit 100 m'),
        ({'quaternion': (0.0, 0.0, 0.0, 0.0)}, 'corrupt', 'quaternion of norm 0'),
        ({'parent': 'odom'}, 'wrong-frame', "tip: is given in 'odom', which no transform ties"),
    ],
)
def test_invalid_transform_is_reported_and_not_used(change, code, said):
    room = Room()
    room.run(10)

    def wrong(sent: list[FrameTransform]) -> list[FrameTransform]:
        return [*sent[:2], replace(sent[2], **change)]

    seen = room.run(40, first=10, change=wrong)
    assert seen
    assert {body.name for sighting in seen for body in sighting.bodies} == {'middle'}
    assert said in room.problems()[code]


@pytest.mark.parametrize(
    ('shift_s', 'said'),
    [
        (0.3, 'its stamp lies 292.0 ms in the future (limit 5 ms)'),
        (-20.0, 'its stamp is 20.0 s old (limit 10 s)'),
        (-WALL_S, 'its stamp is'),
    ],
)
def test_transforms_with_impossible_stamps_are_not_used(shift_s: float, said: str) -> None:
    room = Room()

    def shifted(sent: list[FrameTransform]) -> list[FrameTransform]:
        return [replace(one, stamp_ns=one.stamp_ns + round(1e9 * shift_s)) for one in sent]

    assert room.run(10, change=shifted) == []
    assert 'clocks of both computers must agree' in room.problems()['corrupt']
    # Names and frames are right: the stamps are why no poses come.
    assert f'base, middle, tip arrive but are not used: {said}' in room.problems()['no-frames']


def test_stamp_0_is_called_a_missing_stamp() -> None:
    room = Room()
    room.run(10, change=lambda sent: [replace(one, stamp_ns=0) for one in sent])
    assert 'it has no stamp (0)' in room.problems()['no-frames']
    assert 'out-of-order' not in room.problems()


def test_one_stamp_in_the_future_does_not_stop_the_next_exposures() -> None:
    room = Room()
    room.run(10)
    hour_ns = 3_600_000_000_000

    def late(sent: list[FrameTransform]) -> list[FrameTransform]:
        return [replace(one, stamp_ns=one.stamp_ns + hour_ns) for one in sent]

    assert room.run(1, first=10, change=late) == []
    assert len(room.run(10, first=11)) == 10
    assert 'out-of-order' not in room.problems()


def test_driver_that_ended_is_not_blamed_for_its_names() -> None:
    room = Room()
    room.run(10)
    room.clock.sleep(1.0)
    room.sensor.read(0.0)
    problems = room.problems()
    assert 'no transforms of base, middle, tip in map arrive any more' in problems['no-server']
    assert 'no-frames' not in problems


def test_stamps_slightly_in_the_future_are_accepted():
    room = Room()
    ahead_ns = round(1e9 * (DELAY_S + 0.5 * AHEAD_S))

    def ahead(sent: list[FrameTransform]) -> list[FrameTransform]:
        return [replace(one, stamp_ns=one.stamp_ns + ahead_ns) for one in sent]

    assert len(room.run(10, change=ahead)) == 10
    assert room.problems() == {}


def test_frames_published_by_two_programs_are_reported():
    room = Room()
    room.run(10)
    room.send(room.bodies(0.05))
    assert room.sensor.read(0.005) == []
    assert 'two programs' in room.problems()['out-of-order']


def test_missing_transforms_are_reported():
    room = Room()
    assert 'no transforms arrive' in room.problems()['no-server']
    room.send([transform(0.0, 'robot', 'wheel', np.eye(4))])
    room.sensor.read(0.005)
    assert 'published: wheel' in room.problems()['no-frames']
    room.run(10)
    assert 'no-frames' not in room.problems()
    room.clock.sleep(1.0)
    assert not room.sensor.health().connected


def test_body_without_a_frame_is_reported_with_the_published_frames():
    room = Room(bodies=[*BODIES, {'name': 'elbow', 'section': 'proximal'}])
    room.run(40, change=lambda sent: sent[:3])
    assert 'it sends base, middle, tip' in room.problems()['wrong-name']


def test_chain_through_a_cycle_of_frames_ends():
    a = transform(0.0, 'b', 'a', np.eye(4)).link()
    b = transform(0.0, 'a', 'b', np.eye(4)).link()
    assert chain_to(ROOM, 'a', {'a': a, 'b': b}).last in ('a', 'b')


def test_flipped_body_is_reported_and_keeps_only_its_position():
    room = Room()
    room.run(10)
    half = exp_so3([0.0, 0.0, np.pi])

    def flipped(sent: list[FrameTransform]) -> list[FrameTransform]:
        at = room.seen_at(1e-9 * sent[2].stamp_ns - WALL_S)['tip']
        turned = at @ pose(half, np.zeros(3))
        row = rows_from_transforms(turned[None])[0].tolist()
        return [*sent[:2], replace(sent[2], quaternion=tuple(row[3:]))]

    (sighting,) = room.run(1, first=10, change=flipped)
    assert [body.name for body in sighting.bodies] == ['middle']
    assert [point.name for point in sighting.points] == ['tip']
    assert 'flip' in room.problems()


@pytest.mark.parametrize(
    ('fields', 'said'),
    [
        ({'points': [{'name': 'p', 'section': 'distal'}]}, 'a frame has a pose'),
        ({'frame': '/map'}, 'no leading slash'),
    ],
)
def test_invalid_tf_fields_are_refused(fields, said):
    with pytest.raises(ValueError, match=said):
        config(**fields)


def test_link_frames_drawn_from_the_command_are_refused_as_measurements():
    """The loop would take its own command for a measurement."""
    sensor = (
        '{frame: map, rate_hz: 100, bodies: [{name: cable_arm/base, section: base}, '
        '{name: %s, section: distal}]}'
    )
    rig = load_rig('cable_arm', [f'sensors={{tf: {sensor % "tip"}}}'])
    assert rig.sensors.devices()['tf'].frame == 'map'
    with pytest.raises(RigError, match=r'sensors\.tf\.bodies\[1\]\.name.*as it is drawn'):
        load_rig('cable_arm', [f'sensors={{tf: {sensor % "cable_arm/tip"}}}'])
