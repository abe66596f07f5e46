"""Interface of every pose sensor: the contract between devices, nodes and tests."""

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


STARTING = 'starting'  # code of the problem that a device has not yet had the time to start


class SensorError(RuntimeError):
    """A sensor cannot work at all; the message gives the reason and the remedy."""


@dataclass(frozen=True)
class SensorProblem:
    """
    A current problem of a sensor's data.

    Attributes
    ----------
    code : str
        Short and stable code for tests and logs: `no-server`, `body-lost`, `flip`.
    subject : str
        The body, camera or server concerned.
    text : str
        Description of the problem, with numbers.
    advice : str
        Remedy, for the user.

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
    State of a sensor.

    Attributes
    ----------
    connected : bool
        Whether a frame has arrived within the sensor's `timeout_s`.
    rate_hz : float
        Exposures in the last second; 0 without any.
    last_exposure_ns : int, optional
        Stamp of the newest sighting; None before the first.
    seen : tuple of str
        Usable bodies and points of the newest frame.
    problems : tuple of SensorProblem
        Current problems, the gravest first.
    values : mapping
        Numbers for diagnostics: clock offset, latency, counts of rejections by reason.

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

    One thread at a time calls `open`, `read` and `close` (a node's `PollingThread`, a test); any
    thread may call `health`. `Sighting.frame_id` names the frame of the poses: the base frame of
    the arm if the sensor knows it, else a frame of the sensor.

    Parts of the family `sensors` with the role `driver` build it:
    `build(config, frame_id) -> PoseSensor`, where `frame_id` is the name of the base frame.
    """

    def open(self) -> None:
        """
        Start, without a long wait. A missing device is not an error: `read` keeps looking for it.

        Raises
        ------
        SensorError
            If the sensor can never work: a library, a calibration file or a port is missing.

        """
        ...

    def read(self, timeout_s: float) -> list[Sighting]:
        """
        Return the sightings since the last call, oldest first; wait for one at most `timeout_s`.

        Never raises because of the device or the network; `health` reports such problems.
        """
        ...

    def health(self) -> SensorHealth:
        """Return the current state of the sensor."""
        ...

    def close(self) -> None:
        """Release the device; may be called twice. `open` starts again."""
        ...


@runtime_checkable
class ExpectingSensor(Protocol):
    """A sensor of anonymous markers, which uses predicted positions to identify them."""

    def expect_by(self, predict: Callable[[], Mapping[str, Array] | None]) -> None:
        """
        Set a function that predicts the position (3,) of each marker now, in the base frame [m].

        The reading thread calls it, only for markers not seen recently. It returns None if there
        is no prediction.
        """
        ...


@runtime_checkable
class TopicSensor(Protocol):
    """A sensor that gets some of its images from topics of other ROS nodes."""

    def topics(self) -> dict[str, str]:
        """Return the image topics that the sensor needs, by their role."""
        ...

    def take_from(self, which: str, source: Any) -> None:
        """Set the source of images of one role, before `open`."""
        ...


@runtime_checkable
class TransformSensor(Protocol):
    """A sensor of frames that other ROS nodes publish on /tf and /tf_static."""

    def take_transforms(
        self, transforms: Sequence[FrameTransform], *, static: bool, received_ns: int
    ) -> None:
        """Take the transforms of a message, received at a time [ns] of the clock of stamps."""
        ...


@runtime_checkable
class SeeingSensor(Protocol):
    """A sensor that can show its camera view."""

    def picture(self) -> NDArray[np.uint8] | None:
        """Return the newest view (rows, columns, 3) with detections marked; None if none yet."""
        ...
