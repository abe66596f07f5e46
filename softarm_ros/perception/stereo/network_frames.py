"""Network cameras: streams of images over HTTP."""

from __future__ import annotations

import contextlib
import re
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from softarm_ros.clock import MONOTONIC, Clock
from softarm_ros.perception.stereo.camera import CameraError
from softarm_ros.perception.stereo.frame_source import Frame, ThreadedFrames
from softarm_ros.perception.stereo.images import Image, decoded, opencv

_LONGEST_LINE = 1024
_LARGEST_IMAGE = 64 << 20
_PGM = re.compile(rb'P5\s+(\d{1,5})\s+(\d{1,5})\s+255\s')


class MjpegFrames(ThreadedFrames):
    """
    A network camera that sends JPEG images, or uncompressed grey ones (PGM), over HTTP
    (multipart/x-mixed-replace).

    The stamp is the header X-Timestamp [s since 1970] of ustreamer and mjpg-streamer: the time of
    exposure on the clock of that computer, which has to be synchronised with this one (NTP,
    chrony). Without the header, the stamp is the time of arrival. Images are decoded to grey, with
    `colour` to blue-green-red.
    """

    def __init__(
        self, url: str, clock: Clock = MONOTONIC, *, timeout_s: float = 2.0, colour: bool = False
    ) -> None:
        super().__init__(url, clock)
        self._timeout_s = timeout_s
        self._colour = colour
        self._socket: socket.socket | None = None

    def close(self) -> None:
        """See `FrameSource`; does not wait for a pending image."""
        self._stop.set()
        link = self._socket
        if link is not None:
            with contextlib.suppress(OSError):  # closed already
                link.shutdown(socket.SHUT_RDWR)
        super().close()

    def _frames_of_device(self, stop: Any) -> Iterator[Frame]:
        parts = urlsplit(self.name)
        kind: Callable[..., HTTPConnection] = (
            HTTPSConnection if parts.scheme == 'https' else HTTPConnection
        )
        link = kind(parts.hostname or '', parts.port, timeout=self._timeout_s)
        try:
            link.request('GET', (parts.path or '/') + (f'?{parts.query}' if parts.query else ''))
            self._socket = link.sock
            answer = link.getresponse()
            kind_of_answer = answer.getheader('Content-Type', '')
            if answer.status != 200 or not kind_of_answer.startswith('multipart/'):
                raise CameraError(
                    f'answered {answer.status} {kind_of_answer}: expected a stream, '
                    'multipart/x-mixed-replace'
                )
            unreadable = ''
            while not stop.is_set():
                header = _part_header(answer, unreadable)
                data = _part_body(answer, header)
                stamp_ns = _stamp_ns(header)
                image = _decoded(data, self._colour)
                if image is None:  # damaged in transit, or of an unknown type
                    self._why = unreadable = f'{len(data)} bytes that are no image'
                    continue
                unreadable = ''
                yield Frame(stamp_ns, image)
        finally:
            self._socket = None
            link.close()


def _part_header(answer: HTTPResponse, before: str) -> dict[str, str]:
    """Return the header of the next part, with names in lower case; `before` was unreadable."""
    # Usually, the whole header has arrived: one reading instead of one for each line.
    arrived = answer.peek(_LONGEST_LINE)
    blank = len(arrived) - len(arrived.lstrip(b'\r\n'))
    end = arrived.find(b'\n\r\n', blank)
    if end > 0 and arrived.find(b'\n\n', blank, end) < 0:
        found = dict(_fields(answer.read(end + 3).split(b'\n')))
        if found:
            return found
    header: dict[str, str] = {}
    while True:
        line = answer.readline(_LONGEST_LINE)
        if not line:
            raise CameraError('the stream ended' + (f' after {before}' if before else ''))
        if line.strip():
            header.update(_fields([line]))
        elif header:
            return header


def _fields(lines: Iterable[bytes]) -> Iterator[tuple[str, str]]:
    """Return names, in lower case, and values of the lines of a header that have both."""
    for line in lines:
        name, colon, value = line.decode('latin-1').partition(':')
        if colon:
            yield name.strip().lower(), value.strip()


def _part_body(answer: HTTPResponse, header: dict[str, str]) -> NDArray[np.uint8]:
    length = header.get('content-length', '')
    if not length.isdigit() or not 0 < int(length) <= _LARGEST_IMAGE:
        raise CameraError(f'part with Content-Length {length!r}: expected 1 to {_LARGEST_IMAGE}')
    data = np.empty(int(length), dtype=np.uint8)
    left = data.data
    while left:
        count = answer.readinto(left)
        if not count:
            raise CameraError('the stream ended within an image')
        left = left[count:]
    return data


def _decoded(data: NDArray[np.uint8], colour: bool) -> Image | None:
    """Return the decoded image; None if the data are damaged."""
    grey = None if colour else _PGM.match(data.data)
    if grey is not None:  # uncompressed: no copy
        width, height = int(grey[1]), int(grey[2])
        if len(data) - grey.end() < width * height:
            return None
        return data[grey.end() : grey.end() + width * height].reshape(height, width)
    cv2 = opencv()
    mode = cv2.IMREAD_COLOR if colour else cv2.IMREAD_GRAYSCALE
    return decoded(data, mode)


def _stamp_ns(header: dict[str, str]) -> int:
    text = header.get('x-timestamp', '')
    if not re.fullmatch(r'\d{9,11}(\.\d+)?', text):
        return time.time_ns()
    seconds, _, fraction = text.partition('.')
    return int(seconds) * 1_000_000_000 + int(fraction[:9].ljust(9, '0'))
