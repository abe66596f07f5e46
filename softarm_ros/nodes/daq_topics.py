"""Topics of a DAQ's measurements: pressures of chambers and gripper, force on the base."""

from __future__ import annotations

import time
from typing import Any

from geometry_msgs.msg import WrenchStamped
from rclpy.qos import QoSProfile
from sensor_msgs.msg import FluidPressure
from std_srvs.srv import Trigger

from softarm_ros.drivers.daq import DaqDriver
from softarm_ros.drivers.problems import DriverError
from softarm_ros.nodes.driver_node import DriverNode
from softarm_ros.nodes.qos import MEASUREMENT, PER_CHAMBER
from softarm_ros.nodes.wire import pressure_bytes, wrench_bytes

PASCAL = 'Pa'


class DaqTopics:
    """
    Publishes each block of samples as its mean, stamped with the middle of its sample times.

    Every input in Pa, except the gripper's, is the pressure of the chamber with the same name. The
    service `~/tare` takes the present load of the force sensor for zero. A moving arm has no
    constant load: the service refuses while the arm may move, and meanwhile none may start.

    Publishers are made for the quantities that the DAQ measures. They live as long as the node,
    whichever DAQ is attached.

    Parameters
    ----------
    node : DriverNode
        Publishes while active; its `news` has to call `publish`, its `waits_for` the method of
        the same name.
    frame : str
        Frame of the wrench.

    """

    def __init__(self, node: DriverNode, frame: str) -> None:
        self._node = node
        self._frame = frame
        self._daq: DaqDriver | None = None
        self._gripper: int | None = None
        self._chambers: list[tuple[int, str]] = []
        self._publishers: dict[str, Any] = {}
        node.create_service(Trigger, '~/tare', self._on_tare)

    def attach(self, daq: DaqDriver, gripper_input: str | None) -> None:
        """Publish the samples of a DAQ; `gripper_input` names the gripper's pressure, if any."""
        inputs = [(i, part) for i, part in enumerate(daq.config.inputs) if part.unit == PASCAL]
        self._daq = daq
        daq.on_samples = self._node.wake
        self._gripper = next((i for i, part in inputs if part.name == gripper_input), None)
        self._chambers = [(i, part.name) for i, part in inputs if i != self._gripper]
        if self._chambers:
            self._offer('chambers/pressure', FluidPressure, PER_CHAMBER)
        if self._gripper is not None:
            self._offer('gripper/pressure', FluidPressure, MEASUREMENT)
        if daq.config.force_sensor is not None:
            self._offer('wrench', WrenchStamped, MEASUREMENT)

    def detach(self) -> None:
        """Forget the DAQ, which is closed."""
        self._daq = None

    def _offer(self, topic: str, kind: Any, qos: QoSProfile) -> None:
        if topic not in self._publishers:
            self._publishers[topic] = self._node.create_lifecycle_publisher(kind, topic, qos)

    def publish(self) -> None:
        """Publish the samples read since the last call."""
        blocks = [] if self._daq is None else self._daq.take_blocks()
        if not blocks:
            return
        origin_ns = self._node.get_clock().now().nanoseconds - round(1e9 * time.monotonic())
        for block in blocks:
            stamp_ns = origin_ns + round(1e9 * float(block.stamps_s.mean()))
            mean = block.values.mean(axis=1)
            for i, name in self._chambers:
                self._publishers['chambers/pressure'].publish(
                    pressure_bytes(stamp_ns, name, mean[i])
                )
            if self._gripper is not None:
                self._publishers['gripper/pressure'].publish(
                    pressure_bytes(stamp_ns, 'gripper', mean[self._gripper])
                )
            if block.wrench is not None:
                load = block.wrench.mean(axis=1)
                self._publishers['wrench'].publish(wrench_bytes(stamp_ns, self._frame, load))

    def waits_for(self) -> str:
        """Return why the arm may not start now, or ''."""
        taring = self._daq is not None and self._daq.taring
        return 'the force sensor is being tared' if taring else ''

    def _on_tare(self, asked: Trigger.Request, reply: Trigger.Response) -> Trigger.Response:
        if self._daq is None:
            reply.success, reply.message = False, 'not configured'
            return reply
        if self._node.may_move:
            reply.success, reply.message = False, 'the arm follows commands; stop it first'
            return reply
        try:
            self._daq.tare()
        except DriverError as error:
            reply.success, reply.message = False, str(error)
        else:
            self._node.heartbeat.publish()  # at once, so that no start comes before it
            reply.success = True
            reply.message = f'the load of the next {self._daq.config.tare_s:g} s counts as zero'
        return reply
