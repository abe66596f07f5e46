"""
docs/wire_your_rig.md: options, services, fields and messages exist; tables match the rigs.

test_every_page.py checks its commands and links.
"""

import math
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import typer
from pydantic import BaseModel

from softarm_ros.cli.main import app
from softarm_ros.drivers import port_list
from softarm_ros.rigs import loader

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / 'docs' / 'wire_your_rig.md').read_text(encoding='utf-8')
RULES = (REPOSITORY / 'udev' / '70-softarm.rules').read_text(encoding='utf-8')

load_rig = cache(loader.load_rig)


@cache
def sources():
    return '\n'.join(
        path.read_text(encoding='utf-8')
        for path in sorted((REPOSITORY / 'softarm_ros').rglob('*.py'))
    )


def section(title):
    return PAGE.split(f'\n## {title}', 1)[1].split('\n## ', 1)[0]


def table(text, heading):
    """Return the rows of the table whose first column has this heading, as lists of cells."""
    lines = text[text.index(f'| {heading} |') :].splitlines()
    rows = []
    for line in lines[2:]:
        if not line.startswith('|'):
            break
        rows.append([cell.strip() for cell in line.strip('|').split('|')])
    assert rows
    return rows


# -- options, services and rules


def test_options_named_without_a_command_exist():
    commands = typer.main.get_command(app).commands
    known = {
        option
        for name in ('ports', 'jog', 'run')
        for parameter in commands[name].imported().params
        for option in parameter.opts
    }
    found = re.findall(r'`(--[a-z-]+)[^`]*`', PAGE)
    assert len(found) > 5
    assert set(found) <= known


def test_services_named_on_the_page_exist():
    found = set(re.findall(r'/([a-z_]+_arm)/([a-z]+)/([a-z]+)\b', PAGE))
    found.remove(('cable_arm', 'tip', 'pose'))
    assert {name for _, _, name in found} == {'home', 'reset', 'start', 'tare'}
    nodes = REPOSITORY / 'softarm_ros' / 'nodes'
    for rig, node, service in found:
        if node == 'supervisor':
            assert f"'{service}'" in (nodes / 'supervisor_node.py').read_text()
            continue
        assert node in load_rig(rig).devices.names
        shared = ['driver_node.py', 'actuator_node.py']
        shared += ['daq_nodes.py', 'daq_topics.py'] if node == 'daq' else []
        assert any(f"'~/{service}'" in (nodes / name).read_text() for name in shared)
    assert f'/cable_arm/{load_rig("cable_arm").feedback.pose_topic}' in PAGE


def test_udev_rules_are_installed_by_setup_py():
    assert 'udev/70-softarm.rules' in PAGE
    assert "installed('udev', '*.rules')" in (REPOSITORY / 'setup.py').read_text()


# -- fields, messages and codes


def fields(model, seen=None):
    """Return the names of all fields of a model and of the models in it."""
    seen = set() if seen is None else seen
    named = {name: field.alias or name for name, field in type(model).model_fields.items()}
    # The names of devices are those of the file, not of their class.
    for name, shown in (named | {name: name for name in model.model_extra or {}}).items():
        seen.add(shown)
        value = getattr(model, name)
        for part in value if isinstance(value, tuple) else [value]:
            if isinstance(part, BaseModel):
                fields(part, seen)
    return seen


def test_rig_file_fields_named_on_the_page_exist():
    names = ('cable', 'hydraulic', 'pneumatic', 'pam', 'fishbone')
    rigs = [load_rig(f'{name}_arm') for name in names] + [load_rig('trunk')]
    known = set.union(*(fields(rig) for rig in rigs))
    known |= {rig.name for rig in rigs} | {
        'states_lost',
        'answers_lost',
        'ni_grpc_device_server',
        'latency_timer',
    }
    found = set(re.findall(r'`([a-z]+(?:_[a-zA-Z]+)+)(?::[^`]*)?`', PAGE))
    assert len(found) > 15
    assert found <= known, found - known


@pytest.mark.parametrize(
    'phrase',
    sorted(
        {
            part.strip()
            for row in table(section('When it does not work'), 'symptom')
            for quoted in re.findall(r'\*([^*]+)\*', row[0])
            for part in quoted.split('...')
            if part.strip(' :')
        }
    ),
)
def test_quoted_messages_occur_in_the_source(phrase):
    text = re.sub(r"'\s*\n\s*f?'", '', sources())  # joins strings continued on the next line
    assert phrase.removesuffix(':502').strip(' ,') in text


def test_codes_on_the_page_match_the_drivers():
    from softarm_ros.drivers.cia402 import FAULT_NAMES
    from softarm_ros.drivers.messages import Cause, State, StepperState

    states = ((State.STOPPED, Cause.WATCHDOG), (State.FAULT, Cause.COIL_BUS))
    codes = [StepperState(0, *both, 0, 0, 0, 0, (0,) * 6).code for both in states]
    assert codes == ['STOPPED cause 2', 'FAULT cause 4']
    assert all(f'`{code}`' in PAGE for code in codes)
    assert "| fault `0x8130` | the drive's watchdog" in PAGE
    assert FAULT_NAMES[0x8130] == 'communication watchdog'


# -- wiring tables


def test_motor_table_matches_the_cable_arm():
    motors = load_rig('cable_arm').devices.steppers.motors
    rows = table(section('cable_arm'), 'actuator')
    assert [row[0] for row in rows] == [motor.name for motor in motors]
    for row, motor in zip(rows, motors):
        assert int(row[1]) == motor.motor
        assert int(row[2], 16) == 0x60 + motor.motor // 2
        assert row[3] == ('M1, M2', 'M3, M4')[motor.motor % 2]
        assert motor.pulley_radius_m == 0.015


def test_register_table_matches_the_hydraulic_arm():
    servo = load_rig('hydraulic_arm').devices.servo
    text = section('hydraulic_arm')
    headings = text[text.index('| axis |') :].splitlines()[0].strip('|').split('|')[1:]
    rows = table(text, 'axis')
    assert [row[0] for row in rows] == list(servo.names)
    for row, axis in zip(rows, servo.axes):
        for name, cell in zip(headings, row[1:]):
            register = getattr(servo.registers, name.strip())
            assert int(cell) == axis.base + register.address
    for name, scale in (('torque', 0.0025), ('speed', 0.001), ('position', 0.001)):
        register = getattr(servo.registers, name)
        assert (register.words, register.word_order, register.scale) == (2, 'high_first', scale)
    assert servo.registers.torque_command.scale == 0.0025
    written = {write.register_.address: write.value for write in servo.setup}
    assert written[201] == 100.0  # ms, of the watchdog
    assert set(written) == {200, 201}


def test_pressure_sensor_table_matches_the_hydraulic_arm():
    inputs = load_rig('hydraulic_arm').devices.daq.inputs
    rows = table(section('hydraulic_arm'), 'sensor of')
    assert rows == [[part.name, part.channel, part.terminal] for part in inputs]


def tip_direction_deg(rig, changes):
    """Return the direction in which changes of actuators from rest move the tip, around z."""
    model = rig.model()
    at_rest = model.actuation_of(model.rest_configuration)
    tip = model.forward(at_rest + changes).tip[:2, 3] - model.forward(at_rest).tip[:2, 3]
    return math.degrees(math.atan2(tip[1], tip[0])) % 360.0


def test_angles_of_chambers_match_the_model_of_the_pneumatic_arm():
    rig = load_rig('pneumatic_arm')
    for number, angle, towards in table(section('pneumatic_arm'), 'chamber'):
        for name in ('proximal', 'distal'):
            filled = [2e4 * (n == f'{name}_chamber_{number}') for n in rig.actuator_names]
            moved = tip_direction_deg(rig, np.array(filled))
            assert moved == pytest.approx(float(towards.removesuffix(' deg')), abs=0.1)
            assert (moved + 180.0) % 360.0 == pytest.approx(float(angle.split()[0]), abs=0.1)


def test_angles_of_muscles_match_the_model_of_the_pam_arm():
    rig = load_rig('pam_arm')
    for number, *angles in table(section('pam_arm'), 'muscle'):
        for module in range(1, 5):
            of = f'module_{module}_muscle_{number}'
            emptied = [-1e-3 * (n == of) for n in rig.actuator_names]
            angle = float(angles[(module - 1) % 2].removesuffix(' deg'))
            assert tip_direction_deg(rig, np.array(emptied)) == pytest.approx(angle, abs=1.0)


def test_regulator_table_matches_the_pneumatic_arm():
    rig = load_rig('pneumatic_arm')
    daq = rig.devices.daq
    rows = table(section('pneumatic_arm'), 'regulator of')
    assert [row[0] for row in rows] == [*rig.actuator_names, 'gripper']
    assert [row[1] for row in rows] == [output.channel for output in daq.outputs]
    assert [row[2].split()[0] for row in rows] == [part.channel for part in daq.inputs]
    assert {part.terminal for part in daq.inputs} == {'rse'}
    others = table(section('pneumatic_arm'), 'what')
    assert daq.lines[0].line in others[0][1]
    assert daq.force_sensor.channels[0] in others[1][1]
    assert [int(c.rpartition('ai')[2]) for c in daq.force_sensor.channels] == [*range(16, 22)]
    assert daq.outputs[0].scale * 10.0 == 0.5e6


def test_winch_table_matches_the_fishbone_arm():
    rig = load_rig('fishbone_arm')
    daq = rig.devices.daq
    rows = table(section('fishbone_arm'), 'winch of')
    assert [row[0] for row in rows] == list(rig.actuator_names)
    assert [row[1] for row in rows] == [output.channel for output in daq.outputs]
    assert [row[2] for row in rows] == [part.channel for part in daq.inputs]
    assert {part.terminal for part in daq.inputs} == {'rse'}
    assert {output.scale * 10.0 for output in daq.outputs} == {50.0}


def test_servo_table_matches_the_trunk():
    servos = load_rig('trunk').devices.dynamixel.servos
    rows = table(section('trunk'), 'actuator')
    assert rows == [[s.name, str(s.id), f'{s.zero_deg:g}'] for s in servos]
    assert {servo.pulley_radius_m for servo in servos} == {0.010}


def test_pin_table_matches_the_firmware_readme_and_the_pam_arm():
    firmware = (REPOSITORY / 'firmware' / 'README.md').read_text()
    ours = table(section('pam_arm'), 'outputs')[:-1]
    theirs = table(firmware, 'outputs')[:-1]
    assert [row[0] for row in ours] == [row[0] for row in theirs]
    assert [row[1] for row in ours] == [row[1].split(' (')[0] for row in theirs]
    assert load_rig('pam_arm').devices.valves.pairs == tuple(range(30))
    assert load_rig('pam_arm').devices.valves.baud == 115200


# -- udev


def test_udev_rules_are_well_formed_and_link_the_serial_port_of_the_cable_arm():
    rules = [line.lstrip('#') for line in RULES.splitlines() if 'SUBSYSTEM' in line]
    part = re.compile(r'[A-Z_]+(\{\w+\})?(==|\+=|=)"[^"]*"')
    for rule in rules:
        assert all(part.fullmatch(word.strip()) for word in rule.split(', ')), rule
        assert 'ENV{ID_MM_DEVICE_IGNORE}="1"' in rule
    active = [line for line in RULES.splitlines() if line.startswith('SUBSYSTEM')]
    ids = {
        (int(vendor, 16), int(product, 16))
        for vendor, products in re.findall(r'idVendor\}=="(\w+)".*idProduct\}=="([\w|]+)"', RULES)
        for product in products.split('|')
    }
    assert len(active) == 2
    assert ids == port_list._MEGA
    links = set(re.findall(r'SYMLINK\+="(\w+)"', RULES))
    assert all(link.startswith(port_list.OURS) for link in links)
    assert load_rig('cable_arm').devices.steppers.port.removeprefix('/dev/') in links
