"""A whole arm as processes, watched and disturbed from the test's process."""

import contextlib
import os
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

# Set before rclpy is imported anywhere: tests neither hear nor disturb another ROS graph.
os.environ['ROS_DOMAIN_ID'] = str(80 + os.getpid() % 20)
if 'cyclone' in os.environ.get('RMW_IMPLEMENTATION', ''):
    os.environ['ROS_LOCALHOST_ONLY'] = '1'
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
else:  # the same for Fast DDS, but without its shared memory (see prefer_udp)
    os.environ.pop('ROS_LOCALHOST_ONLY', None)
    os.environ.pop('ROS_AUTOMATIC_DISCOVERY_RANGE', None)
    profile = str(Path(__file__).with_name('loopback.xml'))
    old = os.environ.get('ROS_DISTRO', '') in ('humble', 'iron', 'jazzy')
    os.environ[f'{"FASTRTPS" if old else "FASTDDS"}_DEFAULT_PROFILES_FILE'] = profile

with warnings.catch_warnings(), contextlib.suppress(ImportError):
    # The type support of ROS imports, when first used, modules that are deprecated.
    warnings.simplefilter('ignore')
    import rosidl_generator_py  # noqa: F401

CIRCLE = """\
type: circle
center: [0.0, 0.0, 0.235]
radius: 0.05
speed: {speed}
laps: {laps}
"""
READY_S = 150.0  # a machine may be slow to start; longer than the supervisor waits
MOVING_M_S = 2e-4  # a stepper that rests jitters by less


class Bench:
    """Topics, services and processes of a running arm."""

    def __init__(self, rig, plan):
        import rclpy
        from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
        from geometry_msgs.msg import PoseStamped
        from rclpy.context import Context
        from rclpy.node import Node
        from sensor_msgs.msg import JointState

        from softarm_ros.cli.node_processes import NodeProcesses
        from softarm_ros.nodes.qos import (
            DIAGNOSTICS,
            HEARTBEAT,
            MEASUREMENT,
            make_executor,
            newest,
        )

        self.plan = {spec.name: spec for spec in plan}
        self.processes = NodeProcesses(plan)
        self.health = {}
        self.diagnosed = []  # (time, name, level, message)
        self.moved_at = -np.inf  # last time an actuator was seen in motion
        self.states = 0
        self.clients = {}
        self._position = None
        self.context = Context()
        rclpy.init(context=self.context)
        self.node = Node('bench', namespace=f'/{rig.name}', context=self.context)
        self.executor = make_executor(self.context)
        self.executor.add_node(self.node)
        self.node.create_subscription(
            DiagnosticStatus, 'heartbeat', self._on_heartbeat, newest(HEARTBEAT)
        )
        self.node.create_subscription(
            DiagnosticArray, '/diagnostics', self._on_diagnostics, DIAGNOSTICS
        )
        self.node.create_subscription(JointState, 'actuators/state', self._on_state, MEASUREMENT)
        self.node.create_subscription(PoseStamped, 'tip/pose', self._on_pose, MEASUREMENT)
        self.tip = self.node.create_publisher(PoseStamped, 'tip/pose', MEASUREMENT)
        self._injector = None
        self.pose_at = -np.inf

    def __enter__(self):
        self.processes.__enter__()
        return self

    def __exit__(self, *reason):
        self.processes.__exit__()
        self.executor.shutdown()
        self.node.destroy_node()
        self.context.try_shutdown()

    def _on_heartbeat(self, message):
        from softarm_ros.nodes.conversions import health_of

        self.health[message.name] = health_of(message)

    def _on_diagnostics(self, message):
        from softarm_ros.nodes.conversions import health_of

        for status in message.status:
            health = health_of(status)
            self.diagnosed.append((time.monotonic(), health.name, health.level, health.message))

    def _on_pose(self, message):
        self.pose_at = time.monotonic()

    def _on_state(self, message):
        position = np.array(message.position)
        moving = np.max(np.abs(message.velocity)) > MOVING_M_S
        if self._position is not None and np.max(np.abs(position - self._position)) > 2e-6:
            moving = True
        self._position = position
        self.states += 1
        if moving:
            self.moved_at = time.monotonic()

    def spin(self, duration):
        end = time.monotonic() + duration
        while (left := end - time.monotonic()) > 0:
            self.executor.spin_once(timeout_sec=left)

    def until(self, condition, timeout=30.0, what='condition'):
        """Spin until a condition holds; fail with the state of the arm and the nodes' logs."""
        end = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > end:
                logs = {name: self.processes.log(name)[-300:] for name in self.plan}
                said = {n: (h.level, h.message) for n, h in self.health.items()}
                pytest.fail(f'{what} not within {timeout} s: {said}\n{logs}')
            self.spin(0.01)

    @property
    def state(self):
        health = self.health.get('supervisor')
        return health.values['state'] if health else ''

    def client(self, service, kind=None):
        """Return a client whose service is there; making one takes discovery its time."""
        from std_srvs.srv import Trigger

        if service not in self.clients:
            self.clients[service] = self.node.create_client(kind or Trigger, service)
        self.until(self.clients[service].service_is_ready, 10.0, f'service {service}')
        return self.clients[service]

    def call(self, service, kind=None, request=None):
        client = self.client(service, kind)
        future = client.call_async(request or client.srv_type.Request())
        self.until(future.done, 5.0, f'answer of {service}')
        return future.result()

    def inject(self, fault, into='emulator'):
        """Break or mend something of the emulated devices, or of the plant; return when."""
        from std_msgs.msg import String

        if self._injector is None:
            self._injector = self.node.create_publisher(String, f'{into}/inject', 10)
        self.until(self._injector.get_subscription_count, 10.0, f'the {into} listens')
        self._injector.publish(String(data=fault))
        return time.monotonic()

    def values(self, node):
        """Return what a node said last, by name."""
        return self.health[node].values if node in self.health else {}

    def run(self):
        """Have the arm track its circle, from whatever state it is in."""
        self.until(lambda: self.state not in ('', 'waiting'), READY_S, 'ready')
        end = time.monotonic() + 5.0
        while self.state != 'running' and time.monotonic() < end:
            self.call('supervisor/reset')
            self.call('supervisor/start')
            self.spin(0.05)
        self.until(lambda: self.state == 'running', 1.0, 'running')
        began = time.monotonic()
        self.until(lambda: self.values('tracker').get('phase') == 'track', 20.0, 'tracking')
        self.until(lambda: self.moved_at > began + 0.3, 10.0, 'motion')

    def hold_time(self, since, wait=0.6):
        """Return how long the arm still moved after an instant [s]."""
        self.spin(wait)
        return max(self.moved_at - since, 0.0)

    def reasons(self, since, name='supervisor'):
        """Return what a node has said on /diagnostics since an instant, with the delay [s]."""
        return [
            (at - since, message)
            for at, who, level, message in self.diagnosed
            if who.endswith('/' + name) and level == 2 and at >= since
        ]


def emulated_plan(rig, trajectory):
    """Return the nodes of a rig with emulated devices; they are alone and need not look."""
    from softarm_ros.rigs.graph import graph_plan
    from softarm_ros.runtime.run_files import devices_folder

    return [
        replace(spec, parameters={**spec.parameters, 'twin_check_s': 0.0})
        for spec in graph_plan(
            rig,
            'emulated',
            trajectory=str(trajectory),
            devices_folder=devices_folder(rig.name),
        )
    ]


@contextlib.contextmanager
def circling(folder, speed, **options):
    """Run cable_arm, simulated, round a circle until the block ends; it has started by itself."""
    from softarm_ros.rigs.graph import graph_plan
    from softarm_ros.rigs.loader import load_rig

    circle = folder / 'circle.yaml'
    circle.write_text(CIRCLE.format(speed=speed, laps=100))
    rig = load_rig('cable_arm')
    plan = [
        replace(spec, parameters={**spec.parameters, 'twin_check_s': 0.0})
        for spec in graph_plan(rig, trajectory=str(circle), **options)
    ]
    with Bench(rig, plan) as running:
        running.until(lambda: running.state == 'running', READY_S, 'running by itself')
        running.until(lambda: running.moved_at > 0.0, 10.0, 'motion')
        yield running
