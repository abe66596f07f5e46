"""
Reads the records of an MCAP file, even if it is cut off or damaged.

A record with a wrong length makes everything after it unreadable in sequence. Reading then resumes
at the next compressed chunk, which is found by its compression name.
"""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from softarm_ros.nodes.bag_writer import BagError

_MAGIC = b'\x89MCAP0\r\n'
_HEADING = struct.Struct('<BQ')  # opcode, length of the rest of the record
_TIMES = struct.Struct('<QQ')  # a chunk begins with its first and last message time [ns]
_CHUNK, _DATA_END = 0x06, 0x0F  # the latter is the last opcode of the format
_PRIVATE = 0x80  # opcodes from here on are private to other programs
_COMPRESSION = re.compile(rb'\x04\0\0\0zstd|\x03\0\0\0lz4')
_COMPRESSION_AT = 37  # bytes before it: opcode, length, times, size, checksum
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Damaged:
    """An unreadable part of a file, with the times [ns] of its first and last message if known."""

    first_ns: int
    last_ns: int


def is_mcap(path: Path) -> bool:
    """Return whether a file begins as an MCAP file does and has more than that."""
    with path.open('rb') as file:
        return file.read(len(_MAGIC)) == _MAGIC and bool(file.read(1))


def records_of(path: Path, *, in_chunks: bool = True) -> Iterator[Any]:
    """
    Yield the records of a file to its readable end; with `in_chunks`, also those in chunks.

    With `in_chunks`, each unreadable part yields a `Damaged`.

    Raises
    ------
    BagError
        If it is no MCAP file, or the package mcap is missing.

    """
    with path.open('rb') as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise BagError(f'{path}: not an MCAP file')
        end = file.seek(0, io.SEEK_END)
        file.seek(max(end - len(_MAGIC), len(_MAGIC)))
        completed = file.read() == _MAGIC
        last_ns, ended = 0, False
        at: int | None = len(_MAGIC)
        while at is not None:
            unread = at  # from here on the file may hold chunks that are not read yet
            for opcode, start, data in _in_order(file, at, end):
                if opcode != _CHUNK:
                    yield from _parsed(data)
                elif in_chunks:
                    found = _unpacked(data)
                    yield from found
                    whole = not any(isinstance(record, Damaged) for record in found)
                    unread, last_ns = start + (len(data) if whole else 1), _times(data)[1]
                else:
                    unread = start + 1
                ended |= opcode == _DATA_END  # the rest of the file repeats records already read
            if ended:
                return
            at = _next_chunk(file, unread, end)
            if in_chunks and at is not None:
                file.seek(at + _HEADING.size)
                next_ns, _ = _TIMES.unpack(file.read(_TIMES.size))
                yield Damaged(last_ns or next_ns, next_ns)
            elif in_chunks and completed:
                yield Damaged(last_ns, last_ns)


def _in_order(file: BinaryIO, at: int, end: int) -> Iterator[tuple[int, int, bytes]]:
    """Yield opcode, offset and bytes of consecutive records, until there is no valid record."""
    while (size := _size(file, at, end)) is not None:
        file.seek(at)
        data = file.read(size)
        yield data[0], at, data
        at += size


def _size(file: BinaryIO, at: int, end: int) -> int | None:
    """Return the size of the record at an offset, heading included; None if it is not valid."""
    file.seek(at)
    heading = file.read(_HEADING.size)
    if len(heading) < _HEADING.size:
        return None
    opcode, length = _HEADING.unpack(heading)
    known = 0 < opcode <= _DATA_END or opcode >= _PRIVATE
    size = _HEADING.size + int(length)
    return size if known and at + size <= end else None


def _parsed(data: bytes) -> list[Any]:
    """Return the record in a list, or an empty list if its bytes are damaged."""
    StreamReader, _ = _mcap()
    try:
        return [next(StreamReader(io.BytesIO(data), skip_magic=True, emit_chunks=True).records)]
    except Exception:  # decoders raise errors of their own on damaged bytes
        return []


def _unpacked(chunk: bytes) -> list[Any]:
    """Return the records in a chunk; a `Damaged` in their place if it cannot be read."""
    _, breakup_chunk = _mcap()
    try:
        (found,) = _parsed(chunk)
        return list(breakup_chunk(found, validate_crc=True))
    except Exception:  # as in `_parsed`
        return [Damaged(*_times(chunk))]


def _times(chunk: bytes) -> tuple[int, int]:
    first, last = _TIMES.unpack_from(
        chunk.ljust(_HEADING.size + _TIMES.size, b'\0'), _HEADING.size
    )
    return int(first), int(last)


def _next_chunk(file: BinaryIO, at: int, end: int) -> int | None:
    """Return the offset of the next compressed chunk, or None if there is none."""
    while at < end:
        file.seek(at)
        block = file.read(_BLOCK + _COMPRESSION_AT)
        for found in _COMPRESSION.finditer(block):
            start = at + found.start() - _COMPRESSION_AT
            file.seek(max(start, 0))
            if start >= at and file.read(1)[0] == _CHUNK and _size(file, start, end) is not None:
                return start
        at += _BLOCK
    return None


def _mcap() -> tuple[Any, Any]:
    try:
        from mcap.stream_reader import StreamReader, breakup_chunk
    except ImportError as error:
        raise BagError(
            f"this needs the package mcap ({error}): pip install 'softarm_ros[bag]'"
        ) from None
    return StreamReader, breakup_chunk
