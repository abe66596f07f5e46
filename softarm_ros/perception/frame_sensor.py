"""Base class of sensors whose devices send frames: opening, reading, health."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Generic, TypeVar

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.geometry.sightings import Sighting
from softarm_ros.perception.config import PoseSensorConfig
from softarm_ros.perception.frame_intake import FrameIntake
from softarm_ros.perception.sensor import SensorHealth, SensorProblem

ConfigT = TypeVar('ConfigT', bound=PoseSensorConfig)


class FrameSensor(ABC, Generic[ConfigT]):
    """
    A `PoseSensor` whose device sends frames, which go through a `FrameIntake`.

    Parameters
    ----------
    config
        Configuration of the sensor.
    frame_id
        Name of the base frame.
    clock
        Monotonic clock.

    """

    def __init__(self, config: ConfigT, frame_id: str, clock: Clock = MONOTONIC) -> None:
        self.config = config
        self._clock = clock
        self._frame_id = frame_id
        self._intake = FrameIntake(config, frame_id, clock)

    def open(self) -> None:
        """See `PoseSensor`."""
        self.close()
        self._intake = FrameIntake(self.config, self._frame_id, self._clock)
        self._listen()

    @abstractmethod
    def close(self) -> None:
        """See `PoseSensor`."""

    def read(self, timeout_s: float) -> list[Sighting]:
        """See `PoseSensor`."""
        end_s = self._clock.now_s() + timeout_s
        seen: list[Sighting] = []
        while self._listening() and not seen:
            left_s = end_s - self._clock.now_s()
            seen += self._receive(max(left_s, 0.0))
            if left_s <= 0.0:
                break
        return seen

    def health(self) -> SensorHealth:
        """See `PoseSensor`."""
        values, names = self._values(), self._bodies_of_device()
        if names is not None:
            values['bodies_of_server'] = ', '.join(sorted(names))
        return self._intake.health(self._silence, values)

    def _report_corrupt(self, now_s: float, subject: str, text: str, advice: str) -> None:
        """Report that received data were rejected."""
        self._intake.problems.report(now_s, 1, SensorProblem('corrupt', subject, text, advice))

    # -- of each sensor

    @abstractmethod
    def _listen(self) -> None:
        """Start without any knowledge of the device; raise SensorError if it can never work."""

    @abstractmethod
    def _listening(self) -> bool:
        """Return whether the sensor is open."""

    @abstractmethod
    def _receive(self, left_s: float) -> list[Sighting]:
        """Return new sightings; wait for them at most `left_s` [s], preferably 0.1 s."""

    @abstractmethod
    def _silence(self) -> SensorProblem:
        """Return the problem that explains why no frames arrive."""

    @abstractmethod
    def _bodies_of_device(self) -> Iterable[str] | None:
        """Return the names of the device's bodies; None while they are unknown."""

    def _values(self) -> dict[str, str]:
        """Return values for diagnostics in addition to those of the frames."""
        return {}
