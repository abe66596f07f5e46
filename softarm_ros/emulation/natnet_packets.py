"""NatNet packets as Motive sends them, versions 3.1 to 4.2."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from softarm_ros.perception.natnet.config import FEWEST_MARKERS, MARKER

SERVER_INFO, MODEL, FRAME = 1, 5, 7
Version = tuple[int, int]


@dataclass(frozen=True)
class SentBody:
    """A rigid body: id, position (3,) and quaternion x, y, z, w in the frame of the stream."""

    id: int
    position: Sequence[float]
    quaternion: Sequence[float]
    tracked: bool = True
    error_m: float = 2.0e-4


@dataclass(frozen=True)
class SentMarker:
    """A labelled marker: id of its body (0: none), its number, position (3,)."""

    body: int
    number: int
    position: Sequence[float]
    occluded: bool = False


def server_info(version: Version, ticks_per_s: int, data_port: int, name: str) -> bytes:
    """Return the answer to a connecting client."""
    return _packet(
        SERVER_INFO,
        name.encode().ljust(256, b'\0')
        + bytes((3, 1, 0, 0))  # version of Motive
        + bytes((*version, 0, 0))
        + struct.pack('<QHB4B', ticks_per_s, data_port, 0, 239, 255, 42, 99),
    )


def model(
    version: Version, bodies: Sequence[tuple[int, str]], markers: int = FEWEST_MARKERS
) -> bytes:
    """Return the model description: bodies, a marker set for each, and a camera."""
    sets = [(0, _text('all') + _u32(0))]
    for identity, name in bodies:
        names = b''.join(_text(f'{MARKER}{k + 1}') for k in range(markers))
        sets.append((0, _text(name) + _u32(markers) + names))
        described = _text(name) + struct.pack('<ii3f', identity, -1, 0.0, 0.0, 0.0)
        if version >= (4, 2):
            described += struct.pack('<4f', 0.0, 0.0, 0.0, 1.0)
        places = struct.pack(f'<{3 * markers}f', *(0.01 * k for k in range(3 * markers)))
        described += _u32(markers) + places + struct.pack(f'<{markers}i', *([0] * markers))
        sets.append((1, described + (names if version >= (4, 0) else b'')))
    sets.append((5, _text('Prime 13 #1') + struct.pack('<7f', 1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0)))
    content = _u32(len(sets))
    for kind, described in sets:
        size = _u32(len(described)) if version >= (4, 1) else b''
        content += _u32(kind) + size + described
    return _packet(MODEL, content)


def frame(
    version: Version,
    number: int,
    bodies: Sequence[SentBody],
    markers: Sequence[SentMarker],
    *,
    exposed_ticks: int,
    sent_ticks: int,
    time_s: float,
    models_changed: bool = False,
) -> bytes:
    """Return a frame of data; `exposed_ticks` and `sent_ticks` count the server's clock."""
    rigid = b''.join(
        struct.pack(
            '<i7ffH', body.id, *body.position, *body.quaternion, body.error_m, int(body.tracked)
        )
        for body in bodies
    )
    labelled = b''.join(
        struct.pack(
            '<I3ffHf',
            marker.body << 16 | marker.number,
            *marker.position,
            0.014,
            0x0A | int(marker.occluded),
            1.0e-4,
        )
        for marker in markers
    )
    all_markers = _text('all') + _u32(len(markers))
    all_markers += b''.join(struct.pack('<3f', *marker.position) for marker in markers)
    content = _u32(number)
    groups = [(1, all_markers), (0, b''), (len(bodies), rigid), (0, b'')]  # sets, other, skeletons
    if version >= (4, 1):
        groups.append((0, b''))  # assets
    groups += [(len(markers), labelled), (0, b''), (0, b'')]  # force plates, devices
    for count, group in groups:
        content += _u32(count) + (_u32(len(group)) if version >= (4, 1) else b'') + group
    content += struct.pack(
        '<IIdQQQ', 0, 0, time_s, exposed_ticks, max(exposed_ticks, sent_ticks - 1000), sent_ticks
    )
    if version >= (4, 1):
        content += struct.pack('<II', 0, 0)  # stamp of the precision time protocol: none
    return _packet(FRAME, content + struct.pack('<HI', 2 if models_changed else 0, 0))


def _packet(kind: int, content: bytes) -> bytes:
    return struct.pack('<HH', kind, len(content)) + content


def _text(text: str) -> bytes:
    return text.encode() + b'\0'


def _u32(number: int) -> bytes:
    return struct.pack('<I', number)
