"""
Copies the readable messages of an incomplete or damaged bag into a new bag with an index.

A recorder that is killed leaves a file of whole chunks without index and `metadata.yaml`, which
rosbag2 and rosbags refuse. The file holds everything up to the last flush. A chunk that a disk or
a copy has damaged is left out; the chunks after it are read (`mcap_records`).
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from softarm_ros.nodes.bag_messages import custom_data_of
from softarm_ros.nodes.bag_writer import ABOUT, BagError, BagWriter, check_bag_folder
from softarm_ros.nodes.mcap_records import Damaged, records_of


@dataclass(frozen=True)
class Repaired:
    """
    Result of a repair: the new bag, its number of messages, and topics of unknown type.

    `left_out` are these topics. `damaged` are begin and end [s], from the first message, of the
    unreadable parts. `lost` counts messages whose topic only an unreadable part had announced.
    """

    folder: Path
    messages: int
    left_out: tuple[str, ...]
    damaged: tuple[tuple[float, float], ...] = ()
    lost: int = 0


def find_mcap(bag: Path) -> Path:
    """Return the only MCAP file of a bag; `bag` is its folder or the file itself."""
    if bag.is_file():
        return bag
    if not bag.exists():
        raise BagError(f'{bag}: no such bag')
    found = sorted(bag.glob('*.mcap'))
    if len(found) != 1:
        raise BagError(f'{bag}: {len(found)} MCAP files; expected a bag folder with one')
    return found[0]


def about_of(bag: Path) -> dict[str, str]:
    """
    Return the values of `about_run` that a bag holds; empty if another program recorded it.

    A bag that was converted (to SQLite, into several files) has them in `metadata.yaml` only.
    """
    folder = bag.parent if bag.is_file() else bag
    files = [bag] if bag.suffix == '.mcap' else sorted(folder.glob('*.mcap'))
    described = (folder / 'metadata.yaml').exists()
    if len(files) > 1 and described:
        return custom_data_of(bag)
    for record in records_of(files[0]) if files else ():
        kind = type(record).__name__
        if kind == 'Metadata' and record.name == ABOUT:
            return dict(record.metadata)
        if kind in ('Schema', 'Channel', 'Message'):
            break  # the metadata record precedes all of these
    if files and not described:
        return {}  # the recorder was killed, and it was another program
    return custom_data_of(bag)


def repair(bag: Path, folder: Path) -> Repaired:
    """
    Copy the messages of every readable chunk of a bag into a new bag with an index.

    Raises
    ------
    BagError
        If the bag has no MCAP file, the file is not MCAP or has no whole message, or `folder`
        cannot be written. An unfinished new bag is removed.

    """
    mcap = find_mcap(bag)
    next(records_of(mcap, in_chunks=False), None)  # raises BagError if it is no MCAP file
    try:
        about = about_of(bag)
    except BagError:  # metadata.yaml is damaged as well
        about = {}
    check_bag_folder(folder)
    try:
        return _copied(mcap, folder, about)
    except OSError as error:
        raise BagError(
            f'bag folder {folder} cannot be written: {error.strerror}; the damaged bag, {bag}, is '
            'unchanged'
        ) from None


def _copied(mcap: Path, folder: Path, about: Mapping[str, str]) -> Repaired:
    types: dict[int, str] = {}
    topics: dict[int, str] = {}
    left_out: set[str] = set()
    damaged: list[Damaged] = []
    first_ns: int | None = None
    lost = 0

    def announce(writer: BagWriter, record: Any) -> None:
        kind = type(record).__name__
        if kind == 'Schema':
            types[record.id] = record.name
        elif kind == 'Channel' and (
            topics.get(record.id) != record.topic or record.topic in left_out
        ):
            topics[record.id] = record.topic
            left_out.discard(record.topic)
            if record.topic in writer.topics:
                return
            profiles = _profiles(record.metadata)
            if not writer.copy_topic(record.topic, types.get(record.schema_id, ''), profiles):
                left_out.add(record.topic)

    try:
        writer = BagWriter(folder, about)
        # The index of a completed bag repeats the topics that a damaged chunk may have announced.
        # It has no checksum, so topics announced in chunks (below) override it.
        for record in records_of(mcap, in_chunks=False):
            announce(writer, record)
        for record in records_of(mcap):
            announce(writer, record)
            if isinstance(record, Damaged):
                damaged.append(record)
            elif type(record).__name__ == 'Message':
                topic = topics.get(record.channel_id)
                first_ns = record.log_time if first_ns is None else first_ns
                if topic is None:
                    lost += 1
                elif topic not in left_out:
                    writer.write(topic, record.log_time, record.data)
        writer.close()
        if first_ns is None:
            raise BagError(f'{mcap}: no whole message is left in it; nothing to repair')
    except BaseException:  # Ctrl-C as well: half a bag would block the next attempt
        shutil.rmtree(folder, ignore_errors=True)
        raise
    begin_ns = min(
        [*(d.first_ns for d in damaged), *([] if first_ns is None else [first_ns])], default=0
    )
    spans = tuple((1e-9 * (d.first_ns - begin_ns), 1e-9 * (d.last_ns - begin_ns)) for d in damaged)
    return Repaired(folder, writer.messages, tuple(sorted(left_out)), spans, lost)


def _profiles(metadata: dict[str, str]) -> list[Any]:
    from rosbags.rosbag2.metadata import parse_qos

    return list(parse_qos(metadata.get('offered_qos_profiles', '')))
