"""The Dynamixel bus of a rig file: its driver, and refused values."""

import numpy as np
import pytest

from softarm_ros.drivers.dynamixel.driver import DynamixelServos
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.arm_assembly import build_driver

BUS = 'drives.dynamixel'


def test_driver_of_the_trunk_refuses_commands_beyond_its_limits():
    rig = load_rig('trunk')
    assert rig.devices.names == ('dynamixel',)
    driver = build_driver(rig, rig.devices)
    assert isinstance(driver, DynamixelServos)
    limits = rig.actuator_limits()
    for end in (limits.position_min, limits.position_max):
        assert driver.follow(end) == 'dynamixel: not started'
    with pytest.raises(ValueError, match='middle_2'):
        driver.follow(limits.position_max + np.eye(6)[3] * 1e-3)


def refusal(tmp_path, before, after):
    shipped = load_rig('trunk').source.read_text(encoding='utf-8')
    assert before in shipped
    changed = tmp_path / 'trunk.yaml'
    changed.write_text(shipped.replace(before, after), encoding='utf-8')
    with pytest.raises(RigError) as error:
        load_rig(changed)
    return str(error.value)


@pytest.mark.parametrize(
    ('before', 'after', 'message'),
    [
        ('id: 3,', 'id: 5,', 'servos: id 5 is there twice'),
        ('id: 3,', 'id: 253,', 'id = 253'),
        ('{name: base_1, id', '{name: base_3, id', 'expected one for each actuator, in the same'),
        ('zero_deg: 189.0', 'zero_deg: 60', 'takes the servo from -20 to 140 deg'),
        ('zero_deg: 183.0', 'zero_deg: 300', 'takes the servo from 220 to 380 deg'),
        ('0.010, zero_deg', '0.012, zero_deg', 'expected 0.01, as arm.actuators[0]'),
        (
            'acceleration_m_s2: 1.0  ',
            'acceleration_m_s2: 0.1  ',
            'less than commands ask for, 0.3',
        ),
        (
            'acceleration_m_s2: 1.0  ',
            'acceleration_m_s2: 1000  ',
            '1000 m/s^2 with pulley_radius_m = 0.01: a servo takes at most 122.7',
        ),
        (
            'current_limit_A: 2.0 ',
            'watchdog_s: 0.15\n    current_limit_A: 2.0 ',
            'watchdog_s = 0.15',
        ),
        ('current_limit_A: 2.0 ', 'current_limit_A: 0.0 ', 'current_limit_A'),
    ],
)
def test_invalid_servo_bus_is_refused(tmp_path, before, after, message):
    said = refusal(tmp_path, before, after)
    assert message in said and 'trunk.yaml:' in said
