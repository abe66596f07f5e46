"""Emulated drives and DAQ on the hydraulic arm, without a driver; brakes of emulated drives."""

import numpy as np
import pytest

pytest.importorskip('pymodbus', reason='needs the extra hardware')
pytest.importorskip('nidaqmx', reason='needs the extra hardware')

from softarm_ros import load_rig
from softarm_ros.emulation.cia402_drive import WATCHDOG_FAULT, EmulatedDrive
from softarm_ros.runtime.arm_assembly import build_emulated_arm

KNOWN = ('servo fault AXIS CODE', 'servo delay MS', 'daq open INPUT', 'daq overrun')


@pytest.fixture(scope='module')
def rig():
    return load_rig('hydraulic_arm')


@pytest.fixture
def arm(rig, tmp_path):
    made = build_emulated_arm(rig, 0)
    made.start(tmp_path)
    yield made
    made.close()


def test_port_files_name_ports_that_accept_connections(arm, tmp_path):
    import socket

    for name in ('servo', 'daq'):
        port = int((tmp_path / f'{name}.port').read_text())
        socket.create_connection(('127.0.0.1', port), 2.0).close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ['daq.port', 'servo.port']


def test_plant_time_follows_in_whole_steps_without_loss(rig):
    arm = build_emulated_arm(rig, 0)
    for k in range(1, 334):
        arm.advance(0.003)
        assert arm.time_s == pytest.approx(0.003 * k, abs=1e-9)
        assert arm.plant.time_s <= arm.time_s < arm.plant.time_s + 0.004
    assert arm.plant.poll_poses()
    # Drives are off: brakes hold the preload.
    np.testing.assert_allclose(arm.plant.drives.true_pressures(), rig.arm.preload_Pa, rtol=0.05)


def test_sensor_voltages_match_the_pressures_with_offset_and_noise(rig):
    arm = build_emulated_arm(rig, 3)
    readings = []
    for _ in range(200):
        arm.advance(0.004)
        volts = arm._volts_now()
        readings.append([p.value(v) for p, v in zip(rig.devices.daq.inputs, volts)])
    config = rig.plant.pressure_sensor
    away = np.mean(readings, axis=0) - arm.plant.drives.true_pressures()
    assert np.abs(away).max() < 4.0 * config.offset_Pa
    assert np.std(readings, axis=0).mean() == pytest.approx(config.noise_Pa, rel=0.2)


@pytest.mark.parametrize(
    ('line', 'message'),
    [
        ('', 'no such fault'),
        ('servo explode', 'no such fault'),
        ('servo fault proximal_1', 'no such fault'),
        ('servo fault elbow 0x2310', "no axis 'elbow'"),
        ('servo fault proximal_1 70000', 'code 70000: expected 0 to 0xFFFF'),
        ('servo fault proximal_1 x', 'code x: expected 0 to 0xFFFF'),
        ('servo lose 1.5', '1.5: expected a number of answers'),
        ('servo delay -1', '0 to 60000'),
        ('daq open elbow', "no input 'elbow'"),
    ],
)
def test_unknown_faults_are_refused_with_the_known_ones(rig, line, message):
    arm = build_emulated_arm(rig, 0)
    with pytest.raises(ValueError, match=message) as error:
        arm.inject(line)
    if message == 'no such fault':
        assert all(known in str(error.value) for known in KNOWN)


def test_injected_faults_reach_the_devices_and_mend_clears_them(arm):
    assert arm.inject('servo  fault  distal_1 0x2310') == 'servo fault distal_1 0x2310'
    assert arm.report()['drives'].split(', ') == ['disabled'] * 3 + ['fault'] + ['disabled'] * 2
    arm.inject('daq open proximal_2')
    assert arm._daq.faults.open_V == {'Dev1/ai1': 0.02}
    arm.inject('servo delay 200')
    assert arm._drives.faults.delay_s == 0.2
    arm.inject('servo mend')
    arm.inject('daq mend')
    assert arm._daq.faults.open_V == {}
    assert arm._drives.faults.delay_s == 0.0


# -- brakes of the drives ---------------------------------------------------------------------


def running_drive():
    drive = EmulatedDrive(2.5, watchdog_s=0.1, brake_close_s=0.02)
    for control in (0x06, 0x07, 0x0F):
        drive.write_control(control)
    drive.write_torque(1.5)
    assert drive.brake_lifted and drive.torque == 1.5
    return drive


@pytest.mark.parametrize('how', ['off', 'quick stop', 'watchdog', 'over-temperature'])
def test_drive_keeps_its_torque_until_the_brake_holds(how):
    drive = running_drive()
    if how == 'off':
        drive.write_control(0x00)
    elif how == 'quick stop':
        drive.write_control(0x02)
    elif how == 'watchdog':
        drive.advance(0.099)
        drive.advance(0.002)
        assert drive.fault_code == WATCHDOG_FAULT
    else:
        drive.fail(0x4210)
    assert not drive.brake_lifted
    assert drive.torque == 1.5
    drive.advance(0.019)
    assert drive.torque == 1.5
    drive.advance(0.002)
    assert drive.torque == 0.0


@pytest.mark.parametrize('code', [0x2310, 0x3210, 0x5441])
def test_power_stage_fault_removes_the_torque_at_once(code):
    drive = running_drive()
    drive.fail(code)
    assert drive.torque == 0.0 and not drive.brake_lifted
