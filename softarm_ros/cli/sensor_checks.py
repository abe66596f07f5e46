"""Tests of a rig's pose sensors: whether they answer, and which bodies they see."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from softarm_ros.cli.device_checks import Finding, of_failure
from softarm_ros.perception.sensor import (
    STARTING,
    ExpectingSensor,
    PoseSensor,
    SeeingSensor,
    SensorError,
    SensorHealth,
    TopicSensor,
    TransformSensor,
)
from softarm_ros.requirements import missing_package
from softarm_ros.rigs.schema import Rig
from softarm_ros.runtime.addresses import addressed_sensor
from softarm_ros.runtime.arm_assembly import build_marker_expectation, build_pose_sensor
from softarm_ros.runtime.part_failure import FAILURES
from softarm_ros.whole_file import NotWrittenError, whole_file

if TYPE_CHECKING:
    from softarm_ros.nodes.graph_listener import GraphListener

PATIENCE_S = 3.0  # time to find the device
START_S = 60.0  # time for a device that is there and says that it starts
LOOK_S = 0.5  # time to see the bodies
WAIT_S = 0.1  # time to wait for one frame


def check_sensor(
    rig: Rig, name: str, folder: Path | None, image: Path | None = None
) -> Iterator[Finding]:
    """
    Yield findings about the connection, each body of the rig file, and all other problems.

    `folder` is as in `show_rig`.

    Unidentified markers are expected where they are with the arm at rest. With `image`, the view
    of a camera is written to this file.
    """
    config = addressed_sensor(name, rig.sensors.devices()[name], folder)
    try:
        sensor = build_pose_sensor(rig, name, folder)
        if isinstance(sensor, ExpectingSensor):
            expectation = build_marker_expectation(rig, name)
            if expectation is not None:
                sensor.expect_by(expectation.positions)
        listener = _listener(rig, sensor)
    except SensorError as error:
        yield Finding(False, name, '', str(error))
        return
    except FAILURES as error:
        yield of_failure(name, error)
        return
    try:
        health, at = _look(sensor, listener)
        if image is not None:
            yield save_view(sensor, name, image)
    except FAILURES as error:
        yield of_failure(name, error)
        return
    finally:
        sensor.close()
        if listener is not None:
            listener.close()
    program = health.values.get('server', '')
    who = f'{program} at {config.address}' if program else config.address
    if not health.connected:
        why = str(health.problems[0]) if health.problems else 'no frames come'
        yield Finding(False, name, '', why)
        return
    known = health.values.get('bodies_of_server', '')
    of_server = f'; its bodies: {known}' if known else ''
    yield Finding(True, name, '', f'{who}: frames come{of_server}')
    wrong = {problem.subject: problem for problem in health.problems}
    base = config.base_body.name if config.base_body is not None else None
    for seen in (*config.bodies, *config.points):
        if seen.name in wrong:
            yield Finding(False, name, seen.name, str(wrong[seen.name]))
        elif seen.name == base or seen.name in health.seen:
            yield Finding(True, name, seen.name, f'seen, at {seen.section}{at.get(seen.name, "")}')
        else:
            yield Finding(False, name, seen.name, 'not seen; check its markers and its name')
    named = {seen.name for seen in (*config.bodies, *config.points)}
    for problem in health.problems:
        # A busy computer delays frames, whatever the device; only a run shows whether it matters.
        if problem.subject not in named and problem.code != 'late-frames':
            yield Finding(False, name, problem.subject, str(problem))


def save_view(sensor: PoseSensor, name: str, image: Path) -> Finding:
    """Save the view of a sensor's cameras; return whether that succeeded."""
    if not isinstance(sensor, SeeingSensor):
        return Finding(False, name, '', f'no picture for {image}: {name} is not a camera')
    picture = sensor.picture()
    if picture is None:
        return Finding(False, name, '', f'no picture for {image}: no pair of images came')
    import cv2

    _, data = cv2.imencode('.png', picture)
    try:
        with whole_file(image) as part:
            part.write_bytes(data.tobytes())
    except NotWrittenError as error:
        return Finding(False, name, '', str(error))
    return Finding(True, name, '', f'what the cameras see: {image}')


def _listener(rig: Rig, sensor: PoseSensor) -> GraphListener | None:
    """Open a sensor; return the node for its subscriptions, if the sensor needs topics or tf."""
    images = isinstance(sensor, TopicSensor) and sensor.topics()
    if not (images or isinstance(sensor, TransformSensor)):
        sensor.open()
        return None
    try:
        from softarm_ros.nodes.graph_listener import GraphListener
        from softarm_ros.nodes.sensor_topics import SensorTopics
    except ImportError as error:
        raise SensorError(missing_package(error)) from None
    listener = GraphListener('ports', f'/{rig.name}')
    try:
        topics = SensorTopics(listener.node)
        topics.before_open(sensor)
        sensor.open()
        topics.after_open(sensor)
    except SensorError:
        sensor.close()
        listener.close()
        raise
    return listener


def _look(
    sensor: PoseSensor, listener: GraphListener | None
) -> tuple[SensorHealth, dict[str, str]]:
    """Return the health of a sensor, and the newest place of each body or point as text."""
    at: dict[str, str] = {}

    def read(duration_s: float) -> bool:
        if listener is not None:
            listener.spin(duration_s)
        sightings = sensor.read(0.01 if listener is not None else duration_s)
        for sighting in sightings:
            age_ms = 1e-6 * (time.time_ns() - sighting.stamp_ns)
            places = {body.name: body.pose[:3, 3] for body in sighting.bodies}
            places |= {point.name: point.position for point in sighting.points}
            for name, place in places.items():
                x, y, z = 1e3 * place
                at[name] = f': x {x:.1f}, y {y:.1f}, z {z:.1f} mm in base, {age_ms:.0f} ms old'
        return bool(sightings)

    # Count reads instead of time, and read once more before judging: if this process was stopped
    # for seconds, the device must not seem late.
    for k in range(1, round(START_S / WAIT_S) + 1):
        if read(WAIT_S):
            break
        starts = STARTING in [problem.code for problem in sensor.health().problems]
        if k >= round(PATIENCE_S / WAIT_S) and not starts:
            break
    end = time.monotonic() + LOOK_S
    while time.monotonic() < end:
        read(0.05)
    read(WAIT_S)
    return sensor.health(), at
