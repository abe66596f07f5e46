"""A source of images: what is asked of it, and what those that live have in common."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, Protocol

from softarm_ros.clock import MONOTONIC, Clock, Task
from softarm_ros.perception.stereo.camera import Camera, CameraError
from softarm_ros.perception.stereo.images import Image, opencv

KEPT = 2  # images that wait to be read; older ones are of no use to a control loop
RETRY_S = 0.5
NOT_YET = 'not there yet'  # a source that is being opened, which a stream may need a while for
_CLOSE_S = 3.0


@dataclass(frozen=True)
class Frame:
    """
    An image and when it was exposed.

    Attributes
    ----------
    stamp_ns : int
        On this computer's clock [ns since 1970].
    image : Image
        (rows, columns[, 3]).

    """

    stamp_ns: int
    image: Image


class FrameSource(Protocol):
    """A camera, or what stands for one."""

    name: str

    def open(self) -> None:
        """Begin; soon over. CameraError if it can never work."""
        ...

    def read(self, timeout_s: float) -> Frame | None:
        """Return the oldest image not yet read; None if there is none within this time [s]."""
        ...

    def problem(self) -> str:
        """Return why no images come, as far as the source knows; empty: nothing is known."""
        ...

    def ended(self) -> bool:
        """Return whether no image will ever come any more: the files are all read."""
        ...

    def close(self) -> None:
        """Let go of it; may be called twice."""
        ...


class PushedFrames:
    """
    Images that someone else brings, as a subscription of ROS does.

    Attributes
    ----------
    lens : Camera, optional
        What the camera's own driver says of it.

    """

    def __init__(self, name: str, clock: Clock = MONOTONIC) -> None:
        self.name = name
        self.lens: Camera | None = None
        self._frames: deque[Frame] = deque(maxlen=KEPT)
        self._arrival = clock.condition()

    def push(self, frame: Frame) -> None:
        """Add an image; the oldest is dropped if two wait already."""
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
        return ''

    def ended(self) -> bool:
        """See `FrameSource`."""
        return False

    def close(self) -> None:
        """See `FrameSource`."""
        with self._arrival:
            self._frames.clear()


class ThreadedFrames(PushedFrames):
    """A camera that is read by a thread of its own, and looked for again when it is gone."""

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
        # An event of its own: a thread that hangs in its device cannot be woken by the next.
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
        """Wait until an image is read, if none may be left out; a camera does not wait."""

    def _frames_of_device(self, stop: Any) -> Iterator[Frame]:
        raise NotImplementedError
