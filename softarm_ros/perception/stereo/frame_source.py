"""Interface of image sources, and base classes of live ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, Protocol

from softarm_ros.clock import MONOTONIC, Clock, Task
from softarm_ros.perception.stereo.camera import Camera, CameraError
from softarm_ros.perception.stereo.images import Image, opencv

KEPT = 2  # number of unread images; older ones are useless to a control loop
RETRY_S = 0.5
NOT_YET = 'not there yet'  # while a source is being opened, which may take a while
_CLOSE_S = 3.0


@dataclass(frozen=True)
class Frame:
    """
    An image with its time of exposure.

    Attributes
    ----------
    stamp_ns : int
        Time of exposure on this computer's clock [ns since 1970].
    image : Image
        Image (rows, columns[, 3]).

    """

    stamp_ns: int
    image: Image


class FrameSource(Protocol):
    """A camera, or a substitute such as files."""

    name: str

    def open(self) -> None:
        """Start, without a long wait; raise CameraError if the source can never work."""
        ...

    def read(self, timeout_s: float) -> Frame | None:
        """Return the oldest unread image; None if there is none within this time [s]."""
        ...

    def problem(self) -> str:
        """Return why no images arrive; '' if the source does not know."""
        ...

    def ended(self) -> bool:
        """Return whether no more images will come, because all files are read."""
        ...

    def close(self) -> None:
        """Release the source; may be called twice."""
        ...


class PushedFrames:
    """
    Images that other code pushes, such as a ROS subscription.

    Attributes
    ----------
    lens : Camera, optional
        Camera parameters stated by the camera's own driver.
    unreadable : str
        Why the newest image could not be read; '' if it could.

    """

    def __init__(self, name: str, clock: Clock = MONOTONIC) -> None:
        self.name = name
        self.lens: Camera | None = None
        self.unreadable = ''
        self._frames: deque[Frame] = deque(maxlen=KEPT)
        self._arrival = clock.condition()

    def push(self, frame: Frame) -> None:
        """Add an image; drop the oldest if two are unread already."""
        with self._arrival:
            self._frames.append(frame)
            self._arrival.notify_all()

    def open(self) -> None:
        """See `FrameSource`."""

    def read(self, timeout_s: float) -> Frame | None:
        """See `FrameSource`."""
        with self._arrival:
            self._arrival.wait_for(lambda: bool(self._frames), timeout_s)
            frame = self._frames.popleft() if self._frames else None
            self._arrival.notify_all()  # there is room again
            return frame

    def problem(self) -> str:
        """See `FrameSource`."""
        return self.unreadable

    def ended(self) -> bool:
        """See `FrameSource`."""
        return False

    def close(self) -> None:
        """See `FrameSource`."""
        with self._arrival:
            self._frames.clear()


class ThreadedFrames(PushedFrames):
    """A camera that is read by a thread of its own, and reopened after a loss."""

    def __init__(self, name: str, clock: Clock) -> None:
        super().__init__(name, clock)
        self._clock = clock
        self._stop = clock.event()
        self._task: Task | None = None
        self._why = 'not opened'
        self._over = False

    def open(self) -> None:
        """See `FrameSource`."""
        opencv()
        if self._task is not None:
            return
        self._why, self._over = NOT_YET, False
        # A new event: an old thread that still hangs in its device must stay stopped.
        self._stop = self._clock.event()
        stop = self._stop
        self._task = self._clock.task(lambda: self._run(stop), f'camera {self.name}')
        self._task.start()

    def problem(self) -> str:
        """See `FrameSource`."""
        return self._why

    def ended(self) -> bool:
        """See `FrameSource`."""
        with self._arrival:
            return self._over and not self._frames

    def close(self) -> None:
        """See `FrameSource`."""
        task, self._task = self._task, None
        self._stop.set()
        if task is not None:
            task.join(_CLOSE_S)
        super().close()
        self._why = 'closed'

    def _run(self, stop: Any) -> None:
        while not stop.is_set():
            try:
                for frame in self._frames_of_device(stop):
                    self._why = ''
                    self._wait_for_room(stop)
                    self.push(frame)
                    if stop.is_set():
                        return
                if not self._over:
                    self._why = 'the stream ended'
            except (OSError, HTTPException, CameraError, ValueError) as error:
                self._why = str(error) or type(error).__name__
            if self._over:
                return
            stop.wait(RETRY_S)

    def _wait_for_room(self, stop: Any) -> None:
        """Wait for room in the queue if no image may be dropped; a camera does not wait."""

    def _frames_of_device(self, stop: Any) -> Iterator[Frame]:
        raise NotImplementedError
