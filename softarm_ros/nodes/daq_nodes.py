"""Nodes of an NI DAQ: one drives an arm, the other only measures."""

from __future__ import annotations

import math
from typing import Any

from sensor_msgs.msg import FluidPressure

from softarm_ros.drivers.actuator_driver import ActuatorDriver
from softarm_ros.drivers.daq import DaqDriver
from softarm_ros.drivers.daq_actuators import DaqActuators
from softarm_ros.drivers.daq_config import DaqConfig
from softarm_ros.drivers.daq_sensors import DaqSensors
from softarm_ros.nodes.actuator_node import ActuatorNode
from softarm_ros.nodes.daq_topics import DaqTopics
from softarm_ros.nodes.driver_node import DriverNode
from softarm_ros.nodes.qos import VISUAL
from softarm_ros.rigs.devices import Devices

NAME = 'daq'


class _DaqNode(DriverNode):
    """A node whose driver samples a DAQ, which `DaqTopics` publishes."""

    _topics: DaqTopics

    def release(self) -> None:
        """Stop, switch off and disconnect."""
        self._topics.detach()
        super().release()

    def waits_for(self) -> str:
        """Return why the arm may not start although the device is ready, or ''."""
        return super().waits_for() or self._topics.waits_for()


class DaqSensorsNode(_DaqNode):
    """Publishes the measurements of a DAQ, for an arm that another device drives."""

    driver: DaqSensors | None

    def __init__(self, **options: Any) -> None:
        super().__init__(NAME, **options)
        self._topics = DaqTopics(self, self.rig.base_frame)

    def build(self, devices: Devices) -> DaqSensors:
        """Return the driver of the inputs."""
        config = getattr(devices, NAME, None)
        if not isinstance(config, DaqConfig):
            raise ValueError(f'rig {self.rig.name!r} declares no {NAME}')
        driver = DaqSensors(DaqDriver(config))
        self._topics.attach(driver.daq, None)
        return driver

    def news(self) -> None:
        """Publish new samples."""
        self._topics.publish()


class DaqActuatorNode(_DaqNode, ActuatorNode):
    """
    Sets the regulators or winches of an arm, operates its gripper, and publishes measurements.

    gripper/command (Pa gauge) counts only while the arm follows commands: a hold of the arm also
    holds the gripper.
    """

    driver: DaqActuators | None

    def __init__(self, **options: Any) -> None:
        super().__init__(NAME, **options)
        self._topics = DaqTopics(self, self.rig.base_frame)
        self._gripper_refused = ''
        self.create_subscription(FluidPressure, 'gripper/command', self._on_gripper, VISUAL)

    def build(self, devices: Devices) -> ActuatorDriver:
        """Return the driver of chambers and gripper."""
        driver = super().build(devices)
        if not isinstance(driver, DaqActuators):
            raise ValueError(f'rig {self.rig.name!r} is not driven by a DAQ')
        gripper = driver.gripper.config.pressure_input if driver.gripper is not None else None
        self._topics.attach(driver.daq, gripper)
        return driver

    def values(self) -> dict[str, str]:
        """Return the actuator node's values, and why the last gripper command was refused."""
        return {**super().values(), 'gripper_refused': self._gripper_refused}

    def news(self) -> None:
        """Publish new samples."""
        if self.driver is not None:
            self.publish_reading(self.driver)
        self._topics.publish()

    def _on_gripper(self, message: FluidPressure) -> None:
        gripper = self.driver.gripper if self.driver is not None else None
        if gripper is None or self._held:
            return
        target = float(message.fluid_pressure)
        wanted = gripper.state().target_Pa
        # Messages that repeat the target, a hundred times a second, are one command.
        if wanted is not None and math.isclose(wanted, target, abs_tol=1.0):
            self._gripper_refused = ''
            return
        try:
            self._gripper_refused = gripper.set_pressure(target) or ''
        except ValueError as error:
            self._gripper_refused = str(error)
        if self._gripper_refused:
            self.get_logger().error(
                f'gripper command refused: {self._gripper_refused}', throttle_duration_sec=1.0
            )
