"""A DAQ that only measures, as a device of an arm."""

from __future__ import annotations

from softarm_ros.drivers.daq import DaqDriver
from softarm_ros.drivers.daq_values import daq_values
from softarm_ros.drivers.problems import Problem


class DaqSensors:
    """The inputs of a DAQ; its outputs, if any, are not used."""

    def __init__(self, daq: DaqDriver) -> None:
        self.daq = daq

    def start(self) -> None:
        """Connect in the background and stay connected."""
        self.daq.start()

    def close(self) -> None:
        """Disconnect; may be called twice."""
        self.daq.close()

    def reset(self) -> None:
        """Clear latched problems; those that persist are reported again."""
        self.daq.reset()

    def not_ready(self) -> str:
        """Return '' if the measurements allow the arm to move; else the reason."""
        state = self.daq.state()
        if state.problems:
            return '; '.join(map(str, state.problems))
        return '' if state.reading else 'DAQ does not answer yet'

    def problems(self) -> tuple[Problem, ...]:
        """Return the problems since the last reset."""
        return self.daq.problems()

    def values(self) -> dict[str, str]:
        """Return values for diagnostics."""
        return daq_values(self.daq)
