"""Runs a whole arm as processes; the test's process watches and disturbs them."""

import contextlib
import os
import signal
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

# Set before rclpy is imported anywhere: restricts the graph to this computer.
if 'cyclone' in os.environ.get('RMW_IMPLEMENTATION', ''):
    os.environ['ROS_LOCALHOST_ONLY'] = '1'
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
else:  # the same for Fast DDS, but without its shared memory (see set_up_dds)
    os.environ.pop('ROS_LOCALHOST_ONLY', None)
    os.environ.pop('ROS_AUTOMATIC_DISCOVERY_RANGE', None)
    profile = str(Path(__file__).with_name('loopback.xml'))
    old = os.environ.get('ROS_DISTRO', '') in ('humble', 'iron', 'jazzy')
    os.environ[f'{"FASTRTPS" if old else "FASTDDS"}_DEFAULT_PROFILES_FILE'] = profile

with warnings.catch_warnings(), contextlib.suppress(ImportError):
    # At its first use, the type support of ROS imports deprecated modules.
    warnings.simplefilter('ignore')
    import rosidl_generator_py  # noqa: F401

CIRCLE = """\
type: circle
center: [0.0, 0.0, 0.235]
radius: 0.05
speed: {speed}
laps: {laps}
"""
# 13 cm long: a lap is short, and so is the way back to its beginning.
SHORT_CIRCLE = """\
type: circle
center: [0.0, 0.0, 0.24]
radius: 0.02
speed: {speed}
laps: {laps}
"""
READY_S = 150.0  # a computer may start slowly; longer than the supervisor waits
MOVING_M_S = 2e-4  # a resting stepper jitters by less
# Half the rates of the rig file halve the processor time of tests that do not depend on them.
HALF_RATES = ('controller.rate_hz=50', 'sensors.pose_topic.rate_hz=50')


class Bench:
    """Topics, services and processes of a running arm."""

    def __init__(self, rig, plan):
        import rclpy
        from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
        from geometry_msgs.msg import PoseStamped
        from rclpy.context import Context
        from rclpy.node import Node
        from sensor_msgs.msg import JointState
        from std_srvs.srv import Trigger

        from softarm_ros.cli.node_processes import NodeProcesses
        from softarm_ros.cli.topic_run import DEVICE_EXECUTABLES
        from softarm_ros.nodes.qos import (
            DIAGNOSTICS,
            HEARTBEAT,
            MEASUREMENT,
            listening,
            make_executor,
            newest,
        )

        self.plan = {spec.name: spec for spec in plan}
        self.processes = NodeProcesses(plan)
        self.health = {}
        self.diagnosed = []  # (time, name, level, message)
        # Stamps of the messages, not the times at which this process reads them.
        self.moved_at = -np.inf  # last time an actuator was in motion
        self.state_at = -np.inf  # newest state of the actuators
        self._position = None
        self.context = Context()
        rclpy.init(context=self.context)
        self.node = Node('bench', namespace=f'/{rig.name}', context=self.context)
        self.executor = make_executor(self.context)
        self.executor.add_node(self.node)
        # Created long before use: a client that the server has not discovered gets no answer.
        services = [f'supervisor/{asked}' for asked in ('estop', 'start', 'stop', 'reset')]
        for spec in plan:
            if spec.executable in DEVICE_EXECUTABLES:
                services += [f'{spec.name}/{asked}' for asked in ('home', 'reset', 'tare')]
        self.clients = {service: self.node.create_client(Trigger, service) for service in services}
        self.node.create_subscription(
            DiagnosticStatus, 'heartbeat', self._on_heartbeat, newest(HEARTBEAT)
        )
        self.node.create_subscription(
            DiagnosticArray, '/diagnostics', self._on_diagnostics, DIAGNOSTICS
        )
        # Every state counts: if some are missing, motion gets the stamp of a later state.
        every = listening(depth=500)
        self.node.create_subscription(JointState, 'actuators/state', self._on_state, every)
        self.node.create_subscription(PoseStamped, 'tip/pose', self._on_pose, MEASUREMENT)
        self.tip = self.node.create_publisher(PoseStamped, 'tip/pose', MEASUREMENT)
        self._injectors = {}
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
        from softarm_ros.nodes.conversions import health_of, seconds_of

        for status in message.status:
            health = health_of(status)
            at = seconds_of(message.header.stamp)
            self.diagnosed.append((at, health.name, health.level, health.message))

    def _on_pose(self, message):
        from softarm_ros.nodes.conversions import seconds_of

        self.pose_at = seconds_of(message.header.stamp)

    def _on_state(self, message):
        from softarm_ros.nodes.conversions import seconds_of

        position = np.array(message.position)
        moving = np.max(np.abs(message.velocity)) > MOVING_M_S
        if self._position is not None and np.max(np.abs(position - self._position)) > 2e-6:
            moving = True
        self._position = position
        self.state_at = seconds_of(message.header.stamp)
        if moving:
            self.moved_at = self.state_at

    def now_s(self):
        """Return ROS time [s], the time of all stamps."""
        return 1e-9 * self.node.get_clock().now().nanoseconds

    def together(self, name):
        """Return all nodes in the process of a node, which die with it."""
        pid = self.processes.pid(name)
        return [other for other in self.plan if self.processes.pid(other) == pid]

    def kill(self, name):
        """Kill the process of a node; return its nodes and the time of the kill [s]."""
        dead = self.together(name)
        began = self.now_s()
        os.kill(self.processes.pid(name), signal.SIGKILL)
        return dead, began

    def restart(self, names):
        """Restart the process that nodes shared; wait for a heartbeat of each node."""
        for name in names:
            self.health.pop(name, None)
        self.processes.start(names[0])
        self.until(lambda: all(n in self.health for n in names), 30.0, f'{names} again')

    @contextlib.contextmanager
    def paused(self, name):
        """Pause the process of a node during the block, as a busy computer does."""
        pid = self.processes.pid(name)
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

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
        """Return a client with an available service; a new client must wait for discovery."""
        from std_srvs.srv import Trigger

        if service not in self.clients:
            self.clients[service] = self.node.create_client(kind or Trigger, service)
        self.until(self.clients[service].service_is_ready, 10.0, f'service {service}')
        return self.clients[service]

    def call(self, service, kind=None, request=None):
        client = self.client(service, kind)
        future = client.call_async(request or client.srv_type.Request())
        self.until(future.done, 20.0, f'answer of {service}')
        return future.result()

    def inject(self, fault, into='emulator'):
        """Inject a fault into emulated devices or the plant, or mend it; return the time [s]."""
        from std_msgs.msg import String

        if into not in self._injectors:
            self._injectors[into] = self.node.create_publisher(String, f'{into}/inject', 10)
        self.until(self._injectors[into].get_subscription_count, 10.0, f'the {into} listens')
        began = self.now_s()
        self._injectors[into].publish(String(data=fault))
        return began

    def values(self, node):
        """Return the values of a node's last heartbeat, by name."""
        return self.health[node].values if node in self.health else {}

    def run(self):
        """Make the arm track its circle, from any state of the supervisor."""
        self.until(lambda: self.state not in ('', 'waiting'), READY_S, 'ready')
        end = time.monotonic() + 5.0
        while self.state != 'running' and time.monotonic() < end:
            self.call('supervisor/reset')
            self.call('supervisor/start')
            self.spin(0.05)
        self.until(lambda: self.state == 'running', 1.0, 'running')
        began = self.now_s()
        self.until(lambda: self.values('tracker').get('phase') == 'track', 20.0, 'tracking')
        self.until(lambda: self.moved_at > began + 0.3, 10.0, 'motion')

    def hold_time(self, since, wait=0.6):
        """Return how long [s] the arm still moved after an instant, by its actuator states."""
        end = time.monotonic() + wait
        self.until(
            lambda: self.state_at >= since + wait or time.monotonic() > end + 1.0,
            wait + 2.0,
            'states of the actuators',
        )
        return max(self.moved_at - since, 0.0)

    def reasons(self, since, name='supervisor'):
        """Return a node's errors on /diagnostics since an instant, each with its delay [s]."""
        return [
            (at - since, message)
            for at, who, level, message in self.diagnosed
            if who.endswith('/' + name) and level == 2 and at >= since
        ]


def emulated_plan(rig, trajectory):
    """Return the nodes of a rig with emulated devices, without their check for twins."""
    from softarm_ros.rigs.graph import graph_plan
    from softarm_ros.runtime.run_files import devices_folder

    return [
        replace(spec, parameters={**spec.parameters, 'twin_check_s': 0.0})
        for spec in graph_plan(
            rig,
            'emulated',
            trajectory=str(trajectory),
            devices_folder=devices_folder(rig.name),
            autostart=False,
        )
    ]


def first_lap(bench, rig):
    """Make an arm that has not moved yet track a lap; return the mean tracking error [m]."""
    from softarm_ros.cli.topic_run import starter
    from softarm_ros.nodes.run_monitor import RunMonitor

    bench.until(lambda: bench.state == 'ready', READY_S, 'ready')
    with RunMonitor(
        f'/{rig.name}',
        rig.model().configuration_names,
        rig.actuator_names,
        pose_topic=rig.feedback.pose_topic,
        simulated_time=False,
    ) as monitor:
        end = time.monotonic() + 20.0
        while not monitor.hears_all(list(bench.plan)):
            assert time.monotonic() < end, sorted(monitor.health)
            monitor.spin(0.05)
        start_when_ready = starter(monitor, list(bench.plan.values()))
        end = time.monotonic() + 20.0
        while monitor.value('supervisor', 'state') != 'running':
            start_when_ready()
            assert time.monotonic() < end, monitor.health['supervisor'].message
            monitor.spin(0.05)
        end = time.monotonic() + 90.0
        while int(monitor.value('tracker', 'lap', '0')) < 1:
            supervisor = monitor.health['supervisor']
            assert supervisor.values['state'] != 'fault', supervisor.message
            assert time.monotonic() < end, monitor.health['tracker'].values
            monitor.spin(0.05)
        samples = monitor.samples()
    rows = samples.tracking & (samples.lap == 0)
    assert np.sum(rows) > 100
    return float(np.mean(samples.error[rows]))


@contextlib.contextmanager
def circling(folder, speed, settings=(), **options):
    """Run a simulated cable_arm on a circle until the block ends; it starts by itself."""
    from softarm_ros.rigs.graph import graph_plan
    from softarm_ros.rigs.loader import load_rig

    circle = folder / 'circle.yaml'
    circle.write_text(SHORT_CIRCLE.format(speed=speed, laps=100))
    rig = load_rig('cable_arm', settings)
    plan = [
        replace(spec, parameters={**spec.parameters, 'twin_check_s': 0.0})
        for spec in graph_plan(rig, trajectory=str(circle), **options)
    ]
    with Bench(rig, plan) as running:
        running.until(lambda: running.state == 'running', READY_S, 'running by itself')
        running.until(lambda: running.moved_at > 0.0, 10.0, 'motion')
        yield running


@contextlib.contextmanager
def waiting(rig):
    """Run a simulated rig that waits for goals until the block ends; it starts by itself."""
    from softarm_ros.rigs.graph import graph_plan

    plan = [
        replace(spec, parameters={**spec.parameters, 'twin_check_s': 0.0})
        for spec in graph_plan(rig, goals=True)
    ]
    with Bench(rig, plan) as running:
        running.until(lambda: running.state == 'running', READY_S, 'running by itself')
        yield running


def client_until(client, condition, timeout, what):
    """Spin a goal client until a condition holds; fail with the reports it has received."""
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, f'{what}: {client.reports} {client.health["supervisor"]}'
        client.spin(0.02)
