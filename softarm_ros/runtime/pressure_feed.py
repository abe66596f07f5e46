"""Pass pressures measured by a rig's DAQ to a driver that needs them, without topics."""

from __future__ import annotations

import numpy as np

from softarm_ros.drivers.actuator_driver import FedByPressures
from softarm_ros.drivers.connections import OF_THIS_COMPUTER, Connections
from softarm_ros.drivers.daq import DaqDriver
from softarm_ros.drivers.daq_config import DaqConfig
from softarm_ros.drivers.problems import Problem


class PressureFeed:
    """
    Reads the DAQ in its own threads; `poll` passes on the newest block.

    Raises
    ------
    ValueError
        If an actuator has no input in Pa with its name.

    """

    def __init__(
        self,
        config: DaqConfig,
        actuators: tuple[str, ...],
        driver: FedByPressures,
        connections: Connections = OF_THIS_COMPUTER,
    ) -> None:
        inputs = [part.name for part in config.inputs if part.unit == 'Pa']
        missing = [name for name in actuators if name not in inputs]
        if missing:
            raise ValueError(f'drives.daq.inputs: no pressure of {", ".join(missing)}')
        every = [part.name for part in config.inputs]
        self._columns = [every.index(name) for name in actuators]
        self._daq = DaqDriver(config, connections.clock, connections.open_channel)
        self._driver = driver
        self._stamp_s = -np.inf

    def start(self) -> None:
        """Start reading; raises DriverError as `DaqDriver.start`."""
        self._daq.start()

    def close(self) -> None:
        """Release the device; may be called twice."""
        self._daq.close()

    def poll(self) -> None:
        """Pass new pressures to the driver."""
        state = self._daq.state()
        if state.stamp_s > self._stamp_s:
            self._stamp_s = state.stamp_s
            self._driver.set_pressures(state.values[self._columns], state.stamp_s)

    def problems(self) -> tuple[Problem, ...]:
        """Return the problems of the DAQ."""
        return self._daq.problems()
