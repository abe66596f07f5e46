"""pneumatic_arm with its DAQ emulated, force sensor and gripper at it."""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
pytest.importorskip('nidaqmx', reason='nidaqmx is not installed (extra hardware)')
pytest.importorskip('grpc', reason='grpcio is not installed (extra hardware)')
pytest.importorskip('cv2', reason="needs cameras: pip install 'softarm_ros[sensing]'")
from emulated_bench import (
    PATIENT_DAQ,
    Case,
    arm_of,
    assert_reported,
    assert_tracks,
    heard_after,
    truth,
)

pytestmark = [pytest.mark.ros, pytest.mark.wall_clock, pytest.mark.timeout(300)]
CASE = Case(
    'pneumatic_arm',
    'type: waypoints\npoints: [[0.05, -0.015, 0.195], [0.05, 0.015, 0.195], [0.055, 0.0, 0.195]]\n'
    'closed: true\n'
    'speed: 0.015\nlaps: 100\n',
    settings=('drives.daq.command_timeout_s=0.7', *PATIENT_DAQ),
)
pneumatic = arm_of(CASE)


def outputs(arm):
    return truth(arm, 'output_V', ',')


def test_air_follows_as_in_simulation_and_every_chamber_is_measured(pneumatic):
    from sensor_msgs.msg import FluidPressure

    from softarm_ros.nodes.qos import MEASUREMENT, PER_CHAMBER

    pressures, gripper = [], []
    for topic, told, qos in (
        ('chambers/pressure', pressures, PER_CHAMBER),
        ('gripper/pressure', gripper, MEASUREMENT),
    ):
        pneumatic.node.create_subscription(FluidPressure, topic, told.append, qos)
    assert_tracks(pneumatic)
    assert pneumatic.values('daq')['ready'] == 'true'
    pneumatic.until(lambda: len(pressures) > 60 and gripper, 10.0, 'pressures')
    names = set(pneumatic.rig.actuator_names)
    assert {message.header.frame_id for message in pressures} == names
    pneumatic.until(lambda: outputs(pneumatic).max() > 0.1, 10.0, 'volts at the regulators')


@pytest.mark.parametrize(
    ('fault', 'text'),
    [
        ('daq open distal_chamber_2', 'distal_chamber_2: open'),
        ('daq kill', 'grpc UNAVAILABLE'),
    ],
)
def test_a_fault_in_motion_empties_the_chambers(pneumatic, fault, text):
    pneumatic.run()
    began = pneumatic.inject(fault)
    assert_reported(pneumatic, began, text, 'daq', 'supervisor')
    assert not pneumatic.call('supervisor/reset').success
    if fault != 'daq kill':  # the outputs of a card nobody reaches stand as they were
        pneumatic.until(lambda: not outputs(pneumatic)[:6].any(), 5.0, 'outputs at zero')
    pneumatic.inject('daq revive' if fault == 'daq kill' else 'daq mend')
    pneumatic.until(lambda: not outputs(pneumatic)[:6].any(), 10.0, 'outputs at zero')
    # What has come back by itself moves nothing.
    heard_after(pneumatic, 'emulator', pneumatic.now_s() + 0.6)
    assert pneumatic.state == 'fault'
    assert not outputs(pneumatic)[:6].any()
    assert text in pneumatic.values('daq')['not_ready']
    assert pneumatic.call('daq/reset').success
    pneumatic.until(lambda: pneumatic.values('daq')['ready'] == 'true', 10.0, 'ready')
    assert pneumatic.state == 'fault'
    assert not outputs(pneumatic)[:6].any()


def test_the_force_sensor_is_tared_by_a_service(pneumatic):
    from geometry_msgs.msg import WrenchStamped

    from softarm_ros.nodes.qos import MEASUREMENT

    wrenches = []
    pneumatic.node.create_subscription(WrenchStamped, 'wrench', wrenches.append, MEASUREMENT)
    pneumatic.until(lambda: wrenches, 10.0, 'wrench')
    assert wrenches[-1].wrench.force.z > 2.0
    assert pneumatic.call('daq/tare').success
    pneumatic.until(lambda: abs(wrenches[-1].wrench.force.z) < 0.1, 10.0, 'tared')


def tips_of(arm):
    """Return a list that measured tips (time, x, y, z) are added to, and its subscription."""
    from geometry_msgs.msg import PoseStamped

    from softarm_ros.nodes.conversions import seconds_of
    from softarm_ros.nodes.qos import MEASUREMENT

    tips = []

    def note(message):
        where = message.pose.position
        tips.append((seconds_of(message.header.stamp), where.x, where.y, where.z))

    return tips, arm.node.create_subscription(PoseStamped, 'tip/pose', note, MEASUREMENT)


def test_a_camera_without_its_cable_is_named_and_the_arm_is_held(pneumatic):
    """Each of the other faults of cameras: test/perception/stereo/test_stereo_sensor.py."""
    said, advice = 'left camera: no image for', 'plug, power and network'
    pneumatic.call('daq/reset')  # of what a busy computer made it stop for
    pneumatic.run()
    tips, listener = tips_of(pneumatic)
    pneumatic.until(lambda: len(tips) > 5, 5.0, 'tips')
    pneumatic.inject('stereo_cameras unplug left')

    def told():
        health = pneumatic.health.get('stereo_cameras')
        return health is not None and said in health.message

    pneumatic.until(told, 8.0, said)
    assert advice in pneumatic.health['stereo_cameras'].message
    pneumatic.until(lambda: pneumatic.state != 'running', 5.0, 'held')
    pneumatic.inject('stereo_cameras mend')
    pneumatic.until(
        lambda: pneumatic.values('stereo_cameras').get('ready') == 'true', 10.0, 'ready again'
    )
    pneumatic.node.destroy_subscription(listener)
    steps = np.diff(tips, axis=0)
    # No measured tip is elsewhere than where the arm can have moved to.
    assert (np.linalg.norm(steps[:, 1:], axis=1) < 0.005 + 0.1 * steps[:, 0]).all()
