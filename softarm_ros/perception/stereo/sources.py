"""Where images come from: files, video, V4L2, GStreamer, network cameras, or who pushes them."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Protocol
from urllib.parse import urlsplit

import numpy as np

from softarm_ros.clock import MONOTONIC, Clock, Task
from softarm_ros.perception.stereo.camera import CameraError
from softarm_ros.perception.stereo.collect import image_files
from softarm_ros.perception.stereo.images import Image, as_8_bit, opencv, read_image

ROS = 'ros:'  # in front of the name of a topic

_KEPT = 2  # images that wait to be read; older ones are of no use to a control loop
_RETRY_S = 0.5
_CLOSE_S = 3.0
_DRIVER_STAMP_AGE_S = 1.0  # an older stamp of a video driver is of another clock
_LONGEST_LINE = 1024
_LARGEST_IMAGE = 64 << 20


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
    """Images that someone else brings, as a subscription of ROS does."""

    def __init__(self, name: str, clock: Clock = MONOTONIC) -> None:
        self.name = name
        self._frames: deque[Frame] = deque(maxlen=_KEPT)
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


class FileFrames:
    """Images of a folder or pattern, by name, at a rate: they are as old as their place says."""

    def __init__(self, where: str, rate_hz: float, start_ns: int = 0) -> None:
        self.name = where
        self._period_ns = round(1e9 / rate_hz)
        self._start_ns = start_ns
        self._left: deque[Any] = deque()
        self._count = 0

    def open(self) -> None:
        """See `FrameSource`."""
        self._left = deque(image_files(self.name))
        self._count = 0

    def read(self, timeout_s: float) -> Frame | None:
        """See `FrameSource`; never waits."""
        if not self._left:
            return None
        image = read_image(self._left.popleft())
        self._count += 1
        return Frame(self._start_ns + (self._count - 1) * self._period_ns, image)

    def problem(self) -> str:
        """See `FrameSource`."""
        return '' if self._left else 'all files are read'

    def ended(self) -> bool:
        """See `FrameSource`."""
        return not self._left

    def close(self) -> None:
        """See `FrameSource`."""
        self._left.clear()


class _ThreadedFrames(PushedFrames):
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
        self._why, self._over = 'not there yet', False
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
                self._why = 'the stream ended'
            except (OSError, HTTPException, CameraError, ValueError) as error:
                self._why = str(error) or type(error).__name__
            if self._over:
                return
            stop.wait(_RETRY_S)

    def _wait_for_room(self, stop: Any) -> None:
        """Wait until an image is read, if none may be left out; a camera does not wait."""

    def _frames_of_device(self, stop: Any) -> Iterator[Frame]:
        raise NotImplementedError


class OpenCvFrames(_ThreadedFrames):
    """
    A V4L2 device (`/dev/video0`, `0`), GStreamer pipeline (`... ! appsink`), video file or URL.

    Of a V4L2 camera the stamp is that of its driver, the end of the exposure on the monotonic
    clock; of a video file it is the place in the file; else when the image came.
    """

    def __init__(
        self, target: str, clock: Clock = MONOTONIC, *, video_start_ns: int | None = None
    ) -> None:
        super().__init__(target, clock)
        self._video_start_ns = video_start_ns

    def _frames_of_device(self, stop: Any) -> Iterator[Frame]:
        cv2 = opencv()
        capture = self._opened(cv2)
        try:
            while not stop.is_set():
                good, image = capture.read()
                if not good or image is None:
                    if self._video_start_ns is not None:
                        self._over = True
                        self._why = 'the video has ended'
                        return
                    raise CameraError('no more images: the camera is unplugged or in use')
                place_ms = float(capture.get(cv2.CAP_PROP_POS_MSEC))
                yield Frame(self._stamp_ns(place_ms), as_8_bit(image, self.name))
        finally:
            capture.release()

    def _wait_for_room(self, stop: Any) -> None:
        if self._video_start_ns is None:
            return
        with self._arrival:
            while len(self._frames) >= _KEPT and not stop.is_set():
                self._arrival.wait(_RETRY_S)

    def _opened(self, cv2: Any) -> Any:
        if ' ! ' in self.name:
            capture = cv2.VideoCapture(self.name, cv2.CAP_GSTREAMER)
        elif re.fullmatch(r'\d+|/dev/\S+', self.name):
            device = int(self.name) if self.name.isdigit() else self.name
            capture = cv2.VideoCapture(device, cv2.CAP_V4L2)
        else:
            capture = cv2.VideoCapture(self.name)
        if not capture.isOpened():
            capture.release()
            raise CameraError(
                'cannot be opened: not there, in use, or no permission (group video)'
            )
        return capture

    def _stamp_ns(self, place_ms: float) -> int:
        now_ns = time.time_ns()
        if self._video_start_ns is not None:
            return self._video_start_ns + round(1e6 * place_ms)
        age_s = time.monotonic() - 1e-3 * place_ms
        return now_ns - round(1e9 * age_s) if 0.0 <= age_s < _DRIVER_STAMP_AGE_S else now_ns


class MjpegFrames(_ThreadedFrames):
    """
    A network camera that sends JPEG images, or grey ones as they are (PGM), over HTTP
    (multipart/x-mixed-replace).

    The stamp is the header X-Timestamp [s since 1970] that ustreamer and mjpg-streamer send: the
    exposure on the clock of that computer, which has to follow this one's (NTP, chrony). Without
    the header it is when the image came. Images are decoded to grey, `colour` to blue-green-red.
    """

    def __init__(
        self, url: str, clock: Clock = MONOTONIC, *, timeout_s: float = 2.0, colour: bool = False
    ) -> None:
        super().__init__(url, clock)
        self._timeout_s = timeout_s
        self._colour = colour

    def _frames_of_device(self, stop: Any) -> Iterator[Frame]:
        cv2 = opencv()
        mode = cv2.IMREAD_COLOR if self._colour else cv2.IMREAD_GRAYSCALE
        parts = urlsplit(self.name)
        kind: Callable[..., HTTPConnection] = (
            HTTPSConnection if parts.scheme == 'https' else HTTPConnection
        )
        link = kind(parts.hostname or '', parts.port, timeout=self._timeout_s)
        try:
            link.request('GET', (parts.path or '/') + (f'?{parts.query}' if parts.query else ''))
            answer = link.getresponse()
            kind_of_answer = answer.getheader('Content-Type', '')
            if answer.status != 200 or not kind_of_answer.startswith('multipart/'):
                raise CameraError(
                    f'answered {answer.status} {kind_of_answer}: expected a stream, '
                    'multipart/x-mixed-replace'
                )
            while not stop.is_set():
                header = _part_header(answer)
                data = _part_body(answer, header)
                stamp_ns = _stamp_ns(header)
                image = cv2.imdecode(np.frombuffer(data, np.uint8), mode)
                if image is None:
                    continue  # damaged on its way: the next one comes soon
                yield Frame(stamp_ns, image)
        finally:
            link.close()


def open_source(text: str, rate_hz: float = 30.0, *, colour: bool = False) -> FrameSource:
    """
    Return the source that a text names; not opened yet.

    `0`, `/dev/video0`: V4L2; `a ! b ! appsink`: GStreamer; `http://...`: a network camera;
    `rtsp://...` and files of a video: OpenCV; a folder or pattern: image files at `rate_hz`.

    Raises
    ------
    CameraError
        If the text names nothing of these.

    """
    if text.startswith(ROS):
        raise CameraError(f'{text}: images of a ROS topic are read by the node of the sensor only')
    if re.match(r'https?://', text):
        return MjpegFrames(text, colour=colour)
    if ' ! ' in text or re.fullmatch(r'\d+|/dev/\S+', text) or re.match(r'\w+://', text):
        return OpenCvFrames(text)
    if re.search(r'\.(mp4|avi|mkv|mov|webm|mjpe?g)$', text, re.IGNORECASE):
        return OpenCvFrames(text, video_start_ns=0)
    if text.strip():
        return FileFrames(text, rate_hz)
    raise CameraError(
        'source is empty: expected a device, pipeline, URL, video, folder or pattern'
    )


def is_live(text: str) -> bool:
    """Return whether a source goes on by itself: everything but image files."""
    return not isinstance(open_source(text), FileFrames)


def _part_header(answer: HTTPResponse) -> dict[str, str]:
    """Return the header of the next part, names in small letters."""
    header: dict[str, str] = {}
    while True:
        line = answer.readline(_LONGEST_LINE)
        if not line:
            raise CameraError('the stream ended')
        text = line.strip().decode('latin-1')
        if not text:
            if header:
                return header
            continue
        name, colon, value = text.partition(':')
        if colon:
            header[name.strip().lower()] = value.strip()


def _part_body(answer: HTTPResponse, header: dict[str, str]) -> bytes:
    length = header.get('content-length', '')
    if not length.isdigit() or not 0 < int(length) <= _LARGEST_IMAGE:
        raise CameraError(f'part with Content-Length {length!r}: expected 1 to {_LARGEST_IMAGE}')
    data = answer.read(int(length))
    if len(data) < int(length):
        raise CameraError('the stream ended within an image')
    return data


def _stamp_ns(header: dict[str, str]) -> int:
    text = header.get('x-timestamp', '')
    if not re.fullmatch(r'\d{9,11}(\.\d+)?', text):
        return time.time_ns()
    seconds, _, fraction = text.partition('.')
    return int(seconds) * 1_000_000_000 + int(fraction[:9].ljust(9, '0'))
