"""
Reads bags that were never completed, and writes their index.

A recorder that is killed leaves a file of whole chunks without index and `metadata.yaml`, which
rosbag2 and rosbags refuse. Everything up to its last flush is there.
"""

from __future__ import annotations

import shutil
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from softarm_ros.nodes.bag_writer import ABOUT, BagError, BagWriter, check_bag_folder

_MAGIC = 8  # bytes


@dataclass(frozen=True)
class Repaired:
    """What was saved: the new bag, its messages, topics left out since their type is unknown."""

    folder: Path
    messages: int
    left_out: tuple[str, ...]


def find_mcap(bag: Path) -> Path:
    """Return the one MCAP file of a bag, given by its folder or the file itself."""
    if bag.is_file():
        return bag
    found = sorted(bag.glob('*.mcap'))
    if len(found) != 1:
        raise BagError(f'{bag}: {len(found)} MCAP files; expected a bag folder with one')
    return found[0]


def about_of(bag: Path) -> dict[str, str]:
    """Return what the recorder stated about a bag; empty where another program recorded it."""
    for record in _records(find_mcap(bag)):
        kind = type(record).__name__
        if kind == 'Metadata' and record.name == ABOUT:
            return dict(record.metadata)
        if kind in ('Schema', 'Channel', 'Message'):
            break  # it stands before all of them
    return {}


def repair(bag: Path, folder: Path) -> Repaired:
    """
    Copy every readable message of a bag into a new one with an index.

    Raises
    ------
    BagError
        If the bag has no MCAP file, it is not one of ROS 2, or `folder` cannot be written; then
        nothing is left of that.

    """
    mcap, about = find_mcap(bag), about_of(bag)
    check_bag_folder(folder)
    try:
        return _copied(mcap, folder, about)
    except OSError as error:
        raise BagError(
            f'bag folder {folder} cannot be written: {error.strerror}; the damaged bag, {bag}, is '
            'as it was'
        ) from None


def _copied(mcap: Path, folder: Path, about: Mapping[str, str]) -> Repaired:
    types: dict[int, str] = {}
    topics: dict[int, str] = {}
    left_out: set[str] = set()
    try:
        writer = BagWriter(folder, about)
        for record in _records(mcap):
            kind = type(record).__name__
            if kind == 'Schema':
                types[record.id] = record.name
            elif kind == 'Channel' and record.id not in topics:
                topics[record.id] = record.topic
                if not writer.copy_topic(
                    record.topic, types[record.schema_id], _profiles(record.metadata)
                ):
                    left_out.add(record.topic)
            elif kind == 'Message' and topics[record.channel_id] not in left_out:
                writer.write(topics[record.channel_id], record.log_time, record.data)
        writer.close()
    except BaseException:  # Ctrl-C as well: half a bag would stand in the way of the next attempt
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Repaired(folder, writer.messages, tuple(sorted(left_out)))


def _profiles(metadata: dict[str, str]) -> list[Any]:
    from rosbags.rosbag2.metadata import parse_qos

    return list(parse_qos(metadata.get('offered_qos_profiles', '')))


def _records(path: Path) -> Iterator[Any]:
    """Yield the records of a file, those in chunks too, up to where it is cut off."""
    try:
        from mcap.exceptions import InvalidMagic, McapError
        from mcap.stream_reader import StreamReader
        from zstandard import ZstdError
    except ImportError as error:
        raise BagError(
            f"this needs the package mcap ({error}): pip install 'softarm_ros[bag]'"
        ) from None
    with path.open('rb') as file:
        try:
            yield from StreamReader(file, validate_crcs=True).records
        except InvalidMagic:
            if file.tell() <= _MAGIC:
                raise BagError(f'{path}: not an MCAP file') from None
        except (McapError, EOFError, struct.error, ZstdError):
            return  # what follows was never written whole
