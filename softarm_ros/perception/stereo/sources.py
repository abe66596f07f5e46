"""Sources of images: files, video, V4L2, GStreamer and network cameras."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.perception.stereo.camera import CameraError
from softarm_ros.perception.stereo.collect import aligned_files
from softarm_ros.perception.stereo.config import ROS
from softarm_ros.perception.stereo.frame_source import (
    KEPT,
    RETRY_S,
    Frame,
    FrameSource,
    ThreadedFrames,
)
from softarm_ros.perception.stereo.images import as_8_bit, opencv, read_image
from softarm_ros.perception.stereo.network_frames import MjpegFrames

_PIPELINE = ' ! '  # between the elements of a GStreamer pipeline
_DRIVER_STAMP_AGE_S = 1.0  # an older stamp of a video driver is not from the monotonic clock


class FileFrames:
    """
    Images of a folder or pattern, in order; index and rate give their time stamps.

    A file that is missing or not an image is skipped; later files keep their time stamps. Files
    that belong together with files `beside`, those of the other camera, have the stamps of these.
    """

    def __init__(
        self, where: str, rate_hz: float, start_ns: int = 0, beside: str | None = None
    ) -> None:
        self.name = where
        self._places = (where,) if beside is None else (where, beside)
        self._period_ns = round(1e9 / rate_hz)
        self._start_ns = start_ns
        self._left: deque[tuple[str, Path | None]] = deque()
        self._count = 0
        self._unread = ''

    def open(self) -> None:
        """See `FrameSource`."""
        self._left = deque((name, paths[0]) for name, paths in aligned_files(self._places))
        self._count = 0
        self._unread = ''

    def read(self, timeout_s: float) -> Frame | None:
        """See `FrameSource`; never waits."""
        if not self._left:
            return None
        name, path = self._left.popleft()
        self._count += 1
        try:
            if path is None:
                raise CameraError(f'{self.name} has no file {name}')
            image = read_image(path)
        except (CameraError, OSError) as error:
            self._unread = self._unread or f'; left out: {error}'
            return None
        return Frame(self._start_ns + (self._count - 1) * self._period_ns, image)

    def problem(self) -> str:
        """See `FrameSource`."""
        return '' if self._left else f'all files are read{self._unread}'

    def ended(self) -> bool:
        """See `FrameSource`."""
        return not self._left

    def close(self) -> None:
        """See `FrameSource`."""
        self._left.clear()


class OpenCvFrames(ThreadedFrames):
    """
    A V4L2 device (`/dev/video0`, `0`), GStreamer pipeline (`... ! appsink`), video file or URL.

    For a V4L2 camera, the stamp is that of its driver: the end of the exposure on the monotonic
    clock. For a video file, it is the position in the file; otherwise the time of arrival.
    """

    def __init__(
        self, target: str, clock: Clock = MONOTONIC, *, video_start_ns: int | None = None
    ) -> None:
        super().__init__(target, clock)
        self._video_start_ns = video_start_ns

    def open(self) -> None:
        """See `FrameSource`; a pipeline needs an OpenCV with GStreamer."""
        if _PIPELINE in self.name:
            cv2 = opencv()
            if not cv2.videoio_registry.hasBackend(cv2.CAP_GSTREAMER):
                raise CameraError(
                    f'{self.name}: this OpenCV ({cv2.__version__}) has no GStreamer, like those '
                    'that pip installs: build it with GStreamer (docs/cameras.md), or use '
                    '/dev/video0, rtsp://... or ros:TOPIC'
                )
        super().open()

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
            while len(self._frames) >= KEPT and not stop.is_set():
                self._arrival.wait(RETRY_S)

    def _opened(self, cv2: Any) -> Any:
        if _PIPELINE in self.name:
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


def open_source(
    text: str, rate_hz: float = 30.0, *, colour: bool = False, beside: str | None = None
) -> FrameSource:
    """
    Return the source named by a text, not opened yet.

    `0`, `/dev/video0`: V4L2; `a ! b ! appsink`: GStreamer; `http://...`: a network camera;
    `rtsp://...` and files of a video: OpenCV; a folder or pattern: image files at `rate_hz`,
    matched to those of the source `beside`, if this has files as well.

    Raises
    ------
    CameraError
        If the text names none of these.

    """
    if text.startswith(ROS):
        raise CameraError(
            f'{text}: images of a ROS topic are read by the node of the sensor only: save some as '
            'files (image_view), and name these'
        )
    if re.match(r'https?://', text):
        return MjpegFrames(text, colour=colour)
    if _PIPELINE in text or re.fullmatch(r'\d+|/dev/\S+', text) or re.match(r'\w+://', text):
        return OpenCvFrames(text)
    if re.search(r'\.(mp4|avi|mkv|mov|webm|mjpe?g)$', text, re.IGNORECASE):
        return OpenCvFrames(text, video_start_ns=0)
    if text.strip():
        both = beside is not None and not beside.startswith(ROS) and not is_live(beside)
        return FileFrames(text, rate_hz, beside=beside if both else None)
    raise CameraError(
        'source is empty: expected a device, pipeline, URL, video, folder or pattern'
    )


def is_live(text: str) -> bool:
    """Return whether a source is live, that is, anything except image files."""
    return not isinstance(open_source(text), FileFrames)
