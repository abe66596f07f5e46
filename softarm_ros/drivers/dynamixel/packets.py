"""
Packets of the Dynamixel protocol 2.0: header, stuffing, CRC-16; bytes only, no I/O.

``FF FF FD 00, id, length (2), instruction, parameters, CRC (2)``, little endian. In instruction
and parameters, one more FD is inserted after FF FF FD, so that no header occurs there. The CRC has
the polynomial 0x8005, most significant bit first, initial value 0.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from fastcrc import crc16

HEADER = b'\xff\xff\xfd\x00'
BROADCAST = 0xFE
MAX_ID = 0xFC
MAX_LENGTH = 1024  # bytes after the length field
_LIKE_A_HEADER, _STUFFED = b'\xff\xff\xfd', b'\xff\xff\xfd\xfd'
_BEFORE_BODY = len(HEADER) + 3
_SHORTEST = 3  # instruction, CRC


class Instruction(IntEnum):
    """Instruction of a packet; STATUS is the answer."""

    PING = 0x01
    READ = 0x02
    WRITE = 0x03
    REBOOT = 0x08
    STATUS = 0x55
    SYNC_READ = 0x82
    SYNC_WRITE = 0x83


@dataclass(frozen=True)
class Packet:
    """One packet: `id` 0..252 or BROADCAST, `instruction` 0..255."""

    id: int
    instruction: int
    parameters: bytes = b''


def encode(packet: Packet) -> bytes:
    """Return the bytes of a packet on the line."""
    body = bytes((packet.instruction,)) + packet.parameters
    body = body.replace(_LIKE_A_HEADER, _STUFFED)
    head = HEADER + struct.pack('<BH', packet.id, len(body) + 2)
    return head + body + struct.pack('<H', crc16.umts(head + body))


class PacketReader:
    """
    Finds packets in a stream of bytes that may have other bytes between them.

    Attributes
    ----------
    corrupt : int
        Number of packets with a wrong CRC or an impossible length.
    skipped : int
        Number of bytes that belong to no packet.

    """

    def __init__(self) -> None:
        self.corrupt = self.skipped = 0
        self._come = bytearray()

    def clear(self) -> None:
        """Discard an incomplete packet."""
        self.skipped += len(self._come)
        self._come.clear()

    def feed(self, data: bytes) -> list[Packet]:
        """Add received bytes; return the packets that are complete now."""
        self._come += data
        found: list[Packet] = []
        while self._at_a_header():
            length = int.from_bytes(self._come[5:7], 'little')
            if not _SHORTEST <= length <= MAX_LENGTH:
                self._refuse()
                continue
            end = _BEFORE_BODY + length
            if len(self._come) < end:
                break
            whole = bytes(self._come[:end])
            if crc16.umts(whole[:-2]) != int.from_bytes(whole[-2:], 'little'):
                self._refuse()
                continue
            del self._come[:end]
            body = whole[_BEFORE_BODY:-2].replace(_STUFFED, _LIKE_A_HEADER)
            found.append(Packet(whole[4], body[0], body[1:]))
        return found

    def _at_a_header(self) -> bool:
        """Drop bytes before a header; return whether a header, id and length are present."""
        at = self._come.find(HEADER)
        if at < 0:  # the last bytes may begin a header
            at = max(len(self._come) - len(HEADER) + 1, 0)
        self.skipped += at
        del self._come[:at]
        return len(self._come) >= _BEFORE_BODY and self._come.startswith(HEADER)

    def _refuse(self) -> None:
        """Count a corrupt packet and drop its header, so that the next one is found."""
        self.corrupt += 1
        self.skipped += len(HEADER)
        del self._come[: len(HEADER)]
