"""Frames of the serial devices: COBS, CRC-16/CCITT-FALSE and a seal; bytes only, no I/O.

A frame on the line is ``COBS(type, sequence, payload, seal, CRC) 0x00``; docs/protocol.md gives
every byte. The seal is CRC-16/MODBUS over a 32-bit key and the frame. The key is the device's boot
id for frames that may cause motion, else 0. So a device rejects frames for another device, or for
itself before a reset, and a corrupt frame would have to pass two different CRCs.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from cobs import cobs
from fastcrc import crc16

MAX_PAYLOAD = 128
OVERHEAD = 6  # type, sequence, seal, CRC
MAX_RAW = MAX_PAYLOAD + OVERHEAD
MAX_ENCODED = MAX_RAW + 2  # one COBS byte, delimiter
DELIMITER = b'\0'

KeyOf = Callable[[int], int]


@dataclass(frozen=True)
class Frame:
    """One frame: `type` and `sequence` 0..255, payload up to MAX_PAYLOAD bytes."""

    type: int
    sequence: int
    payload: bytes = b''

    def __post_init__(self) -> None:
        for name in ('type', 'sequence'):
            if not 0 <= getattr(self, name) <= 255:
                raise ValueError(f'{name}: {getattr(self, name)} is not within 0..255')
        if len(self.payload) > MAX_PAYLOAD:
            raise ValueError(f'payload: {len(self.payload)} bytes are more than {MAX_PAYLOAD}')


def _seal(key: int, body: bytes) -> int:
    return crc16.modbus(struct.pack('<I', key) + body)


def encode(frame: Frame, key: int = 0) -> bytes:
    """Return the bytes of a frame on the line, delimiter included."""
    body = bytes((frame.type, frame.sequence)) + frame.payload
    body += struct.pack('<H', _seal(key, body))
    body += struct.pack('<H', crc16.ibm_3740(body))  # the catalogue's name of CCITT-FALSE
    return cobs.encode(body) + DELIMITER


class FrameError(ValueError):
    """The bytes between two delimiters are not a valid frame."""


class MalformedError(FrameError):
    """The bytes are not valid COBS, or too long or too short."""


class CorruptError(FrameError):
    """CRC or seal is wrong."""


def decode(encoded: bytes, key_of: KeyOf = lambda _: 0) -> Frame:
    """Return the frame in `encoded`, which has no delimiter.

    `key_of` returns the key that seals frames of a type.

    Raises:
        MalformedError: if `encoded` is not valid COBS or its length is impossible.
        CorruptError: if CRC or seal is wrong.
    """
    if len(encoded) >= MAX_ENCODED:
        raise MalformedError(f'{len(encoded)} bytes without a delimiter')
    try:
        raw = cobs.decode(encoded)
    except cobs.DecodeError as error:
        raise MalformedError(str(error)) from error
    if not OVERHEAD <= len(raw) <= MAX_RAW:
        raise MalformedError(f'{len(raw)} bytes are no frame')
    body, seal, crc = raw[:-4], *struct.unpack('<HH', raw[-4:])
    if crc != crc16.ibm_3740(raw[:-2]):
        raise CorruptError(f'CRC 0x{crc:04x} is wrong')
    if seal != _seal(key_of(body[0]), body):
        raise CorruptError(f'seal 0x{seal:04x} of a frame of type 0x{body[0]:02x} is wrong')
    return Frame(body[0], body[1], bytes(body[2:]))


@dataclass
class ReceiveCounters:
    """Counts of received frames since the start."""

    frames: int = 0
    lost: int = 0  # gaps in the sequence
    malformed: int = 0
    corrupt: int = 0


@dataclass
class FrameReceiver:
    """Splits a stream of bytes, received in arbitrary pieces, into frames."""

    key_of: KeyOf = lambda _: 0
    counters: ReceiveCounters = field(default_factory=ReceiveCounters)
    _bytes: bytearray = field(default_factory=bytearray)
    _overflow: bool = False
    _sequence: int | None = None

    def feed(self, piece: bytes) -> list[Frame]:
        """Return the valid frames that `piece` completes; count invalid ones."""
        frames: list[Frame] = []
        parts = piece.split(DELIMITER)
        for index, part in enumerate(parts):
            self._keep(part)
            if index < len(parts) - 1:
                frame = self._finish()
                if frame is not None:
                    frames.append(frame)
        return frames

    def reset(self) -> None:
        """Discard a partial frame and the sequence, as after a reconnect; keep the counters."""
        self._bytes.clear()
        self._overflow = False
        self._sequence = None

    def _keep(self, part: bytes) -> None:
        if len(self._bytes) + len(part) > MAX_ENCODED:
            self._overflow = True
            self._bytes.clear()  # noise without a delimiter must not fill the memory
        elif not self._overflow:
            self._bytes += part

    def _finish(self) -> Frame | None:
        encoded, overflow = bytes(self._bytes), self._overflow
        self._bytes.clear()
        self._overflow = False
        if overflow:
            self.counters.malformed += 1
            return None
        if not encoded:
            return None
        try:
            frame = decode(encoded, self.key_of)
        except MalformedError:
            self.counters.malformed += 1
            return None
        except CorruptError:
            self.counters.corrupt += 1
            return None
        self.counters.frames += 1
        if self._sequence is not None:
            step = (frame.sequence - self._sequence) & 0xFF
            if 1 <= step < 128:
                self.counters.lost += step - 1
        self._sequence = frame.sequence
        return frame
