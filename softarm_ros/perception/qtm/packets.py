"""Packets of QTM's RT protocol: own framing; the library `qtm_rt` decodes the contents."""

from __future__ import annotations

import math
import struct
import xml.etree.ElementTree as ElementTree
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from qtm_rt.packet import QRTComponentType, QRTPacket

from softarm_ros.perception.captured import (
    CapturedBody,
    CapturedFrame,
    CapturedPoint,
    CorruptFrameError,
)

ERROR, COMMAND, XML, DATA, NO_MORE_DATA, EVENT = 0, 1, 2, 3, 4, 6
HEADER = struct.Struct('<II')
LARGEST = 4_000_000
_COUNT = struct.Struct('<I')
_COMPONENT = struct.Struct('<II')
_FRAME = struct.Struct('<qII')
_6D_SIZE, _3D_SIZE = 4 * (3 + 9 + 1), 4 * 3
_MM = 1.0e-3
_ROTATION_ERROR = 1.0e-2


@dataclass(frozen=True)
class Names:
    """Names of tracked bodies and points, in the order of QTM's packets."""

    bodies: tuple[str, ...]
    points: tuple[str, ...]


class Framing:
    """Splits a stream of bytes into packets."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """
        Yield kind and content of each complete packet.

        Raises
        ------
        CorruptFrameError
            If a length is impossible; the packets after it cannot be found.

        """
        self._bytes += data
        while len(self._bytes) >= HEADER.size:
            size, kind = HEADER.unpack_from(self._bytes)
            if not HEADER.size <= size <= LARGEST:
                raise CorruptFrameError(f'a packet of {size} bytes')
            if len(self._bytes) < size:
                return
            content = bytes(self._bytes[HEADER.size : size])
            del self._bytes[:size]
            yield kind, content


def command(text: str) -> bytes:
    """Return a command to QTM."""
    content = text.encode() + b'\0'
    return HEADER.pack(HEADER.size + len(content), COMMAND) + content


def text_of(content: bytes) -> str:
    """Return the text of an answer or error."""
    return content.rstrip(b'\0').decode('utf-8', 'replace')


def read_names(content: bytes) -> Names:
    """Return the names in QTM's parameters; raise CorruptFrameError if they are not XML."""
    try:
        root = ElementTree.fromstring(text_of(content))
    except ElementTree.ParseError as error:
        raise CorruptFrameError(f'parameters of QTM: {error}') from error
    return Names(
        tuple((name.text or '').strip() for name in root.iterfind('./The_6D/Body/Name')),
        tuple((name.text or '').strip() for name in root.iterfind('./The_3D/Label/Name')),
    )


def read_frame(
    content: bytes, names: Names, used: Collection[str], arrived_s: float, latency_s: float
) -> CapturedFrame:
    """
    Return a frame in metres; raise CorruptFrameError if the content is not a frame.

    Impossible bodies and markers that are not the arm's, whose names are `used`, are left out.
    """
    _check(content)
    try:
        packet = QRTPacket(content)
        bodies = packet.get_6d_residual()
        points = packet.get_3d_markers()
    except (struct.error, ValueError, KeyError) as error:
        raise CorruptFrameError(f'frame: {error}') from error
    if bodies is None:
        raise CorruptFrameError('a frame without bodies')
    for kind, each in (('bodies', names.bodies), ('labels', names.points)):
        for name in used:
            if each.count(name) > 1:
                raise CorruptFrameError(f'two {kind} have the name {name}: rename one in QTM')
    if len(bodies[1]) != len(names.bodies):
        raise CorruptFrameError(f'{len(bodies[1])} bodies (expected {len(names.bodies)})')
    seen, lost = [], []
    for name, (position, rotation, residual) in zip(names.bodies, bodies[1]):
        where = (_MM * position.x, _MM * position.y, _MM * position.z)
        if any(map(math.isnan, (*where, *rotation.matrix))):
            lost.append(name)
            continue
        try:
            turn = _quaternion(name, rotation.matrix)
        except CorruptFrameError:
            if name in used:
                raise
            lost.append(name)
            continue
        seen.append(CapturedBody(name, where, turn, _MM * residual.residual))
    markers = []
    if points is not None and names.points:
        if len(points[1]) != len(names.points):
            raise CorruptFrameError(f'{len(points[1])} markers (expected {len(names.points)})')
        for name, point in zip(names.points, points[1]):
            if math.isnan(point.x):
                lost.append(name)
            else:
                markers.append(CapturedPoint(name, (_MM * point.x, _MM * point.y, _MM * point.z)))
    time_s = 1.0e-6 * packet.timestamp
    frame = CapturedFrame(
        packet.framenumber,
        time_s,
        time_s + latency_s,
        arrived_s,
        tuple(seen),
        tuple(markers),
        tuple(lost),
    )
    return frame.of_arm(used)


def _check(content: bytes) -> None:
    """Check, unlike the library, that component and packet sizes are consistent."""
    if len(content) < _FRAME.size:
        raise CorruptFrameError(f'a frame of {len(content)} bytes')
    _, _, count = _FRAME.unpack_from(content)
    at, seen = _FRAME.size, set()
    for _ in range(min(count, 64)):
        if at + _COMPONENT.size > len(content):
            raise CorruptFrameError(f'component at {at} of {len(content)} bytes')
        size, kind = _COMPONENT.unpack_from(content, at)
        if size < _COMPONENT.size or kind in seen:
            raise CorruptFrameError(f'component {kind} of {size} bytes at {at}')
        each = {
            QRTComponentType.Component6dRes.value: _6D_SIZE,
            QRTComponentType.Component3d.value: _3D_SIZE,
        }.get(kind)
        if each is not None and at + 16 <= len(content):
            (members,) = _COUNT.unpack_from(content, at + _COMPONENT.size)
            if size != _COMPONENT.size + 8 + members * each:
                raise CorruptFrameError(f'component {kind}: {members} members in {size} bytes')
        seen.add(kind)
        at += size
    if count > 64 or at != len(content):
        raise CorruptFrameError(f'{count} components of {at} bytes in {len(content)} bytes')


def _quaternion(name: str, matrix: tuple[float, ...]) -> tuple[float, float, float, float]:
    """Return x, y, z, w of a matrix (9,) by columns; raise CorruptFrameError if no rotation."""
    a, b, c = matrix[0:3], matrix[3:6], matrix[6:9]
    products = [
        sum(p * q for p, q in zip(u, v)) - (1.0 if u is v else 0.0)
        for u, v in ((a, a), (b, b), (c, c), (a, b), (b, c), (a, c))
    ]
    volume = (
        a[0] * (b[1] * c[2] - b[2] * c[1])
        + a[1] * (b[2] * c[0] - b[0] * c[2])
        + a[2] * (b[0] * c[1] - b[1] * c[0])
    )
    if not (max(map(abs, products)) <= _ROTATION_ERROR and volume > 0.0):
        raise CorruptFrameError(
            f'{name}: its matrix is not a rotation (limit {_ROTATION_ERROR:g})'
        )
    # Use the row of the largest component, to avoid division by a small number.
    trace = a[0] + b[1] + c[2]
    squares = (1 + 2 * a[0] - trace, 1 + 2 * b[1] - trace, 1 + 2 * c[2] - trace, 1 + trace)
    k = squares.index(max(squares))
    x = (squares[0], a[1] + b[0], a[2] + c[0], b[2] - c[1])
    y = (a[1] + b[0], squares[1], b[2] + c[1], c[0] - a[2])
    z = (a[2] + c[0], b[2] + c[1], squares[2], a[1] - b[0])
    w = (b[2] - c[1], c[0] - a[2], a[1] - b[0], squares[3])
    row = (x, y, z, w)[k]
    norm = math.sqrt(sum(part * part for part in row))
    return (row[0] / norm, row[1] / norm, row[2] / norm, row[3] / norm)
