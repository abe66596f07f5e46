"""hydraulic_arm with emulated servo drives and DAQ."""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2 (rclpy)')
pytest.importorskip('pymodbus', reason='pymodbus is not installed (extra hardware)')
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
    'hydraulic_arm',
    'type: waypoints\n'
    'points: [[0.06, -0.015, 0.776], [0.06, 0.015, 0.776], [0.0725, 0.0, 0.776]]\n'
    'closed: true\n'
    'speed: 0.02\nlaps: 100\n',
    settings=(
        'drives.servo.pressure_timeout_s=0.4',
        'drives.servo.link_timeout_s=0.4',
        'drives.servo.response_timeout_s=0.2',
        'drives.servo.command_timeout_s=0.4',
        *PATIENT_DAQ,
    ),
    cameras=False,
)
hydraulic = arm_of(CASE)


def lifted(arm):
    return arm.values('emulator')['brakes_lifted']


def ready(arm):
    """Mend, reset and home the devices until both are ready, from any state."""
    for what in ('servo mend', 'daq mend'):
        arm.inject(what)
    arm.until(lambda: arm.values('servo').get('connected') == 'true', 10.0, 'connection')

    def sound():
        arm.call('daq/reset')
        arm.call('servo/reset')
        arm.spin(0.3)
        return not any(arm.values(n).get('problem 1') for n in ('servo', 'daq'))

    arm.until(sound, 20.0, 'no problems')
    if arm.values('servo')['ready'] != 'true':
        arm.until(lambda: arm.call('servo/home').success, 10.0, 'home')
    for name in ('daq', 'servo'):
        arm.until(lambda name=name: arm.values(name)['ready'] == 'true', 20.0, name)


def test_hydraulic_arm_tracks_as_in_simulation_without_boiling(hydraulic):
    assert_tracks(hydraulic)
    assert lifted(hydraulic) == 'all'
    assert truth(hydraulic, 'pressure_kPa').max() > 100.0
    values = hydraulic.values('servo')
    assert int(values['pressures']) > 50
    assert values['pressures_rejected'] == '0'
    assert values['connections'] == '1'
    np.testing.assert_array_equal(truth(hydraulic, 'boiled_s'), 0.0)


@pytest.mark.parametrize(
    ('fault', 'node', 'text', 'off'),
    [  # one per device: its node, the text it reports, whether the drives switch off
        ('servo fault distal_2 0x4210', 'servo', '0x4210 drive over-temperature', True),
        ('daq open proximal_2', 'daq', 'proximal_2: open', False),
    ],
)
def test_fault_in_motion_holds_the_chamber_pressures_even_after_it_is_mended(
    hydraulic, fault, node, text, off
):
    ready(hydraulic)
    hydraulic.run()
    driven = truth(hydraulic, 'pressure_kPa')
    began = hydraulic.inject(fault)
    assert_reported(hydraulic, began, text, node, 'supervisor')
    heard_after(hydraulic, 'emulator', hydraulic.now_s() + 0.7)
    assert lifted(hydraulic) == ('none' if off else 'all')
    # By brakes, or by constant torques: the chambers keep their water.
    before, torque = truth(hydraulic, 'pressure_kPa'), truth(hydraulic, 'torque_N_m')
    heard_after(hydraulic, 'emulator', hydraulic.now_s() + 1.0)
    np.testing.assert_allclose(truth(hydraulic, 'pressure_kPa'), before, atol=5.0)
    # The block of samples in which the wire breaks does not change the torque (it would by
    # 130 kPa). 0.1 s of the path and the swing of the arm change the pressure by a few kPa.
    np.testing.assert_allclose(before, driven, atol=30.0)
    np.testing.assert_array_equal(truth(hydraulic, 'torque_N_m'), torque)
    assert torque.max() < 2.0
    assert truth(hydraulic, 'pressure_kPa').min() > 0.0
    for mend in ('servo mend', 'daq mend'):
        hydraulic.inject(mend)
    # Mended devices do not move the arm.
    heard_after(hydraulic, 'emulator', hydraulic.now_s() + 0.6)
    assert hydraulic.state == 'fault'
    assert lifted(hydraulic) == ('none' if off else 'all')
    assert text in hydraulic.values(node)['not_ready']
