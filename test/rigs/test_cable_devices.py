"""The devices block of cable-driven arms, and its consistency with the rest of the rig."""

import json

import numpy as np
import pytest

from softarm_ros.drivers.cable_steppers import CableSteppers
from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.loader import load_rig
from softarm_ros.runtime.arm_assembly import build_driver

MOTORS = 'drives.steppers.motors'


@pytest.mark.parametrize('name', ['cable_arm', 'cable_arm_single'])
def test_driver_of_shipped_cable_arms_refuses_commands_beyond_their_limits(name):
    rig = load_rig(name)
    assert rig.devices.names == ('steppers',)
    driver = build_driver(rig, rig.devices)
    assert isinstance(driver, CableSteppers)
    limits = rig.actuator_limits()
    for end in (limits.position_min, limits.position_max):
        assert driver.follow(end) == 'steppers: not started'
        beyond = end + np.sign(end) * 1e-4
        with pytest.raises(ValueError, match=rf'{limits.names[0]} = .* outside'):
            driver.follow(beyond)


def test_microstep_of_the_motors_equals_that_of_the_plant():
    for name in ('cable_arm', 'cable_arm_single'):
        rig = load_rig(name)
        for motor in rig.devices.steppers.motors:
            assert motor.step_m == pytest.approx(rig.plant.stepper.step_m, rel=1e-7)


@pytest.mark.parametrize(
    ('setting', 'text'),
    [
        (f'{MOTORS}[1].name=proximal_3', 'proximal_3.* is there twice'),
        (f'{MOTORS}[1].name=other', 'expected one for each actuator, in the same order'),
        (f'{MOTORS}[1].motor=6', '>= 0 and < 6'),
        (
            f'{MOTORS}[2].pulley_radius_m=0.001',
            r'motors\[2\].pulley_radius_m: 0.001 m with full_steps_per_turn = 200 and the '
            r"actuator's max_speed_m_s = 0.02 is 10186 microsteps/s where .* at most 4000",
        ),
        (f'{MOTORS}[2].pulley_radius_m=0.15', r'motors\[2\].pulley_radius_m = 0.15: .* <= 0.1'),
        (
            'arm.actuators[2].pulley_radius_m=0.016',
            r'motors\[2\].pulley_radius_m = 0.015: expected 0.016, as '
            r'arm.actuators\[2\].pulley_radius_m',
        ),
        ('arm.actuators[0].max_speed_m_s=0.2', r'motors\[0\].* max_speed_m_s = 0.2 is'),
        ('drives.steppers.acceleration_m_s2=0.09', 'less than commands ask for, 0.1'),
        (
            'drives.steppers.acceleration_m_s2=10',
            'acceleration_m_s2: 10 m/s.2 with pulley_radius_m = 0.015 and full_steps_per_turn = '
            '200 is 339530 microsteps/s.2 where the board takes 100..120000',
        ),
        ('drives.steppers.rate_hz=10', 'rate_hz'),
        ('drives.steppers.link_timeout_s=0.5', 'link_timeout_s'),
        ('drives.steppers.port=""', 'port'),
        ('drives.daq=1', 'daq'),
    ],
)
def test_inconsistent_cable_devices_are_refused_with_the_field(setting, text):
    with pytest.raises(RigError, match=text):
        load_rig('cable_arm', [setting])


def test_two_drives_of_all_actuators_are_refused_with_both_names():
    steppers = load_rig('cable_arm').devices.steppers.model_dump(mode='json')
    dynamixel = load_rig('trunk').devices.dynamixel.model_dump(mode='json')
    for motor, servo in zip(steppers['motors'], dynamixel['servos']):
        servo['name'] = motor['name']
    for first, second in (('steppers', 'dynamixel'), ('dynamixel', 'steppers')):
        blocks = {'steppers': steppers, 'dynamixel': dynamixel}
        both = json.dumps({first: blocks[first], second: blocks[second]})
        message = rf'drives\.{second}: another drive beside drives\.{first}; expected one for all'
        with pytest.raises(RigError, match=message):
            load_rig('cable_arm', [f'drives={both}'])


def test_arm_without_devices_refuses_the_hardware_backend():
    with pytest.raises(RigError, match="no devices for backend 'hardware'"):
        load_rig('trunk').model_copy(update={'devices': None}).required_devices('hardware')
