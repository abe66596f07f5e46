"""Rig files of the older form: every old field is reported once, with line and replacement."""

import re

import pytest

from softarm_ros.rigs.errors import RigError
from softarm_ros.rigs.loader import load_rig
from softarm_ros.rigs.replaced_fields import REPLACED

# The older form had the fields of the arm beside those of the rig. The contents of the blocks are
# left out here: no message may be about them.
HEAD = """\
name: {name}
description: an arm
gravity_m_s2: [0.0, 0.0, 9.81]
"""
TAIL = """\
feedback:
  rate_hz: 100.0
  pose_topic: /cameras/tip
tracker:
  feedback_gain_1_s: 2.0
supervisor:
  feedback_timeout_s: 0.12
trajectories:
  circle: {type: circle, center: [0.0, 0.0, 0.1], radius: 0.1}
default_trajectory: circle
plant:
  sections: [{length_m: 0.1}]
  mocap:
    rate_hz: 100.0
"""
CABLES = """\
sections:
  - {name: proximal}
default_model: cable_statics
actuators:
  - {name: cable_1}
devices:
  steppers: {port: /dev/ttyACM0}
"""
OWN = {
    'cable_arm': CABLES,
    'cable_arm_single': CABLES,
    'trunk': CABLES + 'recording:\n  command_unit: deg\n',
    'hydraulic_arm': """\
kind: hydraulic
medium: air
sections:
  - {name: proximal}
segments_per_section: 3
default_model: hydraulic_statics
preload_Pa: 1.0e+5
actuators:
  - {name: proximal_1}
pressure_loop:
  gain: 3.0
devices:
  servo: {host: 192.168.1.20}
  daq: {}
""",
    'pneumatic_arm': """\
kind: pneumatic
sections:
  - {name: proximal}
mount:
  diameter_m: 0.034
gripper: {open_pressure_Pa: -3.0e+4, close_pressure_Pa: 5.0e+4}
default_model: angle_correction
actuators:
  - {name: proximal_chamber_1}
play_compensation: {play_Pa: 800.0}
devices:
  daq: {}
""",
    'pam_arm': """\
kind: muscle
tip_load_kg: 0.0
backbone:
  length_m: 1.0
modules:
  modules: 10
intervals: 40
default_model: minimum_energy
actuators:
  - {name: module_1_muscle_1}
valves:
  guard_s: 0.03
devices:
  valves: {port: /dev/rfcomm0}
""",
    'fishbone_arm': """\
kind: tendon_rod
segments:
  - {name: unit_1}
model_steps: 3
extensible: false
default_model: cosserat
pretension_N: 1.0
actuators:
  - {name: right_1}
""",
}
# Top-level fields that both forms have.
KEPT = {
    'name', 'description', 'gravity_m_s2', 'medium', 'tip_load_kg', 'gripper', 'supervisor',
    'trajectories', 'default_trajectory', 'recording', 'plant',
}  # fmt: skip


def problems_of(path):
    with pytest.raises(RigError) as error:
        load_rig(path)
    return error.value.problems


@pytest.mark.parametrize('name', OWN)
def test_every_old_field_is_reported_once_and_nothing_else(name, tmp_path):
    text = HEAD.format(name=name) + OWN[name] + TAIL
    path = tmp_path / 'old.yaml'
    path.write_text(text, encoding='utf-8')
    lines = text.splitlines()
    top = {match.group(1) for match in re.finditer(r'^(\w+):', text, flags=re.MULTILINE)}
    expected = {(field,) for field in top - KEPT}
    expected |= {('feedback', 'pose_topic'), ('plant', 'mocap')}
    problems = problems_of(path)
    assert sorted(problem.path for problem in problems) == sorted(expected)
    for problem in problems:
        assert lines[problem.line - 1].strip().startswith(f'{problem.path[-1]}:')
        assert problem.message.startswith('no longer a field; write ')


def test_message_names_the_new_place_of_an_old_field(tmp_path):
    path = tmp_path / 'old.yaml'
    path.write_text(HEAD.format(name='old') + OWN['hydraulic_arm'] + TAIL, encoding='utf-8')
    found = {'.'.join(p.path): p.message.partition('; write ')[2] for p in problems_of(path)}
    assert found == {
        'kind': 'arm.kind',
        'sections': 'arm.sections',
        'segments_per_section': 'model: {kind: hydraulic_statics, segments_per_section: ...}',
        'default_model': 'model',
        'preload_Pa': 'arm.preload_Pa',
        'actuators': 'arm.actuators',
        'pressure_loop': 'arm.pressure_loop',
        'devices': 'drives',
        'feedback': 'sensors.pose_topic',
        'feedback.pose_topic': 'sensors.pose_topic.topic',
        'tracker': 'controller',
        'plant.mocap': 'plant.pose_sensor',
    }


def test_message_for_a_field_without_a_replacement_is_to_delete_it(tmp_path):
    path = tmp_path / 'old.yaml'
    path.write_text('feedback:\n  kind: mocap\n', encoding='utf-8')
    line = f"{path}:2: feedback.kind = 'mocap': no longer a field; delete it"
    with pytest.raises(RigError) as error:
        load_rig(path)
    assert line in str(error.value).splitlines()


@pytest.mark.parametrize('path', REPLACED, ids='.'.join)
def test_every_replaced_path_is_refused_as_no_longer_a_field(path, tmp_path):
    with pytest.raises(RigError, match='no longer a field'):
        load_rig('cable_arm', [f'{".".join(path)}=1'])


def test_old_field_in_a_file_of_the_new_form_is_the_only_problem(tmp_path):
    text = load_rig('cable_arm').source.read_text(encoding='utf-8')
    assert text.count('\ncontroller:\n') == 1
    path = tmp_path / 'half.yaml'
    path.write_text(text.replace('\ncontroller:\n', '\ntracker:\n'), encoding='utf-8')
    (problem,) = problems_of(path)
    assert problem.path == ('tracker',) and problem.message.endswith('write controller')
