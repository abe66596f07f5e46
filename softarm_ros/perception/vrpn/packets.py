"""
The wire format of VRPN 7, as far as needed for poses; no socket.

Each end starts with a cookie of 24 bytes. A message is six big-endian integers (length of header
and content, seconds, microseconds, sender, type, an unused number) and its content, padded to a
multiple of eight bytes. Senders and types are numbers; each end announces their names.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from softarm_ros.perception.captured import CorruptFrameError, text_of_name

COOKIE_SIZE = 24
COOKIE = b'vrpn: ver. 07.35  0'.ljust(COOKIE_SIZE, b'\0')
_MAGIC = b'vrpn: ver. '
_MAJOR = b'07.'
HEADER = struct.Struct('>6i')
LONGEST = 4096  # bytes of a message; a pose has 88 bytes, a name at most a few hundred
SENDER, TYPE = -1, -2  # types of the messages that announce names
POSE = 'vrpn_Tracker Pos_Quat'
_POSE = struct.Struct('>2i7d')


class VersionError(ValueError):
    """The other end has another version of VRPN, or another protocol; the message says which."""


@dataclass(frozen=True)
class Message:
    """A message: time on the sender's clock [s], numbers of sender and type, content."""

    time_s: float
    sender: int
    type: int
    content: bytes


@dataclass(frozen=True)
class TrackerPose:
    """Number of the sensor, position (3,) in the unit of the server, quaternion x, y, z, w."""

    sensor: int
    position: tuple[float, float, float]
    quaternion: tuple[float, float, float, float]


class Decoder:
    """Splits the bytes of a connection into messages, after checking the cookie."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._greeted = False

    def feed(self, data: bytes) -> list[Message]:
        """
        Return the messages that are complete now.

        Raises
        ------
        VersionError
            If the other end does not use VRPN 7.
        CorruptFrameError
            If a message is impossible: the start of the next one is then unknown.

        """
        self._buffer += data
        if not self._greeted:
            if len(self._buffer) < COOKIE_SIZE:
                return []
            check_cookie(bytes(self._buffer[:COOKIE_SIZE]))
            del self._buffer[:COOKIE_SIZE]
            self._greeted = True
        found = []
        while len(self._buffer) >= HEADER.size:
            length, seconds, microseconds, sender, kind, _ = HEADER.unpack_from(self._buffer)
            if not HEADER.size <= length <= LONGEST:
                raise CorruptFrameError(
                    f'a message of {length} bytes (expected {HEADER.size} to {LONGEST})'
                )
            if not 0 <= microseconds < 1_000_000:
                raise CorruptFrameError(f'{microseconds} microseconds (expected 0 to 999999)')
            end = length + -length % 8
            if len(self._buffer) < end:
                break
            time_s = seconds + 1e-6 * microseconds
            content = bytes(self._buffer[HEADER.size : length])
            found.append(Message(time_s, sender, kind, content))
            del self._buffer[:end]
        return found


def check_cookie(cookie: bytes) -> None:
    """Raise VersionError unless the cookie is that of VRPN 7."""
    shown = cookie.rstrip(b'\0 ').decode('ascii', 'replace')
    if not cookie.startswith(_MAGIC):
        raise VersionError(f'it greets with {shown!r}, which is not VRPN')
    if not cookie.startswith(_MAGIC + _MAJOR):
        raise VersionError(f'{shown!r}: expected version 07')


def read_name(content: bytes) -> str:
    """Return the name of a sender or type; raise CorruptFrameError if truncated."""
    if len(content) < 5:
        raise CorruptFrameError(f'a name in {len(content)} bytes (expected 5 or more)')
    (length,) = struct.unpack_from('>i', content)
    text = content[4 : 4 + max(length, 0)].rstrip(b'\0')
    if not 1 < length <= len(content) - 4:
        raise CorruptFrameError(f'a name of {length} bytes in {len(content) - 4}')
    return text_of_name(text)


def read_pose(content: bytes) -> TrackerPose:
    """Return a pose with unchecked numbers; raise CorruptFrameError if size or sensor is wrong."""
    if len(content) != _POSE.size:
        raise CorruptFrameError(f'a pose in {len(content)} bytes (expected {_POSE.size})')
    sensor, _, *numbers = _POSE.unpack(content)
    if not 0 <= sensor < 10_000:
        raise CorruptFrameError(f'a pose of sensor {sensor} (expected 0 to 9999)')
    x, y, z, qx, qy, qz, qw = numbers
    return TrackerPose(sensor, (x, y, z), (qx, qy, qz, qw))
