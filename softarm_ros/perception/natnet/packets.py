"""Conversion of NatNet packets to frames with the library `natnet`, with additional checks."""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import natnet
from natnet.packet_buffer import PacketBuffer

from softarm_ros.perception.captured import (
    CapturedBody,
    CapturedFrame,
    CapturedPoint,
    CorruptFrameError,
    text_of_name,
)

CONNECT, SERVER_INFO = 0, 1
REQUEST_MODEL, MODEL, FRAME, KEEP_ALIVE = 4, 5, 7, 10
OLDEST, NEWEST = natnet.Version(3, 1), natnet.Version(4, 2, 255, 255)
PRECISION_STAMP = natnet.Version(4, 1)

_HEADER = struct.Struct('<HH')
_CLOCK = struct.Struct('<Q')
_CLOCK_AT = 4 + 256 + 4 + 4  # after header, name, version, version of NatNet
_TAIL = struct.Struct('<HI')  # flags of the frame, end mark
_MODELS_CHANGED = 0x02
_OCCLUDED = 0x01
Vector = tuple[float, float, float]


@dataclass(frozen=True)
class Server:
    """The server of the stream: name, version of the stream, ticks of its clock per second."""

    name: str
    version: natnet.Version
    ticks_per_s: float

    @property
    def supported(self) -> bool:
        """Whether this module can read the server's stream."""
        return bool(OLDEST <= self.version <= NEWEST)


@dataclass(frozen=True)
class Model:
    """
    Names of tracked bodies by id, and labels of markers by (id of the body, number).

    A marker has the label `body:number`. If the server names its markers, as since NatNet 4.0, it
    has `body:name` as well.
    """

    bodies: Mapping[int, str] = field(default_factory=dict)
    markers: Mapping[tuple[int, int], tuple[str, ...]] = field(default_factory=dict)


class _Buffer(PacketBuffer):
    """
    Rejects impossible counts and unterminated text, beyond which the library would read.

    Names need not be UTF-8, which the library expects.
    """

    def read_float32_array(self, count: int) -> tuple[float, ...]:
        if 4 * count > len(self.data) - self.pointer:
            raise CorruptFrameError(f'{count} numbers at {self.pointer} of {len(self.data)} bytes')
        return super().read_float32_array(count)

    def read_string(self, max_length: int | None = None, static_length: bool = False) -> str:
        limit = min(len(self.data), self.pointer + (256 if max_length is None else max_length))
        text, end, _ = bytes(self.data[self.pointer : limit]).partition(b'\0')
        if not end:
            raise CorruptFrameError(f'text without an end at {self.pointer}')
        self.pointer += max_length if static_length and max_length else len(text) + 1
        return text_of_name(text)


def request(message: int) -> bytes:
    """Return a request of a client to a server."""
    text = b'Ping\0' if message == CONNECT else b'\0'
    return _HEADER.pack(message, len(text)) + text


def kind_of(data: bytes) -> int:
    """Return the kind of a packet; raise CorruptFrameError if its length is wrong."""
    if len(data) < _HEADER.size:
        raise CorruptFrameError(f'a packet of {len(data)} bytes')
    kind, size = _HEADER.unpack_from(data)
    if size != len(data) - _HEADER.size:
        raise CorruptFrameError(f'{len(data) - _HEADER.size} bytes, {size} by its header')
    return int(kind)


def read_server(data: bytes) -> Server:
    """Return the server from its answer; raise CorruptFrameError for another packet."""
    info, _ = _parsed(natnet.ServerInfo, data, natnet.Version(0))
    try:
        (ticks,) = _CLOCK.unpack_from(data, _CLOCK_AT)
    except struct.error as error:
        raise CorruptFrameError(f'server information of {len(data)} bytes') from error
    if not 1_000 <= ticks <= 10_000_000_000:
        raise CorruptFrameError(f'clock of {ticks} ticks a second')
    return Server(info.application_name, info.nat_net_protocol_version, float(ticks))


def read_model(data: bytes, version: natnet.Version) -> Model:
    """Return the names of bodies and markers; raise CorruptFrameError for another packet."""
    described, _ = _parsed(natnet.DataDescriptions, data, version)
    bodies: dict[int, str] = {}
    markers: dict[tuple[int, int], tuple[str, ...]] = {}
    for body in described.rigid_bodies:
        if body.id_num in bodies:
            raise CorruptFrameError(f'two bodies of id {body.id_num}')
        bodies[body.id_num] = body.name
        for number, marker in enumerate(body.markers, start=1):
            # A name that is a number would be taken for another marker's.
            names = [marker.name] if marker.name and not marker.name.isdecimal() else []
            labels = (f'{body.name}:{label}' for label in (number, *names))
            markers[body.id_num, number] = tuple(labels)
    return Model(bodies, markers)


@dataclass(frozen=True)
class ReadFrame:
    """A frame, whether the model has changed since, and the ids of bodies without a name."""

    frame: CapturedFrame
    model_changed: bool
    unnamed: tuple[int, ...]


def read_frame(
    data: bytes,
    server: Server,
    model: Model,
    names: Collection[str],
    arrived_s: float,
    scale: float,
    up_axis: str,
) -> ReadFrame:
    """
    Return a frame in metres, z up; raise CorruptFrameError if the packet is not a frame.

    Impossible bodies and markers that are not the arm's are left out.

    Parameters
    ----------
    data
        The packet.
    server, model
        Server, and its names of bodies and markers.
    names
        Bodies and markers of the arm.
    arrived_s
        Arrival time of the packet [s].
    scale
        Metres per unit of the stream.
    up_axis
        Vertical axis of the stream, y or z.

    """
    seen, at = _parsed(natnet.DataFrame, data, server.version)
    # Since 4.1, eight bytes of time stamp precede the flags; the library reads them as flags.
    left = len(data) - at
    allowed = (4, 12) if server.version >= PRECISION_STAMP else (4,)
    if left not in allowed:
        raise CorruptFrameError(f'{left} bytes behind the frame (expected {allowed})')
    flags, end = _TAIL.unpack_from(data, len(data) - _TAIL.size)
    if end != 0:
        raise CorruptFrameError(f'end mark {end:#x}')
    suffix, bodies, lost, unnamed = seen.suffix, [], [], []
    for body in seen.rigid_bodies:
        name = model.bodies.get(body.id_num)
        if name is None:
            unnamed.append(body.id_num)
        elif body.tracking_valid:
            position, quaternion = _upright(body.pos, scale, up_axis), body.rot
            if up_axis == 'y':
                quaternion = _turned_upright(quaternion)
            bodies.append(CapturedBody(name, position, quaternion, scale * body.marker_error))
        else:
            lost.append(name)
    points = tuple(
        CapturedPoint(label, _upright(marker.pos, scale, up_axis))
        for marker in seen.labeled_markers
        if not marker.param & _OCCLUDED
        for label in _labels(marker, model)
    )
    hidden = [
        label
        for marker in seen.labeled_markers
        if marker.param & _OCCLUDED
        for label in _labels(marker, model)
    ]
    exposed = suffix.stamp_camera_mid_exposure or suffix.stamp_transmit
    frame = CapturedFrame(
        number=seen.prefix.frame_number,
        exposed_s=exposed / server.ticks_per_s,
        sent_s=suffix.stamp_transmit / server.ticks_per_s,
        arrived_s=arrived_s,
        bodies=tuple(bodies),
        points=points,
        lost=(*lost, *hidden),
    )
    sent = [body.name for body in bodies] + lost
    for name in names:
        if sent.count(name) > 1:
            raise CorruptFrameError(f'body {name} occurs twice')
    return ReadFrame(frame.of_arm(names), bool(flags & _MODELS_CHANGED), tuple(unnamed))


def _parsed(kind: Any, data: bytes, version: natnet.Version) -> tuple[Any, int]:
    """Return the object that the library reads from a packet, and its end in the packet."""
    buffer = _Buffer(data)
    buffer.pointer = _HEADER.size
    try:
        return kind.read_from_buffer(buffer, version), buffer.pointer
    except (
        struct.error,
        UnicodeDecodeError,
        ValueError,
        OverflowError,
        natnet.NatNetError,
    ) as error:
        raise CorruptFrameError(f'{kind.__name__}: {error}') from error


def _labels(marker: natnet.LabeledMarker, model: Model) -> tuple[str, ...]:
    """Return the labels of a marker of a body; the number of a marker that belongs to nothing."""
    if marker.model_id == 0:
        return (str(marker.marker_id),)
    # Skeletons, and bodies that the model lacks, number their markers from 1 too.
    return model.markers.get((marker.model_id, marker.marker_id), ())


def _upright(position: Vector, scale: float, up_axis: str) -> Vector:
    x, y, z = position
    return (
        (scale * x, scale * y, scale * z) if up_axis == 'z' else (scale * x, -scale * z, scale * y)
    )


def _turned_upright(quaternion: tuple[float, ...]) -> tuple[float, float, float, float]:
    """Return a quaternion rotated about x by 90 degrees, from y up to z up."""
    x, y, z, w = quaternion
    half = 0.5**0.5
    return (half * (x + w), half * (y - z), half * (z + y), half * (w - x))
