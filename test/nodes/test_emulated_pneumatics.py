"""pneumatic_arm with an emulated DAQ, to which force sensor and gripper are connected."""

import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
pytest.importorskip('nidaqmx', reason='nidaqmx is not installed (extra hardware)')
pytest.importorskip('grpc', reason='grpcio is not installed (extra hardware)')
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
    cameras=False,
)
pneumatic = arm_of(CASE)


def outputs(arm):
    return truth(arm, 'output_V', ',')


def test_pneumatic_arm_tracks_as_in_simulation_and_publishes_every_pressure(pneumatic):
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
        (
            'daq kill',
            'DAQ host: ',
        ),  # grpc reports UNAVAILABLE, or CANCELLED for a call in progress
    ],
)
def test_daq_fault_in_motion_sets_the_chamber_outputs_to_zero_and_keeps_them_there(
    pneumatic, fault, text
):
    pneumatic.run()
    began = pneumatic.inject(fault)
    assert_reported(pneumatic, began, text, 'daq', 'supervisor')
    assert not pneumatic.call('supervisor/reset').success
    if fault != 'daq kill':  # a card that nobody reaches keeps its outputs
        pneumatic.until(lambda: not outputs(pneumatic)[:6].any(), 5.0, 'outputs at zero')
    pneumatic.inject('daq revive' if fault == 'daq kill' else 'daq mend')
    pneumatic.until(lambda: not outputs(pneumatic)[:6].any(), 10.0, 'outputs at zero')
    # A recovered DAQ does not move the arm.
    heard_after(pneumatic, 'emulator', pneumatic.now_s() + 0.6)
    assert pneumatic.state == 'fault'
    assert not outputs(pneumatic)[:6].any()
    assert text in pneumatic.values('daq')['not_ready']
    assert pneumatic.call('daq/reset').success
    pneumatic.until(lambda: pneumatic.values('daq')['ready'] == 'true', 10.0, 'ready')
    assert pneumatic.state == 'fault'
    assert not outputs(pneumatic)[:6].any()


def test_tare_service_sets_the_measured_force_to_zero(pneumatic):
    from geometry_msgs.msg import WrenchStamped

    from softarm_ros.nodes.qos import MEASUREMENT

    wrenches = []
    pneumatic.node.create_subscription(WrenchStamped, 'wrench', wrenches.append, MEASUREMENT)
    pneumatic.until(lambda: wrenches, 10.0, 'wrench')
    assert wrenches[-1].wrench.force.z > 2.0
    assert pneumatic.call('daq/tare').success
    pneumatic.until(lambda: abs(wrenches[-1].wrench.force.z) < 0.1, 10.0, 'tared')
