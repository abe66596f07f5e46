"""A DAQ that only measures, as a device of an arm."""

from __future__ import annotations

from softarm_ros.drivers.daq import DaqDriver
from softarm_ros.drivers.daq_values import daq_values
from softarm_ros.drivers.problems import Problem


class DaqSensors:
    """The inputs of a DAQ whose outputs, if it has any, drive nothing."""

    def __init__(self, daq: DaqDriver) -> None:
        self.daq = daq

    def start(self) -> None:
        """Connect, in the background, and stay connected."""
        self.daq.start()

    def close(self) -> None:
        """Disconnect; may be called twice."""
        self.daq.close()

    def reset(self) -> None:
        """Forget latched problems; what is still wrong comes back."""
        self.daq.reset()

    def not_ready(self) -> str:
        """Return '' if the arm may move by what is measured here, or why not."""
        state = self.daq.state()
        if state.problems:
            return '; '.join(map(str, state.problems))
        return '' if state.reading else 'DAQ does not answer yet'

    def problems(self) -> tuple[Problem, ...]:
        """Return what has gone wrong since the last reset."""
        return self.daq.state().problems

    def values(self) -> dict[str, str]:
        """Return what diagnostics show."""
        return daq_values(self.daq)
