"""Records all topics of an arm into a rosbag2 MCAP bag; needs no rosbag2 installation."""

from __future__ import annotations

import importlib
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, ReliabilityPolicy

from softarm_ros.nodes.bag_about import about_run
from softarm_ros.nodes.bag_writer import BagWriter
from softarm_ros.nodes.clocks import steady_clock
from softarm_ros.nodes.event_log import EventLog
from softarm_ros.nodes.heartbeat import Heartbeat
from softarm_ros.nodes.node_errors import NodeFailedError, RefusedError
from softarm_ros.nodes.node_parameters import declare, declare_rig, declare_time_scale
from softarm_ros.nodes.other_nodes import refuse_twin
from softarm_ros.nodes.qos import listening, prefer_deep_sockets
from softarm_ros.nodes.run_nodes import run_node
from softarm_ros.nodes.self_paced import SelfPaced
from softarm_ros.runtime.events import Event
from softarm_ros.runtime.run_files import ros_domain

QUEUE = 1000
LOOK_S = 0.2
FLUSH_S = 0.5  # recording time that may be lost if the process is killed
SILENT_S = 5.0  # without a message of the arm
WATCH_S = 1.0
STUCK_S = 3.0  # without writing: queues of `QUEUE` messages are full after a few seconds
OUTSIDE_TOPICS = ('/diagnostics', '/clock', '/rosout', '/tf', '/tf_static')


class RecorderNode(SelfPaced, Node):
    """
    Records every topic of its namespace, the rig's pose topic and `OUTSIDE_TOPICS`.

    It subscribes to topics as they appear. Messages are stored as received, with the time of
    receipt. The node ends when the bag cannot be written any more; the bag then holds all flushed
    messages.

    A disk that does not respond blocks the whole node except one thread, which warns.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__('recorder', **options)
        refuse_twin(self, 'being recorded')
        rig = declare_rig(self)
        declare_time_scale(self)
        folder = declare(self, 'bag', '', 'folder of the bag; new or empty')
        if not folder:
            raise RefusedError('parameter bag is empty; expected a folder')
        about = declare(self, 'about', '', 'name=value&...: facts of the run for the metadata')
        duration_s = declare(
            self, 'duration_s', 0.0, 'how long to record [s]; 0: until stopped', low=0.0, high=1e6
        )
        self._outside = {*OUTSIDE_TOPICS, rig.feedback.pose_topic}
        self._bag = BagWriter(Path(folder), about_run(rig, dict(parse_qsl(about))))
        try:
            self._begin(rig.name, folder, duration_s)
        except BaseException:  # a signal ends the process at once while nodes are built
            self._bag.close()
            raise

    def _begin(self, rig: str, folder: str, duration_s: float) -> None:
        self._subscriptions_by_topic: dict[str, Any] = {}
        self._skipped: set[str] = set()
        self._heard: set[str] = set()  # topics since the last look
        self._ever_heard = self._silent = False
        self._events = EventLog()
        self._failure = ''  # why the bag cannot be written any more
        self._heartbeat = Heartbeat(self, rig, fill=self._values)
        self._recording = f'recording to {folder}'
        self._silent_s = min(SILENT_S, duration_s or SILENT_S)
        self._heard_s = time.monotonic()
        self._heartbeat.ok(self._recording)
        self.create_timer(LOOK_S, self._look, clock=steady_clock())
        if duration_s > 0.0:
            self.create_timer(duration_s, self._end, clock=steady_clock())
        self._looked_s = time.monotonic()
        self._closed = threading.Event()
        self._watch = threading.Thread(target=self._watch_disk, name='disk', daemon=True)
        self._watch.start()
        self._look()

    def close(self) -> None:
        """Complete the bag and log its size; raise NodeFailedError if that fails."""
        try:
            self._bag.close()
            if not self._failure:
                self.get_logger().info(f'{self._bag.messages} messages recorded')
        except OSError as error:
            raise NodeFailedError(self._failed(error)) from None
        finally:
            self._closed.set()
            self._watch.join()

    def _watch_disk(self) -> None:
        """Warn while a write does not return; runs in a thread of its own."""
        while not self._closed.wait(WATCH_S):
            stuck_s = self._bag.writing_s
            if stuck_s < STUCK_S:
                continue
            self._heartbeat.warn(
                f'the disk has not accepted data for {stuck_s:.0f} s; the arm goes on, but its '
                'messages may be lost'
            )
            self._heartbeat.publish()  # the heartbeat's timer is blocked, too

    def _look(self) -> None:
        now = time.monotonic()
        paused_s, self._looked_s = now - self._looked_s, now
        if paused_s > STUCK_S:
            # Not always a pause: under too many messages the executor serves no timer.
            what = (
                f'the recorder was held up for {paused_s:.0f} s by the disk or a busy computer; '
                'messages may be missing'
            )
            at_s = 1e-9 * self.get_clock().now().nanoseconds
            self._events.add(Event(at_s, 'warning', 'recorder', what))
            self._heartbeat.warn(f'{self._recording}; {what}')
            self._heard_s = now  # its messages still wait in the queues
        prefix = self.get_namespace().rstrip('/') + '/'
        for topic, types in self.get_topic_names_and_types():
            wanted = topic.startswith(prefix) or topic in self._outside
            wanted = wanted and '/_' not in topic  # skip hidden topics, as of actions
            known = topic in self._subscriptions_by_topic or topic in self._skipped
            if wanted and not known and len(types) == 1:
                self._record(topic, types[0])
        self._tell_silence()

    def _end(self) -> None:
        """End this process in order, as with Ctrl-C."""
        self._tell_silence()
        signal.raise_signal(signal.SIGINT)

    def _tell_silence(self) -> None:
        """Warn if no message of the arm arrives: otherwise the bag is found empty hours later."""
        now = time.monotonic()
        prefix = self.get_namespace().rstrip('/') + '/'
        own = f'{prefix}heartbeat'
        heard = any(topic.startswith(prefix) and topic != own for topic in self._heard)
        self._heard.clear()
        if heard:
            if self._silent:
                self._heartbeat.ok(self._recording)
            self._heard_s, self._ever_heard, self._silent = now, True, False
        elif not self._silent and now - self._heard_s >= self._silent_s:
            self._silent = True
            why = 'has the arm ended?'
            if not self._ever_heard:
                why = f'does the arm run in ROS domain {ros_domain()}?'
            self._heartbeat.warn(f'no message of {prefix} for {self._silent_s:g} s; {why}')

    def _record(self, topic: str, type_name: str) -> None:
        offers = [info.qos_profile for info in self.get_publishers_info_by_topic(topic)]
        if not offers:
            return  # no publisher yet, so the profile is not known
        message_type = _load_type(type_name)
        if message_type is None or not self._bag.add_topic(topic, type_name, offers[0]):
            self._skipped.add(topic)
            self._heartbeat.warn(f'not recorded, type unknown: {", ".join(sorted(self._skipped))}')
            return
        profile = listening(
            depth=QUEUE,
            reliable=all(q.reliability == ReliabilityPolicy.RELIABLE for q in offers),
            latched=all(q.durability == DurabilityPolicy.TRANSIENT_LOCAL for q in offers),
        )
        self._subscriptions_by_topic[topic] = self.create_subscription(
            message_type, topic, partial(self._on_message, topic), profile, raw=True
        )

    def _on_message(self, topic: str, data: bytes) -> None:
        self._heard.add(topic)
        try:
            self._bag.write(topic, self.get_clock().now().nanoseconds, data)
        except OSError as error:
            self._failure = self._failed(error)
            self.due = 0.0  # end at once: the executor would print a traceback of an exception

    def work(self) -> None:
        """Flush the bag; end the process once it cannot be written any more."""
        self.due = time.monotonic() + FLUSH_S
        try:
            self._bag.flush()
        except OSError as error:
            self._failure = self._failed(error)
        if self._failure:
            raise NodeFailedError(self._failure)

    def _failed(self, error: OSError) -> str:
        what = (
            f'bag cannot be written: {error.strerror}; it ends here, after {self._bag.flushed} '
            'messages, without an index: softarm record --repair BAG'
        )
        self._heartbeat.error(what)
        return what

    def _values(self) -> dict[str, str]:
        return {
            'topics': str(len(self._subscriptions_by_topic)),
            'messages': str(self._bag.messages),
            'heard': ' '.join(sorted(self._heard)),
            'skipped': ' '.join(sorted(self._skipped)),
            **self._events.values(),
        }


def _load_type(type_name: str) -> Any:
    package, _, name = type_name.partition('/msg/')
    try:
        return getattr(importlib.import_module(f'{package}.msg'), name)
    except (ImportError, AttributeError):
        return None


def main(args: list[str] | None = None) -> int:
    """Run the node."""
    prefer_deep_sockets()
    return run_node(RecorderNode, 'recorder', args)


if __name__ == '__main__':
    sys.exit(main())
