"""
Check whether the recorder loses messages of six topics published at 500 Hz.

`python -m softarm_reproduction.recorder_soak [--seconds 60] [--kill]`; with `--kill` the recorder
is killed (SIGKILL) at the end, and its bag is repaired.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from softarm_ros.nodes.qos import MEASUREMENT, command_qos, make_executor, set_up_dds
from softarm_ros.nodes.wire import joint_bytes, pose_bytes, poses_bytes, read_joints, read_poses

RATE_HZ = 500.0
NAMESPACE = 'cable_arm'
NAMES = tuple(f'cable_{i}' for i in range(6))
POSES = ('tip/pose', 'sections/poses', 'second/poses')
JOINTS = ('actuators/command', 'actuators/state', 'configuration/command')
_STARTING_S, _ARRIVING_S = 60.0, 10.0
_IDLE = 12  # messages within four heartbeats if only the recorder itself publishes


@dataclass(frozen=True)
class Outcome:
    """
    The result of a soak test.

    `published` and `recorded` count messages by topic. `missing_before_s` is the time from the
    publication of the first missing message to the end (0 if none is missing). `late_ms` is the
    largest delay of the publisher.
    """

    published: dict[str, int]
    recorded: dict[str, int]
    missing_before_s: float
    late_ms: float


def soak(folder: Path, seconds: float, *, kill: bool = False) -> Outcome:
    """
    Publish for a time [s] while a recorder writes into `folder`.

    Raises
    ------
    RuntimeError
        If the recorder does not start or ends by itself.

    """
    import rclpy
    from diagnostic_msgs.msg import DiagnosticStatus
    from geometry_msgs.msg import PoseArray, PoseStamped
    from rclpy.context import Context
    from rclpy.node import Node
    from sensor_msgs.msg import JointState

    set_up_dds()
    context = Context()
    rclpy.init(context=context)
    node = Node('recorder_soak', namespace=f'/{NAMESPACE}', context=context)
    executor = make_executor(context)
    executor.add_node(node)
    reliable = command_qos(1.0)
    kinds = {'tip/pose': PoseStamped, **dict.fromkeys(POSES[1:], PoseArray)}
    publishers = {
        topic: node.create_publisher(
            kinds.get(topic, JointState), topic, reliable if 'command' in topic else MEASUREMENT
        )
        for topic in (*POSES, *JOINTS)
    }
    heard: set[str] = set()
    counts = [0]

    def on_heartbeat(message: DiagnosticStatus) -> None:
        if message.name.endswith('recorder'):
            values = {value.key: value.value for value in message.values}
            heard.update(values.get('heard', '').split())
            counts.append(int(values.get('messages', 0)))

    def hears_all() -> bool:
        # The recorder's readers may discover the writers later than the writers the readers.
        _publish(publishers, 1.0 / RATE_HZ)
        return heard >= {f'/{NAMESPACE}/{topic}' for topic in publishers}

    def drained() -> bool:
        return len(counts) > 5 and counts[-1] - counts[-4] < _IDLE

    node.create_subscription(DiagnosticStatus, 'heartbeat', on_heartbeat, 10)
    recorder = subprocess.Popen(
        [
            *(sys.executable, '-m', 'softarm_ros.nodes.recorder_node', '--ros-args'),
            *('-r', f'__ns:=/{NAMESPACE}', '-p', f'rig:={NAMESPACE}', '-p', f'bag:={folder}'),
            *('-p', 'twin_check_s:=0.0'),
        ],
        env={**os.environ, 'OMP_NUM_THREADS': '1'},
    )

    def wait(until: Callable[[], bool], limit_s: float) -> bool:
        end = time.monotonic() + limit_s
        while not until():
            if time.monotonic() > end or recorder.poll() is not None:
                return until()
            executor.spin_once(timeout_sec=0.05)
        return True

    try:
        if not wait(hears_all, _STARTING_S):
            raise RuntimeError(
                f'the recorder does not hear all topics (exit status {recorder.poll()})'
            )
        published, late_s = _publish(publishers, seconds)
        if not kill:
            counts.clear()
            wait(drained, _ARRIVING_S)
        end_ns = time.time_ns()
        recorder.send_signal(signal.SIGKILL if kill else signal.SIGINT)
        recorder.wait(30.0)
    finally:
        recorder.kill()
        recorder.wait()
        executor.shutdown()
        node.destroy_node()
        rclpy.shutdown(context=context)
    bag = folder
    if kill:
        from softarm_ros.nodes.bag_repair import repair

        bag = repair(folder, folder.with_name(f'{folder.name}_repaired')).folder
    found = _recorded(bag)
    missing = [s for t, stamps in published.items() for s in stamps if s not in found[t]]
    return Outcome(
        {topic: len(stamps) for topic, stamps in published.items()},
        {topic: len(found[topic] & set(stamps)) for topic, stamps in published.items()},
        1e-9 * (end_ns - min(missing)) if missing else 0.0,
        1e3 * late_s,
    )


def _publish(publishers: dict[str, Any], seconds: float) -> tuple[dict[str, list[int]], float]:
    """Publish for a time [s]; return the stamps [ns] by topic and the largest delay [s]."""
    stamps: dict[str, list[int]] = {topic: [] for topic in publishers}
    rows, values = np.tile([0.0, 0.0, 0.3, 0.0, 0.0, 0.0, 1.0], (2, 1)), np.zeros(6)
    begin, late = time.monotonic(), 0.0
    for k in range(round(seconds * RATE_HZ)):
        due = begin + k / RATE_HZ
        time.sleep(max(due - time.monotonic(), 0.0))
        late = max(late, time.monotonic() - due)
        for topic, publisher in publishers.items():
            now = time.time_ns()
            if topic == 'tip/pose':
                data = pose_bytes(now, 'base', rows[0])
            elif topic in POSES:
                data = poses_bytes(now, 'base', rows)
            else:
                data = joint_bytes(NAMES, now, values)
            publisher.publish(data)
            stamps[topic].append(now)
    return stamps, late


def _recorded(bag: Path) -> dict[str, set[int]]:
    """Return the recorded stamps [ns] by topic."""
    from rosbags.highlevel import AnyReader

    from softarm_ros.nodes.wire import read_pose

    found: dict[str, set[int]] = {topic: set() for topic in (*POSES, *JOINTS)}
    with AnyReader([bag]) as reader:
        for connection, _, raw in reader.messages():
            topic = connection.topic.removeprefix(f'/{NAMESPACE}/')
            if topic == 'tip/pose':
                found[topic].add(read_pose(raw).stamp_ns)
            elif topic in POSES:
                found[topic].add(read_poses(raw).stamp_ns)
            elif topic in JOINTS:
                found[topic].add(read_joints(raw).stamp_ns)
    return found


def main() -> int:
    """Print published and recorded counts; return 0 if no message was lost, else 1."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('--seconds', type=float, default=60.0)
    parser.add_argument('--kill', action='store_true', help='kill the recorder at the end')
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix='softarm-') as folder:
        outcome = soak(Path(folder) / 'bag', arguments.seconds, kill=arguments.kill)
    print(f'{"topic":24} published recorded')
    for topic, count in outcome.published.items():
        print(f'{topic:24} {count:9} {outcome.recorded[topic]:8}')
    print(f'the publisher was late by {outcome.late_ms:.0f} ms at worst')
    if outcome.missing_before_s > 0.0:
        print(f'first missing message: {outcome.missing_before_s:.2f} s before the end')
    if arguments.kill:
        print(f'killed: complete up to {outcome.missing_before_s:.2f} s before the end')
        return 0 if outcome.missing_before_s < 1.0 else 1
    return 0 if outcome.recorded == outcome.published else 1


if __name__ == '__main__':
    sys.exit(main())
