"""Node of one pose sensor of a rig: `sensor:=natnet`, or another of the rig's sensors."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseArray, PoseStamped
from sensor_msgs.msg import PointCloud2

from softarm_ros.drivers.polling import PollingThread
from softarm_ros.geometry.answers import described
from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.poses import inverse_pose, rows_from_transforms
from softarm_ros.geometry.sightings import Sighting
from softarm_ros.nodes.hardware_node import HardwareNode
from softarm_ros.nodes.heartbeat import INACTIVE
from softarm_ros.nodes.marker_cloud import marker_cloud
from softarm_ros.nodes.node_errors import NodeFailedError, RefusedError
from softarm_ros.nodes.node_parameters import declare
from softarm_ros.nodes.qos import MEASUREMENT
from softarm_ros.nodes.run_nodes import run_node
from softarm_ros.nodes.sensor_topics import SensorTopics
from softarm_ros.nodes.wire import JointValues, listen, pose_bytes, poses_bytes, read_joints
from softarm_ros.perception.sensor import ExpectingSensor, PoseSensor, SensorError, SensorHealth
from softarm_ros.perception.sighting_checks import checked_sightings
from softarm_ros.rigs.errors import listed
from softarm_ros.runtime.addresses import addressed_sensor
from softarm_ros.runtime.arm_assembly import (
    build_marker_expectation,
    build_pose_sensor,
    sensor_config,
)
from softarm_ros.runtime.marker_expectation import MarkerExpectation
from softarm_ros.runtime.part_failure import FAILURES, failure_text, part_at_fault

TICK_S = 0.1
READ_S = 0.05
ABSENT_S = 2.0  # the loop bridges shorter gaps of the tip
# Quaternion of a tip with known position but unknown orientation.
NO_ORIENTATION = (0.0, 0.0, 0.0, 0.0)


class SensorNode(HardwareNode):
    """
    Reads a sensor in a thread of its own and publishes each sighting as it arrives.

    `tip/pose` and `sections/poses` are stamped with the time of exposure. A tip without a usable
    orientation has the quaternion 0 0 0 0; sections are published only if all of them were seen.
    The heartbeat names problems and their remedies.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__('sensor', TICK_S, **options)
        self._name = declare(self, 'sensor', '', 'name of the sensor in the rig file')
        self._folder = declare(
            self, 'devices_folder', '', 'folder of emulated sensors; empty: real sensors'
        )
        sensors = self.rig.sensors.devices()
        if self._name not in sensors:
            known = listed(sensors) if sensors else 'none'
            raise RefusedError(f'sensor = {self._name!r}: rig {self.rig.name!r} has {known}')
        self._sensor: PoseSensor | None = None
        self._thread: PollingThread | None = None
        self._reading_failed = ''
        self._tip_s = -np.inf
        self._began_s = 0.0
        self._published = 0
        self._health = SensorHealth(connected=False)
        self._tip = self.create_lifecycle_publisher(
            PoseStamped, self.rig.feedback.pose_topic, MEASUREMENT
        )
        self._sections = self.create_lifecycle_publisher(PoseArray, 'sections/poses', MEASUREMENT)
        places = sensors[self._name].places(self.rig.section_names)
        self._markers: tuple[str, ...] = sensors[self._name].markers_seen()
        self._cloud = (
            self.create_lifecycle_publisher(PointCloud2, 'sensors/points', MEASUREMENT)
            if self._markers
            else None
        )
        self._commanded: JointValues | None = None
        self._topics = SensorTopics(self)
        self._expectation: MarkerExpectation | None = None
        # Bodies at the tip of a section, by name: the section, and the tip's pose in the body.
        self._at_tips = {
            name: (place.section, inverse_pose(place.offset))
            for name, place in places.items()
            if place.section >= 0 and place.fraction == 1.0
        }

    # -- life

    def addresses(self) -> object:
        """Return the emulated sensor with its address; None: that of the rig file stays."""
        if not self._folder:
            return None
        return addressed_sensor(self._name, sensor_config(self.rig, self._name), self._folder)

    def connect(self) -> None:
        """Open the sensor and start to read it."""
        sensor = build_pose_sensor(self.rig, self._name, self._folder)
        self._topics.before_open(sensor)
        if isinstance(sensor, ExpectingSensor):
            self._tell_where_markers_are(sensor)
        self._sensor = sensor
        self._sensor.open()
        self._topics.after_open(sensor)
        self._reading_failed = ''
        self._began_s = time.monotonic()
        self._thread = PollingThread(f'{self._name} sensor', self._read, self._on_failure)
        self._thread.start()
        self.heartbeat.waiting('connecting')

    def _tell_where_markers_are(self, sensor: ExpectingSensor) -> None:
        """Let the sensor ask the model at the newest command where hidden markers should be."""
        expectation = build_marker_expectation(self.rig, self._name)
        if expectation is None:
            return
        if self._expectation is None:  # subscribe once: the subscription outlives the sensor

            def take(command: JointValues) -> None:
                self._commanded = command

            listen(self, read_joints, 'configuration/command', take, MEASUREMENT)
        self._expectation = expectation
        expectation.positions()  # load compiled code now, not in motion

        def predict() -> dict[str, Array] | None:
            command = self._commanded
            try:
                if command is None:
                    return expectation.positions()
                return expectation.positions(command.name, command.position)
            except Exception:  # a command that the model refuses gives no expectation
                return None

        sensor.expect_by(predict)

    def release(self) -> None:
        """Stop reading and close the sensor."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.close()
        self._topics.drop_transforms()
        sensor, self._sensor = self._sensor, None
        if sensor is not None:
            sensor.close()

    # -- work

    def _read(self, thread: PollingThread) -> None:
        while not thread.ending.is_set():
            sensor = self._sensor
            if sensor is None:
                return
            try:
                seen = sensor.read(READ_S)
            except FAILURES as error:
                if not part_at_fault(error):
                    raise
                self._reading_failed = failure_text(error)
                return
            try:
                sightings = checked_sightings(seen, f'sensor {type(sensor).__name__}')
            except SensorError as error:
                self._reading_failed = str(error)
                return
            for sighting in sightings:
                if self.active:
                    self._publish(sighting)

    def _publish(self, sighting: Sighting) -> None:
        """Publish the poses of a sighting, sections first: the loop waits for them."""
        tips = self._tips(sighting)
        last = len(self.rig.section_names) - 1
        if set(tips) == set(range(last + 1)):
            rows = rows_from_transforms(np.array([tips[k] for k in range(last + 1)]))
            self._sections.publish(poses_bytes(sighting.stamp_ns, sighting.frame_id, rows))
        row = None
        if last in tips:
            row = rows_from_transforms(tips[last][None])[0]
        else:
            for point in sighting.points:
                section, to_tip = self._at_tips.get(point.name, (-1, np.eye(4)))
                # For a marker beside the backbone, the tip position would need an orientation.
                if section == last and not to_tip[:3, 3].any():
                    row = np.array([*point.position, *NO_ORIENTATION])
        if row is not None:
            self._tip.publish(pose_bytes(sighting.stamp_ns, sighting.frame_id, row))
            self._tip_s = time.monotonic()
            self._published += 1
        if self._cloud is not None and self._cloud.get_subscription_count() > 0:
            self._cloud.publish(marker_cloud(sighting, self._markers))

    def _tips(self, sighting: Sighting) -> dict[int, Array]:
        found = {}
        for body in sighting.bodies:
            if body.name in self._at_tips:
                section, to_tip = self._at_tips[body.name]
                found[section] = body.pose @ to_tip
        return found

    def _on_failure(self, error: BaseException) -> None:
        whose = f'sensor {type(self._sensor).__name__}'
        self._reading_failed = f'{whose}: {type(error).__name__}: {error}'

    def turn(self, now_s: float) -> None:
        """Report the health of the sensor; end the process if reading has failed."""
        if self._sensor is None:
            return
        if self._reading_failed:
            raise NodeFailedError(f'{self._name}: reading failed: {self._reading_failed}')
        health: object = self._sensor.health()
        if not isinstance(health, SensorHealth):
            named = f'{self._name}: sensor {type(self._sensor).__name__}'
            found = described(health)
            raise NodeFailedError(f'{named} returned health {found}; expected a SensorHealth')
        self._health = health
        problems = '; '.join(map(str, health.problems))
        if health.connected and not problems and not self.active:
            self.heartbeat.waiting(INACTIVE)
        elif health.connected and not problems:
            self.heartbeat.ok(f'measuring {", ".join(health.seen) or "nothing"}')
        elif health.connected:
            self.heartbeat.warn(problems)
        elif now_s - self._began_s < ABSENT_S:
            self.heartbeat.waiting(problems or 'no frame yet')
        else:
            self.heartbeat.error(problems or 'no frames come')

    def heartbeat_values(self) -> dict[str, str]:
        """Return readiness, problems one by one, and the sensor's values."""
        absent = time.monotonic() - self._tip_s > ABSENT_S
        not_ready = self.idle()
        if absent and not not_ready:
            not_ready = str(self._health.problems[0]) if self._health.problems else 'no tip seen'
        health = self._health
        return {
            'ready': str(not not_ready).lower(),
            'not_ready': not_ready,
            'rate_hz': f'{health.rate_hz:.0f}',
            'seen': ', '.join(health.seen),
            'published': str(self._published),
            **{f'problem {i + 1}': f'{p.code} {p}' for i, p in enumerate(health.problems)},
            **health.values,
        }


def main(args: list[str] | None = None) -> int:
    """Run the node."""
    return run_node(SensorNode, 'sensor', args)


if __name__ == '__main__':
    sys.exit(main())
