"""What every sensor of poses offers: the contract between devices, nodes and tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from softarm_ros.geometry.arrays import Array
from softarm_ros.geometry.sightings import Sighting

if TYPE_CHECKING:
    from softarm_ros.perception.tf.frame_tree import FrameTransform


class SensorError(RuntimeError):
    """A sensor cannot work at all; the message says why and what to do."""


@dataclass(frozen=True)
class SensorProblem:
    """
    Something wrong with what a sensor delivers, as long as it lasts.

    Attributes
    ----------
    code : str
        Short and stable, for tests and logs: `no-server`, `body-missing`, `flip`.
    subject : str
        What it concerns: a body, a camera, the server.
    text : str
        What is wrong, with the numbers.
    advice : str
        What a person should do about it.

    """

    code: str
    subject: str
    text: str
    advice: str

    def __str__(self) -> str:
        return f'{self.subject}: {self.text}; {self.advice}'


@dataclass(frozen=True)
class SensorHealth:
    """
    How a sensor is.

    Attributes
    ----------
    connected : bool
        Whether frames come, or have come within the sensor's `timeout_s`.
    rate_hz : float
        Exposures in the last second; 0 without any.
    last_exposure_ns : int, optional
        Stamp of the newest sighting; None before the first.
    seen : tuple of str
        Bodies and points of the newest frame that can be used.
    problems : tuple of SensorProblem
        What is wrong now, the gravest first; empty: nothing.
    values : mapping
        Numbers for diagnostics: clock offset, latency, counts of what was rejected and why.

    """

    connected: bool
    rate_hz: float = 0.0
    last_exposure_ns: int | None = None
    seen: tuple[str, ...] = ()
    problems: tuple[SensorProblem, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)


class PoseSensor(Protocol):
    """
    A device that reports sightings.

    `open`, `read` and `close` are called by one thread at a time (a node's `PollingThread`, a
    test), `health` by any. Poses are in the base frame of the arm where the sensor knows it,
    else in a frame of its own, as `Sighting.frame_id` says.

    What a part of the family `sensors` with the role `driver` builds:
    `build(config, frame_id) -> PoseSensor`, `frame_id` being the name of the base frame.
    """

    def open(self) -> None:
        """
        Begin; soon over. A device that is not there yet is no error: `read` keeps looking for it.

        Raises
        ------
        SensorError
            If it can never work: a library, a calibration file or a port is missing.

        """
        ...

    def read(self, timeout_s: float) -> list[Sighting]:
        """
        Return what was seen since the last call, oldest first; wait for it so long [s] at most.

        Never raises for what a device or a network does; `health` says what is wrong.
        """
        ...

    def health(self) -> SensorHealth:
        """Return how the sensor is now."""
        ...

    def close(self) -> None:
        """Let go of the device; may be called twice. `open` begins anew."""
        ...


@runtime_checkable
class ExpectingSensor(Protocol):
    """A sensor that sees markers which do not say who they are, and asks where to expect them."""

    def expect_by(self, predict: Callable[[], Mapping[str, Array] | None]) -> None:
        """
        Take what returns where the model has each marker (3,) now, in the base frame [m].

        Called by the thread that reads, only for markers that were not seen of late; None where
        nobody knows.
        """
        ...


@runtime_checkable
class TopicSensor(Protocol):
    """A sensor some of whose images another ROS node publishes."""

    def topics(self) -> dict[str, str]:
        """Return the topics of images it needs, by what they are to it."""
        ...

    def take_from(self, which: str, source: Any) -> None:
        """Take a source of images for one of them, before `open`."""
        ...


@runtime_checkable
class TransformSensor(Protocol):
    """A sensor of frames that other ROS nodes publish on /tf and /tf_static."""

    def take_transforms(
        self, transforms: Sequence[FrameTransform], *, static: bool, received_ns: int
    ) -> None:
        """Take those of a message, which came at a time [ns] by the clock of their stamps."""
        ...


@runtime_checkable
class SeeingSensor(Protocol):
    """A sensor that can show what it sees."""

    def picture(self) -> NDArray[np.uint8] | None:
        """Return its newest view (rows, columns, 3) with what was found; None before the first."""
        ...
