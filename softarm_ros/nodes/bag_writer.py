"""A rosbag2 MCAP bag written with rosbags; needs no ROS, so the command line can check with it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any


class BagError(ValueError):
    """The bag cannot be written; the message names the folder and the reason."""


def check_bag_folder(folder: Path) -> None:
    """
    Make sure that a bag can be created as `folder`, and leave nothing behind.

    Raises
    ------
    BagError
        If the folder holds something already, or cannot be created and written.

    """
    if folder.is_dir() and any(folder.iterdir()):
        raise BagError(f'bag folder {folder} is not empty; expected a new or empty folder')
    if folder.exists() and not folder.is_dir():
        raise BagError(f'bag folder {folder} is a file; expected a new or empty folder')
    missing = [p for p in (folder, *folder.parents) if not p.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise BagError(f'bag folder {folder} cannot be written: {error.strerror}') from None
    finally:
        for created in missing:
            if created.is_dir():
                created.rmdir()


class BagWriter:
    """
    Writes serialised messages to a new bag.

    The bag is complete after `close` only; `close` may be called more than once.
    """

    def __init__(self, folder: Path) -> None:
        try:
            from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
            from rosbags.typesys import Stores, get_typestore
        except ImportError as error:
            raise BagError(
                f"recording needs the package rosbags ({error}): pip install 'softarm_ros[bag]'"
            ) from None
        check_bag_folder(folder)
        if folder.exists():
            folder.rmdir()  # empty; the writer insists on creating it
        distro = os.environ.get('ROS_DISTRO', 'kilted').upper()
        self._store = get_typestore(getattr(Stores, f'ROS2_{distro}', Stores.LATEST))
        self._writer: Any = Writer(folder, version=9, storage_plugin=StoragePlugin.MCAP)
        # Chunks, not the file or single messages: it stays seekable, and `ros2 bag` reads it.
        self._writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
        self._writer.open()
        self._open = True
        self._connections: dict[str, Any] = {}
        self.messages = 0

    def add_topic(self, topic: str, type_name: str, qos: Any = None) -> bool:
        """Announce a topic with its type and rclpy profile; return False for an unknown type."""
        if type_name not in self._store.types:
            return False
        profiles = [] if qos is None else [_profile(qos)]
        self._connections[topic] = self._writer.add_connection(
            topic, type_name, typestore=self._store, offered_qos_profiles=profiles
        )
        return True

    def write(self, topic: str, nanoseconds: int, data: bytes) -> None:
        """Append one serialised message with the time it was received."""
        if self._open:
            self._writer.write(self._connections[topic], nanoseconds, data)
            self.messages += 1

    def close(self) -> None:
        """Write index and metadata."""
        if self._open:
            self._open = False
            self._writer.close()


def _profile(qos: Any) -> Any:
    from rosbags.interfaces import (
        Qos,
        QosDurability,
        QosHistory,
        QosLiveliness,
        QosReliability,
        QosTime,
    )

    def span(duration: Any) -> QosTime:
        return QosTime(*divmod(int(duration.nanoseconds), 1_000_000_000))

    return Qos(
        # The history of a publisher is not visible in the graph; a player needs some.
        QosHistory.KEEP_LAST,
        max(int(qos.depth), 1),
        QosReliability(int(qos.reliability)),
        QosDurability(int(qos.durability)),
        span(qos.deadline),
        span(qos.lifespan),
        QosLiveliness(int(qos.liveliness)),
        span(qos.liveliness_lease_duration),
        False,
    )
