"""Write golden_vectors.json by an independent implementation, bit by bit from the standards.

It shares no code with firmware or driver; both are tested against its output. Run it only when
the protocol changes: python3 firmware/protocol/make_golden_vectors.py
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

BOOT_ID = 0xC0FFEE42


def crc_ccitt(data: bytes) -> int:
    """Return CRC-16/CCITT-FALSE: x^16 + x^12 + x^5 + 1, MSB first, start 0xFFFF."""
    crc = 0xFFFF
    for byte in data:
        for bit in range(7, -1, -1):
            feedback = (crc >> 15) ^ (byte >> bit & 1)
            crc = (crc << 1 & 0xFFFF) ^ (0x1021 if feedback else 0)
    return crc


def crc_modbus(data: bytes) -> int:
    """Return CRC-16/MODBUS: x^16 + x^15 + x^2 + 1, LSB first, start 0xFFFF."""
    crc = 0xFFFF
    for byte in data:
        for bit in range(8):
            feedback = (crc & 1) ^ (byte >> bit & 1)
            crc = (crc >> 1) ^ (0xA001 if feedback else 0)
    return crc


def cobs(data: bytes) -> bytes:
    """Return the consistent overhead byte stuffing of fewer than 254 bytes."""
    return b''.join(bytes([len(group) + 1]) + group for group in data.split(b'\0'))


def encoded(kind: int, sequence: int, payload: bytes, key: int) -> bytes:
    """Return an encoded frame with its delimiter."""
    body = bytes([kind, sequence]) + payload
    body += struct.pack('<H', crc_modbus(struct.pack('<I', key) + body))
    body += struct.pack('<H', crc_ccitt(body))
    return cobs(body) + b'\0'


def valves(**open_ms: int) -> list[int]:
    """Return the opening times [ms] of sixty outputs; argument names are o<number>."""
    return [open_ms.get(f'o{output}', 0) for output in range(60)]


# name, type, sequence, format of the payload, its fields
FRAMES: list[tuple[str, int, int, str, list[int]]] = [
    ('hello', 0x01, 0, '<B', [1]),
    ('ping', 0x02, 1, '<I', [0x01020304]),
    ('get_counters', 0x03, 2, '<', []),
    ('stop', 0x04, 3, '<', []),
    ('disarm', 0x05, 4, '<', []),
    ('arm', 0x10, 5, '<', []),
    ('reset', 0x11, 6, '<', []),
    ('stepper_config', 0x20, 7, '<BHIIii', [5, 679, 3395, 16977, -1528, 1867]),
    ('zero', 0x21, 8, '<B6i', [0x3F, 0, 0, 0, 0, 0, 0]),
    ('zero_two_motors', 0x21, 9, '<B6i', [0x12, 0, -100, 0, 0, 200, 0]),
    ('release', 0x22, 10, '<', []),
    ('targets', 0x23, 255, '<6i', [0, 1, -1, 1867, -1528, 1 << 28]),
    ('valve_config', 0x30, 0, '<HH', [500, 10]),
    ('open_none', 0x31, 1, '<H60H', [0, *valves()]),
    ('open_some', 0x31, 2, '<H60H', [65535, *valves(o0=1, o3=255, o58=500, o31=256)]),
    ('open_all_inflate', 0x31, 3, '<H60H', [513, *[500, 0] * 30]),
    ('keep', 0x32, 4, '<H', [513]),
    ('hello_reply', 0x81, 0, '<6BI', [1, 1, 0, 1, 6, 1, BOOT_ID]),
    ('pong', 0x82, 1, '<II', [0x01020304, 1_000_000]),
    (
        'counters',
        0x83,
        2,
        '<I6HIIH',
        [100_000, 1, 2, 3, 4, 5, 6, 70_000, 80_000, 9],
    ),
    ('ack', 0x84, 3, '<BBB', [0x23, 255, 6]),
    (
        'stepper_state',
        0x90,
        4,
        '<I6B6i',
        [4_294_967_295, 3, 0, 17, 0x3F, 0x3F, 0x01, 0, 1, -1, 1867, -1528, 1 << 20],
    ),
    ('valve_state', 0x91, 5, '<I3BHQ', [20_000, 4, 2, 9, 513, (1 << 59) | 5]),
    ('longest_payload', 0x7F, 128, '<128B', [1] * 128),
]


def invalid() -> list[dict[str, str]]:
    """Return invalid frames without delimiter, and the verdict of a receiver on each."""
    good = encoded(0x02, 1, struct.pack('<I', 0x01020304), 0)[:-1]
    flipped = bytes([*good[:4], good[4] ^ 0x10, *good[5:]])
    body = bytes([0x02, 1]) + struct.pack('<I', 0x01020304)
    wrong_seal = body + struct.pack('<H', crc_modbus(b'\x01\0\0\0' + body))
    wrong_seal += struct.pack('<H', crc_ccitt(wrong_seal))
    wrong_crc = cobs(body + struct.pack('<HH', crc_modbus(b'\0' * 4 + body), 0x1234))
    short = b'\x02\x01\x03'
    short += struct.pack('<H', crc_ccitt(short))
    return [
        {'name': name, 'encoded': data.hex(), 'verdict': verdict}
        for name, data, verdict in (
            ('one bit flipped', flipped, 'corrupt'),
            ('sealed for another key', cobs(wrong_seal), 'corrupt'),
            ('wrong CRC', wrong_crc, 'corrupt'),
            ('last byte missing', good[:-1], 'malformed'),
            ('code beyond the end', b'\x7f\x01\x02', 'malformed'),
            ('shorter than its checks', cobs(short), 'malformed'),
            ('longer than any frame', cobs(b'\x55' * 135), 'malformed'),
            ('much longer than any frame', b'\x01' * 1000, 'malformed'),
            ('a reply sealed with the boot id', encoded(0x84, 0, b'abc', BOOT_ID)[:-1], 'corrupt'),
            ('arm sealed with key 0', encoded(0x10, 5, b'', 0)[:-1], 'corrupt'),
        )
    ]


def main() -> None:
    """Write golden_vectors.json beside this file."""
    frames = []
    for name, kind, sequence, layout, fields in FRAMES:
        payload = struct.pack(layout, *fields)
        key = BOOT_ID if 0x10 <= kind < 0x80 else 0
        frames.append(
            {
                'name': name,
                'type': kind,
                'sequence': sequence,
                'key': key,
                'fields': fields,
                'payload': payload.hex(),
                'encoded': encoded(kind, sequence, payload, key).hex(),
            }
        )
    document: dict[str, Any] = {
        'boot_id': BOOT_ID,
        'crc': [
            {'data': data.hex(), 'ccitt_false': crc_ccitt(data), 'modbus': crc_modbus(data)}
            for data in (b'', b'\0', b'123456789', bytes(range(200)))
        ],
        'frames': frames,
        'invalid': invalid(),
    }
    path = Path(__file__).with_name('golden_vectors.json')
    path.write_text(json.dumps(document, indent=1) + '\n', encoding='utf-8')


if __name__ == '__main__':
    main()
