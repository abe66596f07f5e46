"""The emulated drives as any Modbus master sees them: plain pymodbus, without our driver."""

import struct
import time

import numpy as np
import pytest
from manual_clock import wait_until

pytest.importorskip('pymodbus', reason='pymodbus is not installed (extra hardware)')

from pymodbus.client import ModbusTcpClient
from pymodbus.constants import ExcCodes
from pymodbus.exceptions import ModbusIOException

from softarm_ros.drivers.servo_config import ServoConfig
from softarm_ros.emulation.drive_bank import Flywheels
from softarm_ros.emulation.modbus_drive import EmulatedDrives

CONFIG = ServoConfig.model_validate(
    {
        'host': '127.0.0.1',
        'registers': {
            'control_word': {'address': 100, 'type': 'uint16'},
            'torque_command': {'address': 101, 'type': 'float32', 'word_order': 'low_first'},
            'status_word': {'address': 0, 'type': 'uint16', 'table': 'input'},
            'torque': {'address': 1, 'type': 'int16', 'scale': 0.01, 'table': 'input'},
            'speed': {'address': 2, 'type': 'int32', 'scale': 0.001, 'table': 'input'},
            'position': {'address': 4, 'type': 'float32', 'table': 'input'},
            'fault_code': {'address': 6, 'type': 'uint16', 'table': 'input'},
        },
        'axes': [
            {'name': 'a', 'unit': 3, 'torque_limit_N_m': 2.0, 'speed_limit_rad_s': 50.0},
            {
                'name': 'b',
                'unit': 7,
                'base': 1000,
                'torque_limit_N_m': 2.0,
                'speed_limit_rad_s': 50.0,
                'reversed': True,
            },
        ],
    }
)


PATIENCE_S = 20.0  # for a busy computer
VISCOUS_N_M_S = 0.02  # friction of the emulated axes


@pytest.fixture
def drives():
    with EmulatedDrives(CONFIG, watchdog_s=PATIENCE_S) as drives:
        yield drives
        assert drives.errors == []


def connected(port, timeout_s=PATIENCE_S):
    client = ModbusTcpClient('127.0.0.1', port=port, timeout=timeout_s, retries=0)
    assert client.connect()
    return client


@pytest.fixture
def master(drives):
    client = connected(drives.port)
    yield client
    client.close()


@pytest.fixture
def hasty(drives):
    """Return a master with a short time-out, for answers that do not come."""
    client = connected(drives.port, 0.3)
    yield client
    client.close()


def torque_words(value):
    high, low = struct.unpack('>HH', struct.pack('>f', value))
    return [low, high]


def enable(master, unit, base, torque=0.0):
    for control in (0x06, 0x07, 0x0F):
        words = [control, *torque_words(torque)]
        assert not master.write_registers(base + 100, words, device_id=unit).isError()


def status(master, unit, base):
    return master.read_input_registers(base, count=7, device_id=unit).registers


def test_registers_have_the_expected_words_on_the_wire(master, drives):
    assert status(master, 3, 0)[0] == 0x0250
    enable(master, 3, 0, 0.75)
    final = 0.75 / VISCOUS_N_M_S
    # Above the bound below, since speed is a whole number of thousandths on the wire.
    wait_until(lambda: drives.speed[0] > 0.995 * final, PATIENCE_S, 'speed')
    words = status(master, 3, 0)
    assert words[0] == 0x0237
    assert words[1] == 75
    speed = struct.unpack('>i', struct.pack('>HH', *words[2:4]))[0] * 0.001
    assert 0.99 * final < speed <= final
    assert status(master, 7, 1000)[0] == 0x0250


def test_reversed_axis_turns_in_the_opposite_direction_in_the_rig(master, drives):
    enable(master, 7, 1000, 1.0)
    assert drives.torque.tolist() == [0.0, -1.0]
    wait_until(lambda: drives.speed[1] < 0.0, PATIENCE_S, 'speed')
    assert struct.unpack('>h', struct.pack('>H', status(master, 7, 1000)[1]))[0] == 100


def test_torque_is_limited_by_the_drive(master, drives):
    enable(master, 3, 0, 5.0)
    assert drives.torque[0] == 2.0


def test_addresses_outside_the_register_map_are_refused(master):
    for address, count in ((7, 1), (0, 8), (100, 1)):
        answer = master.read_input_registers(address, count=count, device_id=3)
        assert answer.exception_code == ExcCodes.ILLEGAL_ADDRESS
    assert master.write_register(99, 1, device_id=3).exception_code == ExcCodes.ILLEGAL_ADDRESS


def test_silent_master_causes_a_watchdog_fault():
    """How soon is checked in simulated time (test_servo.py)."""
    with EmulatedDrives(CONFIG, watchdog_s=1.0) as drives:
        master = connected(drives.port)
        enable(master, 3, 0, 0.1)
        wait_until(lambda: drives.states[0] == 'fault', PATIENCE_S, 'fault')
        assert drives.torque[0] == 0.0
        assert status(master, 3, 0)[6] == 0x8130
        master.close()


def test_overspeed_trips_the_drive(drives, master):
    fastest = 0.0

    def tripped():
        nonlocal fastest
        fastest = max(fastest, abs(drives.speed[0]))
        return drives.states[0] == 'fault'

    enable(master, 3, 0, 2.0)
    wait_until(tripped, PATIENCE_S, 'trip')
    assert status(master, 3, 0)[6] == 0x8400
    # The limit, 60 rad/s, plus the longest period of a load that would reach 100 rad/s.
    assert fastest < 60.0 + 40.0 * -np.expm1(-0.02 / 0.1)


def test_request_with_a_lost_answer_is_carried_out(drives, hasty):
    drives.faults.lose_answers = 1
    with pytest.raises(ModbusIOException):
        hasty.write_registers(101, torque_words(0.5), device_id=3)
    written = []

    def carried_out():
        written.extend(drives.torque_writes())
        return written

    wait_until(carried_out, PATIENCE_S, 'torque')
    assert [write[1:] for write in written] == [(0, pytest.approx(0.5))]


def test_silent_unit_carries_out_nothing_and_the_other_unit_answers(drives, master, hasty):
    drives.faults.silent_units.add(3)
    with pytest.raises(ModbusIOException):
        hasty.write_registers(101, torque_words(0.5), device_id=3)
    assert drives.torque_writes() == []
    assert status(master, 7, 1000)[0] == 0x0250


def test_delay_fault_delays_the_answer(drives, master):
    drives.faults.delay_s = 0.1
    began = time.monotonic()
    status(master, 3, 0)
    assert time.monotonic() - began >= 0.1


def test_killed_server_refuses_connections_and_revives_on_its_port(drives, master):
    drives.kill()
    again = ModbusTcpClient('127.0.0.1', port=drives.port, timeout=1.0, retries=0)
    assert not again.connect()
    drives.revive()
    assert again.connect()
    assert status(again, 3, 0)[0] == 0x0250
    again.close()


def test_exception_of_a_load_is_reported():
    class Broken:
        def step(self, torque_N_m, dt_s):
            raise RuntimeError('rope tore')

    with EmulatedDrives(CONFIG, Broken()) as drives:
        wait_until(lambda: drives.errors, PATIENCE_S, 'error')
        assert drives.errors == ["load: RuntimeError('rope tore')"]


def test_flywheels_follow_their_exact_solution_for_any_number_of_steps():
    inertia, damping, torque, duration = 2e-3, 0.02, 0.5, 0.35
    for steps in (1, 7, 100):
        load = Flywheels(1, inertia, damping)
        for _ in range(steps):
            position, speed = load.step(np.array([torque]), duration / steps)
        rate = damping / inertia
        grown = -np.expm1(-rate * duration)
        assert speed[0] == pytest.approx(torque / damping * grown, rel=1e-12)
        expected = torque / damping * (duration - grown / rate)
        assert position[0] == pytest.approx(expected, rel=1e-12)
