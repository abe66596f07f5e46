"""Life cycle of the nodes that own devices, and of the simulated arm, in this process."""

import threading
import time
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
pytest.importorskip('pymodbus', reason='needs the extra hardware')
pytest.importorskip('nidaqmx', reason='needs the extra hardware')

from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter
from sensor_msgs.msg import FluidPressure
from std_msgs.msg import String
from std_srvs.srv import Trigger

from softarm_ros.drivers.actuator_driver import ActuatorReading
from softarm_ros.drivers.problems import DriverError, Problem
from softarm_ros.nodes.actuator_node import ActuatorNode
from softarm_ros.nodes.conversions import WARN, seconds_of
from softarm_ros.nodes.daq_nodes import DaqActuatorNode, DaqSensorsNode
from softarm_ros.nodes.driver_node import DriverNode
from softarm_ros.nodes.emulator_node import EmulatorNode
from softarm_ros.nodes.node_errors import NodeFailedError, RefusedError
from softarm_ros.nodes.plant_node import PlantNode
from softarm_ros.nodes.qos import make_executor
from softarm_ros.nodes.self_paced import Turns
from softarm_ros.nodes.sensor_node import SensorNode
from softarm_ros.nodes.supervisor_node import SupervisorNode
from softarm_ros.nodes.wire import JointValues
from softarm_ros.perception.sensor import SensorHealth

pytestmark = pytest.mark.ros
RIG = 'hydraulic_arm'
SUCCESS = TransitionCallbackReturn.SUCCESS


@pytest.fixture
def made(context, tmp_path):
    """Return a function that makes a node with parameters, without autostart."""
    nodes = []

    def make(kind, *names, **parameters):
        values = {'rig': RIG, 'twin_check_s': 0.0, 'autostart': False, **parameters}
        if kind is not PlantNode:
            values = {'devices_folder': str(tmp_path), **values}
        overrides = [Parameter(name, value=value) for name, value in values.items()]
        node = kind(*names, context=context, namespace=f'/{RIG}', parameter_overrides=overrides)
        nodes.append(node)
        return node

    yield make
    while nodes:  # the test keeps `make`, and `make` this list
        node = nodes.pop()
        getattr(node, 'close', lambda: None)()
        node.destroy_node()


WRONG = [
    (np.zeros(5), np.zeros(0), r'position \[0.0.*; expected 6 numbers, float64'),
    ([0.0] * 6, np.zeros(0), r'position \[0.0.* \(list\); expected 6 numbers, float64'),
    (np.zeros(6), np.zeros(3), r'effort \[0.0.*; expected 6 numbers, float64'),
]


@pytest.mark.parametrize(('position', 'effort', 'message'), WRONG)
def test_a_reading_of_wrong_shape_ends_the_node_and_names_the_driver(
    made, monkeypatch, tmp_path, position, effort, message
):
    for device in ('servo', 'daq'):
        (tmp_path / f'{device}.port').write_text('9')  # a port where nobody answers
    node = made(ActuatorNode, 'servo')
    assert node.trigger_configure() is SUCCESS
    unknown = ActuatorReading(1.0, np.full(6, np.nan), np.zeros(6), np.zeros(0))
    monkeypatch.setattr(node.driver, 'reading', lambda: unknown)
    node.tick(1.0)  # the supervisor reports NaN
    wrong = ActuatorReading(2.0, position, np.zeros(6), effort)
    monkeypatch.setattr(node.driver, 'reading', lambda: wrong)
    with pytest.raises(NodeFailedError, match=rf'driver \w+ returned {message}'):
        node.tick(2.0)


@pytest.mark.parametrize(
    ('reading', 'message'),
    [
        (5, r'reading 5 \(int\); expected an ActuatorReading or None'),
        (ActuatorReading(np.nan, *[np.zeros(6)] * 3), r'stamp_s nan .*; expected .*monotonic'),
        (ActuatorReading(time.time(), *[np.zeros(6)] * 3), r'stamp_s [0-9]{10}\..*monotonic'),
    ],
)
def test_a_reading_of_no_time_ends_the_node_and_names_the_driver(
    made, monkeypatch, tmp_path, reading, message
):
    for device in ('servo', 'daq'):
        (tmp_path / f'{device}.port').write_text('9')  # a port where nobody answers
    node = made(ActuatorNode, 'servo')
    assert node.trigger_configure() is SUCCESS
    monkeypatch.setattr(node.driver, 'reading', lambda: reading)
    with pytest.raises(NodeFailedError, match=rf'driver \w+ returned {message}'):
        node.tick(1.0)


@pytest.fixture
def moving(made, monkeypatch, tmp_path):
    """Return a node whose device is ready, and a function that permits a command to it."""
    for device in ('servo', 'daq'):
        (tmp_path / f'{device}.port').write_text('9')  # a port where nobody answers
    node = made(ActuatorNode, 'servo')
    assert node.trigger_configure() is SUCCESS and node.trigger_activate() is SUCCESS
    monkeypatch.setattr(node.driver, 'not_ready', lambda: '')
    limits = node.rig.actuator_limits()

    def command():
        node.on_permit(True)
        node._on_command(
            JointValues(0, limits.names, limits.position_min, np.empty(0), np.empty(0))
        )

    return node, command


def test_a_refusal_that_is_no_text_ends_the_node_and_names_the_driver(moving, monkeypatch):
    node, command = moving
    monkeypatch.setattr(node.driver, 'follow', lambda values: False)
    with pytest.raises(NodeFailedError, match=r'returned refusal False \(bool\); expected a text'):
        command()


def raise_jammed(values):
    raise ValueError('jammed')


@pytest.mark.parametrize('refuse', [lambda values: 'jammed', raise_jammed])
def test_a_driver_that_goes_on_refusing_is_not_ready_until_it_is_held(moving, monkeypatch, refuse):
    node, command = moving
    monkeypatch.setattr(node.driver, 'follow', refuse)
    command()
    assert node.heartbeat_values()['not_ready'] == ''  # a drive may be switching on
    end = time.monotonic() + 30.0
    while (not_ready := node.heartbeat_values()['not_ready']) == '':
        assert time.monotonic() < end
        command()
    assert not_ready == 'commands are refused: jammed'
    assert node.heartbeat_values()['outside'] == 'true'  # whatever the computer was doing
    node.on_permit(False)
    node.tick(time.monotonic())
    assert node.heartbeat_values()['not_ready'] == ''  # else no reset could succeed


@pytest.mark.parametrize(
    ('asked', 'answer', 'message'),
    [
        (
            'problems',
            ('cable lost',),
            r"problems \('cable lost',\) \(tuple\); expected a tuple of P",
        ),
        ('problems', 'cable lost', r"problems 'cable lost' \(str\); expected a tuple of Problem"),
        ('not_ready', None, "not_ready None; expected a text, '' if it is ready"),
        (
            'values',
            {'voltage': 12.1},
            r"values {'voltage': 12.1} \(dict\); expected a dict of texts",
        ),
    ],
)
def test_a_wrong_report_ends_the_node_and_names_the_driver(
    made, monkeypatch, tmp_path, asked, answer, message
):
    for device in ('servo', 'daq'):
        (tmp_path / f'{device}.port').write_text('9')  # a port where nobody answers
    node = made(ActuatorNode, 'servo')
    assert node.trigger_configure() is SUCCESS
    monkeypatch.setattr(node.driver, asked, lambda: answer)
    with pytest.raises(NodeFailedError, match=rf'driver \w+ returned {message}'):
        node.heartbeat_values() if asked == 'values' else node.turn(1.0)


def topics(node):
    """Return the numbers of a node's subscriptions and publishers, by topic."""
    listens = Counter(subscription.topic_name for subscription in node.subscriptions)
    return listens, Counter(publisher.topic_name for publisher in node.publishers)


@pytest.mark.parametrize(
    ('kind', 'names', 'topic'),
    [
        (PlantNode, (), 'plant/inject'),
        (EmulatorNode, (), 'emulator/inject'),
        (ActuatorNode, ('servo',), 'chambers/pressure'),
        (DaqSensorsNode, (), 'supervisor/permit'),
    ],
)
def test_a_node_configured_twice_has_each_topic_once(made, kind, names, topic):
    if kind in (ActuatorNode, DaqSensorsNode):
        assert made(EmulatorNode).trigger_configure() is SUCCESS  # of the node's devices
    node = made(kind, *names)
    assert node.trigger_configure() is SUCCESS
    once = topics(node)
    assert once[0][f'/{RIG}/{topic}'] == 1
    assert node.trigger_cleanup() is SUCCESS
    assert node.trigger_configure() is SUCCESS
    assert topics(node) == once
    assert set(once[0].values()) | set(once[1].values()) == {1}


def homed_by_itself(node, monkeypatch):
    """Start a node whose device is not homed; return whether the node homes it."""
    assert node.trigger_configure() is SUCCESS and node.trigger_activate() is SUCCESS
    homed = []
    monkeypatch.setattr(node.driver, 'not_ready', lambda: 'not homed')
    monkeypatch.setattr(node.driver, 'home', lambda: homed.append(True))
    node.work()
    return bool(homed)


def test_restarted_driver_homes_by_itself_only_if_the_arm_has_not_moved(
    made, monkeypatch, tmp_path
):
    for device in ('servo', 'daq'):
        (tmp_path / f'{device}.port').write_text('9')  # a port where nobody answers
    before = made(ActuatorNode, 'servo', home=True)
    assert homed_by_itself(before, monkeypatch)
    before.on_permit(allowed=False)
    assert homed_by_itself(made(ActuatorNode, 'servo', home=True), monkeypatch)  # has not moved
    before.on_permit(allowed=True)
    assert not homed_by_itself(made(ActuatorNode, 'servo', home=True), monkeypatch)
    assert made(EmulatorNode).trigger_configure() is SUCCESS  # another arm, at rest
    assert homed_by_itself(made(ActuatorNode, 'servo', home=True), monkeypatch)


def test_home_at_the_start_homes_a_device_that_has_a_zero_once_and_nothing_starts_before(
    made, monkeypatch
):
    node = made(ActuatorNode, 'servo', home=True, devices_folder='')
    assert node.trigger_configure() is SUCCESS and node.trigger_activate() is SUCCESS
    answers, homed = ['no state yet'], []

    def home():
        if answers:
            raise DriverError(answers.pop())
        homed.append(True)

    monkeypatch.setattr(node.driver, 'not_ready', lambda: '')
    monkeypatch.setattr(node.driver, 'home', home)
    began = time.monotonic()
    for after_s, said, count in (
        (0.0, 'homing at the start waits; no state yet', 0),
        (1.0, 'no command yet', 1),
        (2.0, 'no command yet', 1),
    ):
        node.tick(began + after_s)
        assert (node.heartbeat_values()['not_ready'], len(homed)) == (said, count)


def test_a_device_that_refuses_to_be_homed_at_the_start_says_why(made, monkeypatch):
    node = made(ActuatorNode, 'servo', home=True, devices_folder='')
    assert node.trigger_configure() is SUCCESS and node.trigger_activate() is SUCCESS
    answers = ['no pressures measured yet']

    def home():
        if answers:
            raise DriverError(answers.pop())

    monkeypatch.setattr(node.driver, 'not_ready', lambda: 'not homed; call home')
    monkeypatch.setattr(node.driver, 'home', home)
    began = time.monotonic()
    for after_s, said in (
        (0.0, 'not homed; call home; homing at the start waits: no pressures measured yet'),
        (1.0, 'not homed; call home'),
    ):
        node.tick(began + after_s)
        assert node.heartbeat_values()['not_ready'] == said


def test_motion_before_the_device_could_be_homed_at_the_start_ends_that_homing(made, monkeypatch):
    node = made(ActuatorNode, 'servo', home=True, devices_folder='')
    assert node.trigger_configure() is SUCCESS and node.trigger_activate() is SUCCESS
    homed = []
    monkeypatch.setattr(node.driver, 'home', lambda: homed.append(True))
    for allowed in (True, False):
        node.on_permit(allowed)
    node.tick(time.monotonic())
    assert not homed


def test_emergency_stop_and_deactivation_stop_homing(made, monkeypatch, tmp_path):
    for device in ('servo', 'daq'):
        (tmp_path / f'{device}.port').write_text('9')  # a port where nobody answers
    supervisor = made(SupervisorNode)
    node = made(ActuatorNode, 'servo')
    assert node.trigger_configure() is SUCCESS
    homed, stopped = [], []
    monkeypatch.setattr(node.driver, 'home', lambda: homed.append(True))
    monkeypatch.setattr(node.driver, 'stop_homing', lambda: stopped.append(True))

    def home():
        reply = node._on_home(Trigger.Request(), Trigger.Response())
        return reply.message if not reply.success else len(homed)

    def after(request, halts, halted):
        """Request; wait until homing was stopped so often; return each state on the way."""
        request(0.0, 0.0)
        end, seen = time.monotonic() + 10.0, []
        while (len(stopped), node._halted) != (halts, halted) and time.monotonic() < end:
            executor.spin_once(timeout_sec=0.1)
            seen.append(node._halted)
        assert (len(stopped), node._halted) == (halts, halted)
        assert node.heartbeat_values()['halted'] == str(halted).lower()
        return seen

    def stop_twice(*now):
        supervisor._stop(*now)
        supervisor._stop(*now)

    executor = SingleThreadedExecutor(context=node.context)
    executor.add_node(node)
    assert home() == 'not active'
    assert node.trigger_activate() is SUCCESS
    assert home() == 1
    after(supervisor._stop, 1, False)
    assert home() == 2
    after(supervisor._estop, 3, True)  # by the event and by the state
    assert home() == 'emergency stop; call supervisor/reset first'
    assert all(after(stop_twice, 5, True))  # does not end the emergency stop
    assert home() == 'emergency stop; call supervisor/reset first'
    after(supervisor._reset, 5, False)
    assert home() == 3
    assert node.trigger_deactivate() is SUCCESS
    assert len(stopped) == 6
    executor.shutdown()


def test_a_driver_started_later_is_kept_from_homing_only_by_an_emergency_stop_in_force(
    made, monkeypatch
):
    halts, on_halt = [], ActuatorNode._on_halt

    def told(node, halted):
        on_halt(node, halted)
        halts.append(halted)

    monkeypatch.setattr(ActuatorNode, '_on_halt', told)
    supervisor = made(SupervisorNode)

    def homes():
        """Start a driver that homes at its start; return whether it does."""
        node = made(ActuatorNode, 'servo', home=True, devices_folder='')
        executor, homed = SingleThreadedExecutor(context=node.context), []
        executor.add_node(node)
        assert node.trigger_configure() is SUCCESS and node.trigger_activate() is SUCCESS
        monkeypatch.setattr(node.driver, 'home', lambda: homed.append(True))
        halts.clear()
        end = time.monotonic() + 10.0
        while not halts or halts[-1] is not in_force:
            assert time.monotonic() < end
            executor.spin_once(timeout_sec=0.1)
        node.tick(time.monotonic())
        executor.shutdown()
        return bool(homed)

    in_force = True
    supervisor._stop(0.0, 0.0)
    supervisor._estop(0.0, 0.0)
    assert not homes()
    in_force = False
    supervisor._reset(0.0, 0.0)
    assert homes()


def test_silence_of_a_supervisor_that_was_heard_stops_homing(made, monkeypatch, tmp_path):
    for device in ('servo', 'daq'):
        (tmp_path / f'{device}.port').write_text('9')  # a port where nobody answers
    node = made(ActuatorNode, 'servo')
    assert node.trigger_configure() is SUCCESS and node.trigger_activate() is SUCCESS
    monkeypatch.setattr(node.driver, 'home', lambda: None)
    stopped = []
    monkeypatch.setattr(node.driver, 'stop_homing', lambda: stopped.append(True))

    def home_at(now_s):
        node.tick(now_s)
        return node._on_home(Trigger.Request(), Trigger.Response()).message

    heard_s = time.monotonic()
    alive = home_at(heard_s)  # without any supervisor, as on a bench
    assert 'silent' not in alive
    node.on_permit(False)
    for later_s in (0.1, 0.9):
        assert home_at(heard_s + later_s) == alive
    assert not stopped
    for later_s in (61.0, 62.0):  # a little less since it was heard
        refusal = home_at(heard_s + later_s)
        assert refusal.startswith('supervisor silent for 6') and 'start it again' in refusal
    assert stopped == [True]
    node.on_permit(False)  # of a restarted supervisor
    assert home_at(time.monotonic()) == alive


class Grasp:
    """Stands in for the driver of an arm with a gripper, which holds what it was last told."""

    def __init__(self):
        self.gripper, self.target_Pa = self, None

    def state(self):
        return self

    def set_pressure(self, target_Pa):
        if target_Pa > 9e4:
            raise ValueError('too much')
        self.target_Pa = target_Pa

    def close(self):
        pass


def test_refusal_of_a_gripper_command_is_told_until_the_next_command(made, monkeypatch):
    node = made(DaqActuatorNode, rig='pneumatic_arm')
    monkeypatch.setattr(node, 'driver', Grasp())
    node._held = ''

    def refusal_of(pressure_Pa):
        node._on_gripper(FluidPressure(fluid_pressure=pressure_Pa))
        return node._gripper_refused

    told = [refusal_of(pressure_Pa) for pressure_Pa in (5e4, 1e9, 5e4)]
    assert told == ['', 'too much', '']


class Device:
    """Stands in for a device's driver; counts how often it is started and closed."""

    def __init__(self, fails=None):
        self.fails, self.started, self.closed = fails, 0, 0

    def start(self):
        self.started += 1
        if self.fails is not None:
            raise self.fails

    def close(self):
        self.closed += 1

    def problems(self):
        return ()

    def not_ready(self):
        return ''

    def values(self):
        return {}


class Owner(DriverNode):
    """A node whose driver is a `Device`."""

    def __init__(self, fails=None, **options):
        super().__init__('daq', **options)
        self.devices, self.fails, self.failing, self.ticks = [], fails, '', 0

    def build(self, devices):
        self.devices.append(Device(self.fails))
        return self.devices[-1]

    def tick(self, now_s):
        self.ticks += 1

    def begin(self):
        if self.failing:
            raise ZeroDivisionError(self.failing)


def owner(made, fails=None, **parameters):
    return made(Owner, fails, devices_folder='', **parameters)


def state(node):
    return node._state_machine.current_state[1]


def test_device_is_closed_once_per_configuration_whatever_ends_it(made):
    node = owner(made)
    assert node.trigger_configure() is SUCCESS and node.trigger_activate() is SUCCESS
    assert node.active
    node.work()
    assert node.ticks == 1 and node.heartbeat.message == 'measuring'
    assert node.trigger_deactivate() is SUCCESS and not node.active
    node.work()
    assert node.ticks == 2 and node.heartbeat.message == 'inactive'
    assert node.trigger_cleanup() is SUCCESS
    assert node.heartbeat.message == 'unconfigured'
    node.work()
    assert node.ticks == 2
    assert node.trigger_configure() is SUCCESS and node.trigger_activate() is SUCCESS
    assert node.trigger_shutdown() is SUCCESS
    assert node.heartbeat.message == 'shut down'
    node.work()  # nothing to do, and no attempt to start again
    node.close()
    node.close()
    assert [(d.started, d.closed) for d in node.devices] == [(1, 1)] * 2
    assert state(node) == 'finalized' and not node.active


def test_a_reset_reaches_only_a_driver_with_something_to_reset(made, monkeypatch):
    node = owner(made)
    assert node.trigger_configure() is SUCCESS and node.trigger_activate() is SUCCESS
    device, resets = node.devices[0], []
    device.reset = lambda: resets.append(True)

    def answer():
        reply = node._on_reset(Trigger.Request(), Trigger.Response())
        assert reply.success
        return reply.message, len(resets)

    assert answer() == ('nothing to reset: the device is ready', 0)
    monkeypatch.setattr(device, 'not_ready', lambda: 'steppers: 3 stopped')
    assert answer() == ('no problems to clear', 1)
    lost = Problem('link', '', 'lost', 0.0)
    gone = Problem('inputs', 'grpc UNAVAILABLE', 'no host', 0.0, passing=True, outside=True)
    monkeypatch.setattr(device, 'problems', lambda: (lost,))
    assert answer() == ('1 problems cleared', 2)
    assert node.heartbeat_values()['latched'] == 'true'
    assert node.heartbeat_values()['outside'] == 'false'
    monkeypatch.setattr(device, 'problems', lambda: (gone,))
    assert node.heartbeat_values()['latched'] == 'false'  # it ends without a reset
    assert node.heartbeat_values()['outside'] == 'true'
    monkeypatch.setattr(device, 'problems', lambda: (gone, lost))
    assert node.heartbeat_values()['latched'] == node.heartbeat_values()['outside'] == 'true'
    failed = Problem('servo', 'internal', 'driver failed', 0.0, lasting=True)
    monkeypatch.setattr(device, 'problems', lambda: (failed, lost))
    reply = node._on_reset(Trigger.Request(), Trigger.Response())
    assert not reply.success
    assert reply.message == 'a reset does not help: servo: internal driver failed'
    node.starting_up = True  # an emulated device, which the node resets by itself
    assert node.heartbeat_values()['latched'] == 'false'


def test_an_inactive_driver_says_so_before_what_its_device_waits_for(made, monkeypatch):
    """It said `not homed; call home`, and answered `not active` to that call."""
    node = owner(made)
    assert node.trigger_configure() is SUCCESS
    device = node.devices[0]
    monkeypatch.setattr(device, 'not_ready', lambda: 'not homed; call home')
    node.work()
    assert node.heartbeat.message == 'inactive; not homed; call home'
    assert node.heartbeat_values()['not_ready'] == 'inactive'
    assert node.trigger_activate() is SUCCESS
    node.turn(1.0)
    assert node.heartbeat.message == node.heartbeat_values()['not_ready'] == 'not homed; call home'
    assert node.trigger_deactivate() is SUCCESS
    lost = Problem('link', '', 'lost', 0.0)
    monkeypatch.setattr(device, 'problems', lambda: (lost,))
    node.turn(2.0)
    assert node.heartbeat.message == str(lost)
    assert node.heartbeat_values()['not_ready'] == 'not homed; call home'


def test_tare_is_refused_without_samples_and_without_a_daq(made, tmp_path):
    (tmp_path / 'daq.port').write_text('9')  # a port where nobody answers
    node = made(DaqActuatorNode, rig='pneumatic_arm')

    def answer():
        reply = node._topics._on_tare(Trigger.Request(), Trigger.Response())
        assert not reply.success
        return reply.message

    assert answer() == 'not configured'
    assert node.trigger_configure() is SUCCESS
    assert answer() == 'the DAQ sends no samples; call tare again when it does'
    assert node.trigger_cleanup() is SUCCESS
    assert answer() == 'not configured'


class Loaded:
    """Stands in for a DAQ that reads a force sensor."""

    config = SimpleNamespace(tare_s=0.5)
    taring = False

    def tare(self):
        self.taring = True


@pytest.mark.parametrize('kind', [DaqSensorsNode, DaqActuatorNode])
def test_no_tare_while_the_arm_may_move_and_no_start_during_a_tare(made, monkeypatch, kind):
    node, daq = made(kind, rig='pneumatic_arm'), Loaded()
    monkeypatch.setattr(node._topics, '_daq', daq)

    def tare():
        reply = node._topics._on_tare(Trigger.Request(), Trigger.Response())
        return reply.success, reply.message

    if kind is DaqActuatorNode:
        monkeypatch.setattr(node._gate, 'not_ready', lambda: '')
    node.on_permit(True)
    assert tare() == (False, 'the arm follows commands; stop it first')
    assert not daq.taring and node.waits_for() == ''
    node.on_permit(False)
    assert tare() == (True, 'the load of the next 0.5 s counts as zero')
    assert node.waits_for() == 'the force sensor is being tared'
    daq.taring = False
    assert node.waits_for() == ''


def test_a_supervisor_that_falls_silent_no_longer_keeps_an_arm_from_a_tare(made):
    node = made(DaqSensorsNode, rig='pneumatic_arm')
    node.on_permit(True)
    assert node.may_move
    node._allowed_s -= node.rig.supervisor.permit_timeout_s
    assert not node.may_move


def test_unreachable_device_is_closed_and_the_reason_is_reported(made):
    node = owner(made, DriverError('pymodbus is not installed'))
    assert node.trigger_configure() is TransitionCallbackReturn.FAILURE
    assert node.heartbeat.message == 'pymodbus is not installed'
    assert state(node) == 'unconfigured'
    assert (node.devices[0].started, node.devices[0].closed) == (1, 1)


def test_first_failure_is_reported_if_closing_fails_as_well(made, monkeypatch):
    node = owner(made, DriverError('pymodbus is not installed'))
    monkeypatch.setattr(Device, 'close', lambda self: self.nothing)
    assert node.trigger_configure() is TransitionCallbackReturn.ERROR
    assert node.heartbeat.message == 'pymodbus is not installed'
    assert state(node) == 'unconfigured'


@pytest.mark.parametrize('when', ['configure', 'activate'])
def test_unexpected_exception_closes_the_device_and_leaves_the_node_unconfigured(made, when):
    node = owner(made, KeyError('a defect') if when == 'configure' else None)
    node.failing = 'a defect'
    if when == 'activate':
        assert node.trigger_configure() is SUCCESS
    done = node.trigger_configure() if when == 'configure' else node.trigger_activate()
    assert done is TransitionCallbackReturn.ERROR
    assert state(node) == 'unconfigured' and not node.active
    assert node.devices[0].closed == 1
    assert node.heartbeat.message.startswith('failed: ')
    assert 'a defect' in node.heartbeat.message
    node.fails, node.failing = None, ''
    assert node.trigger_configure() is SUCCESS and node.trigger_activate() is SUCCESS


def test_autostart_waits_until_the_devices_exist(made, tmp_path):
    late = made(DaqSensorsNode, autostart=True)
    late.work()
    assert late.heartbeat.message.startswith('waiting: no emulated device in ')
    assert state(late) == 'unconfigured'
    assert made(EmulatorNode).trigger_configure() is SUCCESS
    end = time.monotonic() + 20.0
    while state(late) != 'active':
        assert time.monotonic() < end
        late.work()
        time.sleep(max(late.due - time.monotonic(), 0.0))
    assert not list(tmp_path.glob('*.part'))


@pytest.mark.parametrize('executor_of', [make_executor, SingleThreadedExecutor])
def test_thread_of_a_device_wakes_the_node_before_its_next_tick(made, executor_of):
    node = owner(made)
    assert node.trigger_configure() is SUCCESS and node.trigger_activate() is SUCCESS
    taken = []
    node.news = lambda: taken.append(threading.current_thread())
    executor = executor_of(context=node.context)
    executor.add_node(node)
    turns = Turns(executor, [node])
    node.work()
    node._rhythm.due_s = node.due = time.monotonic() + 60.0
    ticks, began = node.ticks, time.monotonic()
    device = threading.Thread(target=lambda: [node.wake() for _ in range(3)])
    device.start()
    device.join()
    while not taken and time.monotonic() < began + 30.0:
        turns.take()
    assert taken == [threading.main_thread()]
    assert node.ticks == ticks and node.due == node._rhythm.due_s
    executor.remove_node(node)
    executor.shutdown()


def test_news_of_a_device_wait_for_the_tick_if_nothing_is_spinning(made):
    node = owner(made)
    assert node.trigger_configure() is SUCCESS
    taken = []
    node.news = lambda: taken.append(node.ticks)
    node.wake()
    node.work()
    node.work()
    assert taken == [0] and node.ticks == 2


def test_failed_autostart_raises_with_the_reason(made):
    node = owner(made, DriverError('pymodbus is not installed'), autostart=True)
    with pytest.raises(NodeFailedError, match='pymodbus is not installed'):
        node.work()


def test_node_that_is_shut_down_while_it_waits_does_not_start(made):
    node = made(DaqSensorsNode, autostart=True)
    node.work()
    assert node.trigger_shutdown() is SUCCESS
    node._retry_s = 0.0
    node.work()
    assert state(node) == 'finalized'


def test_configure_on_request_without_devices_says_that_it_is_not_repeated(made, tmp_path):
    node = made(DaqSensorsNode)
    assert node.trigger_configure() is TransitionCallbackReturn.FAILURE
    assert state(node) == 'unconfigured'
    assert node.heartbeat.message == (
        f'no emulated device in {tmp_path / "daq.port"} yet; call configure again'
    )
    assert made(EmulatorNode).trigger_configure() is SUCCESS
    node.work()
    assert state(node) == 'unconfigured'
    assert node.trigger_configure() is SUCCESS


def test_shutdown_of_the_emulator_removes_the_files_of_its_devices(made, tmp_path):
    node = made(EmulatorNode)
    assert node.trigger_configure() is SUCCESS and node.trigger_activate() is SUCCESS
    found = sorted(path.name for path in tmp_path.iterdir())
    assert found == ['daq.port', 'servo.port', 'stereo_cameras.sensor.json']
    assert node.trigger_shutdown() is SUCCESS
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ('ending', 'said'), [('trigger_deactivate', 'inactive'), ('trigger_shutdown', 'shut down')]
)
def test_plant_that_is_not_active_stands_still_and_is_not_ready(made, ending, said):
    node = made(PlantNode, rig='cable_arm')
    assert node.trigger_configure() is SUCCESS and node.trigger_activate() is SUCCESS
    node._gate.on_command(time.monotonic(), np.zeros(len(node._gate.limits.names)))
    assert node._values()['ready'] == 'true'
    assert getattr(node, ending)() is SUCCESS
    assert (node._values()['ready'], node._values()['not_ready']) == ('false', said)
    assert (node._heartbeat.level, node._heartbeat.message) == (WARN, said)
    poses = node._values()['poses']
    node.due = 0.0
    node.work()
    assert node.due > 0.0  # it has looked for work
    assert node._values()['poses'] == poses


def test_emulator_keeps_other_files_of_its_folder(made, tmp_path):
    others = [tmp_path / 'notes.txt', tmp_path / 'servo.csv']
    for other in others:
        other.write_text('kept')
    (tmp_path / 'servo.moved').touch()  # of an earlier arm
    node = made(EmulatorNode)
    assert node.trigger_configure() is SUCCESS
    assert not (tmp_path / 'servo.moved').exists()
    assert node.trigger_cleanup() is SUCCESS
    assert sorted(tmp_path.iterdir()) == others


def test_emulator_refuses_to_start_without_a_folder(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RefusedError, match='devices_folder is empty; expected a folder'):
        made(EmulatorNode, devices_folder='')


def test_driver_and_sensor_follow_a_restarted_emulator_to_its_new_ports(made, tmp_path):
    emulator, servo = made(EmulatorNode), made(ActuatorNode, 'servo')
    cameras = made(SensorNode, sensor='stereo_cameras')
    nodes = servo, cameras
    assert emulator.trigger_configure() is SUCCESS
    for node in nodes:
        assert node.trigger_configure() is SUCCESS
    assert servo.trigger_activate() is SUCCESS

    def look():
        for node in nodes:
            node._look_s = 0.0
            node.work()

    look()
    first = servo.driver, cameras._sensor
    assert emulator.trigger_cleanup() is SUCCESS
    look()
    assert (servo.driver, cameras._sensor) == first  # nothing there: they keep trying
    assert emulator.trigger_configure() is SUCCESS
    look()
    assert servo.driver.config.port == int((tmp_path / 'servo.port').read_text())
    assert servo.driver is not first[0] and cameras._sensor is not first[1]
    assert (state(servo), state(cameras)) == ('active', 'inactive')
    again = servo.driver, cameras._sensor
    look()
    assert (servo.driver, cameras._sensor) == again


def test_sensor_that_is_not_active_says_so_although_it_still_sees_the_arm(made, monkeypatch):
    assert made(EmulatorNode).trigger_configure() is SUCCESS
    node = made(SensorNode, sensor='stereo_cameras')
    assert node.trigger_configure() is SUCCESS
    seen = SensorHealth(connected=True, seen=('tip',))
    monkeypatch.setattr(node._sensor, 'health', lambda: seen)

    def said_at_the_next_turn():
        node._rhythm.due_s = node.due = 0.0
        node.work()
        return node.heartbeat.message

    assert said_at_the_next_turn() == 'inactive'
    assert node.trigger_activate() is SUCCESS
    assert said_at_the_next_turn() == 'measuring tip'
    assert node.trigger_deactivate() is SUCCESS
    assert node.heartbeat.message == said_at_the_next_turn() == 'inactive'


def test_unconfigured_sensor_says_why_it_could_not_be_configured(made, tmp_path):
    node = made(SensorNode, sensor='stereo_cameras')
    assert node.heartbeat_values()['not_ready'] == 'unconfigured'
    assert node.trigger_configure() is TransitionCallbackReturn.FAILURE
    found = node.heartbeat_values()
    assert found['ready'] == 'false'
    assert found['not_ready'].startswith(f'no emulated sensor in {tmp_path}')


def test_emulator_says_whether_it_is_active(made):
    node = made(EmulatorNode)

    def said():
        values = node.heartbeat_values()
        return values['ready'], values['not_ready']

    assert said() == ('false', 'unconfigured')
    assert node.trigger_configure() is SUCCESS and said() == ('false', 'inactive')
    assert node.trigger_activate() is SUCCESS and said() == ('true', '')
    assert node.trigger_deactivate() is SUCCESS and said() == ('false', 'inactive')


@pytest.mark.parametrize('kind', [PlantNode, EmulatorNode])
def test_fault_ends_with_the_arm_into_which_it_was_injected(made, kind, capfd):
    node = made(kind)
    values = node._values if kind is PlantNode else node.heartbeat_values
    node._on_inject(String(data='cameras freeze'))
    assert "inject 'cameras freeze': unconfigured" in capfd.readouterr().err
    told = []
    for _ in range(2):
        assert node.trigger_configure() is SUCCESS
        told.append(values()['injected'])
        node._on_inject(String(data='cameras freeze'))
        told.append(values()['injected'])
        assert node.trigger_cleanup() is SUCCESS
    assert told == ['none', 'cameras freeze'] * 2


def test_simulated_time_goes_on_when_the_plant_is_configured_again(made, monkeypatch):
    node = made(PlantNode, rig='cable_arm', time_scale=10.0, use_sim_time=True)
    clock = []
    monkeypatch.setattr(
        node._clock_publisher, 'publish', lambda message: clock.append(seconds_of(message.clock))
    )

    def run():
        assert node.trigger_configure() is SUCCESS and node.trigger_activate() is SUCCESS
        periods, end = len(clock) + 20, time.monotonic() + 20.0
        while len(clock) < periods and time.monotonic() < end:
            node.work()
        assert node.trigger_deactivate() is SUCCESS and node.trigger_cleanup() is SUCCESS
        assert node._loop_now_s() >= clock[-1]

    run()
    run()
    assert np.allclose(np.diff(clock), 0.01, atol=1e-4) and len(clock) >= 40
