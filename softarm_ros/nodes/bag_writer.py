"""Writes rosbag2 MCAP bags with rosbags; needs no ROS, so the command line can use its checks."""

from __future__ import annotations

import contextlib
import errno
import os
import struct
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

_METADATA = 0x0C  # opcode of an MCAP metadata record
_CRC_AT = 33  # bytes from the start of an MCAP chunk record: opcode, length, times, size
ABOUT = 'softarm_ros'  # name of the metadata record


class BagError(ValueError):
    """A bag cannot be written or read; the message names the bag and the reason."""


def check_bag_folder(folder: Path) -> None:
    """
    Check that a bag can be created as `folder`, and leave nothing behind.

    Raises
    ------
    BagError
        If the folder is not empty, is a file, or cannot be created and written.

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
        raise _unwritable(folder, error) from None
    finally:
        for created in missing:
            if created.is_dir():
                created.rmdir()


class BagWriter:
    """
    Writes serialised messages to a new bag.

    Flushed messages can be read whatever happens to this process (`bag_repair`); only `close`
    completes the bag with its index. `close` may be called more than once.

    Parameters
    ----------
    folder : Path
        New or empty.
    about : mapping of str to str
        Description of the bag, for `custom_data` of its metadata and the beginning of the file.

    """

    def __init__(self, folder: Path, about: Mapping[str, str] | None = None) -> None:
        try:
            from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
            from rosbags.typesys import Stores, get_typestore
        except ImportError as error:
            raise BagError(
                f"recording needs the package rosbags ({error}): pip install 'softarm_ros[bag]'"
            ) from None
        check_bag_folder(folder)
        distro = os.environ.get('ROS_DISTRO', 'kilted').upper()
        self._store = get_typestore(getattr(Stores, f'ROS2_{distro}', Stores.LATEST))
        # rosbags accepts only a path that does not exist; an empty folder may be a mounted disk.
        self._writer: Any = Writer(folder / 'new', version=9, storage_plugin=StoragePlugin.MCAP)
        self._writer.path, self._writer.metapath = folder, folder / 'metadata.yaml'
        # Compress chunks, not file or messages: the bag stays seekable and `ros2 bag` reads it.
        self._writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
        for key, value in (about or {}).items():
            self._writer.set_custom_data(key, value)
        self._open = True
        self._connections: dict[str, Any] = {}
        self._began_s: float | None = None  # when the present write call began
        self.messages = 0
        self.flushed = 0  # number of these messages that are flushed
        self._whole = 0  # readable bytes of the file: it ends with a whole chunk there
        new = not folder.exists()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._storage: Any = Writer.STORAGE_PLUGINS[StoragePlugin.MCAP](
                folder, CompressionMode.STORAGE
            )
            self._writer.storage = self._storage
            self._file = self._storage.path.stat()
            _state_crcs(self._storage)
            self._guarded(self._begin, about or {})
        except OSError as error:
            if not isinstance(error, FileExistsError):  # the file of another recorder
                with contextlib.suppress(OSError):
                    (folder / f'{folder.name}.mcap').unlink(missing_ok=True)
                    if new:
                        folder.rmdir()
            raise _unwritable(folder, error) from None

    @property
    def topics(self) -> frozenset[str]:
        """The announced topics."""
        return frozenset(self._connections)

    @property
    def writing_s(self) -> float:
        """How long [s] the present call has been writing; 0 if none is. For another thread."""
        began = self._began_s
        return 0.0 if began is None else time.monotonic() - began

    def add_topic(self, topic: str, type_name: str, qos: Any = None) -> bool:
        """Announce a topic with its type and rclpy QoS profile; return False for unknown types."""
        return self.copy_topic(topic, type_name, [] if qos is None else [_profile(qos)])

    def copy_topic(self, topic: str, type_name: str, profiles: Sequence[Any]) -> bool:
        """Announce a topic with its QoS profiles of rosbags; return False for an unknown type."""
        if type_name not in self._store.types:
            return False
        self._connections[topic] = self._writer.add_connection(
            topic, type_name, typestore=self._store, offered_qos_profiles=profiles
        )
        return True

    def write(self, topic: str, nanoseconds: int, data: bytes) -> None:
        """
        Append one serialised message with the time it was received.

        Raises
        ------
        OSError
            If the file cannot grow. The bag then ends with the last flushed message.

        """
        if self._open:
            self._guarded(self._writer.write, self._connections[topic], nanoseconds, data)
            self.messages += 1

    def flush(self) -> None:
        """Make all messages so far readable, whatever follows; may raise as `write`."""
        if self._open:
            self._guarded(self._flush)

    def close(self) -> None:
        """Write index and metadata; may raise as `write`."""
        if self._open:
            self._guarded(self._close)

    def _begin(self, about: Mapping[str, str]) -> None:
        """Write the bag's description at once: rosbag2 writes its metadata at the end only."""
        if about:
            values = b''.join(_text(key) + _text(value) for key, value in about.items())
            record = _text(ABOUT) + struct.pack('<I', len(values)) + values
            self._storage.bio.write(struct.pack('<BQ', _METADATA, len(record)) + record)
        self._flush()

    def _flush(self) -> None:
        if self._storage.chunk.msgs:
            self._storage.close_chunk()
        self._storage.bio.flush()
        if not self._in_place():  # writes succeed, but nobody could read them
            raise FileNotFoundError(errno.ENOENT, 'its file was moved or deleted')
        self._whole, self.flushed = self._storage.bio.tell(), self.messages

    def _close(self) -> None:
        self._flush()
        self._writer.close()
        self._open = False

    def _guarded(self, write: Any, *arguments: Any) -> None:
        """Write; if that fails, truncate the file to whole chunks."""
        self._began_s = time.monotonic()
        try:
            write(*arguments)
        except OSError:
            self._open = False
            with contextlib.suppress(OSError):
                self._writer.abort()  # its buffered messages cannot be written either
            with contextlib.suppress(OSError):
                if self._in_place():
                    os.truncate(self._storage.path, self._whole)
            raise
        finally:
            self._began_s = None

    def _in_place(self) -> bool:
        """Return whether the bag's path still leads to its own file."""
        try:
            return os.path.samestat(self._storage.path.stat(), self._file)
        except (FileNotFoundError, NotADirectoryError):
            return False


def _unwritable(folder: Path, error: OSError) -> BagError:
    return BagError(f'bag folder {folder} cannot be written: {error.strerror}')


def _state_crcs(storage: Any) -> None:
    """Add checksums to the chunks: rosbags leaves them out, and readers check them."""
    close_chunk = storage.close_chunk

    def close() -> None:
        at, crc = storage.bio.tell(), crc32(storage.chunk.bio.getbuffer())
        close_chunk()
        end = storage.bio.tell()
        storage.bio.seek(at + _CRC_AT)
        storage.bio.write(struct.pack('<I', crc))
        storage.bio.seek(end)

    storage.close_chunk = close  # also called by the storage, whenever a chunk is full


def _text(text: str) -> bytes:
    """Return a string as MCAP encodes it: its length, then its UTF-8 bytes."""
    data = text.encode()
    return struct.pack('<I', len(data)) + data


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
        # The graph does not show the history of a publisher, but a player needs one.
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
