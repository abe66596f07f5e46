"""Messages of a bag, in the order they were received; needs no ROS."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PosixPath
from shlex import quote
from typing import Any

from softarm_ros.nodes.bag_writer import BagError
from softarm_ros.nodes.mcap_records import is_mcap


@dataclass(frozen=True)
class BagMessage:
    """
    One serialised message of a bag, with its topic, type and time of receipt [ns].

    `type_name` has the form `geometry_msgs/msg/Pose`. `decode` and `decoded` work only while the
    bag is being read.
    """

    bag: Path
    topic: str
    type_name: str
    received_ns: int
    data: bytes
    decode: Callable[[], Any] = field(repr=False, compare=False)

    def decoded(self, expected: str = '') -> Any:
        """Return the decoded message; BagError if its type or its bytes are not as expected."""
        if expected and self.type_name != expected:
            raise BagError(f'{self.bag}: {self.topic} is of {self.type_name}; expected {expected}')
        try:
            return self.decode()
        except Exception as error:  # damaged bytes: each decoder raises errors of its own
            raise BagError(
                f'{self.bag}: a message on {self.topic} cannot be decoded: {error}'
            ) from None


def messages_of(bag: Path) -> Iterator[BagMessage]:
    """
    Yield the messages of a bag, MCAP or SQLite.

    Raises
    ------
    BagError
        If the bag cannot be read to its end; the message says how to repair a bag whose recorder
        was killed.

    """
    with _reader(bag) as reader:
        for connection, received_ns, data in reader.messages():
            decode = partial(reader.deserialize, data, connection.msgtype)
            yield BagMessage(
                bag, connection.topic, connection.msgtype, received_ns, bytes(data), decode
            )


def topics_of(bag: Path) -> dict[str, tuple[str, list[Any]]]:
    """Return the type and the offered QoS profiles (of rosbags) of every topic of a bag."""
    with _reader(bag) as reader:
        return {
            c.topic: (c.msgtype, list(getattr(c.ext, 'offered_qos_profiles', ())))
            for c in reader.connections
        }


def is_bag(path: Path) -> bool:
    """Return whether a path looks like a bag, whatever its content: a folder, or a bag file."""
    return path.is_dir() or path.suffix in ('.mcap', '.db3', '.zstd')


def custom_data_of(bag: Path) -> dict[str, str]:
    """Return `custom_data` from the metadata of a bag; raise BagError as `messages_of` does."""
    folder = bag.parent if bag.is_file() else bag
    with _reader(bag):  # raises BagError if anything is wrong with the bag
        found = _metadata(folder).get('custom_data') or {}
        return {str(name): str(value) for name, value in found.items()}


def _metadata(folder: Path) -> dict[str, Any]:
    from ruamel.yaml import YAML

    stated = YAML(typ='safe').load(folder / 'metadata.yaml')
    return dict(stated['rosbag2_bagfile_information'])


class _BagFolder(PosixPath):
    """Folder of a ROS 2 bag, whatever its name: rosbags takes `run.bag` for a ROS 1 file."""

    @property
    def suffix(self) -> str:
        """The suffix of the folder's name, or '' for `.bag`."""
        return super().suffix.replace('.bag', '')


@contextmanager
def _reader(bag: Path) -> Iterator[Any]:
    try:
        from rosbags.highlevel import AnyReader
        from rosbags.typesys import Stores, get_typestore
    except ImportError as error:
        raise BagError(
            f"bags need the package rosbags ({error}): pip install 'softarm_ros[bag]'"
        ) from None
    if not bag.exists():
        raise BagError(f'{bag}: no such bag')
    folder = bag.parent if bag.is_file() else bag
    files, repair = list(folder.glob('*.mcap')), ''
    if len(files) == 1 and is_mcap(files[0]):  # else nothing to repair, or not known which
        repair = f'; if its recorder was killed: softarm record --repair {quote(str(folder))}'
    if not (folder / 'metadata.yaml').exists():
        raise BagError(f'{bag}: not a bag: no metadata.yaml{repair}')
    try:
        with AnyReader(
            [_BagFolder(folder)], default_typestore=get_typestore(Stores.LATEST)
        ) as reader:
            if wrong := _wrong_files(bag, folder):
                repair = ''
                raise ValueError(wrong)
            yield reader
    except Exception as error:  # damaged file: rosbags, YAML and decoders raise their own errors
        raise BagError(f'{bag}: cannot be read: {error}{repair}') from None


def _wrong_files(bag: Path, folder: Path) -> str:
    """Return why the files of a bag are not those that its name says; '' if they are."""
    names = [Path(name).name for name in _metadata(folder)['relative_file_paths']]
    listed = ', '.join(names)
    if bag.is_file():  # all files would be read as this one
        right = names == [bag.name]
        return '' if right else f'the bag has the files {listed}; expected its folder, {folder}'
    own = {*names, *(name.removesuffix('.zstd') for name in names)}  # ros2 bag decompresses there
    others = {path.name for kind in ('*.mcap', '*.db3') for path in folder.glob(kind)} - own
    if not others:
        return ''
    return (
        f'{", ".join(sorted(others))} would be ignored: metadata.yaml has only {listed}; expected '
        'the files of one recording in the folder'
    )


POSE = 'geometry_msgs/msg/PoseStamped'
POSES = 'geometry_msgs/msg/PoseArray'
JOINTS = 'sensor_msgs/msg/JointState'


def nanoseconds(time: Any) -> int:
    """Return a decoded builtin_interfaces/Time as one number [ns]."""
    return int(time.sec) * 1_000_000_000 + int(time.nanosec)


def stamp_ns(message: Any) -> int:
    """Return the time stamp [ns] of a decoded message with a header."""
    return nanoseconds(message.header.stamp)


def pose_row(pose: Any) -> list[float]:
    """Return position [m] and quaternion x, y, z, w of a decoded geometry_msgs/Pose."""
    p, q = pose.position, pose.orientation
    return [p.x, p.y, p.z, q.x, q.y, q.z, q.w]


class BaseFramePoses:
    """
    Filters the poses of a bag that are in the base frame, and counts all others.

    Parameters
    ----------
    names : sequence of str
        Names of the base frame (`Rig.base_frames`).

    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._others: dict[tuple[str, str], int] = {}

    def hold(self, topic: str, message: Any) -> bool:
        """Return whether a decoded message with a header is in the base frame."""
        frame = str(message.header.frame_id)
        if frame in self._names:
            return True
        self._others[topic, frame] = self._others.get((topic, frame), 0) + 1
        return False

    def notes(self) -> list[str]:
        """Return, as text, how many messages of each topic were in each other frame."""
        expected = ' or '.join(repr(name) for name in self._names)
        return [
            f'left out: {count} messages on {topic} in frame {frame!r}; expected {expected}'
            for (topic, frame), count in self._others.items()
        ]
