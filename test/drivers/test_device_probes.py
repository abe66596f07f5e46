"""Probes of drives and DAQ devices, which write nothing."""

import time

import numpy as np
import pytest
from daq_cases import daq_config
from manual_clock import wait_until
from servo_cases import servo_config

from softarm_ros.drivers.cia402 import DriveState
from softarm_ros.drivers.daq import DaqDriver
from softarm_ros.drivers.daq_probe import probe_daq
from softarm_ros.drivers.daq_session import DaqFaultError
from softarm_ros.drivers.problems import DriverError
from softarm_ros.drivers.servo import ServoDriver
from softarm_ros.drivers.servo_probe import probe_drives

pytest.importorskip('pymodbus')
pytest.importorskip('nidaqmx')

from softarm_ros.emulation.daq_service import EmulatedDaq
from softarm_ros.emulation.modbus_drive import EmulatedDrives


def changed(config, **fields):
    return config.model_copy(update=fields)


# -- servo drives


@pytest.fixture(params=[False, True], ids=['one_controller', 'six_units'])
def drives(request):
    patient = {'response_timeout_s': 0.5, 'link_timeout_s': 2.0, 'command_timeout_s': 20.0}
    config = servo_config(per_axis_unit=request.param, **patient)
    with EmulatedDrives(config, watchdog_s=20.0) as device:
        yield device, changed(config, port=device.port)


def test_probe_reports_the_state_of_every_axis(drives):
    device, config = drives
    reports = probe_drives(config)
    assert [report.name for report in reports] == list(config.names)
    assert [report.trouble for report in reports] == [''] * 6
    assert {report.state for report in reports} == {DriveState.DISABLED}
    assert device.torque_writes() == []


def test_probe_names_the_fault_of_an_axis(drives):
    device, config = drives
    device.fail(3, 0x2310)
    wait_until(lambda: device.states[3] == 'fault', 20.0, 'fault')
    reports = probe_drives(config)
    assert reports[3].trouble == 'fault 0x2310 continuous over-current'
    assert [bool(report.trouble) for report in reports] == [False] * 3 + [True] + [False] * 2


def test_probe_reports_drives_that_answer_too_late_for_the_driver(drives):
    device, config = drives
    device.faults.delay_s = 0.1
    reports = probe_drives(changed(config, response_timeout_s=0.05))
    for report in reports:
        assert report.state is DriveState.DISABLED
        assert report.trouble.startswith('answers within ')
        assert report.trouble.endswith('; the driver waits 50 ms (response_timeout_s)')


def test_probe_does_not_disturb_a_running_servo_driver(drives):
    device, config = drives
    driver = ServoDriver(config)
    driver.start()
    try:
        wait_until(lambda: driver.state().connected, 20.0, 'connection')
        driver.enable()
        wait_until(lambda: driver.state().enabled, 20.0, 'operation')
        driver.set_torque(np.full(6, 0.1))
        reports = probe_drives(config)
        assert {report.state for report in reports} == {DriveState.ENABLED}
        driver.set_torque(np.full(6, 0.1))
        assert device.states == ('enabled',) * 6
    finally:
        driver.close()


def test_probe_names_one_silent_drive_of_six():
    config = servo_config(per_axis_unit=True)
    with EmulatedDrives(config) as device:
        device.faults.silent_units = {4}
        reports = probe_drives(changed(config, port=device.port))
    assert 'no answer within 500 ms' in reports[3].trouble
    assert [report.trouble for report in reports[:3] + reports[4:]] == [''] * 5


def test_probe_reports_missing_registers_with_the_modbus_code():
    config = servo_config(axes=2)
    wrong = config.registers.model_copy(
        update={'torque': config.registers.torque.model_copy(update={'address': 900})}
    )
    with EmulatedDrives(config) as device:
        reports = probe_drives(changed(config, port=device.port, registers=wrong))
    assert all(report.trouble.startswith('modbus 0x02') for report in reports)


def test_probe_without_a_drive_raises_driver_error(free_port=9):
    with pytest.raises(DriverError, match=r'no connection to 127\.0\.0\.1:9'):
        probe_drives(servo_config(port=free_port))


# -- DAQ


@pytest.fixture
def daq():
    written = []
    volts = np.concatenate((np.full(6, 1.4), np.zeros(6)))
    patient = {'call_timeout_s': 2.0, 'read_margin_s': 2.0, 'buffer_samples': 5000}
    config = daq_config(**patient)
    with EmulatedDaq(
        config, source=lambda: volts, sink=lambda v, levels: written.append(v)
    ) as device:
        yield device, daq_config(device.port, **patient), written, volts


def test_probe_reads_every_daq_channel_and_writes_nothing(daq):
    device, config, written, _ = daq
    reports = probe_daq(config)
    assert [report.channel for report in reports] == [
        *config.input_channels,
        *(output.channel for output in config.outputs),
        *(line.line for line in config.lines),
    ]
    assert [report.trouble for report in reports] == [''] * len(reports)
    for report in reports[:6]:
        assert report.volts == pytest.approx(1.4, abs=0.005)
        assert report.value == pytest.approx(1e5, abs=1500.0)
        assert report.unit == 'Pa'
    assert written == []
    assert device.device.tasks == {}, 'tasks are cleared'


def test_probe_names_missing_channels_with_the_daqmx_code(daq):
    _, config, _, _ = daq
    inputs = (config.inputs[0].model_copy(update={'channel': 'Dev2/ai0'}), *config.inputs[1:])
    outputs = (
        *config.outputs[:-1],
        config.outputs[-1].model_copy(update={'channel': 'Dev1/ao99'}),
    )
    reports = {r.name: r for r in probe_daq(changed(config, inputs=inputs, outputs=outputs))}
    assert reports['pressure_1'].trouble.startswith('-200220')
    assert reports[config.outputs[-1].name].trouble.startswith('-200170')
    assert [name for name, r in reports.items() if r.trouble] == [
        'pressure_1',
        config.outputs[-1].name,
    ]


def test_probe_names_an_open_circuit_and_a_pressure_beyond_its_limit(daq):
    _, config, _, volts = daq
    volts[1], volts[4] = 0.02, 5.2
    reports = probe_daq(config)
    assert reports[1].trouble.startswith('open circuit: 0.02')
    assert 'is above 1e+06 Pa' in reports[4].trouble
    assert [bool(report.trouble) for report in reports].count(True) == 2


def test_probe_does_not_disturb_a_running_daq_driver(daq):
    _, config, _, _ = daq
    driver = DaqDriver(config)
    driver.start()
    try:
        wait_until(lambda: driver.state().reading and driver.state().writing, 20.0, 'reading')
        driver.reset()
        reports = probe_daq(config)
        assert all(report.trouble.startswith('-50103') for report in reports[:12])
        stamp = driver.state().stamp_s
        wait_until(lambda: driver.state().stamp_s > stamp + 0.1, 20.0, 'more samples')
        assert driver.state().problems == ()
    finally:
        driver.close()


def test_probe_of_a_missing_daq_host_raises_daq_fault_error(daq):
    device, config, _, _ = daq
    device.kill()
    began = time.monotonic()
    with pytest.raises(DaqFaultError, match='DAQ host') as error:
        probe_daq(config)
    assert error.value.code.startswith('grpc')
    assert time.monotonic() - began < 30.0
